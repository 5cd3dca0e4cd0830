"""Pictures of attention with linear biases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc._checks import integer
from posenc.alibi import alibi_bias
from posenc.attention import dot_product_attention
from posenc.plot._checks import as_labelled, as_numbers
from posenc.plot._style import (
    BLUE,
    COLORS,
    GREY,
    LINES,
    MARKERS,
    ORANGE,
    Lang,
    check_lang,
    color_bar,
    framed,
    given_or_new,
    legend_above,
    new_figure,
    new_panels,
    on_cell,
    plain_ticks,
    quiet,
    word,
)

__all__ = ["alibi_maps", "alibi_rows", "alibi_weights", "weight_curves"]


def alibi_maps(slopes: Sequence[float] | Array, n: int, *, lang: Lang = "en") -> Figure:
    """The causal bias of each slope as a map: one row a query, one column a key, lighter is less.

    All maps share one colour scale; later keys, with −inf, are crossed out. Up to 5 tokens the numbers stand
    in the cells, as fractions where decimals are too long for them.

    Args:
        slopes: one to four, at least 0.
        n: number of tokens, at least 1.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        TypeError, ValueError: too few or too many slopes, one of them negative, or n below 1.
    """
    check_lang(lang)
    shown = _slopes(slopes, 4, low=0)
    biases = alibi_bias(shown, integer("n", n, minimum=1))
    least = min(float(biases[np.isfinite(biases)].min()), -1e-12)
    figure, axes, beside = new_panels(len(shown), 0.4, 4.5, square=True)
    for k, (ax, m, bias) in enumerate(zip(axes, shown, biases, strict=True)):
        later = np.isinf(bias)
        masked = np.ma.masked_array(bias, later)
        image = framed(ax).imshow(masked, cmap="Blues", vmin=least, vmax=0, interpolation="none")
        t, u = np.nonzero(later)
        ax.plot(u, t, linestyle="none", marker="x", color=GREY, markersize=60 / (n + 8))
        ax.set_title(_slope_label(m, lang), fontsize=10, loc="left")
        ax.set(xlabel=word("key position", lang), xticks=_few_ticks(n), yticks=_few_ticks(n))
        if k % 2 == 0:
            ax.set_ylabel(word("query position", lang))
        numbers = _in_cells(bias[~later]) if n <= 5 else []
        for row, column, text in zip(*np.nonzero(~later), numbers, strict=False):
            color = on_cell(image, bias[row, column])
            ax.text(column, row, text, ha="center", va="center", color=color, fontsize=10)
    if not all(ax.texts for ax in axes):
        color_bar(image, beside, word("bias", lang), (least, 0), shrink=0.7)
    return figure


def alibi_weights(
    slopes: Sequence[float] | Array, n: int, *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """How the attention of each slope spreads over the past when all keys have the same content.

    Weight (1 − e^−m) e^−mk of the key at distance k, for an endless past: straight on a logarithmic axis.
    A mark shows where the nearest keys have 90 % of the weight together.

    Args:
        slopes: one to six, above 0.
        n: distances 0..n−1, at least 2.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: too few or too many slopes, one of them not above 0, or n below 2.
    """
    check_lang(lang, ax)
    shown = _slopes(slopes, len(COLORS), above=0)
    distance = np.arange(integer("n", n, minimum=2))
    ax = given_or_new(ax, 3.2)
    for m, color, line, marker in zip(shown, COLORS, LINES, MARKERS, strict=False):
        weights = -np.expm1(-m) * np.exp(-m * distance)
        ax.plot(distance, weights, color=color, linestyle=line, label=_slope_label(m, lang))
        window = math.ceil(math.log(10) / m)  # 1 − e^(−m·window) ≥ 0.9
        if window <= n:
            ax.plot(window - 1, weights[window - 1], color=color, marker=marker, linestyle="none")
    ax.set(yscale="log", ylim=(1e-4, 1), xlabel=word("distance", lang), ylabel=word("attention weight", lang))
    plain_ticks(ax.yaxis)
    legend_above(quiet(ax))
    return ax


def alibi_rows(scores: Array, slopes: Sequence[float] | Array, *, lang: Lang = "en") -> Figure:
    """What the bias makes of one row of scores: the scores above, and below them the weights of each slope.

    The query is the last token. The grey outline is the weights with the same bias and no content.

    Args:
        scores: of the query and every key before the bias, shape (n,).
        slopes: one to four, at least 0; 0 is attention without a bias.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        TypeError, ValueError: scores are not a vector of finite numbers, or slopes as in `alibi_maps`.
    """
    check_lang(lang)
    content = as_numbers("scores", scores, ("n",))
    shown = _slopes(slopes, 4, low=0)
    n = content.size
    place = np.arange(n)
    figure, axes = new_figure(1.0 + 1.1 * len(shown), rows=1 + len(shown), sharex=True)
    for ax in axes[2:]:
        ax.sharey(axes[1])
    axes[0].bar(place, content, 0.8, color=ORANGE)
    axes[0].axhline(0, color=GREY, linewidth=0.8)
    axes[0].set_title(word("content score", lang), fontsize=10, loc="left")
    one, values = np.ones((1, 1)), np.zeros((n, 1))
    for ax, m in zip(axes[1:], shown, strict=True):
        bias = alibi_bias(float(m), 1, n)
        _, with_content = dot_product_attention(one, content[:, None], values, bias=bias)
        _, without = dot_product_attention(one, values, values, bias=bias)
        ax.bar(place, with_content[0], 0.6, color=BLUE, label=word("with content", lang))
        edges = np.arange(n + 1) - 0.5
        ax.stairs(without[0], edges, color=GREY, linewidth=1.2, label=word("bias alone", lang))
        title = f"{_slope_label(m, lang)} · {word('attention weight', lang)}"
        ax.set_title(title, fontsize=10, loc="left")
    for ax in axes:
        quiet(ax)
    handles, labels = axes[1].get_legend_handles_labels()
    axes[0].legend(
        handles, labels, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False, borderaxespad=0,
        columnspacing=1.2,
    )  # fmt: skip
    axes[-1].set_xlabel(word("key position", lang))
    return figure


def weight_curves(
    weights: Mapping[str, Array], *, first: int = 0, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """Attention weights of one query by key position, a curve with markers for each way of computing them.

    Args:
        weights: label to weights (n,); one to six.
        first: position of the first key.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: weights are not vectors of finite numbers of one length, or there are none or
            more than six.
    """
    check_lang(lang, ax)
    shown = as_labelled("weights", weights, ("n",), same_length=True)
    start = integer("first", first, minimum=0)
    ax = given_or_new(ax, 2.8)
    for (label, row), color, line, marker in zip(shown.items(), COLORS, LINES, MARKERS, strict=False):
        place = start + np.arange(len(row))
        ax.plot(place, row, color=color, linestyle=line, marker=marker, markersize=4, label=label)
    ax.set(xlabel=word("key position", lang), ylabel=word("attention weight", lang), ylim=(0, None))
    quiet(ax).legend(frameon=False)
    return ax


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
            return [text.replace("-", "−") for text in texts]
    return []


def _few_ticks(n: int) -> list[int]:
    return list(range(0, n, max(1, math.ceil(n / 6))))
