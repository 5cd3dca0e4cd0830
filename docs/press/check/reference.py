"""The reference held against posenc: its names and their sections, and what docstrings must say."""

import ast
import logging
import re
import textwrap
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from press import reference
from press.cache import ROOT
from press.languages import LANGUAGES
from press.pages import front_matter
from press.reference import Entry

_PLACE = re.compile(r"^<!-- made: api (\w+\.\w+) -->$", re.MULTILINE)
_IS_ARRAY = re.compile(r"\b(?:Array|ArrayT|OneArray|Tensor|ndarray)\b")
_SAYS_SHAPE = re.compile(
    r"shape|\([^()]*,[^()]*\)|as in|likewise|library and device|True at pads|one to|without axes|each"
)
# Quantities by the last word of their names, and how their unit is said; or where it has been said.
_UNITS = {
    "frequencies": "radians per ",
    "wavelengths": "in positions",
    "angle": "in radians",
    "angles": "in radians",
    "seconds": "in seconds",
}
_SAID_THERE = re.compile(r"\bas in `|\bgive\b|\blikewise\b")
_RETURNS = re.compile(r"^Returns:\n((?: .*(?:\n|$)|\n)+)", re.MULTILINE)
_SOURCE = re.compile(r"^Sources?: ((?:.+(?:\n|$))+)", re.MULTILINE)
_SECTION = re.compile(r"[\w/]+\.md#[\w-]+")


def faults() -> Iterator[str]:
    """Everything that is wrong with the reference."""
    package = reference.package()
    public = [
        f"{module}.{name}"
        for module, found in package.modules.items()
        if not module.startswith("_")
        for name in map(str, found.exports or [])
    ]
    drafts = {
        path.stem
        for language in LANGUAGES
        for path in (ROOT / "docs" / language).glob("*.md")
        if front_matter(path.read_text(encoding="utf-8"))[0].get("draft")
    }
    yield from of_names(reference.entries(), public, map(str, package.exports), drafts)
    yield from of_sections(reference.entries(), ROOT / "docs")
    for entry in reference.entries():
        if (found := reference.public(entry.path)) is not None and not found.is_attribute:
            shown = any(reference.example(entry, ROOT / "docs" / language) for language in LANGUAGES)
            said = of_docstring(found, entry.path.partition(".")[0], shown)
            for fault in (*said, *of_source(found.docstring.value, entry.section)):
                yield f"posenc.{entry.path}: {fault}"


def of_names(
    entries: Iterable[Entry], public: Iterable[str], door: Iterable[str], drafts: Collection[str] = ()
) -> Iterator[str]:
    """Public names without an entry, and entries without a name; those of chapters that are drafts may wait."""
    listed, there = [entry.path for entry in entries], set(public)
    waiting = {path for path in there if path.partition(".")[0] in drafts}
    missing = there.difference(listed) - waiting
    yield from (f"docs/api.yml has no entry for posenc.{path}" for path in sorted(missing))
    yield from (f"docs/api.yml: there is no posenc.{path}" for path in listed if path not in there)
    names = {path.rpartition(".")[2] for path in waiting.union(listed)}
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


def of_docstring(found: Any, module: str, shown: bool) -> Iterator[str]:
    """What the docstring of a function or class, and of its methods, lacks; `shown`: a block of the book calls it."""
    result = "dataclass" in found.labels or "NamedTuple" in map(str, getattr(found, "bases", ()))
    if ">>>" not in found.docstring.value and not (shown or result):
        yield "no example, here or in a block of the page that explains it"
    for each in [found, *reference.methods(found)]:
        name = "" if each is found else f"{each.name}: "
        yield from (f"{name}{fault}" for fault in _of_griffe(each))
        if each.is_attribute or result:
            continue
        said, text = reference.described(each), each.docstring.value
        above = reference.described(found) if each is not found else {}
        known = {parameter.name for parameter in reference.parameters(each)}
        if each.is_function:
            yield from (f"{name}there is no `{other}`" for other in said if other not in known)
        for parameter in reference.parameters(each):
            described = f"{said.get(parameter.name, '')} {above.get(parameter.name, '')}"
            if not described.strip() and not (module == "plot" and parameter.name in ("ax", "lang")):
                yield f"{name}nothing is said of `{parameter.name}`"
            elif _IS_ARRAY.search(str(parameter.annotation)) and not _SAYS_SHAPE.search(described):
                yield f"{name}no shape of `{parameter.name}`"
            unit = _UNITS.get(parameter.name.rpartition("_")[2])
            if unit and described.strip() and unit not in described and not _SAID_THERE.search(described):
                yield f"{name}no unit of `{parameter.name}`: '{unit.strip()}'"
        if each is not found or module in ("plot", "check"):  # those say in one place what all of them give
            continue
        if each.is_function and str(each.returns) != "None" and "Returns:\n" not in text:
            yield "no `Returns:`"
        kind = each.name.rpartition("_")[2]
        unit = _UNITS[kind] if each.is_function and kind in ("frequencies", "wavelengths") else ""
        if unit not in "".join(_RETURNS.findall(text)):
            yield f"no unit of what it returns: '{unit.strip()}'"
        if each.is_function and "Raises:\n" not in text and _raises(each.source):
            yield "no `Raises:`, and it raises"


def of_source(docstring: str, section: str) -> Iterator[str]:
    """Whether a docstring says where the formula comes from: a paper, a program, or the section that explains it."""
    if (source := _SOURCE.search(docstring)) is None:
        yield "no `Source:`, a paper or the section of the book that derives it"
        return
    for named in _SECTION.findall(source[1]):
        if named != section:
            yield f"its source is {named}, and docs/api.yml says {section}"


def _raises(source: str) -> bool:
    return any(isinstance(node, ast.Raise) for node in ast.walk(ast.parse(textwrap.dedent(source))))


def _of_griffe(found: Any) -> list[str]:
    """What griffe warns of while it reads a docstring."""
    said: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage().partition(": ")[2])  # type: ignore[method-assign]
    log = logging.getLogger("griffe")
    log.addHandler(handler)
    found.docstring.parse("google", **reference.OPTIONS)
    log.removeHandler(handler)
    return said
