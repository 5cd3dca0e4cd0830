"""Matplotlib figures as inline SVG that belongs to the page: its fonts, its colours, its width.

    figures.set_up()                   # the style that every block and every lab starts from
    svg = figures.to_svg(plt.gcf())    # or what a notebook kept
    html = figures.figure(svg, caption, description, "plot-1")

The `<svg>` has no style sheet, XML declaration or metadata; it takes the browser's own fonts and draws black
as `currentColor`, so that it turns with the dark mode (any other colour stays as it is); only ids that are
referred to remain. The same figure gives the same bytes every time.

It is as light as it can be without being seen, for a page holds several and a phone pays for each byte.
Places are rounded to a tenth of a point, lines go on from where they are, a row of equal markers is one path,
and a heat map is a WebP picture without loss.
"""

from __future__ import annotations

import base64
import html
import io
import itertools
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

FONT = Path(__file__).with_name("measure.ttf")  # only in the page, where there is no cache (inpages.py)
ID = "posenc-id-"  # stands for the prefix that a figure's ids get on its page
MEASURE = "posenc measure"  # family name of the measuring font
SIZE = "10px"  # of most labels
PAD = 0.06  # inches around what is drawn: the browser's letters are not quite those that were measured
INCH = 5.0  # rem on the page for an inch of the figure: with Material's 20 px a 10 pt label has 14 px

# Chinese punctuation, ideographs, compatibility ideographs, full-width forms.
_WIDE = ((0x2E80, 0x303F), (0x3040, 0x30FF), (0x3400, 0x9FFF), (0xF900, 0xFAFF), (0xFF00, 0xFFEF))

_XLINK = "{http://www.w3.org/1999/xlink}"
_LONG = re.compile(r"-?\d*\.\d{3,}(?:e[-+]?\d+)?")
_NUMBER = re.compile(r"-?\d*\.\d+")
_REFERENCE = re.compile(r"(?:^|(?<=url\())#([\w.:-]+)")  # and no colour, such as #0072b2
_PATH = re.compile(r"([MLQCZz])|(-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)")
_POINTS = {"M": 1, "L": 1, "Q": 2, "C": 3}  # that a command of matplotlib takes
_ROW = 4  # as many equal markers are worth a path
_ROUNDED = ("x", "y", "width", "height", "points", "viewBox", "cx", "cy", "r", "x1", "y1", "x2", "y2")


def measuring_font() -> Path:
    """A font file in which every Chinese character is a box of one em; made once, in the cache.

    Matplotlib needs to know how wide a label is; which glyphs are drawn is up to the browser. So the layout
    does not depend on the fonts that happen to be installed, and no font of many megabytes has to be shipped.
    """
    if FONT.exists():
        return FONT
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    from press import cache

    entry = cache.key("2", MEASURE, repr(_WIDE), cache.version("fonttools"))
    path = cache.folder() / "fonts" / f"{entry[:16]}.ttf"
    if path.exists():
        return path

    def box(width: int, bottom: int, top: int) -> Any:
        pen = TTGlyphPen(None)
        pen.moveTo((0, bottom))
        for point in ((0, top), (width, top), (width, bottom)):
            pen.lineTo(point)
        pen.closePath()
        return pen.glyph()

    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder([".notdef", "wide"])
    builder.setupCharacterMap({code: "wide" for first, last in _WIDE for code in range(first, last + 1)})
    builder.setupGlyf({".notdef": box(500, 0, 700), "wide": box(1000, -120, 880)})
    builder.setupHorizontalMetrics({".notdef": (500, 0), "wide": (1000, 0)})
    builder.setupHorizontalHeader(ascent=880, descent=-120)
    builder.setupNameTable({"familyName": MEASURE, "styleName": "Regular"})
    builder.setupOS2(sTypoAscender=880, sTypoDescender=-120, usWinAscent=880, usWinDescent=120)
    builder.setupPost()
    # no date of today in the file
    builder.updateHead(created=0, modified=0)
    builder.font.recalcTimestamp = False
    buffer = io.BytesIO()
    builder.save(buffer)
    cache.write(path, buffer.getvalue())
    return path


def set_up() -> None:
    """Sets the style that every block starts from, whatever ran before and whatever the machine is set to."""
    import matplotlib
    from matplotlib import font_manager

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matplotlib.rcdefaults()
    if MEASURE not in {font.name for font in font_manager.fontManager.ttflist}:
        font_manager.fontManager.addfont(measuring_font())
    matplotlib.rcParams.update(
        {
            "figure.figsize": (4.8, 3.0),
            "figure.dpi": 100,
            "figure.constrained_layout.use": True,
            # Latin from the font that comes with matplotlib, Chinese measured by ours
            "font.family": ["DejaVu Sans", MEASURE],
            "font.size": 10,
            "figure.facecolor": "none",
            "axes.facecolor": "none",
            "savefig.facecolor": "none",
            "axes.unicode_minus": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,  # a white box would stay white in the dark
            "image.interpolation": "none",
            "image.composite_image": False,
            "svg.fonttype": "none",
            "svg.hashsalt": "posenc",
        }
    )


def to_svg(figure: Figure) -> str:
    """The figure as one `<svg>` element, to be put into a page by `figure`."""
    import matplotlib

    buffer = io.BytesIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    # a block may have changed these, and text must stay text
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "posenc"}):
        figure.savefig(buffer, format="svg", metadata=nothing, transparent=True, bbox_inches=_paper(figure))
    return tidy(buffer.getvalue().decode())


def _paper(figure: Figure) -> Bbox:
    """The width of the figure and the height of what is on it, in inches; more where something sticks out."""
    import matplotlib
    from matplotlib.transforms import Bbox

    if figure.axes and (engine := figure.get_layout_engine()):
        engine.execute(figure)  # lays out the axes,
    # once: as they stand now they are drawn, and their numbers read. No engine at all, as the placeholder of
    # set_layout_engine("none") would have the whole figure drawn once more.
    with matplotlib.rc_context({"figure.constrained_layout.use": False, "figure.autolayout": False}):
        figure.set_layout_engine(None)
    drawn, pad = figure.get_tightbbox(), PAD
    left, right = min(0.0, drawn.x0 - pad), max(float(figure.get_figwidth()), drawn.x1 + pad)
    return Bbox.from_extents(left, drawn.y0 - pad, right, drawn.y1 + pad)


def tidy(svg: str) -> str:
    """Matplotlib's SVG without what a page has no use for; what is tidy already stays as it is."""
    if "xmlns=" not in svg[:2000]:
        return svg
    root = ET.fromstring(svg.encode())
    used = (
        name
        for element in root.iter()
        for attribute, value in element.attrib.items()
        if attribute.endswith("href") or "url(" in value
        for name in _REFERENCE.findall(value[:200])
    )
    # matplotlib's are hashes, which do not compress
    _clean(root, {name: f"{ID}{number}" for number, name in enumerate(dict.fromkeys(used))})
    _lighten(root)
    _gather(root, itertools.count())
    width, height = (float(number) for number in root.attrib["viewBox"].split()[2:])
    root.attrib = {
        "viewBox": f"0 0 {_short(width)} {_short(height)}",
        "fill": "currentColor",  # matplotlib leaves out a black fill
        "font-size": SIZE,
        "stroke-linejoin": "round",
        "style": f"width:100%;max-width:{_short(width / 72 * INCH)}rem;height:auto;margin:0 auto",
    }
    return ET.tostring(root, encoding="unicode")


def _clean(element: ET.Element, ids: dict[str, str], decimals: int = 1) -> None:
    """Takes away namespaces, style sheets, metadata, idle ids, groups that say nothing, blank text."""
    children: list[ET.Element] = []
    text = element.tag.rpartition("}")[2] in ("text", "tspan")
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name in ("metadata", "style"):
            continue
        _clean(child, ids, 2 if name == "defs" else decimals)  # a marker is small
        if name == "defs" and not len(child):
            continue
        if name == "path" and child.attrib.get("style") == "fill:none":  # an invisible background
            continue
        if not text:
            child.tail = None
        children += list(child) if name == "g" and not child.attrib else [child]
    element[:] = children
    if not text:
        element.text = None
    element.tag = element.tag.rpartition("}")[2]
    written = {
        name.replace(_XLINK, "xlink:"): _attribute(
            element.tag, name.replace(_XLINK, "xlink:"), value, ids, decimals
        )
        for name, value in element.attrib.items()
    }
    element.attrib = {name: value for name, value in written.items() if value}


def _attribute(tag: str, name: str, value: str, ids: dict[str, str], decimals: int) -> str:
    """What an attribute is written as, "" where it goes."""
    if name == "id":
        return ids.get(value, "")
    if name == "xlink:href" and value.startswith("data:image/png;base64,"):
        return picture(value)
    if name == "xlink:href":
        return _renamed(value, ids)
    if name == "style":
        return _renamed(_style(value), ids)
    if "url(#" in value:
        return _renamed(value, ids)
    if name == "transform":
        # texts that are not turned come with rotate(-0 x y)
        value = re.sub(r"\s*rotate\(-?0 [^)]*\)", "", value)
        return _LONG.sub(lambda match: _short(float(match[0]), 4), value)
    if name == "d":
        return path(value, decimals)
    if name in _ROUNDED:
        shortest = decimals if tag in ("use", "text") else 2
        value = _short(float(value), shortest) if _NUMBER.fullmatch(value) else value
        return _LONG.sub(lambda match: _short(float(match[0])), value)
    return value


def _renamed(value: str, ids: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda match: f"#{ids.get(match[1], match[1])}", value)


def path(data: str, decimals: int = 1) -> str:
    """The data of a path, each point rounded and then given as its distance from the one before.

    Points are rounded before they are subtracted, so that errors do not add up along a line.

    >>> path("M 10 20 L 11.26 19.5 L 13 19.5 z")
    'M10 20l1.3-.5 1.7 0z'
    """
    found = _PATH.findall(data)
    if "".join(command or number for command, number in found) != re.sub(r"[\s,]+", "", data):
        return " ".join(data.split())  # not by matplotlib: as it is
    out, last, command = "", "", ""
    x = y = start_x = start_y = 0.0
    tokens = iter(found)
    for name, number in tokens:
        command = name.upper() or command
        if command == "Z":
            out, last = out + "z", "z"
            x, y = start_x, start_y
            continue
        numbers = [] if name else [number]
        numbers += [next(tokens)[1] for _ in range(2 * _POINTS[command] - len(numbers))]
        points = [round(float(value), decimals) for value in numbers]
        origin = (0.0, 0.0) if command == "M" else (x, y)
        written = "M" if command == "M" else command.lower()
        row = " ".join(_short(value - origin[k % 2], decimals) for k, value in enumerate(points))
        out += (" " if written == last else written) + row
        x, y = points[-2:]
        last = written
        if command == "M":
            start_x, start_y, command = x, y, "L"
    out = re.sub(r"(?<![\d.])0\.(?=\d)", ".", out).replace(" -", "-")
    return re.sub(r"(\.\d+) (?=\.)", r"\1", out)  # the second point of 1.3.5 begins a number


def picture(url: str) -> str:
    """A PNG in a data: address as lossless WebP, where that is shorter: a third of it for a heat map."""
    from PIL import Image

    data = base64.b64decode(url.partition(",")[2])
    buffer = io.BytesIO()
    # method 6: the slowest and smallest; exact: also the colour of what is transparent
    Image.open(io.BytesIO(data)).save(buffer, "WEBP", lossless=True, quality=100, method=6, exact=True)
    kind, data = min(("png", data), ("webp", buffer.getvalue()), key=lambda item: len(item[1]))
    return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"


def _lighten(root: ET.Element) -> None:
    """Takes away what is said twice: styles of a marker that its shape has, the usual size of a label."""
    shapes = {f"#{shape.get('id')}": _declared(shape) for shape in root.iter("path") if shape.get("id")}
    for element in root.iter():
        known = shapes.get(element.get("xlink:href", ""), {}) if element.tag == "use" else {}
        usual = {"font-size": SIZE} if element.tag == "text" else {}
        style = {
            name: value
            for name, value in _declared(element).items()
            if name not in known and usual.get(name) != value
        }
        if style:
            element.set("style", ";".join(f"{name}:{value}" for name, value in style.items()))
        else:
            element.attrib.pop("style", None)


def _declared(element: ET.Element) -> dict[str, str]:
    """The style of an element, property by property."""
    return dict(part.split(":", 1) for part in element.get("style", "").split(";") if part)


def _gather(element: ET.Element, counter: Iterator[int]) -> None:
    """Draws a row of equal markers as one path with them at its points: a tenth of the bytes and nodes."""
    children: list[ET.Element] = []
    for (shape, style), group in itertools.groupby(element, key=_marker):
        row = list(group)
        if not shape or len(row) < _ROW:
            children += row
            continue
        name = f"{shape[1:]}-{next(counter)}"
        marker = ET.Element("marker", {"id": name, "overflow": "visible", "markerUnits": "userSpaceOnUse"})
        if style:
            marker.set("style", style)
        ET.SubElement(marker, "use", {"xlink:href": shape})
        points = " L ".join(f"{use.get('x', '0')} {use.get('y', '0')}" for use in row)
        line = {"d": path(f"M {points}"), "style": f"fill:none;marker:url(#{name})"}
        children += [marker, ET.Element("path", line)]
    for child in children:
        _gather(child, counter)
    element[:] = children


def _marker(element: ET.Element) -> tuple[str, str]:
    """What the markers of a row have in common: shape and style."""
    if element.tag != "use" or set(element.attrib) - {"xlink:href", "x", "y", "style"}:
        return "", ""
    return element.get("xlink:href", ""), element.get("style", "")


def _style(style: str) -> str:
    """A style attribute with the page's fonts and the page's black."""
    kept = []
    for declaration in style.split(";"):
        name, _, value = (piece.strip() for piece in declaration.partition(":"))
        if name == "font":  # size is all that the page does not know better
            size = re.search(r"([\d.]+px)", value)
            weight = re.search(r"\b(bold|[6-9]00)\b", value)
            kept += [f"font-size:{size[1]}"] if size else []
            kept += ["font-weight:bold"] if weight else []
            continue
        if not name or name == "font-family":
            continue
        value = "currentColor" if value in ("#000000", "#000") else value
        kept.append(f"{name}:{value}")
    return ";".join(kept)


def _short(number: float, decimals: int = 2) -> str:
    """A number with at most so many decimals and no zeros at its end."""
    text = f"{number:.{decimals}f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def labels(figure: Figure) -> list[dict[str, Any]]:
    """What the axes say in words: a description can be made of it where the page gives none."""
    found = []
    for axes in figure.get_axes():
        legend = axes.get_legend()
        entry = {
            "title": axes.get_title(),
            "x": axes.get_xlabel(),
            "y": axes.get_ylabel(),
            "legend": [text.get_text() for text in legend.get_texts()] if legend else [],
        }
        if any(entry.values()):
            found.append(entry)
    return found


_WORDS = {
    "en": ("Horizontal axis: ", "Vertical axis: ", "Legend: ", ", ", ". ", "."),
    "zh": ("横轴：", "纵轴：", "图例：", "、", "。", "。"),
}


def described(axes: list[dict[str, Any]], language: str) -> str:
    """The labels of a figure as a sentence or two in the language of the page."""
    x, y, legend, comma, joint, end = _WORDS["zh" if language.startswith("zh") else "en"]
    sentences: list[str] = []
    for entry in axes:
        pieces = [entry["title"]]
        pieces += [x + entry["x"]] if entry["x"] else []
        pieces += [y + entry["y"]] if entry["y"] else []
        pieces += [legend + comma.join(entry["legend"])] if entry["legend"] else []
        sentences += [" ".join(piece.split()) for piece in pieces if piece and piece not in sentences]
    return joint.join(sentences) + (end if sentences else "")


def figure(svg: str, caption: str, description: str = "", name: str = "plot") -> str:
    """The drawing as it stands in a page, on one line; `name` is its own on the page, ids begin with it.

    A screen reader hears the caption as the title of the drawing and then the description.
    """
    caption = html.escape(caption, quote=False)
    names, head = f"{name}-title", f'<title id="{name}-title">{caption}</title>'
    if description:
        names += f" {name}-desc"
        head += f'<desc id="{name}-desc">{html.escape(description, quote=False)}</desc>'
    start, rest = tidy(svg).replace(ID, f"{name}-").split(">", 1)
    drawing = f'{start} role="img" aria-labelledby="{names}">{head}{rest}'.replace("\n", " ")
    return f'<figure class="plot">{drawing}<figcaption>{caption}</figcaption></figure>'
