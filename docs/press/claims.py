"""What a figure's words claim of its curves, held against the drawing.

    <!-- holds: peak(solid) == 122; level(dashed, 70); low(solid) == -0.28; share(p2.bars, 50, 59) == 97% -->

A claim is an expression of Python. `== 122` or `== 1.2, 2.1, 97%` is meant as it is written, rounded to so many
digits; any other claim must be true. A curve is called by its looks, `solid` `dashed` `dashdot` `dotted`
`dashdotdot`, `circles` `squares` `triangles` `diamonds` `wedges` `dots`, `grey`, `bars` `hatched` `outline`: they are
the same in all languages. p1, p2, … are the panels in reading order and `panels` all of them; p1.solid is a curve
and p1.curves all of one panel, p1.map the table that its colours show. In `sum(last(p.dashed) < 0.1 for p in panels)
== 11` panels are counted. Below are the functions that a claim can call; check/planted.py has examples of each.
"""

from __future__ import annotations

import ast
import copy
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from press.numbers import stands

SLACK = 0.02  # of the height of a panel: what a reader takes for level
_NUMBERS = re.compile(r"(.+?)\s*==\s*((?:-?\d+(?:\.\d+)?%?(?:,\s*)?)+)")


# --- What a claim can name ----------------------------------------------------------------------------------


class Curve:
    """A curve, or the tops of a row of bars, from left to right."""

    def __init__(self, x: list[float], y: list[float], heights: list[float], log: bool) -> None:
        order = np.argsort(x, kind="stable")
        self.x, self.y = np.asarray(x)[order], np.asarray(y)[order]
        self.log, self.turned = log, False
        low, high = sorted(np.log10(heights) if log else heights)
        self.slack = SLACK * (high - low)

    def __lt__(self, other: Curve | float) -> Any:
        return self.y < _over(self, other)

    def __gt__(self, other: Curve | float) -> Any:
        return self.y > _over(self, other)

    def __neg__(self) -> Curve:
        turned = copy.copy(self)
        turned.turned = True
        return turned

    def seen(self, start: float = -math.inf, end: float = math.inf) -> Any:
        """The heights between two places, as the axis spaces them."""
        y = _part(self, start, end)[1]
        return (-1 if self.turned else 1) * (np.log10(y) if self.log else y)


class Panel:
    """Axes: `.solid`, `.curves`, `.map`."""

    def __init__(self, drawn: Mapping[str, Any]) -> None:
        self.looks = [set(curve["looks"]) for curve in drawn["curves"]]
        self.curves = [
            Curve(curve["x"], curve["y"], drawn["heights"], drawn["log"]) for curve in drawn["curves"]
        ]
        self.maps = [np.asarray(table) for table in drawn["maps"]]

    def named(self, look: str) -> list[Curve]:
        return [curve for curve, looks in zip(self.curves, self.looks, strict=True) if look in looks]

    def __getattr__(self, name: str) -> Any:
        return _only(name, self.maps if name == "map" else self.named(name))


def _named(name: str, shown: list[Panel]) -> Any:
    """What a claim calls by a name: a curve or a map that only one panel has, a panel, a function."""
    names: dict[str, Any] = {f"p{k}": panel for k, panel in enumerate(shown, 1)} | {"panels": shown}
    names["curves"] = [curve for panel in shown for curve in panel.curves]
    if name in FUNCTIONS or name in names:
        return (FUNCTIONS | names)[name]
    return _only(
        name, [each for panel in shown for each in (panel.maps if name == "map" else panel.named(name))]
    )


def _only(name: str, found: list[Any]) -> Any:
    if len(found) != 1:
        many = f"{len(found)} curves are" if found else "nothing is"
        raise NameError(f"{many} called {name}")
    return found[0]


def _over(curve: Curve, other: Curve | float) -> Any:
    """The heights of another curve over the places of this one."""
    return np.interp(curve.x, other.x, other.y) if isinstance(other, Curve) else other


def _part(curve: Curve, start: float, end: float) -> tuple[Any, Any]:
    inside = (start <= curve.x) & (curve.x <= end)
    if not inside.any():
        raise ValueError(f"nothing is drawn from {start:g} to {end:g}")
    return curve.x[inside], curve.y[inside]


def top(curve: Curve, start: float = -math.inf, end: float = math.inf) -> float:
    """The greatest height, of all or between two places."""
    return float(_part(curve, start, end)[1].max())


def peak(curve: Curve, start: float = -math.inf, end: float = math.inf) -> float:
    """The place of the greatest height."""
    x, y = _part(curve, start, end)
    return float(x[y.argmax()])


def low(curve: Curve, start: float = -math.inf, end: float = math.inf) -> float:
    """The least height."""
    return float(_part(curve, start, end)[1].min())


def dip(curve: Curve, start: float = -math.inf, end: float = math.inf) -> float:
    """The place of the least height."""
    x, y = _part(curve, start, end)
    return float(x[y.argmin()])


def peaks(curve: Curve, least: float | None = None) -> list[float]:
    """The places of all hills that rise by `least`, or by more than nothing to the eye, from both sides."""
    least = curve.slack if least is None else least
    heights = curve.seen()
    found, up, turn, place = list[float](), False, heights[0], 0.0  # the height where it last turned
    for x, y in zip(curve.x, heights, strict=True):
        if up and y <= turn - least:
            found.append(place)
            up, turn = False, y
        elif not up and y >= turn + least:
            up, turn, place = True, y, float(x)
        elif (y > turn) == up:
            turn, place = y, float(x)
    return found


def dips(curve: Curve, least: float | None = None) -> list[float]:
    """The places of all valleys, as those of hills."""
    return peaks(-curve, least)


def first(curve: Curve) -> float:
    """The height at the left end."""
    return float(curve.y[0])


def last(curve: Curve) -> float:
    """The height at the right end."""
    return float(curve.y[-1])


def at(curve: Curve, *places: float) -> Any:
    """The heights at places, one or several."""
    for x in places:
        if not curve.x[0] <= x <= curve.x[-1]:
            raise ValueError(f"nothing is drawn at {x:g}")
    heights = np.interp(places, curve.x, curve.y)
    return heights if len(places) > 1 else float(heights[0])


def below(curve: Curve, other: Curve | float) -> float:
    """The first place where it is below a number or another curve; nan where there is none."""
    return next(iter(curve.x[curve < other].tolist()), math.nan)


def above(curve: Curve, other: Curve | float) -> float:
    """The first place where it is above a number or another curve; nan where there is none."""
    return next(iter(curve.x[curve > other].tolist()), math.nan)


def level(curve: Curve, start: float = -math.inf, end: float = math.inf) -> bool:
    """Whether it keeps its height, to the eye."""
    y = curve.seen(start, end)
    return bool(y.max() - y.min() <= curve.slack)


def rises(curve: Curve, start: float = -math.inf, end: float = math.inf) -> bool:
    """Whether it goes up and, to the eye, never down."""
    y = curve.seen(start, end)
    return bool(y[-1] - y[0] > curve.slack and (np.maximum.accumulate(y) - y).max() <= curve.slack)


def falls(curve: Curve, start: float = -math.inf, end: float = math.inf) -> bool:
    """Whether it goes down and, to the eye, never up."""
    return rises(-curve, start, end)


def share(curve: Curve, start: float = -math.inf, end: float = math.inf) -> float:
    """What part of the sum of all heights stands between two places."""
    return float(_part(curve, start, end)[1].sum() / curve.y.sum())


def width(curve: Curve, part: float = 0.5) -> float:
    """How far the hill around the greatest height reaches, down to a part of that height."""
    high = curve.y >= part * curve.y.max()
    ends = np.flatnonzero(~high)
    k = curve.y.argmax()
    right = min([*(ends[ends > k] - 1), len(high) - 1])
    return float(curve.x[right] - curve.x[max([*(ends[ends < k] + 1), 0])])


def mean(values: Any) -> float:
    """The mean; of what is true or false the share that is true: mean(dashed > solid)."""
    values = list(values)
    return float(sum(values) / len(values))


KINDS = (
    top, peak, low, dip, peaks, dips, first, last, at, below, above, level, rises, falls, share, width, mean,
)  # fmt: skip
FUNCTIONS: dict[str, Any] = {kind.__name__: kind for kind in KINDS}
FUNCTIONS |= {kind.__name__: kind for kind in (abs, all, any, len, max, min, range, round, sum, zip)}


# --- Whether it holds ---------------------------------------------------------------------------------------


def faults(holds: str, drawn: list[dict[str, Any]]) -> Iterator[str]:
    """What does not hold of the panels of a figure, a line for each claim."""
    shown = [Panel(panel) for panel in drawn]
    for claim in filter(None, map(str.strip, holds.split(";"))):
        try:
            if said := _wrong(claim, shown):
                yield f"{claim} does not hold: {said}"
        except Exception as error:
            yield f"{claim}: {error}"


def _wrong(claim: str, shown: list[Panel]) -> str:
    """What the drawing says instead, "" where the claim holds."""
    match = _NUMBERS.fullmatch(claim)
    tree = ast.parse(match[1] if match else claim, mode="eval")
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    own = {node.id for node in used if isinstance(node.ctx, ast.Store)}  # for p in panels
    names = {node.id: _named(node.id, shown) for node in used if node.id not in own}
    value = eval(compile(tree, "<claim>", "eval"), names)
    if match is None:
        return "" if isinstance(value, bool | np.bool_) and value else f"it is {value}"
    values, written = np.ravel(np.asarray(value, float)).tolist(), re.findall(r"[^,\s]+", match[2])
    right = len(values) == len(written) and all(map(_is, written, values))
    return "" if right else f"it is {', '.join(f'{value:.6g}' for value in values)}"


def _is(written: str, value: float) -> bool:
    """Whether a number is what is written, with its sign, rounded to its digits."""
    same_side = written.startswith("-") == (value < 0) or float(written.strip("%")) == 0
    return same_side and stands(written, [value])
