"""How fast is the sinusoidal encoding? Ratios, side by side in one run.

python tests/bench_sinusoidal.py
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from posenc import sinusoidal_encoding


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any], runs: int) -> tuple[float, float, float]:
    """Median seconds of both, run in turn so that a slow moment hits both, and the ratio of the medians."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs + 1):
        for function, record in zip((ours, theirs), seconds, strict=True):
            start = time.perf_counter()
            result = function()
            record.append(time.perf_counter() - start)
            del result
    first, second = (median(record[1:]) for record in seconds)
    return first, second, first / second


def common_recipe(n: int, dim: int) -> torch.Tensor:
    """The table as most code makes it: everything in float32."""
    positions = torch.arange(n, dtype=torch.float).unsqueeze(1)
    factor = torch.exp(torch.arange(0, dim, 2).float() * (-math.log(10000.0) / dim))
    table = torch.zeros(n, dim)
    table[:, 0::2] = torch.sin(positions * factor)
    table[:, 1::2] = torch.cos(positions * factor)
    return table


def python(code: str) -> Callable[[], Any]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def main() -> None:
    large = sinusoidal_encoding(131072, 1024, dtype=torch.float32)
    rows = [
        ("table (131072, 1024) float32", "clone of it", 1.5,
         lambda: sinusoidal_encoding(131072, 1024, dtype=torch.float32), large.clone, 15),
        ("table (5000, 512) float32", "common float32 recipe", 1.0,
         lambda: sinusoidal_encoding(5000, 512, dtype=torch.float32), lambda: common_recipe(5000, 512), 50),
        ("import posenc", "import numpy", 1.3, python("import posenc"), python("import numpy"), 20),
    ]  # fmt: skip
    print(f"{'ours':<30} {'against':<22} {'ms':>8} {'ms':>8} {'ratio':>6} {'bound':>6}")
    for name, against, bound, ours, theirs, runs in rows:
        first, second, quotient = ratio(ours, theirs, runs)
        print(f"{name:<30} {against:<22} {first * 1e3:8.2f} {second * 1e3:8.2f} {quotient:6.2f} {bound:6.2f}")


if __name__ == "__main__":
    main()
