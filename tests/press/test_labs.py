"""Labs: executed once for both languages, faults named by file and line, set like a chapter."""

import sys
import threading
import time
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from nbformat import NotebookNode, v4
from press import cache, labs, pages
from press.check import pages as checks
from press.running import dependencies

BOOK = Path(__file__).parents[2] / "docs"
ALL = sorted(path.name for path in (BOOK / "en" / "labs").glob("*.py"))

DRAWING = """\
# ---
# title: Small
# description: A small lab.
# ---

# %% [markdown]
# # Small {#small}
#
# It draws.

# %%
import matplotlib.pyplot as plt
import sys

print(sys.executable)
plt.plot([0, 1], label="α")
plt.xlabel("t");

# %% [markdown]
# Figure: A line from 0 to 1.
# Description: It rises evenly.
#
# What follows.

# %%
"a value"
"""


def lab(tmp_path: Path, text: str) -> labs.Lab:
    path = tmp_path / "small.py"
    path.write_text(text, encoding="utf-8")
    return labs.read(path)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cache.Store:
    monkeypatch.delenv(cache.BUILD, raising=False)
    return cache.Store("labs", root=tmp_path / "cache")


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No kernel, but a list of the code that one would have been started for."""
    started: list[str] = []

    def execute(lab: labs.Lab) -> list[NotebookNode]:
        started.append("\n".join(cell.source for cell in lab.code))
        time.sleep(0.2)
        cells = [v4.new_code_cell(cell.source) for cell in lab.code]
        for cell in cells:
            cell.outputs = [v4.new_output("stream", name="stdout", text=f"ran {cell.source}\n")]
        return cells

    monkeypatch.setattr(labs, "_execute", execute)
    return started


# --- Running ------------------------------------------------------------------------------------------------


def test_a_lab_is_run_by_this_interpreter_and_becomes_a_page(tmp_path: Path, store: cache.Store) -> None:
    small = lab(tmp_path, DRAWING)
    page = labs.to_markdown(small, labs.run(small, store), "en")
    assert page.startswith("---\ntitle: Small\ndescription: A small lab.\n---\n")
    assert "# Small {#small}" in page
    assert f"``` {{ .text .output .no-copy }}\n{sys.executable}\n```" in page
    assert "'a value'" in page
    assert "Figure:" not in page
    figure = BeautifulSoup(page[page.index("<figure") :], "html.parser").figure
    assert figure
    assert figure.figcaption
    assert figure.svg
    assert figure.figcaption.text == "A line from 0 to 1."
    assert "It rises evenly." in figure.svg.text
    assert "#ffffff" not in str(figure)  # it turns with the dark mode
    assert "What follows." in page
    # the same drawing every time: nothing of the run, of the machine or of the day
    again = labs.to_markdown(small, labs.run(small, cache.Store("labs", root=tmp_path / "other")), "en")
    assert again == page


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("def f():\n    return 1 / 0\n\nf()", ":9: ZeroDivisionError: division by zero\n    return 1 / 0"),
        ("import os\nos._exit(1)", ":8: DeadKernelError: Kernel died"),
        ("x = 1\nx = = 2", "9: SyntaxError: invalid syntax\n    x = = 2"),
    ],
)
def test_a_failing_cell_is_named(tmp_path: Path, store: cache.Store, code: str, says: str) -> None:
    wrong = lab(tmp_path, f"# %% [markdown]\n# # T {{#t}}\n\n# %%\nx = 1\n\n# %%\n{code}\n")
    with pytest.raises(labs.LabError) as error:
        labs.run(wrong, store)
    assert "small.py" in str(error.value)
    assert says in str(error.value)
    assert not list(store.folder.glob("*.json"))  # a failure is not kept


def test_only_what_has_changed_is_run(
    tmp_path: Path, store: cache.Store, kernel: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = labs.run(lab(tmp_path, "# %% [markdown]\n# one\n\n# %%\nprint(1)\n"), store)
    second = labs.run(lab(tmp_path, "# %% [markdown]\n# two\n\n# %%\nprint(1)\n"), store)
    assert kernel == ["print(1)"]
    assert first.cells[1] == second.cells[1]
    assert second.cells[1].outputs[0].text == "ran print(1)\n"
    small = lab(tmp_path, "# %%\nprint(2)\n")
    labs.run(small, store)
    assert kernel[1:] == ["print(2)"]
    for state in ("changed", "changed"):  # posenc, or a library
        monkeypatch.setattr(cache, "digest", lambda *more, files=(), state=state: state)
        labs.run(small, store)
    assert kernel[2:] == ["print(2)"]


def test_what_ran_while_posenc_was_edited_is_run_again(
    tmp_path: Path, store: cache.Store, kernel: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    still = iter([False, True])
    monkeypatch.setattr(dependencies.Sources, "current", lambda self: next(still))
    assert labs.run(lab(tmp_path, "# %%\nprint(1)\n"), store).cells[0].outputs
    assert len(kernel) == 2


def test_both_languages_at_the_same_time_run_it_once(
    tmp_path: Path, store: cache.Store, kernel: list[str]
) -> None:
    english = lab(tmp_path, "# %% [markdown]\n# # One {#t}\n\n# %%\nprint(1)\n")
    chinese = lab(tmp_path, "# %% [markdown]\n# # 一 {#t}\n\n# %%\nprint(1)\n")
    builds = [threading.Thread(target=labs.run, args=(book, store)) for book in (english, chinese)]
    for build in builds:
        build.start()
    for build in builds:
        build.join()
    assert len(kernel) == 1


# --- Setting as a page --------------------------------------------------------------------------------------


def executed(lab: labs.Lab, **outputs: list[NotebookNode]) -> NotebookNode:
    """The notebook with `outputs` for the cells whose code is the name."""
    for cell in lab.code:
        cell.outputs = outputs.get(cell.source, [])
    return lab.notebook


def drawing() -> NotebookNode:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M 0 0"/></svg>'
    return v4.new_output("display_data", data={"image/svg+xml": svg, "text/plain": "<Figure>"})


@pytest.mark.parametrize(
    ("after", "language", "says"),
    [
        ("", "en", ":2: this cell draws; the cell after it must begin with its caption, 'Figure: …'"),
        ("# %% [markdown]\n# Text.\n", "en", ":2: this cell draws"),
        ("# %% [markdown]\n# Figure: In English.\n", "zh", ":2: this cell draws; .*'图：…'"),
        ("# %%\nprint(1)\n", "en", ":2: this cell draws"),
        ("# %% [markdown]\n# Figure:  \n# Description: No caption.\n", "en", "caption is empty"),
    ],
)
def test_a_drawing_without_its_caption_is_named(tmp_path: Path, after: str, language: str, says: str) -> None:
    small = lab(tmp_path, f"# %%\ndraw\n\n{after}")
    with pytest.raises(labs.LabError, match=says):
        labs.to_markdown(small, executed(small, draw=[drawing()]), language)


def test_other_faults_are_named(tmp_path: Path) -> None:
    small = lab(tmp_path, "# %% [markdown]\n# # T {#t}\n\n# %%\ncell\n\n# %% [markdown]\n# Figure: A line.\n")
    faults = {
        "this caption follows no drawing": [],
        "draws one figure, this one drew 2": [drawing(), drawing()],
        "writes to stderr: a warning": [v4.new_output("stream", name="stderr", text="a warning\n")],
        "not image/png": [v4.new_output("display_data", data={"image/png": "…"})],
    }
    for says, outputs in faults.items():
        with pytest.raises(labs.LabError, match=rf"small\.py:[58]: .*{says}"):
            labs.to_markdown(small, executed(small, cell=outputs), "en")


def test_a_caption_in_the_language_of_the_page(tmp_path: Path) -> None:
    small = lab(
        tmp_path, "# %%\ndraw\n\n# %% [markdown]\n# 图：一条线。\n# 说明：它缓缓上升。\n#\n# 后文。\n"
    )
    page = labs.to_markdown(small, executed(small, draw=[drawing()]), "zh")
    assert "<figcaption>一条线。</figcaption>" in page
    assert "它缓缓上升。</desc>" in page
    assert page.rstrip().endswith("后文。")


def test_code_with_fences_in_it_stays_whole(tmp_path: Path) -> None:
    small = lab(tmp_path, '# %%\nx = """\n```\n"""\n')
    assert labs.to_markdown(small, executed(small), "en").startswith("```` { .python")


# --- The labs of the book -----------------------------------------------------------------------------------


def test_there_are_labs() -> None:
    assert ALL
    assert sorted(path.name for path in (BOOK / "zh" / "labs").glob("*.py")) == ALL


@pytest.mark.parametrize("name", ALL)
def test_both_languages_have_the_same_cells_headings_and_formulas(name: str) -> None:
    cells = [labs.read(BOOK / language / "labs" / name).notebook.cells for language in ("en", "zh")]
    kinds, code = (
        [[getattr(cell, what) for cell in book if cell.cell_type in of] for book in cells]
        for what, of in (("cell_type", ("code", "markdown")), ("source", ("code",)))
    )
    assert kinds[0] == kinds[1]
    assert code[0] == code[1]
    english, chinese = (
        pages.parse("\n\n".join(cell.source for cell in book if cell.cell_type == "markdown"))
        for book in cells
    )
    assert all(heading.id for heading in english.headings)
    assert [*checks.same_headings(english, chinese), *checks.same_formulas(english, chinese)] == []
