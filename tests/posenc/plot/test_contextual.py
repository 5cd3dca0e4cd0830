"""The picture of counted distances shows what it is given, token by token."""

from __future__ import annotations

import pytest
from drawings import curves

from posenc import plot


def test_each_way_of_counting_is_a_curve_over_the_tokens() -> None:
    counted = {"tokens": [3.0, 2, 1, 0], "sentences": [1.0, 1, 0, 0]}
    ax = plot.distance_steps(counted, list("a.bc"))
    assert curves(ax) == counted
    assert [label.get_text() for label in ax.get_xticklabels()] == list("a.bc")
    assert ax.get_ylabel() == "how far back"


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="tokens must hold 2 names, got 3"):
        plot.distance_steps({"a": [1.0, 0]}, list("abc"))
    with pytest.raises(ValueError, match="must be at least 0, got -1"):
        plot.distance_steps({"a": [1.0, -1]}, list("ab"))
