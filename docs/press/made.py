"""What stands in a file once and on a page of each book: `<!-- made: terms -->` is where it goes.

terms, words       the glossary and its words in both languages side by side, from docs/terms.yml (glossary.py)
references, book   the papers and the book itself, from docs/references.bib and CITATION.cff (references.py)
weeks, week        the plan of a course and one of its weeks, from the minutes of pages and exercises (course.py)
api                the names of posenc, from their docstrings: all, or of a section of the reference (reference.py)

And behind each paper among the sources of a page its key, and a link from what is said and false to where it is
measured.
"""

import re
from collections.abc import Callable
from pathlib import Path

from press import BookError, course, exercises, glossary, reference, references, said
from press.languages import LANGUAGES
from press.pages import Page, parse

MADE: dict[str, Callable[..., str]] = {
    "terms": glossary.listed,
    "words": glossary.side_by_side,
    "references": references.listed,
    "book": references.book_entry,
    "exercises": exercises.listed,
    "weeks": course.table,
    "week": course.listed,
    "api": reference.made,
}
_PLACE = re.compile(r"^<!-- made: (\w+)(?: ([\w.]+))? -->$", re.MULTILINE)


def filled(markdown: str, book: Path, docstrings: bool = True) -> str:
    """The page with what is made for it; `book` is the folder of its book, or one in it."""
    book = next((folder for folder in (book, *book.parents) if folder.name in LANGUAGES), book)

    def made(match: re.Match[str]) -> str:
        if match[1] not in MADE:
            raise BookError(
                f"<!-- made: {match[1]} -->: nothing of this name is made, only {', '.join(MADE)}"
            )
        if match[1] == "api" and not docstrings:
            return match[0]
        return MADE[match[1]](book, *filter(None, [match[2]]))

    return _PLACE.sub(made, said.linked(exercises.filled(references.with_keys(markdown), book), book))


def whole(page: Page) -> Page:
    """The page as readers have it: the checks read what is made, too, but for docstrings (check/reference.py)."""
    return (
        parse(filled(page.text, page.path.parent, docstrings=False), page.path)
        if _PLACE.search(page.text)
        else page
    )
