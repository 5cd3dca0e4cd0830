"""The blocks of the built pages in a browser, each with those that it continues: it gives what its page shows."""

import ast
import functools
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lxml.html
import pytest
from lxml.html import HtmlElement
from press.runtime.pyodide import MISSING

from tests.browser.browsing import BELOW, Browser, Visit, served, watch
from tests.site.sitecheck import BOOKS

pytestmark = pytest.mark.usefixtures("runtime")
MANY = 200  # blocks of a book, at least, that a browser runs

# Runs jobs one after the other in one worker, and gives what it says of each; an error ends what depends on it.
RUN = """async ([worker, jobs]) => {
  const python = new Worker(worker, { type: "module" });
  const said = [];
  for (const [id, job] of jobs.entries()) {
    const answer = { output: "", figures: 0, error: "" };
    await new Promise((done) => {
      const failed = (text) => done((answer.error = text));
      python.onerror = (event) => failed(event.message || "no worker");
      python.onmessage = ({ data }) => {
        if (data.type === "output") answer.output += data.text;
        if (data.type === "figure" && (!job.draw || data.svg.includes("<path"))) answer.figures += 1;
        const { text, line, name, fatal } = data;
        if (data.type === "error") failed(`${text}, ${fatal ? "fatal" : `line ${line} of ${name}`}`);
        if (data.type === "done") done();
      };
      python.postMessage({ type: "run", id, ...job });
    });
    said.push(answer);
  }
  python.terminate();
  return said;
}"""


@dataclass
class Block:
    """A block of a built page: what it is to do, and what it did in the browser."""

    page: str
    number: str
    need: str
    blocks: list[dict[str, str]]  # those that it continues, and itself
    shown: str = ""  # the output below it
    figures: int = 0  # the drawings below it
    draws: bool = True  # or its figures are only counted
    tabled: bool = False  # what is shown is the text of a table, without blanks
    output: str = ""
    drawn: int = 0
    error: str = ""

    @property
    def job(self) -> dict[str, Any]:
        """What the worker is told."""
        return {
            "blocks": self.blocks,
            "needs": self.need.split(),
            "lang": "en",
        }

    @property
    def does(self) -> str:
        """What it does, whatever its comments say: much of it is in both books."""
        return f"{self.need}{self.draws}" + "".join(ast.dump(ast.parse(each["code"])) for each in self.blocks)

    @property
    def fault(self) -> str:
        """Where the browser does not give what the page shows, "" where it does."""
        if self.need in MISSING:
            return "" if self.need in self.error.lower() else f"it is said to need {self.need}: {self.error}"
        if self.error:
            return self.error
        printed = _cells(self.output) if self.tabled else self.output.rstrip()
        if printed != self.shown.rstrip():
            return f"it printed\n{self.output}\nand the page shows\n{self.shown}"
        return f"it drew {self.drawn} figures, not {self.figures}" if self.drawn != self.figures else ""

    def __str__(self) -> str:
        return f"{self.page}, block {self.number}: {self.fault}"


# What must be found, and how it is said.
PLANTED = {
    "it printed\n4": Block("p", "2", "numpy",
        [{"code": "x = 3", "name": "1"}, {"code": "print(x + 1)", "name": "2"}], "5"),
    "it printed\n| a | b |": Block("p", "1", "numpy",
        [{"code": "print('| a | b |\\n| --- | --- |\\n| 1 | 2 |')", "name": "1"}], "ab13", tabled=True),
    "ZeroDivisionError: division by zero, line 1 of 1": Block("p", "1", "numpy", [{"code": "1 / 0", "name": "1"}]),
    "it is said to need torch: ": Block("p", "1", "torch", [{"code": "import posenc", "name": "1"}]),
    "it drew 0 figures, not 1": Block("p", "1", "matplotlib", [{"code": "x = 1", "name": "1"}], "", 1, False),
}  # fmt: skip


def once(site: Path) -> list[Block]:
    """Of each page one language, by turns, and all that is drawn: `press check` holds twins to one code."""
    pages = sorted({block.page[3:] for block in blocks(site)})
    turn = {f"{BOOKS[n % 2]}/{page}" for n, page in enumerate(pages)}
    return [block for block in blocks(site) if block.draws or block.page in turn]


@functools.cache
def blocks(site: Path) -> list[Block]:
    """All blocks of Python of all pages."""
    found: list[Block] = []
    for path in sorted(site.glob("??/**/*.html")):
        html = path.read_text(encoding="utf-8").partition("<article")[2].rpartition("</article>")[0]
        if "data-block=" not in html:
            continue
        codes: dict[str, list[dict[str, str]]] = {}
        for block in lxml.html.fromstring(f"<article{html}</article>").xpath("//*[@data-block]"):
            number = str(block.get("data-block"))
            own = {"code": block.text_content(), "name": number}
            codes[number] = [*codes.get(str(block.get("data-after")), []), own]
            need = str(block.get("data-run") or block.get("data-needs"))
            page = path.relative_to(site).as_posix()
            shown, figures, table = _below(block)
            # drawing takes a browser half a second: the first figure of each page in Chinese, whose words are wide
            first = page.startswith("zh") and not any(each.page == page and each.figures for each in found)
            found.append(
                Block(page, number, need, codes[number], shown, figures, bool(figures) and first, table)
            )
    return found


def _cells(printed: str) -> str:
    """What a table of Markdown says, without its links and blanks."""
    rows = [row.strip("| ").replace(" | ", "") for row in printed.splitlines() if not row.startswith("| ---")]
    text = re.sub(r"\{#[\w-]+\}|\[([^]]+)\]\([^)]*\)", r"\1", "".join(rows))
    return "".join(text.replace("`", "").split())


def _below(block: HtmlElement) -> tuple[str, int, bool]:
    """The output that follows a block, how many drawings, and whether the output is a table."""
    shown, figures = "", 0
    for follower in block.itersiblings("*"):
        if "output" in follower.classes:
            shown += follower.text_content()
        elif "table" in follower.classes:
            cells = "".join(each.text_content() for each in follower.iter("table"))
            return "".join(cells.split()), figures, True
        elif follower.tag == "figure" or "live" in follower.classes:
            figures += 1
        else:
            break
    return shown, figures, False


def run(browser: Browser, site: Path, wanted: list[Block], gone: str = "") -> Visit:
    """Runs blocks in a page of the site, what is in both books once; gives what the page fetched for it."""
    once = {block.does: block for block in wanted}
    with served(site, BELOW) as address:
        visit, page = Visit(address), browser.new_page()
        watch(page, visit)
        if gone:
            page.route(gone, lambda route: route.fulfill(status=404))
        page.goto(f"{address}en/notation.html")
        said = page.evaluate(RUN, [f"{address}en/runtime/worker.js", [block.job for block in once.values()]])
        page.close()
    answers = dict(zip(once, said, strict=True))
    for block in wanted:
        answer = answers[block.does]
        block.output, block.drawn, block.error = (answer[key] for key in ("output", "figures", "error"))
    return visit


@pytest.fixture(
    scope="module", params=[30, pytest.param(1, marks=pytest.mark.slow)], ids=["a thirtieth", "all"]
)
def ran(request: pytest.FixtureRequest, browser: Browser, site: Path) -> tuple[list[Block], Visit]:
    """Blocks of each page, and some that are bad, as they ran; and what was fetched for them."""
    wanted = [*once(site)[:: request.param], *PLANTED.values()]
    return wanted, run(browser, site, wanted)


def test_every_block_gives_in_the_browser_what_its_page_shows(ran: tuple[list[Block], Visit]) -> None:
    assert [str(block) for block in ran[0] if block.page != "p" and block.fault] == []
    planted = [block.fault for block in ran[0] if block.page == "p"]
    assert [fault[: len(said)] for fault, said in zip(planted, PLANTED, strict=True)] == list(PLANTED)
    assert ran[1].elsewhere == ran[1].failed == []


def test_most_blocks_are_run(site: Path) -> None:
    kinds = Counter((block.page[:2], block.need) for block in blocks(site))
    for book in ("en", "zh"):
        assert kinds[book, "numpy"] + kinds[book, "matplotlib"] > MANY
        assert kinds[book, "numpy"] == kinds["en", "numpy"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "says"),
    [("numpy*.whl", "404"), ("python_stdlib.zip", "404"), ("files.json", "404"), ("pyodide.mjs", "fetch")],
)
def test_a_file_that_is_missing_is_said(browser: Browser, site: Path, pattern: str, says: str) -> None:
    block = Block("p", "1", "numpy", [{"code": "1", "name": "1"}], "", 0)
    run(browser, site, [block], gone=f"**/py/{pattern}")
    assert says in block.error, block.error
    assert block.error.endswith(", fatal")
