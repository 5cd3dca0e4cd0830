"""Cross-attention whose scores hold more than products of queries and keys."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from posenc.check.models import change
from posenc.check.weights import weights_of

__all__ = ["added_to_scores"]


def added_to_scores(model: Any, row: Tensor, keys: int) -> str:
    """The first layer of cross-attention that adds something of its own to its scores; "" if none does.

    The matrices of one layer after another are 0, so that its products are, and its weights must be all equal. The
    other layers are as they were, since what is added may come from them.
    """
    eager = copy.deepcopy(model)
    for part in eager.modules():
        if hasattr(getattr(part, "config", None), "_attn_implementation"):
            part.config._attn_implementation = "eager"
    shape = row.shape[1], keys
    layers = weights_of(eager, row, shape)
    for number, (layer, _) in enumerate(layers):
        kept = [(each, each.data) for each in _matrices(layer)]
        for parameter, _ in kept:
            parameter.data = torch.zeros_like(parameter)
        found = [(each, weights) for each, weights in weights_of(eager, row, shape)]
        for parameter, data in kept:
            parameter.data = data
        weights = next((weights for each, weights in found if each is layer), None)
        if weights is None or bool((weights == 0).any()):
            continue
        added = weights.log() - weights.log().mean(-1, keepdim=True)
        if float(added.abs().max()) <= 1e-4:
            continue
        for other, (_, given) in enumerate(found[:number]):
            if change(added, given - given.mean(-1, keepdim=True)) <= 1e-3 * float(added.abs().max()):
                return f"layer {number} adds the weights of layer {other} to its scores, where a bias would stand"
        return f"layer {number} adds something to its scores that does not come from its queries and keys"
    return ""


def _matrices(layer: nn.Module) -> list[Tensor]:
    """What is multiplied or added in a layer's projections, but no norms."""
    return [
        parameter
        for part in layer.modules()
        if isinstance(weight := getattr(part, "weight", None), Tensor)
        and weight.ndim == 2
        and not isinstance(part, nn.Embedding)
        for parameter in part.parameters(recurse=False)
    ]
