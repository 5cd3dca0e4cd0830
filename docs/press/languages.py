"""Joins the two books: each page knows its twin in the other language, and no removed page stays behind."""

from __future__ import annotations

import posixpath
import shutil
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from press import BookError, labs

if TYPE_CHECKING:
    from press.book import Book

LANGUAGES = {"en": "English", "zh": "中文"}


def clean(folder: Path) -> None:
    """Remove all in `folder` but dot files, as MkDocs itself does; a link goes, what it points to stays."""
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def missing(name: str, book: Book) -> list[str]:
    """The books in which a page has no twin."""
    return [
        f"Page '{book.language}/{name}' has no twin '{language}/{name}'"
        for language in LANGUAGES
        if language != book.language and not labs.source(book.folder.parent / language / name).is_file()
    ]


def shared_assets(html: str, url: str) -> str:
    """A book's 404 page, whose links are absolute, with the theme where the projects plugin puts it.

    >>> shared_assets('<script src="/a/en/assets/b.js">', "https://example.org/a/en/")
    '<script src="/a/assets/b.js">'
    """
    book = urlsplit(url or "/").path.rstrip("/")
    before, after = f'"{book}/assets/', f'"{posixpath.dirname(book).rstrip("/")}/assets/'
    if before not in html:
        raise BookError(f"the 404 page of {url} does not ask for {before[1:]}, as Material's has done so far")
    return html.replace(before, after)


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
