"""A cache, chunks and pads against one pass without any of them."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from posenc.check.masks import reach, replaced
from posenc.check.models import Called, change, counted, some_tokens, text_config, tolerance
from posenc.check.report import Finding, Report

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
    """
    called, ids = Called(model), some_tokens(model, ids)
    return Report(tuple(_Decoding(called, ids).findings()))


class _Decoding:
    """The runs, which share one full pass."""

    def __init__(self, called: Called, ids: Tensor) -> None:
        self.called, self.ids = called, ids
        self.limit, self.full = tolerance(called, ids), called(ids)
        starts = (
            start
            for start in (0, 1, 2)
            if called.positions
            and change(called(ids, positions=counted(ids, start)), self.full) <= self.limit
        )
        self.start = next(starts, 0)  # what the model calls its first position

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
        if self.called.positions:
            begin = places[:, :1]
            for says, tried in (
                ("new tokens get position 0: what is in the cache is not counted", begin.expand_as(places)),
                ("new tokens get the position after their own", torch.cat([begin, places[:, 1:] + 1], 1)),
                ("new tokens get the position of the one before them", torch.cat([begin, places[:, :-1]], 1)),
            ):
                if change(self.called.at(self.ids, tried), decoded) <= self.limit:
                    return says
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
        return f"{self._in_the_cache(first)}: outputs differ from token {first} on, and see the tokens that they should"

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
        return (
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
        look = "positions within the second chunk, and its mask"
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
        rows = torch.arange(self.ids.shape[0], device=self.ids.device).flip(0)
        try:
            cache.reorder_cache(rows)
            outputs, _ = self.called.step(self.ids[rows, n:], cache)
        except (RuntimeError, IndexError, ValueError, NotImplementedError) as error:
            return self._raised(what, error)
        look = "reorder_cache: not all that it holds changes rows, keys and values of each layer"
        return self._compared(what, outputs, self.full[rows, n:], look, "rotary#cache", "outputs after it")

    def padded(self, causal: bool) -> list[Finding]:
        """The second row is shorter and has pads on the left, or on the right."""
        if self.called.mask is None:
            says = "the model takes no attention_mask"
            return [Finding("pads", "left out", says, math.nan, "", "masks#left")]
        n, short = self.ids.shape[1], self.ids.shape[1] - 4
        row = self.ids[:1, :short]
        alone = self.called(row)[0]
        found = [self._ones()]
        for side in ("right", "left"):
            real = slice(0, short) if side == "right" else slice(n - short, n)
            padded = torch.full_like(
                self.ids[:1], int(self.ids[0, 0]) if not self.ids.is_floating_point() else 0
            )
            padded[:, real] = row
            mask = torch.zeros(1, n, dtype=torch.long, device=self.ids.device)
            mask[:, real] = 1
            found.append(self._side(side, padded, mask, real, alone))
        if causal and self.called.cache:
            found.append(self._decoded_after_pads())
        return found

    def _ones(self) -> Finding:
        """A mask that hides nothing, against no mask at all."""
        what, section = "a mask of ones", "masks#key-mask"
        ones = torch.ones(self.ids.shape[:2], dtype=torch.long, device=self.ids.device)
        found = self.called(self.ids, mask=ones)
        if change(found, self.full) <= self.limit:
            return self._compared(what, found, self.full, "", section, "outputs")
        look = "what the mask does where it hides nothing"
        if change(self.called(self.ids, mask=0 * ones), self.full) <= self.limit:
            look = "the mask: it is read the wrong way round, 1 at pads"
        elif self.called.positions:
            for start in (self.start + 1, self.start + 2, self.start - 1):
                if (
                    start < 0
                    or not change(
                        self.called(self.ids, mask=ones, positions=counted(self.ids, self.start)), self.full
                    )
                    <= self.limit
                ):
                    continue
                if change(self.called(self.ids, positions=counted(self.ids, start)), found) <= self.limit:
                    look = (
                        f"positions made from the mask: they begin at {start}, and without a mask at {self.start} "
                        "(mask.cumsum(-1) counts the token itself)"
                    )
        return self._compared(what, found, self.full, look, section, "outputs without a mask")

    def _side(self, side: str, padded: Tensor, mask: Tensor, real: slice, alone: Tensor) -> Finding:
        what, section = f"pads on the {side}", f"masks#{'left' if side == 'left' else 'key-mask'}"
        inputs = torch.cat([self.ids[:1], padded]), torch.cat([torch.ones_like(mask), mask])
        outputs = self.called(inputs[0], mask=inputs[1])[1, real]
        if change(outputs, alone) <= self.limit:
            beside = self.called(inputs[0].flip(0), mask=inputs[1].flip(0))[1]
            look = "what the rows share: the mask or positions of the first row, which has the pads, count for all"
            wanted = self.full[0]
            return self._compared(what, beside, wanted, look, section, "outputs of a row without pads")
        if math.isnan(change(outputs, alone)):
            return self._compared(
                what, outputs, alone, "queries without any key: their softmax is 0/0", section, ""
            )
        other = padded.clone()
        other[:, mask[0] == 0] = self.ids[0, -1]
        content = self.called(torch.cat([self.ids[:1], other]), mask=inputs[1])[1, real]
        if change(content, outputs) > self.limit:
            turned = [
                self.called(torch.cat([self.ids[:1], x]), mask=1 - inputs[1])[1, real]
                for x in (padded, other)
            ]
            look = "the mask: what the pads hold gets in"
            if change(*turned) <= self.limit:
                look = "the mask: it is read the wrong way round, 1 at pads"
            return self._compared(what, outputs, alone, look, section, "outputs")
        if self.called.positions:
            places = self._from_mask(inputs[1])
            if change(self.called(inputs[0], mask=inputs[1], positions=places)[1, real], alone) <= self.limit:
                says = f"outputs change by {change(outputs, alone):.2g}, and do not with positions made from the mask"
                counting = (
                    f"mask.cumsum(-1) {'+' if self.start > 1 else '-'} 1"
                    if self.start != 1
                    else "mask.cumsum(-1)"
                )
                look = f"position_ids: give {counting} with every batch that has pads on the left"
                return Finding(what, "note", says, change(outputs, alone), look, section)
        look = "positions: the number of pads gets in, not what they hold"
        if self.called.positions:
            lone = self.called(padded, mask=mask, positions=self._from_mask(mask))[0, real]
            if change(lone, alone) <= self.limit:
                look = (
                    "what the rows share: positions of the first row count for all, or its mask (a padded row by "
                    "itself is right)"
                )
        if self.called.positions and self._ignored():
            look = f"{self.called.positions} change nothing, though the model takes them: the number of pads gets in"
        return self._compared(what, outputs, alone, look, section, "outputs")

    def _decoded_after_pads(self) -> Finding:
        """A batch with pads on the left is prefilled, then three tokens follow one by one."""
        n, pads = 11, 4  # short: a window must not have left the pads behind
        ids = self.ids[:1, :n].expand(2, n).clone()
        ids[1, pads:] = self.ids[0, : n - pads]
        mask = torch.ones(2, n, dtype=torch.long, device=ids.device)
        mask[1, :pads] = 0
        places = self._from_mask(mask)
        wanted = torch.stack([self.full[0, n - 3 : n], self.called(self.ids[:1, : n - pads])[0, -3:]])
        what, section, runs = "decoding after pads", "masks#left", list[tuple[Finding, Tensor]]()
        for given in (True, False):  # positions by hand, or the model's own
            try:
                held = places[:, : n - 3] if given else None
                first, cache = self.called.step(ids[:, : n - 3], None, mask=mask[:, : n - 3], positions=held)
                outputs = []
                for t in range(n - 3, n):
                    held = places[:, t : t + 1] if given else None
                    output, cache = self.called.step(
                        ids[:, t : t + 1], cache, mask=mask[:, : t + 1], positions=held
                    )
                    outputs.append(output)
            except (RuntimeError, IndexError, ValueError) as error:
                return runs[0][0] if runs and runs[0][0].ok else self._raised(what, error)
            look = "the mask while decoding, which must cover the pads in the cache, or positions that count them"
            found = self._compared(what, torch.cat(outputs, 1), wanted, look, section, "outputs")
            runs.append((found, first[:, -1]))
        (by_hand, right), (own, prefilled) = runs
        if own.ok:
            return own
        if by_hand.ok:  # a model that counts pads in the prefill, too, leaves positions to its caller
            look = (
                "positions of new tokens: they count the pads in the cache, and those of the prefill do not"
            )
            return replace(own, look=look) if change(prefilled, right) <= self.limit else by_hand
        if self.called.positions:
            wrong = places.clone()
            wrong[:, n - 3 :] = counted(ids, self.start)[:, n - 3 :]
            tried = self.called(ids, mask=mask, positions=wrong)[:, -3:]
            if change(tried, torch.cat(outputs, 1)) <= self.limit:
                look = "positions of new tokens: the pads in the cache are counted"
                return self._compared(what, tried, wanted, look, section, "outputs")
        return own

    def _ignored(self) -> bool:
        """Whether whatever positions are given change nothing."""
        odd = counted(self.ids, self.start).flip(1)
        return change(self.called.at(self.ids, odd), self.full) <= self.limit

    def _from_mask(self, mask: Tensor) -> Tensor:
        """Positions counted over real tokens."""
        return (mask.cumsum(-1) - 1).clamp(min=0) + self.start

    def _compared(
        self, what: str, found: Tensor, wanted: Tensor, look: str, section: str, says: str
    ) -> Finding:
        size = change(found, wanted)
        if size <= self.limit:
            return Finding(what, "ok", f"the same outputs, to {size:.1g}", size, "", section)
        if math.isnan(size):
            return Finding(what, "FAULT", "outputs become NaN", size, look, section)
        return Finding(
            what, "FAULT", f"{says} differ by {size:.2g} from one pass".lstrip(), size, look, section
        )

    def _raised(self, what: str, error: Exception) -> Finding:
        says = f"it raises {type(error).__name__}: {str(error).splitlines()[0][:120]}"
        look = "what the model makes of a cache of this length"
        try:
            self.called.step(self.ids, None)
        except (RuntimeError, IndexError, ValueError):  # self.full was made without a cache
            look = (
                "how the cache is filled: the first pass raises with one and not without, as where layers write into "
                "each other's keys"
            )
        return Finding(what, "FAULT", says, math.nan, look, "rotary#cache")


def _held_by(cache: Any) -> list[tuple[Tensor, Tensor]]:
    """Keys and values (batch, heads, length, dim) of each layer, copied; none if they cannot be seen."""
    found = []
    for layer in getattr(cache, "layers", None) or ():
        keys, values = getattr(layer, "keys", None), getattr(layer, "values", None)
        if not isinstance(keys, Tensor) or not isinstance(values, Tensor) or keys.ndim != 4:
            return []
        found.append((keys.double().clone(), values.double().clone()))
    return found


def _held(cache: Any) -> int:
    """How many keys each layer of a cache of transformers holds; 0 if that cannot be seen."""
    layers = getattr(cache, "layers", None) or ()
    return min(
        (layer.keys.shape[-2] for layer in layers if isinstance(getattr(layer, "keys", None), Tensor)),
        default=0,
    )
