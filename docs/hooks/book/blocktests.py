"""Blocks of the pages under pytest: collected by pytest-codeblocks, run as the build runs them (run.py).

A failure names page, line and exception; a warning, a missing output, a drawing without its caption fail too.
Blocks are seeded otherwise than in the build, so a block that shows random numbers without seeding is caught:
on the reader's machine it would print something else.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
from pytest_codeblocks.plugin import MarkdownFile, TestBlock

from . import cache
from . import page as pages
from . import run as runner

SEED = 1  # the build's is 0
_collect = MarkdownFile.collect


class BlockError(Exception):
    """What is wrong with a block, a line each: page, line, message."""


@functools.lru_cache(maxsize=8)
def _page(path: Path, changed: int) -> pages.Page:
    return pages.read(path)


def run(item: TestBlock) -> None:
    """Runs one collected block; raises BlockError where block and page do not agree."""
    page = _page(item.path, item.path.stat().st_mtime_ns)
    name = cache.shown(item.path)
    block = item.obj
    if block.syntax != "python":
        message = f"a `{block.syntax}` fence is executed by pytest-codeblocks; write ```console"
        raise BlockError(f"{name}:{block.lineno}: {message}")
    unit = next((unit for unit in page.blocks if unit.line == block.lineno), None)
    if unit is None or (unit.code, unit.expected) != (block.code, block.expected_output):
        raise BlockError(f"{name}:{block.lineno}: page.py and pytest-codeblocks read this block differently")
    parts = [part.code for part in unit.parts]
    outcome = runner.run(parts, seed=SEED, draw=False)
    faults = runner.faults(unit, outcome)
    if faults:
        text = "\n".join(f"{name}:{fault.line}: {fault.message}" for fault in faults)
        if outcome.error is None and not runner.faults(unit, runner.run(parts, draw=False)):
            text += "\n    (with the seed of the build it does: the block must seed its generators)"
        raise BlockError(text)


def collect(item: MarkdownFile) -> list[TestBlock]:
    """The blocks of a page; what pytest-codeblocks cannot read is named by its line."""
    try:
        return list(_collect(item))
    except RuntimeError as error:
        name = cache.shown(item.path)
        faults = [f"{name}:{fault.line}: {fault.message}" for fault in pages.read(item.path).faults]
        raise pytest.Collector.CollectError("\n".join([*faults, f"{name}: {error}"])) from None


def install() -> None:
    """Makes pytest-codeblocks run and report blocks in this way."""
    os.environ["MPLBACKEND"] = "agg"
    plain = TestBlock.__mro__[1].repr_failure
    MarkdownFile.collect = collect
    TestBlock.runtest = run
    TestBlock.repr_failure = lambda item, excinfo: (
        str(excinfo.value) if isinstance(excinfo.value, BlockError) else plain(item, excinfo)
    )
    TestBlock.reportinfo = lambda item: (item.path, item.obj.lineno - 1, f"block in line {item.obj.lineno}")
