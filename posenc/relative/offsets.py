"""Offsets of keys from queries, and matrices whose entries depend on the offset alone.

The offset is k = u − t, the key position u minus the query position t. A key to the left has k < 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from posenc._arrays import Array, ArrayLike, Namespace, OneArray, device_of, is_tensor, namespace
from posenc._checks import as_positions, integer, is_length, length

__all__ = ["relative_offsets", "toeplitz_bias"]


def relative_offsets(query_positions: int | ArrayLike, key_positions: int | ArrayLike | None = None) -> Array:
    """The offset of every key from every query.

    k = u − t for the query position t (row) and the key position u (column).

    Args:
        query_positions: an integer n_q for the last n_q of the key positions: in decoding, 1 for the new query.
            Or an array (..., n_q) of integer or real positions.
        key_positions: an integer n_k for 0, 1, ..., n_k − 1, or an array (..., n_k) with the leading axes of
            query_positions. If None, the query positions.

    Returns:
        Array (..., n_q, n_k): integers, or float64 if any position is real. NumPy for integers, else of the
        library and on the device of query_positions.

    Raises:
        ValueError: integers with n_q above n_k. Pass arrays of positions instead.

    >>> relative_offsets(3)
    array([[ 0,  1,  2],
           [-1,  0,  1],
           [-2, -1,  0]])
    >>> relative_offsets(1, 3)
    array([[-2, -1,  0]])

    Source: defined in this book, relative.md#term.
    """
    both = lengths(query_positions, key_positions)
    if both is not None:
        n_query, n_key = both
        return np.arange(n_key) - np.arange(n_key - n_query, n_key)[:, None]
    _, t, u = two_positions(query_positions, key_positions)
    return u[..., None, :] - t[..., :, None]


def toeplitz_bias(values: OneArray, n_query: int) -> Array:
    """A matrix with one value on each of its n_q + n_k − 1 diagonals.

    B(t, u) = values(u − t).

    Args:
        values: shape (..., n_q + n_k − 1), the values of the offsets −(n_k − 1), ..., n_q − 1 in this order.
        n_query: n_q. The queries are at the last n_q of the n_k key positions.

    Returns:
        Array (..., n_q, n_k) of the library and dtype of values.

    Raises:
        ValueError: fewer than 2 · n_q − 1 values, which means n_q above n_k.

    >>> toeplitz_bias(np.array([-2, -1, 0, 1, 2]), 3)
    array([[ 0,  1,  2],
           [-1,  0,  1],
           [-2, -1,  0]])

    Source: defined in this book, relative.md#term.
    """
    n_query = length("n_query", n_query)
    xp = namespace(values=values)
    if values.ndim < 1 or values.shape[-1] < max(2 * n_query - 1, 0):
        raise ValueError(
            f"values must have shape (..., n_q + n_k - 1) with n_k >= n_q = {n_query}, "
            f"got {tuple(values.shape)}"
        )
    if n_query == 0:
        shape = (*values.shape[:-1], 0, values.shape[-1] + 1)
        return xp.empty(shape, dtype=values.dtype, device=device_of(values))
    return toeplitz(values, n_query, xp)


def lengths(
    query_positions: int | ArrayLike, key_positions: int | ArrayLike | None
) -> tuple[int, int] | None:
    """n_q and n_k if both are integers, None for arrays of positions."""
    if not is_length(query_positions):
        return None
    n_query = integer("query_positions", query_positions, minimum=0)
    if key_positions is None:
        return n_query, n_query
    if not is_length(key_positions):
        raise TypeError(
            "query_positions must be an array if key_positions is an array, because an integer would mean "
            f"the last of the keys, got {query_positions!r}"
        )
    n_key = integer("key_positions", key_positions, minimum=0)
    if n_query > n_key:
        raise ValueError(
            "query_positions must be at most key_positions, because the queries are the last of the keys: got "
            f"{n_query} and {n_key}; for other positions pass arrays"
        )
    return n_query, n_key


def two_positions(
    query_positions: Array, key_positions: int | ArrayLike | None
) -> tuple[Namespace, Array, Array]:
    """Both as arrays of one library with equal leading axes: int64, or float64 if any position is real."""
    xp, t = _as_numbers("query_positions", query_positions)
    if key_positions is None:
        u = t
    elif is_length(key_positions):
        n_key = integer("key_positions", key_positions, minimum=0)
        u = xp.arange(n_key, dtype=t.dtype, device=device_of(t))
        u = xp.broadcast_to(u, (*t.shape[:-1], n_key))
    else:
        _, u = _as_numbers("key_positions", key_positions)
        xp = namespace(query_positions=t, key_positions=u)
    if t.ndim < 1 or u.ndim < 1 or t.shape[:-1] != u.shape[:-1]:
        raise ValueError(
            "query_positions and key_positions must have shapes (..., n_q) and (..., n_k) with the same "
            f"leading axes, got {tuple(t.shape)} and {tuple(u.shape)}"
        )
    if t.dtype != u.dtype:
        t, u = xp.astype(t, xp.float64), xp.astype(u, xp.float64)
    return xp, t, u


def as_integers(name: str, positions: Array) -> tuple[Namespace, Array]:
    """The positions in int64; TypeError if any is real."""
    xp, numbers = _as_numbers(name, positions)
    if not xp.isdtype(numbers.dtype, "integral"):
        raise TypeError(f"{name} must be integers, got dtype {numbers.dtype}")
    return xp, numbers


def toeplitz(values: Array, n_query: int, xp: Namespace) -> Array:
    """(..., n_q + n_k − 1) values of the offsets −(n_k − 1)..n_q − 1 as (..., n_q, n_k), n_q at least 1."""
    n_key = values.shape[-1] - n_query + 1
    # Each row is a window of the values, one further to the left than the row above it: one copy makes all.
    if xp is np:
        return np.lib.stride_tricks.sliding_window_view(values, n_key, axis=-1)[..., ::-1, :].copy()
    if is_tensor(values):
        if values.requires_grad and not xp.compiler.is_compiling() and not xp.jit.is_tracing():
            return _with_derivative(xp).apply(values, n_query)
        return _windows(values, n_query)
    device = device_of(values)
    start = xp.arange(n_query - 1, -1, -1, device=device)[:, None]
    index = xp.reshape(start + xp.arange(n_key, device=device), (-1,))
    return xp.reshape(xp.take(values, index, axis=-1), (*values.shape[:-1], n_query, n_key))


def _windows(values: Array, n_query: int) -> Array:
    """`toeplitz` of a tensor."""
    # Contiguous before and after: else flip keeps whatever order of the axes it finds. as_strided, not unfold, which
    # torch.compile would build anew for every length.
    values = values.contiguous()
    n_key = values.shape[-1] - n_query + 1
    return (
        values.as_strided((*values.shape[:-1], n_query, n_key), (*values.stride(), 1)).flip(-2).contiguous()
    )


@functools.cache
def _with_derivative(torch: Namespace) -> Any:
    """`_windows` with a derivative that reads each number once. torch's own takes eight copies of them."""

    class Toeplitz(torch.autograd.Function):  # type: ignore[name-defined]
        generate_vmap_rule = True

        @staticmethod
        def forward(values: Array, n_query: int) -> Array:
            return _windows(values, n_query)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Array, int], output: Array) -> None:
            ctx.n_query = inputs[1]

        @staticmethod
        def backward(ctx: Any, upstream: Array) -> tuple[Array, None]:
            return sum_by_offset(upstream, torch), None

        @staticmethod
        def jvp(ctx: Any, tangent: Array, _: None) -> Array:
            return _windows(tangent, ctx.n_query)

    return Toeplitz


def sum_by_offset(x: Array, torch: Namespace, rows: int = 32) -> Array:
    """The sums of a tensor (..., n_q, n_k) over each offset u − t, from 1 − n_q to n_k − 1, in the dtype of x.

    As many rows at a time as stay in a core's cache. Zeros before each row and one number more a row move each row by
    one to the left of the row above it.
    """
    n_query, n_key = x.shape[-2:]
    pad = torch.nn.functional.pad
    sums: Array = 0
    for start in range(0, n_query, rows):
        block = x[..., start : start + rows, :]
        n = block.shape[-2]
        width = n_key + n
        moved = pad(block, (n - 1, 0, 0, 1)).flatten(-2)[..., : n * width].unflatten(-1, (n, width))
        summed = moved.sum(-2, dtype=torch.promote_types(x.dtype, torch.float32))
        sums = sums + pad(summed, (n_query - start - n, start - 1))
    return sums.to(x.dtype)


def spread(
    values: Callable[[Array], Array],
    query_positions: int | ArrayLike,
    key_positions: int | ArrayLike | None,
    like: Array,
    xp: Namespace,
) -> Array:
    """(..., heads, n_q, n_k) from `values`, which maps offsets (...) to numbers (..., heads).

    For lengths it is called with n_q + n_k − 1 offsets, for arrays of positions with one for each pair. The
    offsets are made on the device of `like`.
    """
    both = lengths(query_positions, key_positions)
    if both is not None:
        n_query, n_key = both
        if n_query == 0:
            none = values(xp.zeros((0,), dtype=xp.int64, device=device_of(like)))
            shape = (none.shape[-1], 0, n_key)
            return xp.empty(shape, dtype=none.dtype, device=device_of(none))
        k = xp.arange(1 - n_key, n_query, device=device_of(like))
        return toeplitz(xp.matrix_transpose(values(k)), n_query, xp)
    library, t, u = two_positions(query_positions, key_positions)
    if library is not xp:
        kind = type(query_positions).__name__
        raise TypeError(f"query_positions must be of the same library as the parameters, got {kind}")
    return heads_first(values(u[..., None, :] - t[..., :, None]), xp)


def heads_first(values: Array, xp: Namespace) -> Array:
    """(..., n_q, n_k, heads) as (..., heads, n_q, n_k)."""
    # Not moveaxis, which torch.vmap does not know.
    lead = range(values.ndim - 3)
    return xp.permute_dims(values, (*lead, values.ndim - 1, values.ndim - 3, values.ndim - 2))


def check_whole(offsets: Array, xp: Namespace) -> None:
    """TypeError for real offsets, which cannot index a table."""
    if not xp.isdtype(offsets.dtype, "integral"):
        raise TypeError(
            "query_positions and key_positions must be integers, because a table has no values between its rows, got "
            f"offsets of dtype {offsets.dtype}"
        )


def _as_numbers(name: str, positions: Array) -> tuple[Namespace, Array]:
    """int64 for integers of any type, so that offsets can be negative, else float64."""
    xp, real = as_positions(positions, name)
    positions = np.asarray(positions) if isinstance(positions, (list, tuple)) else positions
    integral = xp.isdtype(positions.dtype, "integral")
    return xp, xp.astype(positions, xp.int64) if integral else real
