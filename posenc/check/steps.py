"""Why decoding one token at a time does not give what one pass gives: causes in order, the most exact one first."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from posenc.check.handed import changed_on_the_way
from posenc.check.held import held_by, wrong_in_cache
from posenc.check.masks import reach, replaced
from posenc.check.models import Called, change, counted
from posenc.check.places import first_of, places_in_words, read_places
from posenc.check.seen import queries, shown_keys, unlike_bias, unlike_keys, unlike_pass, weights
from posenc.check.tables import placed

__all__ = ["Steps", "by_length"]


class Steps:
    """Decoding that went wrong, and each step of it anew."""

    def __init__(self, run: Any, decoded: Tensor, prefill: int = 1) -> None:
        self.prefill = prefill
        self.called: Called = run.called
        self.ids, self.full, self.limit, self.start = run.ids, run.full, run.limit, run.start
        self.decoded = decoded
        n = self.ids.shape[1]
        self.first = next(t for t in range(n) if not change(decoded[:, t], self.full[:, t]) <= self.limit)

    def cause(self) -> str:
        return first_of(
            self.by_length,
            self.guessed,
            self.read,
            self.counted_wrongly,
            self.shared_by_rows,
            self.alone,
            self.in_the_cache,
            self.begun,
            self.lost,
            self.in_a_layer,
            self.seen,
            lambda: changed_on_the_way(self.called, self.ids, self.start),
            self.queries,
        ) or (
            "positions of new tokens, or keys in the cache (turned twice or not at all, in another order): outputs "
            f"differ from token {self.first} on, and depend on the tokens that they should"
        )

    def guessed(self) -> str:
        """Wrong positions with which one pass gives what decoding gave, in a model that is given them or not."""
        places = counted(self.ids, self.start)
        begin = places[:, :1]
        for says, tried in (
            ("new tokens get position 0: what is in the cache is not counted", begin.expand_as(places)),
            ("new tokens get the position after their own", torch.cat([begin, places[:, 1:] + 1], 1)),
            ("new tokens get the position of the one before them", torch.cat([begin, places[:, :-1]], 1)),
        ):
            if change(self._at(tried), self.decoded) <= self.limit:
                return says
        return ""

    def _at(self, places: Tensor) -> Tensor:
        """The outputs of one pass at these positions, which are those of the rows of a table if none can be given."""
        if self.called.positions:
            return self.called.at(self.ids, places)
        with placed(self.called.model, self.ids, places):
            return self.called(self.ids)

    def _calls(self, ids: Tensor) -> list[Tensor]:
        """The tokens of each call."""
        first = min(self.prefill, ids.shape[1])
        return [ids[:, :first], *ids[:, first:].split(1, dim=1)] if first < ids.shape[1] else [ids]

    def _steps(self, ids: Tensor, places: Tensor | None = None) -> Tensor:
        cache, outputs, done = None, [], 0
        for part in self._calls(ids):
            held = None if places is None else places[:, done : done + part.shape[1]]
            output, cache = self.called.step(part, cache, positions=held)
            done += part.shape[1]
            outputs.append(output)
        return torch.cat(outputs, dim=1)

    def _before(self, t: int) -> Any:
        """The cache with which the model is given token t."""
        cache = None
        for part in self._calls(self.ids[:, :t]):
            _, cache = self.called.step(part, cache)
        return cache

    def by_length(self) -> str:
        return by_length(self.called, self.ids, self.full, self.limit)

    def begun(self) -> str:
        """Whether already a pass that begins the cache differs from one without."""
        if change(self.called.step(self.ids, None)[0], self.full) <= self.limit:
            return ""
        says = "with an empty cache", "without a cache"
        return unlike_pass(self.called, self.ids, self.start, lambda: self.called.step(self.ids, None), says)

    def read(self) -> str:
        """The positions at which new tokens are put, one after another."""
        if not self.called.positions:
            return ""
        cache, found, done = None, list[int](), 0
        for part in self._calls(self.ids):
            before = copy.deepcopy(cache)
            output, cache = self.called.step(part, cache)
            last = found[-1] + 1 if found else self.start
            places = read_places(self.called, part, before, output, self.start + done, self.limit, last=last)
            if not places:
                break
            found += places
            done += part.shape[1]
        return places_in_words(found, [self.start + t for t in range(len(found))])

    def counted_wrongly(self) -> str:
        if (
            self.called.positions
            and change(self._steps(self.ids, counted(self.ids, self.start)), self.full) <= self.limit
        ):
            return "positions of new tokens: right when they are given, so the model counts wrongly by itself"
        return ""

    def shared_by_rows(self) -> str:
        if self.ids.shape[0] > 1 and change(self._steps(self.ids[:1]), self.full[:1]) <= self.limit:
            return "what the rows of a batch share: a row alone is decoded rightly, so keys or values change rows"
        return ""

    def alone(self) -> str:
        alone = torch.cat([self.called(self.ids[:, n : n + 1]) for n in range(self.ids.shape[1])], dim=1)
        if change(alone[:, 1:], self.decoded[:, 1:]) <= self.limit:
            return "the cache: each token sees itself alone"
        return ""

    def in_the_cache(self) -> str:
        """Keys or values, in a step after one pass and where decoding first goes wrong."""
        n = self.ids.shape[1] - 1
        look = wrong_in_cache(self.called, self.ids, self.called.step(self.ids[:, :n], None)[1], self.start)
        return look or (
            wrong_in_cache(self.called, self.ids[:, : self.first + 1], self._before(self.first), self.start)
            if self.first
            else ""
        )

    def lost(self) -> str:
        """Whether the cache holds fewer keys than that of one pass."""
        n, cache = self.ids.shape[1], self._before(self.ids.shape[1])
        held, whole = (
            min((keys.shape[-2] for keys, _ in held_by(each)), default=0)
            for each in (cache, self.called.step(self.ids, None)[1])
        )
        if held < whole:
            return (
                f"the cache: it holds {held} of {n} keys, the oldest are lost (from output {self.first} on)"
            )
        return ""

    def in_a_layer(self) -> str:
        """The first layer whose mask or bias is not in a step with a cache what it is in one pass."""
        for n in (self.ids.shape[1], self.first + 1):
            for number, (whole, step) in enumerate(
                shown_keys(self.called, self.ids[:1, :n]) if n > 1 else ()
            ):
                if look := unlike_keys(whole[:, 0], step[:, 0]):
                    return f"the mask with a cache: in layer {number} the newest token {look}"
                if look := unlike_bias(whole[:, 0, -step.shape[2] :], step[:, 0], number):
                    return look
        return ""

    def seen(self) -> str:
        """Which tokens reach the outputs of decoding, against those of one pass."""
        n, found = self.ids.shape[1], self._steps(replaced(self.ids))
        differs = (found[1:] - found[:1]).flatten(2).abs().amax(-1) > self.limit
        seen, meant = differs.T, reach(self.called, self.ids)
        if len(extra := (seen & ~meant).nonzero()):
            t, u = map(int, extra[0])
            return f"the mask with a cache: output {t} sees token {u}, which one pass hides"
        alone = torch.eye(n, dtype=torch.bool, device=seen.device)
        alone[:, 0] = True
        if not bool((seen & ~alone).any()):
            return (
                "the mask with a cache: new tokens see the first key alone, so it is laid from the first key"
            )
        if self.first == 0:
            return (
                "what depends on the number of tokens in a call (a branch for one token, a scale, an attention sink): "
                "the first token differs, with nothing in the cache"
            )
        if len(lost := (meant & ~seen).nonzero()):
            t, u = map(int, lost[0])
            return (
                f"the mask with a cache: output {t} does not see token {u}, which one pass shows (another window, or a "
                "mask laid from the first key)"
            )
        return ""

    def queries(self) -> str:
        """A step in which keys and values are right, and what is seen."""
        n, says = self.ids.shape[1] - 1, "and outputs depend on the tokens that they should"
        _, cache = self.called.step(self.ids[:, :n], None)
        if not held_by(cache):
            return ""
        _, cache = self.called.step(self.ids[:, n:], cache)
        _, whole = self.called.step(self.ids, None)
        right = [
            all(
                change(a[..., -1, :], b[..., -1, :]) <= 1e-4 * float(b.abs().max())
                for a, b in zip(x, y, strict=True)
            )
            for x, y in zip(held_by(cache), held_by(whole), strict=True)
        ]
        number = [*right, False].index(False) - 1
        if factor := self._factor():
            return factor
        where = f"their queries in layer {number} are {self._place_of_query(number)}"
        return (
            f"positions of new tokens: from token {self.first} on {where}: keys and values are right, {says}"
        )

    def _factor(self) -> str:
        """By which factor scores of the first layer are another one's in a step; "" if that is not it."""
        n = self.ids.shape[1] - 1
        _, cache = self.called.step(self.ids[:, :n], None)
        whole = weights(self.called, lambda: self.called(self.ids))
        step = weights(self.called, lambda: self.called.step(self.ids[:, n:], cache))
        if not whole or not step or step[0].shape[-1] != whole[0].shape[-1]:
            return ""
        # Weights are e to the scores, so their logarithms differ by a factor, and by a number for all keys.
        a, b = (each[0][:, :, -1].clamp(min=1e-30).log() for each in (step, whole))
        a, b = (each - each.mean(-1, keepdim=True) for each in (a, b))
        factor = float((a * b).sum() / (b * b).sum())
        if abs(factor - 1) < 1e-3 or change(a, factor * b) > 1e-2 * float(a.abs().max()):
            return ""
        return f"the scale with a cache: scores of new tokens in layer 0 are {factor:.3g} times those of one pass"

    def _place_of_query(self, number: int) -> str:
        """Where the last query of a layer stands, by those of one pass that begins elsewhere."""
        n, unknown = self.ids.shape[1] - 1, "not those of one pass"
        _, cache = self.called.step(self.ids[:, :n], None)
        step = queries(self.called, lambda: self.called.step(self.ids[:, n:], cache))
        if number >= len(step) or not self.called.positions:
            return unknown
        for off in sorted(range(-n - self.start, n), key=abs):
            places = counted(self.ids, self.start) + off
            try:
                whole = queries(self.called, lambda places=places: self.called.at(self.ids, places))  # type: ignore[misc]
            except (RuntimeError, IndexError, ValueError):
                continue
            if len(whole) != len(step) or (off == 0 and self._same(step[number], whole[number])):
                return unknown if off else "right, but what is made of them is not: a scale, or a mask"
            if self._same(step[number], whole[number]):
                return f"those of position {n + self.start + off}, not {n + self.start}"
        return unknown

    def _same(self, step: Tensor, whole: Tensor) -> bool:
        return change(step[..., -1, :], whole[..., -1, :]) <= 1e-4 * float(whole.abs().max())


def by_length(called: Called, ids: Tensor, full: Tensor, limit: float) -> str:
    """Whether the first tokens alone give other outputs than with more after them; "" if not."""
    for n in range(2, ids.shape[1]):  # one alone may have a branch of its own
        if change(called(ids[:, :n]), full[:, :n]) > limit:
            return (
                f"what depends on the number of tokens in a call, without a cache, too: the first {n} alone give other "
                "outputs than in a longer text (frequencies or a scale that change with the length)"
            )
    return ""
