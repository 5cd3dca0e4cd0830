"""Measures of what a model can know about the order of its input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from posenc._arrays import Array, Namespace, is_array, namespace
from posenc._checks import integer

__all__ = ["equivariance_error", "invariance_error", "same_bag"]


def same_bag(first: Iterable[Hashable], second: Iterable[Hashable]) -> bool:
    """Whether two sequences contain the same items equally often, in any order.

    Args:
        first, second: items that can be hashed, such as a string or a list of tokens. Or token ids as an
            array of one axis.

    Returns:
        True or False.

    Raises:
        TypeError: an item that cannot be hashed.

    >>> same_bag("我爱你", "你爱我")
    True
    >>> same_bag("abb", "aab")
    False

    Source: defined in this book, order.md#same-words.
    """
    return _count("first", first) == _count("second", second)


def equivariance_error(f: Callable[[Array], Array], x: Array, permutation: Sequence[int]) -> float:
    """The largest difference between f(x[π]) and f(x)[π]. It is 0 if f is permutation equivariant.

    max |f(x[π]) − f(x)[π]|. At 0, to rounding, reordering the input only reorders the output.

    Args:
        f: maps (n, d) to (n, d').
        x: input, shape (n, d).
        permutation: the numbers 0..n−1 in their new order. Row j of x[π] is row π[j] of x.

    Returns:
        The difference as a float.

    Raises:
        ValueError: f does not give one row for each row of x.

    >>> import numpy as np
    >>> equivariance_error(lambda x: x - x.mean(axis=0), np.eye(3), [2, 0, 1])
    0.0

    Source: Lee et al., Set Transformer (2019), property 1. https://arxiv.org/abs/1810.00825
    """
    order = _check_permutation(permutation, x)
    moved = x[order]  # before f sees x, which it might write to
    straight = f(x)
    _check_result(straight)
    if straight.ndim < 1 or straight.shape[0] != x.shape[0]:
        raise ValueError(f"f must give one row per row of x, {x.shape[0]}, got shape {tuple(straight.shape)}")
    return _largest_difference(f(moved), straight[order])


def invariance_error(f: Callable[[Array], Array], x: Array, permutation: Sequence[int]) -> float:
    """The largest difference between f(x[π]) and f(x). It is 0 if f is permutation invariant.

    max |f(x[π]) − f(x)|. At 0, to rounding, f does not depend on the order.

    Args:
        f, x, permutation: as in `posenc.order.equivariance_error`. f may give any shape.

    Returns:
        A number of at least 0.

    >>> import numpy as np
    >>> invariance_error(lambda x: x.sum(axis=0), np.eye(3), [2, 0, 1])
    0.0

    Source: Zaheer et al., Deep Sets (2017), section 2, whose definition this measures. https://arxiv.org/abs/1703.06114
    """
    return _largest_difference(f(x[_check_permutation(permutation, x)]), f(x))


def _count(name: str, items: Iterable[Hashable]) -> Counter[Hashable]:
    # A tensor's own items are tensors, and two of those are never the same item.
    listed: Any = items
    if hasattr(listed, "tolist"):
        listed = listed.tolist()
    try:
        return Counter(iter(listed))
    except TypeError:
        raise TypeError(f"{name} must be a sequence of items that can be hashed, got {items!r}") from None


def _check_permutation(permutation: Sequence[int], x: Array) -> list[int]:
    if not is_array(x):
        raise TypeError(f"x must be an array, got {type(x).__name__}")
    if x.ndim < 1:
        raise ValueError(f"x must have shape (n, d), got {tuple(x.shape)}")
    order = [integer("each of permutation", j, minimum=-(2**63)) for j in permutation]
    if sorted(order) != list(range(x.shape[0])):
        raise ValueError(f"permutation must hold each of 0..{x.shape[0] - 1} once, got {order}")
    return order


def _check_result(result: Array) -> None:
    if not is_array(result):
        raise TypeError(f"f must give an array, got {type(result).__name__}")


def _largest_difference(first: Array, second: Array) -> float:
    for result in (first, second):
        _check_result(result)
    if first.shape != second.shape:
        raise ValueError(
            f"f must give results of one shape for x and x[π], got {tuple(second.shape)} and "
            f"{tuple(first.shape)}"
        )
    xp = namespace(first, second)
    first, second = (_subtractable(result, xp) for result in (first, second))
    if 0 in first.shape:
        return 0.0
    return float(xp.max(xp.abs(first - second)))


def _subtractable(result: Array, xp: Namespace) -> Array:
    """Without a gradient, and not in integers: unsigned ones wrap around, bools have no difference."""
    if hasattr(result, "detach"):
        result = result.detach()
    return xp.astype(result, xp.float64) if xp.isdtype(result.dtype, ("bool", "integral")) else result
