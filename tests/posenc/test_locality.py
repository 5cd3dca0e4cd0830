"""Gaussian bumps, their kernel and its limits, and measures of locality."""

from __future__ import annotations

import math
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import kerple_bias, rbf_encoding
from posenc.locality import (
    gaussian_weights,
    gram_condition,
    locality_profile,
    rbf_centers,
    rbf_kernel,
    total_variation,
)
from posenc.shift import relative_kernel, toeplitz_spread

T = np.arange(101)
OFFSETS = T - T[:, None]


def gram(centers: Any, sigma: float, positions: Any = T) -> np.ndarray:
    codes = rbf_encoding(positions, centers, sigma)
    return codes @ codes.T


# --- Code and kernel


def test_a_bump_is_a_gaussian() -> None:
    codes = rbf_encoding(np.array([0.0, 2.5]), [0, 1], 2.0)
    expected = [[1, math.exp(-1 / 8)], [math.exp(-6.25 / 8), math.exp(-2.25 / 8)]]
    np.testing.assert_allclose(codes, expected)


@given(st.integers(1, 60), st.floats(0.3, 8.0), st.floats(0.05, 1.0))
def test_centres_reach_past_both_ends(n: int, sigma: float, share: float) -> None:
    centers = rbf_centers(n, sigma, spacing=share * sigma)
    assert centers[0] <= -3 * sigma
    assert centers[-1] >= n - 1 + 3 * sigma - 1e-6
    np.testing.assert_allclose(np.diff(centers), share * sigma)


@given(st.floats(1.0, 8.0), st.floats(0.1, 0.5), st.floats(-3.0, 3.0), st.floats(-20.0, 20.0))
def test_the_kernel_is_the_dot_product(sigma: float, share: float, start: float, k: float) -> None:
    spacing = share * sigma
    centers = np.arange(-20 * sigma, 20 + 20 * sigma, spacing)
    first, second = rbf_encoding(np.array([start, start + k]), centers, sigma)
    kernel = rbf_kernel([k], sigma, spacing=spacing)[0]
    height = rbf_kernel(1, sigma, spacing=spacing)[0]
    assert abs(first @ second - kernel) < 1e-13 * height


def test_three_sigma_past_the_ends_are_enough_for_five_digits() -> None:
    error = np.abs(gram(rbf_centers(101, 3.0), 3.0) - rbf_kernel(OFFSETS, 3.0)) / rbf_kernel(1, 3.0)[0]
    assert 1e-6 < error.max() < 1e-5
    assert error[20:-20, 20:-20].max() < 1e-14


@pytest.mark.parametrize("spacing", [3.0, 4.0, 6.0])
def test_how_far_off_a_wide_spacing_is(spacing: float) -> None:
    t = np.linspace(0, spacing, 25)
    centers = np.arange(-20, 21) * spacing
    norms = np.diag(gram(centers, 3.0, t))
    off = np.abs(norms / rbf_kernel(1, 3.0, spacing=spacing)[0] - 1).max()
    assert off == pytest.approx(2 * math.exp(-((math.pi * 3 / spacing) ** 2)), rel=1e-3)


def test_centres_that_stop_at_the_ends_bend_the_first_rows() -> None:
    assert gram(np.arange(101), 3.0).argmax(axis=1)[:5].tolist() == [2, 2, 3, 3, 4]
    assert (gram(rbf_centers(101, 3.0), 3.0).argmax(axis=1) == T).all()
    assert toeplitz_spread(gram(rbf_centers(101, 3.0), 3.0)) < 1e-4


def test_the_result_is_of_the_library_of_the_positions() -> None:
    expected = rbf_encoding(T, [0, 5], 2.0)
    for library in (torch.from_numpy, array_api_strict.asarray):
        codes = rbf_encoding(library(T), [0, 5], 2.0)
        assert type(codes) is type(library(T))
        np.testing.assert_allclose(np.asarray(codes), expected, atol=1e-7)
        kernel = rbf_kernel(library(T), 2.0)
        assert type(kernel) is type(library(T))
        np.testing.assert_allclose(np.asarray(kernel), rbf_kernel(T, 2.0))
    low = rbf_encoding(101, [0, 5], 2.0, dtype=torch.bfloat16)
    assert torch.equal(low, torch.from_numpy(expected).bfloat16())


def test_centres_of_numpy_in_one_graph() -> None:
    centers, t = rbf_centers(5, 1.0), torch.arange(5)
    compiled = torch.compile(lambda t: rbf_encoding(t, centers, 1.0), fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(t), rbf_encoding(t, centers, 1.0))


# --- Attention and convolution


@pytest.mark.parametrize(("scale", "distance"), [(0.0718, 0.651), (1, 0.127), (2, 0.0289), (5, 0.0093)])
def test_softmax_of_the_kernel_is_a_gaussian_when_its_peak_is_high(scale: float, distance: float) -> None:
    logits = scale * rbf_kernel(OFFSETS, 3.0)
    weights = np.exp(logits - logits.max())
    weights /= weights.sum(axis=1, keepdims=True)
    gaussian = gaussian_weights(101, 3 * math.sqrt(2 / logits[0, 0]))
    assert float(total_variation(weights, gaussian)[50]) == pytest.approx(distance, rel=0.01)


def test_softmax_of_the_logarithm_is_the_gaussian_itself() -> None:
    weights = np.exp(np.log(rbf_kernel(OFFSETS, 3.0)))
    weights /= weights.sum(axis=1, keepdims=True)
    assert total_variation(weights, gaussian_weights(101, 3 * math.sqrt(2))).max() < 1e-14


@given(st.integers(1, 40), st.floats(0.2, 10))
def test_gaussian_weights_are_distributions_around_their_row(n: int, std: float) -> None:
    weights = gaussian_weights(n, std)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    assert (weights.argmax(axis=1) == np.arange(n)).all()
    np.testing.assert_allclose(weights, weights[::-1, ::-1])


distributions = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(lambda p: np.array(p) / sum(p))


@given(distributions, distributions, distributions)
def test_total_variation_is_a_distance(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> None:
    assert float(total_variation(p, p)) == 0
    assert float(total_variation(p, q)) == pytest.approx(float(total_variation(q, p)))
    assert float(total_variation(p, r)) <= float(total_variation(p, q) + total_variation(q, r)) + 1e-12
    events = [p[list(s)].sum() - q[list(s)].sum() for s in ([0], [1], [2], [3], [0, 1], [0, 2], [0, 3])]
    assert max(np.abs(events)) == pytest.approx(float(total_variation(p, q)), abs=1e-12)


# --- Condition


def test_condition_grows_with_the_square_of_sigma() -> None:
    """The eigenvalues of a Gaussian Toeplitz matrix reach from about 2·sqrt(π)σ down to e^(−π²σ²) of that."""
    conditions = [
        gram_condition(rbf_encoding(101, rbf_centers(101, s, spacing=0.5), s)) for s in (0.5, 1, 1.5)
    ]
    assert all(
        c == pytest.approx(0.5 * math.exp((math.pi * s) ** 2), rel=0.35)
        for s, c in zip((1, 1.5), conditions[1:], strict=True)
    )
    assert conditions[0] < 10
    assert gram_condition(np.ones((3, 2))) == math.inf
    assert gram_condition(np.ones((2, 3))) > 1e20
    assert gram_condition(torch.diag(torch.tensor([1.0, 2.0]))) == pytest.approx(4)


# --- Profile


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=12))
def test_the_profile_counts_pairs(scores: list[int]) -> None:
    pairs = [(a, b) for i, a in enumerate(scores) for b in scores[i + 1 :]]
    profile = locality_profile(np.array(scores))
    assert profile.nearer_wins == sum(a > b for a, b in pairs) / len(pairs)
    assert profile.ties == sum(a == b for a, b in pairs) / len(pairs)
    rises = [j for j in range(1, len(scores)) if scores[j] > scores[j - 1]]
    assert profile.first_rise == (rises[0] if rises else None)


def test_the_sinusoidal_code_is_local_on_average() -> None:
    shares = [
        round(locality_profile(relative_kernel(np.arange(1, 201), dim)).nearer_wins, 2)
        for dim in (4, 16, 64, 128, 512)
    ]
    assert shares == [0.68, 0.59, 0.79, 0.87, 0.98]
    assert locality_profile(relative_kernel(np.arange(1, 201), 512)).first_rise == 43
    assert locality_profile(torch.from_numpy(kerple_bias(1.0, 1.0, 1, 201)[0, :-1]).flip(0)) == (1, 0, None)


# --- Errors


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: rbf_centers(5, 1.0, spacing=2.0), ValueError, "spacing must be at most sigma = 1"),
        (lambda: rbf_centers(0, 1.0), ValueError, "n must be at least 1"),
        (lambda: rbf_centers(5, 0.0), ValueError, r"sigma must be finite and above 0, got 0\.0"),
        (lambda: rbf_centers(5, "1"), TypeError, "sigma must be a real number, got '1'"),  # type: ignore[arg-type]
        (
            lambda: rbf_encoding(5, 3, 1.0),  # type: ignore[arg-type]
            TypeError,
            "centers must be an array, got 3 of type int",
        ),
        (lambda: rbf_encoding(5, [[0, 1]], 1.0), ValueError, r"centers must have shape \(m,\), got \(1, 2\)"),
        (lambda: rbf_encoding(5, [math.nan], 1.0), ValueError, "centers must be finite"),
        (
            lambda: rbf_encoding(5, torch.zeros(2), 1.0),
            TypeError,
            "centers must be of NumPy or of the library",
        ),
        (lambda: rbf_kernel(5, 1.0, spacing=-1), ValueError, "spacing must be finite and above 0, got -1"),
        (lambda: gaussian_weights(5, math.inf), ValueError, "std must be finite and above 0, got inf"),
        (lambda: total_variation(np.ones(2) / 2, np.ones(3) / 3), ValueError, "must have one shape"),
        (lambda: total_variation(np.ones(2), np.ones(2)), ValueError, "first must hold distributions"),
        (lambda: total_variation(np.ones(2) / 2, np.array([1.5, -0.5])), ValueError, "second must hold"),
        (lambda: total_variation([1.0], [1.0]), TypeError, "first must be an array, got .* of type list"),  # type: ignore[arg-type]
        (lambda: gram_condition(np.zeros(3)), ValueError, r"codes must have shape \(n, dim\)"),
        (lambda: gram_condition(np.eye(2, dtype=int)), TypeError, "codes must be floating"),
        (lambda: locality_profile(5), TypeError, "scores must be an array, got 5 of type int"),  # type: ignore[arg-type]
        (lambda: locality_profile(np.zeros(1)), ValueError, r"scores must have shape \(n,\) with n >= 2"),
        (lambda: locality_profile([0.0, math.inf]), ValueError, "scores must be finite"),
    ],
)
def test_errors_name_the_argument(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
