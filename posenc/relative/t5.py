"""T5: a trained number for each bucket of offsets. Near offsets have their own buckets, far offsets share them.

Source: Raffel et al., T5 (2020), section 2.1. https://arxiv.org/abs/1910.10683
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from posenc._arrays import Array, ArrayLike, Namespace, OneArray, is_traced, to_device_of
from posenc._checks import check_flag, integer, is_length
from posenc.relative.offsets import as_integers
from posenc.relative.tables import check_table, from_table

__all__ = ["t5_bias", "t5_bucket"]


def t5_bucket(
    offsets: int | ArrayLike, *, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
) -> Array:
    """The bucket of T5 for an offset. Near offsets have a bucket each, far offsets share buckets.

    With m = N/2 exact buckets out of N, the bucket of distance d is d if d < m, else
    min(N − 1, m + ⌊ln(d/m) / ln(max_distance/m) · (N − m)⌋).

    Bidirectional: N = num_buckets/2, d = |k|, and N is added for keys to the right (k > 0). Causal: N =
    num_buckets, d = −k, and all keys to the right are in bucket 0.

    The bounds are computed in integers, so they are exact.

    Args:
        offsets: k = u − t, key minus query, an array of integers of any shape, or an integer n for
            0, 1, ..., n − 1.
        num_buckets: number of buckets, even and at least 4 if bidirectional, else at least 2.
        max_distance: all distances from here on share the last bucket. Above the number of exact buckets.
        bidirectional: True gives keys to the right their own buckets, as in an encoder.

    Returns:
        int64 array of the shape of offsets, in 0..num_buckets−1.

    >>> t5_bucket(np.array([-200, -20, -3, 0, 3, 20, 200]))
    array([15, 10,  3,  0, 19, 26, 31])
    >>> t5_bucket(np.array([-200, -20, -3, 0, 3, 20, 200]), bidirectional=False)
    array([31, 17,  3,  0,  0,  0,  0])

    Source: Raffel et al. (2020), section 2.1, in words. The formula is that of their code.
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

    B(t, u) = table[bucket(u − t)], with the bucket of `posenc.relative.t5_bucket`.

    T5 does not divide scores by sqrt(d). With its checkpoints pass scale=1.0 to `posenc.dot_product_attention`.

    Args:
        table: shape (num_buckets, heads), or (num_buckets,) for one head, floating. In transformers it is
            relative_attention_bias.weight.
        query_positions, key_positions: as in `posenc.relative.relative_offsets`, but integers.
        max_distance, num_buckets, bidirectional: as in `posenc.relative.t5_bucket`.

    Raises:
        ValueError: a table without num_buckets rows. A transposed table is noticed only if the two
            numbers differ.

    Returns:
        Array (heads, n_q, n_k), as in `posenc.relative_bias`.

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
        raise ValueError(
            f"num_buckets must be even if bidirectional, half of them for each side, got {num_buckets}"
        )
    side = num_buckets // 2 if bidirectional else num_buckets
    max_distance = integer("max_distance", max_distance, minimum=side // 2 + 1)
    if max_distance > 2**53:
        raise ValueError(f"max_distance must be at most 2**53, got {max_distance}")
    starts = np.asarray(_bucket_starts(side, max_distance))

    def bucket(k: Array, xp: Namespace) -> Array:
        distance = xp.clip(xp.abs(k) if bidirectional else -k, 0, None)
        bounds = to_device_of(starts, k, xp)
        if is_traced():  # a trace may become ONNX, which has no search
            result = xp.sum(xp.astype(distance[..., None] >= bounds, xp.int64), axis=-1) - 1
        else:  # no table of all distances up to max_distance, however large it is
            result = xp.searchsorted(bounds, distance, side="right") - 1
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
