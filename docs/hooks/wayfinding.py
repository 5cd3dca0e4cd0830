"""Where a page stands in its book: which chapter it is, what it builds on, which labs go with it.

A page says in its front matter what a reader should have read before: `needs: [order, naive]`, names of pages
of the same book without their suffix. The rest follows from the contents (`nav`): the Markdown pages in it,
without the front page, are the chapters, in this order; a page that is none says `chapter: false`. A lab goes
with every chapter that it needs.
"""

from __future__ import annotations

import logging
import posixpath
from pathlib import Path
from typing import Any

import pages
from labs import is_lab
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.wayfinding")


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation) -> None:
    """Give the template what it says above and below a page."""
    if not config.extra.get("home"):
        context["way"] = way(page, nav)


def name(page: Page) -> str:
    """'order' for order.md, 'labs/waveforms' for labs/waveforms.py."""
    return posixpath.splitext(page.file.src_uri)[0]


def _source(page: Page) -> Path:
    return Path(page.file.abs_src_path or "")


def chapters(nav: Navigation) -> list[Page]:
    """The chapters of a book in the order in which they are read."""
    return [
        page
        for page in nav.pages
        if not page.is_homepage and not is_lab(page) and page.meta.get("chapter") is not False
    ]


def way(page: Page, nav: Navigation) -> dict[str, Any]:
    """What the reader of a page is told; a need that is no page, or comes later, is a warning."""
    order = [name(other) for other in nav.pages]
    needed = []
    for need in page.meta.get("needs", []):
        if need not in order:
            log.warning("Page '%s' needs '%s', which is no page of the book", page.file.src_uri, need)
        elif order.index(need) >= order.index(name(page)):
            log.warning("Page '%s' needs '%s', which comes later in the book", page.file.src_uri, need)
        else:
            needed.append(nav.pages[order.index(need)])
    book = chapters(nav)
    stem = posixpath.basename(name(page))
    return {
        "number": book.index(page) + 1 if page in book else 0,
        "count": len(book),
        "needs": needed,
        "labs": [lab for lab in nav.pages if is_lab(lab) and name(page) in lab.meta.get("needs", [])],
        "script": f"{stem}.py" if page in book and pages.read(_source(page)).blocks else "",
        "markdown": f"{stem}.md",
    }
