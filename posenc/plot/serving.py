"""Pictures of a cache of keys while a text is read."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from posenc._arrays import Array
from posenc.plot._checks import as_labelled
from posenc.plot._figures import new_figure
from posenc.plot._labels import name_axes
from posenc.plot._maps import blue_map, cross_out, write_cells
from posenc.plot._style import Lang, picture


@picture
def cache_slots(caches: Mapping[str, Array], *, lang: Lang = "en") -> Figure:
    """Which token's key lies in which slot, token by token, and the position by which it is turned.

    There is a row for each token that has been read and a column for each slot. The darker a cell, the later its
    token; the number is the position. A slot that holds nothing is crossed out.

    Args:
        caches: a title and whole numbers (2, tokens, slots): the number of the token in each slot, −1 for none, and
            its position; one to three.

    Source: a picture of this book, drawn in serving.md#evict.
    """
    shown = as_labelled("caches", caches, (2, "tokens", "slots"), most=3, low=-1, high=99)
    steps = max(tables.shape[1] for tables in shown.values())
    figure, axes = new_figure(0.9 + 0.24 * steps, columns=len(shown), sharey=True)
    latest = max(float(tables[0].max()) for tables in shown.values())
    for ax, (name, (tokens, positions)) in zip(axes, shown.items(), strict=True):
        # The darkest shade is left out: neighbours of it could not be told apart.
        image = blue_map(ax, tokens, latest + 3, least=-1, aspect="auto")
        held = [(row, column) for row, column in np.argwhere(tokens >= 0).tolist()]
        write_cells(ax, image, held, (f"{positions[cell]:.0f}" for cell in held))
        cross_out(ax, tokens < 0)
        name_axes(ax, lang, "slot").set_title(name, fontsize=10)
        ax.set(xticks=range(tokens.shape[1]), yticks=range(0, steps, 2))
    name_axes(axes[0], lang, None, "latest token")
    return figure
