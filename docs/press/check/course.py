"""The plan of a course (../course.py): each chapter and lab stands in one of its weeks, and after what it needs."""

from collections import Counter
from functools import cache
from typing import Any

from press import pages
from press.cache import ROOT
from press.check.planted import Faults, of_page
from press.course import weeks
from press.labs import is_lab
from press.pages import Fault, Page

_HEAD = "description: B"


@of_page(
    ("en", _HEAD, f"{_HEAD}\nweeks: [[primer, order]]", 1, "naive stands in no week"),
    ("en", _HEAD, f"{_HEAD}\nweeks: [[primer], [order, primer]]", 1, "primer stands in 2 weeks"),
    ("en", _HEAD, f"{_HEAD}\nweeks: [[glossary]]", 1, "glossary is neither a chapter nor a lab"),
    ("zh", "description: 乙", "description: 乙\nweeks: [[order], [primer]]", 1, "order stands before primer"),
)
def whole_course(page: Page, language: str) -> Faults:
    """Each chapter and lab of the book in exactly one week, not before the pages that it needs."""
    plan = weeks(page.meta)
    at = {name: number for number, names in enumerate(plan, 1) for name in names}
    wanted = _chapters_and_labs(language) if plan else {}
    for name, count in Counter(name for names in plan for name in names).items():
        if name not in wanted:
            yield Fault(1, f"{name} is neither a chapter nor a lab")
        elif count > 1:
            yield Fault(1, f"{name} stands in {count} weeks")
    for name, meta in wanted.items():
        if name not in at:
            yield Fault(1, f"{name} stands in no week of the course")
        for need in meta.get("needs", ()) if name in at else ():
            if at.get(need, 0) > at[name]:
                yield Fault(1, f"{name} stands before {need}, which it needs")


@cache
def _chapters_and_labs(language: str) -> dict[str, dict[str, Any]]:
    """Their front matter, by their names without suffix."""
    names = pages.contents(ROOT / "docs" / "sites" / language / "mkdocs.yml")
    found = {name: pages.read(ROOT / "docs" / language / name).meta for name in names[1:]}
    return {
        name.removesuffix(".md"): meta
        for name, meta in found.items()
        if is_lab(name) or meta.get("chapter") is not False
    }
