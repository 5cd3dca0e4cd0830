"""Functions of the offset, added to the scores: KERPLE with two trained numbers, FIRE with a small network.

Sources: Chi et al., KERPLE (2022), https://arxiv.org/abs/2205.09921; Li et al., FIRE (2024),
https://arxiv.org/abs/2310.04418.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from posenc._arrays import (
    Array,
    ArrayLike,
    DType,
    Namespace,
    OneArray,
    device_of,
    is_array,
    namespace,
    to_device_of,
    wide_dtype,
)
from posenc._checks import check_finite, check_values, check_word, floating, number
from posenc.relative.offsets import heads_first, lengths, spread, two_positions

__all__ = ["fire_bias", "fire_distance", "kerple_bias"]

KerpleKind = Literal["log", "power"]


def kerple_bias(
    r1: float | Array,
    r2: float | Array,
    query_positions: int | ArrayLike,
    key_positions: int | ArrayLike | None = None,
    *,
    kind: KerpleKind = "log",
) -> Array:
    """The bias of KERPLE: a function of the distance with two trained numbers per head.

    B(t, u) = −r1 · ln(1 + r2 · |u − t|) for kind "log", −r1 · |u − t|^r2 for kind "power".

    "power" with r2 = 1 is ALiBi with slope r1.

    Args:
        r1: above 0, a number or a floating array (heads,).
        r2: above 0, for "power" at most 2. A number, or an array of the shape and dtype of r1.
        query_positions, key_positions: as in `posenc.relative.relative_offsets`.
        kind: "log" or "power".

    Returns:
        Array (heads, n_q, n_k), or (..., heads, n_q, n_k) for positions with leading axes. Without the axis
        of heads if r1 and r2 are numbers. Computed in float64 and rounded once to the dtype of r1.

    Raises:
        ValueError: r1 and r2 differ in shape, one of them is not above 0, or r2 is above 2 for "power".

    >>> kerple_bias(2.0, 1.0, 1, 4).round(3)
    array([[-2.773, -2.197, -1.386,  0.   ]])
    >>> kerple_bias(0.5, 1.0, 1, 4, kind="power")
    array([[-1.5, -1. , -0.5,  0. ]])

    Source: Chi et al. (2022), section 4, equations 5 and 6.
    """
    check_word("kind", kind, KerpleKind)
    p, a = _parameter("r1", r1), _parameter("r2", r2)
    xp = floating(r1=p, r2=a)
    if p.shape != a.shape or p.ndim > 1:
        raise ValueError(
            f"r1 and r2 must be numbers or both of shape (heads,), got {tuple(p.shape)} and {tuple(a.shape)}"
        )
    check_between("r1", p, math.inf, xp)
    check_between("r2", a, 2.0 if kind == "power" else math.inf, xp)
    wide_p, wide_a = xp.astype(p, xp.float64), xp.astype(a, xp.float64)
    return kerple(wide_p, wide_a, kind, p.dtype, query_positions, key_positions, xp)


def fire_distance(
    query_positions: int | ArrayLike,
    key_positions: int | ArrayLike | None = None,
    *,
    c: float | Array = 0.1,
    threshold: float | Array = 512.0,
) -> Array:
    """The input of FIRE's network: the logarithm of the distance, divided by that of the query's position.

    x(t, u) = ln(1 + c · |u − t|) / ln(1 + c · max(t, threshold)).

    The values lie between 0 and 1 for keys at 0..t. Up to t = threshold they depend on the offset alone,
    beyond it also on t.

    Args:
        query_positions, key_positions: as in `posenc.relative.relative_offsets`; query positions at least 0.
        c: above 0, a number or an array without axes. The logarithm bends at a distance of about 1/c.
        threshold: above 0, in positions, a number or an array without axes.

    Returns:
        float64 array (..., n_q, n_k), of the library of c and threshold if they are arrays, else of the
        positions.

    >>> fire_distance(1, 4, c=1.0, threshold=3.0).round(3)
    array([[1.   , 0.792, 0.5  , 0.   ]])

    Source: Li et al. (2024), section 3.1, equation 5. Their code adds 1e-6 to the denominator.
    """
    given = [x for x in (c, threshold) if is_array(x)]
    if given:
        xp, like = namespace(*given), given[0]
    elif lengths(query_positions, key_positions) is not None:
        xp, like = np, np.empty(0)
    else:
        xp, like, _ = two_positions(query_positions, key_positions)
    bend, limit = (_above_zero(name, x, like, xp) for name, x in (("c", c), ("threshold", threshold)))
    return log_distance(bend, limit, query_positions, key_positions, xp)


def fire_bias(
    hidden_weight: OneArray,
    hidden_bias: OneArray,
    head_weight: OneArray,
    head_bias: OneArray,
    query_positions: int | ArrayLike,
    key_positions: int | ArrayLike | None = None,
    *,
    c: float | Array = 0.1,
    threshold: float | Array = 512.0,
) -> Array:
    """The bias of FIRE: a small network of `posenc.relative.fire_distance`.

    B_h(t, u) = b_h + Σ_j W_hj · max(0, w_j · x(t, u) + v_j).

    Args:
        hidden_weight, hidden_bias: w and v, shape (width,), floating.
        head_weight: W, shape (heads, width).
        head_bias: b, shape (heads,).
        query_positions, key_positions, c, threshold: as in `posenc.relative.fire_distance`.

    Returns:
        Array (heads, n_q, n_k), or (..., heads, n_q, n_k) for positions with leading axes, of the dtype of
        hidden_weight, computed in float32 at least. Needs memory for n_q · n_k · width numbers.

    Raises:
        TypeError: the arrays differ in library or dtype, or are not floating.
        ValueError: a weight has another shape, or c or threshold is not above 0.

    >>> one = np.ones(1)
    >>> fire_bias(one, 0 * one, -one[None], one, 1, 4, c=1.0, threshold=3.0).round(3)
    array([[[0.   , 0.208, 0.5  , 1.   ]]])

    Source: Li et al. (2024), section 3.1.
    """
    given = (hidden_weight, hidden_bias, head_weight, head_bias)
    weights = dict(zip(FIRE_WEIGHTS, given, strict=True))
    xp = floating(**weights)
    width, heads = hidden_weight.shape[:1], head_weight.shape[:1]
    wanted = {"hidden_weight": width, "hidden_bias": width, "head_weight": heads + width, "head_bias": heads}
    for name, array in weights.items():
        if tuple(array.shape) != tuple(wanted[name]) or not array.shape:
            raise ValueError(f"{name} must have shape {tuple(wanted[name])}, got {tuple(array.shape)}")
    bend, limit = (
        _above_zero(name, x, hidden_weight, xp) for name, x in (("c", c), ("threshold", threshold))
    )
    x = log_distance(bend, limit, query_positions, key_positions, xp)
    return two_layers(x, weights, xp)


def kerple(
    r1: Array,
    r2: Array,
    kind: str,
    dtype: DType,
    query_positions: int | ArrayLike,
    key_positions: int | ArrayLike | None,
    xp: Namespace,
) -> Array:
    """`posenc.kerple_bias` for r1 and r2 in float64, of shape (heads,) or ()."""

    def values(k: Array) -> Array:
        distance = xp.astype(xp.abs(k), xp.float64)[..., None]
        if kind == "log":
            return xp.astype(0 - r1 * xp.log1p(r2 * distance), dtype)
        # The exponent has no gradient at 0, where the bias is 0 whatever it is.
        here = distance == 0
        powers = xp.where(here, xp.ones_like(distance), distance) ** r2
        return xp.astype(xp.where(here, xp.zeros_like(powers), 0 - r1 * powers), dtype)

    bias = spread(values, query_positions, key_positions, r1, xp)
    return bias[..., 0, :, :] if r1.ndim == 0 else bias


def log_distance(
    c: Array,
    threshold: Array,
    query_positions: int | ArrayLike,
    key_positions: int | ArrayLike | None,
    xp: Namespace,
) -> Array:
    """`posenc.relative.fire_distance` for c and threshold in float64, without axes."""

    def grown(k: Array) -> Array:
        return xp.log1p(c * xp.astype(xp.abs(k), xp.float64))[..., None]

    grid = spread(grown, query_positions, key_positions, c, xp)[..., 0, :, :]
    both = lengths(query_positions, key_positions)
    if both is not None:
        t = xp.arange(both[1] - both[0], both[1], dtype=xp.float64, device=device_of(c))
    else:
        t = xp.astype(two_positions(query_positions, key_positions)[1], xp.float64)
    return grid / xp.log1p(c * xp.maximum(t, threshold))[..., :, None]


def two_layers(x: Array, weights: Mapping[str, Array], xp: Namespace) -> Array:
    """The network of FIRE at each number of x: (..., n_q, n_k) to (..., heads, n_q, n_k).

    In float32 at least: float16 and bfloat16 could not tell far positions apart.
    """
    dtype = weights["hidden_weight"].dtype
    wide = wide_dtype(xp, weights["hidden_weight"])
    w1, b1, w2, b2 = (xp.astype(weights[name], wide) for name in FIRE_WEIGHTS)
    hidden = xp.clip(xp.astype(x, wide)[..., None] * w1 + b1, 0, None)
    return heads_first(xp.astype(hidden @ xp.matrix_transpose(w2) + b2, dtype), xp)


def check_between(name: str, array: Array, most: float, xp: Namespace) -> None:
    """ValueError unless all are above 0 and at most `most`, where values can be read."""
    check_finite(name, array, xp)
    bound = f"above 0 and at most {most:g}" if math.isfinite(most) else "above 0"
    check_values(name, array, lambda x: (x > 0) & (x <= most), bound, xp)


def _parameter(name: str, value: float | Array) -> Array:
    return value if is_array(value) else np.asarray(number(name, value))


def _above_zero(name: str, x: float | Array, like: Array, xp: Namespace) -> Array:
    """One number above 0 as a float64 array without axes, on the device of `like`."""
    array = _parameter(name, x)
    if array is not x:
        array = to_device_of(array, like, xp)
    floating(**{name: array})
    if array.ndim:
        raise ValueError(f"{name} must be one number, got shape {tuple(array.shape)}")
    check_between(name, array, math.inf, xp)
    return xp.astype(array, xp.float64)


FIRE_WEIGHTS = ("hidden_weight", "hidden_bias", "head_weight", "head_bias")
