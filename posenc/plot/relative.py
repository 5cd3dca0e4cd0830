"""Pictures of relative position biases."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc._checks import integer
from posenc.plot._checks import as_labelled
from posenc.plot._style import (
    BLUE,
    GREY,
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
from posenc.relative import t5_bucket

__all__ = ["bias_curves", "bucket_staircase"]


def bucket_staircase(
    reach: int = 160, *, num_buckets: int = 32, max_distance: int = 128, lang: Lang = "en"
) -> Axes:
    """The bucket of T5 by the offset, for an encoder and for a decoder with equally many buckets.

    Args:
        reach: offsets −reach..reach are drawn, at least 1.
        num_buckets, max_distance: as in `posenc.relative.t5_bucket`.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        ValueError: reach is below 1; others as in `posenc.relative.t5_bucket`.
    """
    check_lang(lang)
    reach = integer("reach", reach, minimum=1)
    k = np.arange(-reach, reach + 1)
    both, causal = (
        t5_bucket(k, num_buckets=num_buckets, max_distance=max_distance, bidirectional=bidirectional)
        for bidirectional in (True, False)
    )
    _, (ax,) = new_figure(3.0)
    for buckets, color, line, name in ((both, BLUE, "-", "bidirectional"), (causal, ORANGE, "--", "causal")):
        ax.step(k, buckets, where="mid", color=color, linestyle=line, linewidth=1.6, label=word(name, lang))
    ax.axvline(0, color=GREY, linewidth=0.8)
    ax.set(xlabel=word("offset", lang), ylabel=word("bucket", lang), ylim=(-1, num_buckets + 1))
    legend_above(quiet(ax))
    return ax


def bias_curves(biases: Mapping[str, Array], *, trained: int | None = None, lang: Lang = "en") -> Figure:
    """The bias that one query, the last of the keys, gives to each key: a panel for each scheme.

    Each curve is moved so that its largest value is 0: a constant changes no weight.

    Args:
        biases: label to bias (n,) of the offsets −(n − 1), ..., 0, one to six of them.
        trained: length of the sentences it was trained on, if that is to be marked; at least 1.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: there are none or more than six, one is not of shape (n,), or trained is below 1.
    """
    check_lang(lang)
    shown = as_labelled("biases", biases, ("n",))
    if trained is not None:
        trained = integer("trained", trained, minimum=1)
    figure, axes, _ = new_panels(len(shown), 0.5, 1.5, sharex=True)
    for ax, (label, values) in zip(axes, shown.items(), strict=True):
        k = np.arange(1 - values.size, 1)
        if trained is not None and trained < values.size:
            shade(ax, k[0], 0.5 - trained)
        ax.plot(k, values - values.max(), color=BLUE, marker=".", markersize=3, linewidth=1)
        quiet(ax).set_title(label, fontsize=10, loc="left")
    figure.supxlabel(word("offset", lang), fontsize=10)
    figure.supylabel(word("bias", lang), fontsize=10)
    return figure
