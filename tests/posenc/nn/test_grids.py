"""Layers for tokens on a grid: thin over the formulas, exact in parts, sure of their grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import grid_encoding
from posenc.grids import grid_coordinates
from posenc.nn import GridEncoding, GridRotary
from posenc.rotary import apply_rotary_axes, axial_frequencies, mixed_frequencies, mrope_frequencies

DTYPES = [torch.float32, torch.float64, torch.bfloat16]
LAYOUTS: Any = ["interleaved", "half"]
UNIT = {torch.float32: 1e-6, torch.float64: 1e-14, torch.bfloat16: 2e-2}


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_codes_are_added_behind_the_class_tokens(dtype: torch.dtype) -> None:
    layer = GridEncoding(12, (2, 1, 3), class_tokens=2, dropout=0.0, base=100.0, order="timm").to(dtype)
    x = random(4, 8, 12, dtype=dtype)
    codes = grid_encoding((2, 1, 3), 12, base=100.0, order="timm", dtype=torch.float64)
    assert torch.equal(layer(x)[:, :2], x[:, :2])
    wanted = (x[:, 2:].double() + codes).to(dtype)
    torch.testing.assert_close(layer(x)[:, 2:], wanted, rtol=0, atol=UNIT[dtype])
    assert torch.equal(layer(x[0]), layer(x)[0])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@given(cut=st.lists(st.integers(0, 14), max_size=3).map(sorted))
def test_parts_are_the_whole(dtype: torch.dtype, cut: list[int]) -> None:
    bounds = list(zip([0, *cut], [*cut, 14], strict=True))
    codes, x = GridEncoding(8, (3, 4), class_tokens=2, dropout=0.0), random(2, 14, 8, dtype=dtype)
    parts = [codes(x[:, a:b], offset=a) for a, b in bounds]
    assert torch.equal(torch.cat(parts, dim=1), codes(x))
    rotary, q = GridRotary(8, (3, 4), class_tokens=2), random(2, 3, 14, 8, dtype=dtype)
    turned = [rotary(q[:, :, a:b], q[:, :1, a:b], offset=a) for a, b in bounds]
    for whole, pieces in zip(rotary(q, q[:, :1]), zip(*turned, strict=True), strict=True):
        torch.testing.assert_close(torch.cat(pieces, dim=2), whole, rtol=0, atol=UNIT[dtype])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["axial", "mixed", "unequal"])
def test_rotary_is_the_formula(dtype: torch.dtype, layout: Any, kind: str) -> None:
    omega = {
        "axial": axial_frequencies(16, 2, base=100.0),
        "mixed": mixed_frequencies(16, 0.4, base=100.0),
        "unequal": mrope_frequencies(16, (5, 3)),
    }[kind]
    given: Any = {"base": 100.0} if kind == "axial" else {"frequencies": omega}
    layer = GridRotary(16, (5, 7), layout=layout, **given).to(dtype)
    q, k = random(2, 4, 35, 16, dtype=dtype), random(2, 2, 35, 16, dtype=dtype)
    for x, turned in zip((q, k), layer(q, k), strict=True):
        wanted = apply_rotary_axes(x.double(), grid_coordinates((5, 7)), omega, layout=layout)
        torch.testing.assert_close(turned, wanted.to(dtype), rtol=UNIT[dtype], atol=UNIT[dtype])


def test_class_tokens_do_not_turn() -> None:
    layer, q = GridRotary(8, (2, 2), class_tokens=1), random(1, 1, 5, 8)
    assert torch.equal(layer(q, q)[0][:, :, 0], q[:, :, 0])
    torch.testing.assert_close(layer(q, q)[0][:, :, 1:], GridRotary(8, (2, 2))(q[:, :, 1:], q[:, :, 1:])[0])


def test_coordinates_are_another_grid() -> None:
    t = torch.from_numpy(grid_coordinates((3, 5)))
    x = random(2, 15, 8)
    small, large = (GridEncoding(8, shape, dropout=0.0) for shape in ((2, 2), (3, 5)))
    torch.testing.assert_close(small(x, coordinates=t), large(x))
    each = torch.stack([t, t + 0.5])
    torch.testing.assert_close(small(x, coordinates=each)[0], large(x)[0])
    q, layer = random(2, 3, 15, 8), GridRotary(8, (2, 2))
    turned = layer(q, q[:, :1], coordinates=each)[0]
    torch.testing.assert_close(turned[0], GridRotary(8, (3, 5))(q, q)[0][0])
    torch.testing.assert_close(turned[1], apply_rotary_axes(q[1], each[1], axial_frequencies(8, 2)))


def test_dropout_and_gradients() -> None:
    torch.manual_seed(0)
    layer = GridEncoding(8, (5, 5), dropout=0.5)
    x = random(25, 8).requires_grad_()
    dropped = (layer(x) == 0).float().mean()
    assert 0.3 < dropped < 0.7
    layer.eval()(x).sum().backward()
    assert x.grad is not None
    assert (x.grad == 1).all()
    assert layer.state_dict() == {}
    assert list(layer.parameters()) == []


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
def test_in_one_graph() -> None:
    codes, rotary, x = GridEncoding(8, (3, 3), dropout=0.0), GridRotary(8, (3, 3)), random(1, 2, 9, 8)

    def model(x: torch.Tensor) -> torch.Tensor:
        y = codes(x[:, 0])[:, None]
        q, k = rotary(x + y, x)
        return q @ k.mT

    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(model, fullgraph=True, backend="eager")(x), model(x))


BAD: Any = [[0, 1]] * 4


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: GridEncoding(8, (2, 2))(random(1, 3, 8)), ValueError, r"x must hold 4 tokens, .*grid \(2, 2\), got 3"),
        (lambda: GridEncoding(8, (2, 2))(random(1, 6, 8)), ValueError, "x must hold 4 tokens, .* got 6: pass offset"),
        (lambda: GridEncoding(8, (2, 2))(random(1, 3, 8), offset=2), ValueError, r"tokens 2\.\.4 must lie in 0\.\.3"),
        (lambda: GridEncoding(8, (2, 2))(random(1, 3, 8), offset=-1), ValueError, "offset must be at least 0"),
        (lambda: GridEncoding(8, (2, 2))(random(4, 6)), ValueError, r"x must have shape \(batch, seq, 8\)"),
        (lambda: GridEncoding(6, (2, 2)), ValueError, "dim must be a multiple of 4"),
        (lambda: GridEncoding(8, (2, 0)), ValueError, "each length of shape must be at least 1"),
        (lambda: GridEncoding(8, (2, 2), class_tokens=-1), ValueError, "class_tokens must be at least 0"),
        (lambda: GridEncoding(8, (2, 2))(random(4, 8), coordinates=BAD), TypeError, "coordinates must be a tensor"),
        (
            lambda: GridEncoding(8, (2, 2))(random(4, 8), coordinates=torch.ones(4, 2), offset=1),
            ValueError, "offset must be left out",
        ),
        (
            lambda: GridEncoding(8, (2, 2))(random(4, 8), coordinates=torch.ones(4, 3)),
            ValueError, r"coordinates must have shape \(4, 2\)",
        ),
        (lambda: GridRotary(8, (2, 2))(random(3, 8), random(3, 8)), ValueError, "x must hold 4 tokens"),
        (lambda: GridRotary(8, (2, 2))(random(4, 8), random(3, 8)), ValueError, "k must have as many tokens as q"),
        (lambda: GridRotary(8, (2, 2), frequencies=np.ones((3, 4))), ValueError, "frequencies must have shape"),
        (lambda: GridRotary(8, (2, 2), frequencies=np.ones((2, 4)), base=5.0), ValueError, "base must be left out"),
        (
            lambda: GridRotary(8, (2, 2))(random(4, 8), random(4, 8), coordinates=torch.ones(4, 2).half()),
            TypeError, "coordinates must be integers, float32 or float64",
        ),
        (  # heads or a batch: nothing tells, and codes for each sentence would spread over both
            lambda: GridRotary(8, (2, 2))(random(4, 4, 8), random(4, 4, 8), coordinates=torch.ones(4, 4, 2)),
            ValueError, r"coordinates must have shape \(4, 2\), got \(4, 4, 2\)",
        ),
        (
            lambda: GridRotary(8, (2, 2))(random(3, 2, 4, 8), random(1, 2, 4, 8), coordinates=torch.ones(3, 4, 2)),
            ValueError, r"k must have the batch of q, 3, .* got \(1, 2, 4, 8\)",
        ),
        (lambda: GridRotary(8, (2, 2), frequencies=np.full((2, 4), 7.0)), ValueError, "frequencies must be radians"),
        (lambda: setattr(GridRotary(8, (2, 2)), "max_len", 2), AttributeError, "max_len belongs to the table"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
