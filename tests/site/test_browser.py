"""The built site in a browser: every page is measured in one visit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import browsing
import pytest
import reading
import sitecheck
from book import page as pages
from browsing import Browser, Visit
from sitebuild import ROOT

Check = Callable[[Visit], list[str]]

# --- Every page ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", browsing.CHECKS, ids=lambda check: check.__name__)
def test_every_page(visits: dict[str, Visit], check: Check) -> None:
    assert [f"{name}: {fault}" for name, visit in visits.items() for fault in check(visit)] == []


def test_what_was_measured_is_there(visits: dict[str, Visit]) -> None:
    assert len(visits) > 10
    chapter = visits["zh/sinusoidal.html"]
    assert chapter.html > 10_000
    assert len(chapter.sizes) >= 6  # page, two style sheets, ours, two scripts, the font
    assert chapter.labels
    assert not any("search_index" in url for url in chapter.sizes)  # fetched when somebody searches


def test_every_block_is_copied_with_what_it_continues(visits: dict[str, Visit]) -> None:
    for book in sitecheck.BOOKS:
        for source in sorted((ROOT / "docs" / book).glob("*.md")):
            copied = visits[f"{book}/{source.stem}.html"].copied
            assert reading.wrongly_copied(reading.programs(pages.read(source)), copied) == [], source


# --- Each check can fail ------------------------------------------------------------------------------------

GOOD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>T</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"></head>
<body style="font-size:16px"><main><h1>T</h1><p>Text.</p>{0}</main></body></html>"""
LATE = "<script>setTimeout(() => document.querySelector('h1').style.marginTop = '300px', 50)</script>"
SMALL = '<figure><svg viewBox="0 0 800 99" width="100%" role="img"><text>a</text></svg></figure>'

BAD: list[tuple[Check, str]] = [
    (browsing.nothing_from_elsewhere, '<img alt="" src="http://elsewhere.invalid/a.png">'),
    (browsing.nothing_missing, '<img alt="" src="missing.png">'),
    (browsing.no_complaint, "<script>console.error('no')</script>"),
    (browsing.no_complaint, "<script>nothing.there()</script>"),
    (browsing.light, "<!--" + "".join(f"{n * 7919 % 65521:x}" for n in range(40_000)) + "-->"),
    (browsing.steady, "<p>" + "Text. " * 200 + "</p>" + LATE),
    (browsing.not_too_many_nodes, "<b></b>" * 10_001),
    (browsing.fits_a_narrow_screen, '<p style="width:330px">Text.</p>'),
    (browsing.labels_can_be_read, SMALL),
    (browsing.accessible, '<p style="color:#aaa">Text.</p>'),
    (browsing.accessible, '<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">'),
    (
        browsing.accessible,
        "<style>@media (prefers-color-scheme: dark) and (width > 1000px) { p { color: #ddd } }</style>",
    ),
]


@pytest.fixture(scope="session")
def workshop(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Visit]]:
    """Visits a small page with something in it."""
    folder = tmp_path_factory.mktemp("pages")
    with browsing.served(folder) as url:

        def visited(body: str) -> Visit:
            (folder / "page.html").write_text(GOOD.format(body), encoding="utf-8")
            return browsing.visit(browser, f"{url}page.html")

        yield visited


def test_a_good_page_has_no_faults(workshop: Callable[[str], Visit]) -> None:
    visit = workshop("")
    assert [fault for check in browsing.CHECKS for fault in check(visit)] == []


@pytest.mark.parametrize(("check", "body"), BAD)
def test_a_bad_page_is_found(workshop: Callable[[str], Visit], check: Check, body: str) -> None:
    assert check(workshop(body)) != []
