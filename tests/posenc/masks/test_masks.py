"""Padding and masks in any array library: what they say, what they refuse, what they keep out."""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from posenc import causal_mask, dot_product_attention, sinusoidal_encoding
from posenc.masks import (
    apply_output_mask,
    combine_masks,
    document_ids,
    document_mask,
    document_positions,
    empty_rows,
    key_padding_mask,
    leak_in,
    leak_out,
    masked_loss,
    masked_mean,
    multihead_mask,
    pack_sequences,
    pad_batch,
    positions_from_mask,
    safe_mask,
    sdpa_mask,
)
from tests.posenc.calls import normal
from tests.posenc.refusals import refused

lengths_of = st.lists(st.integers(1, 7), min_size=1, max_size=4)
sides = st.sampled_from(["right", "left"])
# A first call of a library may take a while on a busy machine.
patient = settings(deadline=None, max_examples=25)


def rows(lengths: list[int], *rest: int, seed: int = 0) -> list[np.ndarray]:
    return [normal(n, *rest, seed=seed + b) for b, n in enumerate(lengths)]


# --- Batches ------------------------------------------------------------------------------------------------


@patient
@given(lengths=lengths_of, rest=st.lists(st.integers(1, 3), max_size=2), side=sides, more=st.integers(0, 3))
def test_padding_can_be_taken_off_again(lengths: list[int], rest: list[int], side: Any, more: int) -> None:
    sequences = rows(lengths, *rest)
    batch, mask = pad_batch(sequences, side=side, length=max(lengths) + more, value=-7.5)
    assert batch.shape == (len(lengths), max(lengths) + more, *rest)
    assert (~mask).sum(axis=1).tolist() == lengths
    for b, row in enumerate(sequences):
        np.testing.assert_array_equal(batch[b][~mask[b]], row)
        assert (batch[b][mask[b]] == -7.5).all()
        assert not mask[b, 0 if side == "right" else -1]


@patient
@given(lengths=lengths_of, side=sides)
def test_key_padding_mask_by_its_definition(lengths: list[int], side: Any) -> None:
    n = max(lengths) + 1
    mask = key_padding_mask(lengths, n, side=side)
    for b, length in enumerate(lengths):
        pads = [u >= length if side == "right" else u < n - length for u in range(n)]
        assert mask[b].tolist() == pads


def test_key_padding_mask_of_a_number_and_of_none() -> None:
    assert key_padding_mask(2, 3).tolist() == [False, False, True]
    assert key_padding_mask(np.array(2), 3).shape == (3,)
    assert key_padding_mask([]).shape == (0, 0)
    batch, mask = pad_batch([[], [1, 2]])
    assert batch.dtype == np.int64
    assert mask.tolist() == [[True, True], [False, False]]
    assert safe_mask(mask).tolist() == [[False, False], [False, False]]
    like = torch.zeros(1, dtype=torch.float16)
    assert key_padding_mask([1, 2], like=like).dtype == torch.bool
    assert key_padding_mask(torch.tensor([1, 2], dtype=torch.uint8)).shape == (2, 2)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.int64, torch.float16, torch.bfloat16])
def test_pad_batch_keeps_the_dtype(dtype: torch.dtype) -> None:
    batch, _ = pad_batch([torch.ones(2, dtype=dtype), torch.ones(1, dtype=dtype)])
    assert batch.dtype == dtype
    assert batch.tolist() == [[1, 1], [1, 0]]


@patient
@given(lengths=lengths_of, side=sides)
def test_positions_count_real_tokens(lengths: list[int], side: Any) -> None:
    mask = key_padding_mask(lengths, max(lengths) + 2, side=side)
    positions = positions_from_mask(mask)
    for b, length in enumerate(lengths):
        assert positions[b][~mask[b]].tolist() == list(range(length))
    assert (positions[mask] == 0).all()
    holes = np.array([False, True, False, True, True, False])
    assert positions_from_mask(holes).tolist() == [0, 0, 1, 0, 0, 2]


# --- Masks --------------------------------------------------------------------------------------------------


@patient
@given(lengths=lengths_of, side=sides)
def test_combined_mask_forbids_what_either_forbids(lengths: list[int], side: Any) -> None:
    pads = key_padding_mask(lengths, side=side)
    both = combine_masks(pads, mask=causal_mask(max(lengths)))
    for b, t, u in np.ndindex(both.shape):
        assert both[b, t, u] == (pads[b, u] or u > t)
    np.testing.assert_array_equal(combine_masks(pads)[:, 0], pads)
    np.testing.assert_array_equal(combine_masks(pads, mask=both), both)
    np.testing.assert_array_equal(empty_rows(both), [[row.all() for row in rows] for rows in both])
    safe = safe_mask(both)
    assert not empty_rows(safe).any()
    np.testing.assert_array_equal(safe[~empty_rows(both)], both[~empty_rows(both)])


def test_masks_for_torch_have_its_shapes_and_polarity() -> None:
    mask = normal(2, 3, 4) > 0
    heads = multihead_mask(mask, 5)
    assert heads.shape == (10, 3, 4)
    for b in range(2):
        for h in range(5):
            np.testing.assert_array_equal(heads[5 * b + h], mask[b])
    np.testing.assert_array_equal(sdpa_mask(mask)[:, 0], ~mask)
    assert causal_mask(3, like=torch.zeros(1, device="meta")).device.type == "meta"


# --- Packing ------------------------------------------------------------------------------------------------


@patient
@given(lengths=lengths_of, pads=st.integers(0, 3), causal=st.booleans())
def test_packed_documents_are_as_if_alone(lengths: list[int], pads: int, causal: bool) -> None:
    documents = rows(lengths, 6)
    row, ids = pack_sequences(documents, length=sum(lengths) + pads)
    positions = document_positions(ids)
    assert ids.tolist() == [b for b, n in enumerate(lengths) for _ in range(n)] + [-1] * pads
    assert positions.tolist() == [t for n in lengths for t in range(n)] + [0] * pads
    n = len(ids)
    mask = document_mask(ids) | (causal_mask(n) if causal else False)
    h = row + sinusoidal_encoding(positions, 6)
    output, _ = dot_product_attention(h, h, h, mask=mask)
    for b, x in enumerate(documents):
        y = x + sinusoidal_encoding(len(x), 6)
        alone, _ = dot_product_attention(y, y, y, mask=causal_mask(len(x)) if causal else None)
        np.testing.assert_allclose(output[ids == b], alone, atol=1e-12)
    assert (output[ids < 0] == 0).all()


def test_packed_rows_of_a_batch() -> None:
    ids = np.array([[0, 0, 1, 1, 1], [7, 3, 3, -1, -1]])
    assert document_positions(ids).tolist() == [[0, 1, 0, 1, 2], [0, 0, 1, 0, 0]]
    assert document_mask(ids).shape == (2, 5, 5)
    assert document_positions(np.zeros((2, 0), dtype=np.int64)).shape == (2, 0)
    assert document_ids(torch.tensor([2, 1])).tolist() == [0, 0, 1]
    assert document_ids([]).shape == (0,)


def test_document_numbers_take_linear_memory() -> None:
    """Not one number for each place and document: 134 MB here."""
    tracemalloc.start()
    document_ids([16] * 1024)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2e6


# --- What counts --------------------------------------------------------------------------------------------


@patient
@given(lengths=lengths_of, side=sides, rest=st.lists(st.integers(1, 3), max_size=2))
def test_means_and_losses_see_real_tokens_only(lengths: list[int], side: Any, rest: list[int]) -> None:
    sequences = rows(lengths, *rest)
    x, pads = pad_batch(sequences, side=side, length=max(lengths) + 2, value=math.nan)
    zeroed, mean = apply_output_mask(x, pads), masked_mean(x, pads)
    for b, row in enumerate(sequences):
        np.testing.assert_array_equal(zeroed[b][~pads[b]], row)
        np.testing.assert_allclose(mean[b], row.mean(axis=0), atol=1e-12)
    assert (zeroed[pads] == 0).all()
    if not rest:
        expected = np.concatenate(sequences).mean()
        np.testing.assert_allclose(float(masked_loss(x, pads)), expected, atol=1e-12)


def test_without_any_real_token_it_is_zero() -> None:
    mask = np.ones((1, 3), dtype=bool)
    assert masked_mean(np.full((1, 3, 2), math.nan), mask).tolist() == [[0.0, 0.0]]
    assert float(masked_loss(np.full((1, 3), math.inf), mask)) == 0


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_summed_in_float32(dtype: torch.dtype) -> None:
    # float16 ends at 65504, and bfloat16 counts no further than 256 by ones.
    x = torch.ones(1, 70_000, dtype=dtype)
    mask = key_padding_mask(torch.tensor([69_999]), 70_000)
    assert masked_mean(x, mask).tolist() == [1.0]
    assert masked_mean(x, mask).dtype == masked_loss(x, mask).dtype == dtype
    assert masked_loss(x, mask).item() == 1.0


# --- Leaks --------------------------------------------------------------------------------------------------


@patient
@given(lengths=lengths_of, side=sides, heads=st.integers(0, 2))
def test_leaks_by_their_definition(lengths: list[int], side: Any, heads: int) -> None:
    n = max(lengths) + 1
    pads = key_padding_mask(lengths, n, side=side)
    shape = (len(lengths), *(2,) * heads)
    weights = np.exp(normal(*shape, n, n))
    weights /= weights.sum(axis=-1, keepdims=True)
    into, out = [], []
    for index in np.ndindex(shape):
        mask = pads[index[0]]
        into += weights[index][~mask][:, mask].sum(axis=-1).tolist()
        out += weights[index][mask][:, ~mask].sum(axis=-1).tolist()
    assert leak_in(weights, pads) == pytest.approx(np.mean(into))
    assert leak_out(weights, pads) == pytest.approx(np.mean(out))


def test_leaks_with_a_key_mask_and_without_pads() -> None:
    x = normal(6, 4)
    mask = key_padding_mask(4, 6)
    _, weights = dot_product_attention(x, x, x, mask=np.tile(mask, (6, 1)))
    assert leak_in(weights, mask) == 0
    assert leak_out(weights, mask) == pytest.approx(1)
    trained = torch.softmax(torch.zeros(4, 4, requires_grad=True), dim=-1)
    assert leak_in(trained, key_padding_mask(torch.tensor(3), 4)) == 0.25
    none = np.zeros(6, dtype=bool)
    assert leak_in(weights, none) == leak_out(weights, none) == 0
    assert leak_out(weights, ~none) == leak_in(weights, ~none) == 0


# --- Errors -------------------------------------------------------------------------------------------------

X = np.zeros((2, 3, 4))
PADS = key_padding_mask([3, 1])


test_errors_name_the_argument = refused([
    (lambda: pad_batch([]), ValueError, "sequences must hold at least one"),
    (lambda: pad_batch([[1], [2.5]]), TypeError, "one dtype, got int64 and, at 1, float64"),
    (lambda: pad_batch([X, X[:, :2]]), ValueError, r"one trailing shape, got .*, at 1, \(2, 4\)"),
    (lambda: pad_batch([np.float64(1)]), ValueError, "at least one axis"),
    (lambda: pad_batch([X, torch.zeros(2, 3, 4)]), TypeError, r"\[1\] .* the library of"),
    (lambda: pad_batch([["a"]]), TypeError, "sequences must hold numbers or bool, got dtype <U1 at 0"),
    (lambda: pad_batch([[1], [2, 3]], value=0.5), ValueError, "value .* int64, holds; got 0.5"),
    (lambda: pad_batch([[True]], value=2), ValueError, "value .* got 2"),
    (lambda: pad_batch([X.astype(np.float16)], value=-1e9), ValueError, "value .* float16"),
    (lambda: key_padding_mask([3, 1], 2), ValueError, "lengths must be at most n = 2, got 3"),
    (lambda: key_padding_mask([1.5]), TypeError, r"lengths\[0\] must be an integer, got 1.5"),
    (lambda: key_padding_mask(np.array([-1])), ValueError, "lengths must be at least 0, got -1"),
    (lambda: key_padding_mask(np.ones((2, 3), dtype=int)), ValueError, r"one axis.*got shape \(2, 3\)"),
    (lambda: key_padding_mask(np.ones(1, dtype=int), like=torch.ones(1)), TypeError, "library of like"),
    (lambda: positions_from_mask(PADS.astype(int)), TypeError, "padding_mask must be a bool array"),
    (lambda: positions_from_mask(np.array(True)), ValueError, "at least 1 axes"),
    (lambda: document_ids([3, 2], 4), ValueError, "lengths must sum to at most n = 4, got 5"),
    (lambda: document_ids(3), ValueError, r"lengths must have one axis, got shape \(\)"),
    (lambda: document_ids(np.array([0, 0, 1])), ValueError, "lengths must be at least 1, got 0"),
    (lambda: pack_sequences([[1], []]), ValueError, "at least one token each, got none at 1"),
    (lambda: document_mask(X), TypeError, "documents must be an integer array, got dtype float64"),
    (lambda: document_mask(np.array(1)), ValueError, "at least 1 axis"),
    (lambda: document_positions(np.array([0, 1, 0])), ValueError, "documents must be in one piece"),
    (lambda: document_mask(np.array([0, -1, 0])), ValueError, "documents must be in one piece"),
    (lambda: combine_masks(PADS, mask=causal_mask(2)), ValueError, r"\(n_q, 3\) or \(2, n_q, 3\)"),
    (lambda: combine_masks(PADS, mask=torch.ones(3, 3) > 0), TypeError, "the library of padding_mask"),
    (lambda: combine_masks(causal_mask(3), PADS), TypeError, "takes 1 positional argument"),  # type: ignore[call-arg]
    (lambda: multihead_mask(PADS, 2), ValueError, r"shape \(batch, n_q, n_k\), got \(2, 3\)"),
    (lambda: sdpa_mask(PADS), ValueError, r"got \(2, 3\): a padding mask goes through combine_masks"),
    (lambda: empty_rows(PADS[0]), ValueError, "at least 2 axes"),
    (lambda: safe_mask(X), TypeError, "mask must be a bool array"),
    (lambda: apply_output_mask(X, PADS[:1]), ValueError, r"padding_mask must have the first axes of x"),
    (lambda: apply_output_mask(X[0], PADS), ValueError, r"first axes of x, got \(2, 3\) and \(3, 4\)"),
    (lambda: apply_output_mask(torch.zeros(2, 3), PADS), TypeError, "x must be of the library of"),
    (lambda: masked_loss(X, PADS), ValueError, r"losses must have the shape of padding_mask, \(2, 3\)"),
    (lambda: leak_in(X, PADS), ValueError, r"weights .* \(2, ..., 3, 3\), got \(2, 3, 4\)"),
])  # fmt: skip
