"""Exercises on longer texts, on positions that the content decides, and on layers without position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.contextual import forget_bias
from posenc.exercises.checking import Said, compared, exercise
from posenc.extrapolation import attention_entropy
from posenc.rotary import llama3_frequencies
from posenc.sinusoidal import sinusoidal_frequencies


@exercise("longer-by-parts")
def by_parts(solution: Callable[..., Any]) -> Said | None:
    """Frequencies that are slowed by the number of their turns, as in Llama 3."""
    omega, trained, factor = sinusoidal_frequencies(16), 512, 4

    def slowed(share: Any, slow: Any = omega / factor) -> Any:
        return (1 - share) * omega + share * slow

    turns = trained * omega / (2 * np.pi)
    ramp = (4 - turns) / 3
    share = np.clip(ramp, 0, 1)
    mistakes = [
        (
            slowed(np.clip((4 - trained * omega) / 3, 0, 1)),
            "The turns lack a division by 2π: ω times the length is an angle in radians.",
            "圈数少除了 2π：ω 乘以长度是弧度。",
        ),
        (
            slowed(np.clip((4 - 1 / turns) / 3, 0, 1)),
            "The wavelength was divided by the length; the turns are the length divided by the wavelength.",
            "用波长除以了长度；圈数是长度除以波长。",
        ),
        (
            slowed(np.clip((4 - turns) / 4, 0, 1)),
            "At 1 turn the share is not yet 1: between 4 turns and 1 lie 3, so divide by 3.",
            "到 1 圈时份额还不是 1：从 4 圈到 1 圈相差 3，应当除以 3。",
        ),
        (
            slowed(1 - share),
            "The ramp is the wrong way round: pairs that turn often are slowed, and slow ones are left alone.",
            "斜坡反了：转得多的对被放慢，转得少的反而没有动。",
        ),
        (
            slowed(ramp),
            "The share is not held between 0 and 1, so that some pairs even become faster.",
            "份额没有限制在 0 和 1 之间，于是有的对反而变快了。",
        ),
        (
            slowed(share, omega * factor),
            "Slow pairs are multiplied by the factor: divide their frequencies.",
            "慢的对乘上了倍数：频率应当除以它。",
        ),
        (
            1 / ((1 - share) / omega + share * factor / omega),
            "Between 1 and 4 turns the wavelengths are mixed; the frequencies should be.",
            "1 圈到 4 圈之间混合的是波长；应当混合频率。",
        ),
        (
            slowed((turns < 4).astype(float)),
            "There is no ramp between 1 and 4 turns: all below 4 are slowed by the whole factor.",
            "1 圈到 4 圈之间没有斜坡：不到 4 圈的都按整个倍数放慢了。",
        ),
    ]
    wanted = llama3_frequencies(16, factor, original_length=trained)
    return compared(solution(omega, trained, factor), wanted, "by_parts(omega, 512, 4)", mistakes)


@exercise("extrapolation-keys-seen")
def keys_seen(solution: Callable[..., Any]) -> Said | None:
    """e to the entropy of each row of attention weights."""
    weights = np.array([[0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]])
    entropy = attention_entropy(weights)
    mistakes = [
        (
            entropy,
            "This is the entropy; e to the power of it counts keys.",
            "这是熵；e 的熵次方才是键的个数。",
        ),
        (
            1 / np.exp(entropy),
            "The sign of the entropy is missing: ln of a weight is negative.",
            "熵少了负号：权重的 ln 是负的。",
        ),
        (
            np.exp(entropy / np.log(2)),
            "The logarithm has base 2 and the power has base e: take the same base for both.",
            "对数以 2 为底，乘方却以 e 为底：两处要用同一个底。",
        ),
        (
            np.exp(-(weights * np.log(weights)).sum(axis=0)),
            "The sum runs over the queries: each row has an entropy of its own.",
            "求和沿着查询做了：每一行各有自己的熵。",
        ),
        (
            np.exp(-(weights * np.log(weights)).mean(axis=1)),
            "The entropy is a sum over the keys, not a mean.",
            "熵是对键求和，不是取平均。",
        ),
        (
            1 / (weights**2).sum(axis=1),
            "This is 1 over the sum of squares, another count of keys; the one with the entropy is asked for.",
            "这是 1 除以平方和，是另一种数法；要的是用熵来数。",
        ),
    ]
    if said := compared(solution(weights), np.exp(entropy), "keys_seen(weights)", mistakes):
        return said
    masked = np.array([[0.5, 0.5, 0.0, 0.0]])
    found = solution(masked)
    if np.isnan(np.asarray(found, float)).any():
        return (
            "With the weights 0.5, 0.5, 0, 0 it gives NaN: a weight of 0 adds nothing, but 0 times ln 0 is NaN.",
            "权重是 0.5、0.5、0、0 时得到 NaN：权重 0 不增加什么，可是 0 乘 ln 0 是 NaN。",
        )
    return compared(found, [2.0], "keys_seen([[0.5, 0.5, 0, 0]])")


@exercise("contextual-forget-bias")
def bias_of(solution: Callable[..., Any]) -> Said | None:
    """The bias of a forget gate, with the causal mask in it."""
    gates = np.array([0.9, 0.5, 0.25, 0.8])
    logs = np.log(gates)
    wanted = forget_bias(logs)
    hidden = np.isinf(wanted)
    p = np.cumsum(logs)
    before = p - logs
    mistakes = [
        (
            np.where(hidden, -np.inf, before[:, None] - before),
            "The gates are those from u to t − 1; a gate acts on what lies before its token: take u + 1 to t.",
            "取的是从 u 到 t − 1 的门；门作用于它的词元之前的东西：应当取 u + 1 到 t。",
        ),
        (
            np.where(hidden, -np.inf, p[:, None] - before),
            "The gate of the key itself is counted, too: begin with the gate of u + 1.",
            "键自己的门也算进去了：应当从 u + 1 的门算起。",
        ),
        *(
            (
                np.where(hidden, -np.inf, np.where(np.eye(4) > 0, own, before[:, None] - p)),
                "The gate of the query is left out: go on up to the gate of t, which a slice that ends with t lacks.",
                "查询自己的门漏掉了：要一直算到 t 的门，而以 t 结尾的切片不含它。",
            )
            for own in (0, -logs)
        ),
        (
            np.where(hidden, -np.inf, p - p[:, None]),
            "The sign is the wrong way round: what lies behind a gate must get a lower score.",
            "正负号反了：门后面的东西，分数应当更低。",
        ),
        (
            p[:, None] - p,
            "Later keys are not hidden: their bias is −inf.",
            "后面的键没有遮住：它们的偏置是 −inf。",
        ),
        (
            np.where(hidden, 0, wanted),
            "A bias of 0 hides nothing: that of later keys is −inf.",
            "偏置为 0 什么也遮不住：后面的键的偏置是 −inf。",
        ),
        (wanted.T, "Rows and columns have changed places: a row is a query.", "行列反了：一行是一个查询。"),
        (
            np.where(hidden, -np.inf, np.cumsum(gates)[:, None] - np.cumsum(gates)),
            "The gates are added up; add up their logarithms.",
            "相加的是门；应当把门的对数相加。",
        ),
        (
            np.exp(wanted),
            "These are the products of the gates; the bias is their logarithm.",
            "这是门的乘积；偏置是它的对数。",
        ),
    ]
    return compared(solution(gates), wanted, "bias_of([0.9, 0.5, 0.25, 0.8])", mistakes)


@exercise("hybrids-sink")
def with_sink(solution: Callable[..., Any]) -> Said | None:
    """Softmax with one more score, whose weight is dropped."""
    scores, sink = np.array([[1.0, 2.0, 0.5], [0.0, 3.0, -1.0]]), 1.5

    def weights(scores: Any, sink: float) -> Any:
        top = np.maximum(scores.max(axis=1, keepdims=True), sink)
        powers = np.exp(scores - top)
        return powers / (powers.sum(axis=1, keepdims=True) + np.exp(sink - top))

    right = weights(scores, sink)
    plain = weights(scores, -np.inf)
    e, top = np.exp(scores), scores.max(axis=1, keepdims=True)
    shifted = np.exp(scores - top)
    mistakes = [
        (
            plain,
            "The weights of a row still add up to 1, so the sink takes nothing.",
            "一行的权重加起来仍然是 1，汇什么也没有拿走。",
        ),
        (
            np.concatenate([right, 1 - right.sum(axis=1, keepdims=True)], axis=1),
            "The weight of the sink is still there, as the last column: drop it.",
            "汇的权重还在，是最后一列：应当去掉它。",
        ),
        (
            np.concatenate([1 - right.sum(axis=1, keepdims=True), right], axis=1),
            "The weight of the sink is still there, as the first column: drop it.",
            "汇的权重还在，是第一列：应当去掉它。",
        ),
        (
            e / (e.sum(axis=1, keepdims=True) + sink),
            "The sink is a score: add e to the power of it to the sum.",
            "汇是一个分数：加到总和里的应当是 e 的这个次方。",
        ),
        (
            shifted / (shifted.sum(axis=1, keepdims=True) + np.exp(sink)),
            "The largest score is subtracted from the scores, but not from the sink.",
            "分数减去了最大的分数，汇却没有减。",
        ),
        (
            e / (e.sum(axis=0) + np.exp(sink)),
            "The sum runs over the queries: divide each row by a sum of its own.",
            "求和沿着查询做了：每一行要除以自己的和。",
        ),
    ]
    if said := compared(solution(scores, sink), right, "with_sink(scores, 1.5)", mistakes):
        return said
    large = solution(1000 * scores, sink)
    if not np.isfinite(np.asarray(large, float)).all():
        return (
            "With scores near 1000 the powers overflow: subtract the largest score, the sink among them, first.",
            "分数接近 1000 时，e 的幂溢出了：先减去最大的分数，汇也算在内。",
        )
    empty = np.full((1, 3), -np.inf)
    minus = [
        (
            np.full((1, 3), np.nan),
            "Where all scores are −inf, their largest is −inf, too, and −inf minus −inf is NaN: subtract the "
            "larger of this and the sink.",
            "一行分数全是 −inf 时，最大的也是 −inf，−inf 减 −inf 是 NaN：应当减去它和汇里较大的那个。",
        )
    ]
    return (
        compared(large, weights(1000 * scores, sink), "with_sink(1000 * scores, 1.5)")
        or compared(solution(empty, sink), np.zeros((1, 3)), "with_sink([[-inf, -inf, -inf]], 1.5)", minus)
        or compared(solution(scores, 1000.0), np.zeros((2, 3)), "with_sink(scores, 1000)")
    )
