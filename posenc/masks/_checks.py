"""What masks and batches ask of lengths, masks and document numbers."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from posenc._arrays import Array, Namespace, device_of, is_concrete, is_tensor, namespace
from posenc._checks import integer

Side = Literal["right", "left"]


def check_side(side: str) -> None:
    """ValueError unless side is "right" or "left"."""
    if side not in ("right", "left"):
        raise ValueError(f'side must be "right" or "left", got {side!r}')


def check_mask(name: str, mask: Array, axes: int) -> Namespace:
    """The library of `mask`; TypeError unless it is a bool array, ValueError for fewer than `axes` axes."""
    xp = namespace(**{name: mask})
    if not xp.isdtype(mask.dtype, "bool"):
        raise TypeError(f"{name} must be a bool array, got dtype {mask.dtype}")
    if mask.ndim < axes:
        raise ValueError(f"{name} must have at least {axes} axes, got shape {tuple(mask.shape)}")
    return xp


def check_documents(documents: Array) -> Namespace:
    """The library of `documents`; errors unless they are integers and every document is in one piece."""
    xp = namespace(documents=documents)
    if not xp.isdtype(documents.dtype, "integral"):
        raise TypeError(f"documents must be an integer array, got dtype {documents.dtype}")
    if documents.ndim < 1:
        raise ValueError("documents must have at least 1 axis, got shape ()")
    if not _may_look(documents):
        return xp
    # Sorted, equal numbers stand together: then there are as many runs as there are different numbers.
    runs = xp.sum(xp.astype(starts(documents, xp), xp.int64), axis=-1)
    kinds = xp.sum(xp.astype(starts(xp.sort(documents, axis=-1), xp), xp.int64), axis=-1)
    if bool(xp.any(runs != kinds)):
        raise ValueError(
            "documents must be in one piece each: a number comes back after another one. "
            "Number the documents of a row 0, 1, 2, ... in order, and its pads -1"
        )
    return xp


def starts(documents: Array, xp: Namespace) -> Array:
    """True at the first place of each run of equal numbers."""
    first = xp.ones_like(documents[..., :1], dtype=xp.bool)
    return xp.concat([first, documents[..., 1:] != documents[..., :-1]], axis=-1)


def running_sum(x: Array, xp: Namespace) -> Array:
    # NumPy has the standard's name from 2.1 on.
    return np.cumsum(x, axis=-1) if xp is np else xp.cumulative_sum(x, axis=-1)


def _may_look(array: Array) -> bool:
    """Whether values may decide: not those of a tensor that torch traces."""
    return is_concrete(array) or not is_tensor(array)


def as_counts(lengths: Any, like: Array | None, minimum: int) -> tuple[Array, list[int] | None, Namespace]:
    """Lengths as an int64 array, of their own library or that of `like`, and as numbers, if they can be read."""
    shape: tuple[int, ...] = ()
    if isinstance(lengths, int | np.integer):
        numbers = [integer("lengths", lengths, minimum=minimum)]
    elif isinstance(lengths, list | tuple):
        numbers = [integer(f"lengths[{b}]", count, minimum=minimum) for b, count in enumerate(lengths)]
        shape = (len(numbers),)
    else:
        xp = namespace(lengths=lengths) if like is None else namespace(like=like, lengths=lengths)
        if not xp.isdtype(lengths.dtype, "integral"):
            raise TypeError(f"lengths must be integers, got dtype {lengths.dtype}")
        if lengths.ndim > 1:
            raise ValueError(
                f"lengths must be an integer or have one axis, a number of tokens for each sequence, "
                f"got shape {tuple(lengths.shape)}"
            )
        if not _may_look(lengths):
            return xp.astype(lengths, xp.int64), None, xp
        line = xp.reshape(lengths, (-1,))
        numbers = line.tolist() if hasattr(line, "tolist") else [int(count) for count in line]
        if min(numbers, default=minimum) < minimum:
            raise ValueError(f"lengths must be at least {minimum}, got {min(numbers)}")
        return xp.astype(lengths, xp.int64), numbers, xp
    xp = np if like is None else namespace(like=like)
    device = None if like is None else device_of(like)
    return xp.reshape(xp.asarray(numbers, dtype=xp.int64, device=device), shape), numbers, xp


def as_float(x: Array) -> float:
    """The number in an array without axes, detached: torch warns of tensors that carry a gradient."""
    return float(x.detach() if hasattr(x, "detach") else x)


def shape_text(*axes: int | str) -> str:
    """A shape as errors write it, in which some axes are names."""
    return f"({', '.join(map(str, axes))})"
