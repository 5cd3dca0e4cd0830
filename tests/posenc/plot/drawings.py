"""What a picture shows, as numbers and words."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D


def points(line: Line2D) -> np.ndarray:
    """The points of a curve, shape (n, 2)."""
    return np.asarray(line.get_xydata(), dtype=float)


def table(ax: Axes) -> np.ndarray:
    """The numbers of the one map on these axes."""
    (image,) = ax.images
    numbers: np.ndarray = np.ma.getdata(np.ma.asarray(image.get_array()))
    return numbers


def curves(ax: Axes) -> dict[str, list[float]]:
    """The heights of each labelled curve, by its label."""
    lines = {str(line.get_label()): line for line in ax.lines}
    return {label: points(line)[:, 1].tolist() for label, line in lines.items() if label[0] != "_"}


def texts(ax: Axes) -> list[str]:
    """The words written into the axes."""
    return [text.get_text() for text in ax.texts]


def legend(ax: Any) -> list[str]:
    """The words of the legend."""
    return [text.get_text() for text in ax.get_legend().get_texts()]
