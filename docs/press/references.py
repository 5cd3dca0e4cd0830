"""The papers of the book, from docs/references.bib: which page cites which, and what each contributed.

A page cites a paper by its address, or where it has none by its title, in the list of its sources:

    - Ashish Vaswani et al., *Attention Is All You Need*, 2017. [arXiv:1706.03762](https://arxiv.org/abs/1706.03762)

The build puts the key behind it, `vaswani2017`, which leads to the entry on the page of references. An entry of the
file is what BibTeX has, a field a line, and `en` and `zh`: what the paper contributed, a sentence in each language.
"""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from press import BookError
from press.cache import ROOT
from press.pages import CHINESE, front_matter, loaded

BIB = ROOT / "docs" / "references.bib"
PAGE = "references.md"
_ENTRY = re.compile(r"@(\w+)\{(\w+),\n((?:  \w+ = \{.*\},\n)+)\}\n")
_FIELD = re.compile(r"  (\w+) = \{(.*)\},\n")
_SOURCES = re.compile(r"^(## .*\{#sources\}\n)(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
_ADDRESSES = {"eprint": "https://arxiv.org/abs/", "doi": "https://doi.org/", "url": ""}
_NAMES = {"eprint": "arXiv:{}", "doi": "doi:{}", "url": "{}"}
_WORDS = {  # and others, between names, after the names, after the sentence, cited in
    "en": (" et al.", ", ", ", ", ". ", " ", "Cited in: "),
    "zh": (" 等", "、", "，", "。", "", "引用它的有："),
}


@dataclass(frozen=True)
class Entry:
    """A paper: what BibTeX calls its kind, its key and its fields."""

    kind: str
    key: str
    fields: Mapping[str, str]

    @property
    def title(self) -> str:
        return self.fields["title"].strip("{}")

    @cached_property  # asked for by every item of every list of sources
    def link(self) -> str:
        """Where it is, as Markdown: `[arXiv:1706.03762](https://arxiv.org/abs/1706.03762)`; "" where nobody says."""
        found = [name for name in _ADDRESSES if name in self.fields]
        value = self.fields[found[0]] if found else ""
        name = _NAMES[found[0]].format(value) if found else ""
        shown = re.sub(r"https?://([^/]+)/.*", r"\1", name)
        return f"[{shown}]({_ADDRESSES[found[0]]}{value})" if found else ""

    @cached_property
    def _named(self) -> str:
        return self.link.partition("]")[2] or f"*{self.title}*"

    def cited_by(self, source: str) -> bool:
        """Whether an item in a list of sources, or one of several, is this paper."""
        return self._named in source

    def bibtex(self) -> str:
        return _bibtex(self.kind, self.key, {k: v for k, v in self.fields.items() if k not in _WORDS})


def read(text: str) -> list[Entry]:
    """The entries of such a file.

    Raises:
        BookError: where something in it is not of the form above.
    """
    if odd := _ENTRY.sub("", text).strip():
        raise BookError(f"docs/references.bib: this is no entry with a field a line: {odd.splitlines()[0]}")
    return [Entry(kind, key, dict(_FIELD.findall(fields))) for kind, key, fields in _ENTRY.findall(text)]


@cache
def entries() -> tuple[Entry, ...]:
    return tuple(read(BIB.read_text(encoding="utf-8")))


def with_keys(markdown: str) -> str:
    """A page with the key of each paper behind it, in the list of sources."""

    def keyed(match: re.Match[str]) -> str:
        return match[1] + re.sub(
            r"^- .*$", lambda item: item[0] + _keys(item[0]), match[2], flags=re.MULTILINE
        )

    return _SOURCES.sub(keyed, markdown)


def _keys(source: str) -> str:
    found = [entry.key for entry in entries() if entry.cited_by(source)]
    space = "" if source[-1] in "。）" else " "
    return "".join(f"{space}[{key}]({PAGE}#{key}){{.cite}}" for key in found)


def sources(markdown: str) -> Iterator[tuple[int, str]]:
    """The items in the list of sources of a page, with their lines."""
    for found in _SOURCES.finditer(markdown):
        first = markdown.count("\n", 0, found.start(2)) + 1
        yield from ((n, line) for n, line in enumerate(found[2].split("\n"), first) if line.startswith("- "))


def of_book(book: Path) -> dict[str, list[str]]:
    """The sources of each page of a book, by its name."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in sorted(book.glob("*.md"))}
    return {name: [item for _, item in sources(text)] for name, text in texts.items()}


# --- The page of references ---------------------------------------------------------------------------------


def listed(book: Path) -> str:
    """All papers, in the order of the file, each with its sentence, the pages that cite it, and its BibTeX."""
    others, comma, after, stop, space, cited = _WORDS[book.name]
    items = {name: "\n".join(found) for name, found in of_book(book).items() if found}
    titles = {name: front_matter((book / name).read_text(encoding="utf-8"))[0]["title"] for name in items}
    lines = []
    for entry in entries():
        names = (
            re.sub(r"[{}]", "", entry.fields["author"]).removesuffix(" and others").replace(" and ", comma)
        )
        names += others if entry.fields["author"].endswith(" and others") else ""
        where = [name for name, found in items.items() if entry.cited_by(found)]
        links = comma.join(f"[{titles[name]}]({name}#sources)" for name in where)
        what = f"**{names}**{after}*{entry.title}*{after}{entry.fields['year']}{stop}"
        journal = f"*{entry.fields['journal']}*{stop}" if "journal" in entry.fields else ""
        link = f"{entry.link}{stop}" if entry.link else ""
        said = f"{journal}{link}{entry.fields[book.name]}{space}{cited}{links}{stop.strip()}"
        lines.append(f"- {what}{said}\n    {{#{entry.key}}}\n")
        lines.append(_folded(entry))
    return "\n".join(lines)


def book_entry(book: Path) -> str:
    """The book itself, from CITATION.cff, and where all entries are as one file."""
    cited = loaded((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    fields = {
        "author": "{posenc authors}",
        "title": f"{{{cited['title']}}}",
        "year": str(cited["date-released"])[:4],
    }
    entry = _bibtex("misc", "posenc", fields | {"version": str(cited["version"])})
    link = f'<p class="downloads"><a href="../{BIB.name}" download><code>{BIB.name}</code></a></p>'
    return f"```text\n{entry}```\n\n{link}"


def _folded(entry: Entry) -> str:
    code = textwrap.indent(f"```text\n{entry.bibtex()}```\n", "    ")
    return textwrap.indent(f'??? quote bibtex "BibTeX: {entry.key}"\n\n{code}', "    ")


def _bibtex(kind: str, key: str, fields: Mapping[str, str]) -> str:
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}", ""])


def exported() -> str:
    """The file without what only the page shows, for a reader's own papers."""
    return "\n".join(entry.bibtex() for entry in entries())


# --- What is wrong ------------------------------------------------------------------------------------------


def unknown(source: str) -> bool:
    """Whether an item in a list of sources is a paper, by its address or its title and year, that no entry has."""
    is_paper = re.search(
        r"\]\(https://(?:arxiv\.org/abs|doi\.org)/|\*[A-Z][^*]+\*.*\b(?:19|20)\d\d\b", source
    )
    addresses = re.findall(r"\(https://(?:arxiv\.org/abs|doi\.org)/[^)]+\)", source)
    known = [entry for entry in entries() if entry.cited_by(source)]
    return bool(is_paper) and len(known) < max(1, len(addresses))


def faults(papers: Iterable[Entry], books: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """What is wrong with entries: no sentence in a language, or no source of a page of that book names the paper."""
    seen = set[str]()
    for entry in papers:
        if entry.key in seen:
            yield f"docs/references.bib: the key {entry.key} stands there twice"
        seen.add(entry.key)
        for language, cited in books.items():
            sentence = entry.fields.get(language, "")
            if not sentence.endswith((".", "。")) or bool(CHINESE.search(sentence)) != (language == "zh"):
                yield f"docs/references.bib: {entry.key} has no sentence in {language}"
            if not any(entry.cited_by(source) for source in cited):
                yield f"docs/references.bib: {entry.key} is cited by no page in {language}"
