"""The learned layer: what a model that trains it may expect."""

import copy
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


@pytest.mark.parametrize("std", [0.02, 0.5, 0.0])
def test_rows_start_with_the_standard_deviation_asked_for(std: float) -> None:
    torch.manual_seed(0)
    weight = LearnedEncoding(512, 1000, std=std).weight
    assert weight.std().item() == pytest.approx(std, rel=0.01)
    assert abs(weight.mean().item()) <= 0.01 * std
    assert LearnedEncoding(512, 1000).weight.std().item() == pytest.approx(0.02, rel=0.01)


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
    layer(torch.zeros(1, 7, 3)).sum().backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.shape == (7, 3)
    twin = copy.deepcopy(layer).resize(9)
    assert (layer.max_len, twin.max_len) == (7, 9)
    layer.resize(20, align_corners=False)
    assert layer.max_len == 20
    assert "max_len=20" in repr(layer)


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("overflow", ["error", "clamp"])
def test_rows_of_given_positions_in_one_graph(overflow: Any) -> None:
    torch._dynamo.reset()
    layer, x = LearnedEncoding(8, 20, dropout=0.0, overflow=overflow), torch.randn(1, 3, 8)
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    far = torch.tensor([4, 30, 0])
    assert torch.equal(compiled(x, positions=far % 20), layer(x, positions=far % 20))
    with pytest.raises(IndexError):
        compiled(x, positions=torch.tensor([4, -1, 0]))
    if overflow == "clamp":
        assert torch.equal(compiled(x, positions=far), layer(x, positions=far))
    else:
        with pytest.raises(IndexError):
            compiled(x, positions=far)
