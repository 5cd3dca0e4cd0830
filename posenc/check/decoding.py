"""A cache, chunks and pads against one pass without any of them."""

from __future__ import annotations

import copy
import inspect
import math
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from posenc.check.chunks import Chunks
from posenc.check.held import cut_wrongly, held_by, same_rows
from posenc.check.models import Called, change, counted, of_rows, some_tokens
from posenc.check.pads import PaddedRuns
from posenc.check.places import places_in_words, read_places
from posenc.check.report import Finding, Report
from posenc.check.steps import Steps
from posenc.check.weights import ERRORS

__all__ = ["check_decoding"]


def check_decoding(model: Any, ids: Tensor | None = None) -> Report:
    """Whether decoding with a cache, in chunks, in a batch and with pads gives what one pass gives.

    Tried are: two rows in a batch against each alone; one token at a time; chunks of several tokens; a cache that was
    cut back, and one whose rows were exchanged; pads on the left with and without positions from the mask; and decoding
    after such pads.

    Args:
        model, ids: as in `posenc.check.check_order`. What the model does not take, a cache or a mask, is left out.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> bag = torch.nn.Embedding(50, 8).eval()  # each token by itself
    >>> for finding in check_decoding(bag).findings:
    ...     print(finding)
    ok        rows of a batch: the same outputs, to 0
    left out  cache: the model takes no past_key_values or cache
    left out  pads: the model takes no attention_mask

    Source: a check of this book, explained in check.md#comparisons.
    """
    called, ids = Called(model), some_tokens(model, ids)
    return Report(tuple(_Decoding(called, ids).findings()))


class _Decoding(PaddedRuns):
    """The runs with a cache, and those with pads after them."""

    def findings(self) -> list[Finding]:
        found = [self.rows()]
        later = self.ids.clone()
        later[:, -1] = self.ids[:, 0]
        if change(self.called(later)[:, :-1], self.full[:, :-1]) > self.limit:
            says = "earlier outputs see later tokens: nothing can be cached"
            left = Finding("cache", "left out", says, math.nan, "", "masks#left")
            return [*found, left, *self.padded(causal=False)]
        if self.called.cache is None:
            says = "the model takes no past_key_values or cache"
            found.append(Finding("cache", "left out", says, math.nan, "", "rotary#cache"))
        else:
            for run in (self.one_by_one, self.chunks, self.in_turn, self.cut_back, self.reordered):
                try:
                    found += [each] if not (each := run()).ok or run != self.in_turn else []
                except (RuntimeError, IndexError, ValueError) as error:
                    found.append(self._raised(run.__name__.replace("_", " "), error))
        return [*found, *self.embedded(), *self.padded(causal=True)]

    def rows(self) -> Finding:
        alone = torch.cat([self.called(row[None]) for row in self.ids])
        look = (
            "what is shared by the rows: a mask or positions of the first row, a cache that crosses the batch"
        )
        twice = torch.cat([self.ids[:1]] * 2)
        if change(alone, self.full) > self.limit and change(self.called(twice), alone[:1]) > self.limit:
            look = of_rows(self.called, self.ids, self.limit) or (
                "the number of rows, not what they hold: two equal rows differ from one alone, as where a bias is laid "
                "out as (heads, batch) and scores as (batch, heads)"
            )
        return self._compared("rows of a batch", alone, self.full, look, "masks#rectangle", "outputs")

    def one_by_one(self) -> Finding:
        """From the first token on, and after a prefill."""
        what, found = "one token at a time", list[Finding]()
        for prefill in (1, self.ids.shape[1] // 3):
            cache, outputs = None, []
            for part in (self.ids[:, :prefill], *self.ids[:, prefill:].split(1, dim=1)):
                try:
                    output, cache = self.called.step(part, cache)
                except (RuntimeError, IndexError, ValueError) as error:
                    return self._raised(what, error)
                outputs.append(output)
                if cache is None:
                    return Finding(
                        what, "left out", "the model gave no cache back", math.nan, "", "rotary#cache"
                    )
            decoded = torch.cat(outputs, dim=1)
            look = "" if change(decoded, self.full) <= self.limit else Steps(self, decoded, prefill).cause()
            found.append(self._compared(what, decoded, self.full, look, "rotary#cache", "outputs"))
        return next((each for each in found if not each.ok), found[0])

    def chunks(self) -> Finding:
        """A prefill in pieces of unlike lengths."""
        n, cache, outputs, start = self.ids.shape[1], None, [], 0
        try:
            for size in (n // 3, n // 4, n - n // 3 - n // 4):
                output, cache = self.called.step(self.ids[:, start : start + size], cache)
                outputs.append(output)
                start += size
        except (RuntimeError, IndexError, ValueError) as error:
            return self._raised("a prefill in chunks", error)
        found = torch.cat(outputs, dim=1)
        look = "" if change(found, self.full) <= self.limit else Chunks(self, outputs).cause()
        return self._compared("a prefill in chunks", found, self.full, look, "rotary#cache", "outputs")

    def cut_back(self) -> Finding:
        """Some tokens more than wanted, the cache cut back to the wanted ones, then others in their place."""
        what, n = "a cache cut back", self.ids.shape[1] - 4
        _, cache = self.called.step(self.ids[:, :n], None)
        if not hasattr(cache, "crop"):
            return Finding(what, "left out", "the cache has no crop", math.nan, "", "rotary#cache")
        usual, _ = self.called.step(self.ids[:, n:], copy.deepcopy(cache))
        wrong = torch.cat([self.ids[:, :1]] * 3, dim=1)
        _, cache = self.called.step(wrong, copy.deepcopy(cache))
        before = held_by(cache)
        try:
            cache.crop(-3)
        except (RuntimeError, IndexError, ValueError, NotImplementedError) as error:
            says = f"it is refused with {type(error).__name__}"
            return Finding(what, "ok", says, math.nan, "", "rotary#cache")
        look, kept = cut_wrongly(before, held_by(cache), n), copy.deepcopy(cache)
        try:
            outputs, _ = self.called.step(self.ids[:, n:], cache)
        except (RuntimeError, IndexError, ValueError) as error:
            raised = self._raised(what, error)
            return replace(raised, look=look) if look else raised
        if change(usual, self.full[:, n:]) > self.limit and change(outputs, usual) <= self.limit:
            says = "it is cut rightly; outputs after any cache differ from one pass"
            return Finding(what, "ok", says, change(outputs, usual), "", "rotary#cache")
        if not look and change(outputs, self.full[:, n:]) > self.limit:
            right = [self.start + n + t for t in range(4)]
            read = (
                read_places(self.called, self.ids[:, n:], kept, outputs, right[0], self.limit, last=right[3])
                if self.called.positions
                else []
            )
            look = places_in_words(read, right, "how the cache counts after crop: tokens after it")
        look = look or (
            "how the cache counts after crop: positions, or a window that has forgotten what it needs again"
        )
        return self._compared(what, outputs, self.full[:, n:], look, "rotary#cache", "outputs after it")

    def embedded(self) -> list[Finding]:
        """A fault if vectors of tokens in place of their ids get other positions; nothing otherwise."""
        model: Any = self.called.model
        if not self.called.positions or "inputs_embeds" not in inspect.signature(model.forward).parameters:
            return []
        places = counted(self.ids, self.start)
        try:
            with torch.no_grad():
                vectors = model.get_input_embeddings()(self.ids)
                own = model(inputs_embeds=vectors)[0].double()
                by_hand = model(inputs_embeds=vectors, **{self.called.positions: places})[0].double()
        except ERRORS:
            return []
        if change(by_hand, self.full) > self.limit or change(own, self.full) <= self.limit:
            return []
        look = f"positions made for inputs_embeds in place of ids: right if {self.called.positions} are given"
        return [self._compared("vectors of tokens", own, self.full, look, "rotary#cache", "outputs")]

    def in_turn(self) -> Finding:
        """Two texts with a cache each, of unlike lengths, of which the first goes on after the second."""
        what, n = "two caches in turn", self.ids.shape[1] - 3
        _, cache = self.called.step(self.ids[:1, :n], None)
        usual, _ = self.called.step(self.ids[:1, n:], copy.deepcopy(cache))
        text = self.ids[:1, : n // 2].flip(1)
        _, other = self.called.step(text, None)
        self.called.step(self.ids[:1, :1], other)
        outputs, _ = self.called.step(self.ids[:1, n:], copy.deepcopy(cache))
        look = (
            "what the model keeps between calls: a count of tokens, positions or a mask must be in the cache"
        )
        if change(outputs, usual) <= self.limit and self.called.mask:
            mask = torch.ones_like(counted(text))
            mask[:, :2] = 0
            with suppress(*ERRORS):  # what pads do is said elsewhere
                self.called.step(text, None, mask=mask)
            outputs, _ = self.called.step(self.ids[:1, n:], cache)
            look = (
                "what the model keeps between calls: pads or the mask of another text count for this one, too"
            )
        return self._compared(what, outputs, usual, look, "rotary#cache", "outputs of the first")

    def reordered(self) -> Finding:
        """The rows of the cache are exchanged, as in a beam search, and so are the tokens that follow."""
        what, n = "a cache reordered", self.ids.shape[1] - 3
        # Three texts change places in a round, of which the way back is another one.
        ids = torch.cat([self.ids[:2], self.ids[:1].flip(1)])
        _, cache = self.called.step(ids[:, :n], None)
        own = getattr(self.called.model, "_reorder_cache", None)  # generate() asks for it first
        if (own is None and not hasattr(cache, "reorder_cache")) or len(self.ids) < 2:
            return Finding(what, "left out", "the cache has no reorder_cache", math.nan, "", "rotary#cache")
        usual, _ = self.called.step(ids[:, n:], copy.deepcopy(cache))
        full, before = self.called(ids), held_by(cache)
        rows = torch.tensor([2, 0, 1], device=ids.device)
        try:
            cache = own(cache, rows) if own else cache.reorder_cache(rows) or cache
            after = held_by(cache)
            outputs, _ = self.called.step(ids[rows, n:], cache)
        except (RuntimeError, IndexError, ValueError, NotImplementedError) as error:
            return self._raised(what, error)
        if change(usual, full[:, n:]) > self.limit and change(outputs, usual[rows]) <= self.limit:
            says = "rows are exchanged rightly; outputs after any cache differ from one pass"
            return Finding(what, "ok", says, change(outputs, usual[rows]), "", "rotary#cache")
        name = f"_reorder_cache of {type(self.called.model).__name__}" if own else "reorder_cache"
        look = f"{name}: " + (
            same_rows(before, after, rows)
            or "keys and values change rows as they must, what the cache holds besides does not"
            if before
            else "not all that it holds changes rows, keys and values of each layer"
        )
        if not self.rows().ok:
            look = "rows of a batch, which differ without a cache, too"
        return self._compared(what, outputs, full[rows, n:], look, "rotary#cache", "outputs after it")
