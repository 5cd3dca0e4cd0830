"""What chapters give to take along, held against transformers (the extra `peers`)."""

import pytest
import torch

from tests.peers import modeling, peer, seeded
from tests.taken import block, random

transformers = peer("transformers")

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
SLACK = {torch.float32: 1e-5, torch.bfloat16: 3e-2}  # theirs rounds on the way, too


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    slack = SLACK[ours.dtype]
    torch.testing.assert_close(ours, theirs, rtol=slack, atol=slack)


@DTYPES
def test_attention_is_that_of_llama_with_its_cache(dtype: torch.dtype) -> None:
    config = transformers.LlamaConfig(
        hidden_size=64, num_attention_heads=4, num_key_value_heads=2, rope_parameters={"rope_theta": 5e5}
    )
    config._attn_implementation = "eager"
    theirs = seeded(modeling("llama").LlamaAttention, config, layer_idx=0).to(dtype)
    ours = block("rope_attention").CausalAttention(64, 4, 2, layout="half", base=5e5).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    x = random(2, 20, 64).to(dtype)
    code = modeling("llama").LlamaRotaryEmbedding(config)(x, torch.arange(20)[None])
    hidden = torch.full((20, 20), -torch.inf, dtype=dtype).triu(1)[None, None]
    cache = transformers.DynamicCache()
    full, _ = theirs(x, position_embeddings=code, attention_mask=hidden)
    close(ours(x)[0], full)
    kept = None
    for t in range(20):
        here = tuple(part[:, t : t + 1] for part in code)
        step, _ = theirs(
            x[:, t : t + 1], position_embeddings=here, attention_mask=None, past_key_values=cache
        )
        mine, kept = ours(x[:, t : t + 1], cache=kept)
        close(mine, step)
    assert kept is not None
    close(kept[0], cache.layers[0].keys)
