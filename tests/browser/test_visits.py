"""Every page of the built site in a browser, measured in one visit."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page
from press import snippets
from press.pages import parse

from tests.browser import browsing
from tests.browser.browsing import DESKTOP, LOOKS, VISIT, Browser, Harm, Visit
from tests.site import sitecheck

ALWAYS = "zh/sinusoidal.html"


@pytest.fixture(
    scope="module",
    params=[None, pytest.param(0, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.slow)],
    ids=["a twentieth, in both languages", "the first half", "the second half"],
)
def visits(request: pytest.FixtureRequest, browser: Browser, site: Path) -> dict[str, Visit]:
    """A visit to pages, by their names. Axe sees every eighth in all looks, and in slow tests each page on both screens
    and in both palettes: its twin in the two looks that it is not seen in."""
    found: dict[str, Visit] = {}
    pages = sorted(map(str, sitecheck.all_pages(site)), key=lambda page: (page[3:], page))  # beside its twin
    half, middle = request.param, len(pages) // 2
    some = pages[::20] if half is None else (pages[:middle], pages[middle:])[half]
    with browsing.served(site, browsing.BELOW) as address, browsing.newcomer(browser) as new:
        for page in dict.fromkeys([ALWAYS, *some]):
            url = f"{address}{page}{'?stay' * (page == 'index.html')}"  # else the front page sends one on
            whole = len(found) % 8 == 0
            looks = LOOKS if whole else () if half is None else LOOKS[page.startswith("zh") :: 2]
            found[page] = browsing.visit(new, url, looks, all_parts=whole)
    return found


@pytest.mark.parametrize("check", VISIT.all)
def test_every_page(visits: dict[str, Visit], check: Callable[[Visit], list[str]]) -> None:
    assert [f"{name}: {fault}" for name, visit in visits.items() for fault in check(visit)] == []


def test_what_was_measured_is_there(visits: dict[str, Visit]) -> None:
    assert len(visits) > 8
    chapter = visits[ALWAYS]
    assert chapter.html > 10_000
    assert len(chapter.sizes) >= 6  # page, two style sheets, ours, two scripts, the font
    assert chapter.labels
    assert not any("search" in url for url in chapter.sizes)  # fetched when somebody searches


def test_every_block_is_copied_with_what_it_continues(site: Path, visits: dict[str, Visit]) -> None:
    for page in sitecheck.all_pages(site):
        if page.made and not page.lab and str(page) in visits:
            filled = parse(snippets.filled(page.source.read_text(encoding="utf-8"), page.source.parent))
            units = [[part.code for part in unit.parts] for unit in filled.blocks]
            wanted = [lines("\n".join(unit[: end + 1])) for unit in units for end in range(len(unit))]
            assert [lines(code or "") for code in visits[str(page)].copied] == wanted, page


def lines(code: str) -> list[str]:
    """Those that are not empty: pytest-codeblocks drops the others of a block that is indented."""
    return [line for line in code.splitlines() if line.strip()]


LOST = """addEventListener("DOMContentLoaded", () => {
  for (const drawing of document.querySelectorAll("figure.plot")) drawing.remove();
})"""
# How far below the top of the page the first drawing begins; null without one.
FIRST_PICTURE = """async () => {
  await document.fonts.ready;
  const drawing = document.querySelector("article figure.plot");
  return drawing && drawing.getBoundingClientRect().top + scrollY;
}"""


@pytest.mark.parametrize(  # of each chapter, by turns
    "languages", [("en", "zh"), pytest.param(("zh", "en"), marks=pytest.mark.slow)], ids=" and ".join
)
@pytest.mark.harmed(Harm("screens: ", style="article h1 { margin-bottom: 1700px !important }"))
@pytest.mark.harmed(Harm("no picture: ", script=LOST))
def test_the_first_picture_of_a_chapter_begins_within_two_screens(
    page: Page, address: str, site: Path, languages: tuple[str, str]
) -> None:
    chapters = sorted({str(page)[3:] for page in sitecheck.all_pages(site) if page.chapter})
    assert len(chapters) > 20
    faults = []
    for number, chapter in enumerate(chapters):
        name = f"{languages[number % 2]}/{chapter}"
        page.goto(f"{address}{name}", wait_until="domcontentloaded")
        top = page.evaluate(FIRST_PICTURE)
        if top is None:
            faults.append(f"no picture: {name}")
        elif top > 2 * DESKTOP[1]:
            faults.append(f"{top / DESKTOP[1]:.1f} screens: {name}")
    assert not faults, "\n".join(faults)


@pytest.fixture(scope="session")
def bad(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Visit:
    """A visit to a page with all that the checks must find."""
    folder = tmp_path_factory.mktemp("bad")
    (folder / "page.html").write_text(browsing.BAD, encoding="utf-8")
    with browsing.served(folder) as url, browsing.newcomer(browser) as new:
        return browsing.visit(new, f"{url}page.html")


@pytest.mark.parametrize(
    ("check", "part", "says"), VISIT.bad, ids=lambda value: getattr(value, "__name__", "")
)
def test_each_check_finds_its_example(
    bad: Visit, check: Callable[[Visit], list[str]], part: str, says: str
) -> None:
    assert any(says in fault for fault in check(bad)), check(bad)
