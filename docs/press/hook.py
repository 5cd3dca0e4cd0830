"""The only file that MkDocs loads: its events, in the order in which a page passes through them.

What the steps do is in the rest of press, which knows nothing of MkDocs: this file and books.py are all that another
builder needs anew. MkDocs loads it for the page at /, which builds both books beside it, and for each book; `BOOK` is
the one that is being built. A page that is kept (kept_pages.py) passes through as an empty one.
"""

import functools
import importlib
import json
import logging
import os
import posixpath
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from jinja2 import Environment, FileSystemBytecodeCache, pass_context
from jinja2.runtime import Context
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink, TableOfContents

from press import (
    BookError,
    behind,
    books,
    cache,
    cards,
    chinese,
    exports,
    feed,
    formulas,
    glossary,
    labs,
    languages,
    made,
    markup,
    material,
    page_facts,
    reading_order,
    reference,
    said,
    search,
    snippets,
)
from press.book import Book
from press.kept_pages import Kept, KeptPages, search_entries
from press.running import book_blocks
from press.runtime import pyodide

if TYPE_CHECKING:
    from mkdocs.livereload import LiveReloadServer

BOOK = Book()
KEPT: KeptPages | None = None
BUILT: dict[str, tuple[str, Kept]] = {}  # pages of this build by name, with their addresses
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


class Warned(logging.Handler):
    """A page that MkDocs warns of is not kept: the next build would not warn again."""

    def emit(self, record: logging.LogRecord) -> None:
        BOOK.faults += 1


WARNED = Warned(logging.WARNING)


def kept(page: Page) -> Kept | None:
    """The page as it was built, where nothing that it depends on has changed."""
    return KEPT.pages.get(page.file.src_uri) if KEPT else None


# --- Once a build -------------------------------------------------------------------------------------------


def on_startup(command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
    behind.SERVING = command == "serve"


def on_config(config: MkDocsConfig) -> None:
    home = bool(config.extra.get("home"))
    language = "" if home else str(config.theme.get("language") or config.theme.get("locale") or "en")
    global BOOK
    if home and not behind.SERVING:
        config.site_url = page_facts.site_url() or config.site_url
    BOOK = Book(language, Path(config.docs_dir), config.site_url or "", serving=behind.SERVING)
    make = config.theme.get_env

    def get_env() -> Environment:
        env = make()
        env.loader = material.Templates(config.theme.dirs)
        return env

    config.theme.get_env = get_env  # type: ignore[method-assign]


@said_by_mkdocs
def on_pre_build(config: MkDocsConfig) -> None:
    if BOOK.language:
        return
    if faults := material.broken(material.material()):
        raise BookError("\n".join(faults))
    root = Path(config.config_file_path).parent
    if BOOK.executes and BOOK.serving:
        behind.BEHIND.before_build(root)
    elif BOOK.executes:
        BOOK.new = books.run_blocks(root)


@event_priority(-50)  # when other plugins have added and removed their files
@said_by_mkdocs
def on_files(files: Files, config: MkDocsConfig) -> None:
    for file in [] if BOOK.language and pyodide.there() else list(files.media_files()):
        if file.src_uri.startswith("runtime/"):  # what runs blocks in the page
            files.remove(file)
    for file in files.media_files():
        if "/lunr/" in file.src_uri and not search.wanted(file.src_uri):
            files.remove(file)
    if not BOOK.language:
        root, site = Path(config.config_file_path).parent, Path(config.site_dir)
        BOOK.processes = books.start(root, site, BOOK.url, BOOK.serving, BOOK.serving or BOOK.new)
        return
    logging.getLogger("mkdocs").addHandler(WARNED)
    for lab in labs.of_book(BOOK.folder):
        files.append(File.generated(config, f"labs/{lab.name}", abs_src_path=str(labs.source(lab))))
    names = [file.src_uri for file in files.documentation_pages()]
    BOOK.check_heads(names)
    for file in files.documentation_pages():
        if BOOK.meta(file.src_uri).get("draft"):  # it need not stand in the navigation
            file.inclusion = InclusionLevel.NOT_IN_NAV
    global KEPT
    root = Path(config.config_file_path).parents[3]
    KEPT = KeptPages(BOOK, names, [root / "mkdocs.yml", Path(config.config_file_path)])
    missing = KEPT.find(names)
    if BOOK.executes:
        book_blocks.run_book(BOOK, missing)
        missing = KEPT.find_by_results(missing)
    if missing:
        importlib.import_module("press.warm")  # it is there where blocks have run, or the books are served
        chinese.learn_words(BOOK, names)


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> None:
    BOOK.contents = [page.file.src_uri for page in nav.pages]
    BOOK.titles = {page.file.src_uri: str(page.title) for page in nav.pages}
    for section in filter(lambda item: item.is_section, nav.items):
        first, *rest = [page.file.src_uri for page in section.children if page.is_page] or [""]
        if first.startswith("parts/"):
            BOOK.parts[first], BOOK.titles[first] = rest, str(section.title)
    chapters = [page for page in nav.pages if reading_order.is_chapter(page.file.src_uri, BOOK)]
    for number, page in enumerate(chapters, 1):
        page.title = f"{number} {page.title}"


def on_env(env: Environment, config: MkDocsConfig, files: Files) -> None:
    """The books share Material's own files with the page at /; templates are compiled once."""
    compiled = cache.folder() / f"templates-{cache.version('jinja2')}-{cache.version('mkdocs')}"
    compiled.mkdir(parents=True, exist_ok=True)
    env.bytecode_cache = FileSystemBytecodeCache(str(compiled))
    if not BOOK.language:
        return
    theme, shared = str(material.material()), set[str]()
    for file in list(files.media_files()):
        if str(file.abs_src_path).startswith(theme):
            files.remove(file)
            shared.add(file.src_uri)
    url = env.filters["url"]

    @pass_context
    def with_shared(context: Context, value: str) -> str:
        address = str(url(context, value))
        above = f"{address.removesuffix(value)}../{value}"
        return posixpath.normpath(above) if value in shared else address

    env.filters["url"] = with_shared


# --- Once a page --------------------------------------------------------------------------------------------


def on_pre_page(page: Page, config: MkDocsConfig, files: Files) -> Page:
    if found := kept(page):

        def render(config: MkDocsConfig, files: Files) -> None:
            page.content, page.toc = "", TableOfContents([])
            page.present_anchor_ids = set(found.anchors)
            targets = ((files.get_file_from_path(name), links) for name, links in found.links.items())
            page.links_to_anchors = {file: links for file, links in targets if file}

        page.render = render  # type: ignore[method-assign]
    return page


def on_page_read_source(page: Page, config: MkDocsConfig) -> str | None:
    if found := kept(page):
        meta = found.meta | {"template": "kept.html", "search": {"exclude": True}}
        return f"---\n{json.dumps(meta)}\n---\n"
    return BOOK.without_broken_head(page.file.src_uri) if BOOK.language else None


@event_priority(100)  # lines and fences are still those of the file
@said_by_mkdocs
def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if kept(page) or not BOOK.language:
        return markdown
    name = page.file.src_uri
    markdown = made.filled(snippets.filled(markdown, BOOK.folder, links=True), BOOK.folder)
    markdown = reference.with_names(said.gathered(markdown, BOOK), name, BOOK.language)
    markdown = reading_order.with_chapters(markdown, name, BOOK)
    markdown = markup.marked(markdown, BOOK, name)
    return labs.with_downloads(markdown, name, BOOK.language) if labs.is_lab(name) else markdown


@said_by_mkdocs
def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if kept(page):
        return ""
    name = page.file.src_uri
    if reading_order.is_chapter(name, BOOK) and "/" not in name:
        html = glossary.linked(html, BOOK.language, name)
    html = reference.linked(html, name)
    html = chinese.mended(html) if BOOK.language == "zh" else html
    html = formulas.as_text(html, BOOK, name)
    plain_titles(page.toc)
    html = markup.with_figures(markup.with_outputs(html), BOOK, name)
    return markup.drawings_aside(html, BOOK, name)


def plain_titles(items: Any) -> None:
    item: AnchorLink
    for item in items:
        item.title = formulas.plain_title(item.title)
        plain_titles(item.children)


def on_page_context(context: dict[str, Any], page: Page, config: MkDocsConfig, nav: Navigation) -> None:
    if kept(page) or not BOOK.language:
        return
    name = page.file.src_uri
    context["twins"] = languages.twins(page.url, context["base_url"], BOOK.url, languages.having(name, BOOK))
    context["has_formulas"] = bool(BOOK.formulas.get(name))
    if name in BOOK.run_in_page:
        context["runtime"] = pyodide.config()
    context["way"], missing = reading_order.way(name, BOOK)
    context["correction"] = page_facts.correction(name, BOOK)
    context["repository"] = page_facts.repository()
    context["card"] = f"{BOOK.url}{cards.FOLDER}/{reading_order.stem(name)}.png"
    if address := page.canonical_url:
        context["structured"] = page_facts.structured(name, BOOK, config.site_name, address, context["way"])
    for fault in [*languages.missing(name, BOOK), *missing]:
        log.warning(fault)


@event_priority(-100)  # when all plugins have had the page
@said_by_mkdocs
def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    name, target = page.file.src_uri, Path(page.file.abs_dest_path)
    if not BOOK.language:
        return markup.squeezed(output)
    if not (built := kept(page)):
        output = formulas.as_mathml(output, BOOK, name)
        output = markup.squeezed(markup.drawings_back(output, BOOK, name))
        output = markup.with_draft(output, BOOK, name)
        links = {file.src_uri: found for file, found in (page.links_to_anchors or {}).items()}
        characters = "".join(sorted(BOOK.characters.get(name, ())))
        anchors, beside = sorted(page.present_anchor_ids or ()), exports.beside(BOOK, name)
        built = Kept(output, dict(page.meta), beside, anchors, links, characters)
        BUILT[name] = page.url, built
    for file, text in built.files.items():
        path = target.parent / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page_facts.signed(text), encoding="utf-8")
    return page_facts.signed(built.html)


# --- Beside the pages ---------------------------------------------------------------------------------------


def on_template_context(context: dict[str, Any], template_name: str, config: MkDocsConfig) -> None:
    context["twins"] = languages.twins("index.html", context["base_url"], BOOK.url)

    def twins_of(file: File) -> list[dict[str, str]]:
        there = languages.having(file.src_uri, BOOK)
        twins = languages.twins(file.url, context["base_url"], BOOK.url)
        return [twin for twin in twins if twin["lang"] in there]

    context["twins_of"] = twins_of


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:
    return page_facts.signed(output)


@event_priority(-50)  # when the search plugin has written its index
@said_by_mkdocs
def on_post_build(config: MkDocsConfig) -> None:
    site = Path(config.site_dir)
    if BOOK.language:
        pages = finish_pages(site)
        characters = set().union(*(page.characters for page in pages.values()))
        (site / formulas.FONT).write_bytes(formulas.font_subset(characters))
        titles = {reading_order.stem(name): str(page.meta.get("title", "")) for name, page in pages.items()}
        cards.write(site, titles, config.site_name)
        for path in [*site.glob("book.*"), *site.glob("table.js"), *site.glob("live/*")]:
            path.write_text(markup.lightened(path.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        cards.write(site, {"index": "Positional Encoding\n位置编码"}, config.site_name)
        feed.write(site, BOOK.url, config.site_name)
        shutil.copyfile(page_facts.ROOT / "LICENSE", site / "LICENSE.txt")
        search.mend_worker(site)
        pyodide.ship(site)
        books.finish(BOOK.processes)
    exports.write_contents(site, BOOK, config.site_name, config.site_description or "")
    if BOOK.executes and BOOK.serving and not BOOK.language:
        behind.BEHIND.after_build(Path(config.config_file_path).parent)


def finish_pages(site: Path) -> dict[str, Kept]:
    """All pages of the book, in its order, with their search entries; keeps the new ones."""
    assert KEPT is not None
    logging.getLogger("mkdocs").removeHandler(WARNED)
    entries = search_entries(search.read_index(site)["docs"])
    for name, (url, page) in BUILT.items():
        claims = BOOK.text(name) if name == "claims.md" else ""
        page.search = [*search.with_claims(entries.get(url, []), claims)]
        if not BOOK.faults:
            KEPT.keep(name, page)
    pages = KEPT.pages | {name: page for name, (_, page) in BUILT.items()}
    order = [*BOOK.contents, *sorted(pages.keys() - set(BOOK.contents))]
    found = {name: pages[name] for name in order}
    search.write_index(site, [entry for page in found.values() for entry in page.search])
    search.write_elsewhere(site, BOOK)
    KEPT.prune()
    return found


# --- While serving ------------------------------------------------------------------------------------------


def on_serve(server: "LiveReloadServer", config: MkDocsConfig, builder: Callable[..., None]) -> None:
    """An author waits each time for what is found late; what Python has compiled is no edit."""
    from watchdog.observers.polling import PollingObserverVFS

    server.build_delay = 0.1  # seconds, enough for the files of one save
    if BOOK.language:
        return
    server.unwatch(config.docs_dir)  # it lies below docs
    server.unwatch(str(config.config_file_path))
    server.observer = PollingObserverVFS(  # type: ignore[assignment]
        os.stat, sources, polling_interval=0.2
    )
    server.watch(str(config.config_file_path))
    behind.BEHIND.attach(server, Path(config.config_file_path).parent)


def sources(folder: str | None) -> Iterator[os.DirEntry[str]]:
    """What lies in a folder, without what Python has compiled."""
    return (entry for entry in os.scandir(folder) if entry.name != "__pycache__")
