"""Exercises that join chapters: bases in caches, shards with a bias, windows with pads, video with words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.exercises.checking import Said, compared, exercise, same
from posenc.parallel import ring_step
from posenc.rotary import apply_rotary, mrope_coordinates, ntk_frequencies
from posenc.sinusoidal import sinusoidal_frequencies


def _pairs(x: Any) -> Any:
    """Each pair of columns as a complex number."""
    return x[..., 0::2] + 1j * x[..., 1::2]


@exercise("joins-base-of")
def base_of(solution: Callable[..., Any]) -> Said | None:
    """The base of RoPE, from the cached keys of one token that is repeated."""
    for base, dim, start in ((10_000.0, 18, 7), (500_000.0, 34, 3000)):
        plain = np.random.default_rng(0).normal(size=dim)
        keys = apply_rotary(np.tile(plain, (60, 1)), np.arange(start, start + 60), base=base)
        said = compared(_real(solution(keys)), base, "base_of(keys)", _wrong_bases(keys, base))
        if said:
            return said
    return None


def _real(found: Any) -> Any:
    """A negative frequency to a power is NaN in NumPy, and complex in Python."""
    return np.nan if isinstance(found, complex) else found


def _wrong_bases(keys: Any, base: float) -> list[tuple[Any, str, str]]:
    dim = keys.shape[1]

    def readings(z: Any) -> tuple[float, float]:
        """The base as pair 1 has it, and as the slowest pair has it."""
        first, slowest = np.angle(z[1:] * z[:-1].conj()).mean(axis=0)[[1, -1]]
        with np.errstate(invalid="ignore"):
            return first ** (-dim / 2), slowest ** (-dim / (dim - 2))

    z = _pairs(keys)
    whole = np.diff(np.angle(z), axis=0).mean(axis=0)[1]
    halves = keys[:, : dim // 2] + 1j * keys[:, dim // 2 :]
    with np.errstate(invalid="ignore"):
        wrapped = whole ** (-dim / 2)
    slowest = base ** ((dim - 2) / dim)
    backwards = (
        "The turn is taken from the later key to the earlier one, so the frequency comes out negative."
    )
    backwards_zh = "从后面的键转回前面的键了，所以频率是负的。"
    half = "The columns i and i + d/2 are taken for a pair; here the neighbours 2i and 2i + 1 are one."
    half_zh = "把第 i 列和第 i + d/2 列当成了一对；这里相邻的 2i 和 2i + 1 才是一对。"
    return [
        (
            1.0,
            "Pair 0 turns by 1 radian a step with every base: look at another pair.",
            "不论底数是多少，第 0 对每一步都转 1 弧度：要看别的对。",
        ),
        *((reading, half, half_zh) for reading in readings(halves)),
        (
            base**2,
            "This is the square of the base: the exponent of pair i is 2i/d, and not i/d.",
            "这是底数的平方：第 i 对的指数是 2i/d，不是 i/d。",
        ),
        (
            base**0.5,
            "This is the root of the base: i already counts pairs, so its exponent is 2i/d.",
            "这是底数的平方根：i 数的已经是对，指数就是 2i/d。",
        ),
        (
            slowest,
            "The slowest pair is taken to have 1 over the base; its exponent is (d − 2)/d, a little less than 1.",
            "把最慢的一对当成了 1 除以底数；它的指数是 (d − 2)/d，比 1 小一点。",
        ),
        (
            2 * np.pi * slowest,
            "This is the longest wavelength; the base follows from the frequency of the pair and its exponent.",
            "这是最长的波长；底数要由这一对的频率和指数来算。",
        ),
        (
            base ** (2 / dim),
            "This is 1 over the frequency of pair 1: it is the base to the power of 2/d.",
            "这是 1 除以第 1 对的频率：它是底数的 2/d 次方。",
        ),
        *((reading, backwards, backwards_zh) for reading in (np.nan, -base)),
        (
            wrapped,
            "Angles are subtracted without regard to whole turns: compare each key with the next one only, "
            "and take their difference between −π and π.",
            "角度相减时没有顾到整圈：每个键只和下一个比，差要取在 −π 和 π 之间。",
        ),
    ]


@exercise("joins-new-base")
def with_new_base(solution: Callable[..., Any]) -> Said | None:
    """Cached keys, turned as if other frequencies had been used from the start."""
    positions = np.array([3, 4, 9, 40, 41])
    old, new = sinusoidal_frequencies(8), ntk_frequencies(8, 4)
    plain = np.random.default_rng(0).normal(size=(5, 8))
    keys, wanted = (apply_rotary(plain, positions, frequencies=each) for each in (old, new))
    t = positions[:, None]

    def turned(angles: Any, layout: str = "interleaved") -> Any:
        half = layout == "half"
        z = (keys[:, :4] + 1j * keys[:, 4:] if half else _pairs(keys)) * np.exp(1j * angles)
        parts = [z.real, z.imag]
        return np.concatenate(parts, axis=1) if half else np.stack(parts, axis=-1).reshape(keys.shape)

    mistakes = [
        (keys, "The keys are unchanged.", "键没有变。"),
        (
            turned(t * new),
            "The keys are turned by the new angles on top of the old ones, which are still in them.",
            "旧的角度还在键里，又叠上了新的角度。",
        ),
        (
            turned(-t * old),
            "The keys are turned back, and not yet turned by the new angles.",
            "键转回去了，还没有按新的角度转。",
        ),
        (
            turned(t * (old - new)),
            "The turn goes the wrong way: add the new angles and take away the old ones.",
            "转的方向反了：应当加上新的角度，减去旧的。",
        ),
        (
            turned(np.arange(5)[:, None] * (new - old)),
            "Rows are counted from 0; each key has the position that stands in positions.",
            "按行号从 0 数了；每个键的位置写在 positions 里。",
        ),
        (
            turned(new - old),
            "Each key is turned by one step only: multiply the frequencies by the positions.",
            "每个键只转了一步：频率要乘上位置。",
        ),
        (
            turned(t * (new - old), "half"),
            "The pairs are those of the other layout; here the neighbours 2i and 2i + 1 are a pair.",
            "按另一种布局配的对；这里相邻的 2i 和 2i + 1 是一对。",
        ),
        (
            turned(t * new / old),
            "Frequencies are divided; turns add up, so subtract the old angle from the new one.",
            "频率相除了；转动是相加的，应当用新的角度减去旧的。",
        ),
    ]
    return compared(
        solution(keys, positions, old, new), wanted, "with_new_base(keys, positions, old, new)", mistakes
    )


@exercise("joins-biased-block")
def biased_block(solution: Callable[..., Any]) -> Said | None:
    """Causal attention with ALiBi of a shard of queries to a shard of keys, as a part that can be merged."""
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(4, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 3))
    slope, t, u = 0.5, 6 + np.arange(4)[:, None], 3 + np.arange(5)

    def part(
        bias: Any, hidden: Any, scale: float = 0.5, after: float = 1.0, power: Any = np.log
    ) -> np.ndarray:
        e = np.exp(np.where(hidden, -np.inf, after * (q @ k.T * scale + bias)))
        total = e.sum(axis=1, keepdims=True)
        return np.hstack([e @ v / np.where(total == 0, 1, total), power(total)])

    def found(first_query: int, first_key: int) -> Any:
        given = solution(q, k, v, slope, first_query, first_key)
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            return given
        output, z = (np.asarray(each) for each in given)
        return np.hstack([output, z.reshape(-1, 1) if z.shape == (4,) else z])

    bias, hidden = slope * (u - t), u > t
    near, local = np.arange(4)[:, None], np.arange(5)
    right = part(bias, hidden)
    with np.errstate(divide="ignore"):
        mistakes = [
            (
                right[:, :3],
                "Only the output is returned; to be merged it needs its log-sum-exp, too.",
                "只返回了输出；要合并，还需要它的对数总权重。",
            ),
            (
                part(slope * (local - near), local > near),
                "Queries and keys are both counted from 0; add the positions at which the shards begin.",
                "查询和键都从 0 数起了；要加上各自那一片开始的位置。",
            ),
            (
                part(bias, local > near),
                "The mask counts from 0 in both shards: compare positions in the whole text.",
                "掩码在两片里都从 0 数起了：要比较整段文本里的位置。",
            ),
            (
                part(slope * (local - near), hidden),
                "The bias counts from 0 in both shards, so that it lacks 3 positions of distance.",
                "偏置在两片里都从 0 数起了，距离少了 3 个位置。",
            ),
            (
                part(-bias, hidden),
                "The bias grows with the distance: far keys must get lower scores.",
                "偏置随距离变大了：远的键分数应当更低。",
            ),
            *(
                (
                    part(each, False),
                    "Keys later than the query are seen: they need the score −inf.",
                    "看见了比查询晚的键：它们的分数应当是 −inf。",
                )
                for each in (bias, -np.abs(bias))
            ),
            (part(0 * bias, hidden), "There is no bias in the scores.", "分数里没有偏置。"),
            (
                part(bias, hidden, scale=1.0),
                "The scores lack the division by √d.",
                "分数没有除以 √d。",
            ),
            (
                part(bias, hidden, scale=1.0, after=0.5),
                "The bias is divided by √d, too: add it after the division.",
                "偏置也除以了 √d：应当在除了以后再加。",
            ),
            (
                part(bias, hidden, power=lambda total: total),
                "The second result is the sum of the powers; its logarithm is wanted.",
                "第二个结果是各个幂的和；要的是它的对数。",
            ),
            (
                np.hstack([right[:, :3] * np.exp(right[:, 3:]), right[:, 3:]]),
                "The output is a sum of values; divide it by the sum of the weights.",
                "输出是值的和；要除以权重的和。",
            ),
        ]
    if said := compared(found(6, 3), right, "biased_block(q, k, v, 0.5, 6, 3), side by side,", mistakes):
        return said
    none = np.asarray(found(0, 4), float)
    if np.isnan(none).any():
        return (
            "Where a query sees no key of the block it gives NaN: the output should be 0 there, and z −inf.",
            "查询看不见这一块里的任何键时，得到 NaN：这时输出应当是 0，z 应当是 −inf。",
        )
    if not same(none, np.hstack([np.zeros((4, 3)), np.full((4, 1), -np.inf)])):
        return (
            "A query that sees no key of the block attends to what is hidden: its output should be 0, and its z −inf.",
            "看不见这一块里任何键的查询，看见了被遮的键：它的输出应当是 0，z 应当是 −inf。",
        )
    if not np.isfinite(np.asarray(found(2000, 0), float)).all():
        return (
            "2000 positions away all powers are rounded to 0: subtract the largest score of each row, and add it to z.",
            "相距 2000 个位置时，所有的幂都舍入成了 0：每一行先减去最大的分数，再把它加回 z。",
        )
    for first_query, first_key in ((0, 4), (2, 2), (2000, 0)):
        at = first_query + np.arange(4), first_key + np.arange(5)
        wanted = np.hstack(ring_step(None, q, k, v, *at, slopes=slope))
        call = f"biased_block(q, k, v, 0.5, {first_query}, {first_key}), side by side,"
        if said := compared(found(first_query, first_key), wanted, call):
            return said
    return None


@exercise("joins-window-sink")
def hidden_keys(solution: Callable[..., Any]) -> Said | None:
    """The mask of a sliding window with sinks, in a batch with pads."""
    pads = np.array([[False] * 7 + [True] * 2, [True] * 3 + [False] * 6])
    window, sinks = 3, 2
    u, t = np.arange(9), np.arange(9)[:, None]
    back, none = t - u, pads[:, None, :] | pads[:, :, None]
    later = back < 0
    first = np.cumsum(~pads, axis=1) <= sinks  # real tokens that are sinks, and the pads before them
    sink_of_row = first & ~pads

    def mask(far: Any = back >= window, sink: Any = sink_of_row, causal: Any = later, pad: Any = none) -> Any:
        return far & ~np.broadcast_to(sink, (2, 9))[:, None, :] | causal | pad

    right = mask()
    mistakes = [
        (
            ~right,
            "The mask is the wrong way round: True means that the query must not see the key.",
            "掩码反了：True 表示查询不可以看这个键。",
        ),
        (
            mask(sink=u < sinks),
            "In the row with pads the sinks are in the first columns, which are pads: count real tokens, row by row.",
            "有填充的那一行，汇在最前面几列，而那里是填充：应当数每一行的真实词元。",
        ),
        (
            mask(sink=False),
            "Sinks leave the window like all others; the first real tokens must stay visible.",
            "汇也像别的键一样离开了窗口；最前面的真实词元应当一直看得见。",
        ),
        (
            mask(far=back > window),
            "The window is one too wide: with 3 a query sees itself and the two before it.",
            "窗口宽了一个：取 3 时，查询看得见自己和前面的两个。",
        ),
        (
            mask(far=back >= window - 1),
            "The window is one too narrow: with 3 a query sees itself and the two before it.",
            "窗口窄了一个：取 3 时，查询看得见自己和前面的两个。",
        ),
        (mask(far=False), "There is no window: all earlier keys are seen.", "没有窗口：前面的键全看得见。"),
        (
            mask(causal=later & ~sink_of_row[:, None, :]),
            "A sink is seen by queries that come before it.",
            "汇前面的查询也看见了汇。",
        ),
        *(
            (
                mask(sink=sink, pad=pads[:, :, None]),
                "Pads are seen as keys, by the real tokens after them.",
                "填充作为键，被后面的真实词元看见了。",
            )
            for sink in (sink_of_row, first)
        ),
    ]
    found = solution(pads, window, sinks)
    if np.shape(found) == right.shape:  # several mistakes at once: one of them is named
        seen = ~np.asarray(found, dtype=bool)
        several = (
            (later, "Later keys are seen.", "看见了后面的键。"),
            (
                pads[:, :, None],
                "A pad as a query sees keys; its whole row should be hidden.",
                "填充作为查询还看得见键；它的整行都应当遮住。",
            ),
            (pads[:, None, :], "Pads are seen as keys.", "填充作为键被看见了。"),
        )
        mistakes += [(found, en, zh) for where, en, zh in several if (seen & where).any()]
    if said := compared(found, right, "hidden_keys(padding_mask, 3, 2)", mistakes):
        return said
    narrow = (back >= 2) & ~(np.cumsum(~pads, axis=1) < 2)[:, None, :] | later | none
    return compared(
        solution(pads, 2, 1),
        narrow,
        "hidden_keys(padding_mask, 2, 1)",
        [
            (
                right,
                "The width of the window and the number of sinks are not read from the arguments.",
                "窗口的宽度和汇的个数没有从参数里读。",
            ),
        ],
    )


@exercise("joins-video")
def coordinates(solution: Callable[..., Any]) -> Said | None:
    """Coordinates (time, row, column) of words and of video whose time is in seconds."""
    parts = [2, (4, 2, 3, 1.5), 2]

    def placed(
        order: tuple[int, ...] = (0, 1, 2),
        shift: Any = (2, 2, 2),
        words: Any = (1, 1, 1),
        after: float = 12,
        step: float = 3.0,
        axes: list[int] | None = None,
    ) -> Any:
        sizes = [(4, 2, 3)[axis] for axis in order]
        grid = np.indices(sizes).reshape(3, -1)[np.argsort(order)].T * [step, 1, 1]
        text = np.tile(np.arange(2)[:, None], 3)
        found = np.concatenate([text * words, grid + shift, (text + after) * words])
        return found[:, axes] if axes else found

    wanted = mrope_coordinates([2, (4, 2, 3), 2]).astype(float)
    wanted[2:26, 0] = 2 + np.repeat(np.arange(4) * 3.0, 6)
    wanted[26:] = [[12.0] * 3, [13.0] * 3]
    mistakes = [
        (
            placed(step=1, after=6),
            "Frames are numbered; the time of a frame is its number times the seconds between frames, "
            "and it counts per_second positions for each second.",
            "帧用的是序号；帧的时间是序号乘以帧间隔的秒数，每秒算 per_second 个位置。",
        ),
        (
            placed(step=1.5, after=7),
            "Time is in seconds; multiply it by the positions per second.",
            "时间的单位是秒；要乘上每秒的位置数。",
        ),
        (
            placed(step=0.75, after=5),
            "Seconds are divided by the positions per second: multiply.",
            "秒数除以了每秒的位置数：应当相乘。",
        ),
        (
            placed(after=26),
            "The words after the video are numbered by tokens, as if each patch took a position.",
            "视频后面的词按词元数编号了，好像每个图块都占一个位置。",
        ),
        (
            placed(after=11),
            "The first word after the video has the time of the last frame: go on one after the largest coordinate.",
            "视频后面的第一个词与最后一帧的时间相同：应当从最大的坐标往后一个开始。",
        ),
        (
            placed(after=5),
            "The words after the video go on after the largest row or column; its time reaches further.",
            "视频后面的词接在最大的行或列后面；它的时间走得更远。",
        ),
        (
            placed(after=4),
            "The words after the video go on after its largest column, and its time is forgotten.",
            "视频后面的词只接在列后面，没有管时间。",
        ),
        (
            placed(shift=(2, 0, 0)),
            "Rows and columns begin with 0; they begin where the video begins, like its time.",
            "行和列从 0 数起了；它们也从视频开始的地方算起，和时间一样。",
        ),
        *(
            (
                placed(shift=0, after=after),
                "The video begins at 0, on top of the words before it.",
                "视频从 0 开始了，与前面的词重叠。",
            )
            for after in (10, 12)
        ),
        (
            placed(words=(1, 0, 0)),
            "Words count on the axis of time only; in text all three coordinates are equal.",
            "词只在时间轴上数了；在文本里，三个坐标相等。",
        ),
        (
            placed(axes=[0, 2, 1]),
            "Rows and columns have changed places: the coordinates are time, row, column.",
            "行和列反了：坐标的顺序是时间、行、列。",
        ),
        (
            placed(order=(0, 2, 1)),
            "Within a frame the row runs fastest; patches lie row by row, so the column does.",
            "一帧之内，行变得最快；图块一行一行地排，应当是列最快。",
        ),
        (
            placed(order=(1, 2, 0)),
            "The frames run fastest; all patches of a frame come before the next frame.",
            "帧变得最快；一帧的图块排完，才轮到下一帧。",
        ),
    ]
    if said := compared(solution(parts, 2), wanted, "coordinates([2, (4, 2, 3, 1.5), 2], 2)", mistakes):
        return said
    said = compared(
        solution([(1, 2, 4, 1.0), 1], 2)[-1:],
        [[4, 4, 4]],
        "coordinates([(1, 2, 4, 1.0), 1], 2)[-1:]",
        [
            (
                [[start] * 3],
                "After a frame of 2 times 4 patches the word goes on after its time or its rows alone: "
                "the largest of all three coordinates counts, here a column.",
                "一帧有 2 行 4 列，后面的词只接在时间或行的后面：应当看三个坐标里最大的，这里是列。",
            )
            for start in (1, 2)
        ],
    )
    return said or compared(
        solution([(2, 1, 1, 0.25), 1], 2),
        [[0, 0, 0], [0.5, 0, 0], [1, 1, 1]],
        "coordinates([(2, 1, 1, 0.25), 1], 2)",
        [
            (
                [[0, 0, 0], [0.5, 0, 0], [1.5, 1.5, 1.5]],
                "After a frame at 0.5 the word stands at 1.5; words stand at whole numbers: the next one is 1.",
                "帧在 0.5 处结束，后面的词在 1.5；词的位置是整数：下一个整数是 1。",
            ),
            (
                [[0, 0, 0], [0.5, 0, 0], [2, 2, 2]],
                "After a frame at 0.5 the word stands at 2; the next whole number is 1.",
                "帧在 0.5 处结束，后面的词在 2；下一个整数是 1。",
            ),
            (
                [[0, 0, 0], [0, 0, 0], [1, 1, 1]],
                "Times are rounded down to whole numbers, so that frames 0.25 seconds apart become one.",
                "时间取了整，相隔 0.25 秒的两帧就没有区别了。",
            ),
        ],
    )
