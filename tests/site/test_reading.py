"""What a reader does in the built site works; where something is planted that breaks it, it is noticed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import browsing
import pytest
import reading
import sitecheck
from book import page as pages
from browsing import Browser
from playwright.sync_api import BrowserContext, Page, Route
from sitebuild import ROOT

LAB = "labs/waveforms.html"


@pytest.fixture
def reader(browser: Browser) -> Iterator[BrowserContext]:
    """Somebody at a desktop who may use the clipboard."""
    width, height = browsing.DESKTOP
    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context
    context.close()


@pytest.fixture
def page(reader: BrowserContext) -> Page:
    return reader.new_page()


def planted(page: Page | BrowserContext, glob: str, change: Callable[[str], str]) -> None:
    """What the server sends for `glob` is changed on its way."""

    def handle(route: Route) -> None:
        answer = route.fetch()
        body = answer.text()
        changed = change(body)
        assert changed != body, f"nothing was planted in {glob}"
        route.fulfill(response=answer, body=changed)

    page.route(glob, handle)


def replaced(page: Page, glob: str, old: str, new: str) -> None:
    planted(page, glob, lambda text: text.replace(old, new))


# --- Search -------------------------------------------------------------------------------------------------

# What the first result is about; besides these, each page is found first by the words in its `tags`.
WORDS: dict[str, dict[str, set[str]]] = {
    "en": {
        "positional": {"index", "sinusoidal"},
        "rotary": {"rotary"},
        "ALiBi": {"alibi"},
        "padding": {"masks"},
        "equivariant": {"order"},
        "softmax": {"order", "masks"},
        "encoding": {"index", "sinusoidal"},
        "causal mask": {"masks"},
        "learned embedding": {"learned"},
        "RoPE": {"rotary"},
    },
    "zh": {
        "位置编码": {"index", "sinusoidal"},
        "编码": {"index", "sinusoidal"},
        "旋转": {"rotary"},
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
    },
}


def tags(book: str) -> dict[str, set[str]]:
    """The words by which the pages of a book say that they are looked up."""
    found: dict[str, set[str]] = {}
    for source in sorted((ROOT / "docs" / book).glob("*.md")):
        for tag in pages.read(source).meta.get("tags", []):
            found.setdefault(tag, set()).add(source.stem)
    return found


@pytest.mark.parametrize("book", sitecheck.BOOKS)
def test_every_chapter_has_words_of_its_own(book: str) -> None:
    owners = tags(book)
    assert {tag: names for tag, names in owners.items() if len(names) > 1} == {}
    assert set().union(*owners.values()) == {file.stem for file in (ROOT / "docs" / book).glob("*.md")}


@pytest.mark.parametrize("book", sitecheck.BOOKS)
@pytest.mark.parametrize("fromdisk", [False, True], ids=["served", "from disk"])
def test_search_finds_the_right_chapter_first(
    page: Page, site: Path, address: str, book: str, fromdisk: bool
) -> None:
    root = f"{(site / book).as_uri()}/" if fromdisk else f"{address}{book}/"
    words = WORDS[book] if fromdisk else tags(book) | WORDS[book]
    assert reading.search(page, root, words, typed=list(words)[-2]) == []


def untagged(index: str) -> str:
    data = json.loads(index)
    return json.dumps(data | {"docs": [{**entry, "tags": []} for entry in data["docs"]]})


OUTSIDE = '"location":"../en/rotary.html'


@pytest.mark.parametrize(
    ("glob", "change", "says"),
    [
        ("**/search_index.json", untagged, "padding finds labs/masks"),
        (
            "**/search_index.json",
            lambda text: text.replace('"location":"rotary.html', OUTSIDE),
            "out of the book",
        ),
        (
            "**/search_index.json",
            lambda text: re.sub(r'"docs":\[.*\]', '"docs":[]', text),
            "旋转 finds nothing",
        ),
        ("**/search_index.json", lambda text: text[:-9], "JSON"),
        ("**/book.js", lambda text: text.replace('"input"', '"nothing"'), "编码 finds nothing"),
        (
            "**/search.*.min.js",
            lambda text: text.replace("segmented(s,", "(s => ['旋'])(s,"),
            "编码 finds rotary",
        ),
    ],
)
def test_a_search_that_fails_is_noticed(
    page: Page, address: str, glob: str, change: Callable[[str], str], says: str
) -> None:
    planted(page.context, glob, change)  # the page's own routes do not see its worker's script
    words = {"旋转": {"rotary"}, "编码": {"index"}, "padding": {"masks"}}
    faults = reading.search(page, f"{address}zh/", words, wait=1000)
    assert says in "\n".join(faults)


CUT = Path(ROOT / "docs" / "hooks" / "book" / "segmented.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("编码", ["编码"]),  # not 编, although the index has it
        ("位置编码", ["位置", "编码"]),
        ("可学习", ["学习"]),  # 可 stands in no index
        ("学习的编码", ["学习", "编码"]),
        ("旋", ["旋"]),  # still being typed
        ("位置旋", ["位置", "旋"]),
        ("旋转编码", ["旋转编码", "编码"][1:]),
        ("", []),
    ],
)
def test_a_query_is_cut_into_the_words_of_the_index(page: Page, query: str, words: list[str]) -> None:
    index: dict[str, Any] = {word: {} for word in ("编", "编码", "位置", "学习")}
    assert (
        page.evaluate(f"([query, index]) => {{ {CUT}; return segmented(query, index) }}", [query, index])
        == words
    )


# --- Language, palette, keyboard ----------------------------------------------------------------------------


def test_the_language_switch_stays_on_the_page(page: Page, address: str) -> None:
    assert reading.switch(page, address, LAB) == []


@pytest.mark.parametrize("name", ["labs/masks.html", "../../index.html"])
def test_a_switch_to_another_page_is_noticed(page: Page, address: str, name: str) -> None:
    replaced(page, f"**/en/{LAB}", f'href="../../zh/{LAB}"', f'href="../../zh/{name}"')
    assert "中文 leads to" in reading.switch(page, address, LAB)[0]


def test_the_palette_goes_round_and_is_remembered(page: Page, address: str) -> None:
    assert reading.palette(page, address, "en/order.html", "en/naive.html") == []


def test_a_palette_that_is_not_there_or_forgotten_is_noticed(page: Page, address: str) -> None:
    replaced(page, "**/en/order.html", 'data-md-color-scheme="slate"', 'data-md-color-scheme="default"')
    assert "not slate" in reading.palette(page, address, "en/order.html", "en/naive.html")[0]
    page.unroute_all()
    page.evaluate("localStorage.clear()")
    page.add_init_script("Storage.prototype.setItem = () => {}")
    assert "another page is default" in reading.palette(page, address, "en/order.html", "en/naive.html")


def test_everything_opens_by_keyboard_on_a_phone(page: Page, address: str) -> None:
    assert reading.by_keyboard(page, f"{address}zh/order.html") == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("label.replaceWith(button)", "", "__drawer cannot be reached"),
        ("() => box.click()", "() => {}", "__drawer does not open"),
        ("fromDisk = ", "fromDisk = console.error('no') || ", "no"),
    ],
)
def test_what_no_key_opens_is_noticed(page: Page, address: str, old: str, new: str, says: str) -> None:
    replaced(page, "**/book.js", old, new)
    assert says in reading.by_keyboard(page, f"{address}zh/order.html")


def test_every_stop_of_the_tab_key_can_be_seen(page: Page, address: str) -> None:
    assert reading.tab_stops(page, f"{address}en/order.html") == []


@pytest.mark.parametrize(
    ("html", "says"),
    [
        ("<style>:focus { outline: none !important; box-shadow: none !important }</style>", "not marked"),
        ("<style>article a { position: fixed; left: -99px; width: 9px }</style>", "out of sight"),
        ("<style>.md-skip { display: none }</style>", "the first stop does not lead to the text"),
    ],
)
def test_a_bad_stop_is_noticed(page: Page, address: str, html: str, says: str) -> None:
    replaced(page, "**/en/order.html", "</head>", f"{html}</head>")
    assert says in reading.tab_stops(page, f"{address}en/order.html", 12)[0]


# --- Copying ------------------------------------------------------------------------------------------------


def test_the_button_copies_and_what_it_copies_runs(page: Page, address: str) -> None:
    """Pasted into an empty interpreter: the first block of a chapter, and the last cell of a lab."""
    for name, which, least in (("en/order.html", 0, 100), (f"zh/{LAB}", -1, 3000)):
        visit = reading.opened(page, f"{address}{name}")
        code = reading.copied(page, which)
        assert reading.runs(code) + reading.complaints(visit) == []
        assert len(code) > least


def test_a_button_that_copies_its_own_part_alone_is_noticed(page: Page, address: str) -> None:
    replaced(page, "**/book.js", 'if (!blocks[at].closest(".continued")) break;', "break;")
    reading.opened(page, f"{address}zh/{LAB}")
    assert "NameError" in reading.runs(reading.copied(page, -1))[0]
    wanted = reading.programs(pages.read(ROOT / "docs" / "en" / "order.md"))
    page.goto(f"{address}en/order.html")
    page.locator(".md-code__nav").first.wait_for()
    assert reading.wrongly_copied(wanted, page.evaluate(browsing.COPIED)) != []


def test_a_block_without_its_button_is_noticed() -> None:
    assert reading.wrongly_copied(["a = 1\n"], ["a = 1\n"]) == []
    assert reading.wrongly_copied(["a = 1\n"], [None]) == ["a = 1\n"]
    assert reading.wrongly_copied(["a = 1\n"], []) == ["0 blocks on the page, 1 in its source"]


def test_a_command_is_copied_without_its_prompt(page: Page, address: str) -> None:
    assert reading.commands(page, f"{address}en/index.html") == []
    assert reading.pasted(page).strip().startswith(("pip", "python3"))


def test_a_command_with_its_prompt_is_noticed(page: Page, address: str) -> None:
    replaced(page, "**/book.js", "silent.remove()", "silent")
    assert reading.commands(page, f"{address}en/index.html")[0].startswith("$ ")


def test_formulas_are_copied_as_tex(page: Page, address: str) -> None:
    assert reading.formulas(page, f"{address}zh/sinusoidal.html") == []


def test_formulas_that_are_copied_as_they_look_are_noticed(page: Page, address: str) -> None:
    replaced(page, "**/book.js", "event.preventDefault()", "box")
    assert len(reading.formulas(page, f"{address}zh/sinusoidal.html")) == 2
    page.unroute_all()
    replaced(page, "**/book.js", "box.remove()", "box")
    assert reading.formulas(page, f"{address}zh/sinusoidal.html") == ["something is left behind"]


# --- On paper -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["en/masks.html", f"zh/{LAB}"])
def test_paper_has_the_text_alone_in_black(page: Page, address: str, name: str) -> None:
    assert reading.printed(page, f"{address}{name}") == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (".book-more,", "", ".book-more is shown"),
        ("--md-typeset-color: #000", "--md-typeset-color: #00f", "the text is rgb(0, 0, 255)"),
        (
            "white-space: pre-wrap;\n  }\n\n  .md-typeset pre > span",
            "white-space: pre } .md-typeset pre > span",
            "are cut off",
        ),
    ],
)
def test_a_bad_print_is_noticed(page: Page, address: str, old: str, new: str, says: str) -> None:
    replaced(page, "**/book.css", old, new)
    assert says in "\n".join(reading.printed(page, f"{address}en/masks.html"))


# --- Downloads and pages from disk --------------------------------------------------------------------------


@pytest.mark.parametrize("name", [f"en/{LAB}", f"zh/{LAB}", "zh/order.html"])
def test_downloads_come_and_can_be_read(page: Page, address: str, name: str) -> None:
    assert reading.downloads(page, f"{address}{name}") == []
    assert page.locator("a[download]").count() == (2 if "labs" in name else 1)


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("a.ipynb", None, "a.ipynb does not come"),
        ("a.ipynb", "<p>No such page</p>", "a.ipynb: JSONDecodeError"),
        ("a.ipynb", '{"cells": []}', "a.ipynb has only set()"),
        ("a.py", "x = = 1", "a.py: SyntaxError"),
        ("a.py", "# %%", "a.py is empty"),
    ],
)
def test_a_bad_download_is_noticed(
    page: Page, tmp_path: Path, name: str, body: str | None, says: str
) -> None:
    (tmp_path / "page.html").write_text(f'<a href="{name}" download>{name}</a>', encoding="utf-8")
    if body:
        (tmp_path / name).write_text(body, encoding="utf-8")
    with browsing.served(tmp_path) as root:
        (fault,) = reading.downloads(page, f"{root}page.html")
    assert fault.startswith(says)


@pytest.mark.parametrize("name", ["index.html?stay", "en/sinusoidal.html", f"zh/{LAB}"])
def test_pages_from_disk_show_everything(page: Page, site: Path, name: str) -> None:
    file, mark, query = name.partition("?")
    assert reading.from_disk(page, site / file, mark + query) == []


@pytest.mark.parametrize(
    "body",
    [
        "<script>fetch('page.json').catch(() => {})</script>",
        '<script type="module" src="module.js"></script>',
        '<link rel="stylesheet" href="/book.css">',
        "<style>math { font-family: 'STIX Two Math' } @font-face "
        "{ font-family: 'STIX Two Math'; src: url(gone.woff2) }</style><math><mi>x</mi></math>",
    ],
)
def test_a_page_that_needs_a_server_is_noticed(page: Page, tmp_path: Path, body: str) -> None:
    (tmp_path / "page.html").write_text(f"<!doctype html><p>Text.</p>{body}", encoding="utf-8")
    (tmp_path / "page.json").write_text("{}")
    (tmp_path / "module.js").write_text("1")
    assert reading.from_disk(page, tmp_path / "page.html") != []
