"""Pictures of attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc._arrays import Array
from posenc.plot._checks import as_mask, as_names, as_numbers
from posenc.plot._style import (
    GREY,
    Lang,
    check_lang,
    color_bar,
    framed,
    given_or_new,
    has_chinese,
    on_cell,
    use_chinese_font,
    word,
)

__all__ = ["attention_map"]


def attention_map(
    weights: Array,
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    mask: Array | None = None,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """Attention weights as a picture: one row a query, one column a key, darker is more.

    Up to 8 tokens the numbers stand in the cells; beyond that a bar says what the colours mean.

    Args:
        weights: shape (n_q, n_k), as `posenc.dot_product_attention` returns them.
        queries, keys: labels of the rows and columns, such as tokens; positions if None.
        mask: bool (n_q, n_k); True cells are crossed out.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError: weights are not real numbers, mask is not bool.
        ValueError: weights are not a finite matrix with a row and a column, or labels or mask do not fit it.
    """
    check_lang(lang, ax)
    shown = as_numbers("weights", weights, ("n_q", "n_k"))
    rows, columns = as_names("queries", queries, len(shown)), as_names("keys", keys, shown.shape[1])
    if has_chinese([*rows, *columns]):
        use_chinese_font(ax)
    hidden = np.zeros(shown.shape, dtype=bool) if mask is None else as_mask("mask", mask, shown.shape)
    ax = given_or_new(ax, 3.6)
    most = max(1e-12, float(shown.max()))
    image = framed(ax).imshow(shown, cmap="Blues", vmin=0, vmax=most, interpolation="none")
    ax.set_xlabel(word("key position" if keys is None else "key", lang))
    ax.set_ylabel(word("query position" if queries is None else "query", lang))
    if keys is not None:
        ax.set_xticks(range(len(columns)), labels=columns)
    if queries is not None:
        ax.set_yticks(range(len(rows)), labels=rows)
    if max(shown.shape) <= 8:
        for (t, u), weight in np.ndenumerate(shown):
            if not hidden[t, u]:
                color = on_cell(image, weight)
                ax.text(u, t, f"{weight:.2f}", ha="center", va="center", color=color, fontsize=10)
    else:
        color_bar(image, ax, word("attention weight", lang), (0, most), shrink=0.8)
    if mask is not None:
        t, u = np.nonzero(hidden)
        ax.plot(u, t, linestyle="none", marker="x", color=GREY, markersize=6)
    return ax
