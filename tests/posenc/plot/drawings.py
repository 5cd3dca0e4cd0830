"""What a picture shows, as numbers and words."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle


def points(line: Line2D) -> np.ndarray:
    """The points of a curve, shape (n, 2)."""
    return np.asarray(line.get_xydata(), dtype=float)


def marked(ax: Axes, marker: str) -> list[list[float]]:
    """The points of all lines with this mark."""
    return [point for line in ax.lines if line.get_marker() == marker for point in points(line).tolist()]


def table(ax: Axes) -> np.ndarray:
    """The numbers of the one map on these axes."""
    (image,) = ax.images
    numbers: np.ndarray = np.ma.getdata(np.ma.asarray(image.get_array()))
    return numbers


def curves(ax: Axes) -> dict[str, list[float]]:
    """The heights of each labelled curve, by its label."""
    lines = {str(line.get_label()): line for line in ax.lines}
    return {label: points(line)[:, 1].tolist() for label, line in lines.items() if label[0] != "_"}


def boxes(ax: Axes, color: str | None = None) -> list[Rectangle]:
    """The rectangles of one colour, or all."""
    found = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    return [box for box in found if color in (None, to_hex(box.get_facecolor()))]


def texts(ax: Axes) -> list[str]:
    """The words written into the axes."""
    return [text.get_text() for text in ax.texts]


def cells(ax: Axes) -> dict[tuple[float, float], str]:
    """The words written into the axes, by their place."""
    return {text.get_position(): text.get_text() for text in ax.texts}


def ticks(axis: Axis) -> list[str]:
    """The words along an axis."""
    return [text.get_text() for text in axis.get_ticklabels()]


def titles(figure: Figure, loc: str = "left") -> list[str]:
    """The titles of the panels."""
    return [ax.get_title(loc=loc) for ax in figure.axes if ax.get_title(loc=loc)]  # type: ignore[arg-type]


def legend(drawing: Any) -> list[str]:
    """The words of the legend of axes or of a figure."""
    found = drawing.legends[0] if isinstance(drawing, Figure) else drawing.get_legend()
    return [text.get_text() for text in found.get_texts()]
