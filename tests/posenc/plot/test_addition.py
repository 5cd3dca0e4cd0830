"""The pictures of addition show the numbers they are given, and say what they cannot draw."""

from __future__ import annotations

import math

import numpy as np
import pytest
from drawings import curves, legend, points, table, texts
from matplotlib.axes import Axes

from posenc import plot

E, CODES = np.array([1.0, 3.0]), np.array([[2.0, 1.0], [1.0, 3.0]])
X = np.random.default_rng(0).normal(size=(3, 4))
MOVED = np.zeros((4, 3, 2))
MOVED[1:, 0, 1] = [0.1, -0.2, 0.3]


def ends(ax: Axes) -> set[tuple[float, ...]]:
    """The far ends of all lines that start in the origin."""
    lines = [points(line) for line in ax.lines]
    return {tuple(line[-1]) for line in lines if len(line) == 2 and not line[0].any()}


def test_arrows_end_in_embedding_codes_and_sums() -> None:
    ax = plot.vector_sum(E, CODES)
    assert ends(ax) == {(1, 3), (2, 1), (3, 4), (2, 6)}
    assert {"(1, 3)", "(2, 1)", "(3, 4)", "(2, 6)"} <= set(texts(ax))
    assert texts(ax).count(f"{math.sqrt(5):.3f}") == 2
    words = {str(line.get_label()): tuple(points(line)[-1]) for line in ax.lines}
    assert words.items() >= {"token embedding": (1, 3), "position code": (2, 1), "sum": (3, 4)}.items()


def test_one_code_has_no_distance() -> None:
    assert texts(plot.vector_sum(E, CODES[:1])) == ["(2, 1)", "(1, 3)", "(3, 4)"]


def test_three_tables_with_one_scale() -> None:
    figure = plot.table_sum(X, 2 * X, tokens=["a", "b", "c"])
    axes = figure.axes[:3]
    for ax, expected in zip(axes, (X, 2 * X, 3 * X), strict=True):
        np.testing.assert_allclose(table(ax), expected)
        assert ax.get_images()[0].get_clim() == pytest.approx((-3 * np.abs(X).max(), 3 * np.abs(X).max()))
        assert ax.get_xlabel() == "3 × 4"
    assert [texts(ax) for ax in axes] == [[""], ["+"], ["="]]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["a", "b", "c"]


def test_panels_show_changes_since_the_start() -> None:
    figure = plot.training_panels(MOVED + 5, np.ones((4, 2, 2)), tokens=["x", "y", "z"])
    above, below = figure.axes[:3], figure.axes[3:6]
    for step, ax in enumerate(above, start=1):
        np.testing.assert_allclose(table(ax), MOVED[step])
        assert ax.get_title() == f"step {step}\nlargest {step / 10:.2f}"
    for ax in below:
        assert not table(ax).any()
        assert ax.get_title() == "largest 0.00"
    assert all(ax.get_images()[0].get_clim() == pytest.approx((-0.3, 0.3)) for ax in above + below)
    assert [label.get_text() for label in above[0].get_yticklabels()] == ["x", "y", "z"]


def test_curves_show_the_shares() -> None:
    ax = plot.read_back_curves([4, 8, 16], {"one": [0.1, 0.5, 1.0], "two": [0, 0, 0.2]})
    assert curves(ax) == {"one": [0.1, 0.5, 1], "two": [0, 0, 0.2]}
    assert points(ax.lines[0])[:, 0].tolist() == [4, 8, 16]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["4", "8", "16"]
    assert legend(ax) == ["one", "two"]
    assert ax.get_ylim() == (0, 1)
