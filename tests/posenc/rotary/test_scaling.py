"""Frequencies for longer contexts: what each method keeps, slows and leaves out."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posenc.rotary import scaling
from posenc.sinusoidal import sinusoidal_frequencies
from tests.posenc.refusals import refused

dims = st.integers(2, 128).map(lambda half: 2 * half)
factors = st.floats(1, 64)

METHODS: dict[str, Callable[[int, float], np.ndarray]] = {
    "linear": lambda dim, s: scaling.linear_frequencies(dim, s),
    "ntk": lambda dim, s: scaling.ntk_frequencies(dim, s),
    "dynamic": lambda dim, s: scaling.dynamic_ntk_frequencies(dim, s, 8192, original_length=4096),
    "yarn": lambda dim, s: scaling.yarn_frequencies(dim, s, original_length=4096),
    "llama3": lambda dim, s: scaling.llama3_frequencies(dim, s, original_length=4096),
}


@pytest.mark.parametrize("name", METHODS)
@given(dim=dims, factor=factors)
def test_nothing_gets_faster_and_factor_one_changes_nothing(name: str, dim: int, factor: float) -> None:
    usual = sinusoidal_frequencies(dim)
    if name != "dynamic":  # which stretches by what the length asks for, whatever its factor
        np.testing.assert_allclose(METHODS[name](dim, 1.0), usual, rtol=1e-12)
    ratio = METHODS[name](dim, factor) / usual
    assert (ratio <= 1 + 1e-12).all()
    assert (ratio >= 1 / (factor + 1 if name == "dynamic" else factor) - 1e-12).all()
    assert (np.diff(ratio) <= 1e-12).all()  # slow pairs are slowed the most


@given(dim=dims, factor=factors, length=st.integers(1, 4096))
def test_ntk_keeps_the_fastest_and_interpolates_the_slowest(dim: int, factor: float, length: int) -> None:
    usual = sinusoidal_frequencies(dim)
    ratio = scaling.ntk_frequencies(dim, factor) / usual
    assert ratio[0] == 1
    assert ratio[-1] == pytest.approx(1 / factor)
    # The dynamic one does nothing up to the length of training.
    dynamic = scaling.dynamic_ntk_frequencies(dim, factor, length, original_length=4096)
    np.testing.assert_allclose(dynamic, usual, rtol=1e-12)


@pytest.mark.parametrize("make", [scaling.yarn_frequencies, scaling.llama3_frequencies])
@pytest.mark.parametrize("base", [10000.0, 500000.0])
def test_turns_within_the_training_length_decide(make: Any, base: float) -> None:
    usual = sinusoidal_frequencies(128, base)
    ratio = make(128, 8, original_length=8192, base=base) / usual
    turns = 8192 * usual / (2 * math.pi)
    fast, slow = (40, 0.9) if make is scaling.yarn_frequencies else (4, 1)
    np.testing.assert_allclose(ratio[turns > fast], 1, rtol=1e-12)
    np.testing.assert_allclose(ratio[turns < slow], 1 / 8, rtol=1e-12)
    assert ((ratio > 0.13) & (ratio < 0.99)).sum() > 3


def test_yarn_ramp_without_truncation_is_narrower() -> None:
    whole, exact = (
        scaling.yarn_frequencies(64, 4, original_length=4096, truncate=flag) / sinusoidal_frequencies(64)
        for flag in (True, False)
    )
    assert ((exact > 0.25) & (exact < 1)).sum() <= ((whole > 0.25) & (whole < 1)).sum()
    assert not np.allclose(whole, exact)


@pytest.mark.parametrize(
    ("length", "expected"), [(4096, np.linspace(1, 2, 4)), (4097, np.linspace(1, 16, 4))]
)
def test_longrope_switches_sets(length: int, expected: np.ndarray) -> None:
    sets = np.linspace(1, 2, 4), np.linspace(1, 16, 4)
    found = scaling.longrope_frequencies(8, *sets, length, original_length=4096)
    np.testing.assert_array_equal(found, sinusoidal_frequencies(8) / expected)


def test_proportional_is_not_partial() -> None:
    found = scaling.proportional_frequencies(16, 0.25)
    np.testing.assert_array_equal(found, np.append(sinusoidal_frequencies(16)[:2], np.zeros(6)))
    # 0.2889 of 45 pairs are 13.0005, and 0.28888 of them 12.9996.
    for dim, share, turning in ((20, 0.3, 3), (90, 0.2889, 13), (90, 0.28888, 12)):
        assert np.count_nonzero(scaling.proportional_frequencies(dim, share)) == turning
    linear = scaling.linear_frequencies(16, 8)
    np.testing.assert_array_equal(scaling.proportional_frequencies(16, 1, factor=8), linear)


def test_attention_factors() -> None:
    assert scaling.yarn_attention_factor(1) == 1.0
    assert scaling.longrope_attention_factor(1, original_length=4096) == 1.0
    assert scaling.yarn_attention_factor(40, mscale=1, mscale_all_dim=1) == 1.0
    assert scaling.yarn_attention_factor(16) == pytest.approx(1.27726)


def longrope(short: Any, long: Any) -> np.ndarray:
    return scaling.longrope_frequencies(4, short, long, 9, original_length=9)


test_errors_name_the_argument = refused([
    (lambda: scaling.ntk_frequencies(2, 2), ValueError, "dim must be at least 4"),
    (lambda: scaling.yarn_frequencies(64, 2, original_length=3), ValueError, "original_length must be .* got 3"),
    (lambda: scaling.yarn_frequencies(8, 2, original_length=10**6, base=2.0), ValueError, "original_length"),
    (lambda: scaling.yarn_attention_factor(2, mscale=1), ValueError, "must come together, got 1 and None"),
    (lambda: longrope([1], [1, 1]), ValueError, "short_factors"),
    (lambda: longrope([1, 1], [1, 0]), ValueError, "long_factors"),
    (lambda: scaling.proportional_frequencies(8, 0.2), ValueError, "proportion must let at least one of 4 pairs"),
    (lambda: scaling.proportional_frequencies(8, 1.5), ValueError, "proportion must be at most 1"),
])  # fmt: skip
