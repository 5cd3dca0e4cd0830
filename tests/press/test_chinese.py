"""What the build does to Chinese text."""

import pytest
from press import chinese


@pytest.mark.parametrize(
    "kept",
    [
        "<p>中文</p>\n<p>中文</p>",  # blocks are not lines
        "<li>中文</li>\n<li>中文</li>",
        "<p>用 posenc\n画图</p>",  # next to Latin a break is a space
        "<p>宽度\n64</p>",
        "<svg><text>位置\n编码</text></svg>",
    ],
)
def test_what_stays(kept: str) -> None:
    assert chinese.joined(kept) == kept


def test_punctuation_and_quotes() -> None:
    assert chinese.joined("他说：\n“位置”\n（编码）") == "他说：“位置”（编码）"


def test_a_break_beside_a_chinese_mark_is_no_space() -> None:
    assert (
        chinese.joined("<p>用 posenc，\nNumPy（\n<code>a</code>\n）")
        == "<p>用 posenc，NumPy（<code>a</code>）"
    )
    assert chinese.joined("<p>好，\n<span>x</span>\n的") == "<p>好，<span>x</span>\n的"
    assert chinese.joined("<li>好。</li>\n<li>x") == "<li>好。</li>\n<li>x"
    assert chinese.joined("<li>好，\n<ul>") == "<li>好，\n<ul>"


def test_emphasis_without_chinese_is_english() -> None:
    title = "<em>Train Short, Test Long</em>"
    assert chinese.in_english(f"<p>{title}，2022") == '<p><em lang="en">Train Short, Test Long</em>，2022'
    assert (
        chinese.in_english("<em>不</em>是 <em>BERT 的表</em>，<em>x</em>")
        == "<em>不</em>是 <em>BERT 的表</em>，<em>x</em>"
    )
