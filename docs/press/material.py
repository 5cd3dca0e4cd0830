"""What the book changes in Material for MkDocs, and on which words of Material each change relies.

All of it stands here, so that a new version cannot undo a change without a word: `broken` looks at
each build, and a test says which one it is. What is only styled (book.css) is seen in a browser.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

CUT = r'\[\.\.\.\w+\((\w+),this\.index\.invertedIndex\)\]\.join\("\* "\)'
_BUNDLE = "templates/assets/javascripts/bundle.*.min.js"
_WORKER = "templates/assets/javascripts/workers/search.*.min.js"
_BASE = "templates/base.html"


@dataclass(frozen=True)
class Patch:
    """A change, where it is made, and the words in a file of Material that it relies on."""

    change: str
    by: str
    file: str
    relies_on: str  # a regular expression that is found exactly `times`
    times: int = 1


PATCHES = (
    Patch("a query in Chinese is cut into the words of the index", "press/search.py", _WORKER, CUT),
    Patch(
        "tags stay with the page", "press/search.py", "plugins/search/plugin.py", r'entry\["tags"\] = \[\]'
    ),
    Patch(
        "a quotation mark in a description is escaped",
        "theme/main.html",
        _BASE,
        r'<meta name="description" content="\{\{ page\.meta\.description \}\}">',
    ),
    Patch(
        "the page is shown before its script runs",
        "theme/main.html",
        _BASE,
        r"(?s)block scripts %\}\s*<script src=\"\{\{ 'assets/javascripts/bundle",
    ),
    *(
        Patch(
            f"the block {name} is ours", "theme/main.html, theme/404.html", _BASE, rf"\{{% block {name} %\}}"
        )
        for name in ("site_meta", "htmltitle", "extrahead", "content", "scripts")
    ),
    Patch(
        "the switch leads to the same page of the other book",
        "theme/partials/alternate.html",
        "templates/partials/header.html",
        r'\{% include "partials/alternate\.html" %\}',
    ),
    Patch(
        "the index is fetched when somebody searches", "theme/book.js", _BUNDLE, r"search/search_index\.json"
    ),
    Patch("the index is fetched by XMLHttpRequest", "theme/book.js", _BUNDLE, r"new XMLHttpRequest"),
    Patch(
        "the index is a script on pages from disk",
        "press/search.py",
        _BUNDLE,
        r"search/search_index\.js\b.{0,40}__index",
    ),
    Patch("the search runs in a frame on pages from disk", "theme/book.js", _BUNDLE, r"new Worker\("),
    Patch("what is pasted is searched for", "theme/book.js", _BUNDLE, r'h\(e,"keyup"\)'),
    Patch(
        "copying takes continued blocks along",
        "theme/book.js",
        _BUNDLE,
        r"\[data-clipboard-target\], \[data-clipboard-text\]",
    ),
    Patch("the buttons of all blocks come at once", "theme/book.js", _BUNDLE, r"`__code_\$\{\w+\}`"),
    *(
        Patch(
            f"{box} opens by keyboard",
            "theme/book.js",
            "templates/partials/header.html",
            rf'<label class="md-header__button md-icon" for="{box}">',
        )
        for box in ("__drawer", "__search")
    ),
    Patch(
        "the search has a name for a screen reader",
        "theme/book.js",
        "templates/partials/search.html",
        r'class="md-search"',
    ),
    Patch(
        "the PDF has the imprint of the book",
        "press/offline/pdf.py",
        "templates/partials/copyright.html",
        r"md-copyright__highlight",
    ),
)


def material() -> Path:
    """The folder of the installed package."""
    found = importlib.util.find_spec("material")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("the package mkdocs-material is not installed")
    return Path(found.origin).parent


def broken(package: Path) -> list[str]:
    """The changes that a version of Material undoes, and the words that are gone."""
    found = []
    for patch in PATCHES:
        text = "".join(path.read_text(encoding="utf-8") for path in package.glob(patch.file))
        if len(re.findall(patch.relies_on, text)) != patch.times:
            found.append(
                f"{patch.by}: {patch.change}: Material's {patch.file} has no longer {patch.relies_on}"
            )
    return found
