"""What the blocks of the built pages do in a browser, block by block as a reader would have it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from book.runtime import MISSING
from browsing import Browser, served
from bs4 import BeautifulSoup, Tag

# Runs jobs one after the other in one worker; gives what the worker says of each.
RUN = """async ([worker, jobs]) => {
  const python = new Worker(worker, { type: "module" });
  const said = [];
  for (const [id, job] of jobs.entries()) {
    const answer = { output: "", figures: 0 };
    await new Promise((done) => {
      python.onerror = (event) => done((answer.error = event.message || "no worker"));
      python.onmessage = ({ data }) => {
        if (data.type === "output") answer.output += data.text;
        if (data.type === "figure") answer.figures += 1;
        if (data.type === "error") answer.error = `${data.text}, line ${data.line} of ${data.name}`;
        if (data.type === "done" || data.type === "error") done((answer.ms = data.ms));
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
    shown: str  # the output below it
    figures: int  # the drawings below it
    output: str = ""
    drawn: int = 0
    error: str = ""

    @property
    def fault(self) -> str:
        """Where the browser does not give what the page shows, "" where it does."""
        if self.need in MISSING:
            lacks = self.error.startswith("ModuleNotFoundError") or self.need in self.error
            return "" if lacks else f"it is said to need {self.need} and does not"
        if self.error:
            return self.error
        if self.output.rstrip() != self.shown.rstrip():
            return f"it printed\\n{self.output}\\nand the page shows\\n{self.shown}"
        return f"it drew {self.drawn} figures, not {self.figures}" if self.drawn != self.figures else ""


def blocks(site: Path) -> list[Block]:
    """All blocks of Python of all pages."""
    found = []
    for path in sorted(site.glob("??/**/*.html")):
        html = path.read_text(encoding="utf-8")
        if "data-block=" not in html:
            continue
        codes: dict[str, list[dict[str, str]]] = {}
        for block in BeautifulSoup(html, "html.parser").select("[data-block]"):
            number = str(block["data-block"])
            own = {"code": block.get_text(), "name": number}
            codes[number] = [*codes.get(str(block.get("data-after")), []), own]
            need = str(block.get("data-run") or block["data-needs"])
            found.append(
                Block(path.relative_to(site).as_posix(), number, need, codes[number], *_below(block))
            )
    return found


def _below(block: Tag) -> tuple[str, int]:
    """The output that follows a block, and how many drawings."""
    shown, figures = "", 0
    for follower in block.find_next_siblings():
        if "output" in follower.get("class", []):
            shown += follower.get_text()
        elif follower.name == "figure":
            figures += 1
        else:
            break
    return shown, figures


def run(browser: Browser, site: Path, wanted: list[Block]) -> None:
    """Runs blocks in a page of the site."""
    with served(site) as address:
        page = browser.new_page()
        page.goto(f"{address}en/index.html")
        jobs = [{"blocks": each.blocks, "needs": ["numpy", "matplotlib"], "lang": "en"} for each in wanted]
        said: list[dict[str, Any]] = page.evaluate(RUN, [f"{address}en/run/worker.js", jobs])
        page.close()
    for block, answer in zip(wanted, said, strict=True):
        block.output, block.drawn, block.error = answer["output"], answer["figures"], answer.get("error", "")
