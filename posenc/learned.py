"""Learned positional embeddings: a table with a trained row for each position, and longer tables made from it.

Sources: Gehring et al., Convolutional Sequence to Sequence Learning (2017), section 3.1,
https://arxiv.org/abs/1705.03122; Devlin et al., BERT (2019), https://arxiv.org/abs/1810.04805;
Dosovitskiy et al., An Image is Worth 16x16 Words (2021), https://arxiv.org/abs/2010.11929
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from posenc._arrays import (
    Array,
    ArrayLike,
    ArrayT,
    Namespace,
    OneArray,
    device_of,
    is_array,
    is_concrete,
    is_tensor,
    namespace,
    to_device_of,
    wide_dtype,
)
from posenc._checks import check_flag, check_has_axis, check_word, floating, integer, is_length

__all__ = ["interpolate_table", "learned_encoding"]

Overflow = Literal["error", "clamp"]
Kernel = Literal["cubic", "linear"]


def learned_encoding(positions: int | ArrayLike, table: OneArray, *, overflow: Overflow = "error") -> Array:
    """The rows of a table of learned positional embeddings.

    p_t = table[t]. With overflow="clamp" p_t = table[min(t, max_len − 1)].

    Args:
        positions: an integer n for 0, 1, ..., n − 1, or an array of integers of any shape.
        table: shape (max_len, dim), floating.
        overflow: for positions from max_len on, "error" raises ValueError, "clamp" takes the last row. Clamped
            positions all have the same code.

    Returns:
        Array (n, dim), or positions.shape + (dim,), of the dtype and library and on the device of table.
        Gradients reach the rows that were used.

    Raises:
        ValueError: a negative position, or one from max_len on unless overflow is "clamp".

    >>> import numpy as np
    >>> table = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> learned_encoding([2, 0], table)
    array([[4., 5.],
           [0., 1.]])
    >>> learned_encoding(5, table, overflow="clamp")[:, 0]
    array([0., 2., 4., 4., 4.])

    Source: Gehring et al. (2017), section 3.1; Devlin et al. (2019), section 3.
    """
    xp = _check_table(table)
    max_len = table.shape[0]
    overflow = check_overflow(overflow)
    if is_length(positions):
        rows = xp.arange(integer("positions", positions, minimum=0), device=device_of(table))
        last = rows.shape[0] - 1
    else:
        rows = _as_rows(positions, table, xp)
        empty = 0 in rows.shape
        if is_tensor(rows) and not is_concrete(rows):
            # Nobody may look while a graph is made. When it runs, torch refuses what is out of range, but
            # might count negative rows from the end.
            kept = rows if overflow == "error" else xp.clip(rows, None, max_len - 1)
            rows = xp.where(rows < 0, xp.full_like(rows, max_len), kept)
            first, last = 0, 0
        else:
            first, last = (0, 0) if empty else (int(xp.min(rows)), int(xp.max(rows)))
        if first < 0:
            raise ValueError(f"positions must be at least 0, got {first}")
    if last >= max_len:
        if overflow == "error":
            raise ValueError(
                f"positions must lie in 0..{max_len - 1}, the rows of table, got {last}; overflow='clamp' "
                "gives them all the last row, interpolate_table makes a longer table"
            )
        rows = xp.where(rows < max_len, rows, xp.full_like(rows, max_len - 1))
    picked = xp.take(table, xp.reshape(rows, (-1,)), axis=0)
    return xp.reshape(picked, (*rows.shape, table.shape[1]))


def interpolate_table(table: ArrayT, length: int, *, align_corners: bool = True) -> ArrayT:
    """A table of another length, by linear interpolation between its rows.

    new[j] = (1 − f) · table[k] + f · table[k + 1], where k + f = j · (max_len − 1) / (length − 1). Without
    align_corners k + f = (j + ½) · max_len / length − ½, clipped to 0..max_len − 1.

    Args:
        table: shape (max_len, dim), floating.
        length: number of rows of the result, at least 1.
        align_corners: True maps the first row to the first and the last to the last. All rows of a longer table
            are then different places. False treats rows as cells of equal size. From three times the length on,
            the first positions then all get the first row. The results equal those of
            torch.nn.functional.interpolate(mode="linear"), whose default is False. A shorter table is not
            low-pass filtered.

    Returns:
        Array (length, dim) of the dtype and library and on the device of table, computed in float32 at least
        and rounded once. With length = max_len the numbers stay the same.

    >>> import numpy as np
    >>> table = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> interpolate_table(table, 7)[:, 0]
    array([0. , 0.5, 1. , 1.5, 2. , 2.5, 3. ])
    >>> interpolate_table(table, 8, align_corners=False)[:, 0]
    array([0.  , 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.  ])

    Source: Dosovitskiy et al. (2021), section 3.2, for a grid of image patches. Here for a line.
    """
    xp = _check_table(table)
    length = integer("length", length, minimum=1)
    check_flag("align_corners", align_corners)
    return _resample(table, *taps(table.shape[0], length, align_corners), xp)


def check_overflow(overflow: Overflow) -> Overflow:
    """`overflow`, or ValueError unless it is one of the two."""
    return check_word("overflow", overflow, Overflow)


def taps(
    n: int,
    length: int,
    align_corners: bool,
    kernel: Kernel = "linear",
    *,
    antialias: bool = False,
    extra: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:
    """The old rows that each of `length` new rows is mixed from, and their weights: two arrays (length, m).

    `extra` is added to the length in the size of a cell. With antialias the kernel is as wide as a new cell,
    if that is wider than an old one, and its weights are scaled to sum to 1 also at the borders.
    """
    j = np.arange(length, dtype=np.float64)  # torch.compile divides integers in float32
    reach = {"linear": 1, "cubic": 2}[kernel]
    # One division, so that the last corner is n - 1 exactly.
    corners, cells = j * (n - 1) / max(length - 1, 1), (2 * j + 1) * n / (2 * (length + extra)) - 0.5
    at = corners if align_corners else cells
    stretch = max(n / (length + extra), 1.0) if antialias else 1.0
    first = np.floor(at - reach * stretch) + 1
    rows = first[:, None] + np.arange(math.ceil(2 * reach * stretch))
    weights = _KERNELS[kernel]((rows - at[:, None]) / stretch, -0.5 if antialias else -0.75)
    if antialias:
        weights = np.where((rows >= 0) & (rows < n), weights, 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
    return np.clip(rows, 0, n - 1).astype(np.int64), weights


def _hat(x: np.ndarray, _: float) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0.0)


def _cubic(x: np.ndarray, a: float) -> np.ndarray:
    """The kernel of Keys (1981): one cubic from 0 to 1, another from 1 to 2. a is its slope at 1."""
    x = np.abs(x)
    inner, outer = (a + 2) * x**3 - (a + 3) * x**2 + 1, a * (x**3 - 5 * x**2 + 8 * x - 4)
    return np.where(x <= 1, inner, np.where(x < 2, outer, 0.0))


_KERNELS = {"linear": _hat, "cubic": _cubic}


def _resample(table: Array, chosen: np.ndarray, weights: np.ndarray, xp: Namespace) -> Array:
    """Rows Σ_k weights[:, k] · table[chosen[:, k]]."""
    wide = wide_dtype(xp, table)
    device = device_of(table)
    rows = xp.astype(table, wide)
    result = xp.zeros((len(chosen), table.shape[1]), dtype=wide, device=device)
    for tap, weight in zip(chosen.T, weights.T, strict=True):
        share = xp.asarray(weight[:, None], dtype=wide, device=device)
        result = result + share * xp.take(rows, to_device_of(tap, table, xp), axis=0)
    return xp.astype(result, table.dtype)


def _check_table(table: Array) -> Namespace:
    xp = floating(table=table)
    if table.ndim != 2 or table.shape[0] < 1:
        raise ValueError(f"table must have shape (max_len, dim) with max_len >= 1, got {tuple(table.shape)}")
    return xp


def _as_rows(positions: Array, table: Array, xp: Namespace) -> Array:
    """Positions as int64 of the library and on the device of table."""
    if isinstance(positions, list | tuple):
        try:
            array = np.asarray(positions, dtype=None if positions else np.int64)
        except ValueError:
            raise ValueError(f"positions must be a rectangular array, got {positions!r}") from None
        if not np.isdtype(array.dtype, "integral"):
            raise TypeError(f"positions must be integers, got dtype {array.dtype}")
        return to_device_of(array.astype(np.int64), table, xp)
    if not is_array(positions):
        raise TypeError(
            "positions must be an integer n (for 0..n-1) or an array of integers, "
            f"got {positions!r} of type {type(positions).__name__}"
        )
    check_has_axis("positions", positions)
    namespace(positions=positions, table=table)
    if not xp.isdtype(positions.dtype, "integral"):
        raise TypeError(
            f"positions must be integers, got dtype {positions.dtype}: a table has no row between two rows"
        )
    return xp.astype(positions, xp.int64)
