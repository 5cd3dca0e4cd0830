"""The pictures of the sinusoidal encoding show its numbers, speak both languages and refuse bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from posenc import code_distance, plot, sinusoidal_encoding, wavelengths
from posenc.plot._style import WIDTH

PICTURES: dict[str, Callable[..., Any]] = {
    "clock_hands": lambda **options: plot.clock_hands([0, 1.5], 8, **options),
    "code_distances": lambda **options: plot.code_distances([4, 64], **options),
    "heat_map": lambda **options: plot.heat_map(sinusoidal_encoding(10, 8), **options),
    "nearest_codes": lambda **options: plot.nearest_codes([2, 16], n=1000, **options),
    "waveforms": lambda **options: plot.waveforms(64, **options),
    "wavelength_ladder": lambda **options: plot.wavelength_ladder([4, 64], **options),
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


def test_clock_hands_show_the_code() -> None:
    figure = plot.clock_hands([0, 50], 8)
    codes = sinusoidal_encoding(np.array([0, 50]), 8).reshape(8, 2)
    tips = [ax.lines[-1].get_xydata()[0] for ax in figure.axes]  # type: ignore[index]
    np.testing.assert_array_equal(tips, codes)
    hands = [ax.lines[-2].get_xydata() for ax in figure.axes]
    np.testing.assert_array_equal(hands, np.stack([np.zeros_like(codes), codes], axis=1))


def test_code_distances_show_every_offset_and_one_step() -> None:
    figure = plot.code_distances([4, 64], n=30)
    for ax, dim in zip(figure.axes, (4, 64), strict=True):
        step, curve = ax.lines
        np.testing.assert_array_equal(curve.get_ydata(), code_distance(30, dim))
        np.testing.assert_array_equal(step.get_ydata(), [code_distance(30, dim)[1]] * 2)
        assert ax.get_ylim() == (0, 2 * math.sqrt(dim / 2))


@pytest.mark.parametrize("dim", [2, 4, 16])
def test_nearest_codes_is_the_smallest_distance_of_that_many_positions(dim: int) -> None:
    ax = plot.nearest_codes([dim], n=800)
    x, y = ax.lines[0].get_xydata().T  # type: ignore[union-attr]
    assert x[0] == 2
    assert x[-1] == 800
    codes = sinusoidal_encoding(800, dim)
    for n in (2, 7, 8, 45, 711, 800):
        gaps = np.linalg.norm(codes[:n, None] - codes[None, :n], axis=-1)
        smallest = gaps[~np.eye(n, dtype=bool)].min()
        shown = y[np.searchsorted(x, n, side="right") - 1]  # a step holds its value to the next one
        assert shown == pytest.approx(smallest, rel=1e-6)


def test_nearest_codes_tell_widths_apart_without_colour() -> None:
    lines = plot.nearest_codes([2, 4, 8, 16, 64, 512], n=100).lines
    assert len({str(line._dash_pattern) for line in lines}) == 6  # type: ignore[attr-defined]


def test_wavelength_ladder_shows_every_rung_and_the_limit_above_them() -> None:
    ax = plot.wavelength_ladder([4, 64], base=500)
    limit, *rungs = ax.lines
    for line, dim in zip(rungs, (4, 64), strict=True):
        np.testing.assert_array_equal(line.get_xdata(), wavelengths(dim, 500))
        assert np.max(line.get_xdata()) < limit.get_xdata()[0]  # type: ignore[index]
    assert limit.get_xdata()[0] == 2 * math.pi * 500  # type: ignore[index]


def test_waveforms_show_the_columns_of_each_pair() -> None:
    figure = plot.waveforms(64, pairs=[5, 0], n=20)
    codes = sinusoidal_encoding(20, 64)
    for ax, i in zip(figure.axes, (5, 0), strict=True):
        sine, sine_dots, cosine, cosine_dots = ax.lines
        np.testing.assert_array_equal(sine_dots.get_ydata(), codes[:, 2 * i])
        np.testing.assert_array_equal(cosine_dots.get_ydata(), codes[:, 2 * i + 1])
        assert sine.get_linestyle() != cosine.get_linestyle()


def test_waveforms_choose_pairs_from_the_fastest_to_the_slowest() -> None:
    titles = [ax.get_title(loc="left") for ax in plot.waveforms(8).axes]
    assert [title.split(" · ")[0] for title in titles] == ["pair 0", "pair 1", "pair 2", "pair 3"]
    assert len(plot.waveforms(2).axes) == 1


def test_heat_map_shows_the_table_on_a_scale_that_is_even_about_zero() -> None:
    codes = np.array([[0.5, -2.0], [1.0, 0.0]])
    ax = plot.heat_map(codes)
    (image,) = ax.images
    np.testing.assert_array_equal(image.get_array(), codes)
    assert image.get_clim() == (-2, 2)
    assert "−2" in texts(ax.figure)  # type: ignore[arg-type]


def test_pictures_draw_into_given_axes() -> None:
    _, axes = plt.subplots(1, 3)
    assert plot.heat_map(np.zeros((2, 2)), ax=axes[0]) is axes[0]
    assert plot.nearest_codes([4], n=10, ax=axes[1]) is axes[1]
    assert plot.wavelength_ladder([4], ax=axes[2]) is axes[2]
    assert len(plt.get_fignums()) == 1


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: plot.heat_map(np.eye(2), ax=ax, lang="zh"),
        lambda ax: plot.nearest_codes([4], n=10, ax=ax, lang="zh"),
        lambda ax: plot.wavelength_ladder([4], ax=ax, lang="zh"),
        lambda ax: plot.sum_bars([1, 2], {"a": [1, 2]}, ax=ax, lang="zh"),
        lambda ax: plot.energy_shares({"a": [0.1, 0.2]}, ax=ax, lang="zh"),
    ],
)
@pytest.mark.usefixtures("chinese_font")
def test_axes_made_before_the_first_chinese_picture_show_chinese(draw: Callable[[Any], Any]) -> None:
    figure, ax = plt.subplots()
    draw(ax)
    figure.canvas.draw()  # a glyph that is missing is a warning, and so an error


@pytest.mark.parametrize("kind", ["with a gradient", "bfloat16"])
def test_pictures_take_what_models_give(kind: str) -> None:
    x = torch.eye(2, requires_grad=True) if kind == "with a gradient" else torch.eye(2).bfloat16()
    for ax in (plot.heat_map(x), plot.attention_map(x), plot.order_blindness("ab", x, "ab", x)):
        np.testing.assert_array_equal(np.asarray(ax.images[0].get_array())[0], [1, 0])
    plot.sum_bars(x[0], {"code": x[1]})
    plot.loss_curves({"loss": x[0]})  # type: ignore[dict-item]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_axes_are_axes(lang: Any) -> None:
    with pytest.raises(TypeError, match="ax must be matplotlib Axes or None, got ndarray"):
        plot.heat_map(np.eye(2), ax=np.eye(2), lang=lang)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot.heat_map(np.eye(2) * 1j), "codes must be real numbers"),
        (lambda: plot.heat_map([["a"]]), "codes must be real numbers"),
        (lambda: plot.attention_map(np.eye(2), mask=[[0, 1], [0, 0]]), "mask must be bool, got dtype int64"),
        (lambda: plot.waveforms(8, pairs=cast(Any, [1.5])), r"each of pairs must be an integer, got 1\.5"),
        (lambda: plot.waveforms(8, pairs=[True]), "each of pairs must be an integer, got True"),
    ],
)
def test_wrong_kinds_name_argument_and_value(draw: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        draw()
    assert not plt.get_fignums()


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot.clock_hands([0], 14), "dim must be at most 12 .* got 14"),
        (lambda: plot.clock_hands([0], 7), "dim must be even .* got 7"),
        (lambda: plot.clock_hands([], 8), r"positions must hold one to six positions, got shape \(0,\)"),
        (lambda: plot.clock_hands(range(7), 8), "positions must hold one to six"),
        (lambda: plot.code_distances([]), "dims must hold at least one width"),
        (lambda: plot.code_distances([4, 5]), "each of dims must be even .* got 5"),
        (lambda: plot.code_distances([4], n=1), "n must be at least 2, got 1"),
        (lambda: plot.heat_map(np.zeros(3)), r"codes must have shape \(n, dim\), .* got \(3,\)"),
        (lambda: plot.heat_map(np.zeros((0, 3))), r"codes must have shape \(n, dim\), .* got \(0, 3\)"),
        (lambda: plot.heat_map([[math.inf]]), "codes must be finite, got inf"),
        (lambda: plot.heat_map([[1], [1, 2]]), "codes must be a rectangular array of numbers"),
        (lambda: plot.attention_map([[math.nan]]), "weights must be finite, got nan"),
        (lambda: plot.attention_map(np.zeros((0, 0))), r"weights must have shape .* got \(0, 0\)"),
        (lambda: plot.clock_hands([math.nan], 4), "positions must be finite, got nan"),
        (lambda: plot.score_curves({"a": [[math.inf]]}), r"scores\['a'\] must be finite, got inf"),
        (lambda: plot.distance_profiles({"a": 3}, 0), r"codes\['a'\] must have shape"),
        (lambda: plot.loss_curves({"a": cast(Any, [[1.0]])}), "curves must hold losses for every model"),
        (lambda: plot.nearest_codes([]), "dims must hold at least one width"),
        (lambda: plot.nearest_codes(range(2, 16, 2)), "dims must hold at most 6 widths, got 7"),
        (lambda: plot.nearest_codes([4], n=2), "n must be at least 3, got 2"),
        (lambda: plot.wavelength_ladder([3]), "each of dims must be even .* got 3"),
        (lambda: plot.wavelength_ladder([4], base=1), "base must be finite and above 1, got 1"),
        (lambda: plot.waveforms(8, pairs=[4]), r"pairs must lie in 0..3 for dim 8, got 4"),
        (lambda: plot.waveforms(8, pairs=[]), "pairs must name at least one pair"),
        (lambda: plot.waveforms(8, n=1), "n must be at least 2, got 1"),
    ],
)
def test_bad_input_names_argument_and_value(draw: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()
    assert not plt.get_fignums()
