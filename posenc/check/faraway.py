"""Scores of turned queries and keys against those of a rotation: how far off, far from 0 and in short formats."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from posenc.rotary import LayerRotation, apply_rotary
from posenc.rotary._turn import to_complex

__all__ = ["FAR", "GIVEN", "far_cause", "rounded_to", "score_error", "score_limit"]

GIVEN = "positions: those that are given change nothing, it is turned by 0, 1, 2, ..."
FAR = "are rounded, clamped or written round; near 0 all is right"


def score_limit(places: Tensor, eps: float) -> float:
    """The largest error of scores that counts as rounding, with vectors in a format of this step."""
    # float32 rounds an angle of t radians to t 2^-24 of a radian, once for the query and once for the key.
    return 1e-4 + 2**-21 * float(places[-1]) + 8 * eps * (eps > 1e-6)


def score_error(vectors: tuple[Tensor, ...], how: LayerRotation, places: Tensor) -> float:
    """The largest error of a score of any head, as a share of the largest score."""
    q, k, turned_q, turned_k = vectors
    if q.shape != turned_q.shape or q.shape[1] != len(places) or len(q) % len(k):
        return math.nan
    right_q, right_k = (
        apply_rotary(
            x,
            places.double()[None],
            frequencies=how.frequencies,
            layout=how.layout,
            rotary_dim=how.rotary_dim,
            scale=how.scale,
        )
        for x in (q, k)
    )
    found, wanted = (
        a @ b.repeat_interleave(len(q) // len(k), dim=0).mT
        for a, b in ((turned_q, turned_k), (right_q, right_k))
    )
    return float((found - wanted).abs().max() / wanted.abs().max())


def far_cause(vectors: tuple[Tensor, ...], rotation: LayerRotation, places: Tensor, eps: float) -> str:
    """What is wrong far from 0, where all is right near 0."""
    limit = score_limit(places, eps)
    if score_error(vectors, rotation, torch.arange(len(places))) <= limit:
        return GIVEN
    for dtype in (torch.bfloat16, torch.float16):
        held = torch.as_tensor(np.asarray(rotation.frequencies)).to(dtype).double().numpy()
        if score_error(vectors, replace(rotation, frequencies=held), places) <= limit:
            kind = str(dtype).removeprefix("torch.")
            return f"frequencies are rounded to {kind}, before they are multiplied by positions"
    half, far = len(places) // 2, int(places[-1])
    for last in sorted({int(places[half - 1]), *(2**n - 1 for n in range(4, 16)), far - 1}):
        for says, at in (
            (f"clamped to {last}", places.clamp(max=last)),
            (f"written round, they begin at 0 again after {last}", places % (last + 1)),
        ):
            if not torch.equal(at, places) and score_error(vectors, rotation, at) <= limit:
                return f"positions far from 0, at {far}, are {says}; near 0 all is right"
    for dtype in (torch.bfloat16, torch.float16):
        at = places.to(dtype).double()
        if not torch.equal(at, places.double()) and score_error(vectors, rotation, at) <= limit:
            short = str(dtype).removeprefix("torch.")
            return f"positions far from 0, at {far}, are rounded to {short}; near 0 all is right"
    return f"positions far from 0, at {far}, {FAR}"


def rounded_to(vectors: tuple[Tensor, ...], rotation: LayerRotation, positions: Tensor) -> str:
    """The short format whose rounding explains by how much each pair is turned too far; "" for none."""
    layout, m = rotation.layout, rotation.rotary_dim
    angles = positions.double()[:, None] * torch.as_tensor(np.asarray(rotation.frequencies))
    q, k, turned_q, turned_k = vectors
    off = []
    for before, after in ((q, turned_q), (k, turned_k)):
        before, after = (to_complex(x[..., :m].double().contiguous(), layout, torch) for x in (before, after))
        large = before.abs() > 1e-2 * before.abs().max()
        off.append(
            torch.where(
                large, after / before / rotation.scale - torch.polar(torch.ones_like(angles), angles), 0
            )
        )
    for dtype in (torch.float16, torch.bfloat16):
        eps = torch.finfo(dtype).eps
        if all(bool((each.abs() <= eps * (0.75 + angles.abs())).all()) for each in off):
            return str(dtype).removeprefix("torch.")
    return ""
