"""Pictures of locality: Gaussian bumps, attention beside a blur, and how fast scores fall."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc._checks import integer
from posenc.locality import gaussian_weights, rbf_encoding, rbf_kernel, total_variation
from posenc.plot._checks import as_labelled, as_numbers
from posenc.plot._curves import draw_curves, shade
from posenc.plot._figures import new_figure, new_panels, quiet
from posenc.plot._labels import legend_above, legend_of_all, name_all, name_axes, title
from posenc.plot._style import BLUE, GREY, ORANGE, Lang, picture, word


@picture
def rbf_bumps(n: int, centers: Array, sigma: float, *, lang: Lang = "en") -> Axes:
    """The bumps of the Gaussian code over the positions 0..n−1, and the code of the middle one as dots on them.

    Args:
        n: number of positions, at least 2.
        centers, sigma: as in `posenc.rbf_encoding`.

    Source: a picture of this book, drawn in locality.md#bumps.
    """
    n = integer("n", n, minimum=2)
    t0 = (n - 1) // 2
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
    return name_axes(quiet(ax), lang, "position", "value")


@picture
def attention_blurs(n: int, sigma: float, peaks: Sequence[float], *, lang: Lang = "en") -> Figure:
    """The middle row of softmax(scale · kernel) of the Gaussian code beside the Gaussian with its curvature.

    The kernel has its height `peak` after scaling; the Gaussian has the standard deviation σ·sqrt(2/peak).
    Each title gives the peak and the total variation distance of the two.

    Args:
        n: number of positions, at least 2.
        sigma: width of the bumps.
        peaks: one to four heights of the scaled kernel, above 0.

    Source: a picture of this book, drawn in locality.md#blur.
    """
    n = integer("n", n, minimum=2)
    t = (n - 1) // 2
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
        title(ax, f"{word('peak', lang)} {peak:g} · TV {distance:.2g}")
        quiet(ax).set_ylim(bottom=0)
        reach = min(max(t, n - 1 - t), 8 * sigma)
        ax.set_xlim(max(t - reach, -0.5), min(t + reach, n - 0.5))
    legend_of_all(figure, axes[0], 2)
    return name_all(figure, lang, "key position", "weight")


@picture
def locality_curves(scores: Mapping[str, Array], *, weights: bool = True, lang: Lang = "en") -> Figure:
    """How scores fall with the distance of the key, and what softmax makes of it: a curve for each scheme.

    Above s(k) − s(0), below exp(s(k) − s(0)): the weight of a key at distance |k|, as a multiple of that of
    the query's own.

    Args:
        scores: label to scores (n,) at the distances 0, 1, ..., n − 1, one to six of them, scaled as softmax
            gets them.
        weights: whether to draw the lower panel.

    Source: a picture of this book, drawn in locality.md#two-things.
    """
    shown = as_labelled("scores", scores, ("n",))
    falls = {label: values - values[0] for label, values in shown.items()}
    figure, axes = new_figure(4.6 if weights else 2.9, rows=1 + bool(weights), sharex=True)
    name_axes(draw_curves(axes[0], falls, linewidth=1.6), lang, None, "score fall")
    if weights:
        shares = {label: np.exp(fall) for label, fall in falls.items()}
        name_axes(draw_curves(axes[1], shares, linewidth=1.6), lang, None, "relative weight").set_ylim(
            bottom=0
        )
    name_axes(axes[-1], lang, "key distance")
    legend_above(axes[0])
    return figure
