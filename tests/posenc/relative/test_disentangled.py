"""The four terms of a score: their definition, what they share with Shaw's, the shift, TUPE's first token."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import relative_bias, sinusoidal_encoding
from posenc.experiments.disentangled import TERMS
from posenc.relative import (
    disentangled_scores,
    four_terms,
    relative_offsets,
    relative_shift,
    shaw_scores,
    untie_first,
)
from tests.posenc.refusals import refused

counts, seeds = st.integers(1, 6), st.integers(0, 2**20)
small = settings(max_examples=40, deadline=None)


def drawn(seed: int, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


# --- Absolute


@small
@given(counts, counts, seeds)
def test_four_terms_are_the_score_of_two_sums_in_which_each_switch_leaves_out_its_own(
    n: int, m: int, seed: int
) -> None:
    q, k, a, b = drawn(seed, (2, n, 4), (2, m, 4), (n, 4), (2, m, 4))
    np.testing.assert_allclose(four_terms(q, k, a, b), (q + a) @ (k + b).swapaxes(1, 2), atol=1e-12)
    pairs = dict(zip(TERMS, [(q, k), (q, b), (a, k), (a, b)], strict=True))
    for name, (left, right) in pairs.items():
        alone: dict[str, Any] = {term: term == name for term in TERMS}
        np.testing.assert_allclose(
            four_terms(q, k, a, b, **alone), left @ right.swapaxes(-1, -2) + 0 * q[:, :, :1]
        )
    assert not four_terms(q, k, a, b, **dict.fromkeys(TERMS, False)).any()


# --- By the offset


def by_hand(q: np.ndarray, k: np.ndarray, offsets: np.ndarray, b: np.ndarray, a: np.ndarray) -> np.ndarray:
    def rows(table: np.ndarray) -> np.ndarray:
        reach = table.shape[-2] // 2
        return table[..., np.clip(offsets, -reach, reach) + reach, :]

    scores = np.einsum("...td,...ud->...tu", q, k) + np.einsum("...td,...tud->...tu", q, rows(b))
    return scores + np.einsum("...ud,...tud->...tu", k, rows(a))


@small
@given(counts, st.integers(0, 4), st.integers(0, 3), st.integers(0, 3), seeds)
def test_disentangled_scores_are_their_definition(
    n: int, more: int, reach: int, other: int, seed: int
) -> None:
    """Fewer queries than keys, tables of two sizes, with and without an axis of heads."""
    q, k, c = drawn(seed, (3, 2, n, 4), (3, 2, n + more, 4), (2 * reach + 1, 2))
    for lead in ((), (2,)):
        b, a = drawn(seed + 1, (*lead, 2 * reach + 1, 4), (*lead, 2 * other + 1, 4))
        wanted = by_hand(q, k, relative_offsets(n, n + more), b, a) + relative_bias(c, n, n + more)
        np.testing.assert_allclose(disentangled_scores(q, k, b, a, c), wanted, atol=1e-12)
    t, u = drawn(seed + 2, (n,), (n + more,))
    t, u = (10 * t).astype(int), (10 * u).astype(int)
    found = disentangled_scores(q, k, b, a, query_positions=t, key_positions=u)
    np.testing.assert_allclose(found, by_hand(q, k, relative_offsets(t, u), b, a), atol=1e-12)


@small
@given(counts, st.integers(0, 3), seeds)
def test_position_to_content_is_shaw_with_the_roles_of_query_and_key_exchanged(
    n: int, reach: int, seed: int
) -> None:
    q, k, a = drawn(seed, (n, 4), (n, 4), (2 * reach + 1, 4))
    np.testing.assert_array_equal(disentangled_scores(q, k, a, words=False), shaw_scores(q, a))
    found = disentangled_scores(q, k, query_table=a, words=False)
    np.testing.assert_allclose(found, shaw_scores(k, a[::-1]).T, atol=1e-12)


@small
@given(counts, st.integers(1, 3), seeds)
def test_a_factored_table_is_shaw_with_fewer_products(n: int, rank: int, seed: int) -> None:
    """S = q · (c_j W): either the rows are made first, or the queries are brought to the rank."""
    q, codes, w = drawn(seed, (n, 6), (2 * n - 1, rank), (rank, 6))
    np.testing.assert_allclose(shaw_scores(q, codes @ w), shaw_scores(q @ w.T, codes), atol=1e-12)
    assert np.linalg.matrix_rank(codes @ w) <= rank


@small
@given(counts, seeds)
def test_transformer_xl_is_shaw_of_a_factored_table_with_two_biases(n: int, seed: int) -> None:
    q, k, w, u, v = drawn(seed, (n, 4), (n, 4), (8, 4), (4,), (4,))
    r = sinusoidal_encoding(np.arange(1 - n, n), 8) @ w
    four = disentangled_scores(q, k, r, np.tile(u, (len(r), 1)), r @ v)
    np.testing.assert_allclose(four, (q + u) @ k.T + shaw_scores(q + v, r), atol=1e-12)
    shifted = relative_shift((q + v) @ r.T)
    np.testing.assert_array_equal(shifted, shaw_scores(q + v, r))


@small
@given(counts, st.integers(0, 4), seeds, st.integers(-99, 99))
def test_a_shift_of_all_positions_changes_no_bit(n: int, more: int, seed: int, by: int) -> None:
    q, k, b, a = drawn(seed, (n, 4), (n + more, 4), (5, 4), (3, 4))
    u = np.arange(n + more)
    moved = disentangled_scores(q, k, b, a, query_positions=u[more:] + by, key_positions=u + by)
    np.testing.assert_array_equal(moved, disentangled_scores(q, k, b, a))


def test_one_query_gives_the_last_row() -> None:
    q, k, b, a = drawn(0, (2, 5, 4), (2, 5, 4), (2, 7, 4), (7, 4))
    found = disentangled_scores(q[:, -1:], k, b, a)
    np.testing.assert_allclose(found, disentangled_scores(q, k, b, a)[:, -1:], atol=1e-15)


# --- The shift


@small
@given(counts, st.integers(0, 5), seeds)
def test_the_shift_is_the_gather_bit_for_bit(n: int, more: int, seed: int) -> None:
    n_key = n + more
    (products,) = drawn(seed, (2, 3, n, n + n_key - 1))
    column = relative_offsets(n, n_key) + n_key - 1
    wanted = np.take_along_axis(products, np.broadcast_to(column, (2, 3, n, n_key)), axis=-1)
    assert np.array_equal(relative_shift(products), wanted)
    assert torch.equal(relative_shift(torch.from_numpy(products)), torch.from_numpy(wanted))


# --- TUPE


def test_the_first_token_has_a_row_and_a_column_of_its_own_and_the_corner_is_of_the_row() -> None:
    bias, row, column = drawn(0, (2, 4, 4), (2,), (2,))
    found = untie_first(bias, row, column)
    np.testing.assert_array_equal(found[:, 0], np.tile(row[:, None], 4))
    np.testing.assert_array_equal(found[:, 1:, 0], np.tile(column[:, None], 3))
    np.testing.assert_array_equal(found[:, 1:, 1:], bias[:, 1:, 1:])


@small
@given(st.integers(2, 6), seeds)
def test_untied_places_make_a_bias_that_no_word_changes(n: int, seed: int) -> None:
    """TUPE: words and places each with their matrices, both divided by sqrt(2 d)."""
    x, y, p, w_q, w_k, u_q, u_k = drawn(seed, (n, 8), (n, 8), (n, 8), *[(8, 4)] * 4)
    off = {"word_place": False, "place_word": False}
    first, second = (four_terms(z @ w_q, z @ w_k, p @ u_q, p @ u_k, **off) / math.sqrt(2 * 4) for z in (x, y))
    words = [(z @ w_q) @ (z @ w_k).T / math.sqrt(2 * 4) for z in (x, y)]
    np.testing.assert_allclose(first - words[0], second - words[1], atol=1e-12)
    np.testing.assert_allclose(first - words[0], (p @ u_q) @ (p @ u_k).T / math.sqrt(2 * 4), atol=1e-12)


# --- Errors

X, ROWS, scores = np.zeros((2, 3)), np.zeros((5, 3)), disentangled_scores
test_errors_name_the_argument = refused([
    (lambda: four_terms(X, np.zeros((2, 4)), X, X), ValueError, r"query must have shape .* got \(2, 3\) and \(2, 4\)"),
    (lambda: four_terms(X, X, np.zeros((3, 3)), X), ValueError, r"query_codes must have shape \(2, 3\) or"),
    (lambda: four_terms(X, X, X, ROWS), ValueError, r"key_codes must have shape \(2, 3\) or that of key, got \(5, 3\)"),
    (lambda: scores(X, X, np.zeros((4, 3))), ValueError, r"key_table must have 2K \+ 1 rows.* got 4"),
    (lambda: scores(X, X, None, np.zeros((5, 4))), ValueError, r"query_table must have shape \(2K \+ 1, 3\), got"),
    (lambda: scores(X[None], X[None], np.zeros((2, 5, 3))), ValueError, r"or \(1, 2K \+ 1, 3\), got \(2, 5, 3\)"),
    (lambda: scores(X, X, bias=ROWS), ValueError, r"bias must have shape .* got \(5, 3\)"),
    (lambda: scores(X, X, ROWS, query_positions=[0, 1, 2]), ValueError, "one position for each of 2 queries"),
    (lambda: scores(X, X, ROWS, key_positions=[0, 1, 2]), TypeError, "query_positions must be an array if"),
    (lambda: scores(X, X, ROWS, query_positions=[0, 1], key_positions=[0]), ValueError, r"2 keys, got \(2, 1\)"),
    (lambda: scores(X, X, bias=ROWS[:, 0], query_positions=[1]), ValueError, "for each of 2 queries"),
    (lambda: scores(ROWS, X, ROWS), ValueError, "query_positions must be at most key_positions"),
    (lambda: relative_shift(np.zeros((3, 4))), ValueError, r"products must have shape .* got \(3, 4\)"),
    (lambda: untie_first(np.zeros((2, 3)), np.zeros(()), np.zeros(())), ValueError, r"bias must have shape .*n, n"),
    (lambda: untie_first(np.zeros((2, 3, 3)), np.zeros(2), np.zeros(3)), ValueError, "to_first must have shape"),
])  # fmt: skip


@pytest.mark.parametrize("name", TERMS)
def test_a_switch_is_true_or_false(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be True or False"):
        four_terms(X, X, X, X, **{name: 1})  # type: ignore[arg-type]
