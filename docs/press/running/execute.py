"""One way to run a block: in the build (a fresh interpreter), under pytest, and by hand.

    outcome = run([part.code for part in unit.parts])    # a unit is what pages.py says it is
    outputs.faults(unit, outcome)                        # where the page and the block do not agree

A unit begins with a namespace of its own, matplotlib's defaults as in figures.py, freshly seeded generators
and default settings, so that it gives the same whatever ran before; a warning is an error, and so is a unit
that takes longer than TIMEOUT. As a program (`python -m press.running.execute`) it reads units from stdin, a
line of JSON each, and answers each with a line: `Interpreter` is its other end.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import faulthandler
import importlib.util
import io
import itertools
import json
import linecache
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from press import BookError, cache, figures, numbers
from press.cache import PACKAGE, ROOT

BLOCK = "<block>"  # file name of a block in tracebacks
TIMEOUT = 90.0  # seconds for one unit: the slowest of the book takes 6 on an idle core, 50 on a busy one
GRACE = 10.0  # more for one that does not let itself be stopped: then its interpreter ends
STARTED = "started"  # the first line of the answers: what comes after it is the doing of a block
_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})


@dataclass
class Outcome:
    """What a unit did: what each part printed and the figures it left open; how it failed, if it did."""

    outputs: list[str] = field(default_factory=list)
    figures: list[list[dict[str, Any]]] = field(default_factory=list)
    error: dict[str, Any] | None = None  # type, message, line (of the unit's code, or 0), raised (in posenc)
    reached: list[str] = field(default_factory=list)  # the modules of posenc that it executed

    @property
    def output(self) -> str:
        return "".join(self.outputs)

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        return cls(**json.loads(text))


@contextlib.contextmanager
def isolated(seed: int = 0) -> Iterator[None]:
    """Settings and generators as in a fresh interpreter, seeded; all is put back afterwards."""
    import matplotlib
    import matplotlib.pyplot as plt
    import numpy as np

    with contextlib.ExitStack() as stack:
        stack.enter_context(matplotlib.rc_context())
        plt.switch_backend("agg")
        plt.close("all")
        stack.callback(plt.close, "all")
        figures.set_up()
        stack.callback(random.setstate, random.getstate())
        stack.callback(np.random.set_state, np.random.get_state())
        random.seed(seed)
        np.random.seed(seed)
        # a folder of its own: a block that writes a file writes it neither here nor for the next one
        stack.enter_context(contextlib.chdir(stack.enter_context(tempfile.TemporaryDirectory())))
        stack.callback(_set_environment, dict(os.environ))
        stack.enter_context(np.printoptions())
        stack.enter_context(np.errstate())
        if importlib.util.find_spec("torch"):
            import torch

            stack.callback(torch.random.set_rng_state, torch.random.get_rng_state())
            stack.callback(torch.set_default_dtype, torch.get_default_dtype())
            stack.callback(torch.set_default_device, None)
            stack.callback(torch.set_grad_enabled, torch.is_grad_enabled())
            stack.callback(torch.set_printoptions, profile="default")
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            torch.manual_seed(seed)
            # sums in one order, whatever the number of cores
            torch.set_num_threads(1)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("error")
        # a reader's plt.show() does no harm here
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        yield


def _set_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


class TakesTooLong(BaseException):
    """Raised within a unit: no `except Exception` of its own stops it."""


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Stops what takes longer than TIMEOUT: by an exception, and where none gets through, with the process.

    Only the main thread of a Unix process can be interrupted; elsewhere the process ends at once.
    """
    can = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()

    def stop(*_: object) -> None:
        raise TakesTooLong(f"it has not ended after {TIMEOUT:g} seconds")

    faulthandler.dump_traceback_later(TIMEOUT + GRACE * can, exit=True)
    before = signal.signal(signal.SIGALRM, stop) if can else None
    try:
        if can:
            signal.setitimer(
                signal.ITIMER_REAL, TIMEOUT, 1
            )  # once more each second for `except BaseException`
        yield
    finally:
        if can:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def _traced(reached: set[str]) -> Iterator[None]:
    """Notes each file of posenc of which a function is called; what an import runs does not count."""
    package, known = f"{PACKAGE}{os.sep}", dict[str, bool]()

    def importing(frame: Any) -> bool:
        while frame is not None and frame.f_code.co_filename != BLOCK:
            if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(package):
                return True
            frame = frame.f_back
        return False

    def called(frame: Any, event: str, argument: object) -> None:
        file = frame.f_code.co_filename
        if file not in known:
            known[file] = not file.startswith(package)
        if not known[file] and not importing(frame):
            known[file] = True
            reached.add(file)

    before = sys.gettrace()
    if before is None:  # a debugger, or a measure of coverage, goes first
        sys.settrace(called)
    try:
        yield
    finally:
        sys.settrace(before)


def run(parts: list[str], seed: int = 0, draw: bool = True) -> Outcome:
    """Runs the parts of a unit in one namespace; without `draw` figures are only counted."""
    code = "".join(parts)
    outcome, printed, reached = Outcome(), io.StringIO(), set[str]()
    linecache.cache[BLOCK] = (len(code), None, code.splitlines(keepends=True), BLOCK)
    # the name pytest-codeblocks gives, and what a script or a notebook has
    namespace: dict[str, Any] = {"__MODULE__": "__main__", "__name__": "__main__"}
    with isolated(seed):
        try:
            with contextlib.redirect_stdout(printed), _limited():
                for program in _compiled(code, parts):
                    with _traced(reached):
                        exec(program, namespace)
                    _keep(outcome, printed, draw)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            outcome.outputs.append(printed.getvalue().encode(errors="replace").decode())
            outcome.error = _error(error)
    outcome.reached = sorted(Path(file).relative_to(PACKAGE.parent).as_posix() for file in reached)
    return outcome


def _keep(outcome: Outcome, printed: io.StringIO, draw: bool) -> None:
    """Adds what a part has printed and drawn to the outcome."""
    import matplotlib.pyplot as plt

    printed.getvalue().encode()  # what cannot be written into a page is an error
    outcome.outputs.append(printed.getvalue())
    printed.seek(0)
    printed.truncate()
    drawn = [plt.figure(number) for number in plt.get_fignums()]
    outcome.figures.append(
        [
            {
                "svg": figures.to_svg(figure),
                "axes": figures.labels(figure),
                "numbers": numbers.drawn(figure),
                "panels": numbers.panels(figure),
            }
            if draw
            else {}
            for figure in drawn
        ]
    )
    plt.close("all")


def _compiled(code: str, parts: list[str]) -> Iterator[Any]:
    """The code as a whole, cut where one fence ends and the next begins."""
    statements = ast.parse(code, BLOCK).body
    ends = list(itertools.accumulate(part.count("\n") for part in parts))
    flags = 0
    for start, end in zip([0, *ends], ends, strict=False):
        body = [statement for statement in statements if start < statement.lineno <= end]
        program = compile(ast.Module(body, []), BLOCK, "exec", flags, dont_inherit=True)
        flags |= program.co_flags & _FUTURE
        yield program


def _error(error: BaseException) -> dict[str, Any]:
    line, raised = 0, ""
    if isinstance(error, SyntaxError) and error.filename == BLOCK:
        line = error.lineno or 0
    else:
        for frame in traceback.extract_tb(error.__traceback__):
            path = Path(frame.filename)
            if frame.filename == BLOCK:
                line, raised = frame.lineno or 0, ""
            elif path.is_relative_to(PACKAGE):
                raised = f"{path.relative_to(ROOT).as_posix()}:{frame.lineno}"
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return {"type": type(error).__name__, "message": message, "line": line, "raised": raised}


# --- In an interpreter of its own ---------------------------------------------------------------------------


class Interpreter:
    """A fresh Python that runs units one by one; where one brings it down, the next gets a new one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._stderr: IO[str] | None = None

    def run(self, parts: list[str]) -> Outcome:
        """The outcome of a unit, also of one that ends the interpreter.

        Raises:
            BookError: if no interpreter can be started.
        """
        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(parts) + "\n")
            process.stdin.flush()
        if line := process.stdout.readline():
            return Outcome.from_json(line)
        said = self._end()
        place = re.search(rf'"{BLOCK}", line (\d+)', said)
        message = f"exit status {process.returncode}\n{said}".strip()
        line_number = int(place[1]) if place else 0
        return Outcome(
            error={"type": "The block ends the interpreter", "message": message, "line": line_number}
        )

    def _start(self) -> subprocess.Popen[str]:
        self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-m", "press.running.execute"],
            cwd=tempfile.gettempdir(),
            env=os.environ | cache.environment() | {"MPLBACKEND": "agg"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            encoding="utf-8",
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != STARTED:
            raise BookError(f"The blocks could not be run:\n{self._end()}")
        return self._process

    def _end(self) -> str:
        """What the interpreter has said on stderr, now that it is no more."""
        process, stderr = self._process, self._stderr
        assert process is not None
        assert stderr is not None
        process.communicate()
        stderr.seek(0)
        said = stderr.read()
        stderr.close()
        self._process = self._stderr = None
        return said.strip()

    def close(self) -> None:
        if self._process is not None:
            self._end()


def main() -> None:
    """Answers each line of stdin, a unit's parts, with a line on stdout, its outcome.

    Blocks see neither: what they write beside `print` goes to stderr, and there is nothing for them to read.
    """
    jobs, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    with isolated():
        print(STARTED, file=answers, flush=True)
    faulthandler.enable()
    for line in jobs:
        print(run(json.loads(line)).to_json(), file=answers, flush=True)


if __name__ == "__main__":
    main()
