"""Pictures of the first attempts: integers and one-hot vectors, with any other code beside them."""

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc.plot._checks import as_labelled, as_numbers, check_index
from posenc.plot._curves import zero_line
from posenc.plot._figures import given_or_new, new_figure, new_panels, quiet
from posenc.plot._labels import name_all, name_axes, title
from posenc.plot._style import BLUE, COLORS, LINES, MARKERS, ORANGE, Lang, picture, word


@picture
def sum_bars(
    embedding: Array, codes: Mapping[str, Array], *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """One embedding under several codes, as bars: up to the code first, and from there the embedding.

    Args:
        embedding: shape (dim,).
        codes: label to code (dim,), a group of dim bars each.

    Source: a picture of this book, drawn in naive.md#energy.
    """
    word_vector = as_numbers("embedding", embedding, ("dim",))
    shown = as_labelled("codes", codes, word_vector.shape, most=math.inf)
    ax = given_or_new(ax, 2.8)
    dim = word_vector.size
    middles = []
    for group, code in enumerate(shown.values()):
        x = group * (dim + 1) + np.arange(dim)
        middles.append(x.mean())
        below, above = (word("code", lang), word("token embedding", lang)) if group == 0 else (None, None)
        ax.bar(x, code, 0.8, color="none", edgecolor=ORANGE, hatch="////", linewidth=1, label=below)
        ax.bar(x, word_vector, 0.8, bottom=code, color=BLUE, label=above)
    zero_line(ax)
    ax.set_xticks(middles, labels=list(shown))
    ax.tick_params(axis="x", length=0)
    name_axes(quiet(ax), lang, None, "value").legend(loc="upper left", frameon=False)
    return ax


@picture
def score_curves(scores: Mapping[str, Array], *, lang: Lang = "en") -> Figure:
    """Attention scores of one query against every key: a panel a code, a curve a head, a dot at each maximum.

    Each panel is divided by its largest absolute score: the shape is shown, not the size.

    Args:
        scores: label to scores (heads, n).

    Source: a picture of this book, drawn in naive.md#ends.
    """
    shown = as_labelled("scores", scores, ("heads", "n"), most=math.inf)
    figure, axes = new_figure(2.6, columns=len(shown), sharey=True)
    for ax, (label, rows) in zip(axes, shown.items(), strict=True):
        for k, y in enumerate(rows / (np.abs(rows).max() or 1.0)):
            color = COLORS[k % len(COLORS)]
            ax.plot(y, color=color, linestyle=LINES[k % len(LINES)], linewidth=1.2)
            marker = MARKERS[k % len(MARKERS)]
            ax.plot(np.argmax(y), np.max(y), color=color, marker=marker, markersize=6, clip_on=False)
        title(quiet(ax), label)
        name_axes(ax, lang, "key position").set(ylim=(-1.1, 1.1), yticks=(-1, 0, 1))
    name_axes(axes[0], lang, None, "scaled score")
    return figure


@picture
def distance_profiles(codes: Mapping[str, Array], position: int, *, lang: Lang = "en") -> Figure:
    """How far the code of one position lies from all others: a panel a code, each with a scale of its own.

    ‖p_u − p_t‖ over u, for t = position.

    Args:
        codes: label to codes (n, dim), one to six; n the same for all, dim may differ.
        position: t, in 0..n−1.

    Source: a picture of this book, drawn in naive.md#wish-list.
    """
    shown = as_labelled("codes", codes, ("n", "dim"), same_length=True)
    t = check_index("position", position, len(next(iter(shown.values()))))
    figure, axes, _ = new_panels(len(shown), 0.4, 1.5, sharex=True)
    for ax, (label, rows), color in zip(axes, shown.items(), COLORS, strict=False):
        ax.plot(np.linalg.norm(rows - rows[t], axis=1), color=color)
        ax.plot(t, 0, color=color, marker="o", markersize=5, clip_on=False)
        title(quiet(ax), label)
        ax.set_ylim(bottom=0)
    for ax in axes[-2:]:
        name_axes(ax, lang, "other position").tick_params(labelbottom=True)
    return name_all(figure, lang, None, "code distance")
