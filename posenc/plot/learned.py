"""Pictures of learned tables, their ends and their lengths."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from posenc._arrays import Array
from posenc.plot._checks import as_labelled, check_index
from posenc.plot._style import (
    COLORS,
    LINES,
    Lang,
    check_lang,
    color_bar,
    even_scale,
    given_or_new,
    legend_above,
    new_figure,
    quiet,
    signed_map,
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
    shown = as_labelled("tables", tables, ("length", "dim"), most=4)
    longest = max(len(table) for table in shown.values())
    most = even_scale(*shown.values())
    figure, axes = new_figure(3.2, columns=len(shown), sharey=True)
    for ax, (label, table) in zip(axes, shown.items(), strict=True):
        image = signed_map(ax, table, most)
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
    shown = as_labelled("tables", tables, ("length", "dim"))
    for label, table in shown.items():
        column = check_index("column", column, table.shape[1], f", the columns of {label!r}")
    ax = given_or_new(ax, 2.8)
    for k, (label, table) in enumerate(shown.items()):
        # The first, on which the others are built, is drawn broad, so that it shows under them.
        width = 4.5 if k == 0 and len(shown) > 1 else 1.6
        ax.plot(table[:, column], color=COLORS[k], linestyle=LINES[k], linewidth=width, label=label)
    ax.set(xlabel=word("position", lang), ylabel=word("value", lang))
    legend_above(quiet(ax))
    return ax
