"""`check_padding` finds each fault of padding in a model that has it, and passes a model that has none."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from posenc import sinusoidal_encoding
from posenc.attention import attention
from posenc.masks import PaddingChange, check_padding, masked_mean, positions_from_mask
from posenc.nn import SinusoidalEncoding

LENGTHS = (5, 2, 7)
IDS = [torch.arange(1, n + 1) for n in LENGTHS]
EMBEDDED = [np.random.default_rng(n).normal(size=(n, 8)) for n in LENGTHS]


@dataclass
class Result:
    last_hidden_state: Tensor


class Encoder(nn.Module):
    """A small encoder over token ids, with a switch for each fault."""

    def __init__(self, *, mask: bool = True, counted: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(10, 8)
        self.add_codes = SinusoidalEncoding(8, dropout=dropout)
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.mask, self.counted = mask, counted
        self.double().eval()

    def forward(self, ids: Tensor, padding_mask: Tensor) -> Tensor:
        positions = positions_from_mask(padding_mask) if self.counted else torch.arange(ids.shape[1])
        x = self.add_codes(self.embedding(ids), positions=positions)
        return self.encoder(x, src_key_padding_mask=padding_mask if self.mask else None)


@pytest.fixture(autouse=True, params=[True, False], ids=["grad", "no_grad"])
def _both_paths(request: pytest.FixtureRequest) -> Any:
    with torch.set_grad_enabled(request.param), torch.random.fork_rng(devices=[]):
        yield


# --- What it finds ------------------------------------------------------------------------------------------


def test_passes_a_model_without_fault() -> None:
    report = check_padding(Encoder(), IDS)
    assert report.ok
    assert report.right.change < 1e-12
    assert report.left.content < 1e-12
    assert str(report) == "pads on the right: ok\npads on the left: ok"


def test_finds_a_model_that_ignores_its_mask() -> None:
    report = check_padding(Encoder(mask=False), IDS)
    assert not report.ok
    for change in (report.right, report.left):
        assert change.change > 0.1
        assert change.content > 0.01
        assert str(change).endswith("what the pads hold gets in")


def test_finds_positions_that_count_pads() -> None:
    report = check_padding(Encoder(counted=False), IDS)
    assert report.right.ok
    assert not report.left.ok
    assert report.left.change > 0.1
    assert report.left.content < 1e-12
    assert "not by what the pads hold, but by their number" in str(report.left)


def test_finds_pooling_over_all_places() -> None:
    model = Encoder()
    assert not check_padding(lambda ids, mask: model(ids, mask).mean(dim=1), IDS).ok
    assert check_padding(lambda ids, mask: masked_mean(model(ids, mask), mask), IDS).ok


def test_tells_a_denominator_from_a_content() -> None:
    """Zeroed pads in a mean: their content is gone, their number is not."""

    def model(x: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        return np.where(padding_mask[..., None], 0, x).mean(axis=1)

    report = check_padding(model, EMBEDDED)
    assert not report.ok
    assert report.right.content == 0


def test_finds_a_row_without_keys_that_spreads() -> None:
    """Causal, padded left: NaN without gradients, on torch's fast path alone."""

    def model(ids: Tensor, padding_mask: Tensor) -> Tensor:
        n = ids.shape[1]
        encoder = Encoder()
        x = encoder.add_codes(encoder.embedding(ids), positions=positions_from_mask(padding_mask))
        future = torch.ones(n, n, dtype=torch.bool).triu(1)
        return encoder.encoder(x, mask=future, src_key_padding_mask=padding_mask)

    report = check_padding(model, IDS)
    assert report.right.ok
    assert report.left.ok == torch.is_grad_enabled()
    if not report.left.ok:
        assert math.isnan(report.left.change)
        assert str(report.left) == "outputs become NaN: is there a query without any key?"


def test_nan_in_one_sequence_is_enough() -> None:
    def model(x: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        few = (~padding_mask).sum(axis=1) == 2
        return np.where((few & padding_mask.any(axis=1))[:, None, None], math.nan, x)

    report = check_padding(model, EMBEDDED)
    assert math.isnan(report.right.change)
    assert not report.ok


def test_embeddings_are_tried_with_more_than_zeros() -> None:
    """A sum does not see zeros, but pads of embeddings need not be zeros; pads of ids hold `pad_value`."""
    report = check_padding(lambda x, padding_mask: x.sum(axis=1), EMBEDDED)
    assert not report.ok
    ids = [np.arange(1, n + 1) for n in LENGTHS]
    assert check_padding(lambda x, padding_mask: x.sum(axis=1) * 1.0, ids).ok
    assert not check_padding(lambda x, padding_mask: x.sum(axis=1) * 1.0, ids, pad_value=3).ok


def test_change_grows_with_the_number_of_pads() -> None:
    model = Encoder(mask=False)
    changes = [check_padding(model, IDS, pads=pads).right.change for pads in (1, 20)]
    assert changes[0] < changes[1]


# --- How it calls -------------------------------------------------------------------------------------------


def test_polarity_by_the_name_of_the_parameter() -> None:
    seen: dict[str, Any] = {}
    model = Encoder()

    def by_attention_mask(input_ids: Tensor, attention_mask: Tensor) -> Result:
        seen["attention_mask"] = attention_mask
        return Result(model(input_ids, attention_mask == 0))

    def by_source(src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None) -> Any:
        assert mask is None
        seen["src"] = src_key_padding_mask
        return (model(src, src_key_padding_mask), "something else")

    assert check_padding(by_attention_mask, IDS).ok
    assert check_padding(by_source, IDS).ok
    assert seen["attention_mask"].dtype == torch.int64
    torch.testing.assert_close(seen["attention_mask"] == 0, seen["src"])
    assert seen["src"].dtype == torch.bool


def test_torch_encoder_as_it_is() -> None:
    x = [torch.from_numpy(row) for row in EMBEDDED]
    assert check_padding(Encoder().encoder, x).ok


def test_embeddings_go_to_inputs_embeds() -> None:
    def model(
        input_ids: Any = None, attention_mask: Any = None, inputs_embeds: np.ndarray | None = None
    ) -> np.ndarray:
        assert input_ids is None
        assert inputs_embeds is not None
        x = inputs_embeds
        return attention(x, x, x, mask=(attention_mask == 0)[:, None])[0]

    assert check_padding(model, EMBEDDED).ok
    assert check_padding(model, {"inputs_embeds": np.stack([EMBEDDED[0]] * 2)}).ok


def test_a_batch_of_a_tokenizer() -> None:
    """The pads that it has are taken off first; further entries follow their tokens."""
    model = Encoder()

    alone = []

    def wants_types(input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor) -> Tensor:
        if len(input_ids) == 1:
            alone.append(input_ids.tolist())
        return model(input_ids, attention_mask == 0) * (1 + token_type_ids[..., None])

    ids = torch.tensor([[1, 2, 3, 0], [4, 5, 0, 0]])
    batch = {"input_ids": ids, "attention_mask": (ids > 0).long(), "token_type_ids": ids % 2}
    assert check_padding(wants_types, batch).ok
    assert alone[:2] == [[[1, 2, 3]], [[4, 5]]]
    with_types = check_padding(lambda **entries: wants_types(**entries), batch)
    assert with_types.ok


def test_a_model_that_finds_its_pads_by_itself() -> None:
    model = Encoder()
    assert check_padding(lambda ids: model(ids, ids == 0), IDS).ok
    assert not check_padding(lambda ids: model(ids, ids == 0), IDS, pad_value=9).ok


@pytest.mark.parametrize("library", [np.asarray, array_api_strict.asarray])
def test_any_array_library(library: Callable[[Any], Any]) -> None:
    def model(x: Any, padding_mask: Any) -> Any:
        return attention(x, x, x, mask=padding_mask[:, None, :])[0]

    def careless(x: Any, padding_mask: Any) -> Any:
        return attention(x, x, x)[0]

    rows = [library(row) for row in EMBEDDED]
    assert check_padding(model, rows).ok
    assert not check_padding(careless, rows).ok


def test_one_array_and_lists_of_numbers() -> None:
    def model(ids: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        x = sinusoidal_encoding(ids, 8)
        return attention(x, x, x, mask=padding_mask[:, None])[0]

    assert check_padding(model, np.arange(6).reshape(2, 3)).ok
    assert check_padding(model, [[1, 2, 3], [4]]).ok


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tolerance_follows_the_precision(dtype: torch.dtype) -> None:
    rows = [torch.from_numpy(row).to(dtype) for row in EMBEDDED]

    def model(x: Tensor, padding_mask: Tensor) -> Tensor:
        return attention(x, x, x, mask=padding_mask[:, None])[0]

    report = check_padding(model, rows)
    assert report.ok
    assert report.right.tolerance > check_padding(model, [row.double() for row in rows]).right.tolerance
    assert check_padding(model, rows, tolerance=0.5).left.tolerance == 0.5


# --- What it refuses ----------------------------------------------------------------------------------------


def test_dropout_is_not_taken_for_a_leak() -> None:
    model = Encoder(dropout=0.1).train()
    with pytest.raises(ValueError, match=r"model must give the same outputs twice: call its eval\(\) first"):
        check_padding(model, IDS)


@pytest.mark.parametrize(
    ("model", "batch", "error", "message"),
    [
        (lambda x, m: x, [[1, 2]], TypeError, "model must give floating outputs, got dtype int64"),
        (lambda x, m: x[0], EMBEDDED[:2], ValueError, r"outputs \(batch, ...\), got shape \(5, 8\)"),
        (lambda x, m: x * math.nan, EMBEDDED, ValueError, "finite outputs without any pads"),
        (lambda x, m: x[:, :-1], EMBEDDED, ValueError, r"outputs \(batch, length, ...\) or \(batch, ...\)"),
        (lambda x, m: x, [], ValueError, "batch must hold at least one sequence, got none"),
        (lambda x, m: x, [EMBEDDED[0], EMBEDDED[1][:0]], ValueError, "at least one token in every sequence"),
        (lambda x, m: x, [EMBEDDED[0], [[1]]], TypeError, "batch must have one dtype"),
        (lambda x, m: x, {"ids": [[1]]}, ValueError, r"input_ids or inputs_embeds, got \['ids'\]"),
        (lambda x, m: x, {"input_ids": [[1]], "a": [[1, 2]]}, ValueError, r"batch\['a'\] must have shape"),
    ],
)
def test_errors_name_the_argument(model: Any, batch: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_padding(model, batch)


def test_pads_must_be_some() -> None:
    with pytest.raises(ValueError, match="pads must be at least 1, got 0"):
        check_padding(Encoder(), IDS, pads=0)


def test_text_of_every_outcome() -> None:
    assert str(PaddingChange(0.0, 0.0, 1e-8)) == "ok"
    assert "NaN" in str(PaddingChange(math.nan, 0.0, 1e-8))
    assert str(PaddingChange(0.5, 0.5, 1e-8)) == "outputs change by 0.5: what the pads hold gets in"
    assert "by their number" in str(PaddingChange(0.5, 0.0, 1e-8))
