"""A cache, chunks and pads against one pass without any of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from posenc.check.masks import reach, replaced
from posenc.check.models import Called, change, counted, of_rows, some_tokens, text_config
from posenc.check.pads import PaddedRuns
from posenc.check.report import Finding, Report
from posenc.check.tables import placed
from posenc.check.weights import blank_steps

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
            for run in (self.one_by_one, self.chunks, self.cut_back, self.reordered):
                try:
                    found.append(run())
                except (RuntimeError, IndexError, ValueError) as error:
                    found.append(self._raised(run.__name__.replace("_", " "), error))
        return [*found, *self.padded(causal=True)]

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
        cache, outputs = None, []
        try:
            for t in range(self.ids.shape[1]):
                output, cache = self.called.step(self.ids[:, t : t + 1], cache)
                outputs.append(output)
        except (RuntimeError, IndexError, ValueError) as error:
            return self._raised("one token at a time", error)
        if cache is None:
            says = "the model gave no cache back"
            return Finding("one token at a time", "left out", says, math.nan, "", "rotary#cache")
        decoded = torch.cat(outputs, dim=1)
        look = "" if change(decoded, self.full) <= self.limit else self._cause_of_step(decoded)
        return self._compared("one token at a time", decoded, self.full, look, "rotary#cache", "outputs")

    def _cause_of_step(self, decoded: Tensor) -> str:
        """Which wrong position of the newest token, or which keys that it does not see, explain what decoding gave."""
        t, places = self.ids.shape[1] - 1, counted(self.ids, self.start)
        begin = places[:, :1]
        for says, tried in (
            ("new tokens get position 0: what is in the cache is not counted", begin.expand_as(places)),
            ("new tokens get the position after their own", torch.cat([begin, places[:, 1:] + 1], 1)),
            ("new tokens get the position of the one before them", torch.cat([begin, places[:, :-1]], 1)),
        ):
            if change(self._at(tried), decoded) <= self.limit:
                return says
        if self.called.positions:
            given, cache = [], None
            for n in range(t + 1):
                output, cache = self.called.step(
                    self.ids[:, n : n + 1], cache, positions=places[:, n : n + 1]
                )
                given.append(output)
            if change(torch.cat(given, dim=1), self.full) <= self.limit:
                return "positions of new tokens: right when they are given, so the model counts wrongly by itself"
        if self.ids.shape[0] > 1:
            outputs, cache = [], None
            for n in range(t + 1):
                output, cache = self.called.step(self.ids[:1, n : n + 1], cache)
                outputs.append(output)
            if change(torch.cat(outputs, dim=1), self.full[:1]) <= self.limit:
                return "what the rows of a batch share: a row alone is decoded rightly, so keys or values change rows"
        alone = torch.cat([self.called(self.ids[:, n : n + 1]) for n in range(t + 1)], dim=1)
        if change(alone[:, 1:], decoded[:, 1:]) <= self.limit:
            return "the cache: each token sees itself alone"
        return self._what_is_seen(decoded)

    def _at(self, places: Tensor) -> Tensor:
        """The outputs of one pass at these positions, which are those of the rows of a table if none can be given."""
        if self.called.positions:
            return self.called.at(self.ids, places)
        with placed(self.called.model, self.ids, places):
            return self.called(self.ids)

    def _in_a_layer(self) -> str:
        """The first layer whose mask or bias is not in a step with a cache what it is in one pass; "" for none."""
        for number, (whole, step) in enumerate(blank_steps(self.called.model, self.ids[:1])):
            wanted = whole[:, -step.shape[1] :]  # a window has forgotten the others
            shown, seen, token = (wanted > 0).any(0), (step > 0).any(0), f"in layer {number} the newest token"
            if lost := int((shown & ~seen).sum()):
                keys = f"{lost} of the {int(shown.sum())} keys that one pass shows it"
                return f"the mask with a cache: {token} does not see {keys}"
            if extra := int((seen & ~shown).sum()):
                return f"the mask with a cache: {token} sees {extra} keys that one pass hides"
            rests = [1 - float(each.sum(-1).min()) for each in (wanted, step)]
            if min(rests) < 1e-4 < 1e-2 < max(rests):
                how = "is left out" if rests[1] < 1e-4 else "is there, and not in one pass"
                return f"the attention sink: with a cache that of layer {number} {how}"
            if change(step, wanted) > 1e-4:
                even = change(step, step.mean(-1, keepdim=True)) <= 1e-4
                how = "is left out" if even else "is not that of the newest token"
                return f"positions of new tokens: with a cache the bias of layer {number} {how}"
        return ""

    def _what_is_seen(self, decoded: Tensor) -> str:
        """Which tokens reach the outputs of decoding, against those of one pass; what the cache holds."""
        n, cache, outputs = self.ids.shape[1], None, []
        varied = replaced(self.ids)
        for t in range(n):
            output, cache = self.called.step(varied[:, t : t + 1], cache)
            outputs.append(output)
        found = torch.cat(outputs, dim=1)
        differs = (found[1:] - found[:1]).flatten(2).abs().amax(-1) > self.limit
        seen, meant = differs.T, reach(self.called, self.ids)
        first = next(t for t in range(n) if not change(decoded[:, t], self.full[:, t]) <= self.limit)
        if len(extra := (seen & ~meant).nonzero()):
            t, u = map(int, extra[0])
            return f"the mask with a cache: output {t} sees token {u}, which one pass hides"
        alone = torch.eye(n, dtype=torch.bool, device=seen.device)
        alone[:, 0] = True
        if not bool((seen & ~alone).any()):
            return (
                "the mask with a cache: new tokens see the first key alone, so it is laid from the first key"
            )
        if first == 0:
            return (
                "what depends on the number of tokens in a call (a branch for one token, a scale, an attention sink): "
                "the first token differs, with nothing in the cache"
            )
        held = _held(cache)
        if held and held < n and not getattr(text_config(self.called.model), "sliding_window", None):
            return f"the cache: it holds {held} of {n} keys, the oldest are lost (from output {first} on)"
        if len(lost := (meant & ~seen).nonzero()):
            t, u = map(int, lost[0])
            return (
                f"the mask with a cache: output {t} does not see token {u}, which one pass shows (another window, or a "
                "mask laid from the first key)"
            )
        where = self._in_the_cache(first)
        if where.startswith("the attention sink"):
            return where
        return f"{where}: outputs differ from token {first} on, and depend on the tokens that they should"

    def _in_the_cache(self, first: int) -> str:
        """What one step makes of keys and values in the layers of a cache of transformers."""
        n = self.ids.shape[1] - 1
        _, cache = self.called.step(self.ids[:, :n], None)
        before = _held_by(cache)
        if not before:
            return (
                "positions of new tokens, or keys in the cache (turned twice or not at all, in another order)"
            )
        _, cache = self.called.step(self.ids[:, n:], cache)
        _, whole = self.called.step(self.ids, None)
        right_up_to = len(before)
        for number, layer in enumerate(zip(before, _held_by(cache), _held_by(whole), strict=True)):
            differ = []
            for name, old, new, right in zip(("keys", "values"), *layer, strict=True):
                held = min(old.shape[-2], new.shape[-2] - 1)  # a window forgets the oldest
                limit = 1e-4 * float(right.abs().max())
                if held and change(new[..., -1 - held : -1, :], old[..., -held:, :]) > limit:
                    return f"{name} in the cache: they change when a token is added (turned again, or in another order)"
                if change(new[..., -1:, :], right[..., -1:, :]) > limit:
                    differ.append(name)
            if differ == ["keys"] or (differ and number == 0):
                return (
                    f"positions of new tokens: their {differ[0]} in layer {number} are not those of one pass"
                )
            if differ:
                right_up_to = number
                break
        if first == 2:
            return "keys in the cache: they are not turned (that of position 0 needs no turn, and token 1 is right)"
        return self._in_a_layer() or (
            f"positions of new tokens: keys and values are right up to layer {right_up_to - 1}, whose queries, biases "
            "or mask are not"
        )

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
        look = "" if change(found, self.full) <= self.limit else self._in_a_chunk()
        size = n // 3
        if self.called.positions and not change(found, self.full) <= self.limit:
            second = slice(size, size + n // 4)
            for says, begin in (("at 0 again", 0), ("one too early", size - 1), ("one too late", size + 1)):
                places = counted(self.ids, self.start).clone()
                places[:, size:] += begin - size
                if change(self.called.at(self.ids, places)[:, second], found[:, second]) <= self.limit:
                    look = f"positions: those of the second chunk begin {says}"
        if not change(found, self.full) <= self.limit:
            _, cache = self.called.step(self.ids[:, :size], None)
            other = self.ids[:, size : size + n // 4].clone()
            other[:, -1] = self.ids[:, 0]
            seen, _ = self.called.step(other, cache)
            if change(seen[:, :-1], outputs[1][:, :-1]) > self.limit:
                look = "the mask of a chunk after the first: its tokens see later ones"
        return self._compared("a prefill in chunks", found, self.full, look, "rotary#cache", "outputs")

    def _in_a_chunk(self) -> str:
        """Whether the mask of the second chunk is that of one pass, by weights that show masks and biases alone."""
        n = self.ids.shape[1]
        size, more, known = n // 3, n // 4, False
        for number, (whole, chunk) in enumerate(
            blank_steps(self.called.model, self.ids[:1, : size + more], more)
        ):
            wanted = whole[..., -chunk.shape[-1] :]  # a window has forgotten the others
            shown, seen, known = (wanted > 0).any(0), (chunk > 0).any(0), True
            if torch.equal(shown, seen):
                if change(chunk, wanted) > 1e-4:
                    return f"positions within the second chunk: the bias of layer {number} is not that of one pass"
                continue
            past, lost, extra = seen.shape[1] - more, int((shown & ~seen).sum()), int((seen & ~shown).sum())
            before, wanted_before = seen[:, :past], shown[:, :past]
            if bool((seen & ~shown)[:, past:].any()):
                how = "its tokens see later ones"
            elif past and not bool(before.any()):
                how = "its tokens see nothing of the cache"
            elif torch.equal(before, wanted_before[:1].expand_as(before)):
                how = "all see of the cache what the first one sees, and a window moves on with each"
            elif torch.equal(before, wanted_before[-1:].expand_as(before)):
                how = "all see of the cache what the last one sees, and a window moves on with each"
            else:
                how = "its tokens do not see the keys that one pass shows them"
            count = " and ".join(
                f"{keys} keys too {few}" for keys, few in ((extra, "many"), (lost, "few")) if keys
            )
            return f"the mask of a chunk after the first, not positions: {how} ({count} in layer {number})"
        rows, cache, outputs = replaced(self.ids), None, []
        for part in rows.split([size, more, n - size - more], dim=1):
            output, cache = self.called.step(part, cache)
            outputs.append(output)
        found = torch.cat(outputs, dim=1)
        seen = ((found[1:] - found[:1]).flatten(2).abs().amax(-1) > self.limit).T
        meant = reach(self.called, self.ids)
        for wrong, how in (
            (seen & ~meant, "sees token {}, which one pass hides"),
            (meant & ~seen, "does not see {}"),
        ):
            if bool(wrong[size:].any()):
                t, u = map(int, wrong.nonzero()[-1])
                return f"the mask of a chunk after the first, not positions: output {t} {how.format(u)}"
        if known:
            return "positions within the second chunk: each token sees those that one pass shows it"
        return "positions within the second chunk, and its mask"

    def cut_back(self) -> Finding:
        """Some tokens more than wanted, the cache cut back to the wanted ones, then others in their place."""
        n = self.ids.shape[1] - 4
        _, cache = self.called.step(self.ids[:, :n], None)
        if not hasattr(cache, "crop"):
            return Finding(
                "a cache cut back", "left out", "the cache has no crop", math.nan, "", "rotary#cache"
            )
        wrong = torch.cat([self.ids[:, :1]] * 3, dim=1)
        _, cache = self.called.step(wrong, copy.deepcopy(cache))
        before = _held_by(cache)
        look = (
            "how the cache counts after crop: positions, or a window that has forgotten what it needs again"
        )
        try:
            cache.crop(-3)
            for old, new in zip(before, _held_by(cache), strict=True):
                for name, was, kept in zip(("keys", "values"), old, new, strict=True):
                    if kept.shape[-2] == n and was.shape[-2] == n + 3 and change(was[..., :n, :], kept) > 0:
                        look = f"{name} in the cache: crop keeps others than those of the first {n} tokens"
        except (RuntimeError, IndexError, ValueError, NotImplementedError) as error:
            says = f"it is refused with {type(error).__name__}"
            return Finding("a cache cut back", "ok", says, math.nan, "", "rotary#cache")
        lengths = {keys.shape[-2] for keys, _ in _held_by(cache)}
        if len(lengths) > 1 and {keys.shape[-2] for keys, _ in before} == {n + 3}:
            look = (
                f"crop: it does not cut all layers, they hold {' and '.join(map(str, sorted(lengths)))} keys"
            )
        try:
            outputs, _ = self.called.step(self.ids[:, n:], cache)
        except (RuntimeError, IndexError, ValueError) as error:
            raised = self._raised("a cache cut back", error)
            return replace(raised, look=look) if len(lengths) > 1 else raised
        return self._compared(
            "a cache cut back", outputs, self.full[:, n:], look, "rotary#cache", "outputs after it"
        )

    def reordered(self) -> Finding:
        """The rows of the cache are exchanged, as in a beam search, and so are the tokens that follow."""
        what, n = "a cache reordered", self.ids.shape[1] - 3
        _, cache = self.called.step(self.ids[:, :n], None)
        if not hasattr(cache, "reorder_cache") or self.ids.shape[0] < 2:
            return Finding(what, "left out", "the cache has no reorder_cache", math.nan, "", "rotary#cache")
        usual, _ = self.called.step(self.ids[:, n:], copy.deepcopy(cache))
        rows = torch.arange(self.ids.shape[0], device=self.ids.device).flip(0)
        try:
            cache.reorder_cache(rows)
            outputs, _ = self.called.step(self.ids[rows, n:], cache)
        except (RuntimeError, IndexError, ValueError, NotImplementedError) as error:
            return self._raised(what, error)
        if change(usual, self.full[:, n:]) > self.limit and change(outputs, usual[rows]) <= self.limit:
            says = "rows are exchanged rightly; outputs after any cache differ from one pass"
            return Finding(what, "ok", says, change(outputs, usual[rows]), "", "rotary#cache")
        look = "reorder_cache: not all that it holds changes rows, keys and values of each layer"
        if not self.rows().ok:
            look = "rows of a batch, which differ without a cache, too"
        return self._compared(what, outputs, self.full[rows, n:], look, "rotary#cache", "outputs after it")


def _held_by(cache: Any) -> list[tuple[Tensor, Tensor]]:
    """Keys and values (batch, heads, length, dim) of each layer, copied; none if they cannot be seen."""
    found = []
    for layer in _layers(cache):
        keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
        if not isinstance(keys, Tensor) or not isinstance(values, Tensor) or keys.ndim != 4:
            return []
        found.append((keys.double().clone(), values.double().clone()))
    return found


def _held(cache: Any) -> int:
    """How many keys each layer of a cache of transformers holds; 0 if that cannot be seen."""
    return min(
        (
            layer.keys.shape[-2]
            for layer in _layers(cache)
            if isinstance(getattr(layer, "keys", None), Tensor)
        ),
        default=0,
    )


def _layers(cache: Any) -> Sequence[Any]:
    """The layers of a cache of transformers, of the decoder itself beside cross-attention; none of another one."""
    return getattr(getattr(cache, "self_attention_cache", cache), "layers", None) or ()
