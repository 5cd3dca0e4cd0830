"""Slides for a course: of each chapter a file for a browser, made of the page's own question, figures and key points.

    python -m press slides                 # all chapters, in both languages
    python -m press slides rotary alibi    # these
    python -m press slides rotary --pdf    # printed by Chromium or Chrome as well

They are dist/slides/en/rotary.html and its like, or lie in the folder that --to names. A file needs no other and no
script: a presenter or the arrow keys go from slide to slide. What blocks draw is in the cache, or they are run.
"""

from __future__ import annotations

import argparse
import base64
import re
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from markdown import Markdown

from press import chinese, exercises, figures, formulas, page_facts, pages, plain
from press.book import Book, Prepared
from press.cache import ROOT
from press.languages import LANGUAGES
from press.reading_order import is_chapter, stem
from press.running import book_blocks

if TYPE_CHECKING:
    from playwright.sync_api import Browser

WORDS = {
    "en": {"chapter": "Chapter {} of {}", "exercises": "Exercises", "licence": "Text and figures CC BY 4.0"},
    "zh": {"chapter": "第 {} 章，共 {} 章", "exercises": "练习", "licence": "文字和图 CC BY 4.0"},
}
KEY_POINTS = "key-points"
_FORMULAS = {"pymdownx.arithmatex": {"generic": True, "smart_dollar": False}}


def question(page: pages.Page) -> str:
    """What a chapter asks: the first paragraph below its title with a question, and the answers to choose from."""
    left_out = {*page.directives, *(n for fence in page.fences for n in range(fence.line, fence.end + 1))}
    first, second = (heading.line for heading in page.headings[:2])
    lines = page.text.split("\n")
    text = "\n".join("" if n in left_out else lines[n - 1] for n in range(first + 1, second))
    paragraphs = [*re.split(r"\n\s*\n", text), ""]
    for paragraph, after in pairwise(paragraphs):
        if re.search("[?？]", paragraph):
            return f"{paragraph}\n\n{after}" if after.startswith("1. ") else paragraph
    return str(page.meta["description"])


def key_points(page: pages.Page) -> str:
    """The section that ends a chapter, with its heading; "" where there is none."""
    for heading in page.headings:
        if heading.id == KEY_POINTS:
            title = page.text.split("\n")[heading.line - 1]
            return f"{title}\n{page.below(heading)}"
    return ""


def of_book(language: str) -> tuple[Book, list[str]]:
    """A book as its sources have it, and its chapters that have key points."""
    site = page_facts.site_url()
    contents = pages.contents(ROOT / "docs" / "sites" / language / "mkdocs.yml")
    book = Book(language, ROOT / "docs" / language, f"{site}{language}/" if site else "", contents)
    return book, [name for name in contents if key_points(book.page(name))]


def slides(book: Book, name: str, prepared: Prepared) -> str:
    """The slides of a chapter as an HTML file."""
    page, words = prepared.page, WORDS[book.language]
    numbered = [other for other in book.contents if is_chapter(other, book)]
    place = words["chapter"].format(numbered.index(name) + 1, len(numbered)) if name in numbered else ""
    title = escape(str(page.meta["title"]))
    source = f"{book.url}{stem(name)}.html" if book.url else ""
    imprint = " · ".join(filter(None, (f"posenc {page_facts.VERSION}", source, words["licence"])))
    parts = [f"<small>{place}</small><h1>{title}</h1>{_html(question(page))}<footer>{imprint}</footer>"]
    for number, (figure, drawing) in enumerate(prepared.drawings, 1):
        above = [heading.text for heading in page.headings if heading.line < figure.line]
        said = figure.description or figures.described(drawing["axes"], book.language)
        shown = figures.figure(drawing["svg"], figure.caption, said, f"plot-{number}")
        parts.append(_html(f"## {above[-1]}") + shown)
    parts.append(_html(key_points(page)))
    if given := _exercises(book, name):
        parts.append(_html("\n".join([f"## {words['exercises']}", "", *given])))
    body = "\n".join(f"<section>{part}</section>" for part in parts)
    body = chinese.mended(body) if book.language == "zh" else body
    body = formulas.as_mathml(formulas.as_text(body, book, name), book, name)
    font = base64.b64encode(formulas.font_subset(book.characters[name])).decode()
    style = Path(__file__).with_suffix(".css").read_text(encoding="utf-8").replace("FONT", font)
    head = f'<meta charset="utf-8"><title>{title}</title><style>\n{style}</style>'
    html = (
        f'<!doctype html>\n<html lang="{book.language}"><head>{head}</head><body>\n{body}\n</body></html>\n'
    )
    return page_facts.signed(html)


def _html(markdown: str) -> str:
    extensions = ["attr_list", "pymdownx.arithmatex"]
    text = plain.without_links(plain.without_ids(markdown))
    return str(Markdown(extensions=extensions, extension_configs=_FORMULAS).convert(text))


def _exercises(book: Book, name: str) -> list[str]:
    """A line for each exercise on a chapter."""
    there = [pages.read(path) for path in sorted((book.folder / exercises.FOLDER).glob("*.md"))]
    found = [each for page in there for each in exercises.of_page(page) if each.section == stem(name)]
    return [f"- {each.heading.text}\n<small>{each.line(book.language)}</small>" for each in found]


def write(names: list[str], folder: Path) -> list[Path]:
    """Writes the slides of these chapters, or of all, in both languages; gives their files.

    Raises:
        ValueError: if a name is that of no chapter, or what a block does is not what its page says.
    """
    written = []
    for language in LANGUAGES:
        book, chapters = of_book(language)
        if unknown := [name for name in names if f"{name}.md" not in chapters]:
            known = ", ".join(map(stem, chapters))
            raise ValueError(f"no chapter with key points: {', '.join(unknown)}; there are {known}")
        wanted = [f"{name}.md" for name in names] or chapters
        prepared = book_blocks.prepare({name: book.page(name) for name in wanted})
        if faults := book_blocks.report(prepared):
            raise ValueError("\n".join(faults))
        for name in wanted:
            file = folder / "slides" / language / f"{stem(name)}.html"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(slides(book, name, prepared[name]), encoding="utf-8")
            written.append(file)
    return written


def printed(browser: Browser, files: list[Path]) -> list[Path]:
    """The slides as PDFs beside them."""
    with browser.new_page() as page:
        for file in files:
            page.goto(file.resolve().as_uri())
            to = file.with_suffix(".pdf")
            page.pdf(path=to, prefer_css_page_size=True, print_background=True, tagged=True)
    return [file.with_suffix(".pdf") for file in files]


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="press slides", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="chapter", help="rotary for docs/en/rotary.md; all without"
    )
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="the folder to write into (dist)")
    parser.add_argument("--pdf", action="store_true", help="print them as well")
    wanted = parser.parse_args(arguments)
    try:
        made = write(wanted.names, wanted.to)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    if wanted.pdf:
        from press.offline.archive import launched  # slides alone need no browser

        with launched() as browser:
            made += printed(browser, made)
    for file in made:
        print(f"{file}  {file.stat().st_size / 1e3:.0f} kB")
