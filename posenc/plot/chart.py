"""The picture that most chapters need: curves with labels."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from posenc._arrays import Array
from posenc._checks import check_flag, integer
from posenc.plot._checks import as_labelled, as_names, as_number, as_numbers
from posenc.plot._curves import draw_curves, log_axis, trained_line, zero_line
from posenc.plot._figures import given_or_new
from posenc.plot._labels import legend_above
from posenc.plot._style import Lang, picture, word


@picture
def curves(
    curves: Mapping[str, Array],
    x: Array | Sequence[str] | None = None,
    *,
    labels: Sequence[str],
    log: bool = False,
    marks: bool = False,
    steps: bool = False,
    broad: bool = False,
    trained: int | None = None,
    chance: float | None = None,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """Curves that can be told apart without colour, and their labels above them.

    Args:
        curves: label to numbers, shape (n,); one to six. Without `x` they may differ in length.
        x: where the points lie: numbers, shape (n,), or n short texts to stand below the axis. 0, 1, ... if None.
        labels: what the horizontal and the vertical axis show.
        log: whether the horizontal axis is logarithmic, for x above 0.
        marks: whether curves have marks, each point of short ones and a few of long ones.
        steps: whether curves are level around each point, for what has no value in between.
        broad: whether the first curve is drawn broad, so that it shows under others that lie on it.
        trained: length of training, a vertical line.
        chance: what guessing would give, a level line with its number.

    Source: a picture of this book, drawn first in order.md#order-task.
    """
    shown = as_labelled("curves", curves, ("n",), same_length=x is not None)
    n = max(map(len, shown.values()))
    named = isinstance(x, Sequence) and all(isinstance(text, str) for text in x)
    if check_flag("log", log) and (named or x is None):
        raise ValueError(f"x must be numbers above 0 on a logarithmic axis, got {x!r}")
    names = as_names("x", x, n) if named else None
    above = 0 if log else -math.inf
    place = None if named or x is None else as_numbers("x", x, (n,), above=above)
    axis_labels = as_names("labels", labels, 2)
    chance = None if chance is None else as_number("chance", chance)
    trained = None if trained is None else integer("trained", trained, minimum=1)
    size, style = 4 * check_flag("marks", marks), "steps-mid" if check_flag("steps", steps) else "default"
    ax = given_or_new(ax, 2.8)
    trained_line(ax, trained, lang)
    if chance is not None:
        zero_line(ax, chance)
        ax.annotate(
            f"{word('chance', lang)} {chance:.3f}", (1, chance), xycoords=ax.get_yaxis_transform(),
            xytext=(0, 3), textcoords="offset points", ha="right", va="bottom", fontsize=10,
        )  # fmt: skip
    draw_curves(ax, shown, place, marks=size, drawstyle=style)
    if check_flag("broad", broad):
        ax.lines[-len(shown)].set_linewidth(4.5)
    ax.set(xlabel=axis_labels[0], ylabel=axis_labels[1])
    if names:
        ax.set_xticks(range(n), labels=names)
        ax.tick_params(axis="x", length=0)
    elif log and place is not None:
        log_axis(ax, place)
    else:
        whole = place is None or bool((place % 1 == 0).all())
        ax.xaxis.set_major_locator(MaxNLocator(8, integer=whole, steps=[1, 2, 2.5, 5, 10]))
    top = max(float(values.max()) for values in shown.values())
    if all((values >= 0).all() for values in shown.values()) and top > 0:
        ax.set_ylim(-0.04 * top, None)  # from 0 on, and a curve that is 0 shows
    legend_above(ax)
    return ax
