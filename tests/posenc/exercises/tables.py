"""What the tables of solutions share: for each exercise in code a right solution and wrong ones, with what is said.

TABLE: Table = {
    "primer-attend": (
        lambda q, k, v: ...,
        [("not divided by √d", lambda q, k, v: ...), ...],
    ),
}

test_each_mistake_gets_its_sentence = held("begin", TABLE)
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from press.pages import CHINESE

from posenc.exercises import EXERCISES

Solution = Callable[..., Any]
Table = dict[str, tuple[Solution, list[tuple[str, Solution]]]]


def held(page: str, table: Table) -> Callable[[str], None]:
    """The test of the exercises of a page, for a name that begins with test_."""

    @pytest.mark.parametrize("id", [each.id for each in EXERCISES.values() if each.page == page])
    def test(id: str) -> None:
        hold(id, *table[id])

    return test


def hold(id: str, right: Solution, wrong: list[tuple[str, Solution]]) -> None:
    """The right one is right; five wrong ones get five sentences with their words, the same in both languages."""
    assert EXERCISES[id].said(right) is None
    sentences = [EXERCISES[id].said(solution) for _, solution in wrong]
    for (words, _), said in zip(wrong, sentences, strict=True):
        assert said, f"{id}: the wrong solution of '{words}' is taken for right"
        assert words in said[0], said[0]
        assert CHINESE.search(said[1]), said[1]
        numbers = [sorted(re.findall(r"\d+(?:\.\d+)?", text)) for text in said]
        assert numbers[0] == numbers[1], said
    assert len(set(sentences)) == len(sentences) >= 5, (
        f"{id}: two mistakes get one sentence, or fewer than five"
    )
