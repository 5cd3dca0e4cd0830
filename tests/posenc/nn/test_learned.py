"""The learned layer: what a model that trains it may expect."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.learned import interpolate_table
from posenc.nn import LearnedEncoding


def plain(*arguments: Any, **options: Any) -> LearnedEncoding:
    """A layer without dropout, with rows that are far from small."""
    torch.manual_seed(0)
    return LearnedEncoding(*arguments, **{"dropout": 0.0, "std": 1.0, **options})


@pytest.mark.parametrize("shape", [(3, 50, 8), (50, 8), (1, 0, 8)])
def test_adds_the_rows_and_keeps_the_shape(shape: tuple[int, ...]) -> None:
    layer = plain(8, 60)
    x = torch.randn(shape)
    assert torch.equal(layer(x), x + layer.weight[: shape[-2]])


@pytest.mark.parametrize(("max_len", "dim", "size"), [(512, 768, 393_216), (197, 768, 151_296)])
def test_sizes_of_bert_and_vit(max_len: int, dim: int, size: int) -> None:
    layer = LearnedEncoding(dim, max_len)
    assert sum(parameter.numel() for parameter in layer.parameters()) == size
    assert list(layer.state_dict()) == ["weight"]


@pytest.mark.parametrize("std", [0.02, 0.5, 0.0])
def test_rows_start_with_the_standard_deviation_asked_for(std: float) -> None:
    torch.manual_seed(0)
    weight = LearnedEncoding(512, 1000, std=std).weight
    assert weight.std().item() == pytest.approx(std, rel=0.01)
    assert abs(weight.mean().item()) <= 0.01 * std
    assert LearnedEncoding(512, 1000).weight.std().item() == pytest.approx(0.02, rel=0.01)


def test_dropout_acts_while_training_only() -> None:
    torch.manual_seed(0)
    layer = LearnedEncoding(64, 100)
    x = torch.full((100, 100, 64), 3.0)
    trained = layer(x)
    assert (trained == 0).double().mean().item() == pytest.approx(0.1, abs=0.003)
    kept = trained != 0
    torch.testing.assert_close(trained[kept], (layer.eval()(x) / 0.9)[kept])


@given(length=st.integers(1, 12), offset=st.integers(0, 30), clamp=st.booleans())
def test_token_by_token_equals_the_full_pass(length: int, offset: int, clamp: bool) -> None:
    layer = plain(4, 20, overflow="clamp") if clamp else plain(4, 42)
    x = torch.randn(2, length, 4)
    full = layer(x, offset=offset)
    steps = [layer(x[:, j : j + 1], offset=offset + j) for j in range(length)]
    assert torch.equal(torch.cat(steps, dim=1), full)
    assert torch.equal(layer(x, positions=offset + torch.arange(length)), full)


def test_positions_per_sentence() -> None:
    layer = plain(4, 5)
    positions = torch.tensor([[0, 1, 2], [4, 0, 0]])
    x = torch.randn(2, 3, 4)
    assert torch.equal(layer(x, positions=positions), x + layer.weight[positions])


def test_clamping_gives_the_last_row() -> None:
    layer = plain(4, 5, overflow="clamp")
    result = layer(torch.zeros(1, 9, 4))[0]
    assert torch.equal(result[:5], layer.weight)
    assert (result[5:] == layer.weight[4]).all()


def test_only_visited_rows_get_a_gradient() -> None:
    layer = plain(4, 6)
    layer(torch.zeros(2, 3, 4), offset=1).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad[:, 0].tolist() == [0, 2, 2, 2, 0, 0]


@pytest.mark.parametrize("step", [1, 4])
def test_a_step_of_sgd_leaves_other_rows_as_they_are(step: int) -> None:
    layer = plain(4, 6)
    before = layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(step):
        optimizer.zero_grad()
        layer(torch.randn(1, 3, 4)).square().sum().backward()
        optimizer.step()
    assert (layer.weight[:3] != before[:3]).all()
    assert torch.equal(layer.weight[3:], before[3:])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_table_follows_to_and_the_result_has_the_dtype_of_x(dtype: torch.dtype) -> None:
    layer = plain(8, 20)
    x = torch.randn(2, 20, 8)
    mixed = layer(x.to(dtype))
    assert mixed.dtype == dtype
    assert torch.equal(mixed, (x.to(dtype) + layer.weight).to(dtype))
    assert layer(x).dtype == torch.float32
    layer.to(dtype)
    assert layer.weight.dtype == dtype
    assert layer(x.to(dtype)).dtype == dtype
    assert layer(x).dtype == torch.float32


@pytest.mark.parametrize("overflow", ["error", "clamp"])
def test_compiles_into_one_graph(overflow: str) -> None:
    layer = plain(8, 20, overflow=overflow)
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    for length, offset in [(3, 0), (5, 0), (1, 0), (5, 7), (1, 19)]:
        x = torch.randn(2, length, 8)
        assert torch.equal(compiled(x, offset=offset), layer(x, offset=offset))


# --- checkpoints


def test_a_checkpoint_of_another_length_is_refused() -> None:
    with pytest.raises(RuntimeError, match="size mismatch for weight"):
        plain(8, 5).load_state_dict(plain(8, 7).state_dict())


@given(saved=st.integers(1, 20), wanted=st.integers(1, 20))
def test_on_request_it_is_interpolated(saved: int, wanted: int) -> None:
    old = plain(3, saved)
    layer = plain(3, wanted, resize_on_load=True)
    model = torch.nn.Sequential(layer)
    state = torch.nn.Sequential(old).state_dict()
    model.load_state_dict(state)
    assert torch.equal(layer.weight, interpolate_table(old.weight.detach(), wanted))
    assert state["0.weight"].shape == (saved, 3)  # the caller's checkpoint is left alone


def test_another_width_is_refused_even_then() -> None:
    layer = plain(8, 5, resize_on_load=True)
    for saved in (torch.zeros(5, 7), torch.zeros(1, 5, 8), torch.zeros(8), torch.zeros(0, 8)):
        with pytest.raises(RuntimeError, match="size mismatch for weight"):
            layer.load_state_dict({"weight": saved})
    with pytest.raises(RuntimeError, match="Missing key"):
        layer.load_state_dict({})


def test_a_checkpoint_of_an_embedding_loads() -> None:
    embedding = torch.nn.Embedding(5, 8)
    layer = plain(8, 5)
    layer.load_state_dict(embedding.state_dict())
    assert torch.equal(layer.weight, embedding.weight)


def test_resize_keeps_the_parameter_and_says_its_length() -> None:
    layer = plain(3, 4)
    parameter, before = layer.weight, layer.weight.detach().clone()
    layer(torch.zeros(1, 4, 3)).sum().backward()
    assert layer.resize(7) is layer
    assert layer.weight is parameter
    assert layer.weight.requires_grad
    assert layer.weight.grad is None
    assert layer.max_len == 7
    assert torch.equal(layer.weight, interpolate_table(before, 7))
    assert layer(torch.zeros(1, 7, 3)).shape == (1, 7, 3)
    layer(torch.zeros(1, 7, 3)).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.shape == (7, 3)
    layer.resize(20, align_corners=False)
    assert layer.max_len == 20
    assert "max_len=20" in repr(layer)


def test_an_optimizer_with_averages_of_the_old_shape_raises() -> None:
    layer = plain(3, 4)
    optimizer = torch.optim.Adam(layer.parameters())
    layer(torch.zeros(1, 4, 3)).sum().backward()
    optimizer.step()
    layer.resize(8)
    layer(torch.zeros(1, 8, 3)).sum().backward()
    with pytest.raises(RuntimeError, match="size of tensor"):
        optimizer.step()


def test_pickle_and_deepcopy() -> None:
    layer = plain(8, 5, overflow="clamp")
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    x = torch.randn(1, 7, 8)
    for twin in (copy.deepcopy(layer), torch.load(buffer, weights_only=False)):
        assert torch.equal(twin(x), layer(x))
    twin = copy.deepcopy(layer).resize(9)
    assert (layer.max_len, twin.max_len) == (5, 9)


def test_meta_device_then_materialised() -> None:
    with torch.device("meta"):
        layer = LearnedEncoding(64, 500)
    assert layer.weight.is_meta
    layer.to_empty(device="cpu").reset_parameters()
    assert layer.weight.std().item() == pytest.approx(0.02, rel=0.05)


# --- errors


def test_errors_name_the_argument() -> None:
    layer = plain(8, 5)
    with pytest.raises(ValueError, match=r"positions 0\.\.5 must lie in 0\.\.4: .* max_len=5"):
        layer(torch.zeros(1, 6, 8))
    with pytest.raises(ValueError, match=r"positions 3\.\.5 must lie"):
        layer(torch.zeros(1, 3, 8), offset=3)
    for overflow in ("error", "clamp"):
        with pytest.raises(ValueError, match="offset must be at least 0, got -1"):
            plain(8, 5, overflow=overflow)(torch.zeros(1, 3, 8), offset=-1)
    with pytest.raises(ValueError, match=r"positions must lie in 0\.\.4, .*got 5"):
        layer(torch.zeros(1, 2, 8), positions=torch.tensor([0, 5]))
    with pytest.raises(TypeError, match=r"positions must be integers, got dtype torch\.float32"):
        layer(torch.zeros(1, 2, 8), positions=torch.tensor([0.0, 1.0]))
    for offset in (1.0, True, torch.tensor(1)):
        with pytest.raises(TypeError, match="offset must be an int, got"):
            layer(torch.zeros(1, 2, 8), offset=offset)
    with pytest.raises(TypeError, match="positions must be a tensor, got list"):
        layer(torch.zeros(1, 2, 8), positions=[0, 1])
    with pytest.raises(ValueError, match=r"positions must have shape \(3,\) or \(1, 3\), got \(2,\)"):
        layer(torch.zeros(1, 3, 8), positions=torch.arange(2))
    with pytest.raises(ValueError, match="offset must be 0 when positions are given, got 1"):
        layer(torch.zeros(1, 3, 8), positions=torch.arange(3), offset=1)
    with pytest.raises(ValueError, match=r"x must have shape .* got \(1, 3, 6\)"):
        layer(torch.zeros(1, 3, 6))
    with pytest.raises(TypeError, match=r"x must be a floating tensor of embeddings, got torch\.int64"):
        layer(torch.zeros(1, 3, 8, dtype=torch.int64))
    with pytest.raises(ValueError, match="length must be at least 1, got 0"):
        layer.resize(0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dim": 0}, ValueError, "dim must be at least 1, got 0"),
        ({"dim": 8.0}, TypeError, r"dim must be an integer, got 8\.0"),
        ({"max_len": 0}, ValueError, "max_len must be at least 1, got 0"),
        ({"dropout": 1.5}, ValueError, "dropout"),
        ({"overflow": "interpolate"}, ValueError, 'overflow must be "error" or "clamp"'),
        ({"std": -1.0}, ValueError, r"std must be finite and at least 0, got -1\.0"),
        ({"std": float("nan")}, ValueError, "std must be finite"),
        ({"std": "0.02"}, TypeError, "std must be a real number, got '0.02'"),
        ({"resize_on_load": 1}, TypeError, "resize_on_load must be True or False, got 1"),
    ],
)
def test_bad_arguments_of_the_layer(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        LearnedEncoding(**{"dim": 8, "max_len": 5, **options})
