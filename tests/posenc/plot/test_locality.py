"""The pictures of locality show what the formulas say, in both languages."""

from __future__ import annotations

import math

import numpy as np
from drawings import curves, legend, points

from posenc import plot, rbf_encoding
from posenc.locality import gaussian_weights, rbf_kernel


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
        gaussian, weights = curves(ax).values()
        assert list(curves(ax)) == ["Gaussian", "attention weight"]
        np.testing.assert_allclose(gaussian, gaussian_weights(41, 2 * math.sqrt(2 / peak))[10])
        assert figure.legends[0].get_texts()[0].get_text() == "Gaussian"
        logits = peak * rbf_kernel(np.arange(41) - 10, 2.0) / rbf_kernel(1, 2.0)
        np.testing.assert_allclose(weights, np.exp(logits) / np.exp(logits).sum())
        assert ax.get_title(loc="left").startswith(f"peak {peak:g} · TV ")


def test_curves_start_at_0_and_weights_at_1() -> None:
    figure = plot.locality_curves({"a": -np.arange(5) / 2 + 7, "b": np.zeros(5)})
    fall, weight = (curves(ax) for ax in figure.axes)
    assert fall == {"a": (-np.arange(5) / 2).tolist(), "b": [0] * 5}
    assert weight == {"a": np.exp(-np.arange(5) / 2).tolist(), "b": [1] * 5}
    assert legend(figure.axes[0]) == ["a", "b"]
    assert len(plot.locality_curves({"a": np.zeros(5)}, weights=False).axes) == 1
