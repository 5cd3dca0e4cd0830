"""The pictures of locality show what the formulas say, in both languages."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.lines import Line2D

from posenc import gaussian_weights, plot, rbf_encoding, rbf_kernel
from posenc.plot._style import Lang


def points(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_xydata(), dtype=float)


def test_bumps_and_the_code_of_a_position() -> None:
    centers = [0.0, 2.0, 5.0]
    ax = plot.rbf_bumps(6, centers, 1.5, position=3)
    bumps = [line for line in ax.lines if len(points(line)) > 100]
    for line, c in zip(bumps, centers, strict=True):
        x, y = points(line).T
        np.testing.assert_allclose(y, np.exp(-((x - c) ** 2) / 4.5))
    (dots,) = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(points(dots)[:, 1], rbf_encoding([3], centers, 1.5)[0])
    (middle,) = [line for line in plot.rbf_bumps(6, centers, 1.5).lines if line.get_marker() == "o"]
    assert (points(middle)[:, 0] == 2).all()


def test_blurs_show_softmax_and_the_gaussian_of_its_curvature() -> None:
    figure = plot.attention_blurs(41, 2.0, [0.5, 8.0], position=10)
    for ax, peak in zip(figure.axes, (0.5, 8.0), strict=True):
        gaussian, weights = (points(line)[:, 1] for line in ax.lines)
        np.testing.assert_allclose(gaussian, gaussian_weights(41, 2 * math.sqrt(2 / peak))[10])
        logits = peak * rbf_kernel(np.arange(41) - 10, 2.0) / rbf_kernel(1, 2.0)
        np.testing.assert_allclose(weights, np.exp(logits) / np.exp(logits).sum())
        assert ax.get_title(loc="left").startswith(f"peak {peak:g} · TV ")


def test_curves_start_at_0_and_weights_at_1() -> None:
    figure = plot.locality_curves({"a": -np.arange(5) / 2 + 7, "b": np.zeros(5)})
    fall, weight = (points(ax.lines[0])[:, 1] for ax in figure.axes)
    np.testing.assert_allclose(fall, -np.arange(5) / 2)
    np.testing.assert_allclose(weight, np.exp(-np.arange(5) / 2))
    styles = [(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines]
    assert len({color for color, _ in styles}) == len({line for _, line in styles}) == 2
    assert len(plot.locality_curves({"a": np.zeros(5)}, weights=False).axes) == 1


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_both_languages(lang: Lang) -> None:
    ax = plot.rbf_bumps(5, [0, 2, 4], 1.0, lang=lang)
    assert ax.get_ylabel() == {"en": "value", "zh": "取值"}[lang]
    for figure in (
        plot.attention_blurs(21, 2.0, [1.0, 2.0, 3.0], lang=lang),
        plot.locality_curves({"a": np.zeros(5)}, lang=lang),
    ):
        figure.draw_without_rendering()


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match="n must be at least 2, got 1"):
        plot.rbf_bumps(1, [0], 1.0)
    with pytest.raises(ValueError, match="peaks must hold one to four heights, got 0"):
        plot.attention_blurs(5, 1.0, [])
    with pytest.raises(ValueError, match=r"each of peaks must be finite and above 0, got 0\.0"):
        plot.attention_blurs(5, 1.0, [0.0])
    with pytest.raises(ValueError, match=r"position must lie in 0\.\.4, got 5"):
        plot.attention_blurs(5, 1.0, [1.0], position=5)
    with pytest.raises(ValueError, match="scores must hold one to six labelled curves, got 0"):
        plot.locality_curves({})
    with pytest.raises(ValueError, match=r"scores\['a'\] must have shape \(n,\), got \(2, 2\)"):
        plot.locality_curves({"a": np.zeros((2, 2))})
    with pytest.raises(ValueError, match=r"scores\['a'\] must be finite"):
        plot.locality_curves({"a": [0.0, math.inf]})
    with pytest.raises(ValueError, match="lang"):
        plot.locality_curves({"a": np.zeros(2)}, lang="de")  # type: ignore[arg-type]
