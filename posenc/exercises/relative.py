"""Exercises on positions inside attention: rotary, alibi, relative, disentangled, locality."""

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.alibi import alibi_bias
from posenc.exercises.checking import Said, compared, exercise
from posenc.locality import locality_profile
from posenc.relative import relative_bias
from posenc.rotary import apply_rotary

Solution = Callable[..., Any]


def _softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@exercise("rotary-turn")
def turn(solution: Solution) -> Said | None:
    # As many heads as tokens, so that the wrong axis fits.
    x, t = np.random.default_rng(0).normal(size=(4, 4, 8)), np.array([3, 0, 7, 1])
    omega = 10000.0 ** (-np.arange(0, 8, 2) / 8)
    a, b = x[..., 0::2], x[..., 1::2]
    c, s = np.cos(t[:, None] * omega), np.sin(t[:, None] * omega)
    mistakes: list[tuple[Any, str, str]] = [
        (
            apply_rotary(x, t, layout="half"),
            "Number i is paired with number i + dim/2; here neighbours, 2i and 2i + 1, make a pair.",
            "第 i 个数与第 i + dim/2 个数成了一对；这里相邻的 2i 和 2i + 1 是一对。",
        ),
        (
            apply_rotary(x, -t),
            "The pairs turn clockwise: the minus stands before the sine of the first number.",
            "各对顺时针转了：负号应当在第一个数的正弦前面。",
        ),
        (
            np.swapaxes(apply_rotary(np.swapaxes(x, 0, 1), t), 0, 1),
            "Head h is turned by positions[h]: the tokens are on axis 1, the last but one.",
            "第 h 个头按 positions[h] 转了：词元在第 1 轴，也就是倒数第二轴。",
        ),
        (
            np.stack(
                [
                    a * np.cos(t * omega) - b * np.sin(t * omega),
                    a * np.sin(t * omega) + b * np.cos(t * omega),
                ],
                -1,
            ).reshape(x.shape),
            "All tokens are turned alike, because positions and frequencies are multiplied one by one: "
            "make the positions a column.",
            "每个词元转得一样多，因为位置和频率逐个相乘了：要把位置变成一列。",
        ),
        (
            apply_rotary(x, np.arange(4)),
            "The tokens are turned by 0, 1, 2, 3, not by the positions that were given.",
            "词元按 0、1、2、3 转了，没有用给定的位置。",
        ),
        (
            apply_rotary(x, t, frequencies=np.sqrt(omega)),
            "The frequencies have the exponent -i/dim, and should have -2i/dim.",
            "频率的指数是 -i/dim，应当是 -2i/dim。",
        ),
        (
            np.stack([a * c + b * s, a * s + b * c], axis=-1).reshape(x.shape),
            "Lengths change: one of the four products needs a minus.",
            "长度变了：四个乘积里有一个要带负号。",
        ),
        (
            np.concatenate([a * c - b * s, a * s + b * c], axis=-1),
            "The turned numbers are right, but stand in halves: put each pair back where it was.",
            "转过的数是对的，但排成了两半：每一对要放回原处。",
        ),
    ]
    return compared(solution(x, t), apply_rotary(x, t), "turn(x, [3, 0, 7, 1])", mistakes)


@exercise("rotary-decode")
def step(solution: Solution) -> Said | None:
    n, dim = 6, 8
    q, k, v = np.random.default_rng(1).normal(size=(3, n, dim))
    t = np.arange(n)

    def outputs(
        turned_q: Any = t, turned_k: Any = t, values: Any = v, scale: float = dim**-0.5, again: bool = False
    ) -> np.ndarray:
        """All outputs of causal attention; `again`: at each step all keys in the cache are turned once more."""
        rows = []
        for last in range(n):
            more = turned_k[: last + 1] * (1 + last - t[: last + 1] if again else 1)
            query = apply_rotary(q[last], [turned_q[last]])[0]
            keys = np.stack([apply_rotary(row, [u])[0] for row, u in zip(k[: last + 1], more, strict=True)])
            rows.append(_softmax(scale * (keys @ query)) @ values[: last + 1])
        return np.stack(rows)

    mistakes: list[tuple[Any, str, str]] = [
        (
            outputs(turned_k=0 * t),
            "Queries are turned and keys are not: both must be.",
            "转了查询，没有转键：两者都要转。",
        ),
        (
            outputs(0 * t, 0 * t),
            "Every new token stands at position 0: its position is the number of keys in the cache.",
            "每个新词元都在位置 0：它的位置应当是缓存里键的个数。",
        ),
        (
            outputs(again=True),
            "Keys in the cache are turned again at each step; turn a key once, before it goes in.",
            "缓存里的键每一步又转了一次；键只转一次，放进缓存之前转。",
        ),
        (
            outputs(values=apply_rotary(v, t)),
            "The values are turned, too: only queries and keys are.",
            "值也转了：只转查询和键。",
        ),
        (
            outputs(scale=1.0),
            "The scores are not divided by the root of the width.",
            "分数没有除以宽度的平方根。",
        ),
        (
            outputs(t + 1, t),
            "The query stands one further on than its own key: both have the same position.",
            "查询比自己的键往后了一位：两者的位置相同。",
        ),
        (
            outputs(t, t + 1),
            "The key stands one further on than its own query: both have the same position.",
            "键比自己的查询往后了一位：两者的位置相同。",
        ),
    ]
    keys, values, rows = np.zeros((0, dim)), np.zeros((0, dim)), []
    for i in range(n):
        result = solution(q[i], k[i], v[i], keys, values)
        if not isinstance(result, tuple) or len(result) != 3:
            return (
                "`step` must return three things: output, keys, values.",
                "`step` 要返回三样：output, keys, values。",
            )
        row, keys, values = result
        if np.shape(keys) != (i + 1, dim) or np.shape(values) != (i + 1, dim):
            return (
                f"After {i + 1} tokens keys have the shape {np.shape(keys)} and values {np.shape(values)}, and both "
                f"should have {(i + 1, dim)}: append the new ones.",
                f"{i + 1} 个词元之后，keys 的形状是 {np.shape(keys)}，values 是 {np.shape(values)}，"
                f"都应当是 {(i + 1, dim)}：要把新的接上去。",
            )
        if np.shape(row) != (dim,):
            return (
                f"Output has shape {np.shape(row)}, not ({dim},).",
                f"output 的形状是 {np.shape(row)}，不是 ({dim},)。",
            )
        rows.append(row)
    return compared(np.stack(rows), outputs(), "output of step", mistakes)


@exercise("alibi-running-mean")
def running_mean(solution: Solution) -> Said | None:
    values, slope = np.random.default_rng(0).normal(size=(6, 2)), 0.5
    back = np.subtract.outer(np.arange(6), np.arange(6))

    def mean(factor: float) -> np.ndarray:
        weights = np.where(back >= 0, factor ** np.maximum(back, 0), 0.0)
        return weights @ values / weights.sum(axis=1, keepdims=True)

    factors = np.where(back >= 0, np.exp(-slope * np.maximum(back, 0)), 0.0)
    earlier = factors * (back > 0)
    mistakes: list[tuple[Any, str, str]] = [
        (
            factors @ values * (1 - np.exp(-slope)),
            "You divide by the sum over an endless past; the first tokens have few keys: add up their factors.",
            "除的是无穷多个键的总和；开头的词元只有几个键，所以系数也要一路累加。",
        ),
        (
            factors @ values,
            "The weights do not add up to 1: divide by the sum of the factors.",
            "权重加起来不是 1：要除以系数的总和。",
        ),
        (
            mean(1 - slope),
            "A step back multiplies by 1 - slope; softmax takes e to the power of the score: exp(-slope).",
            "往回一步乘了 1 - slope；softmax 取的是 e 的幂，应当乘 exp(-slope)。",
        ),
        (
            mean(2.0**-slope),
            "A step back multiplies by 2 ** -slope, and should by exp(-slope).",
            "往回一步乘了 2 ** -slope，应当乘 exp(-slope)。",
        ),
        (
            mean(np.exp(slope)),
            "Far keys get more than near ones: the factor is exp(-slope).",
            "远的键比近的键多：系数应当是 exp(-slope)。",
        ),
        (
            mean(1.0),
            "All keys count the same: the slope is not used.",
            "每个键都一样重：没有用到斜率。",
        ),
        (
            factors @ values / np.arange(1, 7)[:, None],
            "The sum is divided by the number of keys; their factors shrink, too: divide by the sum of the factors.",
            "总和除以了键的个数；但系数越远越小，应当除以系数的总和。",
        ),
        (
            np.exp(-slope) * mean(np.exp(-slope)),
            "The newest value is multiplied by the factor, too: shrink the old sum first, then add the value.",
            "最新的值也乘上了系数：应当先让旧的总和变小，再加上新的值。",
        ),
        (
            earlier @ values / np.maximum(earlier.sum(axis=1, keepdims=True), 1e-300),
            "A token does not see its own value.",
            "词元没有看到自己的值。",
        ),
    ]
    right = _softmax(alibi_bias(slope, 6)) @ values
    return compared(solution(values, slope), right, "running_mean(values, 0.5)", mistakes)


@exercise("relative-table-bias")
def table_bias(solution: Solution) -> Said | None:
    table, n_query, n_key = np.array([-1.0, -0.5, 0.25, 0.5, 2.0]), 3, 6
    z, u = 2, np.arange(n_key)
    t = np.arange(n_key - n_query, n_key)[:, None]
    mistakes: list[tuple[Any, str, str]] = [
        (
            table[np.clip(t - u, -z, z) + z],
            "Left and right are exchanged: the offset is the key's position minus the query's.",
            "左右对调了：偏移是键的位置减查询的位置。",
        ),
        (
            table[np.clip(u - np.arange(n_query)[:, None], -z, z) + z],
            "The queries stand at 0, 1, 2; with a cache they are the last of the keys, here at 3, 4, 5.",
            "查询站在 0、1、2；有缓存时它们是最后几个键，这里在 3、4、5。",
        ),
        (
            table[(u - t + z) % 5],
            "Offsets beyond z wrap around: Python takes an index of -1 for the last row, without an error. "
            "Clip them first.",
            "超出 z 的偏移绕回去了：Python 把下标 -1 当成最后一行，并不报错。要先截断。",
        ),
        (
            table[np.clip(u - t, -z, z)],
            "Offset 0 reads row 0 of the table; it stands in the middle, at row z.",
            "偏移 0 读的是表的第 0 行；它在正中间，第 z 行。",
        ),
        (
            table[np.minimum(np.abs(u - t), z) + z],
            "Both sides read the same rows: the distance is taken, not the offset.",
            "两侧读了同样的行：用的是距离，不是偏移。",
        ),
    ]
    right = relative_bias(table, n_query, n_key)
    return compared(solution(table, n_query, n_key), right, "table_bias(table, 3, 6)", mistakes)


@exercise("disentangled-causal-shift")
def causal_shift(solution: Solution) -> Said | None:
    n = 4
    products = np.arange(1.0, n * n + 1).reshape(n, n)
    t, u = np.arange(n)[:, None], np.arange(n)
    right = np.where(u <= t, products[t, (n - 1 + u - t) % n], -np.inf)
    padded = np.pad(products, ((0, 0), (1, 0)))
    shifted = padded.reshape(n + 1, n)[1:]
    later = u > t
    mistakes: list[tuple[Any, str, str]] = [
        (
            shifted,
            "Above the diagonal stand numbers of the next row: later keys must get -inf.",
            "对角线上方留着下一行的数：后面的键应当是 -inf。",
        ),
        (
            np.where(later, 0.0, shifted),
            "Later keys have the score 0, which softmax counts: they must get -inf.",
            "后面的键分数是 0，softmax 照样算它：应当是 -inf。",
        ),
        (
            np.where(later, -np.inf, products),
            "No row has moved.",
            "每一行都没有移动。",
        ),
        (
            np.where(later, -np.inf, np.pad(products, ((0, 0), (0, 1))).reshape(n + 1, n)[1:]),
            "The zero was put behind each row; in front of it each row slides one place less than the one above.",
            "零补在了每一行后面；补在前面，每一行才比上一行少移一格。",
        ),
        (
            np.where(later, -np.inf, np.pad(products, ((0, 0), (0, 1))).reshape(n + 1, n)[:-1]),
            "The zero was put behind each row, and the last row was dropped: put it in front, and drop the first.",
            "零补在了每一行后面，去掉的又是最后一行：应当补在前面，去掉第一行。",
        ),
        (
            np.where(later, -np.inf, padded.reshape(n + 1, n)[:-1]),
            "The last row was dropped; drop the first.",
            "去掉了最后一行；应当去掉第一行。",
        ),
        (
            np.where(later, -np.inf, products[t, np.abs(t - u)]),
            "Column 0 is read as offset 0; the columns are the offsets from -(n - 1) up to 0.",
            "把第 0 列当成了偏移 0；各列依次是偏移 -(n - 1) 到 0。",
        ),
    ]
    return compared(solution(products), right, "causal_shift(products)", mistakes)


@exercise("locality-nearer-wins")
def nearer_wins(solution: Solution) -> Said | None:
    scores = np.array([5.0, 3.0, 3.0, 4.0, 1.0, 1.0, 2.0, 0.0])
    n = len(scores)
    one, two = np.triu_indices(n, 1)
    above, ties, pairs = (scores[one] > scores[two]).sum(), (scores[one] == scores[two]).sum(), len(one)
    steps = np.diff(scores)
    mistakes: list[tuple[Any, str, str]] = [
        (
            (above + ties / 2) / pairs,
            "Half of the ties are counted as wins; the nearer one wins only with a higher score.",
            "平局算了半胜；近者分数更高才算胜。",
        ),
        (
            (above + ties) / pairs,
            "Ties are counted as wins: use > and not >=.",
            "平局算成了胜：用 >，不用 >=。",
        ),
        (
            above / (pairs - ties),
            "Ties are left out of the pairs; they are pairs that nobody wins.",
            "平局没有算进总对数；它们是没有胜者的对。",
        ),
        (
            (steps < 0).mean(),
            "Only neighbours are compared; all pairs of distances count.",
            "只比较了相邻的距离；所有的两两组合都要算。",
        ),
        (
            (pairs - above - ties) / pairs,
            "You count how often the farther one wins.",
            "你数的是远者胜的次数。",
        ),
        *(
            (
                above / wrong,
                f"Divided by {wrong}; {n} distances make n(n - 1)/2 = {pairs} pairs.",
                f"除以了 {wrong}；{n} 个距离有 n(n - 1)/2 = {pairs} 对。",
            )
            for wrong in (n * n, n * (n - 1), n)
        ),
    ]
    return compared(solution(scores), locality_profile(scores).nearer_wins, "nearer_wins(scores)", mistakes)
