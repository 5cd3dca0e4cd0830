"""Tables as colours: scales that are even about 0, cells with numbers, bars that explain."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.image import AxesImage

from posenc.plot._labels import signed
from posenc.plot._style import GREY


def even_scale(*tables: np.ndarray) -> float:
    """The largest absolute value of all tables, for colours from minus that to that; 1 if all are 0."""
    return max(float(np.abs(table).max(initial=0)) for table in tables) or 1.0


def signed_map(ax: Axes, table: np.ndarray, most: float, **options: Any) -> AxesImage:
    """A table in colours from blue at −most to red at most; white is 0."""
    options = {"cmap": "RdBu_r", "aspect": "auto", "interpolation": "none", **options}
    return ax.imshow(table, vmin=-most, vmax=most, **options)


def blue_map(ax: Axes, table: np.ndarray, most: float, *, least: float = 0, **options: Any) -> AxesImage:
    """A table in shades of blue from `least` to `most`, in a box, for a light cell ends nowhere on a light page."""
    return framed(ax).imshow(
        table, cmap="Blues", vmin=least, vmax=most, **{"interpolation": "none", **options}
    )


def framed(ax: Axes) -> Axes:
    """With a box around the data."""
    ax.spines[:].set_visible(True)
    return ax


def cross_out(ax: Axes, cells: np.ndarray, size: float = 6) -> None:
    """A cross in each cell of a map for which `cells` is True."""
    rows, columns = np.nonzero(cells)
    ax.plot(columns, rows, linestyle="none", marker="x", color=GREY, markersize=size)


def write_cells(ax: Axes, image: AxesImage, cells: Iterable[tuple[int, int]], texts: Iterable[str]) -> None:
    """A text in each of these cells (row, column) of a map, in the ink that can be read there."""
    values = np.asarray(image.get_array())
    for (row, column), text in zip(cells, texts, strict=True):
        ink = on_cell(image, values[row, column])
        ax.text(column, row, text, ha="center", va="center", color=ink, fontsize=10)


def on_cell(image: AxesImage, value: float) -> str:
    """White or a black that no page turns light, whichever can be read better in a cell of a map."""
    rgb = np.asarray(image.to_rgba(np.array([value])))[0, :3]
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126, 0.7152, 0.0722)
    # The contrast with white is 1.05 / (luminance + 0.05), that with black (luminance + 0.05) / 0.05 (WCAG).
    return "white" if (luminance + 0.05) ** 2 < 1.05 * 0.05 else "#010101"


def color_bar(
    image: ScalarMappable,
    axes: Axes | Sequence[Axes],
    label: str,
    ticks: Sequence[float],
    shrink: float = 0.9,
) -> Colorbar:
    """What the colours of a map mean: a bar with a name and a few numbers, on the right of the axes.

    In axes without an axis, a cell of a grid that no map needs, it lies instead.
    """
    figure = (axes if isinstance(axes, Axes) else axes[0]).figure
    if isinstance(axes, Axes) and not axes.axison:
        place = axes.inset_axes((0.05, 0.5, 0.9, 0.08))
        bar = figure.colorbar(image, cax=place, orientation="horizontal", label=label)
    else:
        bar = figure.colorbar(image, ax=axes, label=label, shrink=shrink, aspect=25, pad=0.02)
    if bar.solids is not None:
        bar.solids.set_rasterized(True)  # one picture, and not a path for each shade
    bar.set_ticks(list(ticks), labels=[signed(f"{tick:.3g}") for tick in ticks])
    return bar
