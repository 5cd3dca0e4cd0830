"""What chapters call false is gathered on one page: all of it, with the verdicts of the page's own table."""

import re
from pathlib import Path

from press import said
from press.book import Book
from press.cache import ROOT

CHAPTER = """# One {#one}

## Said {#false}

**"All is well."** No.

- “就是这样。”不对。

## Next {#next}

**"Not this."**
"""
PAGE = '| ["All is well"](one.md#one){#row-well} | only if | [code](#code) | 1 |\n\n<!-- said -->\n'


def missed(text: str) -> list[str]:
    """Items of such a section that do not begin with a saying in quotation marks."""
    section = re.search(r"^## [^\n]*\{#false\}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    items = re.findall(r"^(?:\*\*|- ).*", section[1] if section else "", re.MULTILINE)
    return items if len(items) != len(said.sayings(text)) else []


def test_sayings_are_listed_with_the_verdict_that_the_page_has(tmp_path: Path) -> None:
    (tmp_path / "one.md").write_text(CHAPTER, encoding="utf-8")
    book = Book("en", tmp_path, contents=["one.md", "labs/two.py"], titles={"one.md": "One"})
    text = said.gathered(PAGE, book)
    assert text.endswith("[One](one.md#false)\n\n- All is well → [only if](#row-well)\n- 就是这样\n</div>\n")
    assert said.gathered(CHAPTER, book) == CHAPTER
    assert missed(CHAPTER) == []
    assert missed(CHAPTER.replace('**"All is well."**', "**All is well.**")) != []


def test_no_saying_of_a_chapter_is_missed() -> None:
    for path in sorted((ROOT / "docs" / "en").glob("*.md")):
        english, chinese = (
            (ROOT / "docs" / language / path.name).read_text(encoding="utf-8") for language in ("en", "zh")
        )
        assert [*missed(english), *missed(chinese)] == [], path.name
        assert len(said.sayings(english)) == len(said.sayings(chinese)), path.name
        assert ("{#false}" in english) == bool(said.sayings(english)), path.name


def test_every_saying_is_measured_in_both_languages() -> None:
    """A chapter that words a saying anew loses the verdict that stands behind it in the list."""
    rows = []
    for language in ("en", "zh"):
        folder = ROOT / "docs" / language
        contents = sorted(path.name for path in folder.glob("*.md"))
        book = Book(language, folder, contents=contents, titles={name: name for name in contents})
        text = said.gathered((folder / "claims.md").read_text(encoding="utf-8"), book).partition('"said"')[2]
        rows.append(re.findall(r"^- .* → \[.+\]\(#(row-.*)\)$", text, re.MULTILINE))
        assert re.findall(r"^- (?!.* → ).*", text, re.MULTILINE) == [], "a saying without a verdict"
    assert rows[0] == rows[1]


def test_a_saying_of_a_chapter_leads_to_its_measurement(tmp_path: Path) -> None:
    (tmp_path / "claims.md").write_text(PAGE, encoding="utf-8")
    text = said.linked(CHAPTER, tmp_path)
    assert text == CHAPTER.replace('"All is well."', '["All is well."](claims.md#row-well "only if")')
    assert said.linked(PAGE, tmp_path) == PAGE
