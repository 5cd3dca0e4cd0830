"""While the books are served: blocks run behind, and an edit need not wait for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from press import cache
from press.behind import Behind
from press.running import execute


class Server:
    """What MkDocs' server is asked for."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)

    def watch(self, path: str) -> None: ...

    def get_app(self) -> Callable[..., Iterable[bytes]]:
        return lambda environ, start_response: [b""]

    def set_app(self, application: object) -> None: ...


def test_a_build_waits_for_the_jobs_that_run_and_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran, began = list[str](), threading.Event()

    class Slow(execute.Interpreter):
        def run(self, units: list[list[str]]) -> list[execute.Outcome]:
            ran.append(units[0][0])
            began.set()
            time.sleep(0.2)
            return [execute.Outcome([""], [[]]) for _ in units]

    monkeypatch.setattr(execute, "Interpreter", Slow)
    monkeypatch.setenv("POSENC_CACHE", str(tmp_path / "cache"))
    for language in ("en", "zh"):
        (tmp_path / "docs" / language).mkdir(parents=True)
        text = "".join(f"```python\nx = {k}\n```\n" for k in range(40))
        (tmp_path / "docs" / language / "a.md").write_text(text, encoding="utf-8")
    served = Behind()
    served.before_build(tmp_path)
    served.after_build(tmp_path)
    served.attach(Server(tmp_path), tmp_path)
    served.before_build(tmp_path)  # at once: the thread has hardly begun
    assert len(ran) < 5
    served.after_build(tmp_path)
    assert began.wait(20)
    served.before_build(tmp_path)
    assert 0 < len(ran) < 20
    assert (tmp_path / "progress.txt").is_file()
    assert cache.Store("blocks").folder.is_dir()
