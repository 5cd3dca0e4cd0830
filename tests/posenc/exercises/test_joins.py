"""Right and wrong solutions of the exercises that join chapters."""

import math
from typing import Any

import numpy as np

from tests.posenc.exercises.tables import Table, held


def _complex(keys: Any, half: bool = False) -> Any:
    d = keys.shape[1] // 2
    return keys[:, :d] + 1j * keys[:, d:] if half else keys[:, ::2] + 1j * keys[:, 1::2]


def _columns(z: Any, half: bool = False) -> Any:
    parts = [z.real, z.imag]
    return np.concatenate(parts, axis=1) if half else np.stack(parts, axis=-1).reshape(len(z), -1)


def _omega(keys: Any, half: bool = False, sign: int = 1) -> Any:
    z = _complex(keys, half)
    return sign * np.angle(z[1:] / z[:-1]).mean(axis=0)


def _base(keys: Any, half: bool = False, sign: int = 1, share: float = 1.0) -> Any:
    return _omega(keys, half, sign)[1] ** (-share * keys.shape[1] / 2)


def _fitted(keys: Any) -> float:
    """All pairs take part: ln ω is a straight line in i."""
    omega = _omega(keys)
    return math.exp(-np.polyfit(np.arange(len(omega)), np.log(omega), 1)[0] * keys.shape[1] / 2)


def _ends(keys: Any) -> Any:
    angles = np.angle(_complex(keys))[:, 1]
    return ((angles[-1] - angles[0]) / (len(keys) - 1)) ** (-keys.shape[1] / 2)


def _turn(keys: Any, angles: Any, half: bool = False) -> Any:
    return _columns(_complex(keys, half) * np.exp(1j * angles), half)


def _block(
    q: Any, k: Any, v: Any, slope: float, t: int, u: int, *, mask: bool = True, root: bool = True, late: bool = True,
    safe: bool = True, shift: bool = True, low: float = -np.inf, local: tuple[int, int] = (1, 1),
) -> Any:  # fmt: skip
    """local: by what the starts are multiplied in the bias and in the mask."""
    back = np.subtract.outer(np.arange(len(q)), np.arange(len(k)))
    in_bias, in_mask = (back + each * (t - u) for each in local)
    scores = q @ k.T - (0 if late else slope * in_bias)
    scores = scores / len(q[0]) ** 0.5 if root else scores
    scores = scores - (slope * in_bias if late else 0)
    scores = np.where(mask & (in_mask < 0), low, scores)
    top = scores.max(axis=1, keepdims=True) if shift else np.zeros((len(q), 1))
    powers = np.exp(scores - (np.where(np.isinf(top), 0, top) if safe else top))
    total = powers.sum(axis=1, keepdims=True)
    z = np.log(total) + np.where(np.isinf(top), 0, top)
    return powers @ v / (np.where(total == 0, 1, total) if safe else total), z


def _hidden(
    pads: Any, window: int, sinks: int, *, first: bool = True, causal: bool = True, keys: bool = True,
    queries: bool = True, early: bool = False,
) -> Any:  # fmt: skip
    mask = np.ones((*pads.shape, pads.shape[1]), dtype=bool)
    for b, row in enumerate(pads):
        kept = (np.flatnonzero(~row) if first else np.arange(len(row)))[:sinks]
        for t, u in np.ndindex(mask.shape[1:]):
            later = causal and u > t
            seen = (u in kept and (early or not later)) or (t - window < u and not later)
            mask[b, t, u] = not seen or (keys and row[u]) or (queries and row[t])
    return mask


def _video(
    parts: Any, per_second: float, *, step: Any = lambda seconds, rate: seconds * rate, shift: Any = 1,
    go_on: Any = lambda found, start, tokens: math.floor(found.max()) + 1, words: Any = 1,
) -> Any:  # fmt: skip
    start, tokens, found = 0, 0, []
    for part in parts:
        if isinstance(part, int):
            some = np.array([[start + n] * 3 for n in range(part)]) * words
        else:
            frames, rows, columns, seconds = part
            some = np.array(
                [
                    [f * step(seconds, per_second), i, j]
                    for f in range(frames)
                    for i in range(rows)
                    for j in range(columns)
                ]
            )
            some = some + start * np.array(shift)
        found.append(some)
        tokens += len(some)
        start = go_on(some, start, tokens)
    return np.concatenate(found)


TABLE: Table = {
    "joins-base-of": (
        _fitted,
        [
            ("Pair 0 turns by 1", lambda keys: _omega(keys)[0] ** (-keys.shape[1] / 2)),
            ("taken for a pair", lambda keys: _base(keys, half=True)),
            ("square of the base", lambda keys: _base(keys, share=2)),
            ("root of the base", lambda keys: _base(keys, share=0.5)),
            ("a little less than 1", lambda keys: 1 / _omega(keys)[-1]),
            ("longest wavelength", lambda keys: 2 * np.pi / _omega(keys)[-1]),
            ("frequency of pair 1", lambda keys: 1 / _omega(keys)[1]),
            ("comes out negative", lambda keys: _base(keys, sign=-1)),
            ("without regard to whole turns", _ends),
        ],
    ),
    "joins-new-base": (
        lambda keys, t, old, new: _turn(_turn(keys, -np.outer(t, old)), np.outer(t, new)),
        [
            ("unchanged", lambda keys, t, old, new: keys),
            ("on top of the old", lambda keys, t, old, new: _turn(keys, np.outer(t, new))),
            ("turned back", lambda keys, t, old, new: _turn(keys, -np.outer(t, old))),
            ("wrong way", lambda keys, t, old, new: _turn(keys, np.outer(t, old - new))),
            ("counted from 0", lambda keys, t, old, new: _turn(keys, np.outer(range(len(t)), new - old))),
            ("one step only", lambda keys, t, old, new: _turn(keys, new - old)),
            ("other layout", lambda keys, t, old, new: _turn(keys, np.outer(t, new - old), half=True)),
            ("turns add up", lambda keys, t, old, new: _turn(keys, np.outer(t, new / old))),
        ],
    ),
    "joins-biased-block": (
        _block,
        [
            ("Only the output", lambda *x: _block(*x)[0]),
            ("both counted from 0", lambda *x: _block(*x, local=(0, 0))),
            ("The mask counts from 0", lambda *x: _block(*x, local=(1, 0))),
            ("The bias counts from 0", lambda *x: _block(*x, local=(0, 1))),
            ("must get lower", lambda q, k, v, m, t, u: _block(q, k, v, -m, t, u)),
            ("Keys later", lambda *x: _block(*x, mask=False)),
            ("no bias", lambda q, k, v, m, t, u: _block(q, k, v, 0, t, u)),
            ("lack the division", lambda *x: _block(*x, root=False)),
            ("add it after", lambda *x: _block(*x, late=False)),
            ("sum of the powers", lambda *x: ((y := _block(*x))[0], np.exp(y[1]))),
            ("sum of values", lambda *x: ((y := _block(*x))[0] * np.exp(y[1]), y[1])),
            ("it gives NaN", lambda *x: _block(*x, safe=False)),
            ("attends to what is hidden", lambda *x: _block(*x, low=-1e9)),
            ("rounded to 0", lambda *x: _block(*x, shift=False)),
        ],
    ),
    "joins-window-sink": (
        _hidden,
        [
            ("wrong way round", lambda *x: ~_hidden(*x)),
            ("in the first columns", lambda *x: _hidden(*x, first=False)),
            ("Sinks leave the window", lambda pads, window, sinks: _hidden(pads, window, 0)),
            ("too wide", lambda pads, window, sinks: _hidden(pads, window + 1, sinks)),
            ("too narrow", lambda pads, window, sinks: _hidden(pads, window - 1, sinks)),
            ("no window", lambda pads, window, sinks: _hidden(pads, 99, sinks)),
            ("Later keys", lambda *x: _hidden(*x, causal=False)),
            ("A sink is seen", lambda *x: _hidden(*x, early=True)),
            ("whole row", lambda *x: _hidden(*x, queries=False, first=False)),  # two mistakes at once
            ("seen as keys, by", lambda *x: _hidden(*x, keys=False)),
            ("not read from the arguments", lambda pads, window, sinks: _hidden(pads, 3, 2)),
        ],
    ),
    "joins-video": (
        _video,
        [
            ("Frames are numbered", lambda *x: _video(*x, step=lambda seconds, rate: 1)),
            ("Time is in seconds", lambda *x: _video(*x, step=lambda seconds, rate: seconds)),
            ("Seconds are divided", lambda *x: _video(*x, step=lambda seconds, rate: seconds / rate)),
            ("numbered by tokens", lambda *x: _video(*x, go_on=lambda found, start, tokens: tokens)),
            (
                "time of the last frame",
                lambda *x: _video(*x, go_on=lambda found, start, tokens: int(found.max()) + (len(found) == 2)),
            ),
            ("largest row or column", lambda *x: _video(*x, go_on=lambda found, *_: int(found[:, 1:].max()) + 1)),
            ("time or its rows alone", lambda *x: _video(*x, go_on=lambda found, *_: int(found[-1, :2].max()) + 1)),
            ("Rows and columns begin with 0", lambda *x: _video(*x, shift=(1, 0, 0))),
            ("begins at 0", lambda *x: _video(*x, shift=0)),
            ("axis of time only", lambda *x: _video(*x, words=(1, 0, 0))),
            ("have changed places", lambda *x: _video(*x)[:, [0, 2, 1]]),
            ("stands at 1.5", lambda *x: _video(*x, go_on=lambda found, *_: found.max() + 1)),
            ("stands at 2;", lambda *x: _video(*x, go_on=lambda found, *_: math.ceil(found.max()) + 1)),
            ("rounded down", lambda *x: np.floor(_video(*x))),
        ],
    ),
}  # fmt: skip


test_each_mistake_gets_its_sentence = held("joins", TABLE)
