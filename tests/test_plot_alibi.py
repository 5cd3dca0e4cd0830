"""The pictures of the chapter on ALiBi show what the formulas say, in both languages."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, StepPatch

from posenc import alibi_bias, alibi_slopes, plot
from posenc.plot._style import BLUE, ORANGE, Lang


def points(line: Line2D) -> np.ndarray:
    """The points of a curve, shape (n, 2)."""
    return np.asarray(line.get_xydata(), dtype=float)


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
        shown: np.ndarray = np.ma.getdata(np.ma.asarray(image.get_array()))
        np.testing.assert_array_equal(shown[np.isfinite(bias)], bias[np.isfinite(bias)])
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
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    assert ax.get_ylim()[0] == 0


CALLS: dict[str, Any] = {
    "alibi_maps": lambda lang: plot.alibi_maps([0.5, 0.25], 20, lang=lang),
    "alibi_weights": lambda lang: plot.alibi_weights([0.5, 0.3], 20, lang=lang).figure,
    "alibi_rows": lambda lang: plot.alibi_rows(np.zeros(9), [0.5], lang=lang),
    "weight_curves": lambda lang: plot.weight_curves({"W": np.ones(3)}, lang=lang).figure,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_drawn_in_both_languages(name: str, lang: Lang) -> None:
    figure = CALLS[name](lang)
    figure.canvas.draw()
    said = " ".join(text.get_text() for text in figure.findobj(lambda a: hasattr(a, "get_text")))
    assert any("一" <= letter <= "鿿" for letter in said) == (lang == "zh")
    assert "$" not in said


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot.alibi_maps([], 3), "slopes must hold one to 4 numbers"),
        (lambda: plot.alibi_maps([0.5] * 5, 3), "slopes must hold one to 4 numbers"),
        (lambda: plot.alibi_maps([-0.5], 3), "slopes must be at least 0, got -0.5"),
        (lambda: plot.alibi_maps([0.5], 0), "n must be at least 1, got 0"),
        (lambda: plot.alibi_weights([0.0], 9), "slopes must be above 0 for an endless past"),
        (lambda: plot.alibi_weights([0.5], 1), "n must be at least 2, got 1"),
        (lambda: plot.alibi_rows(np.zeros((2, 2)), [0.5]), r"scores must have shape \(n,\)"),
        (lambda: plot.alibi_rows(np.array([np.nan]), [0.5]), "scores must be finite"),
        (lambda: plot.weight_curves({}), "weights must hold one to 6"),
        (lambda: plot.weight_curves({"a": np.ones(2), "b": np.ones(3)}), r"weights\['b'\] must have shape"),
        (lambda: plot.weight_curves({"a": np.ones(2)}, first=-1), "first must be at least 0"),
        (lambda: plot.alibi_maps([0.5], 3, lang=cast(Lang, "de")), 'lang must be "en" or "zh"'),
    ],
)
def test_bad_arguments(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
