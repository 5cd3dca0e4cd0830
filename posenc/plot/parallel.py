"""Pictures of a sequence that is cut into shards, one for each machine."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from posenc._checks import integer
from posenc.parallel import Scheme, ring_work, shard_positions
from posenc.plot._style import GREY, ORANGE, Lang, check_lang, framed, given_or_new, new_panels, on_cell, word

__all__ = ["ring_schedule", "shard_rows"]

_SCHEMES: tuple[Scheme, ...] = ("contiguous", "zigzag", "striped")


def shard_rows(n: int, world: int, *, ax: Axes | None = None, lang: Lang = "en") -> Axes:
    """Which rank holds which position: one row a scheme, one cell a position with the number of its rank.

    Args:
        n: tokens, at most 32, a multiple of 2 · world; see `posenc.shard_positions`.
        world: number of ranks.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        ValueError: more positions than fit, or as in `shard_positions`.

    >>> ax = shard_rows(16, 4)
    """
    check_lang(lang, ax)
    n, world = _at_most("n", n, 32), integer("world", world, minimum=1)
    ranks = np.empty((len(_SCHEMES), n), dtype=int)
    for row, scheme in zip(ranks, _SCHEMES, strict=True):
        for rank in range(world):
            row[shard_positions(n, rank, world, scheme=scheme)] = rank
    ax = given_or_new(ax, 2.0)
    # The darkest shade is left out: neighbours of it could not be told apart.
    image = framed(ax).imshow(ranks, cmap="Blues", vmin=-0.5, vmax=world, interpolation="none", aspect="auto")
    for (row, t), rank in np.ndenumerate(ranks):
        ax.text(t, row, str(rank), ha="center", va="center", color=on_cell(image, rank), fontsize=10)
    for edge in range(1, len(_SCHEMES)):
        ax.axhline(edge - 0.5, color=GREY, linewidth=0.8)
    ax.set(xlabel=word("position", lang))
    ax.set_yticks(range(len(_SCHEMES)), labels=[word(scheme, lang) for scheme in _SCHEMES])
    return ax


def ring_schedule(n: int, world: int, *, lang: Lang = "en") -> Figure:
    """How many scores each rank computes in each step of a causal ring; the slowest of a step is framed.

    Above each map stands how long the ring takes: the slowest of every step, added up.

    Args:
        n, world: as in `posenc.shard_positions`, n a multiple of 2 · world; at most 8 ranks.
        lang: language of the labels, "en" or "zh".

    Returns:
        The figure.

    Raises:
        ValueError: more ranks than fit, or as in `shard_positions`.

    >>> figure = ring_schedule(16, 4)
    """
    check_lang(lang)
    world = _at_most("world", world, 8)
    works = [ring_work(n, world, scheme=scheme) for scheme in _SCHEMES]
    figure, axes, _ = new_panels(len(works), 1.0, 2.0)
    most = max(1, *(int(work.max()) for work in works))
    for ax, scheme, work in zip(axes, _SCHEMES, works, strict=True):
        image = framed(ax).imshow(work, cmap="Blues", vmin=0, vmax=most, interpolation="none", aspect="auto")
        for (rank, step), pairs in np.ndenumerate(work):
            color = on_cell(image, pairs)
            ax.text(step, rank, str(pairs), ha="center", va="center", color=color, fontsize=10)
        for step, slowest in enumerate(work.argmax(axis=0)):
            frame = Rectangle(
                (step - 0.47, slowest - 0.47), 0.94, 0.94, fill=False, edgecolor=ORANGE, linewidth=2
            )
            ax.add_patch(frame)
        total = word("ring time", lang).format(work.max(axis=0).sum())
        ax.set_title(f"{word(scheme, lang)}\n{total}", fontsize=10, loc="left")
        ax.set(xlabel=word("ring step", lang), xticks=range(world), yticks=range(world))
        ax.set_ylabel(word("rank", lang))
    return figure


def _at_most(name: str, value: int, most: int) -> int:
    number = integer(name, value, minimum=1)
    if number > most:
        raise ValueError(f"{name} must be at most {most} in a picture, got {number}")
    return number
