"""The words of the book, from docs/terms.yml: which word is said for what, and what is not said for it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from press.cache import ROOT
from press.pages import CHINESE, Fault

# What is not the book's own wording: code, titles of papers in italics; what others say, in quotation marks.
_NOT_OURS = re.compile(
    r"`[^`\n]+`|(?<![\w*])\*(?=[^\s*])(?=[^*\n]*[A-Z])[^*\n\u3400-\u9fff]+(?<=[^\s*])\*(?!\*)"
)
_MARKUP = re.compile(
    r"\*\*|</?(?:a|b|i|em|strong|span)\b[^<>]*>|(?<=\])\([^()\s]*\)|[\[\]\u200b\u00ad]"
)  # inside a word, too
_QUOTED = re.compile(r"“[^“”\n]*”|\"[^\"\n]*\"")


@dataclass(frozen=True)
class Term:
    """One idea: its word in both languages, a note in both, and what is not said for it."""

    en: str
    zh: str
    note: tuple[str, str] = ("", "")
    wrong: tuple[re.Pattern[str], ...] = ()
    claim: bool = False


@cache
def terms() -> tuple[Term, ...]:
    """Every term, in the order of the file: first the words, then the claims."""
    return tuple(read((ROOT / "docs" / "terms.yml").read_text(encoding="utf-8")))


@cache
def _any_wrong() -> re.Pattern[str]:
    """Most lines have nothing wrong, and one look shows that."""
    wrong = (pattern.pattern for term in terms() for pattern in term.wrong)
    return re.compile("|".join(f"(?:{pattern})" for pattern in wrong), re.IGNORECASE)


def read(text: str) -> Iterator[Term]:
    """The terms in the text of such a file."""
    listed = yaml.safe_load(text)
    for kind in ("terms", "claims"):
        for entry in listed.get(kind, []):
            english, chinese = entry.get("note", ("", ""))
            yield Term(
                entry["en"],
                entry["zh"],
                (english, chinese),
                tuple(re.compile(wrong, re.IGNORECASE) for wrong in entry.get("not", [])),
                kind == "claims",
            )


def faults(text: str) -> list[Fault]:
    """Where a text says a thing otherwise than the book does."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        ours = _MARKUP.sub("", _NOT_OURS.sub(_blank, line))
        unquoted = _QUOTED.sub(_blank, ours)
        if not _any_wrong().search(f"{ours}\n{unquoted}"):
            continue
        for term in terms():
            for wrong in term.wrong:
                if match := wrong.search(unquoted if term.claim else ours):
                    said = term.zh if CHINESE.search(match[0]) else term.en
                    found.append(Fault(number, f"for '{match[0]}' the book says '{said}'"))
    return found


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
