"""Are scores scaled as the configuration says, where a scaling of longer texts has a factor of its own for them?"""

from __future__ import annotations

import copy
import math
import sys
from typing import Any
from unittest import mock

from torch import Tensor, nn

from posenc.check.models import Called, some_tokens, text_config
from posenc.check.report import Finding, Report
from posenc.rotary import from_config

__all__ = ["check_scale"]

_WHAT, _SECTION = "scale of scores", "longer#take-config"


def check_scale(model: Any, ids: Tensor | None = None) -> Report:
    """Whether scores have the factor besides 1/√width that YaRN has in models with latent attention, such as DeepSeek.

    For models of transformers: what their function eager_attention_forward is given as `scaling` is recorded in one
    pass. All of a model's own passes share a wrong scale.

    Args:
        model, ids: as in `posenc.check.check_order`.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> import torch
    >>> bag = torch.nn.Embedding(50, 8).eval()  # each token by itself
    >>> print(check_scale(bag))
    left out  scale of scores: the configuration has no factor for them

    Source: a check of this book, explained in check.md#comparisons.
    """
    Called(model)
    ids = some_tokens(model, ids)
    try:
        config = from_config(text_config(model), length=ids.shape[1])
    except (TypeError, ValueError):
        return _left("the configuration has no factor for them")
    home: Any = sys.modules.get(type(model).__module__)
    kinds = config.layers or list(config.kinds)[:1] * int(getattr(text_config(model), "num_hidden_layers", 0))
    factors = [config.kinds[name].softmax_factor for name in kinds]
    if (
        set(factors) <= {1.0}
        or not isinstance(model, nn.Module)
        or not hasattr(home, "eager_attention_forward")
    ):
        return _left("the configuration has no factor for them")
    eager, usual, found = copy.deepcopy(model), home.eager_attention_forward, list[float]()
    for part in eager.modules():
        inner: Any = getattr(part, "config", None)
        if hasattr(inner, "_attn_implementation"):
            inner._attn_implementation = "eager"

    def recorded(module: Any, query: Tensor, *given: Any, **more: Any) -> Any:
        if isinstance(scaling := more.get("scaling"), float):
            found.append(scaling * math.sqrt(query.shape[-1]))
        return usual(module, query, *given, **more)

    with mock.patch.object(home, "eager_attention_forward", recorded):
        Called(eager)(ids[:1])
    if len(found) != len(factors):
        return _left(f"{len(found)} layers say their scale, and there are {len(factors)}")
    for number, (has, meant) in enumerate(zip(found, factors, strict=True)):
        if abs(has / meant - 1) > 1e-4:
            how = {1.0: "it lacks", meant**2: "it has twice"}
            look = next((says for factor, says in how.items() if abs(has / factor - 1) <= 1e-4), "it has not")
            says = f"scores of layer {number} are multiplied by {has:.4g} besides 1/√width"
            look = f"the scale of the scores: {look} the factor {meant:.4g} of the configuration"
            return Report((Finding(_WHAT, "FAULT", says, has, look, _SECTION),))
    return Report((Finding(_WHAT, "ok", "scores have the factor of the configuration", 0.0, "", _SECTION),))


def _left(says: str) -> Report:
    return Report((Finding(_WHAT, "left out", says, math.nan, "", _SECTION),))
