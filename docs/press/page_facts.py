"""What a page says of itself to those who look for it, and where its text is corrected."""

import os
from typing import Any

import yaml

from press.book import Book
from press.cache import ROOT, shown

LICENCE = "https://creativecommons.org/licenses/by/4.0/"


def repository() -> str:
    """The address of the repository, if whoever builds the site says it (pages.yml does)."""
    return os.environ.get("POSENC_REPOSITORY", "").rstrip("/")


def correction(name: str, book: Book) -> str:
    """Where the source of a page can be changed, or nothing."""
    return f"{repository()}/edit/main/{shown(book.source(name))}" if repository() else ""


def structured(name: str, book: Book, title: str, address: str, way: dict[str, Any]) -> dict[str, Any]:
    """A page for search engines, in the words of schema.org: the book, or a chapter or page of it."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    meta, tongue = book.meta(name), {"en": "en", "zh": "zh-Hans"}[book.language]
    whole = {
        "@type": "Book",
        "name": title,
        "url": f"{book.url}index.html",
        "inLanguage": tongue,
        "license": LICENCE,
        "isAccessibleForFree": True,
        "author": [{"@type": "Organization", "name": author["name"]} for author in citation["authors"]],
    }
    said = {"@context": "https://schema.org", "description": meta.get("description", "")}
    if name == "index.md":
        return said | whole
    page = {"@type": "Chapter" if way["number"] else "WebPage", "name": meta.get("title", ""), "url": address}
    if way["number"]:
        page["position"] = way["number"]
    if way["minutes"]:
        page["timeRequired"] = f"PT{way['minutes']}M"
    return said | page | {"inLanguage": tongue, "isPartOf": whole}
