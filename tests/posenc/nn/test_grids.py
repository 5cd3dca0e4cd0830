"""Layers for tokens on a grid: thin over the formulas, exact in parts, sure of their grid."""

from typing import Any

import pytest
import torch

from posenc import grid_encoding
from posenc.grids import grid_coordinates
from posenc.nn import GridEncoding, GridRotary
from posenc.rotary import apply_rotary_axes, axial_frequencies, mixed_frequencies, mrope_frequencies
from tests.taken import random

DTYPES = [torch.float32, torch.float64, torch.bfloat16]
LAYOUTS: Any = ["interleaved", "half"]
UNIT = {torch.float32: 1e-6, torch.float64: 1e-14, torch.bfloat16: 2e-2}


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
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["axial", "mixed", "unequal"])
def test_rotary_is_the_formula(dtype: torch.dtype, layout: Any, kind: str) -> None:
    omega = {
        "axial": axial_frequencies(16, 2, base=100.0),
        "mixed": mixed_frequencies(16, 0.4, base=100.0),
        "unequal": mrope_frequencies(16, (5, 3)),
    }[kind]
    given: Any = {"base": 100.0} if kind == "axial" else {"frequencies": omega}
    layer = GridRotary(16, (5, 7), layout=layout, class_tokens=1, **given).to(dtype)
    q, k = random(2, 4, 36, 16, dtype=dtype), random(2, 2, 36, 16, dtype=dtype)
    for x, turned in zip((q, k), layer(q, k), strict=True):
        assert torch.equal(turned[:, :, 0], x[:, :, 0])  # a class token does not turn
        wanted = apply_rotary_axes(x[:, :, 1:].double(), grid_coordinates((5, 7)), omega, layout=layout)
        torch.testing.assert_close(turned[:, :, 1:], wanted.to(dtype), rtol=UNIT[dtype], atol=UNIT[dtype])


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
