"""Learned tables: picking rows, the end of the table, other lengths, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import dot_product_attention, learned_encoding, one_hot_encoding
from posenc.learned import interpolate_table
from posenc.order import equivariance_error

lengths = st.integers(1, 40)
dims = st.integers(1, 8)
seeds = st.integers(0, 2**32 - 1)
corners = st.booleans()


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


# --- picking rows


@given(data=st.data(), max_len=lengths, dim=dims, seed=seeds)
def test_rows_are_picked_and_equal_a_one_hot_product(
    data: st.DataObject, max_len: int, dim: int, seed: int
) -> None:
    table = normal(max_len, dim, seed=seed)
    t = np.array(data.draw(st.lists(st.integers(0, max_len - 1), max_size=6)), dtype=int)
    rows = learned_encoding(t, table)
    np.testing.assert_array_equal(rows, table[t])
    np.testing.assert_array_equal(rows, one_hot_encoding(t, max_len) @ table)


@given(n=st.integers(0, 60), max_len=lengths, dim=dims)
def test_clamped_positions_get_the_last_row(n: int, max_len: int, dim: int) -> None:
    table = normal(max_len, dim)
    rows = learned_encoding(n, table, overflow="clamp")
    assert rows.shape == (n, dim)
    np.testing.assert_array_equal(rows[:max_len], table[:n])
    assert (rows[max_len:] == table[-1]).all()
    np.testing.assert_array_equal(learned_encoding(np.arange(n), table, overflow="clamp"), rows)


def test_520_positions_have_512_codes() -> None:
    rows = learned_encoding(520, normal(512, 8), overflow="clamp")
    assert len(np.unique(rows, axis=0)) == 512


@given(order=st.permutations(range(6)), seed=seeds)
def test_clamped_tail_is_permutation_equivariant(order: list[int], seed: int) -> None:
    table, x, w = normal(4, 6, seed=seed), normal(9, 6, seed=seed + 1), normal(3, 6, 6, seed=seed + 2)
    codes = learned_encoding(9, table, overflow="clamp")

    def attend(tokens: np.ndarray) -> np.ndarray:
        y = tokens + codes
        return dot_product_attention(y @ w[0], y @ w[1], y @ w[2])[0]

    # Positions 3..8 share the last row: reordering the tokens among them only reorders the outputs.
    assert equivariance_error(attend, x, [0, 1, 2, *(3 + j for j in order)]) < 1e-12
    assert equivariance_error(attend, x, [1, 0, 2, *range(3, 9)]) > 1e-6


def test_shapes_copies_and_empty_input() -> None:
    table = normal(5, 3)
    assert learned_encoding(np.array([[0, 1], [2, 4]]), table).shape == (2, 2, 3)
    assert learned_encoding([], table).shape == (0, 3)
    assert learned_encoding(np.zeros((2, 0), dtype=int), table).shape == (2, 0, 3)
    learned_encoding(5, table)[0, 0] = 9
    assert table[0, 0] != 9


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_torch_rows_keep_dtype(dtype: torch.dtype) -> None:
    table = torch.randn(5, 3).to(dtype)
    for positions in (torch.tensor([4, 0]), torch.tensor([4, 0], dtype=torch.uint8), [4, 0], (4, 0)):
        rows = learned_encoding(positions, table)
        assert rows.dtype == dtype
        assert torch.equal(rows, table[[4, 0]])
    assert torch.equal(learned_encoding(3, table), table[:3])


def test_gradients_reach_visited_rows_only() -> None:
    table = torch.zeros(6, 2, requires_grad=True)
    learned_encoding(torch.tensor([1, 3, 3]), table).sum().backward()
    assert table.grad is not None
    assert table.grad[:, 0].tolist() == [0, 1, 0, 2, 0, 0]
    clamped = torch.zeros(6, 2, requires_grad=True)
    learned_encoding(9, clamped, overflow="clamp").sum().backward()
    assert clamped.grad is not None
    assert clamped.grad[:, 0].tolist() == [1, 1, 1, 1, 1, 4]


# --- another length


@given(max_len=lengths, length=lengths, dim=dims, align=corners, seed=seeds)
def test_equals_torch_interpolate(max_len: int, length: int, dim: int, align: bool, seed: int) -> None:
    table = normal(max_len, dim, seed=seed)
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(table).T[None], size=length, mode="linear", align_corners=align
    )[0].T
    found = interpolate_table(table, length, align_corners=align)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-12)


@given(max_len=lengths, dim=dims, align=corners)
def test_its_own_length_changes_nothing(max_len: int, dim: int, align: bool) -> None:
    table = normal(max_len, dim)
    np.testing.assert_array_equal(interpolate_table(table, max_len, align_corners=align), table)


@given(max_len=st.integers(2, 40), length=st.integers(2, 200), dim=dims)
def test_ends_stay_and_a_line_stays_a_line(max_len: int, length: int, dim: int) -> None:
    table = normal(max_len, dim)
    stretched = interpolate_table(table, length)
    np.testing.assert_array_equal(stretched[[0, -1]], table[[0, -1]])
    line = np.outer(np.linspace(-1, 1, max_len), np.ones(dim))
    np.testing.assert_allclose(interpolate_table(line, length)[:, 0], np.linspace(-1, 1, length), atol=1e-12)


@given(max_len=lengths, length=lengths, dim=dims, align=corners)
def test_stays_within_the_old_rows(max_len: int, length: int, dim: int, align: bool) -> None:
    table = normal(max_len, dim)
    found = interpolate_table(table, length, align_corners=align)
    assert (found >= table.min(axis=0) - 1e-12).all()
    assert (found <= table.max(axis=0) + 1e-12).all()


@given(max_len=st.integers(2, 30), factor=st.integers(1, 5))
def test_odd_refinement_keeps_every_old_row(max_len: int, factor: int) -> None:
    table = normal(max_len, 3)
    fine = interpolate_table(table, factor * (max_len - 1) + 1)
    np.testing.assert_allclose(fine[::factor], table, atol=1e-12)


@pytest.mark.parametrize(("factor", "equal"), [(2, False), (3, True), (4, True)])
def test_cells_lose_the_first_positions_from_a_factor_of_three_on(factor: int, equal: bool) -> None:
    table = normal(10, 4)
    cells = interpolate_table(table, 10 * factor, align_corners=False)
    assert np.array_equal(cells[0], cells[1]) == equal
    assert len(np.unique(interpolate_table(table, 10 * factor), axis=0)) == 10 * factor


def test_one_row() -> None:
    np.testing.assert_array_equal(interpolate_table(np.array([[2.0, 3.0]]), 3), [[2, 3]] * 3)
    table = np.array([[0.0], [1.0], [4.0]])
    assert interpolate_table(table, 1).tolist() == [[0]]
    assert interpolate_table(table, 1, align_corners=False).tolist() == [[1]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_low_precision_is_mixed_in_float32_and_rounded_once(dtype: torch.dtype) -> None:
    table = torch.randn(7, 5, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = interpolate_table(table, 20)
    assert found.dtype == dtype
    exact = interpolate_table(table.double(), 20)
    unit = torch.finfo(dtype).eps * 2 ** exact.abs().clamp(min=2**-14).log2().floor()
    assert ((found.double() - exact).abs() <= 0.51 * unit + 3e-7).all()


def test_gradient_passes_through_interpolation() -> None:
    table = torch.zeros(3, 1, dtype=torch.float64, requires_grad=True)
    interpolate_table(table, 5).sum().backward()
    assert table.grad is not None
    assert table.grad[:, 0].tolist() == [1.5, 2, 1.5]


def test_midway_between_unrelated_rows_lies_nearer_to_zero() -> None:
    table = normal(512, 768)
    norms = np.linalg.norm(interpolate_table(table, 1023), axis=1)
    assert norms[1::2].mean() / norms[::2].mean() == pytest.approx(math.sqrt(0.5), abs=0.01)


# --- errors

TABLE = np.ones((4, 2))


@pytest.mark.parametrize(
    ("positions", "error", "message"),
    [
        (5, ValueError, r"positions must lie in 0\.\.3, the rows of table, got 4"),
        ([0, 4], ValueError, r"positions must lie in 0\.\.3, .*got 4; overflow='clamp' gives"),
        ([1, -1], ValueError, "positions must be at least 0, got -1"),
        (-1, ValueError, "positions must be at least 0, got -1"),
        (True, TypeError, "positions must be an integer n .*got True"),
        (2.0, TypeError, "positions must be an integer n .*got 2.0"),
        (None, TypeError, "positions must be an integer n .*got None"),
        ([0.5], TypeError, "positions must be integers, got dtype float64"),
        ([[1], [1, 2]], ValueError, "positions must be a rectangular array"),
    ],
)
@pytest.mark.parametrize("table", [TABLE, torch.ones(4, 2)], ids=["numpy", "torch"])
def test_wrong_positions(positions: Any, error: type[Exception], message: str, table: Any) -> None:
    with pytest.raises(error, match=message):
        learned_encoding(positions, table)


@pytest.mark.parametrize("array", [np.asarray, torch.as_tensor], ids=["numpy", "torch"])
def test_wrong_position_arrays(array: Any) -> None:
    table = array(TABLE)
    with pytest.raises(
        TypeError, match=r"positions must be integers, got dtype .*float64: a table has no row"
    ):
        learned_encoding(array(np.array([0.5])), table)
    with pytest.raises(TypeError, match=r"positions must be integers, got dtype .*bool"):
        learned_encoding(array(np.array([True])), table)
    with pytest.raises(ValueError, match=r"positions must lie in 0\.\.3, .*got 4"):
        learned_encoding(array(np.array([[0, 4]])), table)
    other = torch.arange(2) if array is np.asarray else np.arange(2)
    with pytest.raises(TypeError, match="must be of the library of"):
        learned_encoding(other, table)


def test_negative_positions_are_no_rows_from_the_end_even_when_clamped() -> None:
    with pytest.raises(ValueError, match="positions must be at least 0, got -2"):
        learned_encoding([-2, 9], TABLE, overflow="clamp")


@pytest.mark.parametrize("overflow", ["interpolate", "", None, True])
def test_overflow_is_one_of_two_words(overflow: Any) -> None:
    with pytest.raises(ValueError, match='overflow must be "error" or "clamp", got'):
        learned_encoding(2, TABLE, overflow=overflow)


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (TABLE[0], ValueError, r"table must have shape \(max_len, dim\) with max_len >= 1, got \(2,\)"),
        (TABLE[None], ValueError, r"table must have shape .*got \(1, 4, 2\)"),
        (TABLE[:0], ValueError, r"table must have shape .*got \(0, 2\)"),
        (TABLE.astype(int), TypeError, "table must be floating, got dtype int64"),
        (TABLE.tolist(), TypeError, "table must be an array, got .* of type list"),
    ],
)
@pytest.mark.parametrize(
    "call", [lambda table: learned_encoding(1, table), lambda t: interpolate_table(t, 3)]
)
def test_wrong_tables(call: Any, table: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(table)


def test_wrong_length_and_corners() -> None:
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        interpolate_table(TABLE, 0)
    with pytest.raises(TypeError, match=r"length must be an integer, got 3\.0"):
        interpolate_table(TABLE, 3.0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="align_corners must be True or False, got None"):
        interpolate_table(TABLE, 3, align_corners=None)  # type: ignore[arg-type]
