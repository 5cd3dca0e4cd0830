"""How fast is the rotary embedding? Ratios, side by side with a copy of the same bytes and with transformers.

python tests/benchmarks/bench_rotary.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from benchmark import Row, machine, new_bytes, peer, print_table, warm_allocator
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from posenc import apply_rotary
from posenc.nn import RotaryEmbedding
from posenc.rotary._turn import Layout

LONG, STEP, TRAIN = (1, 32, 2048, 128), (1, 32, 1, 128), (8, 12, 512, 64)


def pair(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    return torch.randn(shape).to(dtype), torch.randn(shape).to(dtype)


def copies(*tensors: Tensor) -> Callable[[], object]:
    """Copies into memory that is there already."""
    pairs = [(torch.empty_like(tensor), tensor) for tensor in tensors]
    return lambda: [target.copy_(source) for target, source in pairs]


def llama(q: Tensor, k: Tensor) -> Callable[[], object]:
    """transformers' own function, with cosines and sines made beforehand: any numbers do here."""
    cos, sin = torch.randn(2, 1, *q.shape[-2:], dtype=q.dtype)
    modeling = peer("transformers.models.llama.modeling_llama")
    return lambda: modeling.apply_rotary_pos_emb(q, k, cos, sin)


def turned(rotary: Callable[..., object], q: Tensor, k: Tensor, **where: int) -> Callable[[], object]:
    return lambda: rotary(q, k, **where)


def products(rotary: RotaryEmbedding, q: Tensor, k: Tensor, offset: int) -> Callable[[], object]:
    """Only the arithmetic: views and code made beforehand. No way of calling torch does less."""
    code = rotary.table[offset : offset + q.shape[-2]].view(torch.complex64)
    pairs = [x.view(torch.complex64) for x in (q, k)]
    return lambda: [z * code for z in pairs]


def trained(rotary: RotaryEmbedding, q: Tensor, k: Tensor) -> Callable[[], object]:
    """Forward and backward; tensors made under inference_mode could not have gradients."""
    inputs, upstream = [x.clone().requires_grad_() for x in (q, k)], (k, q)

    @torch.inference_mode(False)
    def step() -> object:
        return torch.autograd.grad(rotary(*inputs), inputs, upstream)

    return step


def rows() -> Iterator[Row]:
    interleaved, half = RotaryEmbedding(128), RotaryEmbedding(128, layout="half")
    compiled = torch.compile(half)
    long, short, low = pair(LONG), pair(STEP), pair(LONG, torch.bfloat16)
    step = turned(interleaved, *short, offset=2000)
    yield Row("interleaved", "copy_", 1.35, turned(interleaved, *long), copies(*long))
    yield Row("interleaved", "transformers, Llama", 0.2, turned(interleaved, *long), llama(*long))
    yield Row("interleaved, one token", "copy_", 2.0, step, copies(*short), 30, 1000)
    yield Row("interleaved, one token", "transformers, Llama", 1.0, step, llama(*short), 30, 1000)
    bare = products(interleaved, *short, offset=2000)
    yield Row("its two products alone", "copy_", 2.0, bare, copies(*short), 30, 1000)
    yield Row("half", "copy_", 4.5, turned(half, *long), copies(*long))
    yield Row("half", "transformers, Llama", 1.0, turned(half, *long), llama(*long))
    yield Row("half, compiled", "copy_", 1.5, turned(compiled, *long), copies(*long))
    yield Row("half, compiled, bfloat16", "copy_", 3.5, turned(compiled, *low), copies(*low))
    train = pair(TRAIN)
    yield Row(
        "forward + backward",
        "copy_, twice",
        1.8,
        trained(RotaryEmbedding(64), *train),
        copies(*train, *train),
        30,
    )


def graphs(layout: Layout) -> int:
    """How many graphs torch.compile makes for many lengths."""
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(RotaryEmbedding(64, layout=layout), backend=counter, fullgraph=True)
    for length in (16, 100, 33, 2000, 7, 512):
        compiled(*pair((1, 2, length, 64)))
    return counter.frame_count


def bfloat16_error(layout: Layout) -> float:
    q, k = pair(LONG, torch.bfloat16)
    turned_q, _ = RotaryEmbedding(128, layout=layout)(q, k)
    return float((turned_q - apply_rotary(q.double(), LONG[2], layout=layout)).abs().max())


def phase_error(position: int = 1_000_000) -> float:
    """Error of float32 sines and cosines near a position, against the angles in extended precision."""
    positions = np.arange(position - 1000, position + 1)
    unit = torch.tensor([1.0, 0.0]).repeat(64).expand(len(positions), 128)
    ours = apply_rotary(unit, positions).double().numpy()
    exact = np.longdouble(10000) ** (-np.arange(0, 128, 2, dtype=np.longdouble) / 128) * positions[:, None]
    return float(max(abs(ours[:, 0::2] - np.cos(exact)).max(), abs(ours[:, 1::2] - np.sin(exact)).max()))


def main() -> None:
    warm_allocator()
    torch.manual_seed(0)
    print(machine())
    print(f"q, k: {LONG}, one token {STEP}\ntraining {TRAIN}; float32 unless said\n")
    q, k = pair(LONG)
    comparisons, rotate_long = list(rows()), turned(RotaryEmbedding(128), q, k)
    with torch.inference_mode():  # as a model runs that is not being trained
        print_table(comparisons)
        memory = new_bytes(rotate_long) / (q.nbytes + k.nbytes)
    lines = [
        ("interleaved, new memory / q, k", f"{memory:.3f}", "1.05"),
        ("graphs for six lengths", f"{max(graphs('interleaved'), graphs('half'))}", "2"),
        ("error in bfloat16", f"{max(bfloat16_error('interleaved'), bfloat16_error('half')):.1e}", "1.6e-2"),
        ("error of phases at 1 000 000", f"{phase_error():.0e}", "1e-6"),
    ]
    print()
    for name, value, bound in lines:
        print(f"{name:<32} {value:>8}   at most {bound}")


if __name__ == "__main__":
    main()
