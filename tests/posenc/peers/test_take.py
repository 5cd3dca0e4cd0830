"""What chapters give to take along, held against transformers (the extra `peers`)."""

from __future__ import annotations

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


@DTYPES
def test_alibi_with_pads_and_a_cache_is_that_of_bloom(dtype: torch.dtype) -> None:
    """Pads on the left, and the last two queries alone: only what stands at real tokens counts."""
    config = transformers.BloomConfig(hidden_size=48, n_head=6)
    layer = seeded(modeling("bloom").BloomAttention, config, layer_idx=0).to(dtype)
    x = random(2, 30, 48).to(dtype)
    pads = torch.arange(30) < torch.tensor([[0], [11]])
    bias = modeling("bloom").build_alibi_tensor((~pads).long(), 6, dtype)
    hidden = torch.ones(30, 30).triu(1).bool() | pads[:, None, None]
    least = torch.finfo(dtype).min
    theirs, _ = layer(
        x, torch.zeros_like(x), bias, torch.zeros(2, 1, 30, 30, dtype=dtype).masked_fill(hidden, least)
    )
    q, k, v = layer._reshape(layer.query_key_value(x))
    ours = block("alibi").alibi_attention(q, k, v, pads)
    last = block("alibi").alibi_attention(q[:, :, 28:], k, v, pads)
    close(layer.dense(ours.transpose(1, 2).flatten(-2))[~pads], theirs[~pads])
    close(layer.dense(last.transpose(1, 2).flatten(-2)), theirs[:, 28:])


def test_padding_leaks_into_gpt2_as_positions_alone() -> None:
    """With its mask, wrapped as the block says; without, what pads hold gets in, too."""
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 50, "n_positions": 64}
    net = seeded(transformers.GPT2Model, transformers.GPT2Config(**sizes))
    check = block("padding_check").check_padding
    ids = [torch.tensor([3, 4, 5, 6]), torch.tensor([9, 8])]
    with torch.no_grad():
        report = check(lambda ids, pads: net(input_ids=ids, attention_mask=(~pads).long())[0], ids)
        bare = check(lambda ids, pads: net(input_ids=ids)[0], ids)
    assert max(report["right"]) < 1e-4
    assert report["left"][0] > 0.01 > 1e-4 > report["left"][1]
    assert min(bare["left"]) > 0.01
