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
    """A visit to pages, by their names. Axe sees every eighth in all looks, and in slow tests each page on one screen
    in the light, with all rules, and on the other in the dark: its twin the other way round."""
    found: dict[str, Visit] = {}
    pages = sorted(map(str, sitecheck.all_pages(site)), key=lambda page: (page[3:], page))  # beside its twin
    half, middle = request.param, len(pages) // 2
    some = pages[::20] if half is None else (pages[:middle], pages[middle:])[half]
    with browsing.served(site, browsing.BELOW) as address, browsing.newcomer(browser) as new:
        for page in dict.fromkeys([ALWAYS, *some]):
            url = f"{address}{page}{'?stay' * (page == 'index.html')}"  # else the front page sends one on
            looks = () if half is None else LOOKS[page.startswith("zh") :: 2]
            found[page] = browsing.visit(new, url, looks if len(found) % 8 else LOOKS)
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


# How far below the top of the page the first drawing of each chapter begins: they are laid out in one page, in turn.
FIRST_PICTURES = """(chapters) => Promise.all(chapters.map(async (chapter) => {
  const read = new DOMParser().parseFromString(await (await fetch(chapter)).text(), "text/html");
  const main = read.querySelector("main"), drawing = main.querySelector("figure.plot"), after = read.createRange();
  if (!drawing) return Infinity;
  after.setStartAfter(drawing);
  after.setEndAfter(main.querySelector("article").lastChild);
  after.deleteContents();
  await document.fonts.ready;
  document.querySelector("main").replaceWith(main);
  return drawing.getBoundingClientRect().top + scrollY;
}))"""


@pytest.mark.parametrize("book", sitecheck.BOOKS)
@pytest.mark.harmed(Harm("screens: ", style="article h1 { margin-bottom: 1700px !important }"))
@pytest.mark.harmed(Harm("inf screens: rotary", other=("**/rotary.html", "plot", "lost")))
def test_the_first_picture_of_a_chapter_begins_within_two_screens(
    page: Page, address: str, site: Path, book: str
) -> None:
    chapters = [page.name for page in sitecheck.all_pages(site) if page.chapter and page.book == book]
    assert len(chapters) > 20
    page.goto(f"{address}{book}/{chapters[0]}.html")
    tops = page.evaluate(FIRST_PICTURES, [f"{name}.html" for name in chapters])
    screens = zip(chapters, (top / DESKTOP[1] for top in tops), strict=True)
    assert [f"{number:.1f} screens: {name}" for name, number in screens if number > 2] == []


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
