"""What the chapters say is commonly said and false, gathered on one page without a copy: `<!-- said -->`.

Each chapter has a section `{#false}` whose items begin with the saying in quotation marks. The list leads to the
chapters, and where the page's own table has the same saying, to its row. A saying of a chapter leads there, too.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from press.book import Book

PLACE = "<!-- said -->"
_SECTION = re.compile(r"^## [^\n]*\{#false\}\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r'^(\*\*|- )(["“](.+?)[.。]?["”])', re.MULTILINE)
_ROW = re.compile(r'^\| \[["“](.+?)["”]\]\([^()]*\)\{#(row-[\w-]+)\} \| (.+?) \|', re.MULTILINE)


def sayings(text: str) -> list[str]:
    """The sayings of a chapter, without their quotation marks.

    >>> sayings('## Said {#false}\\n\\n**"All is well."** It is not.\\n\\n- "So it is." No.\\n\\n## Next {#next}\\n')
    ['All is well', 'So it is']
    """
    section = _SECTION.search(text)
    return [item[3] for item in _ITEM.finditer(section[1])] if section else []


def rows_of(claims: str) -> dict[str, tuple[str, str]]:
    """The row of each saying that has been measured, and its verdict."""
    return {said: (row, verdict) for said, row, verdict in _ROW.findall(claims)}


def linked(markdown: str, book: Path) -> str:
    """A page of the book in this folder, in which what is said and has been measured leads to its measurement."""
    section = _SECTION.search(markdown)
    if not section:
        return markdown
    rows = rows_of((book / "claims.md").read_text(encoding="utf-8"))

    def link(item: re.Match[str]) -> str:
        row, verdict = rows.get(item[3], ("", ""))
        return f'{item[1]}[{item[2]}](claims.md#{row} "{verdict}")' if row else item[0]

    return markdown[: section.start()] + _ITEM.sub(link, section[0]) + markdown[section.end() :]


def gathered(markdown: str, book: Book) -> str:
    """A page with the sayings of all chapters where it says so, each under its chapter."""
    if PLACE not in markdown:
        return markdown
    rows = rows_of(markdown)
    lines = []
    for name in book.contents:
        if found := sayings(book.text(name)) if name.endswith(".md") else []:
            lines.append(f"\n[{book.titles[name]}]({name}#false)\n")
            for said in found:
                row, verdict = rows.get(said, ("", ""))
                lines.append(f"- {said}" + (f" → [{verdict}](#{row})" if row else ""))
    return markdown.replace(PLACE, "\n".join(['<div class="said" markdown>', *lines, "</div>"]))
