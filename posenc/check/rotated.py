"""Queries and keys as a model's own rotary function gets them and gives them back, call by call."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from posenc.check.models import Called, text_config

__all__ = ["Calls", "missed_layers", "rotated"]

KEYS_FIRST = "gptj", "codegen"
"""Models whose function turns one tensor at a time, keys before queries."""


class Calls(list[tuple[Tensor, ...]]):
    """Queries and keys (heads, length, dim), before and after each call, and the layers that made the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.classes = list[int | None](), set[type]()
        self.from_last = list[bool]()  # whether the last columns of each head were taken, not the first


def rotated(model: Any, row: Tensor, places: Tensor, *, mask: bool = True) -> Calls:
    """Queries and keys of each call in one pass, before and after the rotation; with a mask of ones, or without."""
    called = Called(model)
    with _recorded(model, row.shape[1]) as calls:
        if called.positions and mask:
            called.at(row, places)
        elif called.positions:
            called(row, positions=places)
        else:
            called(row)
    return calls


def missed_layers(model: Any, calls: Calls) -> list[int]:
    """Layers of the same class of attention as those that are turned, which are not."""
    numbers = {
        number
        for name, part in (model.named_modules() if isinstance(model, nn.Module) else ())
        if isinstance(number := getattr(part, "layer_idx", None), int)
        and type(part) in calls.classes
        and "Attention" in type(part).__name__
        and not {"cross", "encoder_attn"} & set(name.lower().replace("cross_attn", "cross").split("."))
    }
    return sorted(numbers - set(calls.layers))


@contextmanager
def _recorded(model: Any, length: int) -> Iterator[Calls]:
    """The calls for texts of this length; an encoder beside it has another one."""
    home: Any = sys.modules.get(type(model).__module__)
    calls, inside = Calls(), list[Any]()  # the layer that runs, last
    by_themselves = str(getattr(text_config(model), "model_type", "")) in KEYS_FIRST
    waiting, projected = list[tuple[Tensor, Tensor]](), list[Tensor]()
    functions = {
        name: each
        for name, each in vars(home).items()
        if name.startswith(("apply_rotary_pos_emb", "apply_rotary_emb")) and callable(each)
    }

    def keep(q: Tensor, k: Tensor, *turned: Tensor) -> None:
        if all(isinstance(x, Tensor) and x.ndim == 4 and length in x.shape[1:3] for x in (q, k, *turned)):
            first = (x[0].double() for x in (q, k, *turned))  # Llama 4 has (length, heads, dim)
            calls.append(tuple(x.transpose(0, 1) if x.shape[1] != length else x for x in first))
            calls.from_last.append(_are_last(calls[-1][0], projected[-1][0].double()) if projected else False)
            calls.layers.append(int(inside[-1].layer_idx) if inside else None)
            calls.classes.update(map(type, inside[-1:]))

    def recorder(function: Any) -> Any:
        def recorded(q: Tensor, k: Tensor, *given: Any, **more: Any) -> Any:
            turned = function(q, k, *given, **more)
            if isinstance(turned, tuple):
                keep(q, k, *turned)
            elif by_themselves and not waiting:
                waiting.append((q, turned))
            elif by_themselves:
                keys = waiting.pop()
                keep(q, keys[0], turned, keys[1])
            return turned

        return recorded

    hooks = []
    for name, part in model.named_modules() if isinstance(model, nn.Module) else ():
        if name.endswith("q_proj"):
            hooks.append(part.register_forward_hook(lambda *given: projected.append(given[-1])))
        if isinstance(getattr(part, "layer_idx", None), int):
            hooks.append(part.register_forward_pre_hook(lambda part, _: inside.append(part)))
    try:
        for name, function in functions.items():
            setattr(home, name, recorder(function))
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
        for name, function in functions.items():
            setattr(home, name, function)


def _are_last(queries: Tensor, projected: Tensor) -> bool:
    """Whether queries (heads, length, columns) are the last columns of each head, and no others, of what was made."""
    heads, length, m = queries.shape
    if projected.numel() % (heads * length) or (width := projected.numel() // (heads * length)) <= m:
        return False
    whole = projected.reshape(length, heads, width).transpose(0, 1)
    return torch.equal(queries, whole[..., -m:]) and not torch.equal(queries, whole[..., :m])
