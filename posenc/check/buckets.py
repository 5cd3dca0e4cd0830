"""Are the buckets of T5's bias those that the configuration says? Read from the weights of attention."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from posenc.check.models import Called, change, some_tokens
from posenc.check.report import Finding, Report
from posenc.check.weights import blank_weights
from posenc.relative import t5_bucket

__all__ = ["check_buckets"]

_WHAT, _SECTION = "buckets of T5", "relative#t5"
_DISTANCE = "relative_attention_max_distance"


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
    row, judged = some_tokens(model, ids)[:1], 0
    if isinstance(model, nn.Module) and any(
        p.dtype in (torch.bfloat16, torch.float16) for p in model.parameters()
    ):
        model = copy.deepcopy(model).float()  # a bias that is rounded has its buckets all the same
    layers = blank_weights(model, row)
    far = [held for layer, _ in layers if isinstance(held := getattr(layer, _DISTANCE, None), int)]
    if (
        far and row.ndim == 2 and (times := (max(far) + 8) // row.shape[1])
    ):  # texts that reach the last bucket
        layers = blank_weights(model, row.repeat(1, times + 1)) or layers
    tables = {
        number: table for number, (layer, _) in enumerate(layers) if (table := _table(layer)) is not None
    }
    shared = dict[bool, Tensor]()  # by whether a layer decodes: a table can be that of the layers after it
    for number, (layer, weights) in enumerate(layers):
        decodes, distance = getattr(layer, "is_decoder", None), getattr(layer, _DISTANCE, None)
        rows = tables.get(number)
        if decodes is None or not isinstance(distance, int) or weights.shape[1] != weights.shape[2]:
            continue
        if rows is None and decodes in shared and (off := change(shared[decodes], weights)) > 1e-3:
            says = f"weights by the bias alone differ by {off:.2g} from those of the layer that has the table"
            look = f"the bias: layer {number} does not add it as the layer before does"
            return Report((Finding(_WHAT, "FAULT", says, off, look, _SECTION),))
        if rows is None or rows.shape[1] != len(weights):
            continue
        shared[decodes] = weights
        judged += 1
        bias = _Bias(weights, rows, bool(decodes), _said(model, layer, _DISTANCE, distance))
        if (off := bias.error(bias.right)) < 1e-4:
            continue
        width = getattr(layer, "key_value_proj_dim", 0) or 1
        others = {
            f"layer {number} adds that of layer {place} in place of its own": other
            for place, other in tables.items()
            if place != number and other.shape == rows.shape
        }
        says = f"weights by the bias alone differ by {off:.2g}"
        return Report((Finding(_WHAT, "FAULT", says, off, bias.cause(distance, width, others), _SECTION),))
    if not judged:
        says = "no layer has a table relative_attention_bias"
        return Report((Finding(_WHAT, "left out", says, math.nan, "", _SECTION),))
    return Report((Finding(_WHAT, "ok", "the bias has the buckets of the paper", 0.0, "", _SECTION),))


def _table(layer: nn.Module) -> Tensor | None:
    table = getattr(layer, "relative_attention_bias", None)
    return table.weight.detach().double().cpu() if isinstance(table, nn.Embedding) else None


class _Bias:
    """Weights (heads, length, length) that a bias alone makes, and the table (buckets, heads) that it comes from."""

    def __init__(self, weights: Tensor, rows: Tensor, decodes: bool, distance: int) -> None:
        # Without what goes to keys that are no tokens.
        self.weights, self.rows = weights / weights.sum(-1, keepdim=True), rows
        self.decodes, self.distance, self.buckets = decodes, distance, len(rows)
        n = weights.shape[-1]
        self.offsets = torch.arange(n)[None] - torch.arange(n)[:, None]
        self.right = self.paper(self.offsets)

    def paper(
        self, offsets: Tensor, distance: int = 0, buckets: int = 0, *, other_side: bool = False
    ) -> Tensor:
        return t5_bucket(
            offsets,
            num_buckets=buckets or self.buckets,
            max_distance=distance or self.distance,
            bidirectional=self.decodes == other_side,
        )

    def error(self, which: Tensor, rows: Tensor | None = None) -> float:
        """How far weights are from those of these buckets, as a share of the weight of one among 24."""
        bias = (self.rows if rows is None else rows)[which].permute(2, 0, 1)
        return (
            change(bias.masked_fill(self.weights == 0, -math.inf).softmax(-1), self.weights)
            * len(self.right)
            / 24
        )

    def cause(self, distance: int, width: int, others: dict[str, Tensor]) -> str:
        rows = self.rows
        if (
            self.decodes and self.error(self.right, 0 * rows) < 1e-4
        ):  # one side, read backwards, has one bucket alone
            return "the bias does not reach the scores, or the offsets: queries and keys are exchanged"
        for says, which in self._buckets(distance):
            if self.error(which) < 1e-4:
                return says
        changed: dict[str, Tensor] = {
            "it does not reach the scores": 0 * rows,
            "its sign is exchanged": -rows,
            "it is added twice": 2 * rows,
            f"it is divided by √{width}, the root of the width of a head": rows / width**0.5,
            f"it is multiplied by √{width}, the root of the width of a head": rows * width**0.5,
            "it stands in the opposite order of the heads": rows.flip(1),
            "its buckets stand in the opposite order": rows.flip(0),
            **others,
            **{
                f"each head has that of the head {n} further": rows.roll(n, 1)
                for n in range(1, rows.shape[1])
            },
        }
        for says, other in changed.items():
            if self.error(self.right, other) < 1e-4:
                return f"the bias: {says}"
        return self._read()

    def _buckets(self, distance: int) -> Iterator[tuple[str, Tensor]]:
        """Other buckets than those of the paper."""
        offsets, said, buckets = self.offsets, self.distance, self.buckets
        side, other = ("one side", "both sides") if self.decodes else ("both sides", "one side")
        says = f"the buckets: they are those of {other}, and the model's are those of {side}"
        yield says, self.paper(offsets, other_side=True)
        yield "the offsets: queries and keys are exchanged", self.paper(-offsets)
        yield "the positions: queries are one ahead of keys", self.paper(offsets - 1)
        yield "the positions: queries are one behind keys", self.paper(offsets + 1)
        for far in dict.fromkeys((distance, 64, 128, 256, *range(buckets // 2 + 1, 8 * buckets))):
            if far != said:
                says = (
                    f"the buckets: the last begins at a distance of {far}, and by the configuration at {said}"
                )
                yield f"{says} (relative_attention_max_distance)", self.paper(offsets, far)
        for fewer in range(4, buckets, 4):
            yield f"the buckets: {fewer} are used, and the table has {buckets}", self.paper(offsets, 0, fewer)
        says = "the offsets: their signs are lost, what comes before and after has the same buckets"
        yield says, self.paper(-offsets.abs())
        last = (buckets if self.decodes else buckets // 2) - 1
        d, exact = (offsets.clamp(max=0) if self.decodes else offsets).abs(), (last + 1) // 2
        even = exact + (d - exact) / (said - exact) * (last + 1 - exact)
        divided = exact + (d / exact) / math.log(said / exact) * (last + 1 - exact)
        for large in (d, even, divided):
            found = torch.where(d < exact, d, large.long()).clamp(max=last)
            found = found if self.decodes else found + (offsets > 0) * (last + 1)
            yield "the buckets: those of far tokens are without the logarithm of the distance", found

    def _read(self) -> str:
        """The buckets that the weights show, by those of queries for themselves."""
        vague = "the buckets: other ones than those of the paper, or other positions"
        bias = (self.weights / self.weights.diagonal(dim1=1, dim2=2)[..., None]).log()
        of = {int(offset): bias[:, self.offsets == offset] for offset in self.offsets.unique()}
        seen = {offset: held[:, held[0].isfinite()] for offset, held in of.items()}
        for offset in sorted(seen, key=abs):
            held = seen[offset]
            if held.shape[1] and change(held, held[:, :1]) > 1e-4:
                which = f"keys {abs(offset)} {'back' if offset < 0 else 'ahead'}"
                return f"the bias: it is not that of the distance alone, {which} get different ones from place to place"
        table = self.rows - self.rows[self.right[0, 0]]
        for offset in sorted((each for each in seen if seen[each].shape[1]), key=abs):
            off = (table - seen[offset][:, 0]).abs().amax(1)
            meant = int(self.right[self.offsets == offset][0])
            if float(off[meant]) > 1e-4:
                found = f"bucket {int(off.argmin())}" if float(off.min()) < 1e-4 else "no bucket's bias"
                return f"the buckets: an offset of {offset} has {found}, and by the paper bucket {meant}"
        return vague


def _said(model: Any, layer: nn.Module, name: str, usual: int) -> int:
    """What a configuration says: that of the model, or of a part that has this layer if it is wrapped."""
    parts = model.modules() if isinstance(model, nn.Module) else ()
    configs = [getattr(part, "config", None) for part in (layer, *parts)]
    found = (getattr(config, name, None) for config in configs)
    return next((value for value in found if isinstance(value, int)), usual)
