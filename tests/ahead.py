"""What many tests wait for is begun when the run begins, while the other tests keep only one core busy.

The site is built, its pages are visited in browsers, and its zip and PDFs are made, in the background; mypy
reads the code. Tests ask for the results by fixtures (conftest.py), and those that do come last.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import browsing
import sitebuild
import sitecheck
from offline import archive as offline

NAMES = ("site", "visits", "offline_books", "mypy")


class Ahead:
    """Work in the background, each kind begun once: by `begin`, or when its result is asked for."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(len(NAMES))
        self._begun: dict[str, Future[Any]] = {}
        self._made: Path | None = None

    def begin(self, name: str) -> Future[Any]:
        """Start the work of this name, unless it was started."""
        work: dict[str, Callable[[], Any]] = {
            "site": self._build,
            "visits": self._visit,
            "offline_books": self._print,
            "mypy": self._check,
        }
        if name in ("visits", "offline_books"):
            self.begin("site")
        if name not in self._begun:
            self._begun[name] = self._pool.submit(work[name])
        return self._begun[name]

    def result(self, name: str) -> Any:
        """What has come of it, as soon as it is there."""
        return self.begin(name).result()

    def end(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        if self._made is not None:
            shutil.rmtree(self._made)

    def _folder(self) -> Path:
        if self._made is None:
            self._made = Path(tempfile.mkdtemp(prefix="posenc-"))
        return self._made

    def _build(self) -> Path:
        """The real site; POSENC_SITE names one that is already built."""
        if built := os.environ.get("POSENC_SITE"):
            return Path(built)
        site = self._folder() / "site"
        status, said, _ = sitebuild.build(sitebuild.ROOT, site, OMP_NUM_THREADS="1")
        if status:
            raise AssertionError(f"the site could not be built:\n{said}")
        return site

    def _visit(self) -> dict[str, browsing.Visit]:
        """One visit to each page of the site; with a question the front page sends nobody on."""
        site, browser = self.result("site"), browsing.chromium()
        if browser is None:
            return {}
        names = [sitecheck.name(path, site) for path in sitecheck.pages(site)]
        with browsing.served(site) as address:
            urls = [f"{address}{name}{'?stay' if name == 'index.html' else ''}" for name in names]
            return dict(zip(names, browsing.visits(browser, urls).values(), strict=True))

    def _print(self) -> Path:
        """A folder with the zip and the PDFs."""
        site, browser = self.result("site"), browsing.chromium()
        if browser is None:
            return Path()
        folder = self._folder() / "offline"
        with browsing.launched(browser) as launched:
            offline.make(launched, site, folder)
        return folder

    def _check(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "mypy"], cwd=sitebuild.ROOT, capture_output=True, text=True, check=False
        )
