"""Are queries and keys turned as the configuration says? Read from the calls of a model's own rotary function."""

from __future__ import annotations

import copy
import math
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from posenc.check.faraway import score_error, score_limit
from posenc.check.guesses import frequency_cause
from posenc.check.lengths import limit_of
from posenc.check.models import Called, counted, some_tokens, text_config
from posenc.check.report import Finding, Report
from posenc.check.rotated import Calls, missed_layers, rotated
from posenc.check.turns import FrequencyGuess, cause_of_turn, listed
from posenc.rotary import LayerRotation, RotaryConfig, from_config

__all__ = ["check_rotation"]

_WHAT, _SECTION = "rotations", "longer#take-config"
BY_LENGTH = ("dynamic", "longrope")
"""Words of configurations for frequencies that depend on the length of the text."""


def check_rotation(model: Any, ids: Tensor | None = None) -> Report:
    """Whether the queries and keys of each layer are turned as the configuration says, near 0 and far from it.

    For models of transformers: what goes into their functions apply_rotary_pos_emb and what comes out is recorded in
    one pass. The scores of the first head are compared with those of `posenc.apply_rotary` with the frequencies,
    layout and scale that `posenc.rotary.from_config` reads. So a fault is found that all of a model's own passes share.
    The same is done in bfloat16 and under autocast. Where frequencies depend on the length of the text, with LongRoPE
    and dynamic scaling, a short text and a long one are tried.

    Args:
        model, ids: as in `posenc.check.check_order`.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> bag = torch.nn.Embedding(50, 8).eval()  # each token by itself
    >>> print(check_rotation(bag))
    left out  rotations: no function apply_rotary_pos_emb was called

    Source: a check of this book, explained in check.md#comparisons.
    """
    called, row = Called(model), some_tokens(model, ids)[:1]
    near = counted(row)
    if not rotated(model, row, near):
        return _left("no function apply_rotary_pos_emb was called")
    try:
        config = from_config(text_config(model), length=row.shape[1])
        if any(each.method in BY_LENGTH for each in config.kinds.values()):  # texts of two lengths are judged
            found = _judged(called, model, row, near)
            if not found.ok or found.findings[0].verdict == "left out":
                return found
        return _judged(called, model, row, _places(called, model, row))
    except (TypeError, ValueError) as error:
        return _left(f"the configuration is not read: {str(error).splitlines()[0][:80]}")


def _judged(called: Called, model: Any, row: Tensor, places: Tensor) -> Report:
    """One text at these positions against the configuration."""
    text, calls = text_config(model), rotated(model, row, places)
    config = from_config(text, length=int(places.max()) + 1)
    kinds = config.kinds
    length = int(places.max()) + 1
    guesses: dict[str, FrequencyGuess] = {
        name: partial(frequency_cause, text, length, name) for name in kinds
    }
    layers = [(kinds[name], guesses[name]) for name in config.layers or () if kinds[name].turns]
    if not (found := _which(config, calls, missed_layers(model, calls))).ok:
        return Report((found,))
    if len(layers) != len(calls):
        layers = [(each, guesses[name]) for name, each in kinds.items() if each.turns] * len(calls)
        if len(kinds) > 1:
            return _left(f"{len(calls)} calls, and the configuration does not say which kind each of them is")
    if any(np.asarray(each.frequencies).ndim > 1 for each, _ in layers):
        return _left("frequencies depend on several axes")
    found = _compared(_WHAT, layers, calls, places[0], called.step_of_format)
    if not found.ok or not isinstance(model, nn.Module):
        return Report((found,))
    short = copy.deepcopy(model).to(torch.bfloat16)
    for name, buffer in model.named_buffers():  # what from_pretrained keeps in float32
        owner, _, last = name.rpartition(".")
        held: Any = short.get_submodule(owner)._buffers
        held[last] = buffer
    findings, eps = [found], torch.finfo(torch.bfloat16).eps
    for how, each, automatic in (("in bfloat16", short, False), ("under autocast", model, True)):
        try:
            with torch.autocast(row.device.type, dtype=torch.bfloat16, enabled=automatic):
                calls = rotated(each, row, places)
        except RuntimeError as error:  # an operation that has no such format
            says = f"it cannot run there: {str(error).splitlines()[0][:80]}"
            findings.append(Finding(f"{_WHAT} {how}", "left out", says, math.nan, "", _SECTION))
            continue
        findings.append(_compared(f"{_WHAT} {how}", layers, calls, places[0], eps))
    return Report(tuple(findings))


def _which(config: RotaryConfig, calls: Calls, missed: list[int]) -> Finding:
    """Whether those layers are turned that the configuration says, and each once."""
    of, look, turned = config.layers or (), "", [n for n in calls.layers if n is not None]
    meant = [number for number, name in enumerate(of) if config.kinds[name].turns]
    again = [
        n
        for first, second, n, same in zip(calls, calls[1:], calls.layers, calls.layers[1:], strict=False)
        if n == same and n is not None and all(map(torch.equal, first[2:], second[:2]))
    ]
    shares = any(
        0 < kind.rotary_dim < kind.dim for kind in config.kinds.values()
    )  # with MLA the last are right
    last = [n for n, each in enumerate(calls.from_last) if each and shares]
    if again:
        look = f"layers {listed(again)}: queries and keys are turned twice, the second time what was turned already"
    elif last:
        m = calls[last[0]][0].shape[-1]
        look = f"layers {listed(last)}: the last {m} columns of each head are turned, not the first"
    elif missed and not of and len(config.kinds) == 1:
        look = f"layers: those of number {listed(missed)} are not turned"
    elif len(meant) != len(calls) <= len(of):
        look = "layers: some without position are turned, or some with position are not"
    elif of and len(turned) == len(calls) and turned != meant:
        look = "layers: others are turned than the configuration says"
    if not look:
        return Finding(_WHAT, "ok", "those layers are turned that the configuration says", 0.0, "", _SECTION)
    if of and turned == [number for number in range(len(of)) if number not in meant]:
        look += ": the list is read the other way round"
    for by, way in ((1, "later"), (-1, "earlier")):
        if of and turned and turned == [n for n in range(len(of)) if (n - by) % len(of) in meant]:
            look += f": the list is read one layer {way}"
    says = f"layers {listed(turned)} are turned, and by the configuration {listed(meant) if of else 'all'}"
    if not turned:
        says = f"{len(calls)} layers are turned, and by the configuration {len(meant)} of {len(of)}"
    return Finding(_WHAT, "FAULT", says, len(calls), look, _SECTION)


def _places(called: Called, model: Any, row: Tensor) -> Tensor:
    """Positions (1, length): the first half from 0 on, the second far away, if the model takes them."""
    half, places = row.shape[1] // 2, counted(row)
    last = min(limit_of(model) or 0, 32768)
    if called.positions is None or last <= 2 * row.shape[1]:
        return places
    return torch.cat([places[:, :half], places[:, half:] + last - row.shape[1]], dim=1)


def _compared(
    what: str, layers: list[tuple[LayerRotation, FrequencyGuess]], calls: Calls, places: Tensor, eps: float
) -> Finding:
    sizes = [score_error(vectors, how, places) for (how, _), vectors in zip(layers, calls, strict=False)]
    wrong = [n for n, size in enumerate(sizes) if not size <= score_limit(places, eps)]
    if not wrong:
        says = f"{len(calls)} layers turn as the configuration says, to {max(sizes):.1g}"
        return Finding(what, "ok", says, max(sizes), "", _SECTION)
    causes: dict[str, list[int]] = {}
    for n in wrong:
        how, guess = layers[n]
        number = calls.layers[n]
        causes.setdefault(cause_of_turn(calls[n], how, guess, places, eps), []).append(
            n if number is None else number
        )
    first = wrong[0]
    says = f"scores of layer {first} differ by {sizes[first]:.2g} of their size from what the configuration gives"
    look = "; ".join(f"layer{'s' * (len(of) > 1)} {listed(of)}: {cause}" for cause, of in causes.items())
    return Finding(what, "FAULT", says, sizes[first], look, _SECTION)


def _left(says: str) -> Report:
    return Report((Finding(_WHAT, "left out", says, math.nan, "", _SECTION),))
