"""Right and wrong solutions of the exercises on masks, machines, caches and checks."""

from typing import Any

import numpy as np

from tests.posenc.exercises.tables import Table, held


def _positions(pads: Any, first: int = 0, axis: int | None = 1, least: int = 0, close: bool = True) -> Any:
    counted = np.maximum(np.cumsum(~pads, axis=axis) - 1 + first, least)
    return np.where(pads, 0, counted) if close else counted


def _softmax(
    scores: Any, hidden: Any, fill: float = -np.inf, axis: int = 1, top: Any = None, safe: bool = True
) -> Any:
    s = np.where(hidden, fill, scores)
    top = s.max(axis=axis, keepdims=True) if top is None else top
    e = np.exp(s - (np.where(np.isinf(top), 0, top) if safe else top))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(safe & (total == 0), 1, total)


def _merge(o: Any, z: Any, p: Any, y: Any, new: Any = None, power: Any = np.exp) -> Any:
    new = np.logaddexp(z, y) if new is None else new
    safe = np.maximum(new, -1e30)
    return power(z - safe) * o + power(y - safe) * p, new


def _naive_merge(o: Any, z: Any, p: Any, y: Any) -> Any:
    a, b = np.exp(z), np.exp(y)
    return (a * o + b * p) / np.where(a + b == 0, 1, a + b), np.log(a + b)


def _ring(n: int, slots: int, newest: int = 1, empty: bool = True) -> Any:
    slot = np.arange(slots)
    found = n - newest - (n - newest - slot) % slots
    return np.maximum(found, -1) if empty else found


def _never_minus_inf(o: Any, z: Any, p: Any, y: Any) -> Any:
    """Stops at a block without keys, but not where both have none."""
    return _merge(o, z, p, y) if np.isfinite(z).any() else _merge(o, z, p, y, z, lambda x: np.exp(x - x))


def _sign(model: Any, x: Any) -> bool:
    rows = np.arange(len(x))[:, None]
    return any(not np.array_equal(model(np.where(rows == u, -x, x))[:u], model(x)[:u]) for u in range(len(x)))


def _each(model: Any, x: Any, changed: Any, seen: Any) -> bool:
    """Whether a change of a token in `changed` shows at an output that `seen` gives for it."""
    y = model(x)
    for u in changed:
        z = x.copy()
        z[u] += 1.0
        if not np.array_equal(model(z)[seen(u)], y[seen(u)]):
            return True
    return False


def _ahead(model: Any, x: Any) -> bool:
    return _each(model, x, range(1, len(x)), lambda u: slice(0, u))


TABLE: Table = {
    "masks-positions": (
        _positions,
        [
            ("pads included", lambda pads: np.tile(np.arange(pads.shape[1]), (len(pads), 1))),
            ("has its column", lambda pads: np.where(pads, 0, np.arange(pads.shape[1]))),
            ("The pads are counted", lambda pads: _positions(~pads, close=False)),
            ("begins with 1", lambda pads: _positions(pads, first=1, close=False)),
            ("position −1", lambda pads: _positions(pads, least=-1, close=False)),
            ("down the batch", lambda pads: _positions(pads, axis=0, close=False)),
            ("as one text", lambda pads: _positions(pads, axis=None, close=False)),
            ("Pads on the right keep", lambda pads: _positions(pads, close=False)),
        ],
    ),
    "masks-softmax": (
        _softmax,
        [
            ("Nothing is hidden", lambda s, hidden: _softmax(s, hidden & False)),
            ("wrong way round", lambda s, hidden: _softmax(s, ~hidden)),
            ("after the softmax", lambda s, hidden: np.where(hidden, 0, _softmax(s, hidden & False))),
            ("e to the power of 0", lambda s, hidden: _softmax(s, hidden, fill=0)),
            ("runs over the queries", lambda s, hidden: _softmax(s, hidden, axis=0)),
            ("overflow", lambda s, hidden: _softmax(s, hidden, top=0)),
            ("underflow", lambda s, hidden: _softmax(s, hidden, top=s.max(axis=1, keepdims=True))),
            ("gives NaN", lambda s, hidden: _softmax(s, hidden, safe=False)),
            ("attends to what is hidden", lambda s, hidden: _softmax(s, hidden, fill=-1e9)),
        ],
    ),
    "parallel-merge": (
        _merge,
        [
            ("Only the output", lambda *x: _merge(*x)[0]),
            ("count alike", lambda o, z, p, y: ((o + p) / 2, np.logaddexp(z, y))),
            ("weighted by z", lambda o, z, p, y: ((z * o + y * p) / (z + y), np.logaddexp(z, y))),
            ("have changed places", lambda o, z, p, y: _merge(p, z, o, y)),
            ("not divided", lambda o, z, p, y: (np.exp(z) * o + np.exp(y) * p, np.logaddexp(z, y))),
            ("The logarithms are added", lambda o, z, p, y: (_merge(o, z, p, y)[0], z + y)),
            ("overflow", _naive_merge),
            ("both blocks have", _never_minus_inf),
        ],
    ),
    "serving-ring-positions": (
        _ring,
        [
            ("numbers of the slots", lambda n, slots: np.arange(slots)),
            ("still empty", lambda n, slots: _ring(n, slots, empty=False)),
            ("because positions begin with 0", lambda n, slots: _ring(n, slots, newest=0)),
            ("stand in their order", lambda n, slots: np.arange(n - slots, n)),
            ("one round before", lambda n, slots: _ring(n, slots) - slots),
            ("has 4 slots", lambda n, slots: np.arange(n)),
        ],
    ),
    "models-which-layers": (
        lambda n, pattern: np.arange(1, n + 1) % pattern == 0,
        [
            ("The first layer is full", lambda n, pattern: np.arange(n) % pattern == 0),
            ("True and False", lambda n, pattern: np.arange(1, n + 1) % pattern > 0),
            ("4 windows before", lambda n, pattern: np.arange(1, n + 1) % (pattern + 1) == 0),
            ("all stand at the end", lambda n, pattern: np.arange(n) >= n - n // pattern),
            ("numbers of the full", lambda n, pattern: np.arange(pattern - 1, n, pattern)),
            ("Only one layer", lambda n, pattern: np.arange(n) == pattern - 1),
        ],
    ),
    "check-looks-ahead": (
        _ahead,
        [
            ("own output", lambda f, x: _each(f, x, range(len(x)), lambda u: slice(0, u + 1))),
            ("causal mean", lambda f, x: _each(f, x, range(1), lambda u: slice(1, None))),
            ("mean over all tokens", lambda f, x: _each(f, x, range(len(x) - 1), lambda u: slice(-1, 0))),
            ("3 places ahead", lambda f, x: _each(f, x, range(1, len(x)), lambda u: u - 1)),
            ("only the first output", lambda f, x: _each(f, x, [len(x) - 1], lambda u: slice(0, u))),
            ("change of sign", _sign),
            ("not an array", lambda f, x: f(x) != f(x[::-1])),
        ],
    ),
}  # fmt: skip


test_each_mistake_gets_its_sentence = held("practice", TABLE)
