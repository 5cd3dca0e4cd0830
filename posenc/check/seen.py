"""Which keys a call after a cache shows to its queries, layer by layer, against one pass."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from posenc.check.models import Called
from posenc.check.weights import blank_steps

__all__ = ["queries", "shown_keys"]


def shown_keys(called: Called, ids: Tensor, last: int = 1) -> list[tuple[Tensor, Tensor]]:
    """For each layer the weights (heads, last, keys) of masks alone: in one pass, and after a cache of all before them.

    They are read from the calls of torch's scaled_dot_product_attention, or else as `blank_steps` does.
    """
    whole = _masks(called, ids, None)
    if whole:
        _, cache = called.step(ids[:, :-last], None)
        step = _masks(called, ids[:, -last:], cache)
        if len(step) == len(whole):
            return [(a[:, -last:], b) for a, b in zip(whole, step, strict=True)]
    steps = blank_steps(called.model, ids, last)
    return [(whole[:, None], step[:, None]) for whole, step in steps] if last == 1 else steps


def _masks(called: Called, ids: Tensor, cache: Any) -> list[Tensor]:
    usual, found = nn.functional.scaled_dot_product_attention, list[Tensor]()

    def recorded(q: Tensor, k: Tensor, v: Tensor, *given: Any, **more: Any) -> Tensor:
        mask = given[0] if given else more.get("attn_mask")
        n, m = q.shape[-2], k.shape[-2]
        if n == ids.shape[1]:  # cross-attention has other keys, and no mask of its own
            bias = torch.zeros(n, m, dtype=torch.float64)
            if more.get("is_causal") or (len(given) > 2 and given[2]):
                bias = bias.masked_fill(torch.ones(n, m, dtype=torch.bool).triu(1), -math.inf)
            elif mask is not None:
                held = mask.detach().cpu()
                held = held.double() if held.dtype != torch.bool else bias.masked_fill(~held, -math.inf)
                bias = held[0].expand(-1, n, m) if held.ndim == 4 else held.expand(1, n, m)
            found.append(bias.reshape(-1, n, m).softmax(-1).nan_to_num())
        return usual(q, k, v, *given, **more)

    with mock.patch.object(nn.functional, "scaled_dot_product_attention", recorded):
        called.step(ids, cache)
    return found


def queries(called: Called, run: Callable[[], object]) -> list[Tensor]:
    """Queries (batch, heads, length, dim) that functions of attention get in a run, layer by layer."""
    home: Any = sys.modules.get(type(called.model).__module__)
    found = list[Tensor]()

    def recorder(usual: Any, at: int) -> Any:
        def recorded(*given: Any, **more: Any) -> Any:
            query = more["query"] if "query" in more else given[at]
            found.append(query.detach().double())
            return usual(*given, **more)

        return recorded

    owners = (nn.functional, "scaled_dot_product_attention", 0), (home, "eager_attention_forward", 1)
    with ExitStack() as stack:
        for owner, name, at in owners:
            if hasattr(owner, name):
                usual = getattr(owner, name)
                stack.enter_context(mock.patch.object(owner, name, recorder(usual, at)))
        run()
    return found
