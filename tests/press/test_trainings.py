"""Blocks that share a process share what they train."""

import copy
from typing import Any

import torch
from press.running import trainings

from posenc.nn import SinusoidalEncoding

Called = list[tuple[Any, ...]]
called: Called = []


def _train(layer: Any, steps: int = 1, spoil: bool = False) -> Any:
    called.append((layer, steps))
    if spoil:
        layer.bias.data += 1
    return {"layer": copy.deepcopy(layer), "steps": steps}


def test_a_training_is_done_once_and_everybody_gets_a_copy() -> None:
    called.clear()
    train, layer = trainings.once(_train), torch.nn.Linear(2, 2)
    first, second = train(layer), train(copy.deepcopy(layer))
    assert len(called) == 1
    assert torch.equal(first["layer"].weight, second["layer"].weight)
    second["layer"].weight.data += 1
    assert torch.equal(first["layer"].weight, train(layer)["layer"].weight)
    assert train(layer, steps=2)["steps"] == 2
    assert train(torch.nn.Linear(2, 2))["steps"] == 1
    assert len(called) == 3


def test_what_cannot_be_copied_or_is_changed_by_it_is_trained_each_time() -> None:
    called.clear()
    train, layer = trainings.once(_train), torch.nn.Linear(2, 2)
    for _ in range(2):
        train(layer, spoil=True)
    assert len(called) == 2
    local = type("Local", (torch.nn.Linear,), {})(2, 2)
    for _ in range(2):
        train(local)
    assert len(called) == 4


def test_a_layer_with_a_hook_on_itself_is_known_again() -> None:
    """Two encodings of the same numbers train alike; the hook of each holds the layer, and has a number of its own."""
    called.clear()
    train = trainings.once(_train)
    for dim in (4, 4, 6):
        train(SinusoidalEncoding(dim, 8, dropout=0.0))
    assert len(called) == 2
