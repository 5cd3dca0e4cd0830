"""Sequences of different lengths as one array: padded to one length, or packed into one row; their positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from posenc._arrays import Array, ArrayT, Namespace, namespace
from posenc._checks import integer
from posenc.masks._checks import (
    Side,
    as_counts,
    check_documents,
    check_mask,
    check_side,
    running_sum,
    starts,
)
from posenc.masks.masks import key_padding_mask

__all__ = ["document_ids", "document_positions", "pack_sequences", "pad_batch", "positions_from_mask"]


def pad_batch(
    sequences: Sequence[Array] | Array, *, side: Side = "right", length: int | None = None, value: Any = 0
) -> tuple[Array, Array]:
    """Sequences of different lengths as one array, and the mask that says where its pads are.

    Row b holds sequences[b], followed by `value` up to the common length. With side="left" `value` comes first.

    Args:
        sequences: a list of at least one array (n_b, ...), or one array (batch, n, ...). The arrays hold
            token ids, embeddings, any numbers or bool, and share library, dtype, device and trailing shape. A
            list of numbers counts as an array of NumPy.
        side: where the pads go, "right" or "left".
        length: length of the rows. That of the longest sequence if None. Sequences are never cut.
        value: what the pads hold. It must fit the dtype.

    Returns:
        The batch, shape (batch, length, ...), of the library, dtype and device of the sequences, and its
        key-padding mask, bool (batch, length), True at pads.

    Raises:
        TypeError: sequences are not arrays of numbers or bool, or have different libraries or dtypes.
        ValueError: there is no sequence, one is a single number or has another trailing shape, one is longer
            than length, the dtype cannot hold value, or side is another word.

    >>> batch, padding_mask = pad_batch([[5, 6, 7], [8]], side="left")
    >>> batch
    array([[5, 6, 7],
           [0, 0, 8]])
    >>> padding_mask
    array([[False, False, False],
           [ True,  True, False]])

    Source: defined in this book, masks.md#rectangle.
    """
    check_side(side)
    rows, xp = as_rows("sequences", sequences)
    lengths = [row.shape[0] for row in rows]
    n = max(lengths) if length is None else integer("length", length, minimum=0)
    if n < max(lengths):
        raise ValueError(f"length must be at least that of the longest sequence, {max(lengths)}, got {n}")
    padded = []
    for row in rows:
        pads = _pads(n - row.shape[0], row, value, xp)
        padded.append(xp.concat([row, pads] if side == "right" else [pads, row], axis=0))
    return xp.stack(padded), key_padding_mask(lengths, n, side=side, like=rows[0])


def positions_from_mask(padding_mask: ArrayT) -> ArrayT:
    """Positions that count real tokens only, from 0 at the first one, wherever the pads are.

    t = (number of real tokens up to and including this one) − 1. Pads get 0, which every table has.

    With the pads on the right this is 0, 1, 2, ... With the pads on the left it removes the shift that they
    cause.

    Args:
        padding_mask: bool (..., n), True at pads.

    Returns:
        int64 array (..., n), as `posenc.sinusoidal_encoding` and the position_ids of Hugging Face take it.

    Raises:
        TypeError: padding_mask is not a bool array.

    >>> positions_from_mask(np.array([[True, True, False, False, False]]))
    array([[0, 0, 0, 1, 2]])

    Source: defined in this book, masks.md#left.
    """
    xp = check_mask("padding_mask", padding_mask, 1)
    real = xp.astype(xp.logical_not(padding_mask), xp.int64)
    positions: ArrayT = (running_sum(real, xp) - 1) * real
    return positions


def pack_sequences(
    sequences: Sequence[Array] | Array, *, length: int | None = None, value: Any = 0
) -> tuple[Array, Array]:
    """Several documents one after the other in one row, and the number of the document at each place.

    There are no pads between documents. `document_mask` keeps the documents apart, and `document_positions`
    counts each of them from 0.

    Args:
        sequences: as in `pad_batch`, each with at least one token.
        length: length of the row, filled up with pads on the right. No pads if None.
        value: what the pads hold.

    Returns:
        The row, shape (length, ...), and its document numbers, int64 (length,): 0, 1, ..., −1 at pads.

    Raises:
        TypeError, ValueError: as in `pad_batch`, or the documents together are longer than length.

    >>> pack_sequences([[5, 6, 7], [8, 9]], length=6)
    (array([5, 6, 7, 8, 9, 0]), array([ 0,  0,  0,  1,  1, -1]))

    Source: Krell et al., Efficient Sequence Packing without Cross-contamination (2021), section 3.
    https://arxiv.org/abs/2107.02027
    """
    rows, xp = as_rows("sequences", sequences)
    lengths = [row.shape[0] for row in rows]
    if 0 in lengths:
        raise ValueError(f"sequences must have at least one token each, got none at {lengths.index(0)}")
    n = sum(lengths) if length is None else integer("length", length, minimum=0)
    if n < sum(lengths):
        raise ValueError(f"length must be at least that of all sequences, {sum(lengths)}, got {n}")
    row = xp.concat([*rows, _pads(n - sum(lengths), rows[0], value, xp)], axis=0)
    return row, document_ids(lengths, n, like=rows[0])


def document_ids(lengths: Sequence[int] | Array, n: int | None = None, *, like: Array | None = None) -> Array:
    """The number of the document at each place of a packed row, from the lengths of the documents.

    0 for the first lengths[0] places, 1 for the next lengths[1], ..., −1 for pads at the end.

    Args:
        lengths: how many tokens each document has, at least 1: a list or array with one axis. Document
            numbers, which begin with 0, raise ValueError here.
        n: length of the row. The sum of lengths if None, which leaves no pads. torch.compile(fullgraph=True)
            cannot read that from a tensor and needs n.
        like: as in `key_padding_mask`.

    Returns:
        int64 array (n,).

    Raises:
        TypeError: lengths are not integers.
        ValueError: lengths do not have one axis, one is below 1, or their sum is above n. Lengths in a tensor
            are not checked while torch.compile traces.

    >>> document_ids([3, 2], 6)
    array([ 0,  0,  0,  1,  1, -1])

    Source: Krell et al., Efficient Sequence Packing without Cross-contamination (2021).
    https://arxiv.org/abs/2107.02027
    """
    counts, numbers, xp = as_counts(lengths, like, minimum=1)
    if counts.ndim != 1:
        raise ValueError(f"lengths must have one axis, got shape {tuple(counts.shape)}")
    if n is None:
        n = int(xp.sum(counts)) if numbers is None else sum(numbers)
    elif integer("n", n, minimum=0) < sum(numbers or []):
        raise ValueError(f"lengths must sum to at most n = {n}, got {sum(numbers or [])}")
    ends = running_sum(counts, xp)
    u = xp.arange(n, dtype=xp.int64, device=counts.device)
    # How many documents have ended at a place is the number of the one that stands there.
    ids = xp.astype(xp.searchsorted(ends, u, side="right"), xp.int64)
    return xp.where(ids < counts.shape[0], ids, xp.full_like(ids, -1))


def document_positions(documents: Array) -> Array:
    """Positions that start anew with every document of a packed row.

    t = place − place of the first token of the same document. Pads get 0.

    Args:
        documents: integer (..., n), a number for each place, equal within a document and negative at pads, as
            `document_ids` or `pack_sequences` give them.

    Returns:
        int64 array (..., n).

    Raises:
        TypeError: documents are not integers.
        ValueError: the number of a document comes back after another one. Not checked while torch.compile traces.

    >>> document_positions(np.array([0, 0, 0, 1, 1, -1]))
    array([0, 1, 2, 0, 1, 0])

    Source: Krell et al., Efficient Sequence Packing without Cross-contamination (2021).
    https://arxiv.org/abs/2107.02027
    """
    xp = check_documents(documents)
    # All rows in one line: every row begins with a start, so each place follows a start of its own row.
    run = running_sum(xp.astype(xp.reshape(starts(documents, xp), (-1,)), xp.int64), xp)
    # The first place of its run: no index into the starts, whose number torch.compile would have to know.
    first = xp.searchsorted(run, run)
    place = xp.arange(run.shape[0], dtype=xp.int64, device=documents.device)
    return xp.reshape(place - first, tuple(documents.shape)) * xp.astype(documents >= 0, xp.int64)


def as_rows(name: str, sequences: Any) -> tuple[list[Array], Namespace]:
    """The sequences as arrays that fit together, and their library."""
    if not isinstance(sequences, list | tuple):
        try:
            namespace(sequences=sequences)
        except TypeError:
            raise TypeError(
                f"{name} must be a list of arrays or one array, got {sequences!r:.50} "
                f"of type {type(sequences).__name__}"
            ) from None
        if sequences.ndim < 1:
            raise ValueError(f"{name} must have at least one axis, got a single number")
        sequences = [sequences[b, ...] for b in range(sequences.shape[0])]
    if len(sequences) == 0:
        raise ValueError(f"{name} must hold at least one sequence, got none")
    rows = list(sequences)
    # An empty list has no dtype of its own.
    dtype = next((np.asarray(row).dtype for row in rows if isinstance(row, list | tuple) and row), None)
    for b, row in enumerate(rows):
        if isinstance(row, list | tuple):
            rows[b] = np.asarray(row, dtype=None if row else dtype)
    xp = namespace(**{f"{name}[{b}]": row for b, row in enumerate(rows)})
    for b, row in enumerate(rows):
        if row.dtype != rows[0].dtype:
            raise TypeError(f"{name} must have one dtype, got {rows[0].dtype} and, at {b}, {row.dtype}")
        if not xp.isdtype(row.dtype, ("bool", "numeric")):
            raise TypeError(f"{name} must hold numbers or bool, got dtype {row.dtype} at {b}")
        if row.ndim < 1:
            raise ValueError(f"{name} must have at least one axis, got a single number at {b}")
        if row.shape[1:] != rows[0].shape[1:]:
            raise ValueError(
                f"{name} must have one trailing shape, got {tuple(rows[0].shape[1:])} and, at {b}, "
                f"{tuple(row.shape[1:])}"
            )
    return rows, xp


def _pads(n: int, like: Array, value: Any, xp: Namespace) -> Array:
    """n rows of `value`, as the rows of `like`; TypeError or ValueError unless its dtype holds the value."""
    dtype = like.dtype
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if xp.isdtype(dtype, "bool"):
        fits = isinstance(value, bool | int | np.bool_) and value in (0, 1)
    elif xp.isdtype(dtype, "integral"):
        limits = xp.iinfo(dtype)
        fits = (
            is_number and math.isfinite(value) and value == int(value) and limits.min <= value <= limits.max
        )
    else:
        fits = is_number and (not math.isfinite(value) or abs(value) <= float(xp.finfo(dtype).max))
    if not fits:
        raise ValueError(f"value must be one that the dtype of the sequences, {dtype}, holds; got {value!r}")
    return xp.full((n, *like.shape[1:]), value, dtype=dtype, device=like.device)
