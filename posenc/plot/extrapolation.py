"""Pictures of what a longer text brings that training did not, and of how small models fare there."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Wedge

from posenc._arrays import Array
from posenc._checks import integer
from posenc.extrapolation import first_negative, turns, unseen_angles
from posenc.plot._checks import (
    as_labelled,
    as_lengths,
    as_number,
    as_numbers,
    as_pairs,
    check_count,
    check_labelled,
)
from posenc.plot._curves import draw_curves, log_axis, shade, spread, trained_line, zero_line
from posenc.plot._dials import beside, dial, over
from posenc.plot._figures import given_or_new, new_figure, quiet
from posenc.plot._labels import legend_above, legend_of_all, name_all, name_axes, plain_ticks, short, title
from posenc.plot._style import BLUE, COLORS, LINES, MARKERS, ORANGE, Lang, picture, word
from posenc.sinusoidal import sinusoidal_frequencies

ANGLES: dict[str, dict[str, Any]] = {
    "met in training": {"facecolor": to_rgba(BLUE, 0.45), "edgecolor": BLUE, "linewidth": 0.8},
    "never met": {"facecolor": to_rgba(ORANGE, 0.45), "edgecolor": ORANGE, "linewidth": 0.8, "hatch": "///"},
}

# --- Why ----------------------------------------------------------------------------------------------------


@picture
def seen_angles(
    methods: Mapping[str, Array], pairs: Sequence[int], trained: int, length: int, *, lang: Lang = "en"
) -> Figure:
    """Which angles rotary pairs met in training and which come only with a longer text: a dial a pair, a row a method.

    The offset 0 lies at three o'clock, angles grow counter-clockwise; the wedges are those of
    `posenc.extrapolation.unseen_angles`.

    Args:
        methods: label to frequencies (pairs,) that are used at `length`, one to four; the first are those of
            training.
        pairs: which of them to show, one to four.
        trained, length: of training, and the longer one.

    Source: a picture of this book, drawn in extrapolation.md#angles.
    """
    shown = as_labelled("methods", methods, ("pairs",), most=4, same_length=True, low=0)
    usual = next(iter(shown.values()))
    chosen = as_pairs(pairs, 2 * len(usual), most=4)
    seen = np.minimum(turns(usual, integer("trained", trained, minimum=1)), 1)
    unseen = [unseen_angles(usual, trained, length, stretched=later) for later in shown.values()]
    figure, axes = new_figure(0.75 + 4.1 / len(chosen) * len(shown), rows=len(shown), columns=len(chosen))
    cells = itertools.product(zip(shown, unseen, strict=True), chosen)
    for k, (ax, ((label, new), i)) in enumerate(zip(axes, cells, strict=True)):
        dial(ax)
        for start, share, look in zip((0.0, seen[i]), (seen[i], new[i]), ANGLES.values(), strict=True):
            if share:
                ax.add_patch(Wedge((0, 0), 1, 360 * start, 360 * (start + share), **look))
        if k < len(chosen):
            over(ax, 2 * math.pi / usual[i] if usual[i] else math.inf, lang)
        if k % len(chosen) == 0:
            beside(ax, label)
    patches = {word(name, lang): Patch(**look) for name, look in ANGLES.items()}
    legend_of_all(figure, patches, 2, "outside lower center")
    return figure


@picture
def cosine_sums(
    bases: Sequence[float], dim: int, n: int, *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """The mean cosine of all rotary pairs by distance, and a mark where it is negative for the first time.

    Further out a line joins the least and the greatest mean of one stretch of distances after the other.

    Args:
        bases: as in `posenc.sinusoidal_frequencies`, one to six.
        dim: width that is turned, even.
        n: distances 1..n, at least 2, drawn on a logarithmic axis.

    Source: a picture of this book, drawn in extrapolation.md#sums.
    """
    shown = as_numbers("bases", bases, ("n",), most=len(COLORS), above=1)
    n = integer("n", n, minimum=2)
    frequencies = [sinusoidal_frequencies(dim, float(base)) for base in shown]
    ax = given_or_new(ax, 3.0)
    zero_line(ax)
    for base, omega, color, line, marker in zip(shown, frequencies, COLORS, LINES, MARKERS, strict=False):
        label = word("base number", lang).format(short(float(base)))
        ax.plot(*_ends_of_stretches(omega, n), color=color, linestyle=line, label=label)
        found = first_negative(omega, limit=n)
        if found is not None:
            at = np.cos(found * omega).mean()
            ax.plot(found, at, color=color, linestyle="none", marker=marker, markersize=6)
    name_axes(quiet(ax), lang, "distance", "mean cosine").set(xscale="log", xlim=(1, n))
    plain_ticks(ax.xaxis)
    legend_above(ax)
    return ax


def _ends_of_stretches(omega: np.ndarray, n: int) -> np.ndarray:
    """Distances and mean cosines, shape (2, points), no more than a page can show.

    All small distances; of each longer stretch the two where the mean is least and greatest, so that the curve
    goes as far down and up as it would with all of them.
    """
    points: list[tuple[float, float]] = []
    edges = np.unique(np.geomspace(1, n + 1, 140).round())
    for start, end in itertools.pairwise(edges):
        k = np.arange(start, end)
        sums = np.cos(k[:, None] * omega).mean(axis=1)
        points += [(k[j], sums[j]) for j in sorted({int(sums.argmin()), int(sums.argmax())})]
    return np.array(points).T


@picture
def distance_weights(panels: Mapping[str, Array], *, trained: int | None = None, lang: Lang = "en") -> Figure:
    """Attention weights of one query by the distance of the key, a panel for each query, a curve for each head.

    Args:
        panels: title to weights (heads, n) of the distances 0..n−1, between 0 and 1; one to four titles, one
            to six heads.
        trained: length of training; the distances within it are shaded where a panel has others.

    Source: a picture of this book, drawn in extrapolation.md#live.
    """
    shown = as_labelled("panels", panels, ("heads", "n"), most=4, low=0, high=1 + 1e-3)
    for name, weights in shown.items():
        check_count(f"panels[{name!r}]", len(weights), len(COLORS))
    trained = _trained(trained)
    figure, axes = new_figure(0.7 + 1.25 * len(shown), rows=len(shown), sharey=True)
    for ax, (name, weights) in zip(axes, shown.items(), strict=True):
        if trained is not None and trained < weights.shape[1]:
            shade(ax, 0, trained - 1)
        heads = {word("head number", lang).format(h): row for h, row in enumerate(weights, start=1)}
        draw_curves(ax, heads, linewidth=1.3).set(ylim=(-0.04, 1.05), yticks=(0, 0.5, 1))
        title(ax, name)
    name_axes(axes[-1], lang, "key distance")
    heads_in_all = len(axes[0].get_legend_handles_labels()[1])
    legend_of_all(figure, axes[0], 3 if heads_in_all > 4 else heads_in_all)
    return name_all(figure, lang, None, "attention weight")


# --- How much -----------------------------------------------------------------------------------------------


@picture
def accuracy_by_length(
    panels: Mapping[str, Mapping[str, Array]],
    lengths: Sequence[int],
    *,
    trained: int | None = None,
    chance: float | None = None,
    lang: Lang = "en",
) -> Figure:
    """Accuracy at each length in small multiples of one scale: curves of means, and the spread of seeds in grey.

    Args:
        panels: title to label to accuracies (seeds, lengths), between 0 and 1; one to thirty titles, each
            with one to five labels. A label has the same look in all panels.
        lengths: of the texts, ascending, at least 1.
        trained: length of training, drawn as a line.
        chance: accuracy of guessing, drawn as a line.

    Source: a picture of this book, drawn in extrapolation.md#experiment.
    """
    n = as_lengths(lengths)
    check_labelled("panels", panels, 30)
    shown = {
        name: as_labelled(f"panels[{name!r}]", runs, ("seeds", len(n)), most=5, low=0, high=1)
        for name, runs in panels.items()
    }
    labels = list(dict.fromkeys(label for runs in shown.values() for label in runs))
    if len(labels) > 5:
        raise ValueError(f"panels must hold at most 5 labels in all, got {len(labels)}: {labels}")
    guess = None if chance is None else as_number("chance", chance, low=0, high=1)
    trained = _trained(trained)
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    height = 0.75 + (1.05 if columns == 3 else 2) * rows
    figure, axes = new_figure(height, rows=rows, columns=columns, sharex=True, sharey=True)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    handles = {}
    for ax, (name, by_label) in zip(axes, shown.items(), strict=False):
        trained_line(ax, trained, lang, named=False)
        if guess is not None:
            zero_line(ax, guess)
        for label, runs in by_label.items():
            k = labels.index(label)
            (handles[label],) = _mean_and_spread(ax, n, runs, k, label, linewidth=1.3)
        title(ax, name, pad=2)
        quiet(ax).set(ylim=(-0.04, 1.06), yticks=(0, 0.5, 1))
        log_axis(ax, n, apart=4.0)
    # A column may end above the last row: its numbers stand under its last panel.
    for ax in axes[max(0, len(shown) - columns) : len(shown)]:
        ax.tick_params(labelbottom=True)
    legend_of_all(figure, {label: handles[label] for label in labels}, len(labels))
    return name_all(figure, lang, "text length", "accuracy")


@picture
def score_by_position(
    curves: Mapping[str, Array],
    width: int = 1,
    *,
    measure: Literal["accuracy", "perplexity"] = "accuracy",
    trained: int | None = None,
    chance: float | None = None,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """Accuracy or perplexity along one long text: curves of means, and the spread of seeds in grey.

    Args:
        curves: label to scores (seeds, bins), one to six: of positions 0..width − 1, the next width, and so on.
        width: positions in a bin, at least 1.
        measure: what they are, accuracies between 0 and 1 or perplexities of at least 1.
        trained: length of training; positions up to it are shaded.
        chance: score of guessing, drawn as a line.

    Source: a picture of this book, drawn in extrapolation.md#by-position.
    """
    if measure not in ("accuracy", "perplexity"):
        raise ValueError(f'measure must be "accuracy" or "perplexity", got {measure!r}')
    low, high = (0.0, 1.0) if measure == "accuracy" else (1.0, math.inf)
    shown = as_labelled("curves", curves, ("seeds", "bins"), low=low, high=high)
    size = integer("width", width, minimum=1)
    guess = None if chance is None else as_number("chance", chance, low=low, high=high)
    trained = _trained(trained)
    ax = given_or_new(ax, 3.0)
    if trained is not None:
        shade(ax, 0, trained, label=word("training length", lang))
    if guess is not None:
        zero_line(ax, guess)
    for k, (label, runs) in enumerate(shown.items()):
        _mean_and_spread(ax, size * np.arange(runs.shape[1]) + (size - 1) / 2, runs, k, label)
    name_axes(quiet(ax), lang, "position", measure)
    if measure == "accuracy":
        ax.set_ylim(-0.03, 1.05)
    legend_above(ax)
    return ax


# --- Shared -------------------------------------------------------------------------------------------------


def _mean_and_spread(
    ax: Axes, x: np.ndarray, runs: np.ndarray, k: int, label: str, **look: Any
) -> list[Line2D]:
    """The mean of several runs in the k-th look, and in grey from the lowest to the highest of them."""
    if len(runs) > 1:
        spread(ax, x, runs.min(axis=0), runs.max(axis=0))
    look = {"color": COLORS[k], "linestyle": LINES[k], "marker": MARKERS[k], "markersize": 3.5, **look}
    return ax.plot(x, runs.mean(axis=0), label=label, **look)


def _trained(trained: int | None) -> int | None:
    return None if trained is None else integer("trained", trained, minimum=1)
