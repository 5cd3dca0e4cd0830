"""Which keys a call after a cache shows to its queries, layer by layer, against one pass."""

from __future__ import annotations

import math
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from posenc.check.models import Called
from posenc.check.weights import blank_steps

__all__ = ["shown_keys"]


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
