"""Right and wrong solutions of the exercises on codes that are added."""

from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tests.posenc.exercises.tables import Table, held


def _code(
    t: Any,
    dim: int,
    base: float,
    exponent: float = 2,
    order: Any = slice(None),
    unit: float = 1,
    times: Any = np.outer,
) -> Any:
    angles = times(t, base ** (-exponent * np.arange(dim // 2) / dim)) * unit
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1)[..., order].reshape(len(t), dim)


def _each_column(t: Any, dim: int, base: float) -> Any:
    return np.sin(np.outer(t, base ** -(np.arange(dim) / dim)) + [0, np.pi / 2] * (dim // 2))


def _read(
    code: Any,
    hands: Any = (3, 2, 1, 0),
    swap: int = 0,
    mod: bool = True,
    whole: Any = round,
    down: bool = False,
) -> Any:
    position = None
    for i in hands:
        omega = 10.0**-i
        angle = np.arctan2(code[2 * i + swap], code[2 * i + 1 - swap])
        angle = angle % (2 * np.pi) if mod else angle
        turns = 0 if position is None else round((position * omega - angle) / (2 * np.pi))
        turns = position * omega // (2 * np.pi) if down and position is not None else turns
        position = (angle + 2 * np.pi * turns) / omega
    return whole(position)


def _pair(sums: Any, tokens: Any, codes: Any, near: Any = None, divide_by: int | None = None) -> Any:
    pairs = (tokens[:, None] + codes).reshape(-1, sums.shape[1])
    far = ((sums[:, None] - pairs) ** 2).sum(-1) if near is None else near(sums, pairs)
    return np.divmod(far.argmin(1), divide_by or len(codes))


def _nearest(rows: Any, table: Any) -> Any:
    return ((rows[:, None] - table) ** 2).sum(-1).argmin(1)


def _greedy(sums: Any, tokens: Any, codes: Any) -> Any:
    ids = _nearest(sums, tokens)
    return ids, _nearest(sums - tokens[ids], codes)


def _in_a_row(sums: Any, tokens: Any, codes: Any) -> Any:
    t = np.arange(len(sums)) % len(codes)
    return _nearest(sums - codes[t], tokens), t


def _stretch(table: Any, length: int, step: float | None = None, mean: Any = lambda f: f) -> Any:
    marks = np.arange(length) * (step or (len(table) - 1) / (length - 1))
    row = np.minimum(marks.astype(int), len(table) - 2)
    f = mean(np.minimum(marks - row, 1))[:, None]
    return (1 - f) * table[row] + f * table[row + 1]


def _bound(
    pairs: Any, key: Callable[[str], Any] = lambda s: tuple(sorted(s.split())), best: Any = None
) -> float:
    bags = defaultdict(list)
    for source, target in pairs:
        bags[key(source)].append(target)
    return sum(map(best or (lambda bag: max(Counter(bag).values())), bags.values())) / len(pairs)


def _by_bags(pairs: Any) -> float:
    bags = defaultdict(list)
    for source, target in pairs:
        bags[tuple(sorted(source.split()))].append(target)
    return float(np.mean([max(Counter(bag).values()) / len(bag) for bag in bags.values()]))


def _halves(k: int, dim: int, signs: Any = (1, -1, 1), exponent: float = 2) -> Any:
    angles = k * 10000.0 ** (-exponent * np.arange(dim // 2) / dim)
    c, s = np.diag(np.cos(angles)), np.diag(np.sin(angles))
    return np.block([[c, signs[0] * s], [signs[1] * s, signs[2] * c]])


def _blocks(k: int, dim: int) -> Any:
    columns = np.arange(dim).reshape(-1, 2).T.ravel().argsort()
    return _halves(k, dim)[np.ix_(columns, columns)]


TABLE: Table = {
    "sinusoidal-code-of": (
        _code,
        [
            ("counts columns", _each_column),
            ("should be -2i/dim", lambda t, d, b: _code(t, d, b, 1)),
            ("divides, it does not multiply", lambda t, d, b: _code(t, d, b, -2)),
            ("All sines come first", lambda t, d, b: _code(t, d, b)[:, [*range(0, d, 2), *range(1, d, 2)]]),
            ("changed places", lambda t, d, b: _code(t, d, b, order=slice(None, None, -1))),
            ("one by one", partial(_code, times=lambda t, omega: np.tile(t * omega, (len(t), 1)))),
            ("count from 0", lambda t, d, b: _code(t + 1, d, b)),
            ("degrees", lambda t, d, b: _code(t, d, b, unit=np.pi / 180)),
        ],
    ),
    "sinusoidal-read-the-clock": (
        _read,
        [
            ("slowest hand alone", lambda code: _read(code, [3])),
            ("modulo 2π", partial(_read, mod=False)),
            ("changed places", partial(_read, swap=1)),
            ("cutting off", partial(_read, whole=int)),
            ("fastest hand alone", lambda code: _read(code, [0])),
            ("rounding down", partial(_read, down=True)),
        ],
    ),
    "addition-read-both": (
        _pair,
        [
            ("ids of the tokens should", lambda *given: _pair(*given)[::-1]),
            ("one without the other", lambda sums, *given: tuple(_nearest(sums, table) for table in given)),
            ("before the position", _greedy),
            ("largest dot product", partial(_pair, near=lambda sums, pairs: -sums @ pairs.T)),
            ("taken apart wrongly", partial(_pair, divide_by=7)),
            ("nothing says so", _in_a_row),
        ],
    ),
    "learned-stretch": (
        _stretch,
        [
            ("L - 1 and N - 1", lambda table, n: _stretch(table, n, len(table) / n)),
            ("exchanged", lambda table, n: _stretch(table, n, mean=lambda f: 1 - f)),
            ("row before it", lambda table, n: _stretch(table, n, mean=np.floor)),
            ("nearest row", lambda table, n: _stretch(table, n, mean=np.round)),
            ("clamping", lambda table, n: table[np.minimum(np.arange(n), len(table) - 1)]),
            ("raised IndexError", lambda table, n: table[np.arange(n)]),
        ],
    ),
    "reordering-bag-bound": (
        _bound,
        [
            ("how often a token occurs", lambda pairs: _bound(pairs, lambda s: frozenset(s.split()))),
            ("with their order", lambda pairs: _bound(pairs, str)),
            ("Every bag counts the same", _by_bags),
            ("each sentence once", lambda pairs: _bound([*dict(pairs).items()])),
            ("first translation", partial(_bound, best=lambda bag: bag.count(bag[0]))),
            ("One sentence a bag", partial(_bound, best=lambda bag: 1)),
            ("And a set forgets", lambda pairs: _bound(pairs, lambda s: frozenset(s.split()), lambda bag: 1)),
        ],
    ),
    "shift-in-halves": (
        _halves,
        [
            ("back by k", lambda k, d: _halves(k, d).T),
            ("for each pair", _blocks),
            ("reflection", lambda k, d: _halves(k, d, (1, 1, -1))),
            ("its own frequency", lambda k, d: _halves(k, d, exponent=0)),
            ("exponent -i/dim", lambda k, d: _halves(k, d, exponent=1)),
        ],
    ),
}  # fmt: skip


test_each_mistake_gets_its_sentence = held("absolute", TABLE)
