"""Runs the code of the pages while the book is built.

All blocks of both books whose results are not in the cache run before the books are built, in as many warm
processes as there are cores (execute.py). A block and its twin in the other language, which mostly differ by a
word in a drawing, share a process, and so what they train. A result is kept under the block's code without its
comments and docstrings, so that translating them runs nothing, with the modules of posenc that the block can reach
(dependencies.py) and the versions of the libraries.

A block that fails, prints something else than its page shows or draws without a caption stops the build: all
such faults are reported at once, each with page and line. Under `mkdocs serve` they are printed and shown at the
top of their page, and the server goes on.

POSENC_EXECUTE=0 switches execution off: pages are built without drawings, and nothing is checked.
"""

import contextlib
import itertools
import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from press import cache, figures, labs, numbers, pages, uncollected
from press.book import Book, Prepared
from press.running import dependencies, execute, outputs, trainings

log = logging.getLogger("mkdocs.plugins.posenc")

Parts = list[str]
_TRAINS = re.compile(r"\btrain_\w+")


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
        self.failures = cache.Store("failures", root=self.store.folder.parent)  # of this build
        programs = [Path(str(module.__file__)) for module in (execute, figures, numbers, trainings)]
        self.depends_on = cache.digest(files=programs)
        self.outcomes: dict[str, execute.Outcome] = {}  # by their own key
        self.entries: dict[str, str] = {}  # under which they are kept
        self.pages = cache.Store("pages-run", root=self.store.folder.parent)
        self._keys: dict[tuple[str, ...], Keys] = {}

    def key(self, parts: Parts) -> Keys:
        """The names of a unit's result: its code without comments, docstrings and layout, cut into its parts."""
        if tuple(parts) not in self._keys:
            self._keys[tuple(parts)] = self._key(parts)
        return self._keys[tuple(parts)]

    def _key(self, parts: Parts) -> Keys:
        code = "".join(parts)
        own, wide = self.sources.digest(code), self.sources.digest_of_all
        written = [repr(parts)]
        # at its comments and docstrings, too
        looks_at_itself = re.search(r"\b(inspect|traceback|linecache|help|doctest|__doc__)\b", code)
        if not looks_at_itself and (facts := self.sources.facts(code)).bare:
            ends = itertools.accumulate(part.count("\n") for part in parts)
            cuts = [sum(line <= end for line in facts.lines) for end in ends]
            written = [repr(cuts), facts.bare]
        return Keys(*(cache.key(self.depends_on, depends_on, *written) for depends_on in (own, wide)))

    def missing(self, units: Iterable[Parts]) -> list[Parts]:
        """Those whose outcome is not in the cache, each once."""
        found = {self.key(parts).own: parts for parts in units}
        return [
            parts for key, parts in found.items() if key not in self.outcomes and not self._is_kept(parts)
        ]

    def jobs(self, twins: Iterable[list[Parts]]) -> list[list[Parts]]:
        """What has to be run: units that share a process, each unit once; what trains takes longest, and is first."""
        jobs, seen = [], set[str]()
        for units in twins:
            job = [parts for parts in self.missing(units) if self.key(parts).own not in seen]
            seen |= {self.key(parts).own for parts in job}
            jobs += [job] * bool(job)
        return sorted(jobs, key=lambda job: -len(job) * trains(job))

    def run(self, twins: Iterable[list[Parts]]) -> None:
        """Runs all units that are not in the cache, those that share a process together."""
        jobs, start = self.jobs(twins), time.perf_counter()
        count = sum(map(len, jobs))
        if count:
            with contextlib.closing(Workers(len(jobs))) as workers:
                workers.run(iter(jobs), self.take)
            for store in (self.store, self.sources.store):
                store.prune()
            seconds = time.perf_counter() - start
            log.info("Ran %d block%s in %.1f seconds", count, "s" * (count > 1), seconds)

    def take(self, job: list[Parts], outcomes: list[execute.Outcome]) -> None:
        """Keeps what has come of a job, unless posenc has been edited meanwhile."""
        current, reached = self.sources.current(), set[str]()
        for parts, outcome in zip(job, outcomes, strict=True):
            keys = self.key(parts)
            self.outcomes[keys.own] = outcome
            reached |= set(outcome.reached)  # what the first has called the second may only have looked up
            if current and outcome.error is not None:
                self.failures.put(keys.own, outcome.to_json())
            elif current:
                known = self.sources.files_of("".join(parts))
                entry = self.entries[keys.own] = keys.own if known.issuperset(reached) else keys.wide
                self.store.put(entry, outcome.to_json())

    def outcome(self, parts: Parts) -> execute.Outcome:
        return self.outcomes[self.key(parts).own]

    def known(self, parts: Parts) -> bool:
        """Whether the outcome of a unit is there."""
        return self.key(parts).own in self.outcomes or self._is_kept(parts)

    def _is_kept(self, parts: Parts) -> bool:
        keys = self.key(parts)
        for store, entry in ((self.store, keys.own), (self.store, keys.wide), (self.failures, keys.own)):
            if keys.own not in self.outcomes and (text := store.get(entry)) is not None:
                with contextlib.suppress(TypeError, ValueError):  # not of our making: run it again
                    self.outcomes[keys.own] = execute.Outcome.from_json(text)
                    if store is self.store:
                        self.entries[keys.own] = entry
        return keys.own in self.outcomes

    # A page whose blocks have all run is not read again to see that.

    def has_run(self, path: Path) -> bool:
        """Whether the outcomes of all blocks of a page are in the cache, known without reading them."""
        text = self.pages.get(cache.key(self.depends_on, labs.text(path)))
        if text is None:
            return False
        asked, state, entries = json.loads(text)
        return state == self.sources.state(asked) and all(self.store.path(each).is_file() for each in entries)

    def note(self, page: pages.Page) -> None:
        """Notes that all blocks of a page have run, if that is so and none failed."""
        units = [[part.code for part in unit.parts] for unit in page.blocks]
        if all(self.key(parts).own in self.entries for parts in units):
            asked = self.asked(units)
            entries = [self.entries[self.key(parts).own] for parts in units]
            noted = sorted(asked), self.sources.state(asked), entries
            self.pages.put(cache.key(self.depends_on, page.text), json.dumps(noted))

    def asked(self, units: Iterable[Parts]) -> set[str]:
        """The modules that outcomes depend on: all of them where a run went where reading did not lead."""
        asked = set[str]()
        for parts in units:
            keys = self.key(parts)
            follows = self.entries.get(keys.own, keys.own) == keys.own
            asked |= self.sources.asked("".join(parts)) if follows else set(self.sources.files)
        return asked


class Workers:
    """Warm processes that run jobs side by side, as many as there are cores and at most `most`."""

    def __init__(self, most: int = 99) -> None:
        self._interpreters = [execute.Interpreter() for _ in range(min(most, os.cpu_count() or 1))]

    def run(
        self, jobs: Iterator[list[Parts]], take: Callable[[list[Parts], list[execute.Outcome]], None]
    ) -> None:
        """Hands each job to the first process that is free, and its outcomes to `take`, one at a time."""
        taking, self._interrupted = threading.Lock(), False

        def work(interpreter: execute.Interpreter) -> None:
            while True:
                with taking:
                    job = next(jobs, None)
                if job is None:
                    return
                outcomes = interpreter.run(job)
                with taking:
                    if not self._interrupted:
                        take(job, outcomes)

        with ThreadPoolExecutor(len(self._interpreters)) as pool:
            list(pool.map(work, self._interpreters))

    def start(self) -> None:
        """Starts the processes now, before the first job needs them."""
        for interpreter in self._interpreters:
            interpreter.start()

    def interrupt(self) -> None:
        """Ends what runs now; nothing comes of it."""
        self._interrupted = True
        for interpreter in self._interpreters:
            interpreter.interrupt()

    def fresh(self) -> None:
        """From here on posenc is as it is on disk now."""
        for interpreter in self._interpreters:
            interpreter.fresh()

    def close(self) -> None:
        for interpreter in self._interpreters:
            interpreter.close()


def trains(job: list[Parts]) -> bool:
    """Whether units that share a process may take long."""
    return "posenc.experiments" in "".join(job[0])


# --- A book -------------------------------------------------------------------------------------------------


def twins(*books: Mapping[str, pages.Page]) -> list[list[Parts]]:
    """The blocks of books that share a process: those of one place, and those that train alike, wherever they stand."""
    found: dict[object, list[Parts]] = {}
    for book in books:
        for name, page in book.items():
            for place, unit in enumerate(page.blocks):
                parts = [part.code for part in unit.parts]
                trains = _TRAINS.search("".join(parts))
                found.setdefault(trains[0] if trains else (name, place), []).append(parts)
    return list(found.values())


def prepare(
    sources: Mapping[str, pages.Page], runs: Runs | None = None, wait: bool = True
) -> dict[str, Prepared]:
    """Runs the blocks of all pages, as far as it must, and says what is wrong with each page.

    Without `wait` nothing is run: a block without an outcome is pending.
    """
    runs = runs or Runs()
    if wait:
        runs.run(twins(sources))
    book = {}
    for name, page in sources.items():
        book[name] = prepared = Prepared(page, faults=[*page.faults, *uncollected.uncollected(page)])
        units = [[part.code for part in unit.parts] for unit in page.blocks]
        for unit, parts in zip(page.blocks, units, strict=True):
            if not runs.known(parts):
                prepared.pending += 1
                prepared.results.append("pending")
                continue
            outcome = runs.outcome(parts)
            prepared.results.append(cache.key(outcome.to_json()))
            prepared.faults += outputs.faults(unit, outcome, page.is_lab)
            prepared.printed += outcome.outputs if page.is_lab else []
            for part, drawn in zip(unit.parts, outcome.figures, strict=False):
                if part.figure and drawn:
                    prepared.drawings.append((part.figure, drawn[0]))
        prepared.asked = runs.asked(units)
    return book


def report(book: Mapping[str, Prepared]) -> list[str]:
    """All faults of a book, a string each: page, line, what is wrong."""
    return [
        f"{cache.shown(prepared.page.path)}:{fault.line}: {fault.message}"
        for prepared in book.values()
        for fault in sorted(prepared.faults, key=lambda fault: fault.line)
    ]


def run_book(book: Book, names: Iterable[str]) -> None:
    """Runs the blocks of these pages of a book; all their faults stop the build together.

    While serving, blocks run behind: those that have not run yet are pending.
    """
    book.prepared = prepare({name: book.page(name) for name in names}, wait=not book.serving)
    if faults := report(book.prepared):
        book.fault("\n".join([f"{len(faults)} fault{'s' * (len(faults) > 1)} in the pages", *faults]))
