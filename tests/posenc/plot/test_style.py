"""What pictures share: colours that stand out on every page, fonts, legends, and checks that find faults."""

import re
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from press import figures

from posenc import plot
from posenc.plot import _style
from posenc.plot._labels import legend_above
from posenc.plot._maps import on_cell
from posenc.plot._style import COLORS, WORDS
from tests.posenc.plot import figurecheck
from tests.posenc.plot.figurecheck import FIGURE
from tests.site import contrast


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


# --- The checks of pictures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("check", "draw", "says"), FIGURE.bad)
def test_each_check_finds_its_example(
    check: Callable[[Figure], list[str]], draw: Callable[[Axes], object], says: str
) -> None:
    figure, ax = plt.subplots()
    draw(ax)
    assert any(says in fault for fault in check(figure)), check(figure)


def test_marks_that_differ_by_more_than_colour_are_told_apart() -> None:
    figure, ax = plt.subplots()
    for k, line in enumerate(("-", "--", (0, (1, 2)), (0, (5, 1)))):
        ax.plot([k, 2], color=COLORS[k], linestyle=line, label=str(k))
    ax.plot([3, 4], color=COLORS[0], linewidth=4)
    ax.plot([5, 5], color=COLORS[1], marker="s")
    ax.bar(1, 2, color=COLORS[0])
    ax.bar(2, 2, color="none", edgecolor=COLORS[1], hatch="//")
    assert figurecheck.told_apart(figure) == []


# --- Colours, fonts, legends --------------------------------------------------------------------------------


@pytest.mark.parametrize("color", COLORS)
def test_a_colour_of_the_book_stands_out_on_every_page(color: str) -> None:
    for ground, _ in contrast.palettes().values():
        assert contrast.ratio(mpl.colors.to_rgba(color), ground) >= contrast.LINES


@pytest.mark.parametrize("cmap", ["Blues", "RdBu_r"])
def test_numbers_in_cells_can_be_read_on_every_cell(cmap: str) -> None:
    _, ax = plt.subplots()
    image = ax.imshow([[0.0, 1.0]], cmap=cmap)
    for value in np.linspace(0, 1, 101):
        ink = mpl.colors.to_rgba(on_cell(image, value))
        cell: Any = image.cmap(image.norm(value))
        assert contrast.ratio(ink, cell) >= contrast.LETTERS


@pytest.mark.usefixtures("chinese_font")
def test_a_font_installed_after_the_first_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matplotlib reads its list of fonts from a file of the user's, made before there was a Chinese font."""
    fonts = mpl.font_manager.fontManager
    files = {font.fname for font in fonts.ttflist if font.name in _style.CHINESE_FONTS}
    monkeypatch.setattr(fonts, "ttflist", [font for font in fonts.ttflist if font.fname not in files])
    assert _style._known_font() is None
    _style._installed_font.cache_clear()
    assert _style.chinese_font() in _style.CHINESE_FONTS


@pytest.mark.usefixtures("chinese_font")
def test_chinese_names_in_an_english_picture_have_a_font() -> None:
    mpl.rcdefaults()
    ax = plot.attention_map(np.eye(2), queries=["I", "love"], keys=["我", "爱"])
    assert plt.rcParams["font.family"] == ["sans-serif"]
    assert ax.title.get_fontfamily() == ["sans-serif", _style.chinese_font()]
    ax.figure.canvas.draw()  # a missing glyph is a warning, and a warning an error
    assert plot.attention_map(np.eye(2)).title.get_fontfamily() == ["sans-serif"]


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
