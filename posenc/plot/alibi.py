"""Pictures of attention with linear biases."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc._checks import integer
from posenc.alibi import alibi_bias
from posenc.attention import dot_product_attention
from posenc.plot._checks import as_numbers
from posenc.plot._curves import draw_curves, zero_line
from posenc.plot._figures import given_or_new, new_figure, new_panels, quiet
from posenc.plot._labels import legend_above, name_axes, plain_ticks, signed, title
from posenc.plot._maps import blue_map, color_bar, cross_out, write_cells
from posenc.plot._style import BLUE, COLORS, GREY, MARKERS, ORANGE, Lang, picture, word


@picture
def alibi_maps(slopes: Sequence[float] | Array, n: int, *, lang: Lang = "en") -> Figure:
    """The causal bias of each slope as a map: a row for each query, a column for each key, lighter is less.

    All maps share one colour scale; later keys, with −inf, are crossed out. Up to 5 tokens the numbers stand
    in the cells, as fractions where decimals are too long for them.

    Args:
        slopes: one to four, at least 0.
        n: number of tokens, at least 1.

    Source: a picture of this book, drawn in alibi.md#formula.
    """
    shown = _slopes(slopes, 4, low=0)
    biases = alibi_bias(shown, integer("n", n, minimum=1))
    least = min(float(biases[np.isfinite(biases)].min()), -1e-12)
    figure, axes, beside = new_panels(len(shown), 0.4, 4.5, square=True)
    ticks = range(0, n, max(1, math.ceil(n / 6)))
    for k, (ax, m, bias) in enumerate(zip(axes, shown, biases, strict=True)):
        later = np.isinf(bias)
        image = blue_map(ax, np.ma.masked_array(bias, later), 0, least=least)
        cross_out(ax, later, 60 / (n + 8))
        title(ax, _slope_label(m, lang))
        name_axes(ax, lang, "key position", "query position" if k % 2 == 0 else None)
        ax.set(xticks=ticks, yticks=ticks)
        if n <= 5 and (numbers := _in_cells(bias[~later])):
            write_cells(ax, image, np.argwhere(~later), numbers)
    if not all(ax.texts for ax in axes):
        color_bar(image, beside, word("bias", lang), (least, 0), shrink=0.7)
    return figure


@picture
def alibi_weights(
    slopes: Sequence[float] | Array, n: int, *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """How the attention of each slope spreads over the past when all keys have the same content.

    Weight (1 − e^−m) e^−mk of the key at distance k, for an endless past: straight on a logarithmic axis.
    A mark shows where the nearest keys have 90 % of the weight together.

    Args:
        slopes: one to six, above 0.
        n: distances 0..n−1, at least 2.

    Source: a picture of this book, drawn in alibi.md#slopes.
    """
    shown = _slopes(slopes, len(COLORS), above=0)
    distance = np.arange(integer("n", n, minimum=2))
    weights = {_slope_label(m, lang): -np.expm1(-m) * np.exp(-m * distance) for m in shown}
    ax = draw_curves(given_or_new(ax, 3.2), weights)
    for m, row, color, marker in zip(shown, weights.values(), COLORS, MARKERS, strict=False):
        window = math.ceil(math.log(10) / m)  # 1 − e^(−m·window) ≥ 0.9
        if window <= n:
            ax.plot(window - 1, row[window - 1], color=color, marker=marker, linestyle="none")
    name_axes(ax, lang, "distance", "attention weight").set(yscale="log", ylim=(1e-4, 1))
    plain_ticks(ax.yaxis)
    legend_above(ax)
    return ax


@picture
def alibi_rows(scores: Array, slopes: Sequence[float] | Array, *, lang: Lang = "en") -> Figure:
    """What the bias makes of one row of scores: the scores above, and below them the weights of each slope.

    The query is the last token. The grey outline is the weights with the same bias and no content.

    Args:
        scores: of the query and every key before the bias, shape (n,).
        slopes: one to four, at least 0; 0 is attention without a bias.

    Source: a picture of this book, drawn in alibi.md#never-hard.
    """
    content = as_numbers("scores", scores, ("n",))
    shown = _slopes(slopes, 4, low=0)
    n = content.size
    place = np.arange(n)
    figure, axes = new_figure(1.0 + 1.1 * len(shown), rows=1 + len(shown), sharex=True)
    for ax in axes[2:]:
        ax.sharey(axes[1])
    axes[0].bar(place, content, 0.8, color=ORANGE)
    zero_line(axes[0])
    title(axes[0], word("content score", lang))
    one, values = np.ones((1, 1)), np.zeros((n, 1))
    for ax, m in zip(axes[1:], shown, strict=True):
        bias = alibi_bias(float(m), 1, n)
        _, with_content = dot_product_attention(one, content[:, None], values, bias=bias)
        _, without = dot_product_attention(one, values, values, bias=bias)
        ax.bar(place, with_content[0], 0.6, color=BLUE, label=word("with content", lang))
        edges = np.arange(n + 1) - 0.5
        ax.stairs(without[0], edges, color=GREY, linewidth=1.2, label=word("bias alone", lang))
        title(ax, f"{_slope_label(m, lang)} · {word('attention weight', lang)}")
    for ax in axes:
        quiet(ax)
    axes[0].legend(
        *axes[1].get_legend_handles_labels(), loc="lower right", bbox_to_anchor=(1, 1), ncols=2,
        frameon=False, borderaxespad=0, columnspacing=1.2,
    )  # fmt: skip
    name_axes(axes[-1], lang, "key position")
    return figure


def _slopes(slopes: Sequence[float] | Array, most: int, **limits: float) -> np.ndarray:
    one_or_more = np.atleast_1d(as_numbers("slopes", slopes))
    return as_numbers("slopes", one_or_more, ("heads",), most=most, **limits)


def _slope_label(m: float, lang: Lang) -> str:
    """With 1/256 for powers of two."""
    inverse = 1 / m if m else math.inf
    text = f"1/{inverse:.0f}" if m < 1 and inverse % 1 == 0 and math.isfinite(inverse) else f"{m:.3g}"
    return word("slope", lang).format(text)


def _in_cells(values: np.ndarray) -> list[str]:
    """The numbers as short texts, decimals or else fractions; none if they would not fit."""
    for texts in ([f"{value:.3g}" for value in values], [str(Fraction(value)) for value in values]):
        if max(map(len, texts)) <= (4 if "." in "".join(texts) else 5):
            return [signed(text) for text in texts]
    return []
