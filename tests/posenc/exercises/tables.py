"""What the tables of solutions share: for each exercise in code a right solution and wrong ones, with what is said.

TABLE: Table = {
    "primer-attend": (
        lambda q, k, v: ...,
        [("not divided by √d", lambda q, k, v: ...), ...],
    ),
}

@pytest.mark.parametrize("id", exercises_of("begin"))
def test_each_mistake_gets_its_sentence(id: str) -> None:
    hold(id, *TABLE[id])
"""

import re
from collections.abc import Callable
from typing import Any

from press.pages import CHINESE

from posenc.exercises import EXERCISES

Solution = Callable[..., Any]
Table = dict[str, tuple[Solution, list[tuple[str, Solution]]]]


def exercises_of(page: str) -> list[str]:
    return [each.id for each in EXERCISES.values() if each.page == page]


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
