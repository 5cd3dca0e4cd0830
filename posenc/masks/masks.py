"""Who may see whom: masks of keys, of the future, of other documents, and how other libraries take them.

In every mask True means "not allowed" or "padding", as in torch.nn.MultiheadAttention.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posenc._arrays import Array, ArrayT, Namespace, device_of, is_tensor, is_traced, namespace, to_device_of
from posenc._checks import integer, length
from posenc.masks._checks import Side, as_counts, check_documents, check_mask, check_side, shape_text

__all__ = [
    "causal_mask",
    "combine_masks",
    "document_mask",
    "empty_rows",
    "key_padding_mask",
    "multihead_mask",
    "safe_mask",
    "sdpa_mask",
]


def causal_mask(n: int, *, like: Array | None = None) -> Array:
    """The mask that hides the future: query t may see the keys 0..t.

    M[t, u] = (u > t). True means not allowed.

    Args:
        n: sequence length, at least 0.
        like: an array whose library and device the mask gets, such as the input of the model. NumPy if None.

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
    if is_tensor(n) and is_tensor(like) and is_traced():  # NumPy's mask would be that of the example for all
        u = namespace(like).arange(n, device=device_of(like))
        return u > u[:, None]
    mask = np.triu(np.ones((length("n", n),) * 2, dtype=bool), k=1)
    return mask if like is None else to_device_of(mask, like, namespace(like=like))


def key_padding_mask(
    lengths: int | Sequence[int] | Array,
    n: int | None = None,
    *,
    side: Side = "right",
    like: Array | None = None,
) -> Array:
    """Where the pads of a batch are, from the lengths of its sequences.

    M[b, u] = (u ≥ lengths[b]) with the pads on the right, (u < n − lengths[b]) with the pads on the left.

    True means padding, as in key_padding_mask of torch.nn.MultiheadAttention and src_key_padding_mask of
    torch.nn.TransformerEncoder. The attention_mask of Hugging Face is its opposite, 1 at real tokens:
    `(~padding_mask).long()` in torch.

    Args:
        lengths: number of real tokens of each sequence: an integer, or a list or array of them with one axis.
            Token ids are not lengths: if they are padded already, the mask is `ids == id_of_the_pad`.
        n: length of the padded rows. The largest of lengths if None. torch.compile(fullgraph=True) cannot
            read that from a tensor and needs n.
        side: where the pads are, "right" or "left".
        like: an array whose library and device the mask gets. If None those of lengths, NumPy for a list.

    Returns:
        bool array (batch, n), or (n,) for an integer, True at pads.

    Raises:
        TypeError: lengths are not integers.
        ValueError: lengths have more than one axis, side is another word, or a length is negative or above n.
            Lengths in a tensor are not checked while torch.compile traces.

    >>> key_padding_mask([3, 1], 4)
    array([[False, False, False,  True],
           [False,  True,  True,  True]])

    Source: the `key_padding_mask` of torch.nn.MultiheadAttention, True at pads; in this book masks.md#key-mask.
    """
    check_side(side)
    counts, numbers, xp = as_counts(lengths, like, minimum=0)
    if n is None:
        n = int(xp.max(counts)) if numbers is None else max(numbers, default=0)
    elif integer("n", n, minimum=0) < max(numbers or [0]):
        raise ValueError(f"lengths must be at most n = {n}, got {max(numbers or [0])}")
    u = xp.arange(n, dtype=counts.dtype, device=counts.device)
    return u >= counts[..., None] if side == "right" else u < n - counts[..., None]


def document_mask(documents: Array) -> Array:
    """The mask that keeps the documents of a packed row apart: block-diagonal.

    M[t, u] = (documents[t] ≠ documents[u]). A pad (negative number) sees nothing, and no token sees it.

    Join it with a causal mask by `|`. The query of a pad has no key at all: see `safe_mask`.

    Args:
        documents: integer (..., n), as `document_ids` or `pack_sequences` give them.

    Returns:
        bool array (..., n, n), True where not allowed.

    Raises:
        TypeError: documents are not integers.
        ValueError: the number of a document comes back after another one. Not checked while torch.compile traces.

    >>> document_mask(np.array([0, 0, 1])).astype(int)
    array([[0, 0, 1],
           [0, 0, 1],
           [1, 1, 0]])

    Source: Krell et al. (2021), section 3.2. https://arxiv.org/abs/2107.02027
    """
    check_documents(documents)
    return (documents[..., :, None] != documents[..., None, :]) | (documents < 0)[..., None]


def combine_masks(padding_mask: Array, *, mask: Array | None = None) -> Array:
    """A key-padding mask and a mask of queries and keys in one. It forbids what either of them forbids.

    M[b, t, u] = padding_mask[b, u] or mask[t, u].

    `posenc.dot_product_attention` takes the result as mask for a query (batch, n, d). For a query with heads,
    (batch, heads, n, d), pass `combine_masks(...)[:, None]`. It also takes the two masks as two arguments.
    For torch's functions see `multihead_mask` and `sdpa_mask`.

    Args:
        padding_mask: bool (..., n_k), True at pads.
        mask: bool (n_q, n_k) or (..., n_q, n_k), True where not allowed, such as `causal_mask(n)`.
            Passed by name only, because the shapes would fit as well if the two masks were exchanged.

    Returns:
        bool array (..., n_q, n_k), or (..., 1, n_k) without a mask: every query has the same keys.

    Raises:
        TypeError: a mask is not bool, or they are of different libraries.
        ValueError: the shapes do not fit.

    >>> combine_masks(key_padding_mask([1, 2]), mask=causal_mask(2)).astype(int).tolist()
    [[[0, 1], [0, 1]], [[0, 1], [0, 0]]]

    Source: defined in this book, masks.md#key-mask.
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
            f"{shape_text(*padding_mask.shape[:-1], 'n_q', padding_mask.shape[-1])}, got {tuple(mask.shape)}"
        )
    return keys | mask


def multihead_mask(mask: Array, num_heads: int) -> Array:
    """A mask of each batch row as torch.nn.MultiheadAttention takes it: once for each head.

    M[b · num_heads + h] = mask[b]. True still means not allowed.

    For `attn_mask=` of torch.nn.MultiheadAttention and `mask=` of torch.nn.TransformerEncoder. Where all rows
    share one mask, pass that (n_q, n_k) as `attn_mask` and the padding as `key_padding_mask` instead.

    What these layers return for a query without any key depends on how they are called (torch 2.13, on the
    CPU). MultiheadAttention returns NaN with need_weights=True, its default. In evaluation mode without
    gradients it returns NaN with need_weights=False too, and so does TransformerEncoder. In all other cases
    the attention is 0, and the output is the bias of the last projection. With `safe_mask` no row is NaN.

    Args:
        mask: bool (batch, n_q, n_k), as `combine_masks` gives it.
        num_heads: number of heads of the layer.

    Returns:
        bool array (batch · num_heads, n_q, n_k).

    Raises:
        TypeError: mask is not bool, or num_heads not an integer.
        ValueError: mask has not three axes, or num_heads is below 1.

    >>> multihead_mask(causal_mask(2)[None], 4).shape
    (4, 2, 2)

    Source: the `attn_mask` of torch.nn.MultiheadAttention; in this book masks.md#no-key.
    """
    xp = _check_batch_of_masks(mask)
    return xp.repeat(mask, integer("num_heads", num_heads, minimum=1), axis=0)


def sdpa_mask(mask: Array) -> Array:
    """A mask as torch.nn.functional.scaled_dot_product_attention takes it: True means allowed.

    M[b, 0, t, u] = not mask[b, t, u], the same for each head.

    Pass it as `attn_mask=`, with a query (batch, heads, n_q, d). For a query without any key the function
    returns 0 with torch 2.13 on the CPU, where this was measured, and NaN before release 2.5. Use `safe_mask`
    if the result must not depend on release, device or kernel.

    Args:
        mask: bool (batch, n_q, n_k), True where not allowed, as `combine_masks` gives it. Pass a mask
            (n_q, n_k) for the whole batch as mask[None].

    Returns:
        bool array (batch, 1, n_q, n_k), True where allowed.

    Raises:
        TypeError: mask is not bool.
        ValueError: mask has not three axes.

    >>> sdpa_mask(causal_mask(2)[None])
    array([[[[ True, False],
             [ True,  True]]]])

    Source: the `attn_mask` of torch.nn.functional.scaled_dot_product_attention; in this book masks.md#key-mask.
    """
    xp = _check_batch_of_masks(mask)
    return xp.logical_not(mask)[:, None, ...]


def empty_rows(mask: Array) -> Array:
    """The queries that may see no key at all. For them softmax is NaN in many functions.

    E[t] = all u: mask[t, u].

    Args:
        mask: bool (..., n_q, n_k), True where not allowed.

    Returns:
        bool array (..., n_q).

    Raises:
        TypeError, ValueError: mask is not a bool array of at least two axes.

    >>> empty_rows(combine_masks(key_padding_mask([1], 3, side="left"), mask=causal_mask(3)))
    array([[ True,  True, False]])

    Source: defined in this book, masks.md#no-key.
    """
    xp = check_mask("mask", mask, 2)
    return xp.all(mask, axis=-1)


def safe_mask(mask: ArrayT) -> ArrayT:
    """The mask with its empty rows opened, so that no function makes NaN of them.

    M[t, u] = mask[t, u] and not empty_rows(mask)[t].

    The output of an opened row means nothing. Set it to zero with `apply_output_mask(output,
    empty_rows(mask))`. Setting it to zero without `safe_mask` removes NaN from the output, but not from the
    gradient. `posenc.dot_product_attention` needs neither of the two.

    Args:
        mask: bool (..., n_q, n_k), True where not allowed. Combine all masks first: a row opened in one mask
            may be closed by another. If a key-padding mask (batch, n_k) is the only mask, pass it as it is:
            sequences that consist of pads only are opened.

    Returns:
        bool array of the same shape, every query with at least one key.

    Raises:
        TypeError, ValueError: mask is not a bool array of at least two axes.

    >>> safe_mask(np.array([[True, True], [True, False]]))
    array([[False, False],
           [ True, False]])

    Source: derived in this book, masks.md#no-key.
    """
    xp = check_mask("mask", mask, 2)
    opened: ArrayT = xp.logical_and(mask, xp.logical_not(empty_rows(mask))[..., None])
    return opened


def _check_batch_of_masks(mask: Array) -> Namespace:
    xp = check_mask("mask", mask, 1)
    if mask.ndim != 3:
        raise ValueError(
            f"mask must have shape (batch, n_q, n_k), got {tuple(mask.shape)}: a padding mask goes through "
            "combine_masks, a mask (n_q, n_k) for the whole batch in as mask[None]"
        )
    return xp
