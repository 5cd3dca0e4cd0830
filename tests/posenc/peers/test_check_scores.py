"""Faults in what is added to scores or multiplies them: slopes, buckets, sinks, scales."""

from typing import Any

import pytest
import torch
from torch import nn

import posenc
import posenc.check
from posenc.check.tried import TINY
from tests.peers import modeling, peer, seeded
from tests.posenc.peers.faulty import Faults, made, replace, scaled, told
from tests.posenc.peers.small import (
    GEMMA2,
    GPT_OSS,
    behind_a_text,
    biased,
    causal,
    longt5,
    t5_decoder,
    t5_encoder,
    umt5,
)

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow

FAULTS = Faults()
planted, replaced, changed = FAULTS.planted, FAULTS.replaced, FAULTS.changed


def later_cross_attention(patch: Patch, add: Any) -> Any:
    """What cross-attention of the first layer gives to the later ones as their bias."""

    def faulty(usual: Any, self: Any, *given: Any, **more: Any) -> Any:
        out, bias, weights = usual(self, *given, **more)
        crosses = self.is_decoder and not self.is_causal
        return out, add(bias, weights) if crosses and self.layer_idx == 0 else bias, weights

    replace(patch, "t5.T5Attention.forward", faulty)
    return made("t5", num_decoder_layers=3)


def buckets_of(patch: Patch, name: str, changed: Any) -> None:
    """Another function of (offsets, bidirectional, buckets, distance)."""

    def faulty(
        usual: Any, offsets: Any, bidirectional: Any = True, num_buckets: int = 32, max_distance: int = 128
    ) -> Any:
        return changed(usual, offsets, bidirectional, num_buckets, max_distance)

    for kind in [
        name for name, each in vars(modeling(name)).items() if hasattr(each, "_relative_position_bucket")
    ]:
        replace(patch, f"{name}.{kind}._relative_position_bucket", faulty)


def linear(_usual: Any, offsets: Any, bidirectional: Any, buckets: int, _distance: int) -> Any:
    side = buckets // 2 if bidirectional else buckets
    far = offsets.abs() if bidirectional else (-offsets).clamp(min=0)
    return far.clamp(max=side - 1) + side * (offsets > 0) * bool(bidirectional)


def bloom_with_masks(patch: Patch) -> Any:
    """It makes its bias by its method, which it calls for a mask alone."""

    def faulty(usual: Any, self: Any, ids: torch.Tensor, **more: Any) -> Any:
        cache = more.get("past_key_values")
        if more.get("attention_mask") is None:
            before = cache.get_seq_length() if cache else 0
            more["attention_mask"] = torch.ones(len(ids), ids.shape[1] + before).long()
        return usual(self, ids, **more)

    replace(patch, "bloom.BloomModel.forward", faulty)
    return made("bloom", n_head=6, hidden_size=96)


def of_slopes(slopes: torch.Tensor, mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    places = (mask.cumsum(-1) - 1) * mask
    return (slopes[:, None] * places[:, None, :]).reshape(-1, 1, mask.shape[1]).to(dtype)


@replaced("the number of rows, not what they hold", "bloom.BloomAttention.forward")
def bloom_lays_its_bias_out_by_heads_first(
    usual: Any, self: Any, hidden_states: Any, residual: Any, alibi: Any, *given: Any, **more: Any
) -> Any:
    alibi = alibi.unflatten(0, (-1, self.num_heads)).transpose(0, 1).flatten(0, 1)
    return usual(self, hidden_states, residual, alibi, *given, **more)


@replaced("those of 4 heads, 2 times over", "mpt.build_mpt_alibi_tensor", n_heads=8)
def mpt_makes_slopes_on_each_of_two_devices(usual: Any, heads: Any, *given: Any, **more: Any) -> Any:
    return torch.cat([usual(heads // 2, *given, **more)] * 2)


@replaced(
    "the last begins at a distance of 128, and by the configuration at 32",
    "t5.T5Attention.__init__",
    t5_encoder,
)
def t5_does_not_hand_its_distance_on(usual: Any, self: Any, *given: Any, **more: Any) -> None:
    usual(self, *given, **more)
    self.relative_attention_max_distance = 128


@replaced("first row", "bloom.build_alibi_tensor")
def alibi_of_the_first_row(usual: Any, mask: Any, heads: Any, dtype: Any) -> Any:
    """Bloom makes its biases from the first row's mask, for all rows."""
    return usual(mask[:1].expand_as(mask), heads, dtype)


@replaced("positions of new tokens", "t5.T5Attention.compute_bias", t5_decoder)
def bias_of_new_tokens_begins_at_0(
    usual: Any, self: Any, n: Any, m: Any, device: Any = None, past_seen_tokens: Any = 0
) -> Any:
    """T5's decoder makes the biases of a new token as if nothing were in the cache."""
    return usual(self, n, m, device)


@planted("layer 1 adds the weights of layer 0 to its scores, where a bias would stand")
def t5_adds_weights_to_later_scores(patch: Patch) -> Any:
    """Pull request 4499."""
    return later_cross_attention(patch, lambda bias, weights: weights)


@planted("layer 1 adds something to its scores that does not come from its queries and keys")
def t5_adds_squares_of_weights_to_later_scores(patch: Patch) -> Any:
    return later_cross_attention(patch, lambda bias, weights: 4 * weights**2)


@changed("lm_head.forward: code of this instance that is not in its class", "llama")
def llama_with_code_of_its_own(model: Any) -> None:
    usual = model.lm_head.forward
    model.lm_head.forward = lambda x: 2 * usual(x)


@planted("the slopes: made by the formula for powers of two")
def bloom_makes_slopes_on_the_instance(patch: Patch) -> Any:
    model, slopes = bloom_with_masks(patch), 2.0 ** (-8 * torch.arange(1, 7) / 6)
    model.transformer.build_alibi_tensor = lambda mask, heads, dtype: of_slopes(slopes, mask, dtype)
    return model


@replaced("positions of new tokens", "bloom.BloomAttention.forward")
def bloom_makes_biases_of_the_new_token_alone(
    usual: Any, self: Any, hidden_states: Any, residual: Any, alibi: Any, *given: Any, **more: Any
) -> Any:
    alibi = alibi[..., :1] if hidden_states.shape[1] == 1 else alibi
    return usual(self, hidden_states, residual, alibi, *given, **more)


@replaced("attention sink", "gpt_oss.eager_attention_forward")
def gpt_oss_forgets_its_sinks_while_decoding(
    usual: Any, module: Any, q: Any, *given: Any, **more: Any
) -> Any:
    sinks = module.sinks.data.clone()
    if q.shape[2] == 1:
        module.sinks.data.fill_(-1e9)
    found = usual(module, q, *given, **more)
    module.sinks.data.copy_(sinks)
    return found


@planted("layer 1 adds that of layer 0 in place of its own")
def umt5_adds_the_bias_of_the_first_layer(patch: Patch) -> Any:
    model = umt5()
    layers = [part.block[0].layer[0].SelfAttention for part in (model.encoder, model.decoder)]
    first = {layer.is_decoder: layer for layer in layers}

    def faulty(usual: Any, self: Any, *given: Any, **more: Any) -> Any:
        return usual(first[self.is_decoder], *given, **more)

    replace(patch, "umt5.UMT5Attention.compute_bias", faulty)
    return model


@replaced("those of both sides", "t5.T5Attention._relative_position_bucket", behind_a_text)
def t5_has_buckets_of_an_encoder_in_its_decoder(
    usual: Any, offsets: Any, bidirectional: bool = True, **more: Any
) -> Any:
    return usual(offsets, bidirectional=True, **more)


@replaced("queries and keys are exchanged", "t5.T5Attention._relative_position_bucket", behind_a_text)
def t5_reads_offsets_backwards(usual: Any, offsets: Any, **more: Any) -> Any:
    return usual(-offsets, **more)


@changed("divided by the root", "bloom")
def bloom_scales_its_bias(model: Any) -> None:
    for block in model.transformer.h:
        block.self_attention.beta = block.self_attention.inv_norm_factor


@changed("layer 1: the sign of the bias", "mpt")
def mpt_turns_the_bias_of_one_layer(model: Any) -> None:
    attention = model.transformer.blocks[1].attn
    right = attention.forward
    attention.forward = lambda x, position_bias, *given, **more: right(x, -position_bias, *given, **more)


@replaced("bias", "longt5.LongT5LocalAttention.compute_bias", longt5)
def longt5_gives_the_block_before_the_bias_of_its_own(usual: Any, self: Any, n: int) -> Any:
    bias = usual(self, n)  # (1, 1, heads, block, 3 blocks)
    return torch.cat([bias[..., n : 2 * n], bias[..., n:]], -1)


@replaced("queries and keys are exchanged", "longt5.LongT5LocalAttention.compute_bias", longt5)
def longt5_exchanges_queries_and_keys(usual: Any, self: Any, n: int) -> Any:
    return usual(self, n).flip(-1).flip(-2)


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


@replaced("layer 1 does not add it", "t5.T5LayerSelfAttention.forward", initializer_factor=2.0)
def t5_forgets_the_bias_after_the_first_layer(usual: Any, self: Any, x: Any, *given: Any, **more: Any) -> Any:
    if self.SelfAttention.layer_idx == 1 and not self.SelfAttention.is_decoder:
        more["position_bias"] = 0 * more["position_bias"]
    return usual(self, x, *given, **more)


@planted("the bias of layer 0: with a mask it is 2 times that without")
def bloom_adds_its_bias_twice_with_a_mask(patch: Patch) -> Any:
    masked = told(patch, "bloom.BloomModel.forward", "attention_mask")
    replace(patch, "bloom.build_alibi_tensor", lambda usual, *given: (1 + masked[0]) * usual(*given))
    return made("bloom", initializer_range=0.2)


@planted("the bias of layer 0: with a mask it is read backwards")
def bloom_reads_its_bias_backwards_with_a_mask(patch: Patch) -> Any:
    masked = told(patch, "bloom.BloomModel.forward", "attention_mask")
    replace(
        patch, "bloom.build_alibi_tensor", lambda usual, *given: usual(*given).flip(-1 if masked[0] else ())
    )
    return made("bloom", initializer_range=0.2)


@replaced("heads are counted from 0, not from 1", "mpt.build_mpt_alibi_tensor")
def mpt_counts_heads_from_0(usual: Any, heads: Any, n: Any, most: Any = 8, device: Any = None) -> Any:
    return usual(heads, n, most, device) * 2 ** (most / heads)


@replaced("with a cache the bias of layer 0 is left out", "t5.T5Attention.compute_bias")
def t5_has_no_bias_with_a_cache(
    usual: Any, self: Any, n: int, keys: int, device: Any = None, past_seen_tokens: int = 0
) -> Any:
    return usual(self, n, keys, device, past_seen_tokens) * (past_seen_tokens == 0)


@changed("a bias of positions is added to its scores", "t5")
def t5_has_a_bias_in_cross_attention(model: Any) -> None:
    own, cross = (layer for layer in model.decoder.block[0].layer[:2])
    cross.EncDecAttention.has_relative_attention_bias = True
    cross.EncDecAttention.relative_attention_bias = own.SelfAttention.relative_attention_bias


@replaced("slopes", "bloom._get_alibi_slopes", hidden_size=48, n_head=6)
def bloom_has_slopes_by_formula(_usual: Any, heads: int, device: Any) -> Any:
    """Six heads, and slopes as if any number of heads were a power of two."""
    return 2.0 ** (-8 * torch.arange(1, 7) / 6)


@replaced("with a cache the bias of layer 0 is not that of the newest token", "bloom.BloomAttention.forward")
def bloom_has_other_slopes_while_decoding(
    usual: Any, self: Any, hidden_states: Any, residual: Any, alibi: Any, *given: Any, **more: Any
) -> Any:
    alibi = alibi.flip(0) if hidden_states.shape[1] == 1 else alibi
    return usual(self, hidden_states, residual, alibi, *given, **more)


@replaced("the bias of layer 0: with a mask it is left out", "bloom.build_alibi_tensor")
def bloom_forgets_to_count(usual: Any, mask: Any, heads: Any, dtype: Any) -> Any:
    return 0 * usual(mask, heads, dtype)


@replaced("heads are counted from 0, not from 1", "bloom._get_alibi_slopes", n_head=8)
def bloom_counts_heads_from_0(_usual: Any, heads: int, *_: Any, **__: Any) -> Any:
    return 2.0 ** (-8.0 * torch.arange(heads).float() / heads)


@planted("of the width of a head, and must be that of query_pre_attn_scalar")
def gemma2_divides_by_the_root_of_the_width(patch: Patch) -> Any:
    scaled(patch, "gemma2", "Gemma2Attention", lambda self: self.head_dim**-0.5)
    return causal("gemma2", **GEMMA2)


@planted("there is none, scores are not multiplied by")
def llama_does_not_scale_scores(patch: Patch) -> Any:
    scaled(patch, "llama", "LlamaAttention", lambda self: 1.0)
    return causal("llama")


@planted("scores are divided by 16, not by its root")
def qwen2_divides_by_the_width(patch: Patch) -> Any:
    scaled(patch, "qwen2", "Qwen2Attention", lambda self: 1 / self.head_dim)
    return causal("qwen2")


@planted("and must be that of attention_multiplier")
def granite_forgets_its_multiplier_in_one_layer(patch: Patch) -> Any:
    def factor(attention: Any) -> Any:
        own = attention.config.attention_multiplier
        return attention.head_dim**-0.5 if attention.layer_idx else own

    scaled(patch, "granite", "GraniteAttention", factor)
    return causal("granite", attention_multiplier=0.05)


@replaced(
    "the attention sink: with a cache that of layer 0 is left out",
    "gpt_oss.eager_attention_forward",
    make=causal,
    **GPT_OSS,
)
def gpt_oss_leaves_out_sinks_while_decoding(
    usual: Any, module: Any, q: Any, k: Any, *given: Any, **more: Any
) -> Any:
    held = module.sinks
    if q.shape[2] == 1 < k.shape[2]:
        module.sinks = nn.Parameter(torch.full_like(held, -1e4))
    try:
        return usual(module, q, k, *given, **more)
    finally:
        module.sinks = held


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)


def test_biases_in_bfloat16_are_seen_in_texts_of_more_than_256_tokens_alone(monkeypatch: Patch) -> None:
    def faulty(usual: Any, mask: Any, heads: Any, dtype: Any) -> Any:
        return usual(mask, heads, torch.bfloat16).to(dtype)

    replace(monkeypatch, "bloom.build_alibi_tensor", faulty)
    report = posenc.check.all(made("bloom"))
    assert report.ok, report


def test_biases_that_cannot_be_read_are_said_to_be_left_out(monkeypatch: Patch) -> None:
    model, slopes = bloom_with_masks(monkeypatch), torch.tensor(posenc.alibi_slopes(6))
    model.transformer.build_alibi_tensor = lambda mask, heads, dtype: of_slopes(slopes, mask, dtype).expand(
        -1, mask.shape[1], -1
    )  # a row for each query
    found = {each.what: each for each in posenc.check.all(model).findings}["slopes of ALiBi"]
    assert found.verdict == "left out"
    assert "no slope or bias for each head" in found.says


def test_a_bias_in_cross_attention_is_named_and_pads_are_not_blamed_on_decoding(monkeypatch: Patch) -> None:
    t5 = modeling("t5")

    class Cross(t5.T5Attention):  # type: ignore[name-defined]
        def compute_bias(self, queries: int, keys: int, device: Any = None, past_seen_tokens: Any = 0) -> Any:
            return super().compute_bias(queries, keys, device, max(0, int(past_seen_tokens) - queries))

    def faulty(usual: Any, self: Any, config: Any, layer_idx: Any = None) -> None:
        usual(self, config, layer_idx=layer_idx)
        self.EncDecAttention = Cross(config, has_relative_attention_bias=layer_idx == 0, layer_idx=layer_idx)
        self.EncDecAttention.is_decoder = False

    replace(monkeypatch, "t5.T5LayerCrossAttention.__init__", faulty)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        faults = posenc.check.all(biased(made("t5"))).faults
    assert "a bias of positions is added to its scores" in faults[0].look, faults
    assert not any("the mask while decoding" in each.look for each in faults), faults


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
