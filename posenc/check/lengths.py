"""What happens at the last position and beyond, and to positions in short formats."""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from posenc._checks import integer
from posenc.check.models import LIMITS, Called, change, counted, some_tokens, text_config, tolerance
from posenc.check.report import Finding, Report

__all__ = ["check_length", "check_precision"]

POSITIONS_ROUNDED = (
    "positions or angles that are rounded to the short format: integers above 256 (bfloat16) or 2048 (float16) have no "
    "place in it, and a buffer of frequencies is cast with the model"
)
FREQUENCIES = (
    "frequencies or angles that are rounded to the short format: positions that it has no place for are still told "
    "apart, so it is not them alone; a buffer of frequencies is cast with the model, or in each call"
)


def check_length(model: Any, ids: Tensor | None = None, *, limit: int | None = None) -> Report:
    """What a model does at its last position and after it: an error is right, a wrong answer in silence is not.

    Args:
        model, ids: as in `posenc.check.check_order`. The model must take position_ids or positions.
        limit: how many positions it has. If None, what the model's configuration says.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`; limit is below 8.

    >>> ids, table = torch.arange(12)[None], nn.Embedding(16, 8)
    >>> clamped = lambda ids, positions=ids: table(ids) + table(positions.clamp(max=15))
    >>> check_length(clamped, ids, limit=16).faults[0].look
    'a clamp'

    Source: a check of this book, explained in check.md#comparisons.
    """
    called, ids = Called(model), some_tokens(model, ids)
    limit = limit_of(model) if limit is None else integer("limit", limit, minimum=8)
    what, section = "beyond the last position", "learned#beyond"
    if called.positions is None or limit is None:
        says = (
            "the model takes no positions"
            if called.positions is None
            else "nothing says how many positions it has"
        )
        return Report((Finding(what, "left out", says, math.nan, "", section),))
    bound, text = tolerance(called, ids), ids[:, :4]
    try:
        last = called.at(text, counted(text, limit - 4))
    except (RuntimeError, IndexError, ValueError) as error:
        says = (
            f"the last of {limit} positions raises {type(error).__name__}: {str(error).splitlines()[0][:100]}"
        )
        look = "the number of positions: the table is shorter than the configuration says"
        return Report((Finding("the last position", "FAULT", says, math.nan, look, section),))
    findings = [_finite("the last position", last, limit, section)]
    try:
        beyond = called.at(text, counted(text, limit - 2))
    except (RuntimeError, IndexError, ValueError) as error:
        says = f"position {limit} is refused with {type(error).__name__}"
        return Report((*findings, Finding(what, "ok", says, math.nan, "", section)))
    if not bool(beyond.isfinite().all()):
        return Report((*findings, _finite(what, beyond, limit, section)))
    held = counted(text, limit - 2)
    matter = change(called.at(text, 0 * held), beyond) > bound
    for says, look, places in (
        ("all positions beyond the last count as the last", "a clamp", held.clamp(max=limit - 1)),
        (
            "positions beyond the last begin at 0 again",
            "a remainder, or a buffer that is written round",
            held % limit,
        ),
    ):
        if matter and change(called.at(text, places), beyond) <= bound:
            return Report((*findings, Finding(what, "FAULT", says, float(limit), look, section)))
    says = f"it goes on after {limit} positions: no error, and finite outputs, of which training says nothing"
    return Report((*findings, Finding(what, "ok", says, float(limit), "", "extrapolation#experiment")))


def _finite(what: str, outputs: Tensor, limit: int, section: str) -> Finding:
    if bool(outputs.isfinite().all()):
        return Finding(what, "ok", f"finite outputs, {limit} positions", float(limit), "", section)
    return Finding(
        what, "FAULT", "outputs are NaN or infinite", math.nan, "what is read from after the table", section
    )


def limit_of(model: Any) -> int | None:
    """How many positions a configuration of Hugging Face gives a model."""
    text = text_config(model)
    found = next((getattr(text, name) for name in LIMITS if getattr(text, name, None)), None)
    return found if isinstance(found, int) and found >= 8 else None


def check_precision(model: Any, ids: Tensor | None = None, *, far: int | None = None) -> Report:
    """Whether positions and angles keep their precision far from 0 and in short formats.

    A copy of the model in float32, bfloat16 and float16, and the model under autocast, are compared with the next
    longer format, at the beginning and far away. What is lost there and not at the beginning is lost by positions.

    Args:
        model: a torch module, otherwise as in `posenc.check.check_order`; it must take position_ids or positions.
        ids: as in `posenc.check.check_order`.
        far: where the second half of the far text begins. If None, the last that the model has, at most 32,768.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`; model is not a module.

    >>> bag = nn.Embedding(50, 8).eval()  # each token by itself
    >>> print(check_precision(bag))
    left out  precision: the model takes no positions

    Source: a check of this book, explained in check.md#comparisons.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch module, of which copies are made, got {type(model).__name__}")
    called, ids = Called(model), some_tokens(model, ids)
    section = "precision#positions"
    if called.positions is None:
        return Report(
            (Finding("precision", "left out", "the model takes no positions", math.nan, "", section),)
        )
    kept = Called(_in_dtype(model, torch.float32))
    if far is None:
        far = _reachable(kept, ids, min(limit_of(model) or 4096, 32768))
    far = integer("far", far, minimum=1)
    findings = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16, None):
        what = f"in {str(dtype).removeprefix('torch.')}" if dtype else "autocast to bfloat16"
        try:
            if dtype:
                findings.append(_cast(model, dtype, what, ids, far))
                continue
            with torch.autocast(ids.device.type, dtype=torch.bfloat16):
                short = _ends(kept, ids, far)
            findings.append(_judged(what, short, _ends(kept, ids, far), far))
        except RuntimeError as error:  # an operation that has no such format
            says = f"it cannot run there: {str(error).splitlines()[0][:80]}"
            findings.append(Finding(what, "left out", says, math.nan, "", section))
    return Report(tuple(findings))


def _reachable(called: Called, ids: Tensor, last: int) -> int:
    """Where the second half of the far text may begin: the model may have fewer positions than is known."""
    for end in (last, 1024, 512, 256, 128):
        try:
            called(ids[:, -2:], positions=counted(ids[:, -2:], end - 2))
        except (RuntimeError, IndexError, ValueError):
            continue
        return max(end - ids.shape[1], 1)
    return ids.shape[1]


def _cast(model: nn.Module, dtype: torch.dtype, what: str, ids: Tensor, far: int) -> Finding:
    """A copy in a format against one with the same numbers in the next longer format."""
    long = _in_dtype(model, torch.float64 if dtype == torch.float32 else torch.float32)
    trained = any(parameter.requires_grad for parameter in model.parameters())
    frozen = {name: each for name, each in model.named_parameters() if trained and not each.requires_grad}
    if dtype != torch.float32:
        for name, parameter in long.named_parameters():
            if name not in frozen:
                parameter.data = parameter.data.to(dtype).to(parameter.dtype)
    wanted, short = _ends(Called(long), ids, far), _in_dtype(model, dtype)
    found = _judged(what, _ends(Called(short), ids, far), wanted, far)
    if found.ok:
        return found
    if not _rounds(Called(short), ids, far, dtype):
        found = replace(found, look=FREQUENCIES)
    constants = frozen | dict(model.named_buffers())
    cast = [name for name, each in constants.items() if each.is_floating_point() and each.dtype != dtype]
    for names in [*([name] for name in cast), cast] if cast else []:
        short = _in_dtype(model, dtype)
        for name in names:
            owner, _, last = name.rpartition(".")
            module = short.get_submodule(owner)
            held: Any = module._parameters if name in frozen else module._buffers
            held[last] = constants[name]
        if _judged(what, _ends(Called(short), ids, far), wanted, far).ok:
            look = f"{names[-1]}: .to() rounds it with the model; load the model in this format, or restore what it was"
            return Finding(what, "note", found.says, found.number, look, found.section)
    return found


def _in_dtype(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    return copy.deepcopy(model).to(dtype)


def _ends(called: Called, ids: Tensor, far: int) -> list[Tensor]:
    """The outputs of a text at the beginning, and with its second half far away from the first."""
    return [called.at(ids, places) for places in (counted(ids), _away(ids, far))]


def _away(ids: Tensor, far: int) -> Tensor:
    half = ids.shape[1] // 2
    return torch.cat([counted(ids[:, :half]), counted(ids[:, half:], far)], dim=1)


def _rounds(called: Called, ids: Tensor, far: int, dtype: torch.dtype) -> bool:
    """Whether positions that this format has no place for count as those that they are rounded to."""
    places = _away(ids, far)
    rounded = places.to(dtype).long()
    if torch.equal(places, rounded):
        return False
    given, short = (called.at(ids, each) for each in (places, rounded))
    return change(given, short) <= 1e-6 * float(given.abs().max())


def _judged(what: str, found: list[Tensor], wanted: list[Tensor], far: int) -> Finding:
    scale, section = float(wanted[0].abs().max()), "precision#positions"
    # Of the usual token far away: rounded positions spoil most of them, an expert chosen by rounding only some.
    half = wanted[0].shape[1] // 2
    near, away = (
        float((a - b)[:, half:].abs().flatten(2).amax(-1).median()) / scale
        for a, b in zip(found, wanted, strict=True)
    )
    says = f"outputs err by {near:.1g} of their size at 0 and by {away:.1g} with half the text at {far}"
    if away <= 4 * near + 1e-4:
        return Finding(what, "ok", says, away, "", section)
    return Finding(what, "FAULT", says, away, POSITIONS_ROUNDED, section)
