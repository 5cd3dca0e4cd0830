"""Pictures of the rotary position embedding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc._checks import check_base, check_even_dim, integer, number
from posenc.plot._checks import as_labelled, as_number, as_numbers
from posenc.plot._dials import check_dial_dim, dial, dial_rows, hand
from posenc.plot._style import (
    BLUE,
    COLORS,
    GREY,
    LINES,
    MARKERS,
    ORANGE,
    Lang,
    check_lang,
    given_or_new,
    legend_above,
    new_figure,
    plain_ticks,
    quiet,
    shade,
    word,
)
from posenc.rotary import apply_rotary, head_frequencies
from posenc.sinusoidal import sinusoidal_frequencies, sinusoidal_wavelengths

__all__ = ["frequency_ratios", "head_scores", "period_comb", "rotating_pairs", "score_decay"]


def rotating_pairs(
    places: Sequence[tuple[float, float]], dim: int, *, base: float = 10000.0, lang: Lang = "en"
) -> Figure:
    """Where RoPE turns a query and a key: one row a pair of positions (t, u), one dial a pair of numbers.

    Both arrows lie at three o'clock before their rotation and turn counter-clockwise. The arc is the angle
    between them, ω_i (u − t): the same in rows with the same offset.

    Args:
        places: positions (t, u) of query and key, one to four of them.
        dim: width, even and at most 12, so that dials stay readable.
        base: as in `posenc.sinusoidal_frequencies`.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: dim is odd or above 12, there are no places or more than four, or one is no pair.
    """
    check_lang(lang)
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


def head_scores(
    wavelengths: Sequence[float], *, n: int = 60, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """Score by offset for heads that each have one frequency: fast heads see near, slow heads see far.

    q = k = (1, 0), so a head of wavelength λ scores cos(2πk/λ) at offset k. Marks where it first falls to a
    half, at λ/6.

    Args:
        wavelengths: in positions, one a head, at most six.
        n: offsets from 0 to n.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: wavelengths as in `posenc.rotary.head_frequencies`, or more than six; n below 2.
    """
    check_lang(lang, ax)
    omega = head_frequencies(as_numbers("wavelengths", wavelengths, ("heads",), most=len(COLORS)))
    n = integer("n", n, minimum=2)
    ax = given_or_new(ax, 2.9)
    offsets = np.linspace(0, n, 40 * n + 1)
    unit = np.array([1.0, 0.0])
    ax.axhline(0.5, color=GREY, linewidth=0.8)
    for row, color, line, marker in zip(omega, COLORS, LINES, MARKERS, strict=False):
        scores = apply_rotary(unit, offsets, frequencies=row) @ unit
        length = 2 * math.pi / row[0]
        ax.plot(offsets, scores, color=color, linestyle=line, label=f"λ = {length:g}")
        if length / 6 <= n:
            ax.plot(length / 6, 0.5, color=color, linestyle="none", marker=marker, markersize=6)
    quiet(ax).set(xlabel=word("offset", lang), ylabel=word("score", lang), xlim=(0, n), ylim=(-1.05, 1.05))
    legend_above(ax)
    return ax


def period_comb(
    period: float, position: int, *, n: int | None = None, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """Scores of a query that looks one period back: a comb, as high at every multiple of the period.

    One pair with ω = 2π/period and q = k = (1, 0): the score at key u is cos(ω (u − t)). The shaded window is
    one period long and leaves out the query itself; within it the maximum is alone.

    Args:
        period: in positions, above 0.
        position: t, that of the query, at least 0.
        n: keys up to position n − 1; position + 1 if None, as in causal attention.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: an argument of the wrong kind or out of range.
    """
    check_lang(lang, ax)
    period = number("period", period, above=0)
    t = integer("position", position, minimum=0)
    n = t + 1 if n is None else integer("n", n, minimum=t + 1)
    ax = given_or_new(ax, 2.9)
    u, unit, omega = np.arange(n), np.array([1.0, 0.0]), np.array([2 * math.pi / period])
    scores = apply_rotary(unit, u, frequencies=omega) @ apply_rotary(unit, [t], frequencies=omega)[0]
    best = np.isclose(scores, scores.max(), atol=1e-9)
    shade(ax, t - period - 0.5, t - 0.5, label=word("one period", lang))
    ax.vlines(u, 0, scores, color=BLUE, linewidth=1)
    ax.plot(u[~best], scores[~best], color=BLUE, linestyle="none", marker=".", markersize=4)
    ax.plot(
        u[best], scores[best], color=ORANGE, linestyle="none", marker="D", label=word("highest score", lang)
    )
    ax.axvline(t, color=GREY, linestyle=":", linewidth=1.2, label=f"t = {t}")
    quiet(ax).set(xlabel=word("key position", lang), ylabel=word("score", lang), ylim=(-1.1, 1.2))
    legend_above(ax)
    return ax


def score_decay(
    dim: int, *, n: int = 200, samples: int = 500, seed: int = 0, base: float = 10000.0, lang: Lang = "en"
) -> Figure:
    """Mean score by offset, with a band of one standard deviation: query equal to its key, and independent of
    it.

    Vectors from N(0, 1). With q = k the mean is 2 Σ_i cos ω_i k and falls; with independent ones it is 0 at
    every offset, and the deviation sqrt(dim) everywhere.

    Args:
        dim: width, even.
        n: offsets 0..n−1, at least 2.
        samples: number of vectors drawn, at least 2.
        seed: of the vectors.
        base: as in `posenc.sinusoidal_frequencies`.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        TypeError, ValueError: dim or base as in `posenc.sinusoidal_frequencies`; another argument no integer or out of
            range.
    """
    check_lang(lang)
    dim, base = check_even_dim(dim), check_base(base)
    n = integer("n", n, minimum=2)
    samples = integer("samples", samples, minimum=2)
    generator = np.random.default_rng(integer("seed", seed, minimum=0))
    q, other = generator.normal(size=(2, samples, dim))
    offsets = np.arange(n)
    figure, axes = new_figure(4.2, rows=2, sharex=True)
    cases = ((q, "same vector", BLUE), (other, "independent", ORANGE))
    for ax, (key, name, color) in zip(axes, cases, strict=True):
        scores = np.stack(
            [(q * apply_rotary(key, np.full(samples, k), base=base)).sum(axis=-1) for k in offsets], axis=1
        )
        mean, spread = scores.mean(axis=0), scores.std(axis=0)
        ax.axhline(0, color=GREY, linewidth=0.8)
        band = to_rgba(color, 0.25)
        ax.fill_between(offsets, mean - spread, mean + spread, facecolor=band, edgecolor=color, linewidth=0.5)
        ax.plot(offsets, mean, color=color)
        quiet(ax).set_title(word(name, lang), fontsize=10, loc="left")
    axes[-1].set(xlabel=word("offset", lang), xlim=(0, n - 1))
    figure.supylabel(word("mean score", lang), fontsize=10)
    return figure


def frequency_ratios(
    methods: Mapping[str, Array],
    *,
    length: float | None = None,
    base: float = 10000.0,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """What scaling for a longer context does to each frequency: new over old, by the old wavelength.

    Args:
        methods: name of each method and its dim/2 frequencies, at most six. The names stand in the legend.
        length: length of training, drawn as a line: pairs to its right never went round in training.
        base: of the unscaled frequencies.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        ValueError: there are no methods, more than six, or of different widths.
    """
    check_lang(lang, ax)
    scaled = as_labelled("methods", methods, ("dim/2",), same_length=True)
    dim = 2 * len(next(iter(scaled.values())))
    old = sinusoidal_frequencies(dim, base)
    length = None if length is None else as_number("length", length, above=0)
    ax = given_or_new(ax, 3.3)
    if length is not None:
        ax.axvline(length, color=GREY, linewidth=1)
        ax.annotate(
            word("training length", lang), (length, 0.02), xycoords=("data", "axes fraction"), xytext=(-4, 0),
            textcoords="offset points", ha="right", va="bottom", fontsize=10,
        )  # fmt: skip
    every = max(1, dim // 2 // 8)
    curves = zip(scaled.items(), COLORS, LINES, MARKERS, strict=False)
    for k, ((name, omega), color, line, marker) in enumerate(curves):
        # Few markers, each curve's at other pairs: close ones would hide the style of the line.
        start = k * every // len(scaled)
        ax.plot(
            sinusoidal_wavelengths(dim, base), omega / old, color=color, linestyle=line,
            marker=marker, markersize=5, markevery=(start, every), label=name,
        )  # fmt: skip
    quiet(ax).set(xscale="log", xlabel=word("wavelength before", lang), ylabel=word("speed ratio", lang))
    ax.set_ylim(0, 1.05)
    plain_ticks(ax.xaxis)
    legend_above(ax)
    return ax
