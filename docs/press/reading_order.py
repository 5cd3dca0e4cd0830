"""Where a page stands in its book: which chapter it is, what it builds on, which labs go with it.

A page says in its front matter what a reader should have read before: `needs: [order, naive]`, names of pages of the
same book without their suffix. A chapter or lab says how many `minutes` a reader took for all of it, with guesses,
blocks, figures and questions. The rest follows from the contents (`nav`): the Markdown pages in it, without the
front page, are the chapters, in this order; a page that is none says `chapter: false`. A lab goes with every chapter
that it needs.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from press.labs import is_lab

if TYPE_CHECKING:
    from press.book import Book


def stem(name: str) -> str:
    """'order' for order.md, 'labs/waveforms' for labs/waveforms.md."""
    return name.rpartition(".")[0]


def is_chapter(name: str, book: Book) -> bool:
    return name != "index.md" and not is_lab(name) and book.meta(name).get("chapter") is not False


def way(name: str, book: Book) -> tuple[dict[str, Any], list[str]]:
    """What the reader of a page is told; and each need that is no page of the book, or comes later."""
    order = [stem(other) for other in book.contents]
    here = order.index(stem(name)) if stem(name) in order else len(order)
    needed, faults = [], []
    for need in book.meta(name).get("needs", []):
        if need not in order:
            faults.append(f"Page '{name}' needs '{need}', which is no page of the book")
        elif order.index(need) >= here:
            faults.append(f"Page '{name}' needs '{need}', which comes later in the book")
        else:
            needed.append(_link(book.contents[order.index(need)], book))
    chapters = [other for other in book.contents if is_chapter(other, book)]
    labs = [lab for lab in book.contents if is_lab(lab) and stem(name) in book.meta(lab).get("needs", [])]
    file = PurePosixPath(name).stem
    told = {
        "core": bool(book.meta(name).get("core")),
        "minutes": book.meta(name).get("minutes"),
        "number": chapters.index(name) + 1 if name in chapters else 0,
        "count": len(chapters),
        "needs": needed,
        "labs": [_link(lab, book) for lab in labs],
        "script": f"{file}.py" if name in chapters and book.page(name).blocks else "",
        "notebook": f"{file}.ipynb",
        "markdown": f"{file}.md",
    }
    return told, faults


_CHAPTERS = re.compile(r"^<!-- chapters -->$", re.MULTILINE)
_WORDS = {
    "en": ("about {} minutes", "**core**", ", ", " ({})", ": "),
    "zh": ("约 {} 分钟", "**主干**", "，", "（{}）", "："),
}
_HOURS = {
    "en": ("The chapters take about {:g} hours", ", those of the core about {:g}", "."),
    "zh": ("各章一共约 {:g} 小时", "，其中主干约 {:g} 小时", "。"),
}


def with_chapters(markdown: str, name: str, book: Book) -> str:
    """The first page of a part with the chapters of the part: what each is about, how long it takes, which are core."""
    takes, core, comma, brackets, colon = _WORDS[book.language]

    def row(chapter: str) -> str:
        said = []
        meta = book.meta(chapter)
        if "minutes" in meta:
            said.append(takes.format(meta["minutes"]))
        if meta.get("core"):
            said.append(core)
        beside = brackets.format(comma.join(said)) if said else ""
        about = meta["description"]
        return f"- [{book.titles[chapter]}](../../{chapter}){beside}{colon}{about}"

    chapters = book.parts.get(name, [])
    return _CHAPTERS.sub(lambda _: "\n".join([_hours(chapters, book), *map(row, chapters)]), markdown)


def _hours(chapters: list[str], book: Book) -> str:
    """How long the chapters of a part take, in half hours, and those of the core where they are not all."""
    metas = [book.meta(chapter) for chapter in chapters if "minutes" in book.meta(chapter)]
    core = [meta for meta in metas if meta.get("core")]
    all_of_them, of_core = (round(sum(meta["minutes"] for meta in some) / 30) / 2 for some in (metas, core))
    said, beside, stop = _HOURS[book.language]
    also = beside.format(of_core) if 0 < len(core) < len(metas) else ""
    return f"{said.format(all_of_them)}{also}{stop}\n"


def _link(name: str, book: Book) -> dict[str, str]:
    return {"url": f"{stem(name)}.html", "title": book.titles.get(name, stem(name))}
