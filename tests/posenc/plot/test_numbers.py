"""What each picture draws is what the formulas say: the right row, the right axis, the right sign."""

import math
from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.patches import StepPatch, Wedge
from scipy import sparse

from posenc import alibi_bias, apply_rotary, causal_mask, dot_product_attention, plot, sinusoidal_encoding
from posenc.locality import gaussian_weights, rbf_kernel
from posenc.masks import combine_masks, key_padding_mask
from posenc.parallel import Scheme, ring_work, shard_positions
from posenc.plot._style import BLUE, GREY, ORANGE, Lang
from posenc.rotary import linear_frequencies, mixed_frequencies, mrope_frequencies
from posenc.shift import offset_head, relative_kernel
from posenc.sinusoidal import code_distance, sinusoidal_frequencies, sinusoidal_wavelengths
from tests.posenc.plot.drawings import (
    boxes,
    cells,
    curves,
    legend,
    marked,
    points,
    table,
    texts,
    ticks,
    titles,
)

EVEN = np.full((3, 3), 1 / 3)
PADS = key_padding_mask(2, 3)
LEFT = key_padding_mask(2, 3, side="left")
MASKED = np.tile([0.5, 0.5, 0.0], (3, 1))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 5))
SCHEMES: list[Scheme] = ["contiguous", "zigzag", "striped"]


# --- Curves by label ----------------------------------------------------------------------------------------


def test_curves_are_what_is_given_where_it_is_given() -> None:
    given = {"a": [0.9, 0.7, 0.0], "b": [0.1, 0.2, 0.3]}
    ax = plot.curves(given, [4, 8, 16], labels=("x", "y"), log=True, trained=4, chance=0.6931)
    assert curves(ax) == given
    assert [points(line)[:, 0].tolist() for line in ax.lines[-2:]] == [[4, 8, 16]] * 2
    assert (ax.get_xlabel(), ax.get_ylabel(), legend(ax)) == ("x", "y", ["a", "b"])
    assert (ax.get_xscale(), ticks(ax.xaxis)) == ("log", ["4", "8", "16"])
    assert [points(line)[0].tolist() for line in ax.lines[:2]] == [[4, 0], [0, 0.6931]]
    assert texts(ax) == ["training length", "chance 0.693"]
    ax = plot.curves({"a": [2, 1], "b": [1.0, 0.0]}, "x.", labels=("", "y"), steps=True, marks=True)
    assert ticks(ax.xaxis) == ["x", "."]
    assert {line.get_drawstyle() for line in ax.lines} == {"steps-mid"}
    assert [line.get_marker() for line in ax.lines] == ["o", "s"]
    assert ax.get_ylim()[0] < 0  # a curve that is 0 shows
    ax = plot.curves({"a": np.ones(99), "b": np.ones(9)}, labels=("x", "y"), broad=True)
    assert ax.lines[0].get_linewidth() > 2 * ax.lines[1].get_linewidth()
    assert points(ax.lines[1])[:, 0].tolist() == list(range(9))


# --- Adding -------------------------------------------------------------------------------------------------


def test_vector_sum() -> None:
    ax = plot.vector_sum([1, 3], [[2, 1], [1, 3]])
    arrows = [
        points(line)[-1].tolist() for line in ax.lines if len(points(line)) == 2 and not points(line)[0].any()
    ]
    assert arrows == [[1, 3], [2, 1], [1, 3], [3, 4], [2, 6]]
    assert {"(1, 3)", "(2, 1)", "(3, 4)", "(2, 6)"} <= set(texts(ax))
    assert texts(ax).count(f"{math.sqrt(5):.3f}") == 2
    words = {str(line.get_label()): points(line)[-1].tolist() for line in ax.lines}
    assert words.items() >= {"token embedding": [1, 3], "position code": [2, 1], "sum": [3, 4]}.items()
    assert texts(plot.vector_sum([1, 3], [[2, 1]])) == ["(2, 1)", "(1, 3)", "(3, 4)"]  # no distance


def test_table_sum() -> None:
    figure = plot.table_sum(X, 2 * X, tokens=["a", "b", "c"])
    for ax, expected, sign in zip(figure.axes, (X, 2 * X, 3 * X), ("", "+", "="), strict=False):
        np.testing.assert_allclose(table(ax), expected)
        assert ax.images[0].get_clim() == pytest.approx((-3 * np.abs(X).max(), 3 * np.abs(X).max()))
        assert (ax.get_xlabel(), texts(ax)) == ("3 × 5", [sign])
    assert ticks(figure.axes[0].yaxis) == ["a", "b", "c"]


def test_training_panels() -> None:
    moved = np.zeros((4, 3, 2))
    moved[1:, 0, 1] = [0.1, -0.2, 0.3]
    axes = plot.training_panels(moved + 5, np.ones((4, 2, 2)), tokens=["x", "y", "z"]).axes
    for ax, change in zip(axes, [*moved[1:], *np.zeros((3, 2, 2))], strict=False):
        np.testing.assert_allclose(table(ax), change)
        assert ax.images[0].get_clim() == pytest.approx((-0.3, 0.3))
    largest = [f"step {k}\nlargest 0.{k}0" for k in (1, 2, 3)] + ["largest 0.00"] * 3
    assert [ax.get_title() for ax in axes[:6]] == largest
    assert ticks(axes[0].yaxis) == ["x", "y", "z"]


def test_sum_bars() -> None:
    ax = plot.sum_bars([0.5, -0.5], {"1": [1, 1], "10": [10, 10]})
    heights = [(bar.get_y(), bar.get_height(), bool(bar.get_hatch())) for bar in boxes(ax)]
    embedding = [[(code, 0.5, False), (code, -0.5, False)] for code in (1, 10)]
    assert heights == [(0, 1, True)] * 2 + embedding[0] + [(0, 10, True)] * 2 + embedding[1]
    assert (ticks(ax.xaxis), legend(ax)) == (["1", "10"], ["code", "token embedding"])


# --- Attention and masks ------------------------------------------------------------------------------------


def test_attention_map() -> None:
    weights = np.array([[0.1, 0.9, 0.0], [0.25, 0.5, 0.25]])
    mask = np.array([[False, False, True], [False, False, False]])
    ax = plot.attention_map(weights, queries=["a", "b"], keys=["x", "y", "z"], mask=mask)
    np.testing.assert_array_equal(table(ax), weights)
    assert cells(ax) == {(0, 0): "0.10", (1, 0): "0.90", (0, 1): "0.25", (1, 1): "0.50", (2, 1): "0.25"}
    assert marked(ax, "x") == [[2, 0]]
    assert (ticks(ax.yaxis), ticks(ax.xaxis)) == (["a", "b"], ["x", "y", "z"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("key", "query")
    ax = plot.attention_map(np.full((9, 9), 1 / 9))
    assert (texts(ax), ax.figure.axes[1].get_ylabel()) == ([], "attention weight")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("key position u", "query position t")


@pytest.mark.parametrize(("pads", "edge"), [(PADS, 1.5), (LEFT, 0.5)])
def test_attention_pair(pads: np.ndarray, edge: float) -> None:
    left, right, _ = plot.attention_pair(EVEN, MASKED, pads).axes
    np.testing.assert_array_equal([table(left), table(right)], [EVEN, MASKED])
    assert left.images[0].get_clim() == right.images[0].get_clim() == (0, 0.5)
    leak = "0" if pads is PADS else "50"
    assert left.get_title() == "no mask\nattention on pads 33 %"
    assert right.get_title() == f"key mask\nattention on pads {leak} %"
    assert marked(right, "x") == [[u, t] for t in range(3) for u in np.flatnonzero(pads)]
    borders = [points(line).tolist() for line in left.lines]
    assert borders == [[[edge, -0.5], [edge, 2.5]], [[-0.5, edge], [2.5, edge]]]


def test_leak_paths() -> None:
    ax = plot.leak_paths([MASKED, EVEN], PADS)
    drawn = {tuple(map(tuple, points(line))): line for line in ax.lines if len(points(line)) == 2}
    assert ((2, 0), (0, 1)) not in drawn  # in the masked layer nobody reads the pad
    out, into = drawn[(0, 0), (2, 1)], drawn[(2, 1), (0, 2)]
    looks = [(to_hex(line.get_color()), line.get_linestyle()) for line in (out, into)]
    assert looks == [(BLUE, "--"), (ORANGE, "-")]
    assert out.get_linewidth() > into.get_linewidth()
    assert texts(ax) == ["in 0.00\nout 1.00", "in 0.33\nout 0.67"]


def test_mask_maps() -> None:
    empty = combine_masks(LEFT, mask=causal_mask(3))
    left, right = plot.mask_maps({"causal": causal_mask(3), "left": empty}).axes
    filled = [to_hex(box.get_facecolor()) == BLUE and bool(box.get_fill()) for box in boxes(left)]
    np.testing.assert_array_equal(np.reshape(filled, (3, 3)), ~causal_mask(3))
    assert not left.lines
    assert {y for line in right.lines for _, y in points(line)} == {0}  # the row that sees nothing is struck
    assert titles(left.figure, "center") == ["causal", "left"]  # type: ignore[arg-type]


def test_output_mask_bars() -> None:
    ax = plot.output_mask_bars({"a": (0.6, 0.5), "b": (0.3, 1e-16)})
    np.testing.assert_allclose([bar.get_width() for bar in boxes(ax)], [0.6, 0.3, 0.5, 1e-16])
    assert texts(ax) == ["0.60", "0.30", "0.50", "0"]
    assert [bool(bar.get_hatch()) for bar in boxes(ax)] == [False, False, True, True]
    assert (legend(ax), ticks(ax.yaxis)) == (["without output mask", "with output mask"], ["a", "b"])


def test_padding_sides() -> None:
    figure = plot.padding_sides([3, 1])
    assert titles(figure) == [
        "right, counted by place",
        "left, counted by place",
        "left, counted from the mask",
    ]
    assert [texts(ax) for ax in figure.axes] == [list("0120"), list("0122"), list("0120")]
    colors = [[to_hex(box.get_edgecolor()) for box in boxes(ax)] for ax in figure.axes]
    assert colors[0] == [BLUE, BLUE, BLUE, BLUE, GREY, GREY]
    assert colors[1:] == [[BLUE, BLUE, BLUE, GREY, GREY, last] for last in (ORANGE, BLUE)]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_position_entries(lang: Lang) -> None:
    """The shapes in the picture, from top to bottom, are those of a run."""
    batch, heads, seq, head_dim, dim = 2, 3, 5, 4, 12
    sizes = {"batch": batch, "heads": heads, "seq": seq, "head_dim": head_dim, "dim": dim, "head_dim / 2": 2}
    ax = plot.position_entries(lang=lang)
    lines = [(text.get_position()[1], line) for text in ax.texts for line in text.get_text().splitlines()]
    found = [
        (y, [sizes[name] for name in line.strip("()").split(", ")]) for y, line in lines if line[0] == "("
    ]
    x, code = RNG.normal(size=(batch, seq, dim)), sinusoidal_encoding(seq, dim)
    q = (x + code).reshape(batch, seq, heads, head_dim).transpose(0, 2, 1, 3)
    angles, bias, mask = np.ones((seq, head_dim // 2)), alibi_bias(np.ones(heads), seq), causal_mask(seq)
    output, weights = dot_product_attention(apply_rotary(q, seq), q, q, bias=bias[None], mask=mask)
    scores = q @ q.transpose(0, 1, 3, 2)
    run = [x[..., 0], x, code, x + code, q, angles, q, scores, bias, scores + bias, mask, weights, output, x]
    assert [shape for _, shape in sorted(found)] == [list(step.shape) for step in run]
    dashed = [points(line)[:4, 1].mean() for line in ax.lines if line.get_linestyle() == "--"]
    entries = [[line for y, line in lines if y == pytest.approx(height)] for height in dashed]
    assert [names[1][0] for names in entries] == list("1234")
    if lang == "en":
        assert [names[0] for names in entries] == ["add a code", "turn q and k", "add a bias", "hide keys"]


# --- Order and distance -------------------------------------------------------------------------------------


def test_order_blindness() -> None:
    below = X[::-1] + np.array([[0.0], [1e-3], [0.0]])
    ax = plot.order_blindness(["dog", "bites", "man"], X, ["man", "bites", "dog"], below)
    joined = [(points(line)[:, 0].tolist(), line.get_linestyle()) for line in ax.lines]
    assert joined == [([0, 2], "-"), ([1, 1], "--"), ([2, 0], "-"), ([3.3, 3.3], "--")]
    strips = [np.asarray(image.get_array()).ravel() for image in ax.images]
    np.testing.assert_allclose(strips, [*X, X.mean(axis=0), *below, below.mean(axis=0)])
    assert {image.get_clim() for image in ax.images} == {(-np.abs(X).max(), np.abs(X).max())}
    assert texts(ax) == ["dog", "bites", "man", "mean", "man", "bites", "dog", "mean"]
    ax = plot.order_blindness("aba", 0 * X, "aab", 0 * X)
    assert [points(line)[:, 0].tolist() for line in ax.lines][:3] == [[0, 0], [1, 2], [2, 1]]
    assert {line.get_linestyle() for line in ax.lines} == {"-"}


def test_score_curves() -> None:
    left, right = plot.score_curves({"a": [[1, 5, 2], [-4, -10, -3]], "b": [[0, 0, 0]]}).axes
    heights = [points(line)[:, 1].tolist() for line in left.lines[::2]]
    assert heights == [[0.1, 0.5, 0.2], [-0.4, -1, -0.3]]
    assert [points(dot).tolist() for dot in left.lines[1::2]] == [[[1, 0.5]], [[2, -0.3]]]
    assert points(right.lines[0])[:, 1].tolist() == [0, 0, 0]


def test_distance_profiles() -> None:
    codes = {"a": RNG.normal(size=(9, 4)), "b": np.eye(9), "c": np.eye(9)}
    *panels, empty = plot.distance_profiles(codes, 3).axes
    for ax, rows in zip(panels, codes.values(), strict=True):
        np.testing.assert_allclose(points(ax.lines[0])[:, 1], [np.linalg.norm(row - rows[3]) for row in rows])
        assert points(ax.lines[1]).tolist() == [[3, 0]]
    assert not empty.axison


def test_code_distances() -> None:
    for ax, dim in zip(plot.code_distances([4, 64]).axes, (4, 64), strict=True):
        step, curve = ax.lines
        np.testing.assert_array_equal(points(curve)[:, 1], code_distance(61, dim))
        assert points(step)[:, 1].tolist() == [code_distance(30, dim)[1]] * 2
        assert (ax.get_title(loc="left"), ax.get_ylim()) == (f"width {dim}", (0, 2 * math.sqrt(dim / 2)))


@pytest.mark.parametrize("dim", [2, 16])
def test_nearest_codes(dim: int) -> None:
    x, y = points(plot.nearest_codes([dim], n=800).lines[0]).T
    codes = sinusoidal_encoding(800, dim)
    assert (x[0], x[-1]) == (2, 800)
    for n in (2, 8, 45, 711, 800):
        gaps = np.linalg.norm(codes[:n, None] - codes[None, :n], axis=-1) + 9 * np.eye(n)
        # a step holds its value to the next one
        assert y[np.searchsorted(x, n, side="right") - 1] == pytest.approx(gaps.min(), rel=1e-6)


def test_rbf_bumps() -> None:
    centers = [0.0, 2.0, 5.0]
    ax = plot.rbf_bumps(7, centers, 1.5)
    for line, c in zip(ax.lines, centers, strict=False):
        x, y = points(line).T
        np.testing.assert_allclose(y, np.exp(-((x - c) ** 2) / 4.5))
    np.testing.assert_allclose(marked(ax, "o"), [[3, math.exp(-((3 - c) ** 2) / 4.5)] for c in centers])


def test_attention_blurs() -> None:
    figure = plot.attention_blurs(41, 2.0, [0.5, 8.0])
    for ax, peak in zip(figure.axes, (0.5, 8.0), strict=True):
        np.testing.assert_allclose(curves(ax)["Gaussian"], gaussian_weights(41, 2 * math.sqrt(2 / peak))[20])
        exps = np.exp(peak * rbf_kernel(np.arange(41) - 20, 2.0) / rbf_kernel(1, 2.0))
        np.testing.assert_allclose(curves(ax)["attention weight"], exps / exps.sum())
        assert ax.get_title(loc="left").startswith(f"peak {peak:g} · TV ")
    assert legend(figure) == ["Gaussian", "attention weight"]


def test_locality_curves() -> None:
    fall, weight = plot.locality_curves({"a": -np.arange(5) / 2 + 7, "b": np.zeros(5)}).axes
    assert curves(fall) == {"a": (-np.arange(5) / 2).tolist(), "b": [0] * 5}
    assert curves(weight) == {"a": np.exp(-np.arange(5) / 2).tolist(), "b": [1] * 5}
    assert len(plot.locality_curves({"a": np.zeros(5)}, weights=False).axes) == 1


# --- Waves and shifts ---------------------------------------------------------------------------------------


def test_clock_hands() -> None:
    figure = plot.clock_hands([0, 50], 8)
    codes = sinusoidal_encoding(np.array([0, 50]), 8).reshape(8, 2)
    np.testing.assert_array_equal([points(ax.lines[-2])[1] for ax in figure.axes], codes)
    np.testing.assert_array_equal([points(ax.lines[-1])[0] for ax in figure.axes], codes)
    assert titles(figure, "center") == [
        f"wavelength\n{number}" for number in ("6.28", "62.8", "628", "6 283")
    ]
    assert [ax.get_ylabel() for ax in figure.axes[::4]] == ["t = 0", "t = 50"]


def test_wavelength_ladder() -> None:
    ax = plot.wavelength_ladder([4, 64], base=500)
    limit, *rungs = ax.lines
    for k, (line, dim) in enumerate(zip(rungs, (4, 64), strict=True)):
        np.testing.assert_array_equal(points(line)[:, 0], sinusoidal_wavelengths(dim, 500))
        assert (points(line)[:, 1] == k).all()
        assert points(line)[:, 0].max() < points(limit)[0, 0]
    assert ticks(ax.yaxis) == ["width 4", "width 64"]


def test_waveforms() -> None:
    figure = plot.waveforms(64, pairs=[5, 0], n=20)
    codes = sinusoidal_encoding(20, 64)
    for ax, i in zip(figure.axes, (5, 0), strict=True):
        for k, name in enumerate(("sine", "cosine")):
            curve, dots = ax.lines[2 * k : 2 * k + 2]
            t, y = points(curve).T
            np.testing.assert_array_equal(y, sinusoidal_encoding(t, 64)[:, 2 * i + k])
            np.testing.assert_array_equal(points(dots)[:, 1], codes[:, 2 * i + k])
            assert curve.get_label() == name
    assert [name[:6] for name in titles(plot.waveforms(8))] == ["pair 0", "pair 1", "pair 2", "pair 3"]


def test_heat_map() -> None:
    codes = np.array([[0.5, -2.0], [1.0, 0.0]])
    ax = plot.heat_map(codes)
    np.testing.assert_array_equal(table(ax), codes)
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.images[0].get_clim()) == ("dimension", "position t", (-2, 2))
    assert ticks(ax.figure.axes[1].yaxis) == ["−2", "0", "2"]


def test_shift_arrows() -> None:
    figure = plot.shift_arrows([0, 2, 5], 3, 4)
    for k, ax in enumerate(figure.axes):
        i, t = k // 3, (0, 2, 5)[k % 3]
        codes = sinusoidal_encoding(np.array([t, t + 3]), 4)[:, 2 * i : 2 * i + 2]
        tips = [points(line)[-1] for line in ax.lines if line.get_marker() in ("o", "s")]
        np.testing.assert_allclose(tips, codes, atol=1e-12)
        (arc,) = [points(line) for line in ax.lines if line.get_linewidth() == 1.2]
        turned = np.unwrap(np.arctan2(*arc.T))  # from the top, clockwise
        omega = 0.01**i
        np.testing.assert_allclose(turned - turned[0], np.linspace(0, 3 * omega, len(turned)), atol=1e-12)
        assert np.sin(turned[0]) == pytest.approx(np.sin(t * omega))
    assert figure.axes[1].get_title() == "t = 2 → 5"
    assert figure.axes[3].get_ylabel() == "pair 1\nturn 0.03 rad"
    assert len(plot.shift_arrows([1.5], 0, 2, pairs=[0]).axes) == 1  # no turn, no arrow


def test_kernel_curves() -> None:
    figure = plot.kernel_curves([16, 64, 512], n=20)
    for ax, dim in zip(figure.axes, (16, 64, 512), strict=True):
        np.testing.assert_allclose(points(ax.lines[1])[:, 1], relative_kernel(20, dim) / (dim / 2))
    assert titles(figure) == [f"width {d} · first rise after k = {k}" for d, k in ((16, 3), (64, 5))] + [
        "width 512"
    ]
    assert [[x for x, _ in marked(ax, "o")] for ax in figure.axes] == [[3], [5], []]


def test_toeplitz_maps() -> None:
    matrices = {"a": np.eye(3), "b": -5 * np.eye(3), "c": np.zeros((2, 3))}
    *panels, rest = plot.toeplitz_maps(matrices).axes
    for ax, (label, matrix), most in zip(panels, matrices.items(), (1, 5, 1), strict=True):
        np.testing.assert_array_equal(table(ax), matrix)
        assert (ax.images[0].get_clim(), ax.get_title(loc="left")) == ((-most, most), label)
    assert not rest.axison


def test_offset_stripes() -> None:
    figure = plot.offset_stripes(-2, 32, (1, 8, 20), n=21)
    codes = sinusoidal_encoding(21, 32)
    for ax, gain in zip(figure.axes, (1, 8, 20), strict=False):
        w_query, w_key = offset_head(-2, 32, gain)
        _, weights = dot_product_attention(codes @ w_query, codes @ w_key, codes)
        np.testing.assert_allclose(table(ax), weights)
        assert ax.get_title(loc="left") == f"gain {gain} · weight {weights[10, 8]:.4f}"


def test_shift_errors() -> None:
    ax = plot.shift_errors({"wrong": [0.1, 1.0], "none": [0.0, 3e-16]}, window=(0, 1))
    # rounding is not drawn: with another number of threads it is another
    assert curves(ax) == {"wrong": [0.1, 1], "none": [1e-12] * 2}
    (window,) = boxes(ax)
    assert (window.get_x(), window.get_width(), ax.get_yscale()) == (0, 1, "log")
    assert legend(ax) == ["fitted here", "wrong", "none"]


# --- Rotary -------------------------------------------------------------------------------------------------


def test_rotating_pairs() -> None:
    figure = plot.rotating_pairs([(2, 5), (12, 15)], 4, base=100)
    for k, ax in enumerate(figure.axes):
        omega, (t, u) = 0.1 ** (k % 2), ((2, 5), (12, 15))[k // 2]
        hands = {
            line.get_color(): points(line)[0] @ [1, 1j]
            for line in ax.lines
            if line.get_marker() in ("o", "s")
        }
        np.testing.assert_allclose([hands[BLUE], hands[ORANGE]], np.exp([1j * omega * t, 1j * omega * u]))
        np.testing.assert_allclose(
            points(ax.lines[0])[[0, -1]] @ [1, 1j], np.exp([1j * omega * t, 1j * omega * u]) / 2
        )
    assert titles(figure, "center") == ["wavelength\n6.28", "wavelength\n62.8"]
    assert [ax.get_ylabel() for ax in figure.axes[::2]] == ["t = 2\nu = 5", "t = 12\nu = 15"]
    assert {str(line.get_label()): line.get_color() for line in figure.axes[0].lines}["query"] == BLUE


def test_head_scores() -> None:
    ax = plot.head_scores([8], n=16)
    x, y = points(ax.lines[1]).T
    np.testing.assert_allclose(y, np.cos(2 * np.pi * x / 8), atol=1e-12)
    assert (legend(ax), marked(ax, "o")) == (["λ = 8"], [[pytest.approx(8 / 6), 0.5]])


def test_period_comb() -> None:
    ax = plot.period_comb(12, 50)
    assert marked(ax, "D") == [[u, pytest.approx(1)] for u in range(2, 51, 12)]
    (window,) = boxes(ax)
    assert (window.get_x(), window.get_width()) == (37.5, 12)


def test_score_decay() -> None:
    figure = plot.score_decay(64)
    equal, independent = (points(ax.lines[1])[:, 1] for ax in figure.axes)
    assert (equal[0], equal[100]) == (pytest.approx(64, abs=2), pytest.approx(36, abs=3))
    assert np.abs(independent).max() < 2
    band = figure.axes[1].collections[0].get_paths()[0].get_extents()
    assert (band.y0, band.y1) == (pytest.approx(-8, abs=1.5), pytest.approx(8, abs=1.5))
    assert titles(figure) == ["q = k", "q and k independent"]


# --- Biases -------------------------------------------------------------------------------------------------


def test_alibi_maps() -> None:
    figure = plot.alibi_maps([1 / 2, 1 / 8, 0.3], 5)
    for ax, m, number in zip(figure.axes, (1 / 2, 1 / 8, 0.3), ("−1", "−1/4", "−0.6"), strict=False):
        bias = alibi_bias(m, 5)
        np.testing.assert_array_equal(table(ax)[np.isfinite(bias)], bias[np.isfinite(bias)])
        assert ax.images[0].get_clim() == (-2, 0)
        assert marked(ax, "x") == [[u, t] for t, u in np.argwhere(np.isinf(bias))]
        assert (len(cells(ax)), cells(ax)[1, 3]) == (15, number)
    assert titles(figure) == ["slope 1/2", "slope 1/8", "slope 0.3"]
    map_, bar = plot.alibi_maps([1 / 256], 4).axes  # too long for a cell
    assert (texts(map_), bar.get_ylabel()) == ([], "bias")


def test_alibi_weights() -> None:
    ax = plot.alibi_weights([1 / 2, 1 / 4, 1 / 256], 400)
    for m, (label, weights), mark in zip((1 / 2, 1 / 4, 1 / 256), curves(ax).items(), "os^", strict=True):
        assert label == f"slope 1/{1 / m:.0f}"
        np.testing.assert_allclose(weights, (1 - math.exp(-m)) * np.exp(-m * np.arange(400)))
        held = np.flatnonzero(np.cumsum(weights) >= 0.9)[:1]
        assert marked(ax, mark) == [[k, weights[k]] for k in held]  # none beyond the end
    assert ax.get_yscale() == "log"


def test_alibi_rows() -> None:
    scores = np.array([3.0, -1.0, 0.5, 1.0])
    first, *rest = plot.alibi_rows(scores, [0, 0.5]).axes
    np.testing.assert_allclose([bar.get_height() for bar in boxes(first, ORANGE)], scores)
    for ax, m in zip(rest, (0, 0.5), strict=True):
        (outline,) = [patch for patch in ax.patches if isinstance(patch, StepPatch)]
        bars = [bar.get_height() for bar in boxes(ax, BLUE)]
        for heights, content in ((bars, scores), (outline.get_data()[0], 0)):
            exps = np.exp(content - m * np.array([3, 2, 1, 0]))
            np.testing.assert_allclose(heights, exps / exps.sum())
    assert rest[0].get_ylim() == rest[1].get_ylim()


def test_bias_curves() -> None:
    figure = plot.bias_curves({"a": 5 - np.arange(29.0, -1, -1), "b": np.zeros(9)}, trained=10)
    np.testing.assert_array_equal(points(figure.axes[0].lines[0]), np.column_stack([np.arange(-29, 1)] * 2))
    (untrained,) = boxes(figure.axes[0])
    assert untrained.get_x() + untrained.get_width() == -9.5
    assert not figure.axes[1].patches
    assert titles(figure) == ["a", "b"]


# --- Longer texts -------------------------------------------------------------------------------------------


def test_seen_angles() -> None:
    figure = plot.seen_angles(
        {"a": sinusoidal_frequencies(8), "b": linear_frequencies(8, 8)}, [0, 1, 2], 32, 256
    )
    wedges = [
        [
            (to_hex(w.get_edgecolor()), w.theta1 / 360, w.theta2 / 360)
            for w in ax.patches
            if isinstance(w, Wedge)
        ]
        for ax in figure.axes
    ]
    share = pytest.approx(3.2 / (2 * np.pi))
    assert wedges[:2] == [[(BLUE, 0, 1)], [(BLUE, 0, share), (ORANGE, share, pytest.approx(1))]]
    assert wedges[2][1][2] == pytest.approx(2.56 / (2 * np.pi))
    assert [len(found) for found in wedges[3:]] == [1, 1, 1]  # squeezed into what was met
    assert [ax.get_ylabel() for ax in figure.axes[::3]] == ["a", "b"]


def test_cosine_sums() -> None:
    ax = plot.cosine_sums([10_000.0, 500_000.0], 128, 4096)
    assert [x for x, _ in marked(ax, "o")] == [1707]  # the first negative sum; the other base has none
    assert legend(ax) == ["base 10 000", "base 500 000"]
    line = plot.cosine_sums([1e4], 128, 65536).lines[1]
    everywhere = np.cos(np.arange(1.0, 65537)[:, None] * sinusoidal_frequencies(128)).mean(axis=1)
    distances, means = points(line).T
    np.testing.assert_allclose(means, everywhere[distances.astype(int) - 1])
    assert (means.min(), means.max()) == (everywhere.min(), everywhere.max())
    assert len(distances) < 250


def test_distance_weights() -> None:
    given = {"t = 28": RNG.dirichlet(np.ones(29), 4), "t = 250": RNG.dirichlet(np.ones(251), 4)}
    figure = plot.distance_weights(given, trained=32)
    for ax, weights in zip(figure.axes, given.values(), strict=True):
        assert curves(ax) == {f"head {head}": row.tolist() for head, row in enumerate(weights, start=1)}
    assert [len(ax.patches) for ax in figure.axes] == [0, 1]  # the shaded part, where there is another
    assert titles(figure) == list(given)


def test_accuracy_by_length() -> None:
    runs = np.array([[1.0, 0.8], [0.9, 0.2], [1.0, 0.5]])
    figure = plot.accuracy_by_length({"x": {"a": runs, "b": runs / 2}, "y": {"b": runs[:1]}}, [32, 256])
    first, second = figure.axes
    assert curves(first) == {"a": runs.mean(axis=0).tolist(), "b": (runs / 2).mean(axis=0).tolist()}
    assert curves(second) == {"b": runs[0].tolist()}
    looks = {(line.get_color(), line.get_marker()) for ax in (first, second) for line in ax.lines[-1:]}
    assert len(looks) == 1
    spread = first.collections[0].get_paths()[0].vertices
    assert set(np.asarray(spread)[:, 1]) == {0.9, 1.0, 0.2, 0.8}
    assert not second.collections  # one seed has no spread
    assert legend(figure) == ["a", "b"]


def test_score_by_position() -> None:
    runs = np.array([[1.0, 0.5, 0.25], [0.5, 0.5, 0.0]])
    ax = plot.score_by_position({"a": runs}, 16)
    np.testing.assert_allclose(points(ax.lines[0]), [[7.5, 0.75], [23.5, 0.5], [39.5, 0.125]])
    assert ax.get_ylabel() == "accuracy"
    assert plot.score_by_position({"a": 3 + runs}, measure="perplexity", lang="zh").get_ylabel() == "困惑度"


# --- Other places -------------------------------------------------------------------------------------------


def test_table_lengths() -> None:
    tables = {"a": X, "b": np.vstack([X, X / 2])}
    figure = plot.table_lengths(tables)
    for ax, rows in zip(figure.axes, tables.values(), strict=False):
        np.testing.assert_allclose(table(ax), rows)
        assert ax.images[0].get_clim() == (-np.abs(X).max(), np.abs(X).max())
        assert ax.get_ylim() == (5.5, -0.5)
        (box,) = boxes(ax)  # it ends where the table does
        assert (box.get_y(), box.get_height()) == (-0.5, len(rows))
    assert titles(figure) == ["a", "b"]


def test_grid_maps() -> None:
    scores = RNG.normal(size=(5, 7))
    figure = plot.grid_maps({"a": scores, "b": -scores}, (2, 4))
    for ax, wanted in zip(figure.axes, (scores, -scores), strict=False):
        np.testing.assert_allclose(table(ax), wanted)
        assert [points(line)[0].tolist() for line in ax.lines] == [[4, -0.5], [6.5, 2]]
        assert ax.images[0].get_clim() == (-np.abs(scores).max(), np.abs(scores).max())
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("column", "row")


def test_axis_pairs() -> None:
    omega = mrope_frequencies(16, (4, 2, 2), interleaved=True)
    figure = plot.axis_pairs({"a": omega, "b": mrope_frequencies(16, (4, 2, 2))}, ["x", "y", "z"])
    first, second = figure.axes
    for row, line in zip(omega, first.lines, strict=True):
        (pairs,) = np.nonzero(row)
        np.testing.assert_allclose(points(line), np.column_stack([pairs, 2 * np.pi / row[pairs]]))
    assert [points(line)[:, 0].tolist() for line in second.lines] == [[0, 1, 2, 3], [4, 5], [6, 7]]
    assert legend(figure) == ["x", "y", "z"]
    mixed = plot.axis_pairs({"a": mixed_frequencies(8, 0.3)}).axes[0]
    assert [len(points(line)) for line in mixed.lines] == [4, 4]


def test_shard_rows() -> None:
    ax = plot.shard_rows(16, 4)
    for row, scheme in enumerate(SCHEMES):
        for rank in range(4):
            places = shard_positions(16, rank, 4, scheme=scheme)
            assert (table(ax)[row, places] == rank).all()
            assert {cells(ax)[t, row] for t in places.tolist()} == {str(rank)}
    assert ticks(ax.yaxis) == SCHEMES


def test_ring_schedule() -> None:
    figure = plot.ring_schedule(16, 4)
    for ax, scheme in zip(figure.axes, SCHEMES, strict=False):
        work = ring_work(16, 4, scheme=scheme)
        np.testing.assert_array_equal(table(ax), work)
        assert cells(ax) == {(step, rank): str(pairs) for (rank, step), pairs in np.ndenumerate(work)}
        frames = [(round(box.get_x() + 0.47), round(box.get_y() + 0.47)) for box in boxes(ax)]
        assert [(step, work[rank, step]) for step, rank in frames] == list(enumerate(work.max(axis=0)))
    assert titles(figure) == ["contiguous\ntime 58", "zigzag\ntime 34", "striped\ntime 40"]


def test_cache_slots() -> None:
    tokens = np.array([[0, -1, -1], [0, 1, -1], [3, 1, 2]])
    ax = plot.cache_slots({"a": [tokens, tokens + 10]}).axes[0]
    np.testing.assert_array_equal(table(ax), tokens)
    assert cells(ax) == {(u, t): str(tokens[t, u] + 10) for t, u in np.argwhere(tokens >= 0)}
    crosses = {(int(x), int(y)) for line in ax.lines for x, y in points(line)}
    assert crosses == {(1, 0), (2, 0), (2, 1)}


PATH = np.eye(4, k=1) + np.eye(4, k=-1)


@pytest.mark.parametrize("graph", [PATH, sparse.csr_array(PATH), np.triu(PATH), np.tril(3 * PATH)])
def test_graph_codes(graph: Any) -> None:
    places = np.stack([np.arange(4.0), [0, 1, 0, 1]], axis=1)
    figure = plot.graph_codes(graph, places, {"a": [-2, 0, 1, 2], "b": [0, 1, 2, 3]})
    for ax in figure.axes:
        (lines,) = (artist for artist in ax.collections if isinstance(artist, LineCollection))
        edges = sorted(sorted(np.asarray(line)[:, 0].tolist()) for line in lines.get_segments())
        assert edges == [[0, 1], [1, 2], [2, 3]]
        np.testing.assert_array_equal([points(line)[0] for line in ax.lines], places)
    first = figure.axes[0]
    assert texts(first) == ["−2", "0", "1", "2"]
    assert [line.get_marker() for line in first.lines] == ["o", "D", "s", "s"]
    sizes = [line.get_markersize() for line in first.lines]
    assert sizes[0] == sizes[3] > sizes[2] > sizes[1]
    assert (titles(figure), legend(figure)) == (["a", "b"], ["above 0", "below 0", "zero"])
    assert legend(plot.graph_codes(graph, places, {"a": [1, 2, 3, 4]})) == ["above 0"]
    many = plot.graph_codes(np.eye(25, k=1), RNG.normal(size=(25, 2)), {"a": np.ones(25)}).axes[0]
    assert (texts(many), len(many.lines)) == ([], 25)  # no numbers


def test_clip_axis() -> None:
    frames, spoken = np.arange(12) / 2, [0.3, 2.1, 4.2]
    ax = plot.clip_axis(np.sin(np.arange(900) / 5) * np.linspace(0, 2, 900), 150, list("abc"), spoken, frames)
    ways = {
        look: [points(x)[:, 0].tolist() for x in ax.lines if x.get_linestyle() == look]
        for look in ("-", "--")
    }
    assert ways["-"] == [[t, end] for t, end in zip(spoken, (0.5, 2.0, 4.0), strict=True)]
    assert ways["--"] == [[t, end] for t, end in zip(spoken, (0.0, 0.5, 1.0), strict=True)]
    assert [x for x, _ in marked(ax, "|")] == frames.tolist()
    assert [(text.get_position()[0], text.get_text()) for text in ax.texts] == list(
        zip(spoken, "abc", strict=True)
    )
    assert legend(ax) == ["nearest frame", "frame of the same index"]
    (sound,) = [shape for shape in ax.collections if isinstance(shape, PolyCollection)]
    outline = np.asarray(sound.get_paths()[0].vertices)
    assert (outline[:, 0].max(), np.abs(outline[:, 1] - 2).max()) == (
        pytest.approx(6, abs=0.05),
        pytest.approx(0.35),
    )


def test_timeline() -> None:
    ax = plot.timeline({"a": {"late": 2026.0, "early": 2015.5}, "b": {"middle": 2020.0}})
    assert (marked(ax, "o"), marked(ax, "s")) == ([[2015.5, 0], [2026, 2]], [[2020, 1]])
    assert [text.get_text() for text in ax.texts] == ["early", "middle", "late"]
    assert ax.get_ylim() == (2.5, -0.5)  # the earliest on top
    assert legend(ax) == ["a", "b"]
