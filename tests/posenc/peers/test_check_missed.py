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


def short_t5() -> Any:
    return made("t5", initializer_factor=2.0).to(torch.bfloat16)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)


@pytest.mark.parametrize(
    "make", [longt5, lambda: longt5(encoder_attention_type="transient-global"), short_t5]
)
def test_a_good_model_is_quiet(make: Any) -> None:
    report = posenc.check.all(make())
    assert report.ok, report
