"""What a reader does with the blocks that run in the page works; where something breaks it, it is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from tests import missing
from tests.browser import browsing, journeys, run_buttons
from tests.browser.run_buttons import RUN
from tests.planted import planted

Deed = Callable[[Page, str], Iterator[str]]


@pytest.fixture(autouse=True)
def _python(site: Path) -> None:
    if not (site / "py").is_dir():
        missing.skip_or_fail("runtime", "no Python for the pages: `python -m press runtime`")


@pytest.mark.parametrize("deed", RUN.all)
def test_a_reader_can(browser: browsing.Browser, site: Path, deed: Deed) -> None:
    with browsing.served(site) as root:
        assert journeys.found_at(browser, deed, root) == []


@pytest.mark.parametrize("bad", RUN.bad, ids=lambda bad: f"{bad[0].__name__}-{bad[-1]}")
def test_what_goes_wrong_is_noticed(
    browser: browsing.Browser, copy: Path, monkeypatch: pytest.MonkeyPatch, bad: tuple[Any, ...]
) -> None:
    deed, name, old, new, says = bad
    monkeypatch.setattr(run_buttons, "WAIT", journeys.BROKEN_WAIT)
    with planted(copy, name, old, new), browsing.served(copy) as root:
        faults = journeys.found_at(browser, deed, root, says)
    assert any(says in fault for fault in faults), f"{says} is not among {faults}"
