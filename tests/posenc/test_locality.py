"""Gaussian bumps, their kernel and its limits, and measures of locality."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import rbf_encoding
from posenc.locality import (
    gaussian_weights,
    gram_condition,
    locality_profile,
    rbf_centers,
    rbf_kernel,
    total_variation,
)
from tests.posenc.refusals import refused

T = np.arange(101)
OFFSETS = T - T[:, None]


def gram(centers: Any, sigma: float, positions: Any = T) -> np.ndarray:
    codes = rbf_encoding(positions, centers, sigma)
    return codes @ codes.T


# --- Code and kernel


@given(st.integers(1, 60), st.floats(0.3, 8.0), st.floats(0.05, 1.0))
def test_centres_reach_past_both_ends(n: int, sigma: float, share: float) -> None:
    centers = rbf_centers(n, sigma, spacing=share * sigma)
    assert -3 * sigma - 1 < centers[0] <= -3 * sigma
    assert -1e-6 <= centers[-1] - (n - 1 + 3 * sigma) < 1 + share * sigma
    np.testing.assert_allclose(np.diff(centers), share * sigma)
    t = np.array([0.0, n / 3])  # a bump is a Gaussian
    bumps = np.exp(-((t[:, None] - centers) ** 2) / (2 * sigma**2))
    np.testing.assert_allclose(rbf_encoding(t, centers, sigma), bumps, rtol=1e-9, atol=1e-12)


@given(st.floats(1.0, 8.0), st.floats(0.1, 0.5), st.floats(-3.0, 3.0), st.floats(-20.0, 20.0))
def test_the_kernel_is_the_dot_product(sigma: float, share: float, start: float, k: float) -> None:
    spacing = share * sigma
    centers = np.arange(-20 * sigma, 20 + 20 * sigma, spacing)
    first, second = rbf_encoding(np.array([start, start + k]), centers, sigma)
    kernel, height = rbf_kernel([k, 0], sigma, spacing=spacing)
    assert abs(first @ second - kernel) < 1e-13 * height


def test_three_sigma_past_the_ends_are_enough_for_five_digits() -> None:
    error = np.abs(gram(rbf_centers(101, 3.0), 3.0) - rbf_kernel(OFFSETS, 3.0)) / rbf_kernel(1, 3.0)[0]
    assert 1e-6 < error.max() < 1e-5
    assert error[20:-20, 20:-20].max() < 1e-14
    # 0.1 · 30 must not miss the 3 that it means.
    assert len(rbf_centers(5, 0.1, spacing=0.1)) == 61


@pytest.mark.parametrize("spacing", [3.0, 4.0, 6.0])
def test_how_far_off_a_wide_spacing_is(spacing: float) -> None:
    t = np.linspace(0, spacing, 25)
    norms = np.diag(gram(np.arange(-20, 21) * spacing, 3.0, t))
    off = np.abs(norms / rbf_kernel(1, 3.0, spacing=spacing)[0] - 1).max()
    assert off == pytest.approx(2 * math.exp(-((math.pi * 3 / spacing) ** 2)), rel=1e-3)


# --- Attention and convolution


@given(st.integers(1, 40), st.floats(0.2, 10))
def test_gaussian_weights_are_the_kernel_as_distributions(n: int, std: float) -> None:
    kernel = rbf_kernel(OFFSETS[:n, :n], std / math.sqrt(2))
    expected = kernel / kernel.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(gaussian_weights(n, std), expected, atol=1e-14)


distributions = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(lambda p: np.array(p) / sum(p))


@given(distributions, distributions)
def test_total_variation_is_the_most_that_an_event_can_differ(p: np.ndarray, q: np.ndarray) -> None:
    events = [p[list(s)].sum() - q[list(s)].sum() for s in ([0], [1], [2], [3], [0, 1], [0, 2], [0, 3])]
    both_ways = total_variation(np.stack([p, q]), np.stack([q, p]))
    np.testing.assert_allclose(both_ways, [max(np.abs(events))] * 2, atol=1e-12)
    assert float(total_variation(p, q)) == both_ways[0]


# --- Condition


def test_condition_grows_with_the_square_of_sigma() -> None:
    """The eigenvalues of a Gaussian Toeplitz matrix reach from about 2·sqrt(π)σ down to e^(−π²σ²) of that."""
    for sigma in (1.0, 1.5):
        condition = gram_condition(rbf_encoding(101, rbf_centers(101, sigma, spacing=0.5), sigma))
        assert condition == pytest.approx(0.5 * math.exp((math.pi * sigma) ** 2), rel=0.35)
    assert gram_condition(np.ones((3, 2))) == math.inf
    assert gram_condition(np.ones((2, 3))) > 1e20
    assert gram_condition(np.zeros((1, 1))) == math.inf
    assert gram_condition(torch.diag(torch.tensor([1.0, 2.0]))) == pytest.approx(4)


# --- Profile


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=12))
def test_the_profile_counts_pairs(scores: list[int]) -> None:
    pairs = [(a, b) for i, a in enumerate(scores) for b in scores[i + 1 :]]
    wins, ties = sum(a > b for a, b in pairs), sum(a == b for a, b in pairs)
    rises = [j for j in range(1, len(scores)) if scores[j] > scores[j - 1]]
    expected = (wins / len(pairs), ties / len(pairs), rises[0] if rises else None)
    assert locality_profile(np.array(scores)) == locality_profile(torch.tensor(scores)) == expected


# --- Errors

HALF = np.ones(2) / 2


test_errors_name_the_argument = refused([
    (lambda: rbf_centers(5, 1.0, spacing=2.0), ValueError, "spacing must be at most sigma = 1"),
    (lambda: rbf_encoding(5, [[0, 1]], 1.0), ValueError, r"centers must have shape \(m,\), got \(1, 2\)"),
    (lambda: rbf_encoding(5, [math.nan], 1.0), ValueError, "centers must be finite"),
    (lambda: rbf_encoding(5, torch.zeros(2), 1.0), TypeError, "centers must be of NumPy or of the library"),
    (lambda: total_variation(HALF, np.ones(3) / 3), ValueError, "must have one shape"),
    (lambda: total_variation(2 * HALF, 2 * HALF), ValueError, "first must hold distributions"),
    (lambda: total_variation(HALF, np.array([1.5, -0.5])), ValueError, "second must hold"),
    (lambda: gram_condition(np.zeros(3)), ValueError, r"codes must have shape \(n, dim\)"),
    (lambda: gram_condition(np.zeros((0, 3))), ValueError, r"codes must have shape \(n, dim\)"),
    (lambda: locality_profile(np.zeros(1)), ValueError, r"scores must have shape \(n,\) with n >= 2"),
    (lambda: locality_profile([0.0, math.inf]), ValueError, "scores must be finite"),
])  # fmt: skip
