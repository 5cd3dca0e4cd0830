"""What a page says by itself, held against what there is: names in inline code, numbers, the letters of formulas."""

import contextlib
import importlib.util
import itertools
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from press import references
from press.cache import PACKAGE, ROOT, Store, digest, key
from press.check.planted import Faults, of_page
from press.check.segments import Piece, sections
from press.numbers import in_code, stands, together
from press.pages import Fault, Page, read
from press.running import dependencies

_NAME = re.compile(r"\b[A-Za-z_][A-Za-z0-9_]*\b")
_NOT_NAMES = re.compile(r"\"[^\"]*\"|'[^']*'|\\[a-z]+|[\w./-]*\.(?:py|json|md|yml|toml)\b|--?[a-z][\w-]*")
_ROOTS = {name: [name] for name in ("posenc", "numpy", "torch")}  # what a name in code stands for
# Whoever mends a typo may lack these; then names that stand in what imports them are not checked.
NOT_INSTALLED = [name for name in ("torch", "matplotlib") if importlib.util.find_spec(name) is None]
_HEAVY = re.compile(r"(?:torch|nn|plot|posenc\.(?:check|experiments|nn|plot))\b")
_ROOTS |= {"nn": ["posenc.nn", "torch.nn"], "plot": ["posenc.plot"], "np": ["numpy"]}


def _pieces(page: Page) -> Iterator[Piece]:
    """What is said in the book's own words: not its sources."""
    return (piece for section in sections(page) if "{#sources}" not in section[0].text for piece in section)


@cache
def _page(path: Path) -> Page:
    return read(path)


# --- Names --------------------------------------------------------------------------------------------------


@of_page(
    ("en", "posenc.alibi_bias(slopes", "alibi_bais(slopes", 33, "`alibi_bais`"),
    ("en", "posenc.alibi_bias(slopes, 4", "posenc.alibi_bias(slops, 4", 33, "`slops`"),
    ("zh", "posenc.alibi_bias(", "plot.alibi_bias(", 33, "there is no `plot.alibi_bias`"),
)
def names(page: Page, language: str) -> Faults:
    """Inline code names what there is: in posenc, its tests or a block, or a foreign name of the notation."""
    known = _known() | _names(fence.code for fence in page.fences)
    for piece in _pieces(page):
        for code in piece.code:
            code = _NOT_NAMES.sub(" ", code)
            unknown = [name for name in _NAME.findall(code) if name not in known]
            chains = re.findall(r"(?<![\w.])[A-Za-z]\w*(?:\.\w+)+", code)
            unknown += [chain for chain in chains if not _is(chain)]
            yield from (Fault(piece.line, f"there is no `{name}`") for name in unknown)


@cache
def _known() -> frozenset[str]:
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in files]
    pages = [_page(path) for path in (ROOT / "docs").glob("[ez][nh]/*.md")]
    texts += [fence.code for page in pages for fence in page.fences]
    notation = [page for page in pages if page.path.stem == "notation"]
    texts += [code for page in notation for piece in _pieces(page) for code in piece.code]
    return _names(texts)


def _names(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(name for text in texts for name in _NAME.findall(text))


@cache
def _is(chain: str) -> bool:
    """Whether `a.b.c` is there, if `a` is a module of the book's."""
    root, _, rest = chain.partition(".")
    if root not in _ROOTS:
        return True
    store, entry = Store("names"), key(chain, _state())
    if store.get(entry) is not None:  # to find it anew torch would be imported
        return True
    for module in _ROOTS[root]:
        with contextlib.suppress(ImportError, AttributeError):
            pkgutil.resolve_name(f"{module}.{rest}")
            store.put(entry, chain)
            return True
    return bool(NOT_INSTALLED and _HEAVY.match(chain))


@cache
def _state() -> str:
    """One name for posenc and the libraries, in which names are looked for."""
    Store("names").prune(days=7, most=1000)
    found = dependencies.sources()
    return key(digest(), found.state(found.files))


# --- Numbers ------------------------------------------------------------------------------------------------

_SUMMARIES = ("", "goals", "in-one-minute", "take", "false", "key-points", "check-yourself", "where-next")
# Of a release or of a section: no result.
_WHOSE = r"\b(?:[Ss]ections?|Python|\w*[Tt]orch|[\w-]*transformers|NumPy|Llama|Qwen\w*|GPT|CC BY)[- ]"
_LABEL = re.compile(rf"{_WHOSE}\d[\d.]*(?:(?:,| to| and| or) \d[\d.]*)*")


@of_page(
    ("en", "0.51 is", "0.52 is", 36, "0.52 stands in no output"),
    ("en", "90 percent", "91 percent", 35, "91% stands in no output"),
)
def numbers(page: Page, language: str) -> Faults:
    """A decimal, or a percentage, of the prose stands in its section: in code, output, a formula, a caption.

    Or in a section that its paragraph links to; in those that sum up, anywhere on the page. What is computed
    by hand, or quoted, is written as a formula. The Chinese page has the numbers of the English one.
    """
    shown = _shown(page)
    for piece in _pieces(page) if language == "en" else ():
        place = _place(page, piece.line)
        if piece.kind in ("figure", "description"):  # held against the drawing, by outputs.py
            continue
        values = list(itertools.chain(*shown.values())) if place in _SUMMARIES else shown[place]
        for target, anchor in re.findall(r"\]\(([\w/-]+\.md)?(?:#([\w-]+))?\)", piece.text):
            path = page.path.parent / target
            if target and not path.is_file():  # a fault of links()
                continue
            there = _page(path) if target else page
            ids = [_place(there, heading.line) for heading in there.headings if anchor in (heading.id, "")]
            values = values + [value for name in ids for value in _shown(there)[name]]
        for number in Piece(piece.line, piece.kind, _LABEL.sub("", piece.text)).numbers:
            if ("." in number or "%" in number) and not stands(number, values):
                yield Fault(piece.line, f"{number} stands in no output, code, formula or caption there")


@cache
def _shown(page: Page) -> dict[str, list[float]]:
    """What the fences, formulas, inline code and captions of each section have."""
    found = defaultdict[str, list[float]](list)
    texts = [(fence.line, fence.code) for fence in page.fences]
    texts += [(formula.line, formula.tex) for formula in page.formulas]
    for piece in _pieces(page):
        is_caption = piece.kind in ("figure", "description")
        texts += [(piece.line, text) for text in [*piece.code, *[piece.text] * is_caption]]
    for line, text in texts:
        found[_place(page, line)] += in_code(together(text))
    return found


def _place(page: Page, line: int) -> str:
    """The ## heading above a line; "" before the first."""
    return next((h.id for h in reversed(page.headings) if h.level == 2 and h.line <= line), "")


# --- Claims -------------------------------------------------------------------------------------------------

# What a figure's words say of a curve, in English and in Chinese, and the functions of press/claims.py that can
# hold it: one of them is called, or `==` compares what an author wrote with what is drawn.
_WAY = "first last at low top dip dips peak peaks below above rises falls level"
_SAID = (
    (r"\blevel\b(?! grey)", "是平的|水平线|着走到底", "level low top"),
    (r"\b(?:peaks?|crests?|highest|maxim(?:um|a))\b", "(?<!标)峰(?!值 \\d)|最高", "peak peaks top argmax"),
    (r"\b(?:troughs?|valleys?|lowest|minim(?:um|a))\b", "谷|最低", "dip dips low"),
    (r"\bcross(?:es)? zero\b", "越过零", "below above"),
    (r"\b(?:falls?|rises?|climbs?|drops?|sinks?|goes (?:up|down))\b", "[升跌]|降[到下至]", _WAY),
    (r"\b(?:nearly all|almost all|in most|most of)\b", "几乎全部|多数", f"share mean sum {_WAY}"),
)


@of_page(
    ("en", "figure: a sine", "figure: a sine: its peak is 3", 25, "it says 'peak'; peak(...), peaks(...)"),
    ("en", "sine -->", "sine -->\n<!-- description: It falls to 0. -->", 25, "it says 'falls'"),
    ("en", "a sine -->", "a level sine -->\n<!-- holds: first(solid) == 1 -->", 25, "it says 'level'"),
    ("zh", "一条正弦", "一条正弦，最低 −1", 25, "it says '最低'; dip(...)"),
)
def claims(page: Page, language: str) -> Faults:
    """What words claim of a curve is claimed in `<!-- holds: … -->` as well, and so held against the drawing."""
    for figure in page.figures:
        called = set(re.findall(r"\b([a-z]+)\(", figure.holds))
        for english, chinese, functions in _SAID:
            words = chinese if language == "zh" else english
            said = re.search(words, f"{figure.caption} {figure.description}")
            if said and called.isdisjoint(functions.split()):
                wanted = ", ".join(f"{name}(...)" for name in functions.split())
                yield Fault(figure.line, f"it says '{said[0]}'; {wanted}: no <!-- holds: --> has one")


# --- Papers ---------------------------------------------------------------------------------------------------

_NO_PAPER = "## Last {#sources}\n\n- Nobody, *No Paper*, 2017."


@of_page(
    ("en", "## Last {#where-next}", _NO_PAPER, 33, "docs/references.bib has no entry for this paper"),
    ("en", "## Last {#where-next}", f"{_NO_PAPER[:22]} [x](https://arxiv.org/abs/0000.00000)", 33, "no entry"),
)  # fmt: skip
def papers(page: Page, language: str) -> Faults:
    """Each paper among the sources has an entry in docs/references.bib (references.py)."""
    for line, source in references.sources(page.text):
        if references.unknown(source):
            yield Fault(line, "docs/references.bib has no entry for this paper")


# --- Letters ------------------------------------------------------------------------------------------------

_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi rho sigma tau phi chi psi omega ell"
)
_NO_LETTERS = re.compile(
    r"\\(?:text|mathrm|mathbb|operatorname|begin|end)\s*\{[^{}]*\}|\^\{?(?:T|\\top)\b|\\[^A-Za-z]"
)
_FONT = re.compile(r"\\(mathbf|mathcal|tilde|hat|bar)\s*\{([^{}]*)\}")
_LETTER = re.compile(r"\\[A-Za-z]+|PE|[A-Za-z]")


@of_page(
    ("en", "The width $d$ of $n$", "The width $d$ of $z$", 9, "$z$ is in no table"),
    ("zh", "$$ n", "$$ \\mathbf{y}_n", 11, r"$\mathbf{y}$ is in no table"),
    ("en", "The width $d$ of $n$", "The width $d$ of $k_u$", 9, "$k$ is the offset"),
)
def letters(page: Page, language: str) -> Faults:
    """A letter in a formula stands in the tables of the notation: for the book, or for this chapter, and is used."""
    if page.path.stem == "notation":
        yield from _unused(page)
    if page.path.stem in ("notation", "glossary") or page.is_lab or page.is_draft:  # a lab has its own
        return
    known = set(_notation(language, page.path.stem))
    several = {"exercises", "solutions"} & {*page.path.parts} or page.meta.get("questions")
    if several:  # of the chapters that they are for, or link to
        chapters = {heading.id for heading in page.headings} | {
            Path(link.target.partition("#")[0]).stem for link in page.links
        }
        known = known.union(*(_notation(language, chapter) for chapter in chapters))
    for formula in page.formulas:
        for letter in _letters(formula.tex):
            if letter not in known:  # said once a page
                known.add(letter)
                yield Fault(formula.line, f"${letter}$ is in no table of the notation, for this page")
        if re.search(r"(?<![A-Za-z\\{])k(?:_|(?<=\{k)\}_)(?!\d)", formula.tex):
            yield Fault(
                formula.line, r"$k$ is the offset, whose index is an axis, 1 or 2; a key is \mathbf{k}"
            )


def _unused(notation: Page) -> Iterator[Fault]:
    """Letters that the notation has for one chapter, which does not use them."""
    lines = notation.text.split("\n")
    for formula in notation.formulas:
        if chapter := re.match(r"\| \[[^]]*\]\((\w+\.md)\)", lines[formula.line - 1]):
            others = _page(notation.path.parent / chapter[1]).formulas
            used = {letter for other in others for letter in _letters(other.tex)}
            for letter in _letters(formula.tex):
                if letter not in used:
                    yield Fault(formula.line, f"${letter}$ is in no formula of {chapter[1]}")


def _letters(tex: str) -> Iterator[str]:
    """The letters of a formula, each with its font or accent, without its index."""
    tex = _NO_LETTERS.sub(" ", tex)
    for font, letters in [*_FONT.findall(tex), ("", _FONT.sub(" ", tex))]:
        for letter in _LETTER.findall(letters):
            if letter[0] != "\\" or letter[1:].removeprefix("var").lower() in _GREEK.split() or font:
                yield f"\\{font}{{{letter}}}" if font else letter


@cache
def _notation(language: str, chapter: str) -> frozenset[str]:
    """What the tables of the notation have for all chapters and for this one."""
    page = _page(ROOT / "docs" / language / "notation.md")
    lines = page.text.split("\n")
    end = next(heading.line for heading in page.headings if heading.id == "elsewhere")
    rows = [(lines[formula.line - 1], formula.tex) for formula in page.formulas if formula.line < end]
    own = [tex for row, tex in rows if f"({chapter}.md)" in row or not re.match(r"\| \[[^]]*\]\(", row)]
    return frozenset(letter for tex in own for letter in _letters(tex))
