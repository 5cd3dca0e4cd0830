"""The picture of the chapter on graphs shows each node, each edge once, and each value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawings import points, texts
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from scipy import sparse

from posenc import plot

PATH = np.eye(4, k=1) + np.eye(4, k=-1)
PLACES = np.stack([np.arange(4.0), [0, 1, 0, 1]], axis=1)


def edges(ax: Axes) -> set[tuple[int, ...]]:
    (lines,) = (artist for artist in ax.collections if isinstance(artist, LineCollection))
    ends = [sorted(np.asarray(line)[:, 0].astype(int)) for line in lines.get_segments()]
    assert len(ends) == len({tuple(end) for end in ends})
    return {tuple(end) for end in ends}


@pytest.mark.parametrize("graph", [PATH, sparse.csr_array(PATH), np.triu(PATH), np.tril(3 * PATH)])
def test_each_edge_is_drawn_once_and_each_node_at_its_place(graph: np.ndarray) -> None:
    first, second = plot.graph_codes(graph, PLACES, {"a": [-2, 0, 1, 2], "b": [0, 1, 2, 3]}).axes
    for ax, label in ((first, "a"), (second, "b")):
        assert edges(ax) == {(0, 1), (1, 2), (2, 3)}
        np.testing.assert_array_equal([points(line)[0] for line in ax.lines], PLACES)
        assert ax.get_title(loc="left") == label
    assert texts(first) == ["−2", "0", "1", "2"]
    assert [line.get_marker() for line in first.lines] == ["o", "D", "s", "s"]
    sizes = [line.get_markersize() for line in first.lines]
    assert sizes[0] == sizes[3] > sizes[2] > sizes[1]


def test_the_legend_holds_what_is_there() -> None:
    def words(codes: list[float], **options: Any) -> list[str]:
        figure = plot.graph_codes(PATH, PLACES, {"a": codes}, **options)
        return [text.get_text() for text in figure.legends[0].get_texts()]

    assert words([1, 2, 3, 4]) == ["above 0"]
    assert words([-1, 2, 0, 4], lang="zh") == ["大于 0", "小于 0", "零"]


def test_many_nodes_have_no_numbers() -> None:
    n = 25
    figure = plot.graph_codes(np.eye(n, k=1), np.random.default_rng(0).normal(size=(n, 2)), {"a": np.ones(n)})
    assert not texts(figure.axes[0])
    assert len(figure.axes[0].lines) == n
