"""The blocks of all pages in a browser: each prints and draws what its page shows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.browser import page_blocks
from tests.browser.browsing import Browser, Visit
from tests.browser.page_blocks import PLANTED, Block

MANY = 200  # blocks of a book, at least, that a browser runs


def test_every_block_gives_in_the_browser_what_its_page_shows(
    blocks_in_the_page: tuple[list[Block], Visit],
) -> None:
    blocks, _ = blocks_in_the_page
    assert [str(block) for block in blocks if block.page != "p" and block.fault] == []


def test_most_blocks_are_run(blocks_in_the_page: tuple[list[Block], Visit]) -> None:
    kinds = Counter((block.page[:2], block.need) for block in blocks_in_the_page[0])
    for book in ("en", "zh"):
        assert kinds[book, "numpy"] + kinds[book, "matplotlib"] > MANY
        assert kinds[book, "numpy"] == kinds["en", "numpy"]


def test_a_block_that_does_otherwise_is_found(blocks_in_the_page: tuple[list[Block], Visit]) -> None:
    planted = [block.fault for block in blocks_in_the_page[0] if block.page == "p"]
    assert [fault[: len(said)] for fault, said in zip(planted, PLANTED, strict=True)] == list(PLANTED)


def test_nothing_comes_from_elsewhere(blocks_in_the_page: tuple[list[Block], Visit]) -> None:
    assert blocks_in_the_page[1].elsewhere == []
    assert blocks_in_the_page[1].failed == []


def _copy(site: Path, folder: Path) -> Path:
    """The site by links, with a folder py/ of its own."""
    (folder / "py").mkdir()
    for path in [*site.iterdir(), *(site / "py").iterdir()]:
        if path.name != "py":
            (folder / path.relative_to(site)).symlink_to(path)
    return folder


@pytest.mark.parametrize(
    ("pattern", "says"),
    [("numpy*.whl", "404"), ("python_stdlib.zip", "404"), ("files.json", "404"), ("pyodide.mjs", "fetch")],
)
def test_a_file_that_is_missing_is_said(
    browser: Browser, site: Path, tmp_path: Path, pattern: str, says: str
) -> None:
    page_blocks.blocks(site)  # is Python there?
    copy = _copy(site, tmp_path)
    next((copy / "py").glob(pattern)).unlink()
    block = Block("p", "1", "numpy", [{"code": "1", "name": "1"}], "", 0)
    page_blocks.run(browser, copy, [block])
    assert says in block.error, block.error
    assert block.error.endswith(", fatal")
