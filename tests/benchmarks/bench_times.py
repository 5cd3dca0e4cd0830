"""What do codes of times cost? Time as a ratio to the sinusoidal code of as many positions, and to a copy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from posenc.nn import SinusoidalEncoding, TimeEncoding
from posenc.sinusoidal import sinusoidal_encoding
from posenc.times import nearest_index, periodic_encoding, time_encoding
from tests.benchmarks.benchmark import Row, call, run

N, DIM = 20_000, 256
PERIODS: dict[str, Any] = {"shortest": 0.2, "longest": 600.0}


def rows() -> Iterator[Row]:
    t = torch.rand(N, dtype=torch.float64).sort().values * 600
    usual = call(sinusoidal_encoding, t * 30, DIM)
    yield Row("time_encoding", "sinusoidal_encoding", 1.1, call(time_encoding, t, DIM, **PERIODS), usual)
    # 128 harmonics of one period, as many columns.
    periodic = call(periodic_encoding, t, 600, harmonics=DIM // 2)
    yield Row("periodic_encoding", "sinusoidal_encoding", 1.1, periodic, usual)
    # Sines of every time anew, against a table that is only read.
    x, seconds = torch.randn(8, 512, DIM), torch.arange(512) / 30
    times, table = TimeEncoding(DIM, **PERIODS), SinusoidalEncoding(DIM, dropout=0.0)
    yield Row(
        "TimeEncoding, a batch's times", "SinusoidalEncoding", 12.0, call(times, x, seconds), call(table, x)
    )
    frames, words = np.arange(N) / 30, np.sort(np.random.default_rng(0).uniform(0, N / 30, N))
    theirs = call(np.searchsorted, frames, words)
    yield Row("nearest_index", "np.searchsorted", 3.0, call(nearest_index, words, frames), theirs)


if __name__ == "__main__":
    run(rows, f"{N} times, dim {DIM}; a batch (8, 512, {DIM})")
