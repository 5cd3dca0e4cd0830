"""Twelve kinds of faults that public trackers report again and again, chosen before any of them was tried.

As they came, posenc.check.all named 7 of twelve with the right cause in its first line, and 10 now. The two others:
where documents of a row see each other is asked by `check_mask(documents=...)` alone, and a window that is too wide on
both sides is not seen behind a layer that sees all.
"""

from typing import Any

import pytest
import torch

import posenc.check
from tests.peers import modeling, peer
from tests.posenc.peers.faulty import Faults, made

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow
FAULTS = Faults()
planted = FAULTS.planted


@planted("slopes")
def bloom_has_slopes_by_formula(patch: Patch) -> Any:
    """Six heads, and slopes as if any number of heads were a power of two."""
    slopes = 2.0 ** (-8 * torch.arange(1, 7) / 6)
    patch.setattr(modeling("bloom"), "_get_alibi_slopes", lambda heads, device: slopes)
    return made("bloom", hidden_size=48, n_head=6)


@planted("are rounded to bfloat16")
def llama_makes_angles_in_16_bits(patch: Patch) -> Any:
    def faulty(self: Any, x: Any, position_ids: Any) -> Any:
        angles = position_ids[..., None].to(torch.bfloat16) * self.inv_freq.to(torch.bfloat16)
        both = torch.cat([angles, angles], -1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)

    patch.setattr(modeling("llama").LlamaRotaryEmbedding, "forward", faulty)
    return made("llama")


@planted("window")
def mistral_sees_one_key_more(patch: Patch) -> Any:
    def faulty(window: int) -> Any:
        return lambda batch, head, t, u: u >= t - window

    patch.setattr(peer("transformers.masking_utils"), "sliding_window_overlay", faulty)
    return made("mistral")


@planted("position 0")
def falcon_puts_new_tokens_at_0(patch: Patch) -> Any:
    falcon = modeling("falcon").FalconModel
    forward = falcon.forward

    def faulty(self: Any, input_ids: Any, position_ids: Any = None, **more: Any) -> Any:
        if position_ids is None and input_ids.shape[1] == 1:
            position_ids = torch.zeros_like(input_ids)
        return forward(self, input_ids, position_ids=position_ids, **more)

    patch.setattr(falcon, "forward", faulty)
    return made("falcon", alibi=False)


@planted("dynamic")
def llama_changes_its_base_as_it_writes(patch: Patch) -> Any:
    scaling = {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0}
    return made("llama", max_position_embeddings=24, rope_parameters=scaling)


@planted("a clamp")
def gpt2_stays_at_the_last_row(patch: Patch) -> Any:
    model = made("gpt2", n_positions=32)
    look_up = model.transformer.wpe.forward
    model.transformer.wpe.forward = lambda positions: look_up(positions.clamp(max=31))
    return model


@planted("factor")
def llama_has_the_factor_of_yarn_twice(patch: Patch) -> Any:
    scaling = {"rope_type": "yarn", "factor": 8.0, "rope_theta": 10000.0}
    scaling["original_max_position_embeddings"] = 64
    model = made("llama", rope_parameters=scaling)
    model.model.rotary_emb.attention_scaling **= 2
    return model


@planted("spread over the whole head, not over the columns that are turned")
def neox_spreads_frequencies_over_the_whole_head(patch: Patch) -> Any:
    model = made(
        "gpt_neox", rope_parameters={"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
    )
    rotary = model.gpt_neox.rotary_emb
    count = len(rotary.inv_freq)
    rotary.inv_freq = 1e4 ** (-torch.arange(count) / (2 * count))
    return model


@planted("the frequencies are those of full_attention layers")
def gemma3_has_one_base_for_all_layers(patch: Patch) -> Any:
    model = made("gemma3_text", layer_types=["sliding_attention", "full_attention"])
    rotary = model.model.rotary_emb
    rotary.sliding_attention_inv_freq = rotary.full_attention_inv_freq.clone()
    return model


@planted("angles are laid out for the other kind of pairs")
def cohere_repeats_angles_by_halves(patch: Patch) -> Any:
    def faulty(self: Any, x: Any, position_ids: Any) -> Any:
        angles = position_ids[..., None].float() * self.inv_freq
        both = torch.cat([angles, angles], -1)
        return both.cos().to(x.dtype), both.sin().to(x.dtype)

    patch.setattr(modeling("cohere2").Cohere2RotaryEmbedding, "forward", faulty)
    return made("cohere2")


def test_documents_that_see_each_other_are_named(monkeypatch: Patch) -> None:
    masks = peer("transformers.masking_utils")
    monkeypatch.setattr(masks, "find_packed_sequence_indices", lambda position_ids: None)
    assert (
        "does not separate documents"
        in posenc.check.check_mask(made("qwen3"), documents=(7, 9)).faults[0].look
    )


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)
