"""Frequencies for longer contexts: what each method keeps, slows and leaves out."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from posenc import sinusoidal_frequencies
from posenc.rotary import (
    dynamic_ntk_frequencies,
    linear_frequencies,
    llama3_frequencies,
    longrope_attention_factor,
    longrope_frequencies,
    ntk_frequencies,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)

dims = st.integers(2, 128).map(lambda half: 2 * half)
factors = st.floats(1, 64)

METHODS: dict[str, Callable[[int, float], np.ndarray]] = {
    "linear": lambda dim, s: linear_frequencies(dim, s),
    "ntk": lambda dim, s: ntk_frequencies(dim, s),
    "dynamic": lambda dim, s: dynamic_ntk_frequencies(dim, s, 8192, original_length=4096),
    "yarn": lambda dim, s: yarn_frequencies(dim, s, original_length=4096),
    "llama3": lambda dim, s: llama3_frequencies(dim, s, original_length=4096),
}


@pytest.mark.parametrize("name", METHODS)
@given(dim=dims, factor=factors)
def test_nothing_gets_faster_and_factor_one_changes_nothing(name: str, dim: int, factor: float) -> None:
    usual = sinusoidal_frequencies(dim)
    if name != "dynamic":  # which stretches by what the length asks for, whatever its factor
        np.testing.assert_allclose(METHODS[name](dim, 1.0), usual, rtol=1e-12)
    ratio = METHODS[name](dim, factor) / usual
    assert (ratio <= 1 + 1e-12).all()
    least = 2 * factor - (factor - 1) if name == "dynamic" else factor
    assert (ratio >= 1 / least - 1e-12).all()
    assert (np.diff(ratio) <= 1e-12).all()  # slow pairs are slowed the most


@given(dim=dims, factor=factors)
def test_ntk_keeps_the_fastest_and_interpolates_the_slowest(dim: int, factor: float) -> None:
    ratio = ntk_frequencies(dim, factor) / sinusoidal_frequencies(dim)
    assert ratio[0] == 1
    assert ratio[-1] == pytest.approx(1 / factor)


@given(length=st.integers(1, 4096))
def test_dynamic_does_nothing_up_to_the_length_of_training(length: int) -> None:
    np.testing.assert_array_equal(
        dynamic_ntk_frequencies(64, 4, length, original_length=4096), sinusoidal_frequencies(64)
    )


@pytest.mark.parametrize("make", [yarn_frequencies, llama3_frequencies])
@pytest.mark.parametrize("base", [10000.0, 500000.0])
def test_turns_within_the_training_length_decide(make: Any, base: float) -> None:
    usual = sinusoidal_frequencies(128, base)
    ratio = make(128, 8, original_length=8192, base=base) / usual
    turns = 8192 * usual / (2 * math.pi)
    fast = turns > (40 if make is yarn_frequencies else 4)
    slow = turns < (0.9 if make is yarn_frequencies else 1)
    np.testing.assert_allclose(ratio[fast], 1, rtol=1e-12)
    np.testing.assert_allclose(ratio[slow], 1 / 8, rtol=1e-12)
    assert ((ratio > 0.13) & (ratio < 0.99)).sum() > 3


def test_yarn_ramp_without_truncation_is_narrower() -> None:
    whole, exact = (
        yarn_frequencies(64, 4, original_length=4096, truncate=truncate) / sinusoidal_frequencies(64)
        for truncate in (True, False)
    )
    assert ((exact > 0.25) & (exact < 1)).sum() <= ((whole > 0.25) & (whole < 1)).sum()
    assert not np.allclose(whole, exact)


def test_longrope_switches_sets() -> None:
    short, long = np.linspace(1, 2, 4), np.linspace(1, 16, 4)
    usual = sinusoidal_frequencies(8)
    for length, factors in ((4096, short), (4097, long)):
        found = longrope_frequencies(8, short, long, length, original_length=4096)
        np.testing.assert_array_equal(found, usual / factors)


def test_proportional_is_not_partial() -> None:
    found = proportional_frequencies(16, 0.25)
    np.testing.assert_array_equal(found, np.append(sinusoidal_frequencies(16)[:2], np.zeros(6)))
    assert not np.allclose(found[:2], sinusoidal_frequencies(4))
    np.testing.assert_array_equal(proportional_frequencies(20, 0.3)[:4] > 0, [True, True, True, False])
    assert np.count_nonzero(proportional_frequencies(90, 0.2889)) == 13  # 13.0005 pairs, and 12.9996 are 12
    assert np.count_nonzero(proportional_frequencies(90, 0.28888)) == 12
    np.testing.assert_array_equal(proportional_frequencies(16, 1, factor=8), linear_frequencies(16, 8))


def test_attention_factors() -> None:
    assert yarn_attention_factor(1) == longrope_attention_factor(1, original_length=4096) == 1.0
    assert yarn_attention_factor(40, mscale=1, mscale_all_dim=1) == 1.0
    assert yarn_attention_factor(16) == pytest.approx(1.27726)


WORD: Any = "8"


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: linear_frequencies(8, 0.5), ValueError, "factor must be finite and at least 1, got 0.5"),
        (lambda: linear_frequencies(8, WORD), TypeError, "factor must be a real number"),
        (lambda: ntk_frequencies(2, 2), ValueError, "dim must be at least 4"),
        (lambda: dynamic_ntk_frequencies(8, 2, 0, original_length=9), ValueError, "^length must be"),
        (lambda: yarn_frequencies(64, 2, original_length=3), ValueError, "original_length 3 must"),
        (lambda: yarn_frequencies(8, 2, original_length=10**6, base=2.0), ValueError, "original_length"),
        (lambda: yarn_frequencies(8, 2, original_length=99, beta_fast=1), ValueError, "beta_fast must be"),
        (lambda: yarn_attention_factor(2, mscale=1), ValueError, "must come together, got 1 and None"),
        (lambda: longrope_frequencies(4, [1], [1, 1], 9, original_length=9), ValueError, "short_factors"),
        (lambda: longrope_frequencies(4, [1, 1], [1, 0], 9, original_length=9), ValueError, "long_factors"),
        (lambda: longrope_frequencies(4, WORD, [1, 1], 9, original_length=9), TypeError, "short_factors"),
        (lambda: longrope_attention_factor(2, original_length=1), ValueError, "original_length must"),
        (lambda: llama3_frequencies(8, 2, original_length=9, high_freq_factor=1), ValueError, "high_freq"),
        (lambda: proportional_frequencies(8, 0.2), ValueError, "proportion must let at least one of 4 pairs"),
        (lambda: proportional_frequencies(8, 1.5), ValueError, "proportion must be at most 1"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
