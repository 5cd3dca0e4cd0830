"""Position in time: a shared axis in seconds for video, audio and text, and periodic times.

The formula is that of `posenc.sinusoidal_encoding`. Its frequencies are chosen here: from the shortest and
the longest period that matter, or from the periods of the data, such as day and week or the length of a
circular genome.

A code is a function of the time alone. Times may come in any order and with any gaps, and encoding them one
at a time gives the same codes as all at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from posenc._arrays import Array, ArrayLike, DType, Namespace, OneArray, is_array, is_concrete, to_device_of
from posenc._checks import (
    as_numbers,
    check_even_dim,
    check_float_dtype,
    check_values,
    integer,
    is_length,
    number,
)
from posenc.sinusoidal import codes_at

__all__ = [
    "nearest_index",
    "periodic_encoding",
    "periodic_frequencies",
    "time_encoding",
    "time_frequencies",
    "to_seconds",
]

# --- Seconds


def time_frequencies(dim: int, *, shortest: float, longest: float) -> np.ndarray:
    """Angular frequencies whose periods run from `shortest` to `longest`, at equal ratios.

    ω_i = 2π / (shortest · (longest/shortest)^(i/(dim/2 − 1))) for i = 0, ..., dim/2 − 1.

    Two times can be told apart if they are about shortest/4 or more apart. The slowest pair makes half a turn in
    a time of longest/2. The frequencies can also be passed to `posenc.apply_rotary`, with positions in the same unit.

    Args:
        dim: width of the encoding, even and at least 4.
        shortest: period of the fastest pair, in the unit of the times, above 0.
        longest: period of the slowest pair, in the same unit, above `shortest`.

    Returns:
        float64 NumPy array of shape (dim/2,), in radians per unit of the times, falling geometrically.

    Raises:
        ValueError: dim is odd or below 4, or longest is not above shortest.

    >>> (2 * np.pi / time_frequencies(8, shortest=0.1, longest=100)).round(6)
    array([  0.1,   1. ,  10. , 100. ])

    Source: derived in this book, times.md#scale.
    """
    dim = check_even_dim(dim)
    if dim < 4:
        raise ValueError(
            f"dim must be at least 4, because the shortest and the longest period need a pair each, got {dim}"
        )
    shortest = number("shortest", shortest, above=0)
    longest = number("longest", longest)
    if longest <= shortest:
        raise ValueError(f"longest must be above shortest = {shortest:g}, got {longest:g}")
    # Not np.geomspace, which torch.compile does not know.
    steps = np.arange(dim // 2, dtype=np.float64) / (dim // 2 - 1)
    return 2 * math.pi / (shortest * (longest / shortest) ** steps)


def time_encoding(
    seconds: ArrayLike, dim: int, *, shortest: float, longest: float, dtype: DType | None = None
) -> Array:
    """The sinusoidal encoding of times, with periods from `shortest` to `longest`.

    PE(t, 2i) = sin(ω_i t), PE(t, 2i + 1) = cos(ω_i t), with ω_i from `posenc.times.time_frequencies`.

    All times on one axis, shortest and longest must have the same unit. `posenc.times.to_seconds` converts
    NumPy's dates and durations.

    Args:
        seconds: times in seconds, or in the unit that shortest and longest have, an array or list of integers or
            real numbers (float32, float64) of any shape, negative ones included. A single integer is refused,
            because other functions read it as a count.
        dim, shortest, longest: as in `posenc.times.time_frequencies`.
        dtype: floating dtype of the result, computed in float64 and rounded once. The library's default if
            None.

    Returns:
        Array seconds.shape + (dim,), of the library and on the device of seconds.

    Raises:
        TypeError: dates, or times in float16 or bfloat16.
        ValueError: NaN or infinity, or times too large for their dtype (float64 for integers) to hold them to
            shortest/8. float32 cannot hold seconds since 1970.

    >>> time_encoding([0.0, 0.25], 4, shortest=1.0, longest=10.0).round(4)
    array([[0.    , 1.    , 0.    , 1.    ],
           [1.    , 0.    , 0.1564, 0.9877]])

    Source: Vaswani et al. (2017), section 3.5, where periods run from 2π to 20000π tokens.
    """
    omega = time_frequencies(dim, shortest=shortest, longest=longest)
    xp, t = as_times("seconds", seconds, shortest)
    dtype = check_float_dtype(dtype, xp)
    return codes_at(t, to_device_of(omega, t, xp), dtype, xp)


def to_seconds(times: Any, *, since: Any = None) -> np.ndarray:
    """Dates or durations of NumPy, in any of their units, as seconds.

    Args:
        times: datetime64 or timedelta64, an array or a list, in a unit from nanoseconds to weeks.
        since: for dates, the date of second 0. 1970-01-01 if None. It is subtracted before rounding, so
            nanoseconds near `since` are kept.

    Returns:
        float64 NumPy array of the shape of times, in seconds.

    Raises:
        TypeError: plain numbers, which have no unit, or months and years, which have no fixed length.
        ValueError: a missing date (NaT).

    >>> to_seconds(np.array([1500, 250], dtype="timedelta64[ms]"))
    array([1.5 , 0.25])
    >>> to_seconds(["2026-03-01T00:00:01.5"], since="2026-03-01")
    array([1.5])

    Source: defined in this book, times.md#units.
    """
    given = _dates("times", times)
    if np.datetime_data(given.dtype)[0] in ("ps", "fs", "as"):
        raise TypeError(f"times must be in weeks, days, ..., nanoseconds, got {given.dtype}")
    if np.isnat(given).any():
        raise ValueError("times must not be missing, got NaT")
    if given.dtype.kind == "M":
        given = _since(given, _dates("since", "1970-01-01" if since is None else since))
    elif since is not None:
        raise TypeError(f"since must be left out for durations, got {since!r}")
    unit, count = np.datetime_data(given.dtype)
    if unit not in _UNITS:
        raise TypeError(f"times must be in weeks, days, ..., nanoseconds, got {given.dtype}")
    per_second = _UNITS[unit]
    ticks = given.astype(np.int64)
    most = max(abs(int(ticks.max())), abs(int(ticks.min()))) if ticks.size else 0
    if most * count >= 2**63:
        raise ValueError(f"times must be within 2^63 of their unit, {unit}, got {most} times {count} of it")
    counts = ticks * count
    return counts / per_second if per_second >= 1 else counts * (1 / per_second)


def nearest_index(seconds: ArrayLike, marks: ArrayLike, *, within: float | None = None) -> Array:
    """The index of the nearest mark for each time, such as the video frame for each spoken word.

    argmin over i of |seconds − marks_i|. With marks every 1/fps seconds the nearest is at most 1/(2 · fps)
    away.

    Args:
        seconds: times in seconds, of any shape, in any order.
        marks: ascending times, shape (n,), n at least 1. Equal ones are allowed.
        within: the largest allowed distance to the nearest mark. If None, the widest gap between marks, so
            that a time in another unit or from another clip raises an error.

    Returns:
        Integer array of the shape of seconds. Of two marks at the same distance it is the earlier
        one, and of equal marks any.

    Raises:
        ValueError: marks that do not ascend, a time without a mark within reach, or times that their dtype
            cannot hold to an eighth of the larger of within and the widest gap.

    >>> nearest_index([0.49, 2.1], [0.0, 0.5, 1.0, 1.5, 2.0])
    array([1, 4])

    Source: defined in this book, times.md#units.
    """
    xp, t = as_times("seconds", seconds)
    marks_xp, m = as_times("marks", marks)
    if m.ndim != 1 or m.shape[0] == 0:
        raise ValueError(f"marks must have shape (n,) with n >= 1, got {tuple(m.shape)}")
    if marks_xp is not xp:
        if marks_xp is not np:
            raise TypeError(
                f"marks must be of NumPy or of the library of seconds, got {type(marks).__name__}"
            )
        m = to_device_of(m, t, xp)
    gaps = m[1:] - m[:-1]
    if bool(xp.any(gaps < 0)):
        at = int(xp.argmax(xp.astype(gaps < 0, xp.int64)))
        raise ValueError(
            f"marks must not go back, got {float(m[at + 1]):g} after {float(m[at]):g} at index {at + 1}"
        )
    widest = float(xp.max(gaps)) if m.shape[0] > 1 else 0.0
    within = widest if within is None else number("within", within, at_least=0)
    for name, given in (("seconds", seconds), ("marks", marks)):
        as_times(name, given, max(widest, within), "the widest gap between marks, or within")
    flat = xp.reshape(t, (-1,))
    after = xp.clip(xp.searchsorted(m, flat), 0, m.shape[0] - 1)
    before = xp.where(after > 0, after - 1, after)
    first, second = xp.abs(flat - xp.take(m, before)), xp.abs(xp.take(m, after) - flat)
    found = xp.where(first <= second, before, after)
    away = xp.minimum(first, second)
    if bool(xp.any(away > within)):
        at = int(xp.argmax(away))
        raise ValueError(
            f"seconds must have a mark within {within:g}, got {float(flat[at]):g} with marks from "
            f"{float(m[0]):g} to {float(m[-1]):g}: is it in another unit?"
        )
    return xp.reshape(found, tuple(t.shape))


_UNITS = {
    "W": 1 / 604800, "D": 1 / 86400, "h": 1 / 3600, "m": 1 / 60, "s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9,
}  # fmt: skip


# --- Periodic times


def periodic_frequencies(
    periods: float | Sequence[float] | OneArray, harmonics: int | Sequence[int] = 1
) -> np.ndarray:
    """Angular frequencies of harmonics, which make an integer number of turns in a period.

    ω = 2π h / P for each period P and each harmonic h of it.

    With the frequencies of one period, `posenc.apply_rotary` gives scores that depend on distances on a circle.

    Args:
        periods: one period or several, shape (p,), each above 0, in the unit of the times.
        harmonics: an integer H for 1, 2, ..., H, or a list of harmonics, integers of at least 1.

    Returns:
        float64 NumPy array (p · H,), in radians per unit of the times: the harmonics of the first period, then
        of the next.

    >>> (2 * np.pi / periodic_frequencies([24, 168], 2)).round(6)
    array([ 24.,  12., 168.,  84.])

    Source: derived in this book, times.md#circle.
    """
    every, counts = _check_periods(periods), _check_harmonics(harmonics)
    return (2 * math.pi * counts / every[:, None]).reshape(-1)


def periodic_encoding(
    times: ArrayLike,
    periods: float | Sequence[float] | OneArray,
    *,
    harmonics: int | Sequence[int] = 1,
    dtype: DType | None = None,
) -> Array:
    """A periodic code: sines and cosines of integer harmonics.

    sin(2π h t / P), cos(2π h t / P) for each period P and each harmonic h of it.

    t is first reduced to one period, without rounding. With one period, t and t + P have the same code bit
    for bit if the dtype of the times holds t + P exactly, as it does whole seconds.

    Args:
        times: as in `posenc.time_encoding`, in the unit of the periods.
        periods: one period or several, as in `posenc.times.periodic_frequencies`. For seconds 86400 is a day,
            604800 a week and 31556952 the average Gregorian year. All three together repeat after 400 years.
        harmonics: as in `posenc.times.periodic_frequencies`. Higher harmonics resolve finer differences.
        dtype: floating dtype of the result, computed in float64 and rounded once. The library's default if
            None.

    Returns:
        Array times.shape + (2 · p · H,), in the order of `posenc.times.periodic_frequencies`.

    Raises:
        TypeError, ValueError: as in `posenc.time_encoding`, with the shortest period of a harmonic for `shortest`.

    >>> periodic_encoding([0, 6, 24, 30], 24).round(4) + 0.0
    array([[0., 1.],
           [1., 0.],
           [0., 1.],
           [1., 0.]])

    Source: the Fourier series of a function with period P.
    """
    every, counts = _check_periods(periods), _check_harmonics(harmonics)
    xp, t = as_times("times", times, float(every.min() / counts.max()))
    dtype = check_float_dtype(dtype, xp)
    p = to_device_of(every, t, xp)
    turns = xp.remainder(t[..., None], p) / p
    codes = codes_at(turns, to_device_of(2 * math.pi * counts, t, xp), dtype, xp)
    return xp.reshape(codes, (*t.shape, 2 * every.size * counts.size))


# --- Checks


def as_times(
    name: str, times: Any, shortest: float = 0.0, meaning: str = "the shortest period"
) -> tuple[Namespace, Array]:
    """The library of times, and the times in float64. They must resolve the period `shortest`, if it is above 0."""
    # Tuples of types: torch.compile cannot trace a union of them.
    listed = isinstance(times, (list, tuple))
    if is_length(times) or not (listed or is_array(times)):
        kind = type(times).__name__
        raise TypeError(f"{name} must be an array or a list of times, got {times!r} of type {kind}")
    if listed and any(isinstance(x, (np.datetime64, np.timedelta64)) for x in times):
        times = np.asarray(times)
    if isinstance(times, (np.ndarray, np.generic)) and times.dtype.kind in "mM":
        raise TypeError(
            f"{name} must be numbers, got {times.dtype}: convert them with posenc.times.to_seconds"
        )
    xp, t = as_numbers(name, times)
    if not shortest:
        return xp, t
    # Lists and integers become float64, and nanoseconds since 1970 do not fit it.
    floats = is_array(times) and xp.isdtype(times.dtype, "real floating")
    dtype = times.dtype if floats else xp.float64
    most = float(shortest) / 8 / float(xp.finfo(dtype).eps)
    if is_concrete(t):  # else nobody looks, and torch.compile cannot write a period that it leaves open
        wanted = (
            f"within ±{most:.3g}, or {dtype if floats else 'float64'} cannot hold them to an eighth of {meaning}, "
            f"{float(shortest):g} ("
            + "use float64, or " * (dtype != xp.float64)
            + "count from a later start)"
        )
        check_values(name, t, lambda t: xp.abs(t) <= most, wanted, xp)
    return xp, t


def _since(times: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The duration since a date. ValueError where NumPy overflows because the finer unit cannot hold it."""
    if start.dtype.kind != "M" or start.ndim:
        raise TypeError(f"since must be one date, got {start!r:.50}")
    if np.isnat(start):
        raise ValueError("since must be a date, got NaT")
    passed = times - start
    unit, count = np.datetime_data(passed.dtype)
    roughly = _roughly(times) - _roughly(start)
    counted = passed.astype(np.int64) * (count / _UNITS[unit]) if unit in _UNITS else roughly
    if (abs(counted - roughly) > 2 + 1e-9 * (abs(_roughly(times)) + abs(_roughly(start)))).any():
        raise ValueError(f"times must be within 2^63 of their unit from since = {start}, got {passed.dtype}")
    return np.asarray(passed)


def _roughly(dates: np.ndarray) -> np.ndarray:
    """Seconds since 1970 in float64, which does not overflow. Exact to about a day and 1e-9."""
    unit, count = np.datetime_data(dates.dtype)
    if unit in _UNITS:
        return dates.astype(np.int64) * (count / _UNITS[unit])
    return dates.astype("datetime64[s]").astype(np.int64) * 1.0


def _dates(name: str, values: Any) -> np.ndarray:
    """`values` as datetime64 or timedelta64. Text is read as dates."""
    given = np.asarray(values)
    if given.dtype.kind == "U":
        given = given.astype(np.datetime64)
    if given.dtype.kind not in "mM" or np.datetime_data(given.dtype)[0] == "generic":
        raise TypeError(
            f"{name} must be datetime64 or timedelta64 of NumPy, got {values!r:.50}: a number has no unit"
        )
    return given


def _check_periods(periods: Any) -> np.ndarray:
    given = [periods] if isinstance(periods, int | float | np.number) else periods
    _, found = as_numbers("periods", given)
    if found.ndim != 1 or found.shape[0] == 0:
        raise ValueError(f"periods must be a number or have shape (p,), got {tuple(found.shape)}")
    every = np.asarray(found.tolist(), dtype=np.float64)
    if not (every > 0).all():
        raise ValueError(f"periods must be above 0, got {every[every <= 0][0]:g}")
    return every


def _check_harmonics(harmonics: Any) -> np.ndarray:
    if is_length(harmonics):
        return np.arange(1, integer("harmonics", harmonics, minimum=1) + 1, dtype=np.float64)
    if not isinstance(harmonics, Sequence | np.ndarray) or isinstance(harmonics, str) or len(harmonics) == 0:
        raise TypeError(f"harmonics must be an integer or a list of integers, got {harmonics!r}")
    return np.array([integer("each of harmonics", h, minimum=1) for h in harmonics], dtype=np.float64)
