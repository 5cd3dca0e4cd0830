"""Pages that need not be built again: each is kept under all that it depends on."""

import shutil
from pathlib import Path

import pytest
from press import cache, pages
from press.book import Book, Prepared
from press.kept_pages import Kept, KeptPages
from press.running import dependencies
from press.runtime import pyodide

A_PAGE = Kept("<h1>A</h1>", {}, {}, [], {}, "")


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a book of two pages, with machinery, a theme and a posenc of a file each."""
    monkeypatch.setenv("POSENC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "PRESS", tmp_path / "docs" / "press")
    package = tmp_path / "posenc"
    monkeypatch.setattr(dependencies, "sources", lambda: dependencies.Sources(package))
    monkeypatch.setattr(pyodide, "there", lambda: True)
    monkeypatch.setattr(pyodide, "config", dict)
    files = {"docs/press/hook.py": "1", "docs/theme/main.html": "1", "mkdocs.yml": "1"}
    files |= {"posenc/__init__.py": "from posenc.one import f", "posenc/one.py": "def f(): return 1"}
    for language in ("en", "zh"):
        files |= {f"docs/{language}/{name}.md": f"---\ntitle: {name}\n---\n# {name}\n" for name in "ab"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path / "docs" / "en"


def found(folder: Path, results: list[str], pending: int = 0) -> tuple[KeptPages, list[str]]:
    """The pages that are kept and those that are not, where the blocks of `a` did this."""
    book = Book("en", folder, serving=True)
    book.prepared["a.md"] = Prepared(pages.read(folder / "a.md"), results=results, pending=pending)
    book.prepared["a.md"].asked = {"posenc", "posenc.one"}
    kept = KeptPages(book, ["a.md", "b.md"], [folder.parents[1] / "mkdocs.yml"])
    return kept, kept.find_by_results(kept.find(["a.md"]))


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("docs/en/a.md", "# a", "# A"),
        ("docs/en/b.md", "title: b", "title: B"),  # by which other pages name it
        ("docs/zh/a.md", "", None),  # the twin, to which the page leads
        ("docs/theme/main.html", "1", "2"),
        ("docs/press/hook.py", "1", "2"),
        ("mkdocs.yml", "1", "2"),
        ("posenc/one.py", "def", "import scipy\ndef"),  # what a block needs in the page
        ("a library", "", ""),
        ("what blocks do", "", ""),
    ],
)
def test_a_page_is_built_again_where_something_that_it_depends_on_has_changed(
    book: Path, monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str | None
) -> None:
    kept, missing = found(book, ["1"])
    assert missing == ["a.md"]
    kept.keep("a.md", A_PAGE)
    assert found(book, ["1"])[1] == []
    path = book.parents[1] / file
    results = ["1"]
    if file == "a library":
        monkeypatch.setattr(cache, "digest", lambda: "another version")
    elif file == "what blocks do":
        (book.parents[1] / "posenc" / "one.py").write_text("def f(): return 2")
        results = ["2"]
    elif new is None:
        path.unlink()
    else:
        path.write_text(path.read_text().replace(old, new))
    assert found(book, results)[1] == ["a.md"]


def test_what_is_edited_while_pages_get_their_names_leaves_none_behind(
    book: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, sources = book / "a.md", KeptPages._sources
    found(book, ["1"])[0].keep("a.md", A_PAGE)
    cache.Store("pages-named").clear()
    text = page.read_text()

    def edited(kept: KeptPages, name: str) -> list[str]:
        page.write_text(f"{text}More.\n")
        return sources(kept, name)

    with monkeypatch.context() as patch:
        patch.setattr(KeptPages, "_sources", edited)
        assert found(book, ["1"])[1] == ["a.md"]
    page.write_text(text)
    assert found(book, ["1"])[1] == []


def test_an_edit_of_posenc_that_changes_no_result_builds_nothing(book: Path) -> None:
    found(book, ["1"])[0].keep("a.md", A_PAGE)
    (book.parents[1] / "posenc" / "one.py").write_text("def f(): return 1  # one")
    assert found(book, ["1"])[1] == []


def test_an_edit_of_what_no_block_of_a_page_asks_for_leaves_it(book: Path) -> None:
    package = book.parents[1] / "posenc"
    (package / "two.py").write_text("def g(): return 1")
    found(book, ["1"])[0].keep("a.md", A_PAGE)
    (package / "two.py").write_text("def g(): return 2")
    assert found(book, ["2"])[1] == []  # its blocks are not even looked at
    (package / "three.py").touch()  # a name may lead elsewhere now
    assert found(book, ["2"])[1] == ["a.md"]


def test_a_page_whose_blocks_wait_is_the_last_one_of_its_source(book: Path) -> None:
    found(book, ["1"])[0].keep("a.md", A_PAGE)
    (book.parents[1] / "posenc" / "one.py").write_text("def f(): return 2")
    waiting, missing = found(book, ["pending"], 1)
    assert missing == []
    assert "have not run yet: 1" in waiting.pages["a.md"].html
    assert found(book, ["1"])[0].pages["a.md"] == A_PAGE
    shutil.copy(book / "b.md", book / "a.md")
    assert found(book, ["pending"], 1)[1] == ["a.md"]
