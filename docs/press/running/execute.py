"""One way to run a block: in the build (a fresh interpreter), under pytest, and by hand.

    outcome = run([part.code for part in unit.parts])    # a unit is what pages.py says it is
    outputs.faults(unit, outcome)                        # where the page and the block do not agree

A unit begins with a namespace of its own, matplotlib's defaults as in figures.py, freshly seeded generators
and default settings, so that it gives the same whatever ran before; a warning is an error, and so is a unit
that takes longer than TIMEOUT. As a program (`python -m press.running.execute`) it reads lists of units from
stdin, a line of JSON each, and answers each with a line: `Interpreter` is its other end.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import cProfile
import faulthandler
import functools
import gc
import importlib
import importlib.util
import inspect
import io
import itertools
import json
import linecache
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from unittest import mock

from press import BookError, cache, figures, numbers
from press.cache import PACKAGE, ROOT
from press.running import trainings

# Generators that bring a seed of their own each time, and one that can be seeded unseen.
_ENTROPY = re.compile(r"default_rng\(\)|\bsecrets\b|urandom|SystemRandom|\.seed\(\)|default_generator")
BLOCK = "<block>"  # file name of a block in tracebacks
TIMEOUT = (
    90.0  # seconds of a core for one unit: the slowest of the book takes 10, however busy the machine is
)
WALL = 900.0  # seconds by the clock, for one that sleeps
GRACE = 10.0  # more for one that does not let itself be stopped: then its process ends
STARTED = "started"  # the first line of the answers: what comes after it is the doing of a block
FORKS = sys.platform == "linux"  # elsewhere libraries do not stand it
OURS = ("posenc", "posenc.nn", "posenc.plot")
_ENVIRONMENT = {
    "MPLBACKEND": "agg",
    "OMP_NUM_THREADS": "1",  # sums in one order, whatever the number of cores
    # glibc keeps the memory of large arrays for the next ones; else the system clears each of their pages anew
    "MALLOC_MMAP_THRESHOLD_": f"{2**30}",
    "MALLOC_TRIM_THRESHOLD_": f"{2**30}",
}
_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})


@dataclass
class Outcome:
    """What a unit did: what each part printed and the figures it left open; how it failed, if it did."""

    outputs: list[str] = field(default_factory=list)
    figures: list[list[dict[str, Any]]] = field(default_factory=list)
    error: dict[str, Any] | None = None  # type, message, line (of the unit's code, or 0), raised (in posenc)
    reached: list[str] = field(default_factory=list)  # the modules of posenc that it executed
    random: bool = True  # it may do otherwise with another seed

    @property
    def output(self) -> str:
        return "".join(self.outputs)

    def to_json(self) -> str:
        return json.dumps(vars(self), ensure_ascii=False)

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
        stack.enter_context(mock.patch.dict(os.environ))
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


class _Generator:
    """A generator that a unit shares with others, and whether what comes of it depends on the seed that it got.

    It does not if the unit seeds it before it draws, and does not go back to where it was.
    """

    def __init__(
        self, stack: contextlib.ExitStack, state: Callable[[], object], seed: str, back: str, *modules: Any
    ):
        self._state, self._start = state, state()
        self._seeded = self._used = False
        for module in modules:
            for name, noted in ((seed, self._seeds), (back, self._goes_back)):
                function = functools.partial(noted, getattr(module, name))
                stack.enter_context(mock.patch.object(module, name, function))

    def _seeds(self, seed: Callable[..., Any], *given: Any, **options: Any) -> Any:
        self._used = self.used
        self._seeded = next(iter((*given, *options.values())), None) is not None
        return seed(*given, **options)

    def _goes_back(self, back: Callable[..., Any], *given: Any, **options: Any) -> Any:
        result = back(*given, **options)
        self._seeded &= self._state() != self._start
        return result

    @property
    def used(self) -> bool:
        return self._used or (not self._seeded and self._state() != self._start)


@contextlib.contextmanager
def _generators() -> Iterator[list[_Generator]]:
    """The generators that a unit may share with others."""
    import numpy as np

    with contextlib.ExitStack() as stack:
        found = [
            _Generator(stack, random.getstate, "seed", "setstate", random),
            _Generator(stack, lambda: pickle.dumps(np.random.get_state()), "seed", "set_state", np.random),
        ]
        if "torch" in sys.modules:
            torch = sys.modules["torch"]
            state = torch.random.get_rng_state
            modules = torch, torch.random
            found.append(
                _Generator(stack, lambda: state().numpy().tobytes(), "manual_seed", "set_rng_state", *modules)
            )
        yield found


class TakesTooLong(BaseException):
    """Raised within a unit: no `except Exception` of its own stops it."""


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Stops what takes longer than TIMEOUT or WALL: by an exception, or where none gets through, with the process.

    Only the main thread of a Unix process can be interrupted; elsewhere the process ends at once.
    """
    can = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    faulthandler.dump_traceback_later(WALL + GRACE * can, exit=True)
    timers = [(signal.SIGPROF, signal.ITIMER_PROF, TIMEOUT), (signal.SIGALRM, signal.ITIMER_REAL, WALL)]
    before = []

    def stop(number: int, _: object) -> None:
        said = f"{TIMEOUT:g} seconds of computing" if number == signal.SIGPROF else f"{WALL:g} seconds"
        raise TakesTooLong(f"it has not ended after {said}")

    try:
        for number, timer, seconds in timers * can:
            before.append((number, signal.signal(number, stop)))
            signal.setitimer(timer, seconds, 1)  # once more each second for `except BaseException`
        yield
    finally:
        for _, timer, _ in timers * can:
            signal.setitimer(timer, 0)
        for number, handler in before:
            signal.signal(number, handler)
        faulthandler.cancel_dump_traceback_later()


@contextlib.contextmanager
def _traced(reached: set[str]) -> Iterator[None]:
    """Notes each file of posenc of which a function is called; bodies of modules and classes are none.

    By a profiler in C: a trace function in Python took a sixth of all the time that blocks take.
    """
    profiler = cProfile.Profile(subcalls=False, builtins=False)
    try:
        profiler.enable()
    except ValueError:  # somebody else's profiler is at work
        yield
        reached |= set(map(str, PACKAGE.rglob("*.py")))  # nothing is known: it may have been any of them
        return
    try:
        yield
    finally:
        profiler.disable()
        package = f"{PACKAGE}{os.sep}"
        called = (entry.code for entry in profiler.getstats() if not isinstance(entry.code, str))
        files = {code.co_filename for code in called if code.co_flags & inspect.CO_OPTIMIZED}
        reached |= {file for file in files if file.startswith(package)}


def run(parts: list[str], seed: int = 0, draw: bool = True) -> Outcome:
    """Runs the parts of a unit in one namespace; without `draw` figures are only counted."""
    code = "".join(parts)
    outcome, printed, reached = Outcome(), io.StringIO(), set[str]()
    linecache.cache[BLOCK] = (len(code), None, code.splitlines(keepends=True), BLOCK)
    # the name pytest-codeblocks gives, and what a script or a notebook has
    namespace: dict[str, Any] = {"__MODULE__": "__main__", "__name__": "__main__"}
    with isolated(seed), _generators() as generators:
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
        outcome.random = any(each.used for each in generators) or bool(_ENTROPY.search(code))
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


# --- In processes of their own -------------------------------------------------------------------------------


class Interpreter:
    """A warm Python that runs units one by one, each in a process forked from it (on Linux; elsewhere in itself).

    It has imported what computes and draws. posenc is imported after `fresh`, as it is then. Where a unit brings
    its process down, the next gets a new one.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._runs = False
        self._stderr: IO[str] | None = None

    def run(self, units: list[list[str]]) -> list[Outcome]:
        """The outcomes of units that share a process, also of one that ends it.

        Raises:
            BookError: if no interpreter can be started.
        """
        self.start()
        self._runs = True
        answer = self._asked(units)
        self._runs = False
        if answer is None:
            said = self._end()
            return [_ended(said) for _ in units]
        return [Outcome(**each) for each in answer]

    def fresh(self) -> None:
        """From here on posenc is as it is on disk now."""
        if self._process and FORKS:
            self._asked("fresh")
        elif self._process:
            self.close()

    def interrupt(self) -> None:
        """Ends the unit that runs now, if one does: its outcome is that it ends the interpreter."""
        if self._process and self._runs and FORKS:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGINT)

    def _asked(self, question: Any) -> Any:
        """What the process answers; None where it is no more."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
        line = process.stdout.readline()
        return json.loads(line) if line else None

    def start(self) -> None:
        """Starts it, if it is not there yet; so does a run."""
        if self._process is not None:
            return
        self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "press.running.execute"],  # nothing that lies in the folder below
            cwd=tempfile.gettempdir(),
            env=os.environ | cache.environment() | _ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            text=True,
            encoding="utf-8",
            process_group=0 if FORKS else None,  # `interrupt` is heard by its units alone
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() != STARTED:
            raise BookError(f"The blocks could not be run:\n{self._end()}")

    def _end(self) -> str:
        """What the interpreter has said on stderr, now that it is no more."""
        process, stderr = self._process, self._stderr
        assert process is not None
        assert stderr is not None
        process.communicate()
        stderr.seek(0)
        said = f"exit status {process.returncode}\n{stderr.read()}"
        stderr.close()
        self._process = self._stderr = None
        return said.strip()

    def close(self) -> None:
        if self._process is not None:
            if FORKS:
                os.killpg(self._process.pid, signal.SIGKILL)  # with what it has forked
            self._end()


def _ended(said: str) -> Outcome:
    """The outcome of a unit that has brought its process down."""
    place = re.search(rf'"{BLOCK}", line (\d+)', said)
    line = int(place[1]) if place else 0
    return Outcome(error={"type": "The block ends the interpreter", "message": said, "line": line})


def _forked(units: list[list[str]]) -> list[Outcome]:
    """The outcomes of units, run one after the other in a process forked from this one."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as answer, tempfile.TemporaryFile("w+") as errors:
        if not (child := os.fork()):
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.dup2(errors.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            there = set(sys.modules)
            for parts in units:
                print(run(parts).to_json(), file=answer, flush=True)
            print(json.dumps({"imported": [*set(sys.modules) - there]}), file=answer, flush=True)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        answer.seek(0)
        errors.seek(0)
        lines = [json.loads(line) for line in answer]
        _import(lines.pop()["imported"] if len(lines) > len(units) else [])
        done = [Outcome(**line) for line in lines]
        if len(done) < len(units):
            done.append(_ended(f"exit status {status}\n{errors.read()}".strip()))
    return done + _forked(units[len(done) :]) if len(done) < len(units) else done


def _import(names: list[str]) -> None:
    """Imports what the units of a process have imported of libraries: the next ones need not do it again."""
    with warnings.catch_warnings(action="ignore"):
        for name in sorted(names):
            if name.partition(".")[0] not in ("posenc", "press"):
                with contextlib.suppress(Exception):  # made as a block ran, not by an import
                    importlib.import_module(name)
    gc.freeze()


def _serve(jobs: IO[str], answers: IO[str]) -> bool:
    """Answers each line of `jobs`, units, with a line, their outcomes; whether it is to go on with a fresh posenc."""
    if FORKS:
        for module in OURS:
            with contextlib.suppress(ImportError):  # the block that needs it says so
                importlib.import_module(module)
        trainings.share()
        gc.freeze()  # each block's process would visit all of it, and so copy it
    while line := jobs.readline():
        if (units := json.loads(line)) == "fresh":
            return True
        outcomes = _forked(units) if FORKS else [run(parts) for parts in units]
        print(json.dumps([vars(outcome) for outcome in outcomes]), file=answers, flush=True)
    return False


def main() -> None:
    """Answers each line of stdin with a line on stdout.

    Blocks see neither: what they write beside `print` goes to stderr, and there is nothing for them to read.
    """
    jobs, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    if FORKS:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    importlib.import_module("matplotlib.backends.backend_svg")
    with isolated():
        print(STARTED, file=answers, flush=True)
    faulthandler.enable()
    if not FORKS:
        _serve(jobs, answers)
        return
    while True:
        if not (child := os.fork()):
            os._exit(7 * _serve(jobs, answers))
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 7:
            return
        print(json.dumps("fresh"), file=answers, flush=True)


if __name__ == "__main__":
    main()
