"""By what queries and keys were turned, measured pair by pair, in words of what differs from a rotation."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from posenc.check.faraway import far_cause, rounded_to, score_error, score_limit
from posenc.rotary import LayerRotation
from posenc.rotary._turn import Layout, from_complex, to_complex
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = ["OTHERWISE", "ROUNDED", "cause_of_turn", "listed"]

FrequencyGuess = Callable[[np.ndarray, Callable[[np.ndarray], bool]], str]

OTHERWISE = "queries and keys are turned otherwise: not by these frequencies, pairs, direction or factor"
BY_HEAD = "turned by the number of the head in place of the position: two axes are exchanged"
ROUNDED = "angles, or their cosines and sines, are rounded to"
UNTURNED = "not turned"
AHEAD = {"one ahead of": 1, "one behind": -1}


def cause_of_turn(
    vectors: tuple[Tensor, ...], rotation: LayerRotation, guess: FrequencyGuess, places: Tensor, eps: float
) -> str:
    """What was done to queries and keys, where it is a rotation, in words of what differs; else that it is not."""
    half = len(places) // 2
    near = tuple(x[:, :half] for x in vectors)
    if score_error(near, rotation, places[:half]) <= score_limit(places[:half], eps):
        return far_cause(vectors, rotation, places, eps)
    said = [
        [_side(x[h], after[h], rotation, guess, places[:half], eps, h) for h in range(len(x))]
        for x, after in ((near[0], near[2]), (near[1], near[3]))
    ]
    if all(set(side) - {UNTURNED} == {BY_HEAD} for side in said):  # head 0 is not turned then
        return BY_HEAD
    known = all(each is not None for side in said for each in side)
    if not known and (short := rounded_to(vectors, rotation, places)):
        return f"{ROUNDED} {short}: they must be made in float32"
    if all(len(set(side)) == 1 for side in said):
        return _of_both(said[0][0], said[1][0])
    each = len(said[0]) // len(said[1])
    wrong = [h for h in range(len(said[0])) if said[0][h] != "" or said[1][h // each] != ""]
    if len(wrong) == len(said[0]):
        return OTHERWISE
    causes = dict.fromkeys(_of_both(said[0][h], said[1][h // each]) for h in wrong)
    return f"queries or keys of some heads are turned otherwise, those of heads {listed(wrong)}: {next(iter(causes))}"


def listed(numbers: list[int]) -> str:
    """The first eight of some numbers, in words."""
    return ", ".join(map(str, numbers[:8])) + ", ..." * (len(numbers) > 8)


def _of_both(queries: str | None, keys: str | None) -> str:
    """One sentence for what happens to queries and to keys; "" is what is right, None what is not known."""
    if queries is None and keys is None:
        return OTHERWISE
    if queries == keys:
        return "nothing is turned" if queries == UNTURNED else str(queries)
    parts = []
    for name, other, says in (("queries", "keys", queries), ("keys", "queries", keys)):
        if says == UNTURNED:
            parts.append(f"{name} are not turned")
        elif says in AHEAD:
            parts.append(f"positions of {name} are {says} those of {other}")
        elif says != "":
            parts.append(f"{name}: {says or 'they are turned otherwise'}")
    return "; ".join(parts)


def _side(
    x: Tensor, after: Tensor, how: LayerRotation, guess: FrequencyGuess, places: Tensor, eps: float, head: int
) -> str | None:
    """What one head of queries or of keys shows, (length, dim) before and after; "" for what is right, None if nothing.

    Measured is by which complex number each pair is multiplied. Pairs and columns are right where these numbers have
    one size and leave the other columns alone.
    """
    width, limit = x.shape[-1], score_limit(places, eps)
    m = min(how.rotary_dim, width)
    other: Layout = "interleaved" if how.layout == "half" else "half"
    columns = {(0, m): ""}
    columns.setdefault((width - m, width), f"the last {m} columns are turned, not the first")
    for last in (width, m // 2, m // 4):
        columns.setdefault((0, last), f"{last} columns are turned, not {m}")
    top = float(x.abs().max())

    def near(first: Tensor, second: Tensor) -> bool:
        return float((first - second).abs().max()) <= 2 * limit * top

    if near(after, x):
        return UNTURNED
    for (first, last), says_columns in columns.items():
        rest = torch.ones(width, dtype=torch.bool)
        rest[first:last] = False
        if (
            float((after - x)[:, rest].abs().amax() if bool(rest.any()) else 0) > limit * top
            or (last - first) % 2
        ):
            continue
        for layout in (how.layout, other):
            z = to_complex(x[:, first:last].contiguous(), layout, torch)
            for outside in (layout, "half", "interleaved"):  # DeepSeek lays interleaved pairs out in halves
                turned = to_complex(after[:, first:last].contiguous(), outside, torch)
                scale = float(turned.abs().square().sum() / z.abs().square().sum()) ** 0.5
                if float((turned.abs() - scale * z.abs()).abs().max()) > 2 * limit * scale * top:
                    continue
                says_layout = f"pairs are {layout}, the configuration's model has {how.layout}" * (
                    layout != how.layout
                )
                angles = _angles(z, turned, scale, how, guess, places, limit * top, head)
                if angles is None and layout == how.layout and outside == "half":
                    return None
                if angles is None:
                    continue
                found = [says_columns, says_layout, angles, _of_scale(scale, how.scale, max(1e-3, eps))]
                return ", and ".join(each for each in found if each)
    return next((says for says, odd in _no_rotations(x[:, :m], how, places) if near(odd, after[:, :m])), None)


def _no_rotations(x: Tensor, how: LayerRotation, places: Tensor) -> Iterator[tuple[str, Tensor]]:
    """What some mistakes make of queries or keys that is no rotation of pairs."""
    pairs = x.shape[-1] // 2
    angles = places.double()[:, None] * torch.as_tensor(np.asarray(how.frequencies)[:pairs])
    if angles.shape[-1] != pairs:
        return
    z, factor = to_complex(x.contiguous(), how.layout, torch), how.scale
    a, b, cos, sin = z.real, z.imag, angles.cos(), angles.sin()

    def laid(a: Tensor, b: Tensor) -> Tensor:
        return from_complex(factor * torch.complex(a, b), how.layout, torch)

    half = "rotate_half" if how.layout == "half" else "the function that exchanges the columns of pairs"
    yield f"{half} has lost its minus sign", laid(a * cos + b * sin, b * cos + a * sin)
    yield f"{half} has a minus sign in both columns", laid(a * cos - b * sin, b * cos - a * sin)
    yield "the sines are left out, columns are multiplied by cosines alone", laid(a * cos, b * cos)
    yield "the cosines are left out, columns are multiplied by sines alone", laid(-b * sin, a * sin)
    yield "cosines are in the place of sines, too", laid(a * cos - b * cos, b * cos + a * cos)
    for one, other, name in ((1 / factor, 1.0, "cosines"), (1.0, 1 / factor, "sines")):
        yield (
            f"the {name} lack the factor {factor:.4g} of the configuration, the others have it",
            laid(one * a * cos - other * b * sin, one * b * cos + other * a * sin),
        )
    # Angles laid out for pairs of the other kind: repeated side by side, or as two halves.
    mixed = angles.repeat_interleave(2, -1) if how.layout == "half" else torch.cat((angles, angles), -1)
    swapped = from_complex(1j * z, how.layout, torch)
    says = "angles are laid out for the other kind of pairs: angles that are not shared by the two columns of a pair"
    yield says, factor * (x * mixed.cos() + swapped * mixed.sin())


def _of_scale(scale: float, meant: float, limit: float) -> str:
    if abs(scale / meant - 1) <= limit:
        return ""
    if abs(scale - 1) <= limit:
        return f"cos and sin without the factor {meant:.4g} of the configuration"
    if abs(scale / meant**2 - 1) <= limit:
        return f"cos and sin have the factor {meant:.4g} of the configuration twice"
    of = f", by the configuration {meant:.4g}" if meant != 1 else ", of which the configuration says nothing"
    return f"cos and sin have a factor {scale:.4g}{of}"


def _angles(
    z: Tensor,
    turned: Tensor,
    scale: float,
    how: LayerRotation,
    guess: FrequencyGuess,
    places: Tensor,
    limit: float,
    head: int,
) -> str | None:
    """Which angles these pairs were turned by; "" for those of the configuration, None for none that is known."""
    p, usual, n = places.double(), np.asarray(how.frequencies), z.shape[-1]

    def fits(omega: np.ndarray, at: Tensor = p, start: float = 0.0) -> bool:
        angles = start + at[:, None] * torch.as_tensor(np.ascontiguousarray(omega))
        off = (turned / scale - z * torch.polar(torch.ones_like(angles), angles)).abs()
        # float32 rounds large angles
        return float((off - 2**-22 * angles.abs() * z.abs()).max()) <= 2 * limit

    if len(usual) >= n:
        ways = {"": (p, 0.0), "turned the other way, as by the other sign of the sines": (-p, 0.0)}
        ways["turned the other way: cos and sin are exchanged"] = -p, math.pi / 2
        ways |= {says: (p + ahead, 0.0) for says, ahead in AHEAD.items()}
        ways[BY_HEAD] = 0 * p + head, 0.0
        for says, (at, start) in ways.items():
            if fits(usual[:n], at, start):
                return says
    if fits(sinusoidal_frequencies(2 * n, how.base)):
        return (
            "" if len(usual) != n else f"the frequencies are those of base {how.base:g} without the scaling"
        )
    step = turned[1:] * turned[:-1].conj() * (z[1:] * z[:-1].conj()).conj()
    measured = step.sum(0).angle()
    for _ in range(2):  # what is left after these turns, over all positions
        left = turned * z.conj() * torch.polar(torch.ones_like(z.real), -p[:, None] * measured)
        weight = z.abs().square() * p[:, None]
        measured = measured + (left.angle() * weight).sum(0) / (weight * p[:, None]).sum(0)
    found = measured.numpy()
    back = -1.0 if usual[0] < 0 else 1.0
    if cause := guess(np.abs(found), lambda omega: fits(back * omega)):
        return cause
    cause = guess(np.abs(found), lambda omega: fits(-back * omega))
    return f"{cause}, and turned the other way" if cause else None
