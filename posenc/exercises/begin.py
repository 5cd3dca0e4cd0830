"""Exercises on the primer, on order and on the first attempts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.exercises.checking import Said, compared, exercise


def _attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    root: float | None = None,
    axis: int = -1,
    mask: Any = "causal",
    hide: float = -np.inf,
) -> Any:
    """What attention gives, right or with a mistake."""
    scores = q @ k.T / (k.shape[1] ** 0.5 if root is None else root)
    own = np.arange(len(k) - len(q), len(k))[:, None]
    hidden = np.arange(len(k)) > own if isinstance(mask, str) else mask
    scores = np.where(hidden, hide, scores)
    with np.errstate(all="ignore"):
        e = np.exp(scores - scores.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True) @ v


@exercise("primer-attend")
def attend(solution: Callable[..., Any]) -> Said | None:
    """Causal attention whose queries are those of the last tokens."""
    rng = np.random.default_rng(0)
    for queries, call in ((4, "attend(q, k, v)"), (2, "attend(q[2:], k, v)")):
        q, k, v = rng.normal(size=(4, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
        q = q[4 - queries :]
        u, t = np.arange(4), np.arange(queries)[:, None]
        own = t + 4 - queries
        weights, no_mask = _attention(q, k, np.eye(4)), _attention(q, k, np.eye(4), mask=u < 0)
        mistakes = [
            (
                _attention(q, k, v, root=1),
                "The scores are not divided by √d, the root of the width of a key.",
                "分数没有除以 √d，d 是键的宽度。",
            ),
            (
                _attention(q, k, v, root=3),
                "The scores are divided by d, and not by its root.",
                "分数除以了 d，应当除以它的平方根。",
            ),
            (
                _attention(q, k, v, root=2),
                "The scores are divided by the root of the number of keys; d is their width.",
                "分数除以了键的个数的平方根；d 是键的宽度。",
            ),
            (
                _attention(q, k, v, axis=0),
                "The softmax runs over the queries: the weights of one query, a row, add up to 1.",
                "softmax 沿着查询做了：应当让同一个查询的权重，也就是一行，加起来等于 1。",
            ),
            (
                _attention(q, k, v, mask=u > t),
                "The mask counts the rows of q from 0, but they are the last tokens of the text.",
                "掩码把 q 的行从 0 数起，可它们是文本最后的几个词元。",
            ),
            (
                no_mask @ v,
                "A token sees later ones: nothing is masked.",
                "词元看见了后面的词元：什么都没有遮住。",
            ),
            (
                _attention(q, k, v, mask=u >= own),
                "The mask is shifted by one: a token sees itself, too.",
                "掩码错了一位：词元也看得见自己。",
            ),
            (
                _attention(q, k, v, mask=u > own + 1),
                "The mask is shifted by one: each token sees the next one.",
                "掩码错了一位：每个词元都看见了下一个。",
            ),
            (
                _attention(q, k, v, mask=u < own),
                "The mask is the wrong way round: earlier tokens are hidden, and later ones are seen.",
                "掩码反了：往回的词元被遮住，往后的反而看得见。",
            ),
            (
                np.where(u > own, 0, no_mask) @ v,
                "Weights are set to 0 after the softmax, so a row no longer adds up to 1: mask the scores.",
                "权重在 softmax 之后才置零，一行加起来不再是 1：要遮的是分数。",
            ),
            (
                _attention(q, k, v, hide=0),
                "A hidden score is set to 0, and e to the power of 0 is 1: set it to minus infinity.",
                "被遮的分数设成了 0，而 e 的 0 次方是 1：应当设成负无穷。",
            ),
            (weights, "These are the weights; multiply them by v.", "这是权重，还要乘上 v。"),
        ]
        if said := compared(solution(q, k, v), weights @ v, call, mistakes):
            return said
    large = solution(1000 * q, k, v)
    if not np.isfinite(np.asarray(large, float)).all():
        return (
            "With scores near 1000 the power of e overflows: subtract the largest score of each row first.",
            "分数接近 1000 时，e 的幂溢出了：先减去每行最大的分数。",
        )
    return compared(large, _attention(1000 * q, k, v), "attend(1000 * q, k, v)")


@exercise("primer-split-heads")
def split_heads(solution: Callable[..., Any]) -> Said | None:
    """The columns of each token in as many equal parts, the heads before the tokens."""
    x = np.arange(48.0).reshape(2, 3, 8)
    cut = x.reshape(2, 3, 2, 4)
    mistakes = [
        (
            x.reshape(2, 2, 3, 4),
            "One reshape to that shape mixes tokens: cut the last axis first, then move the axis of heads.",
            "直接变成那个形状会把词元混在一起：先切最后一轴，再移动头所在的轴。",
        ),
        (cut, "The axis of heads still stands behind that of tokens.", "头所在的轴还在词元所在的轴后面。"),
        (
            x.reshape(2, 3, 4, 2).transpose(0, 3, 1, 2),
            "The heads take every second column in turn; each takes a block of neighbours.",
            "各个头隔一列取一列；应当各取相邻的一段。",
        ),
        (
            x.reshape(2, 3, 4, 2).transpose(0, 2, 1, 3),
            "heads and head_dim have changed places.",
            "heads 和 head_dim 写反了。",
        ),
        (
            cut.transpose(0, 2, 3, 1),
            "The last two axes have changed places: they are seq, head_dim.",
            "最后两轴写反了：应当是 seq、head_dim。",
        ),
    ]
    return compared(solution(x, 2), cut.transpose(0, 2, 1, 3), "split_heads(x, 2)", mistakes)


@exercise("order-error")
def order_error(solution: Callable[..., Any]) -> Said | None:
    """The largest difference between f(x[order]) and f(x)[order]."""
    x, order = np.array([[1.0, 4.0], [2.0, -3.0], [0.5, 2.5]]), [1, 2, 0]

    def adds_places(x: Any) -> Any:
        return x + np.array([[0.0], [5.0], [2.0]])

    there, here = adds_places(x[order]), adds_places(x)
    difference = there - here[order]
    mistakes = [
        (
            np.abs(there - here).max(),
            "It compares f(x[order]) with f(x): reorder the second, too.",
            "比较的是 f(x[order]) 和 f(x)：后者也要换次序。",
        ),
        (
            np.abs(there - here[np.argsort(order)]).max(),
            "The output is reordered by the inverse of order: take the rows of f(x) as those of x were taken.",
            "输出按 order 的逆换了次序：取 f(x) 的行，要和取 x 的行一样。",
        ),
        (
            np.abs(there - x[order]).max(),
            "It compares with x[order], and not with f(x)[order].",
            "拿来比较的是 x[order]，不是 f(x)[order]。",
        ),
        (
            difference.max(),
            "A difference can be negative: take absolute values before the maximum.",
            "差可能是负的：先取绝对值，再取最大。",
        ),
        (
            np.abs(difference).mean(),
            "This is the mean of the differences, not the largest.",
            "这是差的平均，不是最大的差。",
        ),
        (
            np.linalg.norm(difference),
            "This is the root of the sum of squares; the largest single difference is asked for.",
            "这是平方和的平方根；要的是最大的一个差。",
        ),
        (
            np.abs(difference),
            "One number is asked for: the largest of these differences.",
            "要的是一个数：这些差里最大的一个。",
        ),
    ]
    call = "order_error(f, x, [1, 2, 0])"
    return compared(solution(adds_places, x, order), np.abs(difference).max(), call, mistakes) or compared(
        solution(np.tanh, x, order), 0.0, "order_error(np.tanh, x, [1, 2, 0])"
    )


@exercise("naive-binary")
def binary_code(solution: Callable[..., Any]) -> Said | None:
    """Binary digits as a code, the smallest first."""
    positions = np.array([0, 1, 2, 5, 6])
    powers = 2 ** np.arange(3)
    right = positions[:, None] // powers % 2
    mistakes = [
        (
            right[:, ::-1],
            "The columns are in the order of writing; column 0 is the digit of the ones.",
            "列的次序和书写的次序一样了；第 0 列应当是个位。",
        ),
        (
            (positions[:, None] + 1) // powers % 2,
            "The positions are counted from 1: position 0 has the digits 0, 0, 0.",
            "位置从 1 数起了：位置 0 的数字是 0、0、0。",
        ),
        (
            2 * right - 1,
            "The digits are −1 and 1; they should be 0 and 1.",
            "数字写成了 −1 和 1；应当是 0 和 1。",
        ),
        (
            positions[:, None] / powers % 2,
            "The division leaves fractions: divide with // so that what lies below the digit is dropped.",
            "除法留下了小数：用 // 去除，把这一位以下的部分丢掉。",
        ),
        (
            positions[:, None] // powers,
            "The digits above are still in it: take the rest after division by 2.",
            "更高的位还在里面：再取除以 2 的余数。",
        ),
        (
            (positions ^ (positions >> 1))[:, None] // powers % 2,
            "This is the Gray code, in which neighbours differ in one digit; plain binary digits are asked for.",
            "这是格雷码，相邻的两个数只差一位；要的是普通的二进制数字。",
        ),
        (
            right.T,
            "Rows and columns have changed places: a row is a position.",
            "行列反了：一行是一个位置。",
        ),
    ]
    return compared(solution(positions, 3), right, "binary_code([0, 1, 2, 5, 6], 3)", mistakes)
