"""The words of the book (glossary.py): which word is said for what, and what is not said for it."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from press.cache import ROOT
from press.glossary import Term, terms
from press.pages import CHINESE, Fault

# What is not the book's own wording: code, titles of papers in italics or BibTeX; what others say, in quotation marks.
_NOT_OURS = re.compile(
    r"`[^`\n]+`|^ *title = \{.*|(?<![\w*])\*(?=[^\s*])(?=[^*\n]*[A-Z])[^*\n\u3400-\u9fff]+(?<=[^\s*])\*(?!\*)",
    re.MULTILINE,
)
_MARKUP = re.compile(
    r"\*\*|</?(?:a|b|i|em|strong|span)\b[^<>\n]*>|(?<=\])\([^()\s]*\)|[\[\]\u200b\u00ad]"
)  # inside a word, too
_QUOTED = re.compile(r"“[^“”\n]*”|\"[^\"\n]*\"")


def unsaid(words: Iterable[Term]) -> Iterator[str]:
    """What the glossary lacks: a sentence in one of the languages, or the section that explains the term."""
    for term in words:
        said = (*term.says, "", "")[:2]
        for language, end, sentence in zip(("English", "Chinese"), ".。", said, strict=True):
            if not sentence.endswith(end) or bool(CHINESE.search(sentence)) != (language == "Chinese"):
                yield f"docs/terms.yml: '{term.en}' has no sentence in {language}"
        if not re.fullmatch(r"[\w/]+\.md#[\w-]+", term.where):
            yield f"docs/terms.yml: '{term.en}' does not say where it is explained"


def faults(text: str) -> list[Fault]:
    """Where a text says a thing otherwise than the book does."""
    found = []
    ours = _MARKUP.sub("", _NOT_OURS.sub(_blank, text)).lower()
    unquoted = _QUOTED.sub(_blank, ours)
    for term in terms():
        read = unquoted if term.claim else ours
        for match in (match for wrong in term.wrong for match in wrong.finditer(read)):
            said = term.zh if CHINESE.search(match[0]) else term.en
            line = read.count("\n", 0, match.start()) + 1
            found.append(Fault(line, f"for '{match[0]}' the book says '{said}'"))
    return sorted(found, key=lambda fault: fault.line)


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


def files(root: Path = ROOT) -> list[Path]:
    """What speaks to a reader beside the pages: templates, navigation, README.md, the package."""
    kinds = ("home/*.md", "theme/**/*.html", "sites/*/mkdocs.yml")
    found = [path for kind in kinds for path in (root / "docs").glob(kind)]
    return sorted([*found, *(root / "posenc").rglob("*.py"), root / "README.md", root / "mkdocs.yml"])


def everywhere() -> Iterator[str]:
    """Where the book says a thing otherwise than it does elsewhere, a line each."""
    for path in files():
        for fault in faults(path.read_text(encoding="utf-8")):
            yield f"{path.relative_to(ROOT).as_posix()}:{fault.line}: {fault.message}"
