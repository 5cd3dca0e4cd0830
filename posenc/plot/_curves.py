"""Curves that can be told apart without colour, and what stands behind them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba

from posenc._arrays import Array
from posenc.plot._figures import quiet
from posenc.plot._labels import plain_ticks
from posenc.plot._style import COLORS, GREY, LINES, MARKERS, Lang, word


def draw_curves(
    ax: Axes, shown: Mapping[str, np.ndarray], x: Array | None = None, *, marks: float = 0, **look: Any
) -> Axes:
    """A curve for each label, told apart by colour, by line and, where it has marks of that size, by mark."""
    looks = zip(shown.items(), COLORS, LINES, MARKERS, strict=False)
    for k, ((label, y), color, line, mark) in enumerate(looks):
        marked: dict[str, Any] = {"marker": mark, "markersize": marks} if marks else {}
        if marks and len(y) > 48:
            # Few marks, each curve's at other points: close ones would hide the style of the line.
            every = len(y) // 8
            marked["markevery"] = (k * every // len(shown), every)
        place = np.arange(len(y)) if x is None else x
        ax.plot(place, y, color=color, linestyle=line, label=label, **marked, **look)
    return quiet(ax)


def spread(ax: Axes, x: np.ndarray, low: np.ndarray, high: np.ndarray, color: str = GREY) -> None:
    """A faint band from low to high. Its edges are drawn, for the band is fainter than a line may be."""
    faint = to_rgba(color, 0.2 if color == GREY else 0.25)
    ax.fill_between(x, low, high, facecolor=faint, edgecolor=color, linewidth=0.5)


def shade(ax: Axes, left: float, right: float, label: str | None = None) -> None:
    """A grey field from left to right, with its edges."""
    ax.axvspan(left, right, facecolor=to_rgba(GREY, 0.2), edgecolor=GREY, linewidth=0.8, label=label)


def zero_line(ax: Axes, y: float = 0) -> None:
    """A thin grey line across, at 0 or another height."""
    ax.axhline(y, color=GREY, linewidth=0.8)


def trained_line(ax: Axes, trained: float | None, lang: Lang, *, named: bool = True) -> None:
    """The length of training as a line, with its name on the right."""
    if trained is None:
        return
    ax.axvline(trained, color=GREY, linewidth=1)
    if named:
        ax.annotate(
            word("training length", lang), (trained, 0.99), xycoords=("data", "axes fraction"),
            xytext=(4, 0), textcoords="offset points", ha="left", va="top", fontsize=10,
        )  # fmt: skip


def log_axis(ax: Axes, x: np.ndarray, *, apart: float = 1.9) -> None:
    """A logarithmic axis; the numbers themselves stand there if they are few, each so many times the one before."""
    ax.set_xscale("log")
    plain_ticks(ax.xaxis)
    if len(x) <= 12:
        ticks: list[float] = []
        for place in x:
            if not ticks or place >= apart * ticks[-1]:
                ticks.append(float(place))
        ax.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
