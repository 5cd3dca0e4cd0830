"""Are the buckets of T5's bias those that the configuration says? Read from the weights of attention."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from posenc.check.models import Called, change, some_tokens
from posenc.check.report import Finding, Report
from posenc.check.weights import blank_weights
from posenc.relative import t5_bucket

__all__ = ["check_buckets"]

_WHAT, _SECTION = "buckets of T5", "relative#t5"


def check_buckets(model: Any, ids: Tensor | None = None) -> Report:
    """Whether the bias of T5 has the buckets of its paper, one-sided in a decoder and two-sided in an encoder.

    For models of transformers, wrapped or not: the table relative_attention_bias of a layer gives the bias that its
    weights of attention must show, with the maximal distance that the configuration says. All of a model's own passes
    share wrong buckets.

    Args:
        model, ids: as in `posenc.check.check_order`.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> bag = nn.Embedding(50, 8).eval()  # each token by itself
    >>> print(check_buckets(bag))
    left out  buckets of T5: no layer has a table relative_attention_bias

    Source: a check of this book, explained in check.md#comparisons.
    """
    Called(model)
    ids, judged = some_tokens(model, ids), 0
    n = ids.shape[1]
    offsets = torch.arange(n)[None] - torch.arange(n)[:, None]
    layers = list(blank_weights(model, ids[:1]))
    tables = {
        number: table.weight.detach().double().cpu()
        for number, (layer, _) in enumerate(layers)
        if isinstance(table := getattr(layer, "relative_attention_bias", None), nn.Embedding)
    }
    for number, (layer, weights) in enumerate(layers):
        table, decodes = getattr(layer, "relative_attention_bias", None), getattr(layer, "is_decoder", None)
        distance = getattr(layer, "relative_attention_max_distance", None)
        if not isinstance(table, nn.Embedding) or table.embedding_dim != len(weights) or decodes is None:
            continue
        if not isinstance(distance, int):
            continue
        said = _said(model, layer, "relative_attention_max_distance", distance)
        rows, buckets, judged = table.weight.detach().double().cpu(), table.num_embeddings, judged + 1

        def error(
            offsets: Tensor,
            both: bool,
            distance: int = said,
            buckets: int = buckets,
            rows: Tensor = rows,
            weights: Tensor = weights,
        ) -> float:
            which = t5_bucket(offsets, num_buckets=buckets, max_distance=distance, bidirectional=both)
            bias = rows[which].permute(2, 0, 1).masked_fill(weights == 0, -math.inf)
            return change(bias.softmax(-1), weights)

        if (off := error(offsets, not decodes)) < 1e-4:
            continue
        side, other = ("one side", "both sides") if decodes else ("both sides", "one side")
        look = "the buckets: other ones than those of the paper, or other positions"
        tried: dict[str, tuple[Any, ...]] = {
            f"the buckets: they are those of {other}, and the model's are those of {side}": (
                offsets,
                bool(decodes),
            ),
            "the offsets: queries and keys are exchanged": (-offsets, not decodes),
            "the positions: queries are one ahead of keys": (offsets - 1, not decodes),
            "the positions: queries are one behind keys": (offsets + 1, not decodes),
        }
        for far in (distance, 64, 128, 256, *range(buckets // 2 + 1, 8 * buckets)):
            if far != said:
                begins = (
                    f"the buckets: the last begins at a distance of {far}, and by the configuration at {said}"
                )
                tried.setdefault(f"{begins} (relative_attention_max_distance)", (offsets, not decodes, far))
        for fewer in range(4, buckets, 4):
            count = f"the buckets: {fewer} are used, and the table has {buckets}"
            tried[count] = (offsets, not decodes, said, fewer)
        width = getattr(layer, "key_value_proj_dim", 0) or 1
        usual = offsets, not decodes, said, buckets
        changed: dict[str, Tensor] = {
            "it does not reach the scores": 0 * rows,
            "its sign is exchanged": -rows,
            "it is added twice": 2 * rows,
            f"it is divided by √{width}, the root of the width of a head": rows / width**0.5,
            f"it is multiplied by √{width}, the root of the width of a head": rows * width**0.5,
            "it stands in the opposite order of the heads": rows.flip(1),
            "its buckets stand in the opposite order": rows.flip(0),
            **{
                f"layer {number} adds that of layer {place} in place of its own": other
                for place, other in tables.items()
                if place != number and other.shape == rows.shape
            },
            **{
                f"each head has that of the head {n} further": rows.roll(n, 1) for n in range(1, len(weights))
            },
        }
        tried["the offsets: their signs are lost, what comes before and after has the same buckets"] = (
            -offsets.abs(),
            not decodes,
        )
        biases = (f"the bias: {says}" for says, other in changed.items() if error(*usual, other) < 1e-4)
        causes = (says for says, how in tried.items() if error(*how) < 1e-4)
        if decodes and error(*usual, 0 * rows) < 1e-4:  # one side, read backwards, has one bucket alone
            look = "the bias does not reach the scores, or the offsets: queries and keys are exchanged"
        else:
            look = next(causes, next(biases, look))
        says = f"weights by the bias alone differ by {off:.2g}"
        return Report((Finding(_WHAT, "FAULT", says, off, look, _SECTION),))
    if not judged:
        says = "no layer has a table relative_attention_bias"
        return Report((Finding(_WHAT, "left out", says, math.nan, "", _SECTION),))
    return Report((Finding(_WHAT, "ok", "the bias has the buckets of the paper", 0.0, "", _SECTION),))


def _said(model: Any, layer: nn.Module, name: str, usual: int) -> int:
    """What a configuration says: that of the model, or of a part that has this layer if it is wrapped."""
    parts = model.modules() if isinstance(model, nn.Module) else ()
    configs = [getattr(part, "config", None) for part in (layer, *parts)]
    found = (getattr(config, name, None) for config in configs)
    return next((value for value in found if isinstance(value, int)), usual)
