"""More faults of peers, chosen when those of test_check_faults.py were found.

At first ten of fourteen were named, two raised a fault with another cause, and two none: positions in a byte, and keys
of DeepSeek in the other layout, which only weights from elsewhere could show.
"""

from typing import Any

import pytest
import torch

from tests.peers import modeling, peer
from tests.posenc.peers.faulty import Faults, made

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow


FAULTS = Faults()
planted = FAULTS.planted


@planted("the mask while decoding")
def gpt2_drops_the_mask_while_decoding(patch: Patch) -> Any:
    gpt2 = modeling("gpt2").GPT2Model
    forward = gpt2.forward

    def faulty(
        self: Any, input_ids: Any, attention_mask: Any = None, past_key_values: Any = None, **more: Any
    ) -> Any:
        kept = attention_mask if past_key_values is None else None
        return forward(self, input_ids, attention_mask=kept, past_key_values=past_key_values, **more)

    patch.setattr(gpt2, "forward", faulty)
    return made("gpt2")


@planted("positions of new tokens")
def llama_turns_new_tokens_the_other_way(patch: Patch) -> Any:
    llama = modeling("llama")
    apply = llama.apply_rotary_pos_emb
    patch.setattr(
        llama,
        "apply_rotary_pos_emb",
        lambda q, k, cos, sin, **more: apply(q, k, cos, sin if q.shape[2] > 1 else -sin, **more),
    )
    return made("llama")


@planted("positions of new tokens")
def bloom_makes_biases_of_the_new_token_alone(patch: Patch) -> Any:
    bloom = modeling("bloom").BloomAttention
    forward = bloom.forward

    def faulty(self: Any, hidden_states: Any, residual: Any, alibi: Any, *given: Any, **more: Any) -> Any:
        alibi = alibi[..., :1] if hidden_states.shape[1] == 1 else alibi
        return forward(self, hidden_states, residual, alibi, *given, **more)

    patch.setattr(bloom, "forward", faulty)
    return made("bloom")


@planted("keys: not turned")
def qwen3_turns_queries_alone(patch: Patch) -> Any:
    qwen3 = modeling("qwen3")
    apply = qwen3.apply_rotary_pos_emb
    patch.setattr(
        qwen3, "apply_rotary_pos_emb", lambda q, k, cos, sin, **more: (apply(q, k, cos, sin, **more)[0], k)
    )
    return made("qwen3")


@planted("far from 0")
def gemma3_keeps_positions_in_a_byte(patch: Patch) -> Any:
    rotary = modeling("gemma3").Gemma3RotaryEmbedding
    forward = rotary.forward
    patch.setattr(rotary, "forward", lambda self, x, at, *kind: forward(self, x, at.to(torch.uint8), *kind))
    return made("gemma3_text")


@planted("window")
def mistral_keeps_one_key_too_few(patch: Patch) -> Any:
    layer = peer("transformers.cache_utils").DynamicSlidingWindowLayer
    update = layer.update

    def faulty(self: Any, k: Any, v: Any, *more: Any) -> Any:
        full = update(self, k, v)
        if self.keys.shape[-2] == self.sliding_window - 1:
            self.keys[..., :1, :], self.values[..., :1, :] = 0, 0
        return full

    patch.setattr(layer, "update", faulty)
    return made("mistral")


@planted("a clamp")
def neox_has_angles_as_long_as_the_first_text(patch: Patch) -> Any:
    rotary = modeling("gpt_neox").GPTNeoXRotaryEmbedding
    forward = rotary.forward

    def faulty(self: Any, x: Any, position_ids: Any) -> Any:
        self.longest = getattr(self, "longest", int(position_ids.max()))
        return forward(self, x, position_ids.clamp(max=self.longest))

    patch.setattr(rotary, "forward", faulty)
    return made("gpt_neox")


@planted("what the pads hold gets in")
def bert_masks_pads_by_minus_one(patch: Patch) -> Any:
    bert = modeling("bert")
    create = bert.create_bidirectional_mask

    def faulty(**more: Any) -> Any:
        mask = create(**more)
        return mask if mask is None else mask.clamp(min=-1)

    patch.setattr(bert, "create_bidirectional_mask", faulty)
    return made("bert")


@planted("inv_freq")
def llama_is_loaded_without_its_frequencies(patch: Patch) -> Any:
    """from_pretrained leaves empty memory where nothing in the file belongs."""
    model, kind = made("llama"), modeling("llama").LlamaPreTrainedModel
    initialize = kind._init_weights

    def faulty(self: Any, module: Any) -> None:
        if hasattr(module, "inv_freq"):
            module.inv_freq.data.fill_(0.0)
        else:
            initialize(self, module)

    patch.setattr(kind, "_init_weights", faulty)
    return model


@planted("rows")
def glm4_has_the_keys_of_the_first_row(patch: Patch) -> Any:
    glm4 = modeling("glm4")
    attend = glm4.eager_attention_forward
    patch.setattr(
        glm4,
        "eager_attention_forward",
        lambda module, q, k, v, *given, **more: attend(module, q, k[:1].expand_as(k), v, *given, **more),
    )
    return made("glm4")


@planted("crop")
def falcon_crops_the_oldest(patch: Patch) -> Any:
    layer = peer("transformers.cache_utils").DynamicLayer

    def faulty(self: Any, n: int) -> None:
        self.keys, self.values = self.keys[..., -n:, :], self.values[..., -n:, :]

    patch.setattr(layer, "crop", faulty)
    return made("falcon")


@planted("attention sink")
def gpt_oss_forgets_its_sinks_while_decoding(patch: Patch) -> Any:
    oss = modeling("gpt_oss")
    attend = oss.eager_attention_forward

    def faulty(module: Any, q: Any, *given: Any, **more: Any) -> Any:
        sinks = module.sinks.data.clone()
        if q.shape[2] == 1:
            module.sinks.data.fill_(-1e9)
        found = attend(module, q, *given, **more)
        module.sinks.data.copy_(sinks)
        return found

    patch.setattr(oss, "eager_attention_forward", faulty)
    return made("gpt_oss")


@planted("positions of new tokens")
def opt_forgets_its_two_rows_while_decoding(patch: Patch) -> Any:
    table = modeling("opt").OPTLearnedPositionalEmbedding
    forward = table.forward

    def faulty(self: Any, mask: Any, before: int = 0, position_ids: Any = None) -> Any:
        return forward(self, mask, before, position_ids - 2 if before else position_ids)

    patch.setattr(table, "forward", faulty)
    return made("opt")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_peer_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)
