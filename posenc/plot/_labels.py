"""Names of axes and panels, legends, numbers as short texts."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.ticker import NullFormatter

from posenc.plot._style import WIDTH, Lang, wide, word

Place = Literal["outside upper center", "outside upper left", "outside lower center"]


def name_axes(ax: Axes, lang: Lang, x: str | None = None, y: str | None = None) -> Axes:
    """Words along the two axes."""
    if x is not None:
        ax.set_xlabel(word(x, lang))
    if y is not None:
        ax.set_ylabel(word(y, lang))
    return ax


def name_outer(axes: Sequence[Axes], lang: Lang) -> None:
    """Names for the axes of maps of attention in two columns: at the bottom and on the left."""
    for ax in axes[-2:]:
        name_axes(ax, lang, "key position")
    for ax in axes[::2]:
        name_axes(ax, lang, None, "query position")


def name_all(figure: Figure, lang: Lang, x: str | None = None, y: str | None = None) -> Figure:
    """Words along the two sides of a figure, for all of its panels."""
    if x is not None:
        figure.supxlabel(word(x, lang), fontsize=10)
    if y is not None:
        figure.supylabel(word(y, lang), fontsize=10)
    return figure


def title(ax: Axes, text: str, **options: Any) -> None:
    """What a panel shows, over its left end."""
    ax.set_title(text, fontsize=10, loc="left", **options)


def signed(text: str) -> str:
    """A number with a minus sign that is no hyphen."""
    return text.replace("-", "−")


def grouped(value: float, digits: int = 0) -> str:
    """A number with a space between thousands: 60 611."""
    return f"{value:,.{digits}f}".replace(",", " ")


def short(value: float) -> str:
    """A short text for a wavelength or a count: 6.28, 62.8, 628, 60 611."""
    if not math.isfinite(value):
        return str(value)
    return grouped(value, max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0)


def plain_ticks(*axes: Axis) -> None:
    """Powers of ten as plain numbers: matplotlib would set them as formulas, which a Chinese font lacks."""
    for axis in axes:
        axis.set_major_formatter(lambda x, _: grouped(x) if x >= 1 else f"{x:g}")
        axis.set_minor_formatter(NullFormatter())


def legend_above(ax: Axes) -> Legend:
    """A legend over the axes, where it covers nothing, in as many columns as the width of the book allows."""
    labels = ax.get_legend_handles_labels()[1]
    # In em, which for 10 pt are 7.2 to the inch: the letters, and the handle with the gaps beside it.
    ems = [sum(1 if wide(character) else 0.54 for character in label) + 4 for label in labels]
    columns = len(labels)
    while columns > 1 and sum(max(column) for column in np.array_split(ems, columns)) > 7.2 * WIDTH:
        columns -= 1
    return ax.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1), ncols=max(columns, 1), frameon=False, fontsize=10,
        handlelength=2.2, columnspacing=1.2, borderaxespad=0.3,
    )  # fmt: skip


def legend_of_all(
    figure: Figure, labelled: Mapping[str, Artist] | Axes, ncols: int, loc: Place = "outside upper center"
) -> None:
    """One legend for all panels, outside: of the labels of one of them, or of labels with their marks."""
    if isinstance(labelled, Axes):
        handles, labels = labelled.get_legend_handles_labels()
        labelled = dict(zip(labels, handles, strict=True))
    figure.legend(
        list(labelled.values()), list(labelled), loc=loc, ncols=ncols, frameon=False, fontsize=10,
        handlelength=2.2, columnspacing=1.2,
    )  # fmt: skip
