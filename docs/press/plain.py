"""The text of a page as others read Markdown: without what only the build and the site know."""

import re
from urllib.parse import urljoin

from press.pages import Page

FIGURE = {"en": "Figure: ", "zh": "图："}
_FOLDED = re.compile(r'^\?\?\?\+? \w+ "(.*)"\n((?:\n|    .*(?:\n|\Z))*)', re.MULTILINE)
_AS_IT_IS = r"((`+)(?!`).+?(?<!`)\2(?!`)|\$\$.+?\$\$|\$[^$]+\$)"  # code and formulas
_ID = re.compile(rf"{_AS_IT_IS}| *\{{#[\w-]+\}}", re.DOTALL)
_TITLE = r'(?: "[^"]*")?'  # what a link says when it is pointed at
_LINK = re.compile(rf"{_AS_IT_IS}|\]\(([^()\s]+){_TITLE}\)", re.DOTALL)
_LINKED = re.compile(rf"{_AS_IT_IS}|\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^()\s]+{_TITLE}\)", re.DOTALL)


def captioned(page: Page, language: str, description: bool = True) -> list[str]:
    """The lines of a page, figures and tables as their captions, without the comments for the build."""
    lines = page.text.split("\n")
    for number in page.directives:
        lines[number - 1] = ""
    for fence, table in page.shown_as_tables:
        for number in (fence.line, fence.end):
            lines[number - 1] = ""
        lines[table.line - 1] = f"*{table.caption}*"
    for figure in page.figures:
        text = f"{figure.indent}*{FIGURE[language]}{figure.caption}*"
        lines[figure.line - 1] = f"{text} {figure.description}".rstrip() if description else text
    return lines


def without_looks(body: str) -> str:
    """Markdown without the boxes of the front page, links to what lies beside a page, and the looks of paragraphs."""
    body = re.sub(r'(?m)^(?:</?(?:div|section)\b|<p class="downloads").*>$', "", body).replace("<br>", " ")
    body = re.sub(r'<span lang="\w+" data-search-exclude>(.*?)</span>|</?small>', r"\1", body)
    body = re.sub(r"(?<=\))\{\.\w+\}|(?m:^\{: .+ \}\n)", "", body)
    return re.sub(r"\n{3,}", "\n\n", body).strip()


def unfolded(body: str) -> str:
    r"""Markdown whose notes and questions are paragraphs.

    >>> unfolded('??? question "Why?"\n\n    Because.\n\nNext.\n')
    '**Why?**\n\nBecause.\n\nNext.\n'
    """
    return _FOLDED.sub(lambda note: f"**{note[1]}**\n" + re.sub(r"(?m)^    ", "", note[2]), body)


def without_ids(body: str) -> str:
    """Markdown whose headings and rows have no ids.

    >>> without_ids("## Why `{#a}` {#why}")
    '## Why `{#a}`'
    """
    return _ID.sub(lambda match: match[1] or "", body)


def with_addresses(body: str, page: str) -> str:
    """Markdown of the page at this address whose links hold wherever it lies.

    >>> with_addresses('[a](b.md#c "A"), [d](#e) and `f[0](g)`', "https://x.org/en/y.md")
    '[a](https://x.org/en/b.html#c), [d](https://x.org/en/y.html#e) and `f[0](g)`'
    """

    def lead(match: re.Match[str]) -> str:
        address = urljoin(page, match[3] or "")
        own = address.startswith(page.rpartition("/")[0])
        return match[1] or f"]({re.sub(r'[.]md(?=#|$)', '.html', address) if own else address})"

    return _LINK.sub(lead, body)


def without_links(body: str) -> str:
    """Markdown whose links are their words.

    >>> without_links("see [the [1] page](a.md) and `b[0](c)`")
    'see the [1] page and `b[0](c)`'
    """
    return _LINKED.sub(lambda match: match[1] or match[3], body)
