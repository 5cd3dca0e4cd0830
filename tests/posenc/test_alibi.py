"""ALiBi: slopes, bias and the columns that take its place."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import alibi_bias, alibi_slopes, causal_mask, dot_product_attention
from posenc.alibi import add_alibi_columns
from tests.posenc.refusals import refused

PLACES = st.lists(st.integers(-50, 50), min_size=1, max_size=6).map(np.array)
torch_attention = torch.nn.functional.scaled_dot_product_attention

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
    assert slopes.dtype == np.float64
    np.testing.assert_allclose(slopes, published_slopes(heads), rtol=1e-12)
    assert len(np.unique(slopes)) == heads
    assert alibi_slopes(heads, like=torch.zeros(1, device="meta")).is_meta


# --- Bias


@given(n_query=st.integers(1, 12), more=st.integers(0, 12), causal=st.booleans(), heads=st.integers(1, 12))
def test_bias_by_its_definition(n_query: int, more: int, causal: bool, heads: int) -> None:
    n_key, slopes = n_query + more, alibi_slopes(heads)
    bias = alibi_bias(slopes, n_query, n_key, causal=causal)
    assert bias.shape == (heads, n_query, n_key)
    for head, row, u in np.ndindex(bias.shape):
        t = more + row  # the queries are the last of the keys
        expected = -math.inf if causal and u > t else -slopes[head] * abs(t - u)
        assert bias[head, row, u] == expected
        assert not np.signbit(bias[head, row, u]) or bias[head, row, u] < 0  # no −0.0
    np.testing.assert_array_equal(alibi_bias(float(slopes[0]), n_query, n_key, causal=causal), bias[0])


@given(t=PLACES, u=PLACES)
def test_any_positions(t: np.ndarray, u: np.ndarray) -> None:
    offsets = u - t[:, None]
    symmetric = alibi_bias(0.25, t, u, causal=False)
    np.testing.assert_array_equal(symmetric, 0 - 0.25 * np.abs(offsets))
    np.testing.assert_array_equal(alibi_bias(0.25, t, u), np.where(offsets > 0, -math.inf, 0.25 * offsets))
    np.testing.assert_array_equal(alibi_bias(0.25, 3.5 + t, 3.5 + u, causal=False), symmetric)


def test_the_dtype_is_that_of_the_slopes_or_the_one_asked_for() -> None:
    assert alibi_bias(torch.tensor([0.5]), 3).dtype == torch.float32
    assert alibi_bias(np.array([0.5], dtype=np.float32), 3).dtype == np.float32
    assert alibi_bias(1.0, 3).dtype == np.float64
    exact = alibi_bias(alibi_slopes(12), 700)
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        rounded = alibi_bias(alibi_slopes(12), torch.arange(700), dtype=dtype)
        torch.testing.assert_close(rounded, torch.from_numpy(exact).to(dtype), rtol=0, atol=0)


# --- Columns


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_slopes_are_trained_by_columns_of_any_number(dtype: torch.dtype) -> None:
    slopes, q = torch.tensor([0.5, 0.3], requires_grad=True), torch.zeros(2, 3, 4, dtype=dtype)
    wide_q, wide_k = add_alibi_columns(q, q, slopes, scale=1.0)
    (gradient,) = torch.autograd.grad((wide_q.float() @ wide_k.float().mT)[:, 0, 2].sum(), slopes)
    torch.testing.assert_close(gradient, torch.tensor([2.0, 2.0]))


def inputs(n: int, d: int, heads: int = 2) -> list[np.ndarray]:
    return list(np.random.default_rng(0).normal(size=(3, heads, n, d)))


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


def test_columns_in_sight_and_fewer_key_heads() -> None:
    q, k, _ = inputs(4, 3)
    wide_q, wide_k = add_alibi_columns(q, k[:1], np.array([0.5, 0.25]), scale=0.1, center=2)
    np.testing.assert_array_equal(wide_q[..., :3], q)
    np.testing.assert_array_equal(wide_k[..., :3], k[:1])
    np.testing.assert_allclose(wide_q[..., 3:], [[[5.0]] * 4, [[2.5]] * 4])
    np.testing.assert_array_equal(wide_k[..., 3:], [[[-2], [-1], [0], [1]]])


def test_positions_of_keys() -> None:
    q, k, v = inputs(5, 4)
    u = np.array([3.0, 3.5, 7, 8, 20])
    wide = add_alibi_columns(q, k, 0.3, u)
    ours, _ = dot_product_attention(*wide, v, mask=causal_mask(5)[None], scale=0.5)
    theirs, _ = dot_product_attention(q, k, v, bias=alibi_bias(0.3, u)[None])
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    batch, each = np.stack([q, k]), np.stack([u, u + 1])[:, None]  # sentences with positions of their own
    _, both = add_alibi_columns(batch, batch, 0.3, each)
    np.testing.assert_array_equal(both[..., 4], np.broadcast_to(each, (2, 2, 5)))


@pytest.mark.parametrize(
    ("dtype", "columns", "bound"),
    [(torch.float32, 1, 1e-3), (torch.bfloat16, 6, 2e-3), (torch.float16, 6, 2e-3)],
)
@pytest.mark.parametrize("heads", [8, 12])
def test_scores_stay_exact_far_out(dtype: torch.dtype, columns: int, bound: float, heads: int) -> None:
    """What the columns add to a score, summed up in float32 as attention does, far from the centre."""
    n = 20_000
    slopes = alibi_slopes(heads, like=torch.zeros(1))
    zeros = torch.zeros(heads, n, 64, dtype=dtype)
    wide_q, wide_k = add_alibi_columns(zeros[:, :1], zeros, slopes, scale=0.125)
    assert wide_q.dtype == wide_k.dtype == dtype
    assert wide_q.shape[-1] == wide_k.shape[-1] == 64 + columns
    added = (wide_q.float() @ wide_k.float().mT)[:, 0] * 0.125
    near = added[:, 1:] - added[:, :-1]  # what a step costs
    assert (near - slopes[:, None]).abs().max() < bound
    exact = slopes[:, None] * torch.arange(n)
    assert ((added - exact).abs() <= 1e-6 + 4e-7 * exact).all()


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_columns_survive_autocast(dtype: torch.dtype, low: torch.dtype) -> None:
    """torch's attention rounds its input there: one column in float32 was off by 0.36 at 2000."""
    n, generator = 2000, torch.Generator().manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, n, 16, generator=generator, dtype=torch.float64).to(dtype)
    with torch.autocast("cpu", low):
        wide_q, wide_k = add_alibi_columns(q, k, alibi_slopes(2))
        output = torch_attention(wide_q, wide_k, v, is_causal=True, scale=0.25)
    assert wide_q.dtype == wide_k.dtype == dtype
    assert wide_q.shape[-1] == 16 + (1 if dtype == torch.float64 else 6)
    bias = alibi_bias(alibi_slopes(2), torch.arange(n))[None]
    exact = torch_attention(q.double(), k.double(), v.double(), attn_mask=bias)
    assert (output - exact).abs().max() < (1e-12 if dtype == torch.float64 else 2e-2)


def test_columns_that_autocast_could_not_hold_are_refused() -> None:
    x, far = torch.zeros(2, 4), torch.tensor([0.0, 70_000.0], dtype=torch.float64)
    add_alibi_columns(x, x, 0.5, far)
    message = r"positions - center must be within ±65504, the largest torch\.float16"
    with torch.autocast("cpu", torch.float16), pytest.raises(ValueError, match=message):
        add_alibi_columns(x, x, 0.5, far)


# --- Errors

X = np.zeros((2, 5, 4))
HALF = X.astype(np.float16)


test_errors_name_the_argument = refused([
    (lambda: alibi_bias(8, 10), TypeError, r"the integer 8: a slope is 8.0, .* are alibi_slopes\(8\)"),
    (lambda: alibi_bias(np.ones((2, 1)), 3), ValueError, r"slopes must be .* got \(2, 1\)"),
    (lambda: alibi_bias(np.array([math.inf]), 3), ValueError, "slopes must be finite, got inf"),
    (lambda: alibi_bias(0.5, 5, 3), ValueError, "query_positions must be at most key_positions"),
    (lambda: alibi_bias(0.5, 5, np.arange(9)), TypeError, "query_positions must be an array"),
    (lambda: alibi_bias(torch.ones(2), np.arange(3)), TypeError, "slopes must be of NumPy, or"),
    (lambda: add_alibi_columns(X, X, np.ones(3)), ValueError, "slopes of 3 heads need query of shape"),
    (lambda: add_alibi_columns(X[0], X[0], np.ones(2)), ValueError, "slopes of 2 heads need query"),
    (lambda: add_alibi_columns(X, X[..., :3], 0.5), ValueError, "key must have the width of query"),
    (lambda: add_alibi_columns(X, X.astype("f"), 0.5), TypeError, "key must have the dtype of query"),
    (lambda: add_alibi_columns(X, torch.zeros(2, 5, 4), 0.5), TypeError, "key must be of the library"),
    (lambda: add_alibi_columns(X[0, 0], X, 0.5), ValueError, r"query must have shape .* got \(4,\)"),
    (lambda: add_alibi_columns(X, X, 0.5, np.arange(4)), ValueError, r"positions must have shape \(5,\)"),
    (lambda: add_alibi_columns(HALF, HALF, 0.5, np.arange(5) + 70_000), ValueError,
     r"positions - center must be within ±65504, the largest float16, got 70000.0"),
    (lambda: add_alibi_columns(HALF, HALF, 1e5), ValueError,
     r"slopes / scale must be within ±65504, the largest float16, got 200000"),
])  # fmt: skip
