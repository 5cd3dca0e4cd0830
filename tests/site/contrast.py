"""How well colours stand out: those of a drawing from the page around it, in the light and in the dark palette."""

import colorsys
import functools
import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as ET

from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgba
from press.cache import ROOT
from press.material import material

from posenc.plot._style import COLORS, GREY

FAINT = 0.5  # opacity of a line that stands back
CONTEXT = "#767676"  # the grey of what stands back
LINES, LETTERS = 3.0, 4.5  # contrast, WCAG 2.2: 1.4.11 and 1.4.3

RGBA = tuple[float, float, float, float]


@functools.cache
def palettes() -> dict[str, tuple[RGBA, RGBA]]:
    """Ground and letters of the light and the dark page, as the style sheets of Material and the book say."""
    folder = material() / "templates/assets/stylesheets"
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
        result[palette] = (rgba(known, "--md-default-bg-color"), rgba(known, "--md-default-fg-color"))
    return result


def rgba(known: dict[str, str], name: str) -> RGBA:
    """The colour that a property of a style sheet holds."""
    value = re.sub(r"var\((--[\w-]+)\)", lambda match: known[match[1]], known[name]).strip()
    hsl = r"hsla?\(([\d.]+)(?:deg)?,([\d.]+)%,([\d.]+)%,?([\d.]*)\)"
    if match := re.fullmatch(hsl, value.replace(" ", "")):
        hue, saturation, lightness = float(match[1]) / 360, float(match[2]) / 100, float(match[3]) / 100
        return *colorsys.hls_to_rgb(hue, lightness, saturation), float(match[4] or 1)
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


# What is drawn, the palette in which it is faint, and what is said of it.
Draw = Callable[[Axes], object]
BAD: list[tuple[Draw, str, str]] = [
    (lambda ax: ax.plot([1, 2], color="#ffd700"), "light", "<path> #ffd700: 1.40 to 1"),
    (lambda ax: ax.plot([1, 2], color="#00008b"), "dark", "<path> #00008b: 1.0"),
    (lambda ax: ax.plot([1, 2], color=COLORS[0], alpha=0.4), "light", f"<path> {COLORS[0]}"),
    (lambda ax: ax.axvspan(1, 2, color=GREY, alpha=0.6), "light", f"<path> {GREY}"),
    (lambda ax: ax.text(0.5, 0.5, "x", color=COLORS[1]), "light", f"<text> {COLORS[1]}: 3.8"),
    (lambda ax: ax.bar([1], [2], color="none", edgecolor="#ffd700", hatch="//"), "light", "#ffd700"),
]


def faint(svg: str, ground: RGBA, letters: RGBA) -> list[str]:
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
