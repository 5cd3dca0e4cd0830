"""Which layer has another mask or bias where an attention_mask is given, which must change nothing among real ones."""

from __future__ import annotations

import torch
from torch import Tensor

from posenc.check.models import Called, change, text_config
from posenc.check.weights import blank_weights

__all__ = ["unlike_layer"]


def unlike_layer(called: Called, row: Tensor, padded: Tensor, mask: Tensor) -> str:
    """By the weights that masks and biases alone make, of a row and of the same with pads; "" if they are the same."""
    alone, found = (blank_weights(called.model, row), blank_weights(called.model, padded, mask=mask))
    if len(alone) != len(found):
        return ""
    real = mask[0].bool().cpu()
    for number, ((_, wanted), (_, held)) in enumerate(zip(alone, found, strict=True)):
        held = held[:, real][:, :, real]
        shown, seen = (wanted > 0).any(0), (held > 0).any(0)
        if not torch.equal(shown, seen):
            lost, extra = int((shown & ~seen).sum()), int((seen & ~shown).sum())
            counts = ((lost, "hides {} pairs that are"), (extra, "shows {} pairs that are not"))
            says = " and ".join(words.format(count) for count, words in counts if count)
            how = _of_chunks(called, seen, int(real.long().argmax())) or f"it {says} seen without pads"
            return f"the mask of layer {number}: {how}"
        held = (
            held / held.sum(-1, keepdim=True) * wanted.sum(-1, keepdim=True)
        )  # without queries' share of pads
        if change(held, wanted) > 1e-4:
            return f"the bias of layer {number}: with a mask it {_of_bias(held[:, -1], wanted[:, -1])}"
    return ""


def _of_chunks(called: Called, seen: Tensor, pads: int) -> str:
    """Whether tokens are in chunks that are counted from the first pad; "" if not."""
    text = text_config(called.model)
    size = getattr(text, "attention_chunk_size", None)
    if not isinstance(size, int) or not pads:
        return ""
    chunk = (torch.arange(len(seen)) + pads) // size
    return "its chunks count the pads on the left" * torch.equal(seen, (chunk[:, None] == chunk).tril())


def _of_bias(held: Tensor, wanted: Tensor) -> str:
    """What the weights (heads, keys) of the last query are in place of these."""
    if change(held, held.mean(-1, keepdim=True)) <= 1e-5:
        return "is left out"
    if change(held, wanted.flip(-1)) <= 1e-4:
        return "is read backwards, from the last key to the first"
    # Weights are e to the bias, so their logarithms differ by a factor, and by a number for all keys.
    a, b = (each.clamp(min=1e-30).log() for each in (held, wanted))
    a, b = (each - each.mean(-1, keepdim=True) for each in (a, b))
    factor = float((a * b).sum() / (b * b).sum())
    if change(a, factor * b) <= 1e-2 * float(a.abs().max()):
        return f"is {factor:.3g} times that without"
    return "is not that without"
