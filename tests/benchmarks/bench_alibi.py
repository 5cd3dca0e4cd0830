"""What does ALiBi cost on top of plain causal attention? Time as a ratio, and memory.

python tests/benchmarks/bench_alibi.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from benchmark import Row, machine, new_bytes, print_table, warm_allocator
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from posenc import alibi_bias, alibi_slopes
from posenc.nn import AlibiAttention

SHAPE = (1, 32, 2048, 64)
LENGTHS = (2048, 4096, 8192)


def inputs(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.randn(3, *shape).to(dtype)
    return q, k, v


def plain(q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
    return lambda: scaled_dot_product_attention(q, k, v, is_causal=True)


def biased(q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
    """With a bias that is there already."""
    bias = alibi_bias(alibi_slopes(q.shape[1], like=q), q.shape[2], dtype=q.dtype)[None]
    return lambda: scaled_dot_product_attention(q, k, v, attn_mask=bias)


def ours(q: Tensor, k: Tensor, v: Tensor) -> Callable[[], Tensor]:
    attention = AlibiAttention(q.shape[1])
    return lambda: attention(q, k, v)


def decoding(q: Tensor, k: Tensor, v: Tensor) -> tuple[Callable[[], Tensor], Callable[[], Tensor]]:
    """One token against the cache: ours, and without any bias."""
    attention, last = AlibiAttention(q.shape[1]), q[:, :, -1:]
    return lambda: attention(last, k, v), lambda: scaled_dot_product_attention(last, k, v)


def rows() -> Iterator[Row]:
    qkv = inputs(SHAPE)
    yield Row("AlibiAttention", "plain causal", 1.2, ours(*qkv), plain(*qkv))
    low = inputs(SHAPE, torch.bfloat16)
    yield Row("AlibiAttention, bfloat16", "plain causal", 1.2, ours(*low), plain(*low))
    yield Row("AlibiAttention", "ready-made bias", 1.0, ours(*qkv), biased(*qkv))
    yield Row("one token", "without bias", 2.0, *decoding(*qkv), 30, 20)


def peak(kind: str, n: int) -> float:
    """MiB that a fresh process takes at most for attention over n tokens of 4 heads, beside its inputs."""
    command = [sys.executable, __file__, kind, str(n)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_peak(kind: str, n: int) -> None:
    torch.set_num_threads(1)
    make = {"columns": ours, "plain": plain, "bias": biased}[kind]
    make(*inputs((1, 4, 64, 64)))()  # what torch loads once
    qkv = inputs((1, 4, n, 64))
    before = high_water()
    make(*qkv)()
    print(high_water() - before)


def high_water() -> float:
    """The most memory that this process has held so far, in MiB. ru_maxrss would start with the parent's."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found, "Linux is needed"
    return int(found[1]) / 1024


def main() -> None:
    warm_allocator()
    torch.manual_seed(0)
    print(machine())
    print(f"q, k, v: {SHAPE}; float32 unless said\n")
    comparisons = list(rows())
    with torch.inference_mode():
        print_table(comparisons)
        qkv = inputs(SHAPE)
        widened = new_bytes(ours(*qkv)) / sum(x.nbytes for x in qkv)
    print(f"\nnew memory / q, k, v: {widened:.2f}, the widened copies and the output\n")
    print("peak of a process beside its inputs, (1, 4, n, 64) float32, MiB")
    print(f"{'n':<20}" + "".join(f"{n:>8}" for n in LENGTHS))
    for kind, name in {"plain": "plain causal", "columns": "AlibiAttention", "bias": "bias"}.items():
        print(f"{name:<20}" + "".join(f"{peak(kind, n):8.0f}" for n in LENGTHS), flush=True)


if __name__ == "__main__":
    main() if len(sys.argv) == 1 else measure_peak(sys.argv[1], int(sys.argv[2]))
