"""Scaled dot-product attention, with everything it computes in sight."""

from __future__ import annotations

import math
from numbers import Real

from posenc._arrays import Array, Namespace, namespace

__all__ = ["attention"]


def attention(
    query: Array,
    key: Array,
    value: Array,
    *,
    bias: Array | None = None,
    mask: Array | None = None,
    scale: float | None = None,
) -> tuple[Array, Array]:
    """Attention output and attention weights.

    weights = softmax(query keyᵀ · scale + bias) over the keys that `mask` leaves; output = weights value.

    float16 and bfloat16 input is computed in float32 and rounded once.

    Args:
        query: shape (..., n_q, d), floating.
        key: shape (..., n_k, d).
        value: shape (..., n_k, d_v).
        bias: added to the scores after scaling; shape (n_q, n_k), or as many axes as the scores, each of
            full length or 1; floating, rounded to the dtype that the scores are computed in. −inf forbids
            a key.
        mask: bool, True where a query must NOT see a key (as in torch.nn.MultiheadAttention, opposite to
            torch.nn.functional.scaled_dot_product_attention); shapes as for bias. A key-padding mask
            (batch, n_k) is passed as mask[:, None, :].
        scale: factor on the scores, a finite number; 1/sqrt(d) if None. What differs between heads or is
            learned is multiplied onto query.

    Returns:
        output, shape (..., n_q, d_v), and weights, shape (..., n_q, n_k). Every row of weights sums to 1,
        except that a query without any key gets weights 0 and output 0, never NaN.

    Raises:
        TypeError: arrays of different libraries, query, key and value of different dtypes or not floating,
            a bias that is not floating, a mask that is not bool, or a scale that is not a number.
        ValueError: shapes that do not fit, or a scale that is not finite; the message names the argument.

    >>> import numpy as np
    >>> x = np.eye(2)
    >>> output, weights = attention(x, x, x)
    >>> weights.round(3)
    array([[0.67, 0.33],
           [0.33, 0.67]])

    Source: Vaswani et al. (2017), section 3.2.1.
    """
    xp = namespace(query, key, value)
    _check_inputs(query, key, value, xp)
    _check_scale(scale)
    dtype = query.dtype
    wide = xp.float32 if xp.finfo(dtype).bits < 32 else dtype
    q, k, v = (xp.astype(x, wide) for x in (query, key, value))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = (q @ xp.matrix_transpose(k)) * factor
    if bias is not None:
        _check_like_scores("bias", bias, scores, xp)
        scores = scores + xp.astype(bias, wide)
    if mask is not None:
        _check_like_scores("mask", mask, scores, xp)
        scores = xp.where(mask, xp.asarray(-math.inf, dtype=wide, device=scores.device), scores)
    weights = _softmax(scores, xp)
    return xp.astype(weights @ v, dtype), xp.astype(weights, dtype)


def _softmax(scores: Array, xp: Namespace) -> Array:
    """Softmax over the last axis; a row of −inf only gives zeros."""
    if scores.shape[-1] == 0:
        return scores
    top = xp.max(scores, axis=-1, keepdims=True)
    top = xp.where(xp.isinf(top) & (top < 0), xp.zeros_like(top), top)
    exp = xp.exp(scores - top)
    total = xp.sum(exp, axis=-1, keepdims=True)
    return exp / xp.where(total == 0, xp.ones_like(total), total)


def _check_inputs(query: Array, key: Array, value: Array, xp: Namespace) -> None:
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not xp.isdtype(x.dtype, "real floating"):
            raise TypeError(f"{name} must be floating, got dtype {x.dtype}")
        if x.dtype != query.dtype:
            raise TypeError(f"{name} must have the dtype of query, {query.dtype}, got {x.dtype}")
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


def _check_scale(scale: float | None) -> None:
    if scale is None:
        return
    if isinstance(scale, bool) or not isinstance(scale, Real):
        raise TypeError(f"scale must be a real number or None, got {scale!r} of type {type(scale).__name__}")
    if not math.isfinite(scale):
        raise ValueError(f"scale must be finite, got {scale!r}")


def _check_like_scores(name: str, x: Array, scores: Array, xp: Namespace) -> None:
    if namespace(x) is not xp:
        raise TypeError(f"{name} must be an array of the same library as query, got {type(x).__name__}")
    wanted = "bool" if name == "mask" else "real floating"
    if not xp.isdtype(x.dtype, wanted):
        raise TypeError(f"{name} must be {wanted}, got dtype {x.dtype}")
    full = tuple(scores.shape)
    shape = tuple(x.shape)
    # Two axes are (n_q, n_k) and nothing else: a key-padding mask (batch, n_k) must not slip through.
    fits = shape == full[-2:] or (
        len(shape) == len(full) > 2 and all(a in (1, b) for a, b in zip(shape, full, strict=True))
    )
    if not fits:
        raise ValueError(
            f"{name} must have shape {full[-2:]} or {len(full)} axes that are 1 or those of the scores "
            f"{full}, got {shape}"
        )
