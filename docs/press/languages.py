"""Joins the two books: each page knows its twin in the other language."""

from __future__ import annotations

import posixpath
from collections.abc import Collection
from typing import TYPE_CHECKING

from press import labs

if TYPE_CHECKING:
    from press.book import Book

LANGUAGES = {"en": "English", "zh": "中文"}


def having(name: str, book: Book) -> list[str]:
    """The languages in which there is a page."""
    return [each for each in LANGUAGES if labs.source(book.folder.parent / each / name).is_file()]


def missing(name: str, book: Book) -> list[str]:
    """The books in which a page has no twin; a draft may be alone."""
    alone = set() if book.meta(name).get("draft") else LANGUAGES.keys() - having(name, book)
    return [f"Page '{book.language}/{name}' has no twin '{each}/{name}'" for each in sorted(alone)]


def twins(
    url: str, base_url: str, site_url: str | None, having: Collection[str] = tuple(LANGUAGES)
) -> list[dict[str, str]]:
    """The same page in every language: `link` absolute where the site's address is known, `page` relative.

    In a language that has no such page it is the front page of that book.

    >>> twins("labs/waveforms.html", "..", "https://example.org/en/")[1]["link"]
    'https://example.org/zh/labs/waveforms.html'
    >>> twins("labs/waveforms.html", "..", None)[1]["page"]
    '../../zh/labs/waveforms.html'
    >>> twins("labs/waveforms.html", "..", None, having=["en"])[1]["page"]
    '../../zh/index.html'
    """
    result = []
    for language, name in LANGUAGES.items():
        there = url if language in having else "index.html"
        page = posixpath.normpath(posixpath.join(base_url, "..", language, there))
        link = posixpath.join(posixpath.dirname(site_url.rstrip("/")), language, there) if site_url else page
        result.append({"lang": language, "name": name, "link": link, "page": page})
    return result
