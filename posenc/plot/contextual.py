"""Pictures of positions that the content decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc._arrays import Array
from posenc.plot._checks import as_labelled, as_names
from posenc.plot._style import (
    COLORS,
    LINES,
    MARKERS,
    Lang,
    check_lang,
    given_or_new,
    legend_above,
    quiet,
    word,
)

__all__ = ["distance_steps"]


def distance_steps(
    distances: Mapping[str, Array], tokens: Sequence[str], *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """How far back each token lies, seen from the last one, by one or several ways of counting.

    Args:
        distances: label to distances (n,) from the last token, at least 0; one to six.
        tokens: what stands below the axis, n short texts.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: distances are not vectors of finite numbers of one length, or tokens not as many.

    >>> ax = distance_steps({"tokens": [2, 1, 0], "sentences": [1, 1, 0]}, ["a", ".", "b"])
    """
    check_lang(lang, ax)
    shown = as_labelled("distances", distances, ("n",), same_length=True, low=0)
    n = len(next(iter(shown.values())))
    names = as_names("tokens", tokens, n)
    ax = given_or_new(ax, 2.8)
    place = np.arange(n)
    for (label, far), color, line, marker in zip(shown.items(), COLORS, LINES, MARKERS, strict=False):
        ax.plot(
            place, far, color=color, linestyle=line, marker=marker, markersize=4, drawstyle="steps-mid",
            clip_on=False, label=label,
        )  # fmt: skip
    ax.set_xticks(place, labels=names)
    ax.tick_params(axis="x", length=0)
    ax.set(ylabel=word("how far back", lang), ylim=(0, None))
    legend_above(quiet(ax))
    return ax
