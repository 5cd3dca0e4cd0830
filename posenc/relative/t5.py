"""T5: a trained number for each bucket of offsets, near ones alone and far ones together.

Source: Raffel et al., T5 (2020), section 2.1. https://arxiv.org/abs/1910.10683
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from posenc._arrays import Array, ArrayLike, Namespace, OneArray, to_device_of
from posenc._checks import check_flag, integer, is_length
from posenc.relative.offsets import as_integers
from posenc.relative.tables import check_table, from_table

__all__ = ["t5_bias", "t5_bucket"]


def t5_bucket(
    offsets: int | ArrayLike, *, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
) -> Array:
    """The bucket of T5 that an offset falls into: near ones have one each, far ones share.

    With m = N/2 exact buckets out of N: d if d < m, else min(N − 1, m + ⌊ln(d/m) / ln(max_distance/m) ·
    (N − m)⌋), for the distance d.

    Bidirectional: N = num_buckets/2, d = |k|, and keys to the right (k > 0) get N more. Causal:
    N = num_buckets, d = −k, and all keys to the right are in bucket 0.

    Computed in integers: the bounds are those of the real logarithm, and no rounding can move them.

    Args:
        offsets: k = u − t, key less query: an array of integers of any shape, or an integer n, meaning
            0, 1, ..., n − 1.
        num_buckets: how many buckets; even and at least 4 if bidirectional, else at least 2.
        max_distance: the distance from which on all share the last bucket; above the number of exact buckets.
        bidirectional: whether keys on both sides are told apart, as in an encoder.

    Returns:
        int64 array of the shape of offsets, in 0..num_buckets−1.

    >>> t5_bucket(np.array([-200, -20, -3, 0, 3, 20, 200]))
    array([15, 10,  3,  0, 19, 26, 31])
    >>> t5_bucket(np.array([-200, -20, -3, 0, 3, 20, 200]), bidirectional=False)
    array([31, 17,  3,  0,  0,  0,  0])

    Source: Raffel et al. (2020), section 2.1, which describes it in words; the formula is that of their code.
    """
    if is_length(offsets):
        offsets = np.arange(integer("offsets", offsets, minimum=0))
    xp, k = as_integers("offsets", offsets)
    return _bucket_rule(num_buckets, max_distance, bidirectional)(k, xp)


def t5_bias(
    table: OneArray,
    query_positions: int | ArrayLike,
    key_positions: int | ArrayLike | None = None,
    *,
    max_distance: int = 128,
    num_buckets: int = 32,
    bidirectional: bool = True,
) -> Array:
    """The position bias of T5: a number for each bucket and head.

    B(t, u) = table[bucket(u − t)], with `t5_bucket`.

    T5 adds it to scores that are not divided by sqrt(d): pass scale=1.0 to `attention` with its checkpoints.

    Args:
        table: shape (num_buckets, heads), or (num_buckets,) for one head, floating: the weight that
            transformers calls relative_attention_bias.weight. Heads in the rows are an error, but where there
            are as many as buckets: then nothing tells.
        query_positions, key_positions: as in `relative_offsets`, but integers.
        max_distance, num_buckets, bidirectional: as in `t5_bucket`.

    Returns:
        Array (heads, n_q, n_k), as in `relative_bias`.

    >>> table = np.arange(8.0)
    >>> t5_bias(table, 4, num_buckets=8, max_distance=4)
    array([[0., 5., 6., 7.],
           [1., 0., 5., 6.],
           [2., 1., 0., 5.],
           [3., 2., 1., 0.]])
    >>> t5_bias(table, 1, 4, num_buckets=8, max_distance=4)
    array([[3., 2., 1., 0.]])

    Source: Raffel et al. (2020), section 2.1.
    """
    rows, xp = check_table(table)
    rule = _bucket_rule(num_buckets, max_distance, bidirectional)
    if rows != num_buckets:
        raise ValueError(
            f"table must have num_buckets = {num_buckets} rows and a column for each head, got shape "
            f"{tuple(table.shape)}"
        )
    return from_table(table, lambda k: rule(k, xp), query_positions, key_positions, xp)


def _bucket_rule(
    num_buckets: int, max_distance: int, bidirectional: bool
) -> Callable[[Array, Namespace], Array]:
    check_flag("bidirectional", bidirectional)
    num_buckets = integer("num_buckets", num_buckets, minimum=4 if bidirectional else 2)
    if bidirectional and num_buckets % 2:
        raise ValueError(f"num_buckets must be even if bidirectional (half a side), got {num_buckets}")
    side = num_buckets // 2 if bidirectional else num_buckets
    max_distance = integer("max_distance", max_distance, minimum=side // 2 + 1)
    if max_distance > 2**53:
        raise ValueError(f"max_distance must be at most 2**53, got {max_distance}")
    starts = np.asarray(_bucket_starts(side, max_distance))

    def bucket(k: Array, xp: Namespace) -> Array:
        distance = xp.clip(xp.abs(k) if bidirectional else -k, 0, None)
        # A search, and no table of all distances up to max_distance, however large it is.
        result = xp.searchsorted(to_device_of(starts, k, xp), distance, side="right") - 1
        return result + xp.astype(k > 0, xp.int64) * side if bidirectional else result

    return bucket


def _bucket_starts(buckets: int, max_distance: int) -> list[int]:
    """The least distance in each bucket: 0..m−1, then the least d with d/m ≥ (max_distance/m)^(j/l)."""
    exact = buckets // 2
    shared = buckets - exact
    starts = list(range(exact))
    for j in range(shared):
        # Raised to the power l it is a comparison of integers.
        bound = max_distance**j * exact ** (shared - j)
        d = math.floor(exact * (max_distance / exact) ** (j / shared))
        while d**shared >= bound:
            d -= 1
        while d**shared < bound:
            d += 1
        starts.append(d)
    return starts
