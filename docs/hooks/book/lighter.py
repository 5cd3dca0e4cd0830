"""A page with fewer bytes and nodes that looks the same: for phones, and for those who pay by the byte.

Code: kinds of tokens that have one colour become one, neighbours of a kind one element. Drawings: what a clip
does not cut goes without it, and a round marker is two arcs. Formulas: cells say their side by a class.
"""

from __future__ import annotations

import re

# Material gives these the colour of the kind beside them, or no colour of their own: a test compares them.
SAME = {"kn": "k", "mf": "mi", "s1": "s2", "si": "s2"}
PLAIN = ("fm", "kc", "sa", "vm")
CELLS = {
    "text-align: right;justify-items: end;padding-right: 0;": "right",
    "text-align: left;justify-items: start;padding-left: 0;": "left",
}

_CODE = re.compile(r"<pre\b.*?</pre>", re.DOTALL)
_TOKEN = re.compile(r'<span class="(\w+)">([^<]*)</span>')
_ROW = re.compile(r'<span class="(\w+)">[^<]*(?:</span>\s*<span class="\1">[^<]*)+</span>')
_ESCAPED = re.compile(r"\\u([4-9][0-9a-f]{3})")  # Chinese words for Material's script
_DRAWING = re.compile(r'(?<=<figure class="plot">)<svg .*?</svg>', re.DOTALL)
_CLIP = re.compile(r'<clipPath id="([^"]*)"><rect ([^<>]*?) ?/></clipPath>')
_CLIPPED = re.compile(r'<path ([^<>]*?) clip-path="url\(#([^")]*)\)"([^<>]*)>')
_GROUP = re.compile(r'<g clip-path="url\(#([^")]*)\)">((?:<(?:use|path|marker|/marker)\b[^<>]*>)*)</g>')
_SHAPE = re.compile(r'<path id="([^"]*)" d="([^"]*)"')
_ROUND = re.compile(r'(<path id="[^"]*" d=")(M0 [^"]*z)"')
_COMMANDS = re.compile(r"[A-Za-z]|-?(?:\d+\.?\d*|\.\d+)")

Box = tuple[float, float, float, float]  # left, top, right, bottom


def light(output: str) -> str:
    """Take from a finished page what nobody sees."""
    output = _CODE.sub(lambda block: tokens(block[0]), output)
    output = _DRAWING.sub(lambda drawing: round_markers(unclipped(drawing[0])), output)
    output = _ESCAPED.sub(lambda character: chr(int(character[1], 16)), output)
    for style, name in CELLS.items():
        output = output.replace(f'<mtd style="{style}">', f'<mtd class="{name}">')
    return output


def tokens(block: str) -> str:
    """A block of code with one element for neighbours of one colour.

    >>> tokens('<pre><span class="kn">as</span> <span class="k">in</span> <span class="sa">f</span></pre>')
    '<pre><span class="k">as in</span> f</pre>'
    """

    def coloured(token: re.Match[str]) -> str:
        kind, text = SAME.get(token[1], token[1]), token[2]
        return text if kind in PLAIN else f'<span class="{kind}">{text}</span>'

    def joined(row: re.Match[str]) -> str:
        start = f'<span class="{row[1]}">'
        return start + row[0].replace(start, "").replace("</span>", "") + "</span>"

    return _ROW.sub(joined, _TOKEN.sub(coloured, block)).replace("<pre><span></span>", "<pre>")


def unclipped(svg: str) -> str:
    """A drawing without the clips that cut nothing off, and without rectangles that no clip names then."""
    frames = {name: _frame(attributes) for name, attributes in _CLIP.findall(svg)}
    shapes = {name: extent(data) for name, data in _SHAPE.findall(svg)}

    def path(match: re.Match[str]) -> str:
        before, name, after = match.groups()
        data = re.search(r'(?:^| )d="([^"]*)"', before)
        inside = data and _inside(extent(data[1]), frames.get(name), _stroke(before + after))
        return f"<path {before}{after}>" if inside else match[0]

    def group(match: re.Match[str]) -> str:
        name, content = match.groups()
        reach = [
            max(map(abs, box)) for shape in re.findall(r"#([^\")]*)", content) if (box := shapes.get(shape))
        ]
        points = [
            _COMMANDS.findall(f"M{x} {y}")
            for x, y in re.findall(r'<use [^<>]*?x="([^"]*)" y="([^"]*)"', content)
        ]
        boxes = [extent(" ".join(point)) for point in points]
        boxes += [extent(data) for data in re.findall(r'<path d="([^"]*)" style="fill:none;marker:', content)]
        known = len(boxes) == content.count("<use ") - content.count("<marker ") + content.count("<path ")
        margin = max(reach, default=0) + 1
        return content if known and all(_inside(box, frames.get(name), margin) for box in boxes) else match[0]

    svg = _GROUP.sub(group, _CLIPPED.sub(path, svg))
    svg = _CLIP.sub(lambda clip: clip[0] if f"url(#{clip[1]})" in svg else "", svg)
    return svg.replace("<defs></defs>", "")


def extent(data: str) -> Box | None:
    """The box around a path of the figures (M absolute, l q c z relative) and its control points.

    >>> extent("M10 20l5-5 0 10z")
    (10.0, 15.0, 15.0, 25.0)
    """
    x = y = 0.0
    xs: list[float] = []
    ys: list[float] = []
    command, numbers = "", list[float]()
    for piece in _COMMANDS.findall(data):
        if piece.isalpha():
            command, numbers = piece, []
            if command not in "Mlqcz":
                return None
            continue
        numbers.append(float(piece))
        if len(numbers) % 2:
            continue
        start_x, start_y = (0.0, 0.0) if command == "M" else (x, y)
        xs.append(start_x + numbers[-2])
        ys.append(start_y + numbers[-1])
        if len(numbers) == {"M": 2, "l": 2, "q": 4, "c": 6}[command]:
            x, y, numbers = xs[-1], ys[-1], []
    # after a z, the figures begin anew with M
    return (min(xs), min(ys), max(xs), max(ys)) if xs else None


def _frame(attributes: str) -> Box:
    rect = {name: float(value) for name, value in re.findall(r'(\w+)="([^"]*)"', attributes)}
    return rect["x"], rect["y"], rect["x"] + rect["width"], rect["y"] + rect["height"]


def _stroke(attributes: str) -> float:
    """How far a stroke may reach beyond its line; a sharp corner and a square end reach farther than half."""
    if "stroke:" not in attributes:
        return -0.1  # a filled box may end where the frame ends
    width = re.search(r"stroke-width:([\d.]+)", attributes)
    return float(width[1] if width else 1)


def _inside(box: Box | None, frame: Box | None, margin: float) -> bool:
    if box is None or frame is None:
        return False
    (left, top, right, bottom), (x0, y0, x1, y1) = box, frame
    return x0 + margin <= left and y0 + margin <= top and right <= x1 - margin and bottom <= y1 - margin


def round_markers(svg: str) -> str:
    """A drawing in which the circles that matplotlib makes of eight curves are two arcs."""

    def arcs(match: re.Match[str]) -> str:
        return f'{match[1]}{circle(match[2])}"'

    return _ROUND.sub(arcs, svg)


def circle(data: str) -> str:
    """The path of a circle around 0 as two arcs; any other path as it is."""
    numbers = [float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", data)]
    if re.sub(r"[^A-Za-z]", "", data) != "Mcz" or len(numbers) != 50 or numbers[0]:
        return data
    r, (x, y) = numbers[1], (0.0, numbers[1])
    for k in range(2, 50, 6):
        x, y = x + numbers[k + 4], y + numbers[k + 5]
        if abs((x * x + y * y) ** 0.5 - r) > 0.03:
            return data
    return f"M0 {r:g}a{r:g} {r:g} 0 0 0 0-{2 * r:g} {r:g} {r:g} 0 0 0 0 {2 * r:g}z"
