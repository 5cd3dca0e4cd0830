"""Learned tables: picking rows, the end of the table, other lengths, errors."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import learned_encoding
from posenc.learned import interpolate_table
from tests.posenc.calls import normal
from tests.posenc.refusals import refused

lengths = st.integers(1, 40)
dims = st.integers(1, 8)
seeds = st.integers(0, 2**32 - 1)
corners = st.booleans()


# --- picking rows


@given(data=st.data(), max_len=lengths, dim=dims, n=st.integers(0, 60))
def test_rows_are_picked_and_clamped_positions_get_the_last_one(
    data: st.DataObject, max_len: int, dim: int, n: int
) -> None:
    table = normal(max_len, dim)
    t = np.array(data.draw(st.lists(st.integers(0, max_len - 1), max_size=6)), dtype=int)
    for positions in (t, t.tolist(), t[:, None]):
        np.testing.assert_array_equal(
            learned_encoding(positions, table), table[np.array(positions, dtype=int)]
        )
    rows = learned_encoding(n, table, overflow="clamp")
    np.testing.assert_array_equal(rows, table[np.minimum(np.arange(n), max_len - 1)], strict=True)
    np.testing.assert_array_equal(learned_encoding(np.arange(n), table, overflow="clamp"), rows)


def test_empty_input() -> None:
    table = normal(5, 3)
    assert learned_encoding([], table).shape == (0, 3)
    assert learned_encoding(np.zeros((2, 0), dtype=int), table).shape == (2, 0, 3)


def test_a_tensor_gives_rows_at_positions_of_any_kind() -> None:
    table = torch.randn(5, 3).bfloat16()
    for positions in (torch.tensor([4, 0]), torch.tensor([4, 0], dtype=torch.uint8), [4, 0], (4, 0)):
        assert torch.equal(learned_encoding(positions, table), table[[4, 0]])
    assert torch.equal(learned_encoding(3, table), table[:3])


# --- another length


@given(max_len=lengths, length=lengths, dim=dims, align=corners, seed=seeds)
def test_equals_torch_interpolate(max_len: int, length: int, dim: int, align: bool, seed: int) -> None:
    table = normal(max_len, dim, seed=seed)
    expected = torch.nn.functional.interpolate(
        torch.from_numpy(table).T[None], size=length, mode="linear", align_corners=align
    )[0].T
    found = interpolate_table(table, length, align_corners=align)
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-12)
    np.testing.assert_array_equal(interpolate_table(table, max_len, align_corners=align), table)


@given(max_len=st.integers(2, 40), length=st.integers(2, 200), factor=st.integers(1, 5))
def test_ends_and_old_rows_stay_and_a_line_stays_a_line(max_len: int, length: int, factor: int) -> None:
    table = normal(max_len, 3)
    np.testing.assert_array_equal(interpolate_table(table, length)[[0, -1]], table[[0, -1]])
    fine = interpolate_table(table, factor * (max_len - 1) + 1)
    np.testing.assert_allclose(fine[::factor], table, atol=1e-12)
    line = interpolate_table(np.linspace(-1, 1, max_len)[:, None], length)[:, 0]
    np.testing.assert_allclose(line, np.linspace(-1, 1, length), atol=1e-12)


# --- errors

TABLE = np.ones((4, 2))
INTEGERS = "positions must be integers, got dtype "

test_errors_name_the_argument = refused([
    (lambda: learned_encoding([0, 4], TABLE), ValueError, r"0\.\.3, .*got 4; overflow='clamp' gives"),
    (lambda: learned_encoding(torch.tensor([[0, 4]]), torch.from_numpy(TABLE)), ValueError, r"0\.\.3, .*got 4"),
    (lambda: learned_encoding(np.array([0.5]), TABLE), TypeError, INTEGERS + ".*float64: a table has no row"),
    (lambda: learned_encoding(1, TABLE[0]), ValueError, r"table must have shape \(max_len, dim\) with .* got \(2,\)"),
    (lambda: interpolate_table(TABLE[:0], 3), ValueError, r"table must have shape .*got \(0, 2\)"),
    (lambda: learned_encoding(torch.arange(2), TABLE), TypeError, "be of the library of positions"),
    (lambda: learned_encoding([-2, 9], TABLE, overflow="clamp"), ValueError, "be at least 0, got -2"),
])  # fmt: skip
