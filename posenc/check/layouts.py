"""Which layout, direction and start a rotary function has, proved by vectors of one 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from posenc._checks import check_even_dim
from posenc.check.report import Finding, Report

__all__ = ["LayoutReport", "check_layout"]


@dataclass(frozen=True)
class LayoutReport(Report):
    """What `check_layout` found, also as values.

    Attributes:
        layout: "interleaved", "half", or "other".
        direction: 1 if positions turn the first column of a pair towards the second, else −1.
        start: the position that turns nothing, or nan if none of −2..2 does.
        base: b of the frequencies b^(−2i/d), or nan if they are not such.
        rotary_dim: columns that are turned.
    """

    layout: str = "other"
    direction: int = 1
    start: float = math.nan
    base: float = math.nan
    rotary_dim: int = 0


def check_layout(turn: Callable[[Tensor, Tensor], Any], dim: int = 64) -> LayoutReport:
    """How a rotary function pairs columns, which way it turns, and where it starts to count.

    Args:
        turn: a function of x, shape (batch, heads, length, dim), and positions, shape (length,), that gives x turned,
            or (q, k) made from this x, which must then agree. Wrap what is called otherwise.
        dim: width of x, even and at least 4.

    Raises:
        TypeError, ValueError: turn is not a function, dim is odd, or the result has another shape.

    >>> from posenc.rotary import apply_rotary
    >>> found = check_layout(lambda x, positions: apply_rotary(x, positions, layout="half"))
    >>> found.layout, found.direction, found.start, round(found.base)
    ('half', 1, 0.0, 10000)

    Source: a check of this book, explained in check.md#layout.
    """
    if not callable(turn):
        raise TypeError(f"turn must be a function of x and positions, got {type(turn).__name__}")
    dim = check_even_dim(dim)
    if dim < 4:
        raise ValueError(f"dim must be at least 4, got {dim}")
    matrices = [_matrices(turn, dim, part) for part in (0, 1)]
    if not torch.allclose(matrices[0], matrices[1], atol=1e-5):
        kinds = [_named(each, dim) for each in matrices]
        says = f"queries: {kinds[0]}; keys: {kinds[1]}"
        look = "the two calls: queries and keys must be turned alike"
        finding = Finding("rotary layout", "FAULT", says, math.nan, look, "layouts#mixed")
        return LayoutReport((finding,), layout="other")
    found = matrices[0]
    pairs, moved = _pairs(found[1:].abs().amax(0), dim)
    layout = _layout(pairs, dim)
    if not moved:
        says = "nothing is turned"
        return LayoutReport((Finding("rotary layout", "FAULT", says, 0.0, "the positions", "layouts#mixed"),))
    angles = torch.tensor([[math.atan2(m[i, j], m[i, i]) for i, j in pairs] for m in found.double()])
    steps = (angles[2] - angles[1] + math.pi) % (2 * math.pi) - math.pi
    direction = 1 if float(steps[0]) > 0 else -1
    start = next(
        (float(s) for s in (0, 1, -1, 2, -2) if torch.allclose(angles[1], steps * (1 - s), atol=1e-4)),
        math.nan,
    )
    findings = [_isometry(found), *_odd(layout, direction, start, steps)]
    base = math.nan
    width = 2 * len(pairs)
    if len(pairs) > 1 and float(steps[1]) != 0:
        base = float(f"{abs(float(steps[0] / steps[1])) ** (width / 2):.4g}")
        usual = base ** (-2 * torch.arange(len(pairs)) / width)
        base = base if torch.allclose(steps.abs().float(), usual, rtol=1e-2, atol=1e-5) else math.nan
    says = f"layout {layout}, {width} of {dim} columns, " + (
        f"base {base:.6g}" if base == base else "no single base"
    )
    findings.insert(0, Finding("rotary layout", "ok", says, base, "", "layouts#mixed"))
    return LayoutReport(tuple(findings), layout, direction, start, base, width)


def _matrices(turn: Callable[[Tensor, Tensor], Any], dim: int, part: int) -> Tensor:
    """(4, dim, dim): row i is what becomes of the i-th unit vector at positions 0, 1, 2 and 3."""
    x = torch.eye(dim)[None, :, None].expand(1, dim, 4, dim).contiguous()
    found = turn(x, torch.arange(4))
    found = found[part] if isinstance(found, tuple | list) else found
    if not isinstance(found, Tensor) or found.shape != x.shape:
        shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
        raise ValueError(f"turn must give x of shape {tuple(x.shape)} back, or (q, k) of it, got {shape}")
    return found.detach()[0].transpose(0, 1)


def _pairs(matrix: Tensor, dim: int) -> tuple[list[tuple[int, int]], bool]:
    """The columns that share a turn, each pair once, in the order of the first of its columns."""
    off = matrix.abs() * (1 - torch.eye(dim))
    pairs = []
    for i in range(dim):
        j = int(off[i].argmax())
        if off[i, j] > 1e-9 and i < j:
            pairs.append((i, j))
    return pairs, bool(pairs)


def _layout(pairs: list[tuple[int, int]], dim: int) -> str:
    turned = 2 * len(pairs)
    if pairs == [(2 * i, 2 * i + 1) for i in range(turned // 2)]:
        return "interleaved"
    if pairs == [(i, i + turned // 2) for i in range(turned // 2)]:
        return "half"
    return "other"


def _named(matrices: Tensor, dim: int) -> str:
    pairs, moved = _pairs(matrices[1:].abs().amax(0), dim)
    if not moved:
        return "not turned"
    i, j = pairs[0]
    angle = math.atan2(float(matrices[1, i, j]), float(matrices[1, i, i]))
    way = "" if angle > 0 else ", turned the other way"
    step = (math.atan2(float(matrices[2, i, j]), float(matrices[2, i, i])) - angle + math.pi) % (
        2 * math.pi
    ) - math.pi
    far = "" if abs(abs(step) - 1) < 1e-3 else f", {abs(step):.3g} radians a position"
    far += ", so turned twice" * (abs(abs(step) - 2) < 1e-3)
    columns = "" if i == 0 and 2 * len(pairs) == dim else f", columns {i} to {max(map(max, pairs))}"
    return f"layout {_layout([(a - i, b - i) for a, b in pairs], dim)}{columns}{far}{way}"


def _isometry(matrices: Tensor) -> Finding:
    """Lengths stay, and the product of two turns depends on the offset alone."""
    m = matrices.double()
    scores = (
        m[:, :, None] @ m[None].transpose(-1, -2)[:, None] if False else torch.einsum("tai,ubi->tuab", m, m)
    )
    spread = max(float((scores[t, u] - scores[t + 1, u + 1]).abs().max()) for t in range(3) for u in range(3))
    if spread <= 1e-5:
        return Finding(
            "scores of offsets", "ok", "scores depend on the offset alone", spread, "", "rotary#derivation"
        )
    says = f"scores of equal offsets differ by {spread:.2g}: this is no rotation"
    look = "angles that are not shared by the two columns of a pair, or cosines and sines in unlike layouts"
    return Finding("scores of offsets", "FAULT", says, spread, look, "layouts#mixed")


def _odd(layout: str, direction: int, start: float, steps: Tensor) -> list[Finding]:
    """What is unusual, and right as long as queries and keys, and whoever made the weights, do it alike."""
    found = []
    for odd, says in (
        (layout == "other", "columns are paired in neither of the two usual layouts"),
        (
            direction < 0,
            "positions turn the other way: harmless if queries and keys do, wrong for weights of others",
        ),
        (start != 0, f"the position that turns nothing is {start:g}, not 0: harmless for scores of one text"),
        (bool(steps.abs().diff().gt(1e-6).any()), "frequencies do not fall from pair to pair"),
    ):
        if odd:
            found.append(Finding("rotary convention", "note", says, math.nan, "", "layouts#conventions"))
    return found
