"""What both languages say, held together piece by piece (segments.py): faults are those of the Chinese page.

Not found: what changes places within one piece, number words, a word for another that is none of its opposites.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache

import yaml

from press.cache import ROOT
from press.check.planted import of_pair
from press.check.segments import Piece, pairs, sections
from press.pages import CHINESE, Fault, Page


@of_pair(
    ("zh", "- 0.51 是负的，这是 True\n", "", 31, "has paragraph, item here and paragraph, item, item"),
    ("zh", "# 末 {", "# Last {", 31, "there is English"),
    ("zh", "每个查询对着一个键：", "查询：every query has a key。", 33, "English: every query has a key"),
)
def same_pieces(english: Page, chinese: Page) -> list[Fault]:
    """Each section has the same paragraphs, items, rows and titles in the same order, and they are in Chinese."""
    found = []
    for ours, theirs in zip(sections(english), sections(chinese), strict=False):
        kinds = [[piece.kind for piece in pieces] for pieces in (ours, theirs)]
        if kinds[0] != kinds[1]:
            said, there = (", ".join(kind[1:]) for kind in reversed(kinds))
            message = f"'{theirs[0].text}' has {said} here and {there} on the English page"
            found.append(Fault(theirs[0].line, f"{message} (line {ours[0].line})"))
    for our, their in pairs(english, chinese):
        ours_alone = re.sub(r"“[^”]*”|\*[^*]*\*", "", their.text)  # without quotations and titles
        words = Piece(0, their.kind, ours_alone).words
        left = re.search(r"\b(?:[a-z]+ ){2,}[a-z]+", words)
        if left or (re.search("[a-z]{3}", our.words) and not CHINESE.search(their.words)):
            message = f"in this {their.kind} there is English: {left[0] if left else words}"
            found.append(Fault(their.line, message))
    return found


@of_pair(
    ("zh", "0.51 是负的", "−0.51 是负的", 36, "-0.51, which the English page has not (line 36)"),
    ("zh", "90%", "80%", 35, "80%, which the English page has not"),
    ("zh", "figure: 一条正弦", "figure: 三条正弦，长 31", 25, "31, which the English page has not"),
)
def same_numbers(english: Page, chinese: Page) -> list[Fault]:
    """Numbers in digits are the same; where one language says a number in words, the other may use digits."""
    return list(_differences(english, chinese, lambda piece: piece.numbers, "{}"))


@of_pair(("zh", "`posenc.alibi_bias(slopes, 4)`", "`posenc.alibi_bias(slopes, 5)`", 33, "slopes, 5)"))
def same_inline_code(english: Page, chinese: Page) -> list[Fault]:
    return list(_differences(english, chinese, lambda piece: piece.code, "`{}`"))


@of_pair(
    ("zh", "$d$ 是偶数", "它是偶数", 9, "$d$, which stands on the English page, is not here"),
    ("zh", "$d$ 是偶数", "$t$ 是偶数", 9, "$t$, which the English page has not"),
    ("zh", "$n$ 的宽度是 $d$ , $d$", "$d$ 的宽度是 $d$ , $d$", 9, "$n$, which stands on the English page"),
)
def same_inline_formulas(english: Page, chinese: Page) -> list[Fault]:
    """A sentence in Chinese names things in its own order, so formulas are compared as a collection."""
    return list(_differences(english, chinese, lambda piece: piece.formulas, "${}$"))


@of_pair(
    ("zh", "每个查询", "每个键", 33, "'键' for '查询'"),
    ("zh", "两行", "两列", 35, "'列' for '行'"),
    ("zh", "是 True", "是 False", 36, "'False' for 'True'"),
)
def same_words(english: Page, chinese: Page) -> list[Fault]:
    """Of two opposites (docs/terms.yml) one is not said less often, and the other more, than in English."""
    found = []
    for ours, theirs in pairs(english, chinese):
        for pair in opposites():
            more = [len(zh.findall(theirs.words)) - len(en.findall(ours.words)) for en, zh in pair]
            for one, other in ((0, 1), (1, 0)):
                if more[one] > 0 > more[other]:
                    said = pair[one][1].findall(theirs.words)[0]
                    right = re.sub(r"\(\?.*?\)|\W", "", pair[other][1].pattern)
                    found.append(_odd(theirs, f"'{said}' for '{right}'", "not so on the English page", ours))
    return found


@cache
def opposites() -> list[list[tuple[re.Pattern[str], re.Pattern[str]]]]:
    """Pairs of words, each in English and in Chinese."""
    listed = yaml.safe_load((ROOT / "docs" / "terms.yml").read_text(encoding="utf-8"))["opposites"]
    return [
        [(re.compile(f"\\b{en}\\b", re.IGNORECASE), re.compile(zh)) for en, zh in pair] for pair in listed
    ]


def _differences(
    english: Page, chinese: Page, said: Callable[[Piece], Counter[str]], written: str
) -> Iterator[Fault]:
    for ours, theirs in pairs(english, chinese):
        for these, those, says in (
            (theirs, ours, "which the English page has not"),
            (ours, theirs, "which stands on the English page, is not here"),
        ):
            for what in said(these) - said(those):
                if what not in those.spoken and not CHINESE.search(what):
                    yield _odd(theirs, written.format(what), says, ours)


def _odd(theirs: Piece, what: str, says: str, ours: Piece) -> Fault:
    return Fault(theirs.line, f"{what}, {says} (line {ours.line}): in this {theirs.kind}")
