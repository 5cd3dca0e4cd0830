"""The pages: every block is run and shows its output, both languages say the same; each check can fail."""

import io
import re
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from press import pages, reading_order, uncollected
from press.book import Book
from press.cache import ROOT
from press.check import pages as checks
from pytest_codeblocks import extract_from_buffer, extract_from_file

from tests.programs import python

BOOKS = checks.chapters()
PAGES = [(language, name) for language, book in BOOKS.items() for name in book]
README = pages.read(ROOT / "README.md")

F = "```"
OUTPUT = "<!--pytest-codeblocks:expected-output-->"


def page(*lines: str) -> pages.Page:
    return pages.parse("\n".join([*lines, ""]))


def said(faults: list[pages.Fault]) -> str:
    return "\n".join(f"{fault.line}: {fault.message}" for fault in faults)


def block(*lines: str, info: str = "python") -> list[str]:
    return [f"{F}{info}", *lines, F, ""]


# --- The book -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*(BOOKS[lang][name].path for lang, name in PAGES), README.path], ids=str)
def test_pytest_codeblocks_collects_every_python_fence(path: Path) -> None:
    collected = [item for item in extract_from_file(path) if item.syntax in ("python", "sh", "bash")]
    continued = sum(len(unit.parts) - 1 for unit in pages.read(path).blocks)
    fences, _ = uncollected.python_fences(path.read_text(encoding="utf-8"))
    assert len(collected) + continued == len(fences)


# --- The reader reads as pytest-codeblocks does ------------------------------------------------------------


def test_a_whole_page() -> None:
    text = page(
        "---",
        'title: "A title: with a colon"',
        "description: What it is about",
        "---",
        "",
        "# Title {#top}",
        "",
        "A formula $a_1 + b$ costs \\$5, `$x$` is code, [a link](naive.md#one-hot).",
        "",
        "$$",
        "\\frac{a}{b}",
        "$$",
        "",
        '??? question "Folded"',
        "",
        "    ```python",
        "    if True:",
        "        print(1)",
        "    ```",
        "",
        "    <!--pytest-codeblocks:expected-output-->",
        "",
        "    ```text",
        "    1",
        "    ```",
        "",
        "    <!-- figure: a line -->",
        "    <!-- description: it rises -->",
        "",
        "<!--pytest-codeblocks:cont-->",
        "```python",
        "x = 2",
        "```",
    )
    assert text.meta == {"title": "A title: with a colon", "description": "What it is about"}
    assert [(h.line, h.level, h.text, h.id) for h in text.headings] == [(6, 1, "Title", "top")]
    assert [(f.line, f.tex, f.display) for f in text.formulas] == [
        (8, "a_1 + b", False),
        (10, "\\frac{a}{b}", True),
    ]
    assert [(link.line, link.target) for link in text.links] == [(8, "naive.md#one-hot")]
    (unit,) = text.units
    assert [part.code for part in unit.parts] == ["if True:\n    print(1)\n", "x = 2\n"]
    assert unit.expected == "1\n"
    assert unit.parts[0].figure == pages.Figure(27, "    ", "a line", "it rises")
    assert [unit.page_line(line) for line in (1, 2, 3)] == [17, 18, 32]
    assert text.directives == [21, 27, 28, 30]
    assert not said(checks.census(text))


LINES = [
    "```python", "```python ", "    ```python", "````python", "```", "````", "    ```", "```text", "``` python",
    "~~~python", "print(1)", "    indented", "", "text", "---", "<!-- figure: caption -->", "<!--pytest.mark.skip-->",
    "<!--pytest-codeblocks:cont-->", "<!--pytest-codeblocks:expected-output-->",
    "<!--  - pytest-codeblocks:expected-output-ignore-whitespace -->",
]  # fmt: skip


@given(st.lists(st.sampled_from(LINES), max_size=14))
def test_units_are_those_of_pytest_codeblocks(lines: list[str]) -> None:
    text = "\n".join(lines)
    read = pages.parse(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = extract_from_buffer(io.StringIO(text))
    except RuntimeError:
        assert read.faults, "pytest-codeblocks refuses this page, so the reader has something to say"
        return
    assert [(u.code, u.line, u.info, u.expected) for u in read.units] == [
        (b.code, b.lineno, b.syntax, b.expected_output) for b in theirs
    ]


# --- Each check can fail -----------------------------------------------------------------------------------

SILENT = {
    '```python title="a.py"': "title",
    '```python linenums="1"': "linenums",
    "```py": "`py`",
    "```Python": "`Python`",
    "``` python": "` python`",
    "```{.python}": "{.python}",
    "``` { .python .annotate }": ".annotate",
    "```python3": "python3",
    "```pycon": "pycon",
    "```ipython": "ipython",
    "~~~python": "~~~",
    "> ```python": "quotation",
    "- ```python": "list item",
    "1. ```python": "list item",
}


@pytest.mark.parametrize(("opening", "reason"), SILENT.items())
def test_census_sees_a_fence_that_is_skipped(opening: str, reason: str) -> None:
    bad = page("Text.", "", opening, "print(1)", "~~~" if "~" in opening else "```", "")
    try:
        assert not any(item.syntax == "python" for item in extract_from_buffer(io.StringIO(bad.text)))
    except RuntimeError:  # it took the closing line for an opening one
        assert opening[0] in ">-1~"
    assert reason in said(checks.census(bad))
    assert checks.census(bad)[0].line == 3


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        (["Text:", "", "    import posenc"], 3, "indented code"),
        (["Text:", "", "    print(posenc.one_hot_encoding(3))"], 3, "indented code"),
        ([">>> import posenc"], 1, "prompt"),
        (block("import posenc", info=""), 1, "Python in a fence"),
        (block("x = 1", "import posenc", info="text"), 1, "Python in a fence"),
        (block(">>> 1 + 1", "2", info="text"), 1, "Python in a fence"),
        (['--8<-- "code.py"'], 1, "--8<--"),
        (['<pre class="python">print(1)</pre>'], 1, "HTML"),
        ([*block("ls", info="console"), "<!--pytest-codeblocks:cont-->", *block("print(1)")], 5, "lost"),
        ([*block("x = 1"), "<!--pytest-codeblocks:cont-->", *block("1", info="text")], 6, "appends"),
        ([*block("x = 1"), "<!--pytest-codeblocks:cont-->", "Text.", *block("x")], 6, "something else"),
        (["```python", "x = 1", "```python"], 3, "lost"),
        (["```python", "x = 1"], 1, "never closed"),
        (["<!--pytest-codeblocks:skipfile-->", *block("x = 1")], 1, "skipfile"),
        (["<!--pytest.mark.skip-->", *block("x = 1")], 1, "every block of a page is run"),
        (["<!--pytest-codeblocks:importorskip(torch)-->", *block("x = 1")], 1, "importorskip"),
        (["<!--pytest-codeblocks:cont-->", *block("x = 1")], 1, "no block before"),
        ([*block("x"), "Text.", OUTPUT, *block("1", info="text")], 6, "dir"),
        ([*block("x"), OUTPUT, *block("1", info="")], 6, "```text"),
        ([*block("x"), OUTPUT], 5, "followed by no fence"),
        (["<!-- figure: nothing drew it -->"], 1, "directly follows its block"),
        ([*block("x"), "Text.", "", "<!-- figure: too late -->"], 7, "directly follows its block"),
        ([*block("x"), "<!-- figure: a -->", "<!-- figure: b -->"], 6, "second figure"),
        ([*block("x"), "<!-- figure: -->"], 5, "has a caption"),
        ([*block("x"), "<!-- figure: over", "two lines -->"], 5, "one line"),
        (["<!-- description: of what? -->"], 1, "follows its figure"),
    ],
)
def test_census_sees_what_is_not_as_it_seems(lines: list[str], line: int, reason: str) -> None:
    assert reason in said([fault for fault in checks.census(page(*lines)) if fault.line == line])


def test_only_code_has_to_fit_its_box() -> None:
    indented = page('??? question "Why?"', "", *(f"    {line}" for line in block("x" * 84)))
    assert said(checks.wide_code(indented)) == "4: line 4 has 88 columns, at most 84"


def test_continued_blocks_agree() -> None:
    first = page(*block("x = 1"), "<!--pytest-codeblocks:cont-->", *block("print(x)"))
    second = page(*block("x = 1"), *block("print(x)"))
    assert said(checks.same_code(first, second)).startswith("1: this block is continued")


def test_a_missing_twin_is_named(tmp_path: Path) -> None:
    for name in ("en/a.md", "en/b.md", "zh/a.md", "zh/c.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    first, second = checks.same_files(tmp_path / "en", tmp_path / "zh")
    assert first.startswith("en/b.md has no twin in zh")
    assert second.startswith("zh/c.md has no twin in en")


# --- Blocks under pytest -----------------------------------------------------------------------------------


def test_pytest_names_line_and_exception_of_every_bad_block(tmp_path: Path) -> None:
    """On pages that lie somewhere else; the second cannot be read."""
    bad = [
        "---",
        "title: A",
        "---",
        *block("x = 1", "print(1 / 0)"),  # 4
        *block("import warnings", "warnings.warn('old', DeprecationWarning)"),  # 9
        *block("import matplotlib.pyplot as plt", "plt.plot([1])"),  # 14
        *block("import random", "print(random.random() < 0.5, random.random())"),  # 19
        "<!--pytest-codeblocks:expected-output-->",  # 24
        *block("False 0.7579544029403025", info="text"),  # 25
        *block("def f(:"),  # 29
        *block("import matplotlib.pyplot as plt", "assert not plt.get_fignums()", "__name__"),  # 33
        *block("while True:", "    try:", "        pass", "    except Exception:", "        pass"),  # 39
    ]
    torn = [*block("x = 1"), "<!--pytest-codeblocks:cont-->", "```python", "x = 2"]
    for name, lines in (("a.md", bad), ("b.md", torn)):
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    (tmp_path / "conftest.py").write_text("from press.running import execute\nexecute.WALL = 1.5\n")
    options = (
        "-p press.running.pytest_plugin --codeblocks -q -p no:cacheprovider --continue-on-collection-errors"
    )
    done = python("-m", "pytest", *options.split(), cwd=tmp_path)
    text = done.stdout
    for said in (
        "a.md:6: ZeroDivisionError: division by zero",
        "print(1 / 0)",
        "a.md:11: DeprecationWarning: old",
        "a.md:14: the block draws, but no <!-- figure",
        "a.md:25: the block does not print what the page shows",
        "must seed its generators",
        "a.md:30: SyntaxError",
        "TakesTooLong: it has not ended after 1.5 seconds",
        "b.md:6: this fence is never closed",
        "6 failed, 1 passed",
        "1 error",
    ):
        assert said in text
    assert "must seed its generators" not in text.split("a.md:14")[0]
    assert re.search(r"a\.md:4[0-4]: TakesTooLong", text)
    assert done.returncode == 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_front_page_lists_every_chapter_in_reading_order(language: str) -> None:
    front, *nav = pages.contents(ROOT / "docs" / "sites" / language / "mkdocs.yml")
    text = (ROOT / "docs" / language / front).read_text(encoding="utf-8")
    text = text.partition("{#contents}")[2]
    # exercises and the reference have lists of their own
    nav = [name for name in nav if not re.match("(exercises|api)/(?!index)", name)]
    assert list(dict.fromkeys(re.findall(r"\]\(([\w/]+\.md)", text))) == nav


def test_every_chapter_says_what_it_is_good_for() -> None:
    """By which the checks know a chapter, and want its other sections."""
    for page in BOOKS["en"].values():
        chapter = page.path.stem != "index" and page.meta.get("chapter") is not False
        assert not chapter or "goals" in {heading.id for heading in page.headings}, page.path


def test_a_part_says_how_long_its_chapters_take(tmp_path: Path) -> None:
    for name, minutes, core in (("a", 50, "true"), ("b", 35, "false")):
        head = f"title: T\ndescription: About {name}.\nminutes: {minutes}\ncore: {core}"
        (tmp_path / f"{name}.md").write_text(f"---\n{head}\n---\n", encoding="utf-8")
    book = Book("en", tmp_path, parts={"p.md": ["a.md", "b.md"]}, titles={"a.md": "A", "b.md": "B"})
    assert reading_order.with_chapters("<!-- chapters -->", "p.md", book) == (
        "The chapters take about 1.5 hours, those of the core about 1.\n\n"
        "- [A](../../a.md) (about 50 minutes, **core**): About a.\n"
        "- [B](../../b.md) (about 35 minutes): About b."
    )
