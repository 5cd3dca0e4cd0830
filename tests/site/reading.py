"""What a reader does with the book in a browser: each function does it and gives a list of faults."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import browsing
from book import page as pages
from playwright.sync_api import Error, Page
from playwright.sync_api import TimeoutError as Late
from sitebuild import ROOT

WAIT = 15_000  # ms; where something is to be missed a test says less


def opened(page: Page, url: str) -> browsing.Visit:
    """Open an address; what the page complains of from now on is written down."""
    visit = browsing.Visit(url)
    browsing.watch(page, visit)
    page.goto(url)
    return visit


def complaints(visit: browsing.Visit) -> list[str]:
    return visit.elsewhere + visit.failed + visit.console


# --- Search -------------------------------------------------------------------------------------------------

_FOUND = ".md-search-result__item > a.md-search-result__link"
_OLD = "for (const item of document.querySelectorAll('.md-search-result__item')) item.dataset.old = ''"
_NEW = "document.querySelector('.md-search-result__item:not([data-old])')"


def found(page: Page, word: str, typed: bool, wait: int = WAIT) -> list[str]:
    """Where the results lead, the first one first; [] where none come."""
    field = page.locator(".md-search__input")
    if typed:
        field.fill("")
        field.press_sequentially(word[:-1])
        page.wait_for_timeout(100)
    page.evaluate(_OLD)
    if typed:
        field.press_sequentially(word[-1])
    else:
        field.fill(word)
    try:
        page.wait_for_function(_NEW, timeout=wait)
    except Late:
        return []
    return [str(url) for url in page.locator(_FOUND).evaluate_all("links => links.map(link => link.href)")]


def search(
    page: Page, book: str, words: Mapping[str, set[str]], typed: str = "", wait: int = WAIT
) -> list[str]:
    """Words that do not find one of their pages first, or find something outside the book.

    `typed` is the word that is entered key by key and not at once, as from the clipboard.
    """
    visit = opened(page, f"{book}index.html")
    page.keyboard.press("/")
    faults = []
    for word, wanted in words.items():
        urls = found(page, word, word == typed, wait)
        outside = [url for url in urls if not url.startswith(book)]
        first = urls[0].removeprefix(book).partition(".html")[0] if urls else "nothing"
        faults += [f"{word} leads out of the book, to {url}" for url in outside]
        faults += [f"{word} finds {first} first"] if first not in wanted else []
    return faults + complaints(visit)


# --- Language and palette -----------------------------------------------------------------------------------


def switch(page: Page, root: str, name: str) -> list[str]:
    """Where the language switch of en/`name` does not lead to zh/`name` and back."""
    visit = opened(page, f"{root}en/{name}")
    faults = []
    for label, book in (("中文", "zh"), ("English", "en")):
        page.get_by_role("link", name=label, exact=True).click()
        page.wait_for_load_state()
        language = page.locator("html").get_attribute("lang")
        if (page.url, language) != (f"{root}{book}/{name}", book):
            faults.append(f"{label} leads to {page.url}, lang={language}")
            break
    return faults + complaints(visit)


def palette(page: Page, root: str, name: str, other: str) -> list[str]:
    """From the palette of the system to light, to dark, which another page remembers, and back."""
    page.emulate_media(color_scheme="light")
    visit = opened(page, f"{root}{name}")
    scheme = "document.body.dataset.mdColorScheme"
    faults = []
    for wanted in ("default", "slate", "default"):
        page.locator("header form[data-md-component=palette] label:visible").click()
        try:
            page.wait_for_function(f"{scheme} === '{wanted}'", timeout=2000)
        except Late:
            faults.append(f"after a click {page.evaluate(scheme)}, not {wanted}")
        if wanted == "slate":
            page.goto(f"{root}{other}")
            if page.evaluate(scheme) != wanted:
                faults.append(f"another page is {page.evaluate(scheme)}")
    return faults + complaints(visit)


# --- Keyboard -----------------------------------------------------------------------------------------------


def _focus(page: Page) -> str:
    """What has the focus."""
    script = (
        "(node => `${node.className} id=${node.id} for=${node.getAttribute('for')}`)(document.activeElement)"
    )
    return str(page.evaluate(script))


def _tab_to(page: Page, what: str) -> bool:
    """Press the tab key until `what` has the focus."""
    for _ in range(10):
        page.keyboard.press("Tab")
        if what in _focus(page):
            return True
    return False


def by_keyboard(page: Page, url: str) -> list[str]:
    """What cannot be opened, searched and followed by keyboard on a phone, or is not accessible then."""
    visit = opened(page, url)
    browsing.resized(page, browsing.PHONE)
    page.evaluate(browsing.MEASURE)  # what the browser has not laid out yet cannot be focused yet
    faults = []
    drawer, field = page.locator(".md-sidebar--primary"), page.locator(".md-search__input")
    for box, shown in (("__drawer", drawer), ("__search", field)):
        if shown.is_visible():
            faults.append(f"{box} is open from the start")
        if not _tab_to(page, f"for={box}"):
            return [*faults, f"{box} cannot be reached"]
        page.keyboard.press("Space")
        try:
            shown.wait_for(state="visible", timeout=3000)
        except Late:
            return [*faults, f"{box} does not open"]
        if box == "__drawer":
            faults += browsing.axe(page)
            page.keyboard.press("Space")
            shown.wait_for(state="hidden", timeout=3000)
    page.keyboard.type("softmax")
    page.locator(_FOUND).first.wait_for()
    faults += browsing.axe(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    try:
        page.wait_for_url("**html?h=*", timeout=3000)
    except Late:
        faults.append("a result is not followed")
    return faults + complaints(visit)


_STOP = """() => {
  const node = document.activeElement, box = node.getBoundingClientRect();
  const mark = getComputedStyle(node), label = node.nextElementSibling;
  const drawn = (style) => style.outlineStyle !== "none" || style.boxShadow !== "none";
  const own = node.matches(".md-option") ? label && drawn(getComputedStyle(label)) : drawn(mark);
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return [own || node.matches("input[type=text]"), inside, node.outerHTML.slice(0, 80)];
}"""


def tab_stops(page: Page, url: str, stops: int = 40) -> list[str]:
    """From the top of a page: the first stop leads to the text, and no stop is out of sight or unmarked."""
    visit = opened(page, url)
    page.keyboard.press("Tab")
    if "md-skip" not in _focus(page):
        return ["the first stop does not lead to the text"]
    page.keyboard.press("Enter")
    faults = []
    for _ in range(stops):
        page.keyboard.press("Tab")
        marked, inside, node = page.evaluate(_STOP)
        faults += [f"not marked: {node}"] if not marked else []
        faults += [f"out of sight: {node}"] if not inside else []
    return faults + complaints(visit)


# --- Copying ------------------------------------------------------------------------------------------------


def pasted(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def copied(page: Page, which: int) -> str:
    """What the button of a Python block puts into the clipboard."""
    page.locator(".language-python [data-clipboard-target]").nth(which).click()
    return pasted(page)


def programs(page: pages.Page) -> list[str]:
    """For each block of a page the program that it ends: the block and what it continues."""
    return [
        "\n".join(part.code for part in unit.parts[: number + 1])
        for unit in page.blocks
        for number in range(len(unit.parts))
    ]


def wrongly_copied(wanted: Sequence[str], copied: Sequence[str | None]) -> list[str]:
    """Blocks whose button gives something else.

    Empty lines aside: pytest-codeblocks drops those of a block that is indented.
    """

    def full(code: str | None) -> str:
        return "".join(line for line in (code or "").splitlines(keepends=True) if line.strip())

    if len(copied) != len(wanted):
        return [f"{len(copied)} blocks on the page, {len(wanted)} in its source"]
    return [code for code, text in zip(wanted, copied, strict=True) if full(code) != full(text)]


def runs(code: str) -> list[str]:
    """What goes wrong when the code is pasted into an empty interpreter."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-"],
        input=code,
        cwd=ROOT,
        env=os.environ | {"MPLBACKEND": "agg"},
        text=True,
        capture_output=True,
    )
    return [done.stderr.strip().splitlines()[-1]] if done.returncode else []


def commands(page: Page, url: str) -> list[str]:
    """Commands that are copied with their prompt, or not at all."""
    visit = opened(page, url)
    faults = []
    for button in page.locator(".language-console [data-clipboard-target]").all():
        button.click()
        text = pasted(page)
        faults += [text] if not text.strip() or re.search(r"(?m)^\s*[$>]", text) else []
    return faults + complaints(visit)


def formulas(page: Page, url: str) -> list[str]:
    """Formulas, on a line of their own and within a line, that are not copied as TeX."""
    visit = opened(page, url)
    faults = []
    formula = page.locator(".formula math").first
    tex = formula.locator("annotation").text_content()
    formula.evaluate("node => getSelection().selectAllChildren(node.querySelector('mrow, mtable, mi'))")
    page.keyboard.press("Control+c")
    if pasted(page) != f"$${tex}$$":
        faults.append(f"copied: {pasted(page)}, not $${tex}$$")
    text = page.locator("article p:has(math)").first
    text.evaluate("node => getSelection().selectAllChildren(node)")
    page.keyboard.press("Control+c")
    inline = f"${text.locator('annotation').first.text_content()}$"
    if inline not in pasted(page):
        faults.append(f"copied: {pasted(page)}, without {inline}")
    if page.locator("body > div[style*=fixed]").count():
        faults.append("something is left behind")
    return faults + complaints(visit)


# --- On paper -----------------------------------------------------------------------------------------------

_PAPER = """() => {
  const faults = [];
  const screen = ["header", ".md-sidebar", ".md-footer", ".downloads", ".book-more", ".md-code__nav"];
  for (const part of screen) {
    const shown = [...document.querySelectorAll(part)].some((node) => node.getClientRects().length);
    if (shown) faults.push(`${part} is shown`);
  }
  const { color } = getComputedStyle(document.querySelector("article p:not(.downloads)"));
  if (color !== "rgb(0, 0, 0)") faults.push(`the text is ${color}`);
  const ground = getComputedStyle(document.body).backgroundColor;
  if (!["rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"].includes(ground)) faults.push(`the paper is ${ground}`);
  const cut = [...document.querySelectorAll("article :is(pre, code)")].filter((node) =>
    node.scrollWidth > node.clientWidth + 1 && getComputedStyle(node).whiteSpace === "pre");
  if (cut.length) faults.push(`${cut.length} blocks are cut off`);
  return faults;
}"""


def printed(page: Page, url: str) -> list[str]:
    """What does not belong on paper, for somebody who reads in the dark palette."""
    page.emulate_media(color_scheme="dark")
    visit = opened(page, url)
    page.emulate_media(color_scheme="dark", media="print")
    page.set_viewport_size({"width": 680, "height": 960})
    return [*page.evaluate(_PAPER), *complaints(visit)]


# --- Downloads and pages from disk --------------------------------------------------------------------------


def downloads(page: Page, url: str) -> list[str]:
    """Downloads of a page that do not come, come under another name, or cannot be read."""
    opened(page, url)
    faults = []
    for link in page.locator("a[download]").all():
        name = str(link.get_attribute("href"))
        try:
            with page.expect_download(timeout=3000) as waiting:
                link.click()
            file, given = waiting.value.path(), waiting.value.suggested_filename
        except Error:
            faults.append(f"{name} does not come")
            continue
        if given != name:
            faults.append(f"{name} is called {given}")
        text = Path(file).read_text(encoding="utf-8")
        try:
            if name.endswith(".ipynb"):
                kinds = {cell["cell_type"] for cell in json.loads(text)["cells"]}
                faults += [] if {"code", "markdown"} <= kinds else [f"{name} has only {kinds}"]
            else:
                faults += [] if ast.parse(text).body else [f"{name} is empty"]
        except (KeyError, SyntaxError, ValueError) as error:
            faults.append(f"{name}: {error!r}")
    return faults


def from_disk(page: Page, file: Path, query: str = "") -> list[str]:
    """What a page lacks when its file is opened."""
    visit = opened(page, file.as_uri() + query)
    page.wait_for_load_state("networkidle")
    faults = complaints(visit)
    if page.locator("math").count() and not page.evaluate(
        "document.fonts.check('16px \"STIX Two Math\"', '√')"
    ):
        faults.append("formulas have no font")
    return faults
