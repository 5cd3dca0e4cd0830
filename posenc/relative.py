"""Relative position biases: the score of a query and a key gets a term that their offset decides.

The offset is k = u − t, position u of the key less position t of the query: a key to the left has k < 0.

Sources: Raffel et al., T5 (2020), section 2.1, https://arxiv.org/abs/1910.10683; Chi et al., KERPLE (2022),
https://arxiv.org/abs/2205.09921; Li et al., FIRE (2024), https://arxiv.org/abs/2310.04418. Shaw's vectors are
in `posenc.relative_vectors`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from posenc._arrays import Array, Namespace, device_of, is_array, namespace, to_device_of
from posenc._checks import floating, integer, is_length, number
from posenc._relative import (
    FIRE_WEIGHTS,
    as_integers,
    check_between,
    check_reach,
    check_table,
    from_table,
    kerple,
    lengths,
    log_distance,
    toeplitz,
    two_layers,
    two_positions,
)

__all__ = [
    "fire_bias",
    "fire_distance",
    "kerple_bias",
    "relative_bias",
    "relative_offsets",
    "t5_bias",
    "t5_bucket",
    "toeplitz_bias",
]

KerpleKind = Literal["log", "power"]


# --- Offsets, and a matrix that depends on nothing else


def relative_offsets(query_positions: int | Array, key_positions: int | Array | None = None) -> Array:
    """The offset of every key from every query.

    k = u − t, for query position t (row) and key position u (column).

    Args:
        query_positions: an integer n_q: the last n_q of the key positions, as in decoding, where one new
            query meets all keys so far. Or an array (..., n_q) of integer or real positions.
        key_positions: an integer n_k, meaning 0, 1, ..., n_k − 1, or an array (..., n_k) with the leading
            axes of query_positions. If None, the query positions.

    Returns:
        Array (..., n_q, n_k): integers, or float64 if any position is real. NumPy for integers, else of the
        library and on the device of query_positions.

    Raises:
        ValueError: n_q above n_k; arrays of positions may be anything.

    >>> relative_offsets(3)
    array([[ 0,  1,  2],
           [-1,  0,  1],
           [-2, -1,  0]])
    >>> relative_offsets(1, 3)
    array([[-2, -1,  0]])
    """
    both = lengths(query_positions, key_positions)
    if both is not None:
        n_query, n_key = both
        return np.arange(n_key) - np.arange(n_key - n_query, n_key)[:, None]
    _, t, u = two_positions(query_positions, key_positions)
    return u[..., None, :] - t[..., :, None]


def toeplitz_bias(values: Array, n_query: int) -> Array:
    """The matrix whose entry depends on the offset alone: one value for each of its n_q + n_k − 1 diagonals.

    B(t, u) = values(u − t).

    Args:
        values: shape (..., n_q + n_k − 1): the values of the offsets −(n_k − 1), ..., n_q − 1, in this order.
        n_query: number of query positions n_q, which are the last of the n_k key positions.

    Returns:
        Array (..., n_q, n_k) of the library and dtype of values. No matrix of indices is made on the way.

    Raises:
        ValueError: fewer than 2 · n_q − 1 values, for n_q must not be above n_k.

    >>> toeplitz_bias(np.array([-2, -1, 0, 1, 2]), 3)
    array([[ 0,  1,  2],
           [-1,  0,  1],
           [-2, -1,  0]])
    """
    n_query = integer("n_query", n_query, minimum=0)
    xp = namespace(values=values)
    if values.ndim < 1 or values.shape[-1] < max(2 * n_query - 1, 0):
        raise ValueError(
            f"values must have shape (..., n_q + n_k - 1) with n_k >= n_q = {n_query}, "
            f"got {tuple(values.shape)}"
        )
    if n_query == 0:
        shape = (*values.shape[:-1], 0, values.shape[-1] + 1)
        return xp.empty(shape, dtype=values.dtype, device=device_of(values))
    return toeplitz(values, n_query, xp)


def relative_bias(
    table: Array, query_positions: int | Array, key_positions: int | Array | None = None
) -> Array:
    """A bias read from a table with one row for each offset from −K to K; offsets beyond count as ±K.

    B(t, u) = table[clip(u − t, −K, K) + K].

    Args:
        table: shape (2K + 1, heads), or (2K + 1,) for one head, floating. Row K is that of offset 0.
        query_positions, key_positions: as in `relative_offsets`, but integers.

    Returns:
        Array (heads, n_q, n_k), or (..., heads, n_q, n_k) for positions with leading axes; without the axis
        of heads if table has none. Of the library, dtype and device of table.

    Raises:
        TypeError: real positions: a table has nothing between its rows.

    >>> relative_bias(np.array([-1.0, -0.5, 0.0, 0.5, 1.0]), 4)
    array([[ 0. ,  0.5,  1. ,  1. ],
           [-0.5,  0. ,  0.5,  1. ],
           [-1. , -0.5,  0. ,  0.5],
           [-1. , -1. , -0.5,  0. ]])

    Source: the clipping is that of Shaw et al. (2018), section 3.2, here for a number instead of a vector.
    """
    rows, xp = check_table(table)
    reach = check_reach(rows)
    return from_table(table, lambda k: xp.clip(k, -reach, reach) + reach, query_positions, key_positions, xp)


# --- T5: buckets


def t5_bucket(
    offsets: int | Array, *, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True
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


def _bucket_rule(
    num_buckets: int, max_distance: int, bidirectional: bool
) -> Callable[[Array, Namespace], Array]:
    if not isinstance(bidirectional, bool):
        raise TypeError(f"bidirectional must be True or False, got {bidirectional!r}")
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


def t5_bias(
    table: Array,
    query_positions: int | Array,
    key_positions: int | Array | None = None,
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


# --- Formulas with a few trained numbers: KERPLE and FIRE


def kerple_bias(
    r1: float | Array,
    r2: float | Array,
    query_positions: int | Array,
    key_positions: int | Array | None = None,
    *,
    kind: KerpleKind = "log",
) -> Array:
    """The bias of KERPLE: minus a kernel of the distance, with two trained numbers a head.

    B(t, u) = −r1 · ln(1 + r2 · |u − t|) for kind "log", −r1 · |u − t|^r2 for kind "power".

    "power" with r2 = 1 is the bias of ALiBi with slope r1.

    Args:
        r1: above 0: a number, or an array (heads,), floating.
        r2: the same, above 0; for "power" at most 2. With an array r1 an array of its shape and dtype.
        query_positions, key_positions: as in `relative_offsets`.
        kind: "log" or "power".

    Returns:
        Array (heads, n_q, n_k), or (..., heads, n_q, n_k) for positions with leading axes; without the axis
        of heads for numbers r1 and r2. Computed in float64, rounded once to the dtype of r1.

    >>> kerple_bias(2.0, 1.0, 1, 4).round(3)
    array([[-2.773, -2.197, -1.386,  0.   ]])
    >>> kerple_bias(0.5, 1.0, 1, 4, kind="power")
    array([[-1.5, -1. , -0.5,  0. ]])

    Source: Chi et al. (2022), section 4, equations 5 and 6.
    """
    if kind not in get_args(KerpleKind):
        raise ValueError(f'kind must be "log" or "power", got {kind!r}')
    p, a = _parameter("r1", r1), _parameter("r2", r2)
    xp = floating(r1=p, r2=a)
    if p.shape != a.shape or p.ndim > 1:
        raise ValueError(
            f"r1 and r2 must be numbers or both of shape (heads,), got {tuple(p.shape)} and {tuple(a.shape)}"
        )
    check_between("r1", p, math.inf, xp)
    check_between("r2", a, 2.0 if kind == "power" else math.inf, xp)
    wide_p, wide_a = xp.astype(p, xp.float64), xp.astype(a, xp.float64)
    return kerple(wide_p, wide_a, kind, p.dtype, query_positions, key_positions, xp)


def _parameter(name: str, value: float | Array) -> Array:
    return value if is_array(value) else np.asarray(number(name, value))


def fire_distance(
    query_positions: int | Array,
    key_positions: int | Array | None = None,
    *,
    c: float | Array = 0.1,
    threshold: float | Array = 512.0,
) -> Array:
    """The distance that FIRE lets its network see: a logarithm, as a share of that of the query's position.

    x(t, u) = ln(1 + c · |u − t|) / ln(1 + c · max(t, threshold)).

    Between 0 and 1 for keys at 0..t, however large t is. Up to t = threshold it depends on the offset alone;
    further on it depends on t too.

    Args:
        query_positions, key_positions: as in `relative_offsets`; query positions not below 0.
        c: above 0: how soon the logarithm bends. A number or an array without axes.
        threshold: above 0, in positions. The same.

    Returns:
        float64 array (..., n_q, n_k), of the library of c and threshold if they are arrays, else of the
        positions.

    >>> fire_distance(1, 4, c=1.0, threshold=3.0).round(3)
    array([[1.   , 0.792, 0.5  , 0.   ]])

    Source: Li et al. (2024), section 3.1, equation 5; their code adds 1e-6 to the denominator.
    """
    given = [x for x in (c, threshold) if is_array(x)]
    if given:
        xp, like = namespace(*given), given[0]
    elif lengths(query_positions, key_positions) is not None:
        xp, like = np, np.empty(0)
    else:
        xp, like, _ = two_positions(query_positions, key_positions)
    bend, limit = (_above_zero(name, x, like, xp) for name, x in (("c", c), ("threshold", threshold)))
    return log_distance(bend, limit, query_positions, key_positions, xp)


def _above_zero(name: str, x: float | Array, like: Array, xp: Namespace) -> Array:
    """One number above 0 as a float64 array without axes, on the device of `like`."""
    array = _parameter(name, x)
    if array is not x:
        array = to_device_of(array, like, xp)
    floating(**{name: array})
    if array.ndim:
        raise ValueError(f"{name} must be one number, got shape {tuple(array.shape)}")
    check_between(name, array, math.inf, xp)
    return xp.astype(array, xp.float64)


def fire_bias(
    hidden_weight: Array,
    hidden_bias: Array,
    head_weight: Array,
    head_bias: Array,
    query_positions: int | Array,
    key_positions: int | Array | None = None,
    *,
    c: float | Array = 0.1,
    threshold: float | Array = 512.0,
) -> Array:
    """The bias of FIRE: a small network that looks at `fire_distance`.

    B_h(t, u) = b_h + Σ_j W_hj · max(0, w_j · x(t, u) + v_j).

    Args:
        hidden_weight, hidden_bias: w and v, shape (width,), floating.
        head_weight: W, shape (heads, width). head_bias: b, shape (heads,).
        query_positions, key_positions, c, threshold: as in `fire_distance`.

    Returns:
        Array (heads, n_q, n_k), or (..., heads, n_q, n_k) for positions with leading axes, of the dtype of
        hidden_weight, computed in float32 at least. On the way there are n_q · n_k · width numbers, as the
        network looks at every pair.

    >>> one = np.ones(1)
    >>> fire_bias(one, 0 * one, -one[None], one, 1, 4, c=1.0, threshold=3.0).round(3)
    array([[[0.   , 0.208, 0.5  , 1.   ]]])

    Source: Li et al. (2024), section 3.1.
    """
    given = (hidden_weight, hidden_bias, head_weight, head_bias)
    weights = dict(zip(FIRE_WEIGHTS, given, strict=True))
    xp = floating(**weights)
    width, heads = hidden_weight.shape[:1], head_weight.shape[:1]
    wanted = {"hidden_weight": width, "hidden_bias": width, "head_weight": heads + width, "head_bias": heads}
    for name, array in weights.items():
        if tuple(array.shape) != tuple(wanted[name]) or not array.shape:
            raise ValueError(f"{name} must have shape {tuple(wanted[name])}, got {tuple(array.shape)}")
    bend, limit = (
        _above_zero(name, x, hidden_weight, xp) for name, x in (("c", c), ("threshold", threshold))
    )
    x = log_distance(bend, limit, query_positions, key_positions, xp)
    return two_layers(x, weights, xp)
