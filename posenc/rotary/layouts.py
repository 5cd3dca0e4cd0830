"""Layouts: which two numbers of a vector make a pair, and weights reordered from one layout to the other.

"interleaved" takes neighbours (0, 1), (2, 3), ...; "half" takes (0, dim/2), (1, dim/2 + 1), ... Both are in use. They
are the same operation on differently ordered columns, and a model trained with one gives wrong results with the
other until its columns are reordered.
"""

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
    """The same queries or keys, or the weights that make them, reordered from interleaved to half layout.

    Columns 0, 2, 4, ..., 1, 3, 5, ... of each head, so that
    apply_rotary(interleaved_to_half(x), t, layout="half") == interleaved_to_half(apply_rotary(x, t)).

    Dot products do not see the order of columns as long as queries and keys share it. So a trained model is
    converted by reordering the rows of its query and key projections (and their biases, and the weights of
    any norm that follows them); values and output projection stay as they are.

    Args:
        x: activations, shape (..., dim) or (..., heads · head_dim); or the weight of a torch.nn.Linear, shape
            (heads · head_dim, inputs), with axis=0; or its bias, shape (heads · head_dim,).
        axis: the axis that holds the columns of the heads.
        head_dim: width of one head, when the axis holds several; all of it if None.
        rotary_dim: how many numbers of each head are turned, the first ones; all if None. The rest stay.

    Returns:
        Array of the shape and dtype of x.

    >>> interleaved_to_half(np.arange(8))
    array([0, 2, 4, 6, 1, 3, 5, 7])
    >>> interleaved_to_half(np.arange(8), head_dim=4)
    array([0, 2, 1, 3, 4, 6, 5, 7])
    """
    return _reorder(x, axis, head_dim, rotary_dim, to_half=True)


def half_to_interleaved(
    x: ArrayT, *, axis: int = -1, head_dim: int | None = None, rotary_dim: int | None = None
) -> ArrayT:
    """The same queries or keys, or the weights that make them, reordered from half to interleaved layout.

    The inverse of `interleaved_to_half`: columns 0, m, 1, m + 1, ... of each head, m = rotary_dim/2.

    Args:
        x, axis, head_dim, rotary_dim: as in `posenc.interleaved_to_half`.

    Returns:
        Array of the shape and dtype of x.

    >>> half_to_interleaved(np.arange(8))
    array([0, 4, 1, 5, 2, 6, 3, 7])
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
