"""The pictures of the chapter on ALiBi show what the formulas say, in both languages."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from drawings import legend, points, table
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle, StepPatch

from posenc import alibi_bias, alibi_slopes, plot
from posenc.plot._style import BLUE, ORANGE


def bars(ax: Axes, color: str) -> list[float]:
    """The heights of the bars of one colour."""
    found = [bar for bar in ax.patches if isinstance(bar, Rectangle)]
    return [bar.get_height() for bar in found if to_rgb(bar.get_facecolor()) == to_rgb(color)]


def test_maps_show_the_bias_on_one_scale_and_cross_out_later_keys() -> None:
    figure = plot.alibi_maps([1 / 2, 1 / 8, 0.3], 5)
    assert len(figure.axes) == 4
    for ax, m, label in zip(figure.axes, (1 / 2, 1 / 8, 0.3), ("1/2", "1/8", "0.3"), strict=False):
        bias = alibi_bias(m, 5)
        (image,) = ax.images
        np.testing.assert_array_equal(table(ax)[np.isfinite(bias)], bias[np.isfinite(bias)])
        assert image.get_clim() == (-2.0, 0.0)
        crosses = points(ax.lines[0])
        assert {(u, t) for t, u in np.argwhere(np.isinf(bias))} == {tuple(xy) for xy in crosses}
        assert ax.get_title(loc="left") == f"slope {label}"
        numbers = {text.get_position(): text.get_text() for text in ax.texts}
        assert len(numbers) == 15
        assert numbers[1, 3] == {"1/2": "−1", "1/8": "−1/4", "0.3": "−0.6"}[label]
    assert not figure.axes[3].axison
    assert not plot.alibi_maps([0.5], 6).axes[0].texts
    # too long for a cell: a bar says what the colours mean
    map_, bar = plot.alibi_maps([1 / 256], 4).axes
    assert not map_.texts
    assert bar.get_ylabel() == "bias"


def test_weights_sum_to_one_and_the_dot_is_at_90_percent() -> None:
    ax = plot.alibi_weights(alibi_slopes(8)[:3], 400)
    curves = [line for line in ax.lines if line.get_marker() == "None"]
    dots = [points(line)[0] for line in ax.lines if line.get_marker() != "None"]
    assert len(curves) == len(dots) == 3
    assert legend(ax) == ["slope 1/2", "slope 1/4", "slope 1/8"]
    for m, curve, (window, weight) in zip((1 / 2, 1 / 4, 1 / 8), curves, dots, strict=True):
        weights = points(curve)[:, 1]
        np.testing.assert_allclose(weights[1:] / weights[:-1], math.exp(-m))
        assert weights.sum() == pytest.approx(1, abs=1e-9)
        shares = weights.cumsum()
        assert shares[int(window)] >= 0.9 > shares[int(window) - 1]
        assert weight == weights[int(window)]
    assert ax.get_yscale() == "log"


def test_a_dot_beyond_the_end_is_left_out() -> None:
    ax = plot.alibi_weights([1 / 256], 100)
    assert [line.get_marker() for line in ax.lines] == ["None"]


def test_rows_show_scores_and_weights_with_and_without_content() -> None:
    scores = np.array([3.0, -1.0, 0.5, 1.0])
    figure = plot.alibi_rows(scores, [0, 0.5])
    assert len(figure.axes) == 3
    np.testing.assert_allclose(bars(figure.axes[0], ORANGE), scores)
    distance = np.array([3, 2, 1, 0])
    for ax, m in zip(figure.axes[1:], (0, 0.5), strict=True):
        (outline,) = [patch for patch in ax.patches if isinstance(patch, StepPatch)]
        for heights, content in ((bars(ax, BLUE), scores), (outline.get_data()[0], 0)):
            exps = np.exp(content - m * distance)
            np.testing.assert_allclose(heights, exps / exps.sum())
    assert figure.axes[1].get_ylim() == figure.axes[2].get_ylim()


def test_curves_by_key_position() -> None:
    ax = plot.weight_curves({"a": np.array([0.1, 0.4, 0.5]), "b": torch.tensor([0.2, 0.3, 0.5])}, first=7)
    for line, row in zip(ax.lines, ([0.1, 0.4, 0.5], [0.2, 0.3, 0.5]), strict=True):
        np.testing.assert_allclose(points(line), np.column_stack([[7, 8, 9], row]), rtol=1e-6)
    assert legend(ax) == ["a", "b"]
    assert ax.get_ylim()[0] == 0
