"""Scaled dot-product attention against torch's own, and where it goes further."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import causal_mask
from posenc import dot_product_attention as attend
from posenc.masks import key_padding_mask
from tests.posenc.calls import normal
from tests.posenc.refusals import refused

sizes = st.integers(1, 6)
torch_attention: Any = torch.nn.functional.scaled_dot_product_attention
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


@given(batch=sizes, n_q=sizes, n_k=sizes, d=sizes, d_v=sizes, seed=st.integers(0, 99))
def test_equals_torch(batch: int, n_q: int, n_k: int, d: int, d_v: int, seed: int) -> None:
    q, k, v = normal(batch, n_q, d, seed=seed), normal(batch, n_k, d), normal(batch, n_k, d_v)
    bias, mask = normal(n_q, n_k, seed=seed + 1), normal(n_q, n_k) > 1
    mask[:, 0] = False
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    # torch's function wants the opposite polarity: True means "may attend".
    options: list[tuple[dict[str, Any], np.ndarray]] = [({"bias": bias}, bias), ({"mask": mask}, ~mask)]
    for ours, torchs in options:
        output, weights = attend(q, k, v, **ours)
        expected = torch_attention(*tensors, torch.from_numpy(torchs))
        np.testing.assert_allclose(output, expected.numpy(), atol=1e-12)
        np.testing.assert_allclose(weights.sum(axis=-1), 1)
    assert (weights[:, mask] == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_query_without_any_key_gives_zero_whatever_the_values_hold(dtype: torch.dtype) -> None:
    x = torch.from_numpy(normal(3, 4)).to(dtype)
    mask = torch.tensor([[False] * 3, [True] * 3, [False, False, True]])
    bias = torch.zeros(3, 3, dtype=dtype).masked_fill(mask, -math.inf)
    ways: list[dict[str, Any]] = [{"mask": mask}, {"bias": bias}]
    for forbidden in ways:
        output, weights = attend(x, x, x, **forbidden)
        assert output.dtype == weights.dtype == dtype
        assert output.isfinite().all()
        torch.testing.assert_close(weights.sum(-1), torch.tensor([1, 0, 1], dtype=dtype), atol=1e-2, rtol=0)
        for bad in (math.nan, math.inf):
            value = torch.cat([x[:2], torch.full_like(x[2:], bad)])
            output, _ = attend(x, x, value, **forbidden)
            assert (output[1] == 0).all()
            # As documented: a weight of 0 does not keep it out where there is another key.
            assert output[2].isnan().all()


@given(heads=st.integers(0, 2), side=st.sampled_from(["right", "left"]), causal=st.booleans())
def test_key_padding_mask_is_that_of_every_head_and_query(heads: int, side: Any, causal: bool) -> None:
    x = normal(2, *(3,) * heads, 4, 5)
    pads = key_padding_mask([1, 3], 4, side=side)
    mask = np.broadcast_to(causal_mask(4) if causal else False, (4, 4))
    output, weights = attend(x, x, x, mask=mask, key_padding_mask=pads)
    spread = pads.reshape(2, *(1,) * heads, 1, 4) | mask
    expected, _ = attend(x, x, x, mask=np.broadcast_to(spread, weights.shape))
    np.testing.assert_array_equal(output, expected)
    if not heads:
        alone, _ = attend(x[0], x[0], x[0], mask=mask, key_padding_mask=pads[0])
        np.testing.assert_allclose(output[0], alone, atol=1e-15)


def test_causal_mask_hides_what_comes_later() -> None:
    for n in range(4):
        np.testing.assert_array_equal(causal_mask(n), np.triu(np.ones((n, n), dtype=bool), 1))


def test_large_scores_do_not_overflow() -> None:
    x = np.eye(3) * 1e6
    np.testing.assert_array_equal(attend(x, x, x)[1], np.eye(3))


def test_a_scale_of_zero_sees_all_keys_alike_and_no_keys_give_zero() -> None:
    _, weights = attend(*normal(3, 2, 3), scale=0.0)
    np.testing.assert_array_equal(weights, np.full((2, 2), 0.5))
    output, weights = attend(normal(2, 4), normal(0, 4), normal(0, 3))
    assert weights.shape == (2, 0)
    np.testing.assert_array_equal(output, np.zeros((2, 3)))


# --- Errors

X, BATCH, PADS = np.ones((2, 4)), np.ones((3, 3, 4)), np.zeros((3, 3), dtype=bool)
TENSOR = torch.from_numpy(X)


test_errors_name_the_argument = refused([
    (lambda: attend(X, X.astype("f"), X), TypeError, "key must have the dtype of query, float64, got float32"),
    (lambda: attend(X, TENSOR, X), TypeError, "key must be of the library of query, ndarray, got"),
    (lambda: attend(X, X[:, :3], X), ValueError, "key must have the width of query"),
    (lambda: attend(X[:, :0], X[:, :0], X), ValueError, "key must have the width of query, at least 1"),
    (lambda: attend(X, X, X[[0, 0, 0]]), ValueError, "value must have one row per key: got 3 rows, 2 keys"),
    (lambda: attend(X, X, X[0]), ValueError, r"value must have shape \(..., length, width\), got \(4,\)"),
    (lambda: attend(X, X[None], X[None]), ValueError, r"key must have the leading axes of query, \(\)"),
    (lambda: attend(X, X, X, mask=X[:, :2]), TypeError, "mask must be bool, got dtype float64"),
    (lambda: attend(TENSOR, TENSOR, TENSOR, mask=PADS), TypeError, "mask must be of the library of query"),
    (lambda: attend(X, X, X, bias=X[0]), ValueError, r"bias must have shape \(2, 2\)"),
    (lambda: attend(BATCH[:, :2], BATCH, BATCH, mask=PADS), ValueError,
     r"mask must have shape \(2, 3\).* goes into key_padding_mask"),
    (lambda: attend(BATCH, BATCH, BATCH, key_padding_mask=PADS[:2]), ValueError,
     r"key_padding_mask must have shape \(3, 3\), got \(2, 3\)"),
    (lambda: attend(BATCH, BATCH, BATCH, key_padding_mask=PADS[0]), ValueError,
     r"key_padding_mask must have shape \(3, 3\), got \(3,\)"),
    (lambda: attend(BATCH, BATCH, BATCH, key_padding_mask=PADS[:, None]), ValueError,
     r"key_padding_mask must have shape \(3, 3\), got \(3, 1, 3\)"),
    (lambda: attend(X, X, X, key_padding_mask=X), TypeError, "key_padding_mask must be bool, got dtype float64"),
])  # fmt: skip
