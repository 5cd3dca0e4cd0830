"""check_rotation: what a model's apply_rotary_pos_emb did is held against the configuration, layer by layer."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from posenc.check import check_rotation
from posenc.rotary import apply_rotary


def apply_rotary_pos_emb(q: Tensor, k: Tensor, places: Tensor, fault: str) -> tuple[Tensor, Tensor]:
    how: dict[str, Any] = {"layout": "interleaved" if fault == "pairs" else "half", "base": 100.0}
    how["base"] = 10000.0 if fault == "base" else 100.0
    places = (-places if fault == "direction" else places)[:, None]
    places = places.clamp(max=100) if fault == "clamp" else places
    ahead = int(fault == "ahead")
    turned_q, turned_k = apply_rotary(q, places + ahead, **how), apply_rotary(k, places, **how)
    if fault == "head":
        turned_k = torch.cat([turned_k[:, :1], k[:, 1:]], dim=1)
    return (turned_q, k) if fault == "keys" else (turned_q, turned_k)


class Config:
    vocab_size, max_position_embeddings = 50, 512

    def to_dict(self) -> dict[str, Any]:
        return {"model_type": "llama", "head_dim": 8, "rope_theta": 100.0, "num_hidden_layers": 2}


class Layers(nn.Module):
    """Two layers with four heads for queries and two for keys; the fault is in the second layer alone."""

    def __init__(self, fault: str = "") -> None:
        super().__init__()
        self.embed, self.fault, self.config = nn.Embedding(50, 48), fault, Config()
        self.eval()

    def forward(self, ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
        places = torch.arange(ids.shape[1]).expand(ids.shape) if position_ids is None else position_ids
        q, k = self.embed(ids).unflatten(-1, (6, 8)).transpose(1, 2).split([4, 2], dim=1)
        for fault in ("", self.fault):
            turned, _ = apply_rotary_pos_emb(q, k, places, fault)
        return turned.transpose(1, 2).flatten(2)


CAUSES = {
    "pairs": "layer 1: pairs are interleaved, the configuration's model has half",
    "base": "layer 1: the frequencies are those of base 10000",
    "direction": "layer 1: turned the other way",
    "clamp": "layer 1: positions far from 0, at 511,",
    "ahead": "layer 1: positions of queries are one ahead",
    "head": "layer 1: queries or keys of some heads are turned otherwise, those of heads 2, 3",
    "keys": "layer 1: keys are not turned",
}


def model(fault: str = "") -> Layers:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Layers(fault)


@pytest.mark.parametrize("fault", CAUSES)
def test_the_cause_is_named_with_its_layer(fault: str) -> None:
    (found,) = check_rotation(model(fault)).findings
    assert found.verdict == "FAULT"
    assert found.look.startswith(CAUSES[fault])


def test_what_is_right_is_left_in_peace_and_the_function_comes_back() -> None:
    before = apply_rotary_pos_emb
    assert [each.verdict for each in check_rotation(model()).findings] == ["ok", "ok", "ok"]
    assert apply_rotary_pos_emb is before
