"""What a reader does in the built site works; where something is planted that breaks it, it is noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import browsing
import pytest
import reading
from book.cache import ROOT
from browsing import Browser
from examples import planted
from playwright.sync_api import Page
from reading import FROM_DISK, SERVED
from sitecheck import BOOKS, contents

Deed = Callable[[Page, str], Iterator[str]]


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """That of somebody at a desktop who may use the clipboard."""
    width, height = browsing.DESKTOP
    context = browser.new_context(
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("deed", SERVED.all)
def test_a_reader_can(page: Page, address: str, deed: Deed) -> None:
    assert list(deed(page, address)) == []


@pytest.mark.parametrize("deed", FROM_DISK.all)
def test_a_reader_can_from_disk(page: Page, site: Path, deed: Deed) -> None:
    assert list(deed(page, f"{site.as_uri()}/")) == []


@pytest.fixture(scope="session")
def copy_address(copy: Path) -> Iterator[str]:
    with browsing.served(copy) as url:
        yield url


BAD = [(True, *bad) for bad in SERVED.bad] + [(False, *bad) for bad in FROM_DISK.bad]


@pytest.mark.parametrize(("served", "deed", "name", "old", "new", "says"), BAD)
def test_what_goes_wrong_is_noticed(
    page: Page, copy: Path, copy_address: str, monkeypatch: pytest.MonkeyPatch,
    served: bool, deed: Deed, name: str, old: str, new: str, says: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(reading, "WAIT", 2000)
    faults = []
    with planted(copy, name, old, new):
        for fault in deed(page, copy_address if served else f"{copy.as_uri()}/"):
            faults.append(fault)
            if says in fault:
                return
    raise AssertionError(f"{says} is not among {faults}")


# --- Search -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("book", BOOKS)
def test_every_chapter_has_words_of_its_own(book: str) -> None:
    tags = list(reading.tags(book))
    assert max(Counter(tag for tag, _ in tags).values()) == 1
    assert {name for _, name in tags} == {name for name in contents(book) if not name.startswith("labs/")}


CUT = (ROOT / "docs" / "hooks" / "book" / "segmented.js").read_text(encoding="utf-8")


def test_a_query_is_cut_into_the_words_of_the_index(page: Page) -> None:
    wanted = {
        "编码": ["编码"],  # not 编, although the index has it
        "位置编码": ["位置", "编码"],
        "可学习": ["学习"],  # 可 stands in no index
        "学习的编码": ["学习", "编码"],
        "旋": ["旋"],  # still being typed
        "位置旋": ["位置", "旋"],
        "旋转编码": ["编码"],
        "": [],
    }
    index: dict[str, Any] = {word: {} for word in ("编", "编码", "位置", "学习")}
    script = f"([queries, index]) => {{ {CUT}; return queries.map((query) => segmented(query, index)) }}"
    assert page.evaluate(script, [list(wanted), index]) == list(wanted.values())
