"""Columns of an output with Chinese labels: Python pads by characters, and a Han character is wider than a digit.

    无位置            0.23
    正弦，随机起点        1.00

Where labels of different width stand before a column, those that are less wide get the room that is missing: an empty
span whose style says how many wide characters the widest label has more (book.css, `.wide`).
"""

import re
import unicodedata
from html import unescape

_RUN = re.compile(r" {2,}(?=\S)")
_SPAN = '<span class="wide" style="--n:{}"></span>'
_ENTITY = re.compile(r"&#?\w+;|.", re.DOTALL)


def aligned(lines: list[str]) -> list[str]:
    """Lines of an output, as HTML without tags, with room before the first column that wide labels have moved."""
    cells = [_ENTITY.findall(line) for line in lines]
    texts = ["".join(unescape(cell)[:1] for cell in row) for row in cells]
    first = 0
    while first < len(lines):
        last = first + 1
        for column in sorted({match.end() for match in _RUN.finditer(texts[first])}):
            group = first
            while (
                group < len(lines) and texts[group][column - 1 : column] == " " and len(texts[group]) > column
            ):
                group += 1
            widths = [_wide(text[:column]) for text in texts[first:group]]
            padded = sum(
                text[column - 2] == " " and bool(text[:column].strip()) for text in texts[first:group]
            )
            if 2 * padded > len(widths) > 2 and max(widths) > min(widths):
                for row, width in zip(cells[first:group], widths, strict=True):
                    if width < max(widths):
                        row.insert(column, _SPAN.format(max(widths) - width))
                last = group
                break
        first = last
    return ["".join(row) for row in cells]


def _wide(text: str) -> int:
    return sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
