"""What the build does to Chinese text."""

import doctest

import chinese
import pytest


def test_examples() -> None:
    assert doctest.testmod(chinese).failed == 0
    assert doctest.testmod(chinese).attempted > 0


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
