"""The first attempts: what integers and one-hot vectors are, what they cannot do, their errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import integer_encoding, one_hot_encoding
from posenc import sinusoidal_encoding as sinusoidal
from posenc.naive import argmax_positions
from posenc.order import equivariance_error

lengths = st.integers(0, 40)
dims = st.integers(1, 64)
seeds = st.integers(0, 2**32 - 1)
starts = st.integers(-1000, 1000)


def normal(*shape: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def to_numpy(x: Any) -> np.ndarray:
    return x.double().numpy() if isinstance(x, torch.Tensor) else x


# --- integers


def test_worked_example_of_one_word_at_two_places() -> None:
    word = np.array([0.62, -0.51, 0.09, 0.85])
    rows = word + integer_encoding(2, 4, start=1)
    np.testing.assert_array_equal(rows.round(2), [[1.62, 0.49, 1.09, 1.85], [2.62, 1.49, 2.09, 2.85]])


@given(n=lengths, dim=dims, start=starts)
def test_rows_equal_start_plus_position(n: int, dim: int, start: int) -> None:
    codes = integer_encoding(n, dim, start=start)
    assert codes.shape == (n, dim)
    np.testing.assert_array_equal(codes, np.repeat(np.arange(start, start + n)[:, None], dim, axis=1))


@given(n=lengths, dim=dims, start=starts)
def test_norm_grows_without_bound(n: int, dim: int, start: int) -> None:
    norms = np.linalg.norm(integer_encoding(n, dim, start=start), axis=1)
    np.testing.assert_allclose(norms, np.abs(np.arange(n) + start) * math.sqrt(dim), rtol=1e-14)


@given(t=st.lists(st.floats(-1e6, 1e6), max_size=4), dim=dims)
def test_real_positions(t: list[float], dim: int) -> None:
    np.testing.assert_array_equal(integer_encoding(np.array(t, dtype=float), dim), np.outer(t, np.ones(dim)))


def test_positions_of_any_shape_and_a_result_that_may_be_written_to() -> None:
    codes = integer_encoding(np.arange(6).reshape(2, 3), 4)
    assert codes.shape == (2, 3, 4)
    codes[0, 1, 2] = 9
    assert codes[0, 1].tolist() == [1, 1, 9, 1]
    assert integer_encoding(np.asarray([7]), 2).tolist() == [[7, 7]]


@given(t=st.floats(0, 1e4), dim=st.integers(2, 64), seed=seeds)
def test_layer_norm_cannot_see_the_number(t: float, dim: int, seed: int) -> None:
    x = torch.from_numpy(normal(dim, seed=seed))
    code = integer_encoding(torch.tensor([t], dtype=torch.float64), dim, dtype=torch.float64)[0]
    plain, moved = (torch.nn.functional.layer_norm(v, (dim,)) for v in (x, x + code))
    torch.testing.assert_close(plain, moved, atol=1e-8, rtol=0)


@pytest.mark.parametrize("norm_first", [True, False])
def test_pre_norm_encoder_stays_blind_and_post_norm_sees(norm_first: bool) -> None:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    model = torch.nn.Sequential(layer, torch.nn.LayerNorm(8, dtype=torch.float64))

    def encoder(x: torch.Tensor) -> torch.Tensor:
        return model(x + integer_encoding(len(x), 8, dtype=x.dtype))

    x = torch.from_numpy(normal(5, 8, seed=1))
    with torch.no_grad():
        error = equivariance_error(encoder, x, [3, 0, 4, 1, 2])
    assert (error < 1e-12) == norm_first


@pytest.mark.parametrize(("dtype", "first_lost"), [(torch.float16, 2049), (torch.bfloat16, 257)])
def test_first_integer_that_a_low_precision_loses(dtype: torch.dtype, first_lost: int) -> None:
    codes = integer_encoding(torch.arange(6000), 1, dtype=dtype)[:, 0]
    assert int((codes.double() != torch.arange(6000)).nonzero()[0]) == first_lost
    assert codes[5000] == codes[5001]


# --- one-hot


@given(n=lengths)
def test_one_hot_rows_are_an_orthonormal_basis(n: int) -> None:
    codes = one_hot_encoding(n)
    np.testing.assert_array_equal(codes, np.eye(n))
    np.testing.assert_array_equal(codes @ codes.T, np.eye(n))


@given(data=st.data(), size=st.integers(2, 40))
def test_all_distances_are_root_two(data: st.DataObject, size: int) -> None:
    t, u = data.draw(st.lists(st.integers(0, size - 1), min_size=2, max_size=2, unique=True))
    codes = one_hot_encoding([t, u], size)
    assert np.linalg.norm(codes[0] - codes[1]) == math.sqrt(2)


@given(data=st.data(), size=st.integers(1, 40), dim=dims, seed=seeds)
def test_one_hot_times_a_matrix_is_a_look_up(data: st.DataObject, size: int, dim: int, seed: int) -> None:
    t = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=8)), dtype=int)
    table = normal(size, dim, seed=seed)
    np.testing.assert_array_equal(one_hot_encoding(t, size) @ table, table[t])


def test_one_hot_shapes() -> None:
    assert one_hot_encoding(2, 5).shape == (2, 5)
    assert one_hot_encoding(0).shape == (0, 0)
    assert one_hot_encoding(0, 3).shape == (0, 3)
    assert one_hot_encoding(np.zeros((2, 3), dtype=int), 4).shape == (2, 3, 4)
    assert one_hot_encoding(np.array([2.0]), 3).tolist() == [[0, 0, 1]]


# --- attention by position alone


@given(n=st.integers(2, 40), dim=st.integers(1, 16), width=st.integers(1, 8), seed=seeds)
def test_integers_make_every_head_look_at_an_end(n: int, dim: int, width: int, seed: int) -> None:
    w_query, w_key = normal(2, 3, dim, width, seed=seed)
    found = argmax_positions(integer_encoding(n, dim), w_query, w_key)
    assert found.shape == (3, n)
    # One number decides the head: is (1 W_Q) · (1 W_K) positive?
    positive = np.sum(w_query.sum(axis=1) * w_key.sum(axis=1), axis=-1) > 0
    expected = np.where(positive[:, None], n - 1, 0) * np.ones(n, dtype=int)
    expected[:, 0] = 0  # position 0 has the number 0: all its scores are equal
    np.testing.assert_array_equal(found, expected)


def test_other_codes_look_elsewhere() -> None:
    w_query, w_key = normal(2, 50, 16, 8, seed=0)
    found = argmax_positions(sinusoidal(64, 16), w_query, w_key)
    assert np.mean((found == 0) | (found == 63)) < 0.2


def test_square_of_the_number_is_enough_to_look_one_back() -> None:
    t = np.arange(100.0)
    codes = np.stack([t**2, t, np.ones(100)], axis=1)
    w_query = np.array([[0.0, 0, 0], [0, 2, 0], [-1, -2, 0]])  # q = (−1, 2(t − 1), 0), k = (u², u, 1)
    np.testing.assert_array_equal(argmax_positions(codes, w_query, np.eye(3)), np.maximum(t - 1, 0))


def test_half_precision_scores_are_made_in_float32() -> None:
    codes = integer_encoding(300, 4, dtype=torch.float16)
    ones = torch.ones(4, 2, dtype=torch.float16)
    # 299 · 299 · 8 is far beyond float16's 65504.
    assert argmax_positions(codes, ones, ones).tolist() == [0] + [299] * 299


# --- libraries and dtypes


@pytest.mark.parametrize(
    "make", [lambda t, **k: integer_encoding(t, 3, **k), lambda t, **k: one_hot_encoding(t, 5, **k)]
)
def test_the_callers_library_is_kept(make: Any) -> None:
    reference = make([0, 4, 2])
    assert isinstance(reference, np.ndarray)
    assert reference.dtype == np.float64
    assert make(np.array([0, 4, 2]), dtype=np.float32).dtype == np.float32
    for positions in (torch.tensor([0, 4, 2]), torch.tensor([0, 4, 2], dtype=torch.float64)):
        codes = make(positions)
        assert codes.dtype == torch.get_default_dtype()
        np.testing.assert_array_equal(to_numpy(codes), reference)
        assert make(positions, dtype=torch.bfloat16).dtype == torch.bfloat16
    # An integer n counts in the library of dtype.
    counted = make(5, dtype=torch.float64)
    assert counted.dtype == torch.float64
    np.testing.assert_array_equal(to_numpy(counted), make(5))


@given(n=st.integers(1, 12), dim=dims, seed=seeds)
def test_argmax_is_the_same_in_torch(n: int, dim: int, seed: int) -> None:
    codes, w_query, w_key = (
        normal(*shape, seed=seed + i) for i, shape in enumerate([(n, dim), (2, dim, 3), (2, dim, 3)])
    )
    expected = argmax_positions(codes, w_query, w_key)
    found = argmax_positions(*(torch.from_numpy(x) for x in (codes, w_query, w_key)))
    assert isinstance(found, torch.Tensor)
    np.testing.assert_array_equal(found.numpy(), expected)


# --- errors

WRONG_POSITIONS: list[tuple[Any, type[Exception], str]] = [
    (-1, ValueError, "positions must be at least 0, got -1"),
    (True, TypeError, "positions must be an integer n .*got True"),
    (3.0, TypeError, "positions must be an integer n .*got 3.0 of type float"),
    ("3", TypeError, "positions must be an integer n .*got '3'"),
    (None, TypeError, "positions must be an integer n .*got None"),
    ([[1, 2], [3]], ValueError, "positions must be a rectangular array"),
    (["a"], TypeError, "positions must be integers, float32 or float64"),
    ([1j], TypeError, "positions must be integers, float32 or float64, got dtype complex128"),
    ([True, False], TypeError, "positions must be integers, float32 or float64, got dtype bool"),
    (np.arange(3, dtype=np.float16), TypeError, "positions must be .*got dtype float16"),
    (torch.arange(3).to(torch.bfloat16), TypeError, "positions must be .*got dtype torch.bfloat16"),
]


@pytest.mark.parametrize(("positions", "error", "message"), WRONG_POSITIONS)
@pytest.mark.parametrize("make", [integer_encoding, one_hot_encoding])
def test_wrong_positions(make: Any, positions: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(positions, 4)


@pytest.mark.parametrize("dtype", [int, bool, complex, "float33", torch.int64])
@pytest.mark.parametrize("make", [integer_encoding, one_hot_encoding])
def test_dtype_must_be_floating(make: Any, dtype: Any) -> None:
    with pytest.raises(TypeError, match="dtype must be a real floating dtype"):
        make(3, 4, dtype=dtype)


@pytest.mark.parametrize("make", [integer_encoding, one_hot_encoding])
def test_dtype_must_be_of_the_library_of_the_positions(make: Any) -> None:
    with pytest.raises(TypeError, match=r"dtype must be .*torch, got .*float32"):
        make(torch.arange(3), 4, dtype=np.float32)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"dim": 2.0}, TypeError, "dim must be an integer, got 2.0"),
        ({"dim": True}, TypeError, "dim must be an integer, got True"),
        ({"dim": 0}, ValueError, "dim must be at least 1, got 0"),
        ({"dim": -4}, ValueError, "dim must be at least 1, got -4"),
        ({"start": 0.5}, TypeError, "start must be an integer, got 0.5"),
        ({"start": False}, TypeError, "start must be an integer, got False"),
        ({"start": 2**53 + 1}, ValueError, "start must be at most 2\\*\\*53"),
        ({"start": -(2**53) - 1}, ValueError, "start must be at least -9007199254740992"),
        ({"positions": 65506, "dtype": np.float16}, ValueError, "within ±65504, for .*got 65505"),
        (
            {"positions": torch.tensor([-7e4]), "dtype": torch.float16},
            ValueError,
            "within ±65504.*got -70000",
        ),
        ({"positions": [math.nan]}, ValueError, "positions must be finite, got nan"),
        ({"positions": [math.inf]}, ValueError, "positions must be finite, got inf"),
    ],
)
def test_errors_of_integer_encoding(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        integer_encoding(**{"positions": 3, "dim": 4, **arguments})


def test_largest_float16_number_is_allowed() -> None:
    assert integer_encoding([65504], 1, dtype=np.float16).item() == 65504


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"positions": [1, 2]}, ValueError, "size must be given when positions is an array"),
        ({"positions": torch.arange(2)}, ValueError, "size must be given when positions is an array"),
        ({"positions": [5000], "size": 5000}, ValueError, "from 0 to below size 5000, got 5000"),
        ({"positions": 4, "size": 3}, ValueError, "from 0 to below size 3, got 3"),
        ({"positions": 1, "size": 0}, ValueError, "from 0 to below size 0, got 0"),
        ({"positions": [0, -1], "size": 3}, ValueError, "from 0 to below size 3, got -1"),
        ({"positions": [0.5], "size": 3}, ValueError, "whole numbers .*got 0.5"),
        ({"positions": [math.nan], "size": 3}, ValueError, "positions must be finite, got nan"),
        ({"positions": [math.inf], "size": 3}, ValueError, "positions must be finite, got inf"),
        ({"positions": torch.tensor([9]), "size": 3}, ValueError, "from 0 to below size 3, got 9"),
        ({"positions": 3, "size": 3.0}, TypeError, "size must be an integer, got 3.0"),
        ({"positions": 3, "size": True}, TypeError, "size must be an integer, got True"),
        ({"positions": 0, "size": -1}, ValueError, "size must be at least 0, got -1"),
        ({"positions": -2}, ValueError, "positions must be at least 0, got -2"),
    ],
)
def test_errors_of_one_hot_encoding(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        one_hot_encoding(**arguments)


CODES, W = np.ones((4, 3)), np.ones((3, 2))


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ((CODES[0], W, W), ValueError, r"encoding must have shape \(n, dim\) .*got \(3,\)"),
        ((CODES[:0], W, W), ValueError, r"encoding must have shape \(n, dim\) with n >= 1, got \(0, 3\)"),
        ((CODES[None], W, W), ValueError, r"encoding must have shape \(n, dim\)"),
        ((CODES, W[:2], W), ValueError, r"w_query must have shape \(\.\.\., 3, d_head\), got \(2, 2\)"),
        ((CODES, W, W[0]), ValueError, r"w_key must have shape \(\.\.\., 3, d_head\), got \(2,\)"),
        ((CODES, W, W[:, :1]), ValueError, r"w_query \(3, 2\) and w_key \(3, 1\) must have one shape"),
        ((CODES, np.ones((5, 3, 2)), W), ValueError, "must have one shape"),
        ((CODES.tolist(), W, W), TypeError, "encoding must be an array, got .* of type list"),
        ((torch.ones(4, 3), W, W), TypeError, "must be of the library of"),
        ((CODES.astype(int), W, W), TypeError, "encoding must be floating, got dtype int64"),
        ((CODES, W * 1j, W), TypeError, "w_query must be floating, got dtype complex128"),
        ((CODES, W, W.astype(np.float32)), TypeError, "w_key must have the dtype of encoding, float64"),
    ],
)
def test_errors_of_argmax_positions(
    arrays: tuple[Any, Any, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        argmax_positions(*arrays)
