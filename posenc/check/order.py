"""Does a model see order, and does it matter where a text starts?"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from posenc.check.layouts import check_layout
from posenc.check.masks import reach
from posenc.check.models import (
    BY_ROW,
    LIMITS,
    Called,
    change,
    counted,
    of_rows,
    some_tokens,
    text_config,
    tolerance,
)
from posenc.check.report import Finding, Report
from posenc.check.rotated import rotated
from posenc.check.rotations import check_rotation
from posenc.check.tables import pad_row, wrong_sines
from posenc.check.turns import ROUNDED
from posenc.check.weights import ERRORS
from posenc.rotary import from_config

__all__ = ["check_order", "check_shift"]


def check_order(model: Any, ids: Tensor | None = None) -> Report:
    """Whether the last output changes when the tokens before it are turned round.

    Args:
        model: in evaluation mode, called as the checks call models, see `posenc.check.models.Called`.
        ids: token ids (batch, length). If None, random ones that the model's configuration or embedding allows.

    Raises:
        TypeError, ValueError: model cannot be called like this, is not in evaluation mode, or ids are too few.

    >>> bag = torch.nn.Embedding(50, 8).eval()  # each token by itself
    >>> check_order(bag).ok, check_order(bag).faults[0].look
    (False, 'where positions enter: none does, or all get the same')

    Source: a check of this book, explained in check.md#comparisons.
    """
    called, ids = Called(model), some_tokens(model, ids)
    limit, outputs = tolerance(called, ids), called(ids)
    turned = torch.cat([ids[:, :-1].flip(1), ids[:, -1:]], dim=1)
    found = change(called(turned)[:, -1], outputs[:, -1])
    if found > limit:
        says = f"the last output changes by {found:.2g} when the tokens before it are turned round"
        return Report((Finding("order", "ok", says, found, "", "order#attention"),))
    says = "the last output stays the same when the tokens before it are turned round"
    look = of_rows(called, ids, limit) or "where positions enter: none does, or all get the same"
    return Report((Finding("order", "FAULT", says, found, look, "order#attention"),))


def check_shift(model: Any, ids: Tensor | None = None, *, relative: bool | None = None) -> Report:
    """Whether outputs depend on where the text starts: positions n, n + 1, ... instead of 0, 1, ...

    Args:
        model, ids: as in `check_order`. The model must take position_ids or positions.
        relative: whether outputs are meant to stay. If None, they are if the model's configuration speaks of RoPE and
            of nothing absolute; without a configuration nothing is a fault.

    Raises:
        TypeError, ValueError: as in `check_order`.

    >>> ids, table = torch.arange(12)[None], torch.nn.Embedding(50, 8)
    >>> report = check_shift(lambda ids, positions=ids: table(ids) + table(positions), ids)
    >>> {finding.what: finding.verdict for finding in report.findings}
    {'first position': 'ok', 'shift': 'note'}

    Source: a check of this book, explained in check.md#comparisons.
    """
    called, ids = Called(model), some_tokens(model, ids)
    findings = [found for found in (wrong_sines(model), pad_row(model, ids)) if found]
    limit = max(tolerance(called, ids), 1e-4 * float(called(ids).abs().max()))
    if (kept := _kept(model, ids[:, :-5], limit)) is not None:
        return Report((*findings, kept))
    if called.positions is None:
        says = "the model takes no positions"
        findings.append(Finding("shift", "left out", says, math.nan, "", "shift#invariance"))
        return Report(tuple(findings))
    usual, base = called(ids), called(ids, positions=counted(ids))
    if all(each.what != "first position" for each in findings):
        findings.append(_start(called, ids, usual, base, limit))
    shifts = {n: change(called(ids, positions=counted(ids, n)), base) for n in (1, 7, 30)}
    worst = max(shifts.values())
    if relative is None:
        relative = _is_relative(model)
    starts = _far(model, ids) if relative and worst <= limit else []
    far = {n: change(called(ids, positions=counted(ids, n)), base) for n in starts}
    # float32 rounds an angle of n radians to n 2^-24 of a radian, for the query and for the key.
    room = 2**-21 * float(base.abs().max())
    away = next((n for n, size in far.items() if not size <= limit + n * room), None)
    if away is not None:
        says = f"outputs stay the same up to a start at 30 and change by {far[away]:.2g} at {away}"
        look = "positions far from 0: they are rounded (bfloat16 holds integers up to 256), or written round"
        findings.append(Finding("shift", "FAULT", says, far[away], look, "precision#positions"))
    elif relative and worst == 0 and _is_unread(model, ids):
        says = "outputs are the same to the last bit wherever the text starts, and so are turned queries"
        look = "position_ids: they are not read, so packed documents and pads are counted through as one text"
        findings.append(Finding("shift", "FAULT", says, worst, look, "masks#packing"))
    elif worst <= limit:
        says = f"outputs stay the same wherever the text starts (to {worst:.1g})"
        findings.append(Finding("shift", "ok", says, worst, "", "shift#invariance"))
    elif relative:
        says = f"outputs change by {worst:.2g} when all positions are moved by the same number"
        last, beyond = ids.shape[1] - 1, called(ids, positions=counted(ids, 30))
        clamped = change(called.at(ids, 0 * counted(ids) + last), beyond) <= limit
        one = ids[:, :1]  # a query with one key has the weight 1, whatever its score
        alone = change(called(one, positions=counted(one, 30)), called(one, positions=counted(one)))
        rounded = (each.look for each in check_rotation(model, ids).faults if ROUNDED in each.look)
        look = next(rounded, _unlike(model)) or (
            "values that are turned, or an absolute code besides: already a text of one token sees where it stands"
            if alone > limit
            else _after_rotation(model, called, ids)
            or "queries and keys that are turned by different layouts, in different directions or from different "
            "starts: a text of one token does not see where it stands"
        )
        if clamped:
            look = f"a clamp: positions from {last} on, the last of the first text, count as the same"
        findings.append(Finding("shift", "FAULT", says, worst, look, "shift#invariance"))
    else:
        says = f"outputs change by {worst:.2g} with the place of the text: the model sees absolute positions"
        findings.append(
            Finding("shift", "note" if relative is None else "ok", says, worst, "", "shift#invariance")
        )
    return Report(tuple(findings))


def _kept(model: Any, ids: Tensor, limit: float) -> Finding | None:
    """A fault if outputs depend on a call before, of the same length and with other positions or with pads."""
    if not isinstance(model, nn.Module):
        return None
    first, other, padded = (Called(copy.deepcopy(model)) for _ in range(3))
    says = "outputs differ by {:.2g} after a call of the same length with "
    found, given = list[tuple[str, str, float]](), {"positions": counted(ids)} if first.positions else {}
    if first.positions:
        wanted = first(ids, **given)
        other.at(ids, counted(ids).flip(1))
        look = "what is kept between calls: angles, positions or a mask of an earlier call are used again"
        found.append((look, says + "other positions", change(other(ids, **given), wanted)))
    if first.mask:
        mask = torch.ones_like(counted(ids))
        mask[:, :3] = 0
        wanted = first(ids)
        with suppress(*ERRORS):  # what pads do is said elsewhere
            padded(ids, mask=mask)
            look = "what is kept between calls: pads or the mask of an earlier call are used again"
            found.append((look, says + "pads", change(padded(ids), wanted)))
    for look, words, size in found:
        if not size <= limit:
            return Finding("a call after another", "FAULT", words.format(size), size, look, "rotary#cache")
    return None


def _is_unread(model: Any, ids: Tensor) -> bool:
    """Whether queries are turned as at 0 where they are told to stand at 30; elsewhere they differ by rounding."""
    near, far = (rotated(model, ids[:1], counted(ids[:1], start), mask=False) for start in (0, 30))
    turned = [(one[2], other[2]) for one, other in zip(near, far, strict=False)]
    return bool(turned) and all(map(torch.equal, *zip(*turned, strict=True)))


def _after_rotation(model: Any, called: Called, ids: Tensor) -> str:
    """Why outputs depend on the start of a text though what the rotary function gives does not; "" if it does."""
    near, far = (rotated(model, ids[:1], counted(ids[:1], start)) for start in (0, 30))
    if not near or len(near) != len(far):
        return ""
    scores = []
    for _, _, q, k in (near[0], far[0]):
        scores.append(q @ k.repeat_interleave(len(q) // len(k), dim=0).mT)
    if change(*scores) > 1e-4 * float(scores[0].abs().max()):
        return ""
    if not torch.equal(reach(called, ids), reach(called, ids, positions=counted(ids, 30)[0])):
        return "a mask that is made from positions: other tokens are seen where the text starts elsewhere"
    return (
        "what comes after the rotation, a norm or a weight for each column: turned queries and keys themselves give "
        "scores of offsets alone"
    )


def _start(called: Called, ids: Tensor, usual: Tensor, base: Tensor, limit: float) -> Finding:
    """Which positions the model takes if none are given."""
    if change(usual, base) <= limit:
        says = "without positions given it counts from 0"
        return Finding("first position", "ok", says, change(usual, base), "", "learned#row-zero")
    for start in (1, 2):
        if change(usual, called(ids, positions=counted(ids, start))) <= limit:
            says = f"without positions given it counts from {start}"
            look = "positions that you give yourself: they start there, too"
            return Finding("first position", "note", says, float(start), look, "learned#row-zero")
    found = change(usual, base)
    numbers = torch.arange(len(ids), device=ids.device)[:, None].expand(ids.shape[:2])
    if len(ids) > 1 and change(usual, called.at(ids, numbers)) <= limit < change(
        usual, called.at(ids, 0 * numbers)
    ):
        says = f"outputs without positions given differ by {found:.2g} from those at 0, 1, 2, ..."
        return Finding("first position", "FAULT", says, found, BY_ROW, "learned#row-zero")
    if change(usual[:1], base[:1]) <= limit:
        says = f"without positions given the first row counts from 0, and the outputs of others differ by {found:.2g}"
        look = "positions of the rows: those after the first do not begin at 0"
        return Finding("first position", "FAULT", says, found, look, "learned#row-zero")
    says = f"outputs without positions given differ by {found:.2g} from those at 0, 1, 2, ..."
    look = "what the model makes of missing positions: all 0, or made in a short format?"
    return Finding("first position", "FAULT", says, found, look, "learned#row-zero")


def _far(model: Any, ids: Tensor) -> list[int]:
    """Starts that short formats cannot count from, and float32 can: across 256, and at most 1,000."""
    text = text_config(model)
    last = next((n for name in LIMITS if isinstance(n := getattr(text, name, None), int) and n > 0), 1024)
    original = getattr(text, "original_max_position_embeddings", None)  # frequencies change there (LongRoPE)
    room = min(last, original or last, 1024) - ids.shape[1]
    return [start for start in (256 - ids.shape[1] // 2, room) if 0 <= start <= room]


def _unlike(model: Any) -> str:
    """What a model of transformers turns unlike in queries and keys: its function, asked by itself; "" if nothing."""
    parameters = getattr(text_config(model), "rope_parameters", None)
    if isinstance(parameters, dict) and parameters.get("rope_type") == "dynamic":
        return "dynamic scaling: frequencies change with the largest position, and keys that a cache holds do not"
    rotary = next((part for name, part in _parts(model) if name.endswith("rotary_emb")), None)
    apply = getattr(sys.modules.get(type(rotary).__module__), "apply_rotary_pos_emb", None)
    dim = getattr(text_config(model), "head_dim", None)
    if rotary is None or apply is None:
        return ""

    def turn(x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        q, k = apply(x, x, *rotary(x, positions[None]))
        return q, k

    try:
        if dim is None:
            dim = text_config(model).hidden_size // text_config(model).num_attention_heads
        found = check_layout(turn, dim).faults
    except (TypeError, ValueError, AttributeError, RuntimeError, IndexError):
        return ""  # it is called otherwise there
    if found and "queries" in found[0].says:
        return f"apply_rotary_pos_emb turns them unlike: {found[0].says}"
    return f"apply_rotary_pos_emb: {found[0].look}" if found else ""


def _parts(model: Any) -> Iterator[tuple[str, nn.Module]]:
    return iter(model.named_modules() if isinstance(model, nn.Module) else ())


def _is_relative(model: Any) -> bool | None:
    text = text_config(model)
    if text is None:
        return None
    if getattr(text, "position_embedding_type", None) == "absolute":
        return False
    rope = getattr(text, "rope_parameters", None) or getattr(text, "rope_scaling", None)
    return bool(rope or hasattr(text, "rope_theta")) and not _grows(text)


def _grows(text: Any) -> bool:
    """Whether queries grow with their positions already where texts are moved to: no offset says that."""
    with suppress(TypeError, ValueError):  # what cannot be read is said elsewhere
        return any(
            each.log_scale and each.log_scale[1] < 1024 for each in from_config(text, length=1).kinds.values()
        )
    return False
