"""Right and wrong solutions of the exercises on positions inside attention."""

from functools import partial
from typing import Any

import numpy as np

from tests.posenc.exercises.tables import Table, held


def _turn(
    x: Any,
    t: Any,
    exponent: float = 2,
    way: int = 1,
    same: int = -1,
    halves: bool = False,
    column: bool = True,
) -> Any:
    dim = x.shape[-1]
    angles = (
        way * (np.asarray(t)[..., None] if column else t) * 10000.0 ** (-exponent * np.arange(dim // 2) / dim)
    )
    c, s = np.cos(angles), np.sin(angles)
    a, b = (x[..., : dim // 2], x[..., dim // 2 :]) if halves else (x[..., ::2], x[..., 1::2])
    turned = a * c + same * b * s, a * s + b * c
    return np.concatenate(turned, -1) if halves else np.stack(turned, -1).reshape(x.shape)


def _step(
    q: Any, k: Any, v: Any, keys: Any, values: Any,
    at: Any = lambda t: (t, t), again: bool = False, turn_value: bool = False, root: float = 8**0.5,
) -> Any:  # fmt: skip
    for_query, for_key = at(len(keys))
    q, k = _turn(q, for_query), _turn(k, for_key)
    keys = _turn(keys, np.arange(len(keys))) if again else keys
    v = _turn(v, len(values)) if turn_value else v
    keys, values = np.vstack([keys, k]), np.vstack([values, v])
    weights = np.exp(keys @ q / root)
    return weights @ values / weights.sum(), keys, values


def _mean(values: Any, factor: float, own: int = 1, total: Any = None) -> Any:
    weights = np.tril(factor ** np.maximum(np.subtract.outer(np.arange(6), np.arange(6)), 0.0), own - 1)
    return (
        weights @ values / (weights.sum(1, keepdims=True) + (own == 0) * 1e-300 if total is None else total)
    )


def _bias(table: Any, n_q: int, n_k: int, first: Any = None, way: int = 1, change: Any = None) -> Any:
    z = len(table) // 2
    offsets = way * (np.arange(n_k) - (np.arange(n_q)[:, None] + (n_k - n_q if first is None else first)))
    return table[change(offsets, z) if change else np.clip(offsets, -z, z) + z]


def _shift(x: Any, pad: Any = (1, 0), drop: Any = slice(1, None), later: float = -np.inf) -> Any:
    n = len(x)
    shifted = np.pad(x, ((0, 0), pad)).reshape(-1, n)[drop]
    return np.where(np.tri(n) > 0, shifted, shifted if np.isnan(later) else later)


def _wins(scores: Any, tie: float = 0.0, total: Any = None, sign: int = 1) -> float:
    one, two = np.triu_indices(len(scores), 1)
    difference = sign * (scores[one] - scores[two])
    won = (difference > 0).sum() + tie * (difference == 0).sum()
    return won / (total(len(scores), (difference != 0).sum()) if total else len(one))


TABLE: Table = {
    "rotary-turn": (
        _turn,
        [
            ("neighbours", lambda x, t: _turn(x, t, halves=True)),
            ("clockwise", lambda x, t: _turn(x, t, way=-1)),
            ("tokens are on axis 1", lambda x, t: _turn(x, t[:, None])),
            ("one by one", partial(_turn, column=False)),
            ("not by the positions", lambda x, t: _turn(x, np.arange(x.shape[-2]))),
            ("exponent -i/dim", lambda x, t: _turn(x, t, exponent=1)),
            ("needs a minus", lambda x, t: _turn(x, t, same=1)),
            ("stand in halves", lambda x, t: np.concatenate([_turn(x, t)[..., ::2], _turn(x, t)[..., 1::2]], -1)),
        ],
    ),
    "rotary-decode": (
        _step,
        [
            ("keys are not", partial(_step, at=lambda t: (t, 0))),
            ("stands at position 0", partial(_step, at=lambda t: (0, 0))),
            ("again at each step", partial(_step, again=True)),
            ("values are turned", partial(_step, turn_value=True)),
            ("root of the width", partial(_step, root=1)),
            ("query stands one", partial(_step, at=lambda t: (t + 1, t))),
            ("key stands one", partial(_step, at=lambda t: (t, t + 1))),
            ("append the new", lambda *given: (_step(*given)[0], *given[3:])),
            ("three things", lambda *given: _step(*given)[0]),
        ],
    ),
    "alibi-running-mean": (
        lambda values, m: _mean(values, np.exp(-m)),
        [
            ("endless past", lambda values, m: _mean(values, np.exp(-m), total=1 / (1 - np.exp(-m)))),
            ("do not add up to 1", lambda values, m: _mean(values, np.exp(-m), total=1)),
            ("1 - slope", lambda values, m: _mean(values, 1 - m)),
            ("2 ** -slope", lambda values, m: _mean(values, 2**-m)),
            ("Far keys", lambda values, m: _mean(values, np.exp(m))),
            ("slope is not used", lambda values, m: _mean(values, 1)),
            ("number of keys", lambda values, m: _mean(values, np.exp(-m), total=np.arange(1, 7)[:, None])),
            ("shrink the old sum first", lambda values, m: np.exp(-m) * _mean(values, np.exp(-m))),
            ("its own value", lambda values, m: _mean(values, np.exp(-m), own=0)),
        ],
    ),
    "relative-table-bias": (
        _bias,
        [
            ("exchanged", partial(_bias, way=-1)),
            ("last of the keys", partial(_bias, first=0)),
            ("wrap around", partial(_bias, change=lambda k, z: (k + z) % (2 * z + 1))),
            ("in the middle", partial(_bias, change=lambda k, z: np.clip(k, -z, z))),
            ("the distance is taken", partial(_bias, change=lambda k, z: np.minimum(abs(k), z) + z)),
        ],
    ),
    "disentangled-causal-shift": (
        _shift,
        [
            ("numbers of the next row", partial(_shift, later=np.nan)),
            ("softmax counts", partial(_shift, later=0)),
            ("No row has moved", lambda x: _shift(x, (0, 0), slice(None))),
            ("behind each row", lambda x: _shift(x, (0, 1))),
            ("last row was dropped; drop the first", partial(_shift, drop=slice(-1))),
            ("and drop the first", lambda x: _shift(x, (0, 1), slice(-1))),
            ("read as offset 0", lambda x: _shift(x[:, ::-1])),
        ],
    ),
    "locality-nearer-wins": (
        _wins,
        [
            ("Half of the ties", lambda scores: _wins(scores, 0.5)),
            ("use >", lambda scores: _wins(scores, 1)),
            ("left out", partial(_wins, total=lambda n, untied: untied)),
            ("Only neighbours", lambda scores: (np.diff(scores) < 0).mean()),
            ("farther one wins", partial(_wins, sign=-1)),
            ("Divided by 64", partial(_wins, total=lambda n, untied: n * n)),
        ],
    ),
}  # fmt: skip


test_each_mistake_gets_its_sentence = held("relative", TABLE)
