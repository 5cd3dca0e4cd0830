"""The scores of the chapter on latent attention are those of DeepSeek-V3's layer in transformers."""

from typing import Any

import pytest
import torch

from posenc import apply_rotary
from posenc.rotary import from_config
from tests.peers import close, modeling, random, seeded

SIZES = {
    "hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 4, "kv_lora_rank": 24, "q_lora_rank": 20,
    "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "max_position_embeddings": 2560,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 64, "rope_theta": 10000.0}


@pytest.mark.parametrize(
    "more", [{"mscale": 1.0, "mscale_all_dim": 1.0}, {}], ids=["all scores", "the slice"]
)
@pytest.mark.parametrize("interleave", [True, False])
def test_scores_are_a_part_without_position_and_a_turned_slice(
    more: dict[str, Any], interleave: bool
) -> None:
    theirs = modeling("deepseek_v3")
    config = theirs.DeepseekV3Config(**SIZES, rope_parameters=YARN | more, rope_interleave=interleave)
    config._attn_implementation = "eager"
    layer, x, n = seeded(theirs.DeepseekV3Attention, config, 0), random(2, 12, 48), 12
    code = theirs.DeepseekV3RotaryEmbedding(config)(x, torch.arange(n)[None])
    future = torch.full((n, n), -torch.inf).triu(1)
    with torch.no_grad():
        _, weights = layer(x, code, future[None, None])
        queries = (
            layer.q_b_proj(layer.q_a_layernorm(layer.q_a_proj(x))).unflatten(-1, (4, 24)).transpose(1, 2)
        )
        latents, key = layer.kv_a_proj_with_mqa(x).split([24, 8], dim=-1)
        latents = layer.kv_a_layernorm(latents)
        up_key = layer.kv_b_proj.weight.unflatten(0, (4, 32))[:, :16]
    rotation = from_config(config).kinds["all"]

    def turned(slices: torch.Tensor) -> torch.Tensor:
        options: Any = {
            "layout": rotation.layout,
            "frequencies": rotation.frequencies,
            "scale": rotation.scale,
        }
        return apply_rotary(slices, torch.arange(n), **options)

    absorbed = torch.einsum("bhtc,hcl->bhtl", queries[..., :16], up_key)
    content = absorbed @ latents[:, None].mT
    position = turned(queries[..., 16:]) @ turned(key[:, None]).mT
    scores = (content + position) / 24**0.5 * rotation.softmax_factor
    close((scores + future).softmax(-1), weights)
