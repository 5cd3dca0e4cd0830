"""How fast is the sinusoidal encoding? Ratios, side by side in one run."""

import os
import subprocess
import sys
from collections.abc import Iterator

import torch

from posenc.sinusoidal import sinusoidal_encoding
from tests.benchmarks.benchmark import Row, Run, call, print_table
from tests.posenc.nn.test_sinusoidal import recipe_table


def python(code: str) -> Run:
    """A fresh interpreter, which keeps what it has compiled, as it does by default."""
    keeps = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}
    return call(subprocess.run, [sys.executable, "-c", code], check=True, env=keeps)


def rows() -> Iterator[Row]:
    large, small = (
        call(sinusoidal_encoding, *shape, dtype=torch.float32) for shape in ((131072, 1024), (5000, 512))
    )
    yield Row("table (131072, 1024) float32", "clone of it", 1.5, large, large().clone)
    yield Row(
        "table (5000, 512) float32", "common float32 recipe", 1.0, small, call(recipe_table, 5000, 512), 50
    )
    yield Row("import posenc", "import numpy", 1.5, python("import posenc"), python("import numpy"), 20)


if __name__ == "__main__":
    print_table(rows())
