"""Two originals, kept together: a section that has changed is named until somebody confirms both languages.

    python -m press twins                           # all sections say the same in both languages: somebody has read
    python -m press twins rotary masks              # those of two chapters do

docs/twins.txt has a line for each section: its page and id, and a digest of its words in each language. Where one
language has changed and the other has not, `press check` names the section; where both have, or where nothing was
confirmed yet, it names the page, for else a later change of one of them would not be seen. Somebody who has read both
confirms them. Blocks are held together by other checks, and a lab has both languages in one file.
"""

import argparse
import collections
import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping

from press import cache
from press.check.pages import chapters, named
from press.pages import Page

FILE = cache.ROOT / "docs" / "twins.txt"
Books = Mapping[str, Mapping[str, Page]]
Pairs = dict[str, tuple[str, str]]  # of digests, by 'rotary.md#score'


def digests(page: Page) -> dict[str, tuple[str, int]]:
    """A digest of each section's words, and the line where it begins, by its id; `top` is before all headings."""
    lines = page.text.splitlines()
    for fence in page.fences:
        lines[fence.line - 1 : fence.end] = [""] * (fence.end - fence.line + 1)
    starts = [(1, "top"), *((heading.line, heading.id) for heading in page.headings), (len(lines) + 1, "")]
    found = {}
    for (line, id), (end, _) in itertools.pairwise(starts):
        words = " ".join(" ".join(lines[line - 1 : end - 1]).split())
        found[id] = hashlib.sha256(words.encode()).hexdigest()[:8], line
    return found


def _sections(books: Books) -> Iterator[tuple[str, tuple[str, str], tuple[str, str]]]:
    """Each section that both languages have, its pair of digests, and where it stands in both."""
    for name, english in books["en"].items():
        chinese = books["zh"].get(name)
        if chinese and not (english.is_lab or english.is_draft or chinese.is_draft):
            ours, theirs = digests(english), digests(chinese)
            for id in ours.keys() & theirs.keys():
                here = f"{cache.shown(english.path)}:{ours[id][1]}"
                there = f"{cache.shown(chinese.path)}:{theirs[id][1]}"
                yield f"{name}#{id}", (ours[id][0], theirs[id][0]), (here, there)


def _behind(books: Books) -> set[str]:
    return {name for book in books.values() for name, page in book.items() if page.behind}


def confirmed() -> Pairs:
    """What somebody has confirmed."""
    rows = [line.split() for line in FILE.read_text(encoding="utf-8").splitlines()] if FILE.exists() else []
    return {section: (english, chinese) for section, english, chinese in rows}


def faults(books: Books, pairs: Pairs) -> Iterator[str]:
    """Sections of which one language has changed since they were confirmed, and pages of which both have."""
    behind, both = _behind(books), collections.Counter[tuple[str, ...]]()
    for section, pair, places in _sections(books):
        if section.partition("#")[0] in behind:
            continue
        changed = [new != old for new, old in zip(pair, pairs.get(section, ("", "")), strict=True)]
        if all(changed):
            both[section.partition("#")[0], *(place.partition(":")[0] for place in places)] += 1
        elif any(changed):
            here, there = places if changed[0] else places[::-1]
            yield (
                f"{here}: this section has changed, and that at {there} has not; if both still say the same: "
                f"python -m press twins {section.partition('.md')[0]}"
            )
    for (name, here, there), many in both.items():
        yield (
            f"{here}: here and in {there} sections are new or have changed ({many}); if both say the same: "
            f"python -m press twins {name.removesuffix('.md')}"
        )


def confirm(books: Books, pairs: Pairs) -> Pairs:
    """The pairs with these pages as they are now; sections that are gone are left out, pages that are behind wait."""
    wanted = books["en"].keys() - _behind(books)
    kept = {section: pair for section, pair in pairs.items() if section.partition("#")[0] not in wanted}
    new = {section: pair for section, pair, _ in _sections(books) if section.partition("#")[0] in wanted}
    return dict(sorted({**kept, **new}.items()))


def main(arguments: Iterable[str]) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="press twins", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="pages, such as order; without any, everything")
    names = parser.parse_args([*arguments]).names
    try:
        wanted = named(names, chapters())
    except ValueError as error:
        parser.error(str(error))
    before, behind = confirmed(), _behind(wanted)
    if not names:  # nothing is kept of pages that are gone
        before = {section: pair for section, pair in before.items() if section.partition("#")[0] in behind}
    after = confirm(wanted, before)
    FILE.write_text(
        "".join(f"{section} {' '.join(pair)}\n" for section, pair in after.items()), encoding="utf-8"
    )
