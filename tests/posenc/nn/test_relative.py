"""The relative layers: what they give, decoding, precision, saving, moving, training, compiling."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from posenc import fire_bias, kerple_bias, relative_bias, shaw_attention, t5_bias
from posenc.nn import FireBias, KerpleBias, RelativeBias, ShawAttention, T5Bias
from posenc.relative.kernels import KerpleKind

LAYERS: dict[str, Callable[[], nn.Module]] = {
    "table": lambda: RelativeBias(3, 5, std=1.0),
    "T5": lambda: T5Bias(3, num_buckets=8, max_distance=10, std=1.0),
    "T5 causal": lambda: T5Bias(3, num_buckets=8, max_distance=10, bidirectional=False, std=1.0),
    "KERPLE log": lambda: KerpleBias(3),
    "KERPLE power": lambda: KerpleBias(3, kind="power"),
    "FIRE": lambda: FireBias(3, threshold=8.0),
}


@pytest.fixture(params=LAYERS)
def layer(request: pytest.FixtureRequest) -> nn.Module:
    torch.manual_seed(0)
    return LAYERS[request.param]()


def same(layer: nn.Module, ours: Tensor, theirs: Tensor) -> None:
    """Bit for bit; for the product of FIRE, whose sums depend on the shape, to a few roundings."""
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6 if isinstance(layer, FireBias) else 0)


def test_layers_give_what_the_formulas_give() -> None:
    table = RelativeBias(2, 4)
    assert torch.equal(table(7), relative_bias(table.weight, 7))
    t5 = T5Bias(2, max_distance=20, bidirectional=False)
    assert torch.equal(t5(50), t5_bias(t5.weight, 50, max_distance=20, bidirectional=False))
    kinds: tuple[KerpleKind, ...] = ("log", "power")
    for kind in kinds:
        kerple = KerpleBias(2, kind=kind)
        r1, r2 = (r.float() for r in (kerple.r1, kerple.r2))
        torch.testing.assert_close(kerple(9), kerple_bias(r1, r2, 9, kind=kind))
    fire = FireBias(2, c=0.3, threshold=5.0)
    network = (fire.hidden.weight[:, 0], fire.hidden.bias, fire.head.weight, fire.head.bias)
    torch.testing.assert_close(fire(9), fire_bias(*network, 9, c=0.3, threshold=5.0))
    assert float(fire.c.detach()) == pytest.approx(0.3)
    assert float(fire.threshold.detach()) == pytest.approx(5)
    shaw, (q, k, v) = ShawAttention(4, 3, std=1.0), torch.randn(3, 2, 6, 4)
    for ours, formula in zip(
        shaw(q, k, v), shaw_attention(q, k, v, shaw.key_table, shaw.value_table), strict=True
    ):
        assert torch.equal(ours, formula)


def test_decoding_gives_the_rows_of_the_full_pass(layer: nn.Module) -> None:
    full = layer(20)
    for n in (1, 2, 9, 20):
        same(layer, layer(1, n)[:, 0], full[:, n - 1, :n])
        t, u = torch.tensor([n - 1]), torch.arange(20)  # a cache with room for what is still to come
        same(layer, layer(query_positions=t, key_positions=u)[:, 0], full[:, n - 1])


def test_sentences_that_start_at_other_places(layer: nn.Module) -> None:
    positions = torch.tensor([[0, 1, 2, 3], [0, 0, 0, 1]])
    bias = layer(query_positions=positions)
    assert bias.shape == (2, 3, 4, 4)
    same(layer, bias[0], layer(4))
    same(layer, bias[1, :, 2:, 2:], layer(2))


def test_shaw_decodes() -> None:
    layer, (q, k, v) = ShawAttention(4, 3, std=1.0), torch.randn(3, 2, 6, 4)
    mask = torch.ones(6, 6, dtype=torch.bool).triu(1)
    full, _ = layer(q, k, v, mask=mask)
    for t in range(6):
        one, _ = layer(q[:, t : t + 1], k[:, : t + 1], v[:, : t + 1])
        torch.testing.assert_close(one[:, 0], full[:, t])
        # in a cache of full length, with the keys to come masked
        there, _ = layer(
            q[:, t : t + 1],
            k,
            v,
            mask=mask[t : t + 1],
            query_positions=torch.tensor([t]),
            key_positions=torch.arange(6),
        )
        torch.testing.assert_close(there, one)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_precisions(layer: nn.Module, dtype: torch.dtype) -> None:
    layer.to(dtype)
    bias = layer(300)
    assert bias.dtype == dtype
    exact = copy.deepcopy(layer).double()(300)
    # One rounding of the result, nothing on the way.
    unit = torch.finfo(dtype).eps
    assert (
        (bias.double() - exact).abs() <= 0.51 * unit * exact.abs() + 1e-6 * (dtype != torch.float64)
    ).all()


def test_far_positions_stay_apart_in_bfloat16() -> None:
    layer = KerpleBias(1, kind="power").to(torch.bfloat16)
    nn.init.constant_(layer.raw_r1, 0.0)
    nn.init.constant_(layer.raw_r2, 0.0)  # r2 = 1
    far = {"query_positions": torch.tensor([0]), "key_positions": torch.tensor([100_000, 100_001])}
    assert layer(**far).tolist() == [[[-99840.0, -99840.0]]]
    keys = torch.tensor([99_999, 100_001, 99_990])
    near = {"query_positions": torch.tensor([100_000]), "key_positions": keys}
    assert layer(**near).tolist() == [[[-1.0, -1.0, -10.0]]]


def test_shaw_in_bfloat16() -> None:
    layer, (q, k, v) = ShawAttention(16, 3).bfloat16(), torch.randn(3, 2, 6, 16).bfloat16()
    low, _ = layer(q, k, v)
    high, _ = copy.deepcopy(layer).float()(q.float(), k.float(), v.float())
    assert low.dtype == torch.bfloat16
    assert torch.equal(low, high.bfloat16())


def test_autocast_changes_nothing(layer: nn.Module) -> None:
    """The product of FIRE in bfloat16 could not tell far positions apart."""
    expected = layer(300)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer(300), expected)


def test_saved_and_loaded(layer: nn.Module) -> None:
    name = next(key for key, make in LAYERS.items() if repr(make()) == repr(layer))
    twin = LAYERS[name]()
    assert not torch.equal(twin(20), layer(20))
    twin.load_state_dict(layer.state_dict())
    assert torch.equal(twin(20), layer(20))
    buffer = io.BytesIO()
    torch.save(layer, buffer)
    buffer.seek(0)
    assert torch.equal(torch.load(buffer, weights_only=False)(20), layer(20))


def test_meta_device_then_materialised(layer: nn.Module) -> None:
    meta = copy.deepcopy(layer).to("meta")
    assert meta(5).is_meta
    assert meta(query_positions=torch.arange(5, device="meta")).shape == (3, 5, 5)
    meta.to_empty(device="cpu")
    meta.reset_parameters()  # type: ignore[operator]
    assert torch.isfinite(meta(20)).all()
    if isinstance(meta, FireBias):
        assert float(meta.threshold.detach()) == pytest.approx(8)


def test_every_parameter_is_trained(layer: nn.Module) -> None:
    (layer(30) ** 2).sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert (parameter.grad != 0).any(), name


def test_the_gradient_of_a_table_is_a_sum_along_diagonals() -> None:
    layer = RelativeBias(1, 2)
    upstream = torch.randn(5, 5)
    (layer(5)[0] * upstream).sum().backward()
    sums = [upstream.diagonal(k).sum() for k in range(-4, 5)]
    expected = torch.stack([sum(sums[:3]), sums[3], sums[4], sums[5], sum(sums[6:])])  # type: ignore[list-item]
    assert layer.weight.grad is not None
    torch.testing.assert_close(layer.weight.grad[:, 0], expected)


@pytest.mark.parametrize("kind", ["log", "power"])
def test_kerple_stays_in_its_range(kind: KerpleKind) -> None:
    layer = KerpleBias(2, kind=kind)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    for _ in range(50):
        optimizer.zero_grad()
        (-layer(20)[:, 0].sum()).backward()  # wants it as steep as can be
        optimizer.step()
        nn.utils.clip_grad_value_(layer.parameters(), 1.0)
        with torch.no_grad():
            for parameter in layer.parameters():
                parameter.clamp_(-20, 20)
    assert (layer.r1 > 0).all()
    assert (layer.r2 > 0).all()
    assert kind == "log" or (layer.r2 <= 2).all()


def test_a_checkpoint_of_transformers_loads() -> None:
    embedding = nn.Embedding(32, 12)
    layer = T5Bias(12)
    layer.load_state_dict(embedding.state_dict())
    assert torch.equal(layer(1, 4)[:, 0, 3], embedding.weight[0])


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@pytest.mark.parametrize("name", LAYERS)
def test_compiles_into_one_graph(name: str) -> None:
    layer = LAYERS[name]()
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="eager")
    for n_query, n_key in [(5, 5), (9, 9), (1, 7), (1, 8)]:
        torch.testing.assert_close(compiled(n_query, n_key), layer(n_query, n_key))
    t = torch.tensor([3, 9, 4])
    torch.testing.assert_close(compiled(query_positions=t), layer(query_positions=t))


def test_repr_says_how_it_was_made() -> None:
    assert repr(RelativeBias(2, 4)) == "RelativeBias(num_heads=2, max_offset=4)"
    assert repr(T5Bias(2)) == "T5Bias(num_heads=2, num_buckets=32, max_distance=128, bidirectional=True)"
    assert repr(KerpleBias(2)) == "KerpleBias(num_heads=2, kind='log')"
    assert repr(ShawAttention(4, 2, values=False)) == "ShawAttention(dim=4, max_offset=2, values=False)"


def test_what_starts_a_table() -> None:
    torch.manual_seed(0)
    assert float(RelativeBias(100, 100, std=0.5).weight.detach().std()) == pytest.approx(0.5, rel=0.02)
    kerple = KerpleBias(10_000)
    assert float(kerple.r1.detach().max()) <= 2 + 1e-5
    assert float(kerple.r1.detach().mean()) == pytest.approx(1.005, abs=0.03)
    assert float(kerple.r2.detach().mean()) == pytest.approx(0.505, abs=0.02)
    power = KerpleBias(10_000, kind="power")
    assert float(power.r2.detach().mean()) == pytest.approx(0.505, abs=0.02)


T = torch.arange(3)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: RelativeBias(0, 3), ValueError, "num_heads must be at least 1, got 0"),
        (lambda: RelativeBias(2, -1), ValueError, "max_offset must be at least 0, got -1"),
        (lambda: RelativeBias(2, 3, std=-1.0), ValueError, "std must be finite and at least 0"),
        (lambda: T5Bias(2, num_buckets=5), ValueError, "num_buckets must be even if bidirectional"),
        (lambda: T5Bias(2, max_distance=8), ValueError, "max_distance must be at least 9, got 8"),
        (lambda: KerpleBias(2, kind="exp"), ValueError, 'kind must be "log" or "power"'),  # type: ignore[arg-type]
        (lambda: FireBias(2, c=0.0), ValueError, r"c must be finite and above 0, got 0\.0"),
        (lambda: FireBias(2, threshold="a"), TypeError, "threshold must be a real number"),  # type: ignore[arg-type]
        (lambda: ShawAttention(0, 2), ValueError, "dim must be at least 1"),
        (lambda: ShawAttention(4, 2, values=1), TypeError, "values must be True or False"),  # type: ignore[arg-type]
        (lambda: T5Bias(2)(5, 3), ValueError, "n_query must be at most n_key, .* got 5 and 3"),
        (lambda: T5Bias(2)(-1), ValueError, "n_query must be at least 0, got -1"),
        (lambda: T5Bias(2)(None), ValueError, "query_positions must be given where"),
        (
            lambda: T5Bias(2)(torch.arange(3)),
            TypeError,
            r"n_query must be an int, got a tensor \(3,\): .* query_positions=",
        ),
        (lambda: T5Bias(2)(torch.tensor(3)), TypeError, r"n_query must be an int, got a tensor \(\)"),
        (lambda: T5Bias(2)(3, torch.arange(3)), TypeError, "n_key must be an int, .* key_positions="),
        (lambda: FireBias(2)(torch.rand(3)), TypeError, "n_query must be an int"),
        (lambda: KerpleBias(2)(torch.arange(3)), TypeError, "n_query must be an int"),
        (lambda: RelativeBias(2, 3)(torch.arange(3)), TypeError, "n_query must be an int"),
        (lambda: T5Bias(2)(3, query_positions=T), ValueError, "n_query must be left out .* got 3"),
        (
            lambda: T5Bias(2)(3, key_positions=T),
            ValueError,
            "query_positions must be given where key_positions are",
        ),
        (
            lambda: T5Bias(2)(None, 3, query_positions=T, key_positions=T),
            ValueError,
            "n_key must be left out",
        ),
        (lambda: ShawAttention(4, 2)(None, T, T), TypeError, "query must be a floating tensor, got NoneType"),
        (lambda: T5Bias(2)(query_positions=torch.tensor([0.5])), TypeError, "must be integers"),
        (
            lambda: T5Bias(2)(query_positions=np.arange(3)),
            TypeError,
            "query_positions must be a tensor, .* ndarray",
        ),
        (
            lambda: KerpleBias(2)(query_positions=torch.zeros(3, dtype=torch.bfloat16)),
            TypeError,
            "query_positions must be",
        ),
    ],
)
def test_errors_name_the_argument(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
