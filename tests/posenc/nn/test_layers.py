"""What every layer promises a model that holds it: decoding, precision, saving, moving, compiling, training."""

import contextlib
import copy
import io
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounter
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

import posenc
from posenc.grids import grid_coordinates, grid_encoding
from posenc.nn import (
    AlibiAttention,
    AlibiBias,
    ContextualPositions,
    FireBias,
    ForgetGate,
    GridEncoding,
    GridRotary,
    KerpleBias,
    LearnedEncoding,
    RelativeBias,
    RotaryEmbedding,
    ShawAttention,
    SinusoidalEncoding,
    T5Bias,
    TimeEncoding,
)
from posenc.rotary import apply_rotary, apply_rotary_axes, axial_frequencies, mixed_frequencies

PERIODS: dict[str, Any] = {"shortest": 0.2, "longest": 120.0}
EACH_HEAD, MIXED = np.geomspace(1.0, 0.01, 8).reshape(2, 4), mixed_frequencies(8, 0.4)
SLOPES = posenc.alibi_slopes(4)[2:]
# For inputs (batch, 2 heads, 9 tokens, 8): on a grid one class token and 2 times 4 patches.
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "sinusoidal": lambda: SinusoidalEncoding(8, dropout=0.0, base=500.0),
    "grid": lambda: GridEncoding(8, (2, 4), class_tokens=1, dropout=0.0, base=100.0, order="timm"),
    "rotary": lambda: RotaryEmbedding(8, base=500.0),
    "rotary half": lambda: RotaryEmbedding(8, layout="half", rotary_dim=6, scale=1.5),
    "rotary heads": lambda: RotaryEmbedding(8, max_len=50, frequencies=EACH_HEAD),
    "grid rotary": lambda: GridRotary(8, (2, 4), class_tokens=1, base=100.0, layout="half"),
    "grid rotary mixed": lambda: GridRotary(8, (2, 4), class_tokens=1, frequencies=MIXED),
    "ALiBi": lambda: AlibiBias(2),
    "ALiBi both ways": lambda: AlibiBias(2, causal=False),
    "ALiBi attention": lambda: AlibiAttention(2, slopes=SLOPES),
    "times": lambda: TimeEncoding(8, **PERIODS),
    "times scaled": lambda: TimeEncoding(8, **PERIODS, learned_scale=True),
    "learned": lambda: LearnedEncoding(8, 50, dropout=0.0),
    "learned clamp": lambda: LearnedEncoding(8, 4, dropout=0.0, overflow="clamp"),
    "table": lambda: RelativeBias(2, 3),
    "T5": lambda: T5Bias(2, num_buckets=8, max_distance=10),
    "T5 causal": lambda: T5Bias(2, num_buckets=8, max_distance=10, bidirectional=False),
    "KERPLE log": lambda: KerpleBias(2),
    "KERPLE power": lambda: KerpleBias(2, kind="power"),
    "FIRE": lambda: FireBias(2, c=0.3, threshold=8.0),
    "Shaw": lambda: ShawAttention(8, 3),
    "gate": lambda: ForgetGate(8, 2),
    "contextual": lambda: ContextualPositions(8, 3),
}
SAVED = {
    **{name: ["weight"] for name in ("learned", "learned clamp", "table", "T5", "T5 causal", "contextual")},
    **{name: ["raw_r1", "raw_r2"] for name in ("KERPLE log", "KERPLE power")},
    "FIRE": ["log_c", "log_threshold", "hidden.weight", "hidden.bias", "head.weight", "head.bias"],
    "Shaw": ["key_table", "value_table"],
    "gate": ["linear.weight", "linear.bias"],
    "times scaled": ["log_scale"],
}
FIXED = [name for name in LAYERS if name not in SAVED]
ADDED = ["sinusoidal", "grid", "times", "learned", "learned clamp"]
BIASES = ["ALiBi", "ALiBi both ways", "table", "T5", "T5 causal", "KERPLE log", "KERPLE power", "FIRE"]
# Sums and products whose rounding depends on the shape.
ROUNDED = [
    "rotary", "rotary half", "rotary heads", "grid rotary", "grid rotary mixed", "ALiBi attention", "FIRE", "Shaw",
    "gate", "contextual",
]  # fmt: skip

each_layer = pytest.mark.parametrize("name", LAYERS)
quiet_dynamo = pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")


def made(name: str) -> nn.Module:
    """The layer, its parameters far from what they start as."""
    torch.manual_seed(0)
    layer = LAYERS[name]()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    return layer


def tokens(n: int = 9) -> Tensor:
    return torch.randn(2, 2, n, 8, generator=torch.Generator().manual_seed(0))


def call(layer: nn.Module, x: Tensor, past: Tensor, first: int = 0) -> Tensor:
    """What the layer gives for the tokens x, the last of `past`; `first` is the position of the first of them."""
    result: Any
    n, n_key = x.shape[-2], past.shape[-2]
    if isinstance(layer, RotaryEmbedding):
        result = torch.cat(layer(x, x, offset=first), dim=1)
    elif isinstance(layer, SinusoidalEncoding | GridEncoding | LearnedEncoding):
        result = layer(x[:, 0], offset=first)
    elif isinstance(layer, TimeEncoding):
        result = layer(x[:, 0], torch.arange(first, first + n, device=x.device) * 0.4)
    elif isinstance(layer, ForgetGate):
        result = layer(x[:, 0]).mT
    elif isinstance(layer, ContextualPositions):
        result = layer(x, past)
    elif isinstance(layer, AlibiAttention):
        result = layer(x, past, past)
    elif isinstance(layer, ShawAttention):
        later = torch.ones(n, n_key, dtype=torch.bool, device=x.device).triu(n_key - n + 1)
        result, _ = layer(x, past, past, mask=later)
    else:
        result = layer(n, n_key)
    return result


def whole(layer: nn.Module, x: Tensor) -> Tensor:
    return call(layer, x, x)


def part(layer: nn.Module, x: Tensor, first: int, last: int) -> Tensor:
    """What the layer gives for the tokens first..last - 1, once those before them are done."""
    return call(layer, x[..., first:last, :], x[..., :last, :], first)


# --- What they give

LATER = torch.ones(9, 9, dtype=torch.bool).triu(1)


def turned(x: Tensor, **options: Any) -> Tensor:
    return apply_rotary(x, x.shape[-2], **options).repeat(1, 2, 1, 1)  # the query, and the same as key


def turned_grid(x: Tensor, omega: np.ndarray, **options: Any) -> Tensor:
    patches = apply_rotary_axes(x[..., 1:, :], grid_coordinates((2, 4)), omega, **options)
    return torch.cat([x[..., :1, :], patches], dim=-2).repeat(1, 2, 1, 1)


def alibi(slopes: np.ndarray, **options: Any) -> Tensor:
    return torch.from_numpy(posenc.alibi_bias(slopes, 9, **options))


def timed(x: Tensor, scale: Any = 1.0) -> Tensor:
    return x[:, 0] + posenc.time_encoding(
        (torch.arange(9) * 0.4).double() * scale, 8, **PERIODS, dtype=torch.float64
    )


def fire(layer: Any) -> Tensor:
    network = layer.hidden.weight[:, 0], layer.hidden.bias, layer.head.weight, layer.head.bias
    return posenc.fire_bias(*network, 9, c=layer.c, threshold=layer.threshold)


def contextual(layer: Any, x: Tensor) -> Tensor:
    positions = posenc.contextual_positions((x @ x.mT / 8**0.5).sigmoid(), max_position=3)
    return posenc.contextual_bias(x, layer.weight, positions).masked_fill(LATER, -torch.inf)


SMALL: Any = {"num_buckets": 8, "max_distance": 10}
FORMULAS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "sinusoidal": lambda _, x: x[:, 0] + posenc.sinusoidal_encoding(x.shape[-2], 8, base=500.0, dtype=x.dtype),
    "grid": lambda _, x: x[:, 0] + functional.pad(
        grid_encoding((2, 4), 8, base=100.0, order="timm", dtype=x.dtype), (0, 0, 1, 0)),
    "rotary": lambda _, x: turned(x, base=500.0),
    "rotary half": lambda _, x: turned(x, layout="half", rotary_dim=6, scale=1.5),
    "rotary heads": lambda _, x: turned(x, frequencies=EACH_HEAD),
    "grid rotary": lambda _, x: turned_grid(x, axial_frequencies(8, 2, base=100.0), layout="half"),
    "grid rotary mixed": lambda _, x: turned_grid(x, MIXED),
    "ALiBi": lambda *_: alibi(posenc.alibi_slopes(2)),
    "ALiBi both ways": lambda *_: alibi(posenc.alibi_slopes(2), causal=False),
    "ALiBi attention": lambda _, x: posenc.dot_product_attention(x, x, x, bias=alibi(SLOPES)[None])[0],
    "times": lambda _, x: timed(x),
    "times scaled": lambda layer, x: timed(x, layer.log_scale.exp()),
    "learned": lambda layer, x: x[:, 0] + layer.weight[:9],
    "learned clamp": lambda layer, x: x[:, 0] + layer.weight[[0, 1, 2, 3, 3, 3, 3, 3, 3]],
    "table": lambda layer, _: posenc.relative_bias(layer.weight, 9),
    "T5": lambda layer, _: posenc.t5_bias(layer.weight, 9, **SMALL),
    "T5 causal": lambda layer, _: posenc.t5_bias(layer.weight, 9, **SMALL, bidirectional=False),
    "KERPLE log": lambda layer, _: posenc.kerple_bias(layer.r1, layer.r2, 9),
    "KERPLE power": lambda layer, _: posenc.kerple_bias(layer.r1, layer.r2, 9, kind="power"),
    "FIRE": lambda layer, _: fire(layer),
    "Shaw": lambda layer, x: posenc.shaw_attention(x, x, x, layer.key_table, layer.value_table, mask=LATER)[0],
    "gate": lambda layer, x: functional.logsigmoid(layer.linear(x[:, 0])),
    "contextual": contextual,
}  # fmt: skip


@each_layer
@pytest.mark.parametrize("inference", [False, True])
def test_a_layer_gives_what_its_formula_gives(name: str, inference: bool) -> None:
    layer, x = made(name).double(), tokens().double()
    with torch.inference_mode(inference):
        wanted = FORMULAS[name](layer, x)
        torch.testing.assert_close(whole(layer, x), wanted, rtol=1e-6, atol=1e-6, check_dtype=False)


@each_layer
def test_gradients_of_inputs_and_parameters_are_those_of_small_steps(name: str) -> None:
    model, x = Whole(made(name)).double(), tokens().double().requires_grad_()
    names, parameters = list(dict(model.named_parameters())), tuple(model.parameters())

    def computed(x: Tensor, *parameters: Tensor) -> Tensor:
        result = torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), (x,))
        return result[result.isfinite()]

    if name not in ("ALiBi", "ALiBi both ways"):  # which neither depends on
        assert torch.autograd.gradcheck(computed, (x, *parameters), fast_mode=True)


@pytest.mark.parametrize("name", ADDED)
def test_a_sentence_alone_is_one_of_a_batch(name: str) -> None:
    layer, x = made(name), tokens()[:, 0]
    seconds = [torch.arange(9) * 0.4] if name == "times" else []
    assert torch.equal(layer(x[0], *seconds), layer(x, *seconds)[0])


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "rotary", "rotary half", "rotary heads"])
def test_empty_ones_stay_empty(name: str) -> None:
    for x in (tokens(0), tokens()[:0]):
        for inference in (False, True):
            with torch.inference_mode(inference):
                assert whole(made(name), x).numel() == 0


# --- In one pass and in many


@each_layer
@pytest.mark.parametrize("cuts", [range(10), (0, 4, 9), (0, 1, 8, 9)], ids=["tokens", "halves", "ends"])
def test_parts_are_rows_of_the_full_pass(name: str, cuts: Any) -> None:
    layer, x = made(name), tokens()
    full, slack = whole(layer, x), 1e-5 if name in ROUNDED else 0
    for first, last in itertools.pairwise(cuts):
        rows = part(layer, x, first, last)
        wanted = full[..., first:last, : rows.shape[-1]]
        torch.testing.assert_close(rows, wanted, rtol=0, atol=slack)


@pytest.mark.parametrize("name", ["sinusoidal", "learned", "rotary", "rotary half", "rotary heads"])
def test_positions_that_are_given_are_those_of_an_offset(name: str) -> None:
    layer, x, t = made(name), tokens(), torch.arange(20, 29)
    if isinstance(layer, RotaryEmbedding):
        far = torch.stack([t, t + 3])
        result, later = layer(x, x, positions=t)[0], layer(x, x, positions=far)[0]
        wanted, moved = layer(x, x, offset=20)[0], layer(x, x, offset=23)[0]
    else:
        result, later = layer(x[:, 0], positions=t), layer(x[:, 0], positions=torch.stack([t, t + 3]))
        wanted, moved = layer(x[:, 0], offset=20), layer(x[:, 0], offset=23)
    torch.testing.assert_close(result, wanted, rtol=0, atol=1e-6)
    torch.testing.assert_close(later, torch.stack([wanted[0], moved[1]]), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "layer", [SinusoidalEncoding(8, max_len=4, dropout=0.0), RotaryEmbedding(8, max_len=4)]
)
def test_positions_of_each_sentence_may_be_real_and_beyond_the_table(layer: Any) -> None:
    x, t = tokens(2), torch.tensor([[0.5, 1.5], [1e6, 1e6 + 1]])
    if isinstance(layer, RotaryEmbedding):
        found, wanted = layer(x, x, positions=t)[0], apply_rotary(x, t[:, None])
    else:
        found, wanted = layer(x[:, 0], positions=t), x[:, 0] + posenc.sinusoidal_encoding(t, 8)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", BIASES)
def test_positions_of_a_bias_are_given_by_name(name: str) -> None:
    """A cache with room for what is still to come, and sentences that start at other places."""
    layer, u = made(name), torch.arange(20)
    full, slack = layer(20), 1e-6 if name == "FIRE" else 0
    row = layer(query_positions=u[7:8], key_positions=u)
    torch.testing.assert_close(row, full[:, 7:8], rtol=0, atol=slack)
    torch.testing.assert_close(layer(query_positions=u[7:8], n_key=20), row, rtol=0, atol=slack)
    two = layer(query_positions=torch.tensor([[0, 1, 2, 3], [0, 0, 0, 1]]))
    assert two.shape == (2, 2, 4, 4)
    torch.testing.assert_close(two[0], layer(4), rtol=0, atol=slack)
    torch.testing.assert_close(two[1, :, 2:, 2:], layer(2), rtol=0, atol=slack)


@each_layer
@pytest.mark.parametrize("inference", [False, True])
def test_inputs_are_left_as_they_are(name: str, inference: bool) -> None:
    x = tokens()
    with torch.inference_mode(inference):
        whole(made(name), x)
    assert torch.equal(x, tokens())


# --- Precision


@each_layer
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_low_precision_is_rounded_once(name: str, dtype: torch.dtype) -> None:
    """Whatever is done to the layer: what is exact has the rounded parameters, and a table of its own."""
    low, exact, x = made(name).bfloat16().to(dtype), made(name).double(), tokens().to(dtype)
    exact.load_state_dict(low.state_dict())
    result = whole(low, x)
    wide = name in ("gate", "ALiBi", "ALiBi both ways")
    expected = (
        dtype if not wide else torch.float64 if (name, dtype) == ("gate", torch.float64) else torch.float32
    )
    assert result.dtype == expected
    wanted = whole(exact, x.double())
    slack = 1e-12 if dtype == torch.float64 and not wide else 1e-6
    if name in ("ALiBi attention", "contextual", "gate"):  # products in the dtype of the input
        slack = 4 * torch.finfo(dtype).eps + slack
    result, wanted = (x.double().clamp(min=-1e3) for x in (result, wanted))  # -inf, or the lowest number
    torch.testing.assert_close(result, wanted, rtol=0.51 * torch.finfo(dtype).eps, atol=slack)


@pytest.mark.parametrize("name", ["sinusoidal", "rotary", "rotary half"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64], ids=str)
def test_far_out_it_is_rounded_once_too(name: str, dtype: torch.dtype) -> None:
    layer, x = LAYERS[name]().to(dtype), tokens(2000).to(dtype)
    exact = FORMULAS[name](layer, x.double())
    # Half a unit in the last place, and a hair for the float32 sum; adding two rounded numbers would miss it.
    unit = torch.finfo(dtype).eps * 2 ** exact.abs().clamp(min=2**-14).log2().floor()
    slack = 1e-12 if dtype == torch.float64 else 2e-6
    assert ((whole(layer, x).double() - exact).abs() <= unit / 2 + slack).all()


@pytest.mark.parametrize("name", FIXED)
def test_casting_away_and_back_loses_nothing(name: str) -> None:
    layer, x = made(name), tokens()
    before = whole(layer, x)
    layer.to(torch.bfloat16).half().double().float()
    assert torch.equal(whole(layer, x), before)


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in ("ALiBi attention", "Shaw")])
def test_autocast_changes_nothing(name: str) -> None:
    """bfloat16 could not tell far positions apart."""
    layer, x = made(name), tokens(9)
    before = whole(layer, x)
    with torch.autocast("cpu", torch.bfloat16):
        after = whole(layer, x)
    assert after.dtype == torch.float32 or name == "contextual"
    torch.testing.assert_close(
        after, before, check_dtype=False, rtol=1e-6, atol=1e-6 if name != "contextual" else 0.1
    )


# --- Saved, copied, loaded


@each_layer
def test_saved_and_copied(name: str) -> None:
    layer, x = made(name), tokens()
    assert list(layer.state_dict()) == SAVED.get(name, [])
    expected, stream = whole(layer, x), io.BytesIO()
    torch.save(layer.share_memory(), stream)
    stream.seek(0)
    for twin in (copy.deepcopy(layer), torch.load(stream, weights_only=False)):
        assert torch.equal(whole(twin, x), expected)
        assert repr(twin) == repr(layer)
    other = LAYERS[name]()
    assert name in FIXED or not torch.equal(whole(other, x), expected)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(whole(other, x), expected)


def all_layers() -> nn.ModuleList:
    return nn.ModuleList(made(name) for name in LAYERS)


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


def by_buffers(model: nn.Module, state: dict[str, Tensor]) -> None:
    """As transformers and accelerate: what no checkpoint holds is filled with what is in memory."""
    for module in model.modules():
        for name, x in module._buffers.items():
            if x is not None:
                module._buffers[name] = torch.empty_like(x, device="cpu").fill_(7.0)
        for name, parameter in module._parameters.items():
            if parameter is not None:
                module._parameters[name] = nn.Parameter(torch.empty_like(parameter, device="cpu"))
    model.load_state_dict(state)


def by_assignment(model: nn.Module, state: dict[str, Tensor]) -> None:
    model.load_state_dict(state, assign=True)


def by_resetting(model: nn.Module, state: dict[str, Tensor]) -> None:
    """As FSDP: every layer that has something, has reset_parameters too."""
    model.to_empty(device="cpu")
    for parameter in model.parameters():
        nn.init.constant_(parameter, torch.nan)
    for module in model.modules():
        if [*module.parameters(recurse=False), *module.buffers(recurse=False)]:
            module.reset_parameters()  # type: ignore[operator]
    for layer in model.children():
        assert not whole(layer, tokens()).isnan().any()
    model.load_state_dict(state)


@pytest.mark.parametrize("load", [by_buffers, by_assignment, by_resetting])
@pytest.mark.parametrize("patched", [False, True])
def test_loaded_after_meta(load: Callable[..., None], patched: bool) -> None:
    model, x = all_layers(), tokens()
    with empty_weights() if patched else torch.device("meta"):
        other = nn.ModuleList(make() for make in LAYERS.values())
    assert {held.device.type for held in (*other.parameters(), *other.buffers())} == {"meta"}
    load(other, model.state_dict())
    for layer, twin in zip(model, other, strict=True):
        assert torch.equal(whole(twin, x), whole(layer, x)), layer


@each_layer
def test_moved_to_meta_and_back(name: str) -> None:
    layer, x = made(name), tokens()
    expected, state = whole(layer, x), layer.state_dict()
    if name in FIXED:
        assert torch.equal(whole(layer.to_empty(device="cpu"), x), expected)
    layer.to("meta").half()
    there = whole(layer, x.to("meta"))
    assert there.is_meta
    assert there.shape == expected.shape
    layer.to_empty(device="cpu").float().load_state_dict(state)
    assert torch.equal(whole(layer, x), expected)


@pytest.mark.parametrize("name", BIASES)
def test_a_bias_comes_to_its_positions(name: str) -> None:
    layer = made(name) if name in FIXED else made(name).to("meta")
    assert layer(query_positions=torch.arange(5, device="meta")).is_meta
    assert layer(5).is_meta == (name not in FIXED)


def test_shapes_are_known_of_fake_tensors() -> None:
    shapes = [whole(layer, tokens()).shape for layer in all_layers()]
    with FakeTensorMode(allow_non_fake_inputs=True):
        for model in (all_layers(), nn.ModuleList(make() for make in LAYERS.values())):
            assert [whole(layer, torch.empty(2, 2, 9, 8)).shape for layer in model] == shapes


def test_a_replica_of_data_parallel_is_the_model() -> None:
    layer, x = nn.Sequential(made("sinusoidal"), made("learned")), tokens()[:, 0]
    assert torch.equal(nn.parallel.DataParallel(layer)(x), layer(x))


@pytest.mark.parametrize(
    ("layer", "names"),
    [
        ("sinusoidal", ("base", "max_len", "dim")),
        ("rotary", ("scale", "layout", "frequencies", "rotary_dim", "table", "max_len")),
        ("ALiBi", ("num_heads",)),
        ("grid", ("shape",)),
        ("grid rotary", ("frequencies", "max_len")),
    ],
)
def test_what_the_table_is_made_of_cannot_be_set(layer: str, names: tuple[str, ...]) -> None:
    for name in names:
        with pytest.raises(AttributeError, match=f"{name} belongs to the table .*: make a new "):
            setattr(LAYERS[layer](), name, 2)


# --- Trained


@pytest.mark.parametrize("name", SAVED)
def test_every_parameter_is_trained(name: str) -> None:
    layer = made(name)
    result = whole(layer, tokens())
    (result[result.isfinite()] ** 2).sum().backward()
    for key, parameter in layer.named_parameters():
        assert parameter.grad is not None, key
        assert parameter.grad.isfinite().all(), key
        assert (parameter.grad != 0).any(), key


@pytest.mark.parametrize(
    "name", ["sinusoidal", "grid", "rotary", "rotary half", "grid rotary", "ALiBi attention"]
)
def test_made_in_inference_mode_and_then_trained(name: str) -> None:
    with torch.inference_mode():
        layer = LAYERS[name]()
    x = tokens().requires_grad_()
    whole(layer, x).square().sum().backward()
    assert x.grad is not None
    if name.startswith("rotary"):
        place = torch.arange(9.0, requires_grad=True)
        layer(tokens(), tokens(), positions=place)[0].square().sum().backward()


@pytest.mark.parametrize(
    "layer", [SinusoidalEncoding(64, 100), LearnedEncoding(64, 100), GridEncoding(64, (10, 10))]
)
def test_dropout_acts_while_training_only(layer: nn.Module) -> None:
    torch.manual_seed(0)
    x = torch.full((100, 100, 64), 3.0)
    trained = layer(x)
    assert (trained == 0).double().mean().item() == pytest.approx(0.1, abs=0.003)
    kept = trained != 0
    torch.testing.assert_close(trained[kept], (layer.eval()(x) / 0.9)[kept])


@pytest.mark.parametrize("name", ["table", "T5", "KERPLE log", "FIRE"])
def test_an_ensemble_by_vmap(name: str) -> None:
    layers = [LAYERS[name]() for _ in range(3)]
    parameters, _ = torch.func.stack_module_state(layers)
    for where in ({"n_query": 7}, {"query_positions": torch.arange(7)}):
        biases = torch.vmap(lambda p, where=where: torch.func.functional_call(layers[0], p, (), where))(
            parameters
        )
        torch.testing.assert_close(biases, torch.stack([layer(7) for layer in layers]))


# --- Lengths that are left open


class Whole(nn.Module):
    """A sequence through a layer."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        return whole(self.layer, x)


# Of these another one, with more in it, is of the same class and the same way through it.
ALIKE = "rotary half", "grid rotary mixed", "times", "T5 causal", "KERPLE power"


@quiet_dynamo
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE))
    for name in LAYERS
    if name not in ("ALiBi both ways", "rotary heads")
])  # fmt: skip
def test_one_graph_for_any_length_and_one_for_a_step(name: str) -> None:
    torch._dynamo.reset()
    counter, layer = CompileCounter(), made(name)
    compiled = copy.deepcopy(layer)
    compiled.compile(backend=counter, fullgraph=True, dynamic=True)
    x = tokens(10)  # never all of it: that is laid out otherwise than a part, as is the whole table of a grid
    for first, last in [(0, 9), (0, 5), (0, 7), (5, 6), (8, 9), (3, 4)]:
        torch.testing.assert_close(part(compiled, x, first, last), part(layer, x, first, last))
    assert counter.frame_count <= 2 + name.startswith("grid")


OPEN = ["ALiBi both ways", "table", "T5", "KERPLE power", "FIRE", "rotary", "ALiBi attention", "Shaw"]


@quiet_dynamo
@pytest.mark.parametrize("name", OPEN)
def test_export_leaves_the_length_open(name: str) -> None:
    model, length = Whole(made(name)), torch.export.Dim("length", min=3, max=4096)
    exported = torch.export.export(model, (tokens(),), dynamic_shapes=({2: length},)).module()
    for n in (9, 5, 40):
        torch.testing.assert_close(exported(tokens(n)), model(tokens(n)))


@pytest.mark.parametrize("name", OPEN)
@pytest.mark.parametrize("example", [1, 5])
def test_a_trace_is_right_for_any_length(name: str, example: int) -> None:
    """A length that torch.jit.trace kept would be broadcast where it is 1, and torch only warns."""
    model = Whole(made(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(model, (tokens(example),))
    for n in (1, 4, 9):
        torch.testing.assert_close(traced(tokens(n)), model(tokens(n)))


class AtPositions(nn.Module):
    """A layer, or a function, at positions of each sentence."""

    def __init__(self, turn: Callable[..., Any]) -> None:
        super().__init__()
        self.turn = turn

    def forward(self, x: Tensor, positions: Tensor) -> Any:
        return self.turn(x, positions)


@quiet_dynamo
@pytest.mark.parametrize("name", ["rotary", "apply_rotary", "sinusoidal"])
def test_export_of_positions_for_each_row_leaves_the_length_open(name: str) -> None:
    """Any length, that of the batch among them, which is fixed to 2."""
    rotary, sinusoidal = made("rotary"), made("sinusoidal")
    turn: Callable[..., Any] = {
        "rotary": lambda x, t: rotary(x, x, positions=t),
        "apply_rotary": lambda x, t: posenc.apply_rotary(x, t[:, None]),
        "sinusoidal": lambda x, t: sinusoidal(x[:, 0], positions=t),
    }[name]
    model, length = AtPositions(turn), torch.export.Dim("length", max=4096)
    example = tokens(), torch.arange(18).reshape(2, 9)
    exported = torch.export.export(model, example, dynamic_shapes=({2: length}, {1: length})).module()
    for n in (2, 7):
        given = tokens(n), torch.arange(2 * n).reshape(2, n)
        torch.testing.assert_close(exported(*given), model(*given))


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
