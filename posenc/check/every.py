"""All checks of a model at once."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from posenc.check.buckets import check_buckets
from posenc.check.compiled import check_compile
from posenc.check.decoding import check_decoding
from posenc.check.generating import check_generate
from posenc.check.lengths import check_length, check_precision
from posenc.check.loading import OTHERS, check_loading
from posenc.check.masks import check_mask
from posenc.check.models import BY_ROW, some_tokens
from posenc.check.order import check_order, check_shift
from posenc.check.report import Finding, Report
from posenc.check.rotations import OTHERWISE, check_rotation
from posenc.check.scales import check_scale
from posenc.check.slopes import check_slopes
from posenc.check.sources import check_source, encoder_and_decoder

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
    for check in (check_shift, check_decoding, check_length):
        findings += check(model, ids).findings
    for of_some in (check_generate, check_slopes, check_buckets):
        findings += [found for found in of_some(model, ids).findings if found.verdict != "left out"]
    if isinstance(model, nn.Module):
        loading = check_loading(model, ids).findings if loaded else ()
        precision, turned = check_precision(model, ids).findings, check_rotation(model, ids).findings
        # What is wrong with frequencies comes before what follows from it.
        vague = bool(loading) and loading[0].look.endswith(OTHERS)
        exact = any(not each.ok and not each.look.endswith(OTHERWISE) for each in turned)
        parts = (turned, loading[:1]) if vague and exact else (loading[:1], turned)
        findings += [*precision, *parts[0], *parts[1], *loading[1:]]
    else:
        says = "the model is no module, of which copies could be made"
        findings.append(Finding("precision", "left out", says, math.nan, "", "precision#positions"))
    if compiled:
        findings += check_compile(model, ids).findings
    return findings
