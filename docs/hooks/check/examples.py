"""A page in both languages in which no check finds a fault, and how each check is shown one.

    @of_page(("en", "title: A\\n", "", 1, "no title"))
    def front_matter(page, language): ...

says: where `title: A` is taken from the English example, `front_matter` finds "no title" in line 1. One test
(tests/book/test_check.py) runs all of these; a check without an example cannot be made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from book.page import Fault, Page, parse

Bad = tuple[
    str, str, str, int, str
]  # language, what is replaced, by what, the line of the fault, what it says


@dataclass(frozen=True)
class Check:
    """A check and what it finds in the example with something wrong in it."""

    run: Callable[..., list[Fault]]
    bad: tuple[Bad, ...]


PAGE: list[Check] = []  # of a page and its language
PAIR: list[Check] = []  # of an English page and its Chinese twin
Function = TypeVar("Function", bound=Callable[..., list[Fault]])


def of_page(*bad: Bad) -> Callable[[Function], Function]:
    return lambda check: _made(PAGE, check, bad)


def of_pair(*bad: Bad) -> Callable[[Function], Function]:
    return lambda check: _made(PAIR, check, bad)


def _made(checks: list[Check], check: Function, bad: tuple[Bad, ...]) -> Function:
    if not bad:
        raise TypeError(f"{check.__name__} has no example of what it finds")
    checks.append(Check(check, bad))
    return check


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
