"""The rotation of RoPE: queries and keys rotated by their positions, and the rotation as a matrix.

Source: Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding (2021), section 3.
https://arxiv.org/abs/2104.09864
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from posenc._arrays import Array, ArrayLike, ArrayT, DType, device_of, is_array, wide_dtype
from posenc._checks import as_places, check_even_dim, check_float_dtype, number, of_library, positions_of
from posenc.rotary._turn import (
    Layout,
    are_whole,
    check_frequencies,
    check_layout,
    check_rotary_dim,
    check_vectors,
    codes,
    turn,
)

__all__ = ["apply_rotary", "offset_query", "rotary_matrix"]


def apply_rotary(
    x: ArrayT,
    positions: int | ArrayLike,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    rotary_dim: int | None = None,
    frequencies: ArrayLike | None = None,
    scale: float = 1.0,
) -> ArrayT:
    """Queries or keys, rotated by their positions.

    R(t) x: each pair (a, b) of x becomes (a cos ω_i t − b sin ω_i t, a sin ω_i t + b cos ω_i t). As complex
    numbers this is (a + bi) · e^(i ω_i t), a counter-clockwise rotation. R(t)ᵀ R(u) = R(u − t), so R(t)q ·
    R(u)k = q · R(u − t)k.

    Angles are computed in float64. float16 and bfloat16 vectors are rotated in float32 and rounded once.

    Args:
        x: floating, shape (..., seq, dim), usually (batch, heads, seq, dim): each row is a query or a key. Or
            one vector, shape (dim,), which is rotated to each of the positions.
        positions: an integer n for 0, 1, ..., n − 1, or an array of integer or real (float32, float64)
            positions. For rows: shape (seq,), or one axis for each axis of x but the last, of full length or
            1. Positions (batch, seq) are passed as positions[:, None, :]. For one vector: any shape, [t] for
            one position t. apply_rotary(x, −positions) rotates back.
        base: as in `posenc.sinusoidal_frequencies`. Leave it out when frequencies are given.
        layout: which numbers form a pair: "interleaved" (2i, 2i + 1) or "half" (i, i + rotary_dim/2).
        rotary_dim: rotate the first rotary_dim numbers of each vector and leave the rest unchanged. All if
            None.
        frequencies: ω_i in radians per position, shape (rotary_dim/2,), or (heads, rotary_dim/2) for
            frequencies of each head, the axis before seq. If None, posenc.sinusoidal_frequencies(rotary_dim,
            base).
        scale: factor on the rotated numbers, such as the attention factor of YaRN.

    Returns:
        Array of the shape and dtype of x, or positions.shape + (dim,) for one vector.

    Raises:
        TypeError: positions in float16 or bfloat16, or an integer n for a single vector.
        ValueError: integer positions, and frequencies that are all 2π or more. Most likely they are
            wavelengths.

    >>> apply_rotary(np.array([1.0, 0.0]), np.array([0, 1, 2])).round(4)
    array([[ 1.    ,  0.    ],
           [ 0.5403,  0.8415],
           [-0.4161,  0.9093]])
    >>> q, k = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> pairs = [(2, 5), (1002, 1005), (5, 2)]
    >>> [round(float(apply_rotary(q, [t])[0] @ apply_rotary(k, [u])[0]), 4) for t, u in pairs]
    [-0.1411, -0.1411, 0.1411]

    Source: Su et al. (2021), section 3.2.2, equations 15 (the rotation) and 16 (the score); section 3.4.2,
    equation 34.
    """
    xp = check_vectors("x", x)
    turned = check_rotary_dim(rotary_dim, x.shape[-1])
    check_layout(layout)
    scale = number("scale", scale)
    t = positions_of(positions, x, xp)
    freqs = check_frequencies(frequencies, base, turned, whole=are_whole(positions))
    if freqs.ndim == 2:
        if x.ndim < 3 or x.shape[-3] != freqs.shape[0]:
            raise ValueError(
                f"frequencies of {freqs.shape[0]} heads need x of shape (..., {freqs.shape[0]}, seq, dim), "
                f"got {tuple(x.shape)}"
            )
        freqs = freqs[:, None, :]
    angles = t[..., None] * of_library("frequencies", freqs, x, xp)
    return turn(x, codes(angles, wide_dtype(xp, x), layout, scale, xp), layout, xp)


def rotary_matrix(
    position: float | Array,
    dim: int,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    frequencies: ArrayLike | None = None,
    dtype: DType | None = None,
) -> Array:
    """The rotation of `apply_rotary` as a matrix.

    R(t) @ x == apply_rotary(x, [t])[0]. For "interleaved" the blocks [[cos ω_i t, −sin ω_i t],
    [sin ω_i t, cos ω_i t]] stand on the diagonal. R(t)ᵀ R(u) = R(u − t) and R(t)ᵀ = R(−t).

    For looking at: `apply_rotary` does the same with 2 · dim multiplications instead of dim².

    Args:
        position: t, one integer or real number, or an array of any shape. An integer is a position, not a
            count.
        dim: width, even and at least 2.
        base, layout, frequencies: as in `posenc.apply_rotary`; frequencies of shape (dim/2,).
        dtype: floating dtype of the result; float64 if None.

    Returns:
        Array of shape (dim, dim), or position.shape + (dim, dim), of the library and on the device of
        position.

    Raises:
        TypeError: position is not a number or an array of numbers.
        ValueError: dim is odd, or frequencies are not of shape (dim/2,).

    >>> rotary_matrix(1, 4).round(4)
    array([[ 0.5403, -0.8415,  0.    ,  0.    ],
           [ 0.8415,  0.5403,  0.    ,  0.    ],
           [ 0.    ,  0.    ,  1.    , -0.01  ],
           [ 0.    ,  0.    ,  0.01  ,  1.    ]])

    Source: Su et al. (2021), section 3.2.2, equation 15.
    """
    dim = check_even_dim(dim)
    if isinstance(position, Real) and not isinstance(position, bool):
        position = np.asarray(number("position", position))
    elif not (isinstance(position, list | tuple) or is_array(position)):
        kind = type(position).__name__
        raise TypeError(f"position must be a number or an array of numbers, got {position!r} of type {kind}")
    xp, t = as_places("position", position)
    dtype = xp.float64 if dtype is None else check_float_dtype(dtype, xp)
    rows = xp.eye(dim, dtype=xp.float64, device=device_of(t))
    turned = apply_rotary(
        xp.broadcast_to(rows, (*t.shape, dim, dim)),
        xp.broadcast_to(t[..., None], (*t.shape, dim)),
        base=base,
        layout=layout,
        frequencies=_one_set(frequencies),
    )
    # 0 + x: no −0.0 where a sine is 0.
    return xp.astype(0 + xp.matrix_transpose(turned), dtype)


def offset_query(
    key: ArrayT,
    offset: float,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    frequencies: ArrayLike | None = None,
) -> ArrayT:
    """A query that scores highest where a key like `key` stands `offset` positions away from it.

    q = R(k) key for the offset k = u − t. Then R(t)q · R(u)key = key · R(u − t − k) key. The largest value,
    ‖key‖², is reached at u − t = k. Another offset ties with it only if every ω_i (u − t − k) is a multiple
    of 2π.

    Args:
        key: the key to look for, before its rotation, floating, shape (..., dim).
        offset: k = u − t in positions, an integer or real number. −12 looks 12 positions back.
        base, layout, frequencies: as in `posenc.apply_rotary`; frequencies of shape (dim/2,).

    Returns:
        Array of the shape and dtype of key: the query, before its rotation.

    >>> key = np.ones(64)
    >>> scores = apply_rotary(key, np.arange(100)) @ apply_rotary(offset_query(key, -12), [50])[0]
    >>> int(scores.argmax())
    38

    Source: derived in this book, rotary.md#look-back.
    """
    k = number("offset", offset)
    xp = check_vectors("key", key)
    everywhere = xp.full((*key.shape[:-1], 1), k, dtype=xp.float64, device=device_of(key))
    frequencies = _one_set(frequencies)
    turned = apply_rotary(key[..., None, :], everywhere, base=base, layout=layout, frequencies=frequencies)
    return turned[..., 0, :]


def _one_set(frequencies: Any) -> Any:
    """`frequencies`, or ValueError if they have an axis for heads."""
    if frequencies is not None and getattr(frequencies, "ndim", 1) != 1:
        raise ValueError(f"frequencies must have one axis here, got {tuple(frequencies.shape)}")
    return frequencies
