"""Are scores scaled as the configuration says?"""

from __future__ import annotations

import copy
import math
import sys
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from posenc.check.models import Called, some_tokens, text_config
from posenc.check.report import Finding, Report
from posenc.rotary import from_config

__all__ = ["check_scale"]

_WHAT, _SECTION = "scale of scores", "longer#take-config"
OWN = (
    "gemma3n", "gemma4", "diffusion_gemma", "embedding_gemma2", "esm", "evolla", "dia", "zamba2", "timesfm",
    "openai_privacy_filter", "inkling",
)  # fmt: skip
"""How the names of models begin that scale queries or keys before, or scores otherwise, of which no field speaks."""


def check_scale(model: Any, ids: Tensor | None = None) -> Report:
    """Whether each layer multiplies its scores by the factor of the configuration.

    This is query_pre_attn_scalar^(−1/2) in Gemma 2 and 3, attention_multiplier in Granite, and 1/√width elsewhere, with
    the factor besides that YaRN has in models with latent attention, such as DeepSeek. For models of transformers whose
    configuration `posenc.rotary.from_config` reads: the factor is measured from what goes into their function
    eager_attention_forward and the weights that come out, in one pass; where scores are capped or biased, what the
    function is given as `scaling` is taken. All of a model's own passes share a wrong scale.

    Args:
        model, ids: as in `posenc.check.check_order`.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> bag = torch.nn.Embedding(50, 8).eval()  # each token by itself
    >>> print(check_scale(bag))
    left out  scale of scores: the configuration has no factor for them

    Source: a check of this book, explained in check.md#comparisons.
    """
    Called(model)
    ids, text = some_tokens(model, ids), text_config(model)
    home: Any = sys.modules.get(type(model).__module__)
    try:
        config = from_config(text, length=ids.shape[1])
    except (TypeError, ValueError):
        return _left("the configuration has no factor for them")
    known = isinstance(model, nn.Module) and hasattr(home, "eager_attention_forward")
    if not known or str(getattr(text, "model_type", "")).startswith(OWN):
        return _left("the configuration has no factor for them")
    factors = [config.kinds[name].softmax_factor for name in config.layers or list(config.kinds)[:1]]
    turns = sorted({kind.scale for kind in config.kinds.values()} - {1.0})
    found = _factors(model, home, ids[:1])
    if not found:
        return _left("no layer says its scale")
    if len(set(factors)) > 1 and (numbers := [number for number, _, _ in found]) != list(range(len(factors))):
        return _left(f"layers {numbers} say their scale, and there are {len(factors)}")
    for call, (number, width, has) in enumerate(found):
        besides = factors[call] if len(set(factors)) > 1 else factors[0]
        name, usual = _meant(text, width)
        if abs(has / (meant := usual * besides) - 1) > 1e-2:
            says = f"scores of layer {number} are multiplied by {has:.4g}, and by the configuration by {meant:.4g}"
            look = f"the scale of the scores: {_cause(text, has, usual, besides, name, width, turns)}"
            return Report((Finding(_WHAT, "FAULT", says, has, look, _SECTION),))
    return Report((Finding(_WHAT, "ok", "scores have the factor of the configuration", 0.0, "", _SECTION),))


def _meant(text: Any, width: int) -> tuple[str, float]:
    """What says the usual factor of scores, and this factor."""
    for name, power in (("query_pre_attn_scalar", -0.5), ("attention_multiplier", 1.0)):
        if isinstance(value := getattr(text, name, None), int | float) and value > 0:
            return name, float(value) ** power
    return f"1/√{width}", width**-0.5


def _cause(
    text: Any, has: float, usual: float, besides: float, name: str, width: int, turns: list[float]
) -> str:
    """Which wrong factor it is."""
    meant, own = usual * besides, name[0] != "1"
    said = f"that of {name}"
    twice = (
        f"{said} is applied twice, or without its root"
        if own
        else f"scores are divided by {width}, not by its root"
    )
    tried = {
        f"it lacks the factor {besides:.4g} of the configuration": usual,
        f"it has twice the factor {besides:.4g} of the configuration": usual * besides**2,
        f"it is 1/√{width} of the width of a head, and must be {said}": width**-0.5,
        f"there is none, scores are not multiplied by {'that of ' * own}{name}": 1.0,
        twice: meant**2,
        f"{said} is inverse: scores are multiplied by what they must be divided by": 1 / usual,
        f"only its root is applied, to queries or keys alone, of {said}": usual**0.5,
    }  # fmt: skip
    for factor in turns:
        says = f"the factor {factor:.4g} of cos and sin is there besides"
        tried |= {says: meant * factor, f"{says}, squared": meant * factor**2}
    whole: dict[str, Any] = text.to_dict() if hasattr(text, "to_dict") else {}
    whole = {"the whole width": whole.get("hidden_size")} | whole | {"half of a head": width // 2}
    for field, value in whole.items():
        if isinstance(value, int) and value > 1:
            tried.setdefault(f"it is that of {field} {value}, 1/√{value}, not of {name}", value**-0.5)
    says = next((says for says, factor in tried.items() if abs(has / factor - 1) <= 1e-3), "")
    return (
        says
        or f"it has not the factor {besides:.4g} of the configuration" * (besides != 1)
        or (f"it is {has / meant:.4g} times that of {name}")
    )


def _factors(model: nn.Module, home: Any, row: Tensor) -> list[tuple[int, int, float]]:
    """The number, the width of a head and the factor of each layer, in the order of calls."""
    eager, usual, found = copy.deepcopy(model), home.eager_attention_forward, list[tuple[int, int, float]]()
    for part in eager.modules():
        inner: Any = getattr(part, "config", None)
        if hasattr(inner, "_attn_implementation"):
            inner._attn_implementation = "eager"

    def recorded(module: Any, query: Tensor, key: Tensor, *given: Any, **more: Any) -> Any:
        output = usual(module, query, key, *given, **more)
        said = more.get("scaling")
        said = said if isinstance(said, float) else None
        measured = _measured(query, key, output[1] if isinstance(output, tuple) else None)
        factor = said if measured is None or (said and abs(measured / said - 1) <= 1e-2) else measured
        if factor is not None:
            number = getattr(module, "layer_idx", None)
            found.append((len(found) if number is None else number, query.shape[-1], factor))
        return output

    with mock.patch.object(home, "eager_attention_forward", recorded):
        Called(eager)(row)
    return found


def _measured(query: Tensor, key: Tensor, weights: Any) -> float | None:
    """By how much logarithms of weights grow with products of queries and keys; None if not by one factor alone."""
    if not isinstance(weights, Tensor) or weights.ndim != 4 or query.ndim != 4 or key.ndim != 4:
        return None
    if query.shape[1] % key.shape[1] or weights.shape[1:] != (*query.shape[1:3], key.shape[2]):
        return None
    with torch.no_grad():
        products = query.double() @ key.double().repeat_interleave(query.shape[1] // key.shape[1], dim=1).mT
        shown = weights > 1e-12
        count = shown.sum(-1, keepdim=True).clamp(min=1)
        x, y = (
            torch.where(shown, each - torch.where(shown, each, 0).sum(-1, keepdim=True) / count, 0)
            for each in (products, weights.double().clamp(min=1e-30).log())
        )
        if not float(y.abs().max()) > 0.1 or not float(x.square().sum()) > 0:
            return None  # flat: rounding would be measured
        factor = float((x * y).sum() / x.square().sum())
        fits = float((y - factor * x).abs().max()) <= 1e-3 * float(y.abs().max())
    return factor if fits and factor > 0 else None


def _left(says: str) -> Report:
    return Report((Finding(_WHAT, "left out", says, math.nan, "", _SECTION),))
