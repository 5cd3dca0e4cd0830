"""Faults that show when a model is run: caches, chunks, beams, masks and pads, by what a mistake in such code does.

Each is a few words of code planted in a tiny model: where new tokens are put, what a cache hands over, which keys a
mask shows, which rows change places, and what generate() hands on.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import posenc.check
from tests.peers import modeling, peer
from tests.posenc.peers.faulty import made

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow
BODY = {
    "llama": "LlamaModel", "qwen3": "Qwen3Model", "gpt2": "GPT2Model", "phi3": "Phi3Model", "olmo2": "Olmo2Model",
    "mistral": "MistralModel", "gemma3_text": "Gemma3TextModel",
}  # fmt: skip


def wide(name: str, **fields: Any) -> Any:
    """With weights so large that a wrong key shows."""
    model = made(name, **({} if name in ("t5", "bart", "bloom") else {"initializer_range": 0.2}) | fields)
    for key, parameter in model.named_parameters():
        if "relative_attention_bias" in key:
            torch.nn.init.normal_(parameter)
    return model


def home(name: str) -> Any:
    return modeling({"gemma3_text": "gemma3", "llama4_text": "llama4"}.get(name, name))


def placed(patch: Patch, name: str, place: Callable[..., Any]) -> Any:
    """place(n, past, given, mask) gives the position_ids of a call, or None for the model's own."""
    body = getattr(home(name), BODY[name])
    forward = body.forward

    def faulty(
        self: Any, input_ids: Any = None, attention_mask: Any = None, position_ids: Any = None,
        past_key_values: Any = None, **more: Any,
    ) -> Any:  # fmt: skip
        past = past_key_values.get_seq_length() if past_key_values is not None else 0
        if input_ids is not None:
            position_ids = place(input_ids.shape[1], past, position_ids, attention_mask)
        return forward(
            self, input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids,
            past_key_values=past_key_values, **more,
        )  # fmt: skip

    patch.setattr(body, "forward", faulty)
    return wide(name)


def own(count: Callable[[int, int], Tensor]) -> Callable[..., Any]:
    """Positions that the model makes if none are given."""
    return lambda n, past, given, _mask: count(n, past)[None] if given is None else given


def handed(patch: Patch, name: str, change: Callable[..., Any], **fields: Any) -> Any:
    """change(keys, values, n) is what attention gets of a cache in a call of n tokens."""
    layer = peer("transformers.cache_utils").DynamicLayer
    update = layer.update

    def faulty(self: Any, k: Any, v: Any, *more: Any, **most: Any) -> Any:
        keys, values = update(self, k, v, *more, **most)
        return change(keys, values, k.shape[2]) if keys.shape[2] > k.shape[2] else (keys, values)

    patch.setattr(layer, "update", faulty)
    return wide(name, **fields)


def masked(patch: Patch, name: str, mask: Callable[..., Any], **fields: Any) -> Any:
    """mask(mask, n, m) is that of n queries and m keys in attention."""
    attend = home(name).eager_attention_forward

    def faulty(module: Any, q: Any, k: Any, v: Any, held: Any, *more: Any, **most: Any) -> Any:
        return attend(module, q, k, v, mask(held, q.shape[2], k.shape[2]), *more, **most)

    patch.setattr(home(name), "eager_attention_forward", faulty)
    return wide(name, **fields)


def hidden(forbidden: Tensor) -> Tensor:
    return torch.zeros(forbidden.shape).masked_fill(forbidden, torch.finfo().min)[None, None]


def in_chunks(forbidden: Callable[[int, int], Tensor]) -> Callable[..., Any]:
    return lambda held, n, m: hidden(forbidden(n, m)) if 1 < n < m else held


def later(n: int, m: int, diagonal: int) -> Tensor:
    return torch.ones(n, m, dtype=torch.bool).triu(diagonal)


def reordered(patch: Patch, name: str, cls: str, move: Callable[..., Any]) -> Any:
    patch.setattr(getattr(modeling(name), cls), "_reorder_cache", staticmethod(move), raising=False)
    return wide(name)


def keys_alone(cache: Any, rows: Any) -> Any:
    for layer in cache.layers:
        layer.keys = layer.keys[rows]
    return cache


def first_layer(cache: Any, rows: Any) -> Any:
    cache.layers[0].reorder_cache(rows)
    return cache


def left_over(patch: Patch) -> Any:
    count = [0]

    def place(n: int, past: int, given: Any, _mask: Any) -> Any:
        if given is None:
            start = count[0] if past else 0
            count[0] = start + n
            return torch.arange(start, start + n)[None]
        return given

    return placed(patch, "gpt2", place)


def scaled(patch: Patch) -> Any:
    attend = modeling("qwen3").eager_attention_forward

    def faulty(module: Any, q: Any, k: Any, v: Any, mask: Any, scaling: float, **more: Any) -> Any:
        return attend(
            module, q, k, v, mask, scaling * (math.log(k.shape[2]) if q.shape[2] == 1 else 1), **more
        )

    patch.setattr(modeling("qwen3"), "eager_attention_forward", faulty)
    return wide("qwen3")


def queries(patch: Patch) -> Any:
    module, model = modeling("llama"), wide("llama")
    turn, rotary = module.apply_rotary_pos_emb, model.model.rotary_emb

    def faulty(q: Any, k: Any, cos: Any, sin: Any, **more: Any) -> Any:
        _, keys = turn(q, k, cos, sin, **more)
        first = rotary(q, torch.zeros(1, 1, dtype=torch.long))
        return turn(q, q, *(first if q.shape[2] == 1 else (cos, sin)), **more)[0], keys

    patch.setattr(module, "apply_rotary_pos_emb", faulty)
    return model


def again(patch: Patch) -> Any:
    module, model = modeling("llama"), wide("llama")
    layer = peer("transformers.cache_utils").DynamicLayer
    update = layer.update

    def faulty(self: Any, k: Any, *more: Any, **most: Any) -> Any:
        if self.is_initialized and self.keys.numel():
            places = torch.arange(self.keys.shape[2])[None]
            self.keys = module.apply_rotary_pos_emb(self.keys, self.keys, *model.model.rotary_emb(k, places))[
                0
            ]
        return update(self, k, *more, **most)

    patch.setattr(layer, "update", faulty)
    return model


def handed_on(patch: Patch, change: Callable[[Tensor], Tensor]) -> Any:
    """change(mask) is made in place to the mask that generate() hands on."""
    mixin = peer("transformers").GenerationMixin
    usual = mixin._update_model_kwargs_for_generation

    def faulty(self: Any, outputs: Any, given: Any, *more: Any, **most: Any) -> Any:
        given = usual(self, outputs, given, *more, **most)
        given["attention_mask"] = given["attention_mask"].clone()
        change(given["attention_mask"])
        return given

    patch.setattr(mixin, "_update_model_kwargs_for_generation", faulty)
    return wide("llama")


def t5_bias(patch: Patch) -> Any:
    attention = modeling("t5").T5Attention
    usual = attention.compute_bias

    def faulty(self: Any, *given: Any, past_seen_tokens: Any = 0, **more: Any) -> Any:
        bias = usual(self, *given, past_seen_tokens=past_seen_tokens, **more)
        return bias.roll(1, -1) if past_seen_tokens else bias

    patch.setattr(attention, "compute_bias", faulty)
    return wide("t5")


def source_mask(patch: Patch) -> Any:
    usual = peer("transformers").GenerationMixin.prepare_inputs_for_generation

    def faulty(self: Any, *given: Any, **more: Any) -> Any:
        return usual(self, *given, **more) | {"attention_mask": None}

    owner = modeling("t5").T5ForConditionalGeneration
    patch.setattr(owner, "prepare_inputs_for_generation", faulty, raising=False)
    return wide("t5")


def embedded(patch: Patch) -> Any:
    body = modeling("gpt2").GPT2Model
    forward = body.forward

    def faulty(
        self: Any, *given: Any, inputs_embeds: Any = None, position_ids: Any = None, **more: Any
    ) -> Any:
        if inputs_embeds is not None and position_ids is None:
            position_ids = torch.zeros(inputs_embeds.shape[:2], dtype=torch.long)
        return forward(self, *given, inputs_embeds=inputs_embeds, position_ids=position_ids, **more)

    patch.setattr(body, "forward", faulty)
    return wide("gpt2")


def cut(patch: Patch, crop: Callable[..., Any]) -> Any:
    layer = peer("transformers.cache_utils").DynamicLayer
    usual = layer.crop
    patch.setattr(layer, "crop", lambda self, n: crop(usual, self, n))
    return wide("llama")


def of_first(layers: int) -> Callable[[Patch], Any]:
    """Attention of the second layer gets keys of the first."""

    def fault(patch: Patch) -> Any:
        cache = peer("transformers.cache_utils").DynamicCache
        usual = cache.update

        def faulty(self: Any, k: Any, v: Any, layer: int, *more: Any, **most: Any) -> Any:
            keys, values = usual(self, k, v, layer, *more, **most)
            return (keys, self.layers[0].values) if layer == layers and k.shape[2] == 1 else (keys, values)

        patch.setattr(cache, "update", faulty)
        return wide("qwen3")

    return fault


STEP, CHUNK, AFTER = "one token at a time", "a prefill in chunks", "decoding after pads"
PLANTS: dict[str, tuple[str, str, Callable[[Patch], Any]]] = {
    # Where new tokens are put.
    "past counted twice": (
        STEP,
        "counted twice, 2, 4, 6",
        lambda p: placed(p, "qwen3", own(lambda n, past: torch.arange(n) + 2 * past)),
    ),
    "capped by the window": (
        STEP,
        "the same position, 7, 7",
        lambda p: placed(p, "mistral", own(lambda n, past: torch.arange(n) + min(past, 7))),
    ),
    "clamped": (
        STEP,
        "the same position, 10, 10",
        lambda p: placed(
            p, "llama", own(lambda n, past: (torch.arange(n) + past).clamp(max=10 if past else 600))
        ),
    ),
    "a chunk at one place": (
        CHUNK,
        "the same position, 8, 8",
        lambda p: placed(p, "llama", own(lambda n, past: torch.arange(n) * (past == 0) + past)),
    ),
    "a chunk backwards": (
        CHUNK,
        "count backwards, 13, 12",
        lambda p: placed(
            p, "phi3", own(lambda n, past: torch.arange(n).flip(0) + past if past else torch.arange(n))
        ),
    ),
    "calls counted": (
        CHUNK,
        "begin at 1 in place of 8",
        lambda p: placed(p, "olmo2", own(lambda n, past: torch.arange(n) + (past if n == 1 else past > 0))),
    ),
    "given ones not read": (
        AFTER,
        "change nothing with a cache",
        lambda p: placed(p, "llama", lambda n, past, given, mask: None if past else given),
    ),
    "past added to given ones": (
        AFTER,
        "is added to those that are given",
        lambda p: placed(p, "gpt2", lambda n, past, given, mask: given if given is None else given + past),
    ),
    "queries at 0": (STEP, "queries in layer 0 are those of position 0, not 23", queries),
    "a count kept by the model": ("two caches in turn", "what the model keeps between calls", left_over),
    "vectors in place of ids": ("vectors of tokens", "positions made for inputs_embeds", embedded),
    # What a cache hands over.
    "values one late": (
        STEP,
        "values in the cache: they change when a token is added, and are those of the token before",
        lambda p: handed(p, "qwen3", lambda k, v, n: (k, v.roll(1, 2))),
    ),
    "heads exchanged": (
        STEP,
        "are those of another head",
        lambda p: handed(p, "llama", lambda k, v, n: (k.flip(1), v.flip(1))),
    ),
    "the first key lost": (
        STEP,
        "are 0, so lost: a window is too narrow, or a slot not written (token 0",
        lambda p: handed(p, "gpt_neox", lambda k, v, n: (k * (torch.arange(k.shape[2]) > 0)[:, None], v)),
    ),
    "keys rounded": (
        STEP,
        "keys in the cache: they change when a token is added, and are rounded",
        lambda p: handed(
            p, "llama", lambda k, v, n: (torch.cat([(k[..., :-n, :] * 4).round() / 4, k[..., -n:, :]], 2), v)
        ),
    ),
    "keys turned again": (STEP, "are turned twice", again),
    "values of the first layer": (STEP, "are those of layer 0", of_first(1)),
    "a ring written too early": (
        STEP,
        "are those of tokens 16, 17",
        lambda p: handed(
            p,
            "olmo2",
            lambda k, v, n: tuple(
                torch.cat([x[..., 16:, :], x[..., x.shape[2] - 16 :, :]], 2) if x.shape[2] > 16 else x
                for x in (k, v)
            ),
        ),
    ),
    # Which keys a mask shows.
    "not itself": (
        STEP,
        "(itself: 23 keys in place of 24)",
        lambda p: masked(p, "llama", lambda held, n, m: hidden(later(1, m, m - 1)) if n == 1 < m else held),
    ),
    "from the first key": (
        CHUNK,
        "it is laid from the first key",
        lambda p: masked(p, "phi3", in_chunks(lambda n, m: later(n, m, 1))),
    ),
    "none of a chunk itself": (
        CHUNK,
        "do not see themselves",
        lambda p: masked(p, "llama", in_chunks(lambda n, m: later(n, m, m - n))),
    ),
    "pads in the cache": (
        AFTER,
        "what the pads in the cache hold gets in",
        lambda p: masked(p, "gpt_neox", lambda held, n, m: None if n == 1 else held),
    ),
    "the mask of one row": (
        AFTER,
        "those of one row count for all",
        lambda p: masked(p, "qwen3", lambda held, n, m: held[:1] if held is not None and n == 1 else held),
    ),
    "another scale": (STEP, "scores of new tokens in layer 0 are 3.18 times", scaled),
    "a bias one late": (STEP, "but that of a query 1 later", t5_bias),
    # Rows, and tokens taken back.
    "beams stay": (
        "a cache reordered",
        "_reorder_cache of LlamaForCausalLM: it does nothing",
        lambda p: reordered(p, "llama", "LlamaForCausalLM", lambda cache, rows: cache),
    ),
    "beams of keys alone": (
        "a cache reordered",
        "values of all layers do not come from the rows",
        lambda p: reordered(p, "gpt2", "GPT2LMHeadModel", keys_alone),
    ),
    "beams of one layer": (
        "a cache reordered",
        "keys and values of layer 1 do not",
        lambda p: reordered(p, "llama", "LlamaForCausalLM", first_layer),
    ),
    "one key too many kept": (
        "a cache cut back",
        "keys of 21 tokens are kept in place of 20",
        lambda p: cut(p, lambda usual, self, n: usual(self, n + 1)),
    ),
    # generate().
    "a new token hidden": (
        "generate after pads",
        "it hides token 8, a new one",
        lambda p: handed_on(p, lambda mask: mask[:, -1:].zero_()),
    ),
    "the mask of the source lost": (
        "generate over a padded source",
        "generate() must hand it to the decoder in each call",
        source_mask,
    ),
    "pads shown": (
        "generate after pads",
        "it shows pads",
        lambda p: handed_on(p, lambda mask: mask.fill_(1)),
    ),
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_fault_of_running_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    what, words, fault = PLANTS[name]
    faults = posenc.check.all(fault(monkeypatch)).faults
    assert faults[0].what.removeprefix("decoder: ") == what, faults
    assert words in faults[0].look, faults
