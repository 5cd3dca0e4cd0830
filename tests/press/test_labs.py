"""Labs: one file, in each book a page in its language; run as chapters are, and taken along."""

import json
from pathlib import Path

import nbformat
import pytest
from press import cache, exports, labs, markup, pages
from press.book import Book
from press.check import pages as checks
from press.running import book_blocks as blocks

SMALL = """\
# ---
# title-en: Small
# title-zh: 小实验
# description-en: It draws.
# description-zh: 画一条线。
# needs: [order]
# ---

# %% [markdown] lang="en"
# # Small {#small}
#
# It draws.

# %% [markdown] lang="zh"
# # 小实验 {#small}
#
# 画一条线。

# %%
import matplotlib.pyplot as plt

print("```")

# %%
plt.plot([0, 1], label="α");

# %% [markdown] lang="en"
# Figure: A line from 0 to 1.
# Description: It rises evenly.
# <!-- holds: rises(solid) -->
#
# What follows.

# %% [markdown] lang="zh"
# 图：从 0 到 1 的一条线。
# 说明：它缓缓上升。
# <!-- holds: rises(solid) -->
#
# 后文。

# %%
print("the end")
"""


@pytest.fixture
def small(tmp_path: Path) -> dict[str, Path]:
    """The page of a lab in each language."""
    (tmp_path / "docs" / "labs").mkdir(parents=True)
    (tmp_path / "docs" / "labs" / "small.py").write_text(SMALL, encoding="utf-8")
    return {language: tmp_path / "docs" / language / "labs" / "small.md" for language in ("en", "zh")}


def runs(tmp_path: Path) -> blocks.Runs:
    return blocks.Runs(store=cache.Store("blocks", root=tmp_path / "cache"))


def test_a_lab_is_a_page_in_each_language_line_for_line(small: dict[str, Path]) -> None:
    english, chinese = (pages.read(path) for path in small.values())
    assert english.meta == {"title": "Small", "description": "It draws.", "needs": ["order"]}
    assert chinese.meta == {"title": "小实验", "description": "画一条线。", "needs": ["order"]}
    assert not pages.CHINESE.search(english.text)
    assert "Small" not in chinese.text
    lines = SMALL.split("\n")
    for lab in (english, chinese):
        assert lab.path.name == "small.py"
        assert [*lab.faults, *checks.census(lab)] == []
        (unit,) = lab.blocks
        assert len(unit.parts) == 2  # two cells with no text between them are one block
        assert all(lines[part.fence.end - 2] == part.code.split("\n")[-2] for part in unit.parts)
        assert [heading.line for heading in lab.headings] == [
            lines.index(f"# # {lab.headings[0].text} {{#small}}") + 1
        ]
    assert checks.faults_of_pair(english, chinese) == []


def test_it_runs_once_for_both_languages_and_is_set_like_a_chapter(
    small: dict[str, Path], tmp_path: Path, ran: list[str]
) -> None:
    known = runs(tmp_path)
    books = [blocks.prepare({"labs/small.md": pages.read(path)}, known) for path in small.values()]
    assert [blocks.report(book) for book in books] == [[], []]
    assert len(known.outcomes) == len(ran) == 1
    for path, book in zip(small.values(), books, strict=True):
        printed = book["labs/small.md"].printed
        assert printed == ["```\n", "the end\n"]
        shown = markup.marked(labs.text(path), Book(prepared=book), "labs/small.md")
        assert "```` { .text .output .no-copy }\n```\n````" in shown
        assert "``` { .text .output .no-copy }\nthe end\n```" in shown
        ((figure, drawing),) = book["labs/small.md"].drawings
        assert "<svg" in drawing["svg"]
        twin = exports.markdown(pages.read(path), path.parents[1].name, printed)
        assert figure.caption in twin
        assert "<!--" not in twin
        assert twin.endswith("``` text\nthe end\n```\n")


FAULTS = [  # what is written for what; the line where it is found, and what is said of it
    ('print("the end")', "1 / 0", "1 / 0", "ZeroDivisionError: division by zero\n    1 / 0"),
    ("plt.plot([0, 1]", "plt.plot([1, 0]", "# Figure: A", "rises(solid) does not hold"),
    ("# Figure: A", "# A", "import matplotlib", "the block draws, but no <!-- figure: caption --> follows it"),
    ("# What follows.", "# Text.\n#\n# Figure: B", "# Figure: B", "a figure comment directly follows its block"),
]  # fmt: skip


@pytest.mark.usefixtures("ran")
def test_a_fault_is_named_by_the_line_of_the_lab(small: dict[str, Path], tmp_path: Path) -> None:
    lines, book = [], {}
    for number, (old, new, at, _) in enumerate(FAULTS):
        assert old in SMALL
        text = SMALL.replace(old, new)
        lines.append([line.startswith(at) for line in text.split("\n")].index(True) + 1)
        path = small["en"].with_stem(f"small{number}")
        labs.source(path).write_text(text, encoding="utf-8")
        book[path.stem] = pages.read(path)
    found = "\n".join(blocks.report(blocks.prepare(book, runs(tmp_path))))
    for number, (_, _, at, says) in enumerate(FAULTS):
        line = lines[number] - at.startswith("import")  # a block is named by the line above it
        assert f"docs/labs/small{number}.py:{line}: {says}" in found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_taken_along_is_in_one_language(small: dict[str, Path], language: str) -> None:
    files = labs.downloads(small[language])
    script, notebook = files["small.py"], nbformat.reads(files["small.ipynb"], as_version=4)
    nbformat.validate(notebook)
    kinds = [cell.cell_type for cell in notebook.cells]
    assert kinds == ["raw", "markdown", "code", "code", "markdown", "code"]
    assert bool(pages.CHINESE.search(script)) == (language == "zh")
    for text in (script, json.dumps(notebook, ensure_ascii=False)):
        assert ("小实验" in text, "Small" in text) == (language == "zh", language == "en")
        assert "holds" not in text
        assert "lang=" not in text
    assert "\n\n\n" not in script
    compile(script, "small.py", "exec")
    links = labs.with_downloads("# Small {#small}\n\nText.", "labs/small.md", language)
    assert all(f'href="small{end}" download' in links for end in (".py", ".ipynb"))


def test_both_books_list_all_labs() -> None:
    for language, book in checks.labs_of_books().items():
        listed = pages.contents(cache.ROOT / "docs" / "sites" / language / "mkdocs.yml")
        assert {name for name in listed if labs.is_lab(name)} == set(book)
