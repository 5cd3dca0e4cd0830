"""The rotary layer: the formula in any layout, precision and kind of frequencies, decoding, compiled code."""

import shutil
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import apply_rotary
from posenc.nn import RotaryEmbedding
from posenc.rotary import head_frequencies, yarn_attention_factor, yarn_frequencies
from posenc.rotary._turn import Layout

LAYOUTS = pytest.mark.parametrize("layout", ["interleaved", "half"])


def pair(*shape: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, *shape, generator=generator, dtype=torch.float64).to(dtype)
    return q, k


@LAYOUTS
@pytest.mark.parametrize("inference", [False, True])
def test_turns_both_by_the_formula(layout: Layout, inference: bool) -> None:
    options: Any = {"layout": layout, "base": 500.0, "rotary_dim": 12, "scale": 1.5}
    rotary, (q, _), (_, k) = RotaryEmbedding(16, **options), pair(2, 6, 9, 16), pair(2, 2, 9, 16)
    with torch.inference_mode(inference):
        results = rotary(q, k, offset=3)
    for turned, x in zip(results, (q, k), strict=True):
        expected = apply_rotary(x.double(), torch.arange(3, 12), **options)
        torch.testing.assert_close(turned.double(), expected, rtol=0, atol=2e-6)


@LAYOUTS
@pytest.mark.parametrize("dim", [2, 8])
@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 2, 0), (0, 3)])
def test_empty_ones_stay_empty(layout: Layout, dim: int, shape: tuple[int, ...]) -> None:
    x = torch.empty(*shape, dim)
    for inference in (False, True):
        with torch.inference_mode(inference):
            for turned in RotaryEmbedding(dim, layout=layout)(x, x):
                assert turned.shape == x.shape


@pytest.mark.parametrize("compiled", [False, True])
def test_each_keeps_its_dtype(compiled: bool) -> None:
    rotary = RotaryEmbedding(8)
    if compiled:
        torch._dynamo.reset()
        rotary.compile(backend="eager", fullgraph=True)
    q, k = pair(1, 2, 5, 8)
    for low, high in ((q.bfloat16(), k), (q, k.half())):
        assert [x.dtype for x in rotary(low, high)] == [low.dtype, high.dtype]


@given(
    length=st.integers(1, 12), offset=st.integers(0, 1000), layout=st.sampled_from(["interleaved", "half"])
)
def test_token_by_token_equals_the_full_pass(length: int, offset: int, layout: Layout) -> None:
    rotary, (q, k) = RotaryEmbedding(16, max_len=1012, layout=layout), pair(2, 3, length, 16)
    full = rotary(q, k, offset=offset)
    steps = [rotary(q[..., [j], :], k[..., [j], :], offset=offset + j) for j in range(length)]
    for whole, parts in zip(full, zip(*steps, strict=True), strict=True):
        assert torch.equal(torch.cat(parts, dim=-2), whole)


def test_positions_per_sentence_real_and_beyond_the_table() -> None:
    rotary, (q, k) = RotaryEmbedding(8, max_len=4), pair(2, 3, 2, 8)
    positions = torch.tensor([[0.5, 1.5], [1e6, 1e6 + 1]])
    turned, _ = rotary(q, k, positions=positions)
    for b in range(2):
        torch.testing.assert_close(turned[b], apply_rotary(q[b], positions[b]), rtol=0, atol=1e-6)


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_any_precision_far_out_is_rounded_once(dtype: torch.dtype, layout: Layout) -> None:
    rotary, (q, k) = RotaryEmbedding(16, layout=layout).to(dtype), pair(1, 2, 2000, 16, dtype=dtype)
    exact = apply_rotary(q.double(), 2000, layout=layout)
    unit = torch.finfo(dtype).eps * 2 ** exact.abs().clamp(min=2**-14).log2().floor()
    slack = 1e-12 if dtype == torch.float64 else 2e-6
    assert ((rotary(q, k)[0].double() - exact).abs() <= unit / 2 + slack).all()


def test_table_is_right_far_out() -> None:
    rotary = RotaryEmbedding(4, max_len=1_000_001)
    exact = apply_rotary(torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(2), torch.tensor([1_000_000]))
    assert (rotary.table[-1:].double() - exact).abs().max() < 1e-6


@LAYOUTS
def test_gradients_are_turned_back(layout: Layout) -> None:
    q, k = (x.requires_grad_() for x in pair(1, 2, 5, 8))
    upstream = torch.randn(1, 2, 5, 8)
    (gradient,) = torch.autograd.grad(RotaryEmbedding(8, layout=layout)(q, k)[0], q, upstream)
    expected = apply_rotary(upstream, -torch.arange(5), layout=layout)
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-6)


def test_frequencies_of_each_head_and_of_a_longer_context() -> None:
    q, k = pair(1, 3, 5, 32)
    omega = head_frequencies([4, 32, 512])
    few = q[..., :2]
    torch.testing.assert_close(
        RotaryEmbedding(2, frequencies=omega)(few, few)[0], apply_rotary(few, 5, frequencies=omega)
    )
    yarn, scale = yarn_frequencies(32, 4, original_length=2048), yarn_attention_factor(4)
    rotary = RotaryEmbedding(32, frequencies=torch.from_numpy(yarn), scale=scale)
    torch.testing.assert_close(rotary(q, k)[1], apply_rotary(k, 5, frequencies=yarn, scale=scale))


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # torch's own compiler uses it
def test_compiled_code_gives_the_same_numbers() -> None:
    torch._dynamo.reset()
    rotary, (q, k) = RotaryEmbedding(16), pair(1, 2, 50, 16)
    compiled = torch.compile(rotary, fullgraph=True)
    torch.testing.assert_close(compiled(q, k)[0], rotary(q, k)[0], rtol=0, atol=1e-6)
