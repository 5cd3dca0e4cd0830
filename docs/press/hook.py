"""The only file that MkDocs loads: its events, in the order in which a page passes through them.

What the steps do is in the rest of press, which knows nothing of MkDocs: this file is all that another builder needs
anew. MkDocs loads it for each book and for the page at /; `BOOK` is the one that is being built.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink

from press import BookError, cache, chinese, exports, formulas, labs, material, search
from press import languages as twins
from press import markup as setting
from press import reading_order as way
from press import snippets as take
from press.book import Book
from press.running import book_blocks
from press.runtime import pyodide

BOOK = Book()
log = logging.getLogger("mkdocs.plugins.posenc")
P = ParamSpec("P")
T = TypeVar("T")


def said_by_mkdocs(event: Callable[P, T]) -> Callable[P, T]:
    """An event whose BookError stops the build with its message and no traceback."""

    @functools.wraps(event)
    def done(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return event(*args, **kwargs)
        except BookError as error:
            raise PluginError(str(error)) from None

    return done


# --- Once a build -------------------------------------------------------------------------------------------


def on_startup(command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
    BOOK.serving = command == "serve"


def on_config(config: MkDocsConfig) -> None:
    home = bool(config.extra.get("home"))
    language = "" if home else str(config.theme.get("language") or config.theme.get("locale") or "en")
    global BOOK
    BOOK = Book(language, Path(config.docs_dir), config.site_url or "", serving=BOOK.serving)


@event_priority(100)  # before the projects plugin, which builds both books in this event
def on_pre_build(config: MkDocsConfig) -> None:
    if faults := material.broken(material.material()):
        raise PluginError("\n".join(faults))
    twins.clean(Path(config.site_dir))  # MkDocs would, but the projects plugin turns that off
    cache.begin_build()


@event_priority(-50)  # when other plugins have added and removed their files
@said_by_mkdocs
def on_files(files: Files, config: MkDocsConfig) -> None:
    for file in [] if BOOK.language and pyodide.there() else list(files.media_files()):
        if file.src_uri.startswith("runtime/"):  # what runs blocks in the page
            files.remove(file)
    for lab in sorted(BOOK.folder.parent.glob("labs/*.py")) if BOOK.language else ():
        files.append(File.generated(config, f"labs/{lab.stem}.md", abs_src_path=str(lab)))
    names = [file.src_uri for file in files.documentation_pages()]
    BOOK.check_heads(names)
    chinese.learn_words(BOOK, names)
    if BOOK.executes:
        book_blocks.run_book(BOOK, names)


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> None:
    BOOK.contents = [page.file.src_uri for page in nav.pages]


# --- Once a page --------------------------------------------------------------------------------------------


def on_page_read_source(page: Page, config: MkDocsConfig) -> str:
    return BOOK.without_broken_head(page.file.src_uri)


@event_priority(100)  # lines and fences are still those of the file
@said_by_mkdocs
def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    name = page.file.src_uri
    markdown = setting.marked(take.filled(markdown, BOOK.folder, links=True), BOOK.printed(name))
    return labs.with_downloads(markdown, name, BOOK.language) if labs.is_lab(name) else markdown


@said_by_mkdocs
def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    name = page.file.src_uri
    html = chinese.mended(html) if BOOK.language == "zh" else html
    html = formulas.as_text(html, BOOK, name)
    plain_titles(page.toc)
    html = setting.with_figures(setting.with_outputs(html), BOOK, name)
    return setting.drawings_aside(html, BOOK, name)


def plain_titles(items: Any) -> None:
    item: AnchorLink
    for item in items:
        item.title = formulas.plain_title(item.title)
        plain_titles(item.children)


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation) -> None:
    if not BOOK.language:
        return
    BOOK.titles |= {other.file.src_uri: str(other.title) for other in nav.pages}
    context["twins"] = twins.twins(page.url, context["base_url"], BOOK.url)
    if "data-run=" in (page.content or "") or "data-needs=" in (page.content or ""):
        context["runtime"] = pyodide.config(context["base_url"])
    context["way"], missing = way.way(page.file.src_uri, BOOK)
    for fault in [*twins.missing(page.file.src_uri, BOOK), *missing]:
        log.warning(fault)


@event_priority(-100)  # when all plugins have had the page
@said_by_mkdocs
def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    name, target = page.file.src_uri, Path(page.file.abs_dest_path)
    if not BOOK.language:
        return setting.squeezed(output)
    output = formulas.as_mathml(output, BOOK, name)
    output = setting.drawings_back(output, BOOK, name)
    exports.write_twins(BOOK, name, target)
    return setting.squeezed(output)


# --- Beside the pages ---------------------------------------------------------------------------------------


def on_template_context(context: dict[str, Any], template_name: str, config: MkDocsConfig) -> None:
    context["twins"] = twins.twins("index.html", context["base_url"], BOOK.url)
    context["twins_of"] = lambda url: twins.twins(url, context["base_url"], BOOK.url)


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    return twins.shared_assets(output, BOOK.url) if template_name == "404.html" and BOOK.language else output


@event_priority(-50)  # when the search plugin has written its index
@said_by_mkdocs
def on_post_build(config: MkDocsConfig) -> None:
    site = Path(config.site_dir)
    if BOOK.language:
        (site / formulas.FONT).write_bytes(formulas.font_subset(BOOK.characters))
        search.finish_index(site)
    else:
        search.mend_worker(site)
        pyodide.ship(site)
    exports.write_contents(site, BOOK, config.site_name, config.site_description or "")
    on_build_error()


def on_build_error(**_: Any) -> None:
    cache.end_build()
