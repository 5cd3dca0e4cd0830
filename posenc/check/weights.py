"""The weights of attention of each layer, as a model of transformers makes them."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from posenc.check.models import Called, change, tolerance

__all__ = ["blank_weights"]


def blank_weights(model: Any, row: Tensor) -> list[tuple[nn.Module, Tensor]]:
    """Each layer of attention, and the weights (heads, length, length) of its queries if all products are 0.

    They show masks and biases alone: without a bias each query gives the same weight to all keys that it sees. A copy
    is run in which all matrices but those of embeddings are 0. Empty for a model that gives no weights back, or gives
    other outputs where it does.
    """
    if not isinstance(model, nn.Module):
        return []
    blank, found = copy.deepcopy(model), list[tuple[nn.Module, Tensor]]()
    configs: list[Any] = [getattr(part, "config", None) for part in blank.modules()]
    configs = [config for config in configs if hasattr(config, "_attn_implementation")]
    for config in configs:
        config._attn_implementation = "eager"  # the only one that gives them back
    n, known = row.shape[1], list[Tensor]()

    def keep(module: nn.Module, _given: Any, output: Any) -> None:
        for each in output if isinstance(output, tuple) else ():
            if not isinstance(each, Tensor) or each.shape[2:] != (n, n) or any(each is old for old in known):
                continue
            total = each.double().sum(-1)  # below 1 beside an attention sink
            if each.ndim == 4 and bool((each >= 0).all() & (total > 1e-3).all() & (total < 1.01).all()):
                known.append(each)  # an outer module may pass on what an inner one gave
                found.append((module, each[0].double().cpu()))

    try:
        if not configs or change(Called(blank)(row), Called(model)(row)) > tolerance(Called(model), row):
            return []
        for part in blank.modules():
            weight = getattr(part, "weight", None)
            if isinstance(weight, Tensor) and weight.ndim == 2 and not isinstance(part, nn.Embedding):
                for parameter in part.parameters(recurse=False):
                    parameter.data = torch.zeros_like(parameter)
            part.register_forward_hook(keep)
        Called(blank)(row)
    except (RuntimeError, IndexError, ValueError, TypeError, AttributeError):
        return []
    return found
