"""Decoding after pads on the left, and why it does not give what one pass gives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from posenc.check.models import Called, change

__all__ = ["VAGUE", "AfterPads"]

VAGUE = "the mask while decoding, which must cover the pads in the cache, or positions that count them"

_N, _PADS, _STEPS = 11, 4, 3  # short: a window must not have left the pads behind


class AfterPads:
    """A row without pads and one with pads on the left, of which the last tokens follow one by one."""

    def __init__(self, called: Called, ids: Tensor, start: int, limit: float) -> None:
        self.called, self.start, self.limit = called, start, limit
        self.ids = ids[:1, :_N].expand(2, *ids[:1, :_N].shape[1:]).clone()
        self.ids[1, _PADS:] = ids[0, : _N - _PADS]
        self.other = self.ids.clone()  # with other pads
        self.other[1, :_PADS] = ids[0, _N]
        self.mask = torch.ones(2, _N, dtype=torch.long, device=ids.device)
        self.mask[1, :_PADS] = 0
        self.places = (self.mask.cumsum(-1) - 1).clamp(min=0) + start
        short = called(ids[:1, : _N - _PADS])
        self.wanted = torch.stack([called(ids[:1, :_N])[0, -_STEPS:], short[0, -_STEPS:]])
        self._last = short[0, -_STEPS - 1]  # of the prefill

    def _prefilled(self, ids: Tensor, rows: slice, by_hand: bool) -> tuple[Tensor, Any]:
        n = _N - _STEPS
        places = self.places[rows, :n] if by_hand else None
        return self.called.step(ids[rows, :n], None, mask=self.mask[rows, :n], positions=places)

    def outputs(
        self, *, by_hand: bool, ids: Tensor | None = None, rows: slice = slice(None), off: int = 0
    ) -> Tensor:
        """Those of the steps, with positions made by hand from the mask, or the model's own."""
        ids, found = self.ids if ids is None else ids, []
        _, cache = self._prefilled(ids, rows, by_hand)
        for t in range(_N - _STEPS, _N):
            places = self.places[rows, t : t + 1] + off if by_hand else None
            mask = self.mask[rows, : t + 1]
            output, cache = self.called.step(ids[rows, t : t + 1], cache, mask=mask, positions=places)
            found.append(output)
        return torch.cat(found, dim=1)

    def right_prefill(self) -> bool:
        """Whether a model that makes its own positions does not count the pads in the prefill."""
        return change(self._prefilled(self.ids, slice(None), False)[0][1, -1], self._last) <= self.limit

    def _equal(self, first: Tensor, second: Tensor) -> bool:
        return change(first, second) <= self.limit

    def cause(self) -> str:
        """Why it goes wrong with positions made by hand."""
        found = self.outputs(by_hand=True)
        row = slice(1, 2)
        if len(found) > 1 and self._equal(self.outputs(by_hand=True, rows=row), self.wanted[1:]):
            return (
                "the mask while decoding, or positions: those of one row count for all (a row alone is right)"
            )
        before = self._prefilled(self.ids, row, True)
        changed = self._prefilled(self.other, row, True)
        if not self._equal(before[0][:, -1], changed[0][:, -1]):
            return "what pads on the left change without steps, too: what they hold gets in"
        if not self._equal(self.outputs(by_hand=True, ids=self.other, rows=row), found[row]):
            return "the mask while decoding: what the pads in the cache hold gets in"
        if self.called.positions:
            look = self._guessed(found)
            if self._equal(self.outputs(by_hand=True, rows=row, off=3), found[row]):
                look = look or "positions of new tokens"
                return f"{look}: {self.called.positions} change nothing with a cache, the model makes its own"
            if look:
                return look
        # Which real tokens reach the last output.
        blind = []
        for u in range(_PADS, _N - 1):
            varied = self.ids.clone()
            varied[1, u] = (
                self.other[1, 0] if not torch.equal(varied[1, u], self.other[1, 0]) else self.ids[0, 0]
            )
            if self._equal(self.outputs(by_hand=True, ids=varied, rows=row)[:, -1], found[row][:, -1]):
                blind.append(u - _PADS)
        if blind:
            return f"the mask while decoding: it hides token {blind[0]}, a real one, and must hide pads alone"
        return VAGUE

    def _guessed(self, found: Tensor) -> str:
        """Wrong positions of the steps with which one pass gives these outputs; "" for none."""
        new = self.places[:, -_STEPS:]
        steps = torch.arange(_STEPS, device=new.device).expand_as(new) + self.start
        counted, past = _N - _STEPS + steps, _N - _STEPS + torch.arange(_STEPS, device=new.device)
        for says, tried in (
            ("the pads in the cache are counted", counted),
            ("they begin at 0: what is in the cache is not counted", steps),
            ("all get position 0: what is in the cache is not counted", 0 * new + self.start),
            ("they come after their own", new + 1),
            ("they come before their own", new - 1),
            ("the number of keys in the cache is added to those that are given", new + past),
            ("the number of tokens of the prefill is added to those that are given", new + _N - _STEPS),
            ("twice as many pads are taken off as there are", (2 * new - counted).clamp(min=0)),
            ("they stay at the last of the prefill", self.places[:, -_STEPS - 1 : -_STEPS].expand_as(new)),
            ("they stay at the first of them", new[:, :1].expand_as(new)),
        ):
            places = torch.cat([self.places[:, :-_STEPS], tried], dim=1)
            try:
                outputs = self.called(self.ids, mask=self.mask, positions=places)[:, -_STEPS:]
            except (RuntimeError, IndexError, ValueError):
                continue
            if self._equal(outputs, found):
                return f"positions of new tokens: {says}"
        return ""

    def cause_of_own(self) -> str:
        """Why positions that the model makes by itself are wrong in the steps, and right in the prefill."""
        look = self._guessed(self.outputs(by_hand=False))
        if look.endswith("the pads in the cache are counted"):
            return (
                "positions of new tokens: they count the pads in the cache, and those of the prefill do not"
            )
        if "twice as many pads" in look:  # in a model that sees offsets only
            return "positions of new tokens: they leave out the pads in the cache, and those of the prefill count them"
        return (
            look
            or "positions of new tokens: right when they are given, so the model counts wrongly by itself"
        )
