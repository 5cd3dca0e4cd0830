"""What a reader does in the built site works; where something is planted that breaks it, it is noticed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page
from press.cache import ROOT

from tests.browser import journeys
from tests.browser.browsing import Browser
from tests.browser.journeys import FROM_DISK, SERVED, Deeds
from tests.site.sitecheck import BOOKS, contents

Deed = Callable[[Page, str], Iterator[str]]
BAD = [(True, *bad) for bad in SERVED.bad] + [(False, *bad) for bad in FROM_DISK.bad]


@pytest.mark.parametrize("deed", SERVED.all)
def test_a_reader_can(deeds: Deeds, deed: Deed) -> None:
    assert deeds.served[deed] == []


@pytest.mark.parametrize("deed", FROM_DISK.all)
def test_a_reader_can_from_disk(deeds: Deeds, deed: Deed) -> None:
    assert deeds.from_disk[deed] == []


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad[1].__name__}-{bad[-1]}")
def test_what_goes_wrong_is_noticed(deeds: Deeds, bad: tuple[Any, ...]) -> None:
    says, faults = bad[-1], deeds.broken[bad]
    assert any(says in fault for fault in faults), f"{says} is not among {faults}"


# --- Search -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("book", BOOKS)
def test_every_chapter_has_words_of_its_own(book: str) -> None:
    tags = list(journeys.tags(book))
    assert max(Counter(tag for tag, _ in tags).values()) == 1
    assert {name for _, name in tags} == {name for name in contents(book) if not name.startswith("labs/")}


CUT = (ROOT / "docs" / "press" / "segmented.js").read_text(encoding="utf-8")


def test_a_query_is_cut_into_the_words_of_the_index(browser: Browser) -> None:
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
    page = browser.new_page()
    assert page.evaluate(script, [list(wanted), index]) == list(wanted.values())
    page.close()
