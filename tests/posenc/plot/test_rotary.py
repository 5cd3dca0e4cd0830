"""The pictures of the rotary embedding show its numbers, speak both languages and refuse bad input."""

from __future__ import annotations

import numpy as np
import pytest
from drawings import curves, legend, points

from posenc import plot, sinusoidal_frequencies, sinusoidal_wavelengths
from posenc.plot._style import BLUE, ORANGE
from posenc.rotary import linear_frequencies, ntk_frequencies

METHODS = {"linear": linear_frequencies(64, 8), "NTK": ntk_frequencies(64, 8)}


def test_rotating_pairs_turn_counter_clockwise_and_keep_their_angle() -> None:
    figure = plot.rotating_pairs([(2, 5), (12, 15)], 4)
    angles = []
    for ax in figure.axes:
        q, k = (points(ax.lines[j])[0] @ [1, 1j] for j in (2, 4))
        angles.append([np.angle(q), np.angle(k / q)])
    assert [ax.get_title() for ax in figure.axes] == ["wavelength\n6.28", "wavelength\n628", "", ""]
    assert [ax.get_ylabel() for ax in figure.axes[::2]] == ["t = 2\nu = 5", "t = 12\nu = 15"]
    hands = {str(line.get_label()): line.get_color() for line in figure.axes[0].lines}
    assert (hands["query"], hands["key"]) == (BLUE, ORANGE)
    assert [figure.axes[0].lines[j].get_color() for j in (2, 4)] == [BLUE, ORANGE]
    found = np.reshape(angles, (2, 2, 2))
    np.testing.assert_allclose(found[0, :, 0], 2 * sinusoidal_frequencies(4))
    np.testing.assert_allclose(found[..., 1], np.tile(3 * sinusoidal_frequencies(4), (2, 1)))


def test_head_scores_are_cosines() -> None:
    ax = plot.head_scores([8], n=16)
    x, y = np.asarray(ax.lines[1].get_xydata()).T
    np.testing.assert_allclose(y, np.cos(2 * np.pi * x / 8), atol=1e-12)
    assert legend(ax) == ["λ = 8"]
    np.testing.assert_allclose(np.asarray(ax.lines[2].get_xydata()), [[8 / 6, 0.5]])


def test_period_comb_marks_every_multiple() -> None:
    ax = plot.period_comb(12, 50)
    marked = np.asarray(ax.lines[1].get_xydata())
    assert marked[:, 0].tolist() == [2, 14, 26, 38, 50]
    np.testing.assert_allclose(marked[:, 1], 1)
    assert plot.period_comb(12, 50, n=80).lines[1].get_xydata().shape == (7, 2)  # type: ignore[union-attr]


def test_score_decay_falls_for_equal_vectors_only() -> None:
    equal, independent = plot.score_decay(64, n=101, samples=500).axes
    mean = np.asarray(equal.lines[1].get_ydata())
    assert mean[0] == pytest.approx(64, abs=2)
    assert mean[100] == pytest.approx(36, abs=3)
    assert [ax.get_title(loc="left") for ax in (equal, independent)] == ["q = k", "q and k independent"]
    assert np.abs(np.asarray(independent.lines[1].get_ydata())).max() < 2


def test_frequency_ratios_show_what_is_slowed() -> None:
    ax = plot.frequency_ratios(METHODS)
    linear, ntk = (np.array(curves(ax)[label]) for label in METHODS)
    np.testing.assert_allclose(linear, 1 / 8)
    np.testing.assert_allclose(ntk[[0, -1]], [1, 1 / 8])
    np.testing.assert_array_equal(points(ax.lines[0])[:, 0], sinusoidal_wavelengths(64))
    assert legend(ax) == list(METHODS)
