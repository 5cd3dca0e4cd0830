"""Relative position in the absolute code: the shift, the kernel, aliases, scores of positions alone."""

from __future__ import annotations

import math
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import dot_product_attention, shift_matrix, sinusoidal_encoding, sinusoidal_frequencies
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

even_dims = st.integers(1, 32).map(lambda half: 2 * half)
bases = st.floats(1.001, 1e8)
places = st.floats(-1e4, 1e4)
blocks = st.lists(st.floats(-10, 10), min_size=4, max_size=4).map(lambda x: np.reshape(x, (2, 2)))


def code(t: float, dim: int, base: float = 10000.0) -> np.ndarray:
    return sinusoidal_encoding([t], dim, base=base)[0]


# --- the shift


@given(t=places, k=places, dim=even_dims, base=bases)
def test_one_matrix_shifts_every_code(t: float, k: float, dim: int, base: float) -> None:
    shifted = shift_matrix(k, dim, base=base) @ code(t, dim, base)
    np.testing.assert_allclose(shifted, code(t + k, dim, base), atol=1e-10)


@given(a=places, b=places, dim=even_dims, base=bases)
def test_shifts_add_up_and_go_back(a: float, b: float, dim: int, base: float) -> None:
    m_a, m_b, m_ab = (shift_matrix(k, dim, base=base) for k in (a, b, a + b))
    np.testing.assert_allclose(m_a @ m_b, m_ab, atol=1e-10)
    np.testing.assert_array_equal(m_a.T, shift_matrix(-a, dim, base=base))


@given(k=places, dim=even_dims, base=bases)
def test_a_shift_is_a_rotation(k: float, dim: int, base: float) -> None:
    m = shift_matrix(k, dim, base=base)
    np.testing.assert_allclose(m @ m.T, np.eye(dim), atol=1e-13)
    assert np.linalg.det(m) == pytest.approx(1)


def test_orientation_of_the_blocks() -> None:
    """[[c, s], [−s, c]] on columns (sin, cos): clockwise, from the top to the right."""
    quarter = math.pi / 2
    np.testing.assert_allclose(shift_matrix(quarter, 2), [[0, 1], [-1, 0]], atol=1e-15)
    np.testing.assert_allclose(shift_matrix(quarter, 2) @ [0, 1], [1, 0], atol=1e-15)
    # The same turn, read as (cos, sin), is counter-clockwise.
    np.testing.assert_allclose(shift_matrix(quarter, 2)[::-1, ::-1] @ [1, 0], [0, 1], atol=1e-15)


def test_shift_by_hand() -> None:
    block = shift_matrix(5, 2)
    np.testing.assert_array_equal(block.round(4), [[0.2837, -0.9589], [0.9589, 0.2837]])
    np.testing.assert_allclose(block @ [math.sin(7), math.cos(7)], [math.sin(12), math.cos(12)])


@pytest.mark.parametrize("dim", [4, 64, 512])
def test_shift_up_to_position_4999(dim: int) -> None:
    codes = sinusoidal_encoding(5000, dim)
    error = np.abs(codes[:-7] @ shift_matrix(7, dim).T - codes[7:]).max()
    assert error < 2e-12


def test_a_stack_of_shifts() -> None:
    k = np.array([[0, 1, -2], [0.5, 100, 7]])
    stack = shift_matrix(k, 6)
    assert stack.shape == (2, 3, 6, 6)
    for index in np.ndindex(k.shape):
        np.testing.assert_array_equal(stack[index], shift_matrix(float(k[index]), 6))
    assert shift_matrix(np.zeros((0,)), 6).shape == (0, 6, 6)


def test_an_integer_is_an_offset_and_not_a_count() -> None:
    np.testing.assert_array_equal(shift_matrix(3, 4), shift_matrix(3.0, 4))
    np.testing.assert_array_equal(shift_matrix(np.int64(3), 4), shift_matrix(np.array(3), 4))
    assert shift_matrix(-3, 4).shape == (4, 4)


def test_shift_by_zero_is_the_identity_without_minus_zeros() -> None:
    m = shift_matrix(0, 6)
    np.testing.assert_array_equal(m, np.eye(6))
    assert not np.signbit(m).any()


def test_dtypes_of_the_shift() -> None:
    exact = shift_matrix(4974.5, 64)
    single = shift_matrix(4974.5, 64, dtype=np.float32)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, exact.astype(np.float32))
    tensor = shift_matrix(3, 4, dtype=torch.bfloat16)
    assert isinstance(tensor, torch.Tensor)
    assert tensor.dtype == torch.bfloat16
    assert shift_matrix(torch.tensor([1, 2]), 4).dtype == torch.get_default_dtype()


# --- sines alone


@given(t=st.lists(places, max_size=4), dim=st.integers(1, 33), base=bases)
def test_each_column_has_a_frequency_of_its_own(t: list[float], dim: int, base: float) -> None:
    positions = np.array(t, dtype=float)
    angles = positions[:, None] * base ** (-np.arange(dim) / dim)
    np.testing.assert_allclose(sine_only_encoding(positions, dim, base=base), np.sin(angles), atol=1e-10)


def test_sines_alone_start_at_zero_and_are_odd() -> None:
    t = np.arange(1, 30)
    assert not sine_only_encoding(1, 8).any()
    np.testing.assert_array_equal(sine_only_encoding(-t, 8), -sine_only_encoding(t, 8))


def residual(codes: np.ndarray, k: int) -> float:
    """Root mean square of what the best linear map from t to t + k leaves."""
    start, end = codes[:-k], codes[k:]
    return float(np.sqrt(np.mean((start @ np.linalg.lstsq(start, end)[0] - end) ** 2)))


@pytest.mark.parametrize(("dim", "k", "left"), [(4, 1, 0.300), (64, 1, 0.161), (64, 20, 0.347)])
def test_no_map_shifts_sines_alone(dim: int, k: int, left: float) -> None:
    assert residual(sine_only_encoding(5000 + k, dim), k) == pytest.approx(left, abs=5e-4)
    assert residual(sinusoidal_encoding(5000 + k, dim), k) < 1e-11


@given(t=places, dim=st.integers(1, 32), base=bases)
def test_two_codes_of_sines_give_the_third(t: float, dim: int, base: float) -> None:
    before, now, after = sine_only_encoding(np.array([t - 1, t, t + 1]), dim, base=base)
    np.testing.assert_allclose(
        after, 2 * np.cos(sinusoidal_frequencies(2 * dim, base)) * now - before, atol=1e-10
    )


def test_the_sums_of_positions_cancel_only_between_sines_and_cosines() -> None:
    sines, cosines = sine_only_encoding(80, 16), sinusoidal_encoding(80, 32)[:, 1::2]
    assert toeplitz_spread(sines @ sines.T) > 1
    assert toeplitz_spread(cosines @ cosines.T) > 1
    together = sines @ sines.T + cosines @ cosines.T
    assert toeplitz_spread(together) < 1e-12
    np.testing.assert_allclose(together[0], relative_kernel(80, 32), atol=1e-12)


# --- the kernel and aliases


@given(t=places, k=places, dim=even_dims, base=bases)
def test_kernel_is_the_dot_product_wherever_the_pair_stands(
    t: float, k: float, dim: int, base: float
) -> None:
    kernel = float(relative_kernel([k], dim, base=base)[0])
    assert code(t, dim, base) @ code(t + k, dim, base) == pytest.approx(kernel, abs=1e-9)
    assert kernel == pytest.approx(np.cos(sinusoidal_frequencies(dim, base) * k).sum(), abs=1e-9)
    assert relative_kernel([-k], dim, base=base)[0] == kernel
    assert abs(kernel) <= dim / 2 * (1 + 1e-15)


@pytest.mark.parametrize(("dim", "first"), [(4, 3), (16, 3), (64, 5), (128, 11), (512, 43)])
def test_kernel_is_not_monotone(dim: int, first: int) -> None:
    kernel = relative_kernel(200, dim)
    assert kernel[0] == dim / 2
    assert np.flatnonzero(np.diff(kernel) > 0)[0] == first


@given(n=st.integers(2, 3000), dim=even_dims, base=bases, tolerance=st.floats(1e-3, 10))
def test_aliases_are_the_offsets_within_the_tolerance(
    n: int, dim: int, base: float, tolerance: float
) -> None:
    found = alias_offsets(n, dim=dim, tolerance=tolerance, base=base)
    distance = code_distance(n, dim, base=base)
    assert found.tolist() == [k for k in range(1, n) if distance[k] < tolerance]
    assert 1 not in alias_offsets(n, dim=dim, base=base)


def test_aliases_of_one_frequency_are_fractions_of_pi() -> None:
    assert alias_offsets(1000, dim=2, tolerance=0.001).tolist() == [710]
    assert alias_offsets(1000, dim=2, tolerance=0.02).tolist() == [44, 333, 377, 666, 710, 754]
    assert alias_offsets(5000, dim=4, tolerance=0.05).tolist() == [1885]


@pytest.mark.parametrize(("dim", "aliases"), [(16, [596274, 615746, 735139]), (64, [])])
def test_wide_codes_have_no_alias_nearby(dim: int, aliases: list[int]) -> None:
    assert alias_offsets(1_000_000, dim=dim).tolist() == aliases


def test_after_the_longest_wavelength_the_code_is_another() -> None:
    after = relative_kernel(np.array([60611]), 512)[0]
    assert float(code_distance(np.array([60611]), 512)[0]) == pytest.approx(23.497, abs=1e-3)
    assert after < 0


# --- scores of positions alone


@given(
    n=st.integers(1, 12),
    half=st.integers(1, 6),
    start=st.integers(-1000, 1000),
    coefficients=st.lists(st.tuples(st.floats(-3, 3), st.floats(-3, 3)), min_size=6, max_size=6),
)
def test_blocks_of_rotation_and_factor_keep_invariance(
    n: int, half: int, start: int, coefficients: list[tuple[float, float]]
) -> None:
    """W_Q W_Kᵀ of blocks aI + bJ: a function of the offset, for every t."""
    dim = 2 * half
    form = np.zeros((dim, dim))
    for i, (a, b) in enumerate(coefficients[:half]):
        form[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[a, b], [-b, a]]
    codes = sinusoidal_encoding(np.arange(start, start + n), dim)
    assert toeplitz_spread(positional_scores(codes, np.eye(dim), form.T)) < 1e-10


@given(entry=st.tuples(st.integers(0, 5), st.integers(0, 5)))
def test_any_other_entry_breaks_invariance(entry: tuple[int, int]) -> None:
    form = np.eye(6)
    form[entry] += 1
    scores = positional_scores(sinusoidal_encoding(200, 6), np.eye(6), form.T)
    assert toeplitz_spread(scores) > 0.1


def test_learned_projections_break_invariance() -> None:
    rng = np.random.default_rng(0)
    codes = sinusoidal_encoding(200, 64)
    w_query, w_key = rng.normal(0, 1 / 8, (2, 20, 64, 64))
    scores = positional_scores(codes, w_query, w_key)
    assert scores.shape == (20, 200, 200)
    assert (toeplitz_spread(scores) > 10).all()
    assert (offset_share(scores) < 0.5).all()


def test_scores_are_those_of_column_vectors() -> None:
    rng = np.random.default_rng(1)
    codes = sinusoidal_encoding(7, 6)
    big_w_query, big_w_key = rng.normal(size=(2, 3, 6))
    scores = positional_scores(codes, big_w_query.T, big_w_key.T)
    for t, u in np.ndindex(7, 7):
        assert scores[t, u] == pytest.approx(codes[t] @ big_w_query.T @ big_w_key @ codes[u])
    np.testing.assert_array_equal(argmax_positions(codes, big_w_query.T, big_w_key.T), scores.argmax(axis=-1))


def test_low_precision_scores_are_made_in_float32() -> None:
    codes = sinusoidal_encoding(50, 8, dtype=torch.bfloat16)
    eye = torch.eye(8, dtype=torch.bfloat16)
    scores = positional_scores(codes, eye, eye)
    assert scores.dtype == torch.float32
    assert torch.equal(scores, codes.float() @ codes.float().T)


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


@given(block=blocks, k=places)
def test_the_part_of_the_difference_commutes_with_every_shift(block: np.ndarray, k: float) -> None:
    difference, total = split_block(block)
    m = shift_matrix(k, 2)
    np.testing.assert_allclose(m @ difference, difference @ m, atol=1e-12)
    np.testing.assert_allclose(m @ total, total @ m.T, atol=1e-12)


def test_split_of_many_blocks() -> None:
    many = np.random.default_rng(0).normal(size=(3, 5, 2, 2))
    difference, total = split_block(many)
    np.testing.assert_allclose(difference + total, many)
    np.testing.assert_array_equal(difference[2, 4], split_block(many[2, 4])[0])
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
    assert toeplitz_spread(np.ones((2, 3, 4, 4))).shape == (2, 3)
    assert offset_share(np.ones((2, 3, 4, 4))).shape == (2, 3)


def test_a_nan_is_not_hidden() -> None:
    scores = np.eye(3)
    scores[1, 2] = math.nan
    assert math.isnan(toeplitz_spread(scores))


# --- the head that looks k ahead


@given(k=st.integers(-10, 10), start=st.integers(0, 4000), gain=st.floats(0.1, 100))
def test_offset_head_finds_its_key_wherever_it_stands(k: int, start: int, gain: float) -> None:
    codes = sinusoidal_encoding(np.arange(start, start + 31), 64)
    w_query, w_key = offset_head(k, 64, gain)
    assert argmax_positions(codes, w_query, w_key)[15] == 15 + k


@pytest.mark.parametrize(("gain", "weight"), [(1, 0.03), (4, 0.35), (16, 0.81), (64, 0.9997)])
def test_gain_decides_the_weight(gain: float, weight: float) -> None:
    codes = sinusoidal_encoding(200, 64)
    w_query, w_key = offset_head(3, 64, gain)
    _, weights = dot_product_attention(codes @ w_query, codes @ w_key, codes)
    assert weights[20, 23] == pytest.approx(weight, abs=5e-3)


def test_a_stack_of_heads() -> None:
    w_query, w_key = offset_head(np.array([-1, 0, 1, 2]), 16, 3.0)
    assert w_query.shape == w_key.shape == (4, 16, 16)
    found = argmax_positions(sinusoidal_encoding(9, 16), w_query, w_key)
    assert found[:, 4].tolist() == [3, 4, 5, 6]


# --- one formula for every array library


def strict(array: Any) -> Any:
    return array_api_strict.asarray(np.asarray(array))


T = np.array([[0, 1], [7, 30]])
X = np.random.default_rng(0).normal(size=(4, 4))
CALLS = {
    "shift_matrix": lambda a: shift_matrix(a(T), 6),
    "sine_only_encoding": lambda a: sine_only_encoding(a(T), 5),
    "relative_kernel": lambda a: relative_kernel(a(T), 6),
    "positional_scores": lambda a: positional_scores(a(X), a(X), a(X.T.copy())),
    "split_block": lambda a: split_block(a(X.reshape(4, 2, 2)))[1],
    "toeplitz_spread": lambda a: toeplitz_spread(a(X)),
    "offset_share": lambda a: offset_share(a(X)),
    "offset_head": lambda a: offset_head(a(T), 6, 2.0)[0],
    "offset_head (key)": lambda a: offset_head(a(T), 6, 2.0)[1],
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_result_stays_in_the_library_and_equals_numpy(name: str, library: str) -> None:
    ours = CALLS[name](strict if library == "array_api_strict" else torch.from_numpy)
    assert type(ours).__module__.startswith(library)
    np.testing.assert_allclose(np.asarray(ours), CALLS[name](np.asarray), atol=1e-5)


# --- errors: each names the argument, the value and what would be right


def wrong(value: Any) -> Any:
    """A value of a type that mypy would not let through."""
    return value


SWAPPABLE: Any = alias_offsets


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: shift_matrix("3", 4), TypeError, "offset must be a number or an array .* got '3'"),
        (lambda: shift_matrix(True, 4), TypeError, "offset must be a number .* got True"),
        (lambda: shift_matrix(None, 4), TypeError, "offset must be .* got None"),
        (lambda: shift_matrix(math.inf, 4), ValueError, "offset must be finite, got inf"),
        (lambda: shift_matrix(3, 5), ValueError, "dim must be even .* got 5"),
        (lambda: shift_matrix(3, 4, base=1), ValueError, "base must be finite and above 1, got 1"),
        (lambda: shift_matrix(3, 4, dtype=np.int64), TypeError, "dtype must be a real floating dtype"),
        (lambda: shift_matrix(torch.ones(2).half(), 4), TypeError, "offset must be .* torch.float16"),
        (lambda: sine_only_encoding(3, 0), ValueError, "dim must be at least 1, got 0"),
        (lambda: relative_kernel(3, 3), ValueError, "dim must be even .* got 3"),
        (lambda: relative_kernel(3, wrong("4")), TypeError, "dim must be an integer, got '4'"),
        (lambda: relative_kernel(-3, 4), ValueError, "offsets must be at least 0, got -3"),
        (lambda: SWAPPABLE(4, 5000), TypeError, "positional argument"),
        (lambda: alias_offsets(1, dim=4), ValueError, "n must be at least 2, got 1"),
        (lambda: alias_offsets(9, dim=4, tolerance=0), ValueError, "tolerance must be .* above 0, got 0"),
        (lambda: alias_offsets(9, dim=4, tolerance=math.nan), ValueError, "tolerance must be finite"),
        (lambda: alias_offsets(9, dim=4, tolerance=wrong("1")), TypeError, "tolerance must be a real number"),
        (lambda: positional_scores(X, X[:3], X[:3]), ValueError, r"w_query must have shape \(\.\.\., 4, d_h"),
        (lambda: positional_scores(X, X, X[:, :2]), ValueError, "must have one shape"),
        (lambda: positional_scores(X[0], X, X), ValueError, r"encoding must have shape \(n, dim\)"),
        (lambda: positional_scores(T, X, X), TypeError, "encoding must be floating, got dtype int64"),
        (lambda: positional_scores(X, torch.ones(4, 4), X), TypeError, "must be of the library of"),
        (lambda: split_block(np.eye(3)), ValueError, r"block must have shape \(\.\.\., 2, 2\), got \(3, 3\)"),
        (lambda: split_block(T), TypeError, "block must be floating, got dtype int64"),
        (lambda: toeplitz_spread(X[0]), ValueError, r"scores must have shape \(\.\.\., n, m\)"),
        (lambda: toeplitz_spread(X[:0]), ValueError, r"scores must have shape .* got \(0, 4\)"),
        (lambda: offset_share(T), TypeError, "scores must be floating, got dtype int64"),
        (lambda: offset_head(3, 64, 0), ValueError, "gain must be finite and above 0, got 0"),
        (lambda: offset_head(3, 64, -1.0), ValueError, "gain must be finite and above 0, got -1.0"),
        (lambda: offset_head(3, 64, math.inf), ValueError, "gain must be finite and above 0, got inf"),
        (lambda: offset_head(3, 64, True), TypeError, "gain must be a real number, got True"),
        (lambda: offset_head(3, 63), ValueError, "dim must be even .* got 63"),
    ],
)  # fmt: skip
def test_bad_arguments(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
