"""Are the slopes of ALiBi the published ones? Read from what a model's own functions make."""

from __future__ import annotations

import math
import sys
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np
from torch import Tensor, nn

from posenc.alibi import alibi_slopes
from posenc.check.models import Called, some_tokens, text_config
from posenc.check.report import Finding, Report
from posenc.check.weights import blank_weights

__all__ = ["check_slopes"]

_WHAT, _SECTION = "slopes of ALiBi", "alibi#slopes"
UNREAD = "no slope or bias for each head comes from functions with alibi in their names"


def check_slopes(model: Any, ids: Tensor | None = None) -> Report:
    """Whether the slopes of ALiBi are those of the authors' program, in their order.

    For models of transformers: what their functions with alibi in the name give in one pass is recorded, and the bias
    that really reaches the scores of each layer is read from its weights of attention. All of a model's own passes
    share wrong slopes, so no comparison of its outputs finds them.

    Args:
        model, ids: as in `posenc.check.check_order`.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> import torch
    >>> bag = torch.nn.Embedding(50, 8).eval()  # each token by itself
    >>> print(check_slopes(bag))
    left out  slopes of ALiBi: no function with alibi in its name was called

    Source: a check of this book, explained in check.md#comparisons.
    """
    called, ids = Called(model), some_tokens(model, ids)
    parts = model.modules() if isinstance(model, nn.Module) else ()
    methods = [
        (part, name)
        for part in parts
        for name in dir(part)
        if "alibi" in name and callable(getattr(part, name))
    ]
    home, made = sys.modules.get(type(model).__module__), list[Tensor]()

    def recorder(function: Any) -> Any:
        def recorded(*given: Any, **more: Any) -> Any:
            result = function(*given, **more)
            made.extend([result.double()] if isinstance(result, Tensor) else [])
            return result

        return recorded

    functions = {name: each for name, each in vars(home).items() if "alibi" in name and callable(each)}
    with ExitStack() as stack:
        stack.enter_context(
            mock.patch.dict(vars(home), {name: recorder(each) for name, each in functions.items()})
        )
        for part, name in methods:  # those of an instance hide those of its class, and call no function
            patched = {name: recorder(getattr(part, name))}
            stack.enter_context(mock.patch.dict(vars(part), patched))
        called(ids[:1])
    heads = getattr(text_config(model), "num_attention_heads", 0)
    # a number for each head, or a bias that grows by it from key to key
    steps = [bias if bias.ndim == 1 else bias.flatten(0, -2).diff(dim=-1)[:, :1].flatten() for bias in made]
    steps = [step for step in steps if len(step) == heads]
    uneven = [bias for bias in made if bias.ndim > 1 and _uneven(bias.diff(dim=-1))]
    if not steps:
        says = "no function with alibi in its name was called"
        if made or (functions and getattr(text_config(model), "alibi", functions)):
            says = UNREAD
        return Report((Finding(_WHAT, "left out", says, math.nan, "", _SECTION),))
    found, wanted = steps[0].abs().numpy(), np.asarray(alibi_slopes(heads))
    off = float(np.abs(found / wanted - 1).max())
    if off < 1e-2:
        if at_scores := _at_scores(model, ids[:1], wanted):
            return Report((at_scores,))
        says = f"{heads} heads have the published slopes"
        return Report((Finding(_WHAT, "ok", says, off, "", _SECTION),))
    says = f"{heads} heads have {_listed(found)}, and published are {_listed(wanted)}"
    look = f"the slopes: {_cause_of_slopes(found, wanted) or OTHER}"
    if uneven:
        look = "the bias: it does not grow evenly with the distance"
    return Report((Finding(_WHAT, "FAULT", says, off, look, _SECTION),))


def _uneven(steps: Tensor) -> bool:
    """Whether steps from key to key are not all alike."""
    return float((steps - steps.mean(-1, keepdim=True)).abs().max()) > 1e-2 * float(steps.abs().max())


OTHER = "other ones than those of the authors' program"


def _cause_of_slopes(found: np.ndarray, wanted: np.ndarray) -> str:
    """The first of the usual mistakes that gives these slopes; "" for none."""
    heads = len(found)
    numbers, power = np.arange(1, heads + 1), 2 ** int(math.log2(heads))
    ratio = float(np.median(found / wanted))
    in_order = np.concatenate([alibi_slopes(power), np.asarray(alibi_slopes(2 * power))[: heads - power]])
    tried = {
        "made by the formula for powers of two": 2.0 ** (-8 * numbers / heads),
        "heads are counted from 0, not from 1": 2.0 ** (-8 * (numbers - 1) / heads),
        "the published ones, in another order of the heads: reversed": wanted[::-1],
        f"all heads have the same, {found[0]:.3g}": np.full(heads, found[0]),
        f"those beyond {power} heads are the first of {2 * power} heads, not every other one": in_order,
        "one over the number of the head": 1.0 / numbers,
        "the published ones, squared": wanted**2,
        "the published ones, of which the root was taken": wanted**0.5,
        f"the published ones, multiplied by {ratio:.4g}": ratio * wanted,
    }
    for says, slopes in tried.items():
        if not np.allclose(wanted, slopes, rtol=1e-2) and np.allclose(found, slopes, rtol=1e-2):
            return says
    if np.allclose(np.sort(found), np.sort(wanted), rtol=1e-2):
        return "the published ones, in another order of the heads"
    return _of_other_heads(found)


def _of_other_heads(found: np.ndarray) -> str:
    """Whether these are the published slopes of another number of heads, and how they were spread; "" if not."""
    heads = len(found)
    for other in range(1, 2 * heads + 1):
        slopes = np.asarray(alibi_slopes(other))
        spread = {f"those of {other} heads": slopes[:heads]}
        if other < heads and heads % other == 0:
            times = heads // other
            spread = {
                f"those of {other} heads, {times} times over, as where each of {times} devices makes its own": np.tile(
                    slopes, times
                ),
                f"those of {other} heads, each for {times} heads, as where heads share keys": np.repeat(
                    slopes, times
                ),
            }
        for says, each in spread.items():
            if other != heads and len(each) == heads and np.allclose(found, each, rtol=1e-2):
                return says
    return ""


def _at_scores(model: Any, row: Tensor, wanted: np.ndarray) -> Finding | None:
    """The first layer whose weights of attention do not show these slopes; None without one."""
    text, heads = text_config(model), len(wanted)
    root = math.sqrt(getattr(text, "hidden_size", 0) // heads or 1)
    if getattr(text, "model_type", "") == "falcon":  # its program scales scores and bias alike
        wanted = wanted / root
    for number, (_, weights) in enumerate(blank_weights(model, row)):
        steps = weights[:, -1].log().diff(dim=-1).mean(-1).numpy()
        if len(steps) != heads or np.allclose(steps, wanted, rtol=2e-2):
            continue
        rises = weights[:, -1].log().diff(dim=-1)
        at_half, at_end = (float(rises[0, n]) for n in (rises.shape[1] // 2, -1))
        tried = {
            "the sign of the bias: keys far away get more weight than near ones": (-1.0, -2.0),
            "the bias: it is divided by the root of the head's width as the products are, and belongs after that": (
                1 / root,
            ),
            "the bias: it is multiplied by the root of the head's width": (root,),
            "the bias: it is added twice": (2.0,),
            "the bias: it is half of what it must be": (0.5,),
        }
        look = "the bias: it is changed between the slopes and the scores"
        if _uneven(rises):
            by = f"by {at_half:.3g} from key to key half way, and by {at_end:.3g} at the end"
            look = f"the bias: it does not grow evenly with the distance, {by}"
        elif np.allclose(steps, 0.0, atol=1e-6):
            look = "the bias: it does not reach the scores"
        elif np.allclose(np.sort(steps), np.sort(wanted), rtol=2e-2):
            look = "the bias: heads have the slopes of other heads"
        for cause, factors in tried.items():
            if any(np.allclose(steps, factor * wanted, rtol=2e-2) for factor in factors):
                look = cause
        says = f"scores rise from key to key by {_listed(steps)}, the slopes are {_listed(wanted)}"
        off = float(np.abs(steps / wanted - 1).max())
        return Finding(_WHAT, "FAULT", says, off, f"layer {number}: {look}", _SECTION)
    return None


def _listed(slopes: np.ndarray) -> str:
    return ", ".join(f"{slope:.3g}" for slope in slopes[:4]) + ", ..." * (len(slopes) > 4)
