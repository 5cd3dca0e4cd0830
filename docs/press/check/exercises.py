"""Exercises (../exercises.py): what their comments say, their answers, and the checks of those in code."""

import re
from functools import cache
from itertools import zip_longest

from press.cache import PACKAGE, ROOT
from press.check.planted import Faults, of_page, of_pair
from press.exercises import COMMENT, Exercise
from press.exercises import of_page as exercises
from press.pages import Fault, Page

_LAST = "## Last {#where-next}"
_ONE = "### E {#where-next-e}\n<!-- exercise: minutes=9 level=1 kind="
_ANSWER = '??? success "Answer"\n'


@of_page(
    ("en", _LAST, f"{_LAST}\n\n{_ONE}pen -->", 34, "<!-- exercise: minutes=10 level=1 kind=paper -->"),
    ("en", _LAST, f"{_LAST}\n\n{_ONE}paper -->\n\n### F {{#where-next-f}}", 36, "has no comment"),
    ("en", _LAST, f"{_LAST}\n\n{_ONE}paper -->".replace("-e}", "}"), 33, "does not begin with where-next-"),
    ("en", _LAST, f"{_LAST}\n\n{_ONE}paper -->\n{_ANSWER}", 33, "no ??? tip"),
    ("en", _LAST, f"{_LAST}\n\n{_ONE}paper -->", 33, "no ??? success"),
    ("en", _LAST, f"{_LAST}\n\n{_ONE}paper teachers -->\n{_ANSWER}", 33, "stands on the page"),
    ("en", _LAST, f"{_LAST}\n\n{_ONE}paper teachers -->", 33, "docs/solutions/en/page.md has no {#where-next-e}"),
    ("en", _LAST, f"{_LAST}\n\n{_ONE}code -->", 33, 'no @exercise("where-next-e") in posenc/exercises'),
)  # fmt: skip
def whole_exercises(page: Page, language: str) -> Faults:
    """Each has a comment, an id that begins with its chapter, a hint, an answer in one place, and in code a check."""
    for number, line in enumerate(page.text.split("\n"), 1):
        if line.lstrip().startswith("<!-- exercise") and not COMMENT.match(line):
            form = "<!-- exercise: minutes=10 level=1 kind=paper -->; code, measure; teachers at its end"
            yield Fault(number, f"it is no {form}")
    found = exercises(page)
    known = {each.heading: each for each in found}
    for heading in page.headings if found else ():
        if heading.level == 3 and heading not in known:
            yield Fault(heading.line, f"the exercise #{heading.id} has no comment below its title")
        elif heading in known:
            said = _faults(page, language, known[heading], page.below(heading))
            yield from (Fault(heading.line, f"#{heading.id}: {each}") for each in said)


def _faults(page: Page, language: str, one: Exercise, text: str) -> list[str]:
    id, said = one.heading.id, []
    start = page.path.stem if page.path.stem == "joins" else one.section
    if not id.startswith(f"{start}-"):
        said.append(f"the id does not begin with {start}-")
    if "\n??? tip " not in text:
        said.append("no ??? tip with a hint")
    if not one.teachers and "\n??? success " not in text:
        said.append("no ??? success with the answer")
    elif one.teachers and "\n??? success " in text:
        said.append("its answer is left to teachers, and stands on the page")
    path = ROOT / "docs" / "solutions" / language / page.path.name
    if one.teachers and not (path.is_file() and f"{{#{id}}}" in path.read_text(encoding="utf-8")):
        said.append(f"{path.relative_to(ROOT).as_posix()} has no {{#{id}}}")
    if one.kind == "code" and id not in _registered():
        said.append(f'no @exercise("{id}") in posenc/exercises')
    return said


@cache
def _registered() -> frozenset[str]:
    """The exercises that posenc can try, from its source: press imports none of it."""
    texts = [path.read_text(encoding="utf-8") for path in (PACKAGE / "exercises").glob("*.py")]
    return frozenset(
        id for text in texts for id in re.findall(r'^@exercise\("([\w-]+)"\)$', text, re.MULTILINE)
    )


@of_pair(("zh", "## 末 {", f"{_ONE}paper -->\n\n## 末 {{", 32, "otherwise on the English page"))
def same_exercises(english: Page, chinese: Page) -> Faults:
    """The same comments in both languages."""
    ours, theirs = ([match[0] for match in COMMENT.finditer(page.text)] for page in (english, chinese))
    if ours != theirs:
        at = next(n for n, (one, other) in enumerate(zip_longest(ours, theirs)) if one != other)
        found = [each.heading.line for each in exercises(chinese)]
        line = found[at] + 1 if at < len(found) else 1
        yield Fault(line, "the comment of this exercise is otherwise on the English page")
