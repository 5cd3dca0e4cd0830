"""While the books are served: blocks run behind, and an edit need not wait for all of them."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mkdocs.livereload import LiveReloadServer
from press import behind, hook
from press.behind import Behind
from press.running import execute
from press.running.book_blocks import Runs


class Server:
    """What MkDocs' server is asked for."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def watch(self, path: str) -> None: ...

    def get_app(self) -> Callable[..., Iterable[bytes]]:
        return lambda environ, start_response: [b""]

    def set_app(self, application: Any) -> None:
        self.application = application


def _book(root: Path, code: str) -> None:
    """A book of one page in both languages."""
    for language in ("en", "zh"):
        (root / "docs" / language).mkdir(parents=True)
        (root / "docs" / language / "a.md").write_text(code, encoding="utf-8")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Behind]:
    monkeypatch.setenv("POSENC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "cpu_count", lambda: 1)  # one process has enough to do
    behind = Behind()
    yield behind
    if behind.workers:
        behind.workers.close()


def test_no_job_begins_while_a_build_does(
    served: Behind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, began = list[str](), threading.Event()

    class Slow(execute.Interpreter):
        def run(self, units: list[list[str]]) -> list[execute.Outcome]:
            ran.append(units[0][0])
            began.set()
            time.sleep(0.2)
            return [execute.Outcome([""], [[]]) for _ in units]

    monkeypatch.setattr(execute, "Interpreter", Slow)
    _book(tmp_path, "".join(f"```python\nx = {k}\n```\n" for k in range(40)))
    served.before_build(tmp_path)
    served.after_build(tmp_path)
    served.attach(Server(tmp_path), tmp_path)
    served.before_build(tmp_path)  # at once: the thread has hardly begun
    assert len(ran) < 5
    served.after_build(tmp_path)
    assert began.wait(20)
    served.before_build(tmp_path)
    assert 0 < len(ran) < 20


def test_a_build_ends_what_runs_and_it_is_run_again(served: Behind, tmp_path: Path) -> None:
    begun, free = tmp_path / "begun", tmp_path / "free"
    wait = f"import pathlib, time\npathlib.Path({str(begun)!r}).touch()\n"
    wait += (
        f"for _ in range(1200):\n    if not pathlib.Path({str(free)!r}).exists():\n        time.sleep(0.05)\n"
    )
    _book(tmp_path, f"```python\n{wait}```\n")
    served.attach(Server(tmp_path), tmp_path)
    end = time.monotonic() + 60
    while not begun.exists():
        assert time.monotonic() < end, "the block has not begun"
        time.sleep(0.05)
    served.before_build(tmp_path)
    assert not list(tmp_path.glob("cache/blocks/*"))
    free.touch()
    served.after_build(tmp_path)
    assert served.thread is not None
    served.thread.join()
    assert len(list(tmp_path.glob("cache/blocks/*"))) == 1
    assert (tmp_path / "progress.txt").read_text() == "1 / 1"


def test_only_what_is_open_and_does_not_train_keeps_a_build_waiting(served: Behind, tmp_path: Path) -> None:
    _book(tmp_path, "```python\nx = 1\n```\n")
    (tmp_path / "docs" / "zh" / "a.md").write_text("```python\nx = 2\n```\n", encoding="utf-8")
    server = Server(tmp_path)
    served.attach(server, tmp_path)
    assert served.thread is not None
    served.thread.join()
    for name in ("en", "zh"):
        blocks = f"```python\ny = '{name}'\n```\n```python\ny = 'posenc.experiments'\n```\n"
        (tmp_path / "docs" / name / "a.md").write_text(blocks, encoding="utf-8")
    server.application({"PATH_INFO": "/zh/a.html"}, None)
    served.before_build(tmp_path)
    runs = Runs()
    ran = [runs.known([f"y = '{name}'\n"]) for name in ("en", "zh", "posenc.experiments")]
    assert ran == [False, True, False]


@pytest.mark.parametrize("edited", ["docs/a.md", "mkdocs.yml"])
def test_an_edit_is_seen_and_what_python_has_compiled_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: str
) -> None:
    config, compiled = tmp_path / "mkdocs.yml", tmp_path / "docs" / "__pycache__" / "a.pyc"
    compiled.parent.mkdir(parents=True)
    for path in (config, compiled, tmp_path / "docs" / "a.md"):
        path.touch()
    server = LiveReloadServer(lambda: None, "127.0.0.1", 0, str(tmp_path))
    for watched in (compiled.parents[1], config):
        server.watch(str(watched))
    monkeypatch.setattr(behind.BEHIND, "attach", lambda *_: None)
    given: Any = SimpleNamespace(docs_dir=str(compiled.parents[1]), config_file_path=str(config))
    hook.on_serve(server, given, lambda: None)
    server.watch(str(compiled.parents[1]))
    server.observer.start()
    try:
        time.sleep(0.5)
        compiled.write_text("1")
        time.sleep(1)
        assert not server._want_rebuild
        (tmp_path / edited).write_text("1")
        with server._rebuild_cond:
            assert server._rebuild_cond.wait_for(lambda: server._want_rebuild, 30)
    finally:
        server.observer.stop()
        server.server_close()
