"""Attention with linear biases (ALiBi): a penalty on scores that grows linearly with the distance of the key.

s(t, u) = q_t · k_u / sqrt(d) − m_h · (t − u) for keys u ≤ t, with a fixed slope m_h > 0 for head h. Nothing is
added to the embeddings, and nothing is trained.

Source: Press, Smith, Lewis: Train Short, Test Long: Attention with Linear Biases Enables Input Length
Extrapolation (2022), section 3. https://arxiv.org/abs/2108.12409
"""

from __future__ import annotations

import math
from typing import overload

import numpy as np

from posenc._arrays import (
    Array,
    ArrayLike,
    ArrayT,
    DType,
    Namespace,
    OneArray,
    attention_dtype,
    is_array,
    namespace,
    no_autocast,
    to_device_of,
)
from posenc._checks import (
    check_finite,
    check_flag,
    check_float_dtype,
    check_values,
    floating,
    integer,
    number,
    positions_of,
)
from posenc.relative.offsets import spread

__all__ = ["add_alibi_columns", "alibi_bias", "alibi_slopes"]


@overload
def alibi_slopes(num_heads: int, *, like: np.ndarray | None = ...) -> np.ndarray: ...


@overload
def alibi_slopes(num_heads: int, *, like: ArrayT) -> ArrayT: ...


def alibi_slopes(num_heads: int, *, like: OneArray | None = None) -> Array:
    """The published slope of each head.

    m_h = 2^(−8h/H) for h = 1..H, if H is a power of two. Otherwise the slopes of the next lower power of two,
    followed by the 1st, 3rd, 5th, ... slope of twice that number of heads, up to H slopes.

    Args:
        num_heads: H, number of heads of the whole model, at least 1. A device that holds some of the heads
            takes their slopes from the result.
        like: an array whose library and device the slopes get, such as the queries. NumPy if None.

    Returns:
        float64 array (heads,).

    >>> alibi_slopes(4)
    array([0.25      , 0.0625    , 0.015625  , 0.00390625])
    >>> [float(m) for m in np.log2(alibi_slopes(6))]
    [-2.0, -4.0, -6.0, -8.0, -1.0, -3.0]

    Source: Press et al. (2022), section 3. The rule for other numbers of heads is from their code.
    https://github.com/ofirpress/attention_with_linear_biases
    """
    num_heads = integer("num_heads", num_heads, minimum=1)
    below = 1 << (num_heads.bit_length() - 1)
    exponents = [8 * h / below for h in range(1, below + 1)]
    exponents += [4 * h / below for h in range(1, 2 * (num_heads - below), 2)]
    slopes = np.exp2(-np.asarray(exponents))
    return slopes if like is None else to_device_of(slopes, like, namespace(like=like))


def alibi_bias(
    slopes: float | Array,
    query_positions: int | ArrayLike,
    key_positions: int | ArrayLike | None = None,
    *,
    causal: bool = True,
    dtype: DType | None = None,
) -> Array:
    """The term that ALiBi adds to the attention scores, after they are scaled.

    B(t, u) = −m_h · (t − u) for u ≤ t, −inf for u > t. With causal=False: −m_h · |t − u| for all keys.

    Pass it as bias to `posenc.dot_product_attention`, or as attn_mask to
    torch.nn.functional.scaled_dot_product_attention. It includes the causal mask.

    causal=False is symmetric: a sentence and its reversal get the same scores, reversed. An encoder needs
    another signal for the direction.

    Args:
        slopes: m, at least 0: an array (heads,), such as alibi_slopes(num_heads), or a float for one head. A
            NumPy array may come with positions of any library. An integer raises TypeError, because it could
            mean a number of heads.
        query_positions: an integer n_q for the last n_q of the keys: alibi_bias(slopes, 1, t + 1) is the row
            of the token at t. Or an array of integer or real positions, (n_q,) or (..., n_q).
        key_positions: an integer n_k for 0, 1, ..., n_k − 1, or an array (n_k,) or (..., n_k). If None, the
            query positions.
        causal: whether later keys get −inf.
        dtype: floating dtype of the result. If None, that of slopes, float64 for a number.

    Returns:
        Array (heads, n_q, n_k), or (..., heads, n_q, n_k) for positions with leading axes. Without the axis
        of heads if slopes is a number. Computed in float64 and rounded once. The row of a query without keys
        is −inf.

    Raises:
        ValueError: more queries than keys.

    >>> alibi_bias(0.5, 3)
    array([[ 0. , -inf, -inf],
           [-0.5,  0. , -inf],
           [-1. , -0.5,  0. ]])
    >>> alibi_bias(0.5, 1, 4)
    array([[-1.5, -1. , -0.5,  0. ]])
    >>> alibi_bias(alibi_slopes(8), 1, 4, causal=False)[-1]
    array([[-0.01171875, -0.0078125 , -0.00390625,  0.        ]])

    Source: Press et al. (2022), section 3.
    """
    xp, m = check_slopes(slopes, query_positions, key_positions)
    check_flag("causal", causal)
    dtype = m.dtype if dtype is None else check_float_dtype(dtype, xp)
    return make_bias(m, query_positions, key_positions, causal, dtype, xp)


def add_alibi_columns(
    query: ArrayT,
    key: ArrayT,
    slopes: float | Array,
    positions: int | ArrayLike | None = None,
    *,
    scale: float | None = None,
    center: float = 0.0,
    width: int | None = None,
) -> tuple[ArrayT, ArrayT]:
    """Queries and keys with extra columns, so that plain causal attention computes ALiBi without a bias.

    [q_t, m/scale] · [k_u, u − c] · scale = q_t · k_u · scale + m · (u − c). This is the score of ALiBi plus
    m · (t − c), which is the same for all keys of a query and cancels in the softmax.

    Pass the same `scale` to the attention: its default would use the new width. Pass a causal mask too,
    because the columns raise the scores of all later keys.

    float32 and float64 take one column. float16 and bfloat16 take six, because slopes and positions are split
    into three pieces each: bfloat16 cannot tell 256 from 257. Under torch.autocast float32 takes six too,
    because torch's attention rounds its input there. Compute the columns under the same autocast as the
    attention.

    Scores contain numbers up to m · |u − c|. In float32 attention they are exact to about m · |u − c| · 1e−7.

    Args:
        query: floating, shape (..., heads, n_q, d), or (..., n_q, d) with a number for slopes.
        key: shape (..., key heads, n_k, d), of the dtype of query. There may be fewer key heads than heads
            (grouped queries).
        slopes: as in `posenc.alibi_bias`, one for each head of query.
        positions: positions of the keys, integer or real: shape (n_k,), or one axis for each axis of key but
            the last, of full length or 1. If None, or the integer n_k: 0, 1, ..., n_k − 1.
        scale: factor on the scores, above 0. If None, 1/sqrt(d) with the width d of query.
        center: c, a position. The middle of the sequence keeps the numbers small. Cached keys need the same
            centre at every step.
        width: width of the result, filled with columns of zeros. Fast kernels want multiples of 8. If None,
            no zeros are added.

    Returns:
        query and key in their dtypes, also under torch.autocast, wider by 1 or 6 columns or of the given width.

    Raises:
        ValueError: a number outside the range of the dtype, such as a position beyond c ± 65504 in float16.

    >>> from posenc import causal_mask
    >>> from posenc.attention import dot_product_attention
    >>> q, k, v = np.random.default_rng(0).normal(size=(3, 5, 4))
    >>> wide_q, wide_k = add_alibi_columns(q, k, 0.5)
    >>> wide_q.shape, wide_k[:, 4]
    ((5, 5), array([0., 1., 2., 3., 4.]))
    >>> output, _ = dot_product_attention(wide_q, wide_k, v, mask=causal_mask(5), scale=4**-0.5)
    >>> expected, _ = dot_product_attention(q, k, v, bias=alibi_bias(0.5, 5))
    >>> bool(abs(output - expected).max() < 1e-12)
    True

    Source: the bias of Press et al. (2022), with m · t left out of each row, which softmax does not change.
    """
    xp = _check_pair(query, key)
    dim = query.shape[-1]
    scale = 1 / math.sqrt(dim) if scale is None else number("scale", scale, above=0)
    center = number("center", center)
    _, m = check_slopes(slopes, query)
    if m.ndim == 1 and (query.ndim < 3 or query.shape[-3] != m.shape[0]):
        raise ValueError(
            f"slopes of {m.shape[0]} heads need query of shape (..., {m.shape[0]}, n_q, d), "
            f"got {tuple(query.shape)}"
        )
    u = positions_of(key.shape[-2] if positions is None else positions, key, xp) - center
    m = xp.astype(m, xp.float64) / scale
    lowest = _lowest(query, xp)
    for dtype in (query.dtype, attention_dtype(query)):
        check_range("slopes / scale", m, dtype, xp)
        check_range("positions - center", u, dtype, xp)
    count = column_count(lowest, xp)
    width = dim + count if width is None else integer("width", width, minimum=dim + count)
    with no_autocast(query):  # which cannot join bfloat16 where it is float16
        return widen(query, key, m, u, width, xp, lowest)


def make_bias(
    m: Array,
    query_positions: int | ArrayLike,
    key_positions: int | ArrayLike | None,
    causal: bool,
    dtype: DType,
    xp: Namespace,
) -> Array:
    """`alibi_bias` for slopes (heads,) or (), in `dtype`."""
    wide = xp.astype(m, xp.float64)

    def values(k: Array) -> Array:
        offset = xp.astype(k, xp.float64)[..., None]
        if not causal:
            return xp.astype(0 - wide * xp.abs(offset), dtype)  # 0 − x: no −0.0 on the diagonal
        never = xp.asarray(-math.inf, dtype=dtype, device=offset.device)
        return xp.where(offset > 0, never, xp.astype(wide * offset, dtype))

    bias = spread(values, query_positions, key_positions, wide, xp)
    return bias[..., 0, :, :] if m.ndim == 0 else bias


def widen(
    query: Array, key: Array, m: Array, u: Array, width: int, xp: Namespace, dtype: DType | None = None
) -> tuple[Array, Array]:
    """`add_alibi_columns` for slopes over scale and positions from the centre, both in float64.

    They are split in `dtype`, or in the dtype of query if None.
    """
    dtype = query.dtype if dtype is None else dtype
    pieces = _pieces(dtype, xp)
    slopes, places = (
        [xp.astype(piece, query.dtype) for piece in _split(x, dtype, pieces, xp)] for x in (m, u)
    )
    # The product of two small pieces is below what float32 can tell.
    pairs = [(i, j) for i in range(pieces) for j in range(pieces - i)]
    return (
        _append(query, xp.stack([slopes[i] for i, _ in pairs], axis=-1)[..., None, :], width, xp),
        _append(key, xp.stack([places[j] for _, j in pairs], axis=-1), width, xp),
    )


def column_count(dtype: DType, xp: Namespace) -> int:
    pieces = _pieces(dtype, xp)
    return pieces * (pieces + 1) // 2


def check_slopes(slopes: float | Array, *others: int | ArrayLike | None) -> tuple[Namespace, Array]:
    """Slopes as a floating array (heads,) or (), of the library and device of the first array of `others`."""
    if isinstance(slopes, int | np.integer):
        raise TypeError(
            f"slopes must be a float or a floating array, got the integer {slopes!r}: a slope is "
            f"{float(slopes)!r}, the slopes of {slopes!r} heads are alibi_slopes({slopes!r})"
        )
    given = is_array(slopes)
    m: Array = slopes if given else np.asarray(number("slopes", slopes))
    xp = floating(slopes=m)
    if m.ndim > 1:
        raise ValueError(f"slopes must be a number or have shape (heads,), got {tuple(m.shape)}")
    check_finite("slopes", m, xp)
    check_values("slopes", m, lambda m: m >= 0, "at least 0: a key costs more the further it is", xp)
    like = next((other for other in others if is_array(other)), None)
    if like is None or namespace(like) is xp:
        return xp, m
    if xp is not np:
        raise TypeError(
            f"slopes must be of NumPy, or of the library of the other arrays, got {type(slopes).__name__} "
            f"with {type(like).__name__}"
        )
    return namespace(like), to_device_of(m, like, namespace(like))


def check_range(what: str, x: Array, dtype: DType, xp: Namespace) -> None:
    most = float(xp.finfo(dtype).max)
    check_values(what, x, lambda x: xp.abs(x) <= most, f"within ±{most:g}, the largest {dtype}", xp)


def _lowest(query: Array, xp: Namespace) -> DType:
    """The coarsest dtype that the columns of a query are rounded to: its own, or that of torch.autocast."""
    return max(query.dtype, attention_dtype(query), key=lambda dtype: float(xp.finfo(dtype).eps))


def _check_pair(query: Array, key: Array) -> Namespace:
    xp = floating(query=query, key=key)
    for name, x in (("query", query), ("key", key)):
        if x.ndim < 2:
            raise ValueError(f"{name} must have shape (..., length, width), got {tuple(x.shape)}")
    if key.shape[-1] != query.shape[-1] or query.shape[-1] == 0:
        raise ValueError(
            f"key must have the width of query, at least 1: got {key.shape[-1]} and {query.shape[-1]}"
        )
    return xp


def _pieces(dtype: DType, xp: Namespace) -> int:
    """How many numbers in `dtype` hold the 24 bits of one in float32."""
    return math.ceil(24 / (1 - math.log2(xp.finfo(dtype).eps)))


def _split(x: Array, dtype: DType, pieces: int, xp: Namespace) -> list[Array]:
    """float64 numbers as a sum of numbers in `dtype`. Each is the rounded rest of those before it."""
    found = []
    for _ in range(pieces):
        found.append(xp.astype(x, dtype))
        x = x - xp.astype(found[-1], xp.float64)
    return found


def _append(x: Array, columns: Array, width: int, xp: Namespace) -> Array:
    """x followed by the columns, (..., c), broadcast to its axes, and by zeros up to `width`."""
    missing = width - x.shape[-1] - columns.shape[-1]
    shape, device = (*columns.shape[:-1], missing), x.device
    added = xp.concat([columns, xp.zeros(shape, dtype=x.dtype, device=device)], axis=-1)
    return xp.concat([x, xp.broadcast_to(added, (*x.shape[:-1], added.shape[-1]))], axis=-1)
