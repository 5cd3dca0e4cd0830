"""While the books are served, their blocks run behind: pages are there at once, drawings and checks follow.

What stands in the pages is shown, with a line that says how many blocks have not run yet. The page that is open goes
first; the site is built again when its blocks have run, and when all have. After an edit the build waits a moment for
the blocks of the open page, so that one reload shows what they do now.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, Protocol

from press import books, cache, labs, pages
from press.languages import LANGUAGES
from press.running import dependencies, execute
from press.running.book_blocks import Parts, Runs, Workers, trains, twins

PATIENCE = 4.0  # seconds that a build waits for the blocks of the open page
PROGRESS = "progress.txt"  # in the served folder: 'ran of all'

SERVING = False  # set when MkDocs starts; it loads hook.py anew for each build


class Server(Protocol):
    """What is asked of MkDocs' server."""

    root: str

    def watch(self, path: str) -> None: ...
    def get_app(self) -> Callable[..., Iterable[bytes]] | None: ...
    def set_app(self, application: Any) -> None: ...


class Behind:
    """The blocks that have not run yet, and who runs them."""

    def __init__(self) -> None:
        self.open = "", ""  # the page that was asked for last: 'en', 'rotary.md'
        self._paused = threading.Event()  # no job begins: a build does
        self._server: Server | None = None
        self.workers: Workers | None = None
        self._posenc = ""  # the package that the workers have imported
        self.thread: threading.Thread | None = None
        self._done = cache.folder() / "served"

    def attach(self, server: Server, root: Path) -> None:
        """Watches which page is open, and begins to run blocks; the server builds again when they have run."""
        application = server.get_app()
        assert application is not None

        def watched(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            if (path := environ.get("PATH_INFO", "")).endswith(".html"):
                language, _, name = path.removeprefix("/").partition("/")
                self.open = language, name.removesuffix(".html") + ".md"
            return application(environ, start_response)

        server.set_app(watched)
        cache.write(self._done / "once", b"")
        server.watch(str(self._done))
        self._server = server
        self.after_build(root)

    def before_build(self, root: Path) -> None:
        """Runs the blocks of the open page but for trainings, as far as they begin within PATIENCE."""
        self._pause()
        runs, (language, name) = Runs(), self.open
        if self._server is None:
            runs.failures.clear()  # once; after that a block is run again when it changes
        path = root / "docs" / language / name
        if not (language in LANGUAGES and labs.source(path).is_file()) or runs.has_run(path):
            return
        jobs = [job for job in runs.jobs(twins({name: pages.read(path)})) if not trains(job)]
        if jobs:
            end = time.monotonic() + PATIENCE
            self._ready().run(takewhile(lambda _: time.monotonic() < end, jobs), runs.take)

    def after_build(self, root: Path) -> None:
        """Begins to run what is left, as soon as there is a server."""
        if self._server is not None:
            self._paused.clear()
            self.thread = threading.Thread(target=self._run, args=(root,), daemon=True)
            self.thread.start()

    def _ready(self) -> Workers:
        """The workers, with posenc as it is now."""
        posenc = dependencies.sources().digest_of_all
        if self.workers is None:
            self.workers = Workers()
        elif posenc != self._posenc:
            self.workers.fresh()
        self._posenc = posenc
        return self.workers

    def _pause(self) -> None:
        """Ends the jobs that run, and waits for the thread, which hands out no other."""
        self._paused.set()
        while self.thread and self.thread.is_alive():
            if self.workers:
                self.workers.interrupt()
            self.thread.join(0.2)

    def _run(self, root: Path) -> None:
        runs = Runs()
        read = books.unfinished(root, runs)
        left: dict[str, list[list[Parts]]] = {}
        for name in dict.fromkeys(name for book in read for name in book):
            page = [{name: book[name]} for book in read if name in book]
            if jobs := runs.jobs(twins(*page)):
                left[name] = jobs
        books.note(read, runs)
        if not left:
            self._ready().start()  # an edit will need them
            return
        of_page = {id(job): name for name, jobs in left.items() for job in jobs}
        waiting = {name: len(jobs) for name, jobs in left.items()}
        count = sum(waiting.values())

        def next_jobs() -> Iterator[list[Parts]]:
            while left and not self._paused.is_set():
                name = self.open[1] if self.open[1] in left else next(iter(left))
                yield left[name].pop(0)
                if not left[name]:
                    del left[name]

        def take(job: list[Parts], outcomes: list[execute.Outcome]) -> None:
            runs.take(job, outcomes)
            name = of_page[id(job)]
            waiting[name] -= 1
            self._say(count - sum(waiting.values()), count)
            if not waiting[name] and name == self.open[1]:
                self._build_again()

        self._ready().run(next_jobs(), take)
        books.note(read, runs)
        if not any(waiting.values()):
            self._build_again()

    def _say(self, ran: int, count: int) -> None:
        print(
            f"\rBlocks that have run: {ran} of {count} ",
            end="\n" * (ran == count),
            file=sys.stderr,
            flush=True,
        )
        if self._server:
            cache.write(Path(self._server.root) / PROGRESS, f"{ran} / {count}".encode())

    def _build_again(self) -> None:
        cache.write(self._done / "once", str(time.time()).encode())


BEHIND = Behind()
