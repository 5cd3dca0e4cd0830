"""The pictures of the chapter on longer texts show what the measures say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawings import curves, legend, points
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Wedge

from posenc import alibi_bias, plot, sinusoidal_frequencies
from posenc.extrapolation import row_visits, score_needed
from posenc.plot._style import BLUE, ORANGE
from posenc.rotary import linear_frequencies


def wedges(ax: Axes) -> list[tuple[Any, ...]]:
    """Colour, first and last angle of each wedge, as shares of the circle."""
    return [
        (to_hex(wedge.get_edgecolor()), wedge.theta1 / 360, wedge.theta2 / 360)
        for wedge in ax.patches
        if isinstance(wedge, Wedge)
    ]


def test_wedges_are_the_angles_of_training_and_those_beyond() -> None:
    usual, stretched = sinusoidal_frequencies(8), linear_frequencies(8, 8)
    figure = plot.seen_angles({"a": usual, "b": stretched}, [0, 1, 2], 32, 256)
    fast, middle, slow, *later = figure.axes
    assert wedges(fast) == [(BLUE, 0, 1)]
    met = 0.1 * 32 / (2 * np.pi)
    assert wedges(middle) == [(BLUE, 0, pytest.approx(met)), (ORANGE, pytest.approx(met), pytest.approx(1))]
    assert wedges(slow)[1][2] == pytest.approx(0.01 * 256 / (2 * np.pi))
    assert [len(wedges(ax)) for ax in later] == [1, 1, 1]  # squeezed into what was met
    assert [ax.get_ylabel() for ax in figure.axes[::3]] == ["a", "b"]


def test_visits_and_needs_are_drawn_as_they_are() -> None:
    visits = {"a": row_visits(20, 5), "b": row_visits(20, 5, max_start=15)}
    assert curves(plot.visit_shares(visits)) == {label: list(shares) for label, shares in visits.items()}
    row = alibi_bias(0.25, 1, 60)[0]
    (line,) = plot.needed_scores({"a": row}, share=0.9).lines
    back, needed = points(line).T
    assert (back[0], back[-1]) == (1, 59)
    np.testing.assert_allclose(needed, score_needed(row, 0.9)[59 - back.astype(int)])


def test_entropies_lie_below_that_of_equal_weights() -> None:
    ax = plot.entropy_curves({"a": [1.0, 1.5]}, [4, 64], trained=4)
    assert curves(ax) == {"equal weights": [np.log(4), np.log(64)], "a": [1.0, 1.5]}
    assert [text.get_text() for text in ax.get_xticklabels()] == ["4", "64"]


def test_the_mark_of_a_base_is_at_its_first_negative_sum() -> None:
    ax = plot.cosine_sums([10_000.0, 500_000.0], 128, 4096)
    (mark,) = [points(line) for line in ax.lines if line.get_linestyle() == "None"]
    assert mark[0, 0] == 1707  # the other base has none before 4096
    assert -0.01 < mark[0, 1] < 0
    assert legend(ax) == ["base 10 000", "base 500 000"]


def test_mean_cosines_go_as_far_down_and_up_as_they_do_at_all_distances() -> None:
    (line,) = [line for line in plot.cosine_sums([1e4], 128, 65536).lines if np.size(line.get_xdata()) > 2]
    omega = sinusoidal_frequencies(128)
    everywhere = np.cos(np.arange(1.0, 65537)[:, None] * omega).mean(axis=1)
    distances, means = points(line).T
    np.testing.assert_allclose(means, everywhere[distances.astype(int) - 1])
    assert (means.min(), means.max()) == (everywhere.min(), everywhere.max())
    assert means.min() == pytest.approx(-0.282, abs=5e-4)  # of one distance in a hundred it was −0.2
    assert distances[:9].tolist() == list(range(1, 10))
    assert len(distances) < 250


def test_heads_are_curves_and_panels_are_as_long_as_their_query_has_keys() -> None:
    rng = np.random.default_rng(0)
    short, long = rng.dirichlet(np.ones(29), 4), rng.dirichlet(np.ones(251), 4)
    figure = plot.distance_weights({"t = 28": short, "t = 250": long}, trained=32)
    for ax, weights in zip(figure.axes, (short, long), strict=True):
        assert curves(ax) == {f"head {head + 1}": row.tolist() for head, row in enumerate(weights)}
    assert [len(ax.patches) for ax in figure.axes] == [0, 1]  # the shaded part, where there is another


def test_panels_share_looks_and_have_means_and_spreads() -> None:
    runs = np.array([[1.0, 0.8], [0.9, 0.2], [1.0, 0.5]])
    figure = plot.accuracy_by_length({"x": {"a": runs, "b": runs / 2}, "y": {"b": runs[:1]}}, [32, 256])
    first, second = (ax for ax in figure.axes if ax.axison)
    assert curves(first) == {"a": runs.mean(axis=0).tolist(), "b": (runs / 2).mean(axis=0).tolist()}
    assert curves(second) == {"b": runs[0].tolist()}
    looks = [next(line for line in ax.lines if line.get_label() == "b") for ax in (first, second)]
    assert len({(line.get_color(), line.get_marker()) for line in looks}) == 1
    spread = first.collections[0].get_paths()[0].vertices
    assert set(np.asarray(spread)[:, 1]) == {0.9, 1.0, 0.2, 0.8}
    assert not second.collections  # one seed has no spread
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a", "b"]


def test_bins_stand_at_their_middle() -> None:
    runs = np.array([[1.0, 0.5, 0.25], [0.5, 0.5, 0.0]])
    ax = plot.score_by_position({"a": runs}, 16)
    np.testing.assert_allclose(points(ax.lines[0]), [[7.5, 0.75], [23.5, 0.5], [39.5, 0.125]])
    assert ax.get_ylabel() == "accuracy"
    ax = plot.score_by_position({"a": 3 + runs}, measure="perplexity", lang="zh")
    assert ax.get_ylabel() == "困惑度"
    assert points(ax.lines[0])[0].tolist() == [0, 3.75]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot.entropy_curves({"a": [1.0, 2.0]}, [64, 4]), "lengths must ascend"),
        (lambda: plot.score_by_position({"a": np.ones((1, 3))}, measure="loss"), "measure must be"),  # type: ignore[arg-type]
        (lambda: plot.score_by_position({"a": np.full((1, 3), 1.5)}), "must be at least 0 and at most 1"),
        (lambda: plot.needed_scores({"a": np.zeros(2)}), r"biases\['a'\] must have shape \(n,\) with n >= 3"),
        (
            lambda: plot.accuracy_by_length({str(k): {str(k): np.ones((1, 1))} for k in range(6)}, [1]),
            "panels must hold at most 5 labels in all, got 6",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=message):
        call()
