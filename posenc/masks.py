"""Padding and masks: which keys a query may see, and which outputs count.

In every mask True means "not allowed" or "padding", as in torch.nn.MultiheadAttention.
"""

from __future__ import annotations

import numpy as np

from posenc._arrays import Array, Namespace, namespace, to_device_of
from posenc._batches import (
    check_documents,
    check_mask,
    document_ids,
    document_positions,
    key_padding_mask,
    pack_sequences,
    pad_batch,
    positions_from_mask,
)
from posenc._check_padding import PaddingChange, PaddingReport, as_float, check_padding
from posenc._checks import integer

__all__ = [
    "PaddingChange",
    "PaddingReport",
    "apply_output_mask",
    "causal_mask",
    "check_padding",
    "combine_masks",
    "document_ids",
    "document_mask",
    "document_positions",
    "empty_rows",
    "key_padding_mask",
    "leak_in",
    "leak_out",
    "masked_loss",
    "masked_mean",
    "multihead_mask",
    "pack_sequences",
    "pad_batch",
    "positions_from_mask",
    "safe_mask",
    "sdpa_mask",
]


# --- Who may see whom ---------------------------------------------------------------------------------------


def causal_mask(n: int, *, like: Array | None = None) -> Array:
    """The mask that hides the future: query t may see the keys 0..t.

    M[t, u] = (u > t); True means not allowed.

    Args:
        n: sequence length, at least 0.
        like: an array whose library and device the mask gets, such as the input of the model; NumPy if None.

    Returns:
        bool array (n, n), True above the diagonal.

    Raises:
        TypeError, ValueError: n is not an integer, or negative.

    >>> causal_mask(3)
    array([[False,  True,  True],
           [False, False,  True],
           [False, False, False]])

    Source: Vaswani et al. (2017), section 3.2.3.
    """
    mask = np.triu(np.ones((integer("n", n, minimum=0),) * 2, dtype=bool), k=1)
    return mask if like is None else to_device_of(mask, like, namespace(like=like))


def document_mask(documents: Array) -> Array:
    """The mask that keeps the documents of a packed row apart: block-diagonal.

    M[t, u] = (documents[t] ≠ documents[u]); a pad (negative number) sees nothing and is seen by nothing.

    Join it with a causal mask by `|`. A pad's row is without any key: see `safe_mask`.

    Args:
        documents: integer (..., n), as `document_ids` or `pack_sequences` give them.

    Returns:
        bool array (..., n, n), True where not allowed.

    Raises:
        TypeError: documents are not integers.
        ValueError: a document is in pieces: its number comes back after another one (unseen while
            torch.compile traces).

    >>> document_mask(np.array([0, 0, 1])).astype(int)
    array([[0, 0, 1],
           [0, 0, 1],
           [1, 1, 0]])

    Source: Krell et al. (2021), section 3.2. https://arxiv.org/abs/2107.02027
    """
    check_documents(documents)
    return (documents[..., :, None] != documents[..., None, :]) | (documents < 0)[..., None]


def combine_masks(padding_mask: Array, *, mask: Array | None = None) -> Array:
    """A key-padding mask and a mask of queries and keys in one: forbidden is what either forbids.

    M[b, t, u] = padding_mask[b, u] or mask[t, u].

    `posenc.attention.attention` takes the result as mask for a (batch, n, d) query; with heads, (batch,
    heads, n, d), pass `combine_masks(...)[:, None]`; or pass it the two masks apart. For torch's functions
    see `multihead_mask`, `sdpa_mask`.

    Args:
        padding_mask: bool (..., n_k), True at pads.
        mask: bool (n_q, n_k) or (..., n_q, n_k), True where not allowed, such as `causal_mask(n)`. By name
            only, since no shape tells the two masks apart: exchanged, they would fit as well.

    Returns:
        bool array (..., n_q, n_k), or (..., 1, n_k) without a mask: every query has the same keys.

    Raises:
        TypeError: a mask is not bool, or they are of different libraries.
        ValueError: the shapes do not fit.

    >>> combine_masks(key_padding_mask([1, 2]), mask=causal_mask(2)).astype(int)
    array([[[0, 1],
            [0, 1]],
    <BLANKLINE>
           [[0, 1],
            [0, 0]]])
    """
    xp = check_mask("padding_mask", padding_mask, 1)
    keys = padding_mask[..., None, :]
    if mask is None:
        return xp.asarray(keys, copy=True)
    check_mask("mask", mask, 2)
    namespace(padding_mask=padding_mask, mask=mask)
    fits = mask.ndim == 2 or mask.shape[:-2] == padding_mask.shape[:-1]
    if mask.shape[-1] != padding_mask.shape[-1] or not fits:
        raise ValueError(
            f"mask must have shape (n_q, {padding_mask.shape[-1]}) or "
            f"{_shape(*padding_mask.shape[:-1], 'n_q', padding_mask.shape[-1])}, got {tuple(mask.shape)}"
        )
    return keys | mask


def multihead_mask(mask: Array, num_heads: int) -> Array:
    """A mask of each batch row as torch.nn.MultiheadAttention takes it: once for each head.

    M[b · num_heads + h] = mask[b]; True stays "not allowed".

    For `attn_mask=` of torch.nn.MultiheadAttention and `mask=` of torch.nn.TransformerEncoder. Where all rows
    share one mask, pass that (n_q, n_k) as `attn_mask` and the padding as `key_padding_mask` instead.

    What they do with a query that has no key depends on how they are called (torch 2.13, on the CPU). NaN:
    MultiheadAttention with need_weights=True, its default; in evaluation mode without gradients also with
    need_weights=False, and so does TransformerEncoder. An attention of 0, so the bias of the last projection:
    everywhere else. `safe_mask` makes all of them alike.

    Args:
        mask: bool (batch, n_q, n_k), as `combine_masks` gives it.
        num_heads: of the layer.

    Returns:
        bool array (batch · num_heads, n_q, n_k).

    Raises:
        TypeError: mask is not bool, or num_heads not an integer.
        ValueError: mask has not three axes, or num_heads is below 1.

    >>> multihead_mask(causal_mask(2)[None], 4).shape
    (4, 2, 2)
    """
    xp = _check_batch_of_masks(mask)
    return xp.repeat(mask, integer("num_heads", num_heads, minimum=1), axis=0)


def sdpa_mask(mask: Array) -> Array:
    """A mask as torch.nn.functional.scaled_dot_product_attention takes it: True means allowed.

    M[b, 0, t, u] = not mask[b, t, u], the same for each head.

    For `attn_mask=` there, with a query (batch, heads, n_q, d). A query without any key gets 0 from it with
    torch 2.13 on the CPU, where this was measured, and got NaN before release 2.5; use `safe_mask` where that
    must not depend on release, device or kernel.

    Args:
        mask: bool (batch, n_q, n_k), True where not allowed, as `combine_masks` gives it; (n_q, n_k) for all
            is passed as mask[None].

    Returns:
        bool array (batch, 1, n_q, n_k), True where allowed.

    Raises:
        TypeError: mask is not bool.
        ValueError: mask has not three axes.

    >>> sdpa_mask(causal_mask(2)[None])
    array([[[[ True, False],
             [ True,  True]]]])
    """
    xp = _check_batch_of_masks(mask)
    return xp.logical_not(mask)[:, None]


def empty_rows(mask: Array) -> Array:
    """The queries that may see no key at all: softmax over nothing, NaN in many functions.

    E[t] = all u: mask[t, u].

    Args:
        mask: bool (..., n_q, n_k), True where not allowed.

    Returns:
        bool array (..., n_q).

    Raises:
        TypeError, ValueError: mask is not a bool array of at least two axes.

    >>> empty_rows(combine_masks(key_padding_mask([1], 3, side="left"), mask=causal_mask(3)))
    array([[ True,  True, False]])
    """
    xp = check_mask("mask", mask, 2)
    return xp.all(mask, axis=-1)


def safe_mask(mask: Array) -> Array:
    """The mask with its empty rows opened, so that no function makes NaN of them.

    M[t, u] = mask[t, u] and not empty_rows(mask)[t].

    An opened row gives some output, which means nothing: zero it by `apply_output_mask(output,
    empty_rows(mask))`. Zeroing alone, without this, cures the output but leaves NaN in the gradient.
    `posenc.attention.attention` needs neither.

    Args:
        mask: bool (..., n_q, n_k), True where not allowed, every mask combined already: opening one does not
            help a row that another one closes. A key-padding mask (batch, n_k) that is to stay the only mask
            is read the same way: the sequences of nothing but pads are opened.

    Returns:
        bool array of the same shape, every query with at least one key.

    Raises:
        TypeError, ValueError: mask is not a bool array of at least two axes.

    >>> safe_mask(np.array([[True, True], [True, False]]))
    array([[False, False],
           [ True, False]])
    """
    xp = check_mask("mask", mask, 2)
    return mask & xp.logical_not(empty_rows(mask))[..., None]


# --- Which outputs count ------------------------------------------------------------------------------------


def apply_output_mask(x: Array, padding_mask: Array) -> Array:
    """x with zeros at pads.

    y[b, t] = 0 where padding_mask[b, t], else x[b, t]. NaN and infinity at pads become 0 as well.

    Args:
        x: shape padding_mask.shape + (...), real.
        padding_mask: bool (..., n), True at pads; its axes are the first of x. To an x (batch, heads, n, d) a
            mask (batch, n) does not fit, but where heads equals n no shape can tell, and heads are zeroed:
            join the heads first.

    Returns:
        Array of the shape and dtype of x.

    Raises:
        TypeError: padding_mask is not bool, or of another library.
        ValueError: the shapes do not fit.

    >>> apply_output_mask(np.ones((1, 3, 2)), key_padding_mask([2], 3))[0].tolist()
    [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    """
    xp, mask = _mask_of_rows("x", x, padding_mask)
    return xp.where(mask, xp.zeros_like(x), x)


def masked_mean(x: Array, padding_mask: Array) -> Array:
    """The mean over the real tokens of each sequence: pooling that pads do not change.

    y[b] = Σ_real x[b, t] / number of real t.

    float16 and bfloat16 are summed in float32 and rounded once.

    Args:
        x: shape padding_mask.shape + (...), floating.
        padding_mask: bool (..., n), True at pads; the mean is over its last axis. Join heads first, as for
            `apply_output_mask`.

    Returns:
        Array of shape padding_mask.shape[:-1] + (...), of the dtype of x; 0 for a sequence without any real
        token.

    Raises:
        TypeError: x is not floating, padding_mask is not bool, or they are of different libraries.
        ValueError: the shapes do not fit.

    >>> masked_mean(np.array([[1.0, 3.0, 100.0]]), key_padding_mask([2], 3))
    array([2.])
    """
    xp, mask = _mask_of_rows("x", x, padding_mask)
    axis = padding_mask.ndim - 1
    total = xp.sum(_zero_hidden("x", x, mask, xp), axis=axis)
    return xp.astype(total / _count(xp.logical_not(mask), total, xp, axis=axis), x.dtype)


def masked_loss(losses: Array, padding_mask: Array) -> Array:
    """The mean loss of a real token.

    L = Σ_real losses / number of real tokens in the whole batch.

    Not the mean over all places (which shrinks with every pad) and not a mean of the means of the sequences
    (which weighs the tokens of short ones more). Equal to `ignore_index` with reduction="mean" in torch. Over
    several batches, add up sums and counts, and divide once.

    Args:
        losses: the loss at each place, floating, of the shape of padding_mask; what it says at pads does not
            matter, not even NaN.
        padding_mask: bool, True at pads.

    Returns:
        Array without axes, of the dtype of losses; 0 where there is no real token.

    Raises:
        TypeError: losses are not floating, padding_mask is not bool, or they are of different libraries.
        ValueError: the shapes differ.

    >>> float(masked_loss(np.array([[2.0, 4.0, 9.0]]), key_padding_mask([2], 3)))
    3.0
    """
    xp, mask = _mask_of_rows("losses", losses, padding_mask)
    if losses.shape != padding_mask.shape:
        raise ValueError(
            f"losses must have the shape of padding_mask, {tuple(padding_mask.shape)}, "
            f"got {tuple(losses.shape)}"
        )
    total = xp.sum(_zero_hidden("losses", losses, mask, xp))
    return xp.astype(total / _count(xp.logical_not(mask), total, xp), losses.dtype)


# --- What leaks ---------------------------------------------------------------------------------------------


def leak_in(weights: Array, padding_mask: Array) -> float:
    """How much of their attention real queries spend on pads, on average: what comes in from the pads.

    mean over real t of Σ_{pads u} weights[t, u].

    Args:
        weights: attention weights, shape (..., n, n), the first axes those of padding_mask; heads may follow.
        padding_mask: bool (..., n), True at pads.

    Returns:
        A number from 0 to 1; 0 with a key-padding mask, and where there is no real query.

    Raises:
        TypeError: weights are not floating, padding_mask is not bool, or they are of different libraries.
        ValueError: the shapes do not fit.

    >>> leak_in(np.full((4, 4), 0.25), key_padding_mask(3, 4))
    0.25
    """
    return _leak(weights, padding_mask, to_pads=True)


def leak_out(weights: Array, padding_mask: Array) -> float:
    """How much of their attention pad queries spend on real tokens, on average: what pads carry off.

    mean over pads t of Σ_{real u} weights[t, u].

    A key-padding mask raises it to 1, since it leaves the pads no other key. It does harm only where a later
    step mixes the pads in again.

    Args, raises: as in `leak_in`.

    Returns:
        A number from 0 to 1; 0 where there is no pad.

    >>> leak_out(np.full((4, 4), 0.25), key_padding_mask(3, 4))
    0.75
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
        wanted = _shape(*padding_mask.shape[:-1], "...", n, n)
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
    wide = xp.astype(x, xp.float32) if xp.finfo(x.dtype).bits < 32 else x
    return xp.where(hidden, xp.zeros_like(wide), wide)


def _check_batch_of_masks(mask: Array) -> Namespace:
    xp = check_mask("mask", mask, 1)
    if mask.ndim != 3:
        raise ValueError(
            f"mask must have shape (batch, n_q, n_k), got {tuple(mask.shape)}: a padding mask goes through "
            "combine_masks, a mask (n_q, n_k) for the whole batch in as mask[None]"
        )
    return xp


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


def _shape(*axes: int | str) -> str:
    return f"({', '.join(map(str, axes))})"
