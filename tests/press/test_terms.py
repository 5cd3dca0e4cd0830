"""The words of the book: the list is sound, the book keeps to it, and what is not said is found."""

import pytest
from press.cache import ROOT
from press.check import terms
from press.pages import CHINESE

FILES = terms.files()


def test_what_is_beside_the_pages_is_read() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in FILES}
    assert {"README.md", "mkdocs.yml", "docs/home/index.md", "posenc/plot/_style.py"} <= names


def test_one_word_an_idea_in_both_languages() -> None:
    said = terms.terms()
    assert len(said) > 50
    for language in ("en", "zh"):
        words = [getattr(term, language) for term in said]
        assert len(set(words)) == len(words)
    assert all(CHINESE.search(term.zh) and not CHINESE.search(term.en) for term in said)
    assert all(bool(CHINESE.search(term.note[1])) == bool(term.note[0]) for term in said)


SAID = ("A rank is a machine.", "进程是一台机器。")


@pytest.mark.parametrize(
    ("says", "where", "lacks"),
    [
        (SAID, "parallel.md#offset", []),
        (SAID[:1], "parallel.md#offset", ["'rank' has no sentence in Chinese"]),
        ((SAID[1], SAID[1]), "parallel.md#offset", ["'rank' has no sentence in English"]),
        (("A machine", SAID[1]), "parallel.md#offset", ["'rank' has no sentence in English"]),
        (SAID, "parallel.md", ["'rank' does not say where it is explained"]),
    ],
)
def test_a_term_without_its_sentence_is_named(says: tuple[str, ...], where: str, lacks: list[str]) -> None:
    found = terms.unsaid([terms.Term("rank", "进程", says=says, where=where)])
    assert list(found) == [f"docs/terms.yml: {each}" for each in lacks]


@pytest.mark.parametrize("term", terms.terms(), ids=lambda term: term.en)
def test_the_right_word_is_not_a_wrong_one(term: terms.Term) -> None:
    for word in (term.en, term.zh):
        assert terms.faults(f"Here {word}. 这里，{word}。") == []


# --- What is not said, is found -----------------------------------------------------------------------------

PLANTED = {
    "每个*令牌*一行，**令牌**": "词元",
    "a *sinusoidal embedding*": "sinusoidal encoding",
    "每个 token 的编码": "词元",
    "旋转位置嵌入": "旋转位置编码",
    "Position encodings are added": "positional encoding",
    "the sine in dimension $i$": "pair index",
    "Attention is invariant": "equivariant",
    "注意力对词序不变": "置换等变",
    "填充掩码": "键填充掩码",
    "any relative bias": "relative position bias",
    "学习表": "可学习表",
}


@pytest.mark.parametrize(("planted", "right"), PLANTED.items())
def test_a_wrong_word_is_found(planted: str, right: str) -> None:
    found = terms.faults(f"A first line.\n{planted}\n")
    assert any(right in fault.message and fault.line == 2 for fault in found), found


@pytest.mark.parametrize(
    "line",
    [
        "可学习的位置嵌入，又叫可学习位置嵌入",
        "learned positional embeddings, and rotary position embeddings",
        "- Su. *RoFormer: Enhanced Position Embedding, Relative Bias and Works for Any Length*, 2021.",
        "the tensor `position embedding`",
        'It is said that "the encoder is invariant" and "works for any length".',
        "“任意长度都能用”是错的，“编码器是置换不变的”也是。",
        "dimension in space, dimensions",
        "池化之后置换不变",
        "键填充掩码与可学习表",
        "序列长度，一位相同",
    ],
)
def test_what_may_be_said(line: str) -> None:
    assert terms.faults(line) == []
