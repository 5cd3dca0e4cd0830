"""The pictures of padding and masks: what they draw, in both languages, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from drawings import curves, legend, points, table, texts
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from posenc import causal_mask, plot
from posenc.masks import combine_masks, key_padding_mask
from posenc.plot._style import BLUE, GREY, ORANGE

EVEN = np.full((3, 3), 1 / 3)
PADS = key_padding_mask(2, 3)
MASKED = np.tile([0.5, 0.5, 0.0], (3, 1))
LEFT = combine_masks(key_padding_mask(2, 3, side="left"), mask=causal_mask(3))


def boxes(ax: Axes) -> list[Rectangle]:
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


def test_attention_pair_shows_both_and_names_the_leak() -> None:
    left, right, bar = plot.attention_pair(EVEN, MASKED, PADS).axes
    assert bar.get_ylabel() == "attention weight"
    np.testing.assert_array_equal(table(left), EVEN)
    np.testing.assert_array_equal(table(right), MASKED)
    # One scale of colours, or the two could not be compared.
    assert left.images[0].get_clim() == right.images[0].get_clim() == (0, 0.5)
    assert left.get_title() == "no mask\nattention on pads 33 %"
    assert right.get_title() == "key mask\nattention on pads 0 %"
    crosses = [line for line in right.lines if line.get_marker() == "x"]
    assert points(crosses[0]).tolist() == [[2, 0], [2, 1], [2, 2]]


def test_attention_pair_parts_real_from_pads_on_either_side() -> None:
    for pads, edge in ((PADS, 1.5), (key_padding_mask(2, 3, side="left"), 0.5)):
        ax = plot.attention_pair(EVEN, EVEN, pads).axes[0]
        dashed = [line for line in ax.lines if line.get_linestyle() == "--"]
        assert [points(line).tolist() for line in dashed] == [
            [[edge, -0.5], [edge, 2.5]],
            [[-0.5, edge], [2.5, edge]],
        ]


def test_leak_curves_go_through_what_they_are_given() -> None:
    ax = plot.leak_curves([0, 4], {"a": [0, 0.4], "b": [0, 0]})
    assert [points(line).tolist() for line in ax.lines] == [[[0, 0], [4, 0.4]], [[0, 0], [4, 0]]]
    assert list(curves(ax)) == legend(ax) == ["a", "b"]


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
    assert texts(ax) == ["in 0.00\nout 1.00", "in 0.33\nout 0.67"]


def test_loss_denominators() -> None:
    ax = plot.loss_denominators(np.array([2.0, 3.0]), np.array([5.0, 6.0]))
    assert curves(ax) == {
        "real losses / real tokens": pytest.approx([2.5, 2.5, 2.5]),
        "all losses / all places": pytest.approx([2.5, 10 / 3, 4]),
        "real losses / all places": pytest.approx([2.5, 5 / 3, 5 / 4]),
    }
    assert legend(ax) == list(curves(ax))


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
    assert texts(ax) == ["0.60", "0.30", "0.50", "0"]
    assert [bool(bar.get_hatch()) for bar in boxes(ax)] == [False, False, True, True]
    assert legend(ax) == ["without output mask", "with output mask"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"]


def test_padding_sides_mark_shifted_positions() -> None:
    right, place, mask = plot.padding_sides([3, 1]).axes
    assert texts(right) == ["0", "1", "2", "0"]
    assert texts(place) == ["0", "1", "2", "2"]
    assert texts(mask) == ["0", "1", "2", "0"]
    titles = [ax.get_title(loc="left") for ax in (right, place, mask)]
    assert titles == ["right, counted by place", "left, counted by place", "left, counted from the mask"]
    colors = [to_hex(box.get_edgecolor()) for box in boxes(place)]
    assert colors == [BLUE, BLUE, BLUE, GREY, GREY, ORANGE]
    assert ORANGE not in [to_hex(box.get_edgecolor()) for box in [*boxes(right), *boxes(mask)]]
