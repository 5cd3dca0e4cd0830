"""Mistakes of the twelfth and thirteenth round that had another name or none, as they came, and are named now."""

import functools
import math
from typing import Any

import pytest
import torch

from tests.peers import modeling, peer
from tests.posenc.peers.faulty import Faults, made

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow
FAULTS = Faults()
planted = FAULTS.planted
SMALL: dict[str, Any] = {
    "vocab_size": 89,
    "d_model": 48,
    "num_layers": 2,
    "pad_token_id": 0,
    "eos_token_id": 1,
}


def seeded(kind: str, **fields: Any) -> Any:
    """A model of transformers with tables of biases as large as trained ones."""
    library = peer("transformers")
    torch.manual_seed(7)
    model = getattr(library, kind)(getattr(library, kind).config_class(**SMALL | fields)).eval()
    for name, table in model.named_parameters():
        if "relative_attention_bias" in name:
            torch.nn.init.normal_(table)
    return model


@planted("its sines are right, its cosines have other frequencies")
def xglm_gives_cosines_the_next_frequency(patch: Patch) -> Any:
    def table(num_embeddings: int, embedding_dim: int, padding_idx: int | None = None) -> torch.Tensor:
        half = embedding_dim // 2
        step, index = math.log(10000) / (half - 1), torch.arange(half).float()
        sines, cosines = torch.exp(-step * index), torch.exp(-step * (index + 0.5))  # 2i, and 2i + 1
        places = torch.arange(num_embeddings).float()[:, None]
        rows = torch.cat([torch.sin(places * sines), torch.cos(places * cosines)], dim=1)
        if padding_idx is not None:
            rows[padding_idx] = 0
        return rows

    patch.setattr(modeling("xglm").XGLMSinusoidalPositionalEmbedding, "get_embedding", staticmethod(table))
    return seeded("XGLMForCausalLM", ffn_dim=64, attention_heads=4, max_position_embeddings=128)


@planted("positions begin at 0: they must begin at 2, after the rows that are kept free")
def bart_reads_the_rows_that_are_kept_free(patch: Patch) -> Any:
    table = modeling("bart").BartLearnedPositionalEmbedding
    usual = table.__init__

    def faulty(self: Any, *given: Any, **more: Any) -> None:
        usual(self, *given, **more)
        self.offset = 0

    patch.setattr(table, "__init__", faulty)
    return made("bart")


@planted("layer 1 adds that of layer 0 in place of its own")
def umt5_adds_the_bias_of_the_first_layer(patch: Patch) -> Any:
    m = modeling("umt5")
    compute, first = m.UMT5Attention.compute_bias, dict[bool, Any]()

    def faulty(self: Any, *given: Any, **more: Any) -> Any:
        return compute(first.setdefault(self.is_decoder, self), *given, **more)

    model = seeded("UMT5ForConditionalGeneration", d_kv=12, d_ff=64, num_heads=4)
    for part in (model.encoder, model.decoder):
        attention = part.block[0].layer[0].SelfAttention
        first[attention.is_decoder] = attention
    patch.setattr(m.UMT5Attention, "compute_bias", faulty)
    return model


@planted("attention_mask of generate(): in call 1 there is none")
def llama_generates_without_the_mask_after_the_first_step(patch: Patch) -> Any:
    kind = modeling("llama").LlamaForCausalLM
    prepare = kind.prepare_inputs_for_generation

    @functools.wraps(prepare)
    def faulty(self: Any, *given: Any, **more: Any) -> Any:
        inputs = prepare(self, *given, **more)
        if not more.get("is_first_iteration", False):
            inputs.pop("attention_mask", None)
        return inputs

    patch.setattr(kind, "prepare_inputs_for_generation", faulty)
    return made("llama")


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_peer_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)
