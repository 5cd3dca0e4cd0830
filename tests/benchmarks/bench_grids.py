"""What do codes of a grid and rotations by its axes cost? Ratios to a copy of the same bytes.

python tests/benchmarks/bench_grids.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from benchmark import Row, machine, new_bytes, print_table, warm_allocator
from torch import Tensor
from torch.nn import functional

from posenc import grid_encoding
from posenc.grids import Order, interpolate_grid
from posenc.nn import GridEncoding, GridRotary
from posenc.rotary import mixed_frequencies

SHAPE, DIM = (128, 128), 768
QUERIES = (1, 16, 64 * 64, 64)


def table(order: Order, dtype: torch.dtype = torch.float32) -> Callable[[], Any]:
    return lambda: grid_encoding(SHAPE, DIM, order=order, dtype=dtype)


def cloned(x: Tensor) -> Callable[[], Any]:
    return lambda: x.clone()


def copies(*tensors: Tensor) -> Callable[[], Any]:
    """Copies into memory that is there already."""
    pairs = [(torch.empty_like(x), x) for x in tensors]
    return lambda: [target.copy_(source) for target, source in pairs]


def bicubic(x: Tensor, size: tuple[int, int], antialias: bool) -> Callable[[], Any]:
    """torch's own, with the reordering of axes that it needs."""

    def resize() -> Tensor:
        grid = x.unflatten(0, (14, 14)).permute(2, 0, 1)[None]
        new = functional.interpolate(grid, size, mode="bicubic", antialias=antialias)
        return new[0].permute(1, 2, 0).flatten(0, 1)

    return resize


def rows() -> Iterator[Row]:
    ready = grid_encoding(SHAPE, DIM, dtype=torch.float32)
    yield Row("table, interleaved", "clone", 1.5, table("interleaved"), cloned(ready))
    yield Row("table, order of MAE", "clone", 1.5, table("mae"), cloned(ready))
    yield Row("table, order of timm", "clone", 1.5, table("timm"), cloned(ready))
    q, k = torch.randn(2, *QUERIES)
    axial = GridRotary(64, (64, 64))
    mixed = GridRotary(64, (64, 64), frequencies=mixed_frequencies(64, 0.5))
    yield Row("axial RoPE", "copy_", 1.35, lambda: axial(q, k), copies(q, k))
    yield Row("mixed RoPE", "copy_", 1.35, lambda: mixed(q, k), copies(q, k))
    layer, x = GridEncoding(DIM, (64, 64), dropout=0.0), torch.randn(8, 64 * 64, DIM)
    yield Row("GridEncoding", "clone", 1.5, lambda: layer(x), cloned(x))
    learned = torch.randn(196, DIM)
    for antialias in (False, True):
        name = "interpolate_grid" + ", antialias" * antialias
        ours = lambda antialias=antialias: interpolate_grid(learned, (14, 14), (32, 32), antialias=antialias)  # noqa: E731
        yield Row(name, "torch, interpolate", 3.0, ours, bicubic(learned, (32, 32), antialias))


def main() -> None:
    warm_allocator()
    torch.manual_seed(0)
    print(machine())
    print(f"table {SHAPE} of width {DIM}; q, k {QUERIES}; float32\n")
    comparisons = list(rows())
    with torch.inference_mode():
        print_table(comparisons)
        made = new_bytes(table("interleaved")) / grid_encoding(SHAPE, DIM, dtype=torch.float32).nbytes
    print(f"\nnew memory / table: {made:.2f}")


if __name__ == "__main__":
    main()
