"""Runs the code of the pages while the book is built and puts every drawing beneath the block that drew it.

All blocks of a book whose results are not in the cache run in one fresh interpreter (runner.py). Both books
are built at once by two processes; a lock lets each block run once, and the other book takes its result from
the cache. A result is kept under the block's code without its comments, so that translating a comment runs
nothing, together with the digest of posenc and the libraries.

A block that fails, prints something else than its page shows or draws without a caption stops the build: all
such faults of a book are reported at once, each with page and line. Under `mkdocs serve` they are printed and
shown at the top of their page, and the server goes on.

POSENC_EXECUTE=0 switches execution off: pages are built without drawings, and nothing is checked.
"""

from __future__ import annotations

import ast
import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Literal

import cache
import figures
import pages
import runner
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.blocks")

RUNNER = Path(runner.__file__)
Parts = list[str]


# --- Running ------------------------------------------------------------------------------------------------


def digest() -> str:
    """What the result of every block depends on."""
    return cache.digest(files=[RUNNER, Path(figures.__file__)])


def key(parts: Parts, depends_on: str) -> str:
    """The name of a unit's result: its code without comments and layout, cut into its parts."""
    code = "".join(parts)
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return cache.key(depends_on, *parts)
    if re.search(r"\b(inspect|traceback|linecache)\b", code):  # it may look at its own comments
        return cache.key(depends_on, *parts)
    lines = [part.count("\n") for part in parts]
    ends = [sum(lines[: index + 1]) for index in range(len(lines))]
    cuts = [sum(statement.lineno <= end for statement in tree.body) for end in ends]
    return cache.key(depends_on, repr(cuts), ast.dump(tree))


def execute(
    units: Mapping[str, Parts], store: cache.Store, current: Callable[[], bool] = lambda: True
) -> dict[str, runner.Outcome]:
    """The outcome of each unit: from `store`, or by running what it lacks in one interpreter.

    Nothing is kept unless `current()` holds after the run: posenc may have been edited meanwhile.
    """
    outcomes = _kept(units, store)
    if len(outcomes) == len(units):
        return outcomes
    with store.lock():
        # the other book may have run some of them while this one waited
        outcomes |= _kept({entry: units[entry] for entry in units if entry not in outcomes}, store)
        missing = {entry: parts for entry, parts in units.items() if entry not in outcomes}
        if missing:
            start = time.perf_counter()
            outcomes |= _run(missing)
            if current():
                for entry in missing:
                    if outcomes[entry].error is None:
                        store.put(entry, outcomes[entry].to_json())
                store.prune()
            count = f"{len(missing)} block{'s' * (len(missing) > 1)}"
            log.info("Ran %s in %.1f seconds", count, time.perf_counter() - start)
    return outcomes


def _kept(units: Mapping[str, Parts], store: cache.Store) -> dict[str, runner.Outcome]:
    outcomes = {}
    for entry in units:
        text = store.get(entry)
        if text is None:
            continue
        try:
            outcomes[entry] = runner.Outcome.from_json(text)
        except (TypeError, ValueError):  # not of our making: run it again
            continue
    return outcomes


def _run(units: Mapping[str, Parts]) -> dict[str, runner.Outcome]:
    """Runs all units in a fresh interpreter; where one brings it down, the rest run in the next."""
    outcomes: dict[str, runner.Outcome] = {}
    paths = [str(cache.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "MPLBACKEND": "agg",
        "PYTHONHASHSEED": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        jobs, results = Path(folder, "jobs.json"), Path(folder, "results.jsonl")
        while left := [(entry, parts) for entry, parts in units.items() if entry not in outcomes]:
            jobs.write_text(json.dumps(left), encoding="utf-8")
            results.write_text("", encoding="utf-8")
            done = subprocess.run(
                [sys.executable, str(RUNNER), str(jobs), str(results)],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            started, *lines = results.read_text(encoding="utf-8").splitlines() or [""]
            for line in lines:
                entry, outcome = json.loads(line)
                outcomes[entry] = runner.Outcome(**outcome)
            if not started:  # the runner itself, not a block
                raise PluginError(f"The blocks could not be run:\n{done.stderr.strip()}")
            crashed = next((entry for entry, _ in left if entry not in outcomes), None)
            if crashed:
                message = f"exit status {done.returncode}\n{done.stderr.strip()}".strip()
                place = re.search(rf'"{runner.BLOCK}", line (\d+)', done.stderr)
                line_number = int(place[1]) if place else 0
                error = {"type": "The block ends the interpreter", "message": message, "line": line_number}
                outcomes[crashed] = runner.Outcome(error=error)
    return outcomes


# --- A book -------------------------------------------------------------------------------------------------


@dataclass
class Prepared:
    """A page, what its blocks did, and what is wrong with it."""

    page: pages.Page
    drawings: list[tuple[pages.Figure, dict[str, Any]]] = field(default_factory=list)
    faults: list[pages.Fault] = field(default_factory=list)


def prepare(
    sources: Mapping[str, pages.Page], store: cache.Store | None = None, depends_on: str | None = None
) -> dict[str, Prepared]:
    """Runs the blocks of all pages of a book, as far as it must, and says what is wrong with each page."""
    before = depends_on or digest()
    keys = {
        (name, unit.line): key([part.code for part in unit.parts], before)
        for name, page in sources.items()
        for unit in page.blocks
    }
    units = {
        keys[name, unit.line]: [part.code for part in unit.parts]
        for name, page in sources.items()
        for unit in page.blocks
    }
    current = (lambda: True) if depends_on else (lambda: digest() == before)
    outcomes = execute(units, store or cache.Store("blocks"), current)
    book = {}
    for name, page in sources.items():
        book[name] = prepared = Prepared(page, faults=[*page.faults, *pages.uncollected(page)])
        for unit in page.blocks:
            outcome = outcomes[keys[name, unit.line]]
            prepared.faults += runner.faults(unit, outcome)
            for part, drawn in zip(unit.parts, outcome.figures, strict=False):
                if part.figure and drawn:
                    prepared.drawings.append((part.figure, drawn[0]))
    return book


def report(book: Mapping[str, Prepared]) -> list[str]:
    """All faults of a book, a string each: page, line, what is wrong."""
    return [
        f"{_shown(prepared.page.path)}:{fault.line}: {fault.message}"
        for prepared in book.values()
        for fault in sorted(prepared.faults, key=lambda fault: fault.line)
    ]


def _shown(path: Path) -> str:
    return path.relative_to(cache.ROOT).as_posix() if path.is_relative_to(cache.ROOT) else path.as_posix()


# --- The hook -----------------------------------------------------------------------------------------------

_command = "build"
_book: dict[str, Prepared] = {}
_drawings: dict[str, list[str]] = {}  # by page: the <svg> elements that wait until the search index is fed

_TOKEN = "POSENCFIGURE{}END"
_DRAWING = re.compile(r'(<figure class="plot">)(<svg .*?</svg>)', re.DOTALL)
_OUTPUT = re.compile(r'<div class="[\w -]*\boutput no-copy highlight">(.*?</pre>)</div>', re.DOTALL)
# Tokens that need no colour: plain names, blanks, punctuation, operators. They are most of all tokens.
_PLAIN = re.compile(r'<span class="[nopw]">([^<]*)</span>')


def on_startup(command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
    """Remember whether a fault may stop the process."""
    global _command
    _command = command


@event_priority(-50)  # when other plugins have added and removed their files
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Run the blocks of the book."""
    _book.clear()
    _drawings.clear()
    if os.environ.get("POSENC_EXECUTE") == "0":
        return files
    sources = {
        file.src_uri: pages.parse(file.content_string, Path(file.abs_src_path or file.src_uri))
        for file in files.documentation_pages()
        if file.src_uri.endswith(".md")
    }
    _book.update(prepare(sources))
    if faults := report(_book):
        message = "\n".join([f"{len(faults)} fault{'s' * (len(faults) > 1)} in the pages", *faults])
        if _command != "serve":
            raise PluginError(message)
        # no log record: in strict mode an error in the log would stop the server
        print(message, file=sys.stderr)
    return files


@event_priority(100)  # lines and fences are still those of the file
def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Take out the comments that are not for the reader, mark outputs, and keep a place for each drawing."""
    if not page.file.src_uri.endswith(".md"):
        return markdown
    parsed = pages.parse(markdown)
    lines = markdown.split("\n")
    for number in parsed.directives:
        lines[number - 1] = ""
    for unit in parsed.units:
        if fence := unit.expected_fence:
            indent = lines[fence.line - 1][: fence.indent]
            lines[fence.line - 1] = f"{indent}{'`' * fence.ticks} {{ .text .output .no-copy }}"
        for fence in (part.fence for part in unit.parts[1:]):  # book.js copies it with what it continues
            indent = lines[fence.line - 1][: fence.indent]
            lines[fence.line - 1] = f"{indent}{'`' * fence.ticks} {{ .{fence.info} .continued }}"
    # from the end, so that the numbers of the lines above stay
    for index, figure in reversed(list(enumerate(parsed.figures))):
        lines[figure.line - 1 : figure.line] = ["", figure.indent + _TOKEN.format(index), ""]
    return "\n".join(lines)


@event_priority(-50)  # after formulas and labs
def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put in the figures, and set their drawings aside: the search index has no use for their words."""
    name = page.file.src_uri
    content = _OUTPUT.sub(r'<div class="output no-copy"><div class="highlight">\1</div></div>', content)
    content = _PLAIN.sub(r"\1", content)
    content = content.replace("<th></th>", "<td></td>")  # a heading that says nothing is none
    if prepared := _book.get(name):
        language = str(config.theme.get("language") or config.theme.get("locale") or "en")
        drawn = {figure.line: drawing for figure, drawing in prepared.drawings}
        for index, figure in enumerate(prepared.page.figures):
            place = f"<p>{_TOKEN.format(index)}</p>"
            if place not in content:
                raise PluginError(
                    f"{_shown(prepared.page.path)}:{figure.line}: the figure comment does not stand in a "
                    "paragraph of its own; indent it as its block is indented"
                )
            content = content.replace(
                place, _figure(figure, drawn.get(figure.line), language, f"plot-{index + 1}")
            )
        content = _faults(prepared.faults) + content
    else:
        content = re.sub(rf"<p>{_TOKEN.format('[0-9]+')}</p>", "", content)
    kept = _drawings[name] = []

    def aside(match: re.Match[str]) -> str:
        kept.append(match[2])
        return f"{match[1]}<!--plot {len(kept) - 1}-->"

    return _DRAWING.sub(aside, content)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Put the drawings back."""
    kept = _drawings.get(page.file.src_uri, [])
    return re.sub(r"<!--plot (\d+)-->", lambda match: kept[int(match[1])], output)


def _figure(figure: pages.Figure, drawing: dict[str, Any] | None, language: str, name: str) -> str:
    if drawing is None:  # only under `serve`, and its fault is shown
        return ""
    description = figure.description or figures.described(drawing["axes"], language)
    return figures.figure(drawing["svg"], figure.caption, description, name)


def _faults(faults: list[pages.Fault]) -> str:
    if not faults:
        return ""
    rows = "\n".join(escape(f"{fault.line}: {fault.message}") for fault in faults)
    title = '<p class="admonition-title">mkdocs build</p>'
    return f'<div class="admonition failure">{title}<pre>{rows}</pre></div>\n'
