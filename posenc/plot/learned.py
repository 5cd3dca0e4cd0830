"""Pictures of learned tables, their ends and their lengths."""

from collections.abc import Mapping

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from posenc._arrays import Array
from posenc.plot._checks import as_labelled
from posenc.plot._figures import new_figure
from posenc.plot._labels import name_axes, title
from posenc.plot._maps import color_bar, even_scale, signed_map
from posenc.plot._style import Lang, picture, word


@picture
def table_lengths(tables: Mapping[str, Array], *, lang: Lang = "en") -> Figure:
    """Tables of different lengths side by side, a row for each position, all on one scale of positions.

    Args:
        tables: label to table (length, dim), one to four. Colours run from −m to m, m being the largest
            absolute value of all.

    Source: a picture of this book, drawn in learned.md#interpolation.
    """
    shown = as_labelled("tables", tables, ("length", "dim"), most=4)
    longest = max(len(table) for table in shown.values())
    most = even_scale(*shown.values())
    figure, axes = new_figure(3.2, columns=len(shown), sharey=True)
    for ax, (label, table) in zip(axes, shown.items(), strict=True):
        image = signed_map(ax, table, most)
        title(ax, label)
        name_axes(ax, lang, "dimension").set(xticks=(), ylim=(longest - 0.5, -0.5))
        ax.tick_params(left=ax is axes[0])
        ax.set_frame_on(False)
        box = Rectangle((-0.5, -0.5), table.shape[1], len(table), fill=False, linewidth=0.8, clip_on=False)
        ax.add_patch(box)
    name_axes(axes[0], lang, None, "position")
    color_bar(image, axes, word("value", lang), (-most, 0, most))
    return figure
