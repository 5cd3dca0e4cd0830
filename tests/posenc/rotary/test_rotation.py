"""The rotation of queries and keys: what it does to a vector, what scores see, layouts, precision, errors."""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import rotary
from posenc.rotary import apply_rotary, apply_xpos, interleaved_to_half, offset_query, rotary_matrix
from posenc.rotary._turn import Layout
from posenc.shift import shift_matrix
from posenc.sinusoidal import sinusoidal_frequencies, sinusoidal_wavelengths
from tests.posenc.calls import normal
from tests.posenc.refusals import refused

even_dims = st.integers(1, 32).map(lambda half: 2 * half)
layouts = st.sampled_from(["interleaved", "half"])
places = st.integers(-5000, 5000)
seeds = st.integers(0, 2**32 - 1)
both_layouts = pytest.mark.parametrize("layout", ["interleaved", "half"])


def at(x: np.ndarray, t: float, **options: Any) -> np.ndarray:
    """One vector, turned to one position."""
    return apply_rotary(x, [t], **options)[0]


# --- What a rotation is


def test_counter_clockwise() -> None:
    quarter = np.array([math.pi / 2])
    assert at(np.array([1.0, 0.0]), 1, frequencies=quarter).round(12).tolist() == [0, 1]
    assert at(np.array([0.0, 1.0]), 1, frequencies=quarter).round(12).tolist() == [-1, 0]


def test_small_example_by_hand() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0])
    c0, s0, c1, s1 = math.cos(2), math.sin(2), math.cos(0.02), math.sin(0.02)
    expected = [c0 - 2 * s0, s0 + 2 * c0, 3 * c1 - 4 * s1, 3 * s1 + 4 * c1]
    np.testing.assert_allclose(at(x, 2), expected, rtol=1e-15)
    halves = [c0 - 3 * s0, 2 * c1 - 4 * s1, s0 + 3 * c0, 2 * s1 + 4 * c1]
    np.testing.assert_allclose(at(x, 2, layout="half"), halves, rtol=1e-15)


@given(dim=even_dims, t=places, u=places, shift=places, layout=layouts, seed=seeds)
def test_the_score_sees_the_offset_only(
    dim: int, t: int, u: int, shift: int, layout: Layout, seed: int
) -> None:
    q, k = normal(2, dim, seed=seed)
    here = at(q, t, layout=layout) @ at(k, u, layout=layout)
    there = at(q, t + shift, layout=layout) @ at(k, u + shift, layout=layout)
    offset = q @ at(k, u - t, layout=layout)
    tolerance = 1e-11 * float(1 + np.linalg.norm(q) * np.linalg.norm(k))
    assert [there, offset] == pytest.approx([here] * 2, abs=tolerance)


@given(dim=even_dims, layout=layouts, t=places, u=places, seed=seeds)
def test_matrix_form_is_orthogonal_and_minus_t_turns_back(
    dim: int, layout: Layout, t: int, u: int, seed: int
) -> None:
    x = normal(dim, seed=seed)
    r_t, r_u = rotary_matrix([t, u], dim, layout=layout)
    np.testing.assert_allclose(r_t @ x, at(x, t, layout=layout), atol=1e-11)
    np.testing.assert_allclose(r_t.T @ r_u, rotary_matrix(u - t, dim, layout=layout), atol=1e-11)
    np.testing.assert_allclose(r_t.T @ r_t, np.eye(dim), atol=1e-12)
    np.testing.assert_allclose(at(r_t @ x, -t, layout=layout), x, atol=1e-11)
    assert np.linalg.det(r_t) == pytest.approx(1)


def test_it_is_the_shift_of_the_sinusoidal_code_backwards() -> None:
    np.testing.assert_allclose(rotary_matrix(7, 16), shift_matrix(-7, 16), atol=1e-15)


# --- Shapes


def test_rows_heads_batches_and_positions_of_each() -> None:
    x = normal(2, 3, 5, 8)
    once = apply_rotary(x, 5)
    for b, h, t in np.ndindex(2, 3, 5):
        np.testing.assert_allclose(once[b, h, t], at(x[b, h, t], t), atol=1e-14)
    np.testing.assert_array_equal(once, apply_rotary(x, np.arange(5)))
    per_sentence = np.array([[0, 1, 2, 3, 4], [7, 8, 9, 10, 11]])
    each = apply_rotary(x, per_sentence[:, None, :])
    np.testing.assert_allclose(each[1], apply_rotary(x[1], np.arange(7, 12)), atol=1e-14)
    heads_last = apply_rotary(np.moveaxis(x, 1, 2), np.arange(5)[None, :, None])
    np.testing.assert_array_equal(np.moveaxis(heads_last, 2, 1), once)


def test_one_vector_at_many_positions() -> None:
    x = normal(8)
    turned = apply_rotary(x, np.array([[0, 3], [2.5, -1]]))
    assert turned.shape == (2, 2, 8)
    np.testing.assert_allclose(turned[1, 0], at(x, 2.5), atol=1e-15)
    assert apply_rotary(x, []).shape == (0, 8)


@both_layouts
def test_partial_rotation_and_its_scale_leave_the_rest(layout: Layout) -> None:
    x = normal(5, 16)
    turned = apply_rotary(x, 5, rotary_dim=6, layout=layout, scale=2.0)
    np.testing.assert_array_equal(turned[:, 6:], x[:, 6:])
    np.testing.assert_allclose(turned[:, :6], 2 * apply_rotary(x[:, :6], 5, layout=layout), rtol=1e-15)
    assert apply_rotary(normal(9), [0, 1, 2], rotary_dim=4).shape == (3, 9)


def test_frequencies_for_each_head() -> None:
    omega = rotary.head_frequencies([4, 32, 512])
    x = normal(2, 3, 5, 2)
    turned = apply_rotary(x, 5, frequencies=omega)
    unit, widths = np.array([1.0, 0.0]), []
    for h, row in enumerate(omega):
        np.testing.assert_allclose(turned[:, h], apply_rotary(x[:, h], 5, frequencies=row), atol=1e-15)
        scores = apply_rotary(unit, np.arange(600), frequencies=row) @ unit
        widths.append(int(np.argmax(scores < 0.5)))
    assert widths == [1, 6, 86]


@both_layouts
@pytest.mark.parametrize("inference", [False, True])
def test_torch_views_that_no_complex_number_fits(layout: Layout, inference: bool) -> None:
    x = torch.from_numpy(normal(3, 5, 19))
    odd_start, even_start, strided = x[..., 1:17], x[..., :16], x[..., 0:16:2]
    swapped, columns = x.transpose(0, 1)[..., 3:11], x[:, :, :16].mT[..., :4, :4]
    with torch.inference_mode(inference):
        for view in (odd_start, even_start, strided, swapped, columns):
            n = view.shape[-2]
            ours = apply_rotary(view, n, layout=layout)
            np.testing.assert_allclose(ours, apply_rotary(view.numpy(), n, layout=layout), atol=1e-14)


def test_gradients_reach_frequencies() -> None:
    x, omega = torch.ones(3, 4, dtype=torch.float64), torch.tensor([1.0, 0.5], dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda omega: apply_rotary(x, 3, frequencies=omega), omega.requires_grad_()
    )


@pytest.mark.parametrize("position", [10, 4974, 100_000, 1_000_000])
def test_phases_are_right_far_out_in_float32(position: int) -> None:
    turned = apply_rotary(np.tile([1.0, 0.0], 64).astype(np.float32), np.array([position]))[0]
    with mpmath.workdps(40):
        angles = [position * mpmath.mpf(10000) ** (mpmath.mpf(-i) / 64) for i in range(64)]
        exact = [float(wave(angle)) for angle in angles for wave in (mpmath.cos, mpmath.sin)]
    np.testing.assert_allclose(turned, exact, rtol=0, atol=1e-6)


# --- Layouts


@given(dim=st.integers(2, 16).map(lambda n: 2 * n), seed=seeds)
def test_converted_weights_give_the_same_scores_and_unconverted_ones_do_not(dim: int, seed: int) -> None:
    heads, width = 3, 7
    generator = np.random.default_rng(seed)
    w_q, w_k = generator.normal(size=(2, heads * dim, width))
    b_q = generator.normal(size=heads * dim)
    x = generator.normal(size=(6, width))

    def scores(w_q: Any, w_k: Any, b_q: Any, layout: Layout) -> np.ndarray:
        q, k = (np.moveaxis(y.reshape(6, heads, dim), 1, 0) for y in (x @ w_q.T + b_q, x @ w_k.T))
        return apply_rotary(q, 6, layout=layout) @ np.moveaxis(apply_rotary(k, 6, layout=layout), -1, -2)

    right = scores(w_q, w_k, b_q, "interleaved")
    h_q, h_k, h_b = (interleaved_to_half(w, axis=0, head_dim=dim) for w in (w_q, w_k, b_q))
    np.testing.assert_allclose(scores(h_q, h_k, h_b, "half"), right, atol=1e-10)
    assert not np.allclose(scores(w_q, w_k, b_q, "half"), right, atol=1e-2)
    np.testing.assert_array_equal(rotary.half_to_interleaved(h_q, axis=0, head_dim=dim), w_q)


def test_conversion_with_partial_rotation() -> None:
    x = torch.arange(12)
    half = interleaved_to_half(x, head_dim=6, rotary_dim=4)
    assert half.tolist() == [0, 2, 1, 3, 4, 5, 6, 8, 7, 9, 10, 11]
    assert torch.equal(rotary.half_to_interleaved(half, head_dim=6, rotary_dim=4), x)


# --- A query for an offset, periods


@given(offset=st.integers(-40, 40), t=st.integers(40, 1000), seed=seeds)
def test_offset_query_finds_its_key(offset: int, t: int, seed: int) -> None:
    keys = normal(1, 2, 64, seed=seed)
    u = np.arange(t - 40, t + 41)
    for key, query in zip(keys[0], offset_query(keys, offset)[0], strict=True):
        scores = apply_rotary(key, u) @ at(query, t)
        assert u[scores.argmax()] - t == offset
        assert scores.max() == pytest.approx(key @ key)


@given(period=st.integers(2, 40), seed=seeds)
def test_find_period_in_noise(period: int, seed: int) -> None:
    n = np.arange(400)
    x = np.cos(2 * np.pi * n / period + 1) + 0.3 * normal(400, seed=seed)
    assert abs(rotary.find_period(x) - period) <= (1 if period > 25 else 0)


def test_find_period_is_caught_by_harmonics() -> None:
    n = np.arange(240)
    x = np.cos(2 * np.pi * n / 12) + 2 * np.cos(2 * np.pi * n / 6)
    assert rotary.find_period(x) == 6
    assert rotary.find_period(x, min_period=7) == 12


# --- xPos


@pytest.mark.parametrize("center", [0.0, 100.0])
def test_xpos_scores_fade_with_distance_and_see_the_offset_only(center: float) -> None:
    x = np.ones((4, 8))
    q, k = apply_xpos(x, x, np.array([0, 5, 100, 105]), center=center)
    scores = q @ k.T
    zeta = (np.arange(4) / 4 + 0.4) / 1.4
    expected = 2 * zeta ** (5 / 512) @ np.cos(5 * sinusoidal_frequencies(8))
    np.testing.assert_allclose([scores[1, 0], scores[3, 2]], expected)


def test_xpos_with_a_huge_base_is_plain_rotation() -> None:
    x, y = normal(2, 6, 8)
    q, k = apply_xpos(x, y, 6, scale_base=1e15, layout="half")
    np.testing.assert_allclose(q, apply_rotary(x, 6, layout="half"), atol=1e-12)
    np.testing.assert_allclose(k, apply_rotary(y, 6, layout="half"), atol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "reach"), [(torch.float16, 3966), (torch.bfloat16, 35694), (torch.float32, 35694)]
)
def test_xpos_ends_where_its_factors_leave_the_dtype(dtype: torch.dtype, reach: int) -> None:
    x = torch.ones(1, 2, dtype=dtype)
    for center in (0.0, -1000.0):
        q, k = apply_xpos(x, x, torch.tensor([center + reach]), center=center)
        assert (q @ k.T).item() == pytest.approx(2, rel=0.02)
        with pytest.raises(ValueError, match=f"positions must be within {reach} positions of the center"):
            apply_xpos(x, x, torch.tensor([center + reach + 1]), center=center)
    with pytest.raises(ValueError, match="key times its factors must be finite, so far from the center 0"):
        apply_xpos(x, 100 * x, torch.tensor([reach]))
    with pytest.raises(ValueError, match=r"positions must be within .* got 50000.0"):
        apply_xpos(x, x, torch.tensor([50_000]))
    assert apply_xpos(x.double(), x.double(), torch.tensor([50_000]))[1].isfinite().all()


# --- Errors


@pytest.mark.parametrize("n", [5, np.arange(5), [0, 1, 2, 3, 4], torch.arange(5)], ids=str)
def test_wavelengths_are_no_frequencies(n: Any) -> None:
    x = torch.ones(5, 64) if isinstance(n, torch.Tensor) else np.ones((5, 64))
    with pytest.raises(ValueError, match=r"frequencies must be radians per position.* got 6.28"):
        apply_rotary(x, n, frequencies=sinusoidal_wavelengths(64))
    # Between 0 and 1 there is no whole position but the ends, and fast turns tell points apart.
    assert apply_rotary(x, np.linspace(0, 1, 5), frequencies=sinusoidal_wavelengths(64)).shape == x.shape
    assert apply_rotary(x, 5, frequencies=np.zeros(32)).shape == x.shape


X = np.ones((2, 3, 4))
test_errors_name_the_argument = refused([
    (lambda: apply_rotary(np.ones((3, 5)), 3), ValueError, "the width of x must be even"),
    (lambda: apply_rotary(np.ones(4), 1), TypeError, r"\[1\] turns it to one position, np.arange\(1\) to the first 1"),
    (lambda: apply_rotary(X, 4), ValueError, r"positions must have shape \(3,\) or 2 axes .* got \(4,\)"),
    (lambda: apply_rotary(np.ones((3, 4)), np.array([7])), ValueError, r"positions must have shape \(3,\) for"),
    (lambda: apply_rotary(X, np.zeros((4, 3))), ValueError, "positions must have shape"),
    (lambda: apply_rotary(X, 3, rotary_dim=6), ValueError, "rotary_dim must be at most the width of x, 4"),
    (lambda: apply_rotary(X, 3, frequencies=[1.0]), ValueError, r"frequencies must have shape \(2,\) or"),
    (lambda: apply_rotary(X, 3, frequencies=np.ones((3, 2))), ValueError, "frequencies of 3 heads need x"),
    (lambda: apply_rotary(X, 3, frequencies=[1, 1], base=500.0), ValueError, "base must be left out"),
    (lambda: apply_rotary(X, torch.arange(3)), TypeError, "positions must be of NumPy or of the library of x"),
    (lambda: rotary_matrix(1, 4, frequencies=np.ones((3, 2))), ValueError, "frequencies must have one"),
    (lambda: apply_xpos(X, X[:1], 3), ValueError, "key must have the shape of query"),
    (lambda: rotary.head_frequencies([4, 0]), ValueError, "wavelengths must be above 0"),
    (lambda: rotary.head_frequencies(4), ValueError, "wavelengths must have shape"),  # type: ignore[arg-type]
    (lambda: rotary.find_period(np.ones(9)), ValueError, "series must not be constant"),
    (lambda: rotary.find_period([1, 2]), ValueError, "series must have shape"),
    (lambda: rotary.find_period(np.arange(9), max_period=5), ValueError, r"periods must lie in 2\.\.4"),
    (lambda: interleaved_to_half(np.ones(8), head_dim=3), ValueError, "head_dim must divide .* 8, got 3"),
    (lambda: interleaved_to_half(np.ones(8), axis=1), ValueError, r"axis must lie in -1\.\.0, got 1"),
    (lambda: rotary.half_to_interleaved(np.ones(8), rotary_dim=10), ValueError, "rotary_dim must be at most"),
])  # fmt: skip
