"""The reference held against posenc: its names and their sections."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from press import reference
from press.cache import ROOT
from press.languages import LANGUAGES
from press.reference import Entry

_PLACE = re.compile(r"^<!-- made: api (\w+\.\w+) -->$", re.MULTILINE)


def faults() -> Iterator[str]:
    """Everything that is wrong with the reference."""
    package = reference.package()
    public = [
        f"{module}.{name}"
        for module, found in package.modules.items()
        if not module.startswith("_")
        for name in map(str, found.exports or [])
    ]
    yield from of_names(reference.entries(), public, map(str, package.exports))
    yield from of_sections(reference.entries(), ROOT / "docs")


def of_names(entries: Iterable[Entry], public: Iterable[str], door: Iterable[str]) -> Iterator[str]:
    """Public names without an entry, and entries without a name."""
    listed, there = [entry.path for entry in entries], set(public)
    yield from (f"docs/api.yml has no entry for posenc.{path}" for path in sorted(there.difference(listed)))
    yield from (f"docs/api.yml: there is no posenc.{path}" for path in listed if path not in there)
    names = {path.rpartition(".")[2] for path in listed}
    yield from (f"docs/api.yml has no entry for posenc.{name}" for name in sorted(set(door) - names))


def of_sections(entries: Iterable[Entry], docs: Path) -> Iterator[str]:
    """Sections of the book that are not there, and sections of the reference that no page has, or that no name has."""
    wanted = {f"{entry.page}.{entry.group}" for entry in entries}
    for language in LANGUAGES:
        for entry in entries:
            page, _, anchor = entry.section.partition("#")
            path = docs / language / page
            if not path.is_file() or f"{{#{anchor}}}" not in path.read_text(encoding="utf-8"):
                yield f"docs/api.yml: {entry.path} is explained in {language}/{entry.section}, which is not there"
        places = [
            (path, place)
            for path in sorted((docs / language / reference.FOLDER).glob("*.md"))
            for place in _PLACE.findall(path.read_text(encoding="utf-8"))
        ]
        for path, place in places:
            if place not in wanted or not place.startswith(f"{path.stem}."):
                yield f"docs/{language}/api/{path.name}: docs/api.yml has no {place} for this page"
        for place in sorted(wanted):
            if [found for _, found in places].count(place) != 1:
                yield f"docs/{language}/api: not once <!-- made: api {place} -->"
