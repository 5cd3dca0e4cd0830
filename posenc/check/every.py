"""All checks of a model at once."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn

from posenc.check.buckets import check_buckets
from posenc.check.compiled import check_compile
from posenc.check.decoding import check_decoding
from posenc.check.lengths import check_length, check_precision
from posenc.check.loading import check_loading
from posenc.check.masks import check_mask
from posenc.check.models import some_tokens
from posenc.check.order import check_order, check_shift
from posenc.check.report import Finding, Report
from posenc.check.rotations import check_rotation
from posenc.check.slopes import check_slopes

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
    ['order', 'who sees whom']

    Source: a check of this book, explained in check.md#interface.
    """
    ids = some_tokens(model, ids)
    findings = [*check_order(model, ids).findings, *check_mask(model, ids, meant=meant).findings]
    for check in (check_shift, check_decoding, check_length):
        findings += check(model, ids).findings
    for biased in (check_slopes, check_buckets):
        findings += [found for found in biased(model, ids).findings if found.verdict != "left out"]
    if isinstance(model, nn.Module):
        frequencies, *loading = check_loading(model, ids).findings
        findings += [*check_precision(model, ids).findings, frequencies]
        findings += [*check_rotation(model, ids).findings, *loading]
    else:
        says = "the model is no module, of which copies could be made"
        findings.append(Finding("precision", "left out", says, math.nan, "", "precision#positions"))
    if compiled:
        findings += check_compile(model, ids).findings
    return Report(tuple(findings))
