"""Times: one axis for all streams, periods that fit, units and orders that do not pass unseen."""

import math
from collections.abc import Callable
from typing import Any

import array_api_strict
import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import apply_rotary, periodic_encoding, sinusoidal_encoding, time_encoding
from posenc.times import nearest_index, periodic_frequencies, time_frequencies, to_seconds
from tests.posenc.refusals import refused

DAY, WEEK, YEAR = 86400, 604800, 31556952
LADDER: dict[str, Any] = {"shortest": 0.2, "longest": 120.0}
finite = st.floats(-1e4, 1e4)
steps = st.integers(-(10**9), 10**9)

# --- Seconds


def test_the_formula_to_its_last_digit() -> None:
    t = np.array([0.0, 1 / 3, 17.25, 3600.0])
    with mpmath.workdps(40):
        periods = [
            mpmath.mpf(0.2) * (mpmath.mpf(120) / mpmath.mpf(0.2)) ** (mpmath.mpf(i) / 3) for i in range(4)
        ]
        angles = [[2 * mpmath.pi * mpmath.mpf(float(x)) / period for period in periods] for x in t]
        exact = np.array([[float(f(a)) for a in row for f in (mpmath.sin, mpmath.cos)] for row in angles])
    slack = 1e-14 * (1 + np.repeat(np.array(angles, dtype=float), 2, axis=1))
    assert (np.abs(time_encoding(t, 8, **LADDER) - exact) <= slack).all()
    np.testing.assert_allclose(2 * math.pi / time_frequencies(8, **LADDER), np.array(periods, dtype=float))


def test_the_usual_code_is_one_choice_of_periods() -> None:
    """That of 2π to almost 20000π, in tokens."""
    longest = 2 * math.pi * 10000 ** (62 / 64)
    ours = time_encoding(np.arange(300), 64, shortest=2 * math.pi, longest=longest)
    np.testing.assert_allclose(ours, sinusoidal_encoding(300, 64), atol=1e-11)


@given(t=finite, k=finite, factor=st.sampled_from([1e-3, 60.0, 3600.0]))
def test_scores_see_the_gap_and_no_unit(t: float, k: float, factor: float) -> None:
    a, b, c, d = time_encoding([t, t + k, 0.0, k], 16, **LADDER)
    assert a @ b == pytest.approx(c @ d, abs=1e-7)
    # Whatever the unit, as long as it is one.
    other = time_encoding([t / factor], 16, shortest=0.2 / factor, longest=120 / factor)[0]
    np.testing.assert_allclose(other, a, atol=1e-7)


# --- The nearest mark


@given(
    st.lists(st.floats(0, 100), min_size=2, max_size=30).map(sorted), st.lists(st.floats(0, 100), max_size=5)
)
def test_no_mark_is_nearer_than_the_one_found(marks: list[float], times: list[float]) -> None:
    t, m = np.array(times), np.array(marks)
    found = nearest_index(t, m, within=100)
    np.testing.assert_array_equal(np.abs(m[found] - t), np.abs(m - t[:, None]).min(axis=1))
    np.testing.assert_array_equal(nearest_index(torch.from_numpy(t), m, within=100).numpy(), found)


def test_of_two_marks_at_one_distance_it_is_the_earlier_and_within_is_allowed() -> None:
    assert nearest_index([[-1.0, 0.5], [1.5, 3.0]], [0.0, 1.0, 2.0]).tolist() == [[0, 0], [1, 2]]
    assert nearest_index([7.25], [7.0], within=0.25).tolist() == [0]
    assert nearest_index([7.0], [7.0]).tolist() == [0]


# --- Dates


@pytest.mark.parametrize("dtype", ["m8[100s]", "M8[100s]", "m8[7ns]", "M8[W]", "M8[Y]"])
@pytest.mark.parametrize("sign", [1, -1])
def test_counts_that_would_go_round_are_refused(dtype: str, sign: int) -> None:
    """NumPy's integers do so in silence: 2^62 times 100 seconds gave 0.0."""
    with pytest.raises(ValueError, match=r"times must be within 2\^63 of their unit"):
        to_seconds(np.array([0, sign * 2**62]).astype(dtype))
    # Days are counted as such.
    assert to_seconds(np.array([sign * 2**62]).astype("M8[D]"))[0] == sign * 2.0**62 * 86400


DURATIONS = {"W": WEEK, "D": DAY, "h": 3600, "m": 60, "25s": 25, "10ms": 0.01, "us": 1e-6, "ns": 1e-9}


@pytest.mark.parametrize(("unit", "seconds"), DURATIONS.items())
def test_durations_bring_their_unit_and_keep_their_size(unit: str, seconds: float) -> None:
    count = np.array([3, 2**55, -(2**55)])
    np.testing.assert_allclose(to_seconds(count.astype(f"m8[{unit}]")), count * float(seconds), rtol=1e-12)


def test_dates_are_counted_from_one_and_lose_nothing_near_it() -> None:
    np.testing.assert_array_equal(to_seconds([np.timedelta64(250, "ms"), np.timedelta64(2, "s")]), [0.25, 2])
    stamps = np.array(["2026-03-01T00:00:00.000000001", "2026-03-01"], dtype="datetime64[ns]")
    np.testing.assert_array_equal(to_seconds(stamps, since="2026-03-01"), [1e-9, 0])
    assert to_seconds(["1970-01-02"])[0] == DAY
    assert to_seconds(np.array([3], dtype="timedelta64[10ms]"))[0] == 0.03
    assert to_seconds(np.zeros(0, "m8[s]")).shape == (0,)


# --- Times that come round again


@given(t=steps, period=st.integers(1, YEAR), turns=st.integers(-400, 400), h=st.integers(1, 9))
def test_one_period_on_is_the_same_code(t: int, period: int, turns: int, h: int) -> None:
    for dtype in (np.int64, np.float64):
        times = np.array([t, t + turns * period], dtype)
        here, there = periodic_encoding(times, period, harmonics=[h, 2**h])
        assert np.array_equal(here, there)


def test_columns_are_sine_and_cosine_of_each_harmonic_of_each_period() -> None:
    t, omega = np.linspace(-40, 40, 9), periodic_frequencies([24.0, 168.0], [1, 2, 5])
    np.testing.assert_allclose(omega, 2 * np.pi * np.array([1, 2, 5, 1 / 7, 2 / 7, 5 / 7]) / 24)
    codes = periodic_encoding(t, [24.0, 168.0], harmonics=[1, 2, 5])
    np.testing.assert_allclose(codes[:, 0::2], np.sin(t[:, None] * omega), atol=1e-14)
    np.testing.assert_allclose(codes[:, 1::2], np.cos(t[:, None] * omega), atol=1e-14)
    upto = periodic_encoding(t, 24.0, harmonics=3)
    assert np.array_equal(upto, periodic_encoding(t, [24.0], harmonics=[1, 2, 3]))


def test_rotary_scores_go_round_a_circle() -> None:
    options: Any = {"frequencies": periodic_frequencies(16569, [1, 2, 4, 8])}
    q, k = np.random.default_rng(0).normal(size=(2, 8))
    places = [(3, 16560), (3, -9), (16572, 16560)]
    scores = [apply_rotary(q, [t], **options)[0] @ apply_rotary(k, [u], **options)[0] for t, u in places]
    assert scores == pytest.approx([scores[0]] * 3, abs=1e-9)


# --- Bad input

ODD: Any = [1.5]

NANOSECONDS = 1_767_000_000_000_000_001  # since 1970, which float64 cannot hold

CALLS: dict[str, Callable[[Any], Any]] = {
    "seconds": lambda t: time_encoding(t, 8, **LADDER),
    "times": lambda t: periodic_encoding(t, 24),
    "marks": lambda t: nearest_index([0.0], t),
}
BAD: list[tuple[Any, type[Exception], str]] = [
    ([0.0, math.nan], ValueError, "must be finite, got nan"),
    ([0.0, math.inf], ValueError, "must be finite, got inf"),
    (5, TypeError, "must be an array or a list of times, got 5"),
    (5.0, TypeError, "must be an array or a list of times, got 5"),
    (None, TypeError, "must be an array or a list of times, got None"),
    (np.array([5], dtype="timedelta64[ms]"), TypeError, "must be numbers, got timedelta64.*: convert them with"),
    ([np.datetime64("2026-01-01")], TypeError, r"must be numbers, got datetime64\[D\]"),
    ([True], TypeError, "must be integers, float32 or float64, got dtype bool"),
    (torch.ones(2, dtype=torch.bfloat16), TypeError, "must be integers, float32 or float64"),
]  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(("bad", "error", "message"), BAD)
def test_bad_times_are_named(name: str, bad: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{name} {message}"):
        CALLS[name](bad)


test_bad_arguments_are_named = refused([
    (lambda: time_encoding([0.0], 5, **LADDER), ValueError, "dim must be even"),
    (lambda: time_encoding([0.0], 2, **LADDER), ValueError, "dim must be at least 4"),
    (lambda: time_encoding(np.array([1.77e9], np.float32), 8, shortest=60, longest=DAY), ValueError,
     r"seconds must be within ±6.29e\+07, or float32 cannot hold them to an eighth of the shortest period, 60"),
    (lambda: periodic_encoding(torch.tensor([1.77e9]), [WEEK, 600]), ValueError, "times must be within"),
    (lambda: periodic_encoding([0], []), ValueError, r"periods must be a number or have shape \(p,\)"),
    (lambda: periodic_encoding([0], 7, harmonics=0), ValueError, "harmonics must be at least 1, got 0"),
    (lambda: periodic_encoding([0], 7, harmonics=ODD), TypeError, "each of harmonics must be an integer, got 1.5"),
    (lambda: nearest_index([0.0], [0.0, 2.0, 1.0]), ValueError, "marks must not go back, got 1 after 2 at index 2"),
    (lambda: nearest_index([0.0], []), ValueError, r"marks must have shape \(n,\) with n >= 1, got \(0,\)"),
    (lambda: nearest_index([6180.0], np.arange(210) / 30), ValueError,
     "seconds must have a mark within 0.0333333, got 6180 with marks from 0 to 6.96667: is it in another unit?"),
    (lambda: nearest_index(torch.ones(1), array_api_strict.ones(1)), TypeError, "marks must be of NumPy or of the"),
    (lambda: time_encoding(np.array([NANOSECONDS]), 8, shortest=10, longest=100), ValueError,
     r"seconds must be within ±5.63e\+15, or float64 cannot hold them to an eighth of the shortest period, 10 \(count"),
    (lambda: nearest_index(np.array([1.77e9], np.float32), 1.77e9 + np.arange(9)), ValueError,
     "seconds must be within .* float32 cannot hold them to an eighth of the widest gap .* 1 .use float64"),
    (lambda: to_seconds(np.array(["3000"], "datetime64[D]"), since=np.datetime64("2026-01-01", "ns")), ValueError,
     r"times must be within 2\^63 of their unit from since = 2026-01-01T00:00:00.000000000, got timedelta64\[ns\]"),
    (lambda: to_seconds(["2026-01-02"], since=np.timedelta64(1, "s")), TypeError, "since must be one date, got array"),
    (lambda: to_seconds([1.5]), TypeError, r"times must be datetime64 or timedelta64 .* a number has no unit"),
    (lambda: to_seconds(["2026-01-01", "NaT"]), ValueError, "times must not be missing, got NaT"),
    (lambda: to_seconds(["2026-01-01"], since=np.datetime64("NaT", "s")), ValueError, "since must be a date, got NaT"),
    (lambda: to_seconds(np.zeros(1, "M8[ps]")), TypeError, r"times must be in weeks, .*got datetime64\[ps\]"),
    (lambda: to_seconds(np.array([1], dtype="timedelta64[s]"), since="2026"), TypeError, "since must be left out"),
])  # fmt: skip


def test_float32_is_held_to_what_its_waves_need() -> None:
    """A clip fits, seconds since 1970 fit the waves of a week, and float64 fits both."""
    time_encoding(np.array([3600], np.float32), 8, **LADDER)
    periodic_encoding(np.array([1.77e9], np.float32), WEEK)
    time_encoding([1.77e9], 8, **LADDER)
