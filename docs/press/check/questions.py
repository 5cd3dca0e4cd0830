"""Questions with short answers: a page says in its front matter how many it has at least, `questions: 40`.

    ### Why are scores divided by √d? {#why-root-d}

    One sentence. Another one.
    → [The primer · Attention by hand](primer.md#attention)

The link leads to the section that explains the answer, is called as its page and this section, and has its numbers.
"""

import re
from functools import cache

from press import pages
from press.cache import ROOT
from press.check.planted import Faults, of_page, of_pair
from press.check.segments import Piece
from press.numbers import in_code, stands
from press.pages import FORMULA, INLINE_CODE, Fault, Page

_ANSWER = re.compile(r"\n(?P<said>\S.*)\n→ \[(?P<label>.+)\]\((?P<link>[\w/-]+\.md#[\w-]+)\)\n*")
_LINK = re.compile(r"^→ \[.+\]\((.+)\)$", re.MULTILINE)
_ENDS = {"en": re.compile(r"[.?!](?=\s|$)"), "zh": re.compile("[。？！]")}

_OLD = "description: B\n---\n# A {#a}\n"
_ARROW = "→ [Why order is invisible · Attention treats a sentence as a set](order.md#attention)"


def _new(question: str, least: int = 1) -> str:
    return f"description: B\nquestions: {least}\n---\n# A {{#a}}\n\n## P {{#p}}\n\n{question}\n"


@of_page(
    ("en", _OLD, _new(f"### Q? {{#q}}\n\nOne. Two.\n{_ARROW}", 2), 1, "1 questions, at least 2"),
    ("en", _OLD, _new(f"### Q {{#q}}\n\nOne. Two.\n{_ARROW}"), 10, "this is no question"),
    ("en", _OLD, _new(f"### Q? {{#q}}\n\nOne: 0.5.\n{_ARROW}"), 10, "1 sentences, not 2"),
    ("en", _OLD, _new("### Q? {#q}\n\nOne. Two."), 10, "two sentences on a line and a link"),
    ("en", _OLD, _new(f"### Q? {{#q}}\n\nOne. Two.\n{_ARROW}".replace("#att", "#at")), 10, "leads nowhere"),
    ("en", _OLD, _new(f"### Q? {{#q}}\n\nOne. Two.\n{_ARROW}".replace("a set", "set")), 10, "the link is called"),
    ("en", _OLD, _new(f"### Q? {{#q}}\n\nOne. It is 77.\n{_ARROW}"), 10, "77 does not stand in order.md#att"),
)  # fmt: skip
def answered(page: Page, language: str) -> Faults:
    """Each ### is a question with two sentences and a link to a section, whose numbers they have."""
    asked = [heading for heading in page.headings if heading.level == 3] if page.meta.get("questions") else []
    if len(asked) < (least := int(page.meta.get("questions") or 0)):
        yield Fault(1, f"{len(asked)} questions, at least {least}")
    for heading in asked:
        said = _faults(heading.text, page.below(heading), language)
        yield from (Fault(heading.line, each) for each in said)


def _faults(question: str, text: str, language: str) -> list[str]:
    said = [] if question.endswith(("?", "？")) else ["this is no question"]
    if not (found := _ANSWER.fullmatch(text)):
        return [*said, "an answer is two sentences on a line and a link to a section on the next, after →"]
    answer, label, link = found.group("said", "label", "link")
    words = FORMULA.sub("x", INLINE_CODE.sub("x", answer))
    if (count := len(_ENDS[language].findall(words))) != 2:
        said.append(f"{count} sentences, not 2")
    section, called = _section(link, language)
    if not section:
        return [*said, f"the link {link} leads nowhere"]
    if label != called:
        said.append(f"the link is called '{label}', not '{called}'")
    there = list(in_code(section))
    numbers = Piece(0, "paragraph", answer).numbers
    return said + [f"{number} does not stand in {link}" for number in numbers if not stands(number, there)]


@cache
def _section(link: str, language: str) -> tuple[str, str]:
    """The text of a section with those in it, and what it is called; two empty strings where there is none."""
    name, _, id = link.partition("#")
    path = ROOT / "docs" / language / name
    page = pages.read(path) if path.is_file() else pages.parse("")
    for heading in page.headings:
        if heading.id == id:
            title = page.text.split("\n")[heading.line - 1]
            text = f"{title}\n{page.below(heading, whole=True)}"
            return text, f"{page.meta['title']} · {heading.text}"
    return "", ""


@of_pair(("zh", "## 末 {", "→ [甲](order.md#proof)\n\n## 末 {", 1, "the links of the answers differ"))
def same_links(english: Page, chinese: Page) -> Faults:
    """The answers of both languages lead to the same sections, in the same order."""
    ours, theirs = (_LINK.findall(page.text) for page in (english, chinese))
    if ours != theirs:
        at = next((n for n, pair in enumerate(zip(ours, theirs, strict=False)) if len({*pair}) > 1), -1)
        where = f": number {at + 1} is {theirs[at]}, and {ours[at]} there" if at >= 0 else ""
        yield Fault(1, f"the links of the answers differ from those of the English page{where}")
