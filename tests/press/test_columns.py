"""Columns behind Chinese labels get the room that wide characters take."""

import re

import pytest
from press.columns import aligned


def gaps(*lines: str) -> list[int]:
    """How many wide characters of room each line gets, and whether its text is as it was."""
    found = aligned(list(lines))
    assert [re.sub(r"<span.*?</span>", "", line) for line in found] == list(lines)
    return [sum(int(n) for n in re.findall(r"--n:(\d+)", line)) for line in found]


def test_what_is_padded_by_characters_stands_in_columns() -> None:
    rows = [
        "          back",
        "无位置       0.23",
        "正弦，随机起点   1.00",
        "RoPE      0.97",
        "a &lt; 位     0.50",
    ]
    assert gaps(*rows) == [7, 4, 0, 7, 6]
    assert aligned(rows)[1].index("<span") == 10
    assert aligned(rows)[4].endswith("</span>0.50")


def test_each_column_gets_its_room() -> None:
    rows = ["        原来的    两倍深    两倍宽", "none    1.00   1.00   0.98", "rotary  0.97   0.07   0.15"]
    assert gaps(*rows) == [0, 6, 6]
    assert [part.count("<span") for part in aligned(rows)] == [0, 2, 2]


@pytest.mark.parametrize(
    "rows",
    [
        ("no position  0.23", "sinusoidal   1.00", "RoPE         0.97"),  # nothing is wide
        ("斜率 1/2   最近   5 个键", "斜率 1/4   最近  10 个键", "斜率 1/128 最近 295 个键"),  # all are as wide
        ("帧 [ 13  34  62]", "按时间：最多差 0.0133 秒", "按序号：最多差 5.98 秒"),  # no column
        ("学习率最好：", "   0.001   0", "   0.003  51", "只用 0.003：17"),  # an indent
        ("有  一", "两行  二"),  # two lines are no table
        ("",),
    ],
)  # fmt: skip
def test_what_stands_in_no_columns_is_left_as_it_is(rows: tuple[str, ...]) -> None:
    assert not any(gaps(*rows))
