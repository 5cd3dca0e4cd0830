"""Which rows of its tables a model reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from posenc.check.models import Called
from posenc.check.report import Finding

__all__ = ["pad_row", "placed", "rows_from_mask"]


def pad_row(model: Any, ids: Tensor) -> Finding | None:
    """A fault if a real token has the position whose row a table keeps for pads; None otherwise."""
    for name, (table, rows) in _read(model, lambda: Called(model)(ids)).items():
        pad, held = table.padding_idx, rows.flatten()[: ids.shape[1]]
        if pad is None or not _counts(rows, ids) or not bool((held == pad).any()) or bool((ids == pad).any()):
            continue
        says = (
            f"token {pad - int(held[0])} reads row {pad} of {name}, its padding_idx, which is never trained"
        )
        look = f"positions begin at {int(held[0])}: they must begin at {pad + 1}, after the row of the pad"
        return Finding("first position", "FAULT", says, float(held[0]), look, "learned#row-zero")
    return None


@contextmanager
def placed(model: Any, ids: Tensor, places: Tensor) -> Iterator[bool]:
    """Tables of positions are read at the places of the first row, 0 being where they begin; False without a table.

    So a model that takes no positions is given them all the same.
    """
    read = _read(model, lambda: Called(model)(ids))
    first = {id(table.weight): int(rows.min()) for table, rows in read.values() if _counts(rows, ids)}
    usual = nn.functional.embedding

    def at_places(rows: Tensor, weight: Tensor, *given: Any, **more: Any) -> Tensor:
        if id(weight) in first and rows.shape[-1] == places.shape[-1]:
            rows = (first[id(weight)] + places[0]).expand_as(rows)
        return usual(rows, weight, *given, **more)

    with mock.patch.object(nn.functional, "embedding", at_places):
        yield bool(first)


def _counts(rows: Tensor, ids: Tensor) -> bool:
    """Whether rows are read one after another, as positions are, not kinds of tokens or the like."""
    held = rows.flatten()[: ids.shape[1]]
    return held.shape == ids.shape[1:2] and bool((held.diff() == 1).all())


def rows_from_mask(model: Any, ids: Tensor, mask: Tensor) -> str:
    """How rows of positions change with a mask; "" if they do not."""
    without = _read(model, lambda: Called(model)(ids))
    for name, (_, rows) in _read(model, lambda: Called(model)(ids, mask=mask)).items():
        if name not in without or torch.equal(rows.expand_as(ids), without[name][1].expand_as(ids)):
            continue
        found, usual = (_listed(each.expand_as(ids)[0]) for each in (rows, without[name][1]))
        return (
            f"positions made from the mask: {name} is asked for rows {found}, and without a mask for {usual}"
        )
    return ""


def _read(model: Any, run: Callable[[], object]) -> dict[str, tuple[nn.Embedding, Tensor]]:
    """Each table, by its name, with the rows of it that the last look-up in a run reads."""
    tables = {
        id(part.weight): (name, part)
        for name, part in (model.named_modules() if isinstance(model, nn.Module) else ())
        if isinstance(part, nn.Embedding)
    }
    usual, found = nn.functional.embedding, dict[str, tuple[nn.Embedding, Tensor]]()

    def recorded(rows: Tensor, weight: Tensor, *given: Any, **more: Any) -> Tensor:
        if id(weight) in tables:
            name, table = tables[id(weight)]
            found[name] = table, rows.detach().clone()
        return usual(rows, weight, *given, **more)

    with mock.patch.object(nn.functional, "embedding", recorded):
        run()
    return found


def _listed(rows: Tensor) -> str:
    return ", ".join(map(str, rows[:4].tolist())) + ", ..." * (len(rows) > 4)
