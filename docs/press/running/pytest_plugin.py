"""Blocks of the pages under pytest: collected by pytest-codeblocks, run as the build runs them (execute.py).

A failure names page, line and exception; a warning, a missing output, a drawing without its caption fail too.
Blocks are seeded otherwise than in the build, so a block that shows random numbers without seeding is caught:
on the reader's machine it would print something else. What a block without random numbers did in the build is not
done again; where POSENC_CACHE names an empty folder, every block is run.

This is a plugin for pytest: `-p press.running.pytest_plugin`, in pyproject.toml, makes it one.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from pytest_codeblocks.plugin import MarkdownFile, TestBlock

from press import cache, pages
from press.running import book_blocks, execute, outputs, trainings

SEED = 1  # the build's is 0
_ran: dict[str, execute.Outcome] = {}


def pytest_configure() -> None:
    """No block opens a window."""
    os.environ["MPLBACKEND"] = "agg"


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Tests that are named have run before a second process has started; all tests have one for each core."""
    return None if config.args_source is config.ArgsSource.TESTPATHS else 0


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """What pytest-codeblocks collects, as ours."""
    found = yield
    return [
        Page.from_parent(parent, path=file_path) if isinstance(each, MarkdownFile) else each for each in found
    ]


class BlockError(Exception):
    """What is wrong with a block, a line each: page, line, message."""


class Page(MarkdownFile):
    """A page; what pytest-codeblocks cannot read of it is named by its line."""

    def collect(self) -> Iterator[Block]:
        try:
            found = list(super().collect())
        except RuntimeError as error:
            name = cache.shown(self.path)
            faults = [f"{name}:{fault.line}: {fault.message}" for fault in pages.read(self.path).faults]
            raise self.CollectError("\n".join([*faults, f"{name}: {error}"])) from None
        for item in found:
            yield Block.from_parent(self, name=item.name, obj=item.obj)


class Block(TestBlock):
    """A block of a page."""

    def runtest(self) -> None:
        """Raises BlockError where block and page do not agree."""
        name, block = cache.shown(self.path), self.obj
        if block.syntax != "python":
            message = f"a `{block.syntax}` fence is executed by pytest-codeblocks; write ```console"
            raise BlockError(f"{name}:{block.lineno}: {message}")
        units = _page(self.path, self.path.stat().st_mtime_ns).blocks
        unit = next((unit for unit in units if unit.line == block.lineno), None)
        if unit is None or (unit.code, unit.expected) != (block.code, block.expected_output):
            message = "pages.py and pytest-codeblocks read this block differently"
            raise BlockError(f"{name}:{block.lineno}: {message}")
        parts = [part.code for part in unit.parts]
        outcome = _outcome(parts)
        if faults := outputs.faults(unit, outcome):
            text = "\n".join(f"{name}:{fault.line}: {fault.message}" for fault in faults)
            if outcome.error is None and not outputs.faults(unit, execute.run(parts, draw=False)):
                text += "\n    (with the seed of the build it does: the block must seed its generators)"
            raise BlockError(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> str:
        if isinstance(excinfo.value, BlockError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.obj.lineno - 1, f"block in line {self.obj.lineno}"


def _outcome(parts: list[str]) -> execute.Outcome:
    """What a unit does; one that stands in both books, but for comments, is run once, as is what both train."""
    runs = _runs()
    if runs.known(parts) and not (kept := runs.outcome(parts)).random:
        return kept
    key = runs.key(parts).own
    if key not in _ran:
        _ran[key] = execute.run(parts, seed=SEED, draw=False)
    return _ran[key]


@functools.cache
def _runs() -> book_blocks.Runs:
    trainings.share()
    return book_blocks.Runs()


@functools.lru_cache(maxsize=8)
def _page(path: Path, changed: int) -> pages.Page:
    return pages.read(path)
