"""Layers for tokens on a grid: coordinates of another grid, and of each sentence."""

import torch

from posenc.grids import grid_coordinates
from posenc.nn import GridEncoding, GridRotary
from posenc.rotary import apply_rotary_axes, axial_frequencies
from tests.taken import random


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
