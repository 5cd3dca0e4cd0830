"""What the formulas promise alike: the caller's library and dtype, one rounding, any shape, refusals with a cure."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch

from posenc import alibi, contextual, locality, naive, shift, sinusoidal, times

T = np.array([[0, 1], [7, 30]])
X = np.random.default_rng(0).normal(size=(4, 4))
GATES = np.random.default_rng(1).uniform(size=(2, 4, 4))
SLOPES = alibi.alibi_slopes(2)

# --- The library

LIBRARIES: dict[str, Callable[[Any], Any]] = {
    "torch": torch.from_numpy,
    "array_api_strict": array_api_strict.asarray,
}

# What `test_array_libraries` does not call; `a` makes an array.
CALLS: dict[str, Callable[[Any], Any]] = {
    "alibi_slopes": lambda a: alibi.alibi_slopes(6, like=a(X)),
    "alibi_bias": lambda a: alibi.alibi_bias(a(SLOPES), a(T)),
    "add_alibi_columns": lambda a: alibi.add_alibi_columns(a(GATES), a(GATES / 3), a(SLOPES), a(T[1, [0, 0, 1, 1]])),
    "shift_matrix": lambda a: shift.shift_matrix(a(T), 6),
    "sine_only_encoding": lambda a: shift.sine_only_encoding(a(T), 5),
    "relative_kernel": lambda a: shift.relative_kernel(a(T), 6),
    "positional_scores": lambda a: shift.positional_scores(a(X), a(X), a(X.T.copy())),
    "argmax_positions": lambda a: naive.argmax_positions(a(X), a(GATES), a(GATES[::-1].copy())),
    "split_block": lambda a: shift.split_block(a(X.reshape(4, 2, 2))),
    "toeplitz_spread": lambda a: shift.toeplitz_spread(a(X)),
    "offset_share": lambda a: shift.offset_share(a(X)),
    "offset_head": lambda a: shift.offset_head(a(T), 6, 2.0),
    "rbf_encoding": lambda a: locality.rbf_encoding(a(T), [0, 5], 2.0),
    "rbf_kernel": lambda a: locality.rbf_kernel(a(T), 2.0),
    "time_encoding": lambda a: times.time_encoding(a(T), 6, shortest=0.2, longest=120.0),
    "periodic_encoding": lambda a: times.periodic_encoding(a(T), [7.0, 30.0], harmonics=[1, 3]),
    "nearest_index": lambda a: times.nearest_index(a(T), np.arange(40.0)),
    "forget_bias": lambda a: contextual.forget_bias(a(np.log(GATES)), 2),
    "contextual_positions": lambda a: contextual.contextual_positions(a(GATES), max_position=2),
    "contextual_bias": lambda a: contextual.contextual_bias(a(GATES), a(X), a(2 * GATES)),
    "sinusoidal_encoding": lambda a: sinusoidal.sinusoidal_encoding(a(T), 6),
    "integer_encoding": lambda a: naive.integer_encoding(a(T), 3),
    "one_hot_encoding": lambda a: naive.one_hot_encoding(a(T), 31),
}  # fmt: skip


def several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("library", LIBRARIES)
def test_the_result_is_of_the_callers_library_and_equals_that_of_numpy(name: str, library: str) -> None:
    ours, theirs = several(CALLS[name](LIBRARIES[library])), several(CALLS[name](np.asarray))
    for result, expected in zip(ours, theirs, strict=True):
        assert type(result).__module__.startswith(library)
        np.testing.assert_allclose(np.asarray(result), expected, atol=2e-7)


# --- Codes of places: dtype, rounding, shape

CODES: dict[str, Callable[..., Any]] = {
    "sinusoidal_encoding": lambda t, **o: sinusoidal.sinusoidal_encoding(t, 6, **o),
    "sine_only_encoding": lambda t, **o: shift.sine_only_encoding(t, 5, **o),
    "integer_encoding": lambda t, **o: naive.integer_encoding(t, 3, **o),
    "one_hot_encoding": lambda t, **o: naive.one_hot_encoding(t, 31, **o),
    "rbf_encoding": lambda t, **o: locality.rbf_encoding(t, [0, 5.5], 2.0, **o),
    "shift_matrix": lambda t, **o: shift.shift_matrix(t, 6, **o),
    "offset_head": lambda t, **o: shift.offset_head(t, 6, 2.0, **o)[0],
    "time_encoding": lambda t, **o: times.time_encoding(t, 6, shortest=0.2, longest=120.0, **o),
    "periodic_encoding": lambda t, **o: times.periodic_encoding(t, [7.0, 30.0], harmonics=[1, 3], **o),
}
TORCH_DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("name", CODES)
def test_codes_are_float64_rounded_once_to_the_dtype_that_is_asked_for(name: str) -> None:
    exact = CODES[name](T)
    assert exact.dtype == np.float64
    np.testing.assert_array_equal(CODES[name](T, dtype=np.float32), exact.astype(np.float32), strict=True)
    for t in (torch.from_numpy(T), torch.from_numpy(T).double()):
        assert CODES[name](t).dtype == torch.get_default_dtype()
        for dtype in TORCH_DTYPES:
            rounded = torch.from_numpy(exact).to(dtype)
            torch.testing.assert_close(CODES[name](t, dtype=dtype), rounded, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", CODES)
def test_places_of_any_shape_have_each_its_own_code(name: str) -> None:
    codes, empty = CODES[name](T), CODES[name](np.zeros((2, 0)))
    assert codes.shape[:2] == (2, 2)
    assert empty.shape == (2, 0, *codes.shape[2:])
    for place in np.ndindex(T.shape):
        np.testing.assert_array_equal(codes[place], CODES[name]([int(T[place])])[0])
    expected = codes[1, 1].copy()
    codes[0, 0] = 9  # an array of its own, which may be written to
    np.testing.assert_array_equal(codes[1, 1], expected)
    np.testing.assert_array_equal(CODES[name](T)[1, 1], expected)


@pytest.mark.parametrize("name", list(CODES)[:5])
def test_an_integer_counts_in_the_library_of_the_dtype(name: str) -> None:
    for n in (0, 5):
        counted = CODES[name](n)
        np.testing.assert_allclose(counted, CODES[name](np.arange(n)), atol=1e-15)
        in_torch = CODES[name](n, dtype=torch.float64)
        assert in_torch.dtype == torch.float64
        np.testing.assert_allclose(in_torch.numpy(), counted, atol=1e-15)


@pytest.mark.parametrize("name", CODES)
def test_the_dtype_is_a_floating_one_of_the_library(name: str) -> None:
    given = [(T, bad) for bad in (int, bool, complex, "float33", torch.float32)]
    for t, bad in [*given, (torch.from_numpy(T), torch.int64), (torch.from_numpy(T), np.float32)]:
        with pytest.raises(TypeError, match=r"dtype must be a real floating dtype of .*, got "):
            CODES[name](t, dtype=bad)


# --- Refusals

PLACES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "sinusoidal_encoding": ("positions", lambda t: sinusoidal.sinusoidal_encoding(t, 4)),
    "sine_only_encoding": ("positions", lambda t: shift.sine_only_encoding(t, 4)),
    "integer_encoding": ("positions", lambda t: naive.integer_encoding(t, 4)),
    "one_hot_encoding": ("positions", lambda t: naive.one_hot_encoding(t, 4)),
    "rbf_encoding": ("positions", lambda t: locality.rbf_encoding(t, [0, 1], 1.0)),
    "code_distance": ("offsets", lambda k: sinusoidal.code_distance(k, 4)),
    "relative_kernel": ("offsets", lambda k: shift.relative_kernel(k, 4)),
    "rbf_kernel": ("offsets", lambda k: locality.rbf_kernel(k, 1.0)),
    "shift_matrix": ("offset", lambda k: shift.shift_matrix(k, 4)),
    "offset_head": ("offset", lambda k: shift.offset_head(k, 4)),
}
NO_COUNT: list[tuple[Any, type[Exception], str]] = [
    (-1, ValueError, "must be at least 0, got -1"),
    (3.0, TypeError, r"must be an integer n .*got 3\.0 of type float"),
]
NO_PLACES: list[tuple[Any, type[Exception], str]] = [
    (True, TypeError, "must be .*got True"),
    ("3", TypeError, "must be .*got '3'"),
    (None, TypeError, "must be .*got None"),
    ([[1, 2], [3]], ValueError, "must be a rectangular array"),
    (["a"], TypeError, "must be integers, float32 or float64"),
    ([1j], TypeError, "must be integers, float32 or float64, got dtype complex128"),
    ([True, False], TypeError, "must be integers, float32 or float64, got dtype bool"),
    (np.arange(3, dtype=np.float16), TypeError, "must be integers, float32 or float64, got dtype float16"),
    (np.arange(3, dtype=np.longdouble), TypeError, "must be integers, float32 or float64, got dtype "),
    (torch.arange(3).bfloat16(), TypeError, "must be integers, float32 or float64, got dtype torch.bfloat16"),
    ([0.0, math.nan, math.inf], ValueError, "must be finite, got nan"),
    (np.array([-math.inf]), ValueError, "must be finite, got -inf"),
    (torch.tensor([[1.0, math.inf]], requires_grad=True), ValueError, "must be finite, got inf"),
]


@pytest.mark.parametrize("name", PLACES)
def test_what_is_no_place_is_named(name: str) -> None:
    argument, call = PLACES[name]
    for bad, error, message in [*NO_PLACES, *NO_COUNT * (argument != "offset")]:
        with pytest.raises(error, match=f"^{argument} {message}"):
            call(bad)


WIDTHS: dict[str, Callable[..., Any]] = {
    "sinusoidal_frequencies": sinusoidal.sinusoidal_frequencies,
    "sinusoidal_wavelengths": sinusoidal.sinusoidal_wavelengths,
    "sinusoidal_encoding": lambda dim, base=10.0: sinusoidal.sinusoidal_encoding(3, dim, base=base),
    "code_distance": lambda dim, base=10.0: sinusoidal.code_distance(3, dim, base=base),
    "relative_kernel": lambda dim, base=10.0: shift.relative_kernel(3, dim, base=base),
    "shift_matrix": lambda dim, base=10.0: shift.shift_matrix(3, dim, base=base),
    "offset_head": lambda dim, base=10.0: shift.offset_head(3, dim, base=base),
}


@pytest.mark.parametrize("name", WIDTHS)
def test_a_width_is_even_and_a_base_above_1(name: str) -> None:
    WIDTHS[name](2, 1.001)
    for dim, error, message in (
        (5, ValueError, r"must be even \(each frequency takes a sine and a cosine\), got 5"),
        (1, ValueError, "must be at least 2, got 1"),
        (-4, ValueError, "must be at least 2, got -4"),
        (4.0, TypeError, "must be an integer, got 4.0"),
        (True, TypeError, "must be an integer, got True"),
        ("4", TypeError, "must be an integer, got '4'"),
    ):
        with pytest.raises(error, match=f"^dim {message}"):
            WIDTHS[name](dim)
    for base in (1, 0.5, -1, math.inf, math.nan, 10**400):
        with pytest.raises(ValueError, match=f"^base must be finite and above 1, got {base}"):
            WIDTHS[name](4, base)
    for what in ("10000", True, None):
        with pytest.raises(TypeError, match=f"^base must be a real number, got {what!r}"):
            WIDTHS[name](4, what)
