"""Figures of the book's width and their panels."""

from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from posenc.plot._style import WIDTH


def new_figure(
    height: float, *, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of the book's width, `height` inches high, and its axes in reading order."""
    figure, axes = plt.subplots(
        rows, columns, figsize=(WIDTH, height), squeeze=False, layout="constrained", **options
    )
    return figure, list(axes.flat)


def given_or_new(ax: Axes | None, height: float) -> Axes:
    """The axes of the caller, or those of a new figure."""
    return new_figure(height)[1][0] if ax is None else ax


def new_panels(
    n: int, margin: float, height: float, *, square: bool = False, **options: Any
) -> tuple[Figure, list[Axes], Axes | list[Axes]]:
    """A figure with n panels in two columns, or one alone; the panels, and where a bar of colours goes.

    A row is `height` inches high, or, if its panels are square, as high as they are with all of them that
    wide. The bar goes into the cell that an odd number leaves, or else beside all.
    """
    columns = min(2, n)
    rows = -(-n // columns)
    side = height / columns if square else height
    figure, axes = new_figure(margin + side * rows, rows=rows, columns=columns, **options)
    for ax in axes[n:]:
        ax.set_axis_off()
    return figure, axes[:n], axes[-1] if n < len(axes) else axes


def quiet(ax: Axes) -> Axes:
    """Without the box around the data: only the two axes that carry numbers."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax
