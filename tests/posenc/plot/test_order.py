"""The pictures of order show what they are given: equal vectors by solid lines, losses as curves."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from drawings import curves, legend, points, texts
from matplotlib.axes import Axes

from posenc import plot
from posenc.plot._style import CHINESE_FONTS

DOG = ["dog", "bites", "man"]
MAN = ["man", "bites", "dog"]
VECTORS = np.random.default_rng(0).normal(size=(3, 5))


def lines(ax: Axes) -> list[tuple[list[float], str]]:
    return [(list(np.asarray(line.get_xdata())), str(line.get_linestyle())) for line in ax.get_lines()]


def test_equal_vectors_are_joined_by_solid_lines() -> None:
    ax = plot.order_blindness(DOG, VECTORS, MAN, VECTORS[::-1])
    assert lines(ax) == [([0, 2], "-"), ([1, 1], "-"), ([2, 0], "-"), ([3.3, 3.3], "-")]
    assert texts(ax) == [*DOG, "mean", *MAN, "mean"]


def test_strips_show_the_vectors_and_their_means() -> None:
    below = VECTORS[::-1] + np.array([[0.0], [1.0], [0.0]])
    ax = plot.order_blindness(DOG, VECTORS, MAN, below)
    shown = [np.asarray(image.get_array()).ravel() for image in ax.get_images()]
    expected = [*VECTORS, VECTORS.mean(axis=0), *below, below.mean(axis=0)]
    np.testing.assert_allclose(shown, expected)
    most = np.abs([*VECTORS, *below]).max()
    assert all(image.get_clim() == (-most, most) for image in ax.get_images())


def test_different_vectors_are_joined_by_dashed_lines() -> None:
    below = VECTORS[::-1].copy()
    below[1] += 1e-3
    ax = plot.order_blindness(DOG, VECTORS, MAN, below)
    assert [style for _, style in lines(ax)] == ["-", "--", "-", "--"]
    ax = plot.order_blindness(DOG, VECTORS, MAN, below, atol=0.01)
    assert [style for _, style in lines(ax)] == ["-"] * 4


def test_repeated_tokens_are_joined_first_to_first() -> None:
    ax = plot.order_blindness("aba", VECTORS, "aab", VECTORS)
    assert [x for x, _ in lines(ax)][:3] == [[0, 0], [1, 2], [2, 1]]


def test_loss_curves_draw_every_loss_with_its_own_line() -> None:
    losses = {"no code": [0.8, 0.7, 0.69], "with code": [0.8, 0.2, 0.0]}
    ax = plot.loss_curves(losses, chance=0.6931)
    assert points(ax.lines[0])[:, 1].tolist() == [0.6931, 0.6931]
    assert curves(ax) == losses
    assert texts(ax) == ["chance 0.693"]
    assert legend(ax) == list(losses)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("training step", "loss")


def test_loss_curves_without_chance() -> None:
    ax = plot.loss_curves({"a": [1.0]})
    assert not texts(ax)
    assert len(ax.get_lines()) == 1


@pytest.mark.usefixtures("chinese_font")
def test_axes_made_before_the_first_chinese_picture_get_its_font() -> None:
    _, ax = plt.subplots()
    plot.attention_map(np.eye(2), queries=["狗", "人"], keys=["狗", "人"], ax=ax, lang="zh")
    after = plt.rcParams["font.family"]
    assert after[-1] in CHINESE_FONTS
    texts = [ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()]
    assert all(text.get_fontfamily() == after for text in texts)
