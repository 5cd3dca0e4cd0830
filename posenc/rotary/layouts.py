"""Convert activations and weights from one layout of RoPE to the other. See `posenc.rotary` for the layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

from posenc._arrays import Array, ArrayT, namespace, to_device_of
from posenc._checks import integer
from posenc.rotary._turn import check_rotary_dim

__all__ = ["half_to_interleaved", "interleaved_to_half"]


def interleaved_to_half(
    x: ArrayT, *, axis: int = -1, head_dim: int | None = None, rotary_dim: int | None = None
) -> ArrayT:
    """Queries or keys, or the weights that produce them, reordered from interleaved to half layout.

    Takes the columns 0, 2, 4, ..., 1, 3, 5, ... of each head. Then
    apply_rotary(interleaved_to_half(x), t, layout="half") == interleaved_to_half(apply_rotary(x, t)).

    To convert a trained model, reorder the rows of its query and key projections, their biases, and the
    weights of any norm that follows them. The value and output projections stay as they are: dot products do
    not depend on the order of columns as long as queries and keys share it.

    Args:
        x: activations, shape (..., dim) or (..., heads · head_dim); or the weight of a torch.nn.Linear, shape
            (heads · head_dim, inputs), with axis=0; or its bias, shape (heads · head_dim,).
        axis: the axis that holds the columns of the heads.
        head_dim: width of one head. If None, the axis holds one head.
        rotary_dim: RoPE rotates the first rotary_dim numbers of each head; the rest stay in place. All if None.

    Returns:
        Array of the shape and dtype of x.

    >>> interleaved_to_half(np.arange(8))
    array([0, 2, 4, 6, 1, 3, 5, 7])
    >>> interleaved_to_half(np.arange(8), head_dim=4)
    array([0, 2, 1, 3, 4, 6, 5, 7])

    Source: derived in this book, layouts.md#convert.
    """
    return _reorder(x, axis, head_dim, rotary_dim, to_half=True)


def half_to_interleaved(
    x: ArrayT, *, axis: int = -1, head_dim: int | None = None, rotary_dim: int | None = None
) -> ArrayT:
    """Queries or keys, or the weights that produce them, reordered from half to interleaved layout.

    The inverse of `posenc.rotary.interleaved_to_half`. Takes the columns 0, m, 1, m + 1, ... of each head, m =
    rotary_dim/2.

    Args:
        x, axis, head_dim, rotary_dim: as in `posenc.rotary.interleaved_to_half`.

    Returns:
        Array of the shape and dtype of x.

    >>> half_to_interleaved(np.arange(8))
    array([0, 4, 1, 5, 2, 6, 3, 7])

    Source: derived in this book, layouts.md#convert.
    """
    return _reorder(x, axis, head_dim, rotary_dim, to_half=False)


def _reorder(x: Array, axis: Any, head_dim: Any, rotary_dim: Any, *, to_half: bool) -> Array:
    xp = namespace(x=x)
    axis = integer("axis", axis, minimum=-x.ndim)
    if axis >= x.ndim:
        raise ValueError(f"axis must lie in {-x.ndim}..{x.ndim - 1}, got {axis}")
    length = x.shape[axis]
    head = length if head_dim is None else integer("head_dim", head_dim, minimum=2)
    if head == 0 or length % head:
        raise ValueError(f"head_dim must divide the length of axis {axis}, {length}, got {head}")
    turned = check_rotary_dim(rotary_dim, head)
    order = np.arange(head)
    if to_half:
        order[:turned] = np.concatenate([order[0:turned:2], order[1:turned:2]])
    else:
        order[:turned] = order[:turned].reshape(2, -1).T.ravel()
    indices = (np.arange(0, length, head)[:, None] + order).ravel()
    return xp.take(x, to_device_of(indices, x, xp), axis=axis % x.ndim)
