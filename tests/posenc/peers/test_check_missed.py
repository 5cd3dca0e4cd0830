"""Faults of kinds that earlier rounds missed, and good models of the same kinds, of which nothing is said."""

from typing import Any

import pytest
import torch
from torch import nn

import posenc.check
from tests.peers import modeling, peer, seeded
from tests.posenc.peers.faulty import Faults, made

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow

FAULTS = Faults()
planted = FAULTS.planted


def longt5(**fields: Any) -> Any:
    """Blocks of four tokens, and biases as large as trained ones."""
    library = peer("transformers")
    config = library.LongT5Config(
        vocab_size=97, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0,
        **({"local_radius": 3} | fields),
    )  # fmt: skip

    def make() -> Any:
        model = library.LongT5ForConditionalGeneration(config)
        for name, table in model.named_parameters():
            if "relative_attention_bias" in name:
                nn.init.normal_(table)
        return model

    return seeded(make)


def bias_of_blocks(patch: Patch, changed: Any) -> None:
    """The bias (1, 1, heads, block, 3 blocks) of LongT5's encoder, changed."""
    kind = modeling("longt5").LongT5LocalAttention
    usual = kind.compute_bias
    patch.setattr(kind, "compute_bias", lambda self, length: changed(usual(self, length), length))


@planted("bias")
def longt5_gives_the_block_before_the_bias_of_its_own(patch: Patch) -> Any:
    bias_of_blocks(patch, lambda bias, n: torch.cat([bias[..., n : 2 * n], bias[..., n:]], -1))
    return longt5()


@planted("queries and keys are exchanged")
def longt5_exchanges_queries_and_keys(patch: Patch) -> Any:
    bias_of_blocks(patch, lambda bias, n: bias.flip(-1).flip(-2))
    return longt5()


def buckets_of(patch: Patch, name: str, changed: Any) -> None:
    """Another function of (offsets, bidirectional, buckets, distance)."""
    m = modeling(name)
    for kind in (each for each in vars(m).values() if hasattr(each, "_relative_position_bucket")):
        usual = kind._relative_position_bucket

        def faulty(offsets: Any, bidirectional: Any = True, num_buckets: int = 32, max_distance: int = 128,
                   usual: Any = usual) -> Any:  # fmt: skip
            return changed(usual, offsets, bidirectional, num_buckets, max_distance)

        patch.setattr(kind, "_relative_position_bucket", staticmethod(faulty))


def linear(_usual: Any, offsets: Any, bidirectional: Any, buckets: int, _distance: int) -> Any:
    side = buckets // 2 if bidirectional else buckets
    far = offsets.abs() if bidirectional else (-offsets).clamp(min=0)
    return far.clamp(max=side - 1) + side * (offsets > 0) * bool(bidirectional)


@planted("without the logarithm")
def t5_has_buckets_without_the_logarithm(patch: Patch) -> Any:
    buckets_of(patch, "t5", linear)
    return made("t5", initializer_factor=2.0)


@planted("without the logarithm")
def longt5_has_buckets_without_the_logarithm(patch: Patch) -> Any:
    buckets_of(patch, "longt5", linear)
    return longt5(relative_attention_num_buckets=8, relative_attention_max_distance=16)


@planted("an offset of -128 has bucket 14, and by the paper bucket 15")
def t5_gives_far_tokens_the_bucket_before_the_last(patch: Patch) -> Any:
    def faulty(usual: Any, offsets: Any, both: Any, buckets: int, distance: int) -> Any:
        found, side = usual(offsets, both, buckets, distance), buckets // 2 if both else buckets
        return torch.where(offsets.abs() >= distance, found - 1, found) if side else found

    buckets_of(patch, "t5", faulty)
    return made("t5", initializer_factor=2.0)


@planted("an offset of -32 has bucket 0, and by the paper bucket 15")
def longt5_gives_far_tokens_the_first_bucket(patch: Patch) -> Any:
    def faulty(usual: Any, offsets: Any, both: Any, buckets: int, distance: int) -> Any:
        return usual(torch.where(offsets.abs() < distance, offsets, 0), both, buckets, distance)

    buckets_of(patch, "longt5", faulty)
    return longt5(local_radius=127, relative_attention_max_distance=32)


@planted("layer 1 does not add it")
def t5_forgets_the_bias_after_the_first_layer(patch: Patch) -> Any:
    stack = modeling("t5").T5LayerSelfAttention
    usual = stack.forward

    def faulty(self: Any, x: Any, *given: Any, **more: Any) -> Any:
        if self.SelfAttention.layer_idx == 1 and not self.SelfAttention.is_decoder:
            more["position_bias"] = 0 * more["position_bias"]
        return usual(self, x, *given, **more)

    patch.setattr(stack, "forward", faulty)
    return made("t5", initializer_factor=2.0)


@planted("chunks count the pads")
def llama4_counts_pads_in_chunks(patch: Patch) -> Any:
    m = peer("transformers").masking_utils
    usual = m.chunked_overlay
    patch.setattr(m, "chunked_overlay", lambda size, pads: usual(size, 0 * pads))
    return made("llama4_text")


T5GEMMA: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 8, "max_position_embeddings": 512,
    "layer_types": ["sliding_attention", "full_attention"],
}  # fmt: skip


def t5gemma() -> Any:
    library = peer("transformers")
    part = library.T5GemmaModuleConfig(**T5GEMMA)
    config = library.T5GemmaConfig(encoder=part.to_dict(), decoder=part.to_dict(), vocab_size=97)
    return seeded(library.T5GemmaForConditionalGeneration, config)


@planted("the cache of cross-attention")
def t5gemma_cuts_the_source_to_the_window(patch: Patch) -> Any:
    m = modeling("t5gemma")
    usual, made_with = m.EncoderDecoderCache, t5gemma()
    config = made_with.config.decoder
    patch.setattr(m, "EncoderDecoderCache", lambda own, _: usual(own, m.DynamicCache(config=config)))
    return made_with


@planted("the cache of cross-attention")
def t5_adds_the_source_in_each_step(patch: Patch) -> Any:
    kind = peer("transformers").EncoderDecoderCache
    usual = kind.__init__

    class Never(dict[int, bool]):
        def get(self, *_: Any) -> Any:
            return False

    def faulty(self: Any, *caches: Any) -> None:
        usual(self, *caches)
        self.is_updated = Never()

    patch.setattr(kind, "__init__", faulty)
    return made("t5", initializer_factor=2.0)


SMALL: dict[str, Any] = {
    "vocab_size": 97, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512, "initializer_range": 0.2,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


def causal(name: str, **fields: Any) -> Any:
    library = peer("transformers")
    config = library.AutoConfig.for_model(name, **(SMALL | fields))
    return seeded(library.AutoModelForCausalLM.from_config, config)


def gemma3n() -> Any:
    kinds = ["sliding_attention", "full_attention"] * 2
    return causal(
        "gemma3n_text", num_hidden_layers=4, intermediate_size=[48] * 4, sliding_window=8, layer_types=kinds,
        num_kv_shared_layers=2, vocab_size_per_layer_input=97, hidden_size_per_layer_input=8, laurel_rank=8,
        activation_sparsity_pattern=[0.0] * 4,
    )  # fmt: skip


def told(patch: Patch, kind: Any, name: str) -> list[bool]:
    """Whether the last call of forward was given an argument of this name."""
    usual, given = kind.forward, [False]

    def kept(self: Any, *rest: Any, **more: Any) -> Any:
        given[0] = more.get(name) is not None
        return usual(self, *rest, **more)

    patch.setattr(kind, "forward", kept)
    return given


@planted("with an empty cache: keys of layer 0 are not those without a cache, they are not turned")
def llama_does_not_turn_keys_that_it_caches(patch: Patch) -> Any:
    m = modeling("llama")
    turn, kept = m.apply_rotary_pos_emb, told(patch, m.LlamaAttention, "past_key_values")

    def faulty(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        return (turn(q, k, cos, sin)[0], k) if kept[0] else turn(q, k, cos, sin)

    patch.setattr(m, "apply_rotary_pos_emb", faulty)
    return causal("llama")


@planted("with an empty cache: queries of layer 0 are not those without a cache")
def hunyuan_does_not_turn_queries_back_with_a_cache(patch: Patch) -> Any:
    m = modeling("hunyuan_v1_dense")
    turn, kept = m.apply_rotary_pos_emb, told(patch, m.HunYuanDenseV1Attention, "past_key_values")

    def faulty(q: Any, k: Any, cos: Any, sin: Any) -> Any:
        return (q.flip(1), turn(q, k, cos, sin)[1]) if kept[0] else turn(q, k, cos, sin)

    patch.setattr(m, "apply_rotary_pos_emb", faulty)
    return causal("hunyuan_v1_dense")


@planted("with an empty cache: queries of layer 2 are not those without a cache")
def gemma3n_turns_queries_of_shared_keys_one_place_less_with_a_cache(patch: Patch) -> Any:
    attention = modeling("gemma3n").Gemma3nTextAttention
    usual = attention.forward

    def faulty(self: Any, *given: Any, **more: Any) -> Any:
        if more.get("past_key_values") is not None and self.is_kv_shared_layer:
            more["position_embeddings"] = tuple(each.roll(1, 1) for each in more["position_embeddings"])
        return usual(self, *given, **more)

    patch.setattr(attention, "forward", faulty)
    return gemma3n()


@planted("the bias of layer 0: with a mask it is 2 times that without")
def bloom_adds_its_bias_twice_with_a_mask(patch: Patch) -> Any:
    m = modeling("bloom")
    usual, masked = m.build_alibi_tensor, told(patch, m.BloomModel, "attention_mask")
    patch.setattr(m, "build_alibi_tensor", lambda *given: (1 + masked[0]) * usual(*given))
    return made("bloom", initializer_range=0.2)


@planted("the bias of layer 0: with a mask it is read backwards")
def bloom_reads_its_bias_backwards_with_a_mask(patch: Patch) -> Any:
    m = modeling("bloom")
    usual, masked = m.build_alibi_tensor, told(patch, m.BloomModel, "attention_mask")
    patch.setattr(m, "build_alibi_tensor", lambda *given: usual(*given).flip(-1 if masked[0] else ()))
    return made("bloom", initializer_range=0.2)


@planted("positions begin at 3: they must begin at 2")
def opt_reads_one_row_too_far(patch: Patch) -> Any:
    kind = modeling("opt").OPTLearnedPositionalEmbedding
    usual = kind.__init__

    def faulty(self: Any, *given: Any, **more: Any) -> None:
        usual(self, *given, **more)
        self.offset = 3

    patch.setattr(kind, "__init__", faulty)
    return made("opt")


@planted("pads or the mask of an earlier call are used again")
def llama_stretches_positions_by_the_pads_of_the_call_before(patch: Patch) -> Any:
    kind = modeling("llama").LlamaModel
    usual = kind.forward

    def faulty(self: Any, *given: Any, **more: Any) -> Any:
        if (mask := more.get("attention_mask")) is not None:
            self.pads = int((mask == 0).sum(-1).max())
        elif more.get("position_ids") is None and more.get("past_key_values") is None:
            more["position_ids"] = torch.arange(more["input_ids"].shape[1])[None] * (
                1 + getattr(self, "pads", 0)
            )
        return usual(self, *given, **more)

    patch.setattr(kind, "forward", faulty)
    return causal("llama")


@planted("pads or the mask of another text count for this one, too")
def llama_takes_off_the_pads_of_the_text_before_in_steps(patch: Patch) -> Any:
    kind = modeling("llama").LlamaModel
    usual = kind.forward

    def faulty(self: Any, *given: Any, **more: Any) -> Any:
        mask, cache = more.get("attention_mask"), more.get("past_key_values")
        if mask is not None:
            self.pads = int((mask == 0).sum(-1).max())
        elif cache is not None and cache.get_seq_length() and more.get("position_ids") is None:
            n = more["input_ids"].shape[1]
            more["position_ids"] = torch.arange(n)[None] + cache.get_seq_length() - getattr(self, "pads", 0)
        return usual(self, *given, **more)

    patch.setattr(kind, "forward", faulty)
    return causal("llama")


@planted("clamp")
def gpt2_clamps_positions_with_large_weights(patch: Patch) -> Any:
    model = made("gpt2", initializer_range=1.0)
    usual = model.transformer.wpe.forward
    patch.setattr(model.transformer.wpe, "forward", lambda places: usual(places.clamp(max=15)))
    return model


def short_t5() -> Any:
    return made("t5", initializer_factor=2.0).to(torch.bfloat16)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)


@pytest.mark.parametrize(
    "make", [longt5, lambda: longt5(encoder_attention_type="transient-global"), short_t5, t5gemma, gemma3n]
)
def test_a_good_model_is_quiet(make: Any) -> None:
    report = posenc.check.all(make())
    assert report.ok, report
