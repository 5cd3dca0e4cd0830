"""What attention gets, layer by layer, in a call after a cache or another run, against one pass."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import Tensor, nn

from posenc.check.held import turned_for
from posenc.check.models import Called, change, counted
from posenc.check.weights import ERRORS, blank_steps

__all__ = [
    "attended",
    "queries",
    "shown_keys",
    "unlike_bias",
    "unlike_keys",
    "unlike_pass",
    "weights",
]


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


class Attended(NamedTuple):
    """What a function of attention gets, (batch, heads, length, dim), and the weights if it gives them back."""

    queries: Tensor
    keys: Tensor
    values: Tensor
    weights: Tensor | None


def queries(called: Called, run: Callable[[], object]) -> list[Tensor]:
    """Queries (batch, heads, length, dim) that functions of attention get in a run, layer by layer."""
    return [each.queries for each in attended(called, run)]


def weights(called: Called, run: Callable[[], object]) -> list[Tensor]:
    """Weights (batch, heads, length, keys) that functions of attention give back in a run, if they do."""
    return [each.weights for each in attended(called, run) if each.weights is not None]


def attended(called: Called, run: Callable[[], object]) -> list[Attended]:
    """All calls of functions of attention in a run."""
    home: Any = sys.modules.get(type(called.model).__module__)
    calls, names = list[Attended](), ("query", "key", "value")

    def recorder(usual: Any, at: int) -> Any:
        def recorded(*given: Any, **more: Any) -> Any:
            asked = [more[name] if name in more else given[at + n] for n, name in enumerate(names)]
            query, key, value = (each.detach().double() for each in asked)
            found = usual(*given, **more)
            back = found[-1] if isinstance(found, tuple) else None
            calls.append(
                Attended(query, key, value, back.detach().double() if isinstance(back, Tensor) else None)
            )
            return found

        return recorded

    owners = (nn.functional, "scaled_dot_product_attention", 0), (home, "eager_attention_forward", 1)
    with ExitStack() as stack:
        for owner, name, at in owners:
            if hasattr(owner, name):
                usual = getattr(owner, name)
                stack.enter_context(mock.patch.object(owner, name, recorder(usual, at)))
        run()
    return calls


def unlike_pass(
    called: Called, ids: Tensor, start: int, run: Callable[[], object], says: tuple[str, str]
) -> str:
    """What attention gets in a run and not in one pass, in words for the two; "" if it is the same."""
    whole, first, (here, there) = attended(called, lambda: called(ids)), attended(called, run), says
    for number, (wanted, found) in enumerate(zip(whole, first, strict=True)):
        for name in ("queries", "keys", "values"):
            x, y = getattr(found, name), getattr(wanted, name)
            if x.shape != y.shape:  # a cache that is cut has other causes
                return ""
            if change(x, y) <= (limit := 1e-4 * float(y.abs().max())):
                continue
            look = f"{here}: {name} of layer {number} are not those {there}"
            for how, places in turned_for(counted(ids, start)).items() if called.positions else ():
                with suppress(*ERRORS):
                    other = attended(called, lambda at=places: called.at(ids, at))  # type: ignore[misc]
                    if change(x, getattr(other[number], name)) <= limit:
                        return f"{look}, they {how}"
            return look
        a, b = wanted.weights, found.weights
        if a is not None and b is not None and (a.shape != b.shape or change(a, b) > 1e-4):
            how = "queries and keys are the same, a mask, a bias or a scale is not"
            return f"{here}: weights of layer {number} are not those {there}, {how}"
    return ""


def unlike_keys(whole: Tensor, step: Tensor) -> str:
    """Which keys the newest token sees with a cache and not in one pass, or the other way round; "" if the same."""
    held, n = step.shape[-1], whole.shape[-1]
    shown = (whole > 0).any(0)
    seen = torch.cat([torch.zeros(n - held, dtype=torch.bool), (step > 0).any(0)])
    lost, extra = (each.nonzero().flatten().tolist() for each in (shown & ~seen, seen & ~shown))
    if not lost and not extra:
        return ""
    if lost and not extra:
        says = f"does not see {len(lost)} of the {int(shown.sum())} keys that one pass shows it"
    elif lost:
        says = f"sees {len(extra)} keys that one pass hides, and not {len(lost)} that it shows"
    else:
        says = f"sees {len(extra)} keys that one pass hides"
    oldest = int(shown.nonzero()[0])
    for fits, why in (
        (lost == [n - 1], "itself"),
        (bool(seen[0]) and int(seen.sum()) == 1, "the first key alone, so it is laid from the first key"),
        (lost == [0] and oldest == 0, "the first key, which must stay"),
        (not extra and lost == list(range(oldest, oldest + len(lost))) and oldest, "a narrower window"),
        (not lost and bool(seen.all()), "no window"),
        (not lost and extra == list(range(extra[0], oldest)), "a wider window"),
    ):
        if fits:
            return f"{says} ({why}: {int(seen.sum())} keys in place of {int(shown.sum())})"
    return says


def unlike_bias(wanted: Tensor, step: Tensor, number: int) -> str:
    """What a bias or a sink of the newest token is with a cache, by the weights (heads, keys) that it makes alone."""
    rests = [1 - float(each.sum(-1).min()) for each in (wanted, step)]
    if min(rests) < 1e-4 < 1e-2 < max(rests):
        how = "is left out" if rests[1] < 1e-4 else "is there, and not in one pass"
        return f"the attention sink: with a cache that of layer {number} {how}"
    if change(step, wanted) > 1e-4:
        return f"positions of new tokens: with a cache the bias of layer {number} {_bias(step, wanted)}"
    return ""


def _bias(step: Tensor, wanted: Tensor) -> str:
    """What a bias is instead, by the weights (heads, keys) that it makes alone."""
    n = step.shape[-1]

    def equal(a: Tensor, b: Tensor) -> bool:
        return change(*(x / x.sum(-1, keepdim=True) for x in (a, b))) <= 1e-4

    if equal(step, torch.ones_like(step)):
        return "is left out"
    for says, other in (
        ("that of other heads", wanted.flip(0)),
        ("that of the first head for all", wanted[:1].expand_as(wanted)),
        ("read backwards, from the newest key to the first", wanted.flip(-1)),
    ):
        if equal(step, other):
            return f"is not that of the newest token, but {says}"
    for off in range(1, n - 1):
        if equal(step[:, off:], wanted[:, :-off]):
            return f"is not that of the newest token, but that of a query {off} later"
        if equal(step[:, :-off], wanted[:, off:]):
            return f"is not that of the newest token, but that of a query {off} earlier"
    return "is not that of the newest token"
