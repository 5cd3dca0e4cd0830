"""The sinusoidal encoding: the formula, its precision, its geometry, its errors."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import sinusoidal_encoding, sinusoidal_frequencies, sinusoidal_wavelengths
from posenc.sinusoidal import code_distance, decode_position

even_dims = st.integers(1, 64).map(lambda half: 2 * half)
bases = st.floats(1.001, 1e8)


def one_rounding(reference: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
    """Half a unit in the last place of `dtype` at each value, plus the float64 angle's own error."""
    return np.spacing(np.abs(reference).astype(dtype)).astype(np.float64) / 2 + 1e-10


# --- frequencies and wavelengths


@given(dim=even_dims, base=bases)
def test_frequencies_fall_geometrically_from_one(dim: int, base: float) -> None:
    omega = sinusoidal_frequencies(dim, base)
    assert omega.shape == (dim // 2,)
    assert omega[0] == 1.0
    np.testing.assert_allclose(omega[1:] / omega[:-1], base ** (-2 / dim), rtol=1e-12)


@given(dim=even_dims, base=bases)
def test_exp_log_recipe_is_the_same_formula(dim: int, base: float) -> None:
    recipe = np.exp(np.arange(0, dim, 2) * (-math.log(base) / dim))
    np.testing.assert_allclose(sinusoidal_frequencies(dim, base), recipe, rtol=1e-13)


@given(dim=even_dims, base=bases)
def test_wavelengths_start_at_two_pi_and_stay_below_the_limit(dim: int, base: float) -> None:
    lengths = sinusoidal_wavelengths(dim, base)
    assert lengths[0] == 2 * math.pi
    assert lengths[-1] < 2 * math.pi * base
    np.testing.assert_allclose(lengths * sinusoidal_frequencies(dim, base), 2 * math.pi, rtol=1e-15)


def test_longest_wavelength_is_not_the_limit() -> None:
    assert sinusoidal_wavelengths(512)[-1] == pytest.approx(60611.5, abs=0.05)


# --- the encoding


def test_smallest_worked_example() -> None:
    expected = [[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 1.0000], [0.9093, -0.4161, 0.0200, 0.9998]]
    np.testing.assert_array_equal(sinusoidal_encoding(3, 4).round(4), expected)


@given(t=st.lists(st.floats(-1e6, 1e6), max_size=5), dim=even_dims, base=bases)
def test_columns_are_sine_and_cosine_of_each_pair(t: list[float], dim: int, base: float) -> None:
    codes = sinusoidal_encoding(np.array(t, dtype=float), dim, base=base)
    angles = np.array(t, dtype=float)[:, None] * sinusoidal_frequencies(dim, base)
    np.testing.assert_array_equal(codes[:, 0::2], np.sin(angles))
    np.testing.assert_array_equal(codes[:, 1::2], np.cos(angles))


@given(n=st.integers(0, 700), dim=even_dims, base=bases)
def test_table_equals_the_formula_position_by_position(n: int, dim: int, base: float) -> None:
    table = sinusoidal_encoding(n, dim, base=base)
    assert table.shape == (n, dim)
    np.testing.assert_allclose(table, sinusoidal_encoding(np.arange(n), dim, base=base), atol=1e-12)


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_float32_table_is_float64_rounded_once_up_to_131072(library: str) -> None:
    dtype = np.float32 if library == "numpy" else torch.float32
    table = np.asarray(sinusoidal_encoding(131072, 32, dtype=dtype))
    assert table.dtype == np.float32
    reference = sinusoidal_encoding(np.arange(131072), 32)
    assert (np.abs(table - reference) <= one_rounding(reference, np.float32)).all()


@pytest.mark.parametrize("t", [1, 4974, 99_999, 131_071])
def test_against_fifty_digits(t: int) -> None:
    dim = 64
    with mpmath.workdps(50):
        angles = [t * mpmath.power(10000, mpmath.mpf(-2 * i) / dim) for i in range(dim // 2)]
        exact = np.array([float(f(a)) for a in angles for f in (mpmath.sin, mpmath.cos)])
    code = sinusoidal_encoding(np.array([t]), dim, dtype=np.float32)[0]
    assert (np.abs(code - exact) <= one_rounding(exact, np.float32)).all()


def test_bfloat16_is_rounded_once_and_keeps_positions_apart() -> None:
    reference = sinusoidal_encoding(2000, 64)
    codes = sinusoidal_encoding(2000, 64, dtype=torch.bfloat16).double().numpy()
    # torch itself goes from float64 to bfloat16 by way of float32: hence the last term.
    assert np.abs(codes - reference).max() <= 2**-9 + 2**-25
    assert len(np.unique(codes, axis=0)) == 2000


@given(t=st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=4), dim=even_dims)
def test_values_are_bounded_and_rows_have_constant_norm(t: list[float], dim: int) -> None:
    codes = sinusoidal_encoding(np.array(t), dim)
    assert (np.abs(codes) <= 1).all()
    np.testing.assert_allclose((codes**2).sum(axis=-1), dim / 2)


def test_any_shape_of_positions() -> None:
    t = np.array([[0, 3], [7, 2]])
    codes = sinusoidal_encoding(t, 6)
    assert codes.shape == (2, 2, 6)
    np.testing.assert_array_equal(codes[1, :1], sinusoidal_encoding([7], 6))


def test_torch_in_torch_out() -> None:
    codes = sinusoidal_encoding(torch.tensor([0, 1, 2]), 4)
    assert isinstance(codes, torch.Tensor)
    assert codes.dtype == torch.get_default_dtype()
    np.testing.assert_allclose(codes.numpy(), sinusoidal_encoding(3, 4), atol=1e-7)
    assert sinusoidal_encoding(torch.arange(3), 4, dtype=torch.float64).dtype == torch.float64


def test_gradient_flows_to_real_positions() -> None:
    t = torch.tensor([0.5], dtype=torch.float64, requires_grad=True)
    sinusoidal_encoding(t, 2, dtype=torch.float64)[0, 0].backward()
    assert t.grad is not None
    assert t.grad.item() == pytest.approx(math.cos(0.5))


def test_a_table_can_be_written_to() -> None:
    table = sinusoidal_encoding(3, 4)
    table[0, 0] = 5.0
    assert sinusoidal_encoding(3, 4)[0, 0] == 0.0


# --- geometry


@given(t=st.integers(0, 5000), k=st.integers(0, 5000), dim=even_dims)
def test_distance_depends_on_the_offset_only(t: int, k: int, dim: int) -> None:
    pair = sinusoidal_encoding(np.array([t, t + k]), dim)
    distance = float(code_distance([k], dim)[0])
    assert np.linalg.norm(pair[1] - pair[0]) == pytest.approx(distance, abs=1e-9)


@pytest.mark.parametrize(("dim", "step"), [(4, 0.9589), (64, 1.4718), (512, 3.7143)])
def test_step_length(dim: int, step: float) -> None:
    assert code_distance(2, dim)[1] == pytest.approx(step, abs=5e-5)


def test_codes_of_narrow_encodings_come_close() -> None:
    distances = code_distance(5000, 4)[1:]
    assert distances.argmin() + 1 == 1885
    assert distances.min() == pytest.approx(0.0444, abs=5e-5)


@given(t=st.lists(st.integers(0, 4999), min_size=1, max_size=6), dim=st.sampled_from([16, 64]))
def test_every_position_is_read_back(t: list[int], dim: int) -> None:
    np.testing.assert_array_equal(decode_position(sinusoidal_encoding(np.array(t), dim), 5000), t)


def test_decoding_keeps_library_and_shape() -> None:
    codes = sinusoidal_encoding(torch.tensor([[3, 4], [5, 6]]), 16)
    found = decode_position(codes, 10)
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == [[3, 4], [5, 6]]
    assert decode_position(np.empty((0, 16)), 10).shape == (0,)


def test_more_codes_than_one_slice() -> None:
    codes = sinusoidal_encoding(3000, 16)
    np.testing.assert_array_equal(decode_position(codes, 3000), np.arange(3000))


# --- errors: each names the argument, the value and what would be right


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, 5), ValueError, "dim must be even .* got 5"),
        ((3, 1), ValueError, "dim must be at least 2, got 1"),
        ((3, 0), ValueError, "dim must be at least 2, got 0"),
        ((3, -4), ValueError, "dim must be at least 2, got -4"),
        ((3, 4.0), TypeError, "dim must be an integer, got 4.0"),
        ((3, True), TypeError, "dim must be an integer, got True"),
        ((-1, 4), ValueError, "positions must be at least 0, got -1"),
        (("3", 4), TypeError, "positions must be an integer n .* got '3'"),
        ((3.0, 4), TypeError, "positions must be an integer n .* got 3.0"),
        ((True, 4), TypeError, "positions must be an integer n .* got True"),
        ((None, 4), TypeError, "positions must be an integer n .* got None"),
        ((np.array([True]), 4), TypeError, "positions must be integers, float32 or float64, got dtype bool"),
        ((np.array(["a"]), 4), TypeError, "positions must be integers, float32 or float64"),
        ((np.array([1j]), 4), TypeError, "positions must be integers, float32 or float64"),
        ((np.array([1], dtype=np.float16), 4), TypeError, "got dtype float16"),
        ((torch.tensor([1], dtype=torch.bfloat16), 4), TypeError, "got dtype torch.bfloat16"),
        (([[1, 2], [3]], 4), ValueError, "positions must be a rectangular array"),
        ((np.array([1], dtype=np.longdouble), 4), TypeError, "got dtype "),
        (([0.0, math.nan, math.inf], 4), ValueError, "positions must be finite, got nan"),
        ((np.array([-math.inf]), 4), ValueError, "positions must be finite, got -inf"),
        ((torch.tensor([[1.0, math.inf]]), 4), ValueError, "positions must be finite, got inf"),
        ((torch.tensor([math.nan], requires_grad=True), 4), ValueError, "positions must be finite, got nan"),
    ],
)
def test_bad_arguments(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sinusoidal_encoding(*arguments)


@pytest.mark.parametrize(
    ("base", "error"),
    [(1, ValueError), (0.5, ValueError), (-1, ValueError), (math.inf, ValueError), (math.nan, ValueError),
     (10**400, ValueError), ("10000", TypeError), (True, TypeError)],
)  # fmt: skip
def test_bad_base(base: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="base must be"):
        sinusoidal_frequencies(4, base)


@pytest.mark.parametrize("dtype", [np.int64, torch.int64, "float32x", np.complex128])
def test_bad_dtype(dtype: Any) -> None:
    with pytest.raises(TypeError, match="dtype"):
        sinusoidal_encoding(3, 4, dtype=dtype)


def test_a_distance_needs_a_finite_offset() -> None:
    with pytest.raises(ValueError, match="offsets must be finite, got nan"):
        code_distance(np.array([1.0, math.nan]), 4)


def test_where_no_value_may_be_looked_at_none_is() -> None:
    assert sinusoidal_encoding(torch.ones(3, device="meta"), 4).shape == (3, 4)
    t = torch.tensor([0.0, 1.0, 7.5])
    for one_by_one in (torch.vmap, torch.func.jacrev):
        assert one_by_one(lambda p: sinusoidal_encoding(p[None], 4)[0])(t).shape[0] == 3


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
def test_compiled_angles_are_float64_too() -> None:
    t = torch.tensor([3, 100_003, 131_071])

    def codes(t: torch.Tensor) -> torch.Tensor:
        return sinusoidal_encoding(t, 64, dtype=torch.float64)

    compiled = torch.compile(codes, fullgraph=True, backend="eager")
    np.testing.assert_allclose(compiled(t), codes(t), rtol=0, atol=1e-10)


def test_decoding_errors() -> None:
    with pytest.raises(TypeError, match=r"codes must be an array, got .* of type list"):
        decode_position([0.0, 1.0], 10)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="codes must be finite, got nan"):
        decode_position(np.array([0.0, math.nan]), 10)
    with pytest.raises(TypeError, match="codes must be floating, got dtype int64"):
        decode_position(np.arange(4), 10)
    with pytest.raises(ValueError, match=r"width of codes must be even .* got 3"):
        decode_position(np.ones((2, 3)), 10)
    with pytest.raises(ValueError, match="n must be at least 1, got 0"):
        decode_position(np.ones((2, 4)), 0)
