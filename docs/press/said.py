"""What the chapters say is commonly said and false, gathered on one page without a copy: `<!-- said -->`.

Each chapter has a section `{#false}` whose items begin with the saying in quotation marks. The list leads to the
chapters, and where the page's own table has the same saying, to its row.
"""

import re

from press.book import Book

PLACE = "<!-- said -->"
_SECTION = re.compile(r"^## [^\n]*\{#false\}\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_ITEM = re.compile(r'^(?:\*\*|- )["“](.+?)[.。]?["”]', re.MULTILINE)
_ROW = re.compile(r'^\| \[["“](.+?)["”]\]\([^()]*\)\{#(row-[\w-]+)\} \| (.+?) \|', re.MULTILINE)


def sayings(text: str) -> list[str]:
    """The sayings of a chapter, without their quotation marks.

    >>> sayings('## Said {#false}\\n\\n**"All is well."** It is not.\\n\\n- "So it is." No.\\n\\n## Next {#next}\\n')
    ['All is well', 'So it is']
    """
    section = _SECTION.search(text)
    return _ITEM.findall(section[1]) if section else []


def gathered(markdown: str, book: Book) -> str:
    """A page with the sayings of all chapters where it says so, each under its chapter."""
    if PLACE not in markdown:
        return markdown
    rows = {said: (row, verdict) for said, row, verdict in _ROW.findall(markdown)}
    lines = []
    for name in book.contents:
        if found := sayings(book.text(name)) if name.endswith(".md") else []:
            lines.append(f"\n[{book.titles[name]}]({name}#false)\n")
            for said in found:
                row, verdict = rows.get(said, ("", ""))
                lines.append(f"- {said}" + (f" → [{verdict}](#{row})" if row else ""))
    return markdown.replace(PLACE, "\n".join(['<div class="said" markdown>', *lines, "</div>"]))
