"""A book of the built site as one PDF, printed by Chromium.

`printed` sets all pages of a book, in the order in which they are read, as one document with a title page and
contents, and prints it: with bookmarks and tags, and with links that stay in the document. The rest is done
afterwards: the contents get their page numbers, from where the headings came to stand, bookmarks their names,
and glyphs the characters that they stand for.
"""

import io
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any
from unicodedata import normalize
from urllib.parse import urljoin, urlsplit

import lxml.html
from playwright.sync_api import Browser
from pypdf import PdfReader, PdfWriter
from pypdf.generic import NameObject, TextStringObject

WORDS = {
    "en": {"contents": "Contents"},
    "zh": {"contents": "目录"},
}
# Where a font draws a radical and a character alike, Chromium calls the character a radical, and nobody finds
# it. Compatibility decomposition knows most of them, these it does not.
_CHARACTERS = dict(
    zip(
        "⺠⻅⻆⻉⻋⻓⻔⻘⻙⻚⻛⻜⻝⻢⻣⻤⻥⻦⻧⻨⻩⻬⻮⻰⼾㬵",
        "民见角贝车长门青韦页风飞食马骨鬼鱼鸟卤麦黄齐齿龙户胶",
        strict=True,
    )
)
# What a page has for its reader on the screen only.
_NOT_PRINTED = "headerlink", "book-more", "downloads", "bibtex"
_RANGE = re.compile(r"<(\w+)> <(\w+)> <(\w+)>")
_LONG = 14  # lines of code: more may go on overleaf
_HEADINGS = "h1", "h2", "h3", "h4", "h5", "h6"


@dataclass(frozen=True)
class Heading:
    """A heading of the book: where a bookmark leads."""

    id: str
    level: int
    text: str
    number: str = ""  # of the chapter that it opens


def order(book: Path) -> list[str]:
    """The pages of a built book in the order of its contents, as addresses relative to its folder.

    Raises:
        ValueError: if the folder holds no built book.
    """
    contents = book / "llms.txt"
    if not contents.is_file() or not (book / "index.html").is_file():
        raise ValueError(f"{book} is no book of a built site: it has no index.html and llms.txt")
    pages = re.findall(r"(?m)^- \[.*?\]\((\S+)\.md\)", contents.read_text(encoding="utf-8"))
    address = pages[0].removesuffix("index")
    return [f"{page.removeprefix(address)}.html" for page in pages]


def document(site: Path, language: str) -> tuple[str, list[Heading]]:
    """A book as one HTML document, and all its headings as they follow each other.

    An id gets the name of its page before it: `order.html#batch` is `#order.batch`, the page `#order`.
    """
    book = site / language
    pages = order(book)
    front = _parsed(book / "index.html")
    articles = [_article(book, page, pages) for page in pages]
    headings = [heading for article in articles for heading in _headings(article)]
    contents = Heading("contents", 1, WORDS[language]["contents"])
    meta = {tag.get("name") or tag.get("property"): tag.get("content") for tag in front.iter("meta")}
    name, about = meta["og:site_name"], meta["description"]
    styles = [urljoin((book / "index.html").as_uri(), link.get("href")) for link in front.iter("link")
              if link.get("rel") == "stylesheet"]  # fmt: skip
    own = (Path(__file__).with_suffix(".css")).read_text(encoding="utf-8")
    imprint = [tag.text_content().strip() for tag in front.find_class("md-copyright__highlight")]
    lines = [_line(heading) for heading in headings if heading.level <= 2]
    parts = [
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8"><title>{escape(name)}</title>',
        f'<meta name="description" content="{escape(about)}">',
        *(f'<link rel="stylesheet" href="{style}">' for style in styles),
        f"<style>{own}{''.join(_running_titles(name, articles))}</style></head>",
        '<body dir="ltr" data-md-color-scheme="default" data-md-color-primary="custom">',
        f'<section class="title-page md-typeset"><p class="title">{escape(name)}</p>',
        f'<p class="about">{escape(about)}</p>',
        f'<p class="imprint">{"<br>".join(map(escape, imprint))}</p></section>',
        f'<nav class="contents md-typeset"><h1 id="{contents.id}">{contents.text}</h1>',
        f"<ol>{''.join(lines)}</ol></nav>",
        *(lxml.html.tostring(article, encoding="unicode", with_tail=False) for article in articles),
        "</body></html>",
    ]
    return "\n".join(parts), [contents, *headings]


def _line(heading: Heading) -> str:
    """A line of the contents."""
    return (
        f'<li class="{"chapter" if heading.level == 1 else "section"}">'
        f'<span class="number">{heading.number}</span>'
        f'<a href="#{heading.id}">{escape(heading.text)}</a><span class="dots"></span>'
        f'<span class="page" data-of="{heading.id}"></span></li>'
    )


def _parsed(path: Path) -> Any:
    return lxml.html.parse(str(path), parser=lxml.html.HTMLParser(encoding="utf-8")).getroot()


def _article(book: Path, page: str, pages: list[str]) -> Any:
    """The text of a page, with ids and links that hold in a document with all pages."""
    article = _parsed(book / page).find(".//article")
    for name in _NOT_PRINTED:
        for tag in article.find_class(name):
            tag.drop_tree()
    stem = page.removesuffix(".html")
    for tag in article.iter(lxml.etree.Element):
        for name, value in tag.attrib.items():
            if name in ("id", "for"):
                tag.set(name, f"{stem}.{value}")
            elif name in ("aria-labelledby", "aria-describedby"):
                tag.set(name, " ".join(f"{stem}.{id}" for id in value.split()))
            elif name == "src":
                tag.set(name, urljoin((book / page).as_uri(), value))
            elif name in ("href", "xlink:href"):
                _lead(tag, name, page, pages)
            elif "url(#" in value:
                tag.set(name, value.replace("url(#", f"url(#{stem}."))
    for block in article.find_class("language-python"):
        _keep_with_output(block)
    article.set("id", stem)
    return article


def _keep_with_output(block: Any) -> None:
    """Put a block of code and what it prints into a box that only long code lets a page cut."""
    box, output = lxml.html.Element("div"), block.getnext()
    box.classes |= {"run", "long"} if block.text_content().count("\n") > _LONG else {"run"}
    block.addprevious(box)
    box.append(block)
    if output is not None and "output" in output.classes:
        box.append(output)


def _lead(tag: Any, name: str, page: str, pages: list[str]) -> None:
    """Lead a link to its place in the document; one to a file that is not in it goes, its text stays."""
    url = urlsplit(urljoin(page, tag.get(name)))
    if url.scheme or url.netloc:
        return
    if url.path in pages:
        tag.set(name, f"#{url.path.removesuffix('.html')}{'.' if url.fragment else ''}{url.fragment}")
    else:
        del tag.attrib[name]


def _headings(article: Any) -> Iterator[Heading]:
    numbers = article.xpath(".//progress/@value")
    for tag in article.iter(*_HEADINGS):
        level = int(tag.tag[1])
        number = str(numbers[0]) if numbers and level == 1 else ""
        yield Heading(tag.get("id"), level, " ".join(tag.text_content().split()), number)


def _running_titles(name: str, articles: list[Any]) -> Iterator[str]:
    """At the head of each page the book and the chapter."""
    for number, article in enumerate(articles):
        title = next(_headings(article)).text
        yield f"article:nth-of-type({number + 1}) {{ page: page-{number} }}\n@page page-{number} {{\n"
        for place, text in (("left", name), ("right", title)):
            yield f"@top-{place} {{ color: #444; content: {_css(text)}; font: 8pt sans-serif }}\n"
        yield "}\n"


def _css(text: str) -> str:
    """A string of CSS in a <style> element."""
    return json.dumps(text, ensure_ascii=False).replace("<", r"\3c ")


# --- Printing -----------------------------------------------------------------------------------------------


def printed(browser: Browser, site: Path, language: str) -> bytes:
    """The PDF of a book."""
    html, headings = document(site, language)
    missing: list[str] = []
    with browser.new_page(color_scheme="light") as page, tempfile.TemporaryDirectory() as folder:
        page.on("requestfailed", lambda request: missing.append(request.url))
        file = Path(folder) / "book.html"
        file.write_text(html, encoding="utf-8")
        page.goto(file.as_uri(), timeout=600_000)  # ms: a busy machine is slow, and no fault
        book = page.pdf(prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
        if missing:
            raise ValueError(f"the {language} book lacks {', '.join(missing)}")
        reader = PdfReader(io.BytesIO(book))
        pages = [reader.get_destination_page_number(mark) or 0 for mark in _flat(reader.outline)]
        if len(pages) != len(headings):
            raise ValueError(f"the {language} book has {len(headings)} headings, {len(pages)} bookmarks")
        page.evaluate(NUMBERS, {heading.id: n + 1 for heading, n in zip(headings, pages, strict=True)})
        numbers = page.pdf(prefer_css_page_size=True, page_ranges=f"2-{pages[1]}")  # of the contents
    return _finished(book, numbers, headings)


NUMBERS = """(pages) => {
  for (const place of document.querySelectorAll(".page")) place.textContent = pages[place.dataset.of];
  document.body.className = "numbers-only";
  document.head.insertAdjacentHTML("beforeend", "<style>@page { @bottom-center { content: none } }</style>");
}"""


def _flat(outline: list[Any]) -> Iterator[Any]:
    for mark in outline:
        if isinstance(mark, list):
            yield from _flat(mark)
        else:
            yield mark


def _finished(book: bytes, numbers: bytes, headings: list[Heading]) -> bytes:
    """The PDF with page numbers in its contents, and with the text of each heading in its bookmark.

    Chromium repeats the text of a heading that it has moved to the next page.
    """
    writer = PdfWriter(io.BytesIO(book), incremental=True)
    for place, overlay in zip(writer.pages[1:], PdfReader(io.BytesIO(numbers)).pages, strict=False):
        place.merge_page(overlay)
    marks = _marks(writer.root_object["/Outlines"])
    for mark, heading in zip(marks, headings, strict=True):
        mark[NameObject("/Title")] = TextStringObject(heading.text)
    _name_characters(writer)
    writer.add_metadata({"/Creator": "posenc"})
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def _fonts(page: Any) -> Any:
    return page["/Resources"].get("/Font", {}).values()


def _name_characters(writer: PdfWriter) -> None:
    """Let the tables from glyphs to characters name characters where they name radicals."""
    fonts = {ref.idnum: ref for page in writer.pages for ref in _fonts(page)}
    for font in fonts.values():
        if table := font.get_object().get("/ToUnicode"):
            before = table.get_object().get_data().decode("ascii")
            if (after := characters(before)) != before:
                table.get_object().set_data(after.encode("ascii"))


def characters(table: str) -> str:
    """A table from glyphs to characters (ToUnicode) with characters for radicals.

    >>> characters("1 beginbfchar\\n<05> <2F12>\\nendbfchar")
    '1 beginbfchar\\n<05> <529B>\\nendbfchar'
    """

    def one_by_one(ranges: re.Match[str]) -> str:
        lines = []
        for first, last, to in _RANGE.findall(ranges[1]):
            for k in range(int(last, 16) - int(first, 16) + 1):
                code = f"{int(first, 16) + k:0{len(first)}X}"
                lines.append(f"<{code}> <{to[:-4]}{int(to[-4:], 16) + k:04X}>")
        blocks = [lines[k : k + 100] for k in range(0, len(lines), 100)]
        return "\n".join(f"{len(block)} beginbfchar\n{chr(10).join(block)}\nendbfchar" for block in blocks)

    def named(entry: re.Match[str]) -> str:
        text = bytes.fromhex(entry[2]).decode("utf-16-be")
        text = "".join(_CHARACTERS.get(c) or (normalize("NFKC", c) if "⺀" <= c <= "⿕" else c) for c in text)
        return f"{entry[1]}<{text.encode('utf-16-be').hex().upper()}>"

    expanded = re.sub(r"\d+ beginbfrange\s(.*?)endbfrange", one_by_one, table, flags=re.DOTALL)
    after = re.sub(r"(?m)^(<\w+> )<((?:\w{4})+)>$", named, expanded)
    return table if after == expanded else after


def _marks(parent: Any) -> Iterator[Any]:
    """The bookmarks under one, in the order in which they are shown."""
    mark = parent.get("/First")
    while mark is not None:
        mark = mark.get_object()
        yield mark
        yield from _marks(mark)
        mark = mark.get("/Next")
