"""What the build does to Chinese text."""

import pytest
from press import chinese

JOINED = {
    "他说：\n“位置”\n（编码）": "他说：“位置”（编码）",
    # a break beside a Chinese mark is no space
    "<p>用 posenc，\nNumPy（\n<code>a</code>\n）": "<p>用 posenc，NumPy（<code>a</code>）",
    "<p>好，\n<span>x</span>\n的": "<p>好，<span>x</span>\n的",
}
STAYS = [
    "<p>中文</p>\n<p>中文</p>",  # blocks are not lines
    "<li>好。</li>\n<li>x",
    "<li>好，\n<ul>",
    "<p>用 posenc\n画图</p>",  # next to Latin a break is a space
    "<p>宽度\n64</p>",
    "<svg><text>位置\n编码</text></svg>",
]


@pytest.mark.parametrize(("html", "joined"), [*JOINED.items(), *zip(STAYS, STAYS, strict=True)])
def test_lines_are_joined_where_a_break_is_no_space(html: str, joined: str) -> None:
    assert chinese.joined(html) == joined


def test_emphasis_without_chinese_is_english() -> None:
    title = "<em>Train Short, Test Long</em>"
    assert chinese.in_english(f"<p>{title}，2022") == '<p><em lang="en">Train Short, Test Long</em>，2022'
    assert (
        chinese.in_english("<em>不</em>是 <em>BERT 的表</em>，<em>x</em>")
        == "<em>不</em>是 <em>BERT 的表</em>，<em>x</em>"
    )
