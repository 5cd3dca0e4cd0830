"""What a reader of the PDFs and of the unpacked zip would stumble over: a check gives a list of faults."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import lxml.html
from pypdf import PdfReader

from tests.site import sitecheck

A4 = (595, 842)  # points
SERVED_ONLY = re.compile(r"(^|/)(404\.html|llms\.txt|sitemap\.xml(\.gz)?|search_index\.json)$|\.map$")
RADICAL = re.compile("[\u2e80-\u2fdf]")
Bookmark = tuple[int, str]


def headings(site: Path, book: str) -> list[Bookmark]:
    """Chapters and their sections, level and text, in the order of the book's contents."""
    return [heading for name in sitecheck.contents(book) for heading in of_page(site / book / f"{name}.html")]


def of_page(path: Path) -> Iterator[Bookmark]:
    for heading in sitecheck.tree(path).xpath("//article//*[self::h1 or self::h2]"):
        words = heading.xpath(f".//text()[not(ancestor::*{sitecheck.of_class('headerlink')})]")
        yield int(heading.tag[1]), " ".join("".join(words).split())


def outline(marks: list[Any], level: int = 1) -> Iterator[tuple[int, Any]]:
    """All bookmarks with their level."""
    for mark in marks:
        if isinstance(mark, list):
            yield from outline(mark, level + 1)
        else:
            yield level, mark


def bookmarks(book: PdfReader, wanted: list[Bookmark]) -> list[str]:
    """Bookmarks that are not the headings, contents first, or that go backwards."""
    marks = list(outline(book.outline))
    found = [(level, str(mark.title)) for level, mark in marks if level <= 2][1:]
    faults = [f"{a} instead of {b}" for a, b in zip(found, wanted, strict=False) if a != b]
    if len(found) != len(wanted):
        faults.append(f"{len(found)} bookmarks, {len(wanted)} headings")
    pages = [book.get_destination_page_number(mark) or 0 for _, mark in marks]
    return faults + [
        f"'{marks[k + 1][1].title}' leads back" for k in range(len(pages) - 1) if pages[k + 1] < pages[k]
    ]


def links(book: PdfReader) -> list[str]:
    """Links that lead nowhere, or to a file of the machine on which the book was made."""
    places, faults, inside = book.named_destinations, [], 0
    for number, page in enumerate(book.pages, 1):
        for reference in page.annotations or []:
            link: Any = reference.get_object()
            address = str(link.get("/A", {}).get("/URI", ""))
            if "/Dest" in link:
                inside += 1
                if str(link["/Dest"]) not in places:
                    faults.append(f"page {number}: nothing at {link['/Dest']}")
            elif not address.startswith("https://"):
                faults.append(f"page {number}: a link to {address or 'nothing'}")
    return faults if inside else [*faults, "no link stays in the book"]


def unnumbered(book: PdfReader, wanted: list[Bookmark]) -> list[str]:
    """Headings whose page the contents do not give as it is."""
    marks = [mark for level, mark in outline(book.outline) if level <= 2]
    first, start = ((book.get_destination_page_number(mark) or 0) for mark in marks[:2])
    text = "\n".join(book.pages[number].extract_text() for number in range(first, start))
    given = Counter(int(number) for number in re.findall(r"(?m)(?:^|\s)(\d+)$", text))
    pages = [(book.get_destination_page_number(mark) or 0) + 1 for mark in marks[1:]]
    own = range(first + 1, start + 1)  # the pages that hold the contents have their numbers, too
    faults = [f"page {page} is not given" for page in Counter([*pages, *own]) - given]
    return faults if len(pages) == len(wanted) else [*faults, f"{len(pages)} of {len(wanted)} are there"]


def fonts(book: PdfReader) -> list[Any]:
    found = {}
    for page in book.pages:
        resources: Any = page["/Resources"]
        for reference in resources.get("/Font", {}).values():
            found[reference.idnum] = reference.get_object()
    return list(found.values())


def unembedded(book: PdfReader) -> list[str]:
    """Fonts that the book does not bring along; one of type 3 consists of its drawings."""
    faults = []
    for font in fonts(book):
        inner = font.get("/DescendantFonts", [font])[0].get_object()
        file = inner.get("/FontDescriptor", {}).keys() & {"/FontFile", "/FontFile2", "/FontFile3"}
        if not file and font["/Subtype"] != "/Type3":
            faults.append(str(font.get("/BaseFont")))
    return faults


def radicals(book: PdfReader) -> list[str]:
    """Characters that are copied as radicals, which no search finds."""
    tables = [font["/ToUnicode"].get_data().decode("ascii") for font in fonts(book) if "/ToUnicode" in font]
    codes = re.findall(r"(?m)<((?:[0-9A-F]{4})+)>$", "\n".join(tables))
    return sorted({c for code in codes for c in RADICAL.findall(bytes.fromhex(code).decode("utf-16-be"))})


def blank(book: PdfReader) -> list[str]:
    """Pages that show no text but their number."""
    faults = []
    for number, page in enumerate(book.pages, 1):
        content = page.get_contents()
        shown = re.findall(rb"\bT[jJ]\b", b"" if content is None else content.get_data())
        if len(shown) < 5:
            faults.append(f"page {number} is blank")
    return faults


def form(book: PdfReader, language: str, title: str) -> list[str]:
    """Sizes, tags, language, title and number of pages that are not as they should be."""
    root: Any = book.root_object
    faults = [f"{page.mediabox} is no A4" for page in book.pages
              if any(abs(a - b) > 1 for a, b in zip(page.mediabox[2:], A4, strict=True))]  # fmt: skip
    if not root.get("/MarkInfo", {}).get("/Marked") or "/StructTreeRoot" not in root:
        faults.append("no tags")
    if root.get("/Lang") != language:
        faults.append(f"the language is {root.get('/Lang')}")
    if (said := book.metadata and book.metadata.title) != title:
        faults.append(f"the title is {said}")
    return faults


def lost(book: PdfReader, pages: list[int], phrases: list[str]) -> list[str]:
    """Phrases that cannot be found on these pages; where lines break does not matter."""
    text = re.sub(r"\s", "", "".join(book.pages[number].extract_text() for number in pages))
    return [phrase for phrase in phrases if re.sub(r"\s", "", phrase) not in text]


def unpacked(folder: Path) -> list[str]:
    """What is amiss in the folder that the zip makes."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    faults = [f"{name} is for a server" for name in names if SERVED_ONLY.search(name)]
    wanted = ["index.html", *(f"{book}/{name}" for book in sitecheck.BOOKS
                              for name in ("index.html", "search/search_index.js"))]  # fmt: skip
    faults += [f"no {name}" for name in wanted if name not in names]
    return faults + [fault for name in names if name.endswith(".html") for fault in lost_files(folder, name)]


def lost_files(folder: Path, name: str) -> Iterator[str]:
    """Links that lead to no file; what else may be wrong with one is asked of the site (sitecheck.links)."""
    root = lxml.html.fromstring((folder / name).read_bytes())
    tags = root.iter(lxml.html.etree.Element)
    for url in dict.fromkeys(tag.get(each, "") for tag in tags for each in ("href", "src", "xlink:href")):
        target = urlsplit(urljoin(f"file:///{name}", url))
        file = folder / unquote(target.path).lstrip("/")
        if target.scheme == "file" and not (file / "index.html" if file.is_dir() else file).is_file():
            yield f"{name}: {url}: no such file"
