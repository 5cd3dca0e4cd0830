"""The blocks that a reader takes along: a method as plain code, with the name of its file and its licence.

They stand at the ends of chapters; what makes a block one of them is its first line:

    # rope.py: MIT licence, posenc authors

A page collects them without holding a copy: `<!-- take: rotary -->` is where those of the chapter rotary.md go,
each with its output and a link to itself as a file, take/rope.py.
"""

import re
from pathlib import Path

from press import BookError
from press.pages import Page, Unit, read

_HEAD = re.compile(r"# (\w+)\.py\W ?MIT .*posenc .*\n")  # in both languages
_PLACE = re.compile(r"^<!-- take: (.*) -->$", re.MULTILINE)


def snippets(page: Page) -> dict[str, Unit]:
    """The blocks of a page that are to be taken along, by name.

    >>> from press.pages import parse
    >>> fence = "```python\\n# {}.py: MIT licence, posenc authors\\n```\\n"
    >>> list(snippets(parse(fence.format("rope") + fence.format("alibi"))))
    ['rope', 'alibi']
    """
    return {match[1]: unit for unit in page.blocks if (match := _HEAD.match(unit.code))}


def chapters(markdown: str) -> list[str]:
    """The chapters whose blocks a page collects."""
    return _PLACE.findall(markdown)


def filled(markdown: str, book: Path, *, links: bool = False) -> str:
    """A page with the blocks of the chapters that it names; with links to their files, or without."""

    def blocks(match: re.Match[str]) -> str:
        parts = []
        for name, unit in _of_chapter(match[1], book).items():
            if links:
                link = f'<a href="take/{name}.py" download><code>{name}.py</code></a>'
                parts.append(f'<p class="downloads">{link}</p>')
            parts.append(f"```python\n{unit.code}```")
            if unit.expected is not None:
                shown = f"```text\n{unit.expected}```"
                parts += ["<!--pytest-codeblocks:expected-output-->", shown]
        return "\n\n".join(parts)

    return _PLACE.sub(blocks, markdown)


def files(markdown: str, book: Path) -> dict[str, str]:
    """Each block that a page collects as a file of its own: 'take/rope.py' and its code."""
    return {
        f"take/{name}.py": unit.code
        for chapter in chapters(markdown)
        for name, unit in _of_chapter(chapter, book).items()
    }


def _of_chapter(name: str, book: Path) -> dict[str, Unit]:
    path = book / f"{name}.md"
    found = snippets(read(path)) if path.is_file() else {}
    if not found:
        raise BookError(f"<!-- take: {name} -->: the chapter {name}.md has no block to be taken along")
    return found
