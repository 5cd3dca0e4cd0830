"""Pictures of padding and masks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from posenc._arrays import Array
from posenc.masks import key_padding_mask, leak_in, leak_out, masked_loss, positions_from_mask
from posenc.plot._checks import as_integers, as_labelled, as_mask, as_numbers, check_count, check_labelled
from posenc.plot._style import (
    BLUE,
    COLORS,
    GREY,
    LINES,
    MARKERS,
    ORANGE,
    Lang,
    check_lang,
    color_bar,
    framed,
    given_or_new,
    new_figure,
    quiet,
    word,
)

__all__ = [
    "attention_pair",
    "leak_curves",
    "leak_paths",
    "loss_denominators",
    "mask_maps",
    "output_mask_bars",
    "padding_sides",
]

# Behind a pad, on light and dark pages.
PALE = "#ffe9dc"


def attention_pair(
    weights: Array, masked_weights: Array, padding_mask: Array, *, lang: Lang = "en"
) -> Figure:
    """Attention without and with a key-padding mask, side by side; the masked keys are crossed out.

    Args:
        weights, masked_weights: shape (n, n), of one sequence, as `posenc.dot_product_attention` returns them.
        padding_mask: bool (n,), True at pads.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure. Above each map stands how much attention the real queries spend on pads.

    Raises:
        ValueError: the shapes do not fit.

    >>> figure = attention_pair(np.full((3, 3), 1 / 3), np.eye(3), key_padding_mask(2, 3))
    """
    check_lang(lang)
    pads = as_mask("padding_mask", padding_mask, ("n",))
    n = len(pads)
    pair = as_numbers("weights", weights, (n, n)), as_numbers("masked_weights", masked_weights, (n, n))
    figure, axes = new_figure(3.0, columns=2, sharey=True)
    most = max(shown.max(initial=0) for shown in pair)
    for ax, shown, title in zip(axes, pair, ("no mask", "key mask"), strict=True):
        image = framed(ax).imshow(shown, cmap="Blues", vmin=0, vmax=most, interpolation="none")
        if title == "key mask":
            t, u = np.nonzero(np.broadcast_to(pads, (n, n)))
            ax.plot(u, t, linestyle="none", marker="x", color=GREY, markersize=6)
        for edge in np.flatnonzero(pads[1:] != pads[:-1]) + 0.5:
            ax.plot((edge, edge), (-0.5, n - 0.5), color=ORANGE, linestyle="--", linewidth=1.2)
            ax.plot((-0.5, n - 0.5), (edge, edge), color=ORANGE, linestyle="--", linewidth=1.2)
        ax.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(5, integer=True))
        leak = f"{word('leak', lang)} {100 * leak_in(shown, pads):.0f}{'%' if lang == 'zh' else ' %'}"
        ax.set_title(f"{word(title, lang)}\n{leak}", fontsize=10)
        ax.set_xlabel(word("key position", lang))
    axes[0].set_ylabel(word("query position", lang))
    color_bar(image, axes, word("attention weight", lang), (0, most), shrink=0.6)
    return figure


def leak_curves(
    pads: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    *,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """How much attention the real tokens lose to pads, by the number of pads.

    Args:
        pads: the numbers of pads, rising.
        curves: a name, and the leak at each number of pads, from 0 to 1; one to six.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh". The names are shown as they are given.

    Returns:
        The axes.

    Raises:
        ValueError: no curve or more than six, or one of another length than pads.

    >>> ax = leak_curves([0, 4, 8], {"no mask": [0, 0.4, 0.6], "mask": [0, 0, 0]})
    """
    check_lang(lang, ax)
    x = as_numbers("pads", pads, ("n",), low=0)
    shown = as_labelled("curves", curves, x.shape, low=0, high=1)
    ax = given_or_new(ax, 2.8)
    styles = zip(shown.items(), COLORS, LINES, MARKERS, strict=False)
    for k, ((name, leak), color, line, marker) in enumerate(styles):
        # The first ones broader, so that equal curves show beneath each other.
        width = 1.4 + 1.2 * (len(shown) - 1 - k)
        ax.plot(
            x, leak, color=color, linestyle=line, linewidth=width, marker=marker, markersize=5, label=name
        )
    ax.set(xlabel=word("number of pads", lang), ylabel=word("leak", lang), ylim=(-0.03, 1.03))
    quiet(ax).legend(frameon=False, fontsize=10)
    return ax


def leak_paths(
    layers: Sequence[Array], padding_mask: Array, *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """Both leaks through the layers: from the bottom up, a line from each key to each query that reads it.

    Orange, solid: a real query reads a pad (leak in). Blue, dashed: a pad reads a real token (leak out). Grey
    is the rest. The thicker the line, the larger the attention weight.

    Args:
        layers: the attention weights of each layer, shape (n, n), from the first layer on; at most three.
        padding_mask: bool (n,), True at pads.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes. At the right of each layer stand its two leaks, `leak_in` and `leak_out`.

    Raises:
        ValueError: there is no layer or more than three, or the shapes do not fit.

    >>> ax = leak_paths([np.full((3, 3), 1 / 3)] * 2, key_padding_mask(2, 3))
    """
    check_lang(lang, ax)
    pads = as_mask("padding_mask", padding_mask, ("n",))
    n = len(pads)
    check_count("layers", len(layers), 3)
    shown = [as_numbers(f"layers[{k}]", layer, (n, n)) for k, layer in enumerate(layers)]
    ax = given_or_new(ax, 0.9 + 1.35 * len(shown))
    for k, weights in enumerate(shown):
        for (t, u), weight in np.ndenumerate(weights):
            color: str = GREY
            line: Any = "-"
            if pads[t] != pads[u]:
                color, line = (ORANGE, "-") if pads[u] else (BLUE, (0, (3, 1.5)))
            if weight > 0.005:
                faint = 0.35 if pads[t] == pads[u] else 1  # what does not leak stands back
                ax.plot((u, t), (k, k + 1), color=color, linestyle=line, linewidth=6 * weight, alpha=faint)
        leaks = {"leak in": leak_in(weights, pads), "leak out": leak_out(weights, pads)}
        text = "\n".join(f"{word(name, lang)} {leak:.2f}" for name, leak in leaks.items())
        ax.text(n - 0.4, k + 0.5, text, va="center", fontsize=10)
    for k in range(len(layers) + 1):
        for u, pad in enumerate(pads):
            ax.plot(
                u, k, linestyle="none", marker="s" if pad else "o", markersize=11, zorder=3,
                color=PALE if pad else BLUE, markeredgecolor=ORANGE if pad else BLUE, markeredgewidth=1.6,
            )  # fmt: skip
    names = [word("input", lang), *(word("layer number", lang).format(k + 1) for k in range(len(layers)))]
    ax.set_yticks(range(len(layers) + 1), labels=names)
    ax.set_xticks(range(n))
    ax.tick_params(length=0)
    ax.set(xlim=(-0.5, n + 1.9), ylim=(-0.3, len(layers) + 0.3))
    ax.set_xlabel(word("position", lang), x=(n - 1) / 2 / (n + 2.4), ha="center")
    ax.set_frame_on(False)
    return ax


def loss_denominators(losses: Array, pad_losses: Array, *, ax: Axes | None = None, lang: Lang = "en") -> Axes:
    """The mean loss of one and the same sequence, by the number of pads and by what the sum is divided by.

    Args:
        losses: the losses of the real tokens, shape (n,).
        pad_losses: what the loss function says at the pads, shape (p,); they are added one by one.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        ValueError: there is no real token or no pad, or the losses have more than one axis.

    >>> ax = loss_denominators(np.array([2.0, 3.0]), np.array([5.0, 5.0]))
    """
    check_lang(lang, ax)
    real, extra = as_numbers("losses", losses, ("n",)), as_numbers("pad_losses", pad_losses, ("p",))
    ax = given_or_new(ax, 3.0)
    n = len(real)
    pads = np.arange(len(extra) + 1)
    both = [np.concatenate([real, extra[:p]]) for p in pads]
    curves = {
        "real / real": [float(masked_loss(x, key_padding_mask(n, len(x)))) for x in both],
        "all / all": [x.mean() for x in both],
        "real / all": [real.sum() / len(x) for x in both],
    }
    for (name, values), color, line, marker in zip(curves.items(), COLORS, LINES, MARKERS, strict=False):
        label = word(name, lang)
        ax.plot(pads, values, color=color, linestyle=line, marker=marker, markersize=4, label=label)
    ax.set(xlabel=word("number of pads", lang), ylabel=word("loss", lang), ylim=(0, None))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    quiet(ax).legend(frameon=False, fontsize=10, loc="lower left")
    return ax


def mask_maps(masks: Mapping[str, Array], *, lang: Lang = "en") -> Figure:
    """Masks as pictures, side by side: one row a query, one column a key, filled where it may be seen.

    A query that may see no key at all is marked by an orange line.

    Args:
        masks: a title and a bool mask (n_q, n_k), True where not allowed; one to three.
        lang: language of the labels, "en" or "zh". The titles are shown as they are given.

    Returns:
        The figure.

    Raises:
        ValueError: no mask or more than three, or one that is not a bool matrix.

    >>> figure = mask_maps({"causal": np.triu(np.ones((3, 3), dtype=bool), k=1)})
    """
    check_lang(lang)
    check_labelled("masks", masks, 3)
    shown = [as_mask(f"masks[{title!r}]", mask, ("n_q", "n_k")) for title, mask in masks.items()]
    figure, axes = new_figure(0.9 + 4.2 / len(masks) if len(masks) > 1 else 3.4, columns=len(masks))
    for ax, title, mask in zip(axes, masks, shown, strict=True):
        for t, u in np.ndindex(mask.shape):
            allowed = not mask[t, u]
            ax.add_patch(
                Rectangle(
                    (u - 0.42, t - 0.42), 0.84, 0.84, linewidth=0.8,
                    facecolor=BLUE if allowed else "none", edgecolor=BLUE if allowed else GREY,
                )
            )  # fmt: skip
        for t in np.flatnonzero(mask.all(axis=1)):
            ax.plot((-0.42, mask.shape[1] - 0.58), (t, t), color=ORANGE, linewidth=2)
        ax.set(xlim=(-0.6, mask.shape[1] - 0.4), ylim=(mask.shape[0] - 0.4, -0.6), aspect="equal")
        ax.set_title(title, fontsize=10)
        ax.set_xlabel(word("key position", lang))
        ax.set_frame_on(False)
        ax.tick_params(length=0)
        step = -(-max(mask.shape) // 8)
        ax.set(xticks=range(0, mask.shape[1], step), yticks=range(0, mask.shape[0], step))
    axes[0].set_ylabel(word("query position", lang))
    return figure


def output_mask_bars(
    changes: Mapping[str, tuple[float, float]], *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """What pads change, without and with an output mask: a pair of bars for each case.

    Args:
        changes: the name of a case, and its change without and with an output mask.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh". The names are shown as they are given.

    Returns:
        The axes. Changes below 1e-9 are rounding and stand as 0.

    Raises:
        ValueError: there is no case, or a change is negative.

    >>> ax = output_mask_bars({"mean": (0.6, 0.0)})
    """
    check_lang(lang, ax)
    values = np.stack(list(as_labelled("changes", changes, (2,), most=math.inf, low=0).values()))
    ax = given_or_new(ax, 0.9 + 0.62 * len(changes))
    for side, (name, color, hatch) in enumerate((("without", ORANGE, None), ("with", BLUE, "////"))):
        y = np.arange(len(changes)) + (side - 0.5) * 0.36
        ax.barh(
            y, values[:, side], height=0.32, facecolor="none" if hatch else color, edgecolor=color,
            hatch=hatch, label=word(f"{name} output mask", lang),
        )  # fmt: skip
        for place, value in zip(y, values[:, side], strict=True):
            label = "0" if value < 1e-9 else f"{value:.2f}"
            ax.annotate(
                label, (value, place), xytext=(3, 0), textcoords="offset points", va="center", fontsize=10
            )
    ax.set_yticks(range(len(changes)), labels=list(changes))
    ax.set(xlabel=word("largest change", lang), ylim=(len(changes) - 0.4, -0.6))
    ax.set_xlim(0, 1.15 * max(float(values.max()), 1e-9))
    # Over the names as well: beside long ones there is little room.
    quiet(ax).legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, columnspacing=1.2)
    return ax


def padding_sides(lengths: Sequence[int], *, lang: Lang = "en") -> Figure:
    """The same sequences padded right and left, and the position that each token gets.

    Three panels: pads on the right, counted by place; on the left, counted by place; on the left, counted
    from the first real token. Pads are hatched. A position that differs from the unpadded one is orange.

    Args:
        lengths: number of real tokens of each sequence; at least one, each from 1 to 12.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: there is no length, or one is out of range.

    >>> figure = padding_sides([5, 2, 3])
    """
    check_lang(lang)
    counts = as_integers("lengths", lengths, 1)
    if max(counts) > 12:
        raise ValueError(f"lengths must hold numbers from 1 to 12, got {counts}")
    n = max(counts)
    right, left = key_padding_mask(counts), key_padding_mask(counts, side="left")
    place = np.broadcast_to(np.arange(n), right.shape)
    panels = (
        ("right by place", right, place),
        ("left by place", left, place),
        ("left from mask", left, positions_from_mask(left)),
    )
    figure, axes = new_figure(3 * (0.34 + 0.3 * len(counts)), rows=3)
    for ax, (title, mask, positions) in zip(axes, panels, strict=True):
        unpadded = positions_from_mask(mask)
        for (b, t), pad in np.ndenumerate(mask):
            wrong = not pad and positions[b, t] != unpadded[b, t]
            ax.add_patch(
                Rectangle(
                    (t - 0.46, b - 0.42), 0.92, 0.84, linewidth=1.6 if wrong else 1,
                    facecolor="none", edgecolor=GREY if pad else ORANGE if wrong else BLUE,
                    hatch="////" if pad else None,
                )
            )  # fmt: skip
            if not pad:
                weight = "bold" if wrong else "normal"
                ax.text(t, b, str(positions[b, t]), ha="center", va="center", weight=weight)
        ax.set(xlim=(-0.6, n - 0.4), ylim=(len(counts) - 0.5, -0.6), xticks=[], yticks=[])
        ax.set_title(word(title, lang), fontsize=10, loc="left")
        ax.set_frame_on(False)
    return figure
