"""Measures of what a model can know about the order of its input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence

from posenc._arrays import Array, namespace

__all__ = ["equivariance_error", "invariance_error", "same_bag"]


def same_bag(first: Iterable[Hashable], second: Iterable[Hashable]) -> bool:
    """Whether two sequences hold the same items equally often, whatever their order.

    >>> same_bag("我爱你", "你爱我")
    True
    >>> same_bag("abb", "aab")
    False
    """
    return Counter(first) == Counter(second)


def equivariance_error(f: Callable[[Array], Array], x: Array, permutation: Sequence[int]) -> float:
    """How far f is from permutation equivariance at x: the largest difference between f(x[π]) and f(x)[π].

    0 (to rounding) means: reordering the input only reorders the output.

    Args:
        f: maps (n, d) to (n, d').
        x: input, shape (n, d).
        permutation: the numbers 0..n-1 in their new order; row j of x[π] is row π[j] of x.

    Returns:
        max |f(x[π]) − f(x)[π]| as a float.

    Raises:
        ValueError: permutation is not one of 0..n-1, or f does not give one row per input row.

    >>> import numpy as np
    >>> equivariance_error(lambda x: x - x.mean(axis=0), np.eye(3), [2, 0, 1])
    0.0

    Source: Lee et al., Set Transformer (2019), property 1. https://arxiv.org/abs/1810.00825
    """
    order = _check_permutation(permutation, x)
    straight = f(x)
    if straight.ndim < 1 or straight.shape[0] != x.shape[0]:
        raise ValueError(f"f must give one row per row of x, {x.shape[0]}, got shape {tuple(straight.shape)}")
    return _largest_difference(f(x[order]), straight[order])


def invariance_error(f: Callable[[Array], Array], x: Array, permutation: Sequence[int]) -> float:
    """How far f is from permutation invariance at x: the largest difference between f(x[π]) and f(x).

    0 (to rounding) means: f cannot see the order at all.

    Args, raises: as in `equivariance_error`, but f may give any shape.

    >>> import numpy as np
    >>> invariance_error(lambda x: x.sum(axis=0), np.eye(3), [2, 0, 1])
    0.0
    """
    return _largest_difference(f(x[_check_permutation(permutation, x)]), f(x))


def _check_permutation(permutation: Sequence[int], x: Array) -> list[int]:
    order = [int(j) for j in permutation]
    if sorted(order) != list(range(x.shape[0])):
        raise ValueError(f"permutation must hold each of 0..{x.shape[0] - 1} once, got {order}")
    return order


def _largest_difference(first: Array, second: Array) -> float:
    xp = namespace(first, second)
    return float(xp.max(xp.abs(first - second)))
