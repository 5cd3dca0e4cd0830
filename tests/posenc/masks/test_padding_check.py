"""`check_padding` finds each fault of padding in a model that has it, and passes a model that has none."""

import math
from collections.abc import Callable
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch
from torch import Tensor, nn

from posenc import dot_product_attention, sinusoidal_encoding
from posenc.masks import check_padding, masked_mean, positions_from_mask
from posenc.nn import SinusoidalEncoding
from tests.posenc.refusals import refused

LENGTHS = (5, 2, 7)
IDS = [torch.arange(1, n + 1) for n in LENGTHS]
EMBEDDED = [np.random.default_rng(n).normal(size=(n, 8)) for n in LENGTHS]


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


def pooled(ids: Tensor, padding_mask: Tensor) -> Tensor:
    return Encoder()(ids, padding_mask).mean(dim=1)


def pooled_by_mask(ids: Tensor, padding_mask: Tensor) -> Tensor:
    return masked_mean(Encoder()(ids, padding_mask), padding_mask)


def zeroed_mean(x: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
    """The content of the pads is gone, their number is not."""
    return np.where(padding_mask[..., None], 0, x).mean(axis=1)


def added_up(x: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
    """A sum does not see zeros, but what else pads may hold."""
    return x.sum(axis=1) * 1.0


# Whether outputs change by pads of zeros, and by what pads hold: right, left.
WHOLE, NUMBER, HIDDEN, NOTHING = (True, True), (True, False), (False, True), (False, False)


@pytest.mark.parametrize(
    ("model", "batch", "right", "left"),
    [
        (Encoder(), IDS, NOTHING, NOTHING),
        (Encoder(mask=False), IDS, WHOLE, WHOLE),
        (Encoder(counted=False), IDS, NOTHING, NUMBER),
        (pooled, IDS, WHOLE, WHOLE),
        (pooled_by_mask, IDS, NOTHING, NOTHING),
        (zeroed_mean, EMBEDDED, NUMBER, NUMBER),
        (added_up, EMBEDDED, HIDDEN, HIDDEN),
        (added_up, [ids.numpy() for ids in IDS], HIDDEN, HIDDEN),
    ],
)
def test_what_gets_in_is_found_and_named(model: Any, batch: list[Any], right: Any, left: Any) -> None:
    report = check_padding(model, batch)
    for found, wanted in ((report.right, right), (report.left, left)):
        sizes = found.change, found.content
        assert [size > 0.01 for size in sizes] == [*wanted]
        assert all(size > 0.01 or size < 1e-12 for size in sizes)
        assert not found.inverted
        says = {NOTHING: "ok", NUMBER: "not by what the pads hold, but by their number"}
        assert says.get(wanted, "what the pads hold gets in") in str(found)
        assert found.ok == (wanted == NOTHING)
    assert report.ok == (right == left == NOTHING)
    assert str(report) == f"pads on the right: {report.right}\npads on the left: {report.left}"
    more = check_padding(model, batch, pads=20)
    assert (more.right.change > report.right.change + 0.01) == right[0]


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


def bias_free(*, inverted: bool) -> Callable[[Tensor, Tensor], Tensor]:
    """Without biases, positions or a norm, and with pads of zeros: nothing tells what the mask lets in."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        embedding = nn.Embedding(10, 8, padding_idx=0, dtype=torch.float64)

    def model(ids: Tensor, padding_mask: Tensor) -> Tensor:
        x = embedding(ids)
        return (
            x
            + dot_product_attention(x, x, x, key_padding_mask=~padding_mask if inverted else padding_mask)[0]
        )

    return model


def test_finds_an_inverted_mask_that_changes_nothing_at_zeros() -> None:
    assert check_padding(bias_free(inverted=False), IDS).ok
    report = check_padding(bias_free(inverted=True), IDS)
    for change in (report.right, report.left):
        assert change.change < 1e-12
        assert change.content > 0.1
        assert not change.ok
        assert change.inverted
        assert str(change).endswith("what the pads hold gets in: the model takes True for a real token")


def test_an_inverted_mask_may_be_nan_at_once() -> None:
    """Alone, no place is a pad, so with the mask turned round no query has a key."""
    model = Encoder()
    with torch.no_grad(), pytest.raises(ValueError, match="does it take True in its mask, where nothing"):
        check_padding(lambda ids, mask: model(ids, ~mask), IDS)


# --- How it calls -------------------------------------------------------------------------------------------


class Named(nn.Module):
    """A layer with the polarity of torch under the name, and in the place, of another one."""

    def __init__(self, inner: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        return self.inner(input_ids, attention_mask)


WRAPPERS: dict[str, Callable[[nn.Module], Callable[..., Tensor]]] = {
    "itself": lambda model: model,
    "compiled": lambda model: torch.compile(model, backend="eager", dynamic=True),
    "parallel": lambda model: nn.DataParallel(model, device_ids=[]),
    "any arguments": lambda model: lambda *given: model(*given),
}


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("name", WRAPPERS)
def test_true_is_padding_whatever_the_names_and_the_wrapper(name: str) -> None:
    if name == "compiled" and torch.is_grad_enabled():
        return  # a wrapper all the same
    torch._dynamo.reset()
    assert check_padding(WRAPPERS[name](Named(bias_free(inverted=False))), IDS[:2]).ok
    assert not check_padding(WRAPPERS[name](Named(bias_free(inverted=True))), IDS[:2]).ok


def test_a_model_that_finds_its_pads_by_itself() -> None:
    """It relies on what the pads hold: a fault, unless the function that wraps it writes that."""
    model = Encoder()
    assert not check_padding(lambda ids, mask: model(ids, ids == 0), IDS).ok

    def by_id(ids: Tensor, mask: Tensor) -> Tensor:
        ids = ids.masked_fill(mask, 0)
        return model(ids, ids == 0)

    assert check_padding(by_id, IDS).ok


@pytest.mark.parametrize("library", [np.asarray, array_api_strict.asarray])
def test_any_array_library(library: Callable[[Any], Any]) -> None:
    def model(x: Any, padding_mask: Any) -> Any:
        return dot_product_attention(x, x, x, key_padding_mask=padding_mask)[0]

    def careless(x: Any, padding_mask: Any) -> Any:
        return dot_product_attention(x, x, x)[0]

    rows = [library(row) for row in EMBEDDED]
    assert check_padding(model, rows).ok
    assert not check_padding(careless, rows).ok


def test_one_array_and_lists_of_numbers() -> None:
    def model(ids: np.ndarray, padding_mask: np.ndarray) -> np.ndarray:
        x = sinusoidal_encoding(ids, 8)
        return dot_product_attention(x, x, x, key_padding_mask=padding_mask)[0]

    assert check_padding(model, np.arange(6).reshape(2, 3)).ok
    assert check_padding(model, [[1, 2, 3], [4]]).ok


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tolerance_follows_the_precision(dtype: torch.dtype) -> None:
    rows = [torch.from_numpy(row).to(dtype) for row in EMBEDDED]

    def model(x: Tensor, padding_mask: Tensor) -> Tensor:
        return dot_product_attention(x, x, x, key_padding_mask=padding_mask)[0]

    report = check_padding(model, rows)
    assert report.ok
    assert report.right.tolerance > check_padding(model, [row.double() for row in rows]).right.tolerance
    assert check_padding(model, rows, tolerance=0.5).left.tolerance == 0.5


# --- What it refuses ----------------------------------------------------------------------------------------


def test_dropout_is_not_taken_for_a_leak() -> None:
    model = Encoder(dropout=0.1).train()
    with pytest.raises(ValueError, match=r"model must give the same outputs twice: call its eval\(\) first"):
        check_padding(model, IDS)


def same(x: Any, mask: Any) -> Any:
    return x * 1.0


LIST: Any = EMBEDDED


test_errors_name_the_argument = refused([
    (lambda: check_padding(lambda x, m: x, [[1, 2]]), TypeError, "model must give floating outputs, got"),
    (lambda: check_padding(lambda x, m: x[0], EMBEDDED[:2]), ValueError, r"outputs \(batch, ...\), .* \(5, 8\)"),
    (lambda: check_padding(lambda x, m: x * math.nan, EMBEDDED), ValueError, "finite outputs without any pads"),
    (lambda: check_padding(lambda x, m: x[:, :-1], EMBEDDED), ValueError, r"outputs \(batch, length, ...\) or"),
    (lambda: check_padding(same, []), ValueError, "batch must hold at least one sequence, got none"),
    (lambda: check_padding(same, [EMBEDDED[0][:0]]), ValueError, "at least one token in every sequence"),
    (lambda: check_padding(same, [EMBEDDED[0], [[1]]]), TypeError, "batch must have one dtype"),
    (lambda: check_padding(same, {"ids": [[1]]}), TypeError, "batch must be a list of arrays or one array, got {'ids'"),
    (lambda: check_padding(same, [EMBEDDED[0], None]), TypeError, r"batch\[1\] must be an array, got None"),
    (lambda: check_padding(LIST, EMBEDDED), TypeError, "model must be a function of a batch and its mask"),
    (lambda: check_padding(lambda x, m: (x, m), EMBEDDED), TypeError, "model must give one array, got tuple: wrap it"),
    (lambda: check_padding(same, [[3, 3]], pad_value=3), ValueError, "a token other than pad_value, 3"),
])  # fmt: skip
