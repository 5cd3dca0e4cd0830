"""What goes with each page: scripts, Markdown twins, its place in the book, previews, contents for models."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import exportcheck
import pytest
import sitecheck
from book import BookError, exports
from book import page as pages
from check import pages as checks
from exportcheck import Place, places
from sitebuild import ROOT


@pytest.mark.parametrize("check", exportcheck.PAGES, ids=lambda check: check.__name__)
def test_every_page(site: Path, check: Callable[[Place], list[str]]) -> None:
    found = {f"{place.book}/{place.name}": check(place) for place in places(site)}
    assert {name: faults for name, faults in found.items() if faults} == {}


@pytest.mark.parametrize("check", exportcheck.SITE, ids=lambda check: check.__name__)
def test_the_site(site: Path, check: Callable[[Path], list[str]]) -> None:
    assert check(site) == []


def test_what_is_checked_is_there(site: Path) -> None:
    kinds = [(place.chapter, place.lab) for place in places(site)]
    assert kinds.count((True, False)) >= 22
    assert kinds.count((False, True)) >= 6


# --- Scripts run --------------------------------------------------------------------------------------------

# One interpreter for all: most of a short script's time is the import of torch.
RUN = """
import json, runpy, sys, warnings
faults = {}
warnings.simplefilter("error")
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")  # plt.show() without a screen
for file in sys.argv[1:]:
    try:
        runpy.run_path(file, run_name="__main__")
    except Exception as error:
        faults[file] = f"{type(error).__name__}: {error}"
print("\\n" + json.dumps(faults))
"""


def run(files: list[Path], folder: Path) -> dict[str, str]:
    """What goes wrong in scripts that are run one after the other, by file."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *map(str, files)],
        cwd=folder,
        env=os.environ | {"MPLBACKEND": "agg", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    faults: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return faults


def test_the_script_of_every_chapter_runs(site: Path, tmp_path: Path) -> None:
    """The English ones; the Chinese ones hold the same code but for its strings."""
    chapters = [place for place in places(site) if place.chapter]
    english, chinese = ([place for place in chapters if place.book == book] for book in sitecheck.BOOKS)
    assert len(english) == len(chinese) >= 11
    for one, other in zip(english, chinese, strict=True):
        assert checks.same_code(pages.read(one.source), pages.read(other.source)) == []
    files = [place.file(".py") for place in english]
    assert run(files, tmp_path) == {}


def test_a_script_that_fails_is_noticed(tmp_path: Path) -> None:
    codes = (
        "x = 1",
        "x = 1 / 0",
        "import warnings; warnings.warn('no')",
        "import matplotlib.pyplot as p; p.show()",
    )
    files = [tmp_path / f"{number}.py" for number in range(len(codes))]
    for file, code in zip(files, codes, strict=True):
        file.write_text(code)
    faults = run(files, tmp_path)
    assert faults == {
        str(files[1]): "ZeroDivisionError: division by zero",
        str(files[2]): "UserWarning: no",
    }


# --- What the hook makes of a page --------------------------------------------------------------------------

PAGE = """---
title: T
description: d
---

# T {#t}

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

[a](b.md) [lab](labs/c.py#d)
"""


def test_a_script_has_a_cell_for_each_block_and_shows_its_drawings() -> None:
    page = pages.parse(PAGE)
    code = exports.script(page, "en")
    assert code.startswith('"""All code of the chapter “T”, block by block.')
    assert "# %% T\nx = 1\n\nprint(x)\n" in code
    assert "# %% In code and x\nfrom posenc import plot\n" in code
    assert code.endswith('import matplotlib.pyplot as plt\n\nplt.show()\nplt.close("all")\n')
    assert exports.script(pages.parse("# T {#t}\n\nText.\n"), "en") == ""
    with pytest.raises(BookError, match="make no script: invalid syntax"):
        exports.script(pages.parse("```python\nx = = 1\n```\n"), "en")


def test_a_markdown_twin_says_what_its_page_says() -> None:
    twin = exports.markdown(pages.parse(PAGE), "zh")
    assert twin.startswith('---\ntitle: "T"\ndescription: "d"\n---\n\n# T {#t}\n')
    assert "<!--" not in twin
    assert "\n*图：Waves.* They rise.\n" in twin
    assert "[a](b.md) [lab](labs/c.md#d)" in twin
    assert "\n\n\n" not in twin


# --- Each check can fail ------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def copy(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the site to break something in."""
    folder = tmp_path_factory.mktemp("copy") / "site"
    return Path(shutil.copytree(site, folder, ignore=shutil.ignore_patterns("assets", "search")))


@pytest.fixture
def broken(copy: Path) -> Iterator[Callable[[str, str, str], None]]:
    """Changes a file of the copy until the test is over; with "" for what is replaced the file goes."""
    kept: list[tuple[Path, bytes]] = []

    def change(name: str, old: str, new: str) -> None:
        file = copy / name
        kept.append((file, file.read_bytes()))
        if not old:
            file.unlink()
            return
        text = file.read_text(encoding="utf-8")
        assert old in text, f"nothing to break in {name}"
        file.write_text(text.replace(old, new), encoding="utf-8")

    yield change
    for file, content in kept:
        file.write_bytes(content)


@pytest.mark.parametrize(
    ("check", "name", "old", "new", "says"),
    [
        (exportcheck.script, "en/order.py", "", "", "no order.py"),
        (exportcheck.script, "en/order.py", "import numpy", "import = numpy", "invalid syntax"),
        (exportcheck.script, "en/order.py", "same_bag(first", "same_bag(second", "is not in the script"),
        (exportcheck.script, "en/order.html", 'href="order.py"', 'href="other.py"', "no link to order.py"),
        (exportcheck.markdown, "en/order.md", "", "", "no order.md"),
        (exportcheck.markdown, "en/order.md", 'title: "Why', 'title: "How', "another title"),
        (exportcheck.markdown, "en/order.md", "{#by-hand}", "{#by-foot}", "other headings"),
        (exportcheck.markdown, "en/order.md", "same_bag(first", "same_bag(second", "without the code"),
        (exportcheck.markdown, "en/order.md", r"\mathrm{softmax}", "softmax", "without the formula"),
        (
            exportcheck.markdown,
            "en/order.md",
            "The words are the same",
            "The words differ",
            "without the text",
        ),
        (exportcheck.markdown, "en/order.md", "two orders of", "all orders of", "without the caption"),
        (exportcheck.markdown, "en/order.md", "*Figure: ", "\n<!-- figure: ", "left over: <!--"),
        (exportcheck.markdown, "en/order.md", "](naive.md", "](native.md", "native.md is no twin"),
        (exportcheck.markdown, "en/order.md", "](naive.md", "](naive.html", "naive.html is no twin"),
        (exportcheck.markdown, "en/order.md", "](naive.md", "](naive.md#gone", "has no such heading"),
        (
            exportcheck.way,
            "en/order.html",
            'href="naive.html" class="md-footer',
            'class="md-footer',
            "next: ",
        ),
        (exportcheck.way, "en/order.html", 'value="2"', 'value="3"', "number ('3'"),
        (exportcheck.way, "en/order.html", 'class="book-more"', "", "more: []"),
        (
            exportcheck.way,
            "en/masks.html",
            'href="labs/masks.html">',
            'href="labs/rotation.html">',
            "more: ['labs/rot",
        ),
        (exportcheck.way, "en/rotary.html", 'class="book-way"', "", "read first: []"),
        (exportcheck.preview, "en/order.html", 'property="og:title"', "", "og:title: None"),
        (exportcheck.preview, "en/order.html", 'content="en_GB"', 'content="zh_CN"', "og:locale: zh_CN"),
        (exportcheck.preview, "en/order.html", 'en/order.html"', 'en/index.html"', "og:url: "),
        (exportcheck.preview, "en/order.html", "<title>Why", "<title>How", "title: How"),
        (exportcheck.preview, "en/order.html", 'name="description"', 'name="about"', "description: None"),
    ],
)
def test_a_bad_page_is_found(
    copy: Path,
    broken: Callable[[str, str, str], None],
    check: Callable[[Place], list[str]],
    name: str,
    old: str,
    new: str,
    says: str,
) -> None:
    place = Place(copy, "en", name.removeprefix("en/").rpartition(".")[0])
    assert check(place) == []
    broken(name, old, new)
    assert says in "\n".join(check(place))


@pytest.mark.parametrize(
    ("check", "name", "old", "new", "says"),
    [
        (exportcheck.for_models, "en/llms.txt", "en/order.md", "en/ordre.md", "no en/order.md"),
        (
            exportcheck.for_models,
            "llms.txt",
            "zh/labs/masks.md",
            "zh/labs/mask.md",
            "zh/labs/mask.md is not there",
        ),
        (exportcheck.for_models, "zh/llms.txt", "> ", "", "no title and summary"),
        (exportcheck.not_found, "zh/404.html", "没有这一页", "No such page", "zh/404.html: No such page"),
        (exportcheck.not_found, "en/404.html", "/en/index.html", "/en/order.html", "no front page of en"),
        (exportcheck.not_found, "404.html", "没有这一页", "", "/404.html: 没有这一页"),
    ],
)
def test_a_bad_site_is_found(
    copy: Path,
    broken: Callable[[str, str, str], None],
    check: Callable[[Path], list[str]],
    name: str,
    old: str,
    new: str,
    says: str,
) -> None:
    broken(name, old, new)
    assert says in "\n".join(check(copy))


def test_two_pages_with_one_description_are_found(
    copy: Path, broken: Callable[[str, str, str], None]
) -> None:
    one, other = (
        exportcheck.soup(copy / "en" / name).select_one("meta[name=description]")
        for name in ("order.html", "naive.html")
    )
    assert one
    assert other
    broken("en/naive.html", f'content="{other["content"]}"', f'content="{one["content"]}"')
    assert exportcheck.descriptions(copy) == ["en/naive and en/order"]
