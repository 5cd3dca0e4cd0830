"""Joins the two books: each page knows its twin in the other language."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from press import labs

if TYPE_CHECKING:
    from press.book import Book

LANGUAGES = {"en": "English", "zh": "中文"}


def missing(name: str, book: Book) -> list[str]:
    """The books in which a page has no twin."""
    return [
        f"Page '{book.language}/{name}' has no twin '{language}/{name}'"
        for language in LANGUAGES
        if language != book.language and not labs.source(book.folder.parent / language / name).is_file()
    ]


def twins(url: str, base_url: str, site_url: str | None) -> list[dict[str, str]]:
    """The same page in every language: `link` absolute where the site's address is known, `page` relative.

    >>> twins("labs/waveforms.html", "..", "https://example.org/en/")[1]["link"]
    'https://example.org/zh/labs/waveforms.html'
    >>> twins("labs/waveforms.html", "..", None)[1]["page"]
    '../../zh/labs/waveforms.html'
    """
    result = []
    for language, name in LANGUAGES.items():
        page = posixpath.normpath(posixpath.join(base_url, "..", language, url))
        link = posixpath.join(posixpath.dirname(site_url.rstrip("/")), language, url) if site_url else page
        result.append({"lang": language, "name": name, "link": link, "page": page})
    return result
