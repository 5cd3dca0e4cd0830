"""What do codes of times cost? Time as a ratio to the sinusoidal code of as many positions, and to a copy.

python tests/benchmarks/bench_times.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from benchmark import Row, machine, print_table, warm_allocator

from posenc import periodic_encoding, sinusoidal_encoding, time_encoding
from posenc.nn import SinusoidalEncoding, TimeEncoding
from posenc.times import nearest_index

N, DIM = 20_000, 256
PERIODS: dict[str, Any] = {"shortest": 0.2, "longest": 600.0}


def rows() -> Iterator[Row]:
    t = torch.rand(N, dtype=torch.float64).sort().values * 600
    positions = t * 30

    def usual() -> torch.Tensor:
        return sinusoidal_encoding(positions, DIM)

    yield Row("time_encoding", "sinusoidal_encoding", 1.1, lambda: time_encoding(t, DIM, **PERIODS), usual)
    # 128 harmonics of one period, as many columns.
    yield Row("periodic_encoding", "sinusoidal_encoding", 1.1,
              lambda: periodic_encoding(t, 600, harmonics=DIM // 2), usual)  # fmt: skip
    x = torch.randn(8, 512, DIM)
    seconds = torch.arange(512) / 30
    times, table = TimeEncoding(DIM, **PERIODS), SinusoidalEncoding(DIM, dropout=0.0)
    # Sines of every time anew, against a table that is only read.
    yield Row(
        "TimeEncoding, a batch's times",
        "SinusoidalEncoding",
        12.0,
        lambda: times(x, seconds),
        lambda: table(x),
    )
    frames, words = np.arange(N) / 30, np.sort(np.random.default_rng(0).uniform(0, N / 30, N))
    yield Row("nearest_index", "np.searchsorted", 3.0, lambda: nearest_index(words, frames),
              lambda: np.searchsorted(frames, words))  # fmt: skip


def main() -> None:
    warm_allocator()
    torch.manual_seed(0)
    print(machine())
    print(f"{N} times, dim {DIM}; a batch (8, 512, {DIM})\n")
    with torch.inference_mode():
        print_table(rows())


if __name__ == "__main__":
    main()
