"""The one reader of a page: what the build runs, what the tests check, what a person can list.

    page = read(Path("docs/en/order.md"))
    page.meta["title"], page.headings, page.formulas, page.links, page.units, page.faults
    contents(Path("docs/sites/en/mkdocs.yml"))       # the pages of a book in the order in which they are read

A unit is what pytest-codeblocks calls a block: a fence together with the fences that continue it. The rules
are those of pytest-codeblocks 0.18, to the letter (a test holds the two together): a line whose first
characters are three or more backticks opens a fence, however far it is indented, the next line that begins
with as many closes it; only a fence whose info string is exactly `python` is run; `cont` appends the next
fence, whatever it is, to the last one; `expected-output` makes the next fence the output of the last one.

Lines count from 1 in the file, front matter included.
"""

import copy
import functools
import io
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from press import labs

MAX_LINES = 10_000  # pytest-codeblocks gives up on longer files

# ideographs, and the punctuation that goes with them
CHINESE = re.compile(r"[\u3001-\u303f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff65]")

_DIRECTIVE = re.compile(r"<!--[-\s]*pytest-codeblocks:(.*)-->")
_MARK = re.compile(r"<!--[-\s]*(pytest\.mark\..*)-->")
COMMENT = re.compile(r"<!--\s*(figure|description|table):\s*(.*?)\s*-->$")
_COMMENT_START = re.compile(r"<!--\s*(figure|description|table|live|holds)\b")
_OF_FIGURE = re.compile(r"<!-- (?:(holds): (\S.*)|(live): ([a-z0-9-]+(?: [a-z][a-zA-Z]*=[\w.,-]+)*)) -->")
_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*\n", re.DOTALL)
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*(?:(?<=\s)\{([^{}]*)\})?\s*#*\s*$")
_SETEXT = re.compile(r" {0,3}(=+|-+)\s*$")
INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_HTML_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
FORMULA = re.compile(
    r"(?<![\\$])\$\$(?P<display>(?:[^$\\]|\\.)+?)\$\$"
    r"|(?<![\\$])\$(?![\s$])(?P<inline>(?:[^$\\\n]|\\.|\n(?!\s*\n))+?)(?<!\s)\$(?!\$)",
    re.DOTALL,
)
_LINK = re.compile(
    r"!?\[(?:[^\[\]]++|\[[^\[\]]*\])*+\]\(\s*<?([^\s()<>]+(?:\([^\s()]*\))?)>?(?:\s+[\"'][^)]*)?\s*\)"
)
_REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)", re.MULTILINE)
_ATTRIBUTE = re.compile(r"\b(?:href|src)=[\"']([^\"']+)[\"']")


@dataclass(frozen=True)
class Fault:
    """What is wrong, and the line where it is."""

    line: int
    message: str


@dataclass(frozen=True)
class Fence:
    """A fenced block, as pytest-codeblocks sees it; `end` is the line that closes it."""

    line: int
    end: int
    indent: int
    ticks: int
    info: str
    code: str


@dataclass(frozen=True)
class Figure:
    """A figure comment: where the drawing goes, its caption and the longer text for screen readers.

    What its words claim of the curves is said once more in `<!-- holds: peak(solid) == 122 -->` (claims.py).
    And what the drawing gives way to where it can be moved by hand: the name of a module in theme/live and
    its values, as in `<!-- live: shift-rotation k=3 -->`.
    """

    line: int
    indent: str
    caption: str
    description: str = ""
    holds: str = ""
    live: str = ""
    values: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Table:
    """A table comment: the output above it is a table in Markdown, and is shown as one."""

    line: int
    caption: str


@dataclass
class Part:
    """One fence of a unit, with the figure comment that follows it."""

    fence: Fence
    figure: Figure | None = None

    @property
    def code(self) -> str:
        return self.fence.code


@dataclass
class Unit:
    """What is executed in one namespace: a fence and those that continue it."""

    parts: list[Part]
    expected: str | None = None
    expected_fence: Fence | None = None
    expected_after: int = 0  # index of the part that the expected output follows
    table: Table | None = None

    @property
    def line(self) -> int:
        return self.parts[0].fence.line

    @property
    def info(self) -> str:
        return self.parts[0].fence.info

    @property
    def code(self) -> str:
        return "".join(part.code for part in self.parts)

    def page_line(self, line: int) -> int:
        """The line in the file of line `line` (from 1) of the unit's code."""
        for part in self.parts:
            length = part.code.count("\n")
            if line <= length:
                return part.fence.line + line
            line -= length
        return self.parts[-1].fence.end - 1


@dataclass(frozen=True)
class Heading:
    line: int
    level: int
    text: str
    id: str


@dataclass(frozen=True)
class Formula:
    line: int
    tex: str
    display: bool


@dataclass(frozen=True)
class Link:
    line: int
    target: str


@dataclass(eq=False)  # one is itself alone: what is made of it can be kept under it
class Page:
    path: Path
    text: str
    meta: dict[str, Any] = field(default_factory=dict)
    headings: list[Heading] = field(default_factory=list)
    fences: list[Fence] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    formulas: list[Formula] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    directives: list[int] = field(default_factory=list)  # lines with a comment that is not for the reader
    prose: str = ""  # the text with front matter, fences, comments and inline code blanked out, line for line

    @property
    def is_lab(self) -> bool:
        return self.path.suffix == ".py"

    @property
    def is_draft(self) -> bool:
        """Written in one language only, so far: `draft: true`."""
        return bool(self.meta.get("draft"))

    @property
    def behind(self) -> str:
        """The release with which the page may still be behind its twin: `behind: 0.2.0`."""
        return str(self.meta.get("behind") or "")

    def below(self, heading: Heading, whole: bool = False) -> str:
        """The text between a heading and the next one; `whole`: with the sections that are in its own."""
        after = self.headings[self.headings.index(heading) + 1 :]
        end = next((each.line - 1 for each in after if not whole or each.level <= heading.level), None)
        return "\n".join(self.text.split("\n")[heading.line : end])

    @property
    def parts(self) -> list[Part]:
        return [part for unit in self.blocks for part in unit.parts]

    @property
    def blocks(self) -> list[Unit]:
        """The units that are run as Python."""
        return [unit for unit in self.units if unit.info == "python"]

    @property
    def figures(self) -> list[Figure]:
        return [part.figure for unit in self.units for part in unit.parts if part.figure]

    @property
    def tables(self) -> list[Table]:
        return [table for _, table in self.shown_as_tables]

    @property
    def shown_as_tables(self) -> list[tuple[Fence, Table]]:
        """Outputs that are tables."""
        return [
            (unit.expected_fence, unit.table) for unit in self.units if unit.expected_fence and unit.table
        ]


def read(path: Path) -> Page:
    """The page in the file `path`; docs/en/labs/masks.md is a lab in English (labs.py)."""
    return parse(labs.text(path), labs.source(path))


@functools.lru_cache(maxsize=512)
def parse(text: str, path: Path = Path("page.md")) -> Page:
    """The page that `text` is: one object, which nobody changes."""
    page = Page(path, text)
    page.meta, head, faults = front_matter(text)
    page.faults += faults
    _Scanner(page).run()
    page.prose = _prose(page, head)
    _read_headings(page)
    _read_inline(page)
    page.faults.sort(key=lambda fault: fault.line)
    return page


def front_matter(text: str) -> tuple[dict[str, Any], str, list[Fault]]:
    """What stands at the head of a page: its entries, its text, what is wrong."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, "", []
    try:
        meta = loaded(match[1] or "")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        message = f"the front matter is no YAML: {getattr(error, 'problem', None) or error}"
        return {}, match[0], [Fault(2 + (mark.line if mark else 0), message)]
    if not isinstance(meta, dict | None):
        return {}, match[0], [Fault(2, "the front matter holds no `name: value`")]
    return meta or {}, match[0], []


def loaded(text: str) -> Any:
    """What YAML says: a copy of its own for whoever asks. A build asks for each front matter about six times."""
    return copy.deepcopy(_loaded(text))


@functools.lru_cache(maxsize=512)
def _loaded(text: str) -> Any:
    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # by libyaml: ten times as fast
    except yaml.YAMLError:
        return yaml.safe_load(text)  # it says better what is wrong


def contents(config: Path) -> list[str]:
    """The pages of a book in the order in which they are read: 'order.md', 'labs/masks.md'."""
    return list(files(loaded(config.read_text(encoding="utf-8"))["nav"]))


def files(nav: Any) -> Iterator[str]:
    """The files that a navigation names, parts and parts of parts one after the other."""
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav:
            yield from files(entry)


class _Scanner:
    """One walk over the lines, with the state that pytest-codeblocks keeps."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.lines = list(io.StringIO(page.text))
        self.at = 0  # lines read so far, which is the number of the line in hand
        self.continued: Unit | None = None
        self.awaiting: Unit | None = None
        self.adjacent: tuple[Unit, int] | None = None  # unit and part with nothing but output between
        self.drawn: Part | None = None  # part whose figure may be said more of

    def fault(self, message: str, line: int | None = None) -> None:
        self.page.faults.append(Fault(line or self.at, message))

    def run(self) -> None:
        if self.lines and self.lines[0].strip() == "<!--pytest-codeblocks:skipfile-->":
            self.fault("skipfile: every block of a page is run", 1)
        while self.at < len(self.lines):
            line = self.lines[self.at]
            self.at += 1
            stripped = line.strip()
            if not stripped:
                continue
            if directive := _DIRECTIVE.match(stripped):
                self.page.directives.append(self.at)
                self.directive(directive[1].strip("- "))
            elif mark := _MARK.match(stripped):
                self.page.directives.append(self.at)
                self.fault(f"{mark[1]}: every block of a page is run, and none is marked")
            elif line.lstrip().startswith("```"):
                self.fence(line)
            elif comment := COMMENT.match(stripped) or _OF_FIGURE.fullmatch(stripped):
                self.page.directives.append(self.at)
                kind, text = filter(lambda group: group is not None, comment.groups())
                self.comment(kind, text, line[: len(line) - len(line.lstrip())])
            else:
                if re.match(r"<!--.*pytest", stripped):
                    self.fault(f"this comment says nothing to pytest-codeblocks: {stripped}")
                if comment := _COMMENT_START.match(stripped):
                    text = {"live": "name k=3", "holds": "peak(solid) == 3"}.get(comment[1], "text")
                    self.fault(f"a {comment[1]} comment stands on one line: <!-- {comment[1]}: {text} -->")
                self.prose()
        if self.continued:
            self.fault("cont is followed by no fence")
        if self.awaiting:
            self.fault("expected-output is followed by no fence")

    def prose(self) -> None:
        if self.awaiting:
            self.fault("expected-output is followed by something else than its fence")
        if self.continued:
            self.fault("cont is followed by something else than its fence")
        self.adjacent = self.drawn = None

    def directive(self, keyword: str) -> None:
        units = self.page.units
        if keyword in ("expected-output", "expected-output-ignore-whitespace"):
            if not units or self.adjacent is None:
                self.fault(f"{keyword} does not directly follow its block")
            if keyword != "expected-output":
                self.fault(f"{keyword} is not used here: an output is compared as it is shown")
            if units:
                if units[-1].expected is not None:
                    self.fault("the block already has its expected output (one for all its parts)")
                self.awaiting = units[-1]
        elif keyword == "cont":
            if not units:
                self.fault("cont continues nothing: no block before it")
            else:
                self.continued = units[-1]
                if units[-1].info != "python":
                    self.fault(f"cont continues a `{units[-1].info}` fence, so this block is lost")
            self.drawn = None
        elif keyword != "skipfile":
            self.fault(f"pytest-codeblocks:{keyword} is not used here: every block of a page is run")

    def fence(self, line: str) -> None:
        start = self.at
        text = line.lstrip()
        ticks = len(text) - len(text.lstrip("`"))
        indent = len(line) - len(text)
        info = line.strip()[ticks:]
        code: list[str] = []
        while True:
            if self.at >= len(self.lines):
                self.fault("this fence is never closed", start)
                return
            line = self.lines[self.at]
            self.at += 1
            body = line.lstrip()
            if body[:ticks] == "`" * ticks:
                break
            code.append(line[min(indent, len(line) - len(body)) :])
        if self.at > MAX_LINES:
            self.fault(f"pytest-codeblocks reads no more than {MAX_LINES} lines", start)
        if body.strip() != "`" * ticks:
            self.fault("this line closes the fence above it and is lost", self.at)
        self.add(Fence(start, self.at, indent, ticks, info, "".join(code)))

    def add(self, fence: Fence) -> None:
        self.page.fences.append(fence)
        units = self.page.units
        if self.continued:
            unit, self.continued = self.continued, None
            unit.parts.append(Part(fence))
            if fence.info != "python":
                self.fault(f"cont appends a `{fence.info}` fence to a block", fence.line)
            self.adjacent = (unit, len(unit.parts) - 1)
        elif self.awaiting:
            unit, self.awaiting = self.awaiting, None
            unit.expected, unit.expected_fence = fence.code, fence
            unit.expected_after = len(unit.parts) - 1
            if fence.info != "text":
                self.fault("the fence of an expected output is ```text", fence.line)
            if unit.info != "python":
                self.fault(f"an expected output after a `{unit.info}` fence is never checked", fence.line)
        else:
            if fence.info == "text" and self.adjacent is not None:
                self.fault(
                    "an output is compared only below <!--pytest-codeblocks:expected-output-->", fence.line
                )
            unit = Unit([Part(fence)])
            units.append(unit)
            self.adjacent = (unit, 0) if fence.info == "python" else None
        self.drawn = None

    def comment(self, kind: str, text: str, indent: str) -> None:
        if kind == "table":
            self.table(text)
        elif kind != "figure":
            self.more_of_figure(kind, text)
        elif self.adjacent is None:
            self.fault("a figure comment directly follows its block, or the output of its block")
        else:
            unit, index = self.adjacent
            self.drawn = part = unit.parts[index]
            if not text:
                self.fault("a figure has a caption: <!-- figure: caption -->")
            if part.figure:
                self.fault("a block draws one figure: this is its second figure comment")
            part.figure = Figure(self.at, indent, text)

    def more_of_figure(self, kind: str, text: str) -> None:
        figure = self.drawn and self.drawn.figure
        if (
            self.drawn is None
            or not figure
            or (kind == "description" and (figure.description or figure.holds))
        ):
            also = "" if kind == "description" else ", or the description of it"
            self.fault(f"a {kind} comment directly follows its figure comment{also}")
        elif kind == "description":
            self.drawn.figure = replace(figure, description=text)
        elif kind == "holds":
            self.drawn.figure = replace(figure, holds="; ".join(filter(None, (figure.holds, text))))
        else:
            name, *values = text.split()
            found = tuple((value.partition("=")[0], value.partition("=")[2]) for value in values)
            self.drawn.figure = replace(figure, live=name, values=found)
            self.drawn = None

    def table(self, caption: str) -> None:
        unit = self.adjacent[0] if self.adjacent else None
        rows = (unit.expected or "").splitlines() if unit else []
        if unit is None or not rows:
            self.fault("a table comment directly follows the output of its block")
        elif not all(row.startswith("| ") and row.endswith(" |") for row in rows):
            self.fault("an output is shown as a table if each of its lines is `| a cell | another |`")
        elif not caption:
            self.fault("a table has a caption: <!-- table: caption -->")
        else:
            unit.table = Table(self.at, caption)


def _blank(text: str) -> str:
    return "\n".join(" " * len(line) for line in text.split("\n"))


def _prose(page: Page, head: str) -> str:
    text = _blank(head) + page.text[len(head) :]
    lines = list(io.StringIO(text))
    for fence in page.fences:
        for number in range(fence.line - 1, fence.end):
            lines[number] = _blank(lines[number])
    text = _HTML_COMMENT.sub(lambda match: _blank(match[0]), "".join(lines))
    return INLINE_CODE.sub(lambda match: _blank(match[0]), text)


def _read_headings(page: Page) -> None:
    source = page.text.split("\n")
    before = ""
    for number, line in enumerate(page.prose.split("\n"), start=1):
        if match := _HEADING.match(line):
            # inline code is blanked in the prose; a heading is shown as it is written
            written = _HEADING.match(source[number - 1]) or match
            name = re.search(r"#([\w.:-]+)", match[3] or "")
            page.headings.append(Heading(number, len(match[1]), written[2], name[1] if name else ""))
        elif (setext := _SETEXT.match(line)) and before.strip() and "|" not in before and len(setext[1]) > 1:
            page.headings.append(Heading(number - 1, 1 if line.strip()[0] == "=" else 2, before.strip(), ""))
        before = line


def _read_inline(page: Page) -> None:
    ends = [match.start() for match in re.finditer("\n", page.prose)]

    def line_of(position: int) -> int:
        return bisect_left(ends, position) + 1

    def taken(match: re.Match[str]) -> str:
        tex = match["display"] if match["inline"] is None else match["inline"]
        page.formulas.append(Formula(line_of(match.start()), tex.strip(), match["inline"] is None))
        return _blank(match[0])

    rest = FORMULA.sub(taken, page.prose)
    for match in re.finditer(r"(?<!\\)\$", rest):
        page.faults.append(
            Fault(line_of(match.start()), r"a $ that neither opens nor closes a formula (write \$)")
        )
    for pattern in (_LINK, _REFERENCE, _ATTRIBUTE):
        page.links += [Link(line_of(match.start()), match[1]) for match in pattern.finditer(rest)]
    page.links.sort(key=lambda link: link.line)
