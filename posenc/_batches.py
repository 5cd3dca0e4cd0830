"""Sequences of different lengths as one array: padded to one length, or packed into one row.

The public face of this file is `posenc.masks`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from posenc._arrays import Array, Namespace, device_of, is_concrete, is_tensor, namespace
from posenc._checks import integer

Side = Literal["right", "left"]


def pad_batch(
    sequences: Sequence[Array] | Array, *, side: Side = "right", length: int | None = None, value: Any = 0
) -> tuple[Array, Array]:
    """Sequences of different lengths as one array, and the mask that says where its pads are.

    Row b holds sequences[b] and then (side="left": before it) `value`, up to one length.

    Args:
        sequences: a list of at least one array (n_b, ...), all of one library, dtype, device and trailing
            shape: token ids, embeddings, any numbers or bool; or one array (batch, n, ...). A list of numbers
            in place of an array counts as one of NumPy.
        side: where the pads go, "right" or "left".
        length: length of the rows; that of the longest sequence if None. Nothing is ever cut off.
        value: what the pads hold; must fit the dtype.

    Returns:
        The batch, shape (batch, length, ...), of the library, dtype and device of the sequences, and its
        key-padding mask, bool (batch, length), True at pads.

    Raises:
        TypeError: sequences are no arrays of numbers or bool, or of different libraries or dtypes.
        ValueError: there is no sequence, one is a single number or has another trailing shape, one is longer
            than length, the dtype cannot hold value, or side is another word.

    >>> batch, padding_mask = pad_batch([[5, 6, 7], [8]], side="left")
    >>> batch
    array([[5, 6, 7],
           [0, 0, 8]])
    >>> padding_mask
    array([[False, False, False],
           [ True,  True, False]])
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
            Not token ids: where those are padded already, the mask is `ids == id_of_the_pad`.
        n: length of the padded rows; the largest of lengths if None, which torch.compile(fullgraph=True)
            cannot find out from a tensor.
        side: where the pads are, "right" or "left".
        like: an array whose library and device the mask gets. If None those of lengths, NumPy for a list.

    Returns:
        bool array (batch, n), or (n,) for an integer, True at pads.

    Raises:
        TypeError: lengths are not integers.
        ValueError: lengths have more than one axis, side is another word, or a length is negative or above n
            (unseen in a tensor while torch.compile traces).

    >>> key_padding_mask([3, 1], 4)
    array([[False, False, False,  True],
           [False,  True,  True,  True]])
    """
    check_side(side)
    counts, numbers, xp = _as_counts(lengths, like, minimum=0)
    if n is None:
        n = int(xp.max(counts)) if numbers is None else max(numbers, default=0)
    elif integer("n", n, minimum=0) < max(numbers or [0]):
        raise ValueError(f"lengths must be at most n = {n}, got {max(numbers or [0])}")
    u = xp.arange(n, dtype=counts.dtype, device=counts.device)
    return u >= counts[..., None] if side == "right" else u < n - counts[..., None]


def positions_from_mask(padding_mask: Array) -> Array:
    """Positions that count real tokens only, from 0 at the first one, wherever the pads are.

    t = (number of real tokens up to and including this one) − 1; 0 at pads, so that any table can be read.

    With the pads on the right this is 0, 1, 2, ...; with the pads on the left it takes away the shift that
    they cause.

    Args:
        padding_mask: bool (..., n), True at pads.

    Returns:
        int64 array (..., n), as `posenc.sinusoidal_encoding` and the position_ids of Hugging Face take it.

    Raises:
        TypeError: padding_mask is not a bool array.

    >>> positions_from_mask(np.array([[True, True, False, False, False]]))
    array([[0, 0, 0, 1, 2]])
    """
    xp = check_mask("padding_mask", padding_mask, 1)
    real = xp.astype(xp.logical_not(padding_mask), xp.int64)
    return (_running_sum(real, xp) - 1) * real


def pack_sequences(
    sequences: Sequence[Array] | Array, *, length: int | None = None, value: Any = 0
) -> tuple[Array, Array]:
    """Several documents one after the other in one row, and the number of the document at each place.

    No place is spent on pads; `document_mask` keeps the documents apart, `document_positions` counts each
    from 0.

    Args:
        sequences: as in `pad_batch`, each with at least one token.
        length: length of the row, filled up with pads on the right; no pads if None.
        value: what the pads hold.

    Returns:
        The row, shape (length, ...), and its document numbers, int64 (length,): 0, 1, ..., −1 at pads.

    Raises:
        TypeError, ValueError: as in `pad_batch`; the documents together must not exceed length.

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
        lengths: how many tokens each document has, at least 1: a list or array with one axis. The 0 with
            which document numbers begin is refused here.
        n: length of the row; the sum of lengths, so no pads, if None, which torch.compile(fullgraph=True)
            cannot find out from a tensor.
        like: as in `key_padding_mask`.

    Returns:
        int64 array (n,).

    Raises:
        TypeError: lengths are not integers.
        ValueError: lengths have not one axis, one is below 1, or their sum is above n (unseen in a tensor
            while torch.compile traces).

    >>> document_ids([3, 2], 6)
    array([ 0,  0,  0,  1,  1, -1])
    """
    counts, numbers, xp = _as_counts(lengths, like, minimum=1)
    if counts.ndim != 1:
        raise ValueError(f"lengths must have one axis, got shape {tuple(counts.shape)}")
    if n is None:
        n = int(xp.sum(counts)) if numbers is None else sum(numbers)
    elif integer("n", n, minimum=0) < sum(numbers or []):
        raise ValueError(f"lengths must sum to at most n = {n}, got {sum(numbers or [])}")
    ends = _running_sum(counts, xp)
    u = xp.arange(n, dtype=xp.int64, device=counts.device)
    # How many documents have ended at a place is the number of the one that stands there.
    ids = xp.astype(xp.searchsorted(ends, u, side="right"), xp.int64)
    return xp.where(ids < counts.shape[0], ids, xp.full_like(ids, -1))


def document_positions(documents: Array) -> Array:
    """Positions that start anew with every document of a packed row.

    t = place − place of the first token of the same document; 0 at pads.

    Args:
        documents: integer (..., n), a number for each place, equal within a document, as `document_ids` or
            `pack_sequences` give them; negative at pads.

    Returns:
        int64 array (..., n).

    Raises:
        TypeError: documents are not integers.
        ValueError: a document is in pieces: its number comes back after another one (unseen while
            torch.compile traces).

    >>> document_positions(np.array([0, 0, 0, 1, 1, -1]))
    array([0, 1, 2, 0, 1, 0])
    """
    xp = check_documents(documents)
    # All rows in one line: every row begins with a start, so each place follows a start of its own row.
    run = _running_sum(xp.astype(xp.reshape(_starts(documents, xp), (-1,)), xp.int64), xp)
    # The first place of its run: no index into the starts, whose number torch.compile would have to know.
    first = xp.searchsorted(run, run)
    place = xp.arange(run.shape[0], dtype=xp.int64, device=documents.device)
    return xp.reshape(place - first, tuple(documents.shape)) * xp.astype(documents >= 0, xp.int64)


def check_side(side: str) -> None:
    if side not in ("right", "left"):
        raise ValueError(f'side must be "right" or "left", got {side!r}')


def check_mask(name: str, mask: Array, axes: int) -> Namespace:
    """The library of `mask`; TypeError unless it is a bool array, ValueError for fewer than `axes` axes."""
    xp = namespace(**{name: mask})
    if not xp.isdtype(mask.dtype, "bool"):
        raise TypeError(f"{name} must be a bool array, got dtype {mask.dtype}")
    if mask.ndim < axes:
        raise ValueError(f"{name} must have at least {axes} axes, got shape {tuple(mask.shape)}")
    return xp


def check_documents(documents: Array) -> Namespace:
    """The library of `documents`; errors unless they are integers and every document is in one piece."""
    xp = namespace(documents=documents)
    if not xp.isdtype(documents.dtype, "integral"):
        raise TypeError(f"documents must be an integer array, got dtype {documents.dtype}")
    if documents.ndim < 1:
        raise ValueError("documents must have at least 1 axis, got shape ()")
    if not _may_look(documents):
        return xp
    # Sorted, equal numbers stand together: then there are as many runs as there are different numbers.
    runs = xp.sum(xp.astype(_starts(documents, xp), xp.int64), axis=-1)
    kinds = xp.sum(xp.astype(_starts(xp.sort(documents, axis=-1), xp), xp.int64), axis=-1)
    if bool(xp.any(runs != kinds)):
        raise ValueError(
            "documents must be in one piece each: a number comes back after another one. "
            "Number the documents of a row 0, 1, 2, ... in order, and its pads -1"
        )
    return xp


def _starts(documents: Array, xp: Namespace) -> Array:
    """True at the first place of each run of equal numbers."""
    first = xp.ones_like(documents[..., :1], dtype=xp.bool)
    return xp.concat([first, documents[..., 1:] != documents[..., :-1]], axis=-1)


def _running_sum(x: Array, xp: Namespace) -> Array:
    # NumPy has the standard's name from 2.1 on.
    return np.cumsum(x, axis=-1) if xp is np else xp.cumulative_sum(x, axis=-1)


def _may_look(array: Array) -> bool:
    """Whether values may decide: not those of a tensor that torch traces."""
    return is_concrete(array) or not is_tensor(array)


def _as_counts(lengths: Any, like: Array | None, minimum: int) -> tuple[Array, list[int] | None, Namespace]:
    """Lengths as an int64 array, of their own library or that of `like`, and as numbers, if one may look."""
    shape: tuple[int, ...] = ()
    if isinstance(lengths, int | np.integer):
        numbers = [integer("lengths", lengths, minimum=minimum)]
    elif isinstance(lengths, list | tuple):
        numbers = [integer(f"lengths[{b}]", count, minimum=minimum) for b, count in enumerate(lengths)]
        shape = (len(numbers),)
    else:
        xp = namespace(lengths=lengths) if like is None else namespace(like=like, lengths=lengths)
        if not xp.isdtype(lengths.dtype, "integral"):
            raise TypeError(f"lengths must be integers, got dtype {lengths.dtype}")
        if lengths.ndim > 1:
            raise ValueError(
                f"lengths must be an integer or have one axis, a number of tokens for each sequence, "
                f"got shape {tuple(lengths.shape)}"
            )
        if not _may_look(lengths):
            return xp.astype(lengths, xp.int64), None, xp
        line = xp.reshape(lengths, (-1,))
        numbers = line.tolist() if hasattr(line, "tolist") else [int(count) for count in line]
        if min(numbers, default=minimum) < minimum:
            raise ValueError(f"lengths must be at least {minimum}, got {min(numbers)}")
        return xp.astype(lengths, xp.int64), numbers, xp
    xp = np if like is None else namespace(like=like)
    device = None if like is None else device_of(like)
    return xp.reshape(xp.asarray(numbers, dtype=xp.int64, device=device), shape), numbers, xp


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
    number = isinstance(value, int | float | np.integer | np.floating)
    if xp.isdtype(dtype, "bool"):
        fits = isinstance(value, bool | int | np.bool_) and value in (0, 1)
    elif xp.isdtype(dtype, "integral"):
        limits = xp.iinfo(dtype)
        fits = number and math.isfinite(value) and value == int(value) and limits.min <= value <= limits.max
    else:
        fits = number and (not math.isfinite(value) or abs(value) <= float(xp.finfo(dtype).max))
    if not fits:
        raise ValueError(f"value must be one that the dtype of the sequences, {dtype}, holds; got {value!r}")
    return xp.full((n, *like.shape[1:]), value, dtype=dtype, device=like.device)
