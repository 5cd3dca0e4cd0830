"""At which positions a model puts the tokens of a call that follows a cache, read off its outputs."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from posenc.check.models import Called, change
from posenc.check.weights import ERRORS

__all__ = ["first_of", "places_in_words", "read_places"]


def first_of(*causes: Callable[[], str]) -> str:
    """What the first of these says that says something; one that cannot be tried says nothing."""
    for cause in causes:
        try:
            if look := cause():
                return look
        except ERRORS:
            continue
    return ""


def read_places(
    called: Called,
    ids: Tensor,
    cache: Any,
    outputs: Tensor,
    right: int,
    limit: float,
    *,
    mask: Tensor | None = None,
    last: int = 0,
) -> list[int]:
    """The positions which these tokens must be given after this cache for these outputs; [] if there are none.

    Tried first are those from `right` on, and those from `last` on, then each by itself.
    """
    n = ids.shape[1]

    def gives(places: list[int]) -> int:
        """How many of the first outputs are these, with these positions and others that count on from them."""
        row = [*places, *(places[-1] + 1 + t for t in range(n - len(places)))]
        held = torch.tensor(row, device=ids.device).expand(ids.shape[:2])
        try:
            found, _ = called.step(ids, copy.deepcopy(cache), positions=held, mask=mask)
        except (RuntimeError, IndexError, ValueError):
            return 0
        equal = [change(found[:, t], outputs[:, t]) <= limit for t in range(n)]
        return next((t for t in range(n) if not equal[t]), n)

    read = list[int]()
    while len(read) < n:
        at = right + len(read)
        near = [at, last, read[-1], read[-1] - 1] if read else [at, last]
        for place in dict.fromkeys([*near, *range(2 * (right + n)), *range(-at, 0)]):
            if (equal := gives([*read, place])) > len(read):
                read += [place + t for t in range(equal - len(read))]
                break
        else:
            return []
    return read


def places_in_words(read: list[int], right: list[int], whose: str = "new tokens") -> str:
    """Positions that were read, and what they have in common; "" if they are right."""
    if read == right or not read:
        return ""
    first = next(t for t, (a, b) in enumerate(zip(read, right, strict=True)) if a != b)
    wrong, meant = read[first:], right[first:]
    off = {a - b for a, b in zip(wrong, meant, strict=True)}
    steps = {b - a for a, b in itertools.pairwise(wrong)}
    begin = min(right[0], 1) if first else right[0]
    listed = f"{_listed(wrong)} in place of {_listed(meant)}"
    for fits, says in (
        (set(wrong) == {begin - 1} or set(wrong) == {0}, "position 0: what is in the cache is not counted"),
        (off == {1}, "the position after their own"),
        (off == {-1}, "the position of the one before them"),
        (
            wrong == [2 * t - meant[0] + wrong[0] - meant[0] for t in meant],
            f"positions that are counted twice, {listed}",
        ),
        (steps == {0}, f"the same position, {listed}"),
        (steps == {-1}, f"positions that count backwards, {listed}"),
        (len(off) == 1, f"positions {abs(min(off))} too {'far' if min(off) > 0 else 'early'}, {listed}"),
    ):
        if fits:
            return f"{whose} get {says}"
    return f"{whose} get positions {listed}"


def _listed(places: list[int]) -> str:
    return ", ".join(map(str, places[:4])) + ", ..." * (len(places) > 4)
