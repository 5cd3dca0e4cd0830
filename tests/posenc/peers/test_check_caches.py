"""Faults in what a cache keeps, gives back, crops and reorders."""

import functools
from typing import Any

import pytest
import torch

from tests.peers import modeling, peer
from tests.posenc.peers.faulty import Faults, made, replace, told, watched
from tests.posenc.peers.small import (
    causal,
    gemma3n,
    t5gemma,
)

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow

FAULTS = Faults()
planted, replaced, changed = FAULTS.planted, FAULTS.replaced, FAULTS.changed


def turned_again(patch: Patch, *, chunks: bool, places: str = "own") -> Any:
    """Pull request 110 of shainet: keys of the cache are turned again, in the call that reads them."""
    llama = modeling("llama")

    def turned(attend: Any, module: Any, query: Any, key: Any, value: Any, *given: Any, **more: Any) -> Any:
        n, new = key.shape[2], query.shape[2]
        if n > new and (not chunks or new > 1):
            at = torch.arange(n)[None] if places == "own" else torch.full((1, n), n)
            cos, sin = llama.LlamaRotaryEmbedding(module.config)(value, at)
            key = key * cos[:, None] + llama.rotate_half(key) * sin[:, None]
        return attend(module, query, key, value, *given, **more)

    def faulty(usual: Any, *given: Any) -> Any:
        return functools.partial(turned, usual(*given))

    replace(patch, "llama.ALL_ATTENTION_FUNCTIONS.get_interface", faulty)
    return made("llama")


@replaced("reorder_cache", "cache_utils.DynamicLayer.reorder_cache", "llama")
def values_keep_their_rows(_usual: Any, self: Any, rows: Any) -> Any:
    """A beam search changes the rows of keys, and not those of values."""
    return setattr(self, "keys", self.keys[rows])


@planted("the oldest are lost")
def cache_written_round(patch: Patch) -> Any:
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


@planted("keys from the cache are turned again before the scores")
def llama_turns_its_cached_keys_again(patch: Patch) -> Any:
    return turned_again(patch, chunks=False)


@planted("keys from the cache are turned again before the scores")
def llama_turns_its_cached_keys_again_in_chunks(patch: Patch) -> Any:
    return turned_again(patch, chunks=True)


@planted("keys from the cache are turned otherwise before the scores")
def llama_turns_its_cached_keys_by_the_length(patch: Patch) -> Any:
    return turned_again(patch, chunks=False, places="the length")


@replaced("window", "cache_utils.DynamicSlidingWindowLayer.update", "mistral")
def mistral_keeps_one_key_too_few(usual: Any, self: Any, k: Any, v: Any, *more: Any) -> Any:
    full = usual(self, k, v)
    if self.keys.shape[-2] == self.sliding_window - 1:
        self.keys[..., :1, :], self.values[..., :1, :] = 0, 0
    return full


@replaced("rows", "glm4.eager_attention_forward")
def glm4_has_the_keys_of_the_first_row(
    usual: Any, module: Any, q: Any, k: Any, v: Any, *given: Any, **more: Any
) -> Any:
    return usual(module, q, k[:1].expand_as(k), v, *given, **more)


@replaced("crop", "cache_utils.DynamicLayer.crop", "falcon")
def falcon_crops_the_oldest(_usual: Any, self: Any, n: int) -> None:
    self.keys, self.values = self.keys[..., -n:, :], self.values[..., -n:, :]


@planted("the cache of cross-attention")
def t5gemma_cuts_the_source_to_the_window(patch: Patch) -> Any:
    m = modeling("t5gemma")
    usual, made_with = m.EncoderDecoderCache, t5gemma()
    config = made_with.config.decoder
    patch.setattr(m, "EncoderDecoderCache", lambda own, _: usual(own, m.DynamicCache(config=config)))
    return made_with


@replaced(
    "the cache of cross-attention", "cache_utils.EncoderDecoderCache.__init__", "t5", initializer_factor=2.0
)
def t5_adds_the_source_in_each_step(usual: Any, self: Any, *caches: Any) -> None:
    class Never(dict[int, bool]):
        def get(self, *_: Any) -> Any:
            return False

    usual(self, *caches)
    self.is_updated = Never()


@planted("with an empty cache: keys of layer 0 are not those without a cache, they are not turned")
def llama_does_not_turn_keys_that_it_caches(patch: Patch) -> Any:
    cached = told(patch, "llama.LlamaAttention.forward", "past_key_values")

    def faulty(turn: Any, q: Any, k: Any, cos: Any, sin: Any) -> Any:
        return (turn(q, k, cos, sin)[0], k) if cached[0] else turn(q, k, cos, sin)

    replace(patch, "llama.apply_rotary_pos_emb", faulty)
    return causal("llama")


@planted("with an empty cache: queries of layer 0 are not those without a cache")
def hunyuan_does_not_turn_queries_back_with_a_cache(patch: Patch) -> Any:
    cached = told(patch, "hunyuan_v1_dense.HunYuanDenseV1Attention.forward", "past_key_values")

    def faulty(turn: Any, q: Any, k: Any, cos: Any, sin: Any) -> Any:
        return (q.flip(1), turn(q, k, cos, sin)[1]) if cached[0] else turn(q, k, cos, sin)

    replace(patch, "hunyuan_v1_dense.apply_rotary_pos_emb", faulty)
    return causal("hunyuan_v1_dense", head_dim=16)


@replaced(
    "with an empty cache: queries of layer 2 are not those without a cache",
    "gemma3n.Gemma3nTextAttention.forward",
    gemma3n,
)
def gemma3n_turns_queries_of_shared_keys_one_place_less_with_a_cache(
    usual: Any, self: Any, *given: Any, **more: Any
) -> Any:
    if more.get("past_key_values") is not None and self.is_kv_shared_layer:
        more["position_embeddings"] = tuple(each.roll(1, 1) for each in more["position_embeddings"])
    return usual(self, *given, **more)


@planted("how the cache counts after crop")
def llama_counts_what_was_cropped(patch: Patch) -> Any:
    def counting(usual: Any, self: Any, k: Any, v: Any, *more: Any) -> Any:
        self.seen = getattr(self, "seen", 0) + k.shape[-2]
        return usual(self, k, v, *more)

    def faulty(
        usual: Any,
        self: Any,
        input_ids: Any,
        position_ids: Any = None,
        past_key_values: Any = None,
        **more: Any,
    ) -> Any:
        if position_ids is None and past_key_values is not None and past_key_values.layers:
            before = getattr(past_key_values.layers[0], "seen", 0)
            position_ids = (torch.arange(input_ids.shape[1]) + before)[None]
        return usual(self, input_ids, position_ids=position_ids, past_key_values=past_key_values, **more)

    replace(patch, "cache_utils.DynamicLayer.update", counting)
    replace(patch, "llama.LlamaModel.forward", faulty)
    return made("llama")


@planted("keys in the cache: they change")
def glm4_turns_cached_keys_again(patch: Patch) -> Any:
    angles = watched(patch, "glm4.Glm4RotaryEmbedding.forward")

    def faulty(usual: Any, self: Any, k: Any, v: Any, *more: Any) -> Any:
        if self.is_initialized and self.keys.numel() and k.shape[-2] == 1:
            self.keys = modeling("glm4").apply_rotary_pos_emb(self.keys, self.keys, *angles[0])[0]
        return usual(self, k, v, *more)

    replace(patch, "cache_utils.DynamicLayer.update", faulty)
    return made("glm4")


@changed("layers write into each other's keys", "gpt_neox")
def gpt_neox_writes_all_layers_into_the_first(model: Any) -> None:
    for layer in model.gpt_neox.layers:
        layer.attention.layer_idx = 0


@replaced("values in the cache: crop keeps others", "cache_utils.DynamicLayer.crop", "smollm3")
def smollm3_crops_values_at_the_other_end(usual: Any, self: Any, n: Any) -> Any:
    values = self.values
    usual(self, n)
    self.values = values[..., -self.keys.shape[-2] :, :]


@replaced(
    "are 0, so lost: a window is too narrow", "cache_utils.DynamicLayer.update", "gemma3_text",
    layer_types=["sliding_attention", "full_attention"],
)  # fmt: skip
def gemma3_has_windows_in_all_caches(usual: Any, self: Any, k: Any, v: Any, *more: Any) -> Any:
    keys, values = usual(self, k, v, *more)
    sliding = peer("transformers.cache_utils").DynamicSlidingWindowLayer
    if k.shape[-2] == 1 and not isinstance(self, sliding) and keys.shape[-2] > 8:
        keys, values = keys.clone(), values.clone()
        keys[..., :-8, :], values[..., :-8, :] = 0, 0
    return keys, values


@planted("keys in the cache: they are not turned")
def gpt_neox_keeps_keys_before_the_rotation(patch: Patch) -> Any:
    held = {}

    def kept(turn: Any, q: Any, k: Any, *given: Any, **more: Any) -> Any:
        held["raw"] = k
        return turn(q, k, *given, **more)

    def faulty(usual: Any, self: Any, k: Any, v: Any, *more: Any) -> Any:
        keys, values = usual(self, held["raw"], v, *more)
        return torch.cat([keys[..., : keys.shape[-2] - k.shape[-2], :], k], -2), values

    replace(patch, "gpt_neox.apply_rotary_pos_emb", kept)
    replace(patch, "cache_utils.DynamicLayer.update", faulty)
    return made("gpt_neox")


@replaced("it does not cut all layers", "cache_utils.DynamicCache.crop", "smollm3")
def smollm3_forgets_to_crop_the_last_layer(_usual: Any, self: Any, n: Any) -> Any:
    for layer in self.layers[:-1]:
        layer.crop(n)


@replaced("keys in the cache: they are rounded", "cache_utils.DynamicLayer.update", "llama")
def llama_rounds_cached_keys(usual: Any, self: Any, k: Any, v: Any, *more: Any) -> Any:
    keys, values = usual(self, k, v, *more)
    self.keys = (keys * 4).round() / 4
    return keys, values


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)
