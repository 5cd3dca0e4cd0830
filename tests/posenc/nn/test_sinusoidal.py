"""The sinusoidal layer: what a model that holds it may expect."""

from __future__ import annotations

import copy
import io
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import sinusoidal_encoding
from posenc.nn import SinusoidalEncoding


def recipe_table(max_len: int, dim: int, base: float = 10000.0) -> torch.Tensor:
    """The table of the common float32 recipe, which saves it as a persistent buffer "pe"."""
    t = torch.arange(max_len).unsqueeze(1)
    factor = torch.exp(torch.arange(0, dim, 2) * (-math.log(base) / dim))
    pe = torch.zeros(max_len, dim)
    pe[:, 0::2], pe[:, 1::2] = torch.sin(t * factor), torch.cos(t * factor)
    return pe.unsqueeze(0)


@pytest.mark.parametrize("shape", [(32, 50, 512), (50, 512), (1, 0, 512)])
def test_adds_the_codes_and_keeps_the_shape(shape: tuple[int, ...]) -> None:
    layer = SinusoidalEncoding(512, max_len=100).eval()
    x = torch.randn(shape)
    codes = sinusoidal_encoding(shape[-2], 512, dtype=torch.float32)
    torch.testing.assert_close(layer(x), x + codes, rtol=0, atol=1e-6)


def test_nothing_is_trained_and_nothing_is_saved() -> None:
    layer = SinusoidalEncoding(8)
    assert list(layer.parameters()) == []
    assert layer.state_dict() == {}


def test_dropout_acts_while_training_only() -> None:
    torch.manual_seed(0)
    layer = SinusoidalEncoding(64, dropout=0.1)
    x = torch.full((100, 100, 64), 3.0)
    trained = layer(x)
    assert (trained == 0).double().mean().item() == pytest.approx(0.1, abs=0.003)
    kept = trained != 0
    torch.testing.assert_close(trained[kept], (layer.eval()(x) / 0.9)[kept])


@given(length=st.integers(1, 12), offset=st.integers(0, 1000))
def test_token_by_token_equals_the_full_pass(length: int, offset: int) -> None:
    layer = SinusoidalEncoding(16, max_len=1012, dropout=0.0)
    x = torch.randn(2, length, 16)
    full = layer(x, offset=offset)
    steps = [layer(x[:, j : j + 1], offset=offset + j) for j in range(length)]
    assert torch.equal(torch.cat(steps, dim=1), full)
    positions = offset + torch.arange(length)
    torch.testing.assert_close(layer(x, positions=positions), full, rtol=0, atol=1e-6)


def test_positions_per_sentence_real_and_beyond_the_table() -> None:
    layer = SinusoidalEncoding(8, max_len=4, dropout=0.0)
    positions = torch.tensor([[0.5, 1.5], [1e4, 1e4 + 1]])
    expected = sinusoidal_encoding(positions, 8)
    torch.testing.assert_close(layer(torch.zeros(2, 2, 8), positions=positions), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_low_precision_adds_in_float32_and_rounds_once(dtype: torch.dtype) -> None:
    layer = SinusoidalEncoding(64, dropout=0.0).to(dtype)
    x = torch.randn(2, 3000, 64).to(dtype)
    result = layer(x)
    assert result.dtype == dtype
    exact = x.double() + torch.from_numpy(sinusoidal_encoding(3000, 64))
    # Half a unit in the last place, and a hair for the float32 sum; adding two rounded numbers would miss it.
    unit = torch.finfo(dtype).eps * 2 ** exact.abs().clamp(min=2**-14).log2().floor()
    assert ((result.double() - exact).abs() <= unit / 2 + 2e-7).all()
    assert layer.table.dtype == torch.float32
    assert torch.equal(layer.table, SinusoidalEncoding(64).table)


def test_casting_away_and_back_loses_nothing() -> None:
    layer = SinusoidalEncoding(64)
    before = layer.table.clone()
    layer.to(torch.bfloat16).half().double().float()
    assert torch.equal(layer.table, before)


def test_float64_input_gets_float64_codes() -> None:
    layer = SinusoidalEncoding(64, dropout=0.0)
    result = layer(torch.zeros(1, 500, 64, dtype=torch.float64), offset=1000)
    expected = sinusoidal_encoding(torch.arange(1000, 1500), 64, dtype=torch.float64)
    assert torch.equal(result[0], expected)


def test_a_checkpoint_of_another_max_len_loads_both_ways() -> None:
    long, short = SinusoidalEncoding(8, max_len=50), SinusoidalEncoding(8, max_len=5)
    short.load_state_dict(long.state_dict())
    long.load_state_dict(short.state_dict())
    assert len(long.table) == 50


def test_a_checkpoint_of_the_common_recipe_loads() -> None:
    model = torch.nn.Sequential(SinusoidalEncoding(8, max_len=50))
    model.load_state_dict({"0.pe": recipe_table(5000, 8)})
    model.load_state_dict({"0.pe": recipe_table(20, 8).transpose(0, 1)})
    with pytest.raises(RuntimeError, match=r"Unexpected key.*0\.pe"):
        model.load_state_dict({"0.pe": torch.randn(1, 50, 8)})
    for odd in (recipe_table(5, 8).to("meta"), recipe_table(5, 8).numpy(), 3):
        with pytest.raises(RuntimeError, match=r"Unexpected key.*0\.pe"):
            model.load_state_dict({"0.pe": odd})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dim", [2, 8, 512])
@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_a_table_of_the_recipe_is_known_in_any_precision(dtype: torch.dtype, dim: int, base: float) -> None:
    for length in (3, 20_000):
        layer = SinusoidalEncoding(dim, max_len=5, base=base)
        layer.load_state_dict({"pe": recipe_table(length, dim, base).to(dtype)})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_table_of_another_base_or_trained_is_reported(dtype: torch.dtype) -> None:
    recipe = recipe_table(5000, 64)
    trained = recipe.clone()
    trained[0, 7, 5] += 0.005
    for other in (recipe_table(5000, 64, base=10_050.0), trained):
        with pytest.raises(RuntimeError, match=r"Unexpected key.*pe"):
            SinusoidalEncoding(64).load_state_dict({"pe": other.to(dtype)})
    with pytest.raises(RuntimeError, match=r"Unexpected key.*pe"):
        SinusoidalEncoding(64).load_state_dict({"pe": recipe.long()})


def test_pickle_and_deepcopy() -> None:
    layer = SinusoidalEncoding(8, max_len=5, dropout=0.0, base=100.0)
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    x = torch.randn(1, 5, 8)
    for twin in (copy.deepcopy(layer), torch.load(buffer, weights_only=False)):
        assert torch.equal(twin(x), layer(x))


def test_meta_device_then_materialised() -> None:
    with torch.device("meta"):
        layer = SinusoidalEncoding(8, max_len=5)
        assert layer(torch.empty(1, 5, 8)).is_meta
    layer.to_empty(device="cpu")
    assert torch.equal(layer.table, SinusoidalEncoding(8, max_len=5).table)


def test_real_then_meta_then_materialised() -> None:
    layer = SinusoidalEncoding(8, max_len=5)
    before = layer.table.clone()
    layer.to("meta")
    layer.half()
    layer.to_empty(device="cpu")
    assert layer.table.dtype == torch.float32
    assert torch.equal(layer.table, before)


def test_to_empty_keeps_the_codes_that_nothing_would_fill_in_again() -> None:
    layer = SinusoidalEncoding(512, max_len=2000)
    before = layer.table.clone()
    assert torch.equal(layer.to_empty(device="cpu").table, before)


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
def test_compiles_into_one_graph() -> None:
    layer = SinusoidalEncoding(8, max_len=20, dropout=0.0)
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    for length, offset in [(3, 0), (5, 0), (1, 0), (5, 7), (1, 19)]:
        x = torch.randn(2, length, 8)
        assert torch.equal(compiled(x, offset=offset), layer(x, offset=offset))
    x = torch.randn(2, 3, 8)
    for positions in (torch.tensor([0, 4, 131_071]), torch.tensor([0.5, 1e5, 7.0])):
        torch.testing.assert_close(compiled(x, positions=positions), layer(x, positions=positions))
    torch.testing.assert_close(compiled(x.double(), offset=3), layer(x.double(), offset=3))


def test_gradient_passes_unchanged() -> None:
    x = torch.randn(1, 3, 8, requires_grad=True)
    SinusoidalEncoding(8, dropout=0.0)(x).sum().backward()
    assert x.grad is not None
    assert (x.grad == 1).all()


def test_errors_name_the_argument() -> None:
    layer = SinusoidalEncoding(8, max_len=5)
    with pytest.raises(ValueError, match=r"positions 0\.\.5 must lie in 0\.\.4: .* max_len=5"):
        layer(torch.zeros(1, 6, 8))
    with pytest.raises(ValueError, match=r"positions 3\.\.5 must lie"):
        layer(torch.zeros(1, 3, 8), offset=3)
    with pytest.raises(ValueError, match="offset must be at least 0, got -1"):
        layer(torch.zeros(1, 3, 8), offset=-1)
    for offset in (1.0, True, "1", None, torch.tensor([1])):
        with pytest.raises(TypeError, match="offset must be an int, got"):
            layer(torch.zeros(1, 3, 8), offset=offset)
    with pytest.raises(ValueError, match=r"x must have shape .* got \(1, 3, 6\)"):
        layer(torch.zeros(1, 3, 6))
    with pytest.raises(ValueError, match=r"x must have shape .* got \(8,\)"):
        layer(torch.zeros(8))
    with pytest.raises(TypeError, match=r"x must be a floating tensor of embeddings, got torch\.int64"):
        layer(torch.zeros(1, 3, 8, dtype=torch.int64))
    with pytest.raises(TypeError, match="x must be a floating tensor of embeddings, got list"):
        layer([[0.0]])
    with pytest.raises(ValueError, match=r"positions must have shape \(3,\) or \(1, 3\), got \(2,\)"):
        layer(torch.zeros(1, 3, 8), positions=torch.arange(2))
    with pytest.raises(ValueError, match="offset must be 0 when positions are given, got 1"):
        layer(torch.zeros(1, 3, 8), positions=torch.arange(3), offset=1)
    with pytest.raises(ValueError, match="dim must be even"):
        SinusoidalEncoding(7)
    with pytest.raises(ValueError, match="max_len must be at least 1, got 0"):
        SinusoidalEncoding(8, max_len=0)
    with pytest.raises(TypeError, match=r"max_len must be an integer, got 5\.0"):
        SinusoidalEncoding(8, max_len=5.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="dropout"):
        SinusoidalEncoding(8, dropout=1.5)
