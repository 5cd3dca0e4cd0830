"""Exercises on masks, on many machines, on caches and on what is checked before a model is served."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.exercises.checking import Said, compared, exercise
from posenc.masks import positions_from_mask


@exercise("masks-positions")
def positions_of(solution: Callable[..., Any]) -> Said | None:
    """Positions counted from a padding mask."""
    pads = np.array([[True, True, False, False, False], [False, False, True, True, True]])
    wanted = positions_from_mask(pads)
    mistakes = [
        (
            np.tile(np.arange(5), (2, 1)),
            "The columns are counted, pads included: count the real tokens alone.",
            "数的是列，填充也数进去了：只数真实的词元。",
        ),
        (
            np.where(pads, 0, np.arange(5)),
            "Behind pads on the left the first real token has its column as position; it should have 0.",
            "左边有填充时，第一个真实的词元用了列号当位置；应当是 0。",
        ),
        (
            np.maximum(np.cumsum(pads, axis=1) - 1, 0),
            "The pads are counted: True marks a pad here.",
            "数的是填充：这里 True 表示填充。",
        ),
        (
            np.cumsum(~pads, axis=1),
            "The count begins with 1: the first real token has position 0.",
            "从 1 数起了：第一个真实的词元，位置是 0。",
        ),
        (
            np.cumsum(~pads, axis=1) - 1,
            "Pads on the left get position −1; they should get 0, because −1 would be the last row of a table.",
            "左边的填充得到了位置 −1；应当是 0，因为 −1 会取到表的最后一行。",
        ),
        (
            np.maximum(np.cumsum(~pads, axis=0) - 1, 0),
            "The sum runs down the batch: count along each row.",
            "沿着批累加了：应当沿着每一行数。",
        ),
        (
            np.maximum(np.cumsum(~pads) - 1, 0),
            "The rows are counted as one text: give the sum an axis.",
            "各行连成一段来数了：累加时要指定轴。",
        ),
        (
            np.maximum(np.cumsum(~pads, axis=1) - 1, 0),
            "Pads on the right keep the position of the last real token; they should get 0.",
            "右边的填充还是最后一个真实词元的位置；应当是 0。",
        ),
    ]
    return compared(solution(pads), wanted, "positions_of(padding_mask)", mistakes)


@exercise("masks-softmax")
def masked_softmax(solution: Callable[..., Any]) -> Said | None:
    """Softmax over the keys that are not hidden; a row without any gives zeros."""
    scores = np.array([[1.0, 2.0, 0.5], [0.0, 3.0, -1.0]])
    hidden = np.array([[False, False, True], [True, False, False]])

    def weights(scores: Any, hidden: Any, axis: int = 1) -> Any:
        e = np.exp(np.where(hidden, -np.inf, scores))
        return e / e.sum(axis=axis, keepdims=True)

    right, none = weights(scores, hidden), np.zeros_like(hidden)
    mistakes = [
        (weights(scores, none), "Nothing is hidden.", "什么都没有遮住。"),
        (
            weights(scores, ~hidden),
            "The mask is the wrong way round: True means hidden here.",
            "掩码反了：这里 True 表示遮住。",
        ),
        (
            np.where(hidden, 0, weights(scores, none)),
            "Weights are set to 0 after the softmax, so a row adds up to less than 1: hide the scores.",
            "权重在 softmax 之后才设成 0，一行加起来不到 1：要遮的是分数。",
        ),
        (
            weights(np.where(hidden, 0, scores), none),
            "A hidden score is set to 0, and e to the power of 0 is 1: set it to minus infinity.",
            "被遮的分数设成了 0，而 e 的 0 次方是 1：应当设成负无穷。",
        ),
        (
            weights(scores, hidden, axis=0),
            "The softmax runs over the queries: each row should add up to 1.",
            "softmax 沿着查询做了：应当让每一行加起来等于 1。",
        ),
    ]
    if said := compared(solution(scores, hidden), right, "masked_softmax(scores, hidden)", mistakes):
        return said
    large = np.array([[999.0, 1000.0, -5.0]])
    found = solution(large, hidden[:1])
    if not np.isfinite(np.asarray(found, float)).all():
        return (
            "With scores near 1000 the powers overflow: subtract the largest score that may be seen first.",
            "分数接近 1000 时，e 的幂溢出了：先减去看得见的分数里最大的一个。",
        )
    far = np.array([[1.0, 2.0, 2000.0]])
    found_far = solution(far, hidden[:1])
    wanted = weights(far - 2, hidden[:1])
    if not np.isfinite(np.asarray(found_far, float)).all() or compared(found_far, wanted, ""):
        return (
            "A hidden score of 2000 makes all others underflow: hide it before the largest is subtracted.",
            "被遮的分数是 2000 时，别的全都下溢了：先遮住，再减去最大的分数。",
        )
    empty = np.asarray(solution(scores, np.array([[True] * 3, [False] * 3])), float)
    if np.isnan(empty).any():
        return (
            "A row without any key gives NaN, as 0 is divided by 0; its weights should be 0.",
            "一个键也没有的行得到 NaN，也就是 0 除以 0；它的权重应当是 0。",
        )
    if empty[0].any():
        return (
            "A row without any key attends to what is hidden: its weights should be 0.",
            "一个键也没有的行看见了被遮的键：它的权重应当都是 0。",
        )
    return compared(found, weights(large - 1000, hidden[:1]), "masked_softmax([[999, 1000, -5]], hidden[:1])")


@exercise("parallel-merge")
def merge(solution: Callable[..., Any]) -> Said | None:
    """Outputs and log-sum-exps of two blocks of keys as those of both."""
    rng = np.random.default_rng(0)
    o, other = rng.normal(size=(2, 3, 4))
    z, further = np.array([[1.0], [0.5], [-2.0]]), np.array([[0.0], [2.0], [-1.0]])

    def joined(o: Any, z: Any, other: Any, further: Any) -> Any:
        new = np.logaddexp(z, further)
        return np.hstack([np.exp(z - new) * o + np.exp(further - new) * other, new])

    def found(*parts: Any) -> Any:
        given = solution(*parts)
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            return given
        return np.hstack([np.asarray(each) for each in given])

    right = joined(o, z, other, further)
    new = right[:, 4:]
    mistakes = [
        (
            right[:, :4],
            "Only the output is returned; the next merge needs its log-sum-exp, too.",
            "只返回了输出；下一次合并还要用它的对数总权重。",
        ),
        (
            np.hstack([(o + other) / 2, new]),
            "The two outputs count alike; each counts as much as e to the power of its z.",
            "两份输出算得一样重；各自的份量应当是 e 的 z 次方。",
        ),
        (
            np.hstack([(z * o + further * other) / (z + further), new]),
            "The outputs are weighted by z; z is a logarithm, so the weight is e to the power of z.",
            "输出按 z 加权了；z 是对数，权重应当是 e 的 z 次方。",
        ),
        (
            np.hstack([joined(other, z, o, further)[:, :4], new]),
            "The weights of the two outputs have changed places.",
            "两份输出的权重反了。",
        ),
        (
            np.hstack([np.exp(z) * o + np.exp(further) * other, new]),
            "The sum of the outputs is not divided by the sum of the two weights.",
            "两份输出的和没有除以两个权重的和。",
        ),
        (
            np.hstack([right[:, :4], z + further]),
            "The logarithms are added; the new z is the logarithm of the sum of the two powers.",
            "两个对数直接相加了；新的 z 应当是两个幂之和的对数。",
        ),
        (
            np.hstack([right[:, :4], np.exp(new)]),
            "The second result is the sum of the weights; its logarithm is wanted.",
            "第二个结果是权重的和；要的是它的对数。",
        ),
    ]
    if said := compared(found(o, z, other, further), right, "merge(o, z, o2, z2), side by side,", mistakes):
        return said
    large = np.asarray(found(o, z + 1000, other, further + 1000), float)
    if not np.isfinite(large).all():
        return (
            "With z near 1000 the powers overflow: subtract the new z, or the larger of the two, first.",
            "z 接近 1000 时，e 的幂溢出了：先减去新的 z，或者两者中大的那个。",
        )
    nothing = np.full((3, 1), -np.inf)
    for parts, both in (((o, z, 0 * o, nothing), False), ((0 * o, nothing, 0 * o, nothing), True)):
        result = np.asarray(found(*parts), float)
        if np.isnan(result).any():
            en, zh = ("both blocks have", "两块都没有") if both else ("one block has", "有一块没有")
            return (
                f"If {en} no key that may be seen, z is −inf, and −inf minus −inf is NaN.",
                zh + "看得见的键时，z 是 −inf，而 −inf 减 −inf 是 NaN。",
            )
    return compared(large, joined(o, z + 1000, other, further + 1000), "merge(o, z + 1000, o2, z2 + 1000)")


@exercise("serving-ring-positions")
def ring_positions(solution: Callable[..., Any]) -> Said | None:
    """The position in each slot of a ring after n tokens."""
    slots = np.arange(4)
    for n in (10, 2, 4):
        newest = n - 1 - (n - 1 - slots) % 4
        right = np.maximum(newest, -1)
        mistakes = [
            (slots, "These are the numbers of the slots.", "这是格子的序号。"),
            (
                newest,
                f"After {n} tokens some slots are still empty: they get −1.",
                f"{n} 个词元之后还有空的格子：它们应当是 −1。",
            ),
            (
                np.maximum(n - (n - slots) % 4, -1),
                f"After {n} tokens the newest is at {n - 1}, because positions begin with 0.",
                f"{n} 个词元之后，最新的在 {n - 1}，因为位置从 0 数起。",
            ),
            (
                np.arange(n - 4, n),
                "The last positions stand in their order; each belongs into slot t mod slots.",
                "最后几个位置按先后排了；每个应当放进第 t mod slots 格。",
            ),
            (
                newest - 4,
                "These are the positions of one round before: a new key overwrites the old one.",
                "这是上一圈的位置：新的键会盖掉旧的。",
            ),
            (
                np.arange(n),
                f"There are {n} positions; the ring has 4 slots.",
                f"这里有 {n} 个位置；环只有 4 格。",
            ),
        ]
        if said := compared(solution(n, 4), right, f"ring_positions({n}, 4)", mistakes):
            return said
    return None


@exercise("models-which-layers")
def sees_all(solution: Callable[..., Any]) -> Said | None:
    """Which layers see the whole text, if every pattern-th does."""
    layer = np.arange(12)
    right = (layer + 1) % 4 == 0
    mistakes = [
        (
            layer % 4 == 0,
            "The first layer is full; count from 1, so that the 4th layer is the first full one.",
            "第一层成了全局层；要从 1 数起，第 4 层才是第一个全局层。",
        ),
        (
            ~right,
            "True and False have changed places: True marks a layer that sees the whole text.",
            "True 和 False 反了：True 表示看得见全文的层。",
        ),
        (
            (layer + 1) % 5 == 0,
            "There are 4 windows before a full layer; a pattern of 4 has 3 windows and 1 full layer.",
            "全局层之前有 4 个窗口层；pattern 是 4，应当是 3 个窗口层加 1 个全局层。",
        ),
        (
            layer >= 9,
            "The full layers all stand at the end; every 4th layer is one.",
            "全局层都排在最后了；应当每 4 层有一个。",
        ),
        *(
            (
                np.flatnonzero(right) + first,
                "These are the numbers of the full layers; return one truth value for each layer.",
                "这些是全局层的编号；应当为每一层返回一个真假值。",
            )
            for first in (0, 1)
        ),
        (layer == 3, "Only one layer is full; every 4th is.", "只有一层是全局层；应当每 4 层有一个。"),
    ]
    call = "sees_all(12, 4)"
    return compared(solution(12, 4), right, call, mistakes) or compared(
        solution(7, 6), np.arange(7) == 5, "sees_all(7, 6)"
    )


@exercise("check-looks-ahead")
def looks_ahead(solution: Callable[..., Any]) -> Said | None:
    """Whether any output of a model depends on a later token."""
    x = np.random.default_rng(0).normal(size=(6, 3))

    def far(x: Any) -> Any:
        y = x.copy()
        y[:-3] += x[3:]
        return y

    def first(x: Any) -> Any:
        y = x.copy()
        y[0] += x[1:2].sum(axis=0)
        return y

    models: list[tuple[Callable[[Any], Any], bool, str, str]] = [
        (
            lambda x: np.tanh(x),
            False,
            "It says True of a model whose outputs see their own tokens alone: a token may change its own output.",
            "对一个每个输出只看自己的词元的模型，它说 True：词元当然可以改变自己的输出。",
        ),
        (
            lambda x: np.cumsum(x, axis=0) / np.arange(1, len(x) + 1)[:, None],
            False,
            "It says True of a causal mean: an earlier token may change later outputs.",
            "对一个因果的平均，它说 True：前面的词元可以改变后面的输出。",
        ),
        (
            lambda x: np.tile(x.mean(axis=0), (len(x), 1)),
            True,
            "It says False of a mean over all tokens, in which every output sees all that comes later.",
            "对所有词元的平均，它说 False，可是那里每个输出都看得见后面的一切。",
        ),
        (
            far,
            True,
            "It misses a model whose outputs see the token 3 places ahead, but not the next one.",
            "它漏掉了一个模型：输出看得见往后第 3 个词元，却看不见下一个。",
        ),
        (
            first,
            True,
            "It misses a model in which only the first output sees the second token: change each token in turn.",
            "它漏掉了一个模型：只有第一个输出看得见第二个词元。要轮流改变每一个词元。",
        ),
        (
            lambda x: np.abs(x) + np.abs(x[-1:]),
            True,
            "It misses a model that sees only the size of the last token: a change of sign is not enough.",
            "它漏掉了一个只看得见最后一个词元的大小的模型：只改变正负号不够。",
        ),
    ]
    for model, truth, *said in models:
        found = np.asarray(solution(model, x))
        if found.shape:
            return (
                "One answer is wanted, True or False, and not an array.",
                "要的是一个回答，True 或 False，不是数组。",
            )
        if bool(found) != truth:
            return said[0], said[1]
    return None
