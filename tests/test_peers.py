"""What the book says, held against other people's libraries (the extra `peers`)."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest
import torch

from posenc.masks import check_padding, masked_mean, positions_from_mask

if os.environ.get("POSENC_PEERS") == "required":  # where a skipped test would go unnoticed
    transformers = importlib.import_module("transformers")
else:
    transformers = pytest.importorskip(
        "transformers", reason="the peers are not installed: pip install 'posenc[peers]'"
    )

IDS = [torch.arange(3, 3 + n) for n in (5, 2, 7)]
SIZES: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
}
# Larger than usual: at the usual 0.02 an untrained model hardly reacts to anything, pads included.
SIZES |= {"intermediate_size": 32, "initializer_range": 0.5}
GPT2_SIZES = {"vocab_size": 50, "n_embd": 16, "n_layer": 2, "n_head": 2, "bos_token_id": 1, "eos_token_id": 2}


def seeded(kind: str, **sizes: Any) -> torch.nn.Module:
    """A small randomly initialised model, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = getattr(transformers, f"{kind}Config")(**sizes)
        return getattr(transformers, f"{kind}Model")(config).eval()


@pytest.fixture(params=[torch.float32, torch.float64], ids=str)
def bert(request: pytest.FixtureRequest) -> torch.nn.Module:
    return seeded("Bert", **SIZES).to(request.param)


# --- Padding ------------------------------------------------------------------------------------------------


def test_bert_passes_on_the_right_and_counts_its_positions_by_place(bert: torch.nn.Module) -> None:
    report = check_padding(bert, IDS)
    assert report.right.ok
    assert not report.left.ok
    assert report.left.change > 0.1
    assert report.left.content <= report.left.tolerance


def test_bert_passes_on_both_sides_with_positions_from_the_mask(bert: torch.nn.Module) -> None:
    def model(ids: torch.Tensor, padding_mask: torch.Tensor) -> Any:
        real, positions = (~padding_mask).long(), positions_from_mask(padding_mask)
        return bert(input_ids=ids, attention_mask=real, position_ids=positions)

    assert check_padding(model, IDS).ok
    assert check_padding(lambda i, m: masked_mean(model(i, m).last_hidden_state, m), IDS).ok


def test_bert_without_its_mask_is_caught(bert: torch.nn.Module) -> None:
    report = check_padding(lambda input_ids, attention_mask: bert(input_ids), IDS)
    for change in (report.right, report.left):
        assert change.change > 0.1
        assert "what the pads hold gets in" in str(change)


def test_mean_over_all_places_is_caught(bert: torch.nn.Module) -> None:
    def model(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        return bert(input_ids, attention_mask=attention_mask).last_hidden_state.mean(dim=1)

    assert not check_padding(model, IDS).right.ok


def test_bert_with_the_batch_of_a_tokenizer(bert: torch.nn.Module) -> None:
    ids = torch.tensor([[5, 6, 7, 0], [8, 9, 0, 0]])
    batch = transformers.BatchEncoding(
        {"input_ids": ids, "attention_mask": (ids > 0).long(), "token_type_ids": ids % 2 * (ids > 0)}
    )
    assert check_padding(bert, batch).right.ok


def test_gpt2_needs_position_ids_on_the_left() -> None:
    model = seeded("GPT2", **GPT2_SIZES, initializer_range=0.5)
    report = check_padding(model, IDS)
    assert report.right.ok
    assert not report.left.ok

    def counted(ids: torch.Tensor, padding_mask: torch.Tensor) -> Any:
        positions = positions_from_mask(padding_mask)
        return model(input_ids=ids, attention_mask=(~padding_mask).long(), position_ids=positions)

    assert check_padding(counted, IDS).ok


def test_relative_positions_do_not_care_for_the_side() -> None:
    sizes = {"vocab_size": 50, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        t5 = transformers.T5EncoderModel(transformers.T5Config(**sizes)).eval()
    assert check_padding(t5, IDS).ok
    assert check_padding(seeded("Llama", **SIZES), IDS).ok
