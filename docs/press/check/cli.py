"""All checks of the sources, in one walk through the books, and what the blocks print.

    python -m press check                           # all pages and labs of both books, README.md, the words
    python -m press check order masks               # two chapters, in both languages
    python -m press check --run                     # runs the blocks, too, those that are not in the cache
    python -m press outputs                         # writes their outputs anew and shows what has changed

Exit status 1 where there is a fault. `outputs` leaves prose alone: decimals and percentages that no
output has any more are named (facts.py), other numbers are the author's to look after.
"""

import argparse
import itertools
from collections.abc import Iterator, Mapping

from press import cache, made, references
from press.cache import ROOT
from press.check import facts, pages, reference, terms, twins, update_outputs
from press.pages import Page, read
from press.running import outputs

Books = Mapping[str, Mapping[str, Page]]


def faults_of_books(books: Books) -> Iterator[str]:
    """The faults of all pages, a line each: page, line, what is wrong; what is made for a page counts its lines."""
    books = {
        language: {name: made.whole(page) for name, page in book.items()} for language, book in books.items()
    }
    for language, book in books.items():
        for page in book.values():
            for fault in pages.faults_of_page(page, language):
                yield f"{cache.shown(page.path)}:{fault.line}: {fault.message}"
    for name, page in books["en"].items():
        if name in books["zh"]:
            for fault in pages.faults_of_pair(page, books["zh"][name]):
                yield f"{cache.shown(books['zh'][name].path)}:{fault.line}: {fault.message}"


def faults_beside_pages() -> Iterator[str]:
    """Those of README.md and the words of the whole project."""
    readme = read(ROOT / "README.md")
    for fault in [*pages.census(readme), *pages.links(readme)]:
        yield f"README.md:{fault.line}: {fault.message}"
    for folder in (ROOT / "docs", ROOT / "docs" / "solutions"):
        yield from pages.same_files(folder / "en", folder / "zh")
    yield from terms.everywhere()
    yield from terms.unsaid(term for term in terms.terms() if not term.claim)
    cited = {language: references.of_book(ROOT / "docs" / language) for language in pages.LANGUAGES}
    sources = {language: [*itertools.chain(*found.values())] for language, found in cited.items()}
    yield from references.faults(references.entries(), sources)
    yield from reference.faults()


def faults_of_typography(only: set[str] | None) -> Iterator[str]:
    """Those of the Chinese of these files; for None, of the whole project."""
    try:
        from press.check import typography
    except ImportError as error:
        yield f"Chinese typography is not checked: {error}; it comes with `pip install -e '.[check]'`"
    else:
        for text in typography.texts(only=only):
            yield from typography.faults(text)


def faults_of_runs(books: Books, write: bool) -> Iterator[str]:
    """What blocks do otherwise than their pages say; with `write` outputs are written first."""
    runs = update_outputs.ran(books.values())
    for book in books.values():
        for page in book.values():
            if write and not page.is_lab and (text := update_outputs.updated(page, runs)) != page.text:
                print(update_outputs.difference(page, text), end="")
                page.path.write_text(text, encoding="utf-8")
                page = read(page.path)
            for unit in page.blocks:
                outcome = runs.outcome([part.code for part in unit.parts])
                for fault in outputs.faults(unit, outcome, page.is_lab):
                    yield f"{cache.shown(page.path)}:{fault.line}: {fault.message}"


def _wanted(names: list[str]) -> Books:
    """Both books as they are on disk, or the pages of these names."""
    labs = pages.labs_of_books()
    return pages.named(
        names, {language: {**book, **labs[language]} for language, book in pages.chapters().items()}
    )


def main(arguments: list[str], write: bool = False) -> int:
    """The command; gives its exit status. With `write` outputs are written first."""
    parser = argparse.ArgumentParser(prog="press check", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="pages, such as order; without any, everything")
    parser.add_argument("--run", action="store_true", help="run the blocks, too")
    wanted = parser.parse_args(arguments)
    try:
        books = _wanted(wanted.names)
    except ValueError as error:
        parser.error(str(error))
    found: list[str] = []
    if wanted.run or write:
        readme = {} if wanted.names else {"README.md": read(ROOT / "README.md")}
        found += faults_of_runs({**books, "": readme}, write)
    found += faults_of_books(_wanted(wanted.names))
    found += twins.faults(books, twins.confirmed())
    if not wanted.names:
        found += faults_beside_pages()
    named = {cache.shown(page.path) for page in books["zh"].values()} if wanted.names else None
    found += faults_of_typography(named)
    print(*dict.fromkeys(found), sep="\n", end="\n" if found else "")
    if drafts := [page.path for book in books.values() for page in book.values() if page.is_draft]:
        print("drafts:", *map(cache.shown, drafts))
    if behind := [page.path for book in books.values() for page in book.values() if page.behind]:
        print("behind their twins:", *map(cache.shown, behind))
    if facts.NOT_INSTALLED:
        print("not checked: names of layers and pictures, without", *facts.NOT_INSTALLED)
    if not wanted.run and not write:
        print("not checked: what blocks print and draw; --run, or the tests, run them")
    return bool(found)


def write_outputs(arguments: list[str]) -> int:
    """The command that writes what blocks print into their pages, and checks them."""
    return main(arguments, write=True)
