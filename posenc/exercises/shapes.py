"""Exercises on grids, graphs and times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.exercises.checking import Said, compared, exercise
from posenc.rotary import axial_frequencies
from posenc.times import periodic_encoding


@exercise("grids-angles")
def grid_angles(solution: Callable[..., Any]) -> Said | None:
    """The angles of axial RoPE: half of the pairs follow the row, half the column."""
    places, dim, base = np.array([[0, 1], [2, 0], [3, 5]]), 16, 100.0
    t = places.astype(float)
    omega = base ** (-np.arange(4) / 4)
    long = base ** (-np.arange(8) / 8)
    rows, columns = t[:, :1] * omega, t[:, 1:] * omega
    mistakes = [
        (
            np.hstack([columns, rows]),
            "Row and column have changed places: the first half of the pairs follows the row.",
            "行和列反了：前一半的对跟着行转。",
        ),
        (
            np.hstack([t[:, :1] * long[:4], t[:, 1:] * long[4:]]),
            "The frequencies run on from the row to the column, so columns get slow pairs only: each axis begins anew.",
            "频率从行一直排到列，列只剩下慢的对：每条轴要重新排起。",
        ),
        (
            np.stack([rows, columns], axis=-1).reshape(3, 8),
            "The pairs follow row and column in turn; the first half should follow the row.",
            "各对轮流跟着行和列转；应当是前一半跟着行转。",
        ),
        (
            (t @ [1, 1])[:, None] * long,
            "Every pair follows the sum of row and column, so that places along a diagonal become the same.",
            "每一对都跟着行与列的和转，于是一条对角线上的位置就没有区别了。",
        ),
        (np.hstack([rows, rows]), "Both halves follow the row.", "两半都跟着行转了。"),
        (np.hstack([columns, columns]), "Both halves follow the column.", "两半都跟着列转了。"),
        (
            np.hstack([t[:, :1] * omega**0.5, t[:, 1:] * omega**0.5]),
            "The exponent is divided by the width of the head; an axis has only half of the columns.",
            "指数除以了头的宽度；一条轴只有一半的列。",
        ),
        (
            np.hstack([t[:, :1] / omega, t[:, 1:] / omega]),
            "The angles grow with the pair: the exponent of the base lacks its minus sign.",
            "角度随着对的序号变大：底数的指数少了负号。",
        ),
    ]
    wanted = t @ axial_frequencies(dim, 2, base=base)
    return compared(solution(places, dim, base), wanted, "grid_angles(places, 16, 100)", mistakes)


@exercise("graphs-steps")
def steps_from(solution: Callable[..., Any]) -> Said | None:
    """The least number of edges from an anchor to every node."""
    graph = np.zeros((6, 6))
    for t, u, weight in ((0, 1, 5), (1, 2, 1), (2, 3, 1), (0, 4, 1), (4, 3, 1), (3, 0, 1)):
        graph[t, u] = weight
    wanted = np.array([0, 1, 2, 2, 1, np.inf])
    far = np.isinf(wanted)
    mistakes = [
        (
            np.where(far, -1, wanted),
            "A node out of reach has −1, which is nearer than the anchor itself: its distance is infinite.",
            "到不了的节点写成了 −1，比锚点自己还近：它的距离是无穷大。",
        ),
        (
            np.where(far, 0, wanted),
            "A node out of reach has 0, as if it were the anchor: its distance is infinite.",
            "到不了的节点写成了 0，好像它就是锚点：它的距离是无穷大。",
        ),
        (
            np.array([0, 3, 2, 1, 2, np.inf]),
            "The edges are followed backwards: graph[t, u] leads from t to u.",
            "边走反了：graph[t, u] 是从 t 到 u 的边。",
        ),
        (
            np.array([0, 1, 2, 1, 1, np.inf]),
            "The edges are followed both ways: graph[t, u] leads from t to u only.",
            "边两个方向都走了：graph[t, u] 只从 t 到 u。",
        ),
        (
            wanted + 1,
            "All distances are 1 too large: the anchor is 0 steps away from itself.",
            "所有距离都多了 1：锚点离自己是 0 步。",
        ),
        (
            np.array([0, 5, 6, 2, 1, np.inf]),
            "The weights are added up as lengths; each edge is one step.",
            "把权重当作长度加起来了；每条边只算一步。",
        ),
        (
            np.array([0, 1, 2, 3, 1, np.inf]),
            "Node 3 is reached by a longer way first, or written twice: its shortest way from node 0 has 2 steps.",
            "节点 3 先走了更长的路，或者被改写了：从节点 0 到它，最短的路是 2 步。",
        ),
        (
            np.array([3, 1, 2, 2, 1, np.inf]),
            "The anchor is reached again by a ring of 3 steps, and its 0 is overwritten.",
            "绕 3 步的环又回到锚点，把它的 0 改写了。",
        ),
    ]
    return compared(solution(graph, 0), wanted, "steps_from(graph, 0)", mistakes)


@exercise("times-closed")
def closed_code(solution: Callable[..., Any]) -> Said | None:
    """Harmonics of a period, sine and cosine side by side, the same bit for bit after whole periods."""
    t, period, r = np.array([0.0, 3.0, 7.5]), 24.0, np.arange(1, 3)

    def code(angles: Any) -> Any:
        return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(len(angles), -1)

    wanted = periodic_encoding(t, period, harmonics=2)
    angles = 2 * np.pi * t[:, None] * r / period
    mistakes = [
        (
            code(angles / (2 * np.pi)),
            "A factor 2π is missing: after one period the first pair must have turned once.",
            "少了 2π：过了一个周期，第一对应当正好转一圈。",
        ),
        (
            code(2 * np.pi * t[:, None] / r / period),
            "The harmonics divide: pair 2 has the period 48 instead of 12, so the code does not close after 24.",
            "谐波做了除数：第 2 对的周期成了 48，应当是 12，所以过了 24 编码没有合上。",
        ),
        (
            code(2 * np.pi * t[:, None] * (r - 1) / period),
            "The harmonics are counted from 0, so the first pair never turns: count from 1.",
            "谐波从 0 数起，第一对就不转了：应当从 1 数起。",
        ),
        (
            np.hstack([np.sin(angles), np.cos(angles)]),
            "All sines come before all cosines: each harmonic has its sine and its cosine side by side.",
            "正弦全排在余弦前面了：每个谐波的正弦和余弦应当挨在一起。",
        ),
        (
            wanted.reshape(3, 2, 2)[..., ::-1].reshape(3, 4),
            "Sine and cosine have changed places: at t = 0 a pair is 0, 1.",
            "正弦和余弦反了：t = 0 时，一对是 0、1。",
        ),
        (
            code(2 * np.pi * (t // 1)[:, None] * r / period),
            "The times are rounded to whole numbers, and 7.5 becomes 7.",
            "时间取整了，7.5 变成了 7。",
        ),
    ]
    if said := compared(solution(t, period, 2), wanted, "closed_code([0, 3, 7.5], 24, 2)", mistakes):
        return said
    later = np.asarray(solution(t + 24e9, period, 2))
    if not np.array_equal(later, np.asarray(solution(t, period, 2))):
        return (
            "After 1000000000 periods the code differs in its last bits: reduce t to one period before the product.",
            "过了 1000000000 个周期，编码的末几位变了：先把 t 化到一个周期里，再做乘法。",
        )
    return None
