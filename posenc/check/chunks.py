"""Why a prefill in chunks does not give what one pass gives: causes in order, the most exact one first."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from posenc.check.handed import changed_on_the_way
from posenc.check.held import wrong_in_cache
from posenc.check.masks import reach, replaced
from posenc.check.models import Called, change
from posenc.check.places import first_of, places_in_words, read_places
from posenc.check.seen import shown_keys, unlike_bias
from posenc.check.steps import by_length

__all__ = ["Chunks"]

_MASK = "the mask of a chunk after the first, not positions"


class Chunks:
    """A prefill in chunks that went wrong."""

    def __init__(self, run: Any, outputs: list[Tensor]) -> None:
        self.called: Called = run.called
        self.ids, self.full, self.limit, self.start = run.ids, run.full, run.limit, run.start
        self.sizes = [part.shape[1] for part in outputs]
        ends = torch.tensor(self.sizes).cumsum(0).tolist()
        wrong = (
            n
            for n, (part, end) in enumerate(zip(outputs, ends, strict=True))
            if not change(part, self.full[:, end - part.shape[1] : end]) <= self.limit
        )
        self.number = next(wrong)
        self.outputs, self.end = outputs[self.number], ends[self.number]
        self.before = self.end - self.sizes[self.number]
        self.text, self.chunk = self.ids[:, : self.end], self.ids[:, self.before : self.end]
        self.name = ["first", "second", "third"][self.number]

    def _cache(self) -> Any:
        """The cache before the first chunk that is wrong."""
        cache = None
        for part in self.ids[:, : self.before].split(self.sizes[: self.number], dim=1) if self.number else ():
            _, cache = self.called.step(part, cache)
        return cache

    def cause(self) -> str:
        causes = (
            self.by_length,
            self.read,
            self.later,
            self.in_a_layer,
            self.in_the_cache,
            self.handed,
            self.seen,
        )
        return first_of(*causes) or f"positions within the {self.name} chunk, and its mask"

    def by_length(self) -> str:
        return by_length(self.called, self.ids, self.full, self.limit)

    def read(self) -> str:
        """The positions at which its tokens are put."""
        right = [self.start + self.before + t for t in range(len(self.chunk[0]))]
        if not self.called.positions:
            return ""
        read = read_places(
            self.called, self.chunk, self._cache(), self.outputs, right[0], self.limit, last=self.start
        )
        off = {a - b for a, b in zip(read, right, strict=False)}
        if len(off) != 1:
            return places_in_words(read, right, f"tokens of the {self.name} chunk")
        by, says = off.pop(), f"at {read[0]} in place of {right[0]}"
        says = {self.start - right[0]: "at 0 again", -1: "one too early", 1: "one too late"}.get(by, says)
        return f"positions: those of the {self.name} chunk begin {says}" if by else ""

    def later(self) -> str:
        other = self.chunk.clone()
        other[:, -1] = self.ids[:, 0]
        seen, _ = self.called.step(other, self._cache())
        if change(seen[:, :-1], self.outputs[:, :-1]) > self.limit:
            return "the mask of a chunk after the first: its tokens see later ones"
        return ""

    def in_the_cache(self) -> str:
        if not self.number:
            return ""
        return wrong_in_cache(
            self.called, self.text, copy.deepcopy(self._cache()), self.start, len(self.chunk[0])
        )

    def handed(self) -> str:
        return (
            changed_on_the_way(self.called, self.text, self.start, len(self.chunk[0])) if self.number else ""
        )

    def in_a_layer(self) -> str:
        """Whether the mask is that of one pass, by weights that show masks and biases alone."""
        more = len(self.chunk[0])
        for number, (whole, chunk) in enumerate(shown_keys(self.called, self.text[:1], more)):
            wanted = whole[..., -chunk.shape[-1] :]  # a window has forgotten the others
            shown, seen = (wanted > 0).any(0), (chunk > 0).any(0)
            forgotten = int((whole[..., : -chunk.shape[-1]] > 0).any(0).sum())
            if torch.equal(shown, seen) and not forgotten:
                if look := unlike_bias(wanted[:, -1], chunk[:, -1], number):
                    return look.replace("positions of new tokens", f"positions within the {self.name} chunk")
                if change(chunk, wanted) > 1e-4:
                    return f"positions within the {self.name} chunk: the bias of layer {number} is not that of one pass"
                continue
            past, lost, extra = seen.shape[1] - more, int((shown & ~seen).sum()), int((seen & ~shown).sum())
            how = "the cache has forgotten keys that a window still shows"
            if not forgotten:
                how = next((says for says, tried in _masks(shown, past) if torch.equal(tried, seen)), "")
            if not how:
                later = bool((seen & ~shown)[:, past:].any())
                how = f"its tokens see {'later ones' if later else 'keys that one pass hides'}"
                how = how if extra else "its tokens do not see the keys that one pass shows them"
            counts = (extra, "many"), (lost + forgotten, "few")
            count = " and ".join(f"{keys} keys too {few}" for keys, few in counts if keys)
            return f"{_MASK}: {how} ({count} in layer {number})"
        return ""

    def seen(self) -> str:
        rows, cache, outputs = replaced(self.ids), None, []
        for part in rows.split(self.sizes, dim=1):
            output, cache = self.called.step(part, cache)
            outputs.append(output)
        found = torch.cat(outputs, dim=1)
        seen = ((found[1:] - found[:1]).flatten(2).abs().amax(-1) > self.limit).T
        meant = reach(self.called, self.ids)
        for wrong, how in (
            (seen & ~meant, "sees token {}, which one pass hides"),
            (meant & ~seen, "does not see {}"),
        ):
            if bool(wrong[self.before :].any()):
                t, u = map(int, wrong.nonzero()[-1])
                return f"{_MASK}: output {t} {how.format(u)}"
        return f"positions within the {self.name} chunk: each token sees those that one pass shows it"


def _masks(shown: Tensor, past: int) -> Iterator[tuple[str, Tensor]]:
    """Masks that a chunk after so many keys could have in place of this one."""
    n, m = shown.shape
    key, query = torch.arange(m)[None], past + torch.arange(n)[:, None]
    window = "and a window moves on with each"
    yield "its tokens see nothing of the cache", shown & (key >= past)
    yield "its tokens see the cache, and not each other", shown & (key < past)
    yield "its tokens do not see themselves", shown & (key != query)
    yield "it is laid from the first key, so its tokens see those that came first", key <= query - past
    yield "its tokens see later ones, one each", shown | (key == query + 1)
    yield "its tokens see later ones, all of the chunk", shown | (key >= past)
    yield "its tokens see later ones, there is none", torch.ones_like(shown)
    for says, at in (("the first", slice(0, 1)), ("the last", slice(-1, None))):
        both = shown.clone()
        both[:, :past] = shown[at, :past]
        yield f"all see of the cache what {says} one sees, {window}", both
    yield "its tokens have no window", key <= query
    for width in range(1, m):
        says = f"their window is one of {width} keys, in one pass of {int(shown.sum(-1).max())}"
        yield says, (key <= query) & (key > query - width)
