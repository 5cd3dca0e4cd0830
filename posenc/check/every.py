"""All checks of a model at once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from posenc.check.buckets import check_buckets
from posenc.check.compiled import check_compile
from posenc.check.decoding import check_decoding
from posenc.check.documents import packed_apart
from posenc.check.faraway import FAR, GIVEN
from posenc.check.generating import OWN_TOKEN, check_generate
from posenc.check.lengths import check_length, check_precision
from posenc.check.loading import OTHERS, check_loading
from posenc.check.masks import check_mask
from posenc.check.models import BY_ROW, some_tokens
from posenc.check.order import check_order, check_shift
from posenc.check.report import Finding, Report
from posenc.check.rotations import check_rotation
from posenc.check.scales import check_scale
from posenc.check.slopes import UNREAD, check_slopes
from posenc.check.sources import check_source, encoder_and_decoder
from posenc.check.turns import OTHERWISE

__all__ = ["check_all"]


def check_all(
    model: Any, ids: Tensor | None = None, *, meant: str | Tensor | None = None, compiled: bool = False
) -> Report:
    """All checks that apply to a model, as one report; print it.

    Args:
        model, ids: as in `posenc.check.check_order`.
        meant: as in `posenc.check.check_mask`.
        compiled: whether torch.compile is tried, too, which takes longest.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> bag = nn.Embedding(50, 8).eval()  # each token by itself
    >>> [finding.what for finding in check_all(bag, meant="causal").faults]
    ['who sees whom', 'order']

    Source: a check of this book, explained in check.md#interface.
    """
    ids = some_tokens(model, ids)
    if parts := encoder_and_decoder(model, ids):
        encoder, decoder = parts
        findings = _named("encoder", _found(encoder, ids, "full", loaded=False))
        findings += check_source(model, decoder, ids)
        findings += _named("decoder", _found(decoder, ids, meant or "causal", compiled=compiled))
        return Report(tuple(findings))
    return Report(tuple(_found(model, ids, meant, compiled=compiled)))


def _leads(found: Finding) -> bool:
    """Whether other faults follow from this one, of frequencies or rotations in the model's own format."""
    vague = found.look.endswith((OTHERWISE, OTHERS, FAR, GIVEN))
    return not found.ok and found.what in ("rotations", "frequencies") and not vague


def _named(part: str, findings: list[Finding]) -> list[Finding]:
    return [replace(each, what=f"{part}: {each.what}") for each in findings]


def _found(
    model: Any, ids: Tensor, meant: str | Tensor | None, *, loaded: bool = True, compiled: bool = False
) -> list[Finding]:
    order = check_order(model, ids).findings
    # A wrong scale of scores or a wrong mask comes first: other faults follow from them.
    scale = [found for found in check_scale(model, ids).findings if found.verdict != "left out"]
    first = check_mask(model, ids, meant=meant).findings, order
    findings = [
        *scale,
        *(found for part in (first[::-1] if order[0].look == BY_ROW else first) for found in part),
    ]
    turned, loading, exact = list[Finding](), list[Finding](), False
    if isinstance(model, nn.Module):
        loading = list(check_loading(model, ids).findings) if loaded else []
        turned = list(check_rotation(model, ids).findings)
        # What is wrong with frequencies comes before what follows from it, and an exact cause before a vague one.
        exact = any(not each.ok and not each.look.endswith(OTHERWISE) for each in turned)
        held, loading = loading[:1], loading[1:]
        vague = bool(held) and held[0].look.endswith(OTHERS)
        turned = turned + held if vague and exact else held + turned
        exact = any(_leads(each) for each in turned)
    shift, decoding = (list(check(model, ids).findings) for check in (check_shift, check_decoding))
    # Unless one pass and decoding differ, or shift says how queries and keys are unlike.
    leads = (
        exact
        and not any("turns them unlike" in each.look for each in shift)
        and all(each.ok for each in decoding)
    )
    biased = [*check_slopes(model, ids).findings, *check_buckets(model, ids).findings]
    generated = [*check_generate(model, ids).findings, *(each for each in biased if each.ok)]
    # Wrong slopes or buckets in one pass come before what decoding makes of them.
    findings += [each for each in biased if not each.ok]
    findings += [*(turned if leads else ()), *shift, *decoding, *check_length(model, ids).findings]
    findings += [
        found for found in generated if found.verdict != "left out" or found.says in (UNREAD, OWN_TOKEN)
    ]
    if all(each.ok for part in first for each in part):
        findings += packed_apart(model, ids)
    if isinstance(model, nn.Module):
        findings += check_precision(model, ids).findings
    else:
        says = "the model is no module, of which copies could be made"
        findings.append(Finding("precision", "left out", says, math.nan, "", "precision#positions"))
    findings += ([] if leads else turned) + loading
    if compiled:
        findings += check_compile(model, ids).findings
    return findings
