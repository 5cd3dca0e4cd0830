"""Pictures of the relative position that hides in an absolute code."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc._checks import check_base, check_even_dim, integer
from posenc.attention import dot_product_attention
from posenc.plot._checks import as_labelled, as_number, as_numbers, as_pairs, as_widths
from posenc.plot._curves import draw_curves, shade, zero_line
from posenc.plot._dials import clock, hand
from posenc.plot._figures import given_or_new, new_figure, new_panels, quiet
from posenc.plot._labels import name_all, name_axes, name_outer, signed, title
from posenc.plot._maps import blue_map, color_bar, even_scale, framed, signed_map
from posenc.plot._style import BLUE, GREY, ORANGE, Lang, picture, word
from posenc.shift import offset_head, relative_kernel, shift_matrix
from posenc.sinusoidal import sinusoidal_encoding, sinusoidal_frequencies

ROUNDING = 1e-12  # of the code of a few hundred positions, with a margin


@picture
def shift_arrows(
    positions: Sequence[float],
    offset: float,
    dim: int,
    *,
    pairs: Sequence[int] = (0, 1),
    base: float = 10000.0,
    lang: Lang = "en",
) -> Figure:
    """The shift by `offset` as a turn: a row for each pair, a column for each start, the same turn in a row.

    The solid hand is the code of t, (sin ω_i t, cos ω_i t), the dashed one that code times the 2×2 block of
    `shift_matrix`, which is the code of t + offset. The arc turns by ω_i · offset, clockwise if offset is
    positive, and takes as many rounds as that needs.

    Args:
        positions: where to start, one to five integer or real positions.
        offset: how far to shift, in positions.
        dim: width of the encoding, even.
        pairs: which pair indices i to draw, one to four, each in 0..dim/2−1.
        base: as in `posenc.sinusoidal_frequencies`.

    Source: a picture of this book, drawn in shift.md#same-turn.
    """
    t, k = as_numbers("positions", positions, ("n",), most=5), as_number("offset", offset)
    pairs = as_pairs(pairs, check_even_dim(dim), most=4)
    start = sinusoidal_encoding(t, dim, base=base)
    end = start @ shift_matrix(k, dim, base=base).T
    omega = sinusoidal_frequencies(dim, base)
    figure, axes = new_figure(0.35 + 4.4 / t.size * len(pairs), rows=len(pairs), columns=t.size)
    for cell, ax in enumerate(axes):
        row, column = divmod(cell, t.size)
        i = pairs[row]
        clock(ax)
        for code, color, line, marker in ((start, BLUE, "-", "o"), (end, ORANGE, "--", "s")):
            hand(ax, code[column, 2 * i : 2 * i + 2], color, line, marker)
        _turn(ax, omega[i] * t[column], omega[i] * k)
        if row == 0:
            ax.set_title(signed(f"t = {t[column]:.4g} → {t[column] + k:.4g}"), fontsize=10)
        if column == 0:
            turn = signed(f"{word('turn', lang)} {omega[i] * k:.4g} rad")
            ax.set_ylabel(f"{word('pair', lang)} {i}\n{turn}", fontsize=10, linespacing=1.4)
    return figure


def _turn(ax: Axes, phase: float, angle: float) -> None:
    """An arc from `phase` to `phase + angle`, angles counted clockwise from the top, with an arrow's head."""
    # Rounds lie beside each other, so that three quarters and seven quarters do not look alike.
    steps = np.linspace(0, 1, 2 + math.ceil(12 * abs(angle)))
    radius = 0.5 + 0.12 * abs(angle) / (2 * math.pi) * (steps - 0.5)
    x, y = radius * np.sin(phase + angle * steps), radius * np.cos(phase + angle * steps)
    ax.plot(x, y, color=GREY, linewidth=1.2)
    tip = (float(x[-1]), float(y[-1]))
    # The head points along the circle; an arc too short for a head gets a short one all the same.
    way = math.copysign(0.02, angle)
    back = (tip[0] - way * math.cos(phase + angle), tip[1] + way * math.sin(phase + angle))
    style = {"arrowstyle": "-|>", "color": GREY, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 11}
    if angle:
        ax.annotate("", tip, xytext=back, arrowprops=style)


@picture
def kernel_curves(dims: Sequence[int], *, n: int = 101, base: float = 10000.0, lang: Lang = "en") -> Figure:
    """The dot product of two codes by their offset, as a share of its largest value: a panel for each width.

    K(k) / K(0). The dot marks the offset after which it rises for the first time.

    Args:
        dims: widths to compare, even.
        n: offsets 0..n−1, at least 2.
        base: as in `posenc.sinusoidal_frequencies`.

    Source: a picture of this book, drawn in shift.md#monotone.
    """
    checked, base = as_widths(dims), check_base(base)
    n = integer("n", n, minimum=2)
    figure, axes = new_figure(0.5 + 1.15 * len(checked), rows=len(checked), sharex=True, sharey=True)
    for ax, dim in zip(axes, checked, strict=True):
        share = relative_kernel(n, dim, base=base) / (dim / 2)
        zero_line(ax)
        ax.plot(share, color=BLUE, marker=".", markersize=3, linewidth=1)
        name = f"{word('width', lang)} {dim}"
        rises = np.flatnonzero(np.diff(share) > 0)
        if rises.size:
            k = int(rises[0])
            ax.plot(k, share[k], color=ORANGE, linestyle="none", marker="o", markersize=6)
            name += f" · {word('first rise', lang).format(k)}"
        title(quiet(ax), name)
    name_axes(axes[-1], lang, "offset")
    return name_all(figure, lang, None, "kernel share")


@picture
def toeplitz_maps(scores: Mapping[str, Array], *, lang: Lang = "en") -> Figure:
    """Score matrices side by side: stripes along the diagonals where only the offset counts.

    Args:
        scores: label to scores (n, m), one to four; each has a colour scale of its own, from −m to m, m being
            its largest absolute score.

    Source: a picture of this book, drawn in shift.md#projections.
    """
    shown = as_labelled("scores", scores, ("n", "m"), most=4)
    figure, axes, beside = new_panels(len(shown), 0.4, 4.4 if len(shown) == 3 else 4.0, square=True)
    # As many shades as an eye tells apart: a map of noise is the heaviest thing on a page.
    colors = colormaps["RdBu_r"].resampled(33)
    for ax, (label, matrix) in zip(axes, shown.items(), strict=True):
        signed_map(framed(ax), matrix, even_scale(matrix), cmap=colors, aspect="equal")
        title(ax, label)
    # One bar for all: each colour is a share of the largest number of its own map.
    name_outer(axes, lang)
    shares = ScalarMappable(Normalize(-1, 1), colors)
    color_bar(shares, beside, word("scaled value", lang), (-1, 0, 1), shrink=0.8)
    return figure


@picture
def offset_stripes(
    offset: int,
    dim: int,
    gains: Sequence[float] = (1, 4, 16, 64),
    *,
    n: int = 40,
    base: float = 10000.0,
    lang: Lang = "en",
) -> Figure:
    """Attention weights of the head that looks `offset` positions ahead, a panel for each gain.

    All panels share one colour scale from 0 to 1; the number is the weight at the offset for a query in the
    middle.

    Args:
        offset: how far the head looks, in positions; negative looks back.
        dim: width of the encoding, even.
        gains: one to four factors on the scores, above 0.
        n: sequence length, above twice the offset, so that the query in the middle has the key it looks for.
        base: as in `posenc.sinusoidal_frequencies`.

    Source: a picture of this book, drawn in shift.md#offset-head.
    """
    factors = as_numbers("gains", gains, ("n",), most=4, above=0)
    n = integer("n", n, minimum=1)
    k = integer("offset", offset, minimum=-n)
    if n <= 2 * abs(k):
        raise ValueError(f"n must be above {2 * abs(k)} for offset {k}, got {n}")
    codes = sinusoidal_encoding(n, dim, base=base)
    figure, axes, beside = new_panels(len(factors), 0.4, 4.0, square=True)
    middle = n // 2
    for ax, gain in zip(axes, factors, strict=True):
        w_query, w_key = offset_head(k, dim, gain, base=base)
        _, weights = dot_product_attention(codes @ w_query, codes @ w_key, codes)
        image = blue_map(ax, weights, 1)
        weight = f"{word('weight', lang)} {weights[middle, middle + k]:.4f}"
        title(ax, f"{word('gain', lang)} {gain:g} · {weight}")
    name_outer(axes, lang)
    color_bar(image, beside, word("attention weight", lang), (0, 0.5, 1), shrink=0.7)
    return figure


@picture
def shift_errors(
    errors: Mapping[str, Array],
    *,
    window: tuple[float, float] | None = None,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """How far a map from the code of t to that of t + k misses, by position t, on a logarithmic scale.

    Errors below 1e−12 are drawn at 1e−12. What is smaller is the rounding of float64, which differs between machines.

    Args:
        errors: label to errors (n,) at positions 0..n−1, not negative; one to six.
        window: first and last position that the maps were fitted on; shaded.

    Source: a picture of this book, drawn in shift.md#longer.
    """
    shown = as_labelled("errors", errors, ("n",), low=0)
    fitted = None if window is None else as_numbers("window", window, (2,))
    ax = given_or_new(ax, 3.0)
    if fitted is not None:
        shade(ax, fitted[0], fitted[1], label=word("fitted on", lang))
    draw_curves(ax, {label: np.maximum(error, ROUNDING) for label, error in shown.items()})
    name_axes(ax, lang, "position", "error of the map").set_yscale("log")
    # Plain text: matplotlib's own labels of a logarithmic axis are mathtext.
    ax.yaxis.set_major_formatter(lambda y, _: signed(f"1e{math.log10(y):.0f}"))
    ax.minorticks_off()
    ax.legend(frameon=False)
    return ax
