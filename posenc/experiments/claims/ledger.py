"""What is said of positions, each with its verdict and the measurement that it rests on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, wraps
from importlib.resources import files
from typing import Any, Literal

import torch

__all__ = ["CLAIMS", "Claim", "Found", "claim", "claim_table", "claim_words", "found"]

Verdict = Literal["true", "only if", "false", "undecided"]


@dataclass(frozen=True)
class Found:
    """What a measurement gave: a case in which the claim is right, one in which it is wrong, and the numbers."""

    right: bool
    wrong: bool
    numbers: dict[str, float]

    @property
    def verdict(self) -> Verdict:
        """Right and wrong: "only if"; right alone: "true"; wrong alone: "false".

        >>> found(True, True).verdict, found(True).verdict, found(False).verdict, found(False, False).verdict
        ('only if', 'true', 'false', 'undecided')
        """
        if self.right:
            return "only if" if self.wrong else "true"
        return "false" if self.wrong else "undecided"


def found(right: object, wrong: object = None, /, **numbers: Any) -> Found:
    """What a measurement gave, with plain numbers; the claim is wrong where it is not right, unless said."""
    is_right = bool(right)
    return Found(is_right, not is_right if wrong is None else bool(wrong), {**numbers})


@dataclass(frozen=True)
class Claim:
    """A claim: its name and group, its verdict, the section that explains it, and how it is measured."""

    name: str
    group: str
    verdict: Verdict
    section: str
    measure: Callable[[], Found]


CLAIMS: dict[str, Claim] = {}
"""All claims by name, in the order of the page; the modules of this package fill it."""


def claim(verdict: Verdict, section: str) -> Callable[[Callable[[], Found]], Callable[[], Found]]:
    """Enters a measurement into the ledger: the claim is called as the function, its group as the module.

    It starts from one seed, and leaves torch's generator as it was.

    Args:
        verdict: the one that the page gives. A test holds it against the measurement.
        section: of the book, which explains the claim: "shift.md#aliasing".
    """

    def enter(measure: Callable[[], Found]) -> Callable[[], Found]:
        name = measure.__name__.replace("_", "-")
        group = measure.__module__.rpartition(".")[2]

        @wraps(measure)
        def seeded() -> Found:
            with torch.random.fork_rng(devices=[]):
                torch.default_generator.manual_seed(0)
                return measure()

        CLAIMS[name] = Claim(name, group, verdict, section, seeded)
        return seeded

    return enter


@cache
def claim_words() -> dict[str, dict[str, dict[str, str]]]:
    """What is said, what was measured and what would change the verdict, by claim and language: words.json.

    Numbers go where their names stand.

    >>> claim_words()["longest-wavelength"]["en"]["said"]
    'The wavelengths run from $2\\\\pi$ to $10000 \\\\cdot 2\\\\pi$'
    """
    text = files("posenc.experiments.claims").joinpath("words.json").read_text(encoding="utf-8")
    words: dict[str, dict[str, dict[str, str]]] = json.loads(text)
    return words


_WORDS: dict[str, dict[str, str]] = {
    "en": {
        "claim": "Claim", "verdict": "Verdict", "about": "About",
        "measured": "Measured → what would change the verdict",
        "true": "true", "only if": "only if", "false": "false",
        "formulas": "formula", "code": "code", "precision": "precision", "order": "order",
        "inputs": "input", "attention": "attention", "reach": "reach",
        "longer": "length", "padding": "padding", "serving": "running",
    },
    "zh": {
        "claim": "说法", "verdict": "结论", "about": "关于", "measured": "测得 → 什么会改变结论",
        "true": "对", "only if": "有条件", "false": "错",
        "formulas": "公式", "code": "代码", "precision": "精度", "order": "顺序",
        "inputs": "输入的数", "attention": "注意力", "reach": "远近",
        "longer": "长度", "padding": "填充", "serving": "运行",
    },
}  # fmt: skip


@cache
def _measured(name: str) -> Found:
    """What was found, measured once for the tables of both languages."""
    return CLAIMS[name].measure()


def claim_table(*, lang: Literal["en", "zh"] = "en") -> str:
    """A Markdown table with a row for each claim, `#row-longest-wavelength`: its verdict, what was just measured, and
    what would change the verdict.

    Args:
        lang: "en" or "zh", the language of its words.

    Returns:
        Markdown.

    Raises:
        ValueError: lang is neither "en" nor "zh".

    >>> claim_table(lang="de")
    Traceback (most recent call last):
    ValueError: lang must be "en" or "zh", got 'de'

    Source: measured in this book, claims.md#table.
    """
    if lang not in _WORDS:
        raise ValueError(f'lang must be "en" or "zh", got {lang!r}')
    words, texts = _WORDS[lang], claim_words()
    opening, closing = '""' if lang == "en" else "“”"
    head = (f"[{words[name]}](#{name}){{#column-{name}}}" for name in ("verdict", "about"))
    rows: list[tuple[str, ...]] = [(words["claim"], *head, words["measured"]), ("---",) * 4]
    for each in CLAIMS.values():
        text, measured = texts[each.name][lang], _measured(each.name)
        named = f"[{opening}{text['said']}{closing}]({each.section}){{#row-{each.name}}}"
        about = f"[{words[each.group]}](#{each.group})"
        shown, changes = (text[name].format(**measured.numbers) for name in ("shown", "changes"))
        rows.append((named, words[each.verdict], about, f"{shown}<br>→ {changes}"))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
