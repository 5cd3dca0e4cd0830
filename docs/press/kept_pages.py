"""Pages as they were built, kept under all that they depend on, so that an edit renders only what it changes.

A page is looked up twice. Its first name holds its source, posenc and everything else that may matter. Where there
is nothing under it, its blocks are run as far as they must, and the second name holds what they did instead of
posenc: an edit of a formula renders only the pages whose numbers or drawings it changes. A page with a fault is not
kept, and one with blocks that have not run yet only under its second name, which says which they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from press import cache, pages, snippets
from press.book import Book
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
        self._common = _common(book, sorted(names), configs)
        self._posenc = dependencies.sources().digest_of_all
        self._names: dict[str, tuple[str, str]] = {}

    def find(self, names: Iterable[str]) -> list[str]:
        """Takes the pages that are kept under their first names; gives the others."""
        missing = []
        for name in names:
            own = cache.key(self._common, name, *self._sources(name))
            first = cache.key(own, self._posenc)
            self._names[name] = first, own
            if not self._take(name, self._first.get(first)):
                missing.append(name)
        return missing

    def find_by_results(self, names: Iterable[str]) -> list[str]:
        """Takes the pages that are kept with what their blocks did; gives the others."""
        missing = []
        for name in names:
            first, own = self._names[name]
            prepared = self.book.prepared.get(name)
            second = cache.key(own, *prepared.results) if prepared else first
            self._names[name] = first, second
            if (prepared and prepared.faults) or not self._take(name, second):
                missing.append(name)
            elif not (prepared and prepared.pending):
                self._first.put(first, second)
        return missing

    def keep(self, name: str, page: Kept) -> None:
        """Keeps a page that has been built."""
        prepared = self.book.prepared.get(name)
        if name in self._names and not (prepared and prepared.faults):
            first, second = self._names[name]
            self._second.put(second, json.dumps(asdict(page), ensure_ascii=False))
            if not (prepared and prepared.pending):
                self._first.put(first, second)

    def prune(self) -> None:
        for store in (self._first, self._second):
            store.prune(days=7, most=400)

    def _take(self, name: str, second: str | None) -> bool:
        if second is not None and (text := self._second.get(second)) is not None:
            self.pages[name] = Kept(**json.loads(text))
        return name in self.pages

    def _sources(self, name: str) -> list[str]:
        """The text of a page, and of the chapters whose blocks it collects."""
        text = self.book.text(name)
        chapters = [self.book.folder / f"{chapter}.md" for chapter in snippets.chapters(text)]
        return [text, *(path.read_text(encoding="utf-8") for path in chapters if path.is_file())]


def _common(book: Book, names: list[str], configs: Iterable[Path]) -> str:
    """One name for what all pages of a book depend on, besides their own text and posenc."""
    libraries = sorted({(each.name, each.version) for each in metadata.distributions()})
    parts: list[str | bytes] = [book.language, book.url, str(book.executes), repr(libraries), cache.digest()]
    parts.append(json.dumps(pyodide.config("") if pyodide.there() else None, sort_keys=True))
    for name in names:  # what a page says of others: their titles, what they need, what they are found by
        parts += [name, pages.front_matter_text(book.text(name))]
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
