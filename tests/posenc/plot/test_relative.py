"""The pictures of relative biases show what the formulas say, in both languages."""

from __future__ import annotations

import numpy as np
from drawings import legend, points

from posenc import kerple_bias, plot
from posenc.relative import t5_bucket


def test_the_staircase_shows_the_buckets() -> None:
    ax = plot.bucket_staircase(50, num_buckets=16, max_distance=40)
    both, causal = (points(line) for line in ax.lines[:2])
    k = np.arange(-50, 51)
    np.testing.assert_array_equal(both[:, 0], k)
    np.testing.assert_array_equal(both[:, 1], t5_bucket(k, num_buckets=16, max_distance=40))
    np.testing.assert_array_equal(
        causal[:, 1], t5_bucket(k, num_buckets=16, max_distance=40, bidirectional=False)
    )
    assert legend(ax) == [line.get_label() for line in ax.lines[:2]] == ["bidirectional", "causal"]
    assert both[:, 1].max() < ax.get_ylim()[1]


def test_curves_are_moved_to_their_top_and_mark_what_was_not_trained() -> None:
    bias = kerple_bias(1.0, 1.0, 1, 30)[0] + 5
    figure = plot.bias_curves({"a": bias, "b": np.zeros(30)}, trained=10)
    curve = points(figure.axes[0].lines[0])
    np.testing.assert_array_equal(curve[:, 0], np.arange(-29, 1))
    np.testing.assert_allclose(curve[:, 1], kerple_bias(1.0, 1.0, 1, 30)[0], atol=1e-12)
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["a", "b"]
    (grey,) = figure.axes[0].patches
    assert grey.get_x() + grey.get_width() == -9.5  # type: ignore[attr-defined]
    assert not plot.bias_curves({"a": np.zeros(10)}, trained=10).axes[0].patches
