"""Exercises on codes that are added to the embeddings: sinusoidal, addition, learned, reordering, shift."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from posenc.exercises.checking import Said, compared, exercise
from posenc.learned import interpolate_table
from posenc.shift import shift_matrix
from posenc.sinusoidal import sinusoidal_encoding

Solution = Callable[..., Any]


@exercise("sinusoidal-code-of")
def code_of(solution: Solution) -> Said | None:
    t, dim, base = np.array([0, 1, 2, 50]), 8, 100.0
    column, pair = np.arange(dim), np.arange(dim) // 2

    def codes(exponents: Any, t: Any = t[:, None]) -> np.ndarray:
        """Sine in even columns, cosine in odd ones, of the angles t * base ** exponents."""
        return np.sin(t * base**exponents + np.pi / 2 * (column % 2)) * np.ones((4, 1))

    right = codes(-2 * pair / dim)
    mistakes: list[tuple[Any, str, str]] = [
        *(
            (
                codes(exponents),
                "Each column has a frequency of its own: the exponent counts columns. "
                "Sine and cosine of a pair need the same one, -2i/dim with i from 0 to dim/2 - 1.",
                "每一列各有一个频率：指数数的是列。同一对的正弦和余弦要用同一个频率，"
                "指数是 -2i/dim，i 从 0 到 dim/2 - 1。",
            )
            for exponents in (-column / dim, -2 * column / dim)
        ),
        (
            codes(-pair / dim),
            "The exponent is -i/dim, and should be -2i/dim: so the slowest hand is far too fast.",
            "指数写成了 -i/dim，应当是 -2i/dim：这样最慢的针也转得太快。",
        ),
        (
            codes(2 * pair / dim),
            "The frequencies grow with i: the power of the base divides, it does not multiply.",
            "频率随 i 增大了：底数的幂是用来除的，不是用来乘的。",
        ),
        (
            np.concatenate([right[:, 0::2], right[:, 1::2]], axis=1),
            "All sines come first, then all cosines; here even columns are sines and odd ones cosines.",
            "先排了所有正弦，再排所有余弦；这里要求偶数列是正弦，奇数列是余弦。",
        ),
        (
            right[:, column ^ 1],
            "Sine and cosine have changed places.",
            "正弦和余弦对调了。",
        ),
        (
            codes(-2 * pair / dim, t[pair]),
            "All rows are equal: positions and frequencies are multiplied one by one. Make the positions a column.",
            "各行都一样：位置和频率逐个相乘了。要把位置变成一列。",
        ),
        (
            codes(-2 * pair / dim, t[:, None] + 1),
            "Your first position is 1; here positions count from 0.",
            "你的位置从 1 数起；这里从 0 数起。",
        ),
        (
            codes(-2 * pair / dim, np.radians(t[:, None])),
            "The angles are taken as degrees; they are radians.",
            "角度当成了度数，应当是弧度。",
        ),
    ]
    return compared(solution(t, dim, base), right, "code_of([0, 1, 2, 50], 8, 100.0)", mistakes)


@exercise("sinusoidal-read-the-clock")
def position_of(solution: Solution) -> Said | None:
    def read(code: np.ndarray, hands: Any = (3, 2, 1, 0), swap: int = 0, down: bool = False) -> int:
        position = 0.0
        for i in hands:
            omega = 10000 ** (-2 * i / 8)
            angle = np.arctan2(code[2 * i + swap], code[2 * i + 1 - swap]) % (2 * np.pi)
            before = (position * omega - (0 if down else angle)) / (2 * np.pi)
            turns = 0 if i == hands[0] else np.floor(before) if down else np.round(before)
            position = (angle + 2 * np.pi * turns) / omega
        return round(position)

    rng = np.random.default_rng(0)
    for t, noise in (
        (0, 0),
        (5, 0),
        (1000, 0),
        (3000, 0),
        (5000, 0),
        (700, 0.05),
        (2500, 0.05),
        (6000, 0.05),
    ):
        code = sinusoidal_encoding(np.array([t]), 8)[0] + noise * rng.normal(size=8)
        slow, fast, below = read(code, (3,)), read(code, (0,)), read(code, down=True)
        half = slow if slow <= 3141 else slow - 6283
        call = (
            f"position_of(code of {t}, each number off by about {noise})"
            if noise
            else f"position_of(code of {t})"
        )
        mistakes: list[tuple[Any, str, str]] = [
            (
                slow,
                f"{call} is {slow}, as the slowest hand alone has it: let each faster hand correct it.",
                f"{call} 是 {slow}，这只是最慢的针的读数：要让更快的针逐一修正。",
            ),
            (
                fast,
                f"{call} is {fast}, as the fastest hand alone has it, which goes round every 6.28 positions.",
                f"{call} 是 {fast}，这只是最快的针的读数，它每 6.28 个位置转一圈。",
            ),
            *(
                (
                    wrong,
                    f"{call} is {wrong}: arctan2 gives angles from -π to π. "
                    "Past half a turn of the slowest hand take them modulo 2π.",
                    f"{call} 是 {wrong}：arctan2 给出的角在 -π 到 π 之间。最慢的针过了半圈，要对 2π 取模。",
                )
                for wrong in (half, t - 6283)
            ),
            (
                read(code, swap=1),
                "Sine and cosine have changed places: a hand starts at the top, so it has turned by "
                "`arctan2(sin, cos)`.",
                "正弦和余弦对调了：针从正上方出发，所以转过的角是 `arctan2(sin, cos)`。",
            ),
            (
                t - 1,
                f"{call} is {t - 1}: round to the nearest whole number instead of cutting off.",
                f"{call} 是 {t - 1}：应当四舍五入，不要截断。",
            ),
            (
                below,
                f"{call} is {below}: what you know already may lie on either side, so take the nearest number "
                "of turns instead of rounding down.",
                f"{call} 是 {below}：已知的位置可能偏大也可能偏小，所以要取最接近的圈数，不要向下取整。",
            ),
        ]  # fmt: skip
        if said := compared(solution(code), t, call, mistakes):
            return said
    return None


@exercise("addition-read-both")
def read_both(solution: Solution) -> Said | None:
    rng = np.random.default_rng(3)
    tokens, codes = rng.normal(size=(7, 8)) * np.array([[0.3, 1, 2, 1, 0.5, 2, 1]]).T, rng.normal(size=(5, 8))
    chosen, places = rng.integers(7, size=40), rng.integers(5, size=40)
    sums = tokens[chosen] + codes[places] + rng.normal(0, 0.01, (40, 8))

    def nearest(rows: Any, table: Any) -> Any:
        return ((rows[:, None] - table) ** 2).sum(axis=-1).argmin(axis=1)

    pairs = (tokens[:, None] + codes).reshape(35, 8)
    greedy, products = nearest(sums, tokens), (sums @ pairs.T).argmax(axis=1)
    best = nearest(sums, pairs)
    row = np.arange(40) % 5
    mistakes: list[tuple[Any, str, str]] = [
        (
            (places, chosen),
            "Positions come first; the ids of the tokens should.",
            "先给了位置；应当先给词元的编号。",
        ),
        (
            (greedy, nearest(sums, codes)),
            "Token and position are looked for one without the other, but each sum holds both: "
            "compare it with the sums of all pairs.",
            "词元和位置是分开找的，可是每个和里两样都有：应当与所有成对的和比较。",
        ),
        (
            (greedy, nearest(sums - tokens[greedy], codes)),
            "The token is chosen before the position: the code in the sum pushes it towards another token. "
            "Compare with the sums of all pairs.",
            "先定了词元，再定位置：和里的编码会把它推向别的词元。应当与所有成对的和比较。",
        ),
        (
            np.divmod(products, 5),
            "The pair with the largest dot product is taken, and long sums win it too often: "
            "take the one at the smallest distance.",
            "取的是点积最大的一对，长的和太容易赢：应当取距离最小的一对。",
        ),
        (
            np.divmod(best, 7),
            "The pair is right, but is taken apart wrongly: in an array `(n_tokens, n_positions)` there are "
            "5 positions for each token, so divide by the number of codes.",
            "找到的对是对的，拆开时错了：在 `(n_tokens, n_positions)` 的数组里，每个词元有 5 个位置，要除以编码数。",
        ),
        (
            (nearest(sums - codes[row], tokens), row),
            "Row t of the sums is taken to stand at position t; nothing says so.",
            "把和的第 t 行当成在位置 t 上；题目没有这样说。",
        ),
    ]
    return compared(
        solution(sums, tokens, codes), (chosen, places), "read_both(sums, tokens, codes)", mistakes
    )


@exercise("learned-stretch")
def stretch(solution: Solution) -> Said | None:
    table, length = np.array([[0.0, 1.0], [10.0, 1.0], [20.0, 3.0], [40.0, 2.0]]), 6
    marks = np.linspace(0, 3, length)
    row = np.minimum(marks.astype(int), 2)
    share = (marks - row)[:, None]
    shrunk = np.arange(length) * 4 / length
    low, high = shrunk.astype(int), np.minimum(shrunk.astype(int) + 1, 3)
    mistakes: list[tuple[Any, str, str]] = [
        (
            table[low] + (shrunk - low)[:, None] * (table[high] - table[low]),
            "The marks are L/N apart, so the last one stops before the last row: from end to end there are "
            "L - 1 and N - 1 steps.",
            "刻度的间隔是 L/N，最后一个刻度到不了最后一行：从头到尾是 L - 1 步和 N - 1 步。",
        ),
        (
            share * table[row] + (1 - share) * table[row + 1],
            "The two weights are exchanged: the nearer row must have the larger one.",
            "两个权重对调了：近的那一行权重应当更大。",
        ),
        (
            table[marks.astype(int)],
            "Each mark gets the row before it; take the mean of both.",
            "每个刻度只取了前一行；应当取前后两行的平均。",
        ),
        (
            table[marks.round().astype(int)],
            "Each mark gets the nearest row; take the mean of both.",
            "每个刻度只取了最近的一行；应当取前后两行的平均。",
        ),
        (
            interpolate_table(table, length, align_corners=False),
            "The marks stand in the middle of cells; here the first and the last mark lie on the first and "
            "the last row.",
            "刻度放在了小格的中间；这里第一个和最后一个刻度要落在第一行和最后一行上。",
        ),
        (
            np.concatenate([table, np.repeat(table[-1:], 2, axis=0)]),
            "The last row is repeated: that is clamping.",
            "重复了最后一行：这是钳位。",
        ),
    ]
    said = compared(solution(table, length), interpolate_table(table, length), "stretch(table, 6)", mistakes)
    return said or compared(solution(table, 4), table, "stretch(table, 4)")


@exercise("reordering-bag-bound")
def bag_bound(solution: Solution) -> Said | None:
    pairs = [("a b", "1 2"), ("b a", "2 1"), ("b a", "2 1"), ("a a b", "1 1 2"), ("b b a", "2 2 1")]
    pairs += [("b b a", "2 2 1"), ("c d", "3 4")]

    def bound(
        pairs: list[tuple[str, str]], key: Callable[[str], Any], first: bool = False
    ) -> tuple[list[int], int]:
        bags = defaultdict(list)
        for source, target in pairs:
            bags[key(source)].append(target)
        right = [bag.count(bag[0]) if first else max(Counter(bag).values()) for bag in bags.values()]
        return right, len(pairs)

    def bag(source: str) -> Any:
        return tuple(sorted(source.split()))

    right, n = bound(pairs, bag)
    sets, _ = bound(pairs, lambda source: frozenset(source.split()))
    in_order, _ = bound(pairs, lambda source: source)
    first, _ = bound(pairs, bag, first=True)
    once, fewer = bound(list(dict(pairs).items()), bag)
    sizes = Counter(bag(source) for source, _ in pairs).values()
    mistakes: list[tuple[Any, str, str]] = [
        (
            sum(sets) / n,
            "A set forgets how often a token occurs: 'a a b' and 'b b a' are different bags.",
            "集合忘了一个词元出现几次：“a a b”和“b b a”是不同的词袋。",
        ),
        (
            sum(in_order) / n,
            "Sentences are grouped with their order: a bag forgets it, so sort the tokens.",
            "归类时带着语序：词袋没有语序，要先把词元排序。",
        ),
        (
            float(np.mean([r / size for r, size in zip(right, sizes, strict=True)])),
            "Every bag counts the same; count sentences, because a frequent bag weighs more.",
            "每个词袋算成了一样重；应当数句子，因为常见的词袋更重。",
        ),
        (
            sum(once) / fewer,
            "A dictionary keeps each sentence once; sentences that occur again must count again.",
            "字典里每句只留一次；重复出现的句子要重复计数。",
        ),
        (
            sum(first) / n,
            "The first translation of a bag is taken; the best guess is the most frequent one.",
            "取了词袋里的第一个译文；最好的猜法是取最常见的那个。",
        ),
        (
            len(right) / n,
            "One sentence a bag is counted as right; all that share the most frequent translation are.",
            "每个词袋只算对了一句；凡是译文等于最常见译文的句子都对。",
        ),
        (
            len(sets) / n,
            "One sentence a bag is counted as right; all that share the most frequent translation are. "
            "And a set forgets how often a token occurs.",
            "每个词袋只算对了一句；凡是译文等于最常见译文的句子都对。另外，集合忘了一个词元出现几次。",
        ),
    ]
    return compared(solution(pairs), sum(right) / n, f"bag_bound({len(pairs)} pairs)", mistakes)


@exercise("shift-in-halves")
def shift_in_halves(solution: Solution) -> Said | None:
    k, dim = 3, 8
    angles = k * 10000.0 ** (-np.arange(0, dim, 2) / dim)

    def matrix(angles: np.ndarray, sign: float = 1.0) -> np.ndarray:
        c, s = np.diag(np.cos(angles)), np.diag(np.sin(angles))
        return np.block([[c, s], [-sign * s, sign * c]])

    right = matrix(angles)
    mistakes: list[tuple[Any, str, str]] = [
        (
            right.T,
            "It moves codes back by k: the sine with the minus belongs in the lower left quarter.",
            "它把编码往回挪了 k：带负号的正弦应当在左下角。",
        ),
        (
            shift_matrix(k, dim),
            "It has a block of 2 by 2 for each pair, which is right for sines and cosines in turn; "
            "here all sines come first.",
            "它给每一对一个 2×2 的块，正弦余弦交替排列时才对；这里所有正弦排在前面。",
        ),
        (
            matrix(angles, -1.0),
            "It is a reflection, with determinants -1: the lower half is -sin and +cos.",
            "它是反射，行列式为 -1：下半部分应当是 -sin 和 +cos。",
        ),
        (
            matrix(np.full(4, float(k))),
            "All pairs turn by k; pair i turns by k times its own frequency.",
            "每一对都转了 k；第 i 对应当转 k 乘以它自己的频率。",
        ),
        (
            matrix(k * 10000.0 ** (-np.arange(4) / dim)),
            "The frequencies have the exponent -i/dim, and should have -2i/dim.",
            "频率的指数是 -i/dim，应当是 -2i/dim。",
        ),
    ]
    return compared(solution(k, dim), right, "shift_in_halves(3, 8)", mistakes)
