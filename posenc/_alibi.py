"""What the functions and the layers of ALiBi share: the formulas without checks, and what slopes must be."""

from __future__ import annotations

import math

import numpy as np

from posenc._arrays import Array, DType, Namespace, is_array, namespace, to_device_of
from posenc._checks import check_finite, check_values, floating, number
from posenc._relative import spread

# --- Formulas, unchecked: those of a layer are in range as it makes them so, and a look at them would make a
# --- GPU wait


def make_bias(
    m: Array,
    query_positions: int | Array,
    key_positions: int | Array | None,
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


def widen(query: Array, key: Array, m: Array, u: Array, width: int, xp: Namespace) -> tuple[Array, Array]:
    """`add_alibi_columns` for slopes over scale and positions from the centre, both in float64."""
    pieces = _pieces(query.dtype, xp)
    slopes, places = (_split(x, query.dtype, pieces, xp) for x in (m, u))
    # The product of two small pieces is below what float32 can tell.
    pairs = [(i, j) for i in range(pieces) for j in range(pieces - i)]
    return (
        _append(query, xp.stack([slopes[i] for i, _ in pairs], axis=-1)[..., None, :], width, xp),
        _append(key, xp.stack([places[j] for _, j in pairs], axis=-1), width, xp),
    )


def _pieces(dtype: DType, xp: Namespace) -> int:
    """How many numbers in `dtype` it takes to say what one in float32 says, with its 24 bits."""
    return math.ceil(24 / (1 - math.log2(xp.finfo(dtype).eps)))


def column_count(dtype: DType, xp: Namespace) -> int:
    pieces = _pieces(dtype, xp)
    return pieces * (pieces + 1) // 2


def _split(x: Array, dtype: DType, pieces: int, xp: Namespace) -> list[Array]:
    """float64 numbers as a sum of numbers in `dtype`, each of them what those before have left over."""
    found = []
    for _ in range(pieces):
        found.append(xp.astype(x, dtype))
        x = x - xp.astype(found[-1], xp.float64)
    return found


def _append(x: Array, columns: Array, width: int, xp: Namespace) -> Array:
    """x with the columns, (..., c) that fit its axes, and zeros up to `width`."""
    missing = width - x.shape[-1] - columns.shape[-1]
    shape, device = (*columns.shape[:-1], missing), x.device
    added = xp.concat([columns, xp.zeros(shape, dtype=x.dtype, device=device)], axis=-1)
    return xp.concat([x, xp.broadcast_to(added, (*x.shape[:-1], added.shape[-1]))], axis=-1)


# --- Checks


def check_slopes(slopes: float | Array, *others: int | Array | None) -> tuple[Namespace, Array]:
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
