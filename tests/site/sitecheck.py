"""What a reader's browser would stumble over in the built site: a check gives a list of faults."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from bs4 import BeautifulSoup, Tag

BOOKS = ("en", "zh")

# What a browser fetches by itself. A plain link is followed by the reader, or not.
FETCHED = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "image": ("href", "xlink:href"),
    "img": ("src", "srcset"),
    "input": ("src",),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "track": ("src",),
    "use": ("href", "xlink:href"),
    "video": ("src", "poster"),
}
NOT_FETCHED = {"canonical", "next", "prev", "author", "license", "help", "search"}
CSS_URL = re.compile(r"""(?:url\(\s*|@import\s+)["']?([^"')\s]+)""")
TEX = re.compile(r"\$|\\[()\[\]]|\\[a-zA-Z]{2,}")


@cache
def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_bytes(), "lxml")


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def name(path: Path, site: Path) -> str:
    return path.relative_to(site).as_posix()


def elsewhere(url: str) -> bool:
    parts = urlsplit(url.strip())
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ws", "wss", "ftp")


def third_parties(site: Path) -> list[str]:
    """Addresses outside the site that a browser would fetch, or connect to, by itself."""
    found = []
    for path in pages(site):
        for tag in soup(path).find_all(True):
            urls: list[str] = CSS_URL.findall(str(tag.get("style") or ""))
            if tag.name == "style":
                urls += CSS_URL.findall(tag.get_text())
            if tag.name == "link":
                # where a page has scripts, alternate is fetched as well: Material's looks for a sitemap there
                rel = {str(word).lower() for word in tag.get_attribute_list("rel")}
                rel -= set() if soup(path).find("script", src=True) else {"alternate"}
                urls += [str(tag.get("href") or "")] if rel - NOT_FETCHED else []
            for attribute in FETCHED.get(tag.name, ()):
                value = str(tag.get(attribute) or "")
                urls += [part.split()[0] for part in value.split(",") if part.strip()]
            found += [f"{name(path, site)}: <{tag.name}> {url}" for url in urls if elsewhere(url)]
    for path in sorted(site.rglob("*.css")):
        urls = CSS_URL.findall(path.read_text(encoding="utf-8"))
        found += [f"{name(path, site)}: {url}" for url in urls if elsewhere(url)]
    return found


def links(site: Path) -> list[str]:
    """Links and sources that lead to no file of the site, or to no anchor in it."""
    found = []
    for path in pages(site):
        base = f"http://site/{name(path, site)}"
        for tag in soup(path).find_all(True):
            for attribute in ("href", "src", "xlink:href"):
                url = str(tag.get(attribute) or "")
                if not url or urlsplit(url).scheme or urlsplit(url).netloc:
                    continue
                target = urlsplit(urljoin(base, url))
                file = site / unquote(target.path).lstrip("/")
                if target.path.endswith("/"):
                    file /= "index.html"
                if not file.is_file():
                    found.append(f"{name(path, site)}: {url}: no such file")
                elif target.fragment and unquote(target.fragment) not in anchors(file):
                    found.append(f"{name(path, site)}: {url}: no such anchor")
    return found


@cache
def anchors(path: Path) -> frozenset[str]:
    return frozenset(
        str(tag.get(key)) for tag in soup(path).find_all(True) for key in ("id", "name") if tag.get(key)
    )


def language_switch(site: Path) -> list[str]:
    """Pages whose switch does not lead to the same page of the other book."""
    found = []
    for here, there in (BOOKS, BOOKS[::-1]):
        for path in pages(site / here):
            if path.name == "404.html":
                continue
            switch = soup(path).find("a", class_="book-language")
            url = str(switch.get("href")) if isinstance(switch, Tag) else ""
            twin = site / there / path.relative_to(site / here)
            if (path.parent / url).resolve() != twin.resolve() or not twin.is_file():
                found.append(f"{name(path, site)}: the switch leads to '{url}'")
    return found


def language(site: Path) -> list[str]:
    """Pages that do not say in which language they are."""
    return [
        f"{name(path, site)}: lang={root.get('lang')}"
        for book in BOOKS
        for path in pages(site / book)
        if isinstance(root := soup(path).find("html"), Tag) and root.get("lang") != book
    ]


def duplicate_ids(site: Path) -> list[str]:
    """Ids that a page uses twice."""
    found = []
    for path in pages(site):
        counts = Counter(str(tag["id"]) for tag in soup(path).find_all(id=True))
        found += [f"{name(path, site)}: {id}" for id, count in counts.items() if count > 1]
    return found


def unset_formulas(site: Path) -> list[str]:
    """TeX that a reader would see."""
    found = []
    for path in pages(site):
        copy = BeautifulSoup(str(soup(path)), "lxml")
        for tag in copy.find_all(["pre", "code", "script", "style", "annotation"]):
            tag.decompose()
        found += [f"{name(path, site)}: {text}" for text in TEX.findall(copy.get_text())]
        found += [f"{name(path, site)}: arithmatex" for _ in copy.find_all(class_="arithmatex")]
        found += [f"{name(path, site)}: <merror>" for _ in copy.find_all("merror")]
    return found


LONG = {
    "en": 80,
    "zh": 30,
}  # letters of a description: fewer name a figure, and do not say what is to be seen
# A list of the labels is what the build falls back on where nobody has looked at the figure.
LABELS = re.compile(r"(Horizontal|Vertical) axis: |Legend: |[横纵]轴：|图例：")


def figures(path: Path) -> tuple[int, list[str]]:
    """How many drawings a page has, and what is wrong with them.

    A drawing is one picture for a screen reader. Its title is the caption; its description, in the language
    of the page, says what is to be seen.
    """
    found = []
    language = "zh" if "zh" in path.parts else "en"
    drawings = soup(path).select("figure.plot")
    ids: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for drawing in drawings:
        caption = drawing.find("figcaption")
        text = caption.get_text(strip=True) if isinstance(caption, Tag) else ""
        if not text:
            found.append("a drawing has no caption")
        elif not _speaks(text, language):
            found.append(f"the caption is in the other language: {text}")
        svg = drawing.find("svg")
        if not isinstance(svg, Tag):
            found.append(f"no drawing above '{text}'")
            continue
        parts = {name: svg.find(name, recursive=False) for name in ("title", "desc")}
        words = {
            name: part.get_text(strip=True) if isinstance(part, Tag) else "" for name, part in parts.items()
        }
        names = [str(part.get("id", "")) for part in parts.values() if isinstance(part, Tag)]
        ids.update(names)
        said[words["desc"]] += 1
        if svg.get("role") != "img" or not names or str(svg.get("aria-labelledby", "")).split() != names:
            found.append(f"a screen reader is not told what this drawing is called: {text}")
        if words["title"] != text:
            found.append(f"the title is not the caption: {words['title']}")
        if not words["desc"]:
            found.append(f"no description: {text}")
        elif not _speaks(words["desc"], language):
            found.append(f"the description is in the other language: {words['desc']}")
        elif words["desc"] == text or len(words["desc"]) < LONG[language] or LABELS.search(words["desc"]):
            found.append(f"the description does not say what is to be seen: {words['desc']}")
    found += [f"two drawings share the id {name}" for name, count in ids.items() if name and count > 1]
    found += [
        f"two drawings share a description: {text}" for text, count in said.items() if text and count > 1
    ]
    return len(drawings), found


def _speaks(text: str, language: str) -> bool:
    return bool(re.search("[\u4e00-\u9fff]", text)) == (language == "zh")


def search_index(site: Path) -> list[str]:
    """Entries that lead out of their book, and markup in them."""
    found = []
    for book in BOOKS:
        index = site / book / "search" / "search_index.json"
        entries = json.loads(index.read_text(encoding="utf-8"))["docs"]
        for entry in entries:
            page, _, anchor = entry["location"].partition("#")
            file = (site / book / (page or "index.html")).resolve()
            if not file.is_file() or not file.is_relative_to((site / book).resolve()):
                found.append(f"{book}: {entry['location']}: no such page in this book")
            elif anchor and anchor not in anchors(file):
                found.append(f"{book}: {entry['location']}: no such anchor")
            prose = re.sub(r"<(pre|code)>.*?</\1>", "", entry["title"] + entry["text"], flags=re.DOTALL)
            if TEX.search(prose) or "arithmatex" in prose or "<svg" in prose or "<math" in prose:
                found.append(f"{book}: {entry['location']}: markup in the index")
        indexed = {entry["location"].partition("#")[0] or "index.html" for entry in entries}
        for path in pages(site / book):
            if path.name != "404.html" and name(path, site / book) not in indexed:
                found.append(f"{book}: {name(path, site / book)} cannot be found by searching")
    return found


def sitemaps(site: Path) -> list[str]:
    """Pages whose twins the sitemap does not name."""
    found = []
    for book in BOOKS:
        text = (site / book / "sitemap.xml").read_text(encoding="utf-8")
        entries = re.findall(r"<url>.*?</url>", text, re.DOTALL)
        for path in pages(site / book):
            page = name(path, site / book)
            entry = next((entry for entry in entries if f"/{book}/{page}</loc>" in entry), "")
            for other in BOOKS:
                if page != "404.html" and not re.search(
                    rf'hreflang="{other}" href="[^"]*/{other}/{page}"', entry
                ):
                    found.append(f"{book}/{page}: no {other}")
    return found


CHECKS = (
    third_parties,
    links,
    language_switch,
    language,
    duplicate_ids,
    unset_formulas,
    search_index,
    sitemaps,
)
