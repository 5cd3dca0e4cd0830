"""What a reader would stumble over in a figure: a check gives a list of faults.

`told_apart`, `explained` and `legible` look at a figure of matplotlib, `contrast` at its SVG on a page.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

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

ROOT = Path(__file__).parents[1]
BROADER = 1.5  # as many times as broad is seen to be broader
FAINT = 0.5  # opacity of a line that stands back
CONTEXT = "#767676"  # the grey of what stands back
LINES, LETTERS = 3.0, 4.5  # contrast, WCAG 2.2: 1.4.11 and 1.4.3

# --- Told apart without colour ------------------------------------------------------------------------------

# What a mark looks like without its colour: a width that may differ by a factor, and what must be equal.
Form = tuple[float, tuple[object, ...]]


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


# --- Contrast -----------------------------------------------------------------------------------------------

RGBA = tuple[float, float, float, float]


@functools.cache
def palettes() -> dict[str, tuple[RGBA, RGBA]]:
    """Ground and letters of the light and the dark page, as the style sheets of Material and the book say."""
    folder = Path(str(files("material").joinpath("templates/assets/stylesheets")))
    (theme,), (main,) = folder.glob("palette.*.min.css"), folder.glob("main.*.min.css")
    sheets = [path.read_text(encoding="utf-8") for path in (main, theme, ROOT / "docs/theme/book.css")]
    result = {}
    for palette, scheme in (("light", "default"), ("dark", "slate")):
        rules = {":root", f"[data-md-color-scheme={scheme}]"}
        known: dict[str, str] = {}
        for sheet in sheets:
            screen = re.sub(r"(?s)@media print\s*\{.*", "", sheet)  # the book's last rules
            for selectors, body in re.findall(r"([^{};]+)\{([^{}]*)\}", re.sub(r"(?s)/\*.*?\*/", "", screen)):
                if rules & {part.strip().replace('"', "") for part in selectors.split(",")}:
                    known |= dict(re.findall(r"(--md-[\w-]+)\s*:\s*([^;]+)", body))
        result[palette] = (
            rgba(known, "--md-default-bg-color"),
            rgba(known, "--md-default-fg-color"),
        )
    return result


def rgba(known: dict[str, str], name: str) -> RGBA:
    """The colour that a property of a style sheet holds."""
    value = re.sub(r"var\((--[\w-]+)\)", lambda match: known[match[1]], known[name]).strip()
    if match := re.fullmatch(
        r"hsla?\(([\d.]+)(?:deg)?,([\d.]+)%,([\d.]+)%,?([\d.]*)\)", value.replace(" ", "")
    ):
        hue, saturation, lightness = float(match[1]), float(match[2]) / 100, float(match[3]) / 100
        spread = saturation * min(lightness, 1 - lightness)

        def channel(n: int) -> float:
            k = (n + hue / 30) % 12
            return lightness - spread * max(-1.0, min(k - 3, 9 - k, 1.0))

        return channel(0), channel(8), channel(4), float(match[4] or 1)
    return to_rgba(value)


def ratio(color: RGBA, ground: RGBA) -> float:
    """The contrast of a colour with an opaque ground, after WCAG 2.2."""
    mixed = [
        part * color[3] + below * (1 - color[3]) for part, below in zip(color[:3], ground[:3], strict=True)
    ]
    one, other = sorted((_luminance(mixed), _luminance(list(ground[:3]))))
    return (other + 0.05) / (one + 0.05)


def _luminance(rgb: list[float]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(svg: str, ground: RGBA, letters: RGBA) -> list[str]:
    """Lines, fields and letters of an SVG of the book that do not stand out from the ground of the page."""
    root = ET.fromstring(svg.replace("xlink:href", "href"))
    found = []
    shapes = {f"#{shape.get('id')}": _style(shape) for shape in root.iter("path") if shape.get("id")}
    for element, style, fits in _painted(root, {"fill": "currentColor", "stroke": "none"}, shapes):
        colors = {}
        for paint in ("fill", "stroke"):
            value = style.get(paint, "none")
            if value == "none" or value.startswith("url("):
                continue
            red, green, blue, alpha = letters if value == "currentColor" else to_rgba(value)
            alpha *= float(style.get("opacity", 1)) * float(style.get(f"{paint}-opacity", 1))
            if alpha > 0 and not (to_hex((red, green, blue)) == CONTEXT and alpha < FAINT):
                colors[value] = ratio((red, green, blue, alpha), ground)
        needed = LETTERS if element == "text" else LINES
        if colors and not fits and max(colors.values()) < needed:
            value, best = max(colors.items(), key=lambda item: item[1])
            found.append(f"<{element}> {value}: {best:.2f} to 1, not {needed:g}")
    return found


def _painted(
    element: ET.Element, above: dict[str, str], shapes: dict[str, dict[str, str]], on_map: bool = False
) -> Iterator[tuple[str, dict[str, str], bool]]:
    """Each shape with the paint that it has or inherits, and whether it is a number in a cell of a map."""
    on_map = on_map or (element.tag == "svg" and element.find(".//image") is not None)
    # A marker's shape is seen where it is used.
    if element.tag in ("clipPath", "title", "desc") or f"#{element.get('id')}" in shapes:
        return
    style = above | _style(element) | shapes.get(element.get("href", ""), {})
    if element.tag in ("path", "text", "rect", "circle", "line", "polyline", "use"):
        # `on_cell` chooses these two by the cell beneath; a test of its own says how well they are read
        cell = on_map and element.tag == "text" and style["fill"] in ("#ffffff", "#010101")
        yield element.tag, style, cell
    for child in element:
        yield from _painted(child, style, shapes, on_map)


def _style(element: ET.Element) -> dict[str, str]:
    found = dict(part.split(":", 1) for part in element.get("style", "").split(";") if ":" in part)
    found |= {name: value for name, value in element.attrib.items() if name in ("fill", "stroke", "opacity")}
    return {name: value.strip() for name, value in found.items()}
