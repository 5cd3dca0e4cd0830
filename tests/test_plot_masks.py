"""The pictures of padding and masks: what they draw, in both languages, and what they refuse."""

from __future__ import annotations

import re
from collections.abc import Callable

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from posenc import causal_mask, plot
from posenc.masks import combine_masks, key_padding_mask
from posenc.plot._style import BLUE, GREY, ORANGE

CHINESE = re.compile("[\u4e00-\u9fff]")
EVEN = np.full((3, 3), 1 / 3)
PADS = key_padding_mask(2, 3)
MASKED = np.tile([0.5, 0.5, 0.0], (3, 1))
LEFT = combine_masks(key_padding_mask(2, 3, side="left"), mask=causal_mask(3))

DRAWINGS: list[Callable[..., Axes | Figure]] = [
    lambda **k: plot.attention_pair(EVEN, MASKED, PADS, **k),
    lambda **k: plot.leak_curves([0, 4], {"a": [0, 0.4], "b": [0, 0]}, **k),
    lambda **k: plot.leak_paths([EVEN, MASKED], PADS, **k),
    lambda **k: plot.loss_denominators([2.0, 3.0], [5.0, 6.0], **k),
    lambda **k: plot.mask_maps({"a": causal_mask(3), "b": LEFT}, **k),
    lambda **k: plot.output_mask_bars({"a": (0.6, 0.5), "b": (0.3, 1e-16)}, **k),
    lambda **k: plot.padding_sides([5, 2, 3], **k),
]


def figure_of(drawn: Axes | Figure) -> Figure:
    figure = drawn if isinstance(drawn, Figure) else drawn.figure
    assert isinstance(figure, Figure)
    return figure


def points(line: Line2D) -> list[list[float]]:
    return np.asarray(line.get_xydata(), dtype=float).tolist()


def all_text(figure: Figure) -> str:
    figure.canvas.draw()
    return " ".join(text.get_text() for text in figure.findobj(plt.Text) if text.get_visible())


def boxes(ax: Axes) -> list[Rectangle]:
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


@pytest.mark.parametrize("draw", DRAWINGS)
def test_both_languages_and_the_width_of_the_book(draw: Callable[..., Axes | Figure]) -> None:
    english, chinese = (figure_of(draw(lang=lang)) for lang in ("en", "zh"))
    assert english.get_figwidth() == chinese.get_figwidth() == 4.8
    assert not CHINESE.search(all_text(english))
    assert CHINESE.search(all_text(chinese))
    # No mathtext: the pages' fonts draw the labels.
    assert "$" not in all_text(english) + all_text(chinese)


@pytest.mark.parametrize("draw", DRAWINGS)
def test_unknown_language(draw: Callable[..., Axes | Figure]) -> None:
    with pytest.raises(ValueError, match='lang must be "en" or "zh", got \'de\''):
        draw(lang="de")


def test_given_axes_are_drawn_into() -> None:
    _, axes = plt.subplots(1, 4)
    assert plot.leak_curves([0], {"a": [0]}, ax=axes[0]) is axes[0]
    assert plot.leak_paths([EVEN], PADS, ax=axes[1]) is axes[1]
    assert plot.loss_denominators([1.0], [1.0], ax=axes[2]) is axes[2]
    assert plot.output_mask_bars({"a": (1, 0)}, ax=axes[3]) is axes[3]
    assert len(plt.get_fignums()) == 1


def test_attention_pair_shows_both_and_names_the_leak() -> None:
    left, right, bar = plot.attention_pair(EVEN, MASKED, PADS).axes
    assert bar.get_ylabel() == "attention weight"
    np.testing.assert_array_equal(left.images[0].get_array(), EVEN)
    np.testing.assert_array_equal(right.images[0].get_array(), MASKED)
    # One scale of colours, or the two could not be compared.
    assert left.images[0].get_clim() == right.images[0].get_clim() == (0, 0.5)
    assert left.get_title() == "no mask\nattention on pads 33 %"
    assert right.get_title() == "key mask\nattention on pads 0 %"
    crosses = [line for line in right.lines if line.get_marker() == "x"]
    assert points(crosses[0]) == [[2, 0], [2, 1], [2, 2]]


def test_attention_pair_parts_real_from_pads_on_either_side() -> None:
    for pads, edge in ((PADS, 1.5), (key_padding_mask(2, 3, side="left"), 0.5)):
        ax = plot.attention_pair(EVEN, EVEN, pads).axes[0]
        dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
        assert [points(line) for line in dashed] == [
            [[edge, -0.5], [edge, 2.5]],
            [[-0.5, edge], [2.5, edge]],
        ]


def test_leak_curves_are_told_apart_by_line_and_marker() -> None:
    ax = plot.leak_curves([0, 4], {"a": [0, 0.4], "b": [0, 0]})
    assert [points(line) for line in ax.lines] == [[[0, 0], [4, 0.4]], [[0, 0], [4, 0]]]
    assert len({line.get_linestyle() for line in ax.lines}) == 2
    assert len({line.get_marker() for line in ax.lines}) == 2


def test_leak_paths_follow_the_weights() -> None:
    ax = plot.leak_paths([MASKED, EVEN], PADS)
    lines = [line for line in ax.lines if len(points(line)) == 2]
    drawn = {tuple(map(tuple, points(line))): line for line in lines}
    # The masked layer: nobody reads the pad, the pad (query 2) reads both real tokens, dashed and blue.
    assert ((2, 0), (0, 1)) not in drawn
    out = drawn[(0, 0), (2, 1)]
    assert to_hex(out.get_color()) == BLUE
    assert out.get_linestyle() == "--"
    # The second layer: real tokens read the pad, solid and orange.
    into = drawn[(2, 1), (0, 2)]
    assert to_hex(into.get_color()) == ORANGE
    assert into.get_linestyle() == "-"
    assert out.get_linewidth() > into.get_linewidth()
    assert [text.get_text() for text in ax.texts] == ["in 0.00\nout 1.00", "in 0.33\nout 0.67"]


def test_loss_denominators() -> None:
    ax = plot.loss_denominators(np.array([2.0, 3.0]), np.array([5.0, 6.0]))
    real, everything, shrinking = (np.array(points(line))[:, 1] for line in ax.lines)
    np.testing.assert_allclose(real, [2.5, 2.5, 2.5])
    np.testing.assert_allclose(everything, [2.5, 10 / 3, 4])
    np.testing.assert_allclose(shrinking, [2.5, 5 / 3, 5 / 4])


def test_mask_maps_fill_what_may_be_seen_and_strike_empty_rows() -> None:
    left, right = plot.mask_maps({"causal": causal_mask(3), "left": LEFT}).axes
    filled = [to_hex(box.get_facecolor()) == BLUE and bool(box.get_fill()) for box in boxes(left)]
    np.testing.assert_array_equal(np.reshape(filled, (3, 3)), ~causal_mask(3))
    assert not left.lines
    (struck,) = right.lines
    assert {y for _, y in points(struck)} == {0}
    assert [ax.get_title() for ax in (left, right)] == ["causal", "left"]


def test_output_mask_bars_take_rounding_for_zero() -> None:
    ax = plot.output_mask_bars({"a": (0.6, 0.5), "b": (0.3, 1e-16)})
    np.testing.assert_allclose([bar.get_width() for bar in boxes(ax)], [0.6, 0.3, 0.5, 1e-16])
    assert [text.get_text() for text in ax.texts] == ["0.60", "0.30", "0.50", "0"]
    assert len({bar.get_hatch() for bar in boxes(ax)}) == 2


def test_padding_sides_mark_shifted_positions() -> None:
    right, place, mask = plot.padding_sides([3, 1]).axes
    assert [text.get_text() for text in right.texts] == ["0", "1", "2", "0"]
    assert [text.get_text() for text in place.texts] == ["0", "1", "2", "2"]
    assert [text.get_text() for text in mask.texts] == ["0", "1", "2", "0"]
    colors = [to_hex(box.get_edgecolor()) for box in boxes(place)]
    assert colors == [BLUE, BLUE, BLUE, GREY, GREY, ORANGE]
    assert ORANGE not in [to_hex(box.get_edgecolor()) for box in [*boxes(right), *boxes(mask)]]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plot.attention_pair(EVEN[:2], EVEN, PADS), r"weights must have shape \(3, 3\)"),
        (lambda: plot.leak_curves([0], {}), "curves must hold 1 to 6 of them, got 0"),
        (lambda: plot.leak_curves([0], {"a": [0, 1]}), "1 values each, like pads; 'a' has 2"),
        (lambda: plot.leak_paths([], PADS), "layers must hold the weights of 1 to 3 layers, got 0"),
        (lambda: plot.leak_paths([EVEN[:2]], PADS), r"layers must have shape \(3, 3\)"),
        (lambda: plot.loss_denominators([], [1.0]), "losses and pad_losses must each have one axis"),
        (lambda: plot.loss_denominators([[1.0]], [1.0]), "losses and pad_losses must each have one axis"),
        (lambda: plot.mask_maps({}), "masks must hold 1 to 3 masks, got 0"),
        (lambda: plot.mask_maps({"a": EVEN}), r"masks must be bool .* got float64 of shape \(3, 3\)"),
        (lambda: plot.output_mask_bars({}), "changes must hold pairs"),
        (lambda: plot.output_mask_bars({"a": (1, -1)}), "changes must hold pairs of numbers from 0 up"),
        (lambda: plot.padding_sides([]), "lengths must hold numbers from 1 to 12"),
        (lambda: plot.padding_sides([13]), "lengths must hold numbers from 1 to 12"),
        (lambda: plot.padding_sides([0]), "each of lengths must be at least 1, got 0"),
    ],
)
def test_errors_name_the_argument(draw: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()
