"""Decoding after pads on the left, and why it does not give what one pass gives."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from posenc.check.models import Called, change
from posenc.check.places import places_in_words, read_places

__all__ = ["AfterPads"]

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
            return "the mask while decoding, or positions: those of the first row count for all (a row alone is right)"
        before = self._prefilled(self.ids, row, True)
        changed = self._prefilled(self.other, row, True)
        if not self._equal(before[0][:, -1], changed[0][:, -1]):
            return "what pads on the left change without steps, too: what they hold gets in"
        if not self._equal(self.outputs(by_hand=True, ids=self.other, rows=row), found[row]):
            return "the mask while decoding: what the pads in the cache hold gets in"
        if self.called.positions:
            if self._equal(self.outputs(by_hand=True, rows=row, off=3), found[row]):
                name = self.called.positions
                return f"positions of new tokens: {name} change nothing with a cache, the model makes its own"
            if look := self._read(before[1], found[row]):
                return look
            if not self._equal(self.outputs(by_hand=True, rows=slice(0, 1)), self.wanted[:1]):
                return "what goes wrong without pads, too, as one token at a time shows"
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
        return "the mask while decoding, which must cover the pads in the cache, or positions that count them"

    def _read(self, cache: Any, found: Tensor) -> str:
        """The positions of the steps in the padded row, if they are not those from the mask."""
        right, read, t = self.places[1, -_STEPS:].tolist(), list[int](), _N - _STEPS
        for n, place in enumerate(right):
            token, mask, held = (
                self.ids[1:, t + n : t + n + 1],
                self.mask[1:, : t + n + 1],
                copy.deepcopy(cache),
            )
            step = found[:, n : n + 1]
            read += read_places(
                self.called, token, held, step, place, self.limit, mask=mask, last=self.start + t + n
            )
            if len(read) <= n:
                break
            given = self.places[1:, t + n : t + n + 1]
            _, cache = self.called.step(token, cache, mask=mask, positions=given)
        if read == [place + _PADS for place in right[: len(read)]] and read:
            return "positions of new tokens: the pads in the cache are counted"
        look = places_in_words(read, right[: len(read)])
        return look and f"{look} after pads"
