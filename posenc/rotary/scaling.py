"""Frequencies of RoPE for contexts longer than in training, and the attention factors that go with them.

Each function returns the frequencies of one method. Pass them as `frequencies` to `posenc.apply_rotary` or
`posenc.nn.RotaryEmbedding`. YaRN and LongRoPE also have an attention factor, passed as `scale`. L is the
length of training, s the factor by which the context grows.

No method makes a model work at the new length by itself. Most expect some further training at that length.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from posenc._checks import as_numbers, check_base, check_even_dim, check_flag, integer, number
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = [
    "dynamic_ntk_frequencies",
    "linear_frequencies",
    "llama3_frequencies",
    "longrope_attention_factor",
    "longrope_frequencies",
    "ntk_frequencies",
    "proportional_frequencies",
    "yarn_attention_factor",
    "yarn_frequencies",
]


def linear_frequencies(dim: int, factor: float, *, base: float = 10000.0) -> np.ndarray:
    """Position interpolation: all frequencies divided by one factor.

    ω_i / s. Position s·t is rotated as position t was before. Neighbouring positions become harder to tell
    apart.

    Args:
        dim: rotated width, even.
        factor: s, at least 1.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 NumPy array of shape (dim/2,), in radians per position.

    >>> linear_frequencies(4, 8)
    array([0.125  , 0.00125])

    Source: Chen et al., Extending Context Window of Large Language Models via Positional Interpolation
    (2023), section 2.3. https://arxiv.org/abs/2306.15595
    """
    return sinusoidal_frequencies(dim, base) / number("factor", factor, at_least=1)


def ntk_frequencies(dim: int, factor: float, *, base: float = 10000.0) -> np.ndarray:
    """NTK-aware scaling: a larger base. The slowest pair is slowed down by s, the fastest keeps its speed.

    ω_i = b'^(−2i/dim) with b' = base · s^(dim/(dim − 2)).

    Args:
        dim: rotated width, even and at least 4.
        factor: s, at least 1.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 NumPy array of shape (dim/2,), in radians per position.

    Raises:
        ValueError: dim is odd or below 4. A single pair has no slowest and fastest.

    >>> (ntk_frequencies(8, 8) / sinusoidal_frequencies(8)).round(4)
    array([1.   , 0.5  , 0.25 , 0.125])

    Source: bloc97, NTK-Aware Scaled RoPE (2023); written down in Peng et al., YaRN (2023), section 3.1.
    https://arxiv.org/abs/2309.00071
    """
    dim = check_even_dim(dim)
    if dim < 4:
        raise ValueError(f"dim must be at least 4: a single pair has no slowest and fastest, got {dim}")
    return sinusoidal_frequencies(
        dim, check_base(base) * number("factor", factor, at_least=1) ** (dim / (dim - 2))
    )


def dynamic_ntk_frequencies(
    dim: int, factor: float, length: int, *, original_length: int, base: float = 10000.0
) -> np.ndarray:
    """NTK-aware scaling that depends on the current length. Up to the length of training nothing is scaled.

    `ntk_frequencies` with s' = s · max(n, L)/L − (s − 1) for a sequence of n tokens.

    The frequencies change while a sequence grows. Keys that were rotated before they were cached then have
    outdated frequencies. Rotate them again, or decoding differs from the full pass.

    Args:
        dim: rotated width, even and at least 4.
        factor: s, at least 1.
        length: n, the current length in tokens, at least 1.
        original_length: L, at least 1.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 NumPy array of shape (dim/2,), in radians per position.

    >>> usual = sinusoidal_frequencies(8)
    >>> (dynamic_ntk_frequencies(8, 2, 4096, original_length=4096) / usual).round(4)
    array([1., 1., 1., 1.])
    >>> (dynamic_ntk_frequencies(8, 2, 8192, original_length=4096) / usual).round(4)
    array([1.    , 0.6934, 0.4807, 0.3333])

    Source: emozilla, Dynamically Scaled RoPE (2023); Peng et al. (2023), section 3.3, without the factor s.
    """
    factor = number("factor", factor, at_least=1)
    length = integer("length", length, minimum=1)
    original = integer("original_length", original_length, minimum=1)
    return ntk_frequencies(dim, factor * max(length, original) / original - (factor - 1), base=base)


def yarn_frequencies(
    dim: int,
    factor: float,
    *,
    original_length: int,
    base: float = 10000.0,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> np.ndarray:
    """YaRN: pairs that make many turns within L keep their speed, slow pairs are interpolated.

    ω_i · ((1 − r_i) + r_i/s). The ramp r_i rises linearly in i, from 0 at the pair that makes beta_fast turns
    in L positions to 1 at the pair that makes beta_slow turns.

    Use it with `yarn_attention_factor`.

    Args:
        dim: rotated width, even.
        factor: s, at least 1.
        original_length: L, at least 1.
        base: as in `posenc.sinusoidal_frequencies`.
        beta_fast, beta_slow: turns in L at which the ramp starts and ends, beta_fast ≥ beta_slow > 0. If they
            are equal, the ramp is a step, as in Kimi K2.
        truncate: whether the ends of the ramp are rounded outwards to whole pairs.

    Returns:
        float64 NumPy array of shape (dim/2,), in radians per position.

    Raises:
        ValueError: the ramp lies outside the pairs. Either L is so short that all of them make fewer than beta_slow
            turns, or so long that all of them make more than beta_fast.

    >>> ratio = yarn_frequencies(16, 4, original_length=4096) / sinusoidal_frequencies(16)
    >>> ratio.round(3)
    array([1.   , 1.   , 1.   , 0.812, 0.625, 0.438, 0.25 , 0.25 ])

    Source: Peng et al., YaRN (2023), sections 3.2 and 3.4. https://arxiv.org/abs/2309.00071
    """
    usual = sinusoidal_frequencies(dim, base)
    factor = number("factor", factor, at_least=1)
    length = integer("original_length", original_length, minimum=1)
    slow = number("beta_slow", beta_slow, above=0)
    fast = number("beta_fast", beta_fast, at_least=slow)
    check_flag("truncate", truncate)

    def pair(turns: float) -> float:
        """The pair i, a real number, that makes so many turns in L positions."""
        return dim * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base))

    low, high = pair(fast), pair(slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    if low > high:
        raise ValueError(
            f"original_length must be a length in which one of the {dim // 2} pairs makes {slow:g} to {fast:g} "
            f"turns with base {float(base):g}, got {length}"
        )
    ramp = np.clip((np.arange(dim // 2, dtype=np.float64) - low) / (high - low or 0.001), 0, 1)
    return usual * (1 - ramp) + usual / factor * ramp


def yarn_attention_factor(
    factor: float, *, mscale: float | None = None, mscale_all_dim: float | None = None
) -> float:
    """The factor by which YaRN multiplies rotated queries and keys. Scores are multiplied by its square.

    0.1 ln s + 1. With mscale and mscale_all_dim, as in DeepSeek, (0.1 m ln s + 1)/(0.1 m' ln s + 1).

    Args:
        factor: s, at least 1.
        mscale, mscale_all_dim: m and m' of DeepSeek's variant, both above 0 or both None.

    Returns:
        The factor, 1.0 for s = 1.

    Raises:
        ValueError: only one of mscale and mscale_all_dim is given.

    >>> round(yarn_attention_factor(4), 4)
    1.1386

    Source: Peng et al. (2023), section 3.4; DeepSeek-V2 (2024), section 3.1.4, and its code, for the variant.
    """
    growth = 0.1 * math.log(number("factor", factor, at_least=1))
    if (mscale is None) != (mscale_all_dim is None):
        raise ValueError(
            f"mscale and mscale_all_dim must come together, got {mscale!r} and {mscale_all_dim!r}"
        )
    if mscale is None:
        return growth + 1.0
    return (growth * number("mscale", mscale, above=0) + 1.0) / (
        growth * number("mscale_all_dim", mscale_all_dim, above=0) + 1.0
    )


def longrope_frequencies(
    dim: int,
    short_factors: Any,
    long_factors: Any,
    length: int,
    *,
    original_length: int,
    base: float = 10000.0,
) -> np.ndarray:
    """LongRoPE: each pair has its own factor, found by search. There is one set for short texts and one for long.

    ω_i / s_i, with the short factors up to L tokens and the long factors beyond.

    When a sequence grows beyond L, cached keys belong to the other set, as with `dynamic_ntk_frequencies`.
    Use it with `longrope_attention_factor`.

    Args:
        dim: rotated width, even.
        short_factors, long_factors: s_i, shape (dim/2,), above 0, from the configuration of the model.
        length: the current length in tokens, at least 1.
        original_length: L, at least 1.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 NumPy array of shape (dim/2,), in radians per position.

    Raises:
        ValueError: there is not one factor above 0 for each pair.

    >>> longrope_frequencies(4, [1, 1], [1, 8], 5000, original_length=4096)
    array([1.     , 0.00125])

    Source: Ding et al., LongRoPE (2024), section 3. https://arxiv.org/abs/2402.13753
    """
    usual = sinusoidal_frequencies(dim, base)
    length = integer("length", length, minimum=1)
    original = integer("original_length", original_length, minimum=1)
    sets = []
    for name, given in (("short_factors", short_factors), ("long_factors", long_factors)):
        factors = as_numbers(name, np.asarray(given))[1]
        if factors.shape != usual.shape or not (factors > 0).all():
            raise ValueError(f"{name} must be {len(usual)} numbers above 0, got {given!r}")
        sets.append(factors)
    return usual / sets[length > original]


def longrope_attention_factor(factor: float, *, original_length: int) -> float:
    """The factor by which LongRoPE multiplies rotated queries and keys.

    sqrt(1 + ln s / ln L).

    Args:
        factor: s, at least 1: the new length over the original one.
        original_length: L, at least 2.

    Returns:
        The factor, 1.0 for s = 1.

    >>> round(longrope_attention_factor(32, original_length=4096), 4)
    1.1902

    Source: Microsoft, configuration of Phi-3 long-context models; transformers, `modeling_rope_utils`.
    """
    original = integer("original_length", original_length, minimum=2)
    return math.sqrt(1 + math.log(number("factor", factor, at_least=1)) / math.log(original))


def llama3_frequencies(
    dim: int,
    factor: float,
    *,
    original_length: int,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
    base: float = 10000.0,
) -> np.ndarray:
    """Llama 3.1: fast pairs keep their speed, slow pairs are interpolated, pairs between them partly.

    ω_i · ((1 − a_i)/s + a_i), a_i = (L/λ_i − low)/(high − low) clipped to 0..1, λ_i = 2π/ω_i.

    Like YaRN, but the ramp is linear in the number of turns L/λ_i, and there is no attention factor.

    Args:
        dim: rotated width, even.
        factor: s, at least 1.
        original_length: L, at least 1; 8192 for Llama 3.
        low_freq_factor, high_freq_factor: turns in L at which the ramp starts and ends, 0 < low ≤ high. If they
            are equal, as in Llama 4 Scout, the ramp is a step.
        base: as in `posenc.sinusoidal_frequencies`; 500 000 for Llama 3.

    Returns:
        float64 NumPy array of shape (dim/2,), in radians per position.

    >>> ratio = llama3_frequencies(16, 8, original_length=8192, base=500000.0) / sinusoidal_frequencies(16, 500000.0)
    >>> ratio.round(3)
    array([1.   , 1.   , 1.   , 1.   , 0.371, 0.125, 0.125, 0.125])

    Source: Llama team, The Llama 3 Herd of Models (2024), and its code, `apply_scaling`.
    https://arxiv.org/abs/2407.21783
    """
    usual = sinusoidal_frequencies(dim, base)
    factor = number("factor", factor, at_least=1)
    length = integer("original_length", original_length, minimum=1)
    low = number("low_freq_factor", low_freq_factor, above=0)
    high = number("high_freq_factor", high_freq_factor, at_least=low)
    turns = length * usual / (2 * math.pi)
    kept = np.clip((turns - low) / (high - low), 0, 1) if high > low else 1.0 * (turns >= low)
    return usual * kept + usual / factor * (1 - kept)


def proportional_frequencies(
    dim: int, proportion: float, *, factor: float = 1.0, base: float = 10000.0
) -> np.ndarray:
    """Proportional RoPE: only the fastest pairs are rotated, at their usual speed.

    ω_i / s for i < ⌊proportion · dim/2⌋, and 0 for the other pairs.

    This differs from `rotary_dim=proportion · dim`, which spreads all frequencies over fewer pairs.

    Args:
        dim: width of the vector, even.
        proportion: share of the pairs that are rotated, above 0 and at most 1.
        factor: s, at least 1.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 NumPy array of shape (dim/2,), in radians per position.

    Raises:
        ValueError: proportion is so small that no pair is rotated.

    >>> proportional_frequencies(8, 0.5)
    array([1. , 0.1, 0. , 0. ])

    Source: transformers, `modeling_rope_utils`, rope type "proportional", as used in Gemma 4. The idea of
    leaving out the slowest pairs: Barbero et al., Round and Round We Go! (2024), section 6, p-RoPE.
    https://arxiv.org/abs/2410.06205
    """
    usual = sinusoidal_frequencies(dim, base)
    share = number("proportion", proportion, above=0)
    if share > 1:
        raise ValueError(f"proportion must be at most 1, got {proportion!r}")
    turning = share * dim // 2  # in floating point as in transformers, where 0.29 · 200 is below 58
    if turning < 1:
        raise ValueError(f"proportion must let at least one of {len(usual)} pairs turn, got {proportion!r}")
    return np.where(np.arange(len(usual)) < turning, usual / number("factor", factor, at_least=1), 0.0)
