"""Pages as they were built, kept under all that they depend on, so that an edit renders only what it changes.

A page is looked up twice. Its first name holds its source and everything else that may matter but posenc; what it
leads to counts as long as the modules of posenc that its blocks depend on are the same. Where they are not, its blocks
are run as far as they must, and the second name holds what they did: an edit of a formula renders only the pages
whose numbers or drawings it changes. A page with a fault is not kept. While serving, a page with blocks that have not
run yet is the last one that was made of the same source, where there is one, and says how many they are.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from press import cache, glossary, live, made, markup, page_facts, pages, reference, said, snippets
from press.book import Book, Prepared
from press.languages import LANGUAGES
from press.running import dependencies
from press.runtime import pyodide


@dataclass
class Kept:
    """A built page, and what MkDocs asks of it while it builds others."""

    html: str
    meta: dict[str, Any]
    files: dict[str, str]  # what lies beside it: its script, its Markdown
    anchors: list[str]
    links: dict[str, dict[str, str]]  # to anchors of other pages, as they are written
    characters: str  # of its formulas
    search: list[dict[str, Any]] = field(default_factory=list)  # its entries


class KeptPages:
    """The pages of a book that need not be built."""

    def __init__(self, book: Book, names: Iterable[str], configs: Iterable[Path]) -> None:
        self.book, self.pages = book, dict[str, Kept]()
        self._first, self._second = cache.Store("pages-first"), cache.Store("pages")
        self._named = cache.Store("pages-named")
        self._common = _common(book, sorted(names), configs)
        self._posenc = dependencies.sources()
        self._names: dict[str, str] = {}  # the first name of a page

    def find(self, names: Iterable[str]) -> list[str]:
        """Takes the pages that are kept under their first names; gives the others."""
        self._names, missing = self._first_names([*names]), []
        for name in self._names:
            second, asked, state = self._last(name)
            if state != self._posenc.state(asked) or not self._take(name, second):
                missing.append(name)
        return missing

    def _first_names(self, names: list[str]) -> dict[str, str]:
        """The first names of pages, kept as long as no source of the books changes: what is made takes its time."""
        state = self._state(names)
        if (text := self._named.get(state)) is not None:
            return dict(json.loads(text))
        found = {name: cache.key(self._common, name, *self._sources(name)) for name in names}
        if self._posenc.current() and self._state(names) == state:  # nothing was edited meanwhile
            self._named.put(state, json.dumps(found))
        return found

    def _state(self, names: list[str]) -> str:
        """One name for all from which something is made for a page of the book."""
        folders = {self.book.folder.parent, cache.ROOT / "docs"}
        paths = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
        files = [(str(path), path.read_bytes()) for path in paths if "__pycache__" not in path.parts]
        parts = (part for file in files for part in file)
        return cache.key(self._common, *names, self._posenc.state(self._posenc.files), *parts)

    def find_by_results(self, names: Iterable[str]) -> list[str]:
        """Takes the pages that are kept with what their blocks did; gives the others."""
        missing = []
        for name in names:
            prepared = self._prepared(name)
            if prepared.faults:
                missing.append(name)
            elif prepared.pending and self._take(name, self._last(name)[0]):
                page = self.pages[name]
                page.html = markup.with_pending(page.html, prepared.pending, self.book.language)
            elif self._take(name, self._second_name(name)):
                self._note(name)
            else:
                missing.append(name)
        return missing

    def keep(self, name: str, page: Kept) -> None:
        """Keeps a page that has been built."""
        if name in self._names and not self._prepared(name).faults:
            self._second.put(self._second_name(name), json.dumps(asdict(page), ensure_ascii=False))
            self._note(name)

    def prune(self) -> None:
        for store in (self._first, self._second, self._named):
            store.prune(days=7, most=400)

    def _second_name(self, name: str) -> str:
        return cache.key(self._names[name], *self._prepared(name).results)

    def _prepared(self, name: str) -> Prepared:
        return self.book.prepared.get(name) or Prepared(self.book.page(name))

    def _last(self, name: str) -> tuple[str, list[str], str]:
        """The second name of the last page of this first name, what it depends on of posenc, and how that was."""
        second, asked, state = json.loads(self._first.get(self._names[name]) or '["", [], ""]')
        return second, asked, state

    def _note(self, name: str) -> None:
        """Notes that the page, if it is whole, is now the one under its second name."""
        if not (prepared := self._prepared(name)).pending:
            noted = self._second_name(name), sorted(prepared.asked), self._posenc.state(prepared.asked)
            self._first.put(self._names[name], json.dumps(noted))

    def _take(self, name: str, second: str) -> bool:
        if (text := self._second.get(second)) is not None:
            self.pages[name] = Kept(**json.loads(text))
        return name in self.pages

    def _sources(self, name: str) -> list[str]:
        """The text of a page with what is made for it, the blocks that it collects, and the sayings if it has these."""
        book = self.book
        text = made.filled(snippets.filled(book.text(name), book.folder), book.folder)
        chapters = sorted(book.folder.glob("*.md")) if said.PLACE in text else []
        return [text, *map(repr, (said.sayings(path.read_text(encoding="utf-8")) for path in chapters))]


def _common(book: Book, names: list[str], configs: Iterable[Path]) -> str:
    """One name for what all pages of a book depend on, besides their own text and posenc."""
    libraries = {each.name for folder in sys.path for each in Path(folder).glob("*.dist-info")}
    parts: list[str | bytes] = [
        book.language,
        book.url,
        str(book.executes),
        *sorted(libraries),
        cache.digest(),
    ]
    parts += [page_facts.repository(), (cache.ROOT / "CITATION.cff").read_bytes()]
    if pyodide.there():  # which blocks run in the page depends on what modules of posenc import
        parts += [json.dumps(pyodide.config(), sort_keys=True), repr(dependencies.sources().imports)]
    parts += [made() for given in live.HANDED_ON.values() for made in given.values()]
    parts.append(glossary.FILE.read_bytes())  # the first use of a term says what it means
    parts.append(reference.FILE.read_bytes())  # names lead to their entries
    for name in names:  # what a page says of others: their titles, how long they take, what they need
        parts += [name, pages.front_matter(book.text(name))[1]]
    for language in LANGUAGES:
        folder = book.folder.parent / language
        parts += sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    machinery = [path for folder in (cache.PRESS, cache.PRESS.parent / "theme") for path in folder.rglob("*")]
    for path in [*configs, *sorted(machinery)]:
        if path.is_file() and "__pycache__" not in path.parts:
            parts += [path.name, path.read_bytes()]
    return cache.key(*parts)


def search_entries(docs: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The entries of a search index by the addresses of their pages."""
    found: dict[str, list[dict[str, Any]]] = {}
    for entry in docs:
        found.setdefault(entry["location"].partition("#")[0], []).append(dict(entry))
    return found
