"""Pictures of learned tables, their ends and their lengths."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from posenc._arrays import Array
from posenc._checks import integer
from posenc.plot._style import (
    COLORS,
    LINES,
    Lang,
    as_numbers,
    check_lang,
    color_bar,
    legend_above,
    new_figure,
    quiet,
    word,
)

__all__ = ["table_columns", "table_lengths"]


def table_lengths(tables: Mapping[str, Array], *, lang: Lang = "en") -> Figure:
    """Tables of different lengths side by side, one row a position, all on one scale of positions.

    Args:
        tables: label to table (length, dim), one to four. Colours run from −m to m, m being the largest
            absolute value of all.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: no table or more than four, or one that is not a matrix.
    """
    check_lang(lang)
    shown = _tables(tables, 4)
    longest = max(len(table) for table in shown.values())
    most = max(float(np.abs(table).max()) for table in shown.values()) or 1.0
    figure, axes = new_figure(3.2, columns=len(shown), sharey=True)
    for ax, (label, table) in zip(axes, shown.items(), strict=True):
        image = ax.imshow(table, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="none")
        ax.set_title(label, fontsize=10, loc="left")
        ax.set(xticks=(), xlabel=word("dimension", lang), ylim=(longest - 0.5, -0.5))
        ax.tick_params(left=ax is axes[0])
        ax.set_frame_on(False)
        box = Rectangle((-0.5, -0.5), table.shape[1], len(table), fill=False, linewidth=0.8, clip_on=False)
        ax.add_patch(box)
    axes[0].set_ylabel(word("position", lang))
    color_bar(image, axes, word("value", lang), (-most, 0, most))
    return figure


def table_columns(
    tables: Mapping[str, Array], column: int, *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """One column of several tables over the positions: a curve a table.

    Args:
        tables: label to table (length, dim), at most six; lengths may differ.
        column: which one, in every table.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        ValueError: no table or more than six, one that is not a matrix, or one without the column.
    """
    check_lang(lang, ax)
    shown = _tables(tables, len(COLORS))
    column = integer("column", column, minimum=0)
    for label, table in shown.items():
        if column >= table.shape[1]:
            raise ValueError(
                f"column must lie in 0..{table.shape[1] - 1}, the columns of {label!r}, got {column}"
            )
    if ax is None:
        _, (ax,) = new_figure(2.8)
    for k, (label, table) in enumerate(shown.items()):
        # The first, on which the others are built, is drawn broad, so that it shows under them.
        width = 4.5 if k == 0 and len(shown) > 1 else 1.6
        ax.plot(table[:, column], color=COLORS[k], linestyle=LINES[k], linewidth=width, label=label)
    ax.set(xlabel=word("position", lang), ylabel=word("value", lang))
    legend_above(quiet(ax))
    return ax


def _tables(tables: Mapping[str, Array], at_most: int) -> dict[str, np.ndarray]:
    if not 1 <= len(tables) <= at_most:
        raise ValueError(f"tables must hold 1 to {at_most} tables, got {len(tables)}")
    shown = {label: as_numbers("tables", table) for label, table in tables.items()}
    for label, table in shown.items():
        if table.ndim != 2 or table.size == 0:
            raise ValueError(f"tables[{label!r}] must have shape (length, dim), got {table.shape}")
    return shown
