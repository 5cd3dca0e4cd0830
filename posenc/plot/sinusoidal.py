"""Pictures of the sinusoidal encoding."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc._checks import check_base, check_even_dim, integer
from posenc.plot._checks import as_numbers, as_pairs, as_widths, check_dial_dim
from posenc.plot._dials import clock, dial_rows, hand
from posenc.plot._figures import given_or_new, new_figure, quiet
from posenc.plot._labels import name_all, name_axes, plain_ticks, short, title
from posenc.plot._maps import color_bar, even_scale, framed, signed_map
from posenc.plot._style import BLUE, COLORS, LINES, ORANGE, Lang, picture, word
from posenc.sinusoidal import code_distance, sinusoidal_encoding, sinusoidal_wavelengths


@picture
def clock_hands(positions: Sequence[float], dim: int, *, base: float = 10000.0, lang: Lang = "en") -> Figure:
    """The code of each position as dim/2 clocks: a row for each position, a dial for each pair.

    The tip of hand i is (sin ω_i t, cos ω_i t): column 2i of the code says how far right it lies, column
    2i + 1 how far up. At t = 0 every hand points up, and all turn as the hands of a clock do.

    Args:
        positions: integer or real positions, one to six of them.
        dim: width of the encoding, even and at most 12, so that dials stay readable.
        base: as in `posenc.sinusoidal_frequencies`.

    Source: a picture of this book, drawn in sinusoidal.md#clocks.
    """
    dim = check_dial_dim(dim)
    t = as_numbers("positions", positions, ("n",), most=6)
    tips = sinusoidal_encoding(t, dim, base=base).reshape(-1, 2)
    figure, axes = dial_rows(0.35, 4.3, [f"t = {place:g}" for place in t], dim, base, lang)
    for ax, tip in zip(axes, tips, strict=True):
        hand(clock(ax), tip, BLUE)
    return figure


@picture
def code_distances(dims: Sequence[int], *, lang: Lang = "en") -> Figure:
    """How far apart two codes lie, by the offset between their positions: a panel for each width.

    Dots are the whole offsets that words can have; the dashed line is one step, the distance of neighbours.

    Args:
        dims: widths to compare, even.

    Source: a picture of this book, drawn in sinusoidal.md#constant-step.
    """
    dims, offsets = as_widths(dims), np.arange(61)
    figure, axes = new_figure(0.5 + 1.25 * len(dims), rows=len(dims), sharex=True)
    for ax, dim in zip(axes, dims, strict=True):
        distance = code_distance(offsets, dim)
        ax.axhline(distance[1], color=ORANGE, linestyle="--", linewidth=1.2, label=word("one step", lang))
        ax.plot(offsets, distance, color=BLUE, marker=".", markersize=4, linewidth=0.8)
        title(quiet(ax), f"{word('width', lang)} {dim}")
        ax.set_ylim(0, 2 * math.sqrt(dim / 2))
    axes[0].legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0)
    name_axes(axes[-1], lang, "offset")
    return name_all(figure, lang, None, "code distance")


@picture
def heat_map(codes: Array, *, ax: Axes | None = None, lang: Lang = "en") -> Axes:
    """A table of codes as a picture: a row for each position, a column for each dimension.

    Args:
        codes: shape (n, dim). Colours run from −m to m, m being the largest absolute value.

    Source: a picture of this book, drawn in sinusoidal.md#wavelengths.
    """
    shown = as_numbers("codes", codes, ("n", "dim"))
    ax = given_or_new(ax, 3.4)
    most = even_scale(shown)
    image = signed_map(framed(ax), shown, most)
    color_bar(image, ax, word("value", lang), (-most, 0, most))
    return name_axes(ax, lang, "dimension", "position")


@picture
def nearest_codes(
    dims: Sequence[int], *, n: int = 100_000, base: float = 10000.0, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """How well codes can be told apart: the smallest distance between two codes, by the number of positions.

    Args:
        dims: widths to compare, even, at most six.
        n: largest number of positions, at least 3. Both axes are logarithmic.
        base: as in `posenc.sinusoidal_frequencies`.

    Source: a picture of this book, drawn in sinusoidal.md#unique.
    """
    dims, base = as_widths(dims, most=len(COLORS)), check_base(base)
    offsets = np.arange(1, integer("n", n, minimum=3))
    ax = given_or_new(ax, 3.2)
    for dim, color, line in zip(dims, COLORS, LINES, strict=False):
        # Codes of n positions are at offsets 1..n-1 from each other; only steps and the end need drawing.
        smallest = np.minimum.accumulate(code_distance(offsets, dim, base=base))
        corner = np.append(True, smallest[1:] < smallest[:-1])
        corner[-1] = True
        label = f"{word('width', lang)} {dim}"
        ax.step(offsets[corner] + 1, smallest[corner], where="post", color=color, linestyle=line, label=label)
    name_axes(quiet(ax), lang, "number of positions", "smallest distance")
    ax.set(xscale="log", yscale="log", xlim=(2, n))
    plain_ticks(ax.xaxis, ax.yaxis)
    ax.legend(loc="lower left", frameon=False)
    return ax


@picture
def wavelength_ladder(
    dims: Sequence[int], *, base: float = 10000.0, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """The wavelengths of each width on a logarithmic scale: evenly spaced from 2π to just below 2π · base.

    Args:
        dims: widths to compare, even, one line each.
        base: as in `posenc.sinusoidal_frequencies`.

    Source: a picture of this book, drawn in sinusoidal.md#wavelengths.
    """
    dims = as_widths(dims)
    limit = 2 * math.pi * check_base(base)
    ax = given_or_new(ax, 0.9 + 0.45 * len(dims))
    ax.axvline(limit, color=ORANGE, linestyle="--", linewidth=1.2)
    ax.annotate(
        f"2π · {base:g}", (limit, 1), xycoords=("data", "axes fraction"), xytext=(0, 2),
        textcoords="offset points", ha="center", va="bottom", fontsize=10,
    )  # fmt: skip
    for k, dim in enumerate(dims):
        lengths = sinusoidal_wavelengths(dim, base)
        ax.plot(lengths, np.full(len(lengths), k), color=BLUE, marker="|", markersize=11, linewidth=0.6)
        ax.annotate(
            short(lengths[-1]), (lengths[-1], k), xytext=(-3, 8), textcoords="offset points",
            ha="right", fontsize=10,
        )  # fmt: skip
    ax.set_yticks(range(len(dims)), labels=[f"{word('width', lang)} {dim}" for dim in dims])
    ax.set(xscale="log", xlabel=f"{word('wavelength', lang)} λ", ylim=(len(dims) - 0.5, -0.7))
    plain_ticks(ax.xaxis)
    return quiet(ax)


@picture
def waveforms(
    dim: int, *, pairs: Sequence[int] | None = None, n: int = 100, base: float = 10000.0, lang: Lang = "en"
) -> Figure:
    """The waves that an encoding is read from: a panel for each pair, from fast to slow.

    Args:
        dim: width of the encoding, even.
        pairs: which pair indices i to draw, each in 0..dim/2−1; if None up to four, evenly spread.
        n: how many positions, at least 2. Curves are drawn at real positions between, dots at 0, 1, ...
        base: as in `posenc.sinusoidal_frequencies`.

    Source: a picture of this book, drawn in sinusoidal.md#wavelengths.
    """
    half = check_even_dim(dim) // 2
    n = integer("n", n, minimum=2)
    if pairs is None:
        pairs = sorted({round(i) for i in np.linspace(0, half - 1, min(half, 4))})
    chosen = as_pairs(pairs, dim)
    lengths = sinusoidal_wavelengths(dim, base)
    fine = np.linspace(0, n - 1, 400)
    curves = sinusoidal_encoding(fine, dim, base=base)
    dots = sinusoidal_encoding(n, dim, base=base)
    figure, axes = new_figure(0.5 + 1.1 * len(chosen), rows=len(chosen), sharex=True, sharey=True)
    for ax, i in zip(axes, chosen, strict=True):
        for column, color, line, name in ((2 * i, BLUE, "-", "sine"), (2 * i + 1, ORANGE, "--", "cosine")):
            ax.plot(fine, curves[:, column], color=color, linestyle=line, label=word(name, lang))
            if n <= 64:
                ax.plot(dots[:, column], color=color, linestyle="none", marker=".", markersize=4)
        name = f"{word('pair', lang)} {i} · {word('wavelength', lang)} {short(lengths[i])}"
        title(quiet(ax), name)
        ax.set(ylim=(-1.15, 1.15), yticks=(-1, 0, 1))
    name_axes(axes[-1], lang, "position")
    axes[0].legend(ncols=2, loc="lower right", bbox_to_anchor=(1, 1), frameon=False, borderaxespad=0)
    return figure
