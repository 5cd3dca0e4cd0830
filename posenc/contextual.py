"""Positions that depend on the content: a forget gate, and contextual position encoding (CoPE).

Both count along the text, but tokens count differently. A forget gate gives token j the length −log f_j, the
same for all queries, and lowers the score of a key by the length between it and the query. In CoPE each query
counts the tokens that match it.

Sources: Lin, Nikishin, He, Courville: Forgetting Transformer: Softmax Attention with a Forget Gate (2025),
section 3. https://arxiv.org/abs/2503.02130
Golovneva, Wang, Weston, Sukhbaatar: Contextual Position Encoding: Learning to Count What's Important (2024),
section 4. https://arxiv.org/abs/2405.18719
"""

from __future__ import annotations

import math

import numpy as np

from posenc._arrays import (
    Array,
    ArrayT,
    DType,
    Namespace,
    OneArray,
    device_of,
    is_tensor,
    namespace,
    no_autocast,
    wide_dtype,
)
from posenc._checks import check_float_dtype, check_values, check_wide, floating, integer, length

__all__ = ["contextual_bias", "contextual_positions", "forget_bias", "forget_positions"]


def forget_positions(log_gates: ArrayT) -> ArrayT:
    """The position of each token, measured by how much its forget gates forget.

    p_t = −(log f_0 + log f_1 + ... + log f_t).

    The bias of a forget gate is ALiBi with slope 1 at these positions. To compute it without a bias use
    `posenc.alibi.add_alibi_columns(query, key, 1.0, forget_positions(log_gates))`.

    Args:
        log_gates: log f, floating, shape (..., n), finite and at most 0: gates f are above 0 and at most 1.

    Returns:
        float64 array (..., n).

    Raises:
        ValueError: a logarithm above 0, or minus infinity. Positions after a gate of 0 are not defined.

    >>> forget_positions(np.log([0.5, 0.5, 0.25, 1.0])) / np.log(2)
    array([1., 2., 4., 4.])

    Source: Lin et al. (2025), section 3, where −p_t is a cumulative sum of the logarithms.
    """
    xp = floating(log_gates=log_gates)
    if log_gates.ndim < 1:
        raise ValueError("log_gates must have shape (..., n), got ()")
    wanted = "finite and at most 0, the logarithm of a gate above 0 and at most 1"
    check_values("log_gates", log_gates, lambda x: (x <= 0) & xp.isfinite(x), wanted, xp)
    return _running_sum(0 - xp.astype(log_gates, xp.float64), xp)


def forget_bias(log_gates: OneArray, n_query: int | None = None, *, dtype: DType | None = None) -> Array:
    """The term that a forget gate adds to the attention scores, after they are scaled.

    B(t, u) = log f_{u+1} + ... + log f_t for u ≤ t, −inf for u > t. The key's own gate is not included. The
    term includes the causal mask.

    Constant gates, log f = −m, give −m · (t − u), which is `posenc.alibi_bias`.

    Args:
        log_gates: log f of all tokens so far, shape (..., heads, n), as in
            `posenc.contextual.forget_positions`.
        n_query: the queries are the last n_query tokens. 1 gives the row of a decoding step, bit for bit. All
            tokens if None.
        dtype: floating dtype of the result. That of log_gates if None.

    Returns:
        Array (..., heads, n_q, n). Summed in float64 and rounded once.

    Raises:
        ValueError: more queries than tokens.

    >>> forget_bias(np.array([-1.0, -1.0, -0.25, -1.0]))
    array([[ 0.  ,  -inf,  -inf,  -inf],
           [-1.  ,  0.  ,  -inf,  -inf],
           [-1.25, -0.25,  0.  ,  -inf],
           [-2.25, -1.25, -1.  ,  0.  ]])
    >>> from posenc import alibi_bias, alibi_slopes
    >>> constant = np.tile(-alibi_slopes(8)[:, None], 100)
    >>> bool((forget_bias(constant) == alibi_bias(alibi_slopes(8), 100)).all())
    True

    Source: Lin et al. (2025), section 3.
    """
    p = forget_positions(log_gates)
    xp = namespace(p)
    dtype = log_gates.dtype if dtype is None else check_float_dtype(dtype, xp)
    n_key = p.shape[-1]
    n_query = n_key if n_query is None else length("n_query", n_query)
    if n_query > n_key:
        raise ValueError(f"n_query must be at most the number of tokens in log_gates, {n_key}, got {n_query}")
    return hide_later(p[..., None, :] - p[..., n_key - n_query :, None], dtype, xp)


def contextual_positions(gates: ArrayT, *, max_position: int) -> ArrayT:
    """The distance of each key from its query, counted with the gates of the query.

    p_tu = min(g_tu + g_t,u+1 + ... + g_tt, max_position).

    If all gates are 1, this is t − u + 1.

    Args:
        gates: g, floating, from 0 to 1, shape (..., n_q, n_k): how much each key counts for each query. The
            queries are the last of the keys. In CoPE the sigmoid of the score. Gates of later keys are
            ignored.
        max_position: the largest position, at least 1. Larger sums are clipped to it.

    Returns:
        float64 array (..., n_q, n_k), with 0 for later keys.

    Raises:
        ValueError: a gate outside 0..1, or more queries than keys.

    >>> contextual_positions(np.array([[0.0, 1, 0, 0, 1, 0]]), max_position=3)
    array([[2., 2., 1., 1., 1., 0.]])
    >>> contextual_positions(np.ones((3, 3)), max_position=2)
    array([[1., 0., 0.],
           [2., 1., 0.],
           [2., 2., 1.]])

    Source: Golovneva et al. (2024), section 4.
    """
    xp = floating(gates=gates)
    if gates.ndim < 2 or gates.shape[-2] > gates.shape[-1]:
        raise ValueError(
            "gates must have shape (..., n_q, n_k), the queries the last of the keys: n_q at most n_k, got "
            f"{tuple(gates.shape)}"
        )
    check_values("gates", gates, lambda g: (g >= 0) & (g <= 1), "from 0 to 1", xp)
    most = integer("max_position", max_position, minimum=1)
    wide = xp.astype(gates, xp.float64)
    seen = xp.where(_later(gates, xp), xp.zeros_like(wide), wide)
    # From the query backwards, so that a longer past changes no sum: one row alone is that of the full pass.
    sums = xp.flip(_running_sum(xp.flip(seen, axis=-1), xp), axis=-1)
    return xp.clip(sums, None, float(most))


def contextual_bias(query: ArrayT, table: ArrayT, positions: OneArray) -> ArrayT:
    """The term that learned vectors of contextual positions add to the attention scores.

    b_tu = q_t · e(p_tu), with e(p) = (1 − r) e_z + r e_{z+1}, z = floor(p) and r = p − z.

    Args:
        query: floating, shape (..., n_q, d).
        table: e_0, e_1, ..., of the dtype of query, shape (rows, d), or (..., rows, d) with leading axes that
            are 1 or those of query.
        positions: float32 or float64, shape (..., n_q, n_k), from 0 to rows − 1, such as
            contextual_positions(gates, max_position=rows − 1).

    Returns:
        Array (..., n_q, n_k), of the dtype of query, computed in float32 at least.

    Raises:
        ValueError: shapes that do not fit, or a position beyond the last row of table.

    >>> table = np.array([[0.0], [10.0], [40.0]])
    >>> contextual_bias(np.array([[1.0]]), table, np.array([[0.5, 1.0, 1.5, 2.0]]))
    array([[ 5., 10., 25., 40.]])

    Source: Golovneva et al. (2024), section 4, which also interpolates q · e.
    """
    xp = floating(query=query, table=table)
    if query.ndim < 2 or table.ndim < 2 or table.shape[-1] != query.shape[-1] or table.shape[-2] == 0:
        raise ValueError(
            "query and table must have shapes (..., n_q, d) and (..., rows, d), got "
            f"{tuple(query.shape)} and {tuple(table.shape)}"
        )
    axes = tuple(table.shape[:-2])
    fitting = tuple(query.shape[query.ndim - table.ndim : -2]) if table.ndim <= query.ndim else ()
    if len(axes) != len(fitting) or any(a not in (1, b) for a, b in zip(axes, fitting, strict=True)):
        raise ValueError(
            f"table must have shape (rows, d), or leading axes that are 1 or those of query {tuple(query.shape)}, "
            f"got {tuple(table.shape)}"
        )
    check_wide("positions", floating(positions=positions), positions.dtype)
    namespace(query=query, positions=positions)
    if tuple(positions.shape[:-1]) != tuple(query.shape[:-1]):
        raise ValueError(
            f"positions must have shape (..., n_q, n_k) with the leading axes of query, "
            f"{tuple(query.shape[:-1])}, got {tuple(positions.shape)}"
        )
    last = table.shape[-2] - 1
    wanted = f"from 0 to {last}, the last row of table"
    check_values("positions", positions, lambda p: (p >= 0) & (p <= last), wanted, xp)
    wide = wide_dtype(xp, query)
    with no_autocast(query):
        by_row = xp.astype(query, wide) @ xp.matrix_transpose(xp.astype(table, wide))
    below = xp.floor(positions)
    part = xp.astype(positions - below, wide)
    row = xp.astype(below, xp.int64)
    # The row above, also for a whole number: there the slope towards it is what moves a gate.
    low, high = (_take_along(by_row, z, xp) for z in (row, xp.clip(row + 1, None, last)))
    return xp.astype((1 - part) * low + part * high, query.dtype)


def hide_later(bias: Array, dtype: DType, xp: Namespace) -> Array:
    """The bias in `dtype`, with −inf where a key comes after the query."""
    never = xp.asarray(-math.inf, dtype=dtype, device=device_of(bias))
    return xp.where(_later(bias, xp), never, xp.astype(bias, dtype))


def _running_sum(x: Array, xp: Namespace) -> Array:
    if is_tensor(x):
        return x.cumsum(-1)  # torch.compile cannot trace the other one
    # NumPy has the standard's name from 2.1 on.
    return np.cumsum(x, axis=-1) if xp is np else xp.cumulative_sum(x, axis=-1)


def _take_along(x: Array, index: Array, xp: Namespace) -> Array:
    return x.gather(-1, index) if is_tensor(x) else xp.take_along_axis(x, index, axis=-1)


def _later(scores: Array, xp: Namespace) -> Array:
    """True where a key comes after the query: bool (n_q, n_k) for scores (..., n_q, n_k)."""
    n_query, n_key = scores.shape[-2:]
    u = xp.arange(n_key, device=device_of(scores))
    return u > u[n_key - n_query :, None]
