"""Pictures of the first attempts: integers and one-hot vectors, with any other code beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc.plot._checks import as_labelled, as_numbers, check_index
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
    new_figure,
    new_panels,
    plain_ticks,
    quiet,
    word,
)

__all__ = ["distance_profiles", "energy_shares", "score_curves", "sum_bars"]


def sum_bars(
    embedding: Array, codes: Mapping[str, Array], *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """One embedding under several codes, as bars: up to the code first, and from there the embedding.

    Args:
        embedding: shape (dim,).
        codes: label to code (dim,), a group of dim bars each.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        ValueError: embedding is not a vector, a code does not have its shape, or there is no code.
    """
    check_lang(lang, ax)
    word_vector = as_numbers("embedding", embedding, ("dim",))
    shown = as_labelled("codes", codes, word_vector.shape, most=math.inf)
    ax = given_or_new(ax, 2.8)
    dim = word_vector.size
    dims = np.arange(dim)
    for group, code in enumerate(shown.values()):
        x = group * (dim + 1) + dims
        below, above = (word("code", lang), word("token embedding", lang)) if group == 0 else (None, None)
        ax.bar(x, code, 0.8, color="none", edgecolor=ORANGE, hatch="////", linewidth=1, label=below)
        ax.bar(x, word_vector, 0.8, bottom=code, color=BLUE, label=above)
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xticks([group * (dim + 1) + (dim - 1) / 2 for group in range(len(shown))], labels=list(shown))
    ax.tick_params(axis="x", length=0)
    quiet(ax).set_ylabel(word("value", lang))
    ax.legend(loc="upper left", frameon=False)
    return ax


def energy_shares(
    shares: Mapping[str, Array], *, positions: Array | None = None, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """How much of a token's vector is its position: a curve a code, over positions on a logarithmic axis.

    Args:
        shares: label to shares (n,), each between 0 and 1; one to six.
        positions: where the shares were taken, shape (n,), above 0; 1, 2, ..., n if None.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        ValueError: shares are not vectors of one length between 0 and 1, or positions do not fit them.
    """
    check_lang(lang, ax)
    shown = as_labelled("shares", shares, ("n",), same_length=True, low=0, high=1)
    n = next(iter(shown.values())).size
    x = np.arange(1, n + 1) if positions is None else as_numbers("positions", positions, (n,), above=0)
    ax = given_or_new(ax, 2.6)
    for (label, y), color, line in zip(shown.items(), COLORS, LINES, strict=False):
        ax.plot(x, y, color=color, linestyle=line, label=label)
    ax.set(xscale="log", ylim=(0, 1.05), xlabel=word("position", lang), ylabel=word("energy share", lang))
    plain_ticks(ax.xaxis)
    quiet(ax).legend(frameon=False)
    return ax


def score_curves(scores: Mapping[str, Array], *, lang: Lang = "en") -> Figure:
    """Attention scores of one query against every key: a panel a code, a curve a head, a dot at each maximum.

    Each panel is divided by its largest absolute score: the shape is shown, not the size.

    Args:
        scores: label to scores (heads, n).
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: scores are not matrices, or there are none.
    """
    check_lang(lang)
    shown = as_labelled("scores", scores, ("heads", "n"), most=math.inf)
    figure, axes = new_figure(2.6, columns=len(shown), sharey=True)
    for ax, (label, rows) in zip(axes, shown.items(), strict=True):
        for k, y in enumerate(rows / (np.abs(rows).max() or 1.0)):
            color = COLORS[k % len(COLORS)]
            ax.plot(y, color=color, linestyle=LINES[k % len(LINES)], linewidth=1.2)
            marker = MARKERS[k % len(MARKERS)]
            ax.plot(np.argmax(y), np.max(y), color=color, marker=marker, markersize=6, clip_on=False)
        quiet(ax).set_title(label, fontsize=10, loc="left")
        ax.set(xlabel=word("key position", lang), ylim=(-1.1, 1.1), yticks=(-1, 0, 1))
    axes[0].set_ylabel(word("scaled score", lang))
    return figure


def distance_profiles(codes: Mapping[str, Array], position: int, *, lang: Lang = "en") -> Figure:
    """How far the code of one position lies from all others: a panel a code, each with a scale of its own.

    ‖p_u − p_t‖ over u, for t = position.

    Args:
        codes: label to codes (n, dim), one to six; n the same for all, dim may differ.
        position: t, in 0..n−1.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: codes are not matrices of one length, or position is not one of theirs.
    """
    check_lang(lang)
    shown = as_labelled("codes", codes, ("n", "dim"), same_length=True)
    t = check_index("position", position, len(next(iter(shown.values()))))
    figure, axes, _ = new_panels(len(shown), 0.4, 1.5, sharex=True)
    for ax, (label, rows), color in zip(axes, shown.items(), COLORS, strict=False):
        distance = np.linalg.norm(rows - rows[t], axis=1)
        ax.plot(distance, color=color)
        ax.plot(t, 0, color=color, marker="o", markersize=5, clip_on=False)
        quiet(ax).set_title(label, fontsize=10, loc="left")
        ax.set_ylim(bottom=0)
    for ax in axes[-2:]:
        ax.set_xlabel(word("other position", lang))
        ax.tick_params(labelbottom=True)
    figure.supylabel(word("code distance", lang), fontsize=10)
    return figure
