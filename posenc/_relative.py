"""What relative position biases share: places of queries and keys, values by offset in a matrix, checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from posenc._arrays import Array, DType, Namespace, device_of, is_tensor, namespace, wide_dtype
from posenc._checks import as_positions, check_finite, check_values, floating, integer, is_length

FIRE_WEIGHTS = ("hidden_weight", "hidden_bias", "head_weight", "head_bias")


# --- Positions


def lengths(query_positions: int | Array, key_positions: int | Array | None) -> tuple[int, int] | None:
    """n_q and n_k when both are integers, None when there are arrays of positions."""
    if not is_length(query_positions):
        return None
    n_query = integer("query_positions", query_positions, minimum=0)
    if key_positions is None:
        return n_query, n_query
    if not is_length(key_positions):
        raise TypeError(
            "query_positions must be an array where key_positions is one: an integer means the last of the "
            f"keys, got {query_positions!r}"
        )
    n_key = integer("key_positions", key_positions, minimum=0)
    if n_query > n_key:
        raise ValueError(
            "query_positions must be at most key_positions, for the queries are the last of the keys: got "
            f"{n_query} and {n_key}; pass arrays for anything else"
        )
    return n_query, n_key


def two_positions(
    query_positions: Array, key_positions: int | Array | None
) -> tuple[Namespace, Array, Array]:
    """Both as arrays of one library and of one leading shape: int64, or float64 if any position is real."""
    xp, t = _as_numbers("query_positions", query_positions)
    if key_positions is None:
        u = t
    elif is_length(key_positions):
        n_key = integer("key_positions", key_positions, minimum=0)
        u = xp.arange(n_key, dtype=t.dtype, device=device_of(t))
        u = xp.broadcast_to(u, (*t.shape[:-1], n_key))
    else:
        _, u = _as_numbers("key_positions", key_positions)
        xp = namespace(query_positions=t, key_positions=u)
    if t.ndim < 1 or u.ndim < 1 or t.shape[:-1] != u.shape[:-1]:
        raise ValueError(
            "query_positions and key_positions must have shapes (..., n_q) and (..., n_k) with the same "
            f"leading axes, got {tuple(t.shape)} and {tuple(u.shape)}"
        )
    if t.dtype != u.dtype:
        t, u = xp.astype(t, xp.float64), xp.astype(u, xp.float64)
    return xp, t, u


def _as_numbers(name: str, positions: Array) -> tuple[Namespace, Array]:
    """int64 for integers of any kind, so that offsets can be negative; else float64."""
    positions = np.asarray(positions) if isinstance(positions, (list, tuple)) else positions
    xp, real = as_positions(positions, name)
    integral = xp.isdtype(positions.dtype, "integral")
    return xp, xp.astype(positions, xp.int64) if integral else real


def as_integers(name: str, positions: Array) -> tuple[Namespace, Array]:
    """The positions in int64; TypeError if any is real."""
    xp, numbers = _as_numbers(name, positions)
    if not xp.isdtype(numbers.dtype, "integral"):
        raise TypeError(f"{name} must be integers, got dtype {numbers.dtype}")
    return xp, numbers


# --- From values by offset to a matrix


def toeplitz(values: Array, n_query: int, xp: Namespace) -> Array:
    """(..., n_q + n_k − 1) values of the offsets −(n_k − 1)..n_q − 1 as (..., n_q, n_k), n_q at least 1."""
    n_key = values.shape[-1] - n_query + 1
    # Each row is a window of the values, one further to the left than the row above it: one copy makes all.
    if xp is np:
        return np.lib.stride_tricks.sliding_window_view(values, n_key, axis=-1)[..., ::-1, :].copy()
    if is_tensor(values):
        # Contiguous before and after: else flip keeps whatever order of the axes it finds. as_strided, not
        # unfold, which torch.compile would build anew for every length.
        values = values.contiguous()
        windows = values.as_strided((*values.shape[:-1], n_query, n_key), (*values.stride(), 1))
        return windows.flip(-2).contiguous()
    device = device_of(values)
    start = xp.arange(n_query - 1, -1, -1, device=device)[:, None]
    index = xp.reshape(start + xp.arange(n_key, device=device), (-1,))
    return xp.reshape(xp.take(values, index, axis=-1), (*values.shape[:-1], n_query, n_key))


def spread(
    values: Callable[[Array], Array],
    query_positions: int | Array,
    key_positions: int | Array | None,
    like: Array,
    xp: Namespace,
) -> Array:
    """(..., heads, n_q, n_k) from `values`, which turns offsets (...) into numbers (..., heads).

    For lengths that is one number for each of n_q + n_k − 1 offsets; for arrays of positions one for each
    pair. The offsets are made on the device of `like`.
    """
    both = lengths(query_positions, key_positions)
    if both is not None:
        n_query, n_key = both
        if n_query == 0:
            none = values(xp.zeros((0,), dtype=xp.int64, device=device_of(like)))
            shape = (none.shape[-1], 0, n_key)
            return xp.empty(shape, dtype=none.dtype, device=device_of(none))
        k = xp.arange(1 - n_key, n_query, device=device_of(like))
        return toeplitz(xp.matrix_transpose(values(k)), n_query, xp)
    library, t, u = two_positions(query_positions, key_positions)
    if library is not xp:
        kind = type(query_positions).__name__
        raise TypeError(f"query_positions must be of the same library as the parameters, got {kind}")
    return heads_first(values(u[..., None, :] - t[..., :, None]), xp)


def heads_first(values: Array, xp: Namespace) -> Array:
    """(..., n_q, n_k, heads) as (..., heads, n_q, n_k)."""
    # Not moveaxis, which torch.vmap does not know.
    lead = range(values.ndim - 3)
    return xp.permute_dims(values, (*lead, values.ndim - 1, values.ndim - 3, values.ndim - 2))


def from_table(
    table: Array,
    row_of: Callable[[Array], Array],
    query_positions: int | Array,
    key_positions: int | Array | None,
    xp: Namespace,
) -> Array:
    """Rows of `table`, (rows, heads) or (rows,), by the row that `row_of` finds for an offset."""
    columns = table if table.ndim == 2 else table[:, None]

    def values(k: Array) -> Array:
        check_whole(k, xp)
        found = xp.take(columns, xp.reshape(row_of(k), (-1,)), axis=0)
        return xp.reshape(found, (*k.shape, columns.shape[1]))

    bias = spread(values, query_positions, key_positions, table, xp)
    return bias if table.ndim == 2 else bias[..., 0, :, :]


# --- Formulas with trained numbers, unchecked: a layer's are in range as it makes them so, and a look at them
# --- would make a GPU wait


def kerple(
    r1: Array,
    r2: Array,
    kind: str,
    dtype: DType,
    query_positions: int | Array,
    key_positions: int | Array | None,
    xp: Namespace,
) -> Array:
    """`posenc.kerple_bias` for r1 and r2 in float64, of shape (heads,) or ()."""

    def values(k: Array) -> Array:
        distance = xp.astype(xp.abs(k), xp.float64)[..., None]
        if kind == "log":
            return xp.astype(0 - r1 * xp.log1p(r2 * distance), dtype)
        # The exponent has no gradient at 0, where the bias is 0 whatever it is.
        here = distance == 0
        powers = xp.where(here, xp.ones_like(distance), distance) ** r2
        return xp.astype(xp.where(here, xp.zeros_like(powers), 0 - r1 * powers), dtype)

    bias = spread(values, query_positions, key_positions, r1, xp)
    return bias[..., 0, :, :] if r1.ndim == 0 else bias


def log_distance(
    c: Array,
    threshold: Array,
    query_positions: int | Array,
    key_positions: int | Array | None,
    xp: Namespace,
) -> Array:
    """`posenc.fire_distance` for c and threshold in float64, without axes."""

    def grown(k: Array) -> Array:
        return xp.log1p(c * xp.astype(xp.abs(k), xp.float64))[..., None]

    grid = spread(grown, query_positions, key_positions, c, xp)[..., 0, :, :]
    both = lengths(query_positions, key_positions)
    if both is not None:
        t = xp.arange(both[1] - both[0], both[1], dtype=xp.float64, device=device_of(c))
    else:
        t = xp.astype(two_positions(query_positions, key_positions)[1], xp.float64)
    return grid / xp.log1p(c * xp.maximum(t, threshold))[..., :, None]


def two_layers(x: Array, weights: Mapping[str, Array], xp: Namespace) -> Array:
    """The network of FIRE at each number of x: (..., n_q, n_k) to (..., heads, n_q, n_k).

    In float32 at least: float16 and bfloat16 could not tell far positions apart.
    """
    dtype = weights["hidden_weight"].dtype
    wide = wide_dtype(xp, weights["hidden_weight"])
    w1, b1, w2, b2 = (xp.astype(weights[name], wide) for name in FIRE_WEIGHTS)
    hidden = xp.clip(xp.astype(x, wide)[..., None] * w1 + b1, 0, None)
    return heads_first(xp.astype(hidden @ xp.matrix_transpose(w2) + b2, dtype), xp)


# --- Checks


def check_table(table: Array) -> tuple[int, Namespace]:
    """Its number of rows, and its library; an error unless it is floating, (rows, heads) or (rows,)."""
    xp = floating(table=table)
    if table.ndim not in (1, 2):
        raise ValueError(f"table must have shape (rows, heads) or (rows,), got {tuple(table.shape)}")
    return table.shape[0], xp


def check_reach(rows: int) -> int:
    """K, for a table with a row for each of the offsets −K..K."""
    if rows % 2 == 0:
        raise ValueError(f"table must have 2K + 1 rows, one for each offset -K..K, got {rows}")
    return rows // 2


def check_whole(offsets: Array, xp: Namespace) -> None:
    """TypeError for real offsets where a table is to be read."""
    if not xp.isdtype(offsets.dtype, "integral"):
        raise TypeError(
            "query_positions and key_positions must be integers: a table has nothing between its rows; got "
            f"offsets of dtype {offsets.dtype}"
        )


def check_between(name: str, array: Array, most: float, xp: Namespace) -> None:
    """ValueError unless all are above 0 and at most `most`, where values may be looked at."""
    check_finite(name, array, xp)
    bound = f"above 0 and at most {most:g}" if math.isfinite(most) else "above 0"
    check_values(name, array, lambda x: (x > 0) & (x <= most), bound, xp)
