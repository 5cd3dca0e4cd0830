"""The weights of attention of each layer, as a model of transformers makes them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from posenc.check.models import Called, change, tolerance

__all__ = ["blank_steps", "blank_weights", "weights_of"]

ERRORS = RuntimeError, IndexError, ValueError, TypeError, AttributeError


def blank_weights(
    model: Any, row: Tensor, keys: int | None = None, **given: Tensor | None
) -> list[tuple[nn.Module, Tensor]]:
    """Each layer of attention, and the weights (heads, length, keys) of its queries if all products are 0.

    They show masks and biases alone: without a bias each query gives the same weight to all keys that it sees. A copy
    is run in which all matrices but those of embeddings are 0. Empty for a model that gives no weights back, or gives
    other outputs where it does. Without a number of keys those of attention within the row are meant. A mask or
    positions can be given.
    """
    if (blank := _blank(model, row)) is None:
        return []
    return _weights(blank, lambda: Called(blank)(row, **given), (row.shape[1], keys or row.shape[1]))


def blank_steps(model: Any, row: Tensor, last: int = 1) -> list[tuple[Tensor, Tensor]]:
    """For each layer such weights of the last queries: in one pass, and after a cache of all before them.

    Their shape is (heads, keys), or (heads, last, keys) for more than one query.
    """
    n = row.shape[1]
    if (blank := _blank(model, row)) is None:
        return []
    whole = _weights(blank, lambda: Called(blank)(row), (n, n))
    _, cache = Called(blank).step(row[:, :-last], None)
    steps = dict(_weights(blank, lambda: Called(blank).step(row[:, -last:], cache), (last, None)))
    found = [(weights[:, -last:], steps[layer]) for layer, weights in whole if layer in steps]
    return [(whole[:, 0], step[:, 0]) for whole, step in found] if last == 1 else found


def _blank(model: Any, row: Tensor) -> nn.Module | None:
    """A copy whose matrices are 0 and which gives its weights back; None if it cannot be made."""
    if not isinstance(model, nn.Module):
        return None
    blank = copy.deepcopy(model)
    configs: list[Any] = [getattr(part, "config", None) for part in blank.modules()]
    configs = [config for config in configs if hasattr(config, "_attn_implementation")]
    for config in configs:
        config._attn_implementation = "eager"  # the only one that gives them back
        config.output_attentions = True  # LongT5 does so only if it is asked
    try:
        if not configs or change(Called(blank)(row), Called(model)(row)) > tolerance(Called(model), row):
            return None
    except ERRORS:
        return None
    for part in blank.modules():
        weight = getattr(part, "weight", None)
        if isinstance(weight, Tensor) and weight.ndim == 2 and not isinstance(part, nn.Embedding):
            for parameter in part.parameters(recurse=False):
                parameter.data = torch.zeros_like(parameter)
    return blank


def weights_of(model: nn.Module, row: Tensor, shape: tuple[int, int]) -> list[tuple[nn.Module, Tensor]]:
    """What layers give back in one pass that are weights (heads, length, keys) of so many queries and keys."""
    return _weights(model, lambda: Called(model)(row), shape)


def _weights(
    blank: nn.Module, run: Callable[[], object], shape: tuple[int, int | None]
) -> list[tuple[nn.Module, Tensor]]:
    """What layers give back in a run that are weights of so many queries and keys."""
    known, found = list[Tensor](), list[tuple[nn.Module, Tensor]]()

    def keep(module: nn.Module, _given: Any, output: Any) -> None:
        for each in output if isinstance(output, tuple) else ():
            if not isinstance(each, Tensor) or any(each is old for old in known):
                continue
            laid = _unblocked(each, shape[0]) if each.ndim == 5 else each
            if laid.ndim != 4 or laid.shape[2:] != (shape[0], shape[1] or laid.shape[3]):
                continue
            total = laid.double().sum(-1)  # below 1 beside an attention sink
            if bool((laid >= 0).all() & (total > 1e-3).all() & (total < 1.01).all()):
                known.append(each)  # an outer module may pass on what an inner one gave
                found.append((module, laid[0].double().cpu()))

    hooks = [part.register_forward_hook(keep) for part in blank.modules()]
    try:
        run()
    except ERRORS:
        return []
    finally:
        for hook in hooks:
            hook.remove()
    return found


def _unblocked(weights: Tensor, n: int) -> Tensor:
    """Weights (batch, blocks, heads, length of a block, its keys) as (batch, heads, n, n).

    As in LongT5, keys are those of the block before, of its own and of the next; others, after them, are left out.
    """
    batch, blocks, heads, size, keys = weights.shape
    if keys < 3 * size or blocks * size < n:
        return weights
    laid = weights.new_zeros(batch, heads, blocks * size, (blocks + 2) * size)
    for number in range(blocks):
        at = number * size
        laid[:, :, at : at + size, at : at + 3 * size] = weights[:, number, ..., : 3 * size]
    return laid[:, :, :n, size : size + n]
