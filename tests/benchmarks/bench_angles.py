"""What does it cost to make the angles of a rotation in each call? Ratios against a table that is made once."""

from collections.abc import Iterator

import torch
from torch import Tensor

from posenc.nn import RotaryEmbedding
from tests.benchmarks.benchmark import Row, Run, call, copies, run

LONG, STEP = (1, 32, 2048, 128), (1, 32, 1, 128)


def at_positions(rotary: RotaryEmbedding, q: Tensor, k: Tensor, *, first: int) -> Run:
    """The same rotation by positions, whose angles the layer makes in float64 in each call."""
    return lambda: rotary(q, k, positions=torch.arange(first, first + q.shape[-2]))


def in_float32(rotary: RotaryEmbedding, first: int, seq: int) -> Run:
    """Angles, cosines and sines alone, in float32, as many models make them once a pass for all layers."""
    omega = rotary.frequencies.float()

    def made() -> tuple[Tensor, Tensor]:
        angles = torch.arange(first, first + seq).float()[:, None] * omega
        return angles.cos(), angles.sin()

    return made


def rows() -> Iterator[Row]:
    for layout in ("interleaved", "half"):
        rotary = RotaryEmbedding(128, layout=layout)
        long, step = (torch.randn(2, *shape) for shape in (LONG, STEP))
        name = f"made anew, {layout}"
        yield Row(name, "copy_", 12.0, at_positions(rotary, *long, first=0), copies(*long))
        yield Row(name, "table", 2.5, at_positions(rotary, *long, first=0), call(rotary, *long))
        at = at_positions(rotary, *step, first=2000)
        yield Row(f"{name}, 1 token", "table", 9.0, at, call(rotary, *step, offset=2000), 30, 1000)
    yield Row("table, interleaved", "copy_", 1.35, call(RotaryEmbedding(128), *long), copies(*long))
    yield Row(
        "float32 angles alone", "turning by table", 0.5, in_float32(rotary, 0, 2048), call(rotary, *long)
    )
    alone = in_float32(rotary, 2000, 1)
    yield Row(
        "float32 angles alone, 1 token",
        "turning by table",
        1.5,
        alone,
        call(rotary, *step, offset=2000),
        30,
        1000,
    )


def more() -> Iterator[str]:
    table = RotaryEmbedding(128).table
    yield f"table of {table.shape[0]} positions: {table.nbytes / 2**20:.0f} MiB"


if __name__ == "__main__":
    run(rows, f"q, k: {LONG}, one token {STEP}; float32", more)
