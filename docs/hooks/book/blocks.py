"""Runs the code of the pages while the book is built.

All blocks of a book whose results are not in the cache run in one fresh interpreter (run.py). Both books
are built at once by two processes; a lock lets each block run once, and the other book takes its result from
the cache. A result is kept under the block's code without its comments, so that translating a comment runs
nothing, together with the digest of posenc and the libraries.

A block that fails, prints something else than its page shows or draws without a caption stops the build: all
such faults of a book are reported at once, each with page and line. Under `mkdocs serve` they are printed and
shown at the top of their page, and the server goes on.

POSENC_EXECUTE=0 switches execution off: pages are built without drawings, and nothing is checked.
"""

from __future__ import annotations

import ast
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import BookError, cache, figures, unread
from . import page as pages
from . import run as runner

if TYPE_CHECKING:
    from .state import Book

log = logging.getLogger("mkdocs.plugins.posenc")

RUNNER = Path(runner.__file__)
Parts = list[str]


# --- Running ------------------------------------------------------------------------------------------------


def digest() -> str:
    """What the result of every block depends on."""
    return cache.digest(files=[RUNNER, Path(figures.__file__)])


def key(parts: Parts, depends_on: str) -> str:
    """The name of a unit's result: its code without comments and layout, cut into its parts."""
    code = "".join(parts)
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return cache.key(depends_on, *parts)
    if re.search(r"\b(inspect|traceback|linecache)\b", code):  # it may look at its own comments
        return cache.key(depends_on, *parts)
    lines = [part.count("\n") for part in parts]
    ends = [sum(lines[: index + 1]) for index in range(len(lines))]
    cuts = [sum(statement.lineno <= end for statement in tree.body) for end in ends]
    return cache.key(depends_on, repr(cuts), ast.dump(tree))


def execute(
    units: Mapping[str, Parts], store: cache.Store, current: Callable[[], bool] = lambda: True
) -> dict[str, runner.Outcome]:
    """The outcome of each unit: from `store`, or by running what it lacks in one interpreter.

    Nothing is kept unless `current()` holds after the run: posenc may have been edited meanwhile.
    """
    outcomes = _kept(units, store)
    if len(outcomes) == len(units):
        return outcomes
    with store.lock():
        # the other book may have run some of them while this one waited
        outcomes |= _kept({entry: units[entry] for entry in units if entry not in outcomes}, store)
        missing = {entry: parts for entry, parts in units.items() if entry not in outcomes}
        if missing:
            start = time.perf_counter()
            outcomes |= _run(missing)
            if current():
                for entry in missing:
                    if outcomes[entry].error is None:
                        store.put(entry, outcomes[entry].to_json())
                store.prune()
            count = f"{len(missing)} block{'s' * (len(missing) > 1)}"
            log.info("Ran %s in %.1f seconds", count, time.perf_counter() - start)
    return outcomes


def _kept(units: Mapping[str, Parts], store: cache.Store) -> dict[str, runner.Outcome]:
    outcomes = {}
    for entry in units:
        text = store.get(entry)
        if text is None:
            continue
        try:
            outcomes[entry] = runner.Outcome.from_json(text)
        except (TypeError, ValueError):  # not of our making: run it again
            continue
    return outcomes


def _run(units: Mapping[str, Parts]) -> dict[str, runner.Outcome]:
    """Runs all units in a fresh interpreter; where one brings it down, the rest run in the next."""
    outcomes: dict[str, runner.Outcome] = {}
    paths = [str(cache.ROOT), str(cache.HOOKS), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "MPLBACKEND": "agg",
        "PYTHONHASHSEED": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        jobs, results = Path(folder, "jobs.json"), Path(folder, "results.jsonl")
        while left := [(entry, parts) for entry, parts in units.items() if entry not in outcomes]:
            jobs.write_text(json.dumps(left), encoding="utf-8")
            results.write_text("", encoding="utf-8")
            done = subprocess.run(
                [sys.executable, "-m", "book.run", str(jobs), str(results)],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            started, *lines = results.read_text(encoding="utf-8").splitlines() or [""]
            for line in lines:
                entry, outcome = json.loads(line)
                outcomes[entry] = runner.Outcome(**outcome)
            if not started:  # the runner itself, not a block
                raise BookError(f"The blocks could not be run:\n{done.stderr.strip()}")
            crashed = next((entry for entry, _ in left if entry not in outcomes), None)
            if crashed:
                message = f"exit status {done.returncode}\n{done.stderr.strip()}".strip()
                place = re.search(rf'"{runner.BLOCK}", line (\d+)', done.stderr)
                line_number = int(place[1]) if place else 0
                error = {"type": "The block ends the interpreter", "message": message, "line": line_number}
                outcomes[crashed] = runner.Outcome(error=error)
    return outcomes


# --- A book -------------------------------------------------------------------------------------------------


@dataclass
class Prepared:
    """A page, what its blocks did, and what is wrong with it."""

    page: pages.Page
    drawings: list[tuple[pages.Figure, dict[str, Any]]] = field(default_factory=list)
    faults: list[pages.Fault] = field(default_factory=list)


def prepare(
    sources: Mapping[str, pages.Page], store: cache.Store | None = None, depends_on: str | None = None
) -> dict[str, Prepared]:
    """Runs the blocks of all pages of a book, as far as it must, and says what is wrong with each page."""
    before = depends_on or digest()
    keys = {
        (name, unit.line): key([part.code for part in unit.parts], before)
        for name, page in sources.items()
        for unit in page.blocks
    }
    units = {
        keys[name, unit.line]: [part.code for part in unit.parts]
        for name, page in sources.items()
        for unit in page.blocks
    }
    current = (lambda: True) if depends_on else (lambda: digest() == before)
    outcomes = execute(units, store or cache.Store("blocks"), current)
    book = {}
    for name, page in sources.items():
        book[name] = prepared = Prepared(page, faults=[*page.faults, *unread.uncollected(page)])
        for unit in page.blocks:
            outcome = outcomes[keys[name, unit.line]]
            prepared.faults += runner.faults(unit, outcome)
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
    if not book.executes:
        return
    book.prepared = prepare({name: pages.read(book.source(name)) for name in names})
    if faults := report(book.prepared):
        book.fault("\n".join([f"{len(faults)} fault{'s' * (len(faults) > 1)} in the pages", *faults]))
