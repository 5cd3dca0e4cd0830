"""A chapter as a notebook: its text and its blocks, with what they print, for Jupyter and what else reads .ipynb.

Its first cell says what is to be installed. Notes and questions are unfolded, and links lead to the site. Drawings are
what a reader sees who runs the cells; until then there are their captions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from press import inline, labs, page_facts, plain
from press.pages import Page, front_matter, parse

if TYPE_CHECKING:
    from press.book import Book

HEAD = {
    "en": "*From the book: [this page]({0}). Text [CC BY 4.0]({1}), code MIT. posenc {2}.*\n\n"
    "Install once what its blocks need, in a terminal, or in a cell with `%` in front:",
    "zh": "*出自书中[这一页]({0})。文字 [CC BY 4.0]({1})，代码 MIT。posenc {2}。*\n\n"
    "各段代码要用的包只需装一次：在终端里运行下面这行，或者放进一格，前面加 `%`：",
}


def notebook(text: str, name: str, book: Book) -> str:
    """A page as a notebook; its blocks follow each other in one namespace."""
    from nbformat import v4, writes  # it takes its time

    page = parse(plain.unfolded(text), Path(name))
    cells = []
    for number, (source, printed) in enumerate(_cells(page, name, book)):
        made = v4.new_markdown_cell if printed is None else v4.new_code_cell
        cells.append(made(source, id=f"cell-{number}"))  # nbformat's are random
        if printed:
            cells[-1].outputs.append(v4.new_output("stream", name="stdout", text=printed))
    return writes(v4.new_notebook(cells=cells, metadata=labs.KERNEL)) + "\n"


def _cells(page: Page, name: str, book: Book) -> Iterator[tuple[str, str | None]]:
    """The source of each cell and what it prints; None where it is text."""
    lines = plain.captioned(page, book.language, description=False)
    at = front_matter(page.text)[1].count("\n")
    title = next(heading.line for heading in page.headings)
    lines[title - 1] += f"\n\n{_head(page, name, book)}"

    def text(end: int) -> Iterator[tuple[str, None]]:
        found = plain.without_ids(plain.without_looks("\n".join(lines[at:end])))
        if found:
            yield plain.with_addresses(found, f"{book.url}{name}"), None

    for unit in page.blocks:
        for number, part in enumerate(unit.parts):
            yield from text(part.fence.line - 1)
            at, printed = part.fence.end, ""
            if unit.expected_fence and number == unit.expected_after:
                at, printed = unit.expected_fence.end, unit.expected or ""
            yield part.code.rstrip("\n"), printed
    yield from text(len(lines))


def _head(page: Page, name: str, book: Book) -> str:
    """What stands below the title."""
    needed = " ".join(f'"{each}"' for each in inline.needed("\n".join(unit.code for unit in page.blocks)))
    address = f"{book.url}{name.removesuffix('.md')}.html"
    return (
        f"{HEAD[book.language].format(address, page_facts.LICENCE, page_facts.VERSION)}\n\n"
        f"```\npip install {needed}\n```"
    )
