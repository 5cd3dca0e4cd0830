"""Faults in masks: pads, windows, documents, and what new tokens see."""

import copy
from typing import Any

import pytest
import torch

import posenc
import posenc.check
from tests.peers import modeling
from tests.posenc.peers.faulty import Faults, made, replace, watched
from tests.posenc.peers.small import (
    causal,
    gemma3,
)

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow

FAULTS = Faults()
planted, replaced, changed = FAULTS.planted, FAULTS.replaced, FAULTS.changed


@replaced("its window is wider", "modernbert.create_bidirectional_sliding_window_mask", num_hidden_layers=3)
def modernbert_takes_the_window_for_one_side_of_it(usual: Any, config: Any, **more: Any) -> Any:
    config = copy.deepcopy(config)
    config.local_attention *= 2
    return usual(config=config, **more)


@replaced("the mask while decoding", "qwen3.Qwen3Attention.forward")
def qwen3_needs_no_mask_for_one_token(
    usual: Any,
    self: Any,
    hidden_states: Any,
    position_embeddings: Any,
    attention_mask: Any = None,
    *a: Any,
    **more: Any,
) -> Any:
    mask = attention_mask if hidden_states.shape[1] > 1 else None
    return usual(self, hidden_states, position_embeddings, mask, *a, **more)


@replaced("window", "masking_utils.sliding_window_overlay", "mistral")
def window_one_too_wide(usual: Any, window: Any) -> Any:
    """The mask of Mistral lets each query see one key more than the cache keeps."""
    return usual(window + 1)


@replaced("first key", "qwen3.eager_attention_forward")
def causal_mask_from_the_first_key(
    usual: Any, module: Any, q: Any, k: Any, v: Any, mask: Any, **more: Any
) -> Any:
    """Query 0 of a call sees key 0 of the cache, as with is_causal=True of PyTorch when there are more keys."""
    shown = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
    mask = torch.zeros(shown.shape).masked_fill(~shown, torch.finfo(q.dtype).min) + mask.clamp(min=0)
    return usual(module, q, k, v, mask, **more)


@replaced("mask", "bert.create_bidirectional_mask")
def pads_are_masked_as_queries(usual: Any, **more: Any) -> Any:
    """BERT's mask is laid along the queries: pads see nothing, and are seen."""
    mask = usual(**more)
    return mask if mask is None else mask.mT


@replaced("the mask: it is causal alone and does not separate documents", "qwen3.create_causal_mask")
def qwen3_hides_where_documents_begin(usual: Any, *given: Any, **more: Any) -> Any:
    """Issue 495 of profam: a mask of ones takes the place of none."""
    if more["attention_mask"] is None and more["past_key_values"] is None:
        more["attention_mask"] = torch.ones(more["inputs_embeds"].shape[:2], dtype=torch.long)
    return usual(*given, **more)


@replaced("the mask: it is causal alone and does not separate documents", "qwen3.Qwen3Model.forward")
def qwen3_makes_a_mask_of_ones_before_its_mask(usual: Any, self: Any, ids: Any = None, **more: Any) -> Any:
    """The same in the model, so that ones are handed to the function that makes masks."""
    ids = more.pop("input_ids", ids)
    if more.get("attention_mask") is None and more.get("past_key_values") is None:
        more["attention_mask"] = torch.ones_like(ids)
    return usual(self, ids, **more)


@replaced(
    "the mask: it is causal alone and does not separate documents",
    "masking_utils.find_packed_sequence_indices",
    "llama",
)
def llama_finds_no_documents(_usual: Any, position_ids: Any) -> Any:
    return None


@replaced("the mask while decoding", "gpt2.GPT2Model.forward")
def gpt2_drops_the_mask_while_decoding(
    usual: Any,
    self: Any,
    input_ids: Any,
    attention_mask: Any = None,
    past_key_values: Any = None,
    **more: Any,
) -> Any:
    kept = attention_mask if past_key_values is None else None
    return usual(self, input_ids, attention_mask=kept, past_key_values=past_key_values, **more)


@replaced("what the pads hold gets in", "bert.create_bidirectional_mask")
def bert_masks_pads_by_minus_one(usual: Any, **more: Any) -> Any:
    mask = usual(**more)
    return mask if mask is None else mask.clamp(min=-1)


@replaced(
    "attention_mask of generate(): in call 1 there is none",
    "llama.LlamaForCausalLM.prepare_inputs_for_generation",
)
def llama_generates_without_the_mask_after_the_first_step(
    usual: Any, self: Any, *given: Any, **more: Any
) -> Any:
    inputs = usual(self, *given, **more)
    if not more.get("is_first_iteration", False):
        inputs.pop("attention_mask", None)
    return inputs


@planted("layer 1: it has no window")
def gemma3_takes_the_mask_of_the_next_layer(patch: Patch) -> Any:
    model, library = gemma3(), modeling("gemma3")
    whole = watched(patch, "gemma3.create_causal_mask")
    window = watched(patch, "gemma3.create_sliding_window_causal_mask")
    cache = library.DynamicCache
    patch.setattr(library, "DynamicCache", lambda config=None: cache())

    def faulty(usual: Any, self: Any, x: Any, attention_mask: Any = None, **more: Any) -> Any:
        (mask,) = window if self.self_attn.layer_idx == 0 else whole
        return usual(self, x, attention_mask=mask, **more)

    replace(patch, "gemma3.Gemma3DecoderLayer.forward", faulty)
    return model


@replaced(
    "one side of its window is shorter than the other",
    "modernbert.create_bidirectional_sliding_window_mask",
    num_hidden_layers=3,
)
def modernbert_loses_the_last_key_on_the_right(usual: Any, config: Any, **more: Any) -> Any:
    """Pull request 47010."""
    mask = usual(config=config, **more)
    if mask is None:
        return None
    n, width = mask.shape[-1], config.sliding_window
    offsets = torch.arange(n)[None] - torch.arange(n)[:, None]
    shut = False if mask.dtype == torch.bool else torch.finfo(mask.dtype).min
    return mask.masked_fill(offsets == width, shut)


@replaced("chunks count the pads", "masking_utils.chunked_overlay", "llama4_text")
def llama4_counts_pads_in_chunks(usual: Any, size: Any, pads: Any) -> Any:
    return usual(size, 0 * pads)


@replaced(
    "in layer 0 the newest token does not see 23 of the 24 keys that one pass shows it",
    "gemma3.create_sliding_window_causal_mask",
    "gemma3_text",
    sliding_window=32,
    layer_types=["sliding_attention", "full_attention"],
)
def gemma3_hides_the_cache_in_windows(usual: Any, past_key_values: Any = None, **more: Any) -> Any:
    seen = past_key_values.get_seq_length() if past_key_values is not None else 0
    mask = usual(past_key_values=past_key_values, **more)
    if seen:
        mask = mask.clone()
        mask[..., :seen] = torch.finfo(mask.dtype).min
    return mask


@replaced(
    "it is the wrong way round, outputs see what comes after them",
    "llama.create_causal_mask",
    initializer_range=0.2,
)
def llama_has_its_mask_the_wrong_way_round(usual: Any, **more: Any) -> Any:
    mask = usual(**more)
    return torch.where(mask == 0, torch.finfo(mask.dtype).min, 0.0)


@replaced("the mask of the source: cross-attention must have it", "bart.BartDecoder.forward")
def bart_forgets_the_mask_of_the_source(
    usual: Any, self: Any, *given: Any, encoder_attention_mask: Any = None, **more: Any
) -> Any:
    return usual(self, *given, **more)


@replaced("what the pads hold gets in", "gpt_neox.eager_attention_forward")
def gpt_neox_masks_pads_in_one_layer_only(
    usual: Any, module: Any, q: Any, k: Any, v: Any, mask: Any, *given: Any, **more: Any
) -> Any:
    if module.layer_idx == 1:
        n, u = q.shape[2], k.shape[2]
        later = torch.ones(n, u, dtype=torch.bool).triu(u - n + 1)
        mask = torch.zeros(n, u).masked_fill(later, torch.finfo(q.dtype).min)[None, None]
    return usual(module, q, k, v, mask, *given, **more)


@replaced("mask while decoding", "gpt2.GPT2Model.forward")
def gpt2_adds_new_tokens_to_the_wrong_end_of_the_mask(
    usual: Any,
    self: Any,
    input_ids: Any,
    attention_mask: Any = None,
    past_key_values: Any = None,
    **more: Any,
) -> Any:
    before = past_key_values.get_seq_length() if past_key_values is not None else 0
    if attention_mask is not None and before:
        new = attention_mask.shape[1] - before
        attention_mask = torch.cat([attention_mask[:, -new:], attention_mask[:, :-new]], 1)
    return usual(self, input_ids, attention_mask=attention_mask, past_key_values=past_key_values, **more)


@replaced("see later", "phi3.eager_attention_forward")
def phi3_has_no_causal_mask_in_later_chunks(
    usual: Any, module: Any, q: Any, k: Any, v: Any, mask: Any, *given: Any, **more: Any
) -> Any:
    if 1 < q.shape[2] < k.shape[2] and mask is not None:
        mask = mask.amax(dim=2, keepdim=True).expand_as(mask)
    return usual(module, q, k, v, mask, *given, **more)


@replaced("as under a causal mask", "modernbert.eager_attention_forward")
def modernbert_has_windows_on_one_side(
    usual: Any, module: Any, q: Any, k: Any, v: Any, mask: Any, *given: Any, **more: Any
) -> Any:
    later = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(1)
    mask = torch.zeros(q.shape[2], k.shape[2])[None, None] if mask is None else mask.float()
    return usual(module, q, k, v, mask.masked_fill(later, torch.finfo(q.dtype).min), *given, **more)


@replaced("mask while decoding", "mistral.eager_attention_forward")
def mistral_masks_nothing_while_decoding(
    usual: Any, module: Any, q: Any, k: Any, v: Any, mask: Any, *given: Any, **more: Any
) -> Any:
    return usual(module, q, k, v, None if q.shape[2] == 1 else mask, *given, **more)


@replaced("blocks of 8 tokens", "mistral.eager_attention_forward")
def mistral_has_blocks_for_windows(
    usual: Any, module: Any, q: Any, k: Any, v: Any, mask: Any, *given: Any, **more: Any
) -> Any:
    n, u = q.shape[2], k.shape[2]
    if n == u:
        t = torch.arange(n)
        mask = torch.zeros(n, n).masked_fill(
            (t[:, None] // 8 != t // 8) | (t > t[:, None]), torch.finfo(q.dtype).min
        )[None, None]
    return usual(module, q, k, v, mask, *given, **more)


@replaced("what the pads hold gets in", "bert.eager_attention_forward")
def bert_masks_pads_in_the_first_head(
    usual: Any, module: Any, q: Any, k: Any, v: Any, mask: Any, *given: Any, **more: Any
) -> Any:
    if mask is not None:
        mask = mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2]).clone()
        mask[:, 1:] = True if mask.dtype == torch.bool else 0
    return usual(module, q, k, v, mask, *given, **more)


@replaced("its tokens see nothing of the cache", "llama.eager_attention_forward")
def llama_later_chunks_see_themselves_alone(
    usual: Any, module: Any, q: Any, k: Any, v: Any, mask: Any, *given: Any, **more: Any
) -> Any:
    n, u = q.shape[2], k.shape[2]
    if 1 < n < u:
        mask = mask.clone() if mask is not None else torch.zeros(1, 1, n, u)
        mask[..., : u - n] = torch.finfo(q.dtype).min
    return usual(module, q, k, v, mask, *given, **more)


@replaced(
    "all see of the cache what the first one sees",
    "mistral.create_sliding_window_causal_mask",
    make=causal,
    sliding_window=8,
    head_dim=16,
)
def mistral_lays_the_window_of_a_chunk_for_its_first_token(usual: Any, *given: Any, **more: Any) -> Any:
    mask, cache = usual(*given, **more), more.get("past_key_values")
    if mask is None or cache is None or cache.get_seq_length() == 0 or mask.shape[-2] == 1:
        return mask
    past, mask = mask.shape[-1] - mask.shape[-2], mask.clone()
    mask[..., :past] = mask[..., :1, :past].expand_as(mask[..., :past])
    return mask


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)


def test_documents_that_see_each_other_are_named(monkeypatch: Patch) -> None:
    replace(monkeypatch, "masking_utils.find_packed_sequence_indices", lambda _usual, position_ids: None)
    faults = posenc.check.check_mask(made("qwen3"), documents=(7, 9)).faults
    assert "does not separate documents" in faults[0].look
