"""Pictures of graphs: nodes and edges, coloured by a code."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from posenc._arrays import Array, is_array
from posenc.graphs import adjacency
from posenc.plot._checks import as_labelled, as_numbers
from posenc.plot._figures import new_panels
from posenc.plot._labels import legend_of_all, signed, title
from posenc.plot._maps import even_scale
from posenc.plot._style import BLUE, GREY, ORANGE, Lang, picture, word

# What a node looks like, told apart without colours.
MARKS: dict[str, Any] = {
    "above 0": {"marker": "s", "color": ORANGE, "linestyle": "none"},
    "below 0": {"marker": "o", "color": BLUE, "linestyle": "none"},
    "zero": {"marker": "D", "color": GREY, "linestyle": "none"},
}


@picture
def graph_codes(graph: Any, places: Array, codes: Mapping[str, Array], *, lang: Lang = "en") -> Figure:
    """A graph, once for each column of a code: how large the mark of a node is tells its value.

    Squares are above 0, circles below, a small diamond is 0. Up to 24 nodes the values stand beside them.

    Args:
        graph: as in `posenc.graphs`; its directions are not drawn.
        places: where to draw each node, (n, 2): any layout, such as those of networkx.
        codes: label to the values of the nodes, (n,), in the order of the rows of graph; one to six. Not inf:
            draw 1 / (1 + distance) of nodes that no path reaches.

    Source: a picture of this book, drawn in graphs.md#graphs.
    """
    given = as_numbers("graph", graph, ("n", "n")) if isinstance(graph, list) or is_array(graph) else graph
    edges = adjacency(given).tocoo()
    n = edges.shape[0]
    xy = as_numbers("places", places, (n, 2))
    shown = as_labelled("codes", codes, (n,))
    for values in shown.values():
        values[np.abs(values) < 1e-9 * even_scale(values)] = 0  # what rounding has left of it
    lines = [(xy[t], xy[u]) for t, u in {(min(e), max(e)) for e in zip(edges.row, edges.col, strict=True)}]
    middle, reach = (xy.min(axis=0) + xy.max(axis=0)) / 2, np.maximum(np.ptp(xy, axis=0), 1e-9)
    pad = 0.14 * reach.max() * min(2, len(shown)) / 2 + 1e-3 * reach.max()
    half = reach / 2 + pad * np.array([1, 1.3])
    height = 4.6 / min(2, len(shown)) * half[1] / half[0] + 0.35
    figure, axes, _ = new_panels(len(shown), 0.3, min(height, 5.0))
    used = set()
    for ax, (label, values) in zip(axes, shown.items(), strict=True):
        ax.add_collection(LineCollection(lines, colors=GREY, linewidths=1))
        for place, value, share in zip(xy, values, np.abs(values) / even_scale(values), strict=True):
            kind = "above 0" if value > 0 else "below 0" if value < 0 else "zero"
            used.add(kind)
            ax.plot(*place, **MARKS[kind], markersize=4 + 8 * np.sqrt(share))
            if n <= 24:
                ax.annotate(signed(f"{value:.2g}"), place, (0, 8), textcoords="offset points", ha="center")
        ax.set(xlim=middle[0] + half[0] * np.array([-1, 1]), ylim=middle[1] + half[1] * np.array([-1, 1]))
        ax.set_aspect("equal")
        ax.set_axis_off()
        title(ax, label)
    marks = {word(kind, lang): Line2D([], [], **mark) for kind, mark in MARKS.items() if kind in used}
    legend_of_all(figure, marks, 3, "outside lower center")
    return figure
