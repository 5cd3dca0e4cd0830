"""Frequencies for each head, and the period of a time series to tune a head to."""

from __future__ import annotations

import math

import numpy as np

from posenc._arrays import ArrayLike
from posenc._checks import as_numbers, check_values, integer

__all__ = ["find_period", "head_frequencies"]


def head_frequencies(wavelengths: ArrayLike) -> np.ndarray:
    """Frequencies of RoPE from wavelengths that differ between heads.

    ω = 2π/λ. A single pair with q = k scores cos ωk at offset k. The score stays above one half up to λ/6.

    Pass the result as `frequencies` to `posenc.apply_rotary`. Usual RoPE gives all heads the same dim/2
    frequencies.

    Args:
        wavelengths: λ in positions, above 0, shape (heads,) for one pair per head, or (heads, dim/2).

    Returns:
        float64 NumPy array of shape (heads, 1) or (heads, dim/2), in radians per position.

    Raises:
        ValueError: wavelengths have more than two axes, or one is not above 0.

    >>> head_frequencies([4, 32, 512]).round(4).tolist()
    [[1.5708], [0.1963], [0.0123]]

    Source: derived in this book, rotary.md#heads.
    """
    values = as_numbers("wavelengths", np.asarray(wavelengths))[1]
    if values.ndim not in (1, 2):
        raise ValueError(f"wavelengths must have shape (heads,) or (heads, dim/2), got {values.shape}")
    check_values("wavelengths", values, lambda x: x > 0, "above 0", np)
    return 2 * math.pi / values.reshape(len(values), -1)


def find_period(series: ArrayLike, *, min_period: int = 2, max_period: int | None = None) -> int:
    """The integer period that fits a series best.

    argmax_p |Σ_n (x_n − x̄) e^(−2πi n/p)| over p = min_period, ..., max_period. Of equal ones the smallest.

    This compares the series with one sine wave. A pattern whose second harmonic is the strongest is found at
    half its period. Only periods that fit twice into the series are tried.

    Args:
        series: real numbers at equal distances, shape (n,), n at least 4.
        min_period, max_period: the periods to try, from 2 to n // 2. max_period is n // 2 if None.

    Returns:
        The period, in steps of the series.

    Raises:
        ValueError: the series is constant or shorter than 4.

    >>> find_period(np.cos(2 * np.pi * np.arange(100) / 7))
    7

    Source: derived in this book, times.md#unknown-period.
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
