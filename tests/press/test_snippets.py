"""The page that collects what chapters give to take along, and the files beside it."""

import re
from pathlib import Path

import pytest
from press import BookError, snippets
from press.pages import parse

from tests import taken

CHAPTER = """# One {#one}

```python
print(1)
```

```python
# rope.py: MIT licence, posenc authors
print(2)
```

<!--pytest-codeblocks:expected-output-->

```text
2
```
"""
PAGE = "# All {#all}\n\nBefore.\n\n<!-- take: one -->\n\nAfter.\n"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    (tmp_path / "one.md").write_text(CHAPTER, encoding="utf-8")
    (tmp_path / "none.md").write_text("# None {#none}\n", encoding="utf-8")
    return tmp_path


def test_a_place_is_filled_with_the_blocks_of_the_chapter(book: Path) -> None:
    for links in (False, True):
        text = snippets.filled(PAGE, book, links=links)
        (unit,) = parse(text).blocks
        assert (unit.code, unit.expected) == ("# rope.py: MIT licence, posenc authors\nprint(2)\n", "2\n")
        assert ('href="take/rope.py"' in text) == links
        assert re.search(r"Before\.\n\n.*\n\nAfter\.", text, re.DOTALL)
    assert snippets.filled(CHAPTER, book, links=True) == CHAPTER


def test_each_is_a_file_of_its_own(book: Path) -> None:
    ((name, code),) = snippets.files(PAGE, book).items()
    assert name == "take/rope.py"
    assert code.startswith("# rope.py: MIT licence")


@pytest.mark.parametrize("chapter", ["none", "nowhere"])
def test_a_place_without_blocks_is_said(book: Path, chapter: str) -> None:
    with pytest.raises(BookError, match=f"{chapter}.md has no block"):
        snippets.filled(PAGE.replace("take: one", f"take: {chapter}"), book)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_has_all_of_them(language: str) -> None:
    folder = taken.ROOT / "docs" / language
    page = (folder / "take.md").read_text(encoding="utf-8")
    collected = list(snippets.snippets(parse(snippets.filled(page, folder))))
    assert len(collected) == len(set(collected))
    assert set(collected) == set(taken.codes(language))
    assert re.findall(r"\[`(\w+)\.py`\]", page) == collected
