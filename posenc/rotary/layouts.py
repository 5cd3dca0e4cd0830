"""Layouts: which two numbers of a vector make a pair, and weights reordered from one layout to the other.

"interleaved" takes neighbours (0, 1), (2, 3), ...; "half" takes (0, dim/2), (1, dim/2 + 1), ... Both are in use. They
are the same operation on differently ordered columns, and a model trained with one gives wrong results with the
other until its columns are reordered.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from posenc._arrays import Array, ArrayT, Namespace, namespace, to_device_of
from posenc._checks import check_even_dim, integer

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
        x, axis, head_dim, rotary_dim: as in `posenc.rotary.interleaved_to_half`.

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


Layout = Literal["interleaved", "half"]


def to_complex(x: Array, layout: Layout, torch: Namespace) -> Array:
    """Pairs as complex numbers, (..., m): for interleaved ones a view wherever torch can make one."""
    if layout == "half":
        return torch.complex(*split(x, layout))
    try:
        if torch.is_inference_mode_enabled():  # a shorter way, which derivatives would not pass
            return x.view(torch.complex64 if x.dtype == torch.float32 else torch.complex128)
        return torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    except RuntimeError:  # an odd stride or start, or gaps between neighbours
        return torch.view_as_complex(x.unflatten(-1, (-1, 2)).clone(memory_format=torch.contiguous_format))


def from_complex(z: Array, layout: Layout, torch: Namespace) -> Array:
    """The inverse of `to_complex`."""
    if layout == "half":
        return torch.view_as_real(z).transpose(-1, -2).flatten(-2)
    if torch.is_inference_mode_enabled():
        return z.view(torch.float32 if z.dtype == torch.complex64 else torch.float64)
    return torch.view_as_real(z).flatten(-2)


def split(x: Array, layout: Layout) -> tuple[Array, Array]:
    """The first and the second number of every pair, both (..., m)."""
    m = x.shape[-1] // 2
    return (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else (x[..., :m], x[..., m:])


def join(first: Array, second: Array, layout: Layout, xp: Namespace) -> Array:
    """The inverse of `split`."""
    if layout == "half":
        return xp.concat([first, second], axis=-1)
    return xp.reshape(xp.stack([first, second], axis=-1), (*first.shape[:-1], 2 * first.shape[-1]))


def check_layout(layout: Any) -> Layout:
    """`layout`, or ValueError."""
    if layout not in ("interleaved", "half"):
        raise ValueError(f'layout must be "interleaved" or "half", got {layout!r}')
    return layout


def check_rotary_dim(rotary_dim: Any, dim: int) -> int:
    """How many numbers of a vector of width dim are turned."""
    if rotary_dim is None:
        return check_even_dim(dim, "the width of x")
    turned = check_even_dim(rotary_dim, "rotary_dim")
    if turned > dim:
        raise ValueError(f"rotary_dim must be at most the width of x, {dim}, got {turned}")
    return turned
