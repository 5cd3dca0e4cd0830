"""The pictures of the first attempts: what they draw, in both languages, and what they refuse."""

from __future__ import annotations

import numpy as np
from drawings import curves, legend, points
from matplotlib.patches import Rectangle

from posenc import integer_encoding, one_hot_encoding, plot, sinusoidal_encoding

WORD = np.array([0.62, -0.51, 0.09, 0.85])
CODES = {"a": integer_encoding(9, 4), "b": one_hot_encoding(9), "c": sinusoidal_encoding(9, 6)}
SCORES = {"a": np.array([[1.0, 5, 2], [-4, -10, -3]]), "b": np.zeros((1, 3))}
SHARES = {"a": np.array([0.2, 0.5, 1.0]), "b": np.array([0.1, 0.1, 0.1])}


def test_sum_bars_put_the_embedding_on_top_of_the_code() -> None:
    ax = plot.sum_bars(WORD, {"1": np.full(4, 1.0), "10": np.full(4, 10.0)})
    heights = [(bar.get_y(), bar.get_height()) for bar in ax.patches if isinstance(bar, Rectangle)]
    assert heights[:4] == [(0, 1.0)] * 4
    np.testing.assert_allclose(heights[4:8], [(1.0, value) for value in WORD])
    assert heights[8:12] == [(0, 10.0)] * 4
    np.testing.assert_allclose(heights[12:], [(10.0, value) for value in WORD])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "10"]
    assert legend(ax) == ["code", "token embedding"]
    hatched = [bool(bar.get_hatch()) for bar in ax.patches]
    assert hatched == [True] * 4 + [False] * 4 + [True] * 4 + [False] * 4


def test_energy_shares_are_drawn_over_the_positions() -> None:
    ax = plot.energy_shares(SHARES)
    assert curves(ax) == {label: share.tolist() for label, share in SHARES.items()}
    assert legend(ax) == ["a", "b"]
    np.testing.assert_array_equal(points(ax.lines[0]), [[1, 0.2], [2, 0.5], [3, 1.0]])
    moved = plot.energy_shares(SHARES, positions=[10, 100, 1000])
    np.testing.assert_array_equal(points(moved.lines[1])[:, 0], [10, 100, 1000])
    moved.figure.draw_without_rendering()  # type: ignore[union-attr]
    assert "1 000" in [label.get_text() for label in moved.get_xticklabels()]


def test_score_curves_mark_the_maximum_of_each_head() -> None:
    left, right = plot.score_curves(SCORES).axes
    assert [ax.get_title(loc="left") for ax in (left, right)] == ["a", "b"]
    curves, dots = left.lines[::2], left.lines[1::2]
    np.testing.assert_allclose([points(line)[:, 1] for line in curves], SCORES["a"] / 10)
    assert [points(dot).tolist() for dot in dots] == [[[1, 0.5]], [[2, -0.3]]]
    assert points(right.lines[0])[:, 1].tolist() == [0, 0, 0]


def test_distance_profiles_show_the_distances() -> None:
    figure = plot.distance_profiles(CODES, 3)
    assert len(figure.axes) == 4
    assert not figure.axes[3].axison
    for ax, (label, codes) in zip(figure.axes, CODES.items(), strict=False):
        assert ax.get_title(loc="left") == label
        expected = [np.linalg.norm(codes[u] - codes[3]) for u in range(9)]
        np.testing.assert_allclose(points(ax.lines[0])[:, 1], expected)
        assert points(ax.lines[1]).tolist() == [[3, 0]]
    assert len(plot.distance_profiles({"one": CODES["a"]}, 0).axes) == 1
