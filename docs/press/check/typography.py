"""The Chinese of the book, read as a proofreader reads it: what stands where, and what is wrong with it.

autocorrect knows the common mistakes (no space between Chinese and Latin, a half-width comma); RULES are
those of this book. What is not read as words is masked first, so that the rules see its place in the sentence
and nothing else: formulas, code, addresses, the values in an f-string.
"""

import ast
import io
import re
import textwrap
import tokenize
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

import autocorrect_py
import yaml

from press import labs, made, pages
from press.cache import ROOT

autocorrect_py.load_config(  # type: ignore[attr-defined]  # not in its stubs
    '{"rules": {"space-word": 1, "space-punctuation": 1, "space-bracket": 0, "fullwidth": 1,'
    ' "no-space-fullwidth": 1, "no-space-fullwidth-quote": 0, "halfwidth-word": 0,'
    ' "halfwidth-punctuation": 0, "spellcheck": 0}}'
)

HAN = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True)
class Text:
    """A line of Chinese and where it stands; `kind` is prose, title, caption, code or output."""

    path: str
    line: int
    text: str
    kind: str = "prose"


# --- What is wrong with a line ------------------------------------------------------------------------------

_H = r"\u3400-\u9fff"  # ideographs
_W = r"A-Za-z0-9\u0370-\u03ff\u00b2\u00b3\u00b9\u2070-\u209f"  # Latin, Greek, digits, raised and lowered
_STOP = "，。；：？！、"

# What is wanted, where it is not so, and what is right there; one after the other.
RULES = [
    ("a Chinese comma", rf"(?<=[{_H}”）]) *, *|, *(?=[{_H}“（])", "，"),
    ("a Chinese colon", rf"(?<=[{_H}”）]) *: *|: *(?=[{_H}“（])", "："),
    ("a Chinese semicolon", rf"(?<=[{_H}”）]) *; *|; *(?=[{_H}“（])", "；"),
    ("a Chinese question mark", rf"(?<=[{_H}”）]) *\?", "？"),
    ("a Chinese exclamation mark", rf"(?<=[{_H}”）]) *!", "！"),
    ("a Chinese full stop", rf"(?<=[{_H}”）])\.(?=$|[ {_H}])", "。"),
    ("（） around Chinese", rf" *\(([^()]*[{_H}][^()]*)\) *", r"（\1）"),
    ("() around what is not Chinese", rf"（([^（）{_H}]*)）", r"(\1)"),
    ("a space outside ()", rf"(?<=[{_H}])(?=\()|(?<=\))(?=[{_H}])", " "),
    ("one mark, not two", rf"[{_STOP}](?=[{_STOP}])", ""),
    ("no stop before and after ”", rf"[，。；]”(?=[{_STOP}])", "”"),
    ("quotation marks “”", r"「([^「」]*)」", r"“\1”"),
    ("quotation marks “”", rf"\"([^\"]*[{_H}][^\"]*)\"", r"“\1”"),
    ("a dash ——", rf"(?<=[{_H}”）]) *(?:--+|(?<!—)—(?!—)|–) *(?=[{_H}“（])", "——"),
    ("a dash —— without spaces", r" *—— *", "——"),
    ("an ellipsis ……", rf"(?<=[{_H}]) *(?:\.{{3,}}|。{{2,}}|(?<!…)…(?!…))", "……"),
    ("no space beside Chinese punctuation", rf"(?<=\S) +(?=[{_STOP}）”])|(?<=[{_STOP}（“]) +(?=\S)", ""),
    ("a space between Chinese and Latin", rf"(?<=[{_H}])(?=[{_W}−√])|(?<=[{_W}])(?=[{_H}])", " "),
]
PROSE = [
    ("no space between Chinese characters", rf"(?<=[{_H}]) +(?=[{_H}])", ""),
    ("no space beside quotation marks", r"(?<=\S) +(?=“)|(?<=”) +(?=\S)", ""),
    ("no comma in a number", r"(?<=\d),(?=\d{3}(?!\d))", ""),
]

_HALF = re.compile("[０-９Ａ-Ｚａ-ｚ％＝＋－]")
# Quoted as their source has them: one token a character.
EXEMPT = {"LLM张老师", "LLM张老师在他的视频里，讲述了", "古巨基当模特走了个L型的T台"}

_NOT_WORDS = re.compile(
    r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)|(?<![\\$])\$[^$\n]+\$|\{[^{}\n]*\}|<?https?://[^\s>)）]+>?"
)
_BRACES = re.compile("[{}]")
_MASK = re.compile(r"Mask(\d+)z")


def faults(text: Text) -> list[str]:
    """What is wrong with a line, each with its place, what stands there and what is right."""
    kept: list[str] = []

    def masked(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"Mask{len(kept) - 1}z"

    def said(old: str, new: str, why: str) -> str:
        old, new = (_MASK.sub(lambda match: kept[int(match[1])], part) for part in _around(old, new))
        return f"{text.path}:{text.line}: '{old}' should be '{new}' ({why})"

    line, found, rules = _NOT_WORDS.sub(masked, text.text), [], RULES
    if text.kind == "output":
        pieces = re.split(r"\s{2,}", line)
    elif text.kind == "code":
        pieces = [line]
    else:
        rules = RULES + PROSE
        if (right := _with_bold_that_ends(line)) != line:
            found.append(said(line, right, "Markdown elsewhere does not see bold begin or end here"))
        # **a heading in the line。** has a space after it
        pieces = re.split(rf"(?<=[{_STOP}”])\*\* ", line)
        pieces = [re.sub(r"\*\*|(?<!\w)\*(?=\S)|(?<=\S)\*(?!\w)", "", piece) for piece in pieces]
    for piece in pieces:
        if not HAN.search(piece) or piece in EXEMPT:
            continue
        if (better := _HALF.sub(lambda match: unicodedata.normalize("NFKC", match[0]), piece)) != piece:
            found.append(said(piece, better, "half-width letters and digits"))
            piece = better
        for why, wrong, right in rules:
            better = re.sub(wrong, right, piece)
            if better != piece:
                found.append(said(piece, better, why))
            piece = better
        if (better := autocorrect_py.format(piece)) != piece:
            found.append(said(piece, better, "autocorrect"))
    return found


def _with_bold_that_ends(line: str) -> str:
    """The line with **stops**, and “**quotation marks**”, outside the bold where CommonMark wants it so.

    There ** beside a mark neither begins nor ends bold, unless a space or another mark is on its other side.
    """

    def is_word(character: str) -> bool:
        return bool(character) and unicodedata.category(character)[0] not in "PSZ"

    def mended(match: re.Match[str]) -> str:
        words, before, after = match[1], line[: match.start()][-1:], line[match.end() :][:1]
        start, end = "", ""
        if is_word(after) and not is_word(words[-1]):
            words, end = words[:-1], words[-1]
        if is_word(before) and not is_word(words[0]):
            words, start = words[1:], words[0]
        return f"{start}**{words}**{end}"

    return re.sub(r"\*\*([^*]+)\*\*", mended, line)


def _around(old: str, new: str) -> tuple[str, str]:
    """The part of both texts in which they differ, with a few characters on either side."""
    changes = [op for op in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if op[0] != "equal"]
    _, a, b, c, d = changes[0]
    left = min(a, 8)
    return _whole(old, a - left, b + 8), _whole(new, c - left, d + 8)


def _whole(text: str, start: int, end: int) -> str:
    """A part of a text that cuts no mask in two."""
    for mask in _MASK.finditer(text):
        if mask.start() < start < mask.end():
            start = mask.start()
        if mask.start() < end < mask.end():
            end = mask.end()
    return text[start:end]


# --- Where there is Chinese ---------------------------------------------------------------------------------

_ADMONITION = re.compile(r"\s*(?:!!!|\?\?\?\+?|===)\s+(?:[\w-]+\s+)?\"(.*)\"\s*$")


def of_markdown(source: str, path: str) -> Iterator[Text]:
    """The Chinese of a page: front matter, prose, captions, strings and comments in code, printed output.

    Bodies of admonitions are indented, which autocorrect takes for code; here every line stands by itself.
    """
    page = pages.parse(source, Path(path))
    lines = source.split("\n")
    if lines[0] == "---":
        end = lines.index("---", 1)
        yield from of_yaml("\n".join(lines[1:end]), path, 1)
        lines[: end + 1] = [""] * (end + 1)
    for figure in page.figures:
        yield Text(path, figure.line, figure.caption, "caption")
        yield Text(path, figure.line + 1, figure.description, "caption")
    for table in page.tables:
        yield Text(path, table.line, table.caption, "caption")
    for fence in page.fences:
        body = lines[fence.line : fence.end - 1]  # the fence's own code has lost its blank lines, if indented
        lines[fence.line - 1 : fence.end] = [""] * (len(body) + 2)
        if fence.info == "python":
            code = textwrap.dedent("\n".join(body))
            yield from of_python(code, path, fence.line, docstrings=True)
        else:
            for number, line in enumerate(body, fence.line + 1):
                yield Text(path, number, line.strip(), "output")
    formula = False
    for number, line in enumerate(lines, 1):
        formula ^= line.strip() == "$$"
        if not formula and not line.lstrip().startswith("<!--"):
            yield from (Text(path, number, words, kind) for words, kind in _of_line(line))


def _of_line(line: str) -> Iterator[tuple[str, str]]:
    """The words of a line of Markdown, without its marks; emphasis is left."""
    if match := _ADMONITION.match(line):
        yield match[1], "title"
        return
    kind = "title" if line.lstrip().startswith("#") else "prose"
    line = re.sub(r"^\s*(?:#+|[-*+]|\d+\.|>|:)\s+", "", line)
    line = re.sub(r"\s*\{[^{}]*\}\s*$", "", line) if kind == "title" else line
    line = re.sub(
        r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^()]*(?:\([^()]*\)[^()]*)*\)(?:\{[^{}]*\})?", r"\1", line
    )
    line = re.sub(r"\$\$.*?\$\$|</?[a-z][^<>]*>", "", line)
    for cell in line.strip().strip("|").split(" | ") if line.lstrip().startswith("|") else [line]:
        yield cell.strip(), kind


def of_python(source: str, path: str, before: int = 0, *, docstrings: bool = False) -> Iterator[Text]:
    """Comments and strings, and the docstrings of a page; `before` is the number of lines above the code."""
    if not HAN.search(source) and "\\u" not in source:
        return
    for token in tokenize.generate_tokens(io.StringIO(source + "\n").readline):
        if token.type == tokenize.COMMENT:
            yield Text(path, before + token.start[0], token.string.lstrip("# "), "code")
    nodes = list(ast.walk(ast.parse(source)))
    said = {id(node.value) for node in nodes if isinstance(node, ast.Expr) and not docstrings}
    inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            words = node.value
        elif isinstance(node, ast.JoinedStr):
            words = "".join(
                str(part.value)
                if isinstance(part, ast.Constant)
                else f"{{{_BRACES.sub('', ast.unparse(part))}}}"
                for part in node.values
            )
        else:
            continue
        for offset, line in enumerate(words.split("\n") if id(node) not in said else []):
            yield Text(path, before + node.lineno + offset, line, "code")


def of_yaml(source: str, path: str, before: int = 0) -> Iterator[Text]:
    """Every scalar, keys too: titles in a navigation are keys."""
    for event in yaml.parse(source):
        if isinstance(event, yaml.ScalarEvent):
            yield Text(path, before + event.start_mark.line + 1, event.value, "title")


def of_template(source: str, path: str) -> Iterator[Text]:
    """What stands between tags, or between quotation marks in Jinja or JavaScript."""
    for number, line in enumerate(source.split("\n"), 1):
        for words in re.findall(r"[^\"'<>{}]+", line):
            yield Text(path, number, re.sub(r"%\w", "{}", words).strip())


def texts(root: Path = ROOT, only: Collection[str] | None = None) -> list[Text]:
    """All Chinese lines of the book, or of these files."""

    def wanted(paths: Iterable[Path]) -> Iterator[tuple[Path, str]]:
        named = ((path, labs.source(path).relative_to(root).as_posix()) for path in paths)
        return ((path, name) for path, name in named if only is None or name in only)

    found: list[Text] = []
    readers = {".md": of_markdown, ".html": of_template, ".js": of_template, ".yml": of_yaml}
    files = [
        *(path for folder in ("zh", "solutions/zh") for path in (root / "docs" / folder).rglob("*.md")),
        *(root / "docs" / "home").glob("*.md"),
        root / "README.md",
        *root.glob("*.zh.md"),
    ]
    files += [*(root / "docs" / "theme").rglob("*.html"), *(root / "docs" / "theme").rglob("*.js")]
    files += [root / "mkdocs.yml", root / "docs" / "sites" / "zh" / "mkdocs.yml"]
    for path, name in wanted(files):
        text = path.read_text(encoding="utf-8")
        if path.is_relative_to(root / "docs"):  # what is beside the books shows comments as examples
            text = made.filled(text, path.parent, docstrings=False)
        found += readers[path.suffix](text, name)
    for path, name in wanted(labs.of_book(root / "docs" / "zh")):
        found += of_markdown(labs.text(path), name)
    python = ["posenc/plot/*.py", "posenc/exercises/*.py", "docs/press/[!c]*.py"]
    for path, name in wanted(path for kind in python for path in root.glob(kind)):
        found += of_python(path.read_text(encoding="utf-8"), name)
    found = [text for text in found if HAN.search(text.text)]
    return sorted(found, key=lambda text: (text.path, text.line))
