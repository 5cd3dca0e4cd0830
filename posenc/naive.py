"""Two simple codes of a position: the position itself, and one axis per position."""

from __future__ import annotations

from posenc._arrays import Array, ArrayLike, DType, OneArray, namespace
from posenc._checks import check_float_dtype, integer, is_length, positions_in
from posenc.shift import positional_scores

__all__ = ["argmax_positions", "integer_encoding", "one_hot_encoding"]


def integer_encoding(
    positions: int | ArrayLike, dim: int, *, start: int = 0, dtype: DType | None = None
) -> Array:
    """The position itself in every column.

    p_t = (t + start, ..., t + start).

    Args:
        positions: an integer n for 0, 1, ..., n − 1, or an array of positions of any shape.
        dim: width of the encoding, at least 1.
        start: number of position 0. Some texts count from 1.
        dtype: floating dtype of the result, the library's default if None. With an integer n, a torch dtype
            gives a torch tensor on the CPU, anything else a NumPy array.

    Returns:
        Array of shape (n, dim), or positions.shape + (dim,), of the library and on the device of
        `positions`. Row t has norm |t + start| · sqrt(dim).

    Raises:
        ValueError: a number too large for dtype. float16 ends at 65504.

    >>> integer_encoding(2, 4, start=1)
    array([[1., 1., 1., 1.],
           [2., 2., 2., 2.]])

    Source: defined in this book, naive.md#integer-code.
    """
    dim = integer("dim", dim, minimum=1)
    start = integer("start", start, minimum=-(2**53))
    if start > 2**53:
        raise ValueError(f"start must be at most 2**53, got {start}")
    xp, t = positions_in(positions, dtype)
    dtype = check_float_dtype(dtype, xp)
    numbers = t + start
    # float16 ends at 65504: an error rather than inf.
    most = float(xp.finfo(dtype).max)
    outside = xp.logical_not(xp.abs(numbers) <= most)
    if bool(xp.any(outside)):
        first = float(numbers[outside][0])
        raise ValueError(f"positions + start must lie within ±{most:.15g}, for {dtype}, got {first:.15g}")
    column = xp.astype(numbers, dtype)[..., None]
    # `+ zeros` rather than broadcast_to: the result is an array of its own, which may be written to.
    return column + xp.zeros((dim,), dtype=column.dtype, device=column.device)


def one_hot_encoding(
    positions: int | ArrayLike, size: int | None = None, *, dtype: DType | None = None
) -> Array:
    """One axis for each position: 1 at index t, 0 elsewhere.

    e_t W = W[t]: a one-hot code before a linear layer is a learned table of positions.

    Args:
        positions: an integer n for 0, 1, ..., n − 1, or an array of integer positions of any shape.
        size: number of axes. If None, n. Required with an array.
        dtype: as in `posenc.integer_encoding`.

    Returns:
        Array of shape (n, size), or positions.shape + (size,), of the library and on the device of
        `positions`.

    Raises:
        ValueError: a position that is not a whole number from 0 to below size.

    >>> one_hot_encoding(3)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])

    Source: defined in this book, naive.md#one-hot.
    """
    if is_length(positions):
        size = integer("positions", positions, minimum=0) if size is None else size
    xp, t = positions_in(positions, dtype)
    if size is None:
        raise ValueError("size must be given when positions is an array: the number of axes is not known")
    size = integer("size", size, minimum=0)
    outside = (t < 0) | (t >= size) | (t != xp.floor(t))
    if bool(xp.any(outside)):
        first = float(t[outside][0])
        raise ValueError(f"positions must be whole numbers from 0 to below size {size}, got {first:.15g}")
    axes = xp.arange(size, dtype=t.dtype, device=t.device)
    return xp.astype(t[..., None] == axes, check_float_dtype(dtype, xp))


def argmax_positions(encoding: OneArray, w_query: OneArray, w_key: OneArray) -> Array:
    """The position that each position attends to most, by position codes alone.

    argmax over u of (p_t W_Q) · (p_u W_K).

    Args:
        encoding: codes of n positions, shape (n, dim), floating.
        w_query, w_key: projections, shape (..., dim, d_head), of the dtype of encoding. Leading axes are heads.

    Returns:
        Integer array (..., n): for each query position t the key position with the highest score. Of equal ones
        the first. float16 and bfloat16 scores are computed in float32.

    >>> import numpy as np
    >>> w = np.ones((4, 2))
    >>> argmax_positions(integer_encoding(5, 4), w, w)
    array([0, 4, 4, 4, 4])

    Source: a measure of this book, defined in naive.md#ends.
    """
    scores = positional_scores(encoding, w_query, w_key)
    return namespace(scores).argmax(scores, axis=-1)
