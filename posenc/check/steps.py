"""Why decoding one token at a time does not give what one pass gives: causes in order, the most exact one first."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from posenc.check.held import held_by, wrong_in_cache
from posenc.check.masks import reach, replaced
from posenc.check.models import Called, change, counted, text_config
from posenc.check.places import places_in_words, read_places
from posenc.check.seen import queries, shown_keys
from posenc.check.tables import placed

__all__ = ["Steps", "unlike_keys"]


class Steps:
    """Decoding that went wrong, and each step of it anew."""

    def __init__(self, run: Any, decoded: Tensor) -> None:
        self.called: Called = run.called
        self.ids, self.full, self.limit, self.start = run.ids, run.full, run.limit, run.start
        self.decoded = decoded
        n = self.ids.shape[1]
        self.first = next(t for t in range(n) if not change(decoded[:, t], self.full[:, t]) <= self.limit)

    def cause(self) -> str:
        for cause in (
            self.guessed,
            self.read,
            self.counted_wrongly,
            self.shared_by_rows,
            self.alone,
            self.in_the_cache,
            self.in_a_layer,
            self.seen,
            self.queries,
        ):
            if look := cause():
                return look
        return (
            f"positions of new tokens, or keys in the cache (turned twice or not at all, in another order): outputs "
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

    def _steps(self, ids: Tensor, places: Tensor | None = None) -> Tensor:
        cache, outputs = None, []
        for t in range(ids.shape[1]):
            held = None if places is None else places[:, t : t + 1]
            output, cache = self.called.step(ids[:, t : t + 1], cache, positions=held)
            outputs.append(output)
        return torch.cat(outputs, dim=1)

    def _before(self, t: int) -> Any:
        """The cache with which the model is given token t."""
        cache = None
        for u in range(t):
            _, cache = self.called.step(self.ids[:, u : u + 1], cache)
        return cache

    def read(self) -> str:
        """The positions at which new tokens are put, one after another."""
        if not self.called.positions:
            return ""
        cache, found = None, list[int]()
        for t in range(self.ids.shape[1]):
            token, before = self.ids[:, t : t + 1], copy.deepcopy(cache)
            output, cache = self.called.step(token, cache)
            last = found[-1] + 1 if found else self.start
            place = read_places(self.called, token, before, output, self.start + t, self.limit, last=last)
            if not place:
                break
            found += place
        right = [self.start + t for t in range(len(found))]
        return places_in_words(found, right)

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

    def in_a_layer(self) -> str:
        """The first layer whose mask or bias is not in a step with a cache what it is in one pass."""
        for number, (whole, step) in enumerate(
            (whole[:, 0], step[:, 0]) for whole, step in shown_keys(self.called, self.ids[:1])
        ):
            if look := unlike_keys(whole, step):
                return f"the mask with a cache: in layer {number} the newest token {look}"
            wanted = whole[:, -step.shape[1] :]
            rests = [1 - float(each.sum(-1).min()) for each in (wanted, step)]
            if min(rests) < 1e-4 < 1e-2 < max(rests):
                how = "is left out" if rests[1] < 1e-4 else "is there, and not in one pass"
                return f"the attention sink: with a cache that of layer {number} {how}"
            if change(step, wanted) > 1e-4:
                return (
                    f"positions of new tokens: with a cache the bias of layer {number} {_bias(step, wanted)}"
                )
        return ""

    def seen(self) -> str:
        """Which tokens reach the outputs of decoding, against those of one pass."""
        n, cache, outputs = self.ids.shape[1], None, []
        varied = replaced(self.ids)
        for t in range(n):
            output, cache = self.called.step(varied[:, t : t + 1], cache)
            outputs.append(output)
        found = torch.cat(outputs, dim=1)
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
        held = min((keys.shape[-2] for keys, _ in held_by(cache)), default=0)
        if held and held < n and not getattr(text_config(self.called.model), "sliding_window", None):
            return (
                f"the cache: it holds {held} of {n} keys, the oldest are lost (from output {self.first} on)"
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
        where = f"their queries in layer {number} are {self._place_of_query(number)}"
        return (
            f"positions of new tokens: from token {self.first} on {where}: keys and values are right, {says}"
        )

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
