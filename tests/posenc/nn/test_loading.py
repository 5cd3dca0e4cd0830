"""The layers in a larger whole: whatever makes, loads, moves, exports or stacks a model that holds them."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import posenc
from posenc import alibi_slopes
from posenc.nn import (
    AlibiAttention,
    AlibiBias,
    FireBias,
    GridEncoding,
    GridRotary,
    KerpleBias,
    LearnedEncoding,
    RelativeBias,
    RotaryEmbedding,
    ShawAttention,
    SinusoidalEncoding,
    T5Bias,
)


class Model(nn.Module):
    """All fixed layers, and one that is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.sinusoidal = SinusoidalEncoding(8, max_len=50, dropout=0.0)
        self.rotary = RotaryEmbedding(8, max_len=50, layout="half")
        self.heads = RotaryEmbedding(8, max_len=50, frequencies=np.geomspace(1.0, 0.01, 8).reshape(2, 4))
        self.bias = AlibiBias(2)
        self.grid = GridEncoding(8, (2, 4), class_tokens=1, dropout=0.0)
        self.places = GridRotary(8, (2, 4), class_tokens=1)
        self.attention = AlibiAttention(2, slopes=alibi_slopes(4)[2:])
        self.t5 = T5Bias(2)

    def forward(self, x: Tensor) -> Tensor:
        """x: (batch, 2 heads, seq, 8)."""
        x = self.sinusoidal(self.grid(x.flatten(0, 1))).view_as(x)
        q, k = self.places(*self.heads(*self.rotary(x, x)))
        length = x.shape[-2]
        return self.attention(q, k, x) + (self.bias(length).exp() + self.t5(length)) @ x


def embeddings() -> Tensor:
    return torch.randn(2, 2, 9, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model()


def on_meta() -> Model:
    with torch.device("meta"):
        return Model()


@contextlib.contextmanager
def empty_weights() -> Iterator[None]:
    """What accelerate's init_empty_weights(include_buffers=True) does."""

    def to_meta(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda *args, **options: make(*args, **{**options, "device": torch.device("meta")})

    buffer, parameter = nn.Module.register_buffer, nn.Module.register_parameter

    def register_buffer(module: nn.Module, name: str, x: Tensor | None, persistent: bool = True) -> None:
        buffer(module, name, x, persistent=persistent)
        module._buffers[name] = None if x is None else x.to("meta")

    def register_parameter(module: nn.Module, name: str, x: nn.Parameter | None) -> None:
        parameter(module, name, x)
        if x is not None:
            module._parameters[name] = nn.Parameter(x.to("meta"))

    with contextlib.ExitStack() as patches:
        for name in ("empty", "zeros", "ones", "full"):
            patches.enter_context(mock.patch.object(torch, name, to_meta(getattr(torch, name))))
        patches.enter_context(mock.patch.object(nn.Module, "register_buffer", register_buffer))
        patches.enter_context(mock.patch.object(nn.Module, "register_parameter", register_parameter))
        yield


def by_buffers(model: Model, state: dict[str, Tensor]) -> None:
    """As transformers and accelerate: what no checkpoint holds is filled with what is in memory."""
    for module in model.modules():
        for name, x in module._buffers.items():
            if x is not None:
                module._buffers[name] = torch.empty_like(x, device="cpu").fill_(7.0)
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(torch.empty_like(parameter, device="cpu"))
    model.load_state_dict(state)


def by_assignment(model: Model, state: dict[str, Tensor]) -> None:
    model.load_state_dict(state, assign=True)


def by_resetting(model: Model, state: dict[str, Tensor]) -> None:
    """As FSDP: every layer that has something, has reset_parameters too."""
    model.to_empty(device="cpu")
    for module in model.modules():
        if [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
            module.reset_parameters()  # type: ignore[operator]
    assert torch.isfinite(model.t5.weight).all()
    model.load_state_dict(state)


LOADERS = pytest.mark.parametrize("load", [by_buffers, by_assignment, by_resetting])


@LOADERS
@pytest.mark.parametrize("patched", [False, True])
def test_loaded_after_meta(load: Callable[..., None], patched: bool, model: Model) -> None:
    expected, state = model(embeddings()), model.state_dict()
    if patched:
        with empty_weights():
            other = Model()
    else:
        other = on_meta()
    assert {x.device.type for x in (*other.parameters(), *other.buffers())} == {"meta"}
    load(other, state)
    assert torch.equal(other(embeddings()), expected)
    assert other.bias(4).device.type == "cpu"


def test_emptied_and_cast(model: Model) -> None:
    expected, state = model(embeddings()), model.state_dict()
    model.to("meta").half().to_empty(device="cpu").float()
    model.load_state_dict(state)
    assert torch.equal(model(embeddings()), expected)


def test_a_pass_on_meta_gives_shapes(model: Model) -> None:
    for other in (on_meta(), model.to("meta")):
        result = other(embeddings().to("meta"))
        assert result.is_meta
        assert result.shape == (2, 2, 9, 8)


def test_shapes_are_known_of_fake_tensors(model: Model) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        assert model(torch.empty(2, 2, 9, 8)).shape == (2, 2, 9, 8)
        assert Model()(torch.empty(2, 2, 9, 8)).shape == (2, 2, 9, 8)


def test_made_in_inference_mode_and_then_trained() -> None:
    with torch.inference_mode():
        layers = SinusoidalEncoding(8), RotaryEmbedding(8), AlibiAttention(2)
    for layer, count in zip(layers, (1, 2, 3), strict=True):
        x = embeddings().requires_grad_()
        args = [x[0]] if count == 1 else [x] * count
        result = layer(*args)
        (result[0] if isinstance(result, tuple) else result).square().sum().backward()
        assert x.grad is not None
    place = torch.arange(9.0, requires_grad=True)
    layers[1](embeddings(), embeddings(), positions=place)[0].square().sum().backward()


def test_shared_saved_and_copied(model: Model) -> None:
    expected = model(embeddings())
    stream = io.BytesIO()
    torch.save(model.share_memory(), stream)
    stream.seek(0)
    assert torch.equal(torch.load(stream, weights_only=False)(embeddings()), expected)
    replica = nn.parallel.DataParallel(model)
    assert torch.equal(replica(embeddings()), expected)


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
def test_loaded_after_meta_and_compiled(model: Model) -> None:
    other = on_meta()
    by_buffers(other, model.state_dict())
    torch._dynamo.reset()
    compiled = torch.compile(other, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(embeddings()), model(embeddings()))


@pytest.mark.parametrize(
    ("layer", "name", "value"),
    [
        (SinusoidalEncoding(8), "base", 100.0),
        (SinusoidalEncoding(8), "max_len", 9000),
        (SinusoidalEncoding(8), "dim", 6),
        (RotaryEmbedding(8), "scale", 2.0),
        (RotaryEmbedding(8), "layout", "half"),
        (RotaryEmbedding(8), "frequencies", torch.ones(4)),
        (RotaryEmbedding(8), "rotary_dim", 4),
        (RotaryEmbedding(8), "max_len", 9000),
        (RotaryEmbedding(8), "table", torch.ones(8192, 8)),
        (AlibiBias(2), "num_heads", 3),
        (GridEncoding(8, (2, 4)), "shape", (4, 2)),
        (GridRotary(8, (2, 4)), "frequencies", torch.ones(2, 4)),
    ],
)
def test_what_the_table_is_made_of_cannot_be_set(layer: nn.Module, name: str, value: object) -> None:
    with pytest.raises(
        AttributeError, match=f"{name} belongs to the table .*: make a new {type(layer).__name__}"
    ):
        setattr(layer, name, value)


def test_slopes_are_a_copy() -> None:
    bias = AlibiBias(2)
    before = bias(4)
    bias.slopes.fill_(9.0)
    assert torch.equal(bias(4), before)


def test_numbers_on_meta_are_refused() -> None:
    with torch.device("meta"):
        omega, slopes = torch.ones(4), torch.ones(2)
    with pytest.raises(ValueError, match="frequencies must hold numbers, got a tensor on the meta device"):
        RotaryEmbedding(8, frequencies=omega)
    with pytest.raises(ValueError, match="slopes must hold numbers"):
        AlibiBias(2, slopes=slopes)


# --- Lengths that are left open


class OfLength(nn.Module):
    """What a model does with a bias."""

    def __init__(self, bias: nn.Module) -> None:
        super().__init__()
        self.bias = bias

    def forward(self, x: Tensor) -> Tensor:
        return self.bias(x.shape[-2]) @ x


class OfItself(nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        result = self.layer(x, x) if isinstance(self.layer, RotaryEmbedding) else self.layer(x, x, x)
        return result[0] if isinstance(result, tuple) else result


BIASES: dict[str, Callable[[], OfLength]] = {
    "AlibiBias": lambda: OfLength(AlibiBias(2, causal=False)),
    "RelativeBias": lambda: OfLength(RelativeBias(2, 4)),
    "T5Bias": lambda: OfLength(T5Bias(2)),
    "KerpleBias": lambda: OfLength(KerpleBias(2, kind="power")),
    "FireBias": lambda: OfLength(FireBias(2)),
}
OTHERS: dict[str, Callable[[], nn.Module]] = {
    "AlibiAttention": lambda: OfItself(AlibiAttention(2)),
    "ShawAttention": lambda: OfItself(ShawAttention(8, 3)),
    "Rotary": lambda: OfItself(RotaryEmbedding(8)),
}


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("name", [*BIASES, *OTHERS])
def test_export_leaves_the_length_open(name: str) -> None:
    model: nn.Module = (BIASES.get(name) or OTHERS[name])()
    length = torch.export.Dim("length", min=3, max=4096)
    exported = torch.export.export(model, (embeddings(),), dynamic_shapes=({2: length},)).module()
    for n in (9, 5, 40):
        x = torch.randn(2, 2, n, 8)
        torch.testing.assert_close(exported(x), model(x))


class AtPositions(nn.Module):
    """A layer, or a function, at positions of each sentence."""

    def __init__(self, turn: Callable[..., Any]) -> None:
        super().__init__()
        self.turn = turn

    def forward(self, x: Tensor, positions: Tensor) -> Any:
        return self.turn(x, positions)


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("name", ["RotaryEmbedding", "apply_rotary", "SinusoidalEncoding"])
def test_export_of_positions_for_each_row_leaves_the_length_open(name: str) -> None:
    """Any length, that of the batch among them, which is fixed to 2."""
    rotary, sinusoidal = RotaryEmbedding(8), SinusoidalEncoding(8, dropout=0.0)
    turn: Callable[..., Any] = {
        "RotaryEmbedding": lambda x, t: rotary(x, x, positions=t),
        "apply_rotary": lambda x, t: posenc.apply_rotary(x, t[:, None]),
        "SinusoidalEncoding": lambda x, t: sinusoidal(x[:, 0], positions=t),
    }[name]
    model, length = AtPositions(turn), torch.export.Dim("length", max=4096)
    example = torch.randn(2, 2, 9, 8), torch.arange(18).reshape(2, 9)
    exported = torch.export.export(model, example, dynamic_shapes=({2: length}, {1: length})).module()
    for n in (2, 7):
        given = torch.randn(2, 2, n, 8), torch.arange(2 * n).reshape(2, n)
        torch.testing.assert_close(exported(*given), model(*given))


@pytest.mark.parametrize("name", [*BIASES, *OTHERS])
@pytest.mark.parametrize("example", [1, 5])
def test_a_trace_is_right_for_any_length(name: str, example: int) -> None:
    """A length that torch.jit.trace kept would be broadcast where it is 1, and torch only warns."""
    model = (BIASES.get(name) or OTHERS[name])()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(model, (torch.randn(2, 2, example, 8),))
    for n in (1, 4, 9):
        x = torch.randn(2, 2, n, 8)
        torch.testing.assert_close(traced(x), model(x))


def test_a_trace_of_alibi_is_right_for_any_part_of_the_queries() -> None:
    """Whether there is one query, and whether there are as many as keys, is not kept from the example."""
    model = AlibiAttention(2)
    keys = torch.randn(2, 2, 9, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for example in (1, 9):
            traced = torch.jit.trace(model, (keys[:, :, :example], keys, keys))
            for n in (1, 3, 9):
                query = torch.randn(2, 2, n, 8)
                torch.testing.assert_close(traced(query, keys, keys), model(query, keys, keys))


def test_a_traced_length_is_followed_or_refused() -> None:
    def follow(function: Callable[[Tensor], Tensor], n: int) -> Callable[[Tensor], Tensor]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced: Callable[[Tensor], Tensor] = torch.jit.trace(
                function, (torch.zeros(n),), check_trace=False
            )
        return traced

    masks = follow(lambda x: posenc.causal_mask(x.shape[0], like=x), 1)
    for n in (1, 4):
        assert torch.equal(masks(torch.zeros(n)), posenc.causal_mask(n, like=torch.zeros(0)))
    for refused in (
        lambda x: torch.from_numpy(posenc.causal_mask(x.shape[0])),
        lambda x: posenc.relative.toeplitz_bias(torch.zeros(9), x.shape[0]),
        lambda x: posenc.forget_bias(-x, x.shape[0]),
    ):
        with pytest.raises(TypeError, match=r"must be an int, got a length that torch\.jit\.trace follows"):
            follow(refused, 1)


@pytest.mark.parametrize("name", ["RelativeBias", "T5Bias", "KerpleBias", "FireBias"])
def test_an_ensemble_by_vmap(name: str) -> None:
    layers = [BIASES[name]().bias for _ in range(3)]
    parameters, _ = torch.func.stack_module_state(layers)
    for where in ({"n_query": 7}, {"query_positions": torch.arange(7)}):
        biases = torch.vmap(lambda p, where=where: torch.func.functional_call(layers[0], p, (), where))(
            parameters
        )
        torch.testing.assert_close(biases, torch.stack([layer(7) for layer in layers]))


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
