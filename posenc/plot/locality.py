"""Pictures of locality: Gaussian bumps, attention beside a blur, and how fast scores fall."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc._checks import integer
from posenc.locality import gaussian_weights, rbf_encoding, rbf_kernel, total_variation
from posenc.plot._checks import as_labelled, as_number, as_numbers, check_index
from posenc.plot._style import (
    BLUE,
    COLORS,
    GREY,
    LINES,
    ORANGE,
    Lang,
    check_lang,
    legend_above,
    new_figure,
    new_panels,
    quiet,
    shade,
    word,
)

__all__ = ["attention_blurs", "locality_curves", "rbf_bumps"]


def rbf_bumps(
    n: int, centers: Array, sigma: float, *, position: float | None = None, lang: Lang = "en"
) -> Axes:
    """The bumps of the Gaussian code over the positions 0..n−1, and the code of one position as dots on them.

    Args:
        n: number of positions, at least 2.
        centers, sigma: as in `posenc.rbf_encoding`.
        position: whose code to mark; the middle one if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: as in `posenc.rbf_encoding`; n is below 2.
    """
    check_lang(lang)
    n = integer("n", n, minimum=2)
    t0 = (n - 1) // 2 if position is None else as_number("position", position)
    ticks = as_numbers("centers", centers, ("m",))
    x = np.linspace(min(0.0, ticks.min()), max(n - 1.0, ticks.max()), 600)
    bumps, code = rbf_encoding(x, ticks, sigma), rbf_encoding(np.array([float(t0)]), ticks, sigma)[0]
    _, (ax,) = new_figure(2.6)
    shade(ax, 0, n - 1)
    for m in range(len(ticks)):
        color, line = (BLUE, "-") if m % 2 == 0 else (ORANGE, "--")
        ax.plot(x, bumps[:, m], color=color, linestyle=line, linewidth=1.3)
    ax.axvline(t0, color=GREY, linewidth=0.8)
    ax.plot(np.full(len(code), t0), code, color="black", linestyle="none", marker="o", markersize=4)
    ax.set(xlabel=word("position", lang), ylabel=word("value", lang))
    return quiet(ax)


def attention_blurs(
    n: int, sigma: float, peaks: Sequence[float], *, position: int | None = None, lang: Lang = "en"
) -> Figure:
    """One row of softmax(scale · kernel) of the Gaussian code beside the Gaussian with its curvature.

    The kernel has its height `peak` after scaling; the Gaussian has the standard deviation σ·sqrt(2/peak).
    Each title gives the peak and the total variation distance of the two.

    Args:
        n: number of positions, at least 2.
        sigma: width of the bumps.
        peaks: one to four heights of the scaled kernel, above 0.
        position: the row; the middle one if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: too few or too many peaks, one is not above 0, or the position is not one of 0..n−1.
    """
    check_lang(lang)
    n = integer("n", n, minimum=2)
    t = check_index("position", (n - 1) // 2 if position is None else position, n)
    heights = as_numbers("peaks", peaks, ("n",), most=4, above=0)
    shape = rbf_kernel(np.arange(n) - t, sigma) / rbf_kernel(1, sigma)[0]
    figure, axes, _ = new_panels(len(heights), 0.5, 1.7)
    for ax, peak in zip(axes, heights, strict=True):
        weights = np.exp(peak * (shape - 1))
        weights /= weights.sum()
        gaussian = gaussian_weights(n, sigma * math.sqrt(2 / peak))[t]
        ax.plot(gaussian, color=ORANGE, linestyle="--", linewidth=1.4, label=word("Gaussian", lang))
        name = word("attention weight", lang)
        ax.plot(weights, color=BLUE, linestyle="none", marker=".", markersize=4, label=name)
        distance = float(total_variation(weights, gaussian))
        ax.set_title(f"{word('peak', lang)} {peak:g} · TV {distance:.2g}", fontsize=10, loc="left")
        quiet(ax).set_ylim(bottom=0)
        reach = min(max(t, n - 1 - t), 8 * sigma)
        ax.set_xlim(max(t - reach, -0.5), min(t + reach, n - 0.5))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=10)
    figure.supxlabel(word("key position", lang), fontsize=10)
    figure.supylabel(word("weight", lang), fontsize=10)
    return figure


def locality_curves(scores: Mapping[str, Array], *, weights: bool = True, lang: Lang = "en") -> Figure:
    """How scores fall with the distance of the key, and what softmax makes of it: a curve for each scheme.

    Above s(k) − s(0), below exp(s(k) − s(0)): the weight of a key at distance |k|, as a multiple of that of
    the query's own.

    Args:
        scores: label to scores (n,) at the distances 0, 1, ..., n − 1, one to six of them, scaled as softmax
            gets them.
        weights: whether to draw the lower panel.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: there are none or more than six, or one is not of shape (n,).
    """
    check_lang(lang)
    shown = as_labelled("scores", scores, ("n",))
    figure, axes = new_figure(4.6 if weights else 2.9, rows=1 + bool(weights), sharex=True)
    for (label, values), color, line in zip(shown.items(), COLORS, LINES, strict=False):
        fall = values - values[0]
        for ax, y in zip(axes, (fall, np.exp(fall)), strict=False):
            ax.plot(y, color=color, linestyle=line, linewidth=1.6, label=label)
    axes[0].set_ylabel(word("score fall", lang))
    if weights:
        axes[1].set_ylabel(word("relative weight", lang))
        axes[1].set_ylim(bottom=0)
    for ax in axes:
        quiet(ax)
    axes[-1].set_xlabel(word("key distance", lang))
    legend_above(axes[0])
    return figure
