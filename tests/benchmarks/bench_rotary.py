"""How fast is the rotary embedding? Ratios, side by side with a copy of the same bytes and with transformers."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from posenc.nn import RotaryEmbedding
from posenc.rotary import apply_rotary
from posenc.rotary._turn import Layout
from tests.benchmarks.benchmark import Row, Run, call, copies, new_bytes, peer, run, trained

LONG, STEP, TRAIN = (1, 32, 2048, 128), (1, 32, 1, 128), (8, 12, 512, 64)
LAYOUTS: tuple[Layout, Layout] = ("interleaved", "half")


def llama(q: Tensor, k: Tensor) -> Run:
    """transformers' own function, with cosines and sines made beforehand: any numbers do here."""
    cos, sin = torch.randn(2, 1, *q.shape[-2:], dtype=q.dtype)
    return call(peer("transformers.models.llama.modeling_llama").apply_rotary_pos_emb, q, k, cos, sin)


def products(rotary: RotaryEmbedding, q: Tensor, k: Tensor, offset: int) -> Run:
    """Only the arithmetic: views and code made beforehand. No way of calling torch does less."""
    code = rotary.table[offset : offset + q.shape[-2]].view(torch.complex64)
    pairs = [x.view(torch.complex64) for x in (q, k)]
    return lambda: [z * code for z in pairs]


def rows() -> Iterator[Row]:
    interleaved, half = RotaryEmbedding(128), RotaryEmbedding(128, layout="half")
    compiled = torch.compile(half)
    long, short, train = (torch.randn(2, *shape) for shape in (LONG, STEP, TRAIN))
    low = long.bfloat16()
    step = call(interleaved, *short, offset=2000)
    yield Row("interleaved", "copy_", 1.35, call(interleaved, *long), copies(*long))
    yield Row("interleaved", "transformers, Llama", 0.2, call(interleaved, *long), llama(*long))
    yield Row("interleaved, one token", "copy_", 2.0, step, copies(*short), 30, 1000)
    yield Row("interleaved, one token", "transformers, Llama", 1.0, step, llama(*short), 30, 1000)
    bare = products(interleaved, short[0], short[1], offset=2000)
    yield Row("its two products alone", "copy_", 2.0, bare, copies(*short), 30, 1000)
    yield Row("half", "copy_", 3.0, call(half, *long), copies(*long))
    yield Row("half", "transformers, Llama", 1.0, call(half, *long), llama(*long))
    yield Row("half, compiled", "copy_", 1.5, call(compiled, *long), copies(*long))
    yield Row("half, compiled, bfloat16", "copy_", 3.5, call(compiled, *low), copies(*low))
    q, k = (x.clone().requires_grad_() for x in train)
    both_ways = trained(RotaryEmbedding(64), (q, k), (train[1], train[0]), q, k)
    yield Row("forward + backward", "copy_, twice", 1.8, both_ways, copies(*train, *train), 30)
    bare = products(RotaryEmbedding(64), train[0], train[1], offset=0)
    yield Row("forward + backward", "its four products", 1.3, both_ways, lambda: (bare(), bare()), 30)


def graphs(layout: Layout) -> int:
    """How many graphs torch.compile makes for many lengths."""
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(RotaryEmbedding(64, layout=layout), backend=counter, fullgraph=True)
    for length in (16, 100, 33, 2000, 7, 512):
        compiled(*torch.randn(2, 1, 2, length, 64))
    return counter.frame_count


def bfloat16_error(layout: Layout) -> float:
    q, k = torch.randn(2, *LONG).bfloat16()
    turned_q, _ = RotaryEmbedding(128, layout=layout)(q, k)
    return float((turned_q - apply_rotary(q.double(), LONG[2], layout=layout)).abs().max())


def phase_error(position: int) -> float:
    """Error of float32 sines and cosines near a position, against the angles in extended precision."""
    positions = np.arange(position - 1000, position + 1)
    unit = torch.tensor([1.0, 0.0]).repeat(64).expand(len(positions), 128)
    ours = apply_rotary(unit, positions).double().numpy()
    exact = np.longdouble(10000) ** (-np.arange(0, 128, 2, dtype=np.longdouble) / 128) * positions[:, None]
    return float(max(abs(ours[:, 0::2] - np.cos(exact)).max(), abs(ours[:, 1::2] - np.sin(exact)).max()))


def other_promises() -> Iterator[str]:
    qk = torch.randn(2, *LONG)
    memory = new_bytes(call(RotaryEmbedding(128), *qk)) / qk.nbytes
    with torch.inference_mode(False):
        counted = max(map(graphs, LAYOUTS))
    for name, value, bound in (
        ("interleaved, new memory / q, k", f"{memory:.3f}", "1.05"),
        ("graphs for six lengths", f"{counted}", "2"),
        ("error in bfloat16", f"{max(map(bfloat16_error, LAYOUTS)):.1e}", "1.6e-2"),
        ("error of phases at 1 000 000", f"{phase_error(1_000_000):.0e}", "1e-6"),
    ):
        yield f"{name:<32} {value:>8}   at most {bound}"


if __name__ == "__main__":
    run(rows, f"q, k: {LONG}, one token {STEP}\ntraining {TRAIN}; float32 unless said", other_promises)
