"""Pictures of attention."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc._arrays import Array
from posenc.plot._checks import as_mask, as_names, as_numbers
from posenc.plot._figures import given_or_new
from posenc.plot._labels import name_axes
from posenc.plot._maps import blue_map, color_bar, cross_out, write_cells
from posenc.plot._style import Lang, picture, word


@picture
def attention_map(
    weights: Array,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    mask: Array | None = None,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """Attention weights as a picture: a row for each query, a column for each key, darker is more.

    Up to 8 tokens the numbers stand in the cells; beyond that a bar says what the colours mean.

    Args:
        weights: shape (n_q, n_k), as `posenc.dot_product_attention` returns them.
        queries, keys: labels of the rows and columns, such as tokens; positions if None.
        mask: bool (n_q, n_k); True cells are crossed out.

    Source: a picture of this book, drawn in primer.md#attention.
    """
    shown = as_numbers("weights", weights, ("n_q", "n_k"))
    rows, columns = as_names("queries", queries, len(shown)), as_names("keys", keys, shown.shape[1])
    hidden = np.zeros(shown.shape, dtype=bool) if mask is None else as_mask("mask", mask, shown.shape)
    ax = given_or_new(ax, 3.6)
    most = max(1e-12, float(shown.max()))
    image = blue_map(ax, shown, most)
    x, y = "key position" if keys is None else "key", "query position" if queries is None else "query"
    name_axes(ax, lang, x, y)
    if keys is not None:
        ax.set_xticks(range(len(columns)), labels=columns)
    if queries is not None:
        ax.set_yticks(range(len(rows)), labels=rows)
    if max(shown.shape) <= 8:
        write_cells(ax, image, np.argwhere(~hidden), [f"{weight:.2f}" for weight in shown[~hidden]])
    else:
        color_bar(image, ax, word("attention weight", lang), (0, most), shrink=0.8)
    if mask is not None:
        cross_out(ax, hidden)
    return ax
