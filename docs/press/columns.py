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
    """Lines of an output, as HTML without tags, with room before each column that wide labels have moved."""
    cells = [_ENTITY.findall(line) for line in lines]
    texts = ["".join(unescape(cell)[:1] for cell in row) for row in cells]
    first = 0
    while first < len(lines):
        last, done = first + 1, 0  # the end of the table that begins here, and of what has its room
        for column in sorted({match.end() for match in _RUN.finditer(texts[first])}):
            group = first
            while (
                group < len(lines) and texts[group][column - 1 : column] == " " and len(texts[group]) > column
            ):
                group += 1
            widths = [_wide(text[done:column]) for text in texts[first:group]]
            padded = sum(
                text[column - 2] == " " and bool(text[:column].strip()) for text in texts[first:group]
            )
            if 2 * padded > len(widths) > 2 and max(widths) > min(widths) and (not done or group >= last):
                last, done = (last if done else group), column
                for row, width in zip(cells[first:last], widths, strict=False):
                    if width < max(widths):
                        row[column] = _SPAN.format(max(widths) - width) + row[column]
        first = last
    return ["".join(row) for row in cells]


def _wide(text: str) -> int:
    return sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
