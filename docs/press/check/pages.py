"""What a page, and the two languages of a page, must agree about: each check gives the faults it finds.

Faults of a pair are reported on the Chinese page.
"""

import ast
import functools
import re
import unicodedata
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import zip_longest
from os.path import normpath
from pathlib import Path

from press import cache, labs, live, page_facts
from press.cache import ROOT
from press.check import course, exercises, facts, questions, terms  # noqa: F401  (for their checks, too)
from press.check.planted import PAGE, PAIR, Faults, of_page, of_pair
from press.check.segments import normal
from press.pages import CHINESE, Fault, Fence, Page, Part, Unit, read
from press.uncollected import uncollected

LANGUAGES = ("en", "zh")
MAX_COLUMNS = 84  # of a code box on a screen 1280 pixels wide

_NUMBER = r"(?<![A-Za-z\d.])\d+(?:\.\d+)?(?![A-Za-z\d])"  # not those in float32 or 10th


# --- One page -----------------------------------------------------------------------------------------------


@of_page(
    ("en", "The width", "This costs $5. The width", 9, r"(write \$)"),
    ("en", "```python\n# a", "```py\n# a", 13, "its info string is `py`"),
    ("en", "description: B", "description: B\ntags: [b\nneeds: c: d", 5, "the front matter is no YAML"),
    ("en", "title: A\ndescription: B", "- a", 2, "the front matter holds no `name: value`"),
    # what a block may not do
    ("en", "# a comment", "import posenc as p; p.plot.x = 1", 14, "a block leaves `p` as it is"),
    ("en", "# a comment", "from posenc import nn; open(nn.__file__)", 14, "a block leaves `nn` as it is"),
    ("en", "# a comment", "import posenc.nn; setattr(posenc.nn, 'x', 1)", 14, "a block leaves `posenc` as"),
    # what would not be run, or not be compared
    ("en", "```console\n", "```console\n$ python -c 'x'\n", 27, "Python on a command line"),
    ("en", "<!--pytest-codeblocks:exp", "<!--pytest-codeblock:exp", 19, "says nothing to pytest-codeblocks"),
    ("en", "<!--pytest-codeblocks:expected-output-->", "", 21, "an output is compared only below"),
    ("en", "expected-output-->", "expected-output-ignore-whitespace-->", 19, "is not used here"),
    ("en", "a sine -->", "a sine -->\n\n```text\nfor x in y:\n    x\n```", 27, "Python in a fence"),
    ("en", "a sine -->", "a sine -->\n<!-- live: shift-rotation, k=3 -->", 26, "stands on one line"),
    ("en", "a sine -->", "a sine -->\n\nText.\n\n<!-- live: shift-rotation -->", 29, "directly follows"),
    ("en", "a sine -->", "a sine -->\n\nText.\n\n<!-- holds: level(solid) -->", 29, "directly follows"),
    ("en", "a sine -->", "a sine -->\n<!-- holds level(solid) -->", 26, "stands on one line"),
)
def census(page: Page, language: str = "") -> Faults:
    """Fences, comments and formulas that are not what they seem: above all, Python that would not be run."""
    return sorted([*page.faults, *uncollected(page)], key=lambda fault: fault.line)


@of_page(
    ("en", "title: A\n", "", 1, "no title"),
    ("en", "description: B", "description:", 1, "no description"),
    ("zh", "title: 甲", "title: A", 1, "the title is not in the language of the page: A"),
    ("en", "description: B", "description: ' '", 1, "no description"),
    ("en", "description: B", "description: B\nneeds: [a, b, c, d]", 1, "4 pages to read first"),
)
def front_matter(page: Page, language: str) -> Faults:
    """A page has a title and a description, in its language, and names at most three pages to read first."""
    if len(needs := page.meta.get("needs") or ()) > 3:
        yield Fault(1, f"{len(needs)} pages to read first, at most 3")
    for name in ("title", "description"):
        words = str(page.meta.get(name) or "").strip()
        if not words:
            yield Fault(1, f"the front matter has no {name}")
        elif bool(CHINESE.search(words)) != (language == "zh"):
            yield Fault(1, f"the {name} is not in the language of the page: {words}")


@of_page(
    ("en", "## One {#one}", "## One", 7, "has no id"),
    ("en", "## One {#one}", "## One{#one}", 7, "has no id"),  # without the space the site shows the braces
    ("en", "## One {#one}", "## One {#One}", 7, "lower-case"),
    ("en", "## One {#one}", "## One {#a}", 7, "used in line 5"),
    ("en", "## One {#one}", "### One {#one}", 7, "level 3 under one of level 1"),
    ("en", "## One {#one}", "# One {#one}", 5, "only # heading"),
    ("en", "## One {#one}", "One\n---", 7, "has no id"),
)
def headings(page: Page, language: str = "") -> Faults:
    """One h1, first; no level left out; every heading with an id, none of them twice."""
    levels = [heading.level for heading in page.headings]
    if levels.count(1) != 1 or levels[0] != 1:
        yield Fault(page.headings[0].line if page.headings else 1, "a page begins with its only # heading")
    seen: dict[str, int] = {}
    for heading, above in zip(page.headings, [6, *levels], strict=False):
        if not heading.id:
            yield Fault(heading.line, f"the heading '{heading.text}' has no id: write {{#like-this}}")
        elif not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", heading.id):
            yield Fault(heading.line, f"the id '{heading.id}' is not lower-case words with hyphens")
        elif heading.id in seen:
            yield Fault(heading.line, f"the id '{heading.id}' was used in line {seen[heading.id]}")
        seen[heading.id] = heading.line
        if heading.level > above + 1:
            yield Fault(heading.line, f"a heading of level {heading.level} under one of level {above}")


FORM = ("goals", "in-one-minute", "take", "false", "key-points", "check-yourself", "where-next", "sources")


@of_page(
    ("en", "## One {#one}", "## One {#goals}", 7, "no section #in-one-minute"),
    ("en", "- Two rows", "## B {#false}\n\n- Two rows", 35, "#false comes after #where-next"),
    ("en", "## One {#one}", "## One {#goals}", 1, "no `minutes`"),
    ("en", "## One {#one}", "## One {#goals}\n\n- a\n- b\n- c\n- d\n\n## Two {#two}", 7, "4 goals, at most 3"),
)  # fmt: skip
def form(page: Page, language: str) -> Faults:
    """A chapter has its sections, in one order, and three goals; a draft may have them yet to come."""
    at = {heading.id: heading.line for heading in page.headings}
    there = [name for name in at if name in FORM]
    for name, after in zip(there, sorted(there, key=FORM.index), strict=True):
        if name != after:
            yield Fault(at[after], f"the section #{after} comes after #{name}")
            break
    if "goals" in at and page.meta.get("chapter") is not False and not page.is_draft:
        for name in FORM:
            if name not in at and name != "take":
                yield Fault(at["goals"], f"a chapter with no section #{name}")
        if not isinstance(page.meta.get("minutes"), int):
            yield Fault(1, "a chapter with no `minutes`, those that reading all of it took somebody")
        goals = "\n".join(page.text.split("\n")[at["goals"] :]).partition("\n## ")[0]
        if (count := len(re.findall("^- ", goals, re.MULTILINE))) > 3:
            yield Fault(at["goals"], f"{count} goals, at most 3")


@of_page(("en", "title: A", "behind: 0.0.9\ntitle: A", 1, "behind since 0.0.9, and this is"))
def behind(page: Page, language: str) -> Faults:
    """A page may be behind its twin for one release."""
    numbers = [re.findall(r"\d+", version) for version in (page.behind, page_facts.version())]
    if page.behind and [*map(int, numbers[0])] < [*map(int, numbers[1])]:
        yield Fault(
            1, f"behind since {page.behind}, and this is {page_facts.version()}: its twin has what is missing"
        )


@of_page(
    ("en", "figure: a sine", "figure: 一条正弦", 25, "language of the page"),
    ("zh", "figure: 一条正弦", "figure: a sine", 25, "language of the page"),
    ("zh", "figure: 一条正弦", "figure: 正弦 $x$", 25, "plain text"),
)
def captions(page: Page, language: str) -> Faults:
    """Captions and descriptions are in the language of the page, and plain text."""
    texts = [(table.line, "caption", table.caption) for table in page.tables]
    for figure in page.figures:
        texts += [(figure.line, "caption", figure.caption), (figure.line, "description", figure.description)]
    for line, what, text in texts:
        if text and bool(CHINESE.search(text)) != (language == "zh"):
            yield Fault(line, f"the {what} is not in the language of the page: {text}")
        if re.search(r"[$\\`]|</?\w", text):
            yield Fault(line, f"a {what} is plain text, without TeX or markup: {text}")


_FIGURE = "<!-- figure: a sine -->"
_MOVED = f"{_FIGURE}\n<!-- live: shift-rotation -->"


@of_page(
    ("en", _FIGURE, f"{_FIGURE}\n<!-- live: nothing -->", 25, "no docs/theme/live/nothing.js"),
    ("en", _FIGURE, f"{_FIGURE}\n<!-- live: posenc -->", 25, "no docs/theme/live/posenc.js"),
    ("en", _FIGURE, f"{_FIGURE}\n<!-- live: shift-rotation n=3 -->", 25, "takes no n"),
    ("en", _FIGURE, f"{_MOVED}\n\n```python\n```\n{_MOVED}", 30, "twice"),
)
def live_figures(page: Page, language: str = "") -> Faults:
    """A figure that can be moved has a module, which knows the values that the page gives; once a page."""
    seen = set[str]()
    for figure in filter(lambda figure: figure.live, page.figures):
        module = live.module(figure.live)
        if not module:
            yield Fault(figure.line, f"there is no docs/theme/live/{figure.live}.js for a figure")
        for name, _ in figure.values:
            if module and f'"{name}"' not in module:
                yield Fault(figure.line, f"the live figure {figure.live} takes no {name}")
        if figure.live in seen:
            yield Fault(figure.line, f"the live figure {figure.live} stands on the page twice")
        seen.add(figure.live)


@of_page(
    ("en", "The width", "[The width](nowhere.md)", 9, "leads nowhere"),
    ("en", "The width", "[The width](#two)", 9, "not there"),
    ("en", "The width", "[The width](/en/order.html)", 9, "not relative"),
)
def links(page: Page, language: str = "") -> Faults:
    """Links within the book lead to a page, and to a heading that it has."""
    folder = ROOT / "docs" / language / "labs" if page.is_lab else page.path.parent
    for link in page.links:
        if re.match(r"[a-z][a-z0-9+.-]*:", link.target) or link.target.startswith("//"):
            continue
        target, _, anchor = link.target.partition("#")
        target = target.partition("?")[0]  # what is chosen in a table
        path = labs.source(Path(normpath(folder / target))) if target else page.path
        known = page.text if path == page.path else ""
        if target.startswith("/"):
            yield Fault(link.line, f"the link {link.target} is not relative")
        elif target and not path.exists():
            yield Fault(link.line, f"the link {link.target} leads nowhere")
        elif anchor and path.suffix in (".md", ".py") and anchor not in _ids(path, known):
            yield Fault(link.line, f"the link {link.target} leads to a heading that is not there")


@functools.cache
def _ids(path: Path, text: str) -> set[str]:
    """The ids of a page, whose text is not read where it is known."""
    text = text or path.read_text(encoding="utf-8")
    return {*re.findall(r"\{[^{}\n]*?#([\w.:-]+)[^{}\n]*\}", text), *re.findall(r'\bid="([^"]+)"', text)}


@of_page(
    ("en", "# a comment", "#" * 85, 14, "line 14 has 85 columns, at most 84"),
    ("zh", "# 注释", "# " + "宽" * 42, 14, "line 14 has 86 columns, at most 84"),
    ("en", "# from PyPI", "# " + "x" * 85, 28, "line 28 has 109 columns, at most 84"),
)
def wide_code(page: Page, language: str = "") -> Faults:
    """Code and commands fit their box; what a program prints may be wider, and then scrolls sideways.

    A Chinese character takes two columns. Indentation counts: an indented box is as much narrower.
    """
    lines = page.text.split("\n")
    for number in (
        number for fence in page.fences if fence.info != "text" for number in range(fence.line, fence.end)
    ):
        columns = sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in lines[number - 1])
        if columns > MAX_COLUMNS:
            yield Fault(number, f"line {number} has {columns} columns, at most {MAX_COLUMNS}")


@of_page(
    ("zh", "的宽度", "的代币", 9, "词元"),
    ("zh", "的宽度", "的**代**币", 9, "词元"),
    ("zh", "的宽度", "的[代](#one)币", 9, "词元"),
)
def own_words(page: Page, language: str = "") -> Faults:
    """A thing is called what the book calls it (terms.py)."""
    return terms.faults(page.text)


def faults_of_page(page: Page, language: str) -> list[Fault]:
    """Everything that is wrong with one page by itself."""
    found = [fault for check in PAGE for fault in check.run(page, language)]
    return sorted(found, key=lambda fault: fault.line)


# --- Both languages -----------------------------------------------------------------------------------------


def same_files(english: Path, chinese: Path) -> list[str]:
    """Pages that one language has and the other has not."""
    names = {
        book: {path.relative_to(book).as_posix() for path in book.rglob("*.md")}
        for book in (english, chinese)
    }
    return [
        f"{book.name}/{name} has no twin in {other.name}; a draft may be alone: `draft: true` in its front matter"
        for book, other in ((english, chinese), (chinese, english))
        for name in sorted(names[book] - names[other])
        if not read(book / name).is_draft
    ]


@of_pair(
    ("zh", "description: 乙", "description: 乙\nneeds: [order]", 1, "'needs' is ['order'] here and None"),
    ("zh", "description: 乙", "description: 乙\nchapter: false", 1, "'chapter' is False here"),
)
def same_front_matter(english: Page, chinese: Page) -> Faults:
    """All but title, description and the words it is looked up by is the same in both languages."""
    ours, theirs = english.meta, chinese.meta
    for name in sorted({*ours, *theirs} - {"title", "description", "tags"}):
        if ours.get(name) != theirs.get(name):
            yield Fault(
                1, f"'{name}' is {theirs.get(name)!r} here and {ours.get(name)!r} on the English page"
            )


@of_pair(
    ("zh", "{#one}", "{#two}", 7, "## #one on the English page"),
    ("zh", "## 一", "### 一", 7, "## #one on the English page"),
    ("zh", "## 末 {#where-next}", "", 1, "no heading #where-next"),
)
def same_headings(english: Page, chinese: Page) -> Faults:
    """The same ids on the same levels in the same order."""
    for ours, theirs in zip_longest(english.headings, chinese.headings):
        if ours is None:
            yield Fault(theirs.line, f"the English page has no heading #{theirs.id}")
        elif theirs is None:
            yield Fault(
                1, f"the Chinese page has no heading #{ours.id} (line {ours.line} of the English one)"
            )
        elif (ours.level, ours.id) != (theirs.level, theirs.id):
            here, there = (f"{'#' * heading.level} #{heading.id}" for heading in (theirs, ours))
            yield Fault(theirs.line, f"{here} is {there} on the English page (line {ours.line})")
        else:
            continue
        return


@of_pair(
    ("zh", 'print("和", 3)', 'print("和", 4)', 15, "3, 4"),
    ("zh", 'print("和", 3)', 'print("total", 3)', 15, "'sum', 'total'"),
    ("zh", 'print("和", 3)', 'print("和")', 15, "3, None"),
    ("zh", 'print("和", 3)', 'print("和", 3.0)', 15, "3, 3.0"),
    ("zh", 'print("和", 3)', 'print("和", 3)\nx = 1', 16, "differs"),
    ("zh", "{a}，共 {b}", "{b}，共 {b}", 16, "differs"),
    ("zh", "{a}，共 {b}", "{b} 中的 {a}", 16, "differs"),
    ("zh", ', lang="zh"', "", 16, 'plot(...) is without lang="zh"'),
    ("zh", 'label="正弦"', 'title="正弦"', 16, "'label', 'title'"),
    ("zh", ', lang="zh"', ', lang="en"', 16, "differs"),
    ("zh", "<!--pytest-codeblocks:expected-output-->", "", 13, "continued, or shows its output, otherwise"),
    # what it prints and draws
    ("zh", "和 3\n", "和 4\n", 22, "sum 3"),
    ("zh", "和 3\n", "total 3\n", 22, "sum 3"),
    ("zh", "<!-- figure: 一条正弦 -->", "", 13, "only one of the two languages has a figure"),
    ("zh", "正弦 -->\n", "正弦 -->\n<!-- live: shift-rotation k=3 -->\n", 25, "has no live figure here"),
    ("zh", "-->\n\n```console", "-->\n<!-- holds: low(solid) == 1 -->\n\n```console", 25, "claims otherwise"),
    ("zh", "-->\n\n```console", "-->\n<!-- description: 说明 -->\n\n```console", 25, "describes"),
    ("zh", "pip install posenc", "pip install posenc[plot]", 28, "pip install posenc"),
    ("zh", "```console\n", "```text\n", 27, "fence number 3"),
)
def same_code(english: Page, chinese: Page) -> Faults:
    """The same fences and figures in the same order, the same code but for comments and Chinese strings."""
    kinds = [[fence.info for fence in page.fences] for page in (english, chinese)]
    if kinds[0] != kinds[1]:
        at = next(i for i, (a, b) in enumerate(zip_longest(*kinds)) if a != b)
        line = chinese.fences[at].line if at < len(kinds[1]) else 1
        there = f"line {english.fences[at].line}" if at < len(kinds[0]) else "the end"
        yield Fault(line, f"fence number {at + 1} is not what it is on the English page ({there})")
        return
    for ours, theirs in zip(english.fences, chinese.fences, strict=True):
        if ours.info != "python":
            yield from _same_text(ours, theirs)
    for one_of_theirs, one_of_ours in zip_longest(chinese.units, english.units):
        shape = [
            unit and (len(unit.parts), unit.expected is None, unit.expected_after)
            for unit in (one_of_theirs, one_of_ours)
        ]
        if shape[0] != shape[1]:
            line, other = (one_of_theirs or chinese.units[-1]).line, (one_of_ours or english.units[-1]).line
            message = "this block is continued, or shows its output, otherwise than on the English page"
            yield Fault(line, f"{message} (line {other})")
            return
        yield from _same_unit(one_of_ours, one_of_theirs)


def _same_unit(english: Unit, chinese: Unit) -> Faults:
    if (english.table is None) != (chinese.table is None):
        yield Fault(chinese.line, "only one of the two languages shows this output as a table")
    for ours, theirs in zip(english.parts, chinese.parts, strict=True):
        yield from _same_figure(ours, theirs)
    if chinese.info != "python" or english.code == chinese.code:
        return
    try:
        trees = ast.parse(english.code), ast.parse(chinese.code)
    except SyntaxError:
        yield Fault(chinese.line, "the code is not that of the English page, and is no Python")
        return
    for line, message in filter(None, [_difference(*trees)]):
        where = f" (line {english.line} of the English page)"
        yield Fault(chinese.page_line(line) if line else chinese.line, message + where)


def _same_figure(english: Part, chinese: Part) -> Faults:
    ours, theirs = english.figure, chinese.figure
    if ours is None or theirs is None:
        if ours or theirs:
            yield Fault(chinese.fence.line, "only one of the two languages has a figure here")
    elif (ours.live, ours.values) != (theirs.live, theirs.values):
        there = f"{ours.live} {dict(ours.values)}" if ours.live else "no live figure"
        yield Fault(theirs.line, f"the English page has {there} here")
    elif ours.holds != theirs.holds:
        yield Fault(theirs.line, f"the English page claims otherwise here: {ours.holds or 'nothing'}")
    elif bool(ours.description) != bool(theirs.description):
        yield Fault(theirs.line, "only one of the two languages describes this figure")


def _difference(english: ast.AST, chinese: ast.AST, line: int = 0) -> tuple[int, str] | None:
    """The first place where two trees differ by more than a Chinese string, or None."""
    line = getattr(chinese, "lineno", line)
    if type(english) is not type(chinese):
        return line, "the code differs from the English page"
    if isinstance(english, ast.Constant) and isinstance(chinese, ast.Constant):
        return None if _same_constant(english.value, chinese.value) else (line, _unequal(english, chinese))
    if (
        isinstance(chinese, ast.Call)
        and re.match(r"plot\b", name := ast.unparse(chinese.func))
        and "lang" not in (keyword.arg for keyword in chinese.keywords)
    ):
        return line, f'{name}(...) is without lang="zh": its words would be English'
    if isinstance(english, ast.JoinedStr) and isinstance(chinese, ast.JoinedStr):
        return _difference_of_f_strings(english, chinese, line)
    for (name, ours), (_, theirs) in zip(ast.iter_fields(english), ast.iter_fields(chinese), strict=True):
        if isinstance(english, ast.Call) and name == "keywords":
            # lang="zh" may stand where the English page leaves out the default
            ours, theirs = _without_language(ours, "en"), _without_language(theirs, "zh")
        pairs = zip_longest(*(value if isinstance(value, list) else [value] for value in (ours, theirs)))
        for one_of_ours, one_of_theirs in pairs:
            if isinstance(one_of_ours, ast.AST) and isinstance(one_of_theirs, ast.AST):
                if (found := _difference(one_of_ours, one_of_theirs, line)) is not None:
                    return found
            elif one_of_ours != one_of_theirs:
                return getattr(one_of_theirs, "lineno", line), _unequal(one_of_ours, one_of_theirs)
    return None


def _without_language(keywords: list[ast.keyword], language: str) -> list[ast.keyword]:
    return [keyword for keyword in keywords if ast.unparse(keyword) != f"lang={language!r}"]


def _same_constant(english: object, chinese: object) -> bool:
    if isinstance(english, str) and isinstance(chinese, str):
        return english == chinese or bool(CHINESE.search(chinese)) or (english, chinese) == LANGUAGES
    return type(english) is type(chinese) and repr(english) == repr(chinese)


def _difference_of_f_strings(
    english: ast.JoinedStr, chinese: ast.JoinedStr, line: int
) -> tuple[int, str] | None:
    """The same values in the same formats and order: nothing tells two that are swapped from two in order."""
    words = "".join(str(value.value) for value in chinese.values if isinstance(value, ast.Constant))
    ours, theirs = (
        [ast.dump(value) for value in string.values if isinstance(value, ast.FormattedValue)]
        for string in (english, chinese)
    )
    if ours == theirs and (CHINESE.search(words) or ast.dump(english) == ast.dump(chinese)):
        return None
    return line, _unequal(english, chinese)


def _unequal(*differ: object) -> str:
    shown = (ast.unparse(each) if isinstance(each, ast.AST) else repr(each) for each in differ)
    return f"the code differs from the English page: {', '.join(shown)}"


def _same_text(english: Fence, chinese: Fence) -> Faults:
    """Output may differ in lines with Chinese, but not in numbers; commands may differ in comments."""
    pairs = zip_longest(english.code.splitlines(), chinese.code.splitlines())
    for number, (ours, theirs) in enumerate(pairs, start=1):
        if ours is None or theirs is None:
            yield Fault(chinese.line, "this text has another number of lines than on the English page")
            return
        if chinese.info != "text":
            ours, theirs = (re.sub(r"(^|\s)#\s.*", "", text) for text in (ours, theirs))
        numbers = [sorted(re.findall(_NUMBER, text)) for text in (ours, theirs)]
        if ours.split() != theirs.split() and (not CHINESE.search(theirs) or numbers[0] != numbers[1]):
            yield Fault(chinese.line + number, f"the English page says '{ours.strip()}' here")
            return


@of_pair(("zh", "$$ n", "$$ t", 11, "n = "))
def same_formulas(english: Page, chinese: Page) -> Faults:
    """Display formulas in the same order; what stands in \\text{...} may differ."""
    both = (
        [(each.line, normal(each.tex)) for each in page.formulas if each.display]
        for page in (english, chinese)
    )
    for ours, theirs in zip_longest(*both, fillvalue=(1, "")):
        if ours[1] != theirs[1]:
            there = f"$${ours[1]}$$ in line {ours[0]}" if ours[1] else "no such formula"
            yield Fault(theirs[0], f"the English page has {there}")
            return


def faults_of_pair(english: Page, chinese: Page) -> list[Fault]:
    """Everything that two pages do not agree about; a draft, or one that is behind, is not held to it."""
    if english.is_draft != chinese.is_draft or english.behind or chinese.behind:
        return []
    found = [fault for check in PAIR for fault in check.run(english, chinese)]
    return sorted(found, key=lambda fault: fault.line)


# --- All pages ----------------------------------------------------------------------------------------------


def chapters(docs: Path = ROOT / "docs") -> dict[str, dict[str, Page]]:
    """The pages of the books, by language and name: chapters()["zh"]["order.md"]; and "solutions/begin.md"."""
    return {
        language: {
            f"{where}{path.relative_to(folder).as_posix()}": read(path)
            for where, folder in (("", docs / language), ("solutions/", docs / "solutions" / language))
            for path in sorted(folder.rglob("*.md"))
        }
        for language in LANGUAGES
    }


def named(names: Iterable[str], books: Mapping[str, Mapping[str, Page]]) -> dict[str, dict[str, Page]]:
    """The pages of these names, `rotary` or docs/en/rotary.md, in each language; all of them without a name.

    Raises:
        ValueError: if there is no page of a name; it says which are near.
    """
    known = {name.removesuffix(".md"): name for book in books.values() for name in book}
    paths = {cache.shown(page.path): name for book in books.values() for name, page in book.items()}
    wanted = {known.get(name) or paths.get(name) or name: name for name in names}
    for name in set(wanted.values()) - known.keys() - paths.keys():
        near = [other for other in known if other.endswith(f"/{name}")] or get_close_matches(name, known)
        raise ValueError(f"there is no page {name}{'; ' * bool(near)}{' or '.join(near)}{'?' * bool(near)}")
    return {
        language: {name: page for name, page in book.items() if name in wanted or not wanted}
        for language, book in books.items()
    }


def labs_of_books() -> dict[str, dict[str, Page]]:
    """The labs, likewise: labs_of_books()["zh"]["labs/masks.md"]."""
    return {
        language: {f"labs/{path.name}": read(path) for path in labs.of_book(ROOT / "docs" / language)}
        for language in LANGUAGES
    }
