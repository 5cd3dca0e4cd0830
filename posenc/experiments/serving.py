"""A model as it runs: two layers of causal attention with RoPE and a cache whose positions are written down.

Nothing is trained: the weights are random and the same every time, and all is float64, so what should be equal is
equal up to rounding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from posenc import apply_rotary, dot_product_attention

__all__ = ["KeyValueCache", "cached_pass", "largest_error"]

WIDTH = 16
# Of each of two layers: the matrices of queries, keys, values and of the output.
WEIGHTS = np.random.default_rng(1).normal(size=(2, 4, WIDTH, WIDTH)) / 4


class KeyValueCache(NamedTuple):
    """Keys and values of both layers, and the position of each slot.

    Attributes:
        keys: float64 (2, ..., slots, 16), turned by their positions.
        values: float64 (2, ..., slots, 16).
        positions: integers (..., slots); −1 where a slot holds nothing that may be seen.

    Source: written for this book, serving.md#static.
    """

    keys: np.ndarray
    values: np.ndarray
    positions: np.ndarray

    @classmethod
    def empty(cls, slots: int, *batch: int) -> KeyValueCache:
        """A cache of slots that hold nothing.

        >>> KeyValueCache.empty(3).positions
        array([-1, -1, -1])
        """
        shape = 2, *batch, slots, WIDTH
        return cls(np.zeros(shape), np.zeros(shape), np.full(shape[1:-1], -1))

    def at(self, slots: Any) -> KeyValueCache:
        """The cache of these slots alone, given as a slice or as integers.

        >>> KeyValueCache.empty(30).at([0, 1, 5]).positions.shape
        (3,)
        """
        return KeyValueCache(self.keys[..., slots, :], self.values[..., slots, :], self.positions[..., slots])

    def moved(self, positions: Any) -> KeyValueCache:
        """The same keys at other positions (..., slots), each turned on by the difference: R(new − old) R(old) k.

        >>> cache = cached_pass(np.ones((3, 16)), np.arange(3))[1]
        >>> there = cached_pass(np.ones((3, 16)), np.arange(100, 103))[1]
        >>> largest_error(cache.moved([100, 101, 102]).keys, there.keys)
        0.0
        """
        positions = np.broadcast_to(positions, self.positions.shape)
        keys = apply_rotary(self.keys, (positions - self.positions)[None])
        return self._replace(keys=keys, positions=positions)

    def put(self, slots: Any, new: KeyValueCache) -> None:
        """Overwrites these slots, as many as `new` has."""
        self.keys[..., slots, :], self.values[..., slots, :], self.positions[..., slots] = new


def cached_pass(
    x: np.ndarray,
    positions: np.ndarray,
    cache: KeyValueCache | None = None,
    *,
    hidden: np.ndarray | None = None,
    window: int | None = None,
    rotary: bool = True,
) -> tuple[np.ndarray, KeyValueCache]:
    """Outputs of new tokens, and the cache with their keys and values behind those that it had.

    In each layer x becomes x + W_o · attention(R(t) W_q x, R(u) W_k x, W_v x). Who sees whom is decided by positions
    and not by slots: t sees u if 0 ≤ u ≤ t, and with a window if also u > t − window.

    Args:
        x: float64 (..., n, 16), the vectors of new tokens.
        positions: integers (n,) or (..., n), their positions; −1 for pads, which nobody sees.
        cache: what was computed before. None for nothing.
        hidden: bool (..., n, slots + n), True where a query must not see a key, if positions alone do not tell.
        window: how many positions a query sees, its own among them. All if None.
        rotary: whether queries and keys are turned. If not, positions only decide who sees whom.

    Returns:
        The outputs, of the shape of x, and the longer cache.

    Raises:
        ValueError: hidden and a window are both given.

    >>> x = np.random.default_rng(0).normal(size=(5, 16))
    >>> full, _ = cached_pass(x, np.arange(5))
    >>> _, cache = cached_pass(x[:4], np.arange(4))
    >>> last, _ = cached_pass(x[4:], np.array([4]), cache)
    >>> bool(np.allclose(last, full[4:], atol=1e-14))
    True

    Source: written for this book, serving.md#prefill.
    """
    if hidden is not None and window is not None:
        raise ValueError("hidden must hold the window, too: give either hidden or window, got both")
    batch = x.shape[:-2]
    cache = KeyValueCache.empty(0, *batch) if cache is None else cache
    t = np.broadcast_to(positions, x.shape[:-1])
    u = np.concatenate([cache.positions, t], axis=-1)
    if hidden is None:
        back = t[..., :, None] - u[..., None, :]
        hidden = (back < 0) | (u < 0)[..., None, :]
        if window is not None:
            hidden |= back >= window
    all_keys, all_values = [], []
    for (w_q, w_k, w_v, w_o), old_keys, old_values in zip(WEIGHTS, cache.keys, cache.values, strict=True):
        q, k = x @ w_q, x @ w_k
        if rotary:
            q, k = apply_rotary(q, t), apply_rotary(k, t)
        keys = np.concatenate([old_keys, k], axis=-2)
        values = np.concatenate([old_values, x @ w_v], axis=-2)
        attended, _ = dot_product_attention(q, keys, values, mask=hidden)
        x = x + attended @ w_o
        all_keys.append(keys)
        all_values.append(values)
    return x, KeyValueCache(np.stack(all_keys), np.stack(all_values), u)


def largest_error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference of two arrays to two digits, and 0 if it is below 1e-12, which is rounding.

    Args:
        found, wanted: arrays of one shape, float64.

    Returns:
        A number of at least 0.

    >>> largest_error(np.array([1.0, 2.0]), np.array([1.0, 2.5])), largest_error(np.ones(2), np.ones(2) + 1e-15)
    (0.5, 0.0)

    Source: a measure of this book, used in serving.md#prefill.
    """
    largest = float(np.abs(found - wanted).max())
    return 0.0 if largest < 1e-12 else float(f"{largest:.2g}")
