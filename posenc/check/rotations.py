"""Are queries and keys turned as the configuration says? Read from the calls of a model's own rotary function."""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from posenc.check.guesses import frequency_cause
from posenc.check.lengths import limit_of
from posenc.check.models import Called, counted, some_tokens, text_config
from posenc.check.report import Finding, Report
from posenc.rotary import LayerRotation, RotaryConfig, apply_rotary, from_config
from posenc.rotary._turn import Layout, from_complex, to_complex
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = ["check_rotation", "rotated"]

FrequencyGuess = Callable[[np.ndarray, Callable[[np.ndarray], bool]], str]

_WHAT, _SECTION = "rotations", "longer#take-config"
BY_LENGTH = ("dynamic", "longrope")
"""Words of configurations for frequencies that depend on the length of the text."""
OTHERWISE = "queries and keys are turned otherwise: not by these frequencies, pairs, direction or factor"
GIVEN = "positions: those that are given change nothing, it is turned by 0, 1, 2, ..."
FAR = "are rounded, clamped or written round; near 0 all is right"
BY_HEAD = "turned by the number of the head in place of the position: two axes are exchanged"
KEYS_FIRST = "gptj", "codegen"
"""Models whose function turns one tensor at a time, keys before queries."""
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
    length = int(places.max()) + 1
    guesses: dict[str, FrequencyGuess] = {
        name: partial(frequency_cause, text, length, name) for name in kinds
    }
    layers = [(kinds[name], guesses[name]) for name in config.layers or () if kinds[name].turns]
    if not (found := _which(config, calls, _missed(model, calls))).ok:
        return Report((found,))
    if len(layers) != len(calls):
        layers = [(each, guesses[name]) for name, each in kinds.items() if each.turns] * len(calls)
        if len(kinds) > 1:
            return _left(f"{len(calls)} calls, and the configuration does not say which kind each of them is")
    if any(np.asarray(each.frequencies).ndim > 1 for each, _ in layers):
        return _left("frequencies depend on several axes")
    found = _compared(_WHAT, layers, calls, places[0], called.step_of_format)
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
        findings.append(_compared(f"{_WHAT} {how}", layers, calls, places[0], eps))
    return Report(tuple(findings))


def _which(config: RotaryConfig, calls: _Calls, missed: list[int]) -> Finding:
    """Whether those layers are turned that the configuration says, and each once."""
    of, look, turned = config.layers or (), "", [n for n in calls.layers if n is not None]
    meant = [number for number, name in enumerate(of) if config.kinds[name].turns]
    again = [
        n
        for first, second, n, same in zip(calls, calls[1:], calls.layers, calls.layers[1:], strict=False)
        if n == same and n is not None and all(map(torch.equal, first[2:], second[:2]))
    ]
    shares = any(
        0 < kind.rotary_dim < kind.dim for kind in config.kinds.values()
    )  # with MLA the last are right
    last = [n for n, each in enumerate(calls.from_last) if each and shares]
    if again:
        look = f"layers {_some(again)}: queries and keys are turned twice, the second time what was turned already"
    elif last:
        m = calls[last[0]][0].shape[-1]
        look = f"layers {_some(last)}: the last {m} columns of each head are turned, not the first"
    elif missed and not of and len(config.kinds) == 1:
        look = f"layers: those of number {_some(missed)} are not turned"
    elif len(meant) != len(calls) <= len(of):
        look = "layers: some without position are turned, or some with position are not"
    elif of and len(turned) == len(calls) and turned != meant:
        look = "layers: others are turned than the configuration says"
    if not look:
        return Finding(_WHAT, "ok", "those layers are turned that the configuration says", 0.0, "", _SECTION)
    if of and turned == [number for number in range(len(of)) if number not in meant]:
        look += ": the list is read the other way round"
    for by, way in ((1, "later"), (-1, "earlier")):
        if of and turned and turned == [n for n in range(len(of)) if (n - by) % len(of) in meant]:
            look += f": the list is read one layer {way}"
    says = f"layers {_some(turned)} are turned, and by the configuration {_some(meant) if of else 'all'}"
    if not turned:
        says = f"{len(calls)} layers are turned, and by the configuration {len(meant)} of {len(of)}"
    return Finding(_WHAT, "FAULT", says, len(calls), look, _SECTION)


def _some(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + ", ..." * (len(numbers) > 8)


class _Calls(list[tuple[Tensor, ...]]):
    """Queries and keys (heads, length, dim), before and after each call, and the layers that made the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.classes = list[int | None](), set[type]()
        self.from_last = list[bool]()  # whether the last columns of each head were taken, not the first


def _missed(model: Any, calls: _Calls) -> list[int]:
    """Layers of the same class of attention as those that are turned, which are not."""
    numbers = {
        number
        for name, part in (model.named_modules() if isinstance(model, nn.Module) else ())
        if isinstance(number := getattr(part, "layer_idx", None), int)
        and type(part) in calls.classes
        and "Attention" in type(part).__name__
        and not {"cross", "encoder_attn"} & set(name.lower().replace("cross_attn", "cross").split("."))
    }
    return sorted(numbers - set(calls.layers))


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
    what: str, layers: list[tuple[LayerRotation, FrequencyGuess]], calls: _Calls, places: Tensor, eps: float
) -> Finding:
    sizes = [_error(vectors, how, places) for (how, _), vectors in zip(layers, calls, strict=False)]
    wrong = [n for n, size in enumerate(sizes) if not size <= _limit(places, eps)]
    if not wrong:
        says = f"{len(calls)} layers turn as the configuration says, to {max(sizes):.1g}"
        return Finding(what, "ok", says, max(sizes), "", _SECTION)
    causes: dict[str, list[int]] = {}
    for n in wrong:
        how, guess = layers[n]
        number = calls.layers[n]
        causes.setdefault(_cause(calls[n], how, guess, places, eps), []).append(
            n if number is None else number
        )
    first = wrong[0]
    says = f"scores of layer {first} differ by {sizes[first]:.2g} of their size from what the configuration gives"
    look = "; ".join(f"layer{'s' * (len(of) > 1)} {_some(of)}: {cause}" for cause, of in causes.items())
    return Finding(what, "FAULT", says, sizes[first], look, _SECTION)


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
    calls, inside = _Calls(), list[Any]()  # the layer that runs, last
    by_themselves = str(getattr(text_config(model), "model_type", "")) in KEYS_FIRST
    waiting, projected = list[tuple[Tensor, Tensor]](), list[Tensor]()
    functions = {
        name: each
        for name, each in vars(home).items()
        if name.startswith(("apply_rotary_pos_emb", "apply_rotary_emb")) and callable(each)
    }

    def keep(q: Tensor, k: Tensor, *turned: Tensor) -> None:
        if all(isinstance(x, Tensor) and x.ndim == 4 and length in x.shape[1:3] for x in (q, k, *turned)):
            first = (x[0].double() for x in (q, k, *turned))  # Llama 4 has (length, heads, dim)
            calls.append(tuple(x.transpose(0, 1) if x.shape[1] != length else x for x in first))
            calls.from_last.append(_are_last(calls[-1][0], projected[-1][0].double()) if projected else False)
            calls.layers.append(int(inside[-1].layer_idx) if inside else None)
            calls.classes.update(map(type, inside[-1:]))

    def recorder(function: Any) -> Any:
        def recorded(q: Tensor, k: Tensor, *given: Any, **more: Any) -> Any:
            turned = function(q, k, *given, **more)
            if isinstance(turned, tuple):
                keep(q, k, *turned)
            elif by_themselves and not waiting:
                waiting.append((q, turned))
            elif by_themselves:
                keys = waiting.pop()
                keep(q, keys[0], turned, keys[1])
            return turned

        return recorded

    hooks = []
    for name, part in model.named_modules() if isinstance(model, nn.Module) else ():
        if name.endswith("q_proj"):
            hooks.append(part.register_forward_hook(lambda *given: projected.append(given[-1])))
        if isinstance(getattr(part, "layer_idx", None), int):
            hooks.append(part.register_forward_pre_hook(lambda part, _: inside.append(part)))
    try:
        for name, function in functions.items():
            setattr(home, name, recorder(function))
        yield calls
    finally:
        for hook in hooks:
            hook.remove()
        for name, function in functions.items():
            setattr(home, name, function)


def _are_last(queries: Tensor, projected: Tensor) -> bool:
    """Whether queries (heads, length, columns) are the last columns of each head, and no others, of what was made."""
    heads, length, m = queries.shape
    if projected.numel() % (heads * length) or (width := projected.numel() // (heads * length)) <= m:
        return False
    whole = projected.reshape(length, heads, width).transpose(0, 1)
    return torch.equal(queries, whole[..., -m:]) and not torch.equal(queries, whole[..., :m])


def _error(vectors: tuple[Tensor, ...], how: LayerRotation, places: Tensor) -> float:
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


def _cause(
    vectors: tuple[Tensor, ...], rotation: LayerRotation, guess: FrequencyGuess, places: Tensor, eps: float
) -> str:
    """What was done to queries and keys, where it is a rotation, in words of what differs; else that it is not."""
    half = len(places) // 2
    near = tuple(x[:, :half] for x in vectors)
    if _error(near, rotation, places[:half]) <= _limit(places[:half], eps):
        return _far(vectors, rotation, places, eps)
    said = [
        [_side(x[h], after[h], rotation, guess, places[:half], eps, h) for h in range(len(x))]
        for x, after in ((near[0], near[2]), (near[1], near[3]))
    ]
    if all(set(side) - {UNTURNED} == {BY_HEAD} for side in said):  # head 0 is not turned then
        return BY_HEAD
    known = all(each is not None for side in said for each in side)
    if not known and (short := _rounded(vectors, rotation, places)):
        return f"{ROUNDED} {short}: they must be made in float32"
    if all(len(set(side)) == 1 for side in said):
        return _of_both(said[0][0], said[1][0])
    each = len(said[0]) // len(said[1])
    wrong = [h for h in range(len(said[0])) if said[0][h] != "" or said[1][h // each] != ""]
    if len(wrong) == len(said[0]):
        return OTHERWISE
    causes = dict.fromkeys(_of_both(said[0][h], said[1][h // each]) for h in wrong)
    return f"queries or keys of some heads are turned otherwise, those of heads {_some(wrong)}: {next(iter(causes))}"


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


UNTURNED = "not turned"
AHEAD = {"one ahead of": 1, "one behind": -1}


def _side(
    x: Tensor, after: Tensor, how: LayerRotation, guess: FrequencyGuess, places: Tensor, eps: float, head: int
) -> str | None:
    """What one head of queries or of keys shows, (length, dim) before and after; "" for what is right, None if nothing.

    Measured is by which complex number each pair is multiplied. Pairs and columns are right where these numbers have
    one size and leave the other columns alone.
    """
    width, limit = x.shape[-1], _limit(places, eps)
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


def _far(vectors: tuple[Tensor, ...], rotation: LayerRotation, places: Tensor, eps: float) -> str:
    """What is wrong far from 0, where all is right near 0."""
    limit = _limit(places, eps)
    if _error(vectors, rotation, torch.arange(len(places))) <= limit:
        return GIVEN
    for dtype in (torch.bfloat16, torch.float16):
        held = torch.as_tensor(np.asarray(rotation.frequencies)).to(dtype).double().numpy()
        if _error(vectors, replace(rotation, frequencies=held), places) <= limit:
            kind = str(dtype).removeprefix("torch.")
            return f"frequencies are rounded to {kind}, before they are multiplied by positions"
    half, far = len(places) // 2, int(places[-1])
    for last in sorted({int(places[half - 1]), *(2**n - 1 for n in range(4, 16)), far - 1}):
        for says, at in (
            (f"clamped to {last}", places.clamp(max=last)),
            (f"written round, they begin at 0 again after {last}", places % (last + 1)),
        ):
            if not torch.equal(at, places) and _error(vectors, rotation, at) <= limit:
                return f"positions far from 0, at {far}, are {says}; near 0 all is right"
    for dtype in (torch.bfloat16, torch.float16):
        at = places.to(dtype).double()
        if not torch.equal(at, places.double()) and _error(vectors, rotation, at) <= limit:
            short = str(dtype).removeprefix("torch.")
            return f"positions far from 0, at {far}, are rounded to {short}; near 0 all is right"
    return f"positions far from 0, at {far}, {FAR}"


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
