"""Pictures of grids: how alike the places of an image are, and which pair of a code follows which axis."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from posenc._arrays import Array
from posenc.plot._checks import as_labelled, as_names, check_count, check_index
from posenc.plot._figures import new_figure, new_panels, quiet
from posenc.plot._labels import legend_of_all, name_axes, plain_ticks, title
from posenc.plot._maps import color_bar, even_scale, framed, signed_map
from posenc.plot._style import COLORS, MARKERS, ORANGE, Lang, picture, word


@picture
def grid_maps(maps: Mapping[str, Array], place: tuple[int, int], *, lang: Lang = "en") -> Figure:
    """A number for each place of a grid, such as its score with one place: a map each, on one scale of colours.

    Two arrowheads at the edges point to the row and the column of the place.

    Args:
        maps: label to numbers, shape (rows, columns); one to four, of the same number of rows.
        place: row and column of the place that the numbers are about.

    Source: a picture of this book, drawn in grids.md#axes.
    """
    shown = as_labelled("maps", maps, ("rows", "columns"), most=4, same_length=True)
    if not isinstance(place, Sequence | np.ndarray) or len(place) != 2:
        raise TypeError(f"place must be a row and a column, got {place!r}")
    for table in shown.values():
        row, column = (check_index("place", t, n) for t, n in zip(place, table.shape, strict=True))
    most = even_scale(*shown.values())
    figure, axes, beside = new_panels(len(shown), 0.6, 4.4, square=True)
    for ax, (label, table) in zip(axes, shown.items(), strict=True):
        image = signed_map(framed(ax), table, most, aspect="equal")
        for x, y, marker in ((column, -0.5, "v"), (table.shape[1] - 0.5, row, "<")):
            ax.plot(x, y, color=ORANGE, linestyle="none", marker=marker, markersize=6, clip_on=False)
        title(ax, label, pad=8)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(4, integer=True))
        name_axes(ax, lang, "column", "row")
    color_bar(image, beside, word("score", lang), (-most, 0, most), shrink=0.7)
    return figure


@picture
def axis_pairs(
    frequencies: Mapping[str, Array], names: Sequence[str] | None = None, *, lang: Lang = "en"
) -> Figure:
    """Which pair of turned vectors follows which axis: a mark for each pair and axis, at its wavelength 2π/|ω|.

    Args:
        frequencies: label to frequencies (axes, dim/2) as in `posenc.rotary.apply_rotary_axes`; one to three, each
            a panel, with at most six axes. Where a frequency is 0 there is no mark.
        names: of the axes; their numbers if None.

    Source: a picture of this book, drawn in grids.md#mrope.
    """
    shown = as_labelled("frequencies", frequencies, ("axes", "dim/2"), most=3, same_length=True)
    count = len(next(iter(shown.values())))
    check_count("axes", count, len(COLORS))
    named = as_names("names", names, count)
    figure, panels = new_figure(0.6 + 1.7 * len(shown), rows=len(shown), sharex=True, sharey=True)
    for ax, (label, omega) in zip(panels, shown.items(), strict=True):
        for row, name, color, marker in zip(omega, named, COLORS, MARKERS, strict=False):
            (pairs,) = np.nonzero(row)
            waves = 2 * np.pi / np.abs(row[pairs])
            ax.plot(pairs, waves, color=color, linestyle="none", marker=marker, markersize=4, label=name)
        name_axes(quiet(ax), lang, None, "wavelength").set_yscale("log")
        title(ax, label)
        plain_ticks(ax.yaxis)
    legend_of_all(figure, panels[0], count, "outside upper left")
    name_axes(panels[-1], lang, "pair")
    return figure
