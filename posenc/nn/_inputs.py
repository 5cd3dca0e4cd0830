"""What the layers ask of their input."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from posenc._arrays import same_shape
from posenc._checks import integer, number


def check_floating(name: str, x: Tensor, wanted: str = "a floating tensor") -> None:
    """TypeError unless x is a floating tensor."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"{name} must be {wanted}, got {kind}")


def check_dropout(share: float) -> nn.Dropout:
    """Dropout of `share`, which must be a number from 0 to 1: torch takes True and NaN."""
    if number("dropout", share, at_least=0) > 1:
        raise ValueError(f"dropout must be at most 1, got {share!r}")
    return nn.Dropout(float(share))


def check_embeddings(x: Tensor, dim: int) -> None:
    """TypeError or ValueError unless x is floating, of shape (batch, seq, dim) or (seq, dim)."""
    check_floating("x", x, "a floating tensor of embeddings")
    if x.ndim not in (2, 3) or x.shape[-1] != dim:
        raise ValueError(f"x must have shape (batch, seq, {dim}) or (seq, {dim}), got {tuple(x.shape)}")


def check_offset(offset: int) -> None:
    """An error unless offset is a Python integer, or what stands for one in a graph, and at least 0."""
    if isinstance(offset, bool) or not isinstance(offset, (int, torch.SymInt)):
        raise TypeError(f"offset must be an int, got {offset!r} of type {type(offset).__name__}")
    if offset < 0:
        raise ValueError(f"offset must be at least 0, got {offset}")


def check_reach(offset: int, seq: int, max_len: int) -> None:
    """ValueError if the tokens reach beyond a table of max_len rows."""
    if offset + seq > max_len:
        raise ValueError(
            f"positions {offset}..{offset + seq - 1} must lie in 0..{max_len - 1}: "
            f"make the layer with a larger max_len, got max_len={max_len}"
        )


def check_positions(positions: Tensor, x: Tensor, offset: int = 0, name: str = "positions") -> None:
    """TypeError or ValueError unless positions hold a number for each token of x, and no offset is given."""
    if offset != 0:
        raise ValueError(f"offset must be 0 when positions are given, got {offset}")
    if not isinstance(positions, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(positions).__name__}")
    # Not `in`: torch.compile cannot look for lengths that it leaves open.
    if not same_shape(positions.shape, x.shape[-2:-1]) and not same_shape(positions.shape, x.shape[:-1]):
        raise ValueError(
            f"{name} must have shape {tuple(x.shape[-2:-1])} or {tuple(x.shape[:-1])}, "
            f"got {tuple(positions.shape)}"
        )


def check_places(
    n_query: int | None,
    n_key: int | None,
    query_positions: Tensor | None,
    key_positions: Tensor | None,
    like: Tensor,
) -> tuple[int | Tensor, int | Tensor | None]:
    """Lengths, or positions given by name, as the formulas take them: both in the place of positions.

    By name, because token ids, given in their place, would be taken for positions. Lengths that torch.jit.trace
    follows become positions on the device of `like`, so that the trace is right for any length.
    """
    traced = torch.jit.is_tracing() and any(isinstance(n, Tensor) and n.ndim == 0 for n in (n_query, n_key))
    if n_query is not None:
        n_query = _length("n_query", n_query)
    if n_key is not None:
        n_key = _length("n_key", n_key)
    for name, positions in (("query_positions", query_positions), ("key_positions", key_positions)):
        if positions is not None and not isinstance(positions, Tensor):
            raise TypeError(f"{name} must be a tensor, got {positions!r} of type {type(positions).__name__}")
    if query_positions is None:
        if n_query is None or key_positions is not None:
            raise ValueError("query_positions must be given where key_positions are or n_query is not")
        if n_key is not None and n_query > n_key:
            raise ValueError(
                f"n_query must be at most n_key, because the queries are the last of the keys: got {n_query} and "
                f"{n_key}; pass query_positions for anything else"
            )
        if traced:
            keys = torch.arange(n_query if n_key is None else n_key, device=like.device)
            return keys[keys.shape[0] - n_query :], keys
        return n_query, n_key
    if n_query is not None:
        raise ValueError(f"n_query must be left out when query_positions are given, got {n_query}")
    if n_key is not None and key_positions is not None:
        raise ValueError(f"n_key must be left out when key_positions are given, got {n_key}")
    return query_positions, n_key if key_positions is None else key_positions


def _length(name: str, value: int) -> int:
    """A length; while torch.jit.trace follows it, a tensor stands for it."""
    if isinstance(value, Tensor):
        if torch.jit.is_tracing() and value.ndim == 0:
            return value  # what a length is while it traces
        named = name.replace("n_", "") + "_positions"
        raise TypeError(
            f"{name} must be an int, got a tensor {tuple(value.shape)}: pass positions as {named}=..."
        )
    return integer(name, value, minimum=0)


def add(x: Tensor, codes: Tensor) -> Tensor:
    """x + codes in the wider of their dtypes, rounded once to the dtype of x."""
    return (x + codes).to(x.dtype)
