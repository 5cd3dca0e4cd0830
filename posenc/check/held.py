"""What a cache of transformers holds, what it hands to attention, and in which way that is not what one pass has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from posenc.check.models import Called, change, counted

__all__ = ["cut_wrongly", "handed_over", "held_by", "layers_of", "same_rows", "turned_for", "wrong_in_cache"]

Layers = list[tuple[Tensor, Tensor]]
NAMES = "keys", "values"


def layers_of(cache: Any) -> Sequence[Any]:
    """The layers of a cache of transformers, of the decoder itself beside cross-attention; none of another one."""
    return getattr(getattr(cache, "self_attention_cache", cache), "layers", None) or ()


def held_by(cache: Any) -> Layers:
    """Keys and values (batch, heads, length, dim) of each layer, copied; none if they cannot be seen."""
    found = []
    for layer in layers_of(cache):
        keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
        if not isinstance(keys, Tensor) or not isinstance(values, Tensor) or keys.ndim != 4:
            return []
        found.append((keys.double().clone(), values.double().clone()))
    return found


def handed_over(called: Called, ids: Tensor, cache: Any, **given: Any) -> Layers:
    """Keys and values that attention of each layer gets in a call; none if they cannot be seen."""
    _, known = called.step(ids[:, :1], None)
    kind: Any = type(getattr(known, "self_attention_cache", known))
    usual, found = getattr(kind, "update", None), dict[Any, tuple[Tensor, Tensor]]()
    if usual is None or not held_by(known):
        return []

    def keep(self: Any, *given: Any, **more: Any) -> Any:
        layer = more["layer_idx"] if "layer_idx" in more else given[2]
        keys, values = usual(self, *given, **more)
        # The first in a layer: that of cross-attention comes after it.
        found.setdefault(layer, (keys.double().clone(), values.double().clone()))
        return keys, values

    with mock.patch.object(kind, "update", keep):
        called.step(ids, cache, **given)
    return [found[layer] for layer in sorted(found)]


def wrong_in_cache(called: Called, ids: Tensor, cache: Any, start: int, new: int = 1) -> str:
    """What is wrong with keys or values of a text whose last tokens follow the others in this cache; "" if nothing.

    Those of the new tokens are compared in the first layer alone: what is wrong in one makes others in the next.
    """
    before = held_by(cache)
    step, whole = handed_over(called, ids[:, -new:], cache), handed_over(called, ids, None)
    if not step or len(step) != len(whole):
        return ""
    for number, (found, right) in enumerate(zip(step, whole, strict=True)):
        n = right[0].shape[2]
        wrong = [_wrong(x, y) for x, y in zip(found, right, strict=True)]
        for at, (name, x, y) in enumerate(zip(NAMES, found, right, strict=True)):
            after = number and any(t >= n - new for t in wrong[1])  # keys alone are turned
            places = [t for t in wrong[at] if t < n - new or not after]
            if not new < x.shape[2] <= n or not places:
                continue  # one that holds nothing shows in the mask
            is_new, held = places[0] >= n - new, partial(_columns, at=[t - n for t in places])
            count = f"{len(places)} of {n} tokens" if len(places) > 1 else f"token {places[0]}"
            whose = f"({count}, layer {number})"
            look = f"{name} {'of new tokens' if is_new else 'in the cache'}: they"
            if not is_new and number < len(before):
                kept = min(x.shape[2] - new, before[number][at].shape[2])
                old, now = before[number][at][..., -kept:, :], x[..., -new - kept : -new, :]
                look += " change when a token is added, and" * (change(old, now) > _limit(y))
            for says, other in _others(called, ids, whole, number, at, start, n - x.shape[2]).items():
                if change(held(x), held(other)) <= 10 * _limit(y):
                    return f"{look} {says} {whose}"
            if says := _places(held(x), y, places):
                return f"{look} {says} {whose}"
            few = 8 * len(held(x).unique()) < len(held(y).unique())  # so many different numbers are left
            if change(held(x), held(y)) <= (0.5 if few else 0.1) * float(y.abs().max()):
                return f"{look} are rounded, to {change(held(x), held(y)):.1g} {whose}"
            alike = change(held(x).norm(dim=-1), held(y).norm(dim=-1)) <= 10 * _limit(y)
            if is_new and (alike or name == "keys"):
                return f"positions of new tokens: their {name} in layer {number} are not those of one pass"
            if alike:
                return f"{look} are turned otherwise: again, not at all, or for other positions {whose}"
            return f"{look} are not those of one pass {whose}"
    return ""


def _limit(x: Tensor) -> float:
    return 1e-4 * float(x.abs().max())


def _wrong(x: Tensor, y: Tensor) -> list[int]:
    """The tokens of y, numbered from the first, of which x, that may begin later, has something else."""
    n, kept = y.shape[2], x.shape[2]
    if x.shape[:2] + x.shape[3:] != y.shape[:2] + y.shape[3:] or kept > n:
        return []
    return [t for t in range(n - kept, n) if change(x[..., t - n, :], y[..., t - n, :]) > _limit(y)]


def _others(
    called: Called, ids: Tensor, whole: Layers, number: int, at: int, start: int, lost: int
) -> dict[str, Tensor]:
    """What keys or values could be instead."""
    y = whole[number][at]
    others = {
        "are 0, so lost: a window is too narrow, or a slot not written": 0 * y,
        "are those of another row": y.roll(1, 0),
        "are those of the first row": y[:1].expand_as(y),
        "are those of another head": y.flip(1),
    }
    for n, layer in enumerate(whole):
        if n != number and layer[at].shape == y.shape:
            others[f"are those of layer {n}"] = layer[at]
    places = counted(ids, start)
    turned = turned_for(places) | {"are turned for their places in the cache, not in the text": places - lost}
    for says, tried in turned.items() if called.positions else ():
        layers = _tried(called, ids, positions=tried, mask=torch.ones_like(tried) if called.mask else None)
        if number < len(layers) and layers[number][at].shape == y.shape:
            others[says] = layers[number][at]
    return others


def turned_for(places: Tensor) -> dict[str, Tensor]:
    """For which positions queries or keys can be turned in place of these, in words."""
    return {
        "are not turned": 0 * places,
        "are turned twice": 2 * places,
        "are turned for the position before": places - 1,
        "are turned for the position after": places + 1,
    }


def _places(x: Tensor, y: Tensor, places: list[int]) -> str:
    """Of which tokens of y those of x are, which stand at these places; "" if they are of none."""
    apart = (x[..., :, None, :] - y[..., None, :, :]).abs().amax((0, 1, 4))  # (of x, of y)
    if bool((apart.amin(-1) > 10 * _limit(y)).any()):
        return ""
    found = apart.argmin(-1).tolist()
    off = {(a - b) % y.shape[2] for a, b in zip(found, places, strict=True)}
    for fits, says in (
        (off == {y.shape[2] - 1}, "are those of the token before"),
        (off == {1}, "are those of the token after"),
        (len(set(found)) == 1, f"are those of token {found[0]}"),
        (found == sorted(places, reverse=True), "stand in the opposite order"),
    ):
        if fits:
            return says
    listed = ", ".join(map(str, found[:4])) + ", ..." * (len(found) > 4)
    return f"are those of tokens {listed} in place of {places[0]} and on"


def _columns(x: Tensor, at: list[int]) -> Tensor:
    return x[..., at, :]


def _tried(called: Called, ids: Tensor, **given: Any) -> Layers:
    try:
        return handed_over(called, ids, None, **given)
    except (RuntimeError, IndexError, ValueError):
        return []


def cut_wrongly(before: Layers, after: Layers, n: int) -> str:
    """What a cache that is cut back to n tokens does not hold as before; "" if nothing, or a window hides it."""
    lengths = sorted({keys.shape[-2] for keys, _ in after})
    if len(lengths) > 1 and len({keys.shape[-2] for keys, _ in before}) == 1:
        return f"crop: it does not cut all layers, they hold {' and '.join(map(str, lengths))} keys"
    for old, new in zip(before, after, strict=True):
        for name, was, kept in zip(NAMES, old, new, strict=True):
            if was.shape[-2] != n + 3:
                continue
            if kept.shape[-2] != n:
                return f"crop: {name} of {kept.shape[-2]} tokens are kept in place of {n}"
            if change(was[..., :n, :], kept) > 0:
                return f"{name} in the cache: crop keeps others than those of the first {n} tokens"
    return ""


def same_rows(before: Layers, after: Layers, rows: Tensor) -> str:
    """What of a cache does not stand in these rows of before; "" if all does or it cannot be seen."""
    wrong = {
        (number, name)
        for number, layer in enumerate(zip(before, after, strict=True))
        for name, old, new in zip(NAMES, *layer, strict=True)
        if new.shape != old.shape or change(new, old[rows]) > 0
    }
    if not wrong:
        return ""
    numbers, names = {number for number, _ in wrong}, {name for _, name in wrong}
    same = all(old.shape == new.shape and change(new, old) == 0 for layer in zip(before, after, strict=True)
               for old, new in zip(*layer, strict=True))  # fmt: skip
    if same:
        return "it does nothing, all keys and values stay in their rows"
    layers = "all layers" if len(numbers) == len(before) else f"layer {', '.join(map(str, sorted(numbers)))}"
    what = " and ".join(name for name in NAMES if name in names)
    back = torch.empty_like(rows).scatter_(0, rows, torch.arange(len(rows), device=rows.device))
    if len(wrong) == 2 * len(before) and all(
        change(new, old[back]) == 0
        for a, b in zip(before, after, strict=True)
        for old, new in zip(a, b, strict=True)
    ):
        return "rows go the wrong way round, each to the place from which it must come"
    return f"{what} of {layers} do not come from the rows that it is given"
