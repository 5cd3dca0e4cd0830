"""Session fixtures whose work is begun when the run begins, while other tests keep only one core busy.

    @begun_ahead
    def site(folder: Path) -> Path: ...

Tests ask for `site` as for any fixture. Those that do come last, in the order in which the work was registered.
"""

from __future__ import annotations

import functools
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

_work: dict[str, Callable[[Path], Any]] = {}
_begun: dict[str, Future[Any]] = {}
_pool, _lock = ThreadPoolExecutor(8), threading.Lock()
_folder = functools.cache(lambda: tempfile.TemporaryDirectory(prefix="posenc-"))


def begun_ahead(work: Callable[[Path], Any]) -> Any:
    """A fixture that waits for what `work` gives, which may leave files in the folder that it is given."""
    name = work.__name__
    _work[name] = work

    def wait() -> Any:
        return finished(name)

    wait.__doc__ = work.__doc__
    return pytest.fixture(scope="session", name=name)(wait)


def finished(name: str) -> Any:
    """What has come of the work of this name, as soon as it is there."""
    return _begin(name).result()


def _begin(name: str) -> Future[Any]:
    with _lock:
        if name not in _begun:
            _begun[name] = _pool.submit(_work[name], Path(_folder().name))
        return _begun[name]


def _waits_for(item: pytest.Item) -> set[str]:
    return _work.keys() & set(getattr(item, "fixturenames", ()))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    last = {name: turn for turn, name in enumerate(_work, 1)}
    items.sort(key=lambda item: max((last[name] for name in _waits_for(item)), default=0))


def pytest_collection_finish(session: pytest.Session) -> None:
    if not session.config.option.collectonly:
        for name in sorted({name for item in session.items for name in _waits_for(item)}):
            _begin(name)


def pytest_unconfigure() -> None:
    _pool.shutdown(cancel_futures=True)
    if _begun:
        _folder().cleanup()
