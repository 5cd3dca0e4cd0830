"""Beyond the trained length: measures of what a model has not seen in training.

L is the length of training. Each measure is one reason why a scheme may fail beyond L. Whether a model does
fail, only a training shows.
"""

from __future__ import annotations

import math

import numpy as np

from posenc._arrays import Array, ArrayLike, ArrayT, DType, Namespace, OneArray, wide_dtype
from posenc._checks import (
    as_numbers,
    check_even_dim,
    check_finite,
    check_float_dtype,
    check_values,
    floating,
    integer,
    number,
    positions_in,
)
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = [
    "attention_entropy",
    "first_negative",
    "logn_scale",
    "row_visits",
    "score_needed",
    "smallest_base",
    "turns",
    "unseen_angles",
]

# --- Angles of rotary pairs


def turns(frequencies: ArrayLike, length: int) -> Array:
    """The number of turns that each rotary pair makes in a text.

    ω_i n / 2π. Below 1 the pair has a wavelength above n and meets only a part of its angles.

    Args:
        frequencies: ω_i, shape (pairs,), in radians per position, at least 0, such as
            `posenc.sinusoidal_frequencies` gives.
        length: n, in tokens, at least 1.

    Returns:
        float64 array (pairs,) of the library of frequencies.

    >>> from posenc import sinusoidal_frequencies
    >>> llama_2 = turns(sinusoidal_frequencies(128), 4096)
    >>> float((llama_2 >= 1).mean())
    0.71875

    Source: Peng et al., YaRN (2023), section 3, the ratio of length and wavelength. https://arxiv.org/abs/2309.00071
    """
    _, omega = _frequencies("frequencies", frequencies)
    return omega * (integer("length", length, minimum=1) / (2 * math.pi))


def unseen_angles(
    frequencies: ArrayLike, trained_length: int, length: int, *, stretched: ArrayLike | None = None
) -> Array:
    """The share of its circle that each rotary pair reaches only beyond the trained length.

    max(0, min(ω'_i n, 2π) − min(ω_i L, 2π)) / 2π.

    Args:
        frequencies: ω_i of training, shape (pairs,), in radians per position, at least 0.
        trained_length: L, in tokens, at least 1.
        length: n, in tokens, at least 1.
        stretched: ω'_i, the frequencies at length n, such as `posenc.rotary.yarn_frequencies` gives. If None,
            ω_i.

    Returns:
        float64 array (pairs,) between 0 and 1, of the library of frequencies.

    Raises:
        ValueError: stretched is of another library or shape than frequencies, or a frequency is below 0.

    >>> from posenc import sinusoidal_frequencies
    >>> from posenc.rotary import linear_frequencies
    >>> usual = sinusoidal_frequencies(8)
    >>> unseen_angles(usual, 32, 256).round(3)
    array([0.   , 0.491, 0.357, 0.036])
    >>> unseen_angles(usual, 32, 256, stretched=linear_frequencies(8, 8)).round(3)
    array([0., 0., 0., 0.])

    Source: a measure of this book, defined in extrapolation.md#angles.
    """
    xp, omega = _frequencies("frequencies", frequencies)
    after = omega if stretched is None else _frequencies("stretched", stretched)[1]
    if type(after) is not type(omega) or after.shape != omega.shape:
        raise ValueError(
            f"stretched must be of the library and shape of frequencies, {tuple(omega.shape)}, "
            f"got {type(after).__name__} {tuple(after.shape)}"
        )
    trained = integer("trained_length", trained_length, minimum=1)
    seen = xp.clip(turns(omega, trained), None, 1.0)
    return xp.clip(xp.clip(turns(after, length), None, 1.0) - seen, 0.0, None)


def first_negative(frequencies: ArrayLike, *, limit: int = 2**20) -> int | None:
    """The smallest distance at which the sum of the cosines of all pairs is negative.

    min {k ≥ 1 : Σ_i cos ω_i k < 0}.

    For random vectors with standard deviation σ, 2σ² times the sum is the mean score of a key that equals the
    query, before the division by √d. The mean score of an unrelated key is 0. From this distance on, a
    matching key may score less than an unrelated one.

    Args:
        frequencies: ω_i, shape (pairs,), in radians per position, at least 0.
        limit: the largest distance to try, at least 1.

    Returns:
        The distance, or None if the sum is not negative up to limit.

    >>> from posenc import sinusoidal_frequencies
    >>> first_negative(sinusoidal_frequencies(128)), first_negative(sinusoidal_frequencies(128, 500000.0))
    (1707, 18438)

    Source: Men et al., Base of RoPE Bounds Context Length (2024), section 4. https://arxiv.org/abs/2405.14591
    """
    _, omega = _frequencies("frequencies", frequencies)
    limit = integer("limit", limit, minimum=1)
    listed = np.asarray(omega.tolist())
    # cos ω(s + k) = cos ωs cos ωk - sin ωs sin ωk: a product of matrices for the distances s + k of a range.
    k = np.arange(256)
    parts = np.concatenate([np.cos(k[:, None] * listed), -np.sin(k[:, None] * listed)], axis=1)
    start, step = 1, len(k)
    while start <= limit:
        starts = np.arange(start, min(start + step, limit + 1), len(k))
        turned = starts[:, None] * listed
        sums = np.concatenate([np.cos(turned), np.sin(turned)], axis=1) @ parts.T
        for s in starts[(sums < 1e-6).any(axis=1)]:  # up to rounding: these are summed as they stand
            below = np.flatnonzero(np.cos((s + k)[:, None] * listed).sum(axis=1) < 0)
            if below.size:
                found = int(s + below[0])
                return found if found <= limit else None
        start, step = start + step, min(4 * step, 2**15)
    return None


def smallest_base(length: int, dim: int) -> float:
    """The smallest base with which the sum of the cosines of all pairs is not negative within a length.

    The first of the bases 1.1, 1.2, ..., 9.9, 10, 11, ..., 99, 100, 110, ... for which
    `posenc.extrapolation.first_negative` is beyond n − 1.

    Some larger bases fail again, because this distance does not rise steadily with the base.

    Args:
        length: n, in tokens, at least 2.
        dim: rotated width, even.

    Returns:
        The base, with two digits.

    >>> smallest_base(4000, 128)
    27000.0

    Source: Men et al. (2024), section 4, with a table of such bases for a width of 128.
    """
    reach = integer("length", length, minimum=2) - 1
    dim = check_even_dim(dim)
    digits, power = 11, -1
    while True:
        base = digits * 10.0**power if power >= 0 else digits / 10
        if first_negative(sinusoidal_frequencies(dim, base), limit=reach) is None:
            return base
        digits, power = (digits + 1, power) if digits < 99 else (10, power + 1)


# --- Attention that spreads


def attention_entropy(weights: OneArray) -> Array:
    """The entropy of each row of attention weights: a measure of how many keys attention is spread over.

    −Σ_u w(t, u) ln w(t, u), in nats. It is ln n for n equal weights and 0 for a single key. Its exponential
    is an effective number of keys.

    Args:
        weights: shape (..., n), floating, at least 0. Rows sum to 1 (to 1e-2, so that bfloat16 passes), or to 0
            for a query without keys, whose entropy is 0.

    Returns:
        Array (...) of the library of weights, in float32 at least.

    Raises:
        TypeError: weights are not floating.
        ValueError: a weight is below 0, or a row sums to neither 1 nor 0. Scores are no weights.

    >>> attention_entropy(np.array([[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]])).round(4)
    array([1.3863, 0.    ])

    Source: Shannon, A Mathematical Theory of Communication (1948).
    """
    xp = floating(weights=weights)
    if weights.ndim < 1:
        raise ValueError(f"weights must have shape (..., n), got {tuple(weights.shape)}")
    w = xp.astype(weights, wide_dtype(xp, weights))
    check_values("weights", w, lambda x: x >= 0, "at least 0", xp)
    total = xp.sum(w, axis=-1)
    check_values(
        "the sum of each row of weights", total, lambda x: (abs(x - 1) < 1e-2) | (x == 0), "1, or 0", xp
    )
    return 0.0 - xp.sum(w * xp.log(xp.where(w > 0, w, xp.ones_like(w))), axis=-1)


def logn_scale(positions: int | ArrayLike, trained_length: int, *, dtype: DType | None = None) -> Array:
    """A factor on the scores of a query that keeps attention from spreading as the number of keys grows.

    max(1, ln(t + 1) / ln L) for a causal query at t, which has t + 1 keys.

    A key that scores ln n more than n − 1 others has the weight n/(2n − 1), more than a half for every n.
    Without the factor, a lead of ln L gives the weight L/(L + n − 1), which falls with n. A smaller lead
    loses weight with the factor too, but more slowly.

    Multiply queries by it, `q * logn_scale(n, L)[:, None]`, before or after their rotation. Without a causal
    mask each query of n tokens has n keys: pass the position n − 1 for all.

    Args:
        positions: an integer n for 0, 1, ..., n − 1, or an array of positions of any shape, at least 0.
        trained_length: L, in tokens, at least 2.
        dtype: floating dtype of the result, computed in float64 and rounded once. The library's default if
            None. With an integer n a torch dtype gives a torch tensor on the CPU.

    Returns:
        Array (n,) or positions.shape, of the library and on the device of positions.

    >>> logn_scale([0, 31, 255, 1023], 32)
    array([1. , 1. , 1.6, 2. ])

    Source: Chiang and Cholak, Overcoming a Theoretical Limitation of Self-Attention (2022), section 5.3,
    https://arxiv.org/abs/2202.12172. With the trained length as the base of the logarithm, and 1 up to it:
    Bai et al., Qwen Technical Report (2023), section 2.4, https://arxiv.org/abs/2309.16609.
    """
    xp, t = positions_in(positions, dtype)
    trained = integer("trained_length", trained_length, minimum=2)
    check_values("positions", t, lambda x: x >= 0, "at least 0", xp)
    factor = xp.clip(xp.log(t + 1) / math.log(trained), 1.0, None)
    return xp.astype(factor, check_float_dtype(dtype, xp))


def score_needed(biases: ArrayT, share: float = 0.5) -> ArrayT:
    """The score that a key needs for a given share of the weight, if all other keys score 0 before their bias.

    s(u) = ln(p / (1 − p)) + ln Σ_{v ≠ u} e^b(v) − b(u).

    Args:
        biases: b, shape (..., n), n ≥ 2, floating, finite: the terms added to the scores of the keys of a
            query, such as the last row of `posenc.alibi_bias`. Zeros without a bias.
        share: p, between 0 and 1.

    Returns:
        Array (..., n) of the library of biases, in float32 at least: the score that each key needs.

    Raises:
        TypeError: biases are not floating.
        ValueError: there are fewer than two keys, a bias is not finite, or share is not between 0 and 1.

    >>> score_needed(np.zeros(101))[0].round(4).item()  # one among a hundred others: ln 100
    4.6052
    >>> score_needed(-0.5 * np.arange(100.0, -1, -1))[0].round(4).item()  # 100 back, slope 1/2
    50.9328

    Source: the softmax of Vaswani et al. (2017), section 3.2.1, solved for one score.
    """
    xp = floating(biases=biases)
    if biases.ndim < 1 or biases.shape[-1] < 2:
        raise ValueError(f"biases must have shape (..., n) with n >= 2, got {tuple(biases.shape)}")
    p = number("share", share, above=0)
    if p >= 1:
        raise ValueError(f"share must be below 1, got {share!r}")
    b = xp.astype(biases, wide_dtype(xp, biases))
    check_finite("biases", b, xp)
    # The largest but one keeps the sum of the others in range where a single key outweighs all of them.
    top = xp.max(b, axis=-1, keepdims=True)
    weights = xp.exp(b - top)
    # Sums of what stands before a key and after it: the total less the key would lose the small ones.
    after = xp.flip(_before(xp.flip(weights, axis=-1), xp), axis=-1)
    others = top + xp.log(_before(weights, xp) + after)
    result: ArrayT = math.log(p / (1 - p)) + others - b
    return result


def _before(x: Array, xp: Namespace) -> Array:
    """For each element of the last axis the sum of those before it."""
    return xp.concat([xp.zeros_like(x[..., :1]), xp.cumulative_sum(x[..., :-1], axis=-1)], axis=-1)


# --- Rows of a table


def row_visits(num_rows: int, length: int, *, max_start: int = 0) -> np.ndarray:
    """The share of training texts that use, and so train, each row of a table.

    The share of the starts o = 0, 1, ..., max_start, all equally likely, with o ≤ r < o + L.

    Args:
        num_rows: rows of the table, at least 1.
        length: L, the tokens of a training text, at least 1.
        max_start: the largest position at which a training text starts. 0 if all start at 0.

    Returns:
        float64 NumPy array (num_rows,). Rows with 0 keep their initial numbers.

    Raises:
        ValueError: a text that would reach beyond the last row.

    >>> row_visits(8, 3)
    array([1., 1., 1., 0., 0., 0., 0., 0.])
    >>> row_visits(8, 3, max_start=5).round(2)
    array([0.17, 0.33, 0.5 , 0.5 , 0.5 , 0.5 , 0.33, 0.17])

    Source: Kiyono et al., SHAPE (2021), section 3, for the random start. https://arxiv.org/abs/2109.05644
    """
    rows = integer("num_rows", num_rows, minimum=1)
    length = integer("length", length, minimum=1)
    last = integer("max_start", max_start, minimum=0)
    if last + length > rows:
        raise ValueError(
            f"max_start must be at most num_rows - length = {rows - length}, so that a text ends within the "
            f"table, got {last}"
        )
    r = np.arange(rows)
    starts = np.minimum(r, last) - np.maximum(r - length + 1, 0) + 1
    return np.clip(starts, 0, None) / (last + 1)


def _frequencies(name: str, frequencies: Array) -> tuple[Namespace, Array]:
    """The library of frequencies, and the frequencies in float64."""
    xp, omega = as_numbers(name, frequencies)
    if omega.ndim != 1 or not omega.shape[0]:
        raise ValueError(f"{name} must have shape (pairs,), got {tuple(omega.shape)}")
    check_values(name, omega, lambda x: x >= 0, "at least 0", xp)
    return xp, omega
