"""Every picture of the book can be read: in both palettes, without colour, with labels that keep apart."""

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
from matplotlib.figure import Figure

from posenc import linear_frequencies, ntk_frequencies, plot, sinusoidal_encoding
from posenc.masks import key_padding_mask
from posenc.plot import _style
from posenc.plot._style import COLORS, GREY, Lang, legend_above, on_cell

WAVE = np.sin(np.arange(40) / 3)
FALLING = np.exp(-np.arange(40) / 9)
TABLE = sinusoidal_encoding(40, 16)
SQUARE = TABLE @ TABLE.T
SHARES = np.full((9, 9), 1 / 9)
PADS = key_padding_mask(5, 9)
CURVES: dict[str, Any] = {f"curve {k}": FALLING / k for k in range(1, 5)}
STEPS = np.cumsum(np.ones((4, 5, 8)), axis=0)

PICTURES: dict[str, Callable[[Lang], object]] = {
    "alibi_maps": lambda lang: plot.alibi_maps([0.5, 0.125], 5, lang=lang),
    "alibi_rows": lambda lang: plot.alibi_rows(WAVE, [0, 0.5, 0.0625], lang=lang),
    "alibi_weights": lambda lang: plot.alibi_weights(
        [1 / 2, 1 / 8, 1 / 32, 1 / 128, 1 / 256], 100, lang=lang
    ),
    "attention_blurs": lambda lang: plot.attention_blurs(101, 5, [0.4, 5.0, 10, 27], lang=lang),
    "attention_map": lambda lang: plot.attention_map(np.eye(4) * 0.4 + 0.15, lang=lang),
    "attention_pair": lambda lang: plot.attention_pair(SHARES, np.eye(9), PADS, lang=lang),
    "bias_curves": lambda lang: plot.bias_curves(CURVES, trained=16, lang=lang),
    "bucket_staircase": lambda lang: plot.bucket_staircase(lang=lang),
    "clock_hands": lambda lang: plot.clock_hands([0, 1, 50], 8, lang=lang),
    "code_distances": lambda lang: plot.code_distances([4, 16], lang=lang),
    "distance_profiles": lambda lang: plot.distance_profiles({"a": TABLE, "b": 2 * TABLE}, 12, lang=lang),
    "energy_shares": lambda lang: plot.energy_shares({"a": FALLING, "b": 1 - FALLING}, lang=lang),
    "frequency_ratios": lambda lang: plot.frequency_ratios(
        {"linear": linear_frequencies(64, 8), "NTK": ntk_frequencies(64, 8)}, length=4096, lang=lang
    ),
    "head_scores": lambda lang: plot.head_scores([4, 32, 512], n=100, lang=lang),
    "heat_map": lambda lang: plot.heat_map(TABLE, lang=lang),
    "kernel_curves": lambda lang: plot.kernel_curves([4, 64], lang=lang),
    "leak_curves": lambda lang: plot.leak_curves(range(40), CURVES, lang=lang),
    "leak_paths": lambda lang: plot.leak_paths([SHARES, SHARES], PADS, lang=lang),
    "locality_curves": lambda lang: plot.locality_curves(CURVES, lang=lang),
    "loss_curves": lambda lang: plot.loss_curves(CURVES, chance=0.693, lang=lang),
    "loss_denominators": lambda lang: plot.loss_denominators([3.0, 2.5], [4.0, 3.0], lang=lang),
    "mask_maps": lambda lang: plot.mask_maps(
        {"M": np.triu(np.ones((9, 9), bool), 1), "N": np.tri(9, dtype=bool)}, lang=lang
    ),
    "nearest_codes": lambda lang: plot.nearest_codes([2, 4, 8, 16, 64], n=2000, lang=lang),
    "offset_stripes": lambda lang: plot.offset_stripes(3, 32, lang=lang),
    "order_blindness": lambda lang: plot.order_blindness("abc", TABLE[:3], "cab", TABLE[1:4], lang=lang),
    "output_mask_bars": lambda lang: plot.output_mask_bars({"a": (0.6, 0.0), "b": (1.5, 1.4)}, lang=lang),
    "padding_sides": lambda lang: plot.padding_sides([5, 2, 3], lang=lang),
    "period_comb": lambda lang: plot.period_comb(12, 50, lang=lang),
    "position_entries": lambda lang: plot.position_entries(lang=lang),
    "rbf_bumps": lambda lang: plot.rbf_bumps(13, np.arange(-6, 20, 2), 2, lang=lang),
    "read_back_curves": lambda lang: plot.read_back_curves(
        [4, 8, 16], {f"reader {k}": [0.1 * k, 0.2 * k, 0.25 * k] for k in range(1, 5)}, lang=lang
    ),
    "rotating_pairs": lambda lang: plot.rotating_pairs([(2, 5), (12, 15)], 6, lang=lang),
    "score_curves": lambda lang: plot.score_curves({"a": TABLE[:3], "b": TABLE[3:6]}, lang=lang),
    "score_decay": lambda lang: plot.score_decay(16, n=30, samples=50, lang=lang),
    "shift_arrows": lambda lang: plot.shift_arrows([0, 2, 5], 3, 4, lang=lang),
    "shift_errors": lambda lang: plot.shift_errors(
        {"a": FALLING, "b": FALLING / 99}, window=(0, 15), lang=lang
    ),
    "sum_bars": lambda lang: plot.sum_bars(TABLE[1, :4], {"a": np.ones(4), "b": 2 * np.ones(4)}, lang=lang),
    "table_columns": lambda lang: plot.table_columns({"a": TABLE, "b": TABLE[:20]}, 2, lang=lang),
    "table_lengths": lambda lang: plot.table_lengths({"a": TABLE[:9], "b": TABLE, "c": TABLE}, lang=lang),
    "table_sum": lambda lang: plot.table_sum(TABLE[:5], TABLE[5:10], lang=lang),
    "toeplitz_maps": lambda lang: plot.toeplitz_maps({"a": SQUARE, "b": SQUARE, "c": SQUARE}, lang=lang),
    "training_panels": lambda lang: plot.training_panels(STEPS, STEPS, lang=lang),
    "vector_sum": lambda lang: plot.vector_sum([1.0, 3.0], [[2.0, 1.0], [1.0, 3.0]], lang=lang),
    "waveforms": lambda lang: plot.waveforms(64, lang=lang),
    "wavelength_ladder": lambda lang: plot.wavelength_ladder([4, 8, 64], lang=lang),
    "weight_curves": lambda lang: plot.weight_curves(CURVES, lang=lang),
}


@pytest.fixture(autouse=True)
def _page_style() -> object:
    """The style of the pages, and their measuring font."""
    with mpl.rc_context():
        figures.set_up()
        yield
    plt.close("all")


def drawn(name: str, lang: Lang = "en") -> Figure:
    PICTURES[name](lang)
    (number,) = plt.get_fignums()
    return plt.figure(number)


def test_no_picture_is_left_out() -> None:
    assert sorted(PICTURES) == sorted(plot.__all__)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_can_be_read(name: str, lang: Lang) -> None:
    figure = drawn(name, lang)
    assert figurecheck.told_apart(figure) == []
    assert figurecheck.explained(figure) == []
    assert figurecheck.legible(figure) == []
    if lang == "en":  # colours speak no language
        svg = figures.to_svg(figure)
        for palette, (ground, letters) in figurecheck.palettes().items():
            assert figurecheck.contrast(svg, ground, letters) == [], palette


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
    svg = figures.to_svg(drawn("output_mask_bars"))
    (hatch,) = re.findall(r'<pattern id="([\w-]+)"', svg)
    assert hatch in re.findall(r"url\(#([\w-]+)\)", svg)
    assert set(re.findall(r"(?:fill|stroke):(#[\w-]+)", svg)) <= {color.lower() for color in COLORS}


def test_a_drawing_keeps_its_width_and_has_no_empty_band() -> None:
    figure, ax = plt.subplots(figsize=(4.8, 6))
    ax.imshow(np.eye(2))
    ((width, height),) = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figures.to_svg(figure))
    assert float(width) == pytest.approx(4.8 * 72, abs=4)
    assert float(height) < 5 * 72
