"""Pictures of the rotary position embedding."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc._checks import check_even_dim, integer, number
from posenc.plot._checks import as_numbers, check_dial_dim
from posenc.plot._curves import shade, spread, zero_line
from posenc.plot._dials import dial, dial_rows, hand
from posenc.plot._figures import given_or_new, new_figure, quiet
from posenc.plot._labels import legend_above, name_all, name_axes, title
from posenc.plot._style import BLUE, COLORS, GREY, LINES, MARKERS, ORANGE, Lang, picture, word
from posenc.rotary import apply_rotary, head_frequencies
from posenc.sinusoidal import sinusoidal_frequencies


@picture
def rotating_pairs(
    places: Sequence[tuple[float, float]], dim: int, *, base: float = 10000.0, lang: Lang = "en"
) -> Figure:
    """Where RoPE turns a query and a key: a row for each pair of positions, a dial for each pair of numbers.

    Both arrows lie at three o'clock before their rotation and turn counter-clockwise. The arc is the angle
    between them, ω_i (u − t): the same in rows with the same offset.

    Args:
        places: positions (t, u) of query and key, one to four of them.
        dim: width, even and at most 12, so that dials stay readable.
        base: as in `posenc.sinusoidal_frequencies`.

    Source: a picture of this book, drawn in rotary.md#two-arrows.
    """
    half = check_dial_dim(dim) // 2
    spots = as_numbers("places", places, ("n", 2), most=4)
    start = np.tile([1.0, 0.0], half)
    tips = apply_rotary(start, spots, base=base).reshape(len(spots), 2, half, 2)
    omega = sinusoidal_frequencies(dim, base)
    figure, axes = dial_rows(0.75, 4.1, [f"t = {t:g}\nu = {u:g}" for t, u in spots], dim, base, lang)
    for k, ax in enumerate(axes):
        row, i = divmod(k, half)
        t, u = spots[row]
        dial(ax)
        swept = np.linspace(omega[i] * t, omega[i] * u, 200)
        ax.plot(0.5 * np.cos(swept), 0.5 * np.sin(swept), color=GREY, linewidth=3, solid_capstyle="butt")
        for which, (color, line, marker) in enumerate(((BLUE, "-", "o"), (ORANGE, "--", "s"))):
            name = word(("query", "key")[which], lang) if k == 0 else None
            hand(ax, tips[row, which, i], color, line, marker, label=name)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure


@picture
def head_scores(
    wavelengths: Sequence[float], *, n: int = 60, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """Score by offset for heads that each have one frequency: fast heads see near, slow heads see far.

    q = k = (1, 0), so a head of wavelength λ scores cos(2πk/λ) at offset k. Marks where it first falls to a
    half, at λ/6.

    Args:
        wavelengths: in positions, one for each head, at most six.
        n: offsets from 0 to n.

    Source: a picture of this book, drawn in rotary.md#heads.
    """
    omega = head_frequencies(as_numbers("wavelengths", wavelengths, ("heads",), most=len(COLORS)))
    n = integer("n", n, minimum=2)
    ax = given_or_new(ax, 2.9)
    offsets = np.linspace(0, n, 40 * n + 1)
    unit = np.array([1.0, 0.0])
    zero_line(ax, 0.5)
    for row, color, line, marker in zip(omega, COLORS, LINES, MARKERS, strict=False):
        scores = apply_rotary(unit, offsets, frequencies=row) @ unit
        length = 2 * math.pi / row[0]
        ax.plot(offsets, scores, color=color, linestyle=line, label=f"λ = {length:g}")
        if length / 6 <= n:
            ax.plot(length / 6, 0.5, color=color, linestyle="none", marker=marker, markersize=6)
    name_axes(quiet(ax), lang, "offset", "score").set(xlim=(0, n), ylim=(-1.05, 1.05))
    legend_above(ax)
    return ax


@picture
def period_comb(period: float, position: int, *, ax: Axes | None = None, lang: Lang = "en") -> Axes:
    """Scores of a query that looks one period back: a comb, as high at every multiple of the period.

    One pair with ω = 2π/period and q = k = (1, 0): the score at key u is cos(ω (u − t)). The shaded window is
    one period long and leaves out the query itself; within it the maximum is alone.

    Args:
        period: in positions, above 0.
        position: t, that of the query, at least 0.

    Source: a picture of this book, drawn in rotary.md#false.
    """
    period = number("period", period, above=0)
    t = integer("position", position, minimum=0)
    ax = given_or_new(ax, 2.9)
    u, unit, omega = np.arange(t + 1), np.array([1.0, 0.0]), np.array([2 * math.pi / period])
    scores = apply_rotary(unit, u, frequencies=omega) @ apply_rotary(unit, [t], frequencies=omega)[0]
    best = np.isclose(scores, scores.max(), atol=1e-9)
    shade(ax, t - period - 0.5, t - 0.5, label=word("one period", lang))
    ax.vlines(u, 0, scores, color=BLUE, linewidth=1)
    ax.plot(u[~best], scores[~best], color=BLUE, linestyle="none", marker=".", markersize=4)
    ax.plot(
        u[best], scores[best], color=ORANGE, linestyle="none", marker="D", label=word("highest score", lang)
    )
    ax.axvline(t, color=GREY, linestyle=":", linewidth=1.2, label=f"t = {t}")
    name_axes(quiet(ax), lang, "key position", "score").set_ylim(-1.1, 1.2)
    legend_above(ax)
    return ax


@picture
def score_decay(dim: int, *, lang: Lang = "en") -> Figure:
    """Mean score by offset, with a band of one standard deviation: for a key equal to the query, and for another.

    Drawn from 500 random vectors whose numbers are from N(0, 1). If q = k, the expected score is 2 Σ_i cos ω_i k.
    It falls at first, but not steadily. If q and k are independent, it is 0 at every offset, with the standard
    deviation sqrt(dim).

    Args:
        dim: width, even.

    Source: a picture of this book, drawn in rotary.md#decay.
    """
    q, other = np.random.default_rng(0).normal(size=(2, 500, check_even_dim(dim)))
    offsets = np.arange(200)
    figure, axes = new_figure(4.2, rows=2, sharex=True)
    cases = ((q, "same vector", BLUE), (other, "independent", ORANGE))
    for ax, (key, name, color) in zip(axes, cases, strict=True):
        scores = np.stack([(q * apply_rotary(key, np.full(500, k))).sum(axis=-1) for k in offsets], axis=1)
        mean, deviation = scores.mean(axis=0), scores.std(axis=0)
        zero_line(ax)
        spread(ax, offsets, mean - deviation, mean + deviation, color)
        ax.plot(offsets, mean, color=color)
        title(quiet(ax), word(name, lang))
    name_axes(axes[-1], lang, "offset").set_xlim(0, offsets[-1])
    return name_all(figure, lang, None, "mean score")
