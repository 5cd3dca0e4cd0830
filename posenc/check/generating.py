"""Which positions reach a model while generate() of transformers writes, and whether it writes what one pass would."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from posenc.check.models import Called, change, first_position, has_own_masks, some_tokens, tolerance
from posenc.check.report import Finding, Report
from posenc.check.weights import ERRORS

__all__ = ["calls_of_generate", "check_generate"]

_STEPS = 4

OWN_TOKEN = "it adds a token of its own and a perm_mask, which one pass does not have"


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
    if has_own_masks(model):
        return Report((_left("generate", OWN_TOKEN),))
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


class _Call(NamedTuple):
    """What one call of generate() gave the model, and how many tokens its cache held before."""

    ids: Any
    positions: Any
    mask: Any
    held: int


def calls_of_generate(called: Called, ids: Tensor, mask: Tensor, **more: Any) -> tuple[Any, list[_Call]]:
    """What generate() gives, and its calls."""
    told = list[_Call]()

    def keep(_model: Any, given: Any, more: dict[str, Any]) -> None:
        cache: Any = more.get(called.cache or "")
        held = cache.get_seq_length() if hasattr(cache, "get_seq_length") else 0
        given = more.get("input_ids", given[0] if given else None)
        told.append(_Call(given, more.get(called.positions or ""), more.get(called.mask or ""), int(held)))

    hook = called.model.register_forward_pre_hook(keep, with_kwargs=True)
    try:
        made = called.model.generate(
            ids,
            attention_mask=mask,
            pad_token_id=0,
            do_sample=False,
            max_new_tokens=_STEPS,
            min_new_tokens=_STEPS,
            output_logits=True,
            return_dict_in_generate=True,
            **more,
        )
    finally:
        hook.remove()
    return made, told


def _written(what: str, called: Called, ids: Tensor, mask: Tensor, pads: int) -> Finding:
    """Rows that begin with no pads, and after the first with so many, continued by generate()."""
    section = "masks#left" if pads else "rotary#cache"
    limit = tolerance(called, ids)
    made, told = calls_of_generate(called, ids, mask, num_beams=1)
    found = torch.stack(made.logits, dim=1).double()  # (row, step, vocabulary)
    texts = [text[pads * (number > 0) :][None] for number, text in enumerate(made.sequences)]
    wanted = torch.cat([called(text[:, :-1])[:, -found.shape[1] :] for text in texts])
    if (size := change(found, wanted)) <= limit:
        if not pads and (wrong := _beams(called, ids, mask, limit)):
            return Finding(f"{what} with beams", "FAULT", wrong[0], math.nan, wrong[1], section)
        return Finding(what, "ok", f"the same outputs, to {size:.1g}", size, "", section)
    says = f"outputs differ by {size:.2g} from one pass over what it wrote"
    start = first_position(called, ids[:1], called(ids[:1]), limit)
    look = next(
        look
        for look in (
            _of_positions(told, ids, pads, start),
            _of_tokens(told, made.sequences),
            _of_masks(told, mask),
            "what generate() hands on from step to step: a cache, or positions that the model makes itself",
        )
        if look
    )
    return Finding(what, "FAULT", says, size, look, section)


def _beams(called: Called, ids: Tensor, mask: Tensor, limit: float) -> tuple[str, str] | None:
    """What is wrong with a beam search whose rows change places; None if nothing, or if it cannot be tried."""
    # Other texts beside it, with more beams than one: which of them go on changes from step to step.
    try:
        made, _ = calls_of_generate(called, ids, mask, num_beams=3, num_return_sequences=3)
        rows = made.beam_indices
        found = torch.stack(made.logits, dim=1).double()
    except ERRORS:
        return None
    steps = found.shape[1]
    if rows.shape[1] < steps or bool((rows[:, :steps] < 0).any()):
        return None
    used = torch.stack([found[rows[:, t], t] for t in range(steps)], dim=1)
    wanted = called(made.sequences[:, :-1])[:, -steps:]
    if (size := change(used, wanted)) <= limit:
        return None
    name = "_reorder_cache of the model" if hasattr(called.model, "_reorder_cache") else "reorder_cache"
    says = f"with 3 beams outputs differ by {size:.2g} from one pass over what it wrote, and not with one"
    return says, f"the cache does not follow the beams: {name}, or what the model keeps for each row besides"


def _of_positions(told: list[_Call], ids: Tensor, pads: int, start: int) -> str:
    """What is wrong with the position_ids that reached the model; "" if nothing."""
    if not told or not all(isinstance(each.positions, Tensor) for each in told):
        return ""
    rows = [each.positions.reshape(-1, *each.positions.shape[-2:])[0].expand(len(ids), -1) for each in told]
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
    return ""


def _of_tokens(told: list[_Call], written: Tensor) -> str:
    """Which tokens do not reach the model, or reach it twice; "" if all do once."""
    given = 0
    for number, each in enumerate(told):
        if not isinstance(each.ids, Tensor) or each.ids.ndim != 2:
            return ""
        begin, end = each.held, each.held + each.ids.shape[1]
        if each.held not in (0, given):
            return f"the cache of generate(): before call {number} it holds {each.held} of {given} tokens"
        if end > written.shape[1] or not torch.equal(each.ids, written[:, begin:end]):
            last = f"token {int(each.ids[0, -1])}"
            return f"input_ids of generate(): call {number} gives {last}, which is not what was written there"
        given = end
    return ""


def _of_masks(told: list[_Call], mask: Tensor) -> str:
    """In which call the mask is not that of the text with a 1 for each new token; "" if in none."""
    for number, each in enumerate(told):
        if each.mask is None and not bool(mask.all()):
            return f"attention_mask of generate(): in call {number} there is none, so pads are seen"
        if not isinstance(each.mask, Tensor) or each.mask.ndim != 2 or not isinstance(each.ids, Tensor):
            continue
        n = each.held + each.ids.shape[1]
        wanted = torch.cat([mask, mask.new_ones(len(mask), max(0, n - mask.shape[1]))], dim=1)[:, :n]
        look, found = f"attention_mask of generate(): in call {number}", each.mask
        if found.shape != wanted.shape:
            return f"{look} it is for {found.shape[-1]} tokens, and there are {n}"
        if bool((found > wanted).any()):
            return f"{look} it shows pads"
        if bool((found < wanted).any()):
            at = int((found < wanted).nonzero()[0, 1])
            return f"{look} it hides token {at}, {'a new one' if at >= mask.shape[1] else 'a real one'}"
    return ""
