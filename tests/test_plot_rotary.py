"""The pictures of the rotary embedding show its numbers, speak both languages and refuse bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from posenc import frequencies, linear_frequencies, ntk_frequencies, plot
from posenc.plot._style import WIDTH

FLAT: Any = [1, 2]
NESTED: Any = [[1, 2]]
METHODS = {"linear": linear_frequencies(64, 8), "NTK": ntk_frequencies(64, 8)}

PICTURES: dict[str, Callable[..., Any]] = {
    "frequency_ratios": lambda **options: plot.frequency_ratios(METHODS, length=4096, **options),
    "head_scores": lambda **options: plot.head_scores([4, 32, 512], **options),
    "period_comb": lambda **options: plot.period_comb(12, 50, **options),
    "rotating_pairs": lambda **options: plot.rotating_pairs([(2, 5), (12, 15)], 8, **options),
    "score_decay": lambda **options: plot.score_decay(16, n=20, samples=100, **options),
}


def texts(figure: Figure) -> str:
    """All that the figure says, in one string."""
    figure.canvas.draw()
    return "\n".join(text.get_text() for text in figure.findobj(plt.Text) if text.get_visible())


@pytest.mark.parametrize("name", PICTURES)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_one_figure_of_the_books_width_in_one_language(name: str, lang: str) -> None:
    PICTURES[name](lang=lang)
    (number,) = plt.get_fignums()
    figure = plt.figure(number)
    assert figure.get_size_inches()[0] == WIDTH
    said = texts(figure)
    assert any("\u4e00" <= character <= "\u9fff" for character in said) == (lang == "zh")
    assert "$" not in said


@pytest.mark.parametrize("name", PICTURES)
def test_unknown_language(name: str) -> None:
    with pytest.raises(ValueError, match='lang must be "en" or "zh"'):
        PICTURES[name](lang="fr")


def test_rotating_pairs_turn_counter_clockwise_and_keep_their_angle() -> None:
    figure = plot.rotating_pairs([(2, 5), (12, 15)], 4)
    angles = []
    for ax in figure.axes:
        q, k = (np.asarray(ax.lines[j].get_xydata())[0] @ [1, 1j] for j in (3, 5))
        angles.append([np.angle(q), np.angle(k / q)])
    found = np.reshape(angles, (2, 2, 2))
    np.testing.assert_allclose(found[0, :, 0], 2 * frequencies(4))
    np.testing.assert_allclose(found[..., 1], np.tile(3 * frequencies(4), (2, 1)))


def test_head_scores_are_cosines() -> None:
    ax = plot.head_scores([8], n=16)
    x, y = np.asarray(ax.lines[1].get_xydata()).T
    np.testing.assert_allclose(y, np.cos(2 * np.pi * x / 8), atol=1e-12)
    np.testing.assert_allclose(np.asarray(ax.lines[2].get_xydata()), [[8 / 6, 0.5]])


def test_period_comb_marks_every_multiple() -> None:
    ax = plot.period_comb(12, 50)
    marked = np.asarray(ax.lines[1].get_xydata())
    assert marked[:, 0].tolist() == [2, 14, 26, 38, 50]
    np.testing.assert_allclose(marked[:, 1], 1)
    assert plot.period_comb(12, 50, n=80).lines[1].get_xydata().shape == (7, 2)  # type: ignore[union-attr]


def test_score_decay_falls_for_equal_vectors_only() -> None:
    equal, independent = plot.score_decay(64, n=101, samples=500).axes
    mean = np.asarray(equal.lines[1].get_ydata())
    assert mean[0] == pytest.approx(64, abs=2)
    assert mean[100] == pytest.approx(36, abs=3)
    assert np.abs(np.asarray(independent.lines[1].get_ydata())).max() < 2


def test_frequency_ratios_show_what_is_slowed() -> None:
    ax = plot.frequency_ratios(METHODS)
    linear, ntk = (np.asarray(line.get_ydata()) for line in ax.lines)
    np.testing.assert_allclose(linear, 1 / 8)
    np.testing.assert_allclose(ntk[[0, -1]], [1, 1 / 8])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: plot.rotating_pairs([(1, 2)], 14), "dim must be at most 12"),
        (lambda: plot.rotating_pairs(FLAT, 4), r"places must hold one to four pairs \(t, u\)"),
        (lambda: plot.head_scores([1] * 7), "wavelengths must be one a head, at most 6"),
        (lambda: plot.head_scores(NESTED), "wavelengths must be one a head"),
        (lambda: plot.period_comb(0, 5), "period must be finite and above 0"),
        (lambda: plot.period_comb(3, 5, n=4), "n must be at least 6"),
        (lambda: plot.score_decay(4, n=1), "n must be at least 2"),
        (lambda: plot.frequency_ratios({}), "methods must hold one to 6 arrays"),
        (lambda: plot.frequency_ratios({"a": np.ones(3), "b": np.ones(4)}), "of one shape"),
        (lambda: plot.frequency_ratios(METHODS, length=-1), "length must be finite and above 0"),
    ],
)
def test_errors_name_the_argument(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
