"""Builds both books, each by MkDocs in a process of its own, and runs their blocks before.

This file and hook.py are all that another builder needs anew. The processes are forked from one that has imported
what MkDocs needs (on Linux), so that the next build need not wait for that.
"""

import logging
import multiprocessing
import os
import sys
import threading
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from press import BookError, labs, pages
from press.languages import LANGUAGES
from press.running import book_blocks

_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
# What a book needs of others; `press.warm` is what only pages need that are new. Of press only what never changes:
# each process imports the rest as it is then.
_PRELOADED = ["mkdocs.commands.build", "material.plugins.search.plugin"]


def names(root: Path, language: str) -> list[str]:
    """The pages of a book."""
    folder = root / "docs" / language
    chapters = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    return chapters + [f"labs/{path.name}" for path in labs.of_book(root / "docs" / language)]


def unfinished(root: Path, runs: book_blocks.Runs) -> list[dict[str, pages.Page]]:
    """Of each book the pages with blocks that are not in the cache, or have failed."""
    books = []
    for language in LANGUAGES:
        paths = {name: root / "docs" / language / name for name in names(root, language)}
        books.append({name: pages.read(path) for name, path in paths.items() if not runs.has_run(path)})
    return books


def note(books: list[dict[str, pages.Page]], runs: book_blocks.Runs) -> None:
    """Notes which of these pages have run."""
    for book in books:
        for page in book.values():
            runs.note(page)


def run_blocks(root: Path) -> bool:
    """Runs all blocks of both books that are not in the cache; whether there were any."""
    runs = book_blocks.Runs()
    runs.failures.clear()
    books = unfinished(root, runs)
    runs.run(book_blocks.twins(*books))
    note(books, runs)
    return any(books)


def start(root: Path, site: Path, url: str, serving: bool, warm: bool) -> list[BaseProcess]:
    """Begins to build both books below the folder `site`."""
    context: Any = multiprocessing.get_context(_METHOD)
    if _METHOD == "forkserver":
        context.set_forkserver_preload(["press.warm"] * warm + _PRELOADED)
    started = []
    for language in LANGUAGES:
        config = root / "docs" / "sites" / language / "mkdocs.yml"
        address = f"{url.rstrip('/')}/{language}/" if url else ""
        told = language, config, site / language, address, serving, dict(os.environ)
        process = context.Process(target=build, args=told, daemon=True)
        process.start()
        started.append(process)
    return started


def finish(started: list[BaseProcess]) -> None:
    """Waits for the books; BookError if one of them could not be built, which it has said why."""
    for process in started:
        process.join()
    if any(process.exitcode for process in started):
        raise BookError("a book could not be built")


def end_with_parent() -> None:
    """A book ends with its build, if that is killed: it would go on writing into the folder of the next one."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def build(
    language: str, source: Path, site: Path, url: str, serving: bool, environment: dict[str, str]
) -> None:
    """Builds one book, in this process."""
    from mkdocs.commands.build import build as mkdocs_build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort, BuildError

    end_with_parent()
    os.environ.clear()
    os.environ.update(environment)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"%(levelname)-7s -  [{language}] %(message)s"))
    log = logging.getLogger("mkdocs")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO)
    try:
        config = load_config(str(source), site_dir=str(site), site_url=url)
        config.strict = config.strict and not serving  # while serving a warning is a line
        config.plugins.on_startup(command="serve" if serving else "build", dirty=False)
        mkdocs_build(config)
    except (BuildError, Abort) as error:
        log.error(str(error))
        sys.exit(1)
