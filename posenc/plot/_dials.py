"""Dials: pairs of a code as hands on a circle."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from posenc._arrays import Array
from posenc.plot._figures import new_figure
from posenc.plot._labels import short
from posenc.plot._style import GREY, Lang, word
from posenc.sinusoidal import sinusoidal_wavelengths


def dial(ax: Axes) -> Axes:
    """A circle of radius 1 and nothing else."""
    ax.add_patch(Circle((0, 0), 1, fill=False, edgecolor=GREY, linewidth=1))
    ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), xticks=(), yticks=(), aspect="equal")
    ax.spines[:].set_visible(False)
    return ax


def clock(ax: Axes) -> Axes:
    """A dial with a mark at twelve o'clock, where hands start."""
    ax.plot(0, 1, color=GREY, linestyle="none", marker="|", markersize=7)
    return dial(ax)


def hand(ax: Axes, tip: Array, color: str, line: str = "-", marker: str = "o", **look: Any) -> None:
    """A line from the origin to its tip, which is marked."""
    x, y = tip
    ax.plot([0, x], [0, y], color=color, linestyle=line, **{"linewidth": 2, **look})
    ax.plot(x, y, color=color, linestyle="none", marker=marker, markersize=5)


def beside(ax: Axes, text: str) -> None:
    """The name of a row of dials, on its left."""
    ax.set_ylabel(text, fontsize=10, rotation=0, ha="right", va="center")


def over(ax: Axes, wavelength: float, lang: Lang) -> None:
    """The wavelength of a column of dials, over it."""
    ax.set_title(f"{word('wavelength', lang)}\n{short(wavelength)}", fontsize=10)


def dial_rows(
    margin: float, side: float, rows: Sequence[str], dim: int, base: float, lang: Lang
) -> tuple[Figure, list[Axes]]:
    """Axes for dials, side inches a row in all: a row for each label, a column for each pair with its λ."""
    half = dim // 2
    figure, axes = new_figure(margin + side / half * len(rows), rows=len(rows), columns=half)
    for ax, label in zip(axes[::half], rows, strict=True):
        beside(ax, label)
    for ax, length in zip(axes, sinusoidal_wavelengths(dim, base), strict=False):
        over(ax, length, lang)
    return figure, axes
