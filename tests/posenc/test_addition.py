"""Adding codes and putting them beside: shapes, dtypes, the identity that joins the two, errors."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import add_positions, concat_positions, sinusoidal_encoding
from tests.posenc.calls import normal

sizes = st.integers(1, 9)
seeds = st.integers(0, 2**32 - 1)
leads = st.lists(sizes, max_size=1).map(tuple)


@given(lead=leads, seq=sizes, dim=sizes, seed=seeds)
def test_sum_for_every_sentence_of_the_batch(lead: tuple[int, ...], seq: int, dim: int, seed: int) -> None:
    x, pe = normal(*lead, seq, dim, seed=seed), normal(seq, dim, seed=seed + 1)
    expected = np.empty_like(x)
    for index in np.ndindex(*x.shape):
        expected[index] = x[index] + pe[index[-2:]]
    for codes in (pe, np.broadcast_to(pe, x.shape)):
        np.testing.assert_array_equal(add_positions(x, codes), expected)
        np.testing.assert_array_equal(add_positions(x, codes, scale=True), math.sqrt(dim) * x + codes)


@given(lead=leads, seq=sizes, dim=sizes, width=sizes, seed=seeds)
def test_concatenation_keeps_both(lead: tuple[int, ...], seq: int, dim: int, width: int, seed: int) -> None:
    x, pe = normal(*lead, seq, dim, seed=seed), normal(seq, width, seed=seed + 1)
    full = np.broadcast_to(pe, (*lead, seq, width))
    for codes in (pe, full):
        np.testing.assert_array_equal(concat_positions(x, codes), np.concatenate([x, full], axis=-1))


@given(lead=leads, seq=sizes, dim=sizes, width=sizes, out=sizes, seed=seeds)
def test_untied_weights_are_a_sum_of_two_maps_and_tied_ones_addition(
    lead: tuple[int, ...], seq: int, dim: int, width: int, out: int, seed: int
) -> None:
    x, pe = normal(*lead, seq, dim, seed=seed), normal(seq, width, seed=seed + 1)
    w_x, w_p = normal(dim, out, seed=seed + 2), normal(width, out, seed=seed + 3)
    untied = concat_positions(x, pe) @ np.vstack([w_x, w_p])
    np.testing.assert_allclose(untied, add_positions(x @ w_x, pe @ w_p), atol=1e-12)
    codes = normal(seq, dim, seed=seed + 4)
    tied = concat_positions(x, codes) @ np.vstack([w_x, w_x])
    np.testing.assert_allclose(tied, add_positions(x, codes) @ w_x, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_is_rounded_once(dtype: torch.dtype) -> None:
    x = torch.randn(2, 50, 64, generator=torch.Generator().manual_seed(0)).to(dtype)
    codes = sinusoidal_encoding(50, 64, dtype=torch.float32)
    for scale in (False, True):
        rounded = ((8 if scale else 1) * x.float() + codes).to(dtype)
        assert torch.equal(add_positions(x, codes, scale=scale), rounded)
    assert concat_positions(x, codes).dtype == dtype
    for join in (add_positions, concat_positions):
        assert join(np.ones((2, 3, 4), np.float16), np.ones((3, 4))).dtype == np.float16
    # Rounding the codes first would give other numbers.
    assert not torch.equal(add_positions(x, codes), x + codes.to(dtype))


# --- Errors

X, PE, WIDE = np.ones((2, 3, 4)), np.ones((3, 4)), np.ones((2, 3, 7))
BOTH = (add_positions, concat_positions)


@pytest.mark.parametrize(
    ("joins", "x", "pe", "error", "message"),
    [
        (BOTH[:1], X, PE[:1], ValueError, r"pe must have shape \(3, 4\) or \(2, 3, 4\) to be added to x, got \(1, 4\)"),
        (BOTH[:1], X, PE[None], ValueError, r"pe must have shape \(3, 4\) or \(2, 3, 4\) .*got \(1, 3, 4\)"),
        (BOTH[:1], X, PE[:2], ValueError, r"pe must have shape .*got \(2, 4\)"),
        (BOTH[:1], X[0], X, ValueError, r"pe must have shape \(3, 4\) to be added to x, got \(2, 3, 4\)"),
        (BOTH[1:], X, WIDE[0, :1], ValueError,
         r"pe must have shape \(3, d_p\) or \(2, 3, d_p\) to stand beside x, got \(1, 7\)"),
        (BOTH[1:], X, WIDE[:1], ValueError, r"pe must have shape .*got \(1, 3, 7\)"),
        (BOTH[1:], X[0], WIDE, ValueError, r"pe must have shape \(3, d_p\) to stand beside x, got \(2, 3, 7\)"),
        (BOTH, X, PE[0], ValueError, r"pe must have shape .*got \(4,\)"),
        (BOTH, X[0, 0], PE, ValueError, r"x must have shape \(seq, dim\) or \(batch, seq, dim\), got \(4,\)"),
        (BOTH, torch.ones(2, 3, 4), PE, TypeError, "pe must be of the library of x, Tensor"),
    ],
)  # fmt: skip
def test_no_other_shape_or_kind_is_taken(
    joins: Any, x: Any, pe: Any, error: type[Exception], message: str
) -> None:
    for join in joins:
        with pytest.raises(error, match=message):
            join(x, pe)
