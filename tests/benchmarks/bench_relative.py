"""How fast are the relative biases? Ratios, side by side with a copy of the result and with transformers.

python tests/benchmarks/bench_relative.py
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from benchmark import Row, machine, new_bytes, peer, print_table, warm_allocator
from torch import Tensor, nn

from posenc.nn import FireBias, KerpleBias, RelativeBias, T5Bias

HEADS, N = 12, 2048


def transformers_bias(n_query: int, n_key: int) -> Callable[[], Tensor]:
    modeling = peer("transformers.models.t5.modeling_t5")
    config = modeling.T5Config(d_model=768, d_kv=64, num_heads=HEADS)
    layer = modeling.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    return lambda: layer.compute_bias(n_query, n_key, past_seen_tokens=n_key - n_query)


def of(layer: nn.Module, n_query: int, n_key: int) -> Callable[[], Tensor]:
    return lambda: layer(n_query, n_key)


def trained(layer: nn.Module, upstream: Tensor) -> Callable[[], object]:
    """Forward and backward."""
    parameters = tuple(layer.parameters())

    @torch.inference_mode(False)
    def step() -> object:
        return torch.autograd.grad(layer(N), parameters, upstream)

    return step


def rows() -> Iterator[Row]:
    upstream = torch.randn(HEADS, N, N)
    clone = upstream.clone
    t5 = T5Bias(HEADS)
    yield Row("T5", "clone", 1.3, of(t5, N, N), clone)
    yield Row("T5", "transformers", 0.5, of(t5, N, N), transformers_bias(N, N))
    yield Row("T5, one query", "transformers", 2.0, of(t5, 1, N), transformers_bias(1, N), 30, 100)
    yield Row("table", "clone", 1.3, of(RelativeBias(HEADS, 128), N, N), clone)
    yield Row("KERPLE", "clone", 1.3, of(KerpleBias(HEADS), N, N), clone)
    yield Row(
        "T5, forward + backward", "clone, twice", 5.0, trained(t5, upstream), lambda: (clone(), clone())
    )
    small = torch.randn(HEADS, 512, 512)
    yield Row("FIRE (12, 512, 512)", "clone of it", 30.0, of(FireBias(HEADS), 512, 512), small.clone)


def main() -> None:
    warm_allocator()
    torch.manual_seed(0)
    print(machine())
    print(f"result ({HEADS}, {N}, {N}) float32 unless said\n")
    comparisons, t5 = list(rows()), T5Bias(HEADS)
    for _ in range(5):  # memory for several results, before any is measured
        result = torch.stack([t5(N)] * 2)[0]
    with torch.inference_mode():  # as a model runs that is not being trained
        print_table(comparisons)
        memory = new_bytes(lambda: t5(N)) / result.nbytes
    print(f"\nT5, new memory / result: {memory:.3f}   at most 1.05")


if __name__ == "__main__":
    main()
