"""Which rows of its tables a model reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from posenc.check.models import Called, change, text_config
from posenc.check.report import Finding

__all__ = ["pad_row", "placed", "rows_from_mask", "wrong_sines"]


def pad_row(model: Any, ids: Tensor) -> Finding | None:
    """A fault if a real token has the position whose row a table keeps for pads; None otherwise."""
    places = getattr(text_config(model), "max_position_embeddings", None)
    for name, (table, rows) in _read(model, lambda: Called(model)(ids)).items():
        pad, held = table.padding_idx, rows.flatten()[: ids.shape[1]]
        if not _counts(rows, ids) or bool((ids == pad).any() if pad is not None else False):
            continue
        begins, free = int(held[0]), table.num_embeddings - places if isinstance(places, int) else 0
        if pad is not None and bool((held == pad).any()):
            says = f"token {pad - begins} reads row {pad} of {name}, its padding_idx, which is never trained"
            wanted, why = pad + 1, "after the row of the pad"
        elif 0 < free <= 4 and begins != free:  # BART, mBART and OPT keep two rows free
            says = f"token 0 reads row {begins} of {name}, which has {free} more than there are positions"
            wanted, why = free, "after the rows that are kept free"
        else:
            continue
        look = f"positions begin at {begins}: they must begin at {wanted}, {why}"
        return Finding("first position", "FAULT", says, float(begins), look, "learned#row-zero")
    return None


def wrong_sines(model: Any) -> Finding | None:
    """A fault if a table of sines and cosines has not one frequency a pair, as the formula; None otherwise.

    Such tables are known by the name of their class. Both usual divisors are right, d and d - 2, and so is each order.
    """
    for name, part in model.named_modules() if isinstance(model, nn.Module) else ():
        tables = (*part.parameters(recurse=False), *part.buffers(recurse=False))
        for table in tables if "Sinusoidal" in type(part).__name__ else ():
            if table.ndim != 2 or not table.is_floating_point() or min(table.shape) < 4 or table.shape[1] % 2:
                continue
            rows, half = table.detach().double().cpu()[:64], table.shape[1] // 2
            held = (rows != 0).any(1)  # the row of the pad is empty
            ways = [(rows[:, :half], rows[:, half:]), (rows[:, 0::2], rows[:, 1::2])]
            ways += [(second, first) for first, second in ways]
            angles = [
                torch.arange(len(rows))[:, None] * 10000 ** (-torch.arange(half).double() / max(1, each))
                for each in (half, half - 1)
            ]
            fits = [
                [
                    change(f(angle)[held], found[held]) < 1e-3
                    for f, found in zip((torch.sin, torch.cos), way, strict=True)
                ]
                for way in ways
                for angle in angles
            ]
            if any(map(all, fits)) or not bool(held.any()):
                continue
            sines, cosines = (any(fit[n] for fit in fits) for n in (0, 1))
            look = "the table of sines and cosines: it is not that of the formula"
            if sines != cosines:
                right, wrong = ("sines", "cosines") if sines else ("cosines", "sines")
                look = f"the table of sines and cosines: its {right} are right, its {wrong} have other frequencies"
            says = f"{name or type(part).__name__} differs from the formula within its first {len(rows)} rows"
            return Finding("table of sines", "FAULT", says, math.nan, look, "sinusoidal#formula")
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
