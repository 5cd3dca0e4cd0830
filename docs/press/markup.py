"""What becomes of the Markdown of a page, and of the HTML that is made from it, for its readers.

Drawings are set aside while the search index is fed, which has no use for their words.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any

from press import BookError, cache, columns, figure_files, figures, labs, live, pages
from press.runtime import pyodide

if TYPE_CHECKING:
    from press.book import Book

PENDING = {
    "en": "Blocks of this page that have not run yet: {}. Drawings may be older until then; the page loads again.",
    "zh": "本页还有 {} 段代码没有运行；在此之前，图可能是旧的，也可能没有。运行完以后，页面会自己刷新。",
}
DRAFT = {
    "en": "This page is a draft: its counterpart in Chinese is missing, or does not say the same yet.",
    "zh": "本页是草稿：英文版还没有对应的一页，或者两边说的还不一样。",
}
BEHIND = {
    "en": "This page is behind its counterpart in Chinese, which has changed since. Where both differ, read that one.",
    "zh": "本页落后于英文版：英文版后来改过。两边不一致的地方，以英文版为准。",
}
_TOKEN = "POSENCFIGURE{}END"
# A drawing and the link to its file, whose name is no word to be found, either.
_DRAWING = re.compile(
    r'(?<=<figure class="plot">)<svg .*?</svg>|<a class="downloads" href="figures/[^>]*>.*?</a>(?=</figure>)',
    re.DOTALL,
)
_OUTPUT = re.compile(r'<div class="[\w -]*\boutput no-copy highlight">(.*?</pre>)</div>', re.DOTALL)
_TABLE = re.compile(
    r'(<figure class="table">\n)(<table>.*?</table>)(\s*<figcaption>(.*?)</figcaption>)', re.DOTALL
)
# Tokens that need no colour: plain names, blanks, punctuation, operators. They are most of all tokens.
_PLAIN = re.compile(r'<span class="[nopw]">([^<]*)</span>')
_LINES = re.compile(
    r'(<div class="output no-copy"><div class="highlight"><pre>(?:<span></span>)?<code>)([^<]*)'
)
_VERBATIM = re.compile(r"(<pre\b.*?</pre>|<script\b.*?</script>|<svg\b.*?</svg>)", re.DOTALL)


def marked(markdown: str, book: Book, name: str) -> str:
    """The page without the comments that are not for the reader, outputs marked, a place for each drawing."""
    parsed = pages.parse(markdown)
    lines = markdown.split("\n")
    if said := pyodide.attributes(parsed.blocks):
        book.run_in_page.add(name)
    for number in parsed.directives:
        lines[number - 1] = ""
    for unit in parsed.units:
        if (fence := unit.expected_fence) and unit.table:
            caption = f'<figcaption markdown="span">{escape(unit.table.caption)}</figcaption>'
            lines[fence.line - 1] = '<figure class="table" markdown="1">\n'
            lines[fence.end - 1] = f"\n{caption}\n</figure>"
        elif fence:
            indent = lines[fence.line - 1][: fence.indent]
            lines[fence.line - 1] = f"{indent}{'`' * fence.ticks} {{ .text .output .no-copy }}"
        for part in unit.parts:  # book.js copies one that is continued with what it continues
            fence, continued = part.fence, " .continued" * (part is not unit.parts[0])
            if extra := continued + said.get(fence.line, ""):
                indent = lines[fence.line - 1][: fence.indent]
                lines[fence.line - 1] = f"{indent}{'`' * fence.ticks} {{ .{fence.info}{extra} }}"
    ends = [part.fence.end for part in parsed.parts]
    labs.with_outputs(lines, ends, book.printed(name), "{ .text .output .no-copy }")
    # from the end, so that the numbers of the lines above stay
    for index, figure in reversed(list(enumerate(parsed.figures))):
        lines[figure.line - 1 : figure.line] = ["", figure.indent + _TOKEN.format(index), ""]
    return "\n".join(lines)


def with_outputs(content: str) -> str:
    """The page with its outputs in boxes of their own, and without spans and table heads that say nothing."""
    content = _TABLE.sub(_with_heads, content)
    content = _OUTPUT.sub(r'<div class="output no-copy"><div class="highlight">\1</div></div>', content)
    content = _PLAIN.sub(r"\1", content)
    content = _LINES.sub(lambda found: found[1] + "\n".join(columns.aligned(found[2].split("\n"))), content)
    return content.replace("<th></th>", "<td></td>")


def _with_heads(match: re.Match[str]) -> str:
    """A table that a block printed: it scrolls in a box of its own, and its rows have heads."""
    rows = re.sub(r"<tr>\n<td>(.*?)</td>", r'<tr>\n<th scope="row">\1</th>', match[2])
    # With a class, or Material would put it into a box of its own.
    rows = rows.replace("<th>", '<th scope="col">').replace("<table>", '<table class="answers">')
    name = match[4].replace('"', "&quot;")
    return f'{match[1]}<div role="region" tabindex="0" aria-label="{name}">{rows}</div>{match[3]}'


def with_figures(content: str, book: Book, name: str) -> str:
    """The page with its figures in their places, and above them, while serving, what is wrong with it."""
    prepared = book.prepared.get(name)
    if prepared is None:
        return re.sub(rf"<p>{_TOKEN.format('[0-9]+')}</p>", "", content)
    drawn = {figure.line: drawing for figure, drawing in prepared.drawings}
    for index, figure in enumerate(prepared.page.figures):
        place = f"<p>{_TOKEN.format(index)}</p>"
        if place not in content:
            raise BookError(
                f"{cache.shown(prepared.page.path)}:{figure.line}: the figure comment does not stand in a "
                "paragraph of its own; indent it as its block is indented"
            )
        link = figure_files.link(name, index + 1, book.language if figure.live else "")
        shown = _figure(figure, drawn.get(figure.line), book.language, f"plot-{index + 1}", link)
        content = content.replace(place, shown)
    content = _faults(prepared.faults) + content
    return with_pending(content, prepared.pending, book.language) if prepared.pending else content


def drawings_aside(content: str, book: Book, name: str) -> str:
    """The page with a mark for each drawing."""
    kept = book.drawings[name] = []

    def aside(match: re.Match[str]) -> str:
        kept.append(match[0])
        return f"<!--plot {len(kept) - 1}-->"

    return _DRAWING.sub(aside, content)


def drawings_back(output: str, book: Book, name: str) -> str:
    """The page with its drawings."""
    kept = book.drawings.get(name, [])
    return re.sub(r"<!--plot (\d+)-->", lambda match: kept[int(match[1])], output)


def squeezed(output: str) -> str:
    """The page without the blanks at the ends of its lines, and without empty lines; code stays as it is.

    >>> squeezed("<p>\\n\\n  one\\n</p><pre>a\\n\\n  b</pre>")
    '<p>\\none\\n</p><pre>a\\n\\n  b</pre>'
    """
    pieces = _VERBATIM.split(output)
    return "".join(
        re.sub(r"\s*\n\s*", "\n", piece) if k % 2 == 0 else piece for k, piece in enumerate(pieces)
    )


def lightened(code: str) -> str:
    """A style sheet or a script without what only its authors read: comments on lines of their own, and indentation.

    No template of a script may hold Python, or a line that begins like a comment.

    >>> lightened("/* Why. */\\na {\\n  color: red; /* red */\\n}\\n\\n  // how\\n")
    'a {\\ncolor: red; /* red */\\n}\\n'
    """
    code = re.sub(r"(?m)^[ \t]*(?:/\*(?s:.*?)\*/[ \t]*$|//.*$)", "", code)
    return re.sub(r"\s*\n\s*", "\n", code).lstrip()


def _figure(figure: pages.Figure, drawing: dict[str, Any] | None, language: str, name: str, link: str) -> str:
    if drawing is None:  # only while serving, and its fault is shown
        return ""
    description = figure.description or figures.described(drawing["axes"], language)
    shown = figures.figure(drawing["svg"], figure.caption, description, name)
    return live.wrapped(shown.removesuffix("</figure>") + f"{link}</figure>", figure)


def with_pending(html: str, count: int, language: str) -> str:
    """While serving: the page with how many of its blocks have not run yet, and how far it is."""
    said = PENDING[language].format(count)
    script = (
        "setInterval(async()=>{const r=await fetch('/progress.txt');"
        "if(r.ok)document.getElementById('progress').textContent=await r.text()},1000)"
    )
    return _noted(html, f'<p>{said} <span id="progress"></span></p><script>{script}</script>')


def with_draft(html: str, book: Book, name: str) -> str:
    """The page; where it is a draft, or behind its twin, it says so above its title."""
    said = [
        words[book.language]
        for key, words in (("draft", DRAFT), ("behind", BEHIND))
        if book.meta(name).get(key)
    ]
    return _noted(html, f"<p>{' '.join(said)}</p>") if said else html


def _noted(html: str, said: str) -> str:
    return html.replace("<h1", f'<div class="admonition note">{said}</div>\n<h1', 1)


def _faults(faults: list[pages.Fault]) -> str:
    if not faults:
        return ""
    rows = "\n".join(escape(f"{fault.line}: {fault.message}") for fault in faults)
    title = '<p class="admonition-title">mkdocs build</p>'
    return f'<div class="admonition failure">{title}<pre>{rows}</pre></div>\n'
