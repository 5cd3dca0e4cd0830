"""Scaled dot-product attention that returns its weights."""

from __future__ import annotations

import math

from posenc._arrays import Array, ArrayT, Namespace, OneArray, namespace, no_autocast, same_shape, wide_dtype
from posenc._checks import floating, number

__all__ = ["dot_product_attention"]


def dot_product_attention(
    query: ArrayT,
    key: OneArray,
    value: OneArray,
    *,
    bias: OneArray | None = None,
    mask: OneArray | None = None,
    key_padding_mask: OneArray | None = None,
    scale: float | None = None,
) -> tuple[ArrayT, ArrayT]:
    """Attention output and attention weights.

    weights = softmax(query keyᵀ · scale + bias) over the keys that the masks allow. output = weights value.

    float16 and bfloat16 input is computed in float32 and rounded once. torch.autocast has no effect.

    Args:
        query: shape (..., n_q, d), floating.
        key: shape (..., n_k, d).
        value: shape (..., n_k, d_v).
        bias: floating, added to the scores after scaling. Shape (n_q, n_k), or as many axes as the scores,
            each of full length or 1. −inf forbids a key.
        mask: bool, True where a query must NOT see a key, as in torch.nn.MultiheadAttention and opposite to
            torch.nn.functional.scaled_dot_product_attention. Shapes as for bias. Two axes always mean (n_q,
            n_k): pass a padding mask (batch, n_k) as key_padding_mask.
        key_padding_mask: bool, True at pads, which no query sees. Shape (batch, n_k), where batch is the
            first axis of query, or (n_k,) for a query (n_q, d).
        scale: factor on the scores, a finite number. 1/sqrt(d) if None. Multiply a scale that is learned or
            differs between heads onto query instead.

    Returns:
        output, shape (..., n_q, d_v), and weights, shape (..., n_q, n_k). Every row of weights sums to 1. A
        query without any key gets weights 0 and output 0. For other queries a NaN or infinity among the
        values reaches the output even from a forbidden key, as in torch, because 0 · NaN is NaN.

    Raises:
        TypeError: arrays of different libraries or dtypes, a bias that is not floating, a mask that is not
            bool.
        ValueError: shapes that do not fit. The message names the argument.

    >>> import numpy as np
    >>> x = np.eye(2)
    >>> output, weights = dot_product_attention(x, x, x)
    >>> weights.round(3)
    array([[0.67, 0.33],
           [0.33, 0.67]])

    Source: Vaswani et al. (2017), section 3.2.1.
    """
    output, weights, _ = attend(query, key, value, bias, mask, key_padding_mask, scale)
    xp = namespace(query=query)
    return xp.astype(output, query.dtype), xp.astype(weights, query.dtype)


def attend(
    query: Array,
    key: Array,
    value: Array,
    bias: Array | None,
    mask: Array | None,
    key_padding_mask: Array | None,
    scale: float | None,
) -> tuple[Array, Array, Array]:
    """`dot_product_attention` before it is rounded, and the log-sum-exp of each row, (..., n_q, 1).

    With the log-sum-exp the results for several blocks of keys can be combined. It is −inf for a query
    without keys.
    """
    xp = floating(query=query, key=key, value=value)
    check_shapes(query, key, value)
    wide = wide_dtype(xp, query)
    q, k, v = (xp.astype(x, wide) for x in (query, key, value))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else number("scale", scale)
    with no_autocast(q):
        scores = (q @ xp.matrix_transpose(k)) * factor
    if bias is not None:
        _check_like_scores("bias", bias, scores, xp)
        scores = scores + xp.astype(bias, wide)
    if mask is not None:
        _check_like_scores("mask", mask, scores, xp)
        scores = _forbid(scores, mask, xp)
    if key_padding_mask is not None:
        scores = _forbid(scores, _over_queries(key_padding_mask, scores, xp), xp)
    weights, empty, total = _softmax(scores, xp)
    with no_autocast(q):
        output = weights @ v
    # 0 · NaN is NaN: weights of 0 alone would not keep what the values hold from a query without keys.
    output = xp.where(empty, xp.zeros_like(output), output)
    return output, weights, total


def check_shapes(query: Array, key: Array, value: Array) -> None:
    """ValueError unless the shapes fit each other as in `dot_product_attention`."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim < 2:
            raise ValueError(f"{name} must have shape (..., length, width), got {tuple(x.shape)}")
        if x.shape[:-2] != query.shape[:-2]:
            raise ValueError(
                f"{name} must have the leading axes of query, {tuple(query.shape[:-2])}, "
                f"got {tuple(x.shape[:-2])}"
            )
    if key.shape[-1] != query.shape[-1] or query.shape[-1] == 0:
        raise ValueError(
            f"key must have the width of query, at least 1: got {key.shape[-1]} and {query.shape[-1]}"
        )
    if value.shape[-2] != key.shape[-2]:
        raise ValueError(f"value must have one row per key: got {value.shape[-2]} rows, {key.shape[-2]} keys")


def _forbid(scores: Array, mask: Array, xp: Namespace) -> Array:
    return xp.where(mask, xp.asarray(-math.inf, dtype=scores.dtype, device=scores.device), scores)


def _softmax(scores: Array, xp: Namespace) -> tuple[Array, Array, Array]:
    """Softmax over the last axis, 0 in rows of −inf only; which rows these are; log-sum-exp (..., n_q, 1)."""
    if scores.shape[-1] == 0:
        shape, device = (*scores.shape[:-1], 1), scores.device
        never = xp.full(shape, -math.inf, dtype=scores.dtype, device=device)
        return scores, xp.ones(shape, dtype=xp.bool, device=device), never
    top = xp.max(scores, axis=-1, keepdims=True)
    empty = top == -math.inf
    top = xp.where(empty, xp.zeros_like(top), top)
    exp = xp.exp(scores - top)
    total = xp.sum(exp, axis=-1, keepdims=True)
    total = xp.where(empty, xp.ones_like(total), total)
    return exp / total, empty, xp.where(empty, xp.full_like(top, -math.inf), top + xp.log(total))


def _check_like_scores(name: str, x: Array, scores: Array, xp: Namespace) -> None:
    namespace(query=scores, **{name: x})
    wanted = "bool" if name == "mask" else "real floating"
    if not xp.isdtype(x.dtype, wanted):
        raise TypeError(f"{name} must be {wanted}, got dtype {x.dtype}")
    full = tuple(scores.shape)
    shape = tuple(x.shape)
    # Two axes are (n_q, n_k) and nothing else: a key-padding mask (batch, n_k) must not slip through.
    fits = same_shape(shape, full[-2:]) or (
        len(shape) == len(full) > 2 and all(a in (1, b) for a, b in zip(shape, full, strict=True))
    )
    if not fits:
        hint = ". What marks pads goes into key_padding_mask" if name == "mask" else ""
        raise ValueError(
            f"{name} must have shape {full[-2:]} or {len(full)} axes that are 1 or those of the scores "
            f"{full}, got {shape}{hint}"
        )


def _over_queries(key_padding_mask: Array, scores: Array, xp: Namespace) -> Array:
    """The padding mask with axes of 1 for the heads and the queries."""
    namespace(query=scores, key_padding_mask=key_padding_mask)
    if not xp.isdtype(key_padding_mask.dtype, "bool"):
        raise TypeError(f"key_padding_mask must be bool, got dtype {key_padding_mask.dtype}")
    wanted = (*scores.shape[:-2][:1], scores.shape[-1])
    if tuple(key_padding_mask.shape) != wanted:
        raise ValueError(f"key_padding_mask must have shape {wanted}, got {tuple(key_padding_mask.shape)}")
    between = (1,) * (scores.ndim - len(wanted))
    return xp.reshape(key_padding_mask, (*wanted[:-1], *between, wanted[-1]))
