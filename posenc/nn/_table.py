"""A fixed table in a layer: what all layers with one share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor, nn


class FixedTable(nn.Module):
    """A layer with a table that is not trained, not saved and never cast.

    A subclass makes the table in `_make_table` and calls `_register_table` at the end of its `__init__`.
    """

    table: Tensor

    def _make_table(self) -> Tensor:
        """The table, in its precision, on the CPU."""
        raise NotImplementedError

    def _register_table(self) -> None:
        self.register_buffer("table", self._make_table(), persistent=False)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        """Follow the module to another device, but never into another precision."""
        before = self.table
        super()._apply(fn, recurse)
        after = self.table
        if after is not before:
            # Only its device counts: the numbers may be cast by now, or be what `to_empty` found in memory.
            source = self._make_table() if before.is_meta and not after.is_meta else before
            self.table = source.to(after.device)
        return self


def wide(x: Tensor) -> torch.dtype:
    """The precision to compute in for x: float64 for float64, float32 for the rest."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32
