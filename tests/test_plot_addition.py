"""The pictures of addition show the numbers they are given, and say what they cannot draw."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes

from posenc import plot
from posenc.plot._style import WIDTH

E, CODES = np.array([1.0, 3.0]), np.array([[2.0, 1.0], [1.0, 3.0]])
X = np.random.default_rng(0).normal(size=(3, 4))
MOVED = np.zeros((4, 3, 2))
MOVED[1:, 0, 1] = [0.1, -0.2, 0.3]


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def ends(ax: Axes) -> set[tuple[float, ...]]:
    """The far ends of all lines that start in the origin."""
    lines = [np.asarray(line.get_xydata()) for line in ax.get_lines()]
    return {tuple(line[-1]) for line in lines if len(line) == 2 and not line[0].any()}


def pictures(ax: Axes) -> list[np.ndarray]:
    return [np.asarray(image.get_array()) for image in ax.get_images()]


# --- arrows


def test_arrows_end_in_embedding_codes_and_sums() -> None:
    ax = plot.vector_sum(E, CODES)
    assert ends(ax) == {(1, 3), (2, 1), (3, 4), (2, 6)}
    assert {"(1, 3)", "(2, 1)", "(3, 4)", "(2, 6)"} <= set(texts(ax))
    assert texts(ax).count(f"{math.sqrt(5):.3f}") == 2
    assert len({line.get_linestyle() for line in ax.get_lines()} - {"None"}) >= 4


def test_one_code_has_no_distance() -> None:
    assert texts(plot.vector_sum(E, CODES[:1])) == ["(2, 1)", "(1, 3)", "(3, 4)"]


# --- tables


def test_three_tables_with_one_scale() -> None:
    figure = plot.table_sum(X, 2 * X, tokens=["a", "b", "c"])
    axes = figure.axes[:3]
    for ax, expected in zip(axes, (X, 2 * X, 3 * X), strict=True):
        np.testing.assert_allclose(pictures(ax)[0], expected)
        assert ax.get_images()[0].get_clim() == pytest.approx((-3 * np.abs(X).max(), 3 * np.abs(X).max()))
        assert ax.get_xlabel() == "3 × 4"
    assert [texts(ax) for ax in axes] == [[""], ["+"], ["="]]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["a", "b", "c"]
    assert figure.get_figwidth() == WIDTH


# --- training


def test_panels_show_changes_since_the_start() -> None:
    figure = plot.training_panels(MOVED + 5, np.ones((4, 2, 2)), tokens=["x", "y", "z"])
    above, below = figure.axes[:3], figure.axes[3:6]
    for step, ax in enumerate(above, start=1):
        np.testing.assert_allclose(pictures(ax)[0], MOVED[step])
        assert ax.get_title() == f"step {step}\nlargest {step / 10:.2f}"
    for ax in below:
        assert not pictures(ax)[0].any()
        assert ax.get_title() == "largest 0.00"
    assert all(ax.get_images()[0].get_clim() == pytest.approx((-0.3, 0.3)) for ax in above + below)
    assert [label.get_text() for label in above[0].get_yticklabels()] == ["x", "y", "z"]


# --- readers


def test_curves_show_the_shares() -> None:
    ax = plot.read_back_curves([4, 8, 16], {"one": [0.1, 0.5, 1.0], "two": [0, 0, 0.2]})
    assert [np.asarray(line.get_ydata()).tolist() for line in ax.get_lines()] == [[0.1, 0.5, 1], [0, 0, 0.2]]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["4", "8", "16"]
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two"]
    assert len({line.get_marker() for line in ax.get_lines()}) == 2
    assert ax.get_ylim() == (0, 1)


def test_a_caller_may_give_the_axes() -> None:
    ax = plot.vector_sum(E, CODES)
    assert plot.vector_sum(E, CODES, ax=ax) is ax
    assert plot.read_back_curves([1, 2], {"a": [0, 1]}, ax=ax) is ax


CALLS: dict[str, Any] = {
    "vector_sum": lambda **k: plot.vector_sum(**{"embedding": E, "codes": CODES, **k}),
    "table_sum": lambda **k: plot.table_sum(**{"x": X, "pe": X, **k}),
    "training_panels": lambda **k: plot.training_panels(**{"embedding": MOVED, "codes": MOVED, **k}),
    "read_back_curves": lambda **k: plot.read_back_curves(**{"widths": [2, 4], "shares": {"a": [0, 1]}, **k}),
}


@pytest.mark.parametrize("name", CALLS)
def test_chinese_labels(name: str) -> None:
    result = CALLS[name](lang="zh")
    axes: list[Axes] = [result] if isinstance(result, Axes) else list(result.axes)
    words: set[str] = set()
    for ax in axes:
        legend = ax.get_legend()
        words |= {ax.get_title(), ax.get_xlabel(), ax.get_ylabel()}
        words |= {text.get_text() for text in legend.get_texts()} if legend else set()
    assert any("\u4e00" <= letter <= "\u9fff" for text in words for letter in text)
    assert not any(
        "\u4e00" > letter.lower() >= "a" for text in words - {"a"} for letter in text if letter.isalpha()
    )


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("vector_sum", {"embedding": [1, 2, 3]}, r"embedding must have shape \(2,\), got \(3,\)"),
        ("vector_sum", {"codes": CODES[0]}, r"codes must have shape \(n, 2\) .*got \(2,\)"),
        (
            "vector_sum",
            {"codes": CODES[:0]},
            r"codes must have shape \(n, 2\) with n from 1 to 3, got \(0, 2\)",
        ),
        ("vector_sum", {"codes": np.ones((4, 2))}, r"codes must have shape .*got \(4, 2\)"),
        ("table_sum", {"pe": X[:1]}, r"x and pe must have one shape .*got \(3, 4\) and \(1, 4\)"),
        ("table_sum", {"x": X[0], "pe": X[0]}, "x and pe must have one shape"),
        ("table_sum", {"tokens": ["a"]}, "tokens must hold 3 names, got 1"),
        (
            "training_panels",
            {"codes": MOVED[:3]},
            r"embedding and codes must have shape .*got \(4, 3, 2\) and",
        ),
        ("training_panels", {"embedding": MOVED[0]}, "embedding and codes must have shape"),
        ("training_panels", {"embedding": MOVED[:1], "codes": MOVED[:1]}, "the same 1 to 4 steps"),
        ("training_panels", {"tokens": ["a"]}, "tokens must hold 3 names, got 1"),
        ("read_back_curves", {"widths": [4, 2]}, r"widths must be at least two rising numbers, got \[4, 2\]"),
        ("read_back_curves", {"widths": [0, 2]}, "widths must be at least two rising numbers"),
        ("read_back_curves", {"shares": {}}, "shares must hold 1 to 6 readers, got 0"),
        ("read_back_curves", {"shares": {"a": [0]}}, r"shares\['a'\] must be 2 numbers between 0 and 1"),
        ("read_back_curves", {"shares": {"a": [0, 1.5]}}, r"shares\['a'\] must be 2 numbers between 0 and 1"),
        *((name, {"lang": "fr"}, 'lang must be "en" or "zh"') for name in CALLS),
    ],
)
def test_bad_arguments_are_named(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CALLS[name](**options)
