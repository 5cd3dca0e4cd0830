"""The exercises: a page for each part of the book, docs/en/exercises/begin.md, with a section a chapter.

    ## Why order is invisible {#order}
    ### Measure the blindness {#order-error}
    <!-- exercise: minutes=20 level=2 kind=code teachers -->

says that the chapter order.md has an exercise of 20 minutes on level 2 (1: follows from the chapter, 2: takes a step
of one's own, 3: takes an idea). kind is paper, code (posenc/exercises tries what readers write) or measure. What is
left to `teachers` has its answer in docs/solutions/en/begin.md, under the same id, and not on the site.

Made from this: a line under each title, the way to the chapter under each section, a link in each chapter's
"Check yourself", and the list of all on exercises/index.md. The exercises of joins.md join chapters: the first
paragraph of each names their sections, and these chapters link to it.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from press import pages
from press.cache import ROOT

FOLDER = "exercises"
JOINS = "joins.md"
COMMENT = re.compile(
    r"^<!-- exercise: minutes=(\d+) level=([123]) kind=(paper|code|measure)( teachers)? -->$", re.MULTILINE
)
_SECTION = re.compile(r"^## .+ \{#([\w-]+)\}$", re.MULTILINE)
_QUESTIONS = re.compile(r"^## [^\n]*\{#check-yourself\}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_KINDS = {
    "en": {"paper": "on paper", "code": "in code", "measure": "to measure"},
    "zh": {"paper": "纸笔", "code": "编程", "measure": "测量"},
}
# Under a title, for teachers, under a section; in a chapter, for what joins it with others, between links to that;
# of a page, between title and line.
_WORDS = {
    "en": (
        "{} minutes · level {} · {}",
        " · answer left to teachers",
        "To the [chapter](../{}.md).",
        "[Exercises on this chapter]({}): {}, about {} minutes.",
        " Joined with other chapters: {}.",
        ", ",
        "{} exercises, about {:.0f} hours.",
        "- [{}]({}) · {}",
    ),
    "zh": (
        "{} 分钟 · 难度 {} · {}",
        " · 答案留给教师",
        "回到[这一章](../{}.md)。",
        "[本章的练习]({})：{} 道，约 {} 分钟。",
        "与别的章连起来的：{}。",
        "、",
        "{} 道练习，约 {:.0f} 小时。",
        "- [{}]({})：{}",
    ),
}


@dataclass(frozen=True)
class Exercise:
    """What stands in the comment of an exercise; `heading` is the one above it, `section` the id of its section."""

    heading: pages.Heading
    section: str
    minutes: int
    level: int
    kind: str
    teachers: bool

    def line(self, language: str) -> str:
        """What stands under its title."""
        said, teachers, *_ = _WORDS[language]
        return said.format(self.minutes, self.level, _KINDS[language][self.kind]) + teachers * self.teachers


def of_page(page: pages.Page) -> list[Exercise]:
    """The exercises of a page in their order."""
    found = []
    for match in COMMENT.finditer(page.text):
        line = page.text.count("\n", 0, match.start()) + 1
        above = [heading for heading in page.headings if heading.line < line]
        section = next((heading.id for heading in reversed(above) if heading.level == 2), "")
        minutes, level, kind, teachers = match.groups()
        found.append(Exercise(above[-1], section, int(minutes), int(level), kind, bool(teachers)))
    return found


@lru_cache(maxsize=32)
def _read(path: Path, changed: int) -> list[Exercise]:
    return of_page(pages.read(path))


def filled(markdown: str, book: Path) -> str:
    """A page of exercises with its lines, or a chapter with the link to its exercises."""
    if COMMENT.search(markdown):
        lines = iter(f"<small>{each.line(book.name)}</small>\n" for each in of_page(pages.parse(markdown)))
        markdown = COMMENT.sub(lambda _: next(lines), markdown)
        return _SECTION.sub(lambda match: match[0] + _way(match[1], book), markdown)
    return _QUESTIONS.sub(lambda match: match[0] + _link(markdown, book), markdown)


def _way(section: str, book: Path) -> str:
    there = (book / f"{section}.md").is_file()
    return f"\n\n<small>{_WORDS[book.name][2].format(section)}</small>\n" if there else ""


def _link(chapter: str, book: Path) -> str:
    """The link at the end of a chapter's questions; the chapter is called as its first heading."""
    name = re.search(r"^# .+ \{#([\w-]+)\}$", chapter, re.MULTILINE)
    if not name:
        return ""
    (file, found), (_, _, _, of_this, joined, comma, *_) = of_chapter(name[1], book), _WORDS[book.name]
    said = ""
    if found:
        said = of_this.format(f"{file}#{found[0].section}", len(found), sum(each.minutes for each in found))
    if others := joining(name[1], book):
        links = (f"[{each.heading.text}]({FOLDER}/{JOINS}#{each.heading.id})" for each in others)
        said += joined.format(comma.join(links))
    return f"{said.strip()}\n\n" if said else ""


def of_chapter(name: str, book: Path) -> tuple[str, list[Exercise]]:
    """The page of the exercises on a chapter, and these; ("", []) where it has none."""
    for path in sorted((book / FOLDER).glob("*.md")):
        if found := [each for each in _read(path, path.stat().st_mtime_ns) if each.section == name]:
            return f"{FOLDER}/{path.name}", found
    return "", []


def joining(name: str, book: Path) -> list[Exercise]:
    """The exercises of joins.md that name a section of the chapter in their first paragraph."""
    path = book / FOLDER / JOINS
    if not path.is_file():
        return []
    text = pages.read(path).text
    firsts = [text[match.end() :].split("\n\n")[1] for match in COMMENT.finditer(text)]
    found = zip(_read(path, path.stat().st_mtime_ns), firsts, strict=True)
    return [each for each, first in found if f"](../{name}.md#" in first]


def listed(book: Path) -> str:
    """All exercises, page by page in the order of the book."""
    config = ROOT / "docs" / "sites" / book.name / "mkdocs.yml"
    *_, count, row = _WORDS[book.name]
    lines = []
    for name in (name for name in pages.contents(config) if name.startswith(f"{FOLDER}/")):
        if (book / name).is_file() and (found := of_page(page := pages.read(book / name))):
            file, hours = Path(name).name, sum(each.minutes for each in found) / 60
            lines += [f"## {page.meta['title']} {{#{page.path.stem}}}", count.format(len(found), hours), ""]
            for each in found:
                lines.append(row.format(each.heading.text, f"{file}#{each.heading.id}", each.line(book.name)))
            lines.append("")
    return "\n".join(lines)
