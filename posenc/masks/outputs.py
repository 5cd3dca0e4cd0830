"""Which outputs count: pooling and losses without the pads, and how much leaks in and out of them."""

from __future__ import annotations

from posenc._arrays import Array, ArrayT, Namespace, namespace, wide_dtype
from posenc.masks._checks import as_float, check_mask, shape_text

__all__ = ["apply_output_mask", "leak_in", "leak_out", "masked_loss", "masked_mean"]


def apply_output_mask(x: ArrayT, padding_mask: Array) -> ArrayT:
    """x with zeros at pads.

    y[b, t] = 0 where padding_mask[b, t], else x[b, t]. NaN and infinity at pads become 0 as well.

    Args:
        x: shape padding_mask.shape + (...), real.
        padding_mask: bool (..., n), True at pads. Its axes are the first axes of x. For x (batch, heads, n, d)
            a mask (batch, n) raises an error, unless heads equals n: then it zeroes heads. Join the heads
            first.

    Returns:
        Array of the shape and dtype of x.

    Raises:
        TypeError: padding_mask is not bool, or of another library.
        ValueError: the shapes do not fit.

    >>> import numpy as np
    >>> from posenc.masks import key_padding_mask
    >>> apply_output_mask(np.ones((1, 3, 2)), key_padding_mask([2], 3))[0].tolist()
    [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]

    Source: defined in this book, masks.md#output-mask.
    """
    xp, mask = _mask_of_rows("x", x, padding_mask)
    zeroed: ArrayT = xp.where(mask, xp.zeros_like(x), x)
    return zeroed


def masked_mean(x: Array, padding_mask: Array) -> Array:
    """The mean over the real tokens of each sequence: pooling that pads do not change.

    y[b] = Σ_real x[b, t] / number of real t.

    float16 and bfloat16 are summed in float32 and rounded once.

    Args:
        x: shape padding_mask.shape + (...), floating.
        padding_mask: bool (..., n), True at pads. The mean is over its last axis. Join heads first, as for
            `apply_output_mask`.

    Returns:
        Array of shape padding_mask.shape[:-1] + (...), of the dtype of x. 0 for a sequence without any real
        token.

    Raises:
        TypeError: x is not floating, padding_mask is not bool, or they are of different libraries.
        ValueError: the shapes do not fit.

    >>> import numpy as np
    >>> from posenc.masks import key_padding_mask
    >>> masked_mean(np.array([[1.0, 3.0, 100.0]]), key_padding_mask([2], 3))
    array([2.])

    Source: defined in this book, masks.md#output-mask.
    """
    xp, mask = _mask_of_rows("x", x, padding_mask)
    axis = padding_mask.ndim - 1
    total = xp.sum(_zero_hidden("x", x, mask, xp), axis=axis)
    return xp.astype(total / _count(xp.logical_not(mask), total, xp, axis=axis), x.dtype)


def masked_loss(losses: Array, padding_mask: Array) -> Array:
    """The mean loss of a real token.

    L = Σ_real losses / number of real tokens in the whole batch.

    The mean over all places would shrink with every pad. A mean of the means of the sequences would give the
    tokens of short sequences more weight. This is the same as `ignore_index` with reduction="mean" in torch.
    For several batches, add up sums and counts and divide once.

    Args:
        losses: the loss at each place, floating, of the shape of padding_mask. Values at pads do not matter,
            not even NaN.
        padding_mask: bool, True at pads.

    Returns:
        Array without axes, of the dtype of losses. 0 if there is no real token.

    Raises:
        TypeError: losses are not floating, padding_mask is not bool, or they are of different libraries.
        ValueError: the shapes differ.

    >>> import numpy as np
    >>> from posenc.masks import key_padding_mask
    >>> float(masked_loss(np.array([[2.0, 4.0, 9.0]]), key_padding_mask([2], 3)))
    3.0

    Source: defined in this book, masks.md#loss.
    """
    xp, mask = _mask_of_rows("losses", losses, padding_mask)
    if losses.shape != padding_mask.shape:
        raise ValueError(
            f"losses must have the shape of padding_mask, {tuple(padding_mask.shape)}, "
            f"got {tuple(losses.shape)}"
        )
    total = xp.sum(_zero_hidden("losses", losses, mask, xp))
    return xp.astype(total / _count(xp.logical_not(mask), total, xp), losses.dtype)


def leak_in(weights: Array, padding_mask: Array) -> float:
    """The share of their attention that real queries spend on pads, on average.

    mean over real t of Σ_{pads u} weights[t, u].

    Args:
        weights: attention weights, shape (..., n, n), the first axes those of padding_mask. Heads may follow.
        padding_mask: bool (..., n), True at pads.

    Returns:
        A number from 0 to 1. It is 0 with a key-padding mask, and if there is no real query.

    Raises:
        TypeError: weights are not floating, padding_mask is not bool, or they are of different libraries.
        ValueError: the shapes do not fit.

    >>> import numpy as np
    >>> from posenc.masks import key_padding_mask
    >>> leak_in(np.full((4, 4), 0.25), key_padding_mask(3, 4))
    0.25

    Source: a measure of this book, defined in masks.md#leak-in.
    """
    return _leak(weights, padding_mask, to_pads=True)


def leak_out(weights: Array, padding_mask: Array) -> float:
    """The share of their attention that queries of pads spend on real tokens, on average.

    mean over pads t of Σ_{real u} weights[t, u].

    A key-padding mask raises it to 1, because then pads may attend to real tokens only. This does harm only
    if a later step uses the outputs of pads.

    Args:
        weights, padding_mask: as in `posenc.masks.leak_in`.

    Returns:
        A number from 0 to 1. It is 0 if there is no pad.

    Raises:
        TypeError, ValueError: as in `posenc.masks.leak_in`.

    >>> import numpy as np
    >>> from posenc.masks import key_padding_mask
    >>> leak_out(np.full((4, 4), 0.25), key_padding_mask(3, 4))
    0.75

    Source: a measure of this book, defined in masks.md#leak-out.
    """
    return _leak(weights, padding_mask, to_pads=False)


def _leak(weights: Array, padding_mask: Array, *, to_pads: bool) -> float:
    xp = check_mask("padding_mask", padding_mask, 1)
    namespace(padding_mask=padding_mask, weights=weights)
    n, batch = padding_mask.shape[-1], padding_mask.ndim - 1
    if (
        weights.ndim < batch + 2
        or tuple(weights.shape[-2:]) != (n, n)
        or weights.shape[:batch] != padding_mask.shape[:-1]
    ):
        wanted = shape_text(*padding_mask.shape[:-1], "...", n, n)
        raise ValueError(f"weights must have shape {wanted}, got {tuple(weights.shape)}")
    heads = (1,) * (weights.ndim - padding_mask.ndim - 1)
    pads = xp.reshape(padding_mask, (*padding_mask.shape[:-1], *heads, n))
    real = xp.logical_not(pads)
    keys, queries = (pads, real) if to_pads else (real, pads)
    counted = keys[..., None, :] & queries[..., :, None]
    total = xp.sum(_zero_hidden("weights", weights, xp.logical_not(counted), xp))
    rows = xp.sum(xp.astype(xp.broadcast_to(queries, weights.shape[:-1]), xp.int64))
    return as_float(total) / max(int(rows), 1)


def _count(real: Array, like: Array, xp: Namespace, axis: int | None = None) -> Array:
    """How many are True, at least 1 (what it divides is 0 then), in the dtype of `like`."""
    count = xp.sum(xp.astype(real, xp.int64), axis=axis)
    return xp.astype(xp.where(count > 0, count, xp.ones_like(count)), like.dtype)


def _zero_hidden(name: str, x: Array, hidden: Array, xp: Namespace) -> Array:
    """x with zeros where `hidden`, in float32 at least."""
    if not xp.isdtype(x.dtype, "real floating"):
        raise TypeError(f"{name} must be floating, got dtype {x.dtype}")
    wide = xp.astype(x, wide_dtype(xp, x))
    return xp.where(hidden, xp.zeros_like(wide), wide)


def _mask_of_rows(name: str, x: Array, padding_mask: Array) -> tuple[Namespace, Array]:
    """The library, and the mask with an axis of 1 for each axis that only x has."""
    xp = check_mask("padding_mask", padding_mask, 1)
    namespace(padding_mask=padding_mask, **{name: x})
    if tuple(x.shape[: padding_mask.ndim]) != tuple(padding_mask.shape):
        raise ValueError(
            f"padding_mask must have the first axes of {name}, got {tuple(padding_mask.shape)} "
            f"and {tuple(x.shape)}"
        )
    return xp, xp.reshape(padding_mask, (*padding_mask.shape, *(1,) * (x.ndim - padding_mask.ndim)))
