"""How fast are the relative biases? Ratios, side by side with a copy of the result and with transformers."""

from collections.abc import Iterator

import torch

from posenc.nn import FireBias, KerpleBias, RelativeBias, T5Bias
from tests.benchmarks.benchmark import Row, Run, call, new_bytes, peer, run, trained

HEADS, N = 12, 2048


def transformers_bias(n_query: int, n_key: int) -> Run:
    modeling = peer("transformers.models.t5.modeling_t5")
    config = modeling.T5Config(d_model=768, d_kv=64, num_heads=HEADS)
    layer = modeling.T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    return call(layer.compute_bias, n_query, n_key, past_seen_tokens=n_key - n_query)


def rows() -> Iterator[Row]:
    upstream, small = torch.randn(HEADS, N, N), torch.randn(HEADS, 512, 512)
    clone, t5 = upstream.clone, T5Bias(HEADS)
    for _ in range(5):  # memory for several results, before any is measured
        torch.stack([t5(N)] * 2)
    yield Row("T5", "clone", 1.3, call(t5, N, N), clone)
    yield Row("T5", "transformers", 0.5, call(t5, N, N), transformers_bias(N, N))
    yield Row("T5, one query", "transformers", 2.0, call(t5, 1, N), transformers_bias(1, N), 30, 100)
    yield Row("table", "clone", 1.3, call(RelativeBias(HEADS, 128), N, N), clone)
    yield Row("KERPLE", "clone", 1.3, call(KerpleBias(HEADS), N, N), clone)
    both_ways = trained(t5, t5.parameters(), upstream, N)
    yield Row("T5, forward + backward", "clone, twice", 1.5, both_ways, lambda: (clone(), clone()))
    yield Row("FIRE (12, 512, 512)", "clone of it", 30.0, call(FireBias(HEADS), 512, 512), small.clone)


def memory() -> Iterator[str]:
    t5 = T5Bias(HEADS)
    yield f"T5, new memory / result: {new_bytes(call(t5, N)) / t5(N).nbytes:.3f}   at most 1.05"


if __name__ == "__main__":
    run(rows, f"result ({HEADS}, {N}, {N}) float32 unless said", memory)
