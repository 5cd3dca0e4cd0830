"""What does ALiBi cost on top of plain causal attention? Time as a ratio, and memory."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from posenc.alibi import alibi_bias, alibi_slopes
from posenc.nn import AlibiAttention
from tests.benchmarks.benchmark import Row, Run, call, new_bytes, run

SHAPE = (1, 32, 2048, 64)
LENGTHS = (2048, 4096, 8192)
KINDS = {"plain causal": "plain", "AlibiAttention": "columns", "bias": "bias"}


def attention(kind: str, q: Tensor, k: Tensor, v: Tensor) -> Run:
    if kind == "columns":
        return call(AlibiAttention(q.shape[1]), q, k, v)
    if kind == "plain":
        return call(scaled_dot_product_attention, q, k, v, is_causal=True)
    bias = alibi_bias(alibi_slopes(q.shape[1], like=q), q.shape[2], dtype=q.dtype)[None]  # there already
    return call(scaled_dot_product_attention, q, k, v, attn_mask=bias)


def rows() -> Iterator[Row]:
    qkv = torch.randn(3, *SHAPE)
    low, (q, k, v) = qkv.bfloat16(), qkv
    ours, last = attention("columns", q, k, v), (q[:, :, -1:], k, v)
    yield Row("AlibiAttention", "plain causal", 1.2, ours, attention("plain", q, k, v))
    low_ours, low_plain = (attention(kind, *low) for kind in ("columns", "plain"))
    yield Row("AlibiAttention, bfloat16", "plain causal", 1.2, low_ours, low_plain)
    yield Row("AlibiAttention", "ready-made bias", 1.0, ours, attention("bias", q, k, v))
    without = call(scaled_dot_product_attention, *last)
    yield Row("one token", "without bias", 2.0, attention("columns", *last), without, 30, 20)


def memory() -> Iterator[str]:
    qkv = torch.randn(3, *SHAPE)
    widened = new_bytes(attention("columns", *qkv)) / qkv.nbytes
    yield f"new memory / q, k, v: {widened:.2f}, the widened copies and the output\n"
    yield "peak of a process beside its inputs, (1, 4, n, 64) float32, MiB"
    yield f"{'n':<20}" + "".join(f"{n:>8}" for n in LENGTHS)
    for name, kind in KINDS.items():
        yield f"{name:<20}" + "".join(f"{peak(kind, n):8.0f}" for n in LENGTHS)


def peak(kind: str, n: int) -> float:
    """MiB that a fresh process takes at most for attention over n tokens of 4 heads, beside its inputs."""
    command = [sys.executable, __file__, kind, str(n)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_peak(kind: str, n: int) -> None:
    torch.set_num_threads(1)
    attention(kind, *torch.randn(3, 1, 4, 64, 64))()  # what torch loads once
    qkv = torch.randn(3, 1, 4, n, 64)
    before = high_water()
    attention(kind, *qkv)()
    print(high_water() - before)


def high_water() -> float:
    """The most memory that this process has held so far, in MiB. ru_maxrss would start with the parent's."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found, "Linux is needed"
    return int(found[1]) / 1024


if __name__ == "__main__":
    if len(sys.argv) == 1:
        run(rows, f"q, k, v: {SHAPE}; float32 unless said", memory)
    else:
        measure_peak(sys.argv[1], int(sys.argv[2]))
