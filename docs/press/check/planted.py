"""A page in both languages in which no check finds a fault, and how each check is shown one.

    @of_page(("en", "title: A\\n", "", 1, "no title"))
    def front_matter(page, language): ...

says: where `title: A` is taken from the English example, `front_matter` finds "no title" in line 1. One test
(tests/press/test_check.py) runs all of these.
"""

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from press.pages import Fault, Page, parse

Bad = tuple[str, str, str, int, str]  # language, what is replaced, by what, line of the fault, what it says


@dataclass(frozen=True)
class Check:
    """A check and what it finds in the example with something wrong in it."""

    run: Callable[..., list[Fault]]
    bad: tuple[Bad, ...]


Faults = Iterable[Fault]
PAGE: list[Check] = []  # of a page and its language
PAIR: list[Check] = []  # of an English page and its Chinese twin


def of_page(*bad: Bad) -> Callable[[Callable[[Page, str], Faults]], Callable[..., list[Fault]]]:
    return lambda check: _made(PAGE, check, bad)


def of_pair(*bad: Bad) -> Callable[[Callable[[Page, Page], Faults]], Callable[..., list[Fault]]]:
    return lambda check: _made(PAIR, check, bad)


def _made(
    checks: list[Check], check: Callable[..., Faults], bad: tuple[Bad, ...]
) -> Callable[..., list[Fault]]:
    @functools.wraps(check)
    def faults(*pages: Any) -> list[Fault]:
        return list(check(*pages))

    checks.append(Check(faults, bad))
    return faults


def broken(language: str, old: str, new: str) -> Page:
    """The example with something else in it."""
    if old not in GOOD[language]:
        raise ValueError(f"the {language} example has no {old!r}")
    return parse(GOOD[language].replace(old, new))


GOOD = {
    "en": r"""---
title: A
description: B
---
# A {#a}

## One {#one}

The width $d$ of $n$ is $d$.

$$ n = \text{if } d $$

```python
# a comment
print("sum", 3)
plot(f"{a} of {b}", [0.51, 0.9], label="sine")
```

<!--pytest-codeblocks:expected-output-->

```text
sum 3
```

<!-- figure: a sine -->

```console
$ pip install posenc  # from PyPI
```

## Last {#where-next}

Every query has a key: `posenc.alibi_bias(slopes, 4)`.

- Two rows, 90 percent of them
- 0.51 is negative: True
""",
    "zh": r"""---
title: 甲
description: 乙
---
# 甲 {#a}

## 一 {#one}

$n$ 的宽度是 $d$ , $d$ 是偶数。

$$ n = \text{若 } d $$

```python
# 注释
print("和", 3)
plot(f"{a}，共 {b}", [0.51, 0.9], label="正弦", lang="zh")
```

<!--pytest-codeblocks:expected-output-->

```text
和 3
```

<!-- figure: 一条正弦 -->

```console
$ pip install posenc  # 从 PyPI 安装
```

## 末 {#where-next}

每个查询对着一个键：`posenc.alibi_bias(slopes, 4)`。

- 两行，占 90%
- 0.51 是负的，这是 True
""",
}

# --- Figures ------------------------------------------------------------------------------------------------

DRAWING = """
import matplotlib.pyplot as plt
_, (one, other, bars, table) = plt.subplots(1, 4)
one.plot([0, 1, 2, 3, 4], [0, 1, 3, -1, 0])
one.plot([0, 1, 2, 3, 4], [2, 1.9, 2, 2, 1], "--")
one.axhline(7)
other.plot([4, 3, 2, 1, 0], [1, 1, 2, 4, 5], "s-.")
other.plot([2], [2.126], "^")
other.set_yscale("log")
bars.bar([0, 1, 2, 3], [1, 2, 6, 1])
bars.bar([0, 1, 2, 3], [1, 1, 1, 1], hatch="/")
bars.stairs([1, 2, 3], [0, 1, 2, 3])
table.imshow([[0, 1], [2, 3]])
"""
# Of this drawing: a claim that holds, one that does not, what is said of it.
CLAIMS = (
    ("peak(p1.solid) == 2", "peak(p1.solid) == 3", "it is 2"),
    ("peaks(p1.solid) == 2", "len(peaks(p1.solid)) == 2", "it is 1"),
    ("dip(solid) == 3; dips(solid) == 3", "dips(solid) == 0, 3", "it is 3"),
    ("dip(dashed) == 4", "dip(solid) == 4", "it is 3"),
    ("top(dashdot) == 5; top(p1.solid, 3) == 0", "top(dashdot) == 4", "it is 5"),
    ("low(solid) == -1", "low(solid) == 1", "it is -1"),
    ("first(squares) == 5", "first(squares) == 1", "it is 5"),
    ("last(dashed) == 1", "last(dashed) == 2", "it is 1"),
    ("at(solid, 0.5, 2) == 0.5, 3", "at(solid, 0.5, 2) == 0.6, 3", "it is 0.5, 3"),
    ("at(solid, 1) == 1", "at(solid, 9) == 1", "nothing is drawn at 9"),
    ("below(dashdot, 2) == 3", "below(dashdot, 4) == 1", "it is 2"),
    ("above(solid, dashed) == 2", "above(solid, 3) == 2", "it is nan"),
    ("level(dashed, 0, 3)", "level(dashed)", "it is False"),
    ("falls(dashdot)", "falls(solid)", "it is False"),
    ("rises(outline)", "rises(bars)", "it is False"),
    ("share(bars, 1, 2) == 80%", "share(bars, 1, 2) == 81%", "it is 0.8"),
    ("width(bars, 0.3) == 1", "width(bars, 0.3) == 3", "it is 1"),
    ("mean(dashed > solid) == 0.8", "mean(dashed > solid) == 1.0", "it is 0.8"),
    ("sum(last(c) < 2 for c in curves) == 5", "all(last(c) < 2 for c in curves)", "it is False"),
    ("sum(top(c) > 2 for p in panels for c in p.curves) == 5", "len(panels) == 3", "it is 4"),
    ("p4.map.argmax() == 3; map[1, 0] == 2", "p4.map.argmax() == 0", "it is 3"),
    ("first(hatched) == 1", "first(dotted) == 1", "nothing is called dotted"),
    ("top(triangles) == 2.1", "top(triangles) == 2.2", "it is 2.126"),
    ("top(triangles) == 2.13", "top(triangles) == -2.13", "it is 2.126"),
    ("p1.solid.x == 0, 1, 2, 3, 4", "solid.x == 0, 1, 2, 3", "it is 0, 1, 2, 3, 4"),
    ("top(p3.bars) == 6", "tops(p3.bars) == 6", "nothing is called tops"),
    ("1 < 2", "top(p1.solid", "never closed"),
)
