"""Are queries and keys turned as the configuration says? Read from the calls of a model's own rotary function."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from posenc.check.lengths import limit_of
from posenc.check.models import Called, counted, some_tokens, text_config
from posenc.check.report import Finding, Report
from posenc.rotary import LayerRotation, apply_rotary, from_config
from posenc.rotary._turn import Layout, to_complex
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = ["check_rotation", "rotated"]

_WHAT, _SECTION = "rotations", "longer#take-config"
BY_LENGTH = ("dynamic", "longrope")
"""Words of configurations for frequencies that depend on the length of the text."""
OTHERWISE = "queries and keys are turned otherwise: not by these frequencies, pairs, direction or factor"
ROUNDED = "angles, or their cosines and sines, are rounded to"


def check_rotation(model: Any, ids: Tensor | None = None) -> Report:
    """Whether the queries and keys of each layer are turned as the configuration says, near 0 and far from it.

    For models of transformers: what goes into their functions apply_rotary_pos_emb and what comes out is recorded in
    one pass. The scores of the first head are compared with those of `posenc.apply_rotary` with the frequencies,
    layout and scale that `posenc.rotary.from_config` reads. So a fault is found that all of a model's own passes share.
    The same is done in bfloat16 and under autocast. Where frequencies depend on the length of the text, with LongRoPE
    and dynamic scaling, a short text and a long one are tried.

    Args:
        model, ids: as in `posenc.check.check_order`.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`.

    >>> bag = torch.nn.Embedding(50, 8).eval()  # each token by itself
    >>> print(check_rotation(bag))
    left out  rotations: no function apply_rotary_pos_emb was called

    Source: a check of this book, explained in check.md#comparisons.
    """
    called, row = Called(model), some_tokens(model, ids)[:1]
    near = counted(row)
    if not rotated(model, row, near):
        return _left("no function apply_rotary_pos_emb was called")
    try:
        config = from_config(text_config(model), length=row.shape[1])
        if any(each.method in BY_LENGTH for each in config.kinds.values()):  # texts of two lengths are judged
            found = _judged(called, model, row, near)
            if not found.ok or found.findings[0].verdict == "left out":
                return found
        return _judged(called, model, row, _places(called, model, row))
    except (TypeError, ValueError) as error:
        return _left(f"the configuration is not read: {str(error).splitlines()[0][:80]}")


def _judged(called: Called, model: Any, row: Tensor, places: Tensor) -> Report:
    """One text at these positions against the configuration."""
    text, calls = text_config(model), rotated(model, row, places)
    config = from_config(text, length=int(places.max()) + 1)
    kinds = config.kinds
    others = {f"{name} layers": kind for name, kind in kinds.items()}
    for length, says in ((1, "texts of up to"), (2**20, "texts of more than")):
        for kind in from_config(text, length=length).kinds.values():
            if kind.method == "longrope":
                others[f"{says} {config.trained_length} tokens"] = kind
    layers = [kinds[name] for name in config.layers or () if kinds[name].turns]
    if len(layers) != len(calls) <= len(config.layers or ()):
        says = f"{len(calls)} layers are turned, and by the configuration {len(layers)} of {len(config.layers or ())}"
        look = "layers: some without position are turned, or some with position are not"
        return Report((Finding(_WHAT, "FAULT", says, len(calls), look, _SECTION),))
    meant = [number for number, name in enumerate(config.layers or ()) if kinds[name].turns]
    turned = calls.layers
    if config.layers and None not in turned and turned != meant:
        says = f"layers {_some(turned)} are turned, and by the configuration layers {_some(meant)}"
        look = "layers: others are turned than the configuration says"
        return Report((Finding(_WHAT, "FAULT", says, len(turned), look, _SECTION),))
    if len(layers) != len(calls):
        layers = [each for each in kinds.values() if each.turns] * len(calls)
        if len(kinds) > 1:
            return _left(f"{len(calls)} calls, and the configuration does not say which kind each of them is")
    if any(np.asarray(each.frequencies).ndim > 1 for each in layers):
        return _left("frequencies depend on several axes")
    found = _compared(_WHAT, layers, others, calls, places[0], called.step_of_format)
    if not found.ok or not isinstance(model, nn.Module):
        return Report((found,))
    short = copy.deepcopy(model).to(torch.bfloat16)
    for name, buffer in model.named_buffers():  # what from_pretrained keeps in float32
        owner, _, last = name.rpartition(".")
        held: Any = short.get_submodule(owner)._buffers
        held[last] = buffer
    findings, eps = [found], torch.finfo(torch.bfloat16).eps
    for how, each, automatic in (("in bfloat16", short, False), ("under autocast", model, True)):
        try:
            with torch.autocast(row.device.type, dtype=torch.bfloat16, enabled=automatic):
                calls = rotated(each, row, places)
        except RuntimeError as error:  # an operation that has no such format
            says = f"it cannot run there: {str(error).splitlines()[0][:80]}"
            findings.append(Finding(f"{_WHAT} {how}", "left out", says, math.nan, "", _SECTION))
            continue
        findings.append(_compared(f"{_WHAT} {how}", layers, others, calls, places[0], eps))
    return Report(tuple(findings))


def _some(numbers: list[int | None] | list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + ", ..." * (len(numbers) > 8)


class _Calls(list[tuple[Tensor, ...]]):
    """Queries and keys (heads, length, dim), before and after each call, and the layers that made the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = list[int | None]()


def _places(called: Called, model: Any, row: Tensor) -> Tensor:
    """Positions (1, length): the first half from 0 on, the second far away, if the model takes them."""
    half, places = row.shape[1] // 2, counted(row)
    last = min(limit_of(model) or 0, 32768)
    if called.positions is None or last <= 2 * row.shape[1]:
        return places
    return torch.cat([places[:, :half], places[:, half:] + last - row.shape[1]], dim=1)


def rotated(model: Any, row: Tensor, places: Tensor) -> _Calls:
    """Queries and keys of each call in one pass, before and after the rotation."""
    called = Called(model)
    with _recorded(model, row.shape[1]) as calls:
        if called.positions:
            called.at(row, places)
        else:
            called(row)
    return calls


def _compared(
    what: str,
    layers: list[LayerRotation],
    others: dict[str, LayerRotation],
    calls: list[tuple[Tensor, ...]],
    places: Tensor,
    eps: float,
) -> Finding:
    worst = 0.0
    for number, (rotation, vectors) in enumerate(zip(layers, calls, strict=False)):
        size = _error(vectors, _Turn(rotation), places)
        if not size <= _limit(places, eps):
            says = f"scores of layer {number} differ by {size:.2g} of their size from what the configuration gives"
            look = f"layer {number}: {_cause(vectors, rotation, others, places, eps)}"
            return Finding(what, "FAULT", says, size, look, _SECTION)
        worst = max(worst, size)
    says = f"{len(calls)} layers turn as the configuration says, to {worst:.1g}"
    return Finding(what, "ok", says, worst, "", _SECTION)


def _limit(places: Tensor, eps: float) -> float:
    """The largest error of scores that counts as rounding, with vectors in a format of this step."""
    # float32 rounds an angle of t radians to t 2^-24 of a radian, once for the query and once for the key.
    return 1e-4 + 2**-21 * float(places[-1]) + 8 * eps * (eps > 1e-6)


def _left(says: str) -> Report:
    return Report((Finding(_WHAT, "left out", says, math.nan, "", _SECTION),))


@contextmanager
def _recorded(model: Any, length: int) -> Iterator[_Calls]:
    """The calls for texts of this length; an encoder beside it has another one."""
    home: Any = sys.modules.get(type(model).__module__)
    calls, inside = _Calls(), list[int]()  # the layer that runs, last
    functions = {
        name: each
        for name, each in vars(home).items()
        if name.startswith(("apply_rotary_pos_emb", "apply_rotary_emb")) and callable(each)
    }

    def recorder(function: Any) -> Any:
        def recorded(q: Tensor, k: Tensor, *given: Any, **more: Any) -> Any:
            turned = function(q, k, *given, **more)
            if all(isinstance(x, Tensor) and x.ndim == 4 and length in x.shape[1:3] for x in (q, k, *turned)):
                first = (x[0].double() for x in (q, k, *turned))  # Llama 4 has (length, heads, dim)
                calls.append(tuple(x.transpose(0, 1) if x.shape[1] != length else x for x in first))
                calls.layers.append(inside[-1] if inside else None)
            return turned

        return recorded

    hooks = []
    for part in model.modules() if isinstance(model, nn.Module) else ():
        if isinstance(number := getattr(part, "layer_idx", None), int):
            hooks.append(part.register_forward_pre_hook(lambda *_, number=number: inside.append(number)))
    try:
        for name, function in functions.items():
            setattr(home, name, recorder(function))
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
        for name, function in functions.items():
            setattr(home, name, function)


class _Turn:
    """A rotation, and what of it may have gone wrong."""

    def __init__(
        self,
        rotation: LayerRotation,
        *,
        way: int = 1,
        queries: bool = True,
        keys: bool = True,
        ahead: int = 0,
        by_head: bool = False,
    ) -> None:
        self.rotation, self.way, self.turned, self.ahead, self.by_head = (
            rotation,
            way,
            (queries, keys),
            ahead,
            by_head,
        )

    def __call__(self, x: Tensor, positions: Tensor, which: int) -> Tensor:
        """x (heads, length, dim), turned; which: 0 for queries, 1 for keys."""
        if not self.turned[which]:
            return x
        how, places = self.rotation, self.way * positions.double()[None]
        if self.by_head:
            places = torch.arange(len(x), dtype=torch.float64, device=x.device)[:, None]
        return apply_rotary(
            x,
            places + self.ahead * (which == 0),
            frequencies=how.frequencies,
            layout=how.layout,
            rotary_dim=how.rotary_dim,
            scale=how.scale,
        )


def _error(vectors: tuple[Tensor, ...], turn: _Turn, positions: Tensor) -> float:
    """The largest error of a score of any head, as a share of the largest score."""
    q, k, turned_q, turned_k = vectors
    if q.shape != turned_q.shape or q.shape[1] != len(positions) or len(q) % len(k):
        return math.nan
    found, wanted = (
        a @ b.repeat_interleave(len(q) // len(k), dim=0).mT
        for a, b in ((turned_q, turned_k), (turn(q, positions, 0), turn(k, positions, 1)))
    )
    return float((found - wanted).abs().max() / wanted.abs().max())


def _cause(
    vectors: tuple[Tensor, ...],
    rotation: LayerRotation,
    others: dict[str, LayerRotation],
    positions: Tensor,
    eps: float,
) -> str:
    """The first of some usual mistakes that gives the recorded scores."""
    half = len(positions) // 2
    near, limit = tuple(x[:, :half] for x in vectors), _limit(positions[:half], eps)
    if _error(near, _Turn(rotation), positions[:half]) <= limit:
        if _error(vectors, _Turn(rotation), torch.arange(len(positions))) <= _limit(positions, eps):
            return "positions: those that are given change nothing, it is turned by 0, 1, 2, ..."
        for dtype in (torch.bfloat16, torch.float16):
            held = torch.as_tensor(np.asarray(rotation.frequencies)).to(dtype).double().numpy()
            if _error(vectors, _Turn(replace(rotation, frequencies=held)), positions) <= _limit(
                positions, eps
            ):
                kind = str(dtype).removeprefix("torch.")
                return f"frequencies are rounded to {kind}, before they are multiplied by positions"
        far = int(positions[-1])
        return f"positions far from 0, at {far}, are rounded, clamped or written round; near 0 all is right"
    other: Layout = "interleaved" if rotation.layout == "half" else "half"
    plain = replace(rotation, frequencies=sinusoidal_frequencies(rotation.rotary_dim, rotation.base))
    usual = replace(rotation, frequencies=sinusoidal_frequencies(rotation.rotary_dim))
    whole = sinusoidal_frequencies(rotation.dim, rotation.base)[: rotation.rotary_dim // 2]
    wide = replace(rotation, frequencies=whole)
    backwards = replace(rotation, frequencies=np.flip(np.asarray(rotation.frequencies)))
    tried = {
        "nothing is turned": _Turn(rotation, queries=False, keys=False),
        "keys are not turned": _Turn(rotation, keys=False),
        "queries are not turned": _Turn(rotation, queries=False),
        f"pairs are {other}, the configuration's model has {rotation.layout}": _Turn(
            replace(rotation, layout=other)
        ),
        "turned the other way: cos and sin are exchanged, or the sign of the sines": _Turn(rotation, way=-1),
        f"cos and sin without the factor {rotation.scale:.4g} of the configuration": _Turn(
            replace(rotation, scale=1.0)
        ),
        f"cos and sin have the factor {rotation.scale:.4g} of the configuration twice": _Turn(
            replace(rotation, scale=rotation.scale**2)
        ),
        **{
            f"the frequencies are those of {name}": _Turn(kind)
            for name, kind in others.items()
            if kind.turns and kind is not rotation
        },
        f"the frequencies are those of base {rotation.base:g} without the scaling": _Turn(plain),
        "the frequencies are those of base 10000": _Turn(usual),
        "the frequencies are spread over the whole head, not over the columns that are turned": _Turn(wide),
        "the frequencies stand in the opposite order": _Turn(backwards),
        "positions of queries are one ahead of those of keys": _Turn(rotation, ahead=1),
        "positions of queries are one behind those of keys": _Turn(rotation, ahead=-1),
        "turned by the number of the head in place of the position: two axes are exchanged": _Turn(
            rotation, by_head=True
        ),
    }
    for says, turn in tried.items():
        if _error(near, turn, positions[:half]) <= limit:
            return says
    if short := _rounded(vectors, rotation, positions):
        return f"{ROUNDED} {short}: they must be made in float32"
    q, k, turned_q, turned_k = near
    each = [
        _error(
            (q[h : h + 1], k[g : g + 1], turned_q[h : h + 1], turned_k[g : g + 1]),
            _Turn(rotation),
            positions[:half],
        )
        for h in range(len(q))
        for g in (h * len(k) // len(q),)
    ]
    if any(size <= limit for size in each):
        wrong = [str(h) for h, size in enumerate(each) if not size <= limit]
        return f"queries or keys of some heads are turned otherwise, those of heads {', '.join(wrong)}"
    return OTHERWISE


def _rounded(vectors: tuple[Tensor, ...], rotation: LayerRotation, positions: Tensor) -> str:
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
