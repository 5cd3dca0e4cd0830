"""Faults in positions: what a model counts, what it is given, and what generate() hands on."""

import math
from typing import Any

import pytest
import torch
from torch import nn

import posenc
import posenc.check
from posenc.check.tried import TINY
from tests.peers import peer, seeded
from tests.posenc.peers.faulty import Faults, replace
from tests.posenc.peers.small import (
    TEXT,
    built,
    causal,
    marian,
    reads_pictures,
    xglm,
)

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow

FAULTS = Faults()
planted, replaced, changed = FAULTS.planted, FAULTS.replaced, FAULTS.changed


def in_steps(inputs: Any, place: int) -> Any:
    """What generate() is given, with this position of each token in steps of one."""
    if inputs["input_ids"].shape[1] == 1:
        inputs["position_ids"] = torch.full((len(inputs["input_ids"]), 1), place)
    return inputs


@replaced("what the model keeps between calls: a count of tokens", "gpt2.GPT2Model.forward")
def gpt2_counts_by_itself(
    usual: Any, self: Any, input_ids: Any, past_key_values: Any = None, position_ids: Any = None, **more: Any
) -> Any:
    if position_ids is None:
        start = getattr(self, "counted", 0) if past_key_values is not None else 0
        self.counted = start + input_ids.shape[1]
        position_ids = torch.arange(start, self.counted)[None]
    return usual(self, input_ids, past_key_values=past_key_values, position_ids=position_ids, **more)


@planted("none does, or all get the same")
def heads_are_turned_in_place_of_tokens(patch: Patch) -> Any:
    library = peer("rotary_embedding_torch")

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.output = nn.Embedding(97, 32), nn.Linear(32, 97)
            self.query_key_value = nn.Linear(32, 96)
            self.rotary = library.RotaryEmbedding(8)

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            q, k, v = self.query_key_value(self.embedding(ids)).view(*ids.shape, 3, 4, 8).unbind(2)
            q, k = map(self.rotary.rotate_queries_or_keys, (q, k))  # (batch, length, heads, dim)
            q, k, v = (each.transpose(1, 2) for each in (q, k, v))
            x = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.output(torch.tanh(x.transpose(1, 2).flatten(2)))

    return seeded(Decoder)


@replaced(
    "they must begin at 2, after the row of the pad",
    "roberta.RobertaEmbeddings.create_position_ids_from_input_ids",
)
def roberta_counts_from_0(_usual: Any, ids: Any, padding_idx: Any, before: int = 0) -> Any:
    return torch.arange(before, before + ids.shape[1]).expand(ids.shape)


@planted("is asked for rows 0, 0, 0, 0, ..., and without a mask for 0, 1, 2, 3, ...")
def a_wrapper_hands_on_the_number_of_tokens_for_that_of_pads(patch: Patch) -> Any:
    library = peer("x_transformers")

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = library.Decoder(dim=32, depth=2, heads=4, attn_dim_head=8)
            self.net = library.TransformerWrapper(num_tokens=97, max_seq_len=128, attn_layers=layers)
            nn.init.normal_(self.net.pos_emb.emb.weight, std=4.0)

        def forward(self, ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> Any:
            if attention_mask is None:
                return self.net(ids)
            return self.net(ids, mask=attention_mask.bool(), seq_start_pos=attention_mask.sum(-1))

    return seeded(Wrapped)


@replaced("position after their own", "llama.LlamaModel.forward")
def one_too_far_in_generation(
    usual: Any, self: Any, input_ids: Any, position_ids: Any = None, past_key_values: Any = None, **more: Any
) -> Any:
    """The cache's length is counted after the new token has gone into it."""
    before = past_key_values.get_seq_length() if past_key_values is not None else 0
    if position_ids is None and before:
        position_ids = (torch.arange(input_ids.shape[1]) + before + 1)[None]
    return usual(self, input_ids, position_ids=position_ids, past_key_values=past_key_values, **more)


@replaced("position_ids change nothing", "gpt2.GPT2Model.forward")
def positions_are_not_passed_on(
    usual: Any, self: Any, input_ids: Any, position_ids: Any = None, **more: Any
) -> Any:
    """GPT-2 takes position_ids and counts by itself all the same."""
    return usual(self, input_ids, **more)


@replaced("pads in the cache are counted", "opt.OPTLearnedPositionalEmbedding.forward")
def pads_are_counted_in_generation(
    usual: Any, self: Any, mask: Any, before: int = 0, position_ids: Any = None
) -> Any:
    """OPT's positions come from the mask in the prefill, and from the cache's length after it."""
    if before:
        position_ids = torch.arange(before, mask.shape[1]).expand(mask.shape[0], -1)
    return usual(self, mask, before, position_ids)


@replaced("far from 0", "gemma3.Gemma3RotaryEmbedding.forward", "gemma3_text")
def gemma3_keeps_positions_in_a_byte(usual: Any, self: Any, x: Any, at: Any, *kind: Any) -> Any:
    return usual(self, x, at.to(torch.uint8), *kind)


@replaced("positions of new tokens", "opt.OPTLearnedPositionalEmbedding.forward")
def opt_forgets_its_two_rows_while_decoding(
    usual: Any, self: Any, mask: Any, before: int = 0, position_ids: Any = None
) -> Any:
    return usual(self, mask, before, position_ids - 2 if before else position_ids)


@replaced(
    "its sines are right, its cosines have other frequencies",
    "xglm.XGLMSinusoidalPositionalEmbedding.get_embedding",
    xglm,
)
def xglm_gives_cosines_the_next_frequency(
    _usual: Any, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None
) -> torch.Tensor:
    half = embedding_dim // 2
    step, index = math.log(10000) / (half - 1), torch.arange(half).float()
    sines, cosines = torch.exp(-step * index), torch.exp(-step * (index + 0.5))  # 2i, and 2i + 1
    places = torch.arange(num_embeddings).float()[:, None]
    rows = torch.cat([torch.sin(places * sines), torch.cos(places * cosines)], dim=1)
    if padding_idx is not None:
        rows[padding_idx] = 0
    return rows


@replaced(
    "positions begin at 0: they must begin at 2, after the rows that are kept free",
    "bart.BartLearnedPositionalEmbedding.__init__",
)
def bart_reads_the_rows_that_are_kept_free(usual: Any, self: Any, *given: Any, **more: Any) -> None:
    usual(self, *given, **more)
    self.offset = 0


@replaced("count the pads in the cache", "opt.OPTDecoder.forward")
def opt_counts_columns_while_decoding(
    usual: Any, self: Any, input_ids: Any, past_key_values: Any = None, position_ids: Any = None, **more: Any
) -> Any:
    past = past_key_values.get_seq_length() if past_key_values is not None else 0
    if past and position_ids is None:
        position_ids = torch.arange(past, past + input_ids.shape[1]).expand(input_ids.shape)
    return usual(
        self, input_ids=input_ids, past_key_values=past_key_values, position_ids=position_ids, **more
    )


@replaced("positions begin at 3: they must begin at 2", "opt.OPTLearnedPositionalEmbedding.__init__")
def opt_reads_one_row_too_far(usual: Any, self: Any, *given: Any, **more: Any) -> None:
    usual(self, *given, **more)
    self.offset = 3


@replaced("pads or the mask of an earlier call are used again", "llama.LlamaModel.forward", make=causal)
def llama_stretches_positions_by_the_pads_of_the_call_before(
    usual: Any, self: Any, *given: Any, **more: Any
) -> Any:
    if (mask := more.get("attention_mask")) is not None:
        self.pads = int((mask == 0).sum(-1).max())
    elif more.get("position_ids") is None and more.get("past_key_values") is None:
        more["position_ids"] = torch.arange(more["input_ids"].shape[1])[None] * (1 + getattr(self, "pads", 0))
    return usual(self, *given, **more)


@replaced("pads or the mask of another text count for this one, too", "llama.LlamaModel.forward", make=causal)
def llama_takes_off_the_pads_of_the_text_before_in_steps(
    usual: Any, self: Any, *given: Any, **more: Any
) -> Any:
    mask, cache = more.get("attention_mask"), more.get("past_key_values")
    if mask is not None:
        self.pads = int((mask == 0).sum(-1).max())
    elif cache is not None and cache.get_seq_length() and more.get("position_ids") is None:
        n = more["input_ids"].shape[1]
        more["position_ids"] = torch.arange(n)[None] + cache.get_seq_length() - getattr(self, "pads", 0)
    return usual(self, *given, **more)


@changed("clamp", "gpt2", initializer_range=1.0)
def gpt2_clamps_positions_with_large_weights(model: Any) -> None:
    usual = model.transformer.wpe.forward
    model.transformer.wpe.forward = lambda places: usual(places.clamp(max=15))


@replaced(
    "they must begin at 2, after the row of the pad",
    "roberta.RobertaEmbeddings.create_position_ids_from_input_ids",
)
def roberta_counts_each_call_from_0(_usual: Any, ids: Any, *_: Any) -> Any:
    return torch.arange(ids.shape[1]).expand(ids.shape)


@replaced("new tokens get position 0", "bart.BartLearnedPositionalEmbedding.forward", init_std=0.2)
def bart_forgets_the_cache_in_its_table(usual: Any, self: Any, ids: Any, *_: Any, **__: Any) -> Any:
    return usual(self, ids)


@replaced(
    "those of new tokens begin with 8 in place of 5: the pads on the left are counted",
    "llama.LlamaForCausalLM.prepare_inputs_for_generation",
)
def llama_hands_on_the_place_in_the_cache(usual: Any, self: Any, ids: Any, **more: Any) -> Any:
    return in_steps(usual(self, ids, **more), ids.shape[1] - 1)


@replaced(
    "those of new tokens begin with 0 in place of 8: what is in the cache is not counted",
    "gpt2.GPT2LMHeadModel.prepare_inputs_for_generation",
)
def gpt2_hands_on_0(usual: Any, self: Any, ids: Any, **more: Any) -> Any:
    return in_steps(usual(self, ids, **more), 0)


@planted("those of the text begin with 0 in place of 2")
def roberta_is_not_told_that_it_counts_from_2(patch: Patch) -> Any:
    """No patch: generate() of transformers 5.23 does so."""
    library = peer("transformers")
    config = library.AutoConfig.for_model("roberta", **TINY["roberta"], is_decoder=True)
    return seeded(library.RobertaForCausalLM, config)


@replaced(
    "those of new tokens begin with 8 in place of 5: the pads on the left are counted",
    "gpt2.GPT2LMHeadModel.prepare_inputs_for_generation",
)
def gpt2_cuts_its_mask_before_it_counts_the_pads(
    usual: Any, self: Any, ids: Any, attention_mask: Any = None, **more: Any
) -> Any:
    """It raises without pads, because generate() hands on no mask of ones."""
    inputs = usual(self, ids, attention_mask=attention_mask, **more)
    n, end = inputs["input_ids"].shape[1], attention_mask.shape[1]
    pads = (attention_mask[:, end - n :] == 0).sum(-1, keepdim=True)
    inputs["position_ids"] = (torch.arange(end - n, end)[None] - pads).clamp(min=0)
    return inputs


@replaced("position 0", "falcon.FalconModel.forward", alibi=False)
def falcon_puts_new_tokens_at_0(
    usual: Any, self: Any, input_ids: Any, position_ids: Any = None, **more: Any
) -> Any:
    if position_ids is None and input_ids.shape[1] == 1:
        position_ids = torch.zeros_like(input_ids)
    return usual(self, input_ids, position_ids=position_ids, **more)


@changed("a clamp", "gpt2", n_positions=32)
def gpt2_stays_at_the_last_row(model: Any) -> None:
    look_up = model.transformer.wpe.forward
    model.transformer.wpe.forward = lambda positions: look_up(positions.clamp(max=31))


@replaced("they begin at 1", "gpt2.GPT2Model.forward")
def gpt2_counts_the_mask_from_one(
    usual: Any, self: Any, input_ids: Any, attention_mask: Any = None, position_ids: Any = None, **more: Any
) -> Any:
    if position_ids is None and attention_mask is not None:
        position_ids = attention_mask.cumsum(-1)[:, -input_ids.shape[1] :]
    return usual(self, input_ids, attention_mask=attention_mask, position_ids=position_ids, **more)


@replaced("begin at 0 again", "qwen3.Qwen3Model.forward")
def qwen3_begins_each_chunk_at_0(
    usual: Any, self: Any, input_ids: Any, position_ids: Any = None, **more: Any
) -> Any:
    if position_ids is None and input_ids.shape[1] > 1:
        position_ids = torch.arange(input_ids.shape[1])[None]
    return usual(self, input_ids, position_ids=position_ids, **more)


@replaced("positions of new tokens", "opt.OPTLearnedPositionalEmbedding.forward")
def opt_adds_positions_twice_in_decoding(
    usual: Any, self: Any, mask: Any, before: Any = 0, position_ids: Any = None
) -> Any:
    return usual(self, mask, before, position_ids) * (2 if before else 1)


@replaced("positions of the first row count for all", "gpt2.GPT2Model.forward")
def gpt2_has_the_positions_of_the_first_row(
    usual: Any, self: Any, input_ids: Any, position_ids: Any = None, **more: Any
) -> Any:
    if position_ids is not None:
        position_ids = position_ids[:1].expand_as(position_ids)
    return usual(self, input_ids, position_ids=position_ids, **more)


@replaced("one too early", "qwen3.Qwen3Model.forward")
def qwen3_chunks_begin_one_too_early(
    usual: Any, self: Any, input_ids: Any, position_ids: Any = None, past_key_values: Any = None, **more: Any
) -> Any:
    before = past_key_values.get_seq_length() if past_key_values is not None else 0
    if position_ids is None and before and input_ids.shape[1] > 1:
        position_ids = torch.arange(before - 1, before - 1 + input_ids.shape[1])[None]
    return usual(self, input_ids, position_ids=position_ids, past_key_values=past_key_values, **more)


@changed("shorter", "opt")
def opt_has_fewer_rows_than_it_says(model: Any) -> None:
    table = model.model.decoder.embed_positions
    table.weight = torch.nn.Parameter(table.weight[:-12].clone())


@replaced("positions of the rows", "bert.BertEmbeddings.forward")
def bert_counts_on_through_the_rows(
    usual: Any,
    self: Any,
    input_ids: Any = None,
    token_type_ids: Any = None,
    position_ids: Any = None,
    **more: Any,
) -> Any:
    if position_ids is None:
        position_ids = torch.arange(input_ids.numel()).view(input_ids.shape).clamp(max=511)
    return usual(self, input_ids=input_ids, token_type_ids=token_type_ids, position_ids=position_ids, **more)


@replaced("their keys in layer 0", "llama.LlamaRotaryEmbedding.forward")
def llama_divides_positions_of_the_prefill(usual: Any, self: Any, x: Any, position_ids: Any) -> Any:
    return usual(self, x, position_ids / 4 if position_ids.shape[1] > 1 else position_ids)


@replaced("a remainder", "opt.OPTLearnedPositionalEmbedding.forward")
def opt_begins_again_at_256(
    usual: Any, self: Any, mask: Any, before: Any = 0, position_ids: Any = None
) -> Any:
    if position_ids is not None:
        position_ids = position_ids % 256
    return usual(self, mask, before, position_ids)


@replaced(
    "positions are the number of the row in the batch",
    "marian.MarianSinusoidalPositionalEmbedding.forward",
    marian,
)
def marian_counts_along_the_batch(
    _usual: Any, self: Any, shape: Any, _past: int = 0, position_ids: Any = None
) -> Any:
    return nn.Embedding.forward(self, torch.arange(shape[0])[:, None].expand(*shape[:2]))


@replaced(
    "the pads on the left are counted", "qwen2.Qwen2ForCausalLM.prepare_inputs_for_generation", make=causal
)
def qwen2_counts_the_cache_in_generate(
    usual: Any, self: Any, ids: Any, past_key_values: Any = None, **more: Any
) -> Any:
    found = usual(self, ids, past_key_values=past_key_values, **more)
    if past_key_values is not None and (past := past_key_values.get_seq_length()) > 0:
        found["position_ids"] = torch.arange(past, past + found["input_ids"].shape[1])[None]
    return found


@replaced("positions are the number of the row in the batch", "gpt2.GPT2Model.forward")
def gpt2_counts_along_the_batch(
    usual: Any, self: Any, ids: Any = None, past_key_values: Any = None, position_ids: Any = None, **more: Any
) -> Any:
    if position_ids is None:
        position_ids = torch.arange(len(ids))[:, None].expand(ids.shape)
    return usual(self, ids, past_key_values, position_ids=position_ids, **more)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)


def test_positions_that_are_not_read_are_named(monkeypatch: Patch) -> None:
    def faulty(usual: Any, *given: Any, **more: Any) -> Any:
        return usual(*given, **more | {"position_ids": None})

    replace(monkeypatch, "qwen3_vl.Qwen3VLTextModel.forward", faulty)
    found = posenc.check.all(reads_pictures()).faults[0]
    assert (found.what, found.look.partition(",")[0]) == ("shift", "position_ids: they are not read")


def test_positions_that_are_read_with_a_mask_alone_are_named(monkeypatch: Patch) -> None:
    def faulty(
        usual: Any, *given: Any, attention_mask: Any = None, position_ids: Any = None, **more: Any
    ) -> Any:
        places = position_ids if attention_mask is not None else None
        return usual(*given, attention_mask=attention_mask, position_ids=places, **more)

    replace(monkeypatch, "smollm3.SmolLM3Model.forward", faulty)
    found = posenc.check.all(built("SmolLM3ForCausalLM", **TEXT)).faults[0]
    assert (found.what, found.look.partition(",")[0]) == ("shift", "position_ids: they are not read")
