"""The pictures of the first attempts: what they draw, in both languages, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from posenc import integer_encoding, one_hot_encoding, plot, sinusoidal_encoding

CHINESE = re.compile("[\u4e00-\u9fff]")
WORD = np.array([0.62, -0.51, 0.09, 0.85])
CODES = {"a": integer_encoding(9, 4), "b": one_hot_encoding(9), "c": sinusoidal_encoding(9, 6)}
SCORES = {"a": np.array([[1.0, 5, 2], [-4, -10, -3]]), "b": np.zeros((1, 3))}
SHARES = {"a": np.array([0.2, 0.5, 1.0]), "b": np.array([0.1, 0.1, 0.1])}

DRAWINGS: list[Callable[..., Axes | Figure]] = [
    lambda **k: plot.sum_bars(WORD, {"1": WORD + 1, "2": WORD + 2}, **k),
    lambda **k: plot.energy_shares(SHARES, **k),
    lambda **k: plot.score_curves(SCORES, **k),
    lambda **k: plot.distance_profiles(CODES, 3, **k),
]


def figure_of(drawn: Axes | Figure) -> Figure:
    figure = drawn if isinstance(drawn, Figure) else drawn.figure
    assert isinstance(figure, Figure)
    return figure


def points(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_xydata(), dtype=float)


def all_text(figure: Figure) -> str:
    figure.canvas.draw()
    return " ".join(text.get_text() for text in figure.findobj(plt.Text) if text.get_visible())


@pytest.mark.parametrize("draw", DRAWINGS)
def test_both_languages_and_the_width_of_the_book(draw: Callable[..., Axes | Figure]) -> None:
    english, chinese = (figure_of(draw(lang=lang)) for lang in ("en", "zh"))
    assert english.get_figwidth() == chinese.get_figwidth() == 4.8
    assert not CHINESE.search(all_text(english))
    assert CHINESE.search(all_text(chinese))
    # No mathtext: the pages' fonts draw the labels.
    assert "$" not in all_text(english) + all_text(chinese)


@pytest.mark.parametrize("draw", DRAWINGS)
def test_unknown_language(draw: Callable[..., Axes | Figure]) -> None:
    with pytest.raises(ValueError, match='lang must be "en" or "zh", got \'de\''):
        draw(lang="de")


def test_given_axes_are_drawn_into() -> None:
    _, (left, right) = plt.subplots(1, 2)
    assert plot.sum_bars(WORD, {"1": WORD}, ax=left) is left
    assert plot.energy_shares(SHARES, ax=right) is right
    assert len(plt.get_fignums()) == 1


def test_sum_bars_put_the_embedding_on_top_of_the_code() -> None:
    ax = plot.sum_bars(WORD, {"1": np.full(4, 1.0), "10": np.full(4, 10.0)})
    heights = [(bar.get_y(), bar.get_height()) for bar in ax.patches if isinstance(bar, Rectangle)]
    assert heights[:4] == [(0, 1.0)] * 4
    np.testing.assert_allclose(heights[4:8], [(1.0, value) for value in WORD])
    assert heights[8:12] == [(0, 10.0)] * 4
    np.testing.assert_allclose(heights[12:], [(10.0, value) for value in WORD])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "10"]
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["code", "token embedding"]


def test_energy_shares_are_drawn_over_the_positions() -> None:
    ax = plot.energy_shares(SHARES)
    assert [line.get_label() for line in ax.lines] == ["a", "b"]
    np.testing.assert_array_equal(points(ax.lines[0]), [[1, 0.2], [2, 0.5], [3, 1.0]])
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    moved = plot.energy_shares(SHARES, positions=[10, 100, 1000])
    np.testing.assert_array_equal(points(moved.lines[1])[:, 0], [10, 100, 1000])
    assert "1 000" in all_text(figure_of(moved))


def test_score_curves_mark_the_maximum_of_each_head() -> None:
    left, right = plot.score_curves(SCORES).axes
    assert left.get_title(loc="left") == "a"
    curves, dots = left.lines[::2], left.lines[1::2]
    np.testing.assert_allclose([points(line)[:, 1] for line in curves], SCORES["a"] / 10)
    assert [points(dot).tolist() for dot in dots] == [[[1, 0.5]], [[2, -0.3]]]
    assert points(right.lines[0])[:, 1].tolist() == [0, 0, 0]


def test_distance_profiles_show_the_distances() -> None:
    figure = plot.distance_profiles(CODES, 3)
    assert len(figure.axes) == 4
    assert not figure.axes[3].axison
    for ax, codes in zip(figure.axes, CODES.values(), strict=False):
        expected = [np.linalg.norm(codes[u] - codes[3]) for u in range(9)]
        np.testing.assert_allclose(points(ax.lines[0])[:, 1], expected)
        assert points(ax.lines[1]).tolist() == [[3, 0]]
    assert len(plot.distance_profiles({"one": CODES["a"]}, 0).axes) == 1


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot.sum_bars(WORD[None], {"1": WORD}), r"embedding must have shape \(dim,\).*got \(1, 4\)"),
        (lambda: plot.sum_bars([], {"1": []}), r"embedding must have shape .*got \(0,\)"),
        (lambda: plot.sum_bars(WORD, {"1": WORD[:3]}), r"codes\['1'\] must have shape \(4,\), got \(3,\)"),
        (lambda: plot.sum_bars(WORD, {}), "codes must hold at least one"),
        (lambda: plot.energy_shares({}), "shares must hold at least one"),
        (lambda: plot.energy_shares({"a": [0.5], "b": [0.5, 0.6]}), r"shares\['b'\] must be 1 numbers"),
        (lambda: plot.energy_shares({"a": [[0.5]]}), r"shares\['a'\] must be 1 numbers"),
        (lambda: plot.energy_shares({"a": [1.5]}), r"shares\['a'\] must be 1 numbers between 0 and 1"),
        (lambda: plot.energy_shares({"a": [np.nan]}), r"shares\['a'\] must be finite, got nan"),
        (lambda: plot.energy_shares(SHARES, positions=[1, 2]), "positions must be 3 numbers above 0"),
        (lambda: plot.energy_shares(SHARES, positions=[0, 1, 2]), "positions must be 3 numbers above 0"),
        (lambda: plot.score_curves({}), "scores must hold at least one"),
        (
            lambda: plot.score_curves({"a": [1.0, 2]}),
            r"scores\['a'\] must have shape \(heads, n\), got \(2,\)",
        ),
        (lambda: plot.distance_profiles({}, 0), "codes must hold at least one"),
        (
            lambda: plot.distance_profiles({"a": WORD}, 0),
            r"codes\['a'\] must have shape \(4, dim\), got \(4,\)",
        ),
        (
            lambda: plot.distance_profiles({"a": np.eye(3), "b": np.eye(2)}, 0),
            r"codes\['b'\] must have shape \(3",
        ),
        (lambda: plot.distance_profiles(CODES, 9), r"position must lie in 0\.\.8, got 9"),
        (lambda: plot.distance_profiles(CODES, -1), "position must be at least 0, got -1"),
    ],
)
def test_what_cannot_be_drawn(draw: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()
