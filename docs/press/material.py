"""What the book changes in Material for MkDocs, and on which words of Material each change relies.

All of it stands here, so that a new version cannot undo a change without a word: `broken` looks at
each build, and a test says which one it is. What is only styled (book.css) is seen in a browser.
"""

import importlib.resources
import os
import re
from dataclasses import dataclass
from pathlib import Path

import jinja2

CUT = r'\[\.\.\.\w+\((\w+),this\.index\.invertedIndex\)\]\.join\("\* "\)'
QUERY = r"\(e=e\.replace\("
HAN = r'"\\\\p\{sc=Han\}\+"'
IDS = r"(\.edges\[\w\];(\w)=\2\+\w\+\w\.id)\}"
SCORE = (
    r"matchData:(\w)\}\)=>\{let (\w)=this\.map\.get\((\w)\);(.*?)"
    r"score:(\w)\*\(1\+(\w)\((\w),2\)\),terms:(\w)\}"
)
_BUNDLE = "templates/assets/javascripts/bundle.*.min.js"
_WORKER = "templates/assets/javascripts/workers/search.*.min.js"
_BASE = "templates/base.html"


@dataclass(frozen=True)
class Patch:
    """A change, where it is made, and the words in a file of Material that it relies on."""

    change: str
    by: str
    file: str
    relies_on: str  # a regular expression that is found exactly once


_HEADER, _BOTH = "templates/partials/header.html", "theme/main.html, theme/404.html"
_BY = {  # by whom, in which file: what is changed, and the words that it relies on
    ("press/search.py", _WORKER): {
        "a query in Chinese is cut into the words of the index": CUT,
        "so is a name with underscores, which is looked for among tags, too": HAN,
        "a query loses its stop words": QUERY,
        "a claim or an exercise of which most words are entered comes first": SCORE,
        "words with digits in them are told apart": IDS,
        "what it loads for other languages is left out": r"lunr\.stemmer\.support\.min\.js",
    },
    ("press/search.py", "plugins/search/plugin.py"): {"tags stay with the page": r'entry\["tags"\] = \[\]'},
    ("press/search.py", _BUNDLE): {
        "the index is a script on pages from disk": r"search/search_index\.js\b.{0,40}__index"
    },
    ("theme/main.html", _BASE): {
        "a quotation mark in a description is escaped": (
            r'<meta name="description" content="\{\{ page\.meta\.description \}\}">'
        ),
        "the page is shown before its script runs": (
            r"(?s)block scripts %\}\s*<script src=\"\{\{ 'assets/javascripts/bundle"
        ),
    },
    (_BOTH, _BASE): {
        f"the block {name} is ours": rf"\{{% block {name} %\}}"
        for name in ("site_meta", "htmltitle", "extrahead", "content", "scripts")
    },
    ("theme/partials/alternate.html", _HEADER): {
        "the switch leads to the same page of the other book": r'\{% include "partials/alternate\.html" %\}'
    },
    ("theme/book.js", _BUNDLE): {
        "the index is fetched when somebody searches": r"search/search_index\.json",
        "the index is fetched by XMLHttpRequest": r"new XMLHttpRequest",
        "the search runs in a frame on pages from disk": r"new Worker\(",
        "what is pasted is searched for": r'h\(e,"keyup"\)',
        "copying takes continued blocks along": r"\[data-clipboard-target\], \[data-clipboard-text\]",
        "the buttons of all blocks come at once": r"`__code_\$\{\w+\}`",
    },
    ("theme/book.js", _HEADER): {
        f"{box} opens by keyboard": rf'<label class="md-header__button md-icon" for="{box}">'
        for box in ("__drawer", "__search")
    },
    ("theme/book.js", "templates/partials/search.html"): {
        "the search has a name for a screen reader": r'class="md-search"'
    },
    ("press/offline/pdf.py", "templates/partials/copyright.html"): {
        "the PDF has the imprint of the book": r"md-copyright__highlight"
    },
}
PATCHES = [
    Patch(change, *place, words) for place, changes in _BY.items() for change, words in changes.items()
]


def material() -> Path:
    """The folder of the installed package."""
    return Path(str(importlib.resources.files("material")))


def broken(package: Path) -> list[str]:
    """The changes that a version of Material undoes, and the words that are gone."""
    found = []
    for patch in PATCHES:
        text = "".join(path.read_text(encoding="utf-8") for path in package.glob(patch.file))
        if len(re.findall(patch.relies_on, text)) != 1:
            place = f"{patch.by}: {patch.change}"
            found.append(f"{place}: Material's {patch.file} has no longer {patch.relies_on}")
    return found


class Templates(jinja2.FileSystemLoader):
    """Finds icons, but does not list them: MkDocs would go through fourteen thousand in each build, and take none."""

    def list_templates(self) -> list[str]:
        """
        >>> found = Templates(material() / "templates").list_templates()
        >>> "main.html" in found, [name for name in found if name.startswith(".icons")]
        (True, [])
        """
        found = set()
        for folder in self.searchpath:
            for path, inner, files in os.walk(folder):
                inner[:] = [name for name in inner if not name.startswith(".")]
                found |= {Path(path, name).relative_to(folder).as_posix() for name in files}
        return sorted(found)
