"""What a page is besides HTML: a script of all its code, a Markdown twin, and a notebook, which is run cell by cell."""

import contextlib
import io

import matplotlib.pyplot as plt
import nbformat
import pytest
from press import BookError, exports, notebooks, pages
from press.book import Book
from press.cache import ROOT

PAGE = """---
title: T
description: d
---

# T {#t}

See [below](#code), [the order](order.md#by-hand), [lab](labs/c.md#d), $f(x)$ and `f[0](x)`.

```python
x = 1
```

## In `code` and $x$ {#code}

<!--pytest-codeblocks:cont-->

```python
print(x)
```

<!--pytest-codeblocks:expected-output-->

```text
1
```

```python
from posenc import plot

plot.waveforms()
```

<!-- figure: Waves. -->
<!-- description: They rise. -->
<!-- holds: top(p1.solid) == 1 -->

??? question "Why *so*?"

    Because:

    ```python
    if x:
        print("so")
    ```

    <!--pytest-codeblocks:expected-output-->

    ```text
    so
    ```

    And not otherwise.
"""
BOOK = Book("en", url="https://x.org/en/")


KINDS = ["markdown", "code", "markdown", "code", "code", "markdown", "code", "markdown"]


def cells(text: str, name: str, book: Book) -> list[nbformat.NotebookNode]:
    read = nbformat.reads(notebooks.notebook(text, name, book), as_version=4)
    nbformat.validate(read)
    return list(read.cells)


def shown(cell: nbformat.NotebookNode) -> str:
    """What a cell prints, as the notebook has it."""
    return "".join(output.text for output in cell.get("outputs", []))


def test_cells_are_text_and_blocks_with_what_they_print() -> None:
    found = cells(PAGE, "t.md", BOOK)
    assert [cell.cell_type for cell in found] == KINDS
    assert [shown(cell) for cell in found] == ["", "", "", "1\n", "", "", "so\n", ""]
    first, *rest = (cell.source for cell in found)
    assert first.startswith("# T\n\n*From the book: [this page](https://x.org/en/t.html).")
    assert '\npip install "posenc[plot]POSENC-SOURCE"\n' in first
    links = "[below](https://x.org/en/t.html#code), [the order](https://x.org/en/order.html#by-hand)"
    links += ", [lab](https://x.org/en/labs/c.html#d)"
    assert first.endswith(f"\n\nSee {links}, $f(x)$ and `f[0](x)`.")
    assert rest == [
        "x = 1",
        "## In `code` and $x$",
        "print(x)",
        "from posenc import plot\n\nplot.waveforms()",
        "*Figure: Waves.*\n\n**Why *so*?**\n\nBecause:",
        'if x:\n    print("so")',
        "And not otherwise.",
    ]


def wrong(found: list[nbformat.NotebookNode]) -> list[str]:
    """The cells that print something else than they show, run one after the other in one namespace."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    faults = []
    for cell in found:
        if cell.cell_type == "code":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(cell.source, cell.id, "exec"), namespace)
            plt.close("all")  # as Jupyter does when it has shown them
            faults += [f"{cell.id}: {out.getvalue()!r}"] * (out.getvalue() != shown(cell))
    return faults


@pytest.mark.parametrize("name", ["naive", pytest.param("rotary", marks=pytest.mark.slow)])
def test_a_chapter_runs_as_a_notebook(name: str) -> None:
    page = ROOT / "docs" / "zh" / f"{name}.md"
    found = cells(page.read_text(encoding="utf-8"), page.name, Book("zh", page.parent))
    assert wrong(found) == []
    last = [cell for cell in found if shown(cell)][-1]
    last.outputs[0].text = "another\n"
    assert [fault.partition(":")[0] for fault in wrong(found)] == [last.id]


def test_a_script_has_a_cell_for_each_block_and_shows_its_drawings() -> None:
    page = pages.parse(PAGE)
    code = exports.script(page, "en")
    head, _, rest = code.partition("# ///\n")
    assert head.endswith('dependencies = ["posenc[plot]POSENC-SOURCE"]\n')
    assert rest.startswith('"""All code of the chapter “T”, block by block.')
    assert "# %% T\nx = 1\n\nprint(x)\n" in code
    assert "# %% In code and x\nfrom posenc import plot\n" in code
    drawn = 'import matplotlib.pyplot as plt\n\nplt.show()\nplt.close("all")\n'
    assert code.endswith(f'{drawn}\n# %% In code and x\nif x:\n    print("so")\n')
    assert exports.script(pages.parse("# T {#t}\n\nText.\n"), "en") == ""
    with pytest.raises(BookError, match="make no script: invalid syntax"):
        exports.script(pages.parse("```python\nx = = 1\n```\n"), "en")


def test_a_markdown_twin_says_what_its_page_says() -> None:
    twin = exports.markdown(pages.parse(PAGE), "zh")
    assert twin.startswith('---\ntitle: "T"\ndescription: "d"\n---\n\n# T {#t}\n')
    assert "<!--" not in twin
    assert "\n*图：Waves.* They rise.\n" in twin
    assert "[the order](order.md#by-hand), [lab](labs/c.md#d)" in twin
    assert "\n\n\n" not in twin
