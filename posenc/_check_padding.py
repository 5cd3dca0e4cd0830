"""Does a model change its answer when nothing but pads is added? The public face is `posenc.masks`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from posenc._arrays import Array, Namespace, check_integer, namespace
from posenc._batches import Side, as_rows, pad_batch

# The parameter by which a model takes its mask, and what marks a pad there.
MASK_NAMES = {"attention_mask": 0, "src_key_padding_mask": True, "key_padding_mask": True}
# How the tokens are called in a batch of Hugging Face, and the outputs in a result.
INPUT_NAMES = ("input_ids", "inputs_embeds")
OUTPUT_NAMES = ("last_hidden_state", "logits")

# Arrays by the parameter that takes them; "" is the first one.
Inputs = dict[str, Array]
Rows = dict[str, list[Array]]


@dataclass(frozen=True)
class PaddingChange:
    """What pads on one side did to the outputs of the real tokens."""

    change: float
    """Largest difference between an output with pads and the same output without; nan if there is a NaN."""

    content: float
    """Largest difference when the pads hold something else: what gets in of them."""

    tolerance: float
    """Up to here a difference counts as rounding."""

    @property
    def ok(self) -> bool:
        """Whether the outputs stayed the same."""
        return self.change <= self.tolerance

    def __str__(self) -> str:
        if self.ok:
            return "ok"
        if math.isnan(self.change):
            return "outputs become NaN: is there a query without any key?"
        if self.content <= self.tolerance:
            cause = "not by what the pads hold, but by their number (as positions?)"
        else:
            cause = "what the pads hold gets in"
        return f"outputs change by {self.change:.2g}: {cause}"


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
    model: Callable[..., Any],
    batch: Sequence[Array] | Mapping[str, Array] | Array,
    *,
    pads: int = 4,
    pad_value: Any = 0,
    tolerance: float | None = None,
) -> PaddingReport:
    """Whether the outputs of real tokens change when pads are added, right and left, and by how much.

    Each sequence is run alone, without pads. Then all are run as one batch, padded to the length of the
    longest plus `pads`, and once more with pads that hold a real token of the batch instead of `pad_value`.
    For token ids the second run only tells the cause of a change; for embeddings it counts as well, since
    nothing says what their pads hold.

    Args:
        model: a callable, in evaluation mode. Its first parameter takes the padded batch, the first of these
            that it has takes the mask:

            - `attention_mask`: int64, 1 at real tokens, 0 at pads, as in Hugging Face;
            - `src_key_padding_mask` or `key_padding_mask`: bool, True at pads, as in torch.nn;
            - a second parameter: bool, True at pads.

            With one parameter alone it finds its pads by `pad_value`, which is then all that they hold.

            It gives an array (batch, length, ...), an output for each token, or (batch, ...), one for each
            sequence; or a tuple that begins with that; or an object that has it as `last_hidden_state` or
            `logits`. Wrap anything else in a function.
        batch: sequences without pads, best of different lengths: a list of arrays (n_b, ...), token ids or
            embeddings, or one array (batch, n, ...). Or what a tokenizer of Hugging Face gives: a mapping
            with `input_ids` or `inputs_embeds` and, if there are pads in it, `attention_mask`. Its other
            entries, (batch, n, ...), are padded with 0 and passed on under their names.
        pads: how many pads the longest sequence gets, at least 1.
        pad_value: what the pads hold, such as the id of the padding token.
        tolerance: the largest difference that counts as rounding. If None, √ε of the dtype of the outputs
            times the largest output: 1.5e-8 of it in float64, 3.5e-4 in float32. float64 gives the sharper
            answer, if no step of the model stays in float32.

    Torch takes another path when no gradients are wanted: check under `torch.no_grad()` what runs there.

    Returns:
        A `PaddingReport`; its `ok` is True if nothing changed.

    Raises:
        TypeError: the outputs are not floating arrays, or the sequences are not arrays of one kind.
        ValueError: a sequence is empty; the model gives NaN without any pads, or not twice the same (call
            `eval()` first); its outputs have neither of the two shapes.

    >>> import numpy as np
    >>> from posenc.attention import attention
    >>> tokens = [np.eye(3), np.eye(3)[:2]]
    >>> print(check_padding(lambda x, mask: attention(x, x, x, mask=mask[:, None])[0], tokens))
    pads on the right: ok
    pads on the left: ok
    >>> print(check_padding(lambda x, mask: attention(x, x, x)[0], tokens))
    pads on the right: outputs change by 0.41: what the pads hold gets in
    pads on the left: outputs change by 0.41: what the pads hold gets in
    """
    pads = check_integer("pads", pads, minimum=1)
    main, rows = _rows(batch)
    call, takes_mask = _caller(model, named=isinstance(batch, Mapping))

    def run_alone(b: int) -> Array:
        return call(*_padded({name: [row[b]] for name, row in rows.items()}, main, 0, "right", pad_value))

    alone = [run_alone(b) for b in range(len(rows[main]))]
    xp = namespace(*alone)
    scale = _check_alone(alone, xp)
    if tolerance is None:
        tolerance = math.sqrt(float(xp.finfo(alone[0].dtype).eps)) * scale
    if _largest_difference([run_alone(0)], alone[:1], xp) > tolerance:
        raise ValueError("model must give the same outputs twice: call its eval() first, against dropout")
    # A batch of one each: what is compared has no batch axis.
    expected = [output[0, ...] for output in alone]
    changes = []
    for side in ("right", "left"):
        inputs, mask = _padded(rows, main, pads, side, pad_value)
        outputs = _real_outputs(call(inputs, mask), mask, expected)
        change, content = _largest_difference(outputs, expected, xp), 0.0
        if takes_mask:
            other = inputs | {main: _refilled(inputs[main], mask, rows[main], pad_value)}
            others = _real_outputs(call(other, mask), mask, expected)
            content = _largest_difference(outputs, others, xp)
            if xp.isdtype(inputs[main].dtype, "real floating"):
                change = _worst([change, _largest_difference(others, expected, xp)])
        changes.append(PaddingChange(change=change, content=content, tolerance=tolerance))
    return PaddingReport(*changes)


def as_float(x: Array) -> float:
    """The number in an array without axes; torch warns of tensors that still carry a gradient."""
    return float(x.detach() if hasattr(x, "detach") else x)


def _rows(batch: Sequence[Array] | Mapping[str, Array] | Array) -> tuple[str, Rows]:
    """The name of the tokens, and each sequence without its pads, for every entry of the batch."""
    if not isinstance(batch, Mapping):
        main, rows = "", {"": as_rows("batch", batch)[0]}
    else:
        entries = dict(batch)
        main = next((name for name in INPUT_NAMES if name in entries), "")
        if not main:
            raise ValueError(f"batch must hold input_ids or inputs_embeds, got {sorted(entries)}")
        mask = entries.pop("attention_mask", None)
        rows = {name: as_rows(f"batch[{name!r}]", entry)[0] for name, entry in entries.items()}
        lengths = [row.shape[0] for row in rows[main]]
        for name, some in rows.items():
            if [row.shape[0] for row in some] != lengths:
                raise ValueError(f"batch[{name!r}] must have shape (batch, n, ...) like {main}")
            if mask is not None:
                rows[name] = [row[mask[b, :] != 0] for b, row in enumerate(some)]
    if any(row.shape[0] == 0 for row in rows[main]):
        raise ValueError("batch must hold at least one token in every sequence")
    return main, rows


def _caller(model: Callable[..., Any], *, named: bool) -> tuple[Callable[[Inputs, Array], Array], bool]:
    """`model` as a function of its inputs and the padding mask, and whether it takes a mask at all."""
    try:
        parameters = inspect.signature(getattr(model, "forward", model)).parameters
    except (TypeError, ValueError):
        parameters = inspect.signature(lambda batch, mask: None).parameters
    name = next((name for name in MASK_NAMES if name in parameters), "attention_mask" if named else "")
    kinds = [p.kind for p in parameters.values()]
    by_place = kinds.count(inspect.Parameter.POSITIONAL_ONLY) + kinds.count(
        inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    takes_mask = bool(name) or by_place > 1 or inspect.Parameter.VAR_POSITIONAL in kinds

    def call(inputs: Inputs, mask: Array) -> Array:
        xp = namespace(mask)
        keywords = dict(inputs)
        places = [keywords.pop("")] if "" in keywords else []
        if name:
            keywords[name] = mask if MASK_NAMES[name] else xp.astype(xp.logical_not(mask), xp.int64)
            if places and xp.isdtype(places[0].dtype, "real floating") and "inputs_embeds" in parameters:
                keywords["inputs_embeds"] = places.pop()
        elif takes_mask:
            places.append(mask)
        result = model(*places, **keywords)
        found = next((getattr(result, key) for key in OUTPUT_NAMES if hasattr(result, key)), result)
        output = found[0] if isinstance(found, tuple | list) else found
        return output.detach() if hasattr(output, "detach") else output

    return call, takes_mask


def _padded(rows: Rows, main: str, pads: int, side: Side, value: Any) -> tuple[Inputs, Array]:
    length = max(row.shape[0] for row in rows[main]) + pads
    batch, mask = pad_batch(rows[main], side=side, length=length, value=value)
    others = {
        name: pad_batch(some, side=side, length=length)[0] for name, some in rows.items() if name != main
    }
    return {main: batch} | others, mask


def _refilled(batch: Array, mask: Array, rows: list[Array], value: Any) -> Array:
    """The batch with a real token at its pads, the first that is not all `value`."""
    xp = namespace(batch)
    tokens = xp.concat(rows, axis=0)
    differs = xp.any(xp.reshape(tokens != value, (tokens.shape[0], -1)), axis=-1)
    token = tokens[int(xp.argmax(xp.astype(differs, xp.int64))), ...]
    return xp.where(xp.reshape(mask, (*mask.shape, *(1,) * (batch.ndim - 2))), token, batch)


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
            raise ValueError("model must give finite outputs without any pads, got NaN or infinity")
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


def _largest_difference(first: list[Array], second: list[Array], xp: Namespace) -> float:
    return _worst([as_float(xp.max(xp.abs(a - b))) for a, b in zip(first, second, strict=True)])


def _worst(differences: list[float]) -> float:
    return math.nan if any(math.isnan(d) for d in differences) else max(differences)
