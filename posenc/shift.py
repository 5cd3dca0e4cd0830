"""Relative position in the sinusoidal code: a shift by k positions is one rotation, the same for all positions.

In M_k PE(t) a code is a column. In scores, codes are rows p_t, as in arrays. A query is p_t W_Q, in code
`p @ w_query`, and p_t W_Q W_Kᵀ p_uᵀ is an entry of `(p @ w_query) @ (p @ w_key).T`.

Source: Vaswani et al., Attention Is All You Need (2017), section 3.5. https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from posenc._arrays import (
    Array,
    ArrayLike,
    ArrayT,
    DType,
    Namespace,
    OneArray,
    is_array,
    namespace,
    to_device_of,
    torch_namespace,
    wide_dtype,
)
from posenc._checks import as_places, check_float_dtype, floating, integer, number
from posenc.sinusoidal import code_distance, sinusoidal_encoding, sinusoidal_frequencies

__all__ = [
    "alias_offsets",
    "offset_head",
    "offset_share",
    "positional_scores",
    "relative_kernel",
    "shift_matrix",
    "sine_only_encoding",
    "split_block",
    "toeplitz_spread",
]

# --- The shift


def shift_matrix(
    offset: float | Array, dim: int, *, base: float = 10000.0, dtype: DType | None = None
) -> Array:
    """The rotation that moves every sinusoidal code by `offset` positions.

    M_k PE(t) = PE(t + k) for every t. The blocks [[cos ω_i k, sin ω_i k], [−sin ω_i k, cos ω_i k]] stand on the
    diagonal.

    M_k is orthogonal with determinant 1. M_a M_b = M_(a+b), and the transpose M_kᵀ = M_(−k) shifts back. In
    the plane of (sin, cos) a positive k rotates clockwise.

    To shift codes that are rows of an array, use the transpose: `codes @ shift_matrix(k, dim).T`.

    Args:
        offset: k, in positions, one integer or real number, or an array of any shape. An integer is an offset,
            not a count.
        dim: width of the encoding, even and at least 2.
        base: as in `posenc.sinusoidal_frequencies`.
        dtype: floating dtype of the result, to which float64 values are rounded once. The library's default if
            None. With a plain number a torch dtype gives a torch tensor on the CPU.

    Returns:
        Array of shape (dim, dim), or offset.shape + (dim, dim), of the library and on the device of
        `offset`.

    Raises:
        TypeError: offset is not a number or an array of numbers.
        ValueError: dim is odd, or offset is not finite.

    >>> m = shift_matrix(3, 4)
    >>> m.round(4)
    array([[-0.99  ,  0.1411,  0.    ,  0.    ],
           [-0.1411, -0.99  ,  0.    ,  0.    ],
           [ 0.    ,  0.    ,  0.9996,  0.03  ],
           [ 0.    ,  0.    , -0.03  ,  0.9996]])
    >>> bool(np.allclose(m @ sinusoidal_encoding(8, 4)[4], sinusoidal_encoding(8, 4)[7]))
    True

    Source: Vaswani et al. (2017), section 3.5, which claims: "PE(pos+k) can be represented as a linear function
    of PE(pos)".
    """
    freqs = sinusoidal_frequencies(dim, base)
    if isinstance(offset, Real) and not isinstance(offset, bool):
        xp = torch_namespace(dtype) or np
        k = xp.asarray(number("offset", offset), dtype=xp.float64)
    elif isinstance(offset, list | tuple) or is_array(offset):
        xp, k = as_places("offset", offset)
    else:
        kind = type(offset).__name__
        raise TypeError(f"offset must be a number or an array of numbers, got {offset!r} of type {kind}")
    dtype = check_float_dtype(dtype, xp)
    angles = k[..., None] * to_device_of(freqs, k, xp)
    cos, sin = xp.cos(angles), xp.sin(angles)
    # 0 − sin rather than −sin: no −0.0 in the matrix of offset 0.
    blocks = xp.stack([xp.stack([cos, sin], axis=-1), xp.stack([0 - sin, cos], axis=-1)], axis=-2)
    return _block_diagonal(xp.astype(blocks, dtype), xp)


def sine_only_encoding(
    positions: int | ArrayLike, dim: int, *, base: float = 10000.0, dtype: DType | None = None
) -> Array:
    """A code of sines without cosines, to show what is lost without them. Each column has its own frequency.

    S(t, j) = sin(t · base^(−j/dim)), j = 0, ..., dim − 1: the sines of the code of width 2 · dim.

    S(0) is the zero vector, S(−t) = −S(t), and no matrix maps S(t) to S(t + k) for every t.

    Args:
        positions: as in `posenc.sinusoidal_encoding`.
        dim: width of the code, at least 1, even or odd.
        base, dtype: as in `posenc.sinusoidal_encoding`.

    Returns:
        Array of shape (n, dim), or positions.shape + (dim,), of the library and on the device of `positions`.

    >>> sine_only_encoding(2, 4).round(4)
    array([[0.    , 0.    , 0.    , 0.    ],
           [0.8415, 0.0998, 0.01  , 0.001 ]])

    Source: defined in this book, shift.md#sine-only.
    """
    dim = integer("dim", dim, minimum=1)
    return sinusoidal_encoding(positions, 2 * dim, base=base, dtype=dtype)[..., 0::2]


def _block_diagonal(blocks: Array, xp: Namespace) -> Array:
    """(..., m, 2, 2) blocks as the (..., 2m, 2m) matrix that has them on its diagonal."""
    m = blocks.shape[-3]
    same_pair = xp.eye(m, dtype=blocks.dtype, device=blocks.device)[:, None, :, None] == 1
    spread = blocks[..., :, :, None, :]
    return xp.reshape(xp.where(same_pair, spread, xp.zeros_like(spread)), (*blocks.shape[:-3], 2 * m, 2 * m))


# --- The dot product of two codes


def relative_kernel(offsets: int | ArrayLike, dim: int, *, base: float = 10000.0) -> Array:
    """Dot product of the codes of two positions. It depends on their offset alone.

    K(k) = PE(t) · PE(t + k) = Σ_i cos ω_i k = dim/2 − ‖PE(t + k) − PE(t)‖² / 2.

    The maximum is dim/2, at k = 0. K(−k) = K(k). K does not fall steadily as k grows.

    Args:
        offsets: an integer n, meaning 0, 1, ..., n − 1, or an array of offsets of any shape, in positions.
        dim: width of the encoding, even and at least 2.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 array, (n,) or offsets.shape, between −dim/2 and dim/2.

    >>> relative_kernel(4, 64).round(4)
    array([32.    , 30.9168, 28.3039, 25.587 ])

    Source: derived from the code of Vaswani et al. (2017) in this book, shift.md#dot-product.
    """
    distance = code_distance(offsets, dim, base=base)
    return dim / 2 - distance**2 / 2


def alias_offsets(n: int, *, dim: int, tolerance: float | None = None, base: float = 10000.0) -> np.ndarray:
    """The offsets below n at which two codes are close to each other.

    All k with 1 ≤ k < n and ‖PE(t + k) − PE(t)‖ < tolerance.

    Args:
        n: number of positions, at least 2.
        dim: width of the encoding, even and at least 2.
        tolerance: a distance of codes, above 0. If None, the distance of neighbours, ‖PE(t + 1) − PE(t)‖. Then
            at the offsets of the result codes are closer than those of neighbouring positions.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        Integer NumPy array of offsets, ascending.

    >>> alias_offsets(1000, dim=2, tolerance=0.02)
    array([ 44, 333, 377, 666, 710, 754])
    >>> alias_offsets(100_000, dim=64)
    array([], dtype=int64)

    Source: a measure of this book, defined in shift.md#aliasing.
    """
    n = integer("n", n, minimum=2)
    offsets = np.arange(1, n)
    distance = code_distance(offsets, dim, base=base)
    if tolerance is None:
        return offsets[distance < distance[0]]
    return offsets[distance < number("tolerance", tolerance, above=0)]


# --- Attention scores from positions alone


def positional_scores(encoding: OneArray, w_query: OneArray, w_key: OneArray) -> Array:
    """Attention scores of position codes without words, before scaling.

    s(t, u) = (p_t W_Q) · (p_u W_K) = p_t W_Q W_Kᵀ p_uᵀ for rows p_t of `encoding`. Attention divides this by
    sqrt(d_head).

    Args:
        encoding: codes of n positions, shape (n, dim), floating.
        w_query, w_key: projections, shape (..., dim, d_head), of the dtype of encoding. Leading axes are heads.

    Returns:
        Array (..., n, n) with a row for each query position t and a column for each key position u, of the
        dtype of encoding. For float16 and bfloat16 it is float32.

    Raises:
        TypeError: the arrays differ in library or dtype, or are not floating.
        ValueError: a projection does not fit the width of encoding, or the two differ in shape.

    >>> codes = sinusoidal_encoding(3, 64)
    >>> positional_scores(codes, np.eye(64), np.eye(64)).round(3)
    array([[32.   , 30.917, 28.304],
           [30.917, 32.   , 30.917],
           [28.304, 30.917, 32.   ]])

    Source: Ke et al., Rethinking Positional Encoding in Language Pre-training (2021), section 3.1. Of
    the four terms of the score there, this is the one without words. https://arxiv.org/abs/2006.15595
    """
    xp = floating(encoding=encoding, w_query=w_query, w_key=w_key)
    if encoding.ndim != 2 or encoding.shape[0] < 1:
        raise ValueError(f"encoding must have shape (n, dim) with n >= 1, got {tuple(encoding.shape)}")
    for name, w in (("w_query", w_query), ("w_key", w_key)):
        if w.ndim < 2 or w.shape[-2] != encoding.shape[1]:
            raise ValueError(
                f"{name} must have shape (..., {encoding.shape[1]}, d_head), got {tuple(w.shape)}"
            )
    if w_query.shape != w_key.shape:
        raise ValueError(f"w_query {tuple(w_query.shape)} and w_key {tuple(w_key.shape)} must have one shape")
    wide = wide_dtype(xp, encoding)
    p, w_q, w_k = (xp.astype(array, wide) for array in (encoding, w_query, w_key))
    return (p @ w_q) @ xp.matrix_transpose(p @ w_k)


def split_block(block: ArrayT) -> tuple[ArrayT, ArrayT]:
    """A 2×2 block of W_Q W_Kᵀ split into a part that depends on u − t and a part that depends on u + t.

    For rows v_t = (sin ωt, cos ωt) and B = [[p, q], [r, s]]:
    v_t B v_uᵀ = a cos ω(u−t) − b sin ω(u−t) + c cos ω(u+t) + e sin ω(u+t), with
    a = (s+p)/2, b = (q−r)/2, c = (s−p)/2, e = (q+r)/2; so B = [[a, b], [−b, a]] + [[−c, e], [e, c]].

    This holds within one sine-cosine pair. A block between two pairs of different frequency gives terms in
    ω_i t ± ω_j u, which are functions of neither u − t nor u + t.

    Args:
        block: shape (..., 2, 2), floating. Rows belong to the query, columns to the key.

    Returns:
        Two arrays (..., 2, 2) whose sum is block: [[a, b], [−b, a]], a rotation times a factor, and
        [[−c, e], [e, c]], a reflection times a factor.

    Raises:
        ValueError: block does not end in two axes of 2.

    >>> difference, total = split_block(np.array([[1.0, 5.0], [2.0, 4.0]]))
    >>> difference
    array([[ 2.5,  1.5],
           [-1.5,  2.5]])
    >>> total
    array([[-1.5,  3.5],
           [ 3.5,  1.5]])

    Source: derived in this book, shift.md#split.
    """
    xp = floating(block=block)
    if block.ndim < 2 or tuple(block.shape[-2:]) != (2, 2):
        raise ValueError(f"block must have shape (..., 2, 2), got {tuple(block.shape)}")
    p, q, r, s = block[..., 0, 0], block[..., 0, 1], block[..., 1, 0], block[..., 1, 1]
    a, b, c, e = (s + p) / 2, (q - r) / 2, (s - p) / 2, (q + r) / 2

    def matrix(*entries: Array) -> Array:
        return xp.reshape(xp.stack(entries, axis=-1), block.shape)

    # 0 − b rather than −b: no −0.0 where b is 0.
    return matrix(a, b, 0 - b, a), matrix(0 - c, e, e, c)


def toeplitz_spread(scores: OneArray) -> Array:
    """The largest spread of scores along a diagonal. It is 0 if scores depend on the offset alone.

    max over k of (max s(t, t + k) − min s(t, t + k)), both over t. At 0, s is a Toeplitz matrix:
    s(t + c, u + c) = s(t, u).

    Args:
        scores: shape (..., n, m), floating, at least one row and one column.

    Returns:
        Array of shape (...), in the unit of the scores.

    >>> toeplitz_spread(np.array([[0.0, 1.0], [2.0, 0.5]])).item()
    0.5

    Source: a measure of this book, defined in shift.md#dot-product.
    """
    xp = _check_scores(scores)
    # max of −x rather than min with another filling: one way of lining up the diagonals is enough.
    highest = xp.max(_diagonals(scores, -math.inf, xp), axis=-2)
    lowest = -xp.max(_diagonals(-scores, -math.inf, xp), axis=-2)
    return xp.max(highest - lowest, axis=-1)


def offset_share(scores: OneArray) -> Array:
    """The share of the variance of scores that the offset explains.

    1 − Σ (s(t, u) − m(u − t))² / Σ (s(t, u) − m)², where m(k) is the mean of the scores at offset k and m the
    mean of all scores. It is 1 if scores depend on the offset alone.

    Args:
        scores: shape (..., n, m), floating, at least one row and one column.

    Returns:
        Array of shape (...), between 0 and 1. NaN where all scores are equal.

    >>> t = np.arange(5.0)
    >>> [offset_share(s).round(3).item() for s in (t[:, None] - t, t[:, None] * t)]
    [1.0, 0.153]

    Source: a measure of this book, defined in shift.md#projections.
    """
    xp = _check_scores(scores)
    centred = scores - xp.mean(scores, axis=(-2, -1), keepdims=True)
    count = xp.sum(_diagonals(xp.ones_like(scores), 0.0, xp), axis=-2)
    between = xp.sum(xp.sum(_diagonals(centred, 0.0, xp), axis=-2) ** 2 / count, axis=-1)
    whole = xp.sum(centred**2, axis=(-2, -1))
    some = whole > 0
    one = xp.ones_like(whole)
    return xp.where(some, between / xp.where(some, whole, one), math.nan * one)


def offset_head(
    offset: float | Array,
    dim: int,
    gain: float = 1.0,
    *,
    base: float = 10000.0,
    dtype: DType | None = None,
) -> tuple[Array, Array]:
    """Projections of an attention head that looks `offset` positions ahead, or back if it is negative.

    W_Q = gain · M_kᵀ, W_K = I. The score is gain · PE(t + k) · PE(u) = gain · K(t + k − u), with its maximum at
    u = t + k for every t. A larger gain gives that key a larger weight.

    Args:
        offset: k, in positions, an integer or real number, or an array with one offset for each head.
        dim: width of the encoding, even and at least 2.
        gain: factor on the scores, finite and above 0.
        base, dtype: as in `shift_matrix`.

    Returns:
        w_query and w_key, each of shape (dim, dim), or offset.shape + (dim, dim). The queries are
        `codes @ w_query`, the keys `codes @ w_key`.

    >>> w_query, w_key = offset_head(3, 64)
    >>> positional_scores(sinusoidal_encoding(8, 64), w_query, w_key).argmax(axis=-1)
    array([3, 4, 5, 6, 7, 7, 7, 7])

    Source: derived in this book, shift.md#offset-head.
    """
    factor = number("gain", gain, above=0)
    m = shift_matrix(offset, dim, base=base, dtype=dtype)
    xp = namespace(m)
    w_key = xp.zeros_like(m) + xp.eye(m.shape[-1], dtype=m.dtype, device=m.device)
    return factor * xp.matrix_transpose(m), w_key


def _diagonals(scores: Array, filling: float, xp: Namespace) -> Array:
    """(..., n, m) as (..., n, n + m − 1): each column holds one diagonal, the rest of it `filling`."""
    n, m = scores.shape[-2:]
    lead = tuple(scores.shape[:-2])
    # A row that is n cells too long, read as one that is n − 1 too long, slips by one cell from row to row.
    pad = xp.full((*lead, n, n), filling, dtype=scores.dtype, device=scores.device)
    flat = xp.reshape(xp.concat([xp.flip(scores, axis=-2), pad], axis=-1), (*lead, n * (n + m)))
    return xp.reshape(flat[..., : n * (n + m - 1)], (*lead, n, n + m - 1))


# --- Checks


def _check_scores(scores: Array) -> Namespace:
    xp = floating(scores=scores)
    if scores.ndim < 2 or 0 in scores.shape[-2:]:
        raise ValueError(f"scores must have shape (..., n, m) with n, m >= 1, got {tuple(scores.shape)}")
    return xp
