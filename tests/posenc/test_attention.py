"""Scaled dot-product attention against torch's own, and where it goes further."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import causal_mask, dot_product_attention
from posenc.masks import key_padding_mask

torch_attention = torch.nn.functional.scaled_dot_product_attention

sizes = st.integers(1, 6)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@given(batch=sizes, n_q=sizes, n_k=sizes, d=sizes, d_v=sizes, seed=st.integers(0, 99))
def test_equals_torch(batch: int, n_q: int, n_k: int, d: int, d_v: int, seed: int) -> None:
    q, k, v = random(batch, n_q, d, seed=seed), random(batch, n_k, d), random(batch, n_k, d_v)
    bias = random(n_q, n_k, seed=seed + 1)
    output, weights = dot_product_attention(q, k, v, bias=bias)
    expected = torch_attention(
        torch.from_numpy(q), torch.from_numpy(k), torch.from_numpy(v), torch.from_numpy(bias)
    )
    np.testing.assert_allclose(output, expected.numpy(), atol=1e-12)
    np.testing.assert_allclose(weights.sum(axis=-1), 1)


@given(n=st.integers(1, 8), seed=st.integers(0, 99))
def test_mask_is_true_where_a_key_is_hidden(n: int, seed: int) -> None:
    q, k, v = random(n, 4, seed=seed), random(n, 4), random(n, 3)
    output, weights = dot_product_attention(q, k, v, mask=causal_mask(n))
    assert (weights[causal_mask(n)] == 0).all()
    # torch's function wants the opposite polarity: True means "may attend".
    expected = torch_attention(
        torch.from_numpy(q), torch.from_numpy(k), torch.from_numpy(v), torch.from_numpy(~causal_mask(n))
    )
    np.testing.assert_allclose(output, expected.numpy(), atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_query_without_any_key_gives_zero(dtype: torch.dtype) -> None:
    x = torch.from_numpy(random(3, 4)).to(dtype)
    mask = torch.tensor([[False] * 3, [True] * 3, [False] * 3])
    bias = torch.zeros(3, 3, dtype=dtype).masked_fill(mask, -math.inf)
    for output, weights in (
        dot_product_attention(x, x, x, mask=mask),
        dot_product_attention(x, x, x, bias=bias),
    ):
        assert output.dtype == weights.dtype == dtype
        assert (output[1] == 0).all()
        assert (weights[1] == 0).all()
        assert output.isfinite().all()
        torch.testing.assert_close(weights[0].double().sum().item(), 1.0, atol=1e-2, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_a_query_without_any_key_gives_zero_whatever_the_values_hold(dtype: torch.dtype) -> None:
    x = torch.from_numpy(random(3, 4)).to(dtype)
    mask = torch.tensor([[False] * 3, [True] * 3, [False, False, True]])
    for bad in (math.nan, math.inf):
        value = x.clone()
        value[2] = bad
        output, weights = dot_product_attention(x, x, value, mask=mask)
        assert (output[1] == 0).all()
        assert (weights[1] == 0).all()
        # As documented: a weight of 0 does not keep it out where there is another key.
        assert output[2].isnan().all()


@given(heads=st.integers(0, 2), side=st.sampled_from(["right", "left"]), causal=st.booleans())
def test_key_padding_mask_is_that_of_every_head_and_query(heads: int, side: Any, causal: bool) -> None:
    x = random(2, *(3,) * heads, 4, 5)
    pads = key_padding_mask([1, 3], 4, side=side)
    mask = np.broadcast_to(causal_mask(4) if causal else False, (4, 4))
    output, weights = dot_product_attention(x, x, x, mask=mask, key_padding_mask=pads)
    spread = pads.reshape(2, *(1,) * heads, 1, 4) | mask
    expected, _ = dot_product_attention(x, x, x, mask=np.broadcast_to(spread, weights.shape))
    np.testing.assert_array_equal(output, expected)
    alone, _ = dot_product_attention(x[0], x[0], x[0], mask=mask, key_padding_mask=None if heads else pads[0])
    if not heads:
        np.testing.assert_allclose(output[0], alone, atol=1e-15)


def test_low_precision_is_computed_in_float32() -> None:
    x = torch.from_numpy(random(16, 8)).to(torch.bfloat16)
    output, _ = dot_product_attention(x, x, x)
    exact, _ = dot_product_attention(x.double(), x.double(), x.double())
    # One rounding: half a unit in the last of 8 bits, relative to the value.
    assert ((output.double() - exact).abs() <= exact.abs() * 2**-8 + 1e-6).all()


def test_autocast_changes_nothing() -> None:
    x = torch.from_numpy(random(16, 8)).float()
    expected = dot_product_attention(x, x, x)
    with torch.autocast("cpu", torch.bfloat16):
        for got, wanted in zip(dot_product_attention(x, x, x), expected, strict=True):
            assert torch.equal(got, wanted)


def test_large_scores_do_not_overflow() -> None:
    x = np.eye(3) * 1e6
    _, weights = dot_product_attention(x, x, x)
    np.testing.assert_array_equal(weights, np.eye(3))


def test_key_padding_mask_broadcasts_only_when_given_as_such() -> None:
    x = random(3, 3, 4)
    padding = np.array([[False, False, True], [False, True, True], [False, False, False]])
    _, weights = dot_product_attention(x, x, x, mask=padding[:, None, :])
    assert (weights[0, :, 2] == 0).all()
    assert (weights[1, :, 1:] == 0).all()
    np.testing.assert_array_equal(dot_product_attention(x, x, x, key_padding_mask=padding)[1], weights)
    with pytest.raises(ValueError, match=r"mask must have shape \(2, 3\).* goes into key_padding_mask"):
        dot_product_attention(x[:, :2], x, x, mask=padding)
    for wrong in (padding[:2], padding[0], padding[:, None], padding[:1]):
        with pytest.raises(ValueError, match=r"key_padding_mask must have shape \(3, 3\), got"):
            dot_product_attention(x, x, x, key_padding_mask=wrong)
    with pytest.raises(TypeError, match="key_padding_mask must be bool, got dtype int64"):
        dot_product_attention(x, x, x, key_padding_mask=padding.astype(int))
    with pytest.raises(TypeError, match=r"key_padding_mask must be an array, got \[False"):
        dot_product_attention(x, x, x, key_padding_mask=[False, False, True])  # type: ignore[arg-type]


def test_scale_and_library() -> None:
    x = torch.from_numpy(random(2, 3))
    _, weights = dot_product_attention(x, x, x, scale=0.0)
    assert isinstance(weights, torch.Tensor)
    torch.testing.assert_close(weights, torch.full((2, 2), 0.5, dtype=torch.float64))


def test_no_keys_at_all() -> None:
    output, weights = dot_product_attention(random(2, 4), random(0, 4), random(0, 3))
    assert weights.shape == (2, 0)
    np.testing.assert_array_equal(output, np.zeros((2, 3)))


def test_causal_mask() -> None:
    np.testing.assert_array_equal(causal_mask(2), [[False, True], [False, False]])
    assert causal_mask(0).shape == (0, 0)
    with pytest.raises(ValueError, match="n must be at least 0, got -1"):
        causal_mask(-1)
    with pytest.raises(TypeError, match=r"n must be an integer, got 2\.0"):
        causal_mask(2.0)  # type: ignore[arg-type]


def test_errors_name_the_argument() -> None:
    x = random(2, 4)
    with pytest.raises(TypeError, match="query must be floating, got dtype int64"):
        dot_product_attention(np.ones((2, 4), dtype=np.int64), x, x)
    with pytest.raises(TypeError, match="key must have the dtype of query, float64, got float32"):
        dot_product_attention(x, x.astype(np.float32), x)
    with pytest.raises(TypeError, match="key must be of the library of query, ndarray, got Tensor"):
        dot_product_attention(x, torch.from_numpy(x), x)
    with pytest.raises(TypeError, match="value must be an array, got None of type NoneType"):
        dot_product_attention(x, x, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"query must be an array, got \[\[1.0\]\] of type list"):
        dot_product_attention([[1.0]], x, x)  # type: ignore[type-var]
    with pytest.raises(ValueError, match="key must have the width of query"):
        dot_product_attention(x, random(2, 5), x)
    with pytest.raises(ValueError, match="value must have one row per key: got 3 rows, 2 keys"):
        dot_product_attention(x, x, random(3, 4))
    with pytest.raises(ValueError, match=r"value must have shape \(..., length, width\), got \(4,\)"):
        dot_product_attention(x, x, random(4))
    with pytest.raises(ValueError, match=r"key must have the leading axes of query, \(\), got \(1,\)"):
        dot_product_attention(x, x[None], x[None])
    with pytest.raises(TypeError, match="mask must be bool, got dtype float64"):
        dot_product_attention(x, x, x, mask=np.zeros((2, 2)))
    with pytest.raises(TypeError, match="bias must be real floating, got dtype bool"):
        dot_product_attention(x, x, x, bias=np.zeros((2, 2), dtype=bool))
    with pytest.raises(TypeError, match="mask must be of the library of query"):
        dot_product_attention(
            torch.from_numpy(x), torch.from_numpy(x), torch.from_numpy(x), mask=causal_mask(2)
        )
    with pytest.raises(ValueError, match=r"bias must have shape \(2, 2\)"):
        dot_product_attention(x, x, x, bias=np.zeros(2))


@pytest.mark.parametrize("scale", ["1", True, np.ones(4), 1j])
def test_scale_is_one_number(scale: Any) -> None:
    x = np.eye(4)
    with pytest.raises(TypeError, match="scale must be a real number, got"):
        dot_product_attention(x, x, x, scale=scale)


@pytest.mark.parametrize("scale", [math.nan, math.inf])
def test_scale_is_finite(scale: float) -> None:
    x = np.eye(4)
    with pytest.raises(ValueError, match=f"scale must be finite, got {scale}"):
        dot_product_attention(x, x, x, scale=scale)
