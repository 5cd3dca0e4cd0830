"""What do codes of a grid and rotations by its axes cost? Ratios to a copy of the same bytes."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

from posenc.grids import Order, grid_encoding, interpolate_grid
from posenc.nn import GridEncoding, GridRotary
from posenc.rotary import mixed_frequencies
from tests.benchmarks.benchmark import Row, call, copies, new_bytes, run

SHAPE, DIM = (128, 128), 768
QUERIES = (1, 16, 64 * 64, 64)
ORDERS: dict[Order, str] = {"interleaved": "interleaved", "mae": "order of MAE", "timm": "order of timm"}


def bicubic(x: Tensor, antialias: bool) -> Tensor:
    """torch's own, with the reordering of axes that it needs."""
    grid = x.unflatten(0, (14, 14)).permute(2, 0, 1)[None]
    new = functional.interpolate(grid, (32, 32), mode="bicubic", antialias=antialias)
    return new[0].permute(1, 2, 0).flatten(0, 1)


def rows() -> Iterator[Row]:
    ready = grid_encoding(SHAPE, DIM, dtype=torch.float32)
    for order, name in ORDERS.items():
        ours = call(grid_encoding, SHAPE, DIM, order=order, dtype=torch.float32)
        yield Row(f"table, {name}", "clone", 1.5, ours, ready.clone)
    q, k = torch.randn(2, *QUERIES)
    mixed = mixed_frequencies(64, 0.5)
    yield Row("axial RoPE", "copy_", 1.35, call(GridRotary(64, (64, 64)), q, k), copies(q, k))
    yield Row(
        "mixed RoPE", "copy_", 1.35, call(GridRotary(64, (64, 64), frequencies=mixed), q, k), copies(q, k)
    )
    layer, x = GridEncoding(DIM, (64, 64), dropout=0.0), torch.randn(8, 64 * 64, DIM)
    yield Row("GridEncoding", "clone", 1.5, call(layer, x), x.clone)
    learned = torch.randn(196, DIM)
    for antialias in (False, True):
        name = "interpolate_grid" + ", antialias" * antialias
        ours = call(interpolate_grid, learned, (14, 14), (32, 32), antialias=antialias)
        yield Row(name, "torch, interpolate", 3.0, ours, call(bicubic, learned, antialias))


def memory() -> Iterator[str]:
    table = call(grid_encoding, SHAPE, DIM, dtype=torch.float32)
    yield f"new memory / table: {new_bytes(table) / table().nbytes:.2f}"


if __name__ == "__main__":
    run(rows, f"table {SHAPE} of width {DIM}; q, k {QUERIES}; float32", memory)
