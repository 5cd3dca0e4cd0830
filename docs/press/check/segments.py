"""What a page says, piece by piece: a heading, paragraph, list item, table row, caption or description each.

The k-th piece of a section says in one language what the k-th says in the other: their numbers, their inline
code and their formulas can be compared, though the words cannot.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from press.numbers import together, written
from press.pages import COMMENT, FORMULA, INLINE_CODE, Page, front_matter

_KIND = re.compile(
    r"(?P<heading>#{1,6}\s)|(?P<row>\|)|(?P<item>(?:[-*+]|\d+\.)\s)|(?P<title>(?:!!!|\?\?\?\+?|===)\s)"
)
_LINK = re.compile(
    r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\])\(([^()\s]*(?:\([^()]*\)[^()\s]*)*)[^()]*\)|https?://[^\s)]+"
)
_UP_TO_19 = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
_ENGLISH = {word: value for value, word in enumerate(_UP_TO_19.split())}
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ENGLISH |= {word: 10 * value for value, word in enumerate(_TENS.split(), 2)}
_ENGLISH |= {"once": 1, "first": 1, "twice": 2, "double": 2, "second": 2, "half": 2, "third": 3, "quarter": 4}
_ENGLISH |= {"hundred": 100, "thousand": 1000, "million": 10**6}
_CHINESE = {c: v for v, c in enumerate("零一二三四五六七八九")} | {"两": 2, "半": 2, "十": 10, "百": 100}
_CHINESE |= {"千": 1000, "万": 10**4, "亿": 10**8}


@dataclass(frozen=True)
class Piece:
    """One piece of a section, with its markup."""

    line: int
    kind: str
    text: str

    @cached_property
    def code(self) -> Counter[str]:
        """Its inline code."""
        return Counter(match[2] for match in INLINE_CODE.finditer(self.text))

    @cached_property
    def formulas(self) -> Counter[str]:
        """Its inline formulas; what stands in \\text{...} may differ."""
        text = INLINE_CODE.sub(" ", self.text)
        return Counter(normal(match["inline"]) for match in FORMULA.finditer(text) if match["inline"])

    @cached_property
    def words(self) -> str:
        """Its words, without markup, formulas and code."""
        text = FORMULA.sub(" $ ", INLINE_CODE.sub(" ` ", self.text))
        text = re.sub(r"^\s*\d+\.\s|</?[a-z][^<>]*>|\{[^{}\n]*#[^{}\n]*\}", "", text)
        return re.sub(r"[*_]", "", _LINK.sub(lambda match: match[1] or "", text))

    @cached_property
    def numbers(self) -> Counter[str]:
        """Its numbers in digits, as they are written: 1,000 is 1000, 1.1 million is 1100000."""
        words = self.words
        if self.kind in ("figure", "description"):
            words = together(words)
        return Counter(written(words))

    @cached_property
    def spoken(self) -> set[str]:
        """What its number words can stand for, in either language."""
        words = self.words.lower()
        found = {f"{_CHINESE[c]}0%" for c in re.findall(r"([一二三四五六七八九])成", words)}
        runs = [list(run) for run in re.findall(f"[{''.join(_CHINESE)}]+", words)]
        runs += [
            re.findall("[a-z]+", run)
            for run in re.findall(rf"(?:(?:{'|'.join(_ENGLISH)}|and)s?\b[ -]*)+", words)
        ]
        for run in runs:
            known = ((_ENGLISH | _CHINESE).get(word.rstrip("s")) for word in run)
            values = [value for value in known if value is not None]
            found |= {str(value) for value in (*values, _sum(values))}
        return found


def _sum(values: list[int]) -> int:
    """Two hundred and five thousand: 2, 100, 5, 1000."""
    total = below = last = 0
    for value in values:
        if value >= 1000:
            total, below, last = total + max(below + last, 1) * value, 0, 0
        elif value in (10, 100):
            below, last = below + max(last, 1) * value, 0
        else:
            below, last = below + last, value
    return total + below + last


def normal(tex: str) -> str:
    """A formula without what may differ between two languages."""
    tex = re.sub(r"\\text\s*\{[^{}]*\}", r"\\text{}", tex)
    return re.sub(r"\s+", " ", tex).strip()


@lru_cache(maxsize=64)
def sections(page: Page) -> list[list[Piece]]:
    """The pieces of a page, section by section; the first begins with title and description."""
    _, head, _ = front_matter(page.text)
    lines = page.text.split("\n")
    for start, end in [(1, head.count("\n")), *((fence.line, fence.end) for fence in page.fences)]:
        lines[start - 1 : end] = [""] * (end + 1 - start)
    text = FORMULA.sub(lambda m: re.sub(r"[^\n]", " ", m[0]) if m["display"] else m[0], "\n".join(lines))
    found = [[Piece(1, name, str(page.meta.get(name))) for name in ("title", "description")]]
    going = False  # whether the next line belongs to the piece before it
    for number, line in enumerate(text.split("\n"), 1):
        stripped = line.strip()
        comment = COMMENT.match(stripped)
        match = _KIND.match(stripped)
        kind = (match and match.lastgroup) or "paragraph"
        if (
            not stripped
            or (stripped.startswith("<!--") and not comment)
            or re.fullmatch(r"[|:\s-]+", stripped)
        ):
            going = False
        elif comment:
            found[-1].append(Piece(number, comment[1], comment[2]))
        elif kind == "paragraph" and going:
            last = found[-1].pop()
            found[-1].append(Piece(last.line, last.kind, f"{last.text}\n{line}"))
        else:
            found += [[]] if kind == "heading" else []
            found[-1].append(Piece(number, kind, stripped))
            going = kind in ("paragraph", "item")
    return found


def pairs(english: Page, chinese: Page) -> Iterator[tuple[Piece, Piece]]:
    """What is said in both languages: piece by piece, and where these do not agree, section by section."""
    for ours, theirs in zip(sections(english), sections(chinese), strict=False):
        if [piece.kind for piece in ours] == [piece.kind for piece in theirs]:
            yield from zip(ours, theirs, strict=True)
        else:
            yield _joined(ours), _joined(theirs)


def _joined(pieces: list[Piece]) -> Piece:
    return Piece(pieces[0].line, "section", "\n\n".join(piece.text for piece in pieces))
