"""Runs the code of the pages while the book is built.

All blocks of a book whose results are not in the cache run in one fresh interpreter (execute.py). Both books are
built at once, by two processes: each block is run by one of them, the other takes its result from the cache.
A result is kept under the block's code without its comments, so that translating a comment runs nothing, with
the modules of posenc that the block can reach (dependencies.py) and the versions of the libraries.

A block that fails, prints something else than its page shows or draws without a caption stops the build: all
such faults of a book are reported at once, each with page and line. Under `mkdocs serve` they are printed and
shown at the top of their page, and the server goes on.

POSENC_EXECUTE=0 switches execution off: pages are built without drawings, and nothing is checked.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import logging
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from press import cache, figures, numbers, pages, uncollected
from press.book import Book, Prepared
from press.running import dependencies, execute, outputs

log = logging.getLogger("mkdocs.plugins.posenc")

Parts = list[str]


# --- Running ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """The names of a unit's result: with what it can reach of posenc, and with all of it."""

    own: str
    wide: str


class Runs:
    """Units and their outcomes, with posenc as it is at this moment."""

    def __init__(self, package: Path = cache.PACKAGE, store: cache.Store | None = None) -> None:
        self.sources = dependencies.sources(package)
        self.store = store or cache.Store("blocks")
        programs = [Path(str(module.__file__)) for module in (execute, figures, numbers)]
        self.depends_on = cache.digest(files=programs)
        self.outcomes: dict[str, execute.Outcome] = {}  # by their own key
        self._keys: dict[tuple[str, ...], Keys] = {}

    def key(self, parts: Parts) -> Keys:
        """The names of a unit's result: its code without comments and layout, cut into its parts."""
        if tuple(parts) not in self._keys:
            self._keys[tuple(parts)] = self._key(parts)
        return self._keys[tuple(parts)]

    def _key(self, parts: Parts) -> Keys:
        code = "".join(parts)
        own, wide = self.sources.digest(code), self.sources.digest_of_all
        written = [repr(parts)]
        looks_at_itself = re.search(r"\b(inspect|traceback|linecache)\b", code)  # at its comments, too
        if not looks_at_itself and (tree := dependencies.parsed(code)):
            ends = itertools.accumulate(part.count("\n") for part in parts)
            cuts = [sum(statement.lineno <= end for statement in tree.body) for end in ends]
            written = [repr(cuts), ast.dump(tree)]
        return Keys(*(cache.key(self.depends_on, depends_on, *written) for depends_on in (own, wide)))

    def execute(self, units: Iterable[Parts]) -> None:
        """Takes the outcome of each unit from the store, or runs it in the one interpreter of this book."""
        jobs = {(keys := self.key(parts)).own: (keys, parts) for parts in units}
        interpreter, ran, start = execute.Interpreter(), 0, time.perf_counter()

        def make(entry: str) -> None:
            nonlocal ran
            keys, parts = jobs[entry]
            ran += 1
            self.outcomes[entry] = outcome = interpreter.run(parts)
            if not self.sources.current():  # posenc has been edited meanwhile
                return
            if outcome.error is not None:
                self.store.put_failure(entry, outcome.to_json())
            else:
                known = self.sources.files_of("".join(parts))
                self.store.put(
                    keys.own if known.issuperset(outcome.reached) else keys.wide, outcome.to_json()
                )

        try:
            self.store.fill(jobs, lambda entry: self._is_kept(jobs[entry][0]), make)
        finally:
            interpreter.close()
        if ran:
            self.store.prune()
            log.info("Ran %d block%s in %.1f seconds", ran, "s" * (ran > 1), time.perf_counter() - start)

    def outcome(self, parts: Parts) -> execute.Outcome:
        return self.outcomes[self.key(parts).own]

    def _is_kept(self, keys: Keys) -> bool:
        store = self.store
        for text in (store.get(keys.own), store.get(keys.wide), store.failure(keys.own)):
            if keys.own not in self.outcomes and text is not None:
                with contextlib.suppress(TypeError, ValueError):  # not of our making: run it again
                    self.outcomes[keys.own] = execute.Outcome.from_json(text)
        return keys.own in self.outcomes


# --- A book -------------------------------------------------------------------------------------------------


def prepare(sources: Mapping[str, pages.Page], runs: Runs | None = None) -> dict[str, Prepared]:
    """Runs the blocks of all pages of a book, as far as it must, and says what is wrong with each page."""
    runs = runs or Runs()
    runs.execute([part.code for part in unit.parts] for page in sources.values() for unit in page.blocks)
    book = {}
    for name, page in sources.items():
        book[name] = prepared = Prepared(page, faults=[*page.faults, *uncollected.uncollected(page)])
        for unit in page.blocks:
            outcome = runs.outcome([part.code for part in unit.parts])
            prepared.faults += outputs.faults(unit, outcome, page.is_lab)
            prepared.printed += outcome.outputs if page.is_lab else []
            for part, drawn in zip(unit.parts, outcome.figures, strict=False):
                if part.figure and drawn:
                    prepared.drawings.append((part.figure, drawn[0]))
    return book


def report(book: Mapping[str, Prepared]) -> list[str]:
    """All faults of a book, a string each: page, line, what is wrong."""
    return [
        f"{cache.shown(prepared.page.path)}:{fault.line}: {fault.message}"
        for prepared in book.values()
        for fault in sorted(prepared.faults, key=lambda fault: fault.line)
    ]


def run_book(book: Book, names: Iterable[str]) -> None:
    """Runs the blocks of a book; all its faults stop the build together."""
    book.prepared = prepare({name: pages.read(book.folder / name) for name in names})
    if faults := report(book.prepared):
        book.fault("\n".join([f"{len(faults)} fault{'s' * (len(faults) > 1)} in the pages", *faults]))
