"""Adding codes and putting them beside: shapes, dtypes, the identity that joins the two, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import add_positions, concat_positions, sinusoidal_encoding

sizes = st.integers(1, 9)
seeds = st.integers(0, 2**32 - 1)
leads = st.lists(sizes, max_size=1).map(tuple)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


# --- the sum


def test_two_words_in_two_dimensions() -> None:
    total = add_positions(np.array([[1.0, 3.0], [1.0, 3.0]]), np.array([[2.0, 1.0], [1.0, 3.0]]))
    assert total.tolist() == [[3, 4], [2, 6]]
    assert np.linalg.norm(total[0]) == 5
    assert np.linalg.norm(total[0] - total[1]) == pytest.approx(math.sqrt(5))


@given(lead=leads, seq=sizes, dim=sizes, seed=seeds)
def test_sum_for_every_sentence_of_the_batch(lead: tuple[int, ...], seq: int, dim: int, seed: int) -> None:
    x, pe = normal(*lead, seq, dim, seed=seed), normal(seq, dim, seed=seed + 1)
    total = add_positions(x, pe)
    assert total.shape == x.shape
    for index in np.ndindex(*x.shape):
        assert total[index] == x[index] + pe[index[-2:]]
    full = np.broadcast_to(pe, x.shape).copy()
    np.testing.assert_array_equal(add_positions(x, full), total)


@given(seq=sizes, dim=sizes, seed=seeds)
def test_same_token_differs_by_the_difference_of_the_codes(seq: int, dim: int, seed: int) -> None:
    token, pe = normal(dim, seed=seed), normal(seq, dim, seed=seed + 1)
    total = add_positions(np.tile(token, (seq, 1)), pe)
    np.testing.assert_allclose(total - total[0], pe - pe[0], atol=1e-12)


@given(dim=sizes, seed=seeds)
def test_scale_multiplies_the_embeddings_only(dim: int, seed: int) -> None:
    x, pe = normal(3, dim, seed=seed), normal(3, dim, seed=seed + 1)
    np.testing.assert_allclose(add_positions(x, pe, scale=True) - math.sqrt(dim) * x, pe, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_rounded_once(dtype: torch.dtype) -> None:
    x = torch.randn(2, 50, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    codes = sinusoidal_encoding(50, 64, dtype=torch.float32)
    for scale in (False, True):
        total = add_positions(x, codes, scale=scale)
        assert total.dtype == dtype
        assert torch.equal(total, ((8 if scale else 1) * x.float() + codes).to(dtype))
    # Rounding the codes first would give other numbers.
    assert not torch.equal(add_positions(x, codes), x + codes.to(dtype))


def test_result_is_a_new_array_and_passes_gradients() -> None:
    x, pe = normal(2, 3), np.zeros((2, 3))
    add_positions(x, pe)[0, 0] = 9
    assert x[0, 0] != 9
    embeddings, codes = torch.zeros(2, 3, 4, requires_grad=True), torch.zeros(3, 4, requires_grad=True)
    add_positions(embeddings, codes, scale=True).sum().backward()
    assert embeddings.grad is not None
    assert codes.grad is not None
    assert (embeddings.grad == 2).all()
    assert (codes.grad == 2).all()  # once for each of the two sentences


# --- beside each other


@given(lead=leads, seq=sizes, widths=st.tuples(sizes, sizes), seed=seeds)
def test_concatenation_keeps_both(
    lead: tuple[int, ...], seq: int, widths: tuple[int, int], seed: int
) -> None:
    x, pe = normal(*lead, seq, widths[0], seed=seed), normal(seq, widths[1], seed=seed + 1)
    joined = concat_positions(x, pe)
    assert joined.shape == (*lead, seq, sum(widths))
    np.testing.assert_array_equal(joined[..., : widths[0]], x)
    np.testing.assert_array_equal(joined[..., widths[0] :], np.broadcast_to(pe, (*lead, seq, widths[1])))
    full = np.broadcast_to(pe, (*lead, seq, widths[1])).copy()
    np.testing.assert_array_equal(concat_positions(x, full), joined)


@given(lead=leads, seq=sizes, dim=sizes, out=sizes, seed=seeds)
def test_addition_is_concatenation_with_tied_weights(
    lead: tuple[int, ...], seq: int, dim: int, out: int, seed: int
) -> None:
    x, pe = normal(*lead, seq, dim, seed=seed), normal(seq, dim, seed=seed + 1)
    w = normal(dim, out, seed=seed + 2)
    tied = concat_positions(x, pe) @ np.vstack([w, w])
    np.testing.assert_allclose(tied, add_positions(x, pe) @ w, atol=1e-12)


@given(seq=sizes, dim=sizes, width=sizes, out=sizes, seed=seeds)
def test_untied_weights_are_a_sum_of_two_maps(seq: int, dim: int, width: int, out: int, seed: int) -> None:
    x, pe = normal(seq, dim, seed=seed), normal(seq, width, seed=seed + 1)
    w_x, w_p = normal(dim, out, seed=seed + 2), normal(width, out, seed=seed + 3)
    np.testing.assert_allclose(
        concat_positions(x, pe) @ np.vstack([w_x, w_p]), add_positions(x @ w_x, pe @ w_p), atol=1e-12
    )


@pytest.mark.parametrize("join", [add_positions, concat_positions])
def test_the_callers_library_and_dtype_are_kept(join: Any) -> None:
    x, pe = normal(2, 3, 4), normal(3, 4, seed=1)
    expected = join(x, pe)
    found = join(torch.from_numpy(x), torch.from_numpy(pe))
    assert found.dtype == torch.float64
    np.testing.assert_array_equal(found.numpy(), expected)
    for dtype in (np.float32, np.float16):
        assert join(x.astype(dtype), pe).dtype == dtype
    assert join(torch.from_numpy(x).to(torch.bfloat16), torch.from_numpy(pe)).dtype == torch.bfloat16


# --- errors

X, PE = np.ones((2, 3, 4)), np.ones((3, 4))


@pytest.mark.parametrize(
    ("x", "pe", "message"),
    [
        (X, PE[:1], r"pe must have shape \(3, 4\) or \(2, 3, 4\) to be added to x, got \(1, 4\)"),
        (X, PE[None], r"pe must have shape \(3, 4\) or \(2, 3, 4\) .*got \(1, 3, 4\)"),
        (X, PE[:, :1], r"pe must have shape .*got \(3, 1\)"),
        (X, np.ones((2, 4)), r"pe must have shape .*got \(2, 4\)"),
        (X, np.ones((5, 4)), r"pe must have shape .*got \(5, 4\)"),
        (X, PE[0], r"pe must have shape .*got \(4,\)"),
        (X[0], X, r"pe must have shape \(3, 4\) to be added to x, got \(2, 3, 4\)"),
        (X[0, 0], PE, r"x must have shape \(seq, dim\) or \(batch, seq, dim\), got \(4,\)"),
        (X[None], PE, r"x must have shape .*got \(1, 2, 3, 4\)"),
    ],
)
def test_no_shape_is_broadcast_but_the_one(x: np.ndarray, pe: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        add_positions(x, pe)


@pytest.mark.parametrize(
    ("x", "pe", "message"),
    [
        (
            X,
            np.ones((1, 7)),
            r"pe must have shape \(3, d_p\) or \(2, 3, d_p\) to stand beside x, got \(1, 7\)",
        ),
        (X, np.ones((1, 3, 7)), r"pe must have shape .*got \(1, 3, 7\)"),
        (X[0], np.ones((2, 3, 7)), r"pe must have shape \(3, d_p\) to stand beside x, got \(2, 3, 7\)"),
        (X, PE[0], r"pe must have shape .*got \(4,\)"),
        (X[0, 0], PE, r"x must have shape \(seq, dim\) or \(batch, seq, dim\), got \(4,\)"),
    ],
)
def test_concatenation_broadcasts_no_other_shape(x: np.ndarray, pe: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        concat_positions(x, pe)


@pytest.mark.parametrize("join", [add_positions, concat_positions])
@pytest.mark.parametrize(
    ("x", "pe", "message"),
    [
        (X.astype(int), PE, "x must be floating, got dtype int64"),
        (X, PE * 1j, "pe must be floating, got dtype complex128"),
        (torch.ones(2, 3, 4), PE, "pe must be of the library of x, Tensor"),
        (X, PE.tolist(), "pe must be an array, got .* of type list"),
        (None, PE, "x must be an array, got None of type NoneType"),
        (X, None, "pe must be an array, got None"),
    ],
)
def test_arrays_of_the_wrong_kind(join: Any, x: Any, pe: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        join(x, pe)


def test_scale_is_a_bool() -> None:
    with pytest.raises(TypeError, match=r"scale must be True or False, got 2\.0"):
        add_positions(X, PE, scale=2.0)  # type: ignore[arg-type]
