"""A table that a block prints: set as one, complete without scripts, sorted and filtered where there are some."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import markdown
import pytest
from playwright.sync_api import Page
from press import exports, markup, pages
from press.book import Book
from press.cache import ROOT

from tests.browser import browsing
from tests.browser.browsing import DESKTOP, PHONE

THEME = ROOT / "docs" / "theme"
TEXT = """# A {#a}

| Column | Question |
|---|---|
| [Shift](#column-shift){#asks-shift} | Does it stay? |
| [Cost](#below) | How much? It is explained below |

[a case](a.md?shift=no#a){.case}

```python
print(table)
```

<!--pytest-codeblocks:expected-output-->

```text
| Scheme | [Shift](#asks-shift){#column-shift} | Defined | [Cost](#below) | [Held](#a){#column-held} |
| --- | --- | --- | --- | --- |
| [b](#a){#row-b} | yes | any | – | 32* |
| [a](#a){#row-a} | no | 2,048 | 12 % | 64 |
| [c](#a){#row-c} | – | 768 | < 0.01 % | – |
| [d](#a){#row-d} | no | 40 → 256 | 0 % | 40 → 256 |
```

<!-- table: Four <schemes> -->

After it.
"""


def html(text: str = TEXT, name: str = "a.md") -> str:
    extensions = ["attr_list", "md_in_html", "tables", "toc", "pymdownx.superfences"]
    made = markdown.markdown(markup.marked(text, Book(), name), extensions=extensions)
    return markup.with_outputs(made.replace(f'"{name}?', '"?'))


def write(folder: Path, language: str, text: str) -> None:
    head = f'<!doctype html><html lang="{language}"><title>A</title><link rel="stylesheet" href="book.css">'
    script = '<script type="module" src="table.js"></script>'
    page = f'{head}<meta charset="utf-8">{script}<main class="md-typeset">{text}</main>'
    for asset in ("table.js", "book.css"):
        (folder / asset).write_bytes((THEME / asset).read_bytes())
    (folder / f"{language}.html").write_text(page, encoding="utf-8")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("table")
    for language in ("en", "zh"):
        write(folder, language, html())
    with browsing.served(folder) as served:
        yield served


@pytest.fixture
def table(reader: Callable[..., Page], address: str) -> Page:
    page = reader(PHONE)
    page.goto(f"{address}en.html")
    page.wait_for_selector("form")
    return page


def column(page: Page, number: int) -> list[str]:
    cells = page.locator(f".answers tbody tr > :nth-child({number})").all()
    return [cell.inner_text() for cell in cells if cell.is_visible()]


def test_an_output_is_set_as_a_table() -> None:
    text = html()
    assert text.count('<table class="answers">') == 1
    assert '<div role="region" tabindex="0" aria-label="Four &lt;schemes&gt;">' in text
    assert "<figcaption>Four &lt;schemes&gt;</figcaption>" in text
    assert re.findall(r'<th scope="row"><a href="#a" id="([\w-]+)">', text) == [
        "row-b",
        "row-a",
        "row-c",
        "row-d",
    ]
    assert text.count('<th scope="col">') == 5
    assert "<!--" not in text
    assert 'class="language-text' not in text


def test_a_markdown_twin_has_the_table() -> None:
    twin = exports.markdown(pages.parse(TEXT), "en")
    assert "\n\n| Scheme | [Shift](" in twin
    assert "```text" not in twin
    assert "*Four <schemes>*" in twin


@pytest.mark.parametrize(
    ("old", "new", "line", "reason"),
    [
        ("| no | 40 → 256 | 0 % | 40 → 256 |\n", "| no\n", 25, "each of its lines"),
        ("<!-- table: Four <schemes> -->", "<!-- table: -->", 25, "has a caption"),
        ("<!-- table:", "Text.\n\n<!-- table:", 27, "directly follows the output"),
        ("<!-- table: Four <schemes> -->", "<!-- table: Four\nschemes -->", 25, "one line"),
    ],
)
def test_a_table_comment_that_fits_nothing_is_a_fault(old: str, new: str, line: int, reason: str) -> None:
    assert old in TEXT
    faults = pages.parse(TEXT.replace(old, new)).faults
    assert [fault.line for fault in faults if reason in fault.message] == [line]


def test_without_scripts_all_rows_are_there(reader: Callable[..., Page], address: str) -> None:
    page = reader(DESKTOP, java_script_enabled=False)
    page.goto(f"{address}en.html")
    assert column(page, 1) == ["b", "a", "c", "d"]
    assert page.locator("form, button").count() == 0
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    name = page.locator(".answers tbody th").first
    left = name.bounding_box()
    page.evaluate("document.querySelector('[role=region]').scrollLeft = 100")
    assert name.bounding_box() == left, "the names of the rows stay in sight"


def test_heads_sort(table: Page) -> None:
    table.set_viewport_size({"width": 1280, "height": 800})
    heads = table.locator(".answers thead th")
    orders = {
        0: ["a", "b", "c", "d"],
        2: ["d", "c", "a", "b"],  # numbers, then words; an arrow begins with its first number
        3: ["d", "c", "a", "b"],  # what has no answer is last
    }
    for number, order in orders.items():
        heads.nth(number).get_by_role("button").click()
        assert column(table, 1) == order
        assert [head.get_attribute("aria-sort") for head in heads.all()] == [
            "ascending" if other == number else None for other in range(5)
        ]
    heads.nth(3).get_by_role("button").press("Enter")  # by keyboard, and now down
    assert column(table, 1) == ["a", "c", "d", "b"]
    assert heads.nth(3).get_attribute("aria-sort") == "descending"


def test_lists_filter_and_say_how_many_are_left(table: Page) -> None:
    assert table.locator("label").all_inner_texts() != []
    assert table.locator("select").count() == 2  # of words alone, and of numbers alone
    count = table.get_by_role("status")
    assert count.inner_text() == "4 of 4 rows shown"
    table.get_by_role("combobox", name="Shift").select_option("no")
    assert column(table, 1) == ["a", "d"]
    assert count.inner_text() == "2 of 4 rows shown"
    table.evaluate("location.hash = 'row-b'")  # a link to a row that is hidden
    table.wait_for_function("!document.querySelector('#row-b').closest('tr').hidden")
    assert count.inner_text() == "4 of 4 rows shown"
    table.get_by_role("combobox", name="Shift").select_option("yes")
    table.get_by_role("button", name="Show all").click()
    table.wait_for_function("document.querySelector('output').value.startsWith('4 ')")
    assert column(table, 1) == ["b", "a", "c", "d"]


def test_the_address_keeps_what_is_chosen_and_a_link_chooses(table: Page) -> None:
    table.get_by_role("combobox", name="Held").select_option("at least 40")
    assert column(table, 1) == ["a", "d"]
    assert table.evaluate("location.search") == "?held=40"
    table.get_by_role("link", name="a case").click()
    assert (column(table, 1), table.evaluate("location.search + location.hash")) == (
        ["a", "d"],
        "?shift=no#a",
    )
    table.go_back()
    table.wait_for_function("location.search === '?held=40'")
    assert table.get_by_role("combobox", name="Shift").input_value() == ""
    table.goto(table.url.partition("?")[0].replace("en.html", "zh.html?shift=no&held=64"))
    table.wait_for_selector("form")
    assert column(table, 1) == ["a"], "the address is the same in both languages"
    table.goto(table.url.partition("?")[0] + "?shift=perhaps&other=1")
    table.wait_for_selector("form")
    assert column(table, 1) == ["b", "a", "c", "d"], "no answer of this table"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_links_above_the_claims_choose_rows(page: Page, tmp_path: Path, language: str) -> None:
    text = (ROOT / "docs" / language / "claims.md").read_text(encoding="utf-8")
    write(tmp_path, language, html(text, "claims.md"))
    with browsing.served(tmp_path) as served:
        page.goto(f"{served}{language}.html")
        page.wait_for_selector("form")
        rows = page.locator(".answers tbody tr:not([hidden])")
        every = rows.count()
        links = page.locator("a.case")
        assert links.count() > 2
        for link in links.all():
            link.click()
            assert 0 < rows.count() < every, link.inner_text()
        for list_ in page.locator("select").all():
            answers = list_.locator("option").evaluate_all("(options) => options.map(({ value }) => value)")
            assert all(answer.isascii() for answer in answers), "an address is the same in both languages"


def test_a_head_has_its_question(table: Page) -> None:
    link = table.locator("#column-shift")
    assert link.get_attribute("title") == "Does it stay?"
    assert link.get_attribute("href") == "#asks-shift"
    assert table.locator("thead a[href='#below']").get_attribute("title") == "How much? It is explained below"
    assert table.locator("#column-held").get_attribute("title") is None


def test_on_a_phone_a_row_is_a_card(table: Page) -> None:
    assert table.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    card = table.locator(".answers tbody tr").nth(1)
    box = card.bounding_box()
    assert box
    assert box["width"] > PHONE[0] / 2
    named = card.locator("td").evaluate_all(
        """(cells) => cells.map((cell) =>
          [getComputedStyle(cell.querySelector('a[data-head]') ?? cell, '::before').content, cell.textContent])"""
    )
    assert named == [['"Shift"', "no"], ['"Defined"', "2,048"], ['"Cost"', "12 %"], ['"Held"', "64"]]


def test_on_a_phone_the_name_of_an_answer_leads_to_its_question(table: Page) -> None:
    label = table.locator("td > a[data-head]").first
    assert label.get_attribute("title") == "Does it stay?"
    box = label.bounding_box()
    assert box
    assert box["height"] >= 24
    label.click()
    assert table.evaluate("location.hash") == "#asks-shift"
    table.locator("#column-held").focus()  # by keyboard the heads lead there: they are seen then
    head = table.locator("#column-held").bounding_box()
    assert head
    assert head["height"] > 10
    assert head["x"] + head["width"] <= PHONE[0]
    table.keyboard.press("Tab")
    table.keyboard.press("Tab")
    assert table.evaluate("document.activeElement.id") == "row-b", "a stop in each cell"
    table.set_viewport_size({"width": 1280, "height": 800})
    assert not label.is_visible()


def test_nothing_is_wrong_with_it_for_axe(table: Page) -> None:
    assert browsing.axe(table) == []


def test_it_speaks_chinese(page: Page, address: str) -> None:
    page.goto(f"{address}zh.html")
    page.wait_for_selector("form")
    assert page.get_by_role("status").inner_text() == "显示 4 行，共 4 行"
    assert page.get_by_role("button", name="全部显示").count() == 1
