"""Are the slopes of ALiBi the published ones? Read from what a model's own functions make."""

from __future__ import annotations

import math
import sys
from typing import Any
from unittest import mock

import numpy as np
from torch import Tensor

from posenc.alibi import alibi_slopes
from posenc.check.models import Called, some_tokens, text_config
from posenc.check.report import Finding, Report

__all__ = ["check_slopes"]

_WHAT, _SECTION = "slopes of ALiBi", "alibi#slopes"


def check_slopes(model: Any, ids: Tensor | None = None) -> Report:
    """Whether the slopes of ALiBi are those of the authors' program, in their order.

    For models of transformers: what their functions with alibi in the name give in one pass is recorded. All of a
    model's own passes share wrong slopes, so no comparison of its outputs finds them.

    Args:
        model, ids: as in `posenc.check.check_order`.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> import torch
    >>> bag = torch.nn.Embedding(50, 8).eval()  # each token by itself
    >>> print(check_slopes(bag))
    left out  slopes of ALiBi: no function with alibi in its name was called
    """
    called, ids = Called(model), some_tokens(model, ids)
    home, made = sys.modules.get(type(model).__module__), list[Tensor]()

    def recorder(function: Any) -> Any:
        def recorded(*given: Any, **more: Any) -> Any:
            result = function(*given, **more)
            made.extend([result.double()] if isinstance(result, Tensor) else [])
            return result

        return recorded

    functions = {name: each for name, each in vars(home).items() if "alibi" in name and callable(each)}
    with mock.patch.dict(vars(home), {name: recorder(each) for name, each in functions.items()}):
        called(ids[:1])
    heads = getattr(text_config(model), "num_attention_heads", 0)
    # a number for each head, or a bias that grows by it from key to key
    steps = [bias if bias.ndim == 1 else bias.flatten(0, -2).diff(dim=-1)[:, :1].flatten() for bias in made]
    steps = [step for step in steps if len(step) == heads]
    if not steps:
        says = "no function with alibi in its name was called"
        return Report((Finding(_WHAT, "left out", says, math.nan, "", _SECTION),))
    found, wanted = steps[0].abs().numpy(), np.asarray(alibi_slopes(heads))
    off = float(np.abs(found / wanted - 1).max())
    if off < 1e-2:
        says = f"{heads} heads have the published slopes"
        return Report((Finding(_WHAT, "ok", says, off, "", _SECTION),))
    says = f"{heads} heads have {_listed(found)}, and published are {_listed(wanted)}"
    look = "the slopes: made by the formula for powers of two"
    if np.allclose(np.sort(found), np.sort(wanted), rtol=1e-2):
        look = "the slopes: the published ones, in another order of the heads"
    elif not np.allclose(found, 2.0 ** (-8 * np.arange(1, heads + 1) / heads), rtol=1e-2):
        look = "the slopes: other ones than those of the authors' program"
    return Report((Finding(_WHAT, "FAULT", says, off, look, _SECTION),))


def _listed(slopes: np.ndarray) -> str:
    return ", ".join(f"{slope:.3g}" for slope in slopes[:4]) + ", ..." * (len(slopes) > 4)
