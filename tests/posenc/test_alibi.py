"""ALiBi: slopes, bias and the columns that take its place."""

from __future__ import annotations

import math
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import alibi_bias, alibi_slopes, causal_mask, dot_product_attention, kerple_bias
from posenc.alibi import add_alibi_columns

SLOPES = st.floats(2**-9, 1.0)


def finite(bias: Any) -> Any:
    return bias[np.isfinite(bias)]


# --- Slopes


def published_slopes(heads: int) -> list[float]:
    """The rule as its authors wrote it down: a recursion."""
    if math.log2(heads).is_integer():
        start = 2 ** (-(2 ** -(math.log2(heads) - 3)))
        return [start * start**i for i in range(heads)]
    below = 2 ** math.floor(math.log2(heads))
    return published_slopes(below) + published_slopes(2 * below)[0::2][: heads - below]


@given(st.integers(1, 300))
def test_slopes_follow_the_published_rule(heads: int) -> None:
    slopes = alibi_slopes(heads)
    assert slopes.shape == (heads,)
    assert slopes.dtype == np.float64
    np.testing.assert_allclose(slopes, published_slopes(heads), rtol=1e-12)
    assert len(np.unique(slopes)) == heads
    assert ((slopes >= 2**-8) & (slopes < 1)).all()


def test_slopes_of_eight_and_twelve_heads() -> None:
    np.testing.assert_array_equal(alibi_slopes(8), 0.5 ** np.arange(1, 9))
    np.testing.assert_allclose(
        np.log2(alibi_slopes(12)), [-1, -2, -3, -4, -5, -6, -7, -8, -0.5, -1.5, -2.5, -3.5]
    )
    np.testing.assert_array_equal(alibi_slopes(1), [2**-8])


def test_slopes_like_an_array() -> None:
    slopes = alibi_slopes(8, like=torch.zeros(1))
    assert isinstance(slopes, torch.Tensor)
    assert slopes.dtype == torch.float64
    assert alibi_slopes(8, like=torch.zeros(1, device="meta")).is_meta


# --- Bias


@given(m=SLOPES, n_query=st.integers(1, 12), more=st.integers(0, 12), causal=st.booleans())
def test_bias_by_its_definition(m: float, n_query: int, more: int, causal: bool) -> None:
    n_key = n_query + more
    bias = alibi_bias(m, n_query, n_key, causal=causal)
    assert bias.shape == (n_query, n_key)
    for row in range(n_query):
        t = more + row  # the queries are the last of the keys
        for u in range(n_key):
            expected = -math.inf if causal and u > t else -m * abs(t - u)
            assert bias[row, u] == expected
            assert not np.signbit(bias[row, u]) or bias[row, u] < 0  # no −0.0


@given(m=SLOPES, n=st.integers(1, 20), longer=st.integers(0, 20))
def test_a_longer_text_changes_nothing_for_a_shorter_one(m: float, n: int, longer: int) -> None:
    for causal in (True, False):
        block = alibi_bias(m, n + longer, causal=causal)[:n, :n]
        np.testing.assert_array_equal(block, alibi_bias(m, n, causal=causal))


@given(m=SLOPES, n=st.integers(1, 30))
def test_the_row_of_a_decoding_step_is_the_last_row(m: float, n: int) -> None:
    np.testing.assert_array_equal(alibi_bias(m, 1, n), alibi_bias(m, n)[-1:])


@given(m=SLOPES, n=st.integers(2, 40))
def test_weights_fall_by_one_factor_a_step(m: float, n: int) -> None:
    zeros = np.zeros((n, 4))
    _, weights = dot_product_attention(zeros, zeros, zeros, bias=alibi_bias(m, n))
    last = weights[-1]
    np.testing.assert_allclose(last[:-1] / last[1:], math.exp(-m), rtol=1e-9)


def test_each_head_has_its_slope() -> None:
    slopes = alibi_slopes(12)
    bias = alibi_bias(slopes, 5, 9)
    assert bias.shape == (12, 5, 9)
    for m, head in zip(slopes, bias, strict=True):
        np.testing.assert_array_equal(head, alibi_bias(float(m), 5, 9))


@given(
    t=st.lists(st.integers(-50, 50), min_size=1, max_size=6),
    u=st.lists(st.integers(-50, 50), min_size=1, max_size=6),
)
def test_any_positions(t: list[int], u: list[int]) -> None:
    offsets = np.array(u) - np.array(t)[:, None]
    np.testing.assert_array_equal(
        alibi_bias(0.25, np.array(t), np.array(u), causal=False), 0 - 0.25 * np.abs(offsets)
    )
    np.testing.assert_array_equal(
        alibi_bias(0.25, np.array(t), np.array(u)), np.where(offsets > 0, -math.inf, 0.25 * offsets)
    )
    np.testing.assert_array_equal(
        alibi_bias(0.25, np.array(t), np.array(u), causal=False),
        alibi_bias(0.25, 3.5 + np.array(t), 3.5 + np.array(u), causal=False),
    )


def test_positions_of_each_sentence() -> None:
    t = np.array([[0, 1, 2], [7, 8, 10]])
    bias = alibi_bias(alibi_slopes(4), t)
    assert bias.shape == (2, 4, 3, 3)
    np.testing.assert_array_equal(bias[0], alibi_bias(alibi_slopes(4), 3))
    np.testing.assert_array_equal(bias[1, 0, 2], [-0.75, -0.5, 0.0])


def test_the_symmetric_form_is_a_kerple_kernel() -> None:
    np.testing.assert_allclose(
        alibi_bias(0.3, 7, causal=False), kerple_bias(0.3, 1.0, 7, kind="power"), atol=1e-12
    )


@given(m=SLOPES, n=st.integers(2, 8), seed=st.integers(0, 100))
def test_the_symmetric_form_cannot_see_reversal(m: float, n: int, seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(n, 4))

    def pooled(x: np.ndarray, causal: bool) -> np.ndarray:
        return dot_product_attention(x, x, x, bias=alibi_bias(m, n, causal=causal))[0].mean(axis=0)

    np.testing.assert_allclose(pooled(x, False), pooled(x[::-1], False), atol=1e-12)
    assert abs(pooled(x, True) - pooled(x[::-1], True)).max() > 1e-9


@given(m=SLOPES, n=st.integers(1, 20), seed=st.integers(0, 100))
def test_under_a_causal_mask_the_three_forms_are_one(m: float, n: int, seed: int) -> None:
    q, k, v = np.random.default_rng(seed).normal(size=(3, n, 4))
    expected, _ = dot_product_attention(q, k, v, bias=alibi_bias(m, n))
    symmetric, _ = dot_product_attention(q, k, v, bias=alibi_bias(m, n, causal=False), mask=causal_mask(n))
    absolute = np.broadcast_to(m * np.arange(n), (n, n))
    shifted, _ = dot_product_attention(q, k, v, bias=absolute, mask=causal_mask(n))
    np.testing.assert_allclose(symmetric, expected, atol=1e-12)
    np.testing.assert_allclose(shifted, expected, atol=1e-12)


def test_a_query_before_all_keys_gets_nothing() -> None:
    bias = alibi_bias(0.5, np.array([0, 5]), np.array([1, 2]))
    output, weights = dot_product_attention(np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 3)), bias=bias)
    assert (output[0] == 0).all()
    assert weights[1].sum() == pytest.approx(1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rounded_once(dtype: torch.dtype) -> None:
    slopes = alibi_slopes(12)
    exact = alibi_bias(slopes, 700)
    for given_slopes in (torch.from_numpy(slopes), slopes):
        ours = alibi_bias(given_slopes, torch.arange(700), dtype=dtype)
        assert ours.dtype == dtype
        assert torch.equal(ours, torch.from_numpy(exact).to(dtype))


def test_the_dtype_is_that_of_the_slopes() -> None:
    assert alibi_bias(torch.tensor([0.5]), 3).dtype == torch.float32
    assert alibi_bias(np.array([0.5], dtype=np.float32), 3).dtype == np.float32
    assert alibi_bias(1.0, 3).dtype == np.float64


def test_slopes_can_be_trained() -> None:
    slopes = torch.tensor([0.5, 0.25], requires_grad=True)
    for bias in (alibi_bias(slopes, 4), alibi_bias(slopes, torch.arange(4), causal=False)):
        (gradient,) = torch.autograd.grad(bias[:, -1].sum(), slopes)
        torch.testing.assert_close(gradient, torch.tensor([-6.0, -6.0]))


# --- Columns


def inputs(n: int, d: int, heads: int = 2, seed: int = 0) -> list[np.ndarray]:
    return list(np.random.default_rng(seed).normal(size=(3, heads, n, d)))


@given(
    n=st.integers(1, 40),
    d=st.integers(1, 9),
    heads=st.integers(1, 12),
    center=st.floats(-30, 30),
    scale=st.none() | st.floats(0.05, 2),
)
def test_columns_equal_the_bias(n: int, d: int, heads: int, center: float, scale: float | None) -> None:
    q, k, v = inputs(n, d, heads)
    slopes = alibi_slopes(heads)
    wide = add_alibi_columns(q, k, slopes, scale=scale, center=center, width=d + 3)
    assert wide[0].shape == wide[1].shape == (heads, n, d + 3)
    scale = 1 / math.sqrt(d) if scale is None else scale
    ours, _ = dot_product_attention(*wide, v, mask=causal_mask(n)[None], scale=scale)
    theirs, _ = dot_product_attention(q, k, v, bias=alibi_bias(slopes, n), scale=scale)
    np.testing.assert_allclose(ours, theirs, atol=1e-11)


def test_columns_in_sight() -> None:
    q, k, _ = inputs(4, 3)
    wide_q, wide_k = add_alibi_columns(q, k, np.array([0.5, 0.25]), scale=0.1, center=2)
    np.testing.assert_array_equal(wide_q[..., :3], q)
    np.testing.assert_array_equal(wide_k[..., :3], k)
    np.testing.assert_allclose(wide_q[..., 3], [[5.0] * 4, [2.5] * 4])
    np.testing.assert_array_equal(wide_k[..., 3], [[-2, -1, 0, 1]] * 2)


def test_positions_of_keys() -> None:
    q, k, v = inputs(5, 4)
    u = np.array([3.0, 3.5, 7, 8, 20])
    wide = add_alibi_columns(q, k, 0.3, u)
    mask = np.broadcast_to(causal_mask(5), (2, 5, 5))
    ours, _ = dot_product_attention(*wide, v, mask=mask, scale=0.5)
    theirs, _ = dot_product_attention(q, k, v, bias=np.broadcast_to(alibi_bias(0.3, u), (2, 5, 5)))
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    batch = np.stack([q, k])  # sentences with positions of their own
    _, both = add_alibi_columns(batch, batch, 0.3, np.stack([u, u + 1])[:, None])
    np.testing.assert_array_equal(both[..., 4], np.broadcast_to(np.stack([u, u + 1])[:, None], (2, 2, 5)))


def test_fewer_key_heads() -> None:
    q, k, _ = inputs(5, 4, heads=6)
    wide_q, wide_k = add_alibi_columns(q, k[:2], alibi_slopes(6))
    assert wide_q.shape == (6, 5, 5)
    assert wide_k.shape == (2, 5, 5)


@pytest.mark.parametrize(("dtype", "columns"), [(np.float32, 1), (np.float16, 6)])
def test_the_dtype_stays(dtype: Any, columns: int) -> None:
    q, k, _ = (x.astype(dtype) for x in inputs(5, 4))
    for wide in add_alibi_columns(q, k, alibi_slopes(2)):
        assert wide.dtype == dtype
        assert wide.shape[-1] == 4 + columns


@pytest.mark.parametrize(
    ("dtype", "bound"), [(torch.float32, 1e-3), (torch.bfloat16, 2e-3), (torch.float16, 2e-3)]
)
@pytest.mark.parametrize("heads", [8, 12])
def test_scores_stay_exact_far_out(dtype: torch.dtype, bound: float, heads: int) -> None:
    """What the columns add to a score, summed up in float32 as attention does, far from the centre."""
    n = 20_000
    slopes = alibi_slopes(heads, like=torch.zeros(1))
    zeros = torch.zeros(heads, n, 64, dtype=dtype)
    wide_q, wide_k = add_alibi_columns(zeros[:, :1], zeros, slopes, scale=0.125)
    added = (wide_q.float() @ wide_k.float().mT)[:, 0] * 0.125
    near = added[:, 1:] - added[:, :-1]  # what a step costs
    assert (near - slopes[:, None]).abs().max() < bound
    exact = slopes[:, None] * torch.arange(n)
    assert ((added - exact).abs() <= 1e-6 + 4e-7 * exact).all()


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_columns_survive_autocast(dtype: torch.dtype, low: torch.dtype) -> None:
    """torch's attention rounds its input there: one column in float32 was off by 0.36 at 2000."""
    n = 2000
    q, k, v = torch.randn(3, 1, 4, n, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(
        dtype
    )
    with torch.autocast("cpu", low):
        wide_q, wide_k = add_alibi_columns(q, k, alibi_slopes(4))
        output = torch.nn.functional.scaled_dot_product_attention(
            wide_q, wide_k, v, is_causal=True, scale=0.25
        )
    assert wide_q.dtype == wide_k.dtype == dtype
    assert wide_q.shape[-1] == 16 + (1 if dtype == torch.float64 else 6)
    bias = alibi_bias(alibi_slopes(4), torch.arange(n))[None]
    exact = torch.nn.functional.scaled_dot_product_attention(
        q.double(), k.double(), v.double(), attn_mask=bias
    )
    assert (output - exact).abs().max() < (1e-12 if dtype == torch.float64 else 2e-2)


def test_columns_that_autocast_could_not_hold_are_refused() -> None:
    x = torch.zeros(2, 4)
    far = torch.tensor([0.0, 70_000.0], dtype=torch.float64)
    add_alibi_columns(x, x, 0.5, far)
    with (
        torch.autocast("cpu", torch.float16),
        pytest.raises(
            ValueError, match=r"positions - center must be within ±65504, the largest torch\.float16"
        ),
    ):
        add_alibi_columns(x, x, 0.5, far)


def test_one_column_would_not_do_in_bfloat16() -> None:
    """The fault that the split columns are there for: neighbours at 2000 cost a multiple of the slope."""
    places = torch.arange(2000, 2010).bfloat16()
    assert not torch.equal(places.diff(), torch.ones(9))


def test_slopes_in_columns_can_be_trained() -> None:
    slopes = torch.tensor([0.5, 0.3], requires_grad=True)
    for dtype in (torch.float32, torch.bfloat16):
        q = torch.zeros(2, 3, 4, dtype=dtype)
        wide_q, wide_k = add_alibi_columns(q, q, slopes, scale=1.0)
        score = (wide_q.float() @ wide_k.float().mT)[:, 0, 2].sum()
        (gradient,) = torch.autograd.grad(score, slopes)
        torch.testing.assert_close(gradient, torch.tensor([2.0, 2.0]))


# --- Any array library, and errors


def test_the_array_standard_is_enough() -> None:
    strict = array_api_strict.asarray
    t = np.array([0, 3, 4])
    np.testing.assert_array_equal(
        np.asarray(alibi_bias(strict(alibi_slopes(3)), strict(t))), alibi_bias(alibi_slopes(3), t)
    )
    q, k, _ = inputs(5, 4)
    ours = add_alibi_columns(strict(q), strict(k), strict(alibi_slopes(2)))
    for strictly, plain in zip(ours, add_alibi_columns(q, k, alibi_slopes(2)), strict=True):
        np.testing.assert_array_equal(np.asarray(strictly), plain)


X = np.zeros((2, 5, 4))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: alibi_slopes(0), ValueError, "num_heads must be at least 1, got 0"),
        (lambda: alibi_slopes(2.0), TypeError, "num_heads must be an integer, got 2.0"),  # type: ignore[call-overload]
        (lambda: alibi_bias("steep", 3), TypeError, "slopes must be a real number, got 'steep'"),
        (lambda: alibi_bias(8, 10), TypeError, r"the integer 8: a slope is 8.0, .* are alibi_slopes\(8\)"),
        (lambda: alibi_bias(np.int64(5), alibi_slopes(5)), TypeError, "slopes must be a float or a floating"),
        (lambda: add_alibi_columns(X, X, 2), TypeError, "slopes must be a float or a floating array"),
        (lambda: alibi_bias(-0.5, 3), ValueError, "slopes must be at least 0: .* got -0.5"),
        (lambda: alibi_bias(math.nan, 3), ValueError, "slopes must be finite, got nan"),
        (lambda: alibi_bias(np.ones((2, 1)), 3), ValueError, r"slopes must be .* got \(2, 1\)"),
        (lambda: alibi_bias(np.array([1, 2]), 3), TypeError, "slopes must be floating, got dtype int64"),
        (lambda: alibi_bias(0.5, 5, 3), ValueError, "query_positions must be at most key_positions"),
        (lambda: alibi_bias(0.5, 5, np.arange(9)), TypeError, "query_positions must be an array"),
        (lambda: alibi_bias(0.5, -1), ValueError, "query_positions must be at least 0, got -1"),
        (lambda: alibi_bias(0.5, 3, dtype=np.int64), TypeError, "dtype must be a real floating dtype"),
        (lambda: alibi_bias(torch.ones(2), np.arange(3)), TypeError, "slopes must be of NumPy, or"),
        (lambda: add_alibi_columns(X, X, np.ones(3)), ValueError, "slopes of 3 heads need query of shape"),
        (lambda: add_alibi_columns(X[0], X[0], np.ones(2)), ValueError, "slopes of 2 heads need query"),
        (lambda: add_alibi_columns(X, X[..., :3], 0.5), ValueError, "key must have the width of query"),
        (lambda: add_alibi_columns(X, X.astype("f"), 0.5), TypeError, "key must have the dtype of query"),
        (lambda: add_alibi_columns(X, torch.zeros(2, 5, 4), 0.5), TypeError, "key must be of the library"),
        (lambda: add_alibi_columns(X[0, 0], X, 0.5), ValueError, r"query must have shape .* got \(4,\)"),
        (lambda: add_alibi_columns(X.astype(int), X, 0.5), TypeError, "query must be floating"),
        (lambda: add_alibi_columns(X, X, 0.5, np.arange(4)), ValueError, r"positions must have shape \(5,\)"),
        (lambda: add_alibi_columns(X, X, 0.5, 4), ValueError, r"positions must have shape \(5,\)"),
        (lambda: add_alibi_columns(X, X, 0.5, scale=0.0), ValueError, "scale must be finite and above 0"),
        (lambda: add_alibi_columns(X, X, 0.5, center=math.inf), ValueError, "center must be finite, got inf"),
        (lambda: add_alibi_columns(X, X, 0.5, width=4), ValueError, "width must be at least 5, got 4"),
        (
            lambda: add_alibi_columns(*(X.astype(np.float16),) * 2, 0.5, np.arange(5) + 70_000),
            ValueError, r"positions - center must be within ±65504, the largest float16, got 70000.0",
        ),
        (
            lambda: add_alibi_columns(*(X.astype(np.float16),) * 2, 1e5),
            ValueError, r"slopes / scale must be within ±65504, the largest float16, got 200000",
        ),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
