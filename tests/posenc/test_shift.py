"""Relative position in the absolute code: the shift, the kernel, aliases, scores of positions alone."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import shift_matrix, sinusoidal_encoding, sinusoidal_frequencies
from posenc.naive import argmax_positions
from posenc.shift import (
    alias_offsets,
    offset_head,
    offset_share,
    positional_scores,
    relative_kernel,
    sine_only_encoding,
    split_block,
    toeplitz_spread,
)
from posenc.sinusoidal import code_distance
from tests.posenc.refusals import refused

even_dims = st.integers(1, 32).map(lambda half: 2 * half)
bases = st.floats(1.001, 1e8)
places = st.floats(-1e4, 1e4)
blocks = st.lists(st.floats(-10, 10), min_size=4, max_size=4).map(lambda x: np.reshape(x, (2, 2)))


def code(t: float, dim: int, base: float = 10000.0) -> np.ndarray:
    return sinusoidal_encoding([t], dim, base=base)[0]


# --- the shift


@given(a=places, b=places, dim=even_dims, base=bases)
def test_one_matrix_shifts_every_code_and_is_a_rotation(a: float, b: float, dim: int, base: float) -> None:
    m_a, m_b, m_ab = (shift_matrix(k, dim, base=base) for k in (a, b, a + b))
    np.testing.assert_allclose(m_b @ code(a, dim, base), code(a + b, dim, base), atol=1e-10)
    np.testing.assert_allclose(m_a @ m_b, m_ab, atol=1e-10)
    np.testing.assert_array_equal(m_a.T, shift_matrix(-a, dim, base=base))
    np.testing.assert_allclose(m_a @ m_a.T, np.eye(dim), atol=1e-13)
    assert np.linalg.det(m_a) == pytest.approx(1)


def test_a_number_is_an_offset_and_not_a_count() -> None:
    for three in (3, 3.0, np.int64(3), np.array(3)):
        np.testing.assert_array_equal(shift_matrix(three, 4), shift_matrix(np.array([3]), 4)[0])
    assert shift_matrix(3, 4, dtype=torch.bfloat16).dtype == torch.bfloat16


def test_shift_by_zero_is_the_identity_without_minus_zeros() -> None:
    m = shift_matrix(0, 6)
    np.testing.assert_array_equal(m, np.eye(6))
    assert not np.signbit(m).any()


# --- sines alone


@given(t=st.lists(places, max_size=4), dim=st.integers(1, 33), base=bases)
def test_each_column_has_a_frequency_of_its_own(t: list[float], dim: int, base: float) -> None:
    positions = np.array(t, dtype=float)
    angles = positions[:, None] * base ** (-np.arange(dim) / dim)
    np.testing.assert_allclose(sine_only_encoding(positions, dim, base=base), np.sin(angles), atol=1e-10)


# --- the kernel and aliases


@given(t=places, k=places, dim=even_dims, base=bases)
def test_kernel_is_the_dot_product_wherever_the_pair_stands(
    t: float, k: float, dim: int, base: float
) -> None:
    kernel, back, at_rest = relative_kernel([k, -k, 0], dim, base=base)
    assert code(t, dim, base) @ code(t + k, dim, base) == pytest.approx(kernel, abs=1e-9)
    assert kernel == pytest.approx(np.cos(sinusoidal_frequencies(dim, base) * k).sum(), abs=1e-9)
    assert back == kernel
    assert at_rest == dim / 2
    assert abs(kernel) <= dim / 2 * (1 + 1e-15)


@given(n=st.integers(2, 3000), dim=even_dims, base=bases, tolerance=st.floats(1e-3, 10))
def test_aliases_are_the_offsets_within_the_tolerance(
    n: int, dim: int, base: float, tolerance: float
) -> None:
    found = alias_offsets(n, dim=dim, tolerance=tolerance, base=base)
    distance = code_distance(n, dim, base=base)
    assert found.tolist() == [k for k in range(1, n) if distance[k] < tolerance]
    nearer = [k for k in range(1, n) if distance[k] < distance[1]]
    assert alias_offsets(n, dim=dim, base=base).tolist() == nearer


# --- scores of positions alone


@given(
    n=st.integers(1, 12),
    start=st.integers(-1000, 1000),
    coefficients=st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=1, max_size=6),
)
def test_blocks_of_rotation_and_factor_keep_invariance(
    n: int, start: int, coefficients: list[tuple[float, float]]
) -> None:
    """W_Q W_Kᵀ of blocks aI + bJ: a function of the offset, for every t."""
    dim = 2 * len(coefficients)
    form = np.zeros((dim, dim))
    for i, (a, b) in enumerate(coefficients):
        form[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[a, b], [-b, a]]
    codes = sinusoidal_encoding(np.arange(start, start + n), dim)
    assert toeplitz_spread(positional_scores(codes, np.eye(dim), form.T)) < 1e-10


@given(entry=st.tuples(st.integers(0, 5), st.integers(0, 5)))
def test_any_other_entry_breaks_invariance(entry: tuple[int, int]) -> None:
    form = np.eye(6)
    form[entry] += 1
    scores = positional_scores(sinusoidal_encoding(200, 6), np.eye(6), form.T)
    assert toeplitz_spread(scores) > 0.1


def test_scores_are_those_of_column_vectors() -> None:
    codes = sinusoidal_encoding(7, 6)
    big_w_query, big_w_key = np.random.default_rng(1).normal(size=(2, 3, 6))
    scores = positional_scores(codes, big_w_query.T, big_w_key.T)
    for t, u in np.ndindex(7, 7):
        assert scores[t, u] == pytest.approx(codes[t] @ big_w_query.T @ big_w_key @ codes[u])
    np.testing.assert_array_equal(argmax_positions(codes, big_w_query.T, big_w_key.T), scores.argmax(axis=-1))


def test_low_precision_scores_are_made_in_float32() -> None:
    codes, eye = sinusoidal_encoding(50, 8, dtype=torch.bfloat16), torch.eye(8, dtype=torch.bfloat16)
    expected = codes.float() @ codes.float().T
    torch.testing.assert_close(positional_scores(codes, eye, eye), expected, rtol=0, atol=0)


@given(block=blocks, t=places, u=places, base=bases)
def test_a_block_is_a_part_of_t_minus_u_and_one_of_t_plus_u(
    block: np.ndarray, t: float, u: float, base: float
) -> None:
    difference, total = split_block(block)
    np.testing.assert_allclose(difference + total, block, atol=1e-12)
    (p, q), (r, s) = block
    v_t, v_u = code(t, 2, base), code(u, 2, base)
    of_difference = (s + p) / 2 * math.cos(t - u) + (q - r) / 2 * math.sin(t - u)
    of_sum = (s - p) / 2 * math.cos(t + u) + (q + r) / 2 * math.sin(t + u)
    assert v_t @ difference @ v_u == pytest.approx(of_difference, abs=1e-9)
    assert v_t @ total @ v_u == pytest.approx(of_sum, abs=1e-9)
    m = shift_matrix(t, 2)  # every shift commutes with the one, and turns the other back
    np.testing.assert_allclose(m @ difference, difference @ m, atol=1e-12)
    np.testing.assert_allclose(m @ total, total @ m.T, atol=1e-12)


def test_split_of_many_blocks() -> None:
    many = np.random.default_rng(0).normal(size=(3, 5, 2, 2))
    for part, of_one in zip(split_block(many), split_block(many[2, 4]), strict=True):
        np.testing.assert_array_equal(part[2, 4], of_one)
    assert not np.signbit(split_block(np.eye(2))[0]).any()


# --- how much of a matrix is Toeplitz


@given(n=st.integers(1, 7), m=st.integers(1, 7), seed=st.integers(0, 1000))
def test_toeplitz_measures_against_their_definition(n: int, m: int, seed: int) -> None:
    scores = np.random.default_rng(seed).normal(size=(n, m))
    diagonals = [scores.diagonal(k) for k in range(1 - n, m)]
    assert toeplitz_spread(scores) == pytest.approx(max(d.max() - d.min() for d in diagonals))
    if n * m > 1:
        left = sum(((d - d.mean()) ** 2).sum() for d in diagonals)
        share = 1 - left / ((scores - scores.mean()) ** 2).sum()
        assert offset_share(scores) == pytest.approx(share)


def test_toeplitz_measures_of_extremes() -> None:
    t = np.arange(6.0)
    assert toeplitz_spread(np.cos(t[:, None] - t)) < 1e-15
    assert offset_share(np.cos(t[:, None] - t)) == pytest.approx(1)
    assert math.isnan(offset_share(np.ones((3, 3))))
    assert math.isnan(toeplitz_spread(np.array([[0.0, 1.0], [math.nan, 0.0]])))
    for measure in (toeplitz_spread, offset_share):
        assert measure(np.ones((2, 3, 4, 4))).shape == (2, 3)


# --- the head that looks k ahead


@given(k=st.integers(-10, 10), start=st.integers(0, 4000), gain=st.floats(0.1, 100))
def test_offset_head_finds_its_key_wherever_it_stands(k: int, start: int, gain: float) -> None:
    codes = sinusoidal_encoding(np.arange(start, start + 31), 64)
    w_query, w_key = offset_head(np.array([k, 0]), 64, gain)
    assert argmax_positions(codes, w_query, w_key)[:, 15].tolist() == [15 + k, 15]


# --- errors: what all codes refuse is in test_arguments

T, X = np.array([[0, 1], [7, 30]]), np.ones((4, 4))
SWAPPABLE: Any = alias_offsets


test_bad_arguments = refused([
    (lambda: SWAPPABLE(4, 5000), TypeError, "positional argument"),
    (lambda: positional_scores(X, X[:3], X[:3]), ValueError, r"w_query must have shape \(\.\.\., 4, d_h"),
    (lambda: positional_scores(X, X, X[0]), ValueError, r"w_key must have shape \(\.\.\., 4, d_head\)"),
    (lambda: positional_scores(X, X, X[:, :2]), ValueError, r"w_query \(4, 4\) and w_key \(4, 2\) must have"),
    (lambda: positional_scores(X[0], X, X), ValueError, r"encoding must have shape \(n, dim\)"),
    (lambda: positional_scores(X[None], X, X), ValueError, r"encoding must have shape \(n, dim\)"),
    (lambda: positional_scores(X[:0], X, X), ValueError, r"encoding must have .* n >= 1, got \(0, 4\)"),
    (lambda: positional_scores(X, X, X.astype("f")), TypeError, "w_key must have the dtype of encoding"),
    (lambda: positional_scores(X, torch.ones(4, 4), X), TypeError, "must be of the library of"),
    (lambda: split_block(np.eye(3)), ValueError, r"block must have shape \(\.\.\., 2, 2\), got \(3, 3\)"),
    (lambda: toeplitz_spread(X[0]), ValueError, r"scores must have shape \(\.\.\., n, m\)"),
    (lambda: toeplitz_spread(X[:0]), ValueError, r"scores must have shape .* got \(0, 4\)"),
])  # fmt: skip
