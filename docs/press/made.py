"""What stands in a file once and on a page of each book: `<!-- made: terms -->` is where it goes.

terms, words       the glossary and its words in both languages side by side, from docs/terms.yml (glossary.py)
references, book   the papers and the book itself, from docs/references.bib and CITATION.cff (references.py)

And behind each paper in the list of sources of a page its key.
"""

import re
from collections.abc import Callable
from pathlib import Path

from press import BookError, exercises, glossary, references
from press.pages import Page, parse

MADE: dict[str, Callable[[Path], str]] = {
    "terms": glossary.listed,
    "words": glossary.side_by_side,
    "references": references.listed,
    "book": references.book_entry,
    "exercises": exercises.listed,
}
_PLACE = re.compile(r"^<!-- made: (\w+) -->$", re.MULTILINE)


def filled(markdown: str, book: Path) -> str:
    """The page with what is made for it; `book` is the folder of its book, or that of its exercises."""
    book = book.parent if book.name == exercises.FOLDER else book

    def made(match: re.Match[str]) -> str:
        if match[1] not in MADE:
            raise BookError(
                f"<!-- made: {match[1]} -->: nothing of this name is made, only {', '.join(MADE)}"
            )
        return MADE[match[1]](book)

    return _PLACE.sub(made, exercises.filled(references.with_keys(markdown), book))


def whole(page: Page) -> Page:
    """The page as readers have it: the checks read what is made, too."""
    return parse(filled(page.text, page.path.parent), page.path) if _PLACE.search(page.text) else page
