"""What pictures share: colours that stand out on every page, fonts, legends, and checks that find faults."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import figurecheck
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import sitecheck
from book import figures

from posenc import plot
from posenc.plot import _style
from posenc.plot._style import COLORS, GREY, WORDS, legend_above, on_cell


@pytest.fixture(autouse=True)
def _page_style() -> object:
    """The style of the pages, and their measuring font."""
    with mpl.rc_context():
        figures.set_up()
        yield
    plt.close("all")


def test_each_word_stands_in_both_languages() -> None:
    for english, chinese in WORDS.values():
        assert not re.search("[\u2e80-\uffef]", english)
        assert re.search("[\u4e00-\u9fff]", chinese) or english == chinese, english


def test_figures_of_the_pages_stand_out_in_both_palettes(site: Path) -> None:
    """What blocks and labs draw themselves as well."""
    faults = []
    for page in sitecheck.pages(site):
        for svg in re.findall(r'<figure class="plot">(<svg.*?</svg>)', page.read_text(encoding="utf-8")):
            for palette, (ground, letters) in figurecheck.palettes().items():
                said = figurecheck.contrast(svg, ground, letters)
                faults += [f"{sitecheck.name(page, site)}, {palette}: {fault}" for fault in said]
    assert faults == []


# --- The checks can fail ------------------------------------------------------------------------------------


def test_the_palettes_are_those_of_the_theme() -> None:
    palettes = figurecheck.palettes()
    white, ink = palettes["light"]
    assert white == (1, 1, 1, 1)
    assert ink == pytest.approx((0, 0, 0, 0.87), abs=0.005)
    ground, letters = palettes["dark"]
    assert max(ground[:3]) < 0.2
    assert figurecheck.ratio(letters, ground) > 7


def test_contrast_is_that_of_wcag() -> None:
    assert figurecheck.ratio((0, 0, 0, 1), (1, 1, 1, 1)) == pytest.approx(21)
    assert figurecheck.ratio((118 / 255,) * 3 + (1,), (1, 1, 1, 1)) == pytest.approx(4.54, abs=0.005)
    assert figurecheck.ratio((0, 0, 0, 0.5), (1, 1, 1, 1)) == pytest.approx(3.95, abs=0.03)


@pytest.mark.parametrize("color", COLORS)
def test_a_colour_of_the_book_stands_out_on_every_page(color: str) -> None:
    for ground, _ in figurecheck.palettes().values():
        assert figurecheck.ratio(mpl.colors.to_rgba(color), ground) >= figurecheck.LINES


@pytest.mark.parametrize(
    ("draw", "palette", "fault"),
    [
        (lambda ax: ax.plot([1, 2], color="#ffd700"), "light", "<path> #ffd700: 1.40 to 1"),
        (lambda ax: ax.plot([1, 2], color="#00008b"), "dark", "<path> #00008b: 1.0"),
        (lambda ax: ax.plot([1, 2], color=COLORS[0], alpha=0.4), "light", f"<path> {COLORS[0]}"),
        (lambda ax: ax.bar([1, 2], [3, 4], color="#dddddd"), "light", "<path> #dddddd"),
        (lambda ax: ax.axvspan(1, 2, color=GREY, alpha=0.6), "light", f"<path> {GREY}"),
        (lambda ax: ax.plot([1, 2], "o", color="#eeeeee"), "light", "#eeeeee"),
        (lambda ax: ax.text(0.5, 0.5, "x", color=COLORS[1]), "light", f"<text> {COLORS[1]}: 3.8"),
        (lambda ax: ax.text(0.5, 0.5, "x", color="white"), "light", "<text> #ffffff: 1.00"),
        (lambda ax: ax.bar([1], [2], color="none", edgecolor="#ffd700", hatch="//"), "light", "#ffd700"),
    ],
)
def test_a_faint_colour_is_found(draw: Callable[..., object], palette: str, fault: str) -> None:
    _, ax = plt.subplots()
    draw(ax)
    faults = figurecheck.contrast(figures.to_svg(plt.gcf()), *figurecheck.palettes()[palette])
    assert any(fault in found for found in faults), faults


@pytest.mark.parametrize(
    "draw",
    [
        lambda ax: [ax.plot([k, 2], color=COLORS[k]) for k in range(2)],
        lambda ax: [ax.plot([k, 2], color=COLORS[k], linewidth=1 + 0.3 * k, label=str(k)) for k in range(2)],
        lambda ax: [ax.plot(k, k, "o", color=COLORS[k]) for k in range(2)],
        lambda ax: [ax.plot([k, 2], color="black", label=str(k)) for k in range(2)],
        lambda ax: [ax.bar(k, 2, color=COLORS[k]) for k in range(2)],
        lambda ax: [ax.scatter([k], [k], color=COLORS[k]) for k in range(2)],
        lambda ax: [ax.vlines([k], 0, 1, color=COLORS[k]) for k in range(2)],
    ],
)
def test_marks_that_differ_by_colour_alone_are_found(draw: Callable[..., object]) -> None:
    figure, ax = plt.subplots()
    draw(ax)
    assert figurecheck.told_apart(figure)


def test_marks_that_differ_by_more_than_colour_are_not() -> None:
    figure, ax = plt.subplots()
    for k, line in enumerate(("-", "--", (0, (1, 2)), (0, (5, 1)))):
        ax.plot([k, 2], color=COLORS[k], linestyle=line, label=str(k))
    ax.plot([3, 4], color=COLORS[0], linewidth=4)
    ax.plot([5, 5], color=COLORS[1], marker="s")
    ax.bar(1, 2, color=COLORS[0])
    ax.bar(2, 2, color="none", edgecolor=COLORS[1], hatch="//")
    assert figurecheck.told_apart(figure) == []


def test_a_map_without_a_key_and_axes_without_a_name_are_found() -> None:
    figure, ax = plt.subplots()
    image = ax.imshow(np.eye(3))
    assert figurecheck.explained(figure) == [
        "a map has neither a bar of colours nor numbers in its cells",
        "numbers along the horizontal axis and no name",
        "numbers along the vertical axis and no name",
    ]
    figure.colorbar(image)
    ax.set(xlabel="x", ylabel="y")
    assert figurecheck.explained(figure) == ["a bar of colours without a name"]


def test_labels_on_each_other_and_formulas_are_found() -> None:
    figure, ax = plt.subplots()
    ax.text(0.5, 0.5, "one")
    ax.text(0.51, 0.5, "other")
    ax.set_title("$x^2$")
    assert figurecheck.legible(figure) == ["a formula: $x^2$", "'one' lies on 'other'"]


@pytest.mark.parametrize("cmap", ["Blues", "RdBu_r"])
def test_numbers_in_cells_can_be_read_on_every_cell(cmap: str) -> None:
    _, ax = plt.subplots()
    image = ax.imshow([[0.0, 1.0]], cmap=cmap)
    for value in np.linspace(0, 1, 101):
        ink = mpl.colors.to_rgba(on_cell(image, value))
        cell: Any = image.cmap(image.norm(value))
        assert figurecheck.ratio(ink, cell) >= figurecheck.LETTERS


@pytest.mark.usefixtures("chinese_font")
def test_a_font_installed_after_the_first_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matplotlib reads its list of fonts from a file of the user's, made before there was a Chinese font."""
    fonts = mpl.font_manager.fontManager
    files = {font.fname for font in fonts.ttflist if font.name in _style.CHINESE_FONTS}
    monkeypatch.setattr(fonts, "ttflist", [font for font in fonts.ttflist if font.fname not in files])
    assert _style._known_font() is None
    _style._installed_font.cache_clear()
    assert _style.chinese_font() in _style.CHINESE_FONTS


def test_a_legend_above_stays_within_the_figure() -> None:
    for labels in (["a"], ["quite a long label"] * 4, ["一个很长的中文标签"] * 5, ["ab"] * 6):
        figure, ax = plt.subplots()
        for label in labels:
            ax.plot([1, 2], label=label)
        box = legend_above(ax).get_window_extent
        figure.draw_without_rendering()
        assert 0 <= box().x0 <= box().x1 <= figure.bbox.width, labels


def test_hatches_stay_in_the_drawing() -> None:
    plot.output_mask_bars({"a": (0.6, 0.0)})
    svg = figures.to_svg(plt.gcf())
    (hatch,) = re.findall(r'<pattern id="([\w-]+)"', svg)
    assert hatch in re.findall(r"url\(#([\w-]+)\)", svg)
    assert set(re.findall(r"(?:fill|stroke):(#[\w-]+)", svg)) <= {color.lower() for color in COLORS}


def test_a_drawing_keeps_its_width_and_has_no_empty_band() -> None:
    figure, ax = plt.subplots(figsize=(4.8, 6))
    ax.imshow(np.eye(2))
    ((width, height),) = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figures.to_svg(figure))
    assert float(width) == pytest.approx(4.8 * 72, abs=4)
    assert float(height) < 5 * 72
