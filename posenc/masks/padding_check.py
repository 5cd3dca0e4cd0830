"""Does a model change its answer when nothing but pads is added? The public face is `posenc.masks`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from posenc._arrays import Array, Namespace, namespace
from posenc._checks import integer
from posenc.masks._checks import Side, as_float
from posenc.masks.batches import as_rows, pad_batch

__all__ = ["PaddingChange", "PaddingReport", "check_padding"]

SIDES: tuple[Side, ...] = ("right", "left")


@dataclass(frozen=True)
class PaddingChange:
    """What pads on one side did to the outputs of the real tokens."""

    change: float
    """Largest difference between an output with pads and the same output without; nan if there is a NaN."""

    content: float
    """Largest difference when the pads hold something else: what gets in of them."""

    tolerance: float
    """Up to here a difference counts as rounding."""

    inverted: bool = False
    """Whether what the pads hold gets in, but not when the mask is turned round, True at real tokens."""

    @property
    def ok(self) -> bool:
        """Whether the outputs stayed the same, with and without pads and whatever these hold."""
        return self.change <= self.tolerance and self.content <= self.tolerance

    def __str__(self) -> str:
        if self.ok:
            return "ok"
        if math.isnan(self.change) or math.isnan(self.content):
            return "outputs become NaN: is there a query without any key?"
        if self.content <= self.tolerance:
            cause = "not by what the pads hold, but by their number (as positions?)"
        elif self.inverted:
            cause = "what the pads hold gets in: the model takes True for a real token"
        else:
            cause = "what the pads hold gets in"
        size = self.change if self.change > self.tolerance else self.content
        return f"outputs change by {size:.2g}: {cause}"


@dataclass(frozen=True)
class PaddingReport:
    """What `check_padding` found. Print it for a text to read."""

    right: PaddingChange
    left: PaddingChange

    @property
    def ok(self) -> bool:
        """Whether pads change nothing, on either side."""
        return self.right.ok and self.left.ok

    def __str__(self) -> str:
        return f"pads on the right: {self.right}\npads on the left: {self.left}"


def check_padding(
    model: Callable[[Array, Array], Array],
    batch: Sequence[Array] | Array,
    *,
    pads: int = 4,
    pad_value: Any = 0,
    tolerance: float | None = None,
) -> PaddingReport:
    """Whether the outputs of real tokens change when pads are added, right and left, and by how much.

    Each sequence is run alone, without pads. Then all are run as one batch, padded to the length of the
    longest plus `pads`, and once more with pads that hold a real token of the batch instead of `pad_value`.
    Neither may change an output of a real token.

    Args:
        model: a callable in evaluation mode, called as model(batch, mask): the padded batch, and a bool array
            (batch, length), True at pads. It gives an array (batch, length, ...), an output for each token,
            or (batch, ...), one for each sequence. Anything else is wrapped in a function:

            - a layer of torch: `lambda x, mask: encoder(x, src_key_padding_mask=mask)`;
            - a model of Hugging Face: `lambda ids, mask: hf(input_ids=ids,
              attention_mask=(~mask).long()).last_hidden_state`;
            - one that finds its pads by their id, and so may rely on what they hold:
              `lambda ids, mask: model(ids.masked_fill(mask, pad_id))`.
        batch: sequences without pads, preferably of different lengths: a list of arrays (n_b, ...), token ids or
            embeddings, or one array (batch, n, ...).
        pads: how many pads the longest sequence gets, at least 1.
        pad_value: what the pads hold in the first run, such as the id of the padding token.
        tolerance: the largest difference that counts as rounding. If None, √ε of the dtype of the outputs
            times the largest output: 1.5e-8 of it in float64, 3.5e-4 in float32. float64 gives the sharper
            answer, if no step of the model stays in float32.

    Torch takes another path without gradients. If your model runs under `torch.no_grad()`, check it there.

    Returns:
        `PaddingReport`: what changes on the right and on the left. Print it for a text to read.

    Raises:
        TypeError: model is not callable, batch is not a list of arrays, or an output is not a floating array.
        ValueError: the outputs have neither of the two shapes, differ from run to run or are not finite
            without pads; a sequence is empty, or no token of the batch differs from pad_value.

    >>> import numpy as np
    >>> from posenc.attention import dot_product_attention
    >>> tokens = [np.eye(3), np.eye(3)[:2]]
    >>> print(check_padding(lambda x, mask: dot_product_attention(x, x, x, key_padding_mask=mask)[0], tokens))
    pads on the right: ok
    pads on the left: ok
    >>> print(check_padding(lambda x, mask: dot_product_attention(x, x, x)[0], tokens))
    pads on the right: outputs change by 0.41: what the pads hold gets in
    pads on the left: outputs change by 0.41: what the pads hold gets in

    Source: a check of this book, explained in masks.md#check-your-model.
    """
    if not callable(model):
        raise TypeError(f"model must be a function of a batch and its mask, got {type(model).__name__}")
    pads = integer("pads", pads, minimum=1)
    rows, xp = as_rows("batch", batch)
    if any(row.shape[0] == 0 for row in rows):
        raise ValueError("batch must hold at least one token in every sequence")
    token = _other_token(rows, pad_value, xp)
    alone = [_run(model, *pad_batch([row])) for row in rows]
    out = namespace(*alone)
    scale = _check_alone(alone, out)
    if tolerance is None:
        tolerance = math.sqrt(float(out.finfo(alone[0].dtype).eps)) * scale
    if _largest_difference([_run(model, *pad_batch(rows[:1]))], alone[:1]) > tolerance:
        raise ValueError("model must give the same outputs twice: call its eval() first, against dropout")
    # A batch of one each: what is compared has no batch axis.
    expected = [output[0, ...] for output in alone]
    length = max(row.shape[0] for row in rows) + pads
    changes = []
    for side in SIDES:
        padded, mask = pad_batch(rows, side=side, length=length, value=pad_value)
        at_pads = xp.reshape(mask, (*mask.shape, *(1,) * (padded.ndim - 2)))
        inputs = padded, xp.where(at_pads, token, padded)
        outputs, others = (_real_outputs(_run(model, x, mask), mask, expected) for x in inputs)
        content = _largest_difference(outputs, others)
        inverted = False
        if content > tolerance:
            turned = (_real_outputs(_run(model, x, xp.logical_not(mask)), mask, expected) for x in inputs)
            inverted = _largest_difference(*turned) <= tolerance
        change = _largest_difference(outputs, expected)
        changes.append(PaddingChange(change, content, tolerance, inverted))
    return PaddingReport(*changes)


def _run(model: Callable[[Array, Array], Array], batch: Array, mask: Array) -> Array:
    output = model(batch, mask)
    try:
        namespace(output)
    except TypeError:
        raise TypeError(
            f"model must give one array, got {type(output).__name__}: wrap it in a function that picks it"
        ) from None
    return output.detach() if hasattr(output, "detach") else output


def _other_token(rows: list[Array], value: Any, xp: Namespace) -> Array:
    """The first token of the batch that is not all `value`, to put in the place of pads."""
    tokens = xp.concat(rows, axis=0)
    differs = xp.any(xp.reshape(tokens != value, (tokens.shape[0], -1)), axis=-1)
    if not bool(xp.any(differs)):
        raise ValueError(f"batch must hold a token other than pad_value, {value!r}, to try in its place")
    return tokens[int(xp.argmax(xp.astype(differs, xp.int64))), ...]


def _check_alone(alone: list[Array], xp: Namespace) -> float:
    """The largest output without pads; errors unless they are outputs that can be compared."""
    for output in alone:
        if not xp.isdtype(output.dtype, "real floating"):
            raise TypeError(f"model must give floating outputs, got dtype {output.dtype}")
        if output.ndim < 1 or output.shape[0] != 1:
            raise ValueError(
                f"model must give outputs (batch, ...), got shape {tuple(output.shape)} for a batch of 1"
            )
        if not bool(xp.all(xp.isfinite(output))):
            raise ValueError(
                "model must give finite outputs without any pads, got NaN or infinity: does it take True in "
                "its mask, where nothing is True now, for a real token?"
            )
    return max(as_float(xp.max(xp.abs(output))) for output in alone)


def _real_outputs(outputs: Array, mask: Array, expected: list[Array]) -> list[Array]:
    """Of each row of the batch the outputs that must equal the expected ones: those of its real tokens."""
    xp = namespace(mask)
    if outputs.shape[0] == mask.shape[0]:
        if all(row.shape == outputs.shape[1:] for row in expected):
            return [outputs[b, ...] for b in range(len(expected))]
        real = [xp.logical_not(mask[b, :]) for b in range(len(expected))]
        if outputs.ndim > 1 and outputs.shape[1] == mask.shape[1]:
            kept = [outputs[b, ...][keep] for b, keep in enumerate(real)]
            if all(row.shape == other.shape for row, other in zip(kept, expected, strict=True)):
                return kept
    raise ValueError(
        f"model must give outputs (batch, length, ...) or (batch, ...), got {tuple(outputs.shape)} for a "
        f"batch of shape {tuple(mask.shape)} and {[tuple(row.shape) for row in expected]} for its sequences"
    )


def _largest_difference(first: list[Array], second: list[Array]) -> float:
    xp = namespace(*first)
    differences = [as_float(xp.max(xp.abs(a - b))) for a, b in zip(first, second, strict=True)]
    return math.nan if any(math.isnan(d) for d in differences) else max(differences)
