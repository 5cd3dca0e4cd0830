"""What a reader does with the book in a browser; each deed gives a list of faults.

A deed is done at an address: of the site as it is served, or as it lies on a disk.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, Page
from playwright.sync_api import TimeoutError as Late
from press.cache import ROOT

from tests.browser import browsing
from tests.planted import Checks, planted
from tests.site.sitecheck import BOOKS, END, ORDER, contents, read

WAIT = 15_000  # ms that a slow machine may need; where something is to be missed a test says less
SERVED, FROM_DISK = Checks(), Checks()  # what a reader does, and a file of the site with something else in it
LAB = "labs/waveforms.html"


def opened(page: Page, url: str) -> browsing.Visit:
    """Open an address; what the page complains of from now on is written down."""
    visit = browsing.Visit(url)
    browsing.watch(page, visit)
    page.goto(url)
    return visit


def complaints(visit: browsing.Visit) -> list[str]:
    return visit.elsewhere + visit.failed + visit.console


# --- Search -------------------------------------------------------------------------------------------------

# What the first result is about; besides these, each page is found first by the words in its `tags`.
WORDS: dict[str, dict[str, set[str]]] = {
    "en": {
        "padding": {"masks"},
        "positional": {"index", "sinusoidal"},
        "rotary": {"rotary"},
        "ALiBi": {"alibi"},
        "equivariant": {"order"},
        "softmax": {"order", "masks"},
        "encoding": {"index", "sinusoidal"},
        "causal mask": {"masks"},
        "learned embedding": {"learned"},
        "RoPE": {"rotary"},
        "KV cache": {"take", "rotary"},
        "extend context 4k to 32k": {"rotary"},
        "ViT interpolate position": {"learned"},
        "RoPE vs ALiBi vs T5": {"relative"},
        "RoPE or ALiBi": {"rotary", "alibi", "relative"},
    },
    "zh": {
        "旋转": {"rotary"},
        "编码": {"index", "sinusoidal"},
        "位置编码": {"index", "sinusoidal"},
        "因果掩码": {"masks"},
        "填充": {"masks"},
        "softmax": {"order", "masks"},
        "RoPE": {"rotary"},
        "rotary": {"rotary"},
        "ALiBi": {"alibi"},
        "正弦位置编码": {"sinusoidal"},
        "旋转位置编码": {"rotary"},
        "可学习的位置嵌入": {"learned"},
        "相对位置偏置": {"relative"},
        "置换等变": {"order"},
        "旋": {"rotary"},
        "KV 缓存": {"take", "rotary"},
        "扩展上下文 32k": {"rotary"},
        "ViT 位置插值": {"learned"},
        "RoPE ALiBi T5 对比": {"relative"},
        "选哪种编码": {"choosing"},
    },
}


def tags(book: str) -> Iterator[tuple[str, str]]:
    """The words by which the pages of a book say that they are looked up, and the page."""
    for name in contents(book):
        if not name.startswith("labs/"):
            yield from ((tag, name) for tag in read(ROOT / "docs" / book / f"{name}.md").meta.get("tags", []))


_FOUND = ".md-search-result__item > a.md-search-result__link"
_OLD = "for (const item of document.querySelectorAll('.md-search-result__item')) item.dataset.old = ''"
_NEW = "document.querySelector('.md-search-result__item:not([data-old])')"


def found(page: Page, word: str, typed: bool) -> list[str]:
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
        page.wait_for_function(_NEW, timeout=WAIT)
    except Late:
        return []
    return [str(url) for url in page.locator(_FOUND).evaluate_all("links => links.map(link => link.href)")]


INDEX = "zh/search/search_index.json"


def search(page: Page, root: str, book: str) -> Iterator[str]:
    """Words that do not find one of their pages first, or find something outside the book.

    One word is entered key by key and not at once, as from the clipboard.
    """
    root = f"{root}{book}/"
    visit = opened(page, f"{root}index.html")
    page.keyboard.press("/")
    for turn, (word, wanted) in enumerate((WORDS[book] | {tag: {name} for tag, name in tags(book)}).items()):
        urls = found(page, word, typed=turn == 5)
        yield from (f"{word} leads out of the book, to {url}" for url in urls if not url.startswith(root))
        first = urls[0].removeprefix(root).partition(".html")[0] if urls else "nothing"
        yield from [f"{word} finds {first} first"] * (first not in wanted)
    yield from complaints(visit)


@SERVED(
    (INDEX, '"tags":[', '"gone":[', " finds "),
    (INDEX, '"location":"rotary.html', '"location":"../en/rotary.html', "leads out of the book"),
    (INDEX, '"docs":[', '"docs":[],"gone":[', "finds nothing first"),
    ("zh/book.js", '"input"', '"nothing"', "finds nothing first"),
    ("assets/javascripts/workers/search.*.min.js", "segmented(s,", "(s => ['旋'])(s,", "finds rotary first"),
)
@FROM_DISK(("zh/book.js", "scope.document.body.append(script)", "", "finds nothing first"))
def search_in_chinese(page: Page, root: str) -> Iterator[str]:
    yield from search(page, root, "zh")


@SERVED((INDEX.replace("zh", "en"), '"tags":[', '"gone":[', " finds "))
@FROM_DISK(("en/search/search_index.js", '"tags":[', '"gone":[', " finds "))
def search_in_english(page: Page, root: str) -> Iterator[str]:
    yield from search(page, root, "en")


# --- Language, palette, where a page opens ------------------------------------------------------------------


@SERVED(
    (f"en/{LAB}", f'href="../../zh/{LAB}"', 'href="../../zh/labs/masks.html"', "中文 leads to"),
    (f"zh/{LAB}", f'href="../../en/{LAB}"', 'href="../../index.html"', "English leads to"),
)
def switch(page: Page, root: str) -> Iterator[str]:
    """The language switch leads to the same page of the other book, and back."""
    visit = opened(page, f"{root}en/{LAB}")
    for label, book in (("中文", "zh"), ("English", "en")):
        page.get_by_role("link", name=label, exact=True).click()
        page.wait_for_load_state()
        language = page.locator("html").get_attribute("lang")
        if (page.url, language) != (f"{root}{book}/{LAB}", book):
            yield f"{label} leads to {page.url}, lang={language}"
            return
    yield from complaints(visit)


@SERVED(
    (ORDER, 'data-md-color-scheme="slate"', 'data-md-color-scheme="default"', "not slate"),
    ("en/naive.html", "<head>", "<head><script>localStorage.clear()</script>", "another page is default"),
)
def palette(page: Page, root: str) -> Iterator[str]:
    """From the palette of the system to light, to dark, which another page remembers, and back."""
    visit = opened(page, f"{root}{ORDER}")
    scheme = "document.body.dataset.mdColorScheme"
    for wanted in ("default", "slate", "default"):
        page.locator("header form[data-md-component=palette] label:visible").click()
        try:
            page.wait_for_function(f"{scheme} === '{wanted}'", timeout=WAIT)
        except Late:
            yield f"after a click {page.evaluate(scheme)}, not {wanted}"
        if wanted == "slate":
            page.goto(f"{root}en/naive.html")
            if page.evaluate(scheme) != wanted:
                yield f"another page is {page.evaluate(scheme)}"
                return
    yield from complaints(visit)


@SERVED(
    ("zh/shift.html", "</head>", "<style>h2 { scroll-margin: -99px !important }</style></head>", "390 px: #")
)
def anchors(page: Page, root: str) -> Iterator[str]:
    """An address with an anchor leads to its heading, below the header, also when the page has just been opened."""
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{root}zh/shift.html")
        ids = page.evaluate("[...document.querySelectorAll('article h2')].map((heading) => heading.id)")
        for name in (ids[-2], ids[2]):
            page.goto(f"{root}zh/index.html")
            page.goto(f"{root}zh/shift.html#{name}")
            top = f"document.getElementById('{name}').getBoundingClientRect().top"
            try:
                page.wait_for_function(f"{top} > 0 && {top} < 100", timeout=WAIT)
            except Late:
                yield f"{width} px: #{name} is at {page.evaluate(top)}"
                return


# --- Keyboard -----------------------------------------------------------------------------------------------


def _focus(page: Page) -> str:
    """What has the focus."""
    script = (
        "(node => `${node.className} id=${node.id} for=${node.getAttribute('for')}`)(document.activeElement)"
    )
    return str(page.evaluate(script))


@SERVED(
    ("zh/book.js", "label.replaceWith(button)", "", "__drawer cannot be reached"),
    ("zh/book.js", "() => box.click()", "() => {}", "__drawer does not open"),
    ("zh/book.js", "fromDisk = ", "fromDisk = console.error('a complaint') || ", "a complaint"),
)
def by_keyboard(page: Page, root: str) -> Iterator[str]:
    """What cannot be opened, searched and followed by keyboard on a phone, or is not accessible then."""
    visit = opened(page, f"{root}zh/order.html")
    browsing.resized(page, browsing.PHONE)
    page.evaluate(browsing.MEASURE)  # what the browser has not laid out yet cannot be focused yet
    drawer, field = page.locator(".md-sidebar--primary"), page.locator(".md-search__input")
    for box, shown in (("__drawer", drawer), ("__search", field)):
        if shown.is_visible():
            yield f"{box} is open from the start"
        for _ in range(10):
            page.keyboard.press("Tab")
            if f"for={box}" in _focus(page):
                break
        else:
            yield f"{box} cannot be reached"
            return
        page.keyboard.press("Space")
        try:
            shown.wait_for(state="visible", timeout=WAIT)
        except Late:
            yield f"{box} does not open"
            return
        if box == "__drawer":
            yield from browsing.axe(page)
            page.keyboard.press("Space")
            shown.wait_for(state="hidden", timeout=WAIT)
    page.keyboard.type("softmax")
    page.locator(_FOUND).first.wait_for()
    yield from browsing.axe(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    try:
        page.wait_for_url("**html?h=*", timeout=WAIT)
    except Late:
        yield "a result is not followed"
    yield from complaints(visit)


_STOP = """() => {
  const node = document.activeElement, box = node.getBoundingClientRect();
  const mark = getComputedStyle(node), label = node.nextElementSibling;
  const drawn = (style) => style.outlineStyle !== "none" || style.boxShadow !== "none";
  const own = node.matches(".md-option") ? label && drawn(getComputedStyle(label)) : drawn(mark);
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return [own || node.matches("input[type=text]"), inside, node.outerHTML.slice(0, 80)];
}"""
UNMARKED = "<style>:focus { outline: none !important; box-shadow: none !important }</style>"
ASIDE = "<style>article a { position: fixed; left: -99px; width: 9px }</style>"


@SERVED(
    (ORDER, "</head>", UNMARKED, "not marked"),
    (ORDER, "</head>", ASIDE, "out of sight"),
    (
        ORDER,
        "</head>",
        "<style>.md-skip { display: none }</style>",
        "the first stop does not lead to the text",
    ),
)
def tab_stops(page: Page, root: str) -> Iterator[str]:
    """From the top of a page: the first stop leads to the text, and no stop is out of sight or unmarked."""
    visit = opened(page, f"{root}{ORDER}")
    page.keyboard.press("Tab")
    if "md-skip" not in _focus(page):
        yield "the first stop does not lead to the text"
        return
    page.keyboard.press("Enter")
    for _ in range(40):
        page.keyboard.press("Tab")
        marked, inside, node = page.evaluate(_STOP)
        yield from [f"not marked: {node}"] * (not marked) + [f"out of sight: {node}"] * (not inside)
    yield from complaints(visit)


# --- Copying ------------------------------------------------------------------------------------------------


def _pasted(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


@SERVED(("zh/book.js", 'if (!blocks[at].closest(".continued")) break;', "break;", "NameError"))
def code(page: Page, root: str) -> Iterator[str]:
    """What a button copies runs in an empty interpreter: the first block of a chapter, the last cell of a lab."""
    for name, which, least in ((f"zh/{LAB}", -1, 3000), (ORDER, 0, 100)):
        visit = opened(page, f"{root}{name}")
        page.locator(".language-python [data-clipboard-target]").nth(which).click()
        text = _pasted(page)
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-"],
            input=text,
            cwd=ROOT,
            env=os.environ | {"MPLBACKEND": "agg"},
            text=True,
            capture_output=True,
            check=False,
        )
        yield from done.stderr.strip().splitlines()[-1:] if done.returncode else []
        yield from [f"only {text}"] * (len(text) < least) + complaints(visit)


@SERVED(
    ("en/book.js", "silent.remove()", "silent", "copied: $ "),
    ("en/index.html", "language-console", "console", "no command is copied"),
)
def commands(page: Page, root: str) -> Iterator[str]:
    """Commands that are copied with their prompt, or not at all."""
    visit = opened(page, f"{root}en/index.html")
    buttons = page.locator(".language-console [data-clipboard-target]").all()
    yield from [] if buttons else ["no command is copied"]
    for button in buttons:
        button.click()
        if not re.match(r"(pip|python3|git) ", text := _pasted(page)) or re.search(r"(?m)^\s*[$>]", text):
            yield f"copied: {text}"
    yield from complaints(visit)


@SERVED(
    ("zh/book.js", "event.preventDefault()", "box", "not $$"),
    ("zh/book.js", "event.preventDefault()", "box", "without $"),
    ("zh/book.js", "box.remove()", "box", "something is left behind"),
)
def formulas(page: Page, root: str) -> Iterator[str]:
    """Formulas, on a line of their own and within a line, that are not copied as TeX."""
    visit = opened(page, f"{root}zh/sinusoidal.html")
    formula = page.locator(".formula math").first
    tex = formula.locator("annotation").text_content()
    formula.evaluate("node => getSelection().selectAllChildren(node.querySelector('mrow, mtable, mi'))")
    page.keyboard.press("Control+c")
    if (pasted := _pasted(page)) != f"$${tex}$$":
        yield f"copied: {pasted}, not $${tex}$$"
    text = page.locator("article p:has(math)").first
    text.evaluate("node => getSelection().selectAllChildren(node)")
    page.keyboard.press("Control+c")
    inline = f"${text.locator('annotation').first.text_content()}$"
    if inline not in (pasted := _pasted(page)):
        yield f"copied: {pasted}, without {inline}"
    if page.locator("body > div[style*=fixed]").count():
        yield "something is left behind"
    yield from complaints(visit)


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


WRAPPED = "white-space: pre-wrap;\n  }\n\n  .md-typeset pre > span"


@SERVED(
    ("en/book.css", ".book-more,", "", ".book-more is shown"),
    ("en/book.css", "--md-typeset-color: #000", "--md-typeset-color: #00f", "the text is rgb(0, 0, 255)"),
    ("en/book.css", WRAPPED, WRAPPED.replace("-wrap", ""), "are cut off"),
)
def printed(page: Page, root: str) -> Iterator[str]:
    """What does not belong on paper, for somebody who reads in the dark palette."""
    page.emulate_media(color_scheme="dark")
    for name in ("en/masks.html", f"zh/{LAB}"):
        visit = opened(page, f"{root}{name}")
        page.emulate_media(color_scheme="dark", media="print")
        page.set_viewport_size({"width": 680, "height": 960})
        yield from [*page.evaluate(_PAPER), *complaints(visit)]
        page.emulate_media(color_scheme="dark", media="screen")


# --- Downloads and pages from disk --------------------------------------------------------------------------

DOWNLOADS = {
    "zh/order.html": {"order.py"},
    **{f"{book}/{LAB}": {"waveforms.py", "waveforms.ipynb"} for book in BOOKS},
}


@SERVED(
    ("en/labs/waveforms.ipynb", "", "", "waveforms.ipynb does not come"),
    ("en/labs/waveforms.ipynb", "{", "<p>No such page", "waveforms.ipynb: JSONDecodeError"),
    ("en/labs/waveforms.ipynb", '"markdown"', '"raw"', "waveforms.ipynb has only"),
    ("zh/order.py", "import", "import =", "order.py: SyntaxError"),
    ("zh/order.html", " download", " ", "zh/order.html offers set()"),
)
def downloads(page: Page, root: str) -> Iterator[str]:
    """Downloads of a page that do not come, come under another name, or cannot be read."""
    for where, wanted in DOWNLOADS.items():
        opened(page, f"{root}{where}")
        links = {str(link.get_attribute("href")): link for link in page.locator("a[download]").all()}
        yield from [f"{where} offers {set(links)}, not {wanted}"] * (set(links) != wanted)
        for name, link in links.items():
            try:
                with page.expect_download(timeout=WAIT) as waiting:
                    link.click()
                file, given = waiting.value.path(), waiting.value.suggested_filename
            except Error:
                yield f"{name} does not come"
                continue
            yield from [f"{name} is called {given}"] * (given != name)
            text = Path(file).read_text(encoding="utf-8")
            try:
                if name.endswith(".ipynb"):
                    kinds = {cell["cell_type"] for cell in json.loads(text)["cells"]}
                    yield from [] if {"code", "markdown"} <= kinds else [f"{name} has only {kinds}"]
                else:
                    yield from [] if ast.parse(text).body else [f"{name} is empty"]
            except (KeyError, SyntaxError, ValueError) as error:
                yield f"{name}: {error!r}"


CHAPTER = "en/sinusoidal.html"


@FROM_DISK(
    (CHAPTER, END, "<script>fetch('x.json').catch(() => {})</script>", "x.json"),
    (CHAPTER, END, '<script type="module" src="book.js"></script>', "book.js"),
    (CHAPTER, END, '<link rel="stylesheet" href="/book.css">', "book.css"),
    ("en/stix-two-math.woff2", "", "", "formulas have no font"),
)
def from_disk(page: Page, root: str) -> Iterator[str]:
    """What a page lacks when its file is opened."""
    for name in ("index.html?stay", CHAPTER, f"zh/{LAB}"):
        visit = opened(page, f"{root}{name}")
        page.wait_for_load_state("networkidle")
        yield from complaints(visit)
        if page.locator("math").count() and not page.evaluate(
            "document.fonts.check('16px \"STIX Two Math\"', '√')"
        ):
            yield "formulas have no font"


# --- All of it ----------------------------------------------------------------------------------------------

BROKEN_WAIT = 2000  # ms, where something is to be missed


@dataclass
class Deeds:
    """What was found at each deed: at the address, from disk, and where its example was planted."""

    served: dict[Any, list[str]]
    from_disk: dict[Any, list[str]]
    broken: dict[tuple[Any, ...], list[str]]


def deeds(browser: browsing.Browser, site: Path, copy: Path) -> Deeds:
    """All deeds, in the real site and in a copy of it in which something is broken each time."""
    global WAIT
    done = Deeds({}, {}, {})
    with browsing.served(site) as address, browsing.served(copy) as broken_address:
        for deed in SERVED.all:
            done.served[deed] = found_at(browser, deed, address)
        for deed in FROM_DISK.all:
            done.from_disk[deed] = found_at(browser, deed, f"{site.as_uri()}/")
        patient, WAIT = WAIT, BROKEN_WAIT
        for served, checks in ((True, SERVED), (False, FROM_DISK)):
            for deed, name, old, new, says in checks.bad:
                with planted(copy, name, old, new):
                    url = broken_address if served else f"{copy.as_uri()}/"
                    done.broken[served, deed, name, old, new, says] = found_at(browser, deed, url, says)
        WAIT = patient
    return done


def found_at(browser: browsing.Browser, deed: Any, url: str, wanted: str | None = None) -> list[str]:
    """The faults that somebody at a desktop who may use the clipboard finds, up to the one that is wanted."""
    width, height = browsing.DESKTOP
    context = browser.new_context(
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
        permissions=["clipboard-read", "clipboard-write"],
    )
    faults: list[str] = []
    try:
        for fault in deed(context.new_page(), url):
            faults.append(fault)
            if wanted is not None and wanted in fault:
                break
    except Exception as error:  # one deed that breaks down leaves the others
        faults.append(f"{type(error).__name__}: {error}")
    finally:
        context.close()
    return faults
