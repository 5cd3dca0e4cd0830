"""The pictures of relative biases show what the formulas say, in both languages."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from matplotlib.lines import Line2D

from posenc import kerple_bias, plot, t5_bucket
from posenc.plot._style import Lang


def points(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_xydata(), dtype=float)


def test_the_staircase_shows_the_buckets() -> None:
    ax = plot.bucket_staircase(50, num_buckets=16, max_distance=40)
    both, causal = (points(line) for line in ax.lines[:2])
    k = np.arange(-50, 51)
    np.testing.assert_array_equal(both[:, 0], k)
    np.testing.assert_array_equal(both[:, 1], t5_bucket(k, num_buckets=16, max_distance=40))
    np.testing.assert_array_equal(
        causal[:, 1], t5_bucket(k, num_buckets=16, max_distance=40, bidirectional=False)
    )
    assert both[:, 1].max() < ax.get_ylim()[1]


def test_curves_are_moved_to_their_top_and_mark_what_was_not_trained() -> None:
    bias = torch.tensor(kerple_bias(1.0, 1.0, 1, 30)[0] + 5, requires_grad=True)
    figure = plot.bias_curves({"a": bias, "b": np.zeros(30)}, trained=10)
    curve = points(figure.axes[0].lines[0])
    np.testing.assert_array_equal(curve[:, 0], np.arange(-29, 1))
    np.testing.assert_allclose(curve[:, 1], kerple_bias(1.0, 1.0, 1, 30)[0], atol=1e-12)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["a", "b"]
    (grey,) = figure.axes[0].patches
    assert grey.get_x() + grey.get_width() == -9.5  # type: ignore[attr-defined]
    assert not plot.bias_curves({"a": np.zeros(10)}, trained=10).axes[0].patches


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_both_languages(lang: Lang) -> None:
    ax = plot.bucket_staircase(lang=lang)
    assert ax.get_xlabel() == {"en": "offset k", "zh": "偏移 k"}[lang]
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    figure = plot.bias_curves({"a": np.zeros(3), "b": np.ones(3), "c": np.zeros(3)}, lang=lang)
    assert not figure.axes[3].axison
    figure.draw_without_rendering()


def test_errors_name_the_argument() -> None:
    with pytest.raises(ValueError, match="reach must be at least 1, got 0"):
        plot.bucket_staircase(0)
    with pytest.raises(ValueError, match="biases must hold one to six labelled curves, got 0"):
        plot.bias_curves({})
    with pytest.raises(ValueError, match=r"biases\['a'\] must have shape \(n,\), got \(2, 2\)"):
        plot.bias_curves({"a": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="trained must be at least 1, got 0"):
        plot.bias_curves({"a": np.zeros(2)}, trained=0)
    with pytest.raises(ValueError, match="lang"):
        plot.bucket_staircase(lang="de")  # type: ignore[arg-type]
