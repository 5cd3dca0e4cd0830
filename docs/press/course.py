"""The plan of a course, docs/en/course.md: what its weeks consist of stands in its front matter, pages without suffix.

    weeks:
      - [primer, order, naive]
      - [sinusoidal, addition, labs/waveforms]

`<!-- made: weeks -->` becomes a table with the time that each week takes, and `<!-- made: week 2 -->` what is read,
tried, solved and handed in, with links. The minutes are those of the pages (`minutes`) and of their exercises
(exercises.py); handed in are the exercises whose answers are left to teachers.
"""

from pathlib import Path
from typing import Any

from press import exercises, labs, pages

PAGE = "course.md"
_WORDS = {
    "en": {
        "head": "| Week | Read | Try | Solve | Hand in | Together |",
        "all": "All",
        "read": "- **Read**, {}: {}",
        "try": "- **Try**, {}: {}",
        "solve": "- **Solve**, {}: the exercises on {}",
        "hand in": "- **Hand in**, {}: {}",
        "hours": "{} h",
        "minutes": "{} min",
        "comma": ", ",
    },
    "zh": {
        "head": "| 周 | 读 | 实验 | 练习 | 要交 | 合计 |",
        "all": "全部",
        "read": "- **读**，{}：{}",
        "try": "- **实验**，{}：{}",
        "solve": "- **练习**，{}：{}",
        "hand in": "- **要交**，{}：{}",
        "hours": "{} 小时",
        "minutes": "{} 分钟",
        "comma": "、",
    },
}
_PARTS = ("read", "try", "solve", "hand in")


def weeks(meta: dict[str, Any]) -> list[list[str]]:
    """The pages of each week."""
    return [list(map(str, week)) for week in meta.get("weeks") or ()]


def listed(book: Path, number: str) -> str:
    """What is done in a week, a line for each kind."""
    words = _WORDS[book.name]
    return "\n".join(
        words[part].format(_time(minutes, book), words["comma"].join(links))
        for part, (minutes, links) in _week(_weeks(book)[int(number) - 1], book).items()
        if links
    )


def table(book: Path) -> str:
    """The time that each week takes, and all of them together."""
    words = _WORDS[book.name]
    rows = [[minutes for minutes, _ in _week(names, book).values()] for names in _weeks(book)]
    named = [(f"[{number}](#week-{number})", row) for number, row in enumerate(rows, 1)]
    named.append((words["all"], [sum(column) for column in zip(*rows, strict=True)]))
    lines = [words["head"], "|---" * 6 + "|"]
    for name, row in named:
        cells = [name, *(_time(minutes, book) for minutes in (*row, sum(row)))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _weeks(book: Path) -> list[list[str]]:
    return weeks(_meta(book / PAGE))


def _meta(page: Path) -> dict[str, Any]:
    return pages.front_matter(labs.text(page))[0]


def _week(names: list[str], book: Path) -> dict[str, tuple[int, list[str]]]:
    """The minutes and the links of each kind."""
    found: dict[str, tuple[int, list[str]]] = dict.fromkeys(_PARTS, (0, []))

    def add(part: str, minutes: int, *links: str) -> None:
        found[part] = found[part][0] + minutes, [*found[part][1], *links]

    for name in names:
        meta = _meta(book / f"{name}.md")
        title = meta["title"]
        add("try" if labs.is_lab(f"{name}.md") else "read", meta["minutes"], f"[{title}]({name}.md)")
        file, there = exercises.of_chapter(name, book)
        solved = [each.minutes for each in there if not each.teachers]
        add("solve", sum(solved), *([f"[{title}]({file}#{name})"] if solved else []))
        for each in there:
            if each.teachers:
                add("hand in", each.minutes, f"[{each.heading.text}]({file}#{each.heading.id})")
    return found


def _time(minutes: int, book: Path) -> str:
    """Hours and minutes in the language of the book.

    >>> [_time(minutes, Path("en")) for minutes in (45, 125, 240)]
    ['45 min', '2 h 5 min', '4 h']
    """
    hours, rest = divmod(minutes, 60)
    said = [("hours", hours)] * (hours > 0) + [("minutes", rest)] * (rest > 0)
    return " ".join(_WORDS[book.name][what].format(count) for what, count in said)
