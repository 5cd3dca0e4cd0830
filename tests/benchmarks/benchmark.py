"""What the benchmarks share: times as ratios in one run, memory, and a table."""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# A large block that malloc gives back to the system comes back page by page, each one cleared: that takes
# longer than what is to be measured. With these, memory once used stays with the process.
WARM = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "68719476736"}


def warm_allocator(n_bytes: int = 2**30) -> None:
    """Start this script anew with glibc told to keep its memory, unless it was, and let it have some."""
    if any(os.environ.get(name) != value for name, value in WARM.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **WARM})
    torch.ones(n_bytes, dtype=torch.uint8)


def peer(module: str) -> Any:
    """Another library's module, or one line that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SystemExit(f"{module.partition('.')[0]} is missing: pip install -e '.[peers]'") from None


@dataclass(frozen=True)
class Row:
    """One comparison: what is measured, against what, and how large the ratio may be."""

    name: str
    against: str
    bound: float
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    runs: int = 15
    repeats: int = 1
    """How often to call within one measurement: many times, where one call takes microseconds."""


def ratio(
    ours: Callable[[], Any], theirs: Callable[[], Any], runs: int, repeats: int = 1
) -> tuple[float, float, float]:
    """Median seconds of both, run in turn so that a slow moment hits both, and the median of the ratios."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for _ in range(runs + 2):
        for function, record in zip((ours, theirs), seconds, strict=True):
            start = time.perf_counter()
            for _ in range(repeats):
                result = function()
            record.append((time.perf_counter() - start) / repeats)
            del result
    first, second = (record[2:] for record in seconds)
    quotient = median(a / b for a, b in zip(first, second, strict=True))
    return median(first), median(second), quotient


def print_table(rows: Iterable[Row]) -> None:
    """Measure, and print a line a row. Times in milliseconds."""
    print(f"{'ours':<30} {'against':<22} {'ms':>8} {'ms':>8} {'ratio':>6} {'bound':>6}")
    for row in rows:
        first, second, quotient = ratio(row.ours, row.theirs, row.runs, row.repeats)
        times = f"{first * 1e3:8.3f} {second * 1e3:8.3f} {quotient:6.2f} {row.bound:6.2f}"
        print(f"{row.name:<30} {row.against:<22} {times}", flush=True)


class _NewTensors(TorchDispatchMode):
    """Remembers the memory of every tensor that an operation has made."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, torch.UntypedStorage] = {}
        self.n_bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for tensor in tree_leaves((args, kwargs)):
            self._remember(tensor, new=False)
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            self._remember(tensor, new=True)
        return result

    def _remember(self, tensor: Any, *, new: bool) -> None:
        if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() not in self.known:
            storage = tensor.untyped_storage()  # kept, so that no other gets the same address
            self.known[storage.data_ptr()] = storage
            self.n_bytes += storage.nbytes() if new else 0


def new_bytes(function: Callable[[], Any]) -> int:
    """The memory of all tensors that `function` makes on its way, its result included."""
    with _NewTensors() as made:
        function()
    return made.n_bytes


def machine() -> str:
    """Threads, torch and processor, as far as they are known."""
    level = torch.backends.cpu.get_cpu_capability()
    return f"torch {torch.__version__}, {torch.get_num_threads()} threads, {level}"
