"""Pictures of padding and masks."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from posenc._arrays import Array
from posenc.masks import key_padding_mask, leak_in, leak_out, positions_from_mask
from posenc.plot._checks import as_integers, as_labelled, as_mask, as_numbers, check_count, check_labelled
from posenc.plot._figures import given_or_new, new_figure, quiet
from posenc.plot._labels import name_axes, title
from posenc.plot._maps import blue_map, color_bar, cross_out
from posenc.plot._style import BLUE, GREY, ORANGE, Lang, picture, word

# Behind a pad, on light and dark pages.
PALE = "#ffe9dc"


@picture
def attention_pair(
    weights: Array, masked_weights: Array, padding_mask: Array, *, lang: Lang = "en"
) -> Figure:
    """Attention without and with a key-padding mask, side by side; the masked keys are crossed out.

    Args:
        weights, masked_weights: shape (n, n), of one sequence, as `posenc.dot_product_attention` returns them.
        padding_mask: bool (n,), True at pads.

    Above each map stands how much attention the real queries spend on pads.

    Source: a picture of this book, drawn in masks.md#leak-in.
    """
    pads = as_mask("padding_mask", padding_mask, ("n",))
    n = len(pads)
    pair = as_numbers("weights", weights, (n, n)), as_numbers("masked_weights", masked_weights, (n, n))
    figure, axes = new_figure(3.0, columns=2, sharey=True)
    most = max(shown.max(initial=0) for shown in pair)
    for ax, shown, name in zip(axes, pair, ("no mask", "key mask"), strict=True):
        image = blue_map(ax, shown, most)
        if name == "key mask":
            cross_out(ax, np.broadcast_to(pads, (n, n)))
        for edge in np.flatnonzero(pads[1:] != pads[:-1]) + 0.5:
            ax.plot((edge, edge), (-0.5, n - 0.5), color=ORANGE, linestyle="--", linewidth=1.2)
            ax.plot((-0.5, n - 0.5), (edge, edge), color=ORANGE, linestyle="--", linewidth=1.2)
        ax.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5))
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(5, integer=True))
        leak = f"{word('leak', lang)} {100 * leak_in(shown, pads):.0f}{'%' if lang == 'zh' else ' %'}"
        name_axes(ax, lang, "key position").set_title(f"{word(name, lang)}\n{leak}", fontsize=10)
    name_axes(axes[0], lang, None, "query position")
    color_bar(image, axes, word("attention weight", lang), (0, most), shrink=0.6)
    return figure


@picture
def leak_paths(
    layers: Sequence[Array], padding_mask: Array, *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """Both leaks through the layers: from the bottom up, a line from each key to each query that reads it.

    Orange, solid: a real query reads a pad (leak in). Blue, dashed: a pad reads a real token (leak out). Grey
    is the rest. The thicker the line, the larger the attention weight.

    Args:
        layers: the attention weights of each layer, shape (n, n), from the first layer on; at most three.
        padding_mask: bool (n,), True at pads.

    At the right of each layer stand its two leaks, `leak_in` and `leak_out`.

    Source: a picture of this book, drawn in masks.md#leak-out.
    """
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


@picture
def mask_maps(masks: Mapping[str, Array], *, lang: Lang = "en") -> Figure:
    """Masks as pictures, side by side: a row for each query, a column for each key, filled where it may be seen.

    A query that may see no key at all is marked by an orange line.

    Args:
        masks: a title and a bool mask (n_q, n_k), True where not allowed; one to three.

    Source: a picture of this book, drawn in masks.md#no-key.
    """
    check_labelled("masks", masks, 3)
    shown = {name: as_mask(f"masks[{name!r}]", mask, ("n_q", "n_k")) for name, mask in masks.items()}
    figure, axes = new_figure(0.9 + 4.2 / len(masks) if len(masks) > 1 else 3.4, columns=len(masks))
    for ax, (name, mask) in zip(axes, shown.items(), strict=True):
        for t, u in np.ndindex(mask.shape):
            look = ("none", GREY) if mask[t, u] else (BLUE, BLUE)
            box = Rectangle((u - 0.42, t - 0.42), 0.84, 0.84, linewidth=0.8, fc=look[0], ec=look[1])
            ax.add_patch(box)
        for t in np.flatnonzero(mask.all(axis=1)):
            ax.plot((-0.42, mask.shape[1] - 0.58), (t, t), color=ORANGE, linewidth=2)
        ax.set(xlim=(-0.6, mask.shape[1] - 0.4), ylim=(mask.shape[0] - 0.4, -0.6), aspect="equal")
        name_axes(ax, lang, "key position").set_title(name, fontsize=10)
        ax.set_frame_on(False)
        ax.tick_params(length=0)
        step = -(-max(mask.shape) // 8)
        ax.set(xticks=range(0, mask.shape[1], step), yticks=range(0, mask.shape[0], step))
    name_axes(axes[0], lang, None, "query position")
    return figure


@picture
def output_mask_bars(
    changes: Mapping[str, tuple[float, float]], *, ax: Axes | None = None, lang: Lang = "en"
) -> Axes:
    """What pads change, without and with an output mask: a pair of bars for each case.

    Args:
        changes: the name of a case, and its change without and with an output mask.

    Changes below 1e-9 are rounding and stand as 0.

    Source: a picture of this book, drawn in masks.md#output-mask.
    """
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
    name_axes(ax, lang, "largest change").set_ylim(len(changes) - 0.4, -0.6)
    ax.set_xlim(0, 1.15 * max(float(values.max()), 1e-9))
    # Over the names as well: beside long ones there is little room.
    quiet(ax).legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, columnspacing=1.2)
    return ax


@picture
def padding_sides(lengths: Sequence[int], *, lang: Lang = "en") -> Figure:
    """The same sequences padded right and left, and the position that each token gets.

    Three panels: pads on the right, counted by place; on the left, counted by place; on the left, counted
    from the first real token. Pads are hatched. A position that differs from the unpadded one is orange.

    Args:
        lengths: number of real tokens of each sequence; at least one, each from 1 to 12.

    Source: a picture of this book, drawn in masks.md#left.
    """
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
    for ax, (name, mask, positions) in zip(axes, panels, strict=True):
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
        title(ax, word(name, lang))
        ax.set_frame_on(False)
    return figure
