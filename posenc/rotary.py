"""Rotary position embedding (RoPE): queries and keys turn with their position, so that scores see offsets.

A vector of width dim is read as dim/2 points of a plane. Position t turns point i counter-clockwise by the
angle ω_i t. Dot products of two turned vectors depend on the difference of their positions.

Which two numbers make a point is the layout: "interleaved" takes neighbours (0, 1), (2, 3), ...; "half" takes
(0, dim/2), (1, dim/2 + 1), ... Both are in use. They are the same operation on differently ordered columns,
and a model trained with one gives wrong results with the other until its columns are reordered.

Source: Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding (2021), section 3.
https://arxiv.org/abs/2104.09864
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from posenc import sinusoidal
from posenc._arrays import Array, ArrayT, DType, device_of, is_array, namespace, to_device_of, wide_dtype
from posenc._checks import (
    as_numbers,
    check_even_dim,
    check_float_dtype,
    check_values,
    floating,
    integer,
    number,
)
from posenc._rotation import (
    Layout,
    are_whole,
    check_frequencies,
    check_layout,
    check_rotary_dim,
    check_vectors,
    codes,
    of_library,
    positions_of,
    turn,
)

__all__ = [
    "find_period",
    "half_to_interleaved",
    "head_frequencies",
    "interleaved_to_half",
    "offset_query",
    "rotary_matrix",
    "rotate",
    "rotate_xpos",
]

# --- The rotation


def rotate(
    x: ArrayT,
    positions: int | Array,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    rotary_dim: int | None = None,
    frequencies: Array | None = None,
    scale: float = 1.0,
) -> ArrayT:
    """Queries or keys, turned by their positions.

    R(t) x: each pair (a, b) of x becomes (a cos ω_i t − b sin ω_i t, a sin ω_i t + b cos ω_i t), that is
    (a + bi) · e^(i ω_i t): counter-clockwise. R(t)ᵀ R(u) = R(u − t), so R(t)q · R(u)k = q · R(u − t)k.

    Angles are made in float64 and their sines and cosines rounded once. float16 and bfloat16 vectors are
    turned in float32 and rounded once.

    Args:
        x: floating, shape (..., seq, dim): rows are queries or keys, usually (batch, heads, seq, dim). Or one
            vector, shape (dim,), which is then turned to each of the positions.
        positions: an integer n, meaning 0, 1, ..., n − 1, or an array of integer or real (float32, float64)
            positions. For rows: shape (seq,), or one axis for each of x but the last, of full length or 1; so
            positions (batch, seq) are passed as positions[:, None, :]. For one vector: an array of any
            shape, [t] for one position t. rotate(x, −positions) turns back.
        base: as in `posenc.frequencies`. Not used when frequencies are given.
        layout: which numbers make a pair: "interleaved" (2i, 2i + 1) or "half" (i, i + rotary_dim/2).
        rotary_dim: turn the first rotary_dim numbers only and leave the rest as they are; all if None.
        frequencies: ω_i in radians per position, shape (rotary_dim/2,), or (heads, rotary_dim/2) with a set
            for each head, the axis before seq. If None, posenc.frequencies(rotary_dim, base). For integer
            positions at least one must be below 2π: what turns further is another frequency, or a wavelength.
        scale: factor on what is turned, such as the attention factor of YaRN.

    Returns:
        Array of the shape and dtype of x, or positions.shape + (dim,) for one vector.

    Raises:
        TypeError: positions in float16 or bfloat16, or an integer for a single vector.

    >>> rotate(np.array([1.0, 0.0]), np.array([0, 1, 2])).round(4)
    array([[ 1.    ,  0.    ],
           [ 0.5403,  0.8415],
           [-0.4161,  0.9093]])
    >>> q, k = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    >>> pairs = [(2, 5), (1002, 1005), (5, 2)]
    >>> [round(float(rotate(q, [t])[0] @ rotate(k, [u])[0]), 4) for t, u in pairs]
    [-0.1411, -0.1411, 0.1411]

    Source: Su et al. (2021), section 3.2.2, equations 15 (the rotation) and 16 (the score); section 3.4.2,
    equation 34.
    """
    xp = check_vectors("x", x)
    turned = check_rotary_dim(rotary_dim, x.shape[-1])
    freqs = check_frequencies(frequencies, base, turned, whole=are_whole(positions))
    check_layout(layout)
    scale = number("scale", scale)
    t = positions_of(positions, x, xp)
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
    frequencies: Array | None = None,
    dtype: DType | None = None,
) -> Array:
    """The rotation of `rotate` as a matrix.

    R(t), with R(t) @ x == rotate(x, [t])[0]; for "interleaved" the blocks [[cos ω_i t, −sin ω_i t],
    [sin ω_i t, cos ω_i t]] on the diagonal. R(t)ᵀ R(u) = R(u − t) and R(t)ᵀ = R(−t).

    It is there to be looked at: `rotate` does the same with 2 · dim multiplications instead of dim².

    Args:
        position: t: one integer or real number, or an array of them of any shape. Unlike `positions`
            elsewhere an integer is itself, not a count.
        dim: width, even and at least 2.
        base, layout, frequencies: as in `posenc.rotate`; frequencies of shape (dim/2,).
        dtype: floating dtype of the result; float64 if None.

    Returns:
        Array of shape (dim, dim), or position.shape + (dim, dim), of the library and on the device of
        position.

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
    xp, t = as_numbers("position", position)
    dtype = xp.float64 if dtype is None else check_float_dtype(dtype, xp)
    rows = xp.eye(dim, dtype=xp.float64, device=device_of(t))
    turned = rotate(
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
    frequencies: Array | None = None,
) -> ArrayT:
    """A query that scores highest where a key like `key` stands `offset` positions away from it.

    q = R(k) key for the offset k = u − t. Then R(t)q · R(u)key = key · R(u − t − k) key, which is largest,
    ‖key‖², at u − t = k. Another offset ties with it where every ω_i (u − t − k) is a multiple of 2π.

    Args:
        key: the key to look for, before its rotation, floating, shape (..., dim).
        offset: k = u − t in positions, integer or real; −12 looks 12 positions back.
        base, layout, frequencies: as in `posenc.rotate`; frequencies of shape (dim/2,).

    Returns:
        Array of the shape and dtype of key: the query, before its rotation.

    >>> key = np.ones(64)
    >>> scores = rotate(key, np.arange(100)) @ rotate(offset_query(key, -12), [50])[0]
    >>> int(scores.argmax())
    38
    """
    k = number("offset", offset)
    xp = check_vectors("key", key)
    everywhere = xp.full((*key.shape[:-1], 1), k, dtype=xp.float64, device=device_of(key))
    frequencies = _one_set(frequencies)
    turned = rotate(key[..., None, :], everywhere, base=base, layout=layout, frequencies=frequencies)
    return turned[..., 0, :]


def rotate_xpos(
    query: ArrayT,
    key: ArrayT,
    positions: int | Array,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    scale_base: float = 512.0,
    gamma: float = 0.4,
    center: float = 0.0,
) -> tuple[ArrayT, ArrayT]:
    """Queries and keys with xPos: rotated, and scaled so that in a score far keys count less.

    q_t → R(t) q · ζ_i^((t − c)/s) and k_u → R(u) k · ζ_i^(−(u − c)/s) for pair i of m = dim/2, with
    ζ_i = (i/m + γ)/(1 + γ). In the score pair i gets the factor ζ_i^((t − u)/s), below 1 for t > u, wherever
    the centre c is.

    For causal attention: towards later keys the factor is above 1 and grows without bound.

    Args:
        query, key: floating, one shape (..., seq, dim) or (dim,), as x in `posenc.rotate`.
        positions: as in `posenc.rotate`.
        base, layout: as in `posenc.rotate`.
        scale_base: s, in positions, above 0: how fast scores fade. Less is faster.
        gamma: γ, above 0. The fastest pair has ζ_0 = γ/(1 + γ), the slowest nearly 1.
        center: c, a position. It leaves the scores alone and keeps both factors moderate if it lies in the
            middle of the sequence. Decoding needs the same centre at every step.

    Returns:
        query and key, of their shapes and dtypes, ready for a dot product.

    Raises:
        ValueError: positions so far from the centre that a factor leaves the range of the dtype, at
            s · ln(1/smallest normal number) / ln(1/ζ_0): with the default s and γ 3,966 positions in float16,
            35,694 in float32 and bfloat16, 289,519 in float64; sooner where the vectors are large.

    >>> q, k = rotate_xpos(np.ones((3, 4)), np.ones((3, 4)), 3, scale_base=1)
    >>> (q @ k.T)[2].round(3)
    array([0.758, 1.594, 4.   ])

    Source: Sun et al., A Length-Extrapolatable Transformer (2022), section 2.2 and algorithm 1, where γ = 0.4
    and s = 512. https://arxiv.org/abs/2212.10554
    """
    xp = floating(query=query, key=key)
    check_vectors("query", query)
    if key.shape != query.shape:
        raise ValueError(f"key must have the shape of query, {tuple(query.shape)}, got {tuple(key.shape)}")
    scale_base = number("scale_base", scale_base, above=0)
    gamma = number("gamma", gamma, above=0)
    center = number("center", center)
    dim = check_even_dim(query.shape[-1], "the last axis of query")
    omega = to_device_of(sinusoidal.frequencies(dim, base), query, xp)
    zeta = to_device_of((np.arange(0, dim, 2) / dim + gamma) / (1 + gamma), query, xp)
    t = positions_of(positions, query, xp)[..., None]
    check_layout(layout)
    wide = wide_dtype(xp, query)
    # How many factors of e the fastest pair fades by, a position.
    rate = math.log1p(1 / gamma) / scale_base
    limit = -math.log(float(xp.finfo(query.dtype).smallest_normal))
    where = f"the center {center:g} in {query.dtype}"
    reach = f"within {limit / rate:.0f} positions of {where}, where factors fit" if rate else ""
    check_values("positions", t, lambda t: xp.abs(t - center) * rate <= limit, reach, xp)
    power = zeta ** ((t - center) / scale_base)
    turned = []
    for name, x, factor in (("query", query, power), ("key", key, 1 / power)):
        y = turn(x, codes(t * omega, wide, layout, factor, xp), layout, xp)
        new = xp.where(xp.isfinite(x), y, xp.zeros_like(y))
        check_values(f"{name} times its factors", new, xp.isfinite, f"finite, so far from {where}", xp)
        turned.append(y)
    return turned[0], turned[1]


# --- Frequencies of heads, and a period to tune one to


def head_frequencies(wavelengths: Array) -> np.ndarray:
    """Frequencies that give each head wavelengths of its own, to be passed to `rotate`.

    ω = 2π/λ. A single pair with q = k scores cos ωk at offset k: above one half as far as λ/6.

    Usual RoPE has one set of dim/2 frequencies and gives it to every head.

    Args:
        wavelengths: λ in positions, above 0, shape (heads,) for one pair a head, or (heads, dim/2).

    Returns:
        float64 NumPy array of shape (heads, 1) or (heads, dim/2).

    >>> head_frequencies([4, 32, 512]).round(4).tolist()
    [[1.5708], [0.1963], [0.0123]]
    """
    values = as_numbers("wavelengths", np.asarray(wavelengths))[1]
    if values.ndim not in (1, 2):
        raise ValueError(f"wavelengths must have shape (heads,) or (heads, dim/2), got {values.shape}")
    check_values("wavelengths", values, lambda x: x > 0, "above 0", np)
    return 2 * math.pi / values.reshape(len(values), -1)


def find_period(series: Array, *, min_period: int = 2, max_period: int | None = None) -> int:
    """The whole period that fits a series best.

    argmax_p |Σ_n (x_n − x̄) e^(−2πi n/p)| over p = min_period, ..., max_period; of equal ones the smallest.

    It asks for one sine wave, so a pattern whose second harmonic is the strongest is found at half its
    period. A period must be seen twice: above half the length of the series nothing is looked for.

    Args:
        series: real numbers, shape (n,), evenly spaced, at least 4.
        min_period, max_period: which periods to try, from 2 to n // 2; n // 2 if None.

    Returns:
        The period in steps.

    Raises:
        ValueError: series are constant, or shorter than 4.

    >>> find_period(np.cos(2 * np.pi * np.arange(100) / 7))
    7
    """
    x = as_numbers("series", np.asarray(series))[1]
    if x.ndim != 1 or len(x) < 4:
        raise ValueError(f"series must have shape (n,) with n >= 4, got {x.shape}")
    low = integer("min_period", min_period, minimum=2)
    high = len(x) // 2 if max_period is None else integer("max_period", max_period, minimum=low)
    if not low <= high <= len(x) // 2:
        raise ValueError(f"periods must lie in 2..{len(x) // 2}, half the length, got {low}..{high}")
    if np.ptp(x) == 0:
        raise ValueError(f"series must not be constant: it has no period, got {x[0]:g} throughout")
    x = x - x.mean()
    n = np.arange(len(x))
    strength = [abs(np.exp(-2j * math.pi * n / p) @ x) for p in range(low, high + 1)]
    return low + int(np.argmax(strength))


# --- Layouts


def interleaved_to_half(
    x: ArrayT, *, axis: int = -1, head_dim: int | None = None, rotary_dim: int | None = None
) -> ArrayT:
    """The same queries or keys, or the weights that make them, reordered from interleaved to half layout.

    Columns 0, 2, 4, ..., 1, 3, 5, ... of each head, so that
    rotate(interleaved_to_half(x), t, layout="half") == interleaved_to_half(rotate(x, t)).

    Dot products do not see the order of columns as long as queries and keys share it. So a trained model is
    converted by reordering the rows of its query and key projections (and their biases, and the weights of
    any norm that follows them); values and output projection stay as they are.

    Args:
        x: activations, shape (..., dim) or (..., heads · head_dim); or the weight of a torch.nn.Linear, shape
            (heads · head_dim, inputs), with axis=0; or its bias, shape (heads · head_dim,).
        axis: the axis that holds the columns of the heads.
        head_dim: width of one head, when the axis holds several; all of it if None.
        rotary_dim: how many numbers of each head are turned, the first ones; all if None. The rest stay.

    Returns:
        Array of the shape and dtype of x.

    >>> interleaved_to_half(np.arange(8))
    array([0, 2, 4, 6, 1, 3, 5, 7])
    >>> interleaved_to_half(np.arange(8), head_dim=4)
    array([0, 2, 1, 3, 4, 6, 5, 7])
    """
    return _reorder(x, axis, head_dim, rotary_dim, to_half=True)


def half_to_interleaved(
    x: ArrayT, *, axis: int = -1, head_dim: int | None = None, rotary_dim: int | None = None
) -> ArrayT:
    """The same queries or keys, or the weights that make them, reordered from half to interleaved layout.

    The inverse of `interleaved_to_half`: columns 0, m, 1, m + 1, ... of each head, m = rotary_dim/2.

    Args:
        x, axis, head_dim, rotary_dim: as in `posenc.interleaved_to_half`.

    Returns:
        Array of the shape and dtype of x.

    >>> half_to_interleaved(np.arange(8))
    array([0, 4, 1, 5, 2, 6, 3, 7])
    """
    return _reorder(x, axis, head_dim, rotary_dim, to_half=False)


def _reorder(x: Array, axis: Any, head_dim: Any, rotary_dim: Any, *, to_half: bool) -> Array:
    xp = namespace(x=x)
    axis = integer("axis", axis, minimum=-x.ndim)
    if axis >= x.ndim:
        raise ValueError(f"axis must lie in {-x.ndim}..{x.ndim - 1}, got {axis}")
    length = x.shape[axis]
    head = length if head_dim is None else integer("head_dim", head_dim, minimum=2)
    if head == 0 or length % head:
        raise ValueError(f"head_dim must divide the length of axis {axis}, {length}, got {head}")
    turned = check_rotary_dim(rotary_dim, head)
    order = np.arange(head)
    if to_half:
        order[:turned] = np.concatenate([order[0:turned:2], order[1:turned:2]])
    else:
        order[:turned] = order[:turned].reshape(2, -1).T.ravel()
    indices = (np.arange(0, length, head)[:, None] + order).ravel()
    return xp.take(x, to_device_of(indices, x, xp), axis=axis % x.ndim)


def _one_set(frequencies: Any) -> Any:
    """Refuse frequencies for each head, where there are no heads."""
    if frequencies is not None and getattr(frequencies, "ndim", 1) != 1:
        raise ValueError(f"frequencies must have one axis here, got {tuple(frequencies.shape)}")
    return frequencies
