"""The sinusoidal encoding: the formula, its precision, its geometry, its errors."""

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
from tests.posenc.refusals import refused

even_dims = st.integers(1, 64).map(lambda half: 2 * half)
bases = st.floats(1.001, 1e8)


def one_rounding(reference: np.ndarray) -> np.ndarray:
    """Half a unit in the last place of float32 at each value, plus the float64 angle's own error."""
    return np.spacing(np.abs(reference).astype(np.float32)).astype(np.float64) / 2 + 1e-10


# --- frequencies and wavelengths


@given(dim=even_dims, base=bases)
def test_frequencies_fall_geometrically_from_one(dim: int, base: float) -> None:
    omega, lengths = sinusoidal_frequencies(dim, base), sinusoidal_wavelengths(dim, base)
    assert omega.shape == (dim // 2,)
    assert omega[0] == 1.0
    np.testing.assert_allclose(omega[1:] / omega[:-1], base ** (-2 / dim), rtol=1e-12)
    recipe = np.exp(np.arange(0, dim, 2) * (-math.log(base) / dim))  # of most implementations
    np.testing.assert_allclose(omega, recipe, rtol=1e-13)
    assert lengths[0] == 2 * math.pi
    assert lengths[-1] < 2 * math.pi * base
    np.testing.assert_allclose(lengths * omega, 2 * math.pi, rtol=1e-15)


# --- the encoding


@given(t=st.lists(st.floats(-1e6, 1e6), max_size=5), dim=even_dims, base=bases)
def test_columns_are_sine_and_cosine_of_each_pair(t: list[float], dim: int, base: float) -> None:
    codes = sinusoidal_encoding(np.array(t, dtype=float), dim, base=base)
    angles = np.array(t, dtype=float)[:, None] * sinusoidal_frequencies(dim, base)
    np.testing.assert_array_equal(codes[:, 0::2], np.sin(angles))
    np.testing.assert_array_equal(codes[:, 1::2], np.cos(angles))
    np.testing.assert_allclose((codes**2).sum(axis=-1), dim / 2)


@given(n=st.integers(0, 700), dim=even_dims, base=bases)
def test_table_equals_the_formula_position_by_position(n: int, dim: int, base: float) -> None:
    table = sinusoidal_encoding(n, dim, base=base)
    expected = sinusoidal_encoding(np.arange(n), dim, base=base)
    np.testing.assert_allclose(table, expected, atol=1e-12, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, torch.float32])
def test_float32_table_is_float64_rounded_once_up_to_131072(dtype: Any) -> None:
    table = np.asarray(sinusoidal_encoding(131072, 32, dtype=dtype))
    assert table.dtype == np.float32
    reference = sinusoidal_encoding(np.arange(131072), 32)
    assert (np.abs(table - reference) <= one_rounding(reference)).all()


@pytest.mark.parametrize("t", [1, 4974, 99_999, 131_071])
def test_against_fifty_digits(t: int) -> None:
    dim = 64
    with mpmath.workdps(50):
        angles = [t * mpmath.power(10000, mpmath.mpf(-2 * i) / dim) for i in range(dim // 2)]
        exact = np.array([float(f(a)) for a in angles for f in (mpmath.sin, mpmath.cos)])
    code = sinusoidal_encoding(np.array([t]), dim, dtype=np.float32)[0]
    assert (np.abs(code - exact) <= one_rounding(exact)).all()


def test_where_no_value_may_be_looked_at_none_is() -> None:
    assert sinusoidal_encoding(torch.ones(3, device="meta"), 4).shape == (3, 4)
    t = torch.tensor([0.0, 1.0, 7.5])
    for one_by_one in (torch.vmap, torch.func.jacrev):
        assert one_by_one(lambda p: sinusoidal_encoding(p[None], 4)[0])(t).shape[0] == 3


# --- geometry


@given(t=st.integers(0, 5000), k=st.integers(0, 5000), dim=even_dims)
def test_distance_depends_on_the_offset_only(t: int, k: int, dim: int) -> None:
    pair = sinusoidal_encoding(np.array([t, t + k]), dim)
    distance = float(code_distance([k], dim)[0])
    assert np.linalg.norm(pair[1] - pair[0]) == pytest.approx(distance, abs=1e-9)


@given(t=st.lists(st.integers(0, 4999), min_size=1, max_size=6), dim=st.sampled_from([16, 64]))
def test_every_position_is_read_back(t: list[int], dim: int) -> None:
    np.testing.assert_array_equal(decode_position(sinusoidal_encoding(np.array(t), dim), 5000), t)


def test_decoding_keeps_library_and_shape_and_works_in_slices() -> None:
    found = decode_position(sinusoidal_encoding(torch.tensor([[3, 4], [5, 6]]), 16), 10)
    assert isinstance(found, torch.Tensor)
    assert found.tolist() == [[3, 4], [5, 6]]
    assert decode_position(np.empty((0, 16)), 10).shape == (0,)
    codes = sinusoidal_encoding(3000, 16)  # more than one slice
    np.testing.assert_array_equal(decode_position(codes, 3000), np.arange(3000))


# --- errors: what all codes refuse is in test_arguments


test_what_cannot_be_decoded_is_named = refused([
    (lambda: decode_position(np.array([0.0, math.nan]), 10), ValueError, "codes must be finite, got nan"),
    (lambda: decode_position(np.ones((2, 3)), 10), ValueError, r"the width of codes must be even .* got 3"),
    (lambda: decode_position(np.array(1.0), 10), ValueError, r"codes must have shape \(..., dim\), got a single"),
])  # fmt: skip
