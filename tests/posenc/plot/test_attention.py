"""The map of attention shows each weight in its cell, the words beside it, and what is masked."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawings import points, table, texts

from posenc import plot
from posenc.plot._style import chinese_font

WEIGHTS = np.array([[0.1, 0.9, 0.0], [0.25, 0.5, 0.25]])
MASK = np.array([[False, False, True], [False, False, False]])


def test_each_weight_stands_in_its_cell() -> None:
    ax = plot.attention_map(WEIGHTS, queries=["a", "b"], keys=["x", "y", "z"], mask=MASK)
    np.testing.assert_array_equal(table(ax), WEIGHTS)
    assert ax.images[0].get_clim() == (0, 0.9)
    numbers = {text.get_position(): text.get_text() for text in ax.texts}
    assert numbers == {(0, 0): "0.10", (1, 0): "0.90", (0, 1): "0.25", (1, 1): "0.50", (2, 1): "0.25"}
    assert [points(line).tolist() for line in ax.lines] == [[[2, 0]]]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y", "z"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("key", "query")


def test_a_large_map_has_a_bar_and_names_positions() -> None:
    ax = plot.attention_map(np.full((9, 9), 1 / 9))
    assert not texts(ax)
    assert ax.figure.axes[1].get_ylabel() == "attention weight"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("key position u", "query position t")


def test_chinese_tokens_in_an_english_picture_have_a_font() -> None:
    with plt.rc_context({"font.family": ["sans-serif"]}):
        plot.attention_map(WEIGHTS, queries=["a", "b"], keys=["x", "y", "z"])
        assert plt.rcParams["font.family"] == ["sans-serif"]
        ax = plot.attention_map(WEIGHTS, queries=["I", "love"], keys=["我", "爱", "你"])
        if chinese_font() is None:
            pytest.skip("no Chinese font is installed")
        assert plt.rcParams["font.family"] == ["sans-serif", chinese_font()]
        ax.figure.canvas.draw()  # a missing glyph is a warning, and a warning an error
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("key", "query")
