"""The first attempts: what integers and one-hot vectors are, what they cannot do, their errors."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import integer_encoding, one_hot_encoding
from posenc.naive import argmax_positions
from tests.posenc.calls import normal
from tests.posenc.refusals import refused

lengths = st.integers(0, 40)
dims = st.integers(1, 64)
seeds = st.integers(0, 2**32 - 1)


# --- integers


@given(n=lengths, dim=dims, start=st.integers(-1000, 1000))
def test_rows_equal_start_plus_position(n: int, dim: int, start: int) -> None:
    codes = integer_encoding(n, dim, start=start)
    np.testing.assert_array_equal(codes, np.repeat(np.arange(start, start + n)[:, None], dim, axis=1))
    real = integer_encoding(np.arange(n) + 0.25, dim, start=start)
    np.testing.assert_array_equal(real, codes + 0.25)


# --- one-hot


@given(data=st.data(), size=st.integers(1, 40), dim=dims, seed=seeds)
def test_one_hot_times_a_matrix_is_a_look_up(data: st.DataObject, size: int, dim: int, seed: int) -> None:
    t = np.array(data.draw(st.lists(st.integers(0, size - 1), max_size=8)), dtype=int)
    table = normal(size, dim, seed=seed)
    np.testing.assert_array_equal(one_hot_encoding(t, size) @ table, table[t])
    np.testing.assert_array_equal(one_hot_encoding(t.astype(float), size), np.eye(size)[t])


def test_an_integer_has_as_many_axes_unless_told() -> None:
    for n in (0, 1, 5):
        np.testing.assert_array_equal(one_hot_encoding(n), np.eye(n))
        np.testing.assert_array_equal(one_hot_encoding(n, 7), np.eye(n, 7))


# --- attention by position alone


@given(n=st.integers(2, 40), dim=st.integers(1, 16), width=st.integers(1, 8), seed=seeds)
def test_integers_make_every_head_look_at_an_end(n: int, dim: int, width: int, seed: int) -> None:
    w_query, w_key = normal(2, 3, dim, width, seed=seed)
    found = argmax_positions(integer_encoding(n, dim), w_query, w_key)
    # One number decides the head: is (1 W_Q) · (1 W_K) positive?
    positive = np.sum(w_query.sum(axis=1) * w_key.sum(axis=1), axis=-1) > 0
    expected = np.where(positive[:, None], n - 1, 0) * np.ones(n, dtype=int)
    expected[:, 0] = 0  # position 0 has the number 0: all its scores are equal
    np.testing.assert_array_equal(found, expected, strict=True)


def test_half_precision_scores_are_made_in_float32() -> None:
    codes = integer_encoding(300, 4, dtype=torch.float16)
    ones = torch.ones(4, 2, dtype=torch.float16)
    # 299 · 299 · 8 is far beyond float16's 65504.
    assert argmax_positions(codes, ones, ones).tolist() == [0] + [299] * 299


# --- errors: what all codes refuse is in test_arguments

FAR = torch.tensor([-7e4])
CODES, W = np.ones((4, 3)), np.ones((3, 2))


test_errors_name_the_argument = refused([
    (lambda: integer_encoding(3, 4, start=2**53 + 1), ValueError, r"start must be at most 2\*\*53"),
    (lambda: integer_encoding(65506, 4, dtype=np.float16), ValueError, "within ±65504, for .*got 65505"),
    (lambda: integer_encoding(FAR, 4, dtype=torch.float16), ValueError, "within ±65504.*got -70000"),
    (lambda: one_hot_encoding([1, 2]), ValueError, "size must be given when positions is an array"),
    (lambda: one_hot_encoding([5000], 5000), ValueError, "from 0 to below size 5000, got 5000"),
    (lambda: one_hot_encoding(1, 0), ValueError, "from 0 to below size 0, got 0"),
    (lambda: one_hot_encoding([0, -1], 3), ValueError, "from 0 to below size 3, got -1"),
    (lambda: one_hot_encoding([0.5], 3), ValueError, "positions must be whole numbers .*got 0.5"),
    (lambda: argmax_positions(CODES[:0], W, W), ValueError, r"encoding must have shape .*n >= 1, got \(0, 3\)"),
])  # fmt: skip
