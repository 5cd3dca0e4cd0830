"""A ninth round: twelve faults that public trackers report, written down before the checks were read.

As they came six raised a fault and four were named in the first line: the first four below. A model with an encoder and
a decoder was not run at all, nor was generate().
"""

import functools
from typing import Any

import pytest
import torch

import posenc.check
from posenc.check.tried import TINY
from tests.peers import modeling, peer, seeded
from tests.posenc.peers.faulty import Faults, made

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow

FAULTS = Faults()
planted = FAULTS.planted
YARN = {
    "rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "mscale": 1.0, "mscale_all_dim": 1.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip


@planted("heads are counted from 0, not from 1")
def mpt_counts_heads_from_0(patch: Patch) -> Any:
    build = modeling("mpt").build_mpt_alibi_tensor
    patch.setattr(
        modeling("mpt"),
        "build_mpt_alibi_tensor",
        lambda heads, n, most=8, device=None: build(heads, n, most, device) * 2 ** (most / heads),
    )
    return made("mpt")


@planted("spread over the whole head, not over the columns that are turned")
def neox_spreads_frequencies_over_the_head(patch: Patch) -> Any:
    model = made(
        "gpt_neox", rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
    )
    rotary = model.gpt_neox.rotary_emb
    rotary.inv_freq.copy_(1e4 ** -(torch.arange(0, 8, 2) / 8)[: rotary.inv_freq.numel()])
    return model


@planted("some without position are turned")
def smollm3_turns_all_layers(patch: Patch) -> Any:
    attention = modeling("smollm3").SmolLM3Attention
    begin = attention.__init__

    def faulty(self: Any, *given: Any, **more: Any) -> None:
        begin(self, *given, **more)
        self.use_rope = 1

    patch.setattr(attention, "__init__", faulty)
    return made("smollm3", num_hidden_layers=4)


@planted("they must begin at 2, after the row of the pad")
def roberta_counts_from_0(patch: Patch) -> Any:
    embeddings = modeling("roberta").RobertaEmbeddings
    faulty = staticmethod(lambda ids, *_: torch.arange(ids.shape[1]).expand(ids.shape))
    patch.setattr(embeddings, "create_position_ids_from_input_ids", faulty)
    return made("roberta")


@planted("are rounded to float16")
def mistral_makes_angles_in_float16(patch: Patch) -> Any:
    def faulty(self: Any, x: Any, position_ids: Any) -> Any:
        angles = (position_ids[..., None].half() * self.inv_freq.half()).repeat(1, 1, 2)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    patch.setattr(modeling("mistral").MistralRotaryEmbedding, "forward", faulty)
    return made("mistral", sliding_window=None, initializer_range=0.2)


@planted("in layer 0 the newest token does not see 23 of the 24 keys that one pass shows it")
def gemma3_hides_the_cache_in_windows(patch: Patch) -> Any:
    gemma = modeling("gemma3")
    create = gemma.create_sliding_window_causal_mask

    def faulty(past_key_values: Any = None, **more: Any) -> Any:
        seen = past_key_values.get_seq_length() if past_key_values is not None else 0
        mask = create(past_key_values=past_key_values, **more)
        if seen:
            mask = mask.clone()
            mask[..., :seen] = torch.finfo(mask.dtype).min
        return mask

    patch.setattr(gemma, "create_sliding_window_causal_mask", faulty)
    return made("gemma3_text", sliding_window=32, layer_types=["sliding_attention", "full_attention"])


@planted("it lacks the factor 1.459")
def deepseek_leaves_out_mscale(patch: Patch) -> Any:
    patch.setattr(modeling("deepseek_v3"), "yarn_apply_mscale", lambda _parameters, scaling: scaling)
    return made("deepseek_v3", rope_parameters=YARN)


@planted("with a cache the bias of layer 0 is left out")
def t5_has_no_bias_with_a_cache(patch: Patch) -> Any:
    attention = modeling("t5").T5Attention
    bias = attention.compute_bias

    def faulty(self: Any, n: int, keys: int, device: Any = None, past_seen_tokens: int = 0) -> Any:
        return bias(self, n, keys, device, past_seen_tokens) * (past_seen_tokens == 0)

    patch.setattr(attention, "compute_bias", faulty)
    return made("t5")


@planted("a bias of positions is added to its scores")
def t5_has_a_bias_in_cross_attention(patch: Patch) -> Any:
    model = made("t5")
    own, cross = (layer for layer in model.decoder.block[0].layer[:2])
    cross.EncDecAttention.has_relative_attention_bias = True
    cross.EncDecAttention.relative_attention_bias = own.SelfAttention.relative_attention_bias
    return model


@planted("new tokens get position 0")
def bart_forgets_the_cache_in_its_table(patch: Patch) -> Any:
    table = modeling("bart").BartLearnedPositionalEmbedding
    forward = table.forward
    patch.setattr(table, "forward", lambda self, ids, *_, **__: forward(self, ids))
    return made("bart", init_std=0.2)


def handing_on(model: Any, positions: Any) -> Any:
    """A model whose generate() is given other position_ids in steps of one token."""
    prepare = model.prepare_inputs_for_generation

    @functools.wraps(prepare)
    def faulty(ids: Any, attention_mask: Any = None, **more: Any) -> Any:
        inputs = prepare(ids, attention_mask=attention_mask, **more)
        if inputs["input_ids"].shape[1] == 1:
            inputs["position_ids"] = positions(ids).expand(len(ids), 1)
        return inputs

    model.prepare_inputs_for_generation = faulty
    return model


@planted("those of new tokens begin with 8 in place of 5: the pads on the left are counted")
def llama_hands_on_the_place_in_the_cache(patch: Patch) -> Any:
    return handing_on(made("llama"), lambda ids: torch.tensor([[ids.shape[1] - 1]]))


@planted("those of new tokens begin with 0 in place of 8: what is in the cache is not counted")
def gpt2_hands_on_0(patch: Patch) -> Any:
    return handing_on(made("gpt2"), lambda ids: torch.tensor([[0]]))


@planted("those of the text begin with 0 in place of 2")
def roberta_is_not_told_that_it_counts_from_2(patch: Patch) -> Any:
    """No patch: generate() of transformers 5.23 does so."""
    library = peer("transformers")
    config = library.AutoConfig.for_model("roberta", **TINY["roberta"], is_decoder=True)
    return seeded(library.RobertaForCausalLM, config)


@planted("those of new tokens begin with 8 in place of 5: the pads on the left are counted")
def gpt2_cuts_its_mask_before_it_counts_the_pads(patch: Patch) -> Any:
    """It raises without pads, because generate() hands on no mask of ones."""
    model = made("gpt2")
    prepare = model.prepare_inputs_for_generation

    @functools.wraps(prepare)
    def faulty(ids: Any, attention_mask: Any = None, **more: Any) -> Any:
        inputs = prepare(ids, attention_mask=attention_mask, **more)
        n, end = inputs["input_ids"].shape[1], attention_mask.shape[1]
        pads = (attention_mask[:, end - n :] == 0).sum(-1, keepdim=True)
        inputs["position_ids"] = (torch.arange(end - n, end)[None] - pads).clamp(min=0)
        return inputs

    patch.setattr(model, "prepare_inputs_for_generation", faulty)
    return model


# Faults that rounds before had found named late.
@planted("it is the wrong way round, outputs see what comes after them")
def llama_has_its_mask_the_wrong_way_round(patch: Patch) -> Any:
    llama = modeling("llama")
    create = llama.create_causal_mask

    def faulty(**more: Any) -> Any:
        mask = create(**more)
        return torch.where(mask == 0, torch.finfo(mask.dtype).min, 0.0)

    patch.setattr(llama, "create_causal_mask", faulty)
    return made("llama", initializer_range=0.2)


@planted("are rounded to bfloat16")
def qwen3_makes_angles_in_bfloat16(patch: Patch) -> Any:
    def faulty(self: Any, x: Any, position_ids: Any) -> Any:
        angles = (position_ids[..., None].float() * self.inv_freq).bfloat16().float().repeat(1, 1, 2)
        return angles.cos().to(x.dtype), angles.sin().to(x.dtype)

    patch.setattr(modeling("qwen3").Qwen3RotaryEmbedding, "forward", faulty)
    return made("qwen3", initializer_range=0.2)


@planted("the mask of the source: cross-attention must have it")
def bart_forgets_the_mask_of_the_source(patch: Patch) -> Any:
    decoder = modeling("bart").BartDecoder
    forward = decoder.forward
    patch.setattr(
        decoder,
        "forward",
        lambda self, *given, encoder_attention_mask=None, **more: forward(self, *given, **more),
    )
    return made("bart")


@planted("some without position are turned")
def llama4_turns_all_layers(patch: Patch) -> Any:
    model = made("llama4_text")
    for layer in model.model.layers:
        layer.self_attn.use_rope = 1
    return model


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_peer_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)


SIZES = {
    "vocab_size": 64, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "decoder_start_token_id": 2,
    "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "init_std": 0.2, "max_position_embeddings": 128,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


@pytest.mark.parametrize("name", ["marian", "m2m_100", "umt5", "longt5", "mt5"])
def test_a_good_encoder_and_decoder_raises_no_alarm(name: str) -> None:
    library = peer("transformers")
    model = seeded(library.AutoModelForSeq2SeqLM.from_config, library.AutoConfig.for_model(name, **SIZES))
    report = posenc.check.all(model)
    assert report.ok, report
    assert {"encoder: order", "decoder: one token at a time", "cross-attention"} <= {
        each.what for each in report.findings if each.verdict == "ok"
    }
