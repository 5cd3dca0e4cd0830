"""xPos: a rotation with a decay, so that distant keys weigh less."""

from __future__ import annotations

import math

import numpy as np

from posenc._arrays import ArrayLike, ArrayT, to_device_of, wide_dtype
from posenc._checks import check_even_dim, check_values, floating, number, positions_of
from posenc.rotary._turn import Layout, check_layout, check_vectors, codes, turn
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = ["apply_xpos"]


def apply_xpos(
    query: ArrayT,
    key: ArrayT,
    positions: int | ArrayLike,
    *,
    base: float = 10000.0,
    layout: Layout = "interleaved",
    scale_base: float = 512.0,
    gamma: float = 0.4,
    center: float = 0.0,
) -> tuple[ArrayT, ArrayT]:
    """Queries and keys with xPos: rotated, and scaled so that distant keys get lower scores.

    q_t → R(t) q · ζ_i^((t − c)/s) and k_u → R(u) k · ζ_i^(−(u − c)/s) for pair i of m = dim/2, with ζ_i =
    (i/m + γ)/(1 + γ). In the score pair i gets the factor ζ_i^((t − u)/s). It is below 1 for t > u and does
    not depend on the centre c.

    Use it with a causal mask only: for later keys the factor is above 1 and grows without bound.

    Args:
        query, key: floating, one shape (..., seq, dim) or (dim,), as x in `posenc.apply_rotary`.
        positions: as in `posenc.apply_rotary`.
        base, layout: as in `posenc.apply_rotary`.
        scale_base: s, in positions, above 0. Scores fade faster with a smaller s.
        gamma: γ, above 0. The fastest pair has ζ_0 = γ/(1 + γ), the slowest nearly 1.
        center: c, a position. It does not change the scores. In the middle of the sequence it keeps both
            factors moderate. Decoding needs the same centre at every step.

    Returns:
        query and key, in their shapes and dtypes.

    Raises:
        ValueError: positions so far from the centre that a factor leaves the range of the dtype. The limit is
            s · ln(1/smallest normal number) / ln(1/ζ_0): with the default s and γ 3,966 positions in float16,
            35,694 in float32 and bfloat16, 289,519 in float64. It is reached sooner if the vectors are large.

    >>> q, k = apply_xpos(np.ones((3, 4)), np.ones((3, 4)), 3, scale_base=1)
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
    omega = to_device_of(sinusoidal_frequencies(dim, base), query, xp)
    zeta = to_device_of((np.arange(0, dim, 2, dtype=np.float64) / dim + gamma) / (1 + gamma), query, xp)
    t = positions_of(positions, query, xp)[..., None]
    check_layout(layout)
    wide = wide_dtype(xp, query)
    # The fastest pair fades by a factor of e^(-rate) per position.
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
