"""A trained number for each offset, added to the scores.

Source: Shaw, Uszkoreit, Vaswani: Self-Attention with Relative Position Representations (2018), section 3.2.
https://arxiv.org/abs/1803.02155
"""

from __future__ import annotations

from collections.abc import Callable

from posenc._arrays import Array, ArrayLike, Namespace, OneArray
from posenc._checks import floating
from posenc.relative.offsets import check_whole, spread

__all__ = ["relative_bias"]


def relative_bias(
    table: OneArray, query_positions: int | ArrayLike, key_positions: int | ArrayLike | None = None
) -> Array:
    """A bias from a table with one row for each offset from −K to K. Offsets beyond ±K are set to ±K.

    B(t, u) = table[clip(u − t, −K, K) + K].

    Args:
        table: shape (2K + 1, heads), or (2K + 1,) for one head, floating. Row K is that of offset 0.
        query_positions, key_positions: as in `posenc.relative.relative_offsets`, but integers.

    Returns:
        Array (heads, n_q, n_k), or (..., heads, n_q, n_k) for positions with leading axes. Without the axis of
        heads if table has none. Of the library, dtype and device of table.

    Raises:
        TypeError: real positions. The table has no values between its rows.

    >>> import numpy as np
    >>> relative_bias(np.array([-1.0, -0.5, 0.0, 0.5, 1.0]), 4)
    array([[ 0. ,  0.5,  1. ,  1. ],
           [-0.5,  0. ,  0.5,  1. ],
           [-1. , -0.5,  0. ,  0.5],
           [-1. , -1. , -0.5,  0. ]])

    Source: Shaw et al. (2018), section 3.2, with a number instead of a vector.
    """
    rows, xp = check_table(table)
    reach = check_reach(rows)
    return from_table(table, lambda k: xp.clip(k, -reach, reach) + reach, query_positions, key_positions, xp)


def from_table(
    table: Array,
    row_of: Callable[[Array], Array],
    query_positions: int | ArrayLike,
    key_positions: int | ArrayLike | None,
    xp: Namespace,
) -> Array:
    """The bias from `table`, (rows, heads) or (rows,). `row_of` maps offsets to rows."""
    columns = table if table.ndim == 2 else table[:, None]

    def values(k: Array) -> Array:
        check_whole(k, xp)
        found = xp.take(columns, xp.reshape(row_of(k), (-1,)), axis=0)
        return xp.reshape(found, (*k.shape, columns.shape[1]))

    bias = spread(values, query_positions, key_positions, table, xp)
    return bias if table.ndim == 2 else bias[..., 0, :, :]


def check_table(table: Array) -> tuple[int, Namespace]:
    """The number of rows and the library. An error unless it is floating, (rows, heads) or (rows,)."""
    xp = floating(table=table)
    if table.ndim not in (1, 2):
        raise ValueError(f"table must have shape (rows, heads) or (rows,), got {tuple(table.shape)}")
    return table.shape[0], xp


def check_reach(rows: int, name: str = "table") -> int:
    """K, for a table with a row for each of the offsets −K..K."""
    if rows % 2 == 0:
        raise ValueError(f"{name} must have 2K + 1 rows, one for each offset from -K to K, got {rows}")
    return rows // 2
