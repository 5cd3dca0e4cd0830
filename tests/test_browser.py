"""The built site in a browser: every page is measured in one visit, and what a reader does is done."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import browsing
import pages
import pytest
import sitecheck
from browsing import Browser, Visit
from playwright.sync_api import BrowserContext, Page, expect
from sitebuild import ROOT

Check = Callable[[Visit], list[str]]

# --- Every page ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def address(browser: Browser, site: Path) -> Iterator[str]:
    with browsing.served(site) as url:
        yield url


@pytest.fixture(scope="session")
def visits(browser: Browser, site: Path, address: str) -> dict[str, Visit]:
    """One visit to each page of the site; with a question the front page sends nobody on."""
    names = [sitecheck.name(path, site) for path in sitecheck.pages(site)]
    return {
        name: browsing.visit(browser, f"{address}{name}{'?stay' if name == 'index.html' else ''}")
        for name in names
    }


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


# --- Search -------------------------------------------------------------------------------------------------

# What the first result is about. A word waits for the chapters that it leads to.
WORDS = {
    "en": {
        "positional": {"index", "sinusoidal", "addition"},
        "rotary": {"rotary"},
        "ALiBi": {"alibi"},
        "padding": {"masks", "labs/masks"},
        "equivariant": {"order"},
        "softmax": {"order", "offsets", "masks", "attention"},
    },
    "zh": {
        "位置编码": {"index", "sinusoidal", "addition", "rotary"},
        "编码": {"index", "sinusoidal", "addition", "rotary"},
        "旋转": {"rotary", "offsets", "sinusoidal"},
        "因果掩码": {"masks", "labs/masks", "order"},
        "填充": {"masks", "labs/masks"},
        "softmax": {"order", "offsets", "masks", "attention"},
        "RoPE": {"rotary"},
        "rotary": {"rotary"},
    },
}


@pytest.fixture
def reader(browser: Browser) -> Iterator[BrowserContext]:
    """Somebody at a desktop who may use the clipboard."""
    context = browser.new_context(
        viewport={"width": browsing.DESKTOP[0], "height": browsing.DESKTOP[1]}, reduced_motion="reduce"
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context
    context.close()


def opened(reader: BrowserContext, url: str) -> tuple[Page, Visit]:
    """A page, and what it complains of from now on."""
    page, visit = reader.new_page(), Visit(url)
    browsing.watch(page, visit)
    page.goto(url)
    return page, visit


def results(page: Page) -> list[str]:
    """Where the results of a search lead, the first one first."""
    items = page.locator(".md-search-result__item > a.md-search-result__link")
    expect(items.first).to_be_visible(timeout=15_000)
    return [str(link) for link in items.evaluate_all("links => links.map(link => link.href)")]


def complaints(visit: Visit) -> list[str]:
    return visit.elsewhere + visit.failed + visit.console


@pytest.mark.parametrize("book", sitecheck.BOOKS)
@pytest.mark.parametrize("fromdisk", [False, True], ids=["served", "from disk"])
def test_search_finds_the_right_chapter_first(
    reader: BrowserContext, site: Path, address: str, book: str, fromdisk: bool
) -> None:
    root = f"{(site / book).as_uri()}/" if fromdisk else f"{address}{book}/"
    words = {
        word: chapters
        for word, chapters in WORDS[book].items()
        if any((site / book / f"{chapter}.html").is_file() for chapter in chapters)
    }
    assert len(words) >= 4
    page, visit = opened(reader, f"{root}index.html")
    for word, chapters in words.items():
        for at_once in (True, False):
            page.keyboard.press("Escape")
            page.reload()
            page.keyboard.press("/")
            field = page.locator(".md-search__input")
            expect(field).to_be_focused()
            if at_once:
                field.fill(word)
            else:
                field.press_sequentially(word)
            found = results(page)
            assert all(link.startswith(root) for link in found), word
            first = found[0].removeprefix(root).partition(".html")[0]
            assert first in chapters, f"{word}: {found}"
    assert complaints(visit) == []


# --- Language, palette, keyboard ----------------------------------------------------------------------------


def test_the_language_switch_stays_on_the_page(reader: BrowserContext, address: str) -> None:
    page, visit = opened(reader, f"{address}en/labs/waveforms.html")
    page.get_by_role("link", name="中文", exact=True).click()
    expect(page).to_have_url(f"{address}zh/labs/waveforms.html")
    expect(page.locator("html")).to_have_attribute("lang", "zh")
    page.get_by_role("link", name="English", exact=True).click()
    expect(page).to_have_url(f"{address}en/labs/waveforms.html")
    assert complaints(visit) == []


def test_the_palette_goes_round_and_is_remembered(reader: BrowserContext, address: str) -> None:
    page, visit = opened(reader, f"{address}en/order.html")
    body = page.locator("body")
    for scheme, media in (("default", "light"), ("slate", "dark"), ("default", "")):
        page.locator("header form[data-md-component=palette] label:visible").click()
        expect(body).to_have_attribute("data-md-color-scheme", scheme)
        if media == "dark":
            page.goto(f"{address}en/naive.html")
            expect(body).to_have_attribute("data-md-color-scheme", scheme)
    assert complaints(visit) == []


def focused(page: Page) -> str:
    """What has the focus."""
    script = (
        "(node => `${node.className} id=${node.id} for=${node.getAttribute('for')}`)(document.activeElement)"
    )
    return str(page.evaluate(script))


def tab_to(page: Page, what: str) -> None:
    """Presses the tab key until `what` has the focus."""
    for _ in range(10):
        page.keyboard.press("Tab")
        if what in focused(page):
            return
    pytest.fail(f"{what} cannot be reached; the focus is at {focused(page)}")


def test_everything_opens_by_keyboard_on_a_phone(reader: BrowserContext, address: str) -> None:
    page, visit = opened(reader, f"{address}zh/order.html")
    browsing.resized(page, browsing.PHONE)
    drawer = page.locator(".md-sidebar--primary")
    expect(drawer).not_to_be_visible()
    tab_to(page, "for=__drawer")
    page.keyboard.press("Space")
    expect(drawer).to_be_visible()
    assert browsing.axe(page) == []
    page.keyboard.press("Space")
    expect(drawer).not_to_be_visible()
    tab_to(page, "for=__search")
    page.keyboard.press("Space")
    expect(page.locator(".md-search__input")).to_be_focused()
    page.keyboard.type("softmax")
    assert results(page)
    assert browsing.axe(page) == []
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**html?h=*")
    assert complaints(visit) == []


def test_every_stop_of_the_tab_key_can_be_seen(reader: BrowserContext, address: str) -> None:
    """From the top of a page: the first stop leads to the text, and no stop is out of sight or unmarked."""
    page, _ = opened(reader, f"{address}en/order.html")
    page.keyboard.press("Tab")
    assert "md-skip" in focused(page)
    page.keyboard.press("Enter")
    assert page.evaluate("scrollY") >= 0
    unseen = []
    for _ in range(40):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            """() => {
              const node = document.activeElement, box = node.getBoundingClientRect();
              const mark = getComputedStyle(node), label = node.nextElementSibling;
              const drawn = (style) => style.outlineStyle !== "none" || style.boxShadow !== "none";
              const own = node.matches(".md-option") ? label && drawn(getComputedStyle(label)) : drawn(mark);
              const inside =
                box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
              return [own || node.matches("input[type=text]"), inside, node.outerHTML.slice(0, 80)];
            }"""
        )
        if not (seen[0] and seen[1]):
            unseen.append(seen)
    assert unseen == []


# --- Copying ------------------------------------------------------------------------------------------------

COPIED = """() => [...document.querySelectorAll(".language-python.highlight pre")].map((block) => {
  const button = block.querySelector("[data-clipboard-target]");
  if (!button) return null;
  button.click();
  return button.dataset.clipboardText;
})"""


def test_every_block_is_copied_with_what_it_continues(
    reader: BrowserContext, site: Path, address: str
) -> None:
    for book in sitecheck.BOOKS:
        for source in sorted((ROOT / "docs" / book).glob("*.md")):
            if not (site / book / f"{source.stem}.html").is_file():
                continue
            page, _ = opened(reader, f"{address}{book}/{source.stem}.html")
            wanted = [
                "\n".join(part.code for part in unit.parts[: number + 1])
                for unit in pages.read(source).blocks
                for number in range(len(unit.parts))
            ]
            # pytest-codeblocks drops the empty lines of a block that is indented
            copied = [text and without_empty_lines(text) for text in page.evaluate(COPIED)]
            assert copied == [without_empty_lines(code) for code in wanted], source
            page.close()


def without_empty_lines(code: str) -> str:
    return "".join(line for line in code.splitlines(keepends=True) if line.strip())


def test_the_button_copies_and_what_it_copies_runs(reader: BrowserContext, address: str) -> None:
    """Pasted into an empty interpreter: the first block of a chapter, and the last cell of a lab."""
    for name, which in (("en/order.html", "first"), ("zh/labs/waveforms.html", "last")):
        page, visit = opened(reader, f"{address}{name}")
        buttons = page.locator(".language-python [data-clipboard-target]")
        getattr(buttons, which).click()
        code = page.evaluate("navigator.clipboard.readText()")
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-"],
            input=code,
            cwd=ROOT,
            env=quiet(),
            text=True,
            capture_output=True,
        )
        assert done.returncode == 0, done.stderr
        assert len(code) > (3000 if which == "last" else 100)
        assert complaints(visit) == []


def quiet() -> dict[str, str]:
    """The environment of a program that draws on no screen."""
    return os.environ | {"MPLBACKEND": "agg"}


def test_a_command_is_copied_without_its_prompt(reader: BrowserContext, address: str) -> None:
    page, _ = opened(reader, f"{address}en/index.html")
    page.locator(".language-console [data-clipboard-target]").first.click()
    text = page.evaluate("navigator.clipboard.readText()")
    assert text.strip() == "pip install '.[torch,plot]'"


def test_formulas_are_copied_as_tex(reader: BrowserContext, address: str) -> None:
    page, _ = opened(reader, f"{address}zh/sinusoidal.html")
    formula = page.locator(".formula math").first
    tex = formula.locator("annotation").text_content()
    formula.evaluate("node => getSelection().selectAllChildren(node.querySelector('mrow, mtable, mi'))")
    page.keyboard.press("Control+c")
    assert page.evaluate("navigator.clipboard.readText()") == f"$${tex}$$"
    text = page.locator("article p:has(math)").first
    text.evaluate("node => getSelection().selectAllChildren(node)")
    page.keyboard.press("Control+c")
    copied: Any = page.evaluate("navigator.clipboard.readText()")
    inline = text.locator("annotation").first.text_content()
    assert f"${inline}$" in copied
    assert not page.locator("body > div[style*=fixed]").count()


# --- From disk ----------------------------------------------------------------------------------------------


def test_pages_from_disk_show_everything(reader: BrowserContext, site: Path) -> None:
    for name in ("index.html?stay", "en/sinusoidal.html", "zh/labs/waveforms.html"):
        file, _, query = name.partition("?")
        page, visit = opened(reader, (site / file).as_uri() + ("?" + query if "?" in name else ""))
        page.wait_for_load_state("networkidle")
        assert complaints(visit) == []
        if "sinusoidal" in name:
            assert page.evaluate("document.fonts.check('16px \"STIX Two Math\"', '√')")
        page.close()
