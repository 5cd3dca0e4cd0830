"""The pictures of the chapter on offsets show what the formulas say, in both languages."""

from __future__ import annotations

import math

import numpy as np
import pytest
from drawings import curves, legend, points, table
from matplotlib.figure import Figure

from posenc import dot_product_attention, plot, shift_matrix, sinusoidal_encoding
from posenc.plot._style import BLUE, ORANGE
from posenc.shift import offset_head, relative_kernel


def tips(figure: Figure, axis: int) -> list[np.ndarray]:
    """The ends of the two hands of a dial, before and after the shift: blue and round, orange and square."""
    looks = ((BLUE, "o"), (ORANGE, "s"))
    lines = {(line.get_color(), line.get_marker()): points(line)[-1] for line in figure.axes[axis].lines}
    return [lines[color, marker] for color, marker in looks]


def test_arrows_show_the_shift_of_each_pair() -> None:
    figure = plot.shift_arrows([0, 2, 5], 3, 4)
    assert len(figure.axes) == 6
    for row in range(2):
        for column, t in enumerate((0, 2, 5)):
            codes = sinusoidal_encoding(np.array([t, t + 3]), 4)[:, 2 * row : 2 * row + 2]
            np.testing.assert_allclose(tips(figure, 3 * row + column), codes, atol=1e-12)
    assert figure.axes[1].get_title() == "t = 2 → 5"
    assert figure.axes[3].get_ylabel() == "pair 1\nturn 0.03 rad"


def test_the_arc_of_a_shift_turns_clockwise_from_the_first_hand_to_the_second() -> None:
    ax = plot.shift_arrows([1], 2, 2, pairs=[0]).axes[0]
    (arc,) = [line for line in ax.lines if len(points(line)) > 2 and line.get_linewidth() == 1.2]
    # Clock angles: 0 at the top, growing clockwise.
    angles = np.unwrap(np.arctan2(points(arc)[:, 0], points(arc)[:, 1]))
    assert (np.diff(angles) > 0).all()
    assert angles[[0, -1]] == pytest.approx([1, 3])


def test_a_shift_by_zero_draws() -> None:
    assert tips(plot.shift_arrows([1.5], 0, 2, pairs=[0]), 0)[0] == pytest.approx(
        (math.sin(1.5), math.cos(1.5))
    )


def test_kernel_curves_mark_the_first_rise() -> None:
    figure = plot.kernel_curves([16, 64], n=50)
    for ax, dim, k in zip(figure.axes, (16, 64), (3, 5), strict=True):
        curve = next(line for line in ax.lines if line.get_color() == BLUE)
        np.testing.assert_allclose(points(curve)[:, 1], relative_kernel(50, dim) / (dim / 2))
        (dot,) = [line for line in ax.lines if line.get_marker() == "o"]
        assert points(dot)[0, 0] == k
        assert ax.get_title(loc="left") == f"width {dim} · first rise after k = {k}"


def test_kernel_that_only_falls_has_no_mark() -> None:
    (ax,) = plot.kernel_curves([512], n=20).axes
    assert ax.get_title(loc="left") == "width 512"


def test_toeplitz_maps_show_each_matrix_on_its_own_scale() -> None:
    matrices = {"a": np.eye(3), "b": -5 * np.eye(3), "c": np.zeros((2, 3))}
    figure = plot.toeplitz_maps(matrices)
    assert len(figure.axes) == 4
    for ax, (label, matrix), most in zip(figure.axes[:3], matrices.items(), (1, 5, 1), strict=True):
        np.testing.assert_array_equal(table(ax), matrix)
        assert ax.images[0].get_clim() == (-most, most)
        assert ax.get_title(loc="left") == label
    assert not figure.axes[3].axison


def test_stripes_are_the_attention_of_the_head() -> None:
    figure = plot.offset_stripes(-2, 32, (1, 8, 20), n=21)
    codes = sinusoidal_encoding(21, 32)
    for ax, gain in zip(figure.axes[:3], (1, 8, 20), strict=True):
        w_query, w_key = offset_head(-2, 32, gain)
        _, weights = dot_product_attention(codes @ w_query, codes @ w_key, codes)
        np.testing.assert_allclose(table(ax), weights)
        assert ax.get_title(loc="left") == f"gain {gain} · weight {weights[10, 8]:.4f}"


def test_errors_are_drawn_with_their_window() -> None:
    codes = sinusoidal_encoding(40, 8)
    error = np.linalg.norm(codes[:-1] @ shift_matrix(2, 8).T - codes[1:], axis=1)
    ax = plot.shift_errors({"wrong": error, "none": np.zeros(39)}, window=(0, 9))
    assert curves(ax) == {"wrong": error.tolist(), "none": [1e-17] * 39}
    assert ax.get_yscale() == "log"
    (window,) = ax.patches
    assert window.get_extents().transformed(ax.transData.inverted()).intervalx == pytest.approx([0, 9])
    assert legend(ax) == ["fitted here", "wrong", "none"]
