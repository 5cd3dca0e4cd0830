"""The layer for times: a scale that can be learned."""

import math
from typing import Any

import pytest
import torch

from posenc.nn import TimeEncoding
from tests.taken import random

PERIODS: dict[str, Any] = {"shortest": 0.2, "longest": 120.0}
T = torch.tensor([0.0, 0.4, 1.3, 1.2, 59.9])


def test_a_learned_scale_is_one_parameter_that_multiplies_times() -> None:
    layer = TimeEncoding(8, **PERIODS, learned_scale=True)
    assert [tuple(p.shape) for p in layer.parameters()] == [()]
    assert layer.scale == 1
    x = torch.zeros(5, 8, dtype=torch.float64)
    assert torch.equal(layer(x, T), TimeEncoding(8, **PERIODS)(x, T))
    torch.nn.init.constant_(next(layer.parameters()), math.log(60))
    assert layer.scale == pytest.approx(60, rel=1e-6)
    torch.testing.assert_close(layer(x, T / 60), TimeEncoding(8, **PERIODS)(x, T), atol=1e-3, rtol=0)
    layer(x, T).square().sum().backward()  # the norm of a code is fixed: no gradient, but not none at all
    layer(x, T)[:, 0].sum().backward()
    (parameter,) = layer.parameters()
    assert parameter.grad is not None
    assert parameter.grad.abs() > 0.01
    layer.reset_parameters()
    assert layer.scale == 1


def test_low_precision_reaches_the_scale_alone() -> None:
    layer, x = TimeEncoding(8, **PERIODS, learned_scale=True), random(5, 8)
    before = layer(x, T.double() + 10_000)
    assert torch.equal(layer.bfloat16()(x, T.double() + 10_000), before)
