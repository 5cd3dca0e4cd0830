"""The relative layers: what they give, what they start from, and what training makes of them."""

import copy

import pytest
import torch
from torch import nn

from posenc.nn import FireBias, KerpleBias, RelativeBias, ShawAttention, T5Bias
from posenc.relative.kernels import KerpleKind

KINDS: tuple[KerpleKind, ...] = ("log", "power")


def test_shaw_decodes_in_a_cache_of_full_length() -> None:
    """With the keys that are still to come masked."""
    layer, (q, k, v) = ShawAttention(4, 3, std=1.0), torch.randn(3, 2, 6, 4)
    mask, u = torch.ones(6, 6, dtype=torch.bool).triu(1), torch.arange(6)
    full, _ = layer(q, k, v, mask=mask)
    for t in range(6):
        row, _ = layer(q[:, [t]], k, v, mask=mask[[t]], query_positions=torch.tensor([t]), key_positions=u)
        torch.testing.assert_close(row[:, 0], full[:, t])


def test_far_positions_stay_apart_in_bfloat16() -> None:
    layer = KerpleBias(1, kind="power").to(torch.bfloat16)
    nn.init.constant_(layer.raw_r1, 0.0)
    nn.init.constant_(layer.raw_r2, 0.0)  # r2 = 1
    far = {"query_positions": torch.tensor([0]), "key_positions": torch.tensor([100_000, 100_001])}
    assert layer(**far).tolist() == [[[-99840.0, -99840.0]]]
    keys = torch.tensor([99_999, 100_001, 99_990])
    near = {"query_positions": torch.tensor([100_000]), "key_positions": keys}
    assert layer(**near).tolist() == [[[-1.0, -1.0, -10.0]]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
@pytest.mark.parametrize("kind", [FireBias, KerpleBias, T5Bias])
def test_a_long_bias_is_rounded_once(kind: type[FireBias | KerpleBias | T5Bias], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    layer = kind(3).to(dtype)
    exact, unit = copy.deepcopy(layer).double()(300), torch.finfo(dtype).eps
    slack = 1e-6 if dtype != torch.float64 else 0
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(layer(300).double(), exact, rtol=0.51 * unit, atol=slack)


@pytest.mark.parametrize("kind", KINDS)
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
    embedding, layer = nn.Embedding(32, 12), T5Bias(12)
    layer.load_state_dict(embedding.state_dict())
    assert torch.equal(layer(1, 4)[:, 0, 3], embedding.weight[0])


def test_what_starts_a_table() -> None:
    torch.manual_seed(0)
    shaw = ShawAttention(100, 100, std=0.5)
    for table in (RelativeBias(100, 100, std=0.5).weight, T5Bias(1000, std=0.5).weight, shaw.key_table):
        assert float(table.detach().std()) == pytest.approx(0.5, rel=0.02)
    fire = FireBias(2, c=0.3, threshold=5.0)
    assert [float(fire.c.detach()), float(fire.threshold.detach())] == pytest.approx([0.3, 5.0])
    kerple, power = KerpleBias(10_000), KerpleBias(10_000, kind="power")
    assert float(kerple.r1.detach().max()) <= 2 + 1e-5
    assert float(kerple.r1.detach().mean()) == pytest.approx(1.005, abs=0.03)
    for layer in (kerple, power):
        assert float(layer.r2.detach().mean()) == pytest.approx(0.505, abs=0.02)
