"""Twelve faults that were chosen before any was tried, in single layers, biases and calls that follow others.

As they came, posenc.check.all raised 7 of the twelve and named 5 of them in its first line. Those that it did not name
are here.
"""

from typing import Any

import pytest
import torch
from torch import nn

import posenc.check
from posenc.check.tried import TINY
from posenc.check.weights import blank_weights
from tests.peers import modeling, peer, seeded
from tests.posenc.peers.faulty import Faults, made

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow
FAULTS = Faults()
planted = FAULTS.planted


class T5Decoder(nn.Module):
    """The decoder of a T5 behind an encoded text."""

    def __init__(self) -> None:
        super().__init__()
        library = peer("transformers")
        sizes = {"vocab_size": 64, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
        self.t5 = library.T5ForConditionalGeneration(library.T5Config(**sizes, decoder_start_token_id=0))

    def forward(self, input_ids: Any, past_key_values: Any = None, use_cache: Any = None) -> Any:
        text = torch.tensor([[5, 9, 3, 7, 11]]).expand(len(input_ids), -1)
        return self.t5(
            text, decoder_input_ids=input_ids, past_key_values=past_key_values, use_cache=use_cache
        )


@planted("after the rotation")
def qwen3_norms_what_is_turned(patch: Patch) -> Any:
    qwen3 = modeling("qwen3")
    model = made("qwen3")
    with torch.no_grad():
        for layer in model.model.layers:
            for norm in (layer.self_attn.q_norm, layer.self_attn.k_norm):
                norm.weight.copy_(torch.linspace(0.25, 1.75, 8))
    attend = qwen3.eager_attention_forward

    def faulty(module: Any, q: Any, k: Any, *given: Any, **more: Any) -> Any:
        return attend(module, *(x * module.q_norm.weight for x in (q, k)), *given, **more)

    patch.setattr(qwen3, "eager_attention_forward", faulty)
    return model


@planted("those of both sides")
def t5_has_buckets_of_an_encoder_in_its_decoder(patch: Patch) -> Any:
    attention = modeling("t5").T5Attention
    right = attention._relative_position_bucket

    def faulty(offsets: Any, bidirectional: bool = True, **more: Any) -> Any:
        return right(offsets, bidirectional=True, **more)

    patch.setattr(attention, "_relative_position_bucket", staticmethod(faulty))
    return seeded(T5Decoder)


@planted("queries and keys are exchanged")
def t5_reads_offsets_backwards(patch: Patch) -> Any:
    attention = modeling("t5").T5Attention
    right = attention._relative_position_bucket
    patch.setattr(
        attention,
        "_relative_position_bucket",
        staticmethod(lambda offsets, **more: right(-offsets, **more)),
    )
    return seeded(T5Decoder)


@planted("divided by the root")
def bloom_scales_its_bias(patch: Patch) -> Any:
    model = made("bloom")
    for block in model.transformer.h:
        block.self_attention.beta = block.self_attention.inv_norm_factor
    return model


@planted("layer 1: the sign of the bias")
def mpt_turns_the_bias_of_one_layer(patch: Patch) -> Any:
    model = made("mpt")
    attention = model.transformer.blocks[1].attn
    right = attention.forward
    patch.setattr(
        attention,
        "forward",
        lambda x, position_bias, *given, **more: right(x, -position_bias, *given, **more),
    )
    return model


def gemma3() -> Any:
    return made(
        "gemma3_text", num_hidden_layers=3, layer_types=["sliding_attention"] * 2 + ["full_attention"]
    )


@planted("layer 1: it has no window")
def gemma3_takes_the_mask_of_the_next_layer(patch: Patch) -> Any:
    model, library, masks = gemma3(), modeling("gemma3"), dict[str, Any]()
    cache, forward = library.DynamicCache, library.Gemma3DecoderLayer.forward

    def kept(name: str) -> None:
        make = getattr(library, name)

        def keep(**given: Any) -> Any:
            masks[name] = make(**given)
            return masks[name]

        patch.setattr(library, name, keep)

    kept("create_causal_mask")
    kept("create_sliding_window_causal_mask")
    patch.setattr(library, "DynamicCache", lambda config=None: cache())

    def faulty(self: Any, x: Any, attention_mask: Any = None, **more: Any) -> Any:
        name = "create_sliding_window_causal_mask" if self.self_attn.layer_idx == 0 else "create_causal_mask"
        return forward(self, x, attention_mask=masks[name], **more)

    patch.setattr(library.Gemma3DecoderLayer, "forward", faulty)
    return model


@planted("an earlier call")
def olmo2_keeps_angles_by_length(patch: Patch) -> Any:
    rotary = modeling("olmo2").Olmo2RotaryEmbedding
    right = rotary.forward

    def faulty(self: Any, x: Any, position_ids: Any) -> Any:
        kept = self.__dict__.setdefault("kept", {})
        n = position_ids.shape[1]
        cos, sin = kept.setdefault(n, right(self, x, position_ids[:1]))
        return cos.to(x.dtype), sin.to(x.dtype)

    patch.setattr(rotary, "forward", faulty)
    return made("olmo2")


@planted("count the pads in the cache")
def opt_counts_columns_while_decoding(patch: Patch) -> Any:
    decoder = modeling("opt").OPTDecoder
    right = decoder.forward

    def faulty(
        self: Any, input_ids: Any, past_key_values: Any = None, position_ids: Any = None, **more: Any
    ) -> Any:
        past = past_key_values.get_seq_length() if past_key_values is not None else 0
        if past and position_ids is None:
            position_ids = torch.arange(past, past + input_ids.shape[1]).expand(input_ids.shape)
        return right(
            self, input_ids=input_ids, past_key_values=past_key_values, position_ids=position_ids, **more
        )

    patch.setattr(decoder, "forward", faulty)
    return made("opt")


@planted("layers 1, 2, 3 are turned")
def smollm3_leaves_out_another_layer(patch: Patch) -> Any:
    model = made("smollm3", num_hidden_layers=4)
    for number, layer in enumerate(model.model.layers):
        layer.self_attn.use_rope = int(number % 4 != 0)
    return model


def test_positions_that_are_ignored_are_named(monkeypatch: Patch) -> None:
    rotary = modeling("llama").LlamaRotaryEmbedding
    right = rotary.forward
    monkeypatch.setattr(
        rotary, "forward", lambda self, x, position_ids: right(self, x, torch.arange(x.shape[1])[None])
    )
    report = posenc.check.check_rotation(made("llama"))
    assert "given change nothing" in report.faults[0].look, report


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str, monkeypatch: Patch) -> None:
    fault, words = FAULTS[name]
    first = next(iter(posenc.check.all(fault(monkeypatch)).faults), None)
    assert first is not None
    assert words in f"{first.look} {first.says}", first


@pytest.mark.parametrize("name", ["gemma3", "t5", "mpt"])
def test_right_ones_raise_nothing(name: str) -> None:
    model = seeded(T5Decoder) if name == "t5" else gemma3() if name == "gemma3" else made(name)
    report = posenc.check.all(model)
    assert report.ok, report
    assert blank_weights(model, torch.arange(20, 44)[None])  # the layers were seen at all


def test_falcon_adds_its_bias_twice_where_its_two_ways_differ() -> None:
    """In transformers 5.23 the eager Falcon puts ALiBi into the mask, and adds it again; with sdpa it does not."""
    library, outputs, ids = peer("transformers"), list[torch.Tensor](), torch.arange(20, 44)[None]
    for way in ("sdpa", "eager"):
        model = seeded(
            lambda way=way: library.AutoModelForCausalLM.from_config(
                library.AutoConfig.for_model("falcon", **TINY["falcon"], alibi=True), attn_implementation=way
            )
        )
        with torch.no_grad():
            outputs.append(model(ids).logits)
    differ = float((outputs[0] - outputs[1]).abs().max()) > 1e-3
    faults = posenc.check.check_slopes(model).faults
    assert [each.look for each in faults] == ["layer 0: the bias: it is added twice"] * differ
