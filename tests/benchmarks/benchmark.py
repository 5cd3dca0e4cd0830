"""What the benchmarks share, each of which is a script: `python tests/benchmarks/bench_alibi.py` prints its table."""

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# A large block that malloc gives back to the system comes back page by page, each one cleared: that takes
# longer than what is to be measured. With these, memory once used stays with the process.
WARM = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "68719476736"}

Run = Callable[[], Any]


@dataclass(frozen=True)
class Row:
    """One comparison: what is measured, against what, and how large the ratio may be."""

    name: str
    against: str
    bound: float
    ours: Run
    theirs: Run
    runs: int = 15
    repeats: int = 1
    """How often to call within one measurement: many times, where one call takes microseconds."""


def run(rows: Callable[[], Iterable[Row]], heading: str, more: Callable[[], Iterable[str]] = tuple) -> None:
    """Measure and print: the machine, what the lines are about, the lines, and `more` of them.

    Starts this script anew with glibc told to keep its memory, unless it was. With --busy it counts seconds of the
    processor on one thread, which other programs disturb less than seconds of the clock.
    """
    if "--busy" in sys.argv:
        torch.set_num_threads(1)
    if any(os.environ.get(name) != value for name, value in WARM.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **WARM})
    torch.ones(2**30, dtype=torch.uint8)
    torch.manual_seed(0)
    level = torch.backends.cpu.get_cpu_capability()
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {level}\n{heading}\n")
    comparisons = list(rows())
    with torch.inference_mode():  # as a model runs that is not being trained
        print_table(comparisons)
        for number, line in enumerate(more()):
            print("\n" * (not number) + line, flush=True)


def print_table(rows: Iterable[Row]) -> None:
    """Measure, and print a line a row. Times in milliseconds."""
    print(f"{'ours':<31} {'against':<20} {'ms':>8} {'ms':>8} {'ratio':>6} {'bound':>6}")
    for row in rows:
        first, second, quotient = ratio(row)
        times = f"{first * 1e3:8.3f} {second * 1e3:8.3f} {quotient:6.2f} {row.bound:6.2f}"
        print(f"{row.name:<31} {row.against:<20} {times}", flush=True)


def ratio(row: Row) -> tuple[float, float, float]:
    """Median seconds of both, run in turn so that a slow moment hits both, and the median of the ratios."""
    seconds: tuple[list[float], list[float]] = ([], [])
    clock = time.process_time if "--busy" in sys.argv else time.perf_counter
    for _ in range(row.runs + 2):
        for function, record in zip((row.ours, row.theirs), seconds, strict=True):
            start = clock()
            for _ in range(row.repeats):
                result = function()
            record.append((clock() - start) / row.repeats)
            del result
    first, second = (record[2:] for record in seconds)
    return median(first), median(second), median(a / b for a, b in zip(first, second, strict=True))


# --- What is compared with


def peer(module: str) -> Any:
    """Another library's module, or one line that says how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise SystemExit(f"{module.partition('.')[0]} is missing: pip install -e '.[peers]'") from None


def call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Run:
    return lambda: function(*arguments, **options)


def copies(*tensors: Tensor) -> Run:
    """Copies into memory that is there already."""
    pairs = [(torch.empty_like(tensor), tensor) for tensor in tensors]
    return lambda: [target.copy_(source) for target, source in pairs]


@torch.inference_mode(False)
def trained(function: Callable[..., Any], inputs: Iterable[Tensor], upstream: Any, *arguments: Any) -> Run:
    """Forward and backward; tensors made under inference_mode could not have gradients."""
    inputs = tuple(inputs)
    return torch.inference_mode(False)(lambda: torch.autograd.grad(function(*arguments), inputs, upstream))


# --- Memory


class _NewTensors(TorchDispatchMode):
    """Remembers the memory of every tensor that an operation has made."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[int, torch.UntypedStorage] = {}
        self.n_bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self._remember((args, kwargs), new=False)
        result = func(*args, **(kwargs or {}))
        self._remember(result, new=True)
        return result

    def _remember(self, tree: Any, *, new: bool) -> None:
        for tensor in tree_leaves(tree):
            if isinstance(tensor, Tensor) and tensor.untyped_storage().data_ptr() not in self.known:
                storage = tensor.untyped_storage()  # kept, so that no other gets the same address
                self.known[storage.data_ptr()] = storage
                self.n_bytes += storage.nbytes() if new else 0


def new_bytes(function: Run) -> int:
    """The memory of all tensors that `function` makes on its way, its result included."""
    with _NewTensors() as made:
        function()
    return made.n_bytes
