"""What a reader would stumble over in a figure: a check gives a list of faults.

Each has its examples: what is drawn, and what the check says of it. How colours stand out: tests/site/contrast.py.
"""

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.spines import Spine
from matplotlib.text import Text

from posenc.plot._style import COLORS
from tests.planted import Checks
from tests.site.contrast import FAINT

BROADER = 1.5  # as many times as broad is seen to be broader

FIGURE = Checks()  # of a figure; bad is what is drawn into its axes


# --- Told apart without colour ------------------------------------------------------------------------------

# What a mark looks like without its colour: a width that may differ by a factor, and what must be equal.
Form = tuple[float, tuple[object, ...]]


@FIGURE(
    (lambda ax: [ax.plot([k, 2], color=COLORS[k]) for k in range(2)], "only its colour"),
    (
        lambda ax: [ax.plot([k, 2], color=COLORS[k], linewidth=1 + 0.3 * k) for k in range(2)],
        "only its colour",
    ),
    (lambda ax: [ax.plot(k, k, "o", color=COLORS[k]) for k in range(2)], "only its colour"),
    (lambda ax: [ax.plot([k, 2], color="black", label=str(k)) for k in range(2)], "0: only its colour"),
    (lambda ax: [ax.bar(k, 2, color=COLORS[k]) for k in range(2)], "only its colour"),
    (lambda ax: [ax.scatter([k], [k], color=COLORS[k]) for k in range(2)], "only its colour"),
    (lambda ax: [ax.vlines([k], 0, 1, color=COLORS[k]) for k in range(2)], "only its colour"),
)
def told_apart(figure: Figure) -> list[str]:
    """Marks on one pair of axes that differ by colour alone, and labels whose marks look alike."""
    found = []
    for ax in figure.axes:
        marks = dict.fromkeys(_marks(ax))
        for (color, form, label), (other, other_form, other_label) in itertools.combinations(marks, 2):
            if _alike(form, other_form) and (
                color != other or (label and other_label and label != other_label)
            ):
                found.append(
                    f"{label or form}: only its colour {color} tells it from {other} {other_label}".rstrip()
                )
    return found


def _alike(one: Form, other: Form) -> bool:
    broad, thin = max(one[0], other[0]), min(one[0], other[0])
    return one[1] == other[1] and broad < BROADER * max(thin, 1e-9)


def _marks(ax: Axes) -> Iterator[tuple[str, Form, str]]:
    """Colour, form and label of each mark; equal ones of a series come several times."""
    for artist in ax.get_children():
        name = str(artist.get_label())
        label = "" if name.startswith("_") else name
        faint = (artist.get_alpha() or 1.0) < FAINT
        if not artist.get_visible():
            continue
        if isinstance(artist, Line2D):
            bare = artist.get_linestyle() == "None"
            color: Any = artist.get_markerfacecolor() if bare else artist.get_color()
            width = artist.get_markersize() if bare else artist.get_linewidth()
            # the pattern itself: get_linestyle() calls each of them "--"
            dashes = None if bare else artist._unscaled_dash_pattern  # type: ignore[attr-defined]
            yield to_hex(color), (width, ("line", str(dashes), str(artist.get_marker()), faint)), label
        elif isinstance(artist, Patch) and not isinstance(artist, Spine) and artist is not ax.patch:
            filled = to_rgba(artist.get_facecolor())[3] > 0
            color = artist.get_facecolor() if filled else artist.get_edgecolor()
            form = ("field", filled, artist.get_hatch(), str(artist.get_linestyle()), faint)
            if to_rgba(color)[3] > 0:
                yield to_hex(color), (artist.get_linewidth(), form), label
        elif isinstance(artist, Collection) and len(artist.get_facecolor()) + len(artist.get_edgecolor()):
            colors: Any = artist.get_facecolor() if len(artist.get_facecolor()) else artist.get_edgecolor()
            dashes = [str(style) for style in artist.get_linestyle()]
            kind = (type(artist).__name__, artist.get_hatch(), *dashes)
            for each in sorted({to_hex(tuple(color)) for color in colors}):
                yield each, (float(np.max(artist.get_linewidth())), kind), label


# --- Explained ----------------------------------------------------------------------------------------------


@FIGURE(
    (lambda ax: ax.imshow(np.eye(3)), "a map has neither a bar of colours nor numbers in its cells"),
    (lambda ax: ax.plot([1, 2]), "numbers along the horizontal axis and no name"),
    (lambda ax: ax.plot([1, 2]), "numbers along the vertical axis and no name"),
    (lambda ax: ax.figure.colorbar(ax.imshow(np.eye(3))), "a bar of colours without a name"),
)
def explained(figure: Figure) -> list[str]:
    """Maps whose colours nothing explains, and numbers along an axis that nothing names."""
    bars = [ax for axes in figure.axes for ax in (axes, *axes.child_axes) if hasattr(ax, "_colorbar")]
    found = ["a bar of colours without a name" for ax in bars if not ax.get_xlabel() and not ax.get_ylabel()]
    drawn = [ax for ax in figure.axes if ax not in bars and ax.axison]
    for ax in figure.axes:
        if ax.images and not bars and not ax.texts:
            found.append("a map has neither a bar of colours nor numbers in its cells")
    names = {
        "horizontal": [figure.get_supxlabel(), *(ax.get_xlabel() for ax in drawn)],
        "vertical": [
            figure.get_supylabel(),
            *(text for ax in drawn for text in (ax.get_ylabel(), ax.get_title(), ax.get_title(loc="left"))),
        ],
    }
    for which, named in names.items():
        ticks = [text for ax in drawn for text in _ticks(ax.xaxis if which == "horizontal" else ax.yaxis)]
        numbers = any(re.fullmatch(r"[−\d., ]+", text.get_text()) for text in ticks)
        if numbers and not any(named):
            found.append(f"numbers along the {which} axis and no name")
    return found


# --- Legible ------------------------------------------------------------------------------------------------


@FIGURE(
    (
        lambda ax: [ax.text(x, 0.5, text) for x, text in ((0.5, "one"), (0.51, "other"))],
        "'one' lies on 'other'",
    ),
    (lambda ax: ax.set_title("$x^2$"), "a formula: $x^2$"),
)
def legible(figure: Figure) -> list[str]:
    """Texts that lie on each other, formulas, which a Chinese font lacks, and glyphs that are not there."""
    figure.draw_without_rendering()
    texts = [text for text in _texts(figure) if text.get_visible() and text.get_text().strip()]
    found = [f"a formula: {text.get_text()}" for text in texts if text.get_text().count("$") > 1]
    found += [f"a glyph is missing: {text.get_text()}" for text in texts if "¤" in text.get_text()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    for (one, box), (other, other_box) in itertools.combinations(boxes, 2):
        width = min(box.x1, other_box.x1) - max(box.x0, other_box.x0)
        height = min(box.y1, other_box.y1) - max(box.y0, other_box.y0)
        if width > 1 and height > 2:  # pixels: boxes have some air
            found.append(f"'{one}' lies on '{other}'")
    return found


def _texts(figure: Figure) -> Iterator[Text]:
    yield from (text for text in figure.texts)
    legends = [*figure.legends]
    for ax in (inner for axes in figure.axes for inner in (axes, *axes.child_axes)):
        yield from ax.texts
        yield from (ax.title, ax._left_title, ax._right_title)  # type: ignore[attr-defined]
        legends += [legend] if (legend := ax.get_legend()) else []
        if ax.axison:
            yield from (ax.xaxis.label, ax.yaxis.label, *_ticks(ax.xaxis), *_ticks(ax.yaxis))
    for legend in legends:
        yield from legend.get_texts()


def _ticks(axis: Axis) -> list[Text]:
    """The labels of the ticks that are in view."""
    low, high = sorted(axis.get_view_interval())
    space = 1e-6 * (high - low)
    pairs = zip(axis.get_majorticklocs(), axis.get_majorticklabels(), strict=False)
    return [text for place, text in pairs if low - space <= place <= high + space and text.get_visible()]
