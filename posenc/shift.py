"""Relative position inside the absolute code: the shift by k positions is one rotation, wherever it starts.

In M_k PE(t) a code is a column. In scores codes are rows p_t, as in arrays: a query is p_t W_Q, in code
`p @ w_query`, and p_t W_Q W_Kᵀ p_uᵀ is an entry of `(p @ w_query) @ (p @ w_key).T`.

Source: Vaswani et al., Attention Is All You Need (2017), section 3.5. https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

import math
from numbers import Real

import numpy as np

from posenc._arrays import (
    Array,
    ArrayT,
    DType,
    Namespace,
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

    M_k PE(t) = PE(t + k) for every t: on the diagonal the blocks [[cos ω_i k, sin ω_i k],
    [−sin ω_i k, cos ω_i k]], zero elsewhere.

    M_k is orthogonal with determinant 1, M_a M_b = M_(a+b), and the transpose M_kᵀ = M_(−k) goes back. In the
    plane of (sin, cos) a positive k turns clockwise, as the hand of a clock that starts at the top.

    Codes that are rows of an array are shifted by the transpose: `codes @ shift_matrix(k, dim).T`.

    Args:
        offset: k, in positions: one integer or real number, or an array of them of any shape. Unlike
            `positions` elsewhere an integer is itself, not a count.
        dim: width of the encoding, even and at least 2.
        base: as in `posenc.sinusoidal_frequencies`.
        dtype: floating dtype of the result, to which float64 values are rounded once; the array library's
            default one if None. With a plain number a torch dtype gives a torch tensor on the CPU.

    Returns:
        Array of shape (dim, dim), or offset.shape + (dim, dim), of the library and on the device of
        `offset`.

    >>> m = shift_matrix(3, 4)
    >>> m.round(4)
    array([[-0.99  ,  0.1411,  0.    ,  0.    ],
           [-0.1411, -0.99  ,  0.    ,  0.    ],
           [ 0.    ,  0.    ,  0.9996,  0.03  ],
           [ 0.    ,  0.    , -0.03  ,  0.9996]])
    >>> bool(np.allclose(m @ sinusoidal_encoding(8, 4)[4], sinusoidal_encoding(8, 4)[7]))
    True

    Source: Vaswani et al. (2017), section 3.5, where it is claimed: "PE(pos+k) can be represented as a linear
    function of PE(pos)".
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


def _block_diagonal(blocks: Array, xp: Namespace) -> Array:
    """(..., m, 2, 2) blocks as the (..., 2m, 2m) matrix that has them on its diagonal."""
    m = blocks.shape[-3]
    same_pair = xp.eye(m, dtype=blocks.dtype, device=blocks.device)[:, None, :, None] == 1
    spread = blocks[..., :, :, None, :]
    return xp.reshape(xp.where(same_pair, spread, xp.zeros_like(spread)), (*blocks.shape[:-3], 2 * m, 2 * m))


def sine_only_encoding(
    positions: int | Array, dim: int, *, base: float = 10000.0, dtype: DType | None = None
) -> Array:
    """A code of sines without cosines, each column with a frequency of its own. Kept to show what is lost.

    S(t, j) = sin(t · base^(−j/dim)), j = 0, ..., dim − 1: the sines of the code of width 2 · dim.

    S(0) is the zero vector, S(−t) = −S(t), and no matrix moves S(t) to S(t + k) for every t.

    Args:
        positions: as in `posenc.sinusoidal_encoding`.
        dim: width of the code, at least 1; it need not be even.
        base, dtype: as in `posenc.sinusoidal_encoding`.

    Returns:
        Array of shape (n, dim), or positions.shape + (dim,), of the library and on the device of `positions`.

    >>> sine_only_encoding(2, 4).round(4)
    array([[0.    , 0.    , 0.    , 0.    ],
           [0.8415, 0.0998, 0.01  , 0.001 ]])
    """
    dim = integer("dim", dim, minimum=1)
    return sinusoidal_encoding(positions, 2 * dim, base=base, dtype=dtype)[..., 0::2]


# --- The dot product of two codes


def relative_kernel(offsets: int | Array, dim: int, *, base: float = 10000.0) -> Array:
    """Dot product of the codes of two positions that lie `offsets` apart, wherever they lie.

    K(k) = PE(t) · PE(t + k) = Σ_i cos ω_i k = dim/2 − ‖PE(t + k) − PE(t)‖² / 2.

    Largest at k = 0, where it is dim/2, and even: K(−k) = K(k). It does not fall steadily as k grows.

    Args:
        offsets: an integer n, meaning 0, 1, ..., n − 1, or an array of offsets of any shape, in positions.
        dim: width of the encoding, even and at least 2.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 array, (n,) or offsets.shape, between −dim/2 and dim/2.

    >>> relative_kernel(4, 64).round(4)
    array([32.    , 30.9168, 28.3039, 25.587 ])
    """
    distance = code_distance(offsets, dim, base=base)
    return dim / 2 - distance**2 / 2


def alias_offsets(n: int, *, dim: int, tolerance: float | None = None, base: float = 10000.0) -> np.ndarray:
    """The offsets below n at which two codes look alike although their positions are not.

    All k with 1 ≤ k < n and ‖PE(t + k) − PE(t)‖ < tolerance.

    Args:
        n: number of positions, at least 2.
        dim: width of the encoding, even and at least 2.
        tolerance: a distance of codes, above 0. If None, that of neighbours, ‖PE(t + 1) − PE(t)‖: then the
            result holds what a reader who takes the nearest code for the nearest position mistakes.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        Integer NumPy array of offsets, ascending; empty if there are none.

    >>> alias_offsets(1000, dim=2, tolerance=0.02)
    array([ 44, 333, 377, 666, 710, 754])
    >>> alias_offsets(100_000, dim=64)
    array([], dtype=int64)
    """
    n = integer("n", n, minimum=2)
    offsets = np.arange(1, n)
    distance = code_distance(offsets, dim, base=base)
    if tolerance is None:
        return offsets[distance < distance[0]]
    return offsets[distance < number("tolerance", tolerance, above=0)]


# --- Attention scores from positions alone


def positional_scores(encoding: Array, w_query: Array, w_key: Array) -> Array:
    """Attention scores of positions alone: what the codes say before any word is looked at. Not yet scaled.

    s(t, u) = (p_t W_Q) · (p_u W_K) = p_t W_Q W_Kᵀ p_uᵀ for rows p_t of `encoding`. Attention divides it by
    sqrt(d_head).

    Args:
        encoding: codes of n positions, shape (n, dim), floating.
        w_query, w_key: projections, shape (..., dim, d_head), of the dtype of encoding; leading axes stand
            for many heads.

    Returns:
        Array (..., n, n), one row a query position t, one column a key position u, of the dtype of encoding;
        float16 and bfloat16 scores are computed and returned in float32.

    >>> codes = sinusoidal_encoding(3, 64)
    >>> positional_scores(codes, np.eye(64), np.eye(64)).round(3)
    array([[32.   , 30.917, 28.304],
           [30.917, 32.   , 30.917],
           [28.304, 30.917, 32.   ]])

    Source: Ke et al., Rethinking Positional Encoding in Language Pre-training (2021), section 3.1, where the
    score is written as four terms; this is the one without words. https://arxiv.org/abs/2006.15595
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
    """A 2×2 block of W_Q W_Kᵀ as the part that sees only t − u and the part that sees only t + u.

    For rows v_t = (sin ωt, cos ωt) and B = [[p, q], [r, s]]:
    v_t B v_uᵀ = a cos ω(t−u) + b sin ω(t−u) + c cos ω(t+u) + e sin ω(t+u), with
    a = (s+p)/2, b = (q−r)/2, c = (s−p)/2, e = (q+r)/2; so B = [[a, b], [−b, a]] + [[−c, e], [e, c]].

    Holds within one sine-cosine pair. A block that joins two pairs of different frequency gives terms in
    ω_i t ± ω_j u, which are functions of neither t − u nor t + u.

    Args:
        block: shape (..., 2, 2), floating; rows belong to the query, columns to the key.

    Returns:
        Two arrays (..., 2, 2) whose sum is block: [[a, b], [−b, a]], a rotation times a factor, and
        [[−c, e], [e, c]], a reflection times a factor.

    >>> difference, total = split_block(np.array([[1.0, 5.0], [2.0, 4.0]]))
    >>> difference
    array([[ 2.5,  1.5],
           [-1.5,  2.5]])
    >>> total
    array([[-1.5,  3.5],
           [ 3.5,  1.5]])
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


def toeplitz_spread(scores: Array) -> Array:
    """How far scores are from depending on the offset alone: the largest spread along any diagonal.

    max over k of (max s(t, t + k) − min s(t, t + k)), both over t. 0, to rounding, means that s is a Toeplitz
    matrix: translation invariant, s(t + c, u + c) = s(t, u).

    Args:
        scores: shape (..., n, m), floating, at least one row and one column.

    Returns:
        Array of shape (...), in the unit of the scores.

    >>> toeplitz_spread(np.array([[0.0, 1.0], [2.0, 0.5]])).item()
    0.5
    """
    xp = _check_scores(scores)
    # max of −x rather than min with another filling: one way of lining up the diagonals is enough.
    highest = xp.max(_diagonals(scores, -math.inf, xp), axis=-2)
    lowest = -xp.max(_diagonals(-scores, -math.inf, xp), axis=-2)
    return xp.max(highest - lowest, axis=-1)


def offset_share(scores: Array) -> Array:
    """How much of the scores the offset explains: 1 if they depend on it alone, near 0 if it says nothing.

    1 − Σ (s(t, u) − m(u − t))² / Σ (s(t, u) − m)², where m(k) is the mean of the scores at offset k and m
    that of all scores: the share of the variance that lies between diagonals.

    Args:
        scores: shape (..., n, m), floating, at least one row and one column.

    Returns:
        Array of shape (...), between 0 and 1; NaN where all scores are equal and there is no variance.

    >>> t = np.arange(5.0)
    >>> [offset_share(s).round(3).item() for s in (t[:, None] - t, t[:, None] * t)]
    [1.0, 0.153]
    """
    xp = _check_scores(scores)
    centred = scores - xp.mean(scores, axis=(-2, -1), keepdims=True)
    count = xp.sum(_diagonals(xp.ones_like(scores), 0.0, xp), axis=-2)
    between = xp.sum(xp.sum(_diagonals(centred, 0.0, xp), axis=-2) ** 2 / count, axis=-1)
    whole = xp.sum(centred**2, axis=(-2, -1))
    some = whole > 0
    one = xp.ones_like(whole)
    return xp.where(some, between / xp.where(some, whole, one), math.nan * one)


def _diagonals(scores: Array, filling: float, xp: Namespace) -> Array:
    """(..., n, m) as (..., n, n + m − 1): each column holds one diagonal, the rest of it `filling`."""
    n, m = scores.shape[-2:]
    lead = tuple(scores.shape[:-2])
    # A row that is n cells too long, read as one that is n − 1 too long, slips by one cell from row to row.
    pad = xp.full((*lead, n, n), filling, dtype=scores.dtype, device=scores.device)
    flat = xp.reshape(xp.concat([xp.flip(scores, axis=-2), pad], axis=-1), (*lead, n * (n + m)))
    return xp.reshape(flat[..., : n * (n + m - 1)], (*lead, n, n + m - 1))


def offset_head(
    offset: float | Array,
    dim: int,
    gain: float = 1.0,
    *,
    base: float = 10000.0,
    dtype: DType | None = None,
) -> tuple[Array, Array]:
    """Projections of an attention head that looks `offset` positions ahead (behind, if negative).

    W_Q = gain · M_kᵀ, W_K = I: the score is gain · PE(t + k) · PE(u) = gain · K(t + k − u), largest at
    u = t + k, for every t. The gain decides how much larger: softmax turns differences of scores into ratios
    of weights.

    Args:
        offset: k, in positions: an integer or real number, or an array of them, one head each.
        dim: width of the encoding, even and at least 2.
        gain: factor on the scores, finite and above 0.
        base, dtype: as in `shift_matrix`.

    Returns:
        w_query and w_key, each of shape (dim, dim), or offset.shape + (dim, dim), for rows: the queries are
        `codes @ w_query`, the keys `codes @ w_key`.

    >>> w_query, w_key = offset_head(3, 64)
    >>> positional_scores(sinusoidal_encoding(8, 64), w_query, w_key).argmax(axis=-1)
    array([3, 4, 5, 6, 7, 7, 7, 7])
    """
    factor = number("gain", gain, above=0)
    m = shift_matrix(offset, dim, base=base, dtype=dtype)
    xp = namespace(m)
    w_key = xp.zeros_like(m) + xp.eye(m.shape[-1], dtype=m.dtype, device=m.device)
    return factor * xp.matrix_transpose(m), w_key


# --- Checks


def _check_scores(scores: Array) -> Namespace:
    xp = floating(scores=scores)
    if scores.ndim < 2 or 0 in scores.shape[-2:]:
        raise ValueError(f"scores must have shape (..., n, m) with n, m >= 1, got {tuple(scores.shape)}")
    return xp
