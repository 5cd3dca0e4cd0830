"""Labs: notebooks that MkDocs-Jupyter takes for pages, run once for both languages and set like a chapter.

A lab is a py:percent file in `labs/`. Its code cells are the same in both languages, so their outputs are
too: they are kept under a key made of the code cells, posenc and the versions of the libraries, and a
kernel starts only when there is none. With the outputs in place the notebook becomes a page of Markdown
like any other, so that headings, links, formulas and tables follow the rules of the chapters, and none of
the style sheets that notebooks bring along is needed.

In a lab

- the header holds `title:` and `description:`, every heading an id: `## Title {#id}`;
- a cell that draws leaves one figure; the Markdown cell after it begins with its caption, `Figure: …`
  (`图：…`), and may go on with `Description: …` (`说明：…`) for those who do not see it;
- labels in a figure hold for both languages: symbols and numbers.
"""

from __future__ import annotations

import json
import logging
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import jupytext
import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbconvert.preprocessors import ExecutePreprocessor
from nbformat import NotebookNode
from traitlets import default

from press import BookError, cache, figures
from press.running import dependencies
from press.runtime import pyodide

if TYPE_CHECKING:
    from press.book import Book

log = logging.getLogger("mkdocs.plugins.posenc")

TIMEOUT = 90  # seconds for one cell

# Run before the first cell: figures come as SVG that is the same in every build. It leaves no name behind.
SETUP = """\
get_ipython().run_line_magic("matplotlib", "inline")
import press.figures
press.figures.set_up()
del press
__import__("matplotlib_inline.backend_inline").backend_inline.set_matplotlib_formats(
    "svg", bbox_inches=None, metadata={"Date": None}
)
"""

CAPTION = {"en": "Figure: ", "zh": "图："}
DESCRIPTION = {"en": "Description: ", "zh": "说明："}
DOWNLOAD = {
    "en": "Try it yourself: {0} for Jupyter, {1} for any editor; "
    "both need the package with its pictures, in a checkout: <code>pip install '.[torch,plot]'</code>.",
    "zh": "自己动手：Jupyter 用 {0}，其他编辑器用 {1}；"
    "都要先在项目目录里 <code>pip install '.[torch,plot]'</code>。",
}


class LabError(BookError):
    """A lab that cannot become a page; the message names file and line."""


@dataclass
class Lab:
    """A notebook and where its cells stand in its file."""

    path: Path
    notebook: NotebookNode
    lines: list[int]  # the line on which the source of each cell begins

    @property
    def name(self) -> str:
        return cache.shown(self.path)

    @property
    def code(self) -> list[NotebookNode]:
        return [cell for cell in self.notebook.cells if cell.cell_type == "code"]

    def place(self, index: int, line: int = 1) -> str:
        """'docs/zh/labs/waveforms.py:40' for line `line`, from 1, of the cell number `index`."""
        return f"{self.name}:{self.lines[index] + line - 1}"


# --- reading and running ---------------------------------------------------------------------------------


def read(path: Path) -> Lab:
    """The notebook in a py:percent file."""
    text = path.read_text(encoding="utf-8")
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # jupytext's are random
    lines, source, start = [], text.splitlines(), 0
    for cell in notebook.cells:
        first = next(line.strip() for line in cell.source.splitlines() if line.strip())
        # Markdown stands in comments; a code cell starts with its own first line.
        start = next((n for n in range(start, len(source)) if source[n].strip().endswith(first)), start)
        lines.append(start + 1)
        start += 1
    return Lab(path, notebook, lines)


def run(lab: Lab, store: cache.Store | None = None) -> NotebookNode:
    """The notebook with the outputs of its code cells, from the cache where they are there.

    Raises LabError, naming file and line, for a cell that fails.
    """
    store = store or cache.Store("labs")
    kept = None
    while kept is None:  # where posenc is edited while it runs, it is run again
        entry = _entry(lab)
        if message := run_all([lab], store).get(entry):
            raise LabError(message)
        kept = store.get(entry)
    result = nbformat.from_dict(dict(lab.notebook))
    cells = [cell for cell in result.cells if cell.cell_type == "code"]
    for number, (cell, outputs) in enumerate(zip(cells, json.loads(kept), strict=True), 1):
        cell.outputs = [nbformat.from_dict(output) for output in outputs]
        cell.execution_count = number
    return result


def run_all(labs: Iterable[Lab], store: cache.Store | None = None) -> dict[str, str]:
    """Runs each lab whose outputs are not in the cache; says how some fail."""
    store, known = store or cache.Store("labs"), dependencies.sources()
    jobs = {_entry(lab): lab for lab in labs}
    failures: dict[str, str] = {}

    for entry, lab in jobs.items():
        if store.get(entry) is not None:
            continue
        start = time.perf_counter()
        try:
            outputs = [_tidied(cell.outputs) for cell in _execute(lab)]
        except LabError as error:
            failures[entry] = str(error)
            continue
        if known.current():  # and posenc has not been edited meanwhile
            store.put(entry, json.dumps(outputs, ensure_ascii=False, sort_keys=True))
        log.info("Ran %s in %.1f seconds", lab.name, time.perf_counter() - start)
        store.prune()
    return failures


def _entry(lab: Lab) -> str:
    """The name of the outputs of a lab: its code, and all that they depend on."""
    code = [cell.source for cell in lab.code]
    files = [Path(figures.__file__), Path(__file__)]
    environment = cache.digest("ipykernel", "matplotlib-inline", "nbclient", files=files)
    return cache.key(environment, dependencies.sources().digest("\n".join(code)), *code)


def _tidied(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs with drawings as light as they are shown: it takes longer than all else on a page."""
    for output in outputs:
        if svg := output.get("data", {}).get("image/svg+xml"):
            output["data"]["image/svg+xml"] = figures.tidy(svg)
    return outputs


class _Kernel(AsyncKernelManager):
    """The kernel of this interpreter, whatever kernels the machine has installed."""

    @default("kernel_spec_manager")
    def _no_installed_kernels(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[])


def _execute(lab: Lab) -> list[NotebookNode]:
    """The executed code cells, by the interpreter that builds and in an environment of our own making."""
    sources = [SETUP, *(cell.source for cell in lab.code)]
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, sources)))
    processor = ExecutePreprocessor(
        timeout=TIMEOUT,
        allow_errors=False,
        kernel_name="python3",
        kernel_manager_class=_Kernel,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
    )
    before = os.environ.copy()
    os.environ.update(cache.environment())
    try:
        processor.preprocess(notebook, {"metadata": {"path": str(lab.path.parent)}})
    except CellExecutionError as error:
        raise LabError(_failure(lab, notebook, error)) from None
    except (CellTimeoutError, DeadKernelError) as error:
        raise LabError(f"{_where(lab, notebook)}: {type(error).__name__}: {error}") from None
    finally:
        os.environ.clear()
        os.environ.update(before)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            output.pop("execution_count", None)
    return notebook.cells[1:]


def _failure(lab: Lab, notebook: NotebookNode, error: CellExecutionError) -> str:
    """'docs/en/labs/waveforms.py:40: ZeroDivisionError: division by zero' and the line itself."""
    failed, output = next((n, out) for n, cell in enumerate(notebook.cells) if (out := _error(cell)))
    if failed == 0:
        return f"{lab.name}: the kernel could not be prepared: {error.ename}: {error.evalue}"
    # IPython says for every frame where it is; the last one in a cell is where it happened.
    trace = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(output["traceback"]))
    frames = re.findall(r"Cell In\[(\d+)\], line (\d+)", trace) or [(failed + 1, 1)]
    number, line = (int(part) for part in frames[-1])
    cell = lab.code[number - 2]  # the first one run is SETUP
    text = cell.source.splitlines()[line - 1].strip()
    message = re.sub(r" \(\d+\.py, line \d+\)$", "", error.evalue)
    return f"{lab.place(lab.notebook.cells.index(cell), line)}: {error.ename}: {message}\n    {text}"


def _where(lab: Lab, notebook: NotebookNode) -> str:
    """The place of the first cell that the kernel did not answer for."""
    answered = sum("shell.execute_reply" in cell.metadata.get("execution", {}) for cell in notebook.cells)
    if answered == 0:  # the first one run is SETUP
        return lab.name
    return lab.place(lab.notebook.cells.index(lab.code[answered - 1]))


def _error(cell: NotebookNode) -> NotebookNode | None:
    return next((output for output in cell.get("outputs", []) if output.output_type == "error"), None)


# --- setting as a page -----------------------------------------------------------------------------------


def to_markdown(lab: Lab, notebook: NotebookNode | None, language: str) -> str:
    """The page: front matter, text, code and output as in a chapter, figures with their captions.

    Without an executed `notebook` the text and the code alone.
    """
    parts: list[str] = []
    waiting: tuple[int, str] | None = None  # a drawing that has no caption yet, and its cell
    runs = iter(pyodide.attributes_of_cells([cell.source for cell in lab.code]))
    begun = False
    for index, cell in enumerate((notebook or lab.notebook).cells):
        if cell.cell_type == "raw":
            parts.append(cell.source)
        elif cell.cell_type == "markdown":
            text = cell.source
            if waiting:
                figure, text = _captioned(lab, index, waiting, text, language)
                parts.append(figure)
                waiting = None
            elif notebook and text.startswith(CAPTION[language]):
                raise LabError(f"{lab.place(index)}: this caption follows no drawing: {text.splitlines()[0]}")
            elif text.startswith("# "):
                heading, _, text = text.partition("\n")
                parts += [heading, _downloads(lab, language)]
            parts.append(text)
        else:
            if waiting:
                raise LabError(_no_caption(lab, waiting[0], language))
            # A class in the info string: the blocks of chapters are run again, those of labs are not.
            # A cell goes on from all before it, and is copied with them.
            parts.append(_fence(cell.source, f"{{ .python{' .continued' * begun}{next(runs)} }}"))
            begun = True
            printed, drawings = _outputs(lab, index, cell)
            if printed:
                parts.append(_fence(printed, "{ .text .output .no-copy }"))
            if len(drawings) > 1:
                raise LabError(f"{lab.place(index)}: a cell draws one figure, this one drew {len(drawings)}")
            if drawings:
                waiting = index, drawings[0]
    if waiting:
        raise LabError(_no_caption(lab, waiting[0], language))
    return "\n\n".join(parts) + "\n"


def _downloads(lab: Lab, language: str) -> str:
    notebook, script = (
        f'<a href="{lab.path.stem}{suffix}" download>{lab.path.stem}{suffix}</a>'
        for suffix in (".ipynb", ".py")
    )
    return f'<p class="downloads">{DOWNLOAD[language].format(notebook, script)}</p>'


def _no_caption(lab: Lab, index: int, language: str) -> str:
    wanted = CAPTION[language]
    return f"{lab.place(index)}: this cell draws; the cell after it must begin with its caption, '{wanted}…'"


def _captioned(lab: Lab, index: int, drawing: tuple[int, str], text: str, language: str) -> tuple[str, str]:
    """The figure with its caption, and what remains of the cell that begins with it."""
    cell, svg = drawing
    head, _, rest = text.partition("\n\n")
    lines = head.splitlines()
    if not lines or not lines[0].startswith(CAPTION[language]):
        raise LabError(_no_caption(lab, cell, language))
    caption, description = " ".join(lines), ""
    if DESCRIPTION[language] in caption:
        caption, _, description = caption.partition(DESCRIPTION[language])
    caption = caption.removeprefix(CAPTION[language]).strip()
    if not caption:
        raise LabError(f"{lab.place(index)}: the caption is empty")
    return figures.figure(svg, caption, description.strip(), f"{lab.path.stem}-{cell}"), rest


def _outputs(lab: Lab, index: int, cell: NotebookNode) -> tuple[str, list[str]]:
    """What a cell printed, its value included, and what it drew."""
    printed, drawings = "", []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            printed += output.text
        elif output.output_type == "stream":
            raise LabError(f"{lab.place(index)}: this cell writes to {output.name}: {output.text.strip()}")
        elif "image/svg+xml" in output.data:
            drawings.append(output.data["image/svg+xml"])
        elif set(output.data) == {"text/plain"}:
            printed += output.data["text/plain"] + "\n"
        else:
            kinds = ", ".join(sorted(output.data))
            raise LabError(f"{lab.place(index)}: a lab shows text and SVG figures, not {kinds}")
    return printed.rstrip("\n"), drawings


def _fence(text: str, info: str) -> str:
    ticks = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`+", text) or [""]))
    return f"{ticks} {info}\n{text}\n{ticks}"


# --- as a page of a book ------------------------------------------------------------------------------------


def is_lab(name: str) -> bool:
    return name.endswith(".py")


def page(book: Book, name: str, execute: bool) -> str:
    """The lab as Markdown, executed or not; while serving, a fault is shown above it."""
    lab = read(book.source(name))
    try:
        return to_markdown(lab, run(lab) if execute else None, book.language)
    except LabError as error:
        shown = book.fault(str(error))
        text = to_markdown(lab, None, book.language)
        return re.sub(r"(?m)^(?=# )", lambda _: f"{shown}\n\n", text, count=1)


def notebook(book: Book, name: str) -> str:
    """A lab as it is offered for download, not executed: what it gives, the reader's own machine shows."""
    return str(jupytext.writes(read(book.source(name)).notebook, "ipynb"))
