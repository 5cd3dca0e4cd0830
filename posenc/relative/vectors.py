"""Relative position vectors: a trained vector for each clipped offset, added to keys and values.

Source: Shaw et al., Self-Attention with Relative Position Representations (2018).
https://arxiv.org/abs/1803.02155
"""

from __future__ import annotations

import math

from posenc._arrays import Array, ArrayLike, ArrayT, Namespace, is_tensor, wide_dtype
from posenc._checks import floating, number
from posenc.attention import dot_product_attention
from posenc.relative.offsets import check_whole, spread
from posenc.relative.tables import check_reach

__all__ = ["shaw_attention", "shaw_scores", "shaw_values"]


def shaw_scores(
    query: ArrayT,
    table: ArrayT,
    query_positions: int | ArrayLike | None = None,
    key_positions: int | ArrayLike | None = None,
) -> ArrayT:
    """The term that Shaw's key table adds to the scores, before they are scaled.

    S(t, u) = q_t · a_j, with j = clip(u − t, −K, K) + K.

    Args:
        query: shape (..., n_q, d), floating.
        table: shape (2K + 1, d), of the dtype of query. Row K is that of offset 0.
        query_positions, key_positions: as in `posenc.relative.relative_offsets`, but integers, and arrays
            have one axis. If None, query_positions is n_q, and key_positions equals query_positions.

    Returns:
        Array (..., n_q, n_k). The computation needs n_q · (2K + 1) further numbers, not n_q · n_k · d.

    Raises:
        TypeError: the arrays differ in library or dtype, or are not floating.
        ValueError: table is not of shape (2K + 1, d) with the width of query, or positions do not fit query.

    >>> import numpy as np
    >>> shaw_scores(np.eye(3), np.array([[1.0, 1, 1], [0, 0, 0], [5, 6, 7]]))
    array([[0., 5., 5.],
           [1., 0., 6.],
           [1., 1., 0.]])

    Source: Shaw et al. (2018), sections 3.1 to 3.3.
    """
    xp = floating(query=query, table=table)
    if query.ndim < 2 or table.ndim != 2 or table.shape[1] != query.shape[-1]:
        raise ValueError(
            "query must have shape (..., n_q, d) and table (2K + 1, d), "
            f"got {tuple(query.shape)} and {tuple(table.shape)}"
        )
    index = row_index(table.shape[0], query.shape[-2], query_positions, key_positions, query, xp)
    return take_along(query @ xp.matrix_transpose(table), index, xp)


def shaw_values(
    weights: ArrayT,
    table: ArrayT,
    query_positions: int | ArrayLike | None = None,
    key_positions: int | ArrayLike | None = None,
) -> ArrayT:
    """The term that Shaw's value table adds to the output of attention.

    z_t = Σ_u A(t, u) · a_j, with j = clip(u − t, −K, K) + K.

    Args:
        weights: attention weights, shape (..., n_q, n_k), floating.
        table: shape (2K + 1, d), of the dtype of weights.
        query_positions, key_positions: as in `posenc.relative.shaw_scores`. If both are None, n_q and n_k.

    Returns:
        Array (..., n_q, d).

    Raises:
        TypeError: the arrays differ in library or dtype, or are not floating.
        ValueError: table is not of shape (2K + 1, d), or weights do not fit the positions.

    >>> import numpy as np
    >>> shaw_values(np.full((2, 2), 0.5), np.array([[1.0, 0], [0, 0], [0, 8]]))
    array([[0. , 4. ],
           [0.5, 0. ]])

    Source: Shaw et al. (2018), equation 3.
    """
    xp = floating(weights=weights, table=table)
    if weights.ndim < 2 or table.ndim != 2:
        raise ValueError(
            f"weights must have shape (..., n_q, n_k) and table (2K + 1, d), "
            f"got {tuple(weights.shape)} and {tuple(table.shape)}"
        )
    if key_positions is None and query_positions is None:
        key_positions = weights.shape[-1]
    rows = table.shape[0]
    index = row_index(rows, weights.shape[-2], query_positions, key_positions, weights, xp)
    if tuple(index.shape) != tuple(weights.shape[-2:]):
        raise ValueError(
            f"weights must have shape (..., {index.shape[0]}, {index.shape[1]}) as the positions, "
            f"got {tuple(weights.shape)}"
        )
    return _sum_by_row(weights, index, rows, xp) @ table


def shaw_attention(
    query: ArrayT,
    key: ArrayT,
    value: ArrayT,
    key_table: Array,
    value_table: Array | None = None,
    *,
    mask: Array | None = None,
    scale: float | None = None,
    query_positions: int | ArrayLike | None = None,
    key_positions: int | ArrayLike | None = None,
) -> tuple[ArrayT, ArrayT]:
    """Attention with a vector for each clipped offset, added to the keys and optionally to the values.

    A = softmax(q_t · (k_u + a^K_j) · scale), output z_t = Σ_u A(t, u) · (v_u + a^V_j),
    j = clip(u − t, −K, K) + K.

    Args:
        query, key, value, mask, scale: as in `posenc.dot_product_attention`.
        key_table: shape (2K + 1, d), of the dtype of query, shared by all heads as in the paper.
        value_table: shape (2K + 1, d_v), or None to leave the values unchanged.
        query_positions, key_positions: as in `posenc.relative.shaw_scores`. If None, the queries are the last
            of the keys.

    Returns:
        output (..., n_q, d_v) and weights (..., n_q, n_k), in the dtype of query. float16 and bfloat16 are
        computed in float32 and rounded once.

    >>> import numpy as np
    >>> x = np.eye(3)
    >>> _, weights = shaw_attention(x, x, x, np.array([[1.0, 1, 1], [0, 0, 0], [1, 1, 1]]), scale=1.0)
    >>> weights.round(3)
    array([[0.333, 0.333, 0.333],
           [0.333, 0.333, 0.333],
           [0.333, 0.333, 0.333]])

    Source: Shaw et al. (2018), sections 3.1 to 3.3.
    """
    xp = floating(query=query, key=key, value=value, key_table=key_table)
    dtype = query.dtype
    wide = wide_dtype(xp, query)
    q, k, v, keys = (xp.astype(x, wide) for x in (query, key, value, key_table))
    if query_positions is None and key_positions is None and q.ndim >= 2 and k.ndim >= 2:
        query_positions, key_positions = q.shape[-2], k.shape[-2]
    bias = shaw_scores(q, keys, query_positions, key_positions)
    factor = 1 / math.sqrt(max(q.shape[-1], 1)) if scale is None else number("scale", scale)
    output, weights = dot_product_attention(q, k, v, bias=bias * factor, mask=mask, scale=scale)
    if value_table is not None:
        floating(query=query, value_table=value_table)
        table = xp.astype(value_table, wide)
        output = output + shaw_values(weights, table, query_positions, key_positions)
    return xp.astype(output, dtype), xp.astype(weights, dtype)


def row_index(
    rows: int,
    n_query: int,
    query_positions: int | ArrayLike | None,
    key_positions: int | ArrayLike | None,
    like: Array,
    xp: Namespace,
    name: str = "table",
) -> Array:
    """The row of the table for each query and key, shape (n_q, n_k)."""
    reach = check_reach(rows, name)

    def row(k: Array) -> Array:
        check_whole(k, xp)
        return (xp.clip(k, -reach, reach) + reach)[..., None]

    index = spread(row, n_query if query_positions is None else query_positions, key_positions, like, xp)
    if index.ndim != 3 or index.shape[1] != n_query:
        raise ValueError(
            f"query_positions must have one axis and one position for each of {n_query} queries, got offsets "
            f"of shape {tuple(index.shape[:-3] + index.shape[-2:])}"
        )
    return index[0, ...]


def take_along(by_row: Array, index: Array, xp: Namespace) -> Array:
    """by_row[..., t, index[t, u]]."""
    index = xp.broadcast_to(index, (*by_row.shape[:-2], *index.shape))
    if is_tensor(by_row):
        return by_row.gather(-1, index)
    return xp.take_along_axis(by_row, index, axis=-1)


def _sum_by_row(weights: Array, index: Array, rows: int, xp: Namespace) -> Array:
    """(..., n_q, rows): the weights of each query, summed by the row of the table that they belong to."""
    if is_tensor(weights):
        zero = weights.new_zeros((*weights.shape[:-1], rows))
        return zero.scatter_add(-1, xp.broadcast_to(index, tuple(weights.shape)), weights)
    # The standard cannot scatter: a pass over the weights for each row of the table.
    zero = xp.zeros_like(weights)
    return xp.stack([xp.sum(xp.where(index == j, weights, zero), axis=-1) for j in range(rows)], axis=-1)
