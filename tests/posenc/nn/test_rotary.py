"""The rotary layer: what a model that holds it may expect."""

from __future__ import annotations

import copy
import io
import math
import shutil
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounter

from posenc import apply_rotary, sinusoidal_wavelengths
from posenc.nn import RotaryEmbedding
from posenc.rotary import head_frequencies, interleaved_to_half, yarn_attention_factor, yarn_frequencies
from posenc.rotary._turn import Layout

LAYOUTS = pytest.mark.parametrize("layout", ["interleaved", "half"])


def pair(*shape: int, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    q, k = torch.randn(2, *shape, generator=generator, dtype=torch.float64).to(dtype)
    return q, k


@LAYOUTS
@pytest.mark.parametrize("inference", [False, True])
def test_turns_both_by_the_formula(layout: Layout, inference: bool) -> None:
    rotary = RotaryEmbedding(16, layout=layout, base=500.0, rotary_dim=12, scale=1.5)
    q, _ = pair(2, 6, 9, 16)
    k, _ = pair(2, 2, 9, 16)
    with torch.inference_mode(inference):
        results = rotary(q, k, offset=3)
    for turned, x in zip(results, (q, k), strict=True):
        expected = apply_rotary(
            x.double(), torch.arange(3, 12), layout=layout, base=500.0, rotary_dim=12, scale=1.5
        )
        torch.testing.assert_close(turned.double(), expected, rtol=0, atol=2e-6)


@LAYOUTS
@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize("dim", [2, 8])
@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 0, 3), (2, 2, 0), (0, 3)])
def test_empty_ones_stay_empty(layout: Layout, inference: bool, dim: int, shape: tuple[int, ...]) -> None:
    with torch.inference_mode(inference):
        x = torch.empty(*shape, dim)
        for turned in RotaryEmbedding(dim, layout=layout)(x, x):
            assert turned.shape == x.shape


@pytest.mark.parametrize("compiled", [False, True])
def test_each_keeps_its_dtype(compiled: bool) -> None:
    rotary: Any = RotaryEmbedding(8)
    if compiled:
        torch._dynamo.reset()
        rotary = torch.compile(rotary, backend="eager", fullgraph=True)
    q, k = pair(1, 2, 5, 8)
    for low, high in ((q.bfloat16(), k), (q, k.half())):
        assert [x.dtype for x in rotary(low, high)] == [low.dtype, high.dtype]
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(rotary(q, k), RotaryEmbedding(8)(q, k))


@LAYOUTS
@pytest.mark.parametrize("dim", [2, 4, 6, 8, 10, 20, 64])
def test_a_step_is_within_one_rounding_of_the_full_pass(layout: Layout, dim: int) -> None:
    """Of each of the two products whose sum it is."""
    rotary = RotaryEmbedding(dim, layout=layout)
    q, _ = pair(2, 3, 30, dim)
    full, _ = rotary(q, q)
    steps = torch.cat([rotary(x, x, offset=t)[0] for t, x in enumerate(q.split(1, dim=-2))], dim=-2)
    assert (steps - full).abs().max() <= 2**-23 * q.abs().max()


def test_queries_and_keys_are_left_as_they_are() -> None:
    q, k = pair(1, 2, 5, 8)
    before = q.clone(), k.clone()
    for rotary in (RotaryEmbedding(8), RotaryEmbedding(8, layout="half")):
        for inference in (False, True):
            with torch.inference_mode(inference):
                rotary(q, k)
    assert torch.equal(q, before[0])
    assert torch.equal(k, before[1])


@given(
    length=st.integers(1, 12), offset=st.integers(0, 1000), layout=st.sampled_from(["interleaved", "half"])
)
def test_token_by_token_equals_the_full_pass(length: int, offset: int, layout: Layout) -> None:
    rotary = RotaryEmbedding(16, max_len=1012, layout=layout)
    q, k = pair(2, 3, length, 16)
    full = rotary(q, k, offset=offset)
    steps = [rotary(q[..., [j], :], k[..., [j], :], offset=offset + j) for j in range(length)]
    for whole, parts in zip(full, zip(*steps, strict=True), strict=True):
        assert torch.equal(torch.cat(parts, dim=-2), whole)
    explicit = rotary(q, k, positions=offset + torch.arange(length))
    for whole, other in zip(full, explicit, strict=True):
        torch.testing.assert_close(other, whole, rtol=0, atol=1e-6)


def test_decoding_with_a_cache_of_turned_keys_gives_the_scores_of_the_full_pass() -> None:
    rotary = RotaryEmbedding(16)
    q, k = pair(1, 2, 20, 16)
    full_q, full_k = rotary(q, k)
    cache = torch.empty(1, 2, 0, 16)
    for t in range(20):
        q_t, k_t = rotary(q[:, :, t : t + 1], k[:, :, t : t + 1], offset=t)
        cache = torch.cat([cache, k_t], dim=2)
        scores = q_t @ cache.mT
        torch.testing.assert_close(scores, full_q[:, :, t : t + 1] @ full_k[:, :, : t + 1].mT)


def test_positions_per_sentence_real_and_beyond_the_table() -> None:
    rotary = RotaryEmbedding(8, max_len=4)
    q, k = pair(2, 3, 2, 8)
    positions = torch.tensor([[0.5, 1.5], [1e6, 1e6 + 1]])
    turned, _ = rotary(q, k, positions=positions)
    torch.testing.assert_close(turned[1], apply_rotary(q[1], positions[1]), rtol=0, atol=1e-6)
    torch.testing.assert_close(turned[0], apply_rotary(q[0], positions[0]), rtol=0, atol=1e-6)


def test_left_padding_counted_from_the_first_token_scores_like_no_padding() -> None:
    rotary = RotaryEmbedding(8)
    q, k = pair(1, 2, 6, 8)
    padded_q, padded_k = (torch.nn.functional.pad(x, (0, 0, 3, 0)) for x in (q, k))
    shifted_q, shifted_k = rotary(padded_q, padded_k)
    plain_q, plain_k = rotary(q, k)
    torch.testing.assert_close((shifted_q @ shifted_k.mT)[..., 3:, 3:], plain_q @ plain_k.mT)


@LAYOUTS
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_module_and_input(dtype: torch.dtype, layout: Layout) -> None:
    rotary = RotaryEmbedding(64, layout=layout).to(dtype)
    assert rotary.table.dtype == torch.float32
    assert torch.equal(rotary.table, RotaryEmbedding(64, layout=layout).table)
    q, k = pair(1, 4, 2000, 64, dtype=dtype)
    turned, _ = rotary(q, k)
    assert turned.dtype == dtype
    exact = apply_rotary(q.double(), 2000, layout=layout)
    unit = torch.finfo(dtype).eps * 2 ** exact.abs().clamp(min=2**-14).log2().floor()
    assert ((turned.double() - exact).abs() <= unit / 2 + 2e-6).all()
    if dtype == torch.bfloat16:
        assert (turned.double() - exact).abs().max() <= 1.6e-2


def test_float64_input_is_turned_in_float64() -> None:
    q, k = pair(1, 2, 50, 16, dtype=torch.float64)
    turned, _ = RotaryEmbedding(16)(q, k, offset=4000)
    torch.testing.assert_close(turned, apply_rotary(q, torch.arange(4000, 4050)), rtol=0, atol=1e-12)
    assert RotaryEmbedding(16).double().table.dtype == torch.float32


def test_table_is_right_far_out() -> None:
    rotary = RotaryEmbedding(128, max_len=1_000_001)
    exact = apply_rotary(torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(64), torch.tensor([1_000_000]))
    assert (rotary.table[-1:].double() - exact).abs().max() < 1e-6


def test_nothing_is_trained_and_nothing_is_saved() -> None:
    rotary = RotaryEmbedding(8)
    assert list(rotary.parameters()) == []
    assert rotary.state_dict() == {}
    rotary.load_state_dict(RotaryEmbedding(8, max_len=5).state_dict())


def test_pickle_and_deepcopy() -> None:
    rotary = RotaryEmbedding(8, max_len=50, layout="half", frequencies=[1.0, 0.5, 0.1, 0.0])
    buffer = io.BytesIO()
    torch.save(rotary, buffer)
    buffer.seek(0)
    q, k = pair(1, 2, 5, 8)
    for twin in (copy.deepcopy(rotary), torch.load(buffer, weights_only=False)):
        assert torch.equal(twin(q, k)[1], rotary(q, k)[1])
        assert torch.equal(twin.bfloat16().table, rotary.table)


def test_meta_device_then_materialised() -> None:
    with torch.device("meta"):
        rotary = RotaryEmbedding(8, max_len=50)
    q = torch.empty(1, 2, 5, 8, device="meta")
    assert rotary(q, q)[0].is_meta
    assert rotary(q, q)[0].shape == q.shape
    rotary.to_empty(device="cpu")
    assert torch.equal(rotary.table, RotaryEmbedding(8, max_len=50).table)


@LAYOUTS
def test_gradients_are_turned_back(layout: Layout) -> None:
    q, k = (x.requires_grad_() for x in pair(1, 2, 5, 8))
    upstream = torch.randn(1, 2, 5, 8)
    turned, _ = RotaryEmbedding(8, layout=layout)(q, k)
    (gradient,) = torch.autograd.grad(turned, q, upstream)
    torch.testing.assert_close(
        gradient, apply_rotary(upstream, -torch.arange(5), layout=layout), rtol=0, atol=1e-6
    )


def test_frequencies_of_each_head_and_of_a_longer_context() -> None:
    q, k = pair(1, 3, 5, 2)
    omega = head_frequencies([4, 32, 512])
    torch.testing.assert_close(
        RotaryEmbedding(2, frequencies=omega)(q, k)[0], apply_rotary(q, 5, frequencies=omega)
    )
    wide_q, wide_k = pair(1, 3, 5, 32)
    yarn = yarn_frequencies(32, 4, original_length=2048)
    rotary = RotaryEmbedding(32, frequencies=torch.from_numpy(yarn), scale=yarn_attention_factor(4))
    torch.testing.assert_close(
        rotary(wide_q, wide_k)[1], apply_rotary(wide_k, 5, frequencies=yarn, scale=0.1 * math.log(4) + 1)
    )


def test_both_layouts_give_the_same_scores_after_conversion() -> None:
    q, k = pair(1, 3, 7, 16)
    a, b = RotaryEmbedding(16)(q, k)
    c, d = RotaryEmbedding(16, layout="half")(interleaved_to_half(q), interleaved_to_half(k))
    torch.testing.assert_close(a @ b.mT, c @ d.mT, rtol=0, atol=1e-5)


# --- Compiled


@LAYOUTS
@pytest.mark.parametrize("inference", [False, True])
def test_two_graphs_for_any_number_of_lengths(layout: Layout, inference: bool) -> None:
    torch._dynamo.reset()
    counter = CompileCounter()
    rotary = RotaryEmbedding(16, layout=layout, rotary_dim=12)
    compiled = torch.compile(rotary, backend=counter, fullgraph=True)
    with torch.inference_mode(inference):
        for length in (5, 9, 17, 100, 3, 2000):
            q, k = pair(1, 2, length, 16)
            for ours, eager in zip(compiled(q, k), rotary(q, k), strict=True):
                torch.testing.assert_close(ours, eager, rtol=0, atol=1e-6)
        assert counter.frame_count <= 2
        for offset in range(20, 40):
            compiled(q[:, :, :1], k[:, :, :1], offset=offset)
        assert counter.frame_count <= 4
        compiled(q, k, positions=torch.arange(2000))


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # torch's own compiler uses it
@LAYOUTS
def test_compiled_code_gives_the_same_numbers(layout: Layout) -> None:
    torch._dynamo.reset()
    rotary = RotaryEmbedding(16, layout=layout)
    compiled = torch.compile(rotary, fullgraph=True)
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.bfloat16, 1.6e-2)):
        q, k = pair(1, 2, 50, 16, dtype=dtype)
        torch.testing.assert_close(compiled(q, k)[0], rotary(q, k)[0], rtol=0, atol=tolerance)


# --- Errors


Q = torch.zeros(1, 2, 6, 8)
LAYER = RotaryEmbedding(8, max_len=5)
FAR = torch.arange(6.0)
NAN, TWO = FAR.clone().fill_(math.nan), Q.expand(2, 2, 6, 8)
HEADS = RotaryEmbedding(8, frequencies=torch.ones(3, 4))


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: LAYER(Q, Q), ValueError, r"positions 0\.\.5 must lie in 0\.\.4: .* max_len=5"),
        (lambda: LAYER(Q[:, :, :3], Q[:, :, :3], offset=3), ValueError, r"positions 3\.\.5 must lie"),
        (lambda: LAYER(Q, Q, offset=-1), ValueError, "offset must be at least 0, got -1"),
        (lambda: LAYER(Q[..., :6], Q), ValueError, r"q must have shape \(\.\.\., seq, 8\), got \(1,"),
        (lambda: LAYER(Q, Q[..., :6]), ValueError, "k must have shape"),
        (lambda: LAYER(Q[0, 0, 0], Q), ValueError, r"q must have shape .* got \(8,\)"),
        (lambda: LAYER(Q, Q[:, :, :3]), ValueError, "k must have as many tokens as q, 6, got 3"),
        (lambda: LAYER(Q.long(), Q), TypeError, r"q must be a floating tensor, got torch\.int64"),
        (lambda: LAYER(Q, [0.0]), TypeError, "k must be a floating tensor, got list"),
        (lambda: LAYER(Q, Q, positions=torch.arange(2)), ValueError, r"shape \(6,\) or \(1, 6\), got \(2,\)"),
        (lambda: LAYER(Q[0], Q[0], positions=torch.zeros(1, 6)), ValueError, r"shape \(6,\), got \(1, 6\)"),
        (lambda: LAYER(Q, Q, positions=torch.arange(6), offset=1), ValueError, "offset must be 0 when"),
        (lambda: LAYER(Q, Q, positions=[0]), TypeError, "positions must be a tensor, got list"),
        (lambda: LAYER(Q, Q, positions=torch.zeros(6).bfloat16()), TypeError, "positions must be integers"),
        (lambda: HEADS(Q, Q), ValueError, r"q must have shape \(\.\.\., 3, seq, 8\)"),
        (lambda: RotaryEmbedding(7), ValueError, r"dim must be even .* got 7"),
        (lambda: LAYER(Q, Q.double()), TypeError, r"k must be float64 if q is, .* torch\.float64"),
        (lambda: LAYER(Q.double(), Q), TypeError, "k must be float64 if q is"),
        (lambda: LAYER(Q, Q, positions=NAN), ValueError, "positions must be finite, got nan"),
        (lambda: LAYER(Q, Q, positions=FAR.to(torch.float8_e4m3fn)), TypeError, "positions must be integers"),
        (lambda: LAYER(Q, Q, positions=FAR.bool()), TypeError, "positions must be integers"),
        (lambda: LAYER(TWO, Q, positions=FAR.expand(2, 6)), ValueError, "k must have the batch of q, 2"),
        (lambda: LAYER(None, Q), TypeError, "q must be a floating tensor, got NoneType"),
        (lambda: RotaryEmbedding(8, frequencies=sinusoidal_wavelengths(8)), ValueError, r"frequencies must .* 6\.2"),
        (lambda: RotaryEmbedding(8, max_len=0), ValueError, "max_len must be at least 1, got 0"),
        (lambda: RotaryEmbedding(8, rotary_dim=10), ValueError, "rotary_dim must be at most the width of x, 8"),
        (lambda: RotaryEmbedding(8, frequencies=torch.ones(3)), ValueError, r"frequencies must have shape \(4,\)"),
        (lambda: RotaryEmbedding(8, frequencies=torch.ones(4).bfloat16()), TypeError, "frequencies must be"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_repr() -> None:
    assert (
        repr(RotaryEmbedding(8, rotary_dim=6))
        == "RotaryEmbedding(dim=8, max_len=8192, layout='interleaved', rotary_dim=6)"
    )
    assert repr(HEADS) == "RotaryEmbedding(dim=8, max_len=8192, layout='interleaved', num_heads=3)"


def test_a_real_layer_goes_to_meta_and_is_not_emptied() -> None:
    layer = RotaryEmbedding(8, max_len=5)
    table = layer.table.clone()
    layer.to_empty(device="cpu")
    assert torch.equal(layer.table, table)
    layer.to("meta")
    layer.to_empty(device="cpu")
    assert torch.equal(layer.table, table)


@pytest.mark.parametrize("offset", [True, 1.0, "1"])
def test_an_offset_that_is_no_integer_is_named(offset: object) -> None:
    x = torch.zeros(1, 2, 3, 8)
    with pytest.raises(TypeError, match="offset must be an int, got"):
        RotaryEmbedding(8, max_len=10)(x, x, offset=offset)
