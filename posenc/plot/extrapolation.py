"""Pictures of what a longer text brings that training did not, and of how small models fare there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Wedge

from posenc._arrays import Array
from posenc._checks import integer
from posenc.extrapolation import first_negative, score_needed, turns, unseen_angles
from posenc.plot._checks import (
    as_integers,
    as_labelled,
    as_number,
    as_numbers,
    as_pairs,
    check_count,
    check_labelled,
)
from posenc.plot._dials import dial
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
    number,
    plain_ticks,
    quiet,
    shade,
    word,
)
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = [
    "accuracy_by_length",
    "cosine_sums",
    "distance_weights",
    "entropy_curves",
    "needed_scores",
    "score_by_position",
    "seen_angles",
    "visit_shares",
]

ANGLES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("met in training", {"facecolor": to_rgba(BLUE, 0.45), "edgecolor": BLUE, "linewidth": 0.8}),
    (
        "never met",
        {"facecolor": to_rgba(ORANGE, 0.45), "edgecolor": ORANGE, "linewidth": 0.8, "hatch": "///"},
    ),
)

# --- Why ----------------------------------------------------------------------------------------------------


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
        trained: length of training.
        length: the longer one.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        TypeError, ValueError: frequencies of different lengths, pairs that are not among them, lengths below 1.
    """
    check_lang(lang)
    shown = as_labelled("methods", methods, ("pairs",), most=4, same_length=True, low=0)
    usual = next(iter(shown.values()))
    chosen = as_pairs(pairs, 2 * len(usual), most=4)
    seen = np.minimum(turns(usual, integer("trained", trained, minimum=1)), 1)
    unseen = [unseen_angles(usual, trained, length, stretched=later) for later in shown.values()]
    figure, axes = new_figure(0.75 + 4.1 / len(chosen) * len(shown), rows=len(shown), columns=len(chosen))
    for k, ax in enumerate(axes):
        row, column = divmod(k, len(chosen))
        i = chosen[column]
        met, new = seen[i], unseen[row][i]
        dial(ax)
        for start, share, (_, look) in zip((0.0, met), (met, new), ANGLES, strict=True):
            if share:
                ax.add_patch(Wedge((0, 0), 1, 360 * start, 360 * (start + share), **look))
        if row == 0:
            wavelength = 2 * math.pi / usual[i] if usual[i] else math.inf
            ax.set_title(f"{word('wavelength', lang)}\n{number(wavelength)}", fontsize=10)
        if column == 0:
            ax.set_ylabel(list(shown)[row], fontsize=10, rotation=0, ha="right", va="center")
    handles = [Patch(label=word(name, lang), **look) for name, look in ANGLES]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    return figure


def visit_shares(
    visits: Mapping[str, Array], *, trained: int | None = None, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """In what share of training each row of a table is used.

    Args:
        visits: label to shares (rows,), between 0 and 1, as of `posenc.extrapolation.row_visits`; one to six.
        trained: length of training, drawn as a line.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: shares that are not vectors between 0 and 1, none of them or more than six.
    """
    check_lang(lang, ax)
    shown = as_labelled("visits", visits, ("rows",), low=0, high=1)
    trained = _trained(trained)
    ax = given_or_new(ax, 2.6)
    _trained_line(ax, trained, lang)
    for (label, shares), color, line in zip(shown.items(), COLORS, LINES, strict=False):
        ax.plot(np.arange(len(shares)), shares, color=color, linestyle=line, label=label)
    ax.set(xlabel=word("row number", lang), ylabel=word("share of training", lang), ylim=(-0.03, 1.05))
    legend_above(quiet(ax))
    return ax


def entropy_curves(
    entropies: Mapping[str, Array],
    lengths: Sequence[int],
    *,
    trained: int | None = None,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """Over how many keys attention spreads as they become more, the entropy; grey: if all had the same weight.

    Args:
        entropies: label to entropies in nats (lengths,), such as means of
            `posenc.extrapolation.attention_entropy`; one to five.
        lengths: numbers of keys, ascending, at least 1.
        trained: length of training, drawn as a line.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: entropies that are negative or of another length, or none or more than five.
    """
    check_lang(lang, ax)
    n = _lengths(lengths)
    shown = as_labelled("entropies", entropies, (len(n),), most=len(COLORS) - 1, low=-1e-9)
    trained = _trained(trained)
    ax = given_or_new(ax, 3.0)
    _trained_line(ax, trained, lang)
    ax.plot(n, np.log(n), color=GREY, linewidth=2.5, label=word("equal weights", lang))
    for (label, values), color, line, marker in zip(shown.items(), COLORS, LINES, MARKERS, strict=False):
        ax.plot(n, values, color=color, linestyle=line, marker=marker, markersize=4, label=label)
    _length_axis(ax, n)
    ax.set(xlabel=word("number of keys", lang), ylabel=word("entropy", lang), ylim=(0, None))
    legend_above(quiet(ax))
    return ax


def cosine_sums(
    bases: Sequence[float], dim: int, n: int, *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """The mean cosine of all rotary pairs by distance, and a mark where it is negative for the first time.

    Further out a line joins the least and the greatest mean of one stretch of distances after the other.

    Args:
        bases: as in `posenc.sinusoidal_frequencies`, one to six.
        dim: width that is turned, even.
        n: distances 1..n, at least 2, drawn on a logarithmic axis.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: no base or more than six, one not above 1, dim odd, or n below 2.
    """
    check_lang(lang, ax)
    shown = as_numbers("bases", bases, ("n",), most=len(COLORS), above=1)
    n = integer("n", n, minimum=2)
    frequencies = [sinusoidal_frequencies(dim, float(base)) for base in shown]
    ax = given_or_new(ax, 3.0)
    ax.axhline(0, color=GREY, linewidth=0.8)
    for base, omega, color, line, marker in zip(shown, frequencies, COLORS, LINES, MARKERS, strict=False):
        label = word("base number", lang).format(number(float(base)))
        ax.plot(*_ends_of_stretches(omega, n), color=color, linestyle=line, label=label)
        found = first_negative(omega, limit=n)
        if found is not None:
            at = np.cos(found * omega).mean()
            ax.plot(found, at, color=color, linestyle="none", marker=marker, markersize=6)
    ax.set(xscale="log", xlabel=word("distance", lang), ylabel=word("mean cosine", lang), xlim=(1, n))
    plain_ticks(ax.xaxis)
    legend_above(quiet(ax))
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


def needed_scores(
    biases: Mapping[str, Array], *, share: float = 0.5, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """How high a key has to score for a share of the weight, by its distance, if all others score 0.

    The query is the last token; the text is as long as the row of biases. See `posenc.extrapolation.score_needed`.

    Args:
        biases: label to the bias of each key (n,), finite; one to six, n at least 3.
        share: of the weight, between 0 and 1.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: biases that are not vectors of 3 or more finite numbers, or none or more than six.
    """
    check_lang(lang, ax)
    shown = as_labelled("biases", biases, ("n",))
    for label, row in shown.items():
        if len(row) < 3:
            raise ValueError(f"biases[{label!r}] must have shape (n,) with n >= 3, got {row.shape}")
    needed = [score_needed(row, share) for row in shown.values()]
    ax = given_or_new(ax, 3.0)
    for label, scores, color, line in zip(shown, needed, COLORS, LINES, strict=False):
        back = np.unique(np.geomspace(1, len(scores) - 1, 100).round()).astype(int)
        ax.plot(back, scores[len(scores) - 1 - back], color=color, linestyle=line, label=label)
    ax.set(xscale="log", xlabel=word("key distance", lang), ylabel=word("score needed", lang))
    plain_ticks(ax.xaxis)
    legend_above(quiet(ax))
    return ax


def distance_weights(panels: Mapping[str, Array], *, trained: int | None = None, lang: Lang = "en") -> Figure:
    """Attention weights of one query by the distance of the key, a panel for each query, a curve for each head.

    Args:
        panels: title to weights (heads, n) of the distances 0..n−1, between 0 and 1; one to four titles, one
            to six heads.
        trained: length of training; the distances within it are shaded where a panel has others.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        TypeError, ValueError: weights of another shape or range, or too few or too many of them.
    """
    check_lang(lang)
    shown = as_labelled("panels", panels, ("heads", "n"), most=4, low=0, high=1 + 1e-3)
    for title, weights in shown.items():
        check_count(f"panels[{title!r}]", len(weights), len(COLORS))
    trained = _trained(trained)
    figure, axes = new_figure(0.7 + 1.25 * len(shown), rows=len(shown), sharey=True)
    for ax, (title, weights) in zip(axes, shown.items(), strict=True):
        if trained is not None and trained < weights.shape[1]:
            shade(ax, 0, trained - 1)
        for head, (row, color, line) in enumerate(zip(weights, COLORS, LINES, strict=False)):
            label = word("head number", lang).format(head + 1)
            ax.plot(row, color=color, linestyle=line, linewidth=1.3, label=label)
        ax.set_title(title, fontsize=10, loc="left")
        quiet(ax).set(ylim=(-0.04, 1.05), yticks=(0, 0.5, 1))
    axes[-1].set_xlabel(word("key distance", lang))
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3 if len(labels) > 4 else len(labels),
        frameon=False, handlelength=2.2, columnspacing=1.2)  # fmt: skip
    figure.supylabel(word("attention weight", lang), fontsize=10)
    return figure


# --- How much -----------------------------------------------------------------------------------------------


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
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        TypeError, ValueError: accuracies of another shape or range, or too few or too many of them.
    """
    check_lang(lang)
    n = _lengths(lengths)
    check_labelled("panels", panels, 30)
    shown = {
        title: as_labelled(f"panels[{title!r}]", curves, ("seeds", len(n)), most=5, low=0, high=1)
        for title, curves in panels.items()
    }
    looks = list(dict.fromkeys(label for curves in shown.values() for label in curves))
    if len(looks) > 5:
        raise ValueError(f"panels must hold at most 5 labels in all, got {len(looks)}: {looks}")
    guess = None if chance is None else as_number("chance", chance, low=0, high=1)
    trained = _trained(trained)
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure, axes = new_figure(0.75 + 1.05 * rows, rows=rows, columns=columns, sharex=True, sharey=True)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    for ax, (title, curves) in zip(axes, shown.items(), strict=False):
        _trained_line(ax, trained, lang, named=False)
        if guess is not None:
            ax.axhline(guess, color=GREY, linewidth=0.8)
        for label, runs in curves.items():
            k = looks.index(label)
            _spread(ax, n, runs)
            ax.plot(
                n, runs.mean(axis=0), color=COLORS[k], linestyle=LINES[k], marker=MARKERS[k], markersize=3.5,
                linewidth=1.3, label=label,
            )  # fmt: skip
        ax.set_title(title, fontsize=10, loc="left", pad=2)
        quiet(ax).set(ylim=(-0.04, 1.06), yticks=(0, 0.5, 1))
        _length_axis(ax, n, few=True)
    # A column may end above the last row: its numbers stand under its last panel.
    for ax in axes[max(0, len(shown) - columns) : len(shown)]:
        ax.tick_params(labelbottom=True)
    handles = {
        label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        [handles[label] for label in looks], looks, loc="outside upper center", ncols=len(looks), frameon=False,
        handlelength=2.2, columnspacing=1.2,
    )  # fmt: skip
    figure.supxlabel(word("text length", lang), fontsize=10)
    figure.supylabel(word("accuracy", lang), fontsize=10)
    return figure


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
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: scores of another shape or out of range, none or more than six, or another measure.
    """
    check_lang(lang, ax)
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
        ax.axhline(guess, color=GREY, linewidth=0.8)
    for (label, runs), color, line, marker in zip(shown.items(), COLORS, LINES, MARKERS, strict=False):
        places = size * np.arange(runs.shape[1]) + (size - 1) / 2
        _spread(ax, places, runs)
        ax.plot(
            places, runs.mean(axis=0), color=color, linestyle=line, marker=marker, markersize=3.5, label=label
        )
    ax.set(xlabel=word("position", lang), ylabel=word(measure, lang))
    if measure == "accuracy":
        ax.set_ylim(-0.03, 1.05)
    legend_above(quiet(ax))
    return ax


# --- Shared -------------------------------------------------------------------------------------------------


def _lengths(lengths: Sequence[int]) -> np.ndarray:
    n = np.array(as_integers("lengths", lengths, 1), dtype=float)
    if (np.diff(n) <= 0).any():
        raise ValueError(f"lengths must ascend, got {list(lengths)}")
    return n


def _length_axis(ax: Axes, n: np.ndarray, *, few: bool = False) -> None:
    """A logarithmic axis with the lengths themselves; with `few` every other octave at most."""
    ax.set_xscale("log")
    apart = 4.0 if few else 1.9
    ticks: list[float] = []
    for x in n:
        if not ticks or x >= apart * ticks[-1]:
            ticks.append(float(x))
    ax.set_xticks(ticks, labels=[f"{tick:.0f}" for tick in ticks])
    ax.minorticks_off()


def _spread(ax: Axes, x: np.ndarray, runs: np.ndarray) -> None:
    """From the lowest to the highest of several runs."""
    if len(runs) > 1:
        ax.fill_between(
            x, runs.min(axis=0), runs.max(axis=0), facecolor=to_rgba(GREY, 0.2), edgecolor=GREY, linewidth=0.5
        )


def _trained(trained: int | None) -> int | None:
    return None if trained is None else integer("trained", trained, minimum=1)


def _trained_line(ax: Axes, trained: int | None, lang: Lang, *, named: bool = True) -> None:
    if trained is None:
        return
    ax.axvline(trained, color=GREY, linewidth=1)
    if named:
        ax.annotate(
            word("training length", lang), (trained, 0.02), xycoords=("data", "axes fraction"), xytext=(4, 0),
            textcoords="offset points", ha="left", va="bottom", fontsize=10,
        )  # fmt: skip
