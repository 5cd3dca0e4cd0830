"""Joins the two books: each page knows its twin in the other language, and no removed page stays behind."""

from __future__ import annotations

import logging
import posixpath
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

LANGUAGES = {"en": "English", "zh": "中文"}

log = logging.getLogger("mkdocs.hooks.books")


@event_priority(100)  # before the projects plugin, which builds both books in this event
def on_pre_build(config: MkDocsConfig) -> None:
    """Empty the site folder: MkDocs would, but the projects plugin turns that off."""
    clean(Path(config.site_dir))


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


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation) -> None:
    """Give the templates the twins of this page."""
    if config.extra.get("home"):
        return
    here = config.theme["language"]
    for language in LANGUAGES:
        twin = Path(config.docs_dir).parent / language / page.file.src_uri
        if language != here and not twin.is_file():
            log.warning(
                "Page '%s/%s' has no twin '%s/%s'", here, page.file.src_uri, language, page.file.src_uri
            )
    context["twins"] = twins(page.url, context["base_url"], config.site_url)


def on_template_context(context: dict[str, Any], template_name: str, config: MkDocsConfig) -> None:
    """404 leads to the other book's front page; the sitemap names every page's twins."""
    context["twins"] = twins("index.html", context["base_url"], config.site_url)
    context["twins_of"] = lambda url: twins(url, context["base_url"], config.site_url)


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    """Let a book's 404 page, whose links are absolute, find the theme where the projects plugin puts it."""
    if template_name != "404.html" or config.extra.get("home"):
        return output
    book = urlsplit(config.site_url or "/").path.rstrip("/")
    return output.replace(f'"{book}/assets/', f'"{posixpath.dirname(book).rstrip("/")}/assets/')


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
