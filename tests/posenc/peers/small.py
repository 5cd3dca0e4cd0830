"""Small models of transformers, of kinds or sizes that posenc.check.tried has not."""

from functools import partial
from typing import Any

import torch
from torch import nn

from tests.peers import modeling, peer, seeded
from tests.posenc.peers.faulty import made

SIZES: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "initializer_range": 0.2,
}  # fmt: skip
T5: dict[str, Any] = {"vocab_size": 97, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
TEXT: dict[str, Any] = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
GEMMA2: dict[str, Any] = {"hidden_size": 96, "head_dim": 16, "query_pre_attn_scalar": 24, "sliding_window": 8}
GPT_OSS: dict[str, Any] = {
    "head_dim": 16, "sliding_window": 128, "num_local_experts": 4, "num_experts_per_tok": 2,
}  # fmt: skip
SHARES = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
LONG = {
    "rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 128, "partial_rotary_factor": 1.0,
    "short_factor": [1.0, 1.01, 1.01, 1.02, 1.02, 1.03, 1.03, 1.03],
    "long_factor": [1.03, 1.2, 1.9, 5.5, 15.8, 32.0, 58.0, 64.8],
}  # fmt: skip


def causal(name: str, **fields: Any) -> Any:
    """A model of one kind, larger and with larger weights than those of `made`."""
    library = peer("transformers")
    config = library.AutoConfig.for_model(name, **(SIZES | fields))
    return seeded(library.AutoModelForCausalLM.from_config, config)


def biased(model: Any) -> Any:
    """With tables of biases as large as trained ones."""
    for name, table in model.named_parameters():
        if "relative_attention_bias" in name:
            nn.init.normal_(table)
    return model


def built(kind: Any, **fields: Any) -> Any:
    """A class of transformers, by its name, of a configuration with these fields."""
    kind = getattr(peer("transformers"), kind) if isinstance(kind, str) else kind
    return seeded(lambda: biased(kind(kind.config_class(**fields))))


def longt5(**fields: Any) -> Any:
    """Blocks of four tokens."""
    return built(
        "LongT5ForConditionalGeneration", **T5 | {"decoder_start_token_id": 0, "local_radius": 3} | fields
    )


def t5_encoder() -> Any:
    return built("T5EncoderModel", **T5, relative_attention_max_distance=32)


def t5_decoder() -> Any:
    """The decoder of T5 by itself, without an encoder to look at."""
    return built(
        modeling("t5").T5Stack, **T5, is_decoder=True, use_cache=True, is_encoder_decoder=False,
        relative_attention_num_buckets=8, relative_attention_max_distance=20, attn_implementation="eager",
    )  # fmt: skip


class T5Decoder(nn.Module):
    """The decoder of a T5 behind an encoded text."""

    def __init__(self) -> None:
        super().__init__()
        library = peer("transformers")
        self.t5 = library.T5ForConditionalGeneration(library.T5Config(**T5, decoder_start_token_id=0))

    def forward(self, input_ids: Any, past_key_values: Any = None, use_cache: Any = None) -> Any:
        text = torch.tensor([[5, 9, 3, 7, 11]]).expand(len(input_ids), -1)
        return self.t5(
            text, decoder_input_ids=input_ids, past_key_values=past_key_values, use_cache=use_cache
        )


behind_a_text = partial(seeded, T5Decoder)


def t5gemma() -> Any:
    library = peer("transformers")
    part = library.T5GemmaModuleConfig(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, sliding_window=8, max_position_embeddings=512,
        layer_types=["sliding_attention", "full_attention"],
    ).to_dict()  # fmt: skip
    return built("T5GemmaForConditionalGeneration", encoder=part, decoder=part, vocab_size=97)


def gemma3() -> Any:
    kinds = ["sliding_attention"] * 2 + ["full_attention"]
    return made("gemma3_text", num_hidden_layers=3, layer_types=kinds)


def gemma3n() -> Any:
    kinds = ["sliding_attention", "full_attention"] * 2
    return causal(
        "gemma3n_text", hidden_size=32, head_dim=8, num_hidden_layers=4, intermediate_size=[48] * 4, sliding_window=8,
        layer_types=kinds, num_kv_shared_layers=2, vocab_size_per_layer_input=97, hidden_size_per_layer_input=8,
        laurel_rank=8, activation_sparsity_pattern=[0.0] * 4,
    )  # fmt: skip


def phi3_longrope() -> Any:
    factors = {"short_factor": [1.0, 1.05, 1.1, 1.4], "long_factor": [1.1, 1.6, 2.5, 4.0]}
    rope = {"rope_type": "longrope", "rope_theta": 1e4, "original_max_position_embeddings": 64, **factors}
    return made(
        "phi3", max_position_embeddings=256, original_max_position_embeddings=64, rope_parameters=rope
    )


def marian() -> Any:
    sides = {"layers": 2, "attention_heads": 4, "ffn_dim": 96}
    both = {f"{part}_{what}": n for part in ("encoder", "decoder") for what, n in sides.items()}
    return built(
        "MarianMTModel", vocab_size=97, d_model=64, init_std=0.2, pad_token_id=0, eos_token_id=2,
        decoder_start_token_id=0, **both,
    )  # fmt: skip


def xglm() -> Any:
    return built(
        "XGLMForCausalLM", vocab_size=89, d_model=48, num_layers=2, ffn_dim=64, attention_heads=4,
        max_position_embeddings=128, pad_token_id=0, eos_token_id=1,
    )  # fmt: skip


def umt5() -> Any:
    return built(
        "UMT5ForConditionalGeneration", vocab_size=89, d_model=48, d_kv=12, d_ff=64, num_layers=2, num_heads=4,
        pad_token_id=0, eos_token_id=1,
    )  # fmt: skip


def reads_pictures() -> Any:
    rope = {"rope_theta": 1e4, "rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    return built(
        "Qwen3VLForConditionalGeneration",
        text_config=TEXT | {"max_position_embeddings": 256, "rope_parameters": rope},
        vision_config={
            "depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 64,
            "patch_size": 4, "num_position_embeddings": 64, "deepstack_visual_indexes": [0],
        },
        image_token_id=100, video_token_id=101, vision_start_token_id=102, vision_end_token_id=103,
    )  # fmt: skip


def grows() -> Any:
    """Queries grow with their positions."""
    rope = {
        "rope_theta": 1e6, "rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 32, "mscale": 1.0,
        "mscale_all_dim": 1.0, "beta_fast": 32.0, "beta_slow": 1.0, "llama_4_scaling_beta": 0.1,
    }  # fmt: skip
    fields = TEXT | {"sliding_window": None, "max_position_embeddings": 512, "rope_parameters": rope}
    return built("Ministral3ForCausalLM", **fields)
