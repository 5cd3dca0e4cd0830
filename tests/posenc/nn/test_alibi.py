"""The layers of ALiBi: what a model that holds them may expect."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from posenc import alibi_bias, alibi_slopes
from posenc.masks import key_padding_mask
from posenc.nn import AlibiAttention, AlibiBias
from tests.benchmarks.benchmark import new_bytes


def qkv(*shape: int, dtype: torch.dtype = torch.float32, key_heads: int | None = None) -> list[Tensor]:
    """Queries, keys and values (batch, heads, n, d)."""
    batch, heads, n, d = shape
    generator = torch.Generator().manual_seed(0)
    counts = (heads, key_heads or heads, key_heads or heads)
    return [torch.randn(batch, h, n, d, generator=generator, dtype=torch.float64).to(dtype) for h in counts]


def exact(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """ALiBi with its bias, in float64."""
    heads = q.shape[1]
    bias = alibi_bias(alibi_slopes(heads, like=q), q.shape[2], k.shape[2])[None]
    if mask is not None:
        bias = bias.masked_fill(mask, -math.inf)
    k, v = (x.repeat_interleave(heads // k.shape[1], dim=1) for x in (k, v))
    return scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=bias)


# --- The bias


def test_low_precision_of_the_bias_is_asked_for_and_rounded_once() -> None:
    layer = AlibiBias(12).to(torch.bfloat16)
    expected = torch.from_numpy(alibi_bias(alibi_slopes(12), 600))
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        assert torch.equal(layer(600, dtype=dtype), expected.to(dtype))
    assert layer(3).dtype == torch.float32


# --- Attention


@pytest.mark.parametrize(
    ("dtype", "bound"),
    [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 1.6e-2), (torch.float16, 2e-3)],
)
@pytest.mark.parametrize("heads", [8, 12])
@pytest.mark.parametrize("dim", [16, 64, 20])
def test_attention_is_that_with_the_bias(dtype: torch.dtype, bound: float, heads: int, dim: int) -> None:
    q, k, v = qkv(2, heads, 200, dim, dtype=dtype)
    output = AlibiAttention(heads)(q, k, v)
    assert output.dtype == dtype
    assert output.shape == v.shape
    assert (output - exact(q, k, v)).abs().max() < bound


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 2e-4), (torch.bfloat16, 1.6e-2)])
def test_long_text_loses_no_precision(dtype: torch.dtype, bound: float) -> None:
    q, k, v = qkv(1, 8, 4000, 16, dtype=dtype)
    output = AlibiAttention(8)(q[:, :, -50:], k, v)
    assert (output - exact(q[:, :, -50:], k, v)).abs().max() < bound


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("n", [200, 2000])
def test_autocast_gives_what_bfloat16_gives(n: int, compiled: bool) -> None:
    """The columns are made for the dtype that attention runs in, which autocast chooses."""
    torch._dynamo.reset()
    q, k, v = qkv(1, 4, n, 16)
    attention: Any = AlibiAttention(4)
    low = attention(q.bfloat16(), k.bfloat16(), v.bfloat16())
    if compiled:
        attention = torch.compile(attention, backend="eager", fullgraph=True)
    with torch.autocast("cpu", torch.bfloat16):
        output = attention(q, k.bfloat16(), v)
        step = attention(q[:, :, -1:], k, v)
        exact_there = attention(q.double(), k.double(), v.double())
    assert torch.equal(output, low)
    assert (step[0, :, 0] - low[0, :, -1]).abs().max() < 1.6e-2
    assert (output[:, :, -50:] - exact(q[:, :, -50:], k, v)).abs().max() < 1.6e-2
    assert torch.equal(exact_there, AlibiAttention(4)(q.double(), k.double(), v.double()))


@given(n=st.integers(1, 12), done=st.integers(0, 12), heads=st.sampled_from([(4, 4), (4, 2), (6, 1), (3, 3)]))
def test_token_by_token_and_in_pieces_equals_the_full_pass(n: int, done: int, heads: tuple[int, int]) -> None:
    total = done + n
    q, k, v = qkv(2, heads[0], total, 8, key_heads=heads[1])
    attention = AlibiAttention(heads[0])
    full = attention(q, k, v)
    torch.testing.assert_close(full, exact(q, k, v).float(), rtol=0, atol=1e-5)
    rest = attention(q[:, :, done:], k, v)
    torch.testing.assert_close(rest, full[:, :, done:], rtol=0, atol=1e-5)
    for t in range(done, total):
        step = attention(q[:, :, t : t + 1], k[:, :, : t + 1], v[:, :, : t + 1])
        torch.testing.assert_close(step, full[:, :, t : t + 1], rtol=0, atol=1e-5)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("n_query", [1, 3, 7])
def test_padding(side: Any, n_query: int) -> None:
    """Pads on the left do not move what is real, since only differences of positions count."""
    q, k, v = qkv(2, 4, 7, 8)
    q = q[:, :, -n_query:]
    padding = torch.from_numpy(key_padding_mask([7, 4], side=side))[:, None, None, :]
    output = AlibiAttention(4)(q, k, v, mask=padding)
    torch.testing.assert_close(output, exact(q, k, v, padding).float(), rtol=0, atol=1e-5)
    other_k, other_v = (x.masked_fill(padding.mT, 9.0) for x in (k, v))
    torch.testing.assert_close(AlibiAttention(4)(q, other_k, other_v, mask=padding), output)
    if side == "left":
        real = min(n_query, 4)
        alone = AlibiAttention(4)(q[1:, :, -real:], k[1:, :, 3:], v[1:, :, 3:])
        torch.testing.assert_close(output[1:, :, -real:], alone, rtol=0, atol=1e-5)


def test_a_query_without_any_key_gets_zero() -> None:
    q, k, v = qkv(1, 2, 3, 8)
    for n_query in (1, 3):
        output = AlibiAttention(2)(q[:, :, -n_query:], k, v, mask=torch.ones(n_query, 3, dtype=torch.bool))
        assert (output == 0).all()


@pytest.mark.parametrize("value_dim", [3, 8, 40])
def test_values_of_another_width(value_dim: int) -> None:
    q, k, v = qkv(1, 4, 30, 8)
    v = torch.randn(1, 4, 30, value_dim)
    for n_query in (30, 1):
        output = AlibiAttention(4)(q[:, :, -n_query:], k, v)
        torch.testing.assert_close(output, exact(q[:, :, -n_query:], k, v).float(), rtol=0, atol=1e-5)


def test_memory_has_no_square_of_the_length() -> None:
    attention = AlibiAttention(4)

    def per_token(n: int) -> float:
        q, k, v = qkv(1, 4, n, 64)
        with torch.inference_mode():
            return new_bytes(lambda: attention(q, k, v)) / n

    few, many = per_token(512), per_token(2048)
    assert many < 1.01 * few
    bias = AlibiBias(4)(2048)
    assert many * 2048 < bias.nbytes / 5
