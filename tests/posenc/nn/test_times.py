"""The layer for times: the formula, one token at a time, any precision, and a scale that can be learned."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch

from posenc import time_encoding
from posenc.nn import TimeEncoding

PERIODS: dict[str, Any] = {"shortest": 0.2, "longest": 120.0}
ONE: Any = 1
T = torch.tensor([0.0, 0.4, 1.3, 1.2, 59.9])


def inputs(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_adds_the_codes_of_the_times(dtype: torch.dtype) -> None:
    layer, x = TimeEncoding(8, **PERIODS), inputs(2, 5, 8, dtype=dtype)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    codes = time_encoding(T, 8, **PERIODS, dtype=wide)
    assert torch.equal(layer(x, T), (x + codes).to(dtype))
    assert torch.equal(layer(x[0], T), (x[0] + codes).to(dtype))
    both = torch.stack([T, T + 100])
    assert torch.equal(layer(x, both)[1], (x[1] + time_encoding(T + 100, 8, **PERIODS, dtype=wide)).to(dtype))


@pytest.mark.parametrize("learned", [False, True])
def test_one_at_a_time_is_the_full_pass_bit_for_bit(learned: bool) -> None:
    layer, x = TimeEncoding(8, **PERIODS, learned_scale=learned), inputs(2, 5, 8)
    if learned:
        torch.nn.init.constant_(next(layer.parameters()), 0.3)
    parts = [layer(x[:, i : i + 1], T[i : i + 1]) for i in range(5)]
    assert torch.equal(torch.cat(parts, dim=1), layer(x, T))


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
    layer, x = TimeEncoding(8, **PERIODS, learned_scale=True), inputs(5, 8)
    far = T.double() + 10_000
    before = layer(x, far)
    low = copy.deepcopy(layer).to(torch.bfloat16)
    assert torch.equal(low(x, far), before)
    with pytest.raises(TypeError, match="seconds must be integers, float32 or float64, got dtype torch"):
        low(x, T.bfloat16())


def test_travels_with_a_model() -> None:
    layer = TimeEncoding(8, **PERIODS, learned_scale=True)
    torch.nn.init.constant_(next(layer.parameters()), 0.3)
    with torch.device("meta"):
        other, fixed = TimeEncoding(8, **PERIODS, learned_scale=True), TimeEncoding(8, **PERIODS)
    other.to_empty(device="cpu")
    other.reset_parameters()
    other.load_state_dict(layer.state_dict())
    x = inputs(5, 8)
    assert torch.equal(other(x, T), layer(x, T))
    assert not fixed.state_dict()
    assert torch.equal(fixed(x, T), TimeEncoding(8, **PERIODS)(x, T))
    assert "learned_scale=True" in repr(layer)
    compiled = torch.compile(TimeEncoding(8, **PERIODS), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x, T), fixed(x, T))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: TimeEncoding(7, **PERIODS), ValueError, "dim must be even"),
        (
            lambda: TimeEncoding(8, shortest=2.0, longest=1.0),
            ValueError,
            "longest must be above shortest = 2, got 1",
        ),
        (
            lambda: TimeEncoding(8, **PERIODS, learned_scale=ONE),
            TypeError,
            "learned_scale must be True or False, got 1",
        ),
        (
            lambda: TimeEncoding(8, **PERIODS)(inputs(5, 6), T),
            ValueError,
            r"x must have shape \(batch, seq, 8\)",
        ),
        (
            lambda: TimeEncoding(8, **PERIODS)(inputs(5, 8), T[:4]),
            ValueError,
            r"seconds must have shape \(5,\)",
        ),
        (lambda: TimeEncoding(8, **PERIODS)(inputs(5, 8), 3), TypeError, "seconds must be a tensor, got int"),
        (
            lambda: TimeEncoding(8, **PERIODS)(inputs(5, 8), T / 0),
            ValueError,
            "seconds must be finite, got nan",
        ),
        (lambda: TimeEncoding(8, **PERIODS)(inputs(5, 8), T + 1.7e9), ValueError, "seconds must be within"),
    ],
)
def test_bad_input_is_named(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
