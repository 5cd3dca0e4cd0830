"""Pictures of the first attempts: integers and one-hot vectors, with any other code beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from posenc._arrays import Array
from posenc._checks import integer
from posenc.plot._style import (
    BLUE,
    COLORS,
    GREY,
    LINES,
    MARKERS,
    ORANGE,
    Lang,
    as_numbers,
    check_lang,
    new_figure,
    quiet,
    word,
)

__all__ = ["distance_profiles", "energy_shares", "score_curves", "sum_bars"]


def sum_bars(
    embedding: Array, codes: Mapping[str, Array], *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """One embedding under several codes, as bars: up to the code first, and from there the embedding.

    Args:
        embedding: shape (dim,).
        codes: label to code (dim,), a group of dim bars each.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        ValueError: embedding is not a vector, a code does not have its shape, or there is no code.
    """
    check_lang(lang, ax)
    word_vector = as_numbers("embedding", embedding)
    if word_vector.ndim != 1 or word_vector.size == 0:
        raise ValueError(f"embedding must have shape (dim,) with dim >= 1, got {word_vector.shape}")
    shown = _numbers("codes", codes)
    for label, code in shown.items():
        if code.shape != word_vector.shape:
            raise ValueError(f"codes[{label!r}] must have shape {word_vector.shape}, got {code.shape}")
    if ax is None:
        _, (ax,) = new_figure(2.8)
    dim = word_vector.size
    dims = np.arange(dim)
    for group, code in enumerate(shown.values()):
        x = group * (dim + 1) + dims
        first = group == 0
        ax.bar(
            x,
            code,
            0.8,
            color="none",
            edgecolor=ORANGE,
            hatch="////",
            linewidth=1,
            label=word("code", lang) if first else None,
        )
        ax.bar(
            x,
            word_vector,
            0.8,
            bottom=code,
            color=BLUE,
            label=word("token embedding", lang) if first else None,
        )
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xticks([group * (dim + 1) + (dim - 1) / 2 for group in range(len(shown))], labels=list(shown))
    ax.tick_params(axis="x", length=0)
    quiet(ax).set_ylabel(word("value", lang))
    ax.legend(loc="upper left", frameon=False)
    return ax


def energy_shares(
    shares: Mapping[str, Array], *, positions: Array | None = None, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """How much of a token's vector is its position: a curve a code, over positions on a logarithmic axis.

    Args:
        shares: label to shares (n,), each between 0 and 1.
        positions: where the shares were taken, shape (n,), above 0; 1, 2, ..., n if None.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        ValueError: shares are not vectors of one length between 0 and 1, or positions do not fit them.
    """
    check_lang(lang, ax)
    shown = _numbers("shares", shares)
    n = next(iter(shown.values())).size
    x = np.arange(1, n + 1) if positions is None else as_numbers("positions", positions)
    if x.shape != (n,) or not (x > 0).all():
        raise ValueError(f"positions must be {n} numbers above 0, got {positions!r}")
    for label, y in shown.items():
        if y.shape != (n,) or not ((y >= 0) & (y <= 1)).all():
            raise ValueError(f"shares[{label!r}] must be {n} numbers between 0 and 1, got {y!r}")
    if ax is None:
        _, (ax,) = new_figure(2.6)
    for k, (label, y) in enumerate(shown.items()):
        ax.plot(x, y, color=COLORS[k % len(COLORS)], linestyle=LINES[k % len(LINES)], label=label)
    ax.set(xscale="log", ylim=(0, 1.05), xlabel=word("position", lang), ylabel=word("energy share", lang))
    # 1, 10, 100 in plain text: matplotlib's own labels of a logarithmic axis are mathtext.
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}".replace(",", " ") if x >= 1 else f"{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    quiet(ax).legend(frameon=False)
    return ax


def score_curves(scores: Mapping[str, Array], *, lang: Lang = "en") -> Figure:
    """Attention scores of one query against every key: a panel a code, a curve a head, a dot at each maximum.

    Each panel is divided by its largest absolute score: the shape is shown, not the size.

    Args:
        scores: label to scores (heads, n).
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: scores are not matrices, or there are none.
    """
    check_lang(lang)
    shown = _numbers("scores", scores)
    for label, rows in shown.items():
        if rows.ndim != 2 or rows.size == 0:
            raise ValueError(f"scores[{label!r}] must have shape (heads, n), got {rows.shape}")
    figure, axes = new_figure(2.6, columns=len(shown), sharey=True)
    for ax, (label, rows) in zip(axes, shown.items(), strict=True):
        for k, y in enumerate(rows / (np.abs(rows).max() or 1.0)):
            color = COLORS[k % len(COLORS)]
            ax.plot(y, color=color, linestyle=LINES[k % len(LINES)], linewidth=1.2)
            marker = MARKERS[k % len(MARKERS)]
            ax.plot(np.argmax(y), np.max(y), color=color, marker=marker, markersize=6, clip_on=False)
        quiet(ax).set_title(label, fontsize=10, loc="left")
        ax.set(xlabel=word("key position", lang), ylim=(-1.1, 1.1), yticks=(-1, 0, 1))
    axes[0].set_ylabel(word("scaled score", lang))
    return figure


def distance_profiles(codes: Mapping[str, Array], position: int, *, lang: Lang = "en") -> Figure:
    """How far the code of one position lies from all others: a panel a code, each with a scale of its own.

    ‖p_u − p_t‖ over u, for t = position.

    Args:
        codes: label to codes (n, dim); n the same for all, dim may differ.
        position: t, in 0..n−1.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: codes are not matrices of one length, or position is not one of theirs.
    """
    check_lang(lang)
    shown = _numbers("codes", codes)
    first = next(iter(shown.values()))
    n = len(first) if first.ndim else 0
    for label, rows in shown.items():
        if rows.ndim != 2 or len(rows) != n:
            raise ValueError(f"codes[{label!r}] must have shape ({n}, dim), got {rows.shape}")
    t = integer("position", position, minimum=0)
    if t >= n:
        raise ValueError(f"position must lie in 0..{n - 1}, got {t}")
    columns = min(2, len(shown))
    lines = math.ceil(len(shown) / columns)
    figure, axes = new_figure(0.4 + 1.5 * lines, rows=lines, columns=columns, sharex=True)
    for k, (ax, (label, rows)) in enumerate(zip(axes, shown.items(), strict=False)):
        distance = np.linalg.norm(rows - rows[t], axis=1)
        ax.plot(distance, color=COLORS[k % len(COLORS)])
        ax.plot(t, 0, color=COLORS[k % len(COLORS)], marker="o", markersize=5, clip_on=False)
        quiet(ax).set_title(label, fontsize=10, loc="left")
        ax.set_ylim(bottom=0)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    for ax in axes[: len(shown)][-columns:]:
        ax.set_xlabel(word("other position", lang))
        ax.tick_params(labelbottom=True)
    figure.supylabel(word("code distance", lang), fontsize=10)
    return figure


def _numbers(name: str, arrays: Mapping[str, Array]) -> dict[str, np.ndarray]:
    """The arrays as float64 NumPy arrays, in their order; at least one."""
    if not arrays:
        raise ValueError(f"{name} must hold at least one labelled array, got {arrays!r}")
    return {label: as_numbers(f"{name}[{label!r}]", array) for label, array in arrays.items()}
