"""Masks in torch's own functions: outputs of real tokens, polarity, and rows without any key."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, scaled_dot_product_attention

from posenc import causal_mask, dot_product_attention
from posenc.masks import (
    apply_output_mask,
    combine_masks,
    empty_rows,
    key_padding_mask,
    masked_loss,
    multihead_mask,
    pad_batch,
    positions_from_mask,
    safe_mask,
    sdpa_mask,
)
from posenc.nn import SinusoidalEncoding

DIM, HEADS = 8, 2
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
lengths_of = st.lists(st.integers(1, 6), min_size=1, max_size=4)
sides = st.sampled_from(["right", "left"])
# A first call of a library may take a while on a busy machine.
patient = settings(deadline=None, max_examples=12)


def random(*shape: int, dtype: torch.dtype = torch.float64, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def seeded(make: Callable[[], Any]) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make().eval()


def new_multihead() -> nn.MultiheadAttention:
    layer = nn.MultiheadAttention(DIM, HEADS, batch_first=True, dtype=torch.float64)
    nn.init.normal_(layer.in_proj_bias)
    nn.init.normal_(layer.out_proj.bias)
    return layer


def new_encoder() -> nn.TransformerEncoder:
    layer = nn.TransformerEncoderLayer(DIM, HEADS, 16, batch_first=True, dtype=torch.float64)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


MULTIHEAD, ENCODER = seeded(new_multihead), seeded(new_encoder)


def by_attention(x: Tensor, padding: Tensor, mask: Tensor) -> Tensor:
    return dot_product_attention(x, x, x, mask=combine_masks(padding, mask=mask))[0]


def by_sdpa(x: Tensor, padding: Tensor, mask: Tensor) -> Tensor:
    h = x[:, None]
    return scaled_dot_product_attention(h, h, h, attn_mask=sdpa_mask(combine_masks(padding, mask=mask)))[:, 0]


def by_multihead(x: Tensor, padding: Tensor, mask: Tensor) -> Tensor:
    masks = multihead_mask(safe_mask(combine_masks(padding, mask=mask)), HEADS)
    return MULTIHEAD(x, x, x, attn_mask=masks)[0]


def by_encoder(x: Tensor, padding: Tensor, mask: Tensor) -> Tensor:
    return ENCODER(x, mask=multihead_mask(safe_mask(combine_masks(padding, mask=mask)), HEADS))


FUNCTIONS = {f.__name__: f for f in (by_attention, by_sdpa, by_multihead, by_encoder)}


@pytest.fixture(params=[True, False], ids=["grad", "no_grad"])
def grad(request: pytest.FixtureRequest) -> Iterator[bool]:
    with torch.set_grad_enabled(request.param):
        yield request.param


# --- Real tokens are as if alone ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", FUNCTIONS)
@patient
@given(lengths=lengths_of, side=sides, causal=st.booleans(), inference=st.booleans(), seed=st.integers(0, 99))
def test_real_outputs_are_those_without_pads(
    name: str, lengths: list[int], side: Any, causal: bool, inference: bool, seed: int
) -> None:
    def run(x: Tensor, padding: Tensor) -> Tensor:
        n = x.shape[1]
        mask = causal_mask(n, like=x) if causal else torch.zeros(n, n, dtype=torch.bool)
        add_codes = SinusoidalEncoding(DIM, dropout=0.0)
        return FUNCTIONS[name](add_codes(x, positions=positions_from_mask(padding)), padding, mask)

    sequences = [random(n, DIM, seed=seed + n) for n in lengths]
    with torch.set_grad_enabled(not inference):
        batch, padding = pad_batch(sequences, side=side, length=max(lengths) + 3, value=5.0)
        output = run(batch, padding)
        assert output.isfinite().all()
        for b, x in enumerate(sequences):
            alone = run(x[None], torch.zeros(1, len(x), dtype=torch.bool))
            torch.testing.assert_close(output[b, ~padding[b]], alone[0], atol=1e-12, rtol=0)


@patient
@given(lengths=lengths_of, inference=st.booleans())
def test_key_padding_mask_goes_into_torch_as_it_is(lengths: list[int], inference: bool) -> None:
    """Right padding, so no row is empty: the plain arguments of torch, on every path of the layers."""
    sequences = [random(n, DIM, seed=n) for n in lengths]
    batch, padding = pad_batch(sequences, length=max(lengths) + 2)
    with torch.set_grad_enabled(not inference):
        outputs = {
            "multihead": MULTIHEAD(batch, batch, batch, key_padding_mask=padding)[0],
            "encoder": ENCODER(batch, src_key_padding_mask=padding),
            "causal, which needs none": ENCODER(batch, mask=causal_mask(batch.shape[1], like=batch)),
        }
        for b, x in enumerate(sequences):
            y = x[None]
            expected = {
                "multihead": MULTIHEAD(y, y, y)[0][0],
                "encoder": ENCODER(y)[0],
                "causal, which needs none": ENCODER(y, mask=causal_mask(len(x), like=x))[0],
            }
            for name, output in outputs.items():
                torch.testing.assert_close(output[b, : len(x)], expected[name], atol=1e-12, rtol=0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["by_attention", "by_sdpa"])
def test_in_every_precision(name: str, dtype: torch.dtype, grad: bool) -> None:
    x = random(5, DIM, dtype=dtype)
    batch, padding = pad_batch([x], side="left", length=9)
    output = FUNCTIONS[name](batch, padding, causal_mask(9, like=batch))
    alone = FUNCTIONS[name](x[None], padding[:, 4:], causal_mask(5, like=x))
    epsilon = torch.finfo(dtype).eps
    torch.testing.assert_close(output[:, 4:], alone, atol=2 * epsilon, rtol=2 * epsilon)
    # Pads at the left end see nothing at all: 0, in float16 as well.
    assert (output[:, :4] == 0).all()


def test_each_head_of_each_row_gets_its_mask() -> None:
    """The order of torch's 3-D mask is batch first, then heads."""
    x = random(3, 4, DIM)
    masks = combine_masks(key_padding_mask(torch.tensor([4, 2, 1])), mask=causal_mask(4, like=x))
    _, weights = MULTIHEAD(x, x, x, attn_mask=multihead_mask(masks, HEADS), average_attn_weights=False)
    assert ((weights == 0) == masks[:, None]).all()


# --- A row without any key ----------------------------------------------------------------------------------

EMPTY = torch.ones(1, 3, dtype=torch.bool)


@pytest.mark.parametrize("dtype", DTYPES)
def test_scaled_dot_product_attention_without_keys(dtype: torch.dtype, grad: bool) -> None:
    x = random(1, 3, DIM, dtype=dtype)
    floating = torch.zeros(1, 3, dtype=dtype).masked_fill(EMPTY, -math.inf)
    for mask in (~EMPTY, floating):
        assert (scaled_dot_product_attention(x, x, x, attn_mask=mask[:, None]) == 0).all()
    x.requires_grad_(grad)
    output, _ = dot_product_attention(x, x, x, mask=EMPTY[:, None])
    assert (output == 0).all()
    if grad:
        assert torch.autograd.grad(output.sum(), x)[0].isfinite().all()


def test_safe_mask_and_zeros_are_what_our_attention_gives(grad: bool) -> None:
    x = random(1, 4, DIM)
    mask = combine_masks(key_padding_mask([2], 4, side="left", like=x), mask=causal_mask(4, like=x))
    expected, _ = dot_product_attention(x, x, x, mask=mask)
    assert (expected[empty_rows(mask)] == 0).all()
    opened = dot_product_attention(x, x, x, mask=safe_mask(mask))[0]
    torch.testing.assert_close(apply_output_mask(opened, empty_rows(mask)), expected)


@pytest.mark.parametrize("safe", [True, False])
def test_only_a_safe_mask_keeps_nan_out_of_the_gradient(safe: bool) -> None:
    x = random(1, 3, DIM).requires_grad_()
    mask = combine_masks(EMPTY, mask=torch.zeros(3, 3, dtype=torch.bool))
    used = multihead_mask(safe_mask(mask) if safe else mask, HEADS)
    output = apply_output_mask(MULTIHEAD(x, x, x, attn_mask=used)[0], EMPTY)
    assert output.isfinite().all()
    (gradient,) = torch.autograd.grad(output.sum(), x)
    assert gradient.isfinite().all() == safe


# --- The loss -----------------------------------------------------------------------------------------------


@patient
@given(lengths=lengths_of, side=sides)
def test_masked_loss_is_that_of_ignore_index(lengths: list[int], side: Any) -> None:
    padding = key_padding_mask(torch.tensor(lengths), max(lengths) + 2, side=side)
    logits = random(*padding.shape, 5).requires_grad_()
    targets = torch.where(padding, 0, 1 + torch.arange(padding.numel()).reshape(padding.shape) % 4)
    loss = masked_loss(cross_entropy(logits.mT, targets, reduction="none"), padding)
    expected = cross_entropy(logits.mT, targets, ignore_index=0)
    torch.testing.assert_close(loss, expected)
    (gradient,) = torch.autograd.grad(loss, logits, retain_graph=True)
    (wanted,) = torch.autograd.grad(expected, logits)
    torch.testing.assert_close(gradient, wanted)
    assert (gradient[padding] == 0).all()
