"""What goes with each page of the built site: a check takes a page and gives a list of faults."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from book import page as pages
from bs4 import BeautifulSoup, Tag
from sitebuild import ROOT

BOOKS = ("en", "zh")
LOCALES = {"en": "en_GB", "zh": "zh_CN"}
CHINESE = re.compile("[\u4e00-\u9fff]")


@functools.lru_cache(maxsize=64)
def _soup(path: Path, changed: int) -> BeautifulSoup:
    return BeautifulSoup(path.read_bytes(), "lxml")


def soup(path: Path) -> BeautifulSoup:
    return _soup(path, path.stat().st_mtime_ns)


@functools.cache
def contents(book: str) -> list[str]:
    """The pages of a book in the order of its contents: 'order', 'labs/waveforms'."""

    names = pages.contents(ROOT / "docs" / "sites" / book / "mkdocs.yml")
    return [name.rpartition(".")[0] for name in names]


@dataclass(frozen=True)
class Place:
    """A page of a book: what it is made from, and what it is in the site."""

    site: Path
    book: str
    name: str

    @property
    def source(self) -> Path:
        return ROOT / "docs" / self.book / f"{self.name}{'.py' if self.lab else '.md'}"

    @property
    def lab(self) -> bool:
        return self.name.startswith("labs/")

    @property
    def chapter(self) -> bool:
        return not self.lab and self.name != "index" and self.meta.get("chapter") is not False

    @property
    def meta(self) -> dict[str, Any]:
        return pages.front_matter(self.source.read_text(encoding="utf-8"))[0]

    def file(self, suffix: str) -> Path:
        return self.site / self.book / f"{self.name}{suffix}"

    @property
    def html(self) -> BeautifulSoup:
        return soup(self.file(".html"))


def places(site: Path) -> list[Place]:
    return [Place(site, book, name) for book in BOOKS for name in contents(book)]


# --- The script of a chapter --------------------------------------------------------------------------------


def script(place: Place) -> list[str]:
    """The chapter's blocks, all of them, in their order, in a file that compiles; linked from the page."""
    blocks = pages.read(place.source).blocks if place.chapter else []
    file = place.file(".py")
    if not blocks:
        return []
    if not file.is_file():
        return [f"no {file.name}"]
    text = file.read_text(encoding="utf-8")
    try:
        ast.parse(text)
    except SyntaxError as error:
        return [f"line {error.lineno}: {error.msg}"]
    faults, rest = [], text
    for unit in blocks:
        for part in unit.parts:
            _, code, rest = rest.partition(part.code.strip("\n"))
            if not code:
                return [f"line {part.fence.line} of the page is not in the script"]
    if not any(link.get("href") == file.name for link in place.html.select("a[download]")):
        faults.append(f"no link to {file.name}")
    return faults


# --- The Markdown twin --------------------------------------------------------------------------------------

_LEFT_OVER = re.compile(r"<!--|<figure|<svg|</|pytest-codeblocks|POSENC|\{ ?\.\w")
_INLINE = re.compile(r"(`+).*?\1", re.DOTALL)


def markdown(place: Place) -> list[str]:
    """Title and description, headings, code, outputs, formulas as TeX and captions are those of the page."""
    file = place.file(".md")
    if not file.is_file():
        return [f"no {file.name}"]
    text = file.read_text(encoding="utf-8")
    meta, head, _ = pages.front_matter(text)
    text = text[len(head) :]
    faults = [
        f"another {key}" for key in ("title", "description") if str(meta.get(key)) != str(place.meta[key])
    ]
    read = pages.parse(text + "\n")
    headings = [
        (int(tag.name[1]), str(tag.get("id"))) for tag in place.html.select("article :is(h1, h2, h3, h4)[id]")
    ]
    if [(heading.level, heading.id) for heading in read.headings] != headings:
        faults.append("other headings")
    for block in place.html.select("article pre > code"):
        if _flat(block.get_text()) not in _flat(text):
            faults.append(f"without the code {block.get_text()[:40]!r}")
    for formula in place.html.select("article annotation"):
        if _flat(formula.get_text()) not in _flat(text):
            faults.append(f"without the formula {formula.get_text()}")
    for caption in place.html.select("article figcaption"):
        if _flat(caption.get_text()) not in _flat(text):
            faults.append(f"without the caption {caption.get_text()[:40]}")
    for paragraph in place.html.select("article p:not(.downloads, .admonition-title, figure *)"):
        strings = paragraph.find_all(string=True, recursive=False)
        parts = [part for text in strings for part in re.split(r"[\n“”\"'‘’…—–]", text)]
        longest = max(parts, key=len, default="")
        if _flat(longest) not in _flat(text):
            faults.append(f"without the text {longest[:60]!r}")
    prose = _INLINE.sub("", read.prose)
    faults += [f"left over: {found}" for found in _LEFT_OVER.findall(prose)]
    return faults + _links(place, read)


def _flat(text: str) -> str:
    """The text without blanks, and without what Markdown writes and HTML does not."""
    return re.sub(r"[\s\\]", "", text)


def _links(place: Place, read: pages.Page) -> list[str]:
    faults = []
    for link in read.links:
        url = urlsplit(urljoin(f"http://site/{place.book}/{place.name}.md", link.target))
        if url.netloc != "site":
            continue
        file = place.site / unquote(url.path).lstrip("/")
        if not file.is_file() or file.suffix == ".html":
            faults.append(f"{link.target} is no twin")
        elif url.fragment and f"{{#{unquote(url.fragment)}}}" not in file.read_text(encoding="utf-8"):
            faults.append(f"{link.target} has no such heading")
    return faults


# --- Where a page stands ------------------------------------------------------------------------------------


def way(place: Place) -> list[str]:
    """Its number among the chapters, what to read first, the next and previous page, its labs and twins."""
    names = contents(place.book)
    at = names.index(place.name)
    chapters = [name for name in names if Place(place.site, place.book, name).chapter]
    labs = [
        name
        for name in names
        if name.startswith("labs/")
        and place.name in Place(place.site, place.book, name).meta.get("needs", [])
    ]
    wanted = {
        "previous": names[at - 1 : at],
        "next": names[at + 1 : at + 2],
        "read first": place.meta.get("needs", []),
        "more": labs
        + ([f"{place.name}.py"] if place.file(".py").is_file() and place.chapter else [])
        + [f"{place.name}.md"],
    }
    selectors = {
        "previous": ".md-footer__link--prev",
        "next": ".md-footer__link--next",
        "read first": ".book-way a",
        "more": ".book-more a",
    }
    faults = []
    for what, selector in selectors.items():
        found = [_target(place, link) for link in place.html.select(selector)]
        faults += [f"{what}: {found}, not {wanted[what]}"] if found != wanted[what] else []
    progress = place.html.select_one("progress")
    shown = (progress["value"], progress["max"]) if progress else ()
    stands = (str(chapters.index(place.name) + 1), str(len(chapters))) if place.name in chapters else ()
    return faults + ([f"number {shown}, not {stands}"] if shown != stands else [])


def _target(place: Place, link: Tag) -> str:
    """The page that a link leads to, named as the contents name it."""
    path = urlsplit(urljoin(f"http://site/{place.book}/{place.name}.html", str(link.get("href")))).path
    return path.removeprefix(f"/{place.book}/").removesuffix(".html")


# --- What others show of a page -----------------------------------------------------------------------------


def preview(place: Place) -> list[str]:
    """Title, description, language and address for search engines and for links that are shared."""
    title, description = str(place.meta["title"]), str(place.meta["description"])
    wanted = {
        "description": description,
        "og:title": title,
        "og:description": description,
        "og:locale": LOCALES[place.book],
        "og:type": "article",
    }
    found = {
        str(tag.get("name") or tag.get("property")): str(tag.get("content"))
        for tag in place.html.select("meta")
    }
    faults = [f"{key}: {found.get(key)}" for key, value in wanted.items() if found.get(key) != value]
    if not found.get("og:url", "").endswith(f"/{place.book}/{place.name}.html"):
        faults.append(f"og:url: {found.get('og:url')}")
    shown = place.html.title.get_text(strip=True) if place.html.title else ""
    if not shown.startswith(title) and place.name != "index":
        faults.append(f"title: {shown}")
    if bool(CHINESE.search(description)) != (place.book == "zh"):
        faults.append("the description is in the other language")
    return faults


PAGES = (script, markdown, way, preview)


# --- The site as a whole ------------------------------------------------------------------------------------


def descriptions(site: Path) -> list[str]:
    """Pages with the same description."""
    seen: dict[str, str] = {}
    faults = []
    for place in places(site):
        tag = place.html.select_one("meta[name=description]")
        text = str(tag.get("content")) if tag else ""
        if text in seen:
            faults.append(f"{place.book}/{place.name} and {seen[text]}")
        seen[text] = f"{place.book}/{place.name}"
    return faults


def for_models(site: Path) -> list[str]:
    """llms.txt of a book names all its pages in their order, that of the site both books."""
    faults = []
    for folder, books in (("en/", ["en"]), ("zh/", ["zh"]), ("", list(BOOKS))):
        text = (site / folder / "llms.txt").read_text(encoding="utf-8")
        entries = re.findall(r"(?m)^- \[(.+?)\]\((.+?)\): (.+)$", text)
        named = [
            "/".join(urlsplit(url).path.split("/")[-3 if "/labs/" in url else -2 :]) for _, url, _ in entries
        ]
        wanted = [f"{book}/{name}.md" for book in books for name in contents(book)]
        faults += [f"{folder}llms.txt: no {name}" for name in wanted if name not in named]
        faults += [f"{folder}llms.txt: {name} is not there" for name in named if not (site / name).is_file()]
        if sorted(named) == sorted(wanted) and named != wanted:
            faults.append(f"{folder}llms.txt: another order")
        if not re.match(r"# \S.*\n\n> \S.*\n\n##", text):
            faults.append(f"{folder}llms.txt: no title and summary")
    return faults


def not_found(site: Path) -> list[str]:
    """The 404 pages say so in the language of their book, at / in both, and lead to a front page."""
    faults = []
    says = {"en": "No such page", "zh": "没有这一页"}
    for book in ("", *BOOKS):
        page = soup(site / book / "404.html")
        main = page.find("main") or page
        for language, text in says.items():
            if (text in main.get_text()) != (not book or language == book):
                faults.append(f"{book}/404.html: {text}")
        targets = [urlsplit(str(link.get("href"))).path for link in main.select("a[href]")]
        for language in [book] if book else BOOKS:
            if not any(target.endswith(f"{language}/index.html") for target in targets):
                faults.append(f"{book}/404.html leads to no front page of {language}")
    return faults


SITE = (descriptions, for_models, not_found)
