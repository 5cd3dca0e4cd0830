"""Right and wrong solutions of the exercises on long texts."""

from typing import Any

import numpy as np

from tests.posenc.exercises.tables import Table, held


def _parts(omega: Any, turns: Any, factor: float, ramp: Any = None, clip: bool = True) -> Any:
    share = (4 - turns) / 3 if ramp is None else ramp
    share = np.clip(share, 0, 1) if clip else share
    return (1 - share) * omega + share * omega / factor


def _turns(omega: Any, trained: int) -> Any:
    return trained * omega / (2 * np.pi)


def _entropy(weights: Any, axis: int = -1, safe: bool = True, log: Any = np.log) -> Any:
    return -(weights * log(np.where((weights > 0) | (not safe), weights, 1))).sum(axis=axis)


def _bias(
    gates: Any, first: int = 1, last: int = 1, sign: int = 1, hide: bool = True, log: Any = np.log
) -> Any:
    n = len(gates)
    logs = log(gates)
    sums = [
        [logs[u + first : t + last].sum() - logs[t + last : u + first].sum() for u in range(n)]
        for t in range(n)
    ]
    return np.where(hide & (np.arange(n) > np.arange(n)[:, None]), -np.inf, sign * np.array(sums))


def _sink(s: Any, sink: float, shift: bool = True, keep: bool = False) -> Any:
    wide = np.hstack([s, np.full((len(s), 1), sink)])
    top = wide.max(axis=1, keepdims=True) if shift else np.zeros((len(s), 1))
    powers = np.exp(wide - top)
    weights = powers / powers.sum(axis=1, keepdims=True)
    return weights if keep else weights[:, :-1]


TABLE: Table = {
    "longer-by-parts": (
        lambda w, n, r: _parts(w, _turns(w, n), r),
        [
            ("lack a division by 2π", lambda w, n, r: _parts(w, n * w, r)),
            ("wavelength was divided", lambda w, n, r: _parts(w, 1 / _turns(w, n), r)),
            ("divide by 3", lambda w, n, r: _parts(w, 0, r, ramp=(4 - _turns(w, n)) / 4)),
            ("wrong way round", lambda w, n, r: _parts(w, 0, r, ramp=(_turns(w, n) - 1) / 3)),
            ("not held between", lambda w, n, r: _parts(w, _turns(w, n), r, clip=False)),
            ("multiplied by the factor", lambda w, n, r: _parts(w, _turns(w, n), 1 / r)),
            ("wavelengths are mixed", lambda w, n, r: 1 / _parts(1 / w, _turns(w, n), 1 / r)),
            ("no ramp", lambda w, n, r: np.where(_turns(w, n) < 4, w / r, w)),
        ],
    ),
    "extrapolation-keys-seen": (
        lambda w: np.exp(_entropy(w)),
        [
            ("This is the entropy", _entropy),
            ("sign of the entropy", lambda w: np.exp(-_entropy(w))),
            ("base 2", lambda w: np.exp(_entropy(w, log=np.log2))),
            ("runs over the queries", lambda w: np.exp(_entropy(w, axis=0))),
            ("not a mean", lambda w: np.exp(_entropy(w) / w.shape[1])),
            ("gives NaN", lambda w: np.exp(_entropy(w, safe=False))),
            ("sum of squares", lambda w: 1 / (w**2).sum(axis=1)),
        ],
    ),
    "contextual-forget-bias": (
        _bias,
        [
            ("take u + 1 to t", lambda f: _bias(f, first=0, last=0)),
            ("gate of the key itself", lambda f: _bias(f, first=0)),
            ("gate of the query", lambda f: _bias(f, last=0)),
            ("sign is the wrong way", lambda f: _bias(f, sign=-1)),
            ("Later keys are not hidden", lambda f: _bias(f, hide=False)),
            ("hides nothing", lambda f: np.nan_to_num(_bias(f), neginf=0)),
            ("Rows and columns", lambda f: _bias(f).T),
            ("add up their logarithms", lambda f: _bias(f, log=lambda gates: gates)),
            ("products of the gates", lambda f: np.exp(_bias(f))),
        ],
    ),
    "hybrids-sink": (
        _sink,
        [
            ("takes nothing", lambda s, sink: _sink(s, -np.inf)),
            ("as the last column", lambda s, sink: _sink(s, sink, keep=True)),
            ("e to the power of it", lambda s, sink: np.exp(s) / (np.exp(s).sum(1, keepdims=True) + sink)),
            ("runs over the queries", lambda s, sink: np.exp(s) / (np.exp(s).sum(0) + np.exp(sink))),
            (
                "but not from the sink",
                lambda s, sink: (e := np.exp(s - s.max(1, keepdims=True))) / (e.sum(1, keepdims=True) + np.exp(sink)),
            ),
            ("overflow", lambda s, sink: _sink(s, sink, shift=False)),
            (
                "is NaN",
                lambda s, sink: (
                    (e := np.exp(s - (top := s.max(1, keepdims=True)))) / (e.sum(1, keepdims=True) + np.exp(sink - top))
                ),
            ),
        ],
    ),
}  # fmt: skip


test_each_mistake_gets_its_sentence = held("long", TABLE)
