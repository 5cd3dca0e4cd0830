"""Figures as files: en/figures/order-1.svg is the first figure of en/order.html, which links it.

The drawing of a page takes its font and its black from there. As a file it stands alone, on white, for slides and
programs that draw: its title is the caption, its description says what is to be seen, where it is from and under which
licence. Pictures in it are PNG again, because only browsers know WebP.
"""

from __future__ import annotations

import base64
import html
import io
import re
from typing import TYPE_CHECKING

from press import figures, page_facts
from press.reading_order import stem

if TYPE_CHECKING:
    from press.book import Book

FROM = {
    "en": "From “{0}”, {1}, posenc {2}. Licence: CC BY 4.0, {3}",
    "zh": "出自“{0}”，{1}，posenc {2}。许可：CC BY 4.0，{3}",
}
STILL = {"en": "still drawing: {0}", "zh": "静态图：{0}"}
_WEBP = re.compile(r"data:image/webp;base64,([\w+/=]+)")


def file_name(page: str, number: int) -> str:
    """The file of a figure, from the folder of its page: 'figures/order-1.svg' for the first of order.md."""
    return f"figures/{stem(page).rpartition('/')[2]}-{number}.svg"


def link(page: str, number: int, language: str = "") -> str:
    """The link that stands with a figure in its page; with a language, below one that moves, whose file does not."""
    name = file_name(page, number)
    shown = STILL[language].format(name.rpartition("/")[2]) if language else name.rpartition("/")[2]
    return f'<a class="downloads" href="{name}" download>{shown}</a>'


def of_page(book: Book, name: str) -> dict[str, str]:
    """The figures of a page by the names of their files."""
    prepared = book.prepared.get(name)
    if prepared is None:
        return {}
    numbers = {figure.line: number for number, figure in enumerate(prepared.page.figures, 1)}
    found = {}
    for figure, drawing in prepared.drawings:
        said = figure.description or figures.described(drawing["axes"], book.language)
        address = f"{book.url}{stem(name)}.html"
        title = prepared.page.meta["title"]
        where = FROM[book.language].format(title, address, page_facts.VERSION, page_facts.LICENCE)
        svg = alone(drawing["svg"], figure.caption, f"{said}\n{where}")
        found[file_name(name, numbers[figure.line])] = svg
    return found


def alone(svg: str, caption: str, description: str) -> str:
    """A drawing of a page as a file."""
    start, _, rest = figures.tidy(svg).replace(figures.ID, "").partition(">")
    width, height = re.findall(r"[\d.]+", start.partition('viewBox="')[2].partition('"')[0])[2:]
    start = re.sub(r' style="[^"]*"', "", start)
    start += ' xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    start += f' width="{width}pt" height="{height}pt" font-family="sans-serif" style="background:#fff">'
    words = f"<title>{html.escape(caption)}</title><desc>{html.escape(description)}</desc>"
    return _WEBP.sub(_as_png, (start + words + rest).replace("currentColor", "#000")) + "\n"


def _as_png(picture: re.Match[str]) -> str:
    from PIL import Image

    png = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(picture[1]))).save(png, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}"
