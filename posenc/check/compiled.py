"""torch.compile: how many graphs for texts of different lengths, and the same numbers?"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from posenc.check.models import Called, change, some_tokens, tolerance
from posenc.check.report import Finding, Report

__all__ = ["check_compile"]

LENGTHS = (12, 5, 9, 11, 7, 10)


def check_compile(model: Any, ids: Tensor | None = None) -> Report:
    """How many graphs torch.compile makes for six lengths, and whether they give the same outputs.

    Two are usual, one for the first length and one for any. As many as lengths means that a length is a constant of
    the graph, and each new one is compiled again.

    Args:
        model, ids: as in `posenc.check.check_order`.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> print(check_compile(torch.nn.Embedding(50, 8).eval()))
    ok        torch.compile: 2 graphs for 6 lengths, 1 for the first

    Source: a check of this book, explained in check.md#comparisons.
    """
    from torch._dynamo.testing import CompileCounter  # which takes as long to import as torch itself

    called, ids = Called(model), some_tokens(model, ids)
    limit, counter = tolerance(called, ids), CompileCounter()
    torch._dynamo.reset()
    compiled = Called(model)
    compiled.model = torch.compile(model, backend=counter)
    counts, worst = [], 0.0
    try:
        for length in LENGTHS:
            worst = max(worst, change(compiled(ids[:, :length]), called(ids[:, :length])))
            counts.append(counter.frame_count)
    except Exception as error:  # whatever the compiler raises
        says = f"it raises {type(error).__name__}: {str(error).splitlines()[0][:100]}"
        return Report(
            (Finding("torch.compile", "note", says, math.nan, "the operation that it names", "take#rotary"),)
        )
    finally:
        torch._dynamo.reset()
    if not worst <= limit:
        says = f"compiled outputs differ by {worst:.2g}"
        look = "buffers or caches that are written while the graph is made"
        return Report((Finding("torch.compile", "FAULT", says, worst, look, "take#rotary"),))
    says = f"{counts[-1]} graphs for {len(LENGTHS)} lengths, {counts[0]} for the first"
    if counts[-1] <= 3 * max(counts[0], 1):
        return Report((Finding("torch.compile", "ok", says, float(counts[-1]), "", "take#rotary"),))
    look = "a length that is a number in Python: a cache of tables by length, `if n > self.max_len`, an int() or item()"
    return Report((Finding("torch.compile", "note", says, float(counts[-1]), look, "take#rotary"),))
