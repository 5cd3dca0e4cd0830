"""What is known of the book that is being built, from one step to the next."""

import html
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from press import BookError, cache, labs, pages
from press.pages import Fault, Figure, Page


@dataclass
class Prepared:
    """A page, what its blocks did, and what is wrong with it."""

    page: Page
    drawings: list[tuple[Figure, dict[str, Any]]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    results: list[str] = field(default_factory=list)  # what its blocks did, a digest each
    asked: set[str] = field(default_factory=set)  # the modules of posenc that this depends on
    pending: int = 0  # blocks that have not run yet, while serving
    printed: list[str] = field(default_factory=list)  # what the cells of a lab print


@dataclass
class Book:
    """One book while it is built, or the page at / with its language "" and no pages of its own."""

    language: str = ""
    folder: Path = Path()  # of its sources
    url: str = ""
    contents: list[str] = field(default_factory=list)  # its pages in the order in which they are read
    parts: dict[str, list[str]] = field(default_factory=dict)  # the chapters of a part, by its first page
    titles: dict[str, str] = field(default_factory=dict)
    serving: bool = False  # a fault is shown, and does not stop the process
    prepared: dict[str, Prepared] = field(default_factory=dict)
    drawings: dict[str, list[str]] = field(default_factory=dict)  # that wait until the search index is fed
    run_in_page: set[str] = field(default_factory=set)  # pages whose blocks say how they run in the page
    formulas: dict[str, list[str]] = field(default_factory=dict)  # as MathML, waiting likewise
    characters: dict[str, set[str]] = field(default_factory=dict)  # of the formulas of each page
    faults: int = 0  # that were shown while serving, and what MkDocs warned of
    new: bool = False  # some of its pages had not run
    processes: list[BaseProcess] = field(default_factory=list)  # that build the books, for the page at /
    _pages: dict[str, Page] = field(default_factory=dict)
    _metas: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def executes(self) -> bool:
        """Whether code is run: POSENC_EXECUTE=0 switches it off, and nothing is checked."""
        return os.environ.get("POSENC_EXECUTE") != "0"

    def source(self, name: str) -> Path:
        """The file that a page is made from."""
        return labs.source(self.folder / name)

    def text(self, name: str) -> str:
        return labs.text(self.folder / name)

    def page(self, name: str) -> Page:
        """A page, which is read once."""
        if name not in self._pages:
            self._pages[name] = pages.read(self.folder / name)
        return self._pages[name]

    def printed(self, name: str) -> list[str]:
        """What the cells of a lab print; the text of a chapter holds that itself."""
        return self.prepared[name].printed if name in self.prepared else []

    def meta(self, name: str) -> Mapping[str, Any]:
        """The front matter of a page."""
        if name not in self._metas:
            self._metas[name] = pages.front_matter(self.text(name))[0]
        return self._metas[name]

    def check_heads(self, names: Iterable[str]) -> None:
        """Name every page whose front matter cannot be read."""
        for name in names:
            for fault in pages.front_matter(self.text(name))[2]:
                self.fault(f"{cache.shown(self.source(name))}:{fault.line}: {fault.message}")

    def without_broken_head(self, name: str) -> str:
        """A page, while serving without its front matter where that cannot be read."""
        text = self.text(name)
        _, head, faults = pages.front_matter(text)
        return text[len(head) :] if faults else text

    def fault(self, message: str) -> str:
        """Stop the build; while serving say it in the terminal and on the page, and go on."""
        if not self.serving:
            raise BookError(message)
        self.faults += 1
        print(message, file=sys.stderr)  # no log record: in strict mode it would stop the server
        return f'<strong class="fault">{html.escape(message)}</strong>'
