"""What the blocks of a page print, written anew where the page shows something else."""

import difflib
from collections.abc import Iterable, Mapping

from press import cache
from press.pages import Page, Unit
from press.running import book_blocks, outputs

DIRECTIVE = "<!--pytest-codeblocks:expected-output-->"


def ran(books: Iterable[Mapping[str, Page]]) -> book_blocks.Runs:
    """The outcomes of all blocks, from the cache or run."""
    runs = book_blocks.Runs()
    runs.failures.clear()
    runs.run(book_blocks.twins(*books))
    return runs


def updated(page: Page, runs: book_blocks.Runs) -> str:
    """The page with what its blocks print today; one that fails keeps what it shows."""
    lines = page.text.split("\n")
    for unit in reversed(page.blocks):  # from the end, so that the numbers of the lines above stay
        outcome = runs.outcome([part.code for part in unit.parts])
        if outcome.error is None and outcome.output and outputs.faults(unit, outcome):
            _write(lines, unit, outcome.output.splitlines())
    return "\n".join(lines)


def _write(lines: list[str], unit: Unit, output: list[str]) -> None:
    fence = unit.expected_fence
    if fence is not None:
        indent = " " * fence.indent
        lines[fence.line : fence.end - 1] = [f"{indent}{line}".rstrip() for line in output]
    else:
        last = unit.parts[-1].fence
        indent = " " * last.indent
        new = ["", DIRECTIVE, "", "```text", *output, "```"]
        lines[last.end : last.end] = [f"{indent}{line}".rstrip() for line in new]


def difference(page: Page, text: str) -> str:
    """What has changed, as a diff."""
    name = cache.shown(page.path)
    old, new = (each.splitlines(keepends=True) for each in (page.text, text))
    return "".join(difflib.unified_diff(old, new, name, name, n=2))
