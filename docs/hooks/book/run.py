"""One way to run a block: in the build (a fresh interpreter), under pytest, and by hand.

    outcome = run([part.code for part in unit.parts])    # a unit is what page.py says it is
    faults(unit, outcome)                                # where the page and the block do not agree

A unit begins with a namespace of its own, matplotlib's defaults as in figures.py, freshly seeded generators
and default settings, so that it gives the same whatever ran before; a warning is an error. As a program
(`python -m book.run jobs.json results.jsonl`) it runs a list of units and writes a line of JSON for each as
soon as it is done.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import difflib
import faulthandler
import importlib.util
import io
import itertools
import json
import linecache
import os
import random
import re
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import figures
from .cache import PACKAGE, ROOT
from .page import Fault, Unit

BLOCK = "<block>"  # file name of a block in tracebacks
TIMEOUT = 300  # seconds for one unit, as for a cell of a lab
STARTED = "started"  # the first line of the results: what comes after it is the doing of a block
_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})


@dataclass
class Outcome:
    """What a unit did: what each part printed and the figures it left open; how it failed, if it did."""

    outputs: list[str] = field(default_factory=list)
    figures: list[list[dict[str, Any]]] = field(default_factory=list)
    error: dict[str, Any] | None = None  # type, message, line (of the unit's code, or 0), raised (in posenc)

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


def run(parts: list[str], seed: int = 0, draw: bool = True) -> Outcome:
    """Runs the parts of a unit in one namespace; without `draw` figures are only counted."""
    code = "".join(parts)
    outcome = Outcome()
    linecache.cache[BLOCK] = (len(code), None, code.splitlines(keepends=True), BLOCK)
    # the name pytest-codeblocks gives, and what a script or a notebook has
    namespace: dict[str, Any] = {"__MODULE__": "__main__", "__name__": "__main__"}
    with isolated(seed):
        import matplotlib.pyplot as plt

        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                for program in _compiled(code, parts):
                    exec(program, namespace)
                    printed.getvalue().encode()  # what cannot be written into a page is an error
                    outcome.outputs.append(printed.getvalue())
                    printed.seek(0)
                    printed.truncate()
                    drawn = [plt.figure(number) for number in plt.get_fignums()]
                    outcome.figures.append(
                        [
                            {"svg": figures.to_svg(figure), "axes": figures.labels(figure)} if draw else {}
                            for figure in drawn
                        ]
                    )
                    plt.close("all")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            outcome.outputs.append(printed.getvalue().encode(errors="replace").decode())
            outcome.error = _error(error)
    return outcome


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


def faults(unit: Unit, outcome: Outcome) -> list[Fault]:
    """What the page says of the block and what the block did, where they differ; lines of the page."""
    if outcome.error:
        error = outcome.error
        what = f"{error['type']}: {error['message']}" if error["message"] else error["type"]
        if not error["line"]:
            return [Fault(unit.line, what)]
        source = unit.code.splitlines()[min(error["line"], unit.code.count("\n")) - 1].strip()
        raised = f"\n    raised in {error['raised']}" if error.get("raised") else ""
        return [Fault(unit.page_line(error["line"]), f"{what}\n    {source}{raised}")]
    found: list[Fault] = []
    if unit.expected is None:
        for part, output in zip(unit.parts, outcome.outputs, strict=True):
            if output:
                message = "the block prints and has no expected output; it printed\n" + _indented(output)
                found.append(Fault(part.fence.line, message))
    else:
        assert unit.expected_fence is not None
        line = unit.expected_fence.line
        expected, printed = unit.expected, outcome.output
        if unit.ignore_whitespace:
            expected, printed = (re.sub(r"\s+", "", text) for text in (expected, printed))
        if expected != printed:
            difference = difflib.ndiff(unit.expected.splitlines(), outcome.output.splitlines())
            shown = [row for row in difference if not row.startswith("?")]
            message = "the block does not print what the page shows (- page, + printed)\n"
            found.append(Fault(line, message + _indented("\n".join(shown))))
        elif any(outcome.outputs[unit.expected_after + 1 :]):
            late = unit.parts[unit.expected_after + 1].fence.line
            found.append(Fault(late, "this block prints, and its expected output stands before it"))
    for part, drawn in zip(unit.parts, outcome.figures, strict=True):
        if part.figure and not drawn:
            found.append(Fault(part.figure.line, "a figure comment, but the block leaves no figure open"))
        elif len(drawn) > 1:
            found.append(
                Fault(part.fence.line, f"the block leaves {len(drawn)} figures open; one block, one figure")
            )
        elif drawn and not part.figure:
            found.append(
                Fault(part.fence.line, "the block draws, but no <!-- figure: caption --> follows it")
            )
    return sorted(found, key=lambda fault: fault.line)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())


def main(jobs: Path, results: Path) -> None:
    """Runs the units in `jobs`, a JSON list of [key, parts], and writes [key, outcome] lines.

    A unit that crashes the interpreter or takes too long ends it, with its line on stderr.
    """
    with results.open("w", encoding="utf-8") as file:
        with isolated():
            print(json.dumps(STARTED), file=file, flush=True)
        faulthandler.enable()
        for key, parts in json.loads(jobs.read_text(encoding="utf-8")):
            faulthandler.dump_traceback_later(TIMEOUT, exit=True)
            file.write(json.dumps([key, asdict(run(parts))]) + "\n")
            file.flush()
            faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
