"""The forget gate and contextual positions as layers: where they start, decoding, any precision, loaders."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from posenc import alibi_bias, alibi_slopes, forget_bias
from posenc.nn import ContextualPositions, ForgetGate
from tests.taken import random

# --- ForgetGate


@pytest.mark.parametrize("heads", [1, 8, 12])
def test_starts_as_alibi(heads: int) -> None:
    gate, x = ForgetGate(16, heads), random(2, 40, 16)
    expected = torch.from_numpy(alibi_bias(alibi_slopes(heads), 40)).float()
    bias = forget_bias(gate(x))
    assert bias.shape == (2, heads, 40, 40)
    torch.testing.assert_close(bias, expected.expand_as(bias), rtol=1e-5, atol=1e-6)
    steep = ForgetGate(16, 2, slopes=np.array([3.0, 1e-6]))(x)
    torch.testing.assert_close(steep[0, :, 0], torch.tensor([-3.0, -1e-6]))


def test_leaves_alibi_when_it_is_trained() -> None:
    gate, x = ForgetGate(16, 4), random(2, 40, 16)
    forget_bias(gate(x))[..., -1, :5].sum().backward()
    for parameter in gate.parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().max() > 0.01
        parameter.data -= 0.1 * parameter.grad
    assert gate(x).std(dim=-1).min() > 1e-4  # a gate that is nearly open moves little
    gate.reset_parameters()
    assert gate(x).std(dim=-1).max() == 0


@pytest.mark.parametrize("slope", [1e-6, 0.5, 30.0, 710.0, 1e5])
def test_a_gate_starts_from_any_slope(slope: float) -> None:
    """exp(710) is beyond float64."""
    start = ForgetGate(4, 1, slopes=np.array([slope]))(torch.zeros(2, 4))
    torch.testing.assert_close(start, torch.full((1, 2), -slope), rtol=1e-5, atol=0)


# --- ContextualPositions


def layer_of(dim: int = 8, most: int = 5, **options: Any) -> ContextualPositions:
    layer = ContextualPositions(dim, most, **options)
    with torch.no_grad():
        layer.weight.copy_(random(most + 1, dim))
    return layer


def test_without_training_it_is_the_causal_mask() -> None:
    q, k, v = random(3, 1, 2, 10, 8)
    output = scaled_dot_product_attention(q, k, v, attn_mask=ContextualPositions(8, 5)(q, k))
    torch.testing.assert_close(output, scaled_dot_product_attention(q, k, v, is_causal=True))


def test_positions_stay_exact_in_low_precision() -> None:
    layer, (q, k) = layer_of(most=500), random(2, 1, 2, 900, 8, dtype=torch.bfloat16)
    exact = layer.positions(q.double(), k.double())
    torch.testing.assert_close(layer.positions(q, k), exact, atol=1e-3, rtol=0)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(layer.positions(q.float(), k.float()), exact, atol=1e-3, rtol=0)
