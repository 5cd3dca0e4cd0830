"""Faults of peers, planted in tiny models of transformers: posenc.check.all names their cause in its first line."""

from typing import Any

import pytest
import torch
from torch import nn

from tests.peers import modeling, peer
from tests.posenc.peers.faulty import Faults, made

pytestmark = pytest.mark.slow


FAULTS = Faults()
planted = FAULTS.planted


def turned(module: Any, cos: torch.Tensor, sin: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    turned: torch.Tensor = k * cos[:, None] + module.rotate_half(k) * sin[:, None]
    return turned


# --- Positions ----------------------------------------------------------------------------------------------


@planted("position after their own")
def one_too_far_in_generation(patch: pytest.MonkeyPatch) -> Any:
    """The cache's length is counted after the new token has gone into it."""
    llama = modeling("llama").LlamaModel
    forward = llama.forward

    def faulty(
        self: Any, input_ids: Any, position_ids: Any = None, past_key_values: Any = None, **more: Any
    ) -> Any:
        before = past_key_values.get_seq_length() if past_key_values is not None else 0
        if position_ids is None and before:
            position_ids = (torch.arange(input_ids.shape[1]) + before + 1)[None]
        return forward(self, input_ids, position_ids=position_ids, past_key_values=past_key_values, **more)

    patch.setattr(llama, "forward", faulty)
    return made("llama")


@planted("rounded")
def positions_in_bfloat16(patch: pytest.MonkeyPatch) -> Any:
    """Whatever the model's format, positions pass through bfloat16 before they are multiplied."""
    rotary = modeling("llama").LlamaRotaryEmbedding
    forward = rotary.forward
    patch.setattr(rotary, "forward", lambda self, x, position_ids: forward(self, x, position_ids.bfloat16()))
    return made("llama")


@planted("position_ids change nothing")
def positions_are_not_passed_on(patch: pytest.MonkeyPatch) -> Any:
    """GPT-2 takes position_ids and counts by itself all the same."""
    gpt2 = modeling("gpt2").GPT2Model
    forward = gpt2.forward

    def faulty(self: Any, input_ids: Any, position_ids: Any = None, **more: Any) -> Any:
        return forward(self, input_ids, **more)

    patch.setattr(gpt2, "forward", faulty)
    return made("gpt2")


@planted("pads in the cache are counted")
def pads_are_counted_in_generation(patch: pytest.MonkeyPatch) -> Any:
    """OPT's positions come from the mask in the prefill, and from the cache's length after it."""
    table = modeling("opt").OPTLearnedPositionalEmbedding
    forward = table.forward

    def faulty(self: Any, mask: Any, before: int = 0, position_ids: Any = None) -> Any:
        if before:
            position_ids = torch.arange(before, mask.shape[1]).expand(mask.shape[0], -1)
        return forward(self, mask, before, position_ids)

    patch.setattr(table, "forward", faulty)
    return made("opt")


@planted("first row")
def alibi_of_the_first_row(patch: pytest.MonkeyPatch) -> Any:
    """Bloom makes its biases from the first row's mask, for all rows."""
    bloom = modeling("bloom")
    build = bloom.build_alibi_tensor
    patch.setattr(
        bloom,
        "build_alibi_tensor",
        lambda mask, heads, dtype: build(mask[:1].expand_as(mask), heads, dtype),
    )
    return made("bloom")


@planted("positions of new tokens")
def bias_of_new_tokens_begins_at_0(patch: pytest.MonkeyPatch) -> Any:
    """T5's decoder makes the biases of a new token as if nothing were in the cache."""
    t5 = modeling("t5")
    bias = t5.T5Attention.compute_bias
    patch.setattr(
        t5.T5Attention,
        "compute_bias",
        lambda self, n, m, device=None, past_seen_tokens=0: bias(self, n, m, device),
    )
    return t5_decoder()


def t5_decoder() -> Any:
    """The decoder of T5 by itself, without an encoder to look at."""
    transformers = peer("transformers")
    config = transformers.T5Config(
        vocab_size=97, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, is_decoder=True, use_cache=True,
        is_encoder_decoder=False, relative_attention_num_buckets=8, relative_attention_max_distance=20,
        attn_implementation="eager",
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = modeling("t5").T5Stack(config).eval()
        for name, parameter in model.named_parameters():
            if "relative_attention_bias" in name:
                nn.init.normal_(parameter)
    return model


# --- Rotations ----------------------------------------------------------------------------------------------


@planted("turned twice")
def keys_turned_twice(patch: pytest.MonkeyPatch) -> Any:
    llama = modeling("llama")
    apply = llama.apply_rotary_pos_emb

    def faulty(q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
        q, k = apply(q, k, cos, sin, **more)
        return q, turned(llama, cos, sin, k)

    patch.setattr(llama, "apply_rotary_pos_emb", faulty)
    return made("llama")


@planted("columns 4 to 7")
def keys_turn_the_last_columns(patch: pytest.MonkeyPatch) -> Any:
    """GPT-NeoX turns the first columns of queries, and with the fault the last ones of keys."""
    neox = modeling("gpt_neox")
    apply = neox.apply_rotary_pos_emb

    def faulty(q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
        q, _ = apply(q, k, cos, sin, **more)
        kept, last = k.split([k.shape[-1] - cos.shape[-1], cos.shape[-1]], dim=-1)
        return q, torch.cat([kept, turned(neox, cos, sin, last)], dim=-1)

    patch.setattr(neox, "apply_rotary_pos_emb", faulty)
    return made(
        "gpt_neox",
        rope_parameters={"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5},
    )


@planted("frequencies")
def one_layer_with_another_base(patch: pytest.MonkeyPatch) -> Any:
    """The second layer has a rotary embedding of its own, whose base nobody set."""
    llama = modeling("llama")
    model = made("llama", rope_parameters={"rope_type": "default", "rope_theta": 500000.0})
    attention = model.model.layers[1].self_attn
    attention.rotary_emb = llama.LlamaRotaryEmbedding(made("llama").config)
    forward = attention.forward

    def faulty(hidden_states: Any, position_embeddings: Any, position_ids: Any = None, **more: Any) -> Any:
        own = attention.rotary_emb(hidden_states, position_ids)
        return forward(hidden_states, position_embeddings=own, position_ids=position_ids, **more)

    attention.forward = faulty
    return model


@planted("inv_freq")
def the_whole_model_in_half_precision(patch: pytest.MonkeyPatch) -> Any:
    """.half() also rounds the frequencies, which from_pretrained(dtype=float16) would not."""
    return made("llama", max_position_embeddings=8192).half()


# --- Masks and caches ---------------------------------------------------------------------------------------


@planted("window")
def window_one_too_wide(patch: pytest.MonkeyPatch) -> Any:
    """The mask of Mistral lets each query see one key more than the cache keeps."""
    masking = peer("transformers.masking_utils")
    overlay = masking.sliding_window_overlay
    patch.setattr(masking, "sliding_window_overlay", lambda window: overlay(window + 1))
    return made("mistral")


@planted("first key")
def causal_mask_from_the_first_key(patch: pytest.MonkeyPatch) -> Any:
    """Query 0 of a call sees key 0 of the cache, as with is_causal=True of PyTorch when there are more keys."""
    qwen3 = modeling("qwen3")
    attend = qwen3.eager_attention_forward

    def faulty(module: Any, q: Any, k: Any, v: Any, mask: Any, **more: Any) -> Any:
        shown = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
        mask = torch.zeros(shown.shape).masked_fill(~shown, torch.finfo(q.dtype).min) + mask.clamp(min=0)
        return attend(module, q, k, v, mask, **more)

    patch.setattr(qwen3, "eager_attention_forward", faulty)
    return made("qwen3")


@planted("reorder_cache")
def values_keep_their_rows(patch: pytest.MonkeyPatch) -> Any:
    """A beam search changes the rows of keys, and not those of values."""
    layer = peer("transformers.cache_utils").DynamicLayer
    patch.setattr(layer, "reorder_cache", lambda self, rows: setattr(self, "keys", self.keys[rows]))
    return made("llama")


@planted("the oldest are lost")
def cache_written_round(patch: pytest.MonkeyPatch) -> Any:
    """A cache of 16 places, whose oldest keys are overwritten; the model has no window."""
    layer = peer("transformers.cache_utils").DynamicLayer
    update, places = layer.update, 16

    def faulty(self: Any, k: Any, v: Any, *more: Any) -> Any:
        self.seen = getattr(self, "seen", 0) + k.shape[-2]
        update(self, k, v)
        if k.shape[-2] == 1:
            self.keys, self.values = self.keys[..., -places:, :], self.values[..., -places:, :]
        return self.keys, self.values

    def sizes(self: Any, n: int) -> tuple[int, int]:
        length = (self.keys.shape[-2] if self.is_initialized else 0) + n
        kept = min(length, places) if n == 1 else length
        return kept, getattr(self, "seen", 0) + n - kept

    patch.setattr(layer, "update", faulty)
    patch.setattr(layer, "get_mask_sizes", sizes)
    patch.setattr(layer, "get_seq_length", lambda self: getattr(self, "seen", 0))
    return made("llama")


@planted("mask")
def pads_are_masked_as_queries(patch: pytest.MonkeyPatch) -> Any:
    """BERT's mask is laid along the queries: pads see nothing, and are seen."""
    bert = modeling("bert")
    create = bert.create_bidirectional_mask

    def faulty(**more: Any) -> Any:
        mask = create(**more)
        return mask if mask is None else mask.mT

    patch.setattr(bert, "create_bidirectional_mask", faulty)
    return made("bert")


@planted("those of full_attention layers")
def gemma3_angles_exchanged(patch: pytest.MonkeyPatch) -> Any:
    """Layers with a window get the angles of those without, and the other way round."""
    rotary = modeling("gemma3").Gemma3RotaryEmbedding
    forward = rotary.forward
    other = {"sliding_attention": "full_attention", "full_attention": "sliding_attention"}
    patch.setattr(rotary, "forward", lambda self, x, at, kind: forward(self, x, at, other[kind]))
    return made("gemma3_text", layer_types=[*other])


@planted("keys: pairs are half")
def deepseek_keys_by_halves(patch: pytest.MonkeyPatch) -> Any:
    """Its function puts the columns of pairs into halves first, now those of queries alone; then both turn alike."""
    deepseek = modeling("deepseek_v3")
    interleaved, halves = deepseek.apply_rotary_pos_emb_interleave, deepseek.apply_rotary_pos_emb
    patch.setattr(
        deepseek,
        "apply_rotary_pos_emb_interleave",
        lambda q, k, cos, sin: (interleaved(q, k, cos, sin)[0], halves(q, k, cos, sin)[1]),
    )
    return made("deepseek_v3")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_peer_is_named_in_the_first_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS.must_be_named(name, monkeypatch)
