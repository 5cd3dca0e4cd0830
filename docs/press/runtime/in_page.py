"""Runs blocks in the page: what execute.py is to the build, this is to a reader who runs and changes them.

It lies in the browser's Python, beside posenc and figures.py; the worker (theme/runtime/worker.js) calls it. A run
begins as in the build, with fresh names, settings and seeds and an empty folder, whatever ran before. Otherwise
than in the build a warning is printed and does not stop the block, for a reader tries things out.
"""

import __future__

import contextlib
import html
import io
import json
import linecache
import os
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from press import figures

MOST = 100_000  # characters of a run that are shown
EVERY = 0.05  # seconds between two messages
NO_WORDS = {"en": "The figure has no labels.", "zh": "图中没有文字。"}
_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})

_modules = sys.modules
_settled: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {}  # each with its names, now and then


class _Printed(io.TextIOBase):
    """What is printed, said in pieces: not more often than it can be read, and not more of it."""

    def __init__(self, say: Callable[[str], Any]) -> None:
        self.say, self.silent = say, False
        self.waiting: list[str] = []
        self.length, self.said_at = 0, 0.0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not self.silent and self.length < MOST:
            self.waiting.append(text[: MOST - self.length])
            if time.monotonic() - self.said_at > EVERY:
                self.flush()
        self.length += len(text) * (not self.silent)
        return len(text)

    def flush(self) -> None:
        if text := "".join(self.waiting):
            self.waiting.clear()
            self.say(text)
            self.said_at = time.monotonic()


def settle() -> None:
    """From here on every run finds the modules as they are now."""
    for name, module in _modules.items():
        names = vars(module) if isinstance(module, ModuleType) else {}  # or it is the browser's
        _settled[name] = module, names, dict(names)


def _restore() -> None:
    """Every module as it was when it settled, and no other: `np.pi = 3` ends with its run.

    It calls nothing, for a block may have changed whatever it would call.
    """
    for name in [name for name in _modules if name not in _settled]:
        del _modules[name]
    for name, (module, names, kept) in _settled.items():
        _modules[name] = module
        for key in [key for key in names if key not in kept]:
            del names[key]
        for key, value in kept.items():
            if names.get(key, _restore) is not value:
                names[key] = value


@contextlib.contextmanager
def _isolated() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.callback(sys.path.__setitem__, slice(None), list(sys.path))
        if "matplotlib" in sys.modules:
            import matplotlib.pyplot as plt

            plt.close("all")
            stack.callback(plt.close, "all")
            figures.set_up()
        random.seed(0)
        np.random.seed(0)
        stack.enter_context(contextlib.chdir(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.callback(_set_environment, dict(os.environ))
        stack.enter_context(np.printoptions())
        stack.enter_context(np.errstate())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        warnings.showwarning = _warn
        stack.callback(_restore)  # first of all these
        yield


def _set_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def _warn(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    print(f"{category.__name__}: {message}")


def run(job: str, say: Callable[[str], Any] = print, show: Callable[[str], Any] = print) -> str:
    """Runs the blocks of a job; of the last one it says what it prints and shows what it draws.

    A job is JSON: `blocks`, of which each has `code` and `name`, `lang`, and `draw`: without it figures are only
    counted, each is shown as "". The answer is JSON: `cut`, how many
    characters were printed beyond those that were said, and where a block failed `text`, `name` and `line`.
    """
    wanted = json.loads(job)
    blocks, language = wanted["blocks"], wanted.get("lang", "en")
    for block in blocks:
        code, name = block["code"], block["name"]
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "__main__"}
    answer: dict[str, Any] = {}
    flags = 0
    if not _settled:
        settle()
    with _isolated():
        printed = _Printed(say)
        try:
            for block in blocks:
                printed.silent = block is not blocks[-1]
                with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                    program = compile(block["code"], block["name"], "exec", flags, dont_inherit=True)
                    flags |= program.co_flags & _FUTURE
                    exec(program, names)
                    printed.flush()
                    _draw(None if printed.silent else show, language, bool(wanted.get("draw", True)))
        except BaseException as error:
            _restore()
            printed.flush()
            answer = _failure(error, {each["name"] for each in blocks}, block["name"])
        names.clear()
    return json.dumps(answer | {"cut": max(0, printed.length - MOST)})


def _failure(error: BaseException, names: set[str], name: str) -> dict[str, Any]:
    """What an error says, and the line of a block in which it arose: of the innermost one."""
    if isinstance(error, SyntaxError) and error.filename in names:
        return {
            "text": f"{type(error).__name__}: {error.msg}",
            "name": error.filename,
            "line": error.lineno or 0,
        }
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in names]
    text = "".join(traceback.TracebackException.from_exception(error).format_exception_only()).strip()
    if not frames:
        return {"text": text, "name": name, "line": 0}
    return {"text": text, "name": frames[-1].filename, "line": frames[-1].lineno or 0}


def _draw(show: Callable[[str], Any] | None, language: str, draw: bool) -> None:
    """Shows the open figures as the build draws them, each with the words of its axes for a screen reader."""
    if "matplotlib.pyplot" not in sys.modules:
        return
    import matplotlib.pyplot as plt

    for number in plt.get_fignums() if show else ():
        figure = plt.figure(number)
        words = figures.described(figures.labels(figure), language) or NO_WORDS[language]
        start, _, rest = figures.to_svg(figure).partition(">") if draw else ("", "", "")
        assert show is not None
        show(f'{start} role="img" aria-label="{html.escape(words)}">{rest}' if draw else "")
    plt.close("all")
