"""Position codes and token embeddings combined: by addition, or by concatenation.

Source: Vaswani et al., Attention Is All You Need (2017), sections 3.4 and 3.5. https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

import math

from posenc._arrays import Array, ArrayT, Namespace, OneArray, namespace, wide_dtype
from posenc._checks import check_flag, floating

__all__ = ["add_positions", "concat_positions"]


def add_positions(x: ArrayT, pe: OneArray, *, scale: bool = False) -> ArrayT:
    """Token embeddings plus position codes, the input of a Transformer.

    x + pe, or with `scale` sqrt(dim) · x + pe.

    Args:
        x: embeddings, shape (seq, dim) or (batch, seq, dim), floating.
        pe: codes, shape (seq, dim) for all sequences of a batch, or the shape of x.
        scale: multiply the embeddings by sqrt(dim) first, as in the original paper. This suits embeddings
            that are initialised with variance 1/dim, not those with variance 1.

    Returns:
        Array of the shape and dtype of x. The sum is computed in the wider of the two dtypes, in float32 at
        least, and rounded once.

    Raises:
        TypeError: x and pe are not floating, or of different libraries.
        ValueError: pe has neither the shape of x nor that of one of its sequences.

    >>> import numpy as np
    >>> add_positions(np.array([[1.0, 3.0], [1.0, 3.0]]), np.array([[2.0, 1.0], [1.0, 3.0]]))
    array([[3., 4.],
           [2., 6.]])

    Source: Vaswani et al. (2017), sections 3.4 (the factor) and 3.5 (the sum).
    """
    xp = _check(x, pe)
    check_flag("scale", scale)
    if tuple(pe.shape) not in (tuple(x.shape), tuple(x.shape[-2:])):
        raise ValueError(
            f"pe must have shape {_either(x.shape, x.shape[-1])} to be added to x, got {tuple(pe.shape)}"
        )
    wide = wide_dtype(xp, x, pe)
    embeddings = xp.astype(x, wide)
    if scale:
        embeddings = embeddings * math.sqrt(x.shape[-1])
    return xp.astype(embeddings + xp.astype(pe, wide), x.dtype)


def concat_positions(x: ArrayT, pe: OneArray) -> ArrayT:
    """Token embeddings and position codes side by side.

    [x; pe]. A linear layer gives [x; pe] [W_x; W_p] = x W_x + pe W_p. With W_x = W_p = W this is (x + pe) W:
    addition is concatenation with tied weights.

    Args:
        x: embeddings, shape (seq, dim) or (batch, seq, dim), floating.
        pe: codes, shape (seq, d_p) for all sequences of a batch, or (batch, seq, d_p), with any width d_p.

    Returns:
        Array (seq, dim + d_p) or (batch, seq, dim + d_p) of the dtype of x. The codes are rounded to it.

    Raises:
        TypeError: x and pe are not floating, or of different libraries.
        ValueError: pe has not as many rows as x, or not its batch.

    >>> import numpy as np
    >>> concat_positions(np.array([[1.0, 3.0]]), np.array([[2.0, 1.0]]))
    array([[1., 3., 2., 1.]])

    Source: defined in this book, addition.md#concatenation.
    """
    xp = _check(x, pe)
    if tuple(pe.shape[:-1]) not in (tuple(x.shape[:-1]), tuple(x.shape[-2:-1])):
        raise ValueError(
            f"pe must have shape {_either(x.shape, 'd_p')} to stand beside x, got {tuple(pe.shape)}"
        )
    codes = xp.broadcast_to(xp.astype(pe, x.dtype), (*x.shape[:-1], pe.shape[-1]))
    return xp.concat([x, codes], axis=-1)


def _check(x: Array, pe: Array) -> Namespace:
    xp = namespace(x=x, pe=pe)
    floating(x=x)
    floating(pe=pe)
    if x.ndim not in (2, 3):
        raise ValueError(f"x must have shape (seq, dim) or (batch, seq, dim), got {tuple(x.shape)}")
    return xp


def _either(shape: tuple[int, ...], width: int | str) -> str:
    """The shapes that codes for embeddings of this shape may have, as text."""
    leading = [", ".join(str(n) for n in part) for part in (shape[-2:-1], shape[:-1])]
    return " or ".join(dict.fromkeys(f"({part}, {width})" for part in leading))
