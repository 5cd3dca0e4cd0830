"""What the site and its pages say of themselves: where they are, which version this is, where a text is corrected.

Whoever publishes says the address of the repository in POSENC_REPOSITORY. The rest follows from it; a site that is not
at the address that GitHub gives to the Pages of its repository has its own in POSENC_SITE_URL.
"""

import functools
import os
import subprocess
from typing import Any

from press.book import Book
from press.cache import ROOT, shown
from press.pages import loaded

LICENCE = "https://creativecommons.org/licenses/by/4.0/"


# What a page that is kept says until it is written: the commit is another one each time.
VERSION, SOURCE = "POSENC-VERSION", "POSENC-SOURCE"


def repository() -> str:
    """The address of the repository, or nothing."""
    return os.environ.get("POSENC_REPOSITORY", "").rstrip("/")


def site_url() -> str:
    """Where the site is published, or nothing."""
    if own := os.environ.get("POSENC_SITE_URL"):
        return f"{own.rstrip('/')}/"
    _, _, path = repository().partition("github.com/")
    owner, _, name = path.partition("/")
    return f"https://{owner}.github.io/{name}/" if name else ""


def _citation() -> Any:
    return _read((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


_read = functools.lru_cache(maxsize=1)(loaded)


@functools.cache
def git(*words: str) -> str:
    """What git says of this checkout; nothing where there is none."""
    try:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def day() -> str:
    """The day of the commit; that of the last release where there is none."""
    return git("log", "-1", "--format=%cs") or str(_citation()["date-released"])


def version() -> str:
    return str(_citation()["version"])


def signed(text: str) -> str:
    """A text of the site with the version and the commit that it is made from, and where posenc of both is."""
    if VERSION in text or SOURCE in text:
        commit = git("describe", "--always", "--abbrev=7", "--dirty", "--exclude=*")
        text = text.replace(VERSION, f"{version()} ({commit})" if commit else version())
        archive = f" @ {repository()}/archive/{git('rev-parse', 'HEAD')}.zip"
        text = text.replace(SOURCE, archive if repository() and commit else f">={version()}")
    return text


def correction(name: str, book: Book) -> str:
    """Where the source of a page can be changed, or nothing."""
    return f"{repository()}/edit/main/{shown(book.source(name))}" if repository() else ""


def structured(name: str, book: Book, title: str, address: str, way: dict[str, Any]) -> dict[str, Any]:
    """A page for search engines, in the words of schema.org: the book, or a chapter or page of it."""
    meta, tongue = book.meta(name), {"en": "en", "zh": "zh-Hans"}[book.language]
    whole = {
        "@type": "Book",
        "name": title,
        "url": f"{book.url}index.html",
        "inLanguage": tongue,
        "license": LICENCE,
        "isAccessibleForFree": True,
        "author": [{"@type": "Organization", "name": author["name"]} for author in _citation()["authors"]],
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
