"""Pictures of a sequence that is cut into shards, one for each machine."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from posenc._checks import integer
from posenc.parallel import Scheme, ring_work, shard_positions
from posenc.plot._curves import zero_line
from posenc.plot._figures import given_or_new, new_panels
from posenc.plot._labels import name_axes, title
from posenc.plot._maps import blue_map, write_cells
from posenc.plot._style import ORANGE, Lang, picture, word

_SCHEMES: tuple[Scheme, ...] = ("contiguous", "zigzag", "striped")


@picture
def shard_rows(n: int, world: int, *, ax: Axes | None = None, lang: Lang = "en") -> Axes:
    """Which rank holds which position: a row for each scheme, and in it each position with its rank.

    Args:
        n: tokens, at most 32, a multiple of 2 · world; see `posenc.shard_positions`.
        world: number of ranks.

    Source: a picture of this book, drawn in parallel.md#balance.
    """
    n, world = _at_most("n", n, 32), integer("world", world, minimum=1)
    ranks = np.empty((len(_SCHEMES), n), dtype=int)
    for row, scheme in zip(ranks, _SCHEMES, strict=True):
        for rank in range(world):
            row[shard_positions(n, rank, world, scheme=scheme)] = rank
    ax = given_or_new(ax, 2.0)
    # The darkest shade is left out: neighbours of it could not be told apart.
    image = blue_map(ax, ranks, world, least=-0.5, aspect="auto")
    write_cells(ax, image, np.ndindex(ranks.shape), map(str, ranks.flat))
    for edge in range(1, len(_SCHEMES)):
        zero_line(ax, edge - 0.5)
    name_axes(ax, lang, "position")
    ax.set_yticks(range(len(_SCHEMES)), labels=[word(scheme, lang) for scheme in _SCHEMES])
    return ax


@picture
def ring_schedule(n: int, world: int, *, lang: Lang = "en") -> Figure:
    """How many scores each rank computes in each step of a causal ring; the slowest of a step is framed.

    Above each map stands how long the ring takes: the slowest of every step, added up.

    Args:
        n, world: as in `posenc.shard_positions`, n a multiple of 2 · world; at most 8 ranks.

    Source: a picture of this book, drawn in parallel.md#balance.
    """
    world = _at_most("world", world, 8)
    works = [ring_work(n, world, scheme=scheme) for scheme in _SCHEMES]
    figure, axes, _ = new_panels(len(works), 1.0, 2.0)
    most = max(1, *(int(work.max()) for work in works))
    for ax, scheme, work in zip(axes, _SCHEMES, works, strict=True):
        image = blue_map(ax, work, most, aspect="auto")
        write_cells(ax, image, np.ndindex(work.shape), map(str, work.flat))
        for step, slowest in enumerate(work.argmax(axis=0)):
            corner = (step - 0.47, slowest - 0.47)
            ax.add_patch(Rectangle(corner, 0.94, 0.94, fill=False, edgecolor=ORANGE, linewidth=2))
        total = word("ring time", lang).format(work.max(axis=0).sum())
        title(ax, f"{word(scheme, lang)}\n{total}")
        name_axes(ax, lang, "ring step", "rank").set(xticks=range(world), yticks=range(world))
    return figure


def _at_most(name: str, value: int, most: int) -> int:
    number = integer(name, value, minimum=1)
    if number > most:
        raise ValueError(f"{name} must be at most {most} in a picture, got {number}")
    return number
