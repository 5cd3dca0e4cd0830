"""What is checked of the files of the built site, and the examples of what each check finds."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.planted import planted
from tests.site import exportcheck, sitecheck
from tests.site.sitecheck import PAGE, SITE, Page

assert exportcheck.PAGE is PAGE  # its checks are among these


@pytest.mark.parametrize("check", PAGE.all)
def test_every_page(site: Path, check: Callable[[Page], Iterator[str]]) -> None:
    assert [f"{page}: {fault}" for page in sitecheck.all_pages(site) for fault in check(page)] == []


@pytest.mark.parametrize("check", SITE.all)
def test_the_site(site: Path, check: Callable[[Path], Iterator[str]]) -> None:
    assert list(check(site)) == []


@pytest.mark.parametrize(("check", "name", "old", "new", "says"), PAGE.bad + SITE.bad)
def test_each_check_finds_its_example(
    copy: Path, check: Callable[..., Iterator[str]], name: str, old: str, new: str, says: str
) -> None:
    with planted(copy, name, old, new):
        faults = list(check(copy if check in SITE.all else sitecheck.page_of(copy, name)))
    assert any(says in fault for fault in faults), faults
