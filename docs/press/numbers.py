"""Numbers in texts, in code and in drawings, and whether one that is written stands among them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WRITTEN = re.compile(
    r"(?<![A-Za-z\d.,_-])((?<![\w)\]])[-−])?(\d+(?:,\d{3})*(?:\.\d+)?)(?:st|nd|rd|th)?"
    r"(?: ?(%|percent|thousand|million|billion|\u4e07|\u4ebf))?(?![A-Za-z\d_])"
)
_ZEROS = {"thousand": 3, "million": 6, "billion": 9, "\u4e07": 4, "\u4ebf": 8}
MANY = 100  # of more points a reader sees the ends and the turns
_GREY = "#767676"
_DASHES = {1: "solid", 4: "dashdot", 6: "dashdotdot"}  # by the length of the pattern
_MARKERS = dict(zip("os^Dv.", ("circles", "squares", "triangles", "diamonds", "wedges", "dots"), strict=True))


def written(words: str) -> Iterator[str]:
    """The numbers of a text in digits, one way of writing each.

    >>> list(written("−1,000 of 1.1 million, 90 percent, float32"))
    ['-1000', '1100000', '90%']
    """
    for sign, digits, unit in _WRITTEN.findall(words):
        number = digits.replace(",", "")
        if unit in _ZEROS:
            number = str(round(float(number) * 10 ** _ZEROS[unit]))
        yield ("-" if sign else "") + number + ("%" if unit and unit not in _ZEROS else "")


def together(words: str) -> str:
    """A caption, in which a space stands where prose has a comma: 6 283."""
    return re.sub(r"(?<=\d) (?=\d{3}(?!\d))", "", words)


def in_code(text: str) -> Iterator[float]:
    """Those of code, output or formulas, without signs: 1e-9 and 100_000, too.

    >>> list(in_code("x = 1e-9 * 100_000 - y2 - 0.5"))
    [1e-09, 100000.0, 0.5]
    """
    text = re.sub(r"(?<=\d)[_,](?=\d{3})", "", text)
    for digits, percent in re.findall(
        r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?(?:e[-+]?\d+)?)(\s?\\?%|,? percent)?", text
    ):
        yield float(digits)
        if percent:
            yield float(digits) / 100


def stands(number: str, values: Iterable[float]) -> bool:
    """Whether a number, as it is written, is one of the values, rounded; sign and percent apart.

    >>> stands("0.67", [0.6652]), stands("67%", [0.6652]), stands("0.68", [0.6652])
    (True, True, False)
    """
    digits = number.strip("-%")
    value, half = float(digits), 0.5001 * 10.0 ** -len(digits.partition(".")[2])
    scale = 100 if "%" in number else 1
    return any(abs(scale * abs(other) - value) <= half for other in values)


def drawn(figure: Figure) -> list[float]:
    """What can be read off a figure that has been drawn, so that its ticks have their words.

    These are words, limits, sizes, and the points of all that is drawn.
    """
    import numpy as np
    from matplotlib.text import Text

    rows: list[Any] = [list(in_code(together(text.get_text()))) for text in figure.findobj(Text)]
    for axes in figure.get_axes():
        rows += [axes.get_xlim(), axes.get_ylim()]
        rows += [row for line in axes.get_lines() for row in (line.get_xdata(False), line.get_ydata(False))]
        paths = [patch.get_patch_transform().transform_path(patch.get_path()) for patch in axes.patches]
        for shape in [*axes.collections, *axes.images]:
            if (values := shape.get_array()) is not None:
                rows += [values.shape, shape.get_clim(), np.ma.asarray(values, float).filled(np.nan)]
        for collection in axes.collections:
            rows += [*np.transpose(np.asarray(collection.get_offsets(), float))]
            paths += collection.get_paths()
        rows += [row for path in paths for row in np.transpose(np.asarray(path.vertices, float))]
    found: set[float] = set()
    for row in rows:
        points = np.abs(np.ravel(np.asarray(row, float)))
        points = points[np.isfinite(points)]
        if points.size > MANY:  # the ends and the turns
            rises = np.sign(np.diff(points))
            turns = np.flatnonzero(rises[1:] * rises[:-1] < 0)[:MANY] + 1
            points = np.concatenate([points[[0, -1]], points[turns], [points.min(), points.max()]])
        found |= {float(f"{point:.6g}") for point in points}
    return sorted(found)


def panels(figure: Figure) -> list[dict[str, Any]]:
    """The curves, bars and maps of each pair of axes, as numbers; bars of colours are no panels."""
    import numpy as np

    found = []
    for ax in figure.get_axes():
        if hasattr(ax, "_colorbar") or not ax.axison:
            continue
        curves = [
            (_looks(line), line.get_xdata(False), line.get_ydata(False))
            for line in ax.get_lines()
            if line.get_transform() == ax.transData  # an axhline is a ruler and no curve
        ]
        bars: Any  # Matplotlib's types know nothing of what lies in a container
        for bars in ax.containers:
            boxes = [patch.get_bbox() for patch in bars.patches]
            upright = bars.orientation == "vertical"
            places = [(box.x0 + box.x1) / 2 if upright else (box.y0 + box.y1) / 2 for box in boxes]
            look = "hatched" if bars.patches[0].get_hatch() else "bars"
            curves.append(([look], places, [box.y1 if upright else box.x1 for box in boxes]))
        for patch in ax.patches:
            if type(patch).__name__ == "StepPatch":
                heights, edges, _ = patch.get_data()  # type: ignore[attr-defined]
                curves.append((["outline"], (edges[1:] + edges[:-1]) / 2, heights))
        maps: list[Any] = [np.ma.asarray(image.get_array(), float).filled(np.nan) for image in ax.images]
        found.append(
            {
                "heights": list(map(float, ax.get_ylim())),
                "log": ax.get_yscale() == "log",
                "curves": [{"looks": looks, "x": _short(x), "y": _short(y)} for looks, x, y in curves],
                "maps": [[_short(row) for row in table] for table in maps if table.ndim == 2],
            }
        )
    return found


def _looks(line: Any) -> list[str]:
    looks = [_MARKERS[line.get_marker()]] if line.get_marker() in _MARKERS else []
    if line.get_color() == _GREY:
        return [*looks, "grey"]
    if line.get_linestyle() != "None" and len(line.get_xdata(False)) > 1:
        pattern = line._unscaled_dash_pattern[1] or [0]  # get_linestyle() calls each of them "--"
        looks.append(_DASHES.get(len(pattern)) or ("dashed" if pattern[0] > pattern[1] else "dotted"))
    return looks


def _short(row: Any) -> list[float]:
    return [float(f"{value:.6g}") for value in row]
