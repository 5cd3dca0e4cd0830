"""Which positions reach a model while generate() of transformers writes, and whether it writes what one pass would."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from posenc.check.models import Called, change, first_position, some_tokens, tolerance
from posenc.check.report import Finding, Report
from posenc.check.weights import ERRORS

__all__ = ["check_generate"]

_STEPS = 4


def check_generate(model: Any, ids: Tensor | None = None) -> Report:
    """Whether generate() of transformers writes by the outputs that one pass over the whole text gives.

    It makes position_ids and masks by itself, step by step. Four tokens are written after a text, and after the same
    text with pads on the left, each time greedily; the outputs of each step are compared with those of one pass over
    all that was written, without a cache and without pads.

    Args:
        model, ids: as in `posenc.check.check_order`.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> bag = torch.nn.Embedding(50, 8).eval()  # each token by itself
    >>> print(check_generate(bag))
    left out  generate: the model has no generate

    Source: a check of this book, explained in check.md#comparisons.
    """
    called, ids = Called(model), some_tokens(model, ids)
    if not getattr(model, "can_generate", lambda: False)():
        return Report((_left("generate", "the model has no generate"),))
    row, pads = ids[:1, :8], 3
    padded = torch.cat([row[:, :1].expand(1, pads), row[:, :-pads]], dim=1)
    both, mask = torch.cat([row, padded]), torch.ones_like(torch.cat([row, padded]))
    mask[1, :pads] = 0
    findings = list[Finding]()
    # A decoder beside an encoder gets a start before its pads; what one pass does with pads was said elsewhere.
    parts = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    for what, given, shown, skipped in (
        ("generate", row, mask[:1], 0),
        ("generate after pads", both, mask, pads),
    ):
        try:
            if not skipped or (not parts and _right_by_hand(called, given, shown, skipped)):
                findings.append(_written(what, called, given, shown, skipped))
        except ERRORS as error:
            says = f"it cannot be tried: {type(error).__name__}: {str(error).splitlines()[0][:80]}"
            findings.append(_left(what, says))
    return Report(tuple(findings))


def _left(what: str, says: str) -> Finding:
    return Finding(what, "left out", says, math.nan, "", "rotary#cache")


def _right_by_hand(called: Called, ids: Tensor, mask: Tensor, pads: int) -> bool:
    """Whether one pass with pads on the left is right, at positions from the mask if the model takes any."""
    if called.mask is None:
        return False
    alone, limit = called(ids[1:, pads:]), tolerance(called, ids)
    start = first_position(called, ids[1:, pads:], alone, limit)
    places = (mask.cumsum(-1) - 1).clamp(min=0) + start if called.positions else None
    return change(called(ids, positions=places, mask=mask)[1:, pads:], alone) <= limit


def _written(what: str, called: Called, ids: Tensor, mask: Tensor, pads: int) -> Finding:
    """Rows that begin with no pads, and after the first with so many, continued by generate()."""
    model, told = called.model, list[Any]()
    section = "masks#left" if pads else "rotary#cache"

    def keep(_model: Any, _given: Any, more: dict[str, Any]) -> None:
        told.append(more.get(called.positions or ""))

    hook = model.register_forward_pre_hook(keep, with_kwargs=True)
    greedy = {"do_sample": False, "num_beams": 1, "max_new_tokens": _STEPS, "min_new_tokens": _STEPS}
    try:
        made = model.generate(
            ids,
            attention_mask=mask,
            pad_token_id=0,
            output_logits=True,
            return_dict_in_generate=True,
            **greedy,
        )
    finally:
        hook.remove()
    found = torch.stack(made.logits, dim=1).double()  # (row, step, vocabulary)
    texts = [text[pads * (number > 0) :][None] for number, text in enumerate(made.sequences)]
    wanted = torch.cat([called(text[:, :-1])[:, -found.shape[1] :] for text in texts])
    if (size := change(found, wanted)) <= tolerance(called, ids):
        return Finding(what, "ok", f"the same outputs, to {size:.1g}", size, "", section)
    says = f"outputs differ by {size:.2g} from one pass over what it wrote"
    start = first_position(called, ids[:1], called(ids[:1]), tolerance(called, ids))
    return Finding(what, "FAULT", says, size, _cause(told, ids, pads, start), section)


def _cause(told: list[Any], ids: Tensor, pads: int, start: int) -> str:
    """What is wrong with the position_ids that reached the model in the calls of generate()."""
    if not told or not all(isinstance(each, Tensor) for each in told):
        return "what generate() hands on from step to step: a cache, a mask, or positions that the model makes itself"
    rows = [each.reshape(-1, *each.shape[-2:])[0].expand(len(ids), -1) for each in told]
    first = rows[0].shape[1]
    for number, row in enumerate(torch.cat(rows, dim=1)):
        skipped = pads * (number > 0)
        held = row[skipped:]
        off = held - torch.arange(start, start + len(held), device=held.device)
        if not bool(off.any()):
            continue
        at = int(off.nonzero()[0])
        whose = "new tokens" if at + skipped >= first else "the text"
        look = f"position_ids of generate(): those of {whose} begin with {int(held[at])} in place of {start + at}"
        if skipped and int(off[at]) == skipped:
            return f"{look}: the pads on the left are counted"
        return look + (
            ": what is in the cache is not counted" if whose == "new tokens" and not int(held[at]) else ""
        )
    return "the mask or the cache of generate(): its position_ids are right"
