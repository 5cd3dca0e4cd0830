"""Locality, the preference for near keys: a code of Gaussian bumps that is local by design, and measures.

The Gaussian code is a thought experiment, not a published positional encoding. Its attention can be computed in
closed form and shows what locality costs.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from posenc._arrays import Array, ArrayLike, DType, OneArray, is_concrete, namespace, to_device_of, wide_dtype
from posenc._checks import (
    as_numbers,
    as_positions,
    check_float_dtype,
    floating,
    integer,
    number,
    positions_in,
)

__all__ = [
    "LocalityProfile",
    "gaussian_weights",
    "gram_condition",
    "locality_profile",
    "rbf_centers",
    "rbf_encoding",
    "rbf_kernel",
    "total_variation",
]

# --- The code of Gaussian bumps


def rbf_centers(n: int, sigma: float, *, spacing: float = 1.0) -> np.ndarray:
    """Centres of Gaussian bumps for the positions 0..n−1, with margins of 3σ at both ends.

    c_j = −⌈3σ⌉ + j · spacing, up to at least n − 1 + 3σ.

    With these centres the dot products of `posenc.rbf_encoding` equal `posenc.locality.rbf_kernel`: at the
    ends to about 1e-5 of the maximum, further inside as exactly as spacing/σ allows.

    Args:
        n: number of positions, at least 1.
        sigma: width σ of a bump, in positions, finite and above 0.
        spacing: distance Δc of neighbouring centres, above 0 and at most σ.

    Returns:
        float64 NumPy array of centres, ascending.

    Raises:
        ValueError: spacing is above sigma. Some positions would then be near no bump.

    >>> rbf_centers(5, 1.0)
    array([-3., -2., -1.,  0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.])

    Source: defined in this book, locality.md#bumps.
    """
    n = integer("n", n, minimum=1)
    sigma, spacing = number("sigma", sigma, above=0), number("spacing", spacing, above=0)
    if spacing > sigma:
        raise ValueError(
            f"spacing must be at most sigma = {sigma:g}, because a larger one leaves gaps, got {spacing:g}"
        )
    margin = math.ceil(3 * sigma)
    # Rounded down a little: 0.1 · 30 must not miss the 3 that it means.
    steps = math.ceil((n - 1 + 2 * margin) / spacing - 1e-9)
    return -margin + spacing * np.arange(steps + 1, dtype=np.float64)


def rbf_encoding(
    positions: int | ArrayLike, centers: ArrayLike, sigma: float, *, dtype: DType | None = None
) -> Array:
    """A code of Gaussian bumps: the closeness of a position to each centre.

    PE(t, j) = exp(−(t − c_j)² / (2σ²)).

    Args:
        positions: an integer n for 0, 1, ..., n − 1, or an array of integer or real (float32, float64)
            positions of any shape.
        centers: c_j, shape (m,), in positions, such as `posenc.rbf_centers` gives.
        sigma: width σ of a bump, in positions, finite and above 0.
        dtype: floating dtype of the result, computed in float64 and rounded once; the library's default one
            if None. With an integer n a torch dtype gives a torch tensor on the CPU.

    Returns:
        Array (n, m), or positions.shape + (m,), between 0 and 1, of the library and on the device of
        positions.

    Raises:
        TypeError: positions and centers are of different libraries.
        ValueError: centers have not one axis, or sigma is not above 0.

    >>> rbf_encoding(3, [-1, 0, 1, 2, 3], 1.0).round(2)
    array([[0.61, 1.  , 0.61, 0.14, 0.01],
           [0.14, 0.61, 1.  , 0.61, 0.14],
           [0.01, 0.14, 0.61, 1.  , 0.61]])

    Source: defined in this book, locality.md#by-hand.
    """
    sigma = number("sigma", sigma, above=0)
    xp, t = positions_in(positions, dtype)
    centers_xp, c = as_numbers("centers", centers)
    if c.ndim != 1:
        raise ValueError(f"centers must have shape (m,), got {tuple(c.shape)}")
    dtype = check_float_dtype(dtype, xp)
    if centers_xp is not xp:
        if centers_xp is not np:
            raise TypeError(f"centers must be of NumPy or of the library of positions, got {type(centers)}")
        c = to_device_of(c, t, xp)
    return xp.astype(xp.exp(-(((t[..., None] - c) / sigma) ** 2) / 2), dtype)


def rbf_kernel(offsets: int | ArrayLike, sigma: float, *, spacing: float = 1.0) -> Array:
    """Dot product of two codes of Gaussian bumps. With centres everywhere it depends on the offset alone.

    PE(t) · PE(t + k) = σ√π/Δc · exp(−k² / (4σ²)), a Gaussian of width σ√2.

    Exact for dense centres. A spacing Δc causes an error of up to 2·exp(−(πσ/Δc)²) of the maximum: 1e-4 for
    Δc = σ, below the rounding of float64 for Δc ≤ σ/2.

    Args:
        offsets: k, an integer n for 0, 1, ..., n − 1, or an array of offsets of any shape, in positions.
        sigma: width σ of a bump, finite and above 0.
        spacing: distance Δc of the centres, finite and above 0.

    Returns:
        float64 array, (n,) or offsets.shape.

    >>> rbf_kernel(4, 3.0).round(3)
    array([5.317, 5.172, 4.758, 4.141])

    Source: derived in this book, locality.md#by-hand.
    """
    sigma, spacing = number("sigma", sigma, above=0), number("spacing", spacing, above=0)
    xp, k = as_positions(offsets, "offsets")
    return sigma * math.sqrt(math.pi) / spacing * xp.exp(-((k / sigma) ** 2) / 4)


def gram_condition(codes: OneArray) -> float:
    """Condition number of the Gram matrix of codes.

    (largest / smallest singular value of the codes)². When a weight for each position is solved for, an error
    in the dot products can grow by this factor.

    Args:
        codes: shape (n, dim), floating, n ≥ 1 and dim ≥ 1.

    Returns:
        A float of at least 1. Infinity if there are more codes than dimensions. Values from about 1e30 on
        (1e13 in float32) are not exact, because the smallest singular value is then rounding.

    Raises:
        TypeError: codes are not floating.
        ValueError: codes are not of shape (n, dim), or have no row or no column.

    >>> gram_condition(np.eye(3))
    1.0

    Source: a measure of this book, defined in locality.md#condition.
    """
    xp = floating(codes=codes)
    if codes.ndim != 2 or 0 in codes.shape:
        raise ValueError(f"codes must have shape (n, dim) with n, dim >= 1, got {tuple(codes.shape)}")
    if codes.shape[0] > codes.shape[1]:
        return math.inf
    values = xp.linalg.svdvals(xp.astype(codes, wide_dtype(xp, codes)))
    largest, smallest = float(values[0]), float(values[-1])
    return (largest / smallest) ** 2 if smallest > 0 else math.inf


# --- Attention beside a convolution


def gaussian_weights(n: int, std: float) -> np.ndarray:
    """The weights of a Gaussian blur on positions 0..n−1. Each row sums to 1.

    W(t, u) = exp(−(u − t)² / (2 · std²)) / Σ_v exp(−(v − t)² / (2 · std²)).

    Args:
        n: number of positions, at least 1.
        std: standard deviation, in positions, finite and above 0.

    Returns:
        float64 NumPy array (n, n). Rows far from both ends are shifted copies of each other, as in a
        convolution.

    >>> gaussian_weights(3, 1.0).round(3)
    array([[0.574, 0.348, 0.078],
           [0.274, 0.452, 0.274],
           [0.078, 0.348, 0.574]])

    Source: defined in this book, locality.md#blur.
    """
    t = np.arange(integer("n", n, minimum=1))
    std = number("std", std, above=0)
    weights = np.exp(-(((t - t[:, None]) / std) ** 2) / 2)
    return weights / weights.sum(axis=-1, keepdims=True)


def total_variation(first: OneArray, second: OneArray) -> Array:
    """Total variation distance of two distributions: the share of the weight that differs.

    ½ Σ_u |p(u) − q(u)|, between 0 and 1.

    Args:
        first, second: distributions along the last axis, of one shape (..., n) and one library, floating.

    Returns:
        Array (...).

    Raises:
        ValueError: a row with negative numbers, or whose sum is not 1 (to 1e-3). Not checked while torch.compile
            traces.

    >>> total_variation(np.array([0.5, 0.5, 0.0]), np.array([0.5, 0.0, 0.5])).item()
    0.5

    Source: the usual distance of two distributions, in this book locality.md#blur.
    """
    xp = namespace(first=first, second=second)
    floating(first=first)
    floating(second=second)
    for name, array in (("first", first), ("second", second)):
        if array.shape != first.shape or array.ndim < 1:
            raise ValueError(
                f"first and second must have one shape (..., n), got {tuple(first.shape)} and "
                f"{tuple(second.shape)}"
            )
        total = xp.sum(array, axis=-1)
        good = xp.all(xp.abs(total - 1) < 1e-3) & ~xp.any(array < 0)
        if is_concrete(array) and not bool(good):
            raise ValueError(f"{name} must hold distributions: numbers from 0 on whose rows sum to 1")
    return xp.sum(xp.abs(first - second), axis=-1) / 2


# --- How local a score is


class LocalityProfile(NamedTuple):
    """How a score falls with distance, from `locality_profile`.

    Source: a measure of this book, defined in locality.md#two-things.
    """

    nearer_wins: float
    """Share of the pairs of distances in which the nearer one has the higher score."""
    ties: float
    """Share of the pairs with equal scores."""
    first_rise: int | None
    """The distance after which the score rises for the first time, or None if it never does."""


def locality_profile(scores: ArrayLike) -> LocalityProfile:
    """How often the nearer key has the higher score, over all pairs of distances 1..n.

    nearer_wins = P(s(near) > s(far)), for near < far drawn uniformly from the pairs of 1..n.

    At 1 the score falls with every step. At 0.5 without ties the score does not depend on which key is
    nearer. The measure ignores by how much the score falls: a very small slope also gives 1.

    Args:
        scores: shape (n,), n ≥ 2, the scores of the distances 1, 2, ..., n, real and finite.

    Returns:
        `LocalityProfile`: nearer_wins, ties, first_rise.

    Raises:
        ValueError: scores are not one axis of at least two finite numbers.

    >>> locality_profile(-0.5 * np.arange(1, 101))
    LocalityProfile(nearer_wins=1.0, ties=0.0, first_rise=None)
    >>> locality_profile(np.array([5.0, 3.0, 3.0, 4.0])).first_rise
    3

    Source: a measure of this book, defined in locality.md#two-things.
    """
    _, s = as_numbers("scores", scores)
    if s.ndim != 1 or s.shape[0] < 2:
        raise ValueError(f"scores must have shape (n,) with n >= 2, got {tuple(s.shape)}")
    values = np.asarray(s.tolist(), dtype=np.float64)
    wins = ties = 0
    for gap in range(1, len(values)):  # n numbers at a time, not n²
        near, far = values[:-gap], values[gap:]
        wins += int(np.count_nonzero(near > far))
        ties += int(np.count_nonzero(near == far))
    pairs = len(values) * (len(values) - 1) // 2
    rises = np.flatnonzero(np.diff(values) > 0)
    return LocalityProfile(wins / pairs, ties / pairs, int(rises[0]) + 1 if rises.size else None)
