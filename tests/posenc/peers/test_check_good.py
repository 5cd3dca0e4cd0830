"""Good models raise no alarm, and what was asked of them was asked."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

import posenc.check
from posenc.check.scales import check_scale
from posenc.check.weights import blank_weights
from tests.peers import peer, seeded
from tests.posenc.peers.faulty import made
from tests.posenc.peers.small import (
    GEMMA2,
    GPT_OSS,
    LONG,
    SHARES,
    behind_a_text,
    built,
    causal,
    gemma3,
    gemma3n,
    grows,
    longt5,
    marian,
    phi3_longrope,
    reads_pictures,
    t5_encoder,
    t5gemma,
)

pytestmark = pytest.mark.slow
SCALED: dict[str, dict[str, Any]] = {
    "llama": {}, "gemma2": GEMMA2, "granite": {"attention_multiplier": 0.05}, "mistral": {"sliding_window": 8},
    "stablelm": {"rope_parameters": SHARES}, "qwen3": {"head_dim": 16}, "gpt_oss": GPT_OSS,
    "phi3": {"original_max_position_embeddings": 128, "rope_parameters": LONG},
}  # fmt: skip
# Both sides of an encoder and a decoder.
SIDES: dict[str, Any] = {
    "vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "decoder_start_token_id": 2,
    "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "init_std": 0.2, "max_position_embeddings": 128,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
SIZES: dict[str, Any] = {
    "vocab_size": 64, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 256, "initializer_range": 0.2, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
}  # fmt: skip
ONCE_ALARMED: dict[str, dict[str, Any]] = {
    "qwen2_moe": {"num_key_value_heads": 2},  # rounding chooses other experts for single tokens
    # its base is not used
    "esm": {"position_embedding_type": "absolute", "mask_token_id": 5, "token_dropout": False},
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},  # cannot run under autocast
    "nanochat": {"num_key_value_heads": 2, "head_dim": 16},  # turns backwards by positive frequencies
    "llama4_text": {  # chunks of 16 in all layers
        "num_key_value_heads": 2, "head_dim": 16, "num_local_experts": 2, "intermediate_size_mlp": 96,
        "attention_chunk_size": 16,
    },
    "minimax": {"num_key_value_heads": 2, "head_dim": 16},  # cannot run in bfloat16
}  # fmt: skip


def automatic(use: str, name: str, **fields: Any) -> Any:
    library = peer("transformers")
    config = library.AutoConfig.for_model(name, **fields)
    return seeded(getattr(library, f"AutoModelFor{use}").from_config, config)


DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}
BOTH = {"encoder: order", "decoder: one token at a time", "cross-attention"}
# Models, and findings that must be ok, not left out.
GOOD: dict[str, tuple[Callable[[], Any], set[str]]] = {
    "T5": (t5_encoder, {"buckets of T5"}),
    "T5 in bfloat16": (lambda: made("t5", initializer_factor=2.0).to(torch.bfloat16), set()),
    "T5 with three layers of a decoder": (lambda: made("t5", num_decoder_layers=3), set()),
    "longrope": (phi3_longrope, {"rotations"}),
    "dynamic": (lambda: made("llama", rope_parameters=DYNAMIC), {"rotations"}),
    "Bloom with six heads": (lambda: made("bloom", n_head=6, hidden_size=96), set()),
    "LongT5": (longt5, set()),
    "LongT5 with global tokens": (lambda: longt5(encoder_attention_type="transient-global"), set()),
    "T5Gemma": (t5gemma, set()),
    "Gemma 3n": (gemma3n, set()),
    "Marian": (marian, set()),
    "Qwen3-VL": (reads_pictures, set()),
    "Ministral 3": (grows, set()),
    **{name: (partial(causal, name, **fields), {"scale of scores"}) for name, fields in SCALED.items()},
    **{
        f"{name}, both sides": (partial(automatic, "Seq2SeqLM", name, **SIDES), BOTH)
        for name in ("marian", "m2m_100", "umt5", "longt5", "mt5")
    },
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_model_raises_no_alarm(name: str) -> None:
    make, judged = GOOD[name]
    report = posenc.check.all(make())
    assert report.ok, report
    for what in judged:
        assert {each.verdict for each in report.findings if each.what == what} == {"ok"}, report


@pytest.mark.parametrize("name", ONCE_ALARMED)
def test_a_good_model_raises_no_alarm_again(name: str) -> None:
    use = "MaskedLM" if name in ("esm", "xmod") else "CausalLM"
    faults = posenc.check.all(automatic(use, name, **SIZES | ONCE_ALARMED[name])).faults
    # Transformers 5.23 exchanges no rows of the linear attention of MiniMax, as a beam search must.
    known = ["a cache reordered", "generate with beams"] if name == "minimax" else []
    assert [each.what for each in faults] == known, faults


@pytest.mark.parametrize("make", [gemma3, behind_a_text, partial(made, "mpt")])
def test_a_good_model_is_quiet_and_its_layers_are_seen(make: Callable[[], Any]) -> None:
    model = make()
    report = posenc.check.all(model)
    assert report.ok, report
    assert blank_weights(model, torch.arange(20, 44)[None])


@pytest.mark.parametrize("name", ["t5", "bert"])
def test_no_scale_is_asked_where_no_configuration_says_one(name: str) -> None:
    assert [each.verdict for each in check_scale(made(name)).findings] == ["left out"]


def test_xlnet_sees_all_by_design_and_its_generate_is_left_out() -> None:
    model = built(
        "XLNetLMHeadModel", vocab_size=97, d_model=64, n_layer=2, n_head=4, d_inner=96, initializer_range=0.2
    )
    report = posenc.check.all(model)
    found = {each.what: each for each in report.findings}
    assert report.ok, report
    assert found["who sees whom"].says == "as meant: full"
    assert found["generate"].verdict == "left out"
    assert "a token of its own" in found["generate"].says
