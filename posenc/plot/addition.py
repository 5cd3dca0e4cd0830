"""Pictures of how codes join embeddings: arrows, tables, three steps of training, and what is read back."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from posenc._arrays import Array
from posenc.addition import add_positions
from posenc.plot._checks import as_names, as_numbers
from posenc.plot._dials import hand
from posenc.plot._figures import given_or_new, new_figure, quiet
from posenc.plot._labels import name_axes
from posenc.plot._maps import color_bar, even_scale, framed, signed_map
from posenc.plot._style import BLUE, GREEN, GREY, ORANGE, Lang, picture, word


@picture
def vector_sum(embedding: Array, codes: Array, *, ax: Axes | None = None, lang: Lang = "en") -> Axes:
    """One embedding plus several codes in the plane: each sum is the far corner of a parallelogram.

    With exactly two codes dotted lines join the two codes and the two sums, with their length: it is the
    same.

    Args:
        embedding: shape (2,).
        codes: shape (n, 2), one to three codes.

    Source: a picture of this book, drawn in addition.md#plane.
    """
    e, rows = as_numbers("embedding", embedding, (2,)), as_numbers("codes", codes, ("n", 2), most=3)
    sums = add_positions(np.broadcast_to(e, rows.shape), rows)
    ax = given_or_new(ax, 4.2)
    groups = (
        ("token embedding", e[None], BLUE, "-", "o", 3.2),
        ("position code", rows, ORANGE, "--", "s", 1.8),
        ("sum", sums, GREEN, "-.", "^", 1.8),
    )
    for name, vectors, color, line, marker, width in groups:
        for k, tip in enumerate(vectors):
            label = word(name, lang) if k == 0 else None
            hand(ax, tip, color, line, marker, linewidth=width, label=label)
    for p, total in zip(rows, sums, strict=True):
        for corner in (p, e):
            ax.plot(*zip(corner, total, strict=True), color=GREY, linewidth=0.8)
    if len(rows) == 2:
        # The diagonals of a parallelogram cross in the middle, so the lower number stands aside.
        for (a, b), place, side in ((rows, 0.1, "right"), (sums, 0.5, "left")):
            ax.plot(*zip(a, b, strict=True), color=GREY, linestyle=":", linewidth=2)
            shift = (6 if side == "left" else -6, 0)
            ax.annotate(
                f"{math.dist(a, b):.3f}", a + place * (b - a), shift, textcoords="offset points",
                ha=side, va="center",
            )  # fmt: skip
    for points, shift, side in ((rows, (6, -9), "left"), (np.vstack([e[None], sums]), (-7, 5), "right")):
        for x, y in points:
            if points is rows and (x, y) == tuple(e):
                continue  # a code that equals the embedding: one label is enough
            ax.annotate(f"({x:g}, {y:g})", (x, y), shift, textcoords="offset points", ha=side, fontsize=10)
    ax.set_aspect("equal")
    ax.set(xlabel=f"{word('dimension', lang)} 0", ylabel=f"{word('dimension', lang)} 1")
    quiet(ax).legend(frameon=False, fontsize=10, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return ax


@picture
def table_sum(x: Array, pe: Array, *, tokens: Sequence[str] | None = None, lang: Lang = "en") -> Figure:
    """Embeddings, codes and their sum as three tables: a row for each token, a column for each dimension, one scale.

    Args:
        x, pe: embeddings and codes, shape (seq, dim).
        tokens: names of the rows; their positions if None.

    Source: a picture of this book, drawn in addition.md#shapes.
    """
    embeddings = as_numbers("x", x, ("seq", "dim"))
    codes = as_numbers("pe", pe, embeddings.shape)
    names = as_names("tokens", tokens, len(embeddings))
    tables = (embeddings, codes, add_positions(embeddings, codes))
    most = even_scale(*tables)
    figure, axes = new_figure(0.9 + 0.3 * len(embeddings), columns=3, sharey=True)
    figure.set_layout_engine(ConstrainedLayoutEngine(wspace=0.08))  # room for the signs
    words = ("token embedding", "position code", "sum")
    for ax, table, name, sign in zip(axes, tables, words, ("", "+", "="), strict=True):
        image = signed_map(ax, table, most)
        framed(ax).set_title(word(name, lang), fontsize=10)
        ax.set(xticks=(), xlabel=f"{table.shape[0]} × {table.shape[1]}")
        ax.tick_params(left=ax is axes[0])
        ax.text(-0.08, 0.5, sign, transform=ax.transAxes, ha="right", va="center", fontsize=14)
    axes[0].set_yticks(range(len(names)), labels=names)
    color_bar(image, axes, word("value", lang), (-most, 0, most))
    return figure


@picture
def training_panels(
    embedding: Array, codes: Array, *, tokens: Sequence[str] | None = None, lang: Lang = "en"
) -> Figure:
    """What training has changed since its start: one column for each step, embeddings above, position codes below.

    Each panel is a table of changes, all with one scale, and says the largest. White has not moved.

    Args:
        embedding: the embeddings before and after each step, shape (steps + 1, n_tokens, dim), as in
            `posenc.experiments.TrainingSteps`; one to four steps.
        codes: the same of the codes, shape (steps + 1, n_positions, dim).
        tokens: names of the embeddings; their ids if None.

    Source: a picture of this book, drawn in addition.md#fixed-and-trained.
    """
    above = as_numbers("embedding", embedding, ("steps + 1", "n_tokens", "dim"), most=5)
    steps = len(above) - 1
    if steps < 1:
        raise ValueError("embedding must hold the start and at least one step, got 1")
    below = as_numbers("codes", codes, (steps + 1, "n_positions", "dim"))
    names = as_names("tokens", tokens, above.shape[1]), as_names("codes", None, below.shape[1])
    changes = [table[1:] - table[0] for table in (above, below)]
    most = even_scale(*changes)
    heights = [len(rows) + 2 for rows in names]
    height = 0.4 + 0.19 * sum(heights)
    figure, axes = new_figure(height, rows=2, columns=steps, sharey="row", height_ratios=heights)
    for k, ax in enumerate(axes):
        row, step = divmod(k, steps)
        change = changes[row][step]
        image = signed_map(framed(ax), change, most)
        which = f"{word('step', lang).format(step + 1)}\n" if row == 0 else ""
        largest = np.abs(change).max(initial=0)
        ax.set_title(f"{which}{word('largest', lang)} {largest:.2f}", fontsize=10, pad=3)
        ax.set_xticks(())
        ax.set_yticks(range(len(names[row])), labels=names[row], fontsize=10)
        ax.tick_params(left=step == 0)
        if row == 1:
            name_axes(ax, lang, "dimension")
    name_axes(axes[0], lang, None, "token embedding")
    name_axes(axes[steps], lang, None, "position code")
    figure.align_ylabels()
    color_bar(image, axes, word("change", lang), (-most, 0, most), shrink=0.8)
    return figure
