"""Pictures of attention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc._arrays import Array
from posenc.plot._style import GREY, Lang, as_numbers, check_lang, new_figure, word

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

    Args:
        weights: shape (n_q, n_k), as `posenc.attention.attention` returns them.
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
    shown = as_numbers("weights", weights)
    if shown.ndim != 2 or shown.size == 0:
        raise ValueError(f"weights must have shape (n_q, n_k), both at least 1, got {shown.shape}")
    for name, labels, size in (("queries", queries, shown.shape[0]), ("keys", keys, shown.shape[1])):
        if labels is not None and len(labels) != size:
            raise ValueError(f"{name} must hold {size} labels, got {len(labels)}")
    if mask is not None:
        mask = np.asarray(mask.cpu() if hasattr(mask, "cpu") else mask)
        if mask.shape != shown.shape:
            raise ValueError(f"mask must have shape {shown.shape}, got {mask.shape}")
        if mask.dtype != bool:
            raise TypeError(f"mask must be bool, got dtype {mask.dtype}")
    if ax is None:
        _, (ax,) = new_figure(3.6)
    ax.imshow(shown, cmap="Blues", vmin=0, vmax=max(1e-12, float(shown.max(initial=0))), interpolation="none")
    ax.set(xlabel=word("key position", lang), ylabel=word("query position", lang))
    if keys is not None:
        ax.set_xticks(range(len(keys)), labels=list(keys))
    if queries is not None:
        ax.set_yticks(range(len(queries)), labels=list(queries))
    if max(shown.shape) <= 8:
        half = shown.max(initial=0) / 2
        for (t, u), weight in np.ndenumerate(shown):
            if mask is None or not mask[t, u]:
                # White on dark cells, and on light ones a dark that no page theme turns light.
                color = "white" if weight > half else "#1a1a1a"
                ax.text(u, t, f"{weight:.2f}", ha="center", va="center", color=color, fontsize=10)
    if mask is not None:
        rows, columns = np.nonzero(mask)
        ax.plot(columns, rows, linestyle="none", marker="x", color=GREY, markersize=6)
    return ax
