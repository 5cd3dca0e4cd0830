"""Right and wrong solutions of the exercises on grids, graphs and times."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.posenc.exercises.tables import Table, held


def _angles(places: Any, dim: int, base: float, sign: int = -1, width: int | None = None) -> tuple[Any, Any]:
    omega = base ** (sign * 2 * np.arange(dim // 4) / (width or dim // 2))
    return places[:, :1] * omega, places[:, 1:] * omega


def _runs_on(places: Any, dim: int, base: float) -> Any:
    return np.repeat(places, dim // 4, axis=1) * base ** (-2 * np.arange(dim // 2) / dim)


def _steps(
    graph: Any,
    anchor: int,
    far: float = np.inf,
    first: int = 0,
    edge: Callable[[Any, int], Any] = lambda g, t: g[t],
) -> Any:
    steps = np.full(len(graph), far)
    steps[anchor] = first
    queue, reached = [anchor], {anchor}
    for t in queue:
        for u in np.flatnonzero(edge(graph, t)).tolist():
            if u not in reached:
                reached.add(u)
                queue.append(u)
                steps[u] = steps[t] + 1
    return steps


def _deep(graph: Any, anchor: int) -> Any:
    """Depth first: the first way that is found stays."""
    steps, seen = np.full(len(graph), np.inf), set[int]()

    def visit(t: int, far: int) -> None:
        seen.add(t)
        steps[t] = far
        for u in np.flatnonzero(graph[t]).tolist():
            if u not in seen:
                visit(u, far + 1)

    visit(anchor, 0)
    return steps


def _weighted(graph: Any, anchor: int) -> Any:
    steps = np.full(len(graph), np.inf)
    steps[anchor] = 0
    for _ in graph:
        for t, u in np.argwhere(graph):
            steps[u] = min(steps[u], steps[t] + graph[t, u])
    return steps


def _closed(
    t: Any, period: float, harmonics: int, first: int = 1, turn: float = 2 * np.pi, divide: bool = False,
    apart: bool = False, swap: bool = False, reduce: bool = True,
) -> Any:  # fmt: skip
    r = np.arange(first, first + harmonics)
    turns = np.remainder(t, period if reduce else np.inf)[:, None] / period
    angles = turn * (turns / r if divide else turns * r)
    both = [np.cos(angles), np.sin(angles)] if swap else [np.sin(angles), np.cos(angles)]
    return np.hstack(both) if apart else np.stack(both, axis=-1).reshape(len(t), -1)


TABLE: Table = {
    "grids-angles": (
        lambda *x: np.hstack(_angles(*x)),
        [
            ("have changed places", lambda *x: np.hstack(_angles(*x)[::-1])),
            ("run on from the row", _runs_on),
            ("in turn", lambda *x: np.stack(_angles(*x), axis=-1).reshape(len(x[0]), -1)),
            ("sum of row and column", lambda p, d, b: p.sum(1, keepdims=True) * b ** (-2 * np.arange(d // 2) / d)),
            ("Both halves follow the row", lambda *x: np.hstack(_angles(*x)[:1] * 2)),
            ("divided by the width of the head", lambda p, d, b: np.hstack(_angles(p, d, b, width=d))),
            ("minus sign", lambda p, d, b: np.hstack(_angles(p, d, b, sign=1))),
        ],
    ),
    "graphs-steps": (
        _steps,
        [
            ("nearer than the anchor", lambda g, a: _steps(g, a, far=-1)),
            ("as if it were the anchor", lambda g, a: _steps(g, a, far=0)),
            ("1 too large", lambda g, a: _steps(g, a, first=1)),
            ("followed backwards", lambda g, a: _steps(g, a, edge=lambda g, t: g[:, t])),
            ("both ways", lambda g, a: _steps(g, a, edge=lambda g, t: g[t] + g[:, t])),
            ("added up as lengths", _weighted),
            ("a longer way first", _deep),
        ],
    ),
    "times-closed": (
        _closed,
        [
            ("2π is missing", lambda t, p, r: _closed(t, p, r, turn=1)),
            ("harmonics divide", lambda t, p, r: _closed(t, p, r, divide=True)),
            ("counted from 0", lambda t, p, r: _closed(t, p, r, first=0)),
            ("All sines come before", lambda t, p, r: _closed(t, p, r, apart=True)),
            ("Sine and cosine", lambda t, p, r: _closed(t, p, r, swap=True)),
            ("rounded to whole numbers", lambda t, *x: _closed(t.astype(int), *x)),
            ("in its last bits", lambda t, p, r: _closed(t, p, r, reduce=False)),
        ],
    ),
}  # fmt: skip


test_each_mistake_gets_its_sentence = held("shapes", TABLE)
