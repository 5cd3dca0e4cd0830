"""The words of the book, from docs/terms.yml, and the glossary: each with its twin, symbol, sentence and chapter."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path

from press.cache import ROOT
from press.pages import front_matter, loaded

FILE = ROOT / "docs" / "terms.yml"
_PIECES = re.compile(r'(<(?:span|div) class="arithmatex">.*?</(?:span|div)>|<[^>]+>)', re.DOTALL)
_TEXT = {"p", "li"}
_NO_TEXT = {"a", "b", "button", "code", "em", "figure", "pre", "script", "strong", "summary", "svg", "table"}


@dataclass(frozen=True)
class Term:
    """One idea: its word in both languages, a note in both, what it means, and what is not said for it.

    `says` is a sentence in each language, `where` the section that explains the term, `symbol` as on a page.
    `wrong` is looked for in small letters.
    """

    en: str
    zh: str
    note: tuple[str, str] = ("", "")
    says: tuple[str, ...] = ()
    where: str = ""
    symbol: str = ""
    plain: bool = False  # the word has other meanings, too
    wrong: tuple[re.Pattern[str], ...] = ()
    claim: bool = False

    @property
    def name(self) -> str:
        """The English word without its abbreviation."""
        return self.en.partition(" (")[0]

    @property
    def id(self) -> str:
        """Where the glossary has it."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower())


@cache
def terms() -> tuple[Term, ...]:
    """Every term, in the order of the file: first the words, then the claims."""
    return tuple(read(FILE.read_text(encoding="utf-8")))


def read(text: str) -> Iterator[Term]:
    """The terms in the text of such a file."""
    listed = loaded(text)
    for kind in ("terms", "claims"):
        for entry in listed.get(kind, []):
            english, chinese = entry.get("note", ("", ""))
            yield Term(
                entry["en"],
                entry["zh"],
                (english, chinese),
                tuple(entry.get("says", ())),
                entry.get("where", ""),
                entry.get("symbol", ""),
                entry.get("plain", False),
                # of a text in small letters: to disregard case takes three times as long
                tuple(re.compile(word, re.I if word != word.lower() else 0) for word in entry.get("not", [])),
                kind == "claims",
            )


def listed(book: Path) -> str:
    """All terms, in the order of the English alphabet, with an anchor each."""
    chinese, lines = book.name == "zh", []
    pages = {term.where.partition("#")[0] for term in _sorted() if term.where}
    titles = {page: front_matter((book / page).read_text(encoding="utf-8"))[0]["title"] for page in pages}
    for term in (
        term for term in _sorted() if len(term.says) == 2 and term.where
    ):  # the others `press check` names
        own = term.zh if chinese else term.en
        other = _foreign(term.name, "en") if chinese else _foreign(term.zh.partition(" (")[0], "zh")
        beside = ", ".join(filter(None, (other, term.symbol)))
        chapter = titles[term.where.partition("#")[0]]
        said = f"：{term.says[1]}" if chinese else f". {term.says[0]} "
        lines.append(f"- **{own}** ({beside}){said}[{chapter}]({term.where})\n    {{#{term.id}}}")
    return "\n".join(lines)


def _foreign(word: str, language: str) -> str:
    """A word of the other book: a search for it leads there."""
    return f'<span lang="{language}" data-search-exclude>{word}</span>'


def side_by_side(book: Path) -> str:
    """The words alone as a table, to print."""
    chinese = book.name == "zh"
    heads = "| 英文 | 中文 | 符号 |" if chinese else "| English | Chinese | Symbol |"
    rows = [
        f"| {_foreign(t.en, 'en') if chinese else t.en} | {t.zh if chinese else _foreign(t.zh, 'zh')} | {t.symbol} |"
        for t in _sorted()
    ]
    return "\n".join([heads, "|---|---|---|", *rows])


def _sorted() -> list[Term]:
    return sorted((term for term in terms() if not term.claim), key=lambda term: term.en.lower())


def linked(html: str, language: str, name: str) -> str:
    """A chapter whose first use of each term that it does not explain itself leads to the glossary.

    Only in running text: not in code, formulas, links, headings, bold or italics, and not among the sources.
    """
    text, mark, sources = html.partition('<h2 id="sources"')
    words = _words(language)
    pattern = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    pattern = rf"\b({pattern})(s?)\b" if language == "en" else f"({pattern})()"
    seen = {term.id for term in words.values() if term.where.partition("#")[0] == name}

    def link(match: re.Match[str]) -> str:
        term = words[match[1].lower()]
        if term.plain or term.id in seen or len(term.says) < 2:
            return match[0]
        seen.add(term.id)
        said = escape(term.says[language == "zh"].replace("$", ""))
        return f'<a class="term" href="glossary.html#{term.id}" title="{said}">{match[0]}</a>'

    pieces, inside, outside = _PIECES.split(text), 0, 0
    for k, piece in enumerate(pieces):
        if k % 2 and (tag := re.match(r"<(/?)(\w+)", piece)) and "arithmatex" not in piece:
            step = -1 if tag[1] else 1
            inside += step * (tag[2] in _TEXT)
            outside += step * (tag[2] in _NO_TEXT)
        elif not k % 2 and inside and not outside:
            pieces[k] = re.sub(pattern, link, piece, flags=re.IGNORECASE)
    return "".join(pieces) + mark + sources


@cache
def _words(language: str) -> dict[str, Term]:
    """All terms by the words of a language; plain ones, too, which hide no other term in them."""
    found: dict[str, Term] = {}
    for term in _sorted():
        for word in re.split(", |，", term.name if language == "en" else term.zh.partition(" (")[0]):
            found |= {word.lower(): term} if language == "en" or len(word) > 1 else {}
    return found
