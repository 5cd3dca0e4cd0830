"""Pads and masks against one pass without any of them."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from posenc.check.afterpads import VAGUE, AfterPads
from posenc.check.masks import reach
from posenc.check.models import Called, change, counted, first_position, text_config, tolerance
from posenc.check.places import first_of
from posenc.check.report import Finding
from posenc.check.tables import placed, rows_from_mask
from posenc.check.undermask import unlike_layer

__all__ = ["PaddedRuns"]


class PaddedRuns:
    """Runs with a mask, which share one full pass; those with a cache are added in `posenc.check.decoding`."""

    def __init__(self, called: Called, ids: Tensor) -> None:
        self.called, self.ids = called, ids
        self.limit, self.full = tolerance(called, ids), called(ids)
        self.start = first_position(called, ids, self.full, self.limit)

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
        if causal and self.called.cache and (self.called.positions or found[-1].verdict != "note"):
            after = self._decoded_after_pads()
            if not after.ok and not found[-1].ok:
                after = replace(after, look="what pads on the left change without a cache, too")
            found.append(after)
        return found

    def _ones(self) -> Finding:
        """A mask that hides nothing, against no mask at all."""
        what, section = "a mask of ones", "masks#key-mask"
        ones = torch.ones(self.ids.shape[:2], dtype=torch.long, device=self.ids.device)
        found = self.called(self.ids, mask=ones)
        if change(found, self.full) <= self.limit:
            return self._compared(what, found, self.full, "", section, "outputs")
        look = ""
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
        look = look or rows_from_mask(self.called.model, self.ids, ones)
        look = look or first_of(lambda: unlike_layer(self.called, self.ids[:1], self.ids[:1], ones[:1]))
        if not look:
            look = "what the mask does where it hides nothing"
            if torch.equal(*(reach(self.called, self.ids, mask=each) for each in (None, ones[:1]))):
                look = "what is made from the mask, positions or a bias: it hides and shows the same tokens as no mask"
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
                counting = f"(mask.cumsum(-1) - 1).clamp(min=0){f' + {self.start}' if self.start else ''}"
                look = f"position_ids: give {counting} with every batch that has pads on the left"
                return Finding(what, "note", says, change(outputs, alone), look, section)
        if self.called.positions is None and (own := self._own_count(padded, mask, real, alone, outputs)):
            says = f"outputs change by {change(outputs, alone):.2g}, and the model takes no positions"
            return Finding(what, "note", says, change(outputs, alone), own, section)
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
        look = first_of(lambda: unlike_layer(self.called, padded[:, real], padded, mask)) or look
        return self._compared(what, outputs, alone, look, section, "outputs")

    def _own_count(self, padded: Tensor, mask: Tensor, real: slice, alone: Tensor, outputs: Tensor) -> str:
        """What a model that takes no positions counts in a padded row; "" if this does not explain its outputs."""
        pad = getattr(text_config(self.called.model), "pad_token_id", None)
        if isinstance(pad, int):
            filled = torch.where(mask.bool(), padded, pad)
            if change(self.called(filled, mask=mask)[0, real], alone) <= self.limit:
                return (
                    f"fill them with token {pad}, the pad_token_id, which the model leaves out of its count"
                )
        row = padded[:, real]
        with placed(self.called.model, row, real.start + counted(row)) as known:
            if known and change(self.called(row)[0], outputs) <= self.limit:
                return "put them on the right, since the model counts them"
        return ""

    def _decoded_after_pads(self) -> Finding:
        """A batch with pads on the left is prefilled, then three tokens follow one by one."""
        what, section = "decoding after pads", "masks#left"
        after = AfterPads(self.called, self.ids, self.start, self.limit)
        try:
            by_hand = self._compared(what, after.outputs(by_hand=True), after.wanted, "", section, "outputs")
        except (RuntimeError, IndexError, ValueError) as error:
            return self._raised(what, error)
        try:
            own = self._compared(what, after.outputs(by_hand=False), after.wanted, "", section, "outputs")
        except (RuntimeError, IndexError, ValueError) as error:
            return by_hand if by_hand.ok else self._raised(what, error)
        if not by_hand.ok:
            return replace(by_hand, look=first_of(after.cause) or VAGUE)
        if (
            own.ok or not after.right_prefill()
        ):  # it counts pads there, too, and leaves positions to its caller
            return by_hand
        return replace(own, look=first_of(after.cause_of_own) or VAGUE)

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
