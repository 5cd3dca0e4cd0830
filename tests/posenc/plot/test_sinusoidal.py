"""The pictures of the sinusoidal encoding show its numbers, speak both languages and refuse bad input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from drawings import legend, points, table

from posenc import plot, sinusoidal_encoding, sinusoidal_wavelengths
from posenc.sinusoidal import code_distance


def test_clock_hands_show_the_code() -> None:
    figure = plot.clock_hands([0, 50], 8)
    codes = sinusoidal_encoding(np.array([0, 50]), 8).reshape(8, 2)
    tips = [ax.lines[-1].get_xydata()[0] for ax in figure.axes]  # type: ignore[index]
    np.testing.assert_array_equal(tips, codes)
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == [f"wavelength\n{number}" for number in ("6.28", "62.8", "628", "6 283")] + [""] * 4
    assert [ax.get_ylabel() for ax in figure.axes[::4]] == ["t = 0", "t = 50"]
    hands = [ax.lines[-2].get_xydata() for ax in figure.axes]
    np.testing.assert_array_equal(hands, np.stack([np.zeros_like(codes), codes], axis=1))


def test_code_distances_show_every_offset_and_one_step() -> None:
    figure = plot.code_distances([4, 64], n=30)
    for ax, dim in zip(figure.axes, (4, 64), strict=True):
        step, curve = ax.lines
        np.testing.assert_array_equal(curve.get_ydata(), code_distance(30, dim))
        np.testing.assert_array_equal(step.get_ydata(), [code_distance(30, dim)[1]] * 2)
        assert ax.get_title(loc="left") == f"width {dim}"
        assert ax.get_ylim() == (0, 2 * math.sqrt(dim / 2))


@pytest.mark.parametrize("dim", [2, 4, 16])
def test_nearest_codes_is_the_smallest_distance_of_that_many_positions(dim: int) -> None:
    ax = plot.nearest_codes([dim], n=800)
    x, y = ax.lines[0].get_xydata().T  # type: ignore[union-attr]
    assert x[0] == 2
    assert x[-1] == 800
    codes = sinusoidal_encoding(800, dim)
    for n in (2, 7, 8, 45, 711, 800):
        gaps = np.linalg.norm(codes[:n, None] - codes[None, :n], axis=-1)
        smallest = gaps[~np.eye(n, dtype=bool)].min()
        shown = y[np.searchsorted(x, n, side="right") - 1]  # a step holds its value to the next one
        assert shown == pytest.approx(smallest, rel=1e-6)


def test_wavelength_ladder_shows_every_rung_and_the_limit_above_them() -> None:
    ax = plot.wavelength_ladder([4, 64], base=500)
    limit, *rungs = ax.lines
    for line, dim in zip(rungs, (4, 64), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), sinusoidal_wavelengths(dim, 500))
        assert np.max(line.get_xdata()) < limit.get_xdata()[0]  # type: ignore[index]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["width 4", "width 64"]
    assert [points(line)[0, 1] for line in rungs] == [0, 1]
    assert limit.get_xdata()[0] == 2 * math.pi * 500  # type: ignore[index]


def test_waveforms_show_the_columns_of_each_pair() -> None:
    figure = plot.waveforms(64, pairs=[5, 0], n=20)
    codes = sinusoidal_encoding(20, 64)
    assert legend(figure.axes[0]) == ["sine", "cosine"]
    for ax, i in zip(figure.axes, (5, 0), strict=True):
        sine, sine_dots, cosine, cosine_dots = ax.lines
        np.testing.assert_array_equal(sine_dots.get_ydata(), codes[:, 2 * i])
        np.testing.assert_array_equal(cosine_dots.get_ydata(), codes[:, 2 * i + 1])
        assert (sine.get_label(), cosine.get_label()) == ("sine", "cosine")
        for curve, column in ((sine, 2 * i), (cosine, 2 * i + 1)):
            t, y = points(curve).T
            np.testing.assert_array_equal(y, sinusoidal_encoding(t, 64)[:, column])


def test_waveforms_choose_pairs_from_the_fastest_to_the_slowest() -> None:
    titles = [ax.get_title(loc="left") for ax in plot.waveforms(8).axes]
    assert [title.split(" · ")[0] for title in titles] == ["pair 0", "pair 1", "pair 2", "pair 3"]
    assert len(plot.waveforms(2).axes) == 1


def test_heat_map_shows_the_table_on_a_scale_that_is_even_about_zero() -> None:
    codes = np.array([[0.5, -2.0], [1.0, 0.0]])
    ax = plot.heat_map(codes)
    np.testing.assert_array_equal(table(ax), codes)
    assert ax.images[0].get_clim() == (-2, 2)
    _, bar = ax.figure.axes
    assert [label.get_text() for label in bar.get_yticklabels()] == ["−2", "0", "2"]
