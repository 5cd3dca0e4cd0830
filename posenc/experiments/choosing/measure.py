"""The questions that every scheme is asked, and how its answers are found: by running it, and by counting."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, get_args

import numpy as np
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.functional import pad, scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode

from posenc.attention import dot_product_attention
from posenc.experiments.choosing.answers import FAR, LONG, Answers, Entrance, Pairs
from posenc.experiments.choosing.schemes import CANDIDATES, COLUMNS, Candidate, Hooks, Sizes, random
from posenc.experiments.transformer import one_thread
from posenc.masks import causal_mask

__all__ = ["make_answers", "measure_scheme"]

_T = TypeVar("_T")

SMALL = Sizes(num_heads=2, head_dim=16, trained=32, length=128)
"""What can be seen at any size is looked at in this one, stretched to four times its training."""


def make_answers() -> None:
    """Measure all schemes, and write answers.json."""
    rows = []
    for scheme in CANDIDATES.values():
        found = asdict(measure_scheme(scheme))
        for tried in ("held", "longer", "tuned"):  # from the results of the trainings
            del found[tried]
        rows.append(json.dumps(found | {"result": scheme.result or scheme.name}))
    text = ",\n ".join(rows)
    Path(__file__).with_name("answers.json").write_text(f"[{text}]\n", encoding="utf-8")


@lru_cache(maxsize=2 * len(CANDIDATES))
def measure_scheme(scheme: Candidate) -> Answers:
    """The answers of one scheme; nothing is known of trainings with it.

    Args:
        scheme: one of `CANDIDATES`, or another.

    >>> measure_scheme(CANDIDATES["learned"]).defined
    2048
    """
    if scheme.other_layers is not None:
        layers = [
            replace(scheme, make=make, other_layers=None) for make in (scheme.make, scheme.other_layers)
        ]
        return _together(scheme, *(measure_scheme(layer) for layer in layers))
    graph = scheme.tokens == "graph"
    with torch.no_grad(), one_thread():
        hooks, real = scheme.make(SMALL), scheme.make(Sizes())
        memory, cost, square = _growth(scheme)
        shift = _keeps_shift(scheme, hooks)
        narrow = Sizes(num_heads=1, head_dim=16, trained=LONG, length=LONG)
        counted = not graph and _works(scheme, scheme.make(narrow), narrow, LONG - 1)
        return Answers(
            *(scheme.name, scheme.section, scheme.tokens),
            enters=_enters(scheme, hooks),
            shift=shift,
            norm=_keeps_norm(scheme, hooks),
            direction=None if graph or scheme.causal else _sees_direction(scheme, hooks),
            parameters=sum(p.numel() for p in real.parameters),
            memory=memory if counted else None,
            cost=cost if counted else None,
            defined=None if graph else _defined(scheme, real),
            held=None,
            longer=None,
            tuned=None,
            cached=_decodes(scheme, hooks),
            pairs=_needs(scheme, shift=shift),
            fused=not square and hooks.keys_seen is None and _is_the_same_fused(scheme, hooks),
            change=None if graph else _changes(scheme, hooks),
        )


def _together(scheme: Candidate, first: Answers, second: Answers) -> Answers:
    """Of a model whose layers are by turns of two kinds: what one of them spoils is spoilt, and what one of them
    sees is seen."""
    both = (first, second)
    return replace(
        first,
        name=scheme.name,
        section=scheme.section,
        tokens=scheme.tokens,
        shift=all(each.shift for each in both),
        norm=all(each.norm for each in both),
        direction=any(each.direction for each in both),
        parameters=first.parameters + second.parameters,
        memory=_of_both(max, first.memory, second.memory),
        cost=_of_both(lambda a, b: (a + b) / 2, first.cost, second.cost),
        defined=_of_both(min, first.defined, second.defined),
        cached=all(each.cached for each in both),
        pairs=max((each.pairs for each in both), key=get_args(Pairs).index),
        fused=all(each.fused for each in both),
        change=any(each.change for each in both),
    )


def _of_both(join: Callable[[_T, _T], _T], first: _T | None, second: _T | None) -> _T | None:
    return None if first is None or second is None else join(first, second)


# --- One layer of attention, with a scheme in it

_N = 12  # tokens of the small texts


class _Layer:
    """Attention with random weights and whatever a scheme does."""

    def __init__(self, hooks: Hooks, sizes: Sizes, dtype: torch.dtype = torch.float64) -> None:
        self.hooks = hooks
        shape = (3, sizes.num_heads, sizes.dim, sizes.head_dim)
        self.weights = random(*shape).to(dtype) / math.sqrt(sizes.dim)

    def prepared(self, x: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (heads, m, head_dim) of the last m tokens."""
        x = x if self.hooks.add is None else self.hooks.add(x, places)
        q, k, v = x @ self.weights
        return (q, k, v) if self.hooks.turn is None else (*self.hooks.turn(q, k, places), v)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, places: Tensor, *, causal: bool = True) -> Tensor:
        """The outputs (heads, m, head_dim) of the last m tokens."""
        m = q.shape[-2]
        mask = torch.from_numpy(causal_mask(len(places)))[-m:] if causal else None
        if self.hooks.attend is not None:
            return self.hooks.attend(q, k, v, places, mask)
        bias = None if self.hooks.bias is None else self.hooks.bias(m, places, q.dtype)
        return dot_product_attention(q, k, v, bias=bias, mask=mask)[0]

    def __call__(self, x: Tensor, places: Tensor, *, causal: bool = True) -> Tensor:
        return self.attend(*self.prepared(x, places), places, causal=causal)


def _places(scheme: Candidate, n: int, start: int = 0) -> Tensor:
    """The places of n tokens, the first of them number `start`."""
    index = torch.arange(start, start + n)
    if scheme.tokens == "grid":
        return torch.stack([index // COLUMNS, index % COLUMNS], dim=-1)
    if scheme.tokens == "time":
        return index.double() / 4
    if scheme.tokens == "graph":  # a ring, which its last node closes
        step = torch.eye(n).roll(1, dims=0)
        return step + step.T
    return index


def _so_far(scheme: Candidate, places: Tensor, n: int) -> Tensor:
    return places[:n, :n] if scheme.tokens == "graph" else places[:n]


def _works(scheme: Candidate, hooks: Hooks, sizes: Sizes, position: int) -> bool:
    """Whether a token at that position can be computed, in float32, together with one at 0.

    A code of zeros is none.
    """
    places = torch.cat([_places(scheme, 1), _places(scheme, 1, position)])
    x = random(2, sizes.dim).float()
    try:
        outputs = _Layer(hooks, sizes, torch.float32)(x, places)
        coded = hooks.add is None or not torch.equal(hooks.add(x, places)[1], x[1])
    except ValueError:
        return False
    return bool(outputs.isfinite().all()) and coded


# --- The questions


def _enters(scheme: Candidate, hooks: Hooks) -> Entrance:
    if hooks.add is not None:
        return "code"
    if hooks.turn is not None:
        return "turn"
    if hooks.attend is not None:
        return "score"
    bias = torch.zeros(1) if hooks.bias is None else hooks.bias(_N, _places(scheme, _N), torch.float64)
    return "mask" if bool(((bias == 0) | (bias == -math.inf)).all()) else "score"


def _same(first: Tensor, second: Tensor) -> bool:
    return torch.allclose(first, second, rtol=1e-9, atol=1e-9)


def _far_places(scheme: Candidate, hooks: Hooks, moved: bool = False) -> Tensor:
    """Places that reach beyond the trained length, or, where that cannot be, up to it.

    With `moved` they are those at the start, moved.
    """
    for start in (SMALL.trained - _N // 2, SMALL.trained - _N - COLUMNS):
        places = _places(scheme, _N, start)
        if moved:
            places = _places(scheme, _N) + (places[0] - _places(scheme, 1)[0])
        with suppress(ValueError):
            _Layer(hooks, SMALL)(random(_N, SMALL.dim), places)
            return places
    raise RuntimeError(f"{scheme.name} works neither beyond {SMALL.trained} positions nor up to them")


def _keeps_shift(scheme: Candidate, hooks: Hooks) -> bool:
    layer, x, places = _Layer(hooks, SMALL), random(_N, SMALL.dim), _places(scheme, _N)
    if scheme.tokens == "graph":
        order = np.random.default_rng(1).permutation(_N)
        here = layer(x, places, causal=False)[:, order]
        return _same(here, layer(x[order], places[order][:, order], causal=False))
    return _same(layer(x, places), layer(x, _far_places(scheme, hooks, moved=True)))


def _keeps_norm(scheme: Candidate, hooks: Hooks) -> bool:
    places, plain, x = _far_places(scheme, hooks), _Layer(Hooks(), SMALL), random(_N, SMALL.dim)
    kept = [(x, x if hooks.add is None else hooks.add(x, places))]
    q, k, v = plain.prepared(x, places)
    if hooks.turn is not None:
        kept += zip((q, k), hooks.turn(q, k, places), strict=True)
    # A mean of equal values is that value, unless something is done to them.
    equal = torch.ones_like(v)
    kept.append((equal, _Layer(hooks, SMALL).attend(q, k, equal, places)))
    return all(_same(before.norm(dim=-1), after.norm(dim=-1)) for before, after in kept)


def _sees_direction(scheme: Candidate, hooks: Hooks) -> bool:
    layer, x, places = _Layer(hooks, SMALL), random(_N, SMALL.dim), _places(scheme, _N)
    return not _same(layer(x.flip(0), places, causal=False), layer(x, places, causal=False).flip(1))


def _defined(scheme: Candidate, hooks: Hooks) -> int:
    """By bisection: what ends, ends once and for all."""
    if _works(scheme, hooks, Sizes(), FAR - 1):
        return FAR
    works, fails = 0, FAR - 1
    while fails - works > 1:
        middle = (works + fails) // 2
        works, fails = (middle, fails) if _works(scheme, hooks, Sizes(), middle) else (works, middle)
    return works + 1


def _decodes(scheme: Candidate, hooks: Hooks) -> bool:
    layer, x, places = _Layer(hooks, SMALL), random(_N, SMALL.dim), _far_places(scheme, hooks)
    cache = torch.empty(2, SMALL.num_heads, 0, SMALL.head_dim, dtype=x.dtype)
    steps = []
    for t in range(_N):
        so_far = _so_far(scheme, places, t + 1)
        q, *new = layer.prepared(x[t : t + 1], so_far)
        cache = torch.cat([cache, torch.stack(new)], dim=2)
        steps.append(layer.attend(q, cache[0], cache[1], so_far))
    return _same(torch.cat(steps, dim=1), layer(x, places))


_FEW = 4


def _needs(scheme: Candidate, *, shift: bool) -> Pairs:
    """By the rank of the scores of later queries with earlier keys: a product of a vector for each query and one
    for each key has at most their width, and a few columns for what is added."""
    n, sizes = 64, Sizes(num_heads=4, head_dim=16, trained=512, length=512)
    hooks = scheme.make(sizes)
    if hooks.bias is None and hooks.attend is None:
        return "no"
    layer, places, causal = _Layer(hooks, sizes), _places(scheme, n), scheme.tokens != "graph"
    q, k, v = layer.prepared(random(n, sizes.dim) / 2, places)
    empty = layer.attend(q, k, torch.zeros_like(v), places, causal=causal)
    weights = []
    for keys in torch.eye(n, dtype=v.dtype).split(sizes.head_dim, dim=1):  # values that tell keys apart
        weights.append(layer.attend(q, k, keys.expand(len(v), -1, -1), places, causal=causal) - empty)
    scores = torch.cat(weights, dim=-1)[:, n // 2 :, : n // 2].log()
    scores = scores - scores.mean(dim=-1, keepdim=True)  # a number added to a row does not change its softmax
    if int(torch.linalg.matrix_rank(scores, rtol=1e-10).max()) <= sizes.head_dim + _FEW:
        return "no"
    return "offsets" if shift and hooks.attend is None and scheme.tokens == "line" else "yes"


def _is_the_same_fused(scheme: Candidate, hooks: Hooks) -> bool:
    layer, places = _Layer(hooks, SMALL), _places(scheme, _N)
    q, k, v = layer.prepared(random(_N, SMALL.dim), places)
    return _same(_fused(hooks, q, k, v, places), layer.attend(q, k, v, places))


def _changes(scheme: Candidate, hooks: Hooks) -> bool:
    x, places = random(SMALL.length, SMALL.dim), _places(scheme, SMALL.length)
    short = SMALL if scheme.planned else replace(SMALL, length=SMALL.trained)
    plain = _Layer(scheme.make(short), short)
    before = plain(x[:_N], places[:_N])
    try:
        longer = plain(x, places)[:, :_N]
    except ValueError:
        return True
    return not (_same(before, longer) and _same(before, _Layer(hooks, SMALL)(x[:_N], places[:_N])))


# --- Memory and cost


def _fused(hooks: Hooks, q: Tensor, k: Tensor, v: Tensor, places: Tensor) -> Tensor:
    """Causal attention by torch's kernels, as far as they can do it."""
    if hooks.columns is not None:
        (q, k), dim, n_values = hooks.columns(q, k), q.shape[-1], v.shape[-1]
        width = -(-q.shape[-1] // 8) * 8  # torch has no fast kernel for anything else
        q, k, v = (pad(x, (0, width - x.shape[-1])) for x in (q, k, v))
        return scaled_dot_product_attention(
            q[None], k[None], v[None], is_causal=True, scale=1 / math.sqrt(dim)
        )[0, ..., :n_values]
    if hooks.attend is not None:
        return hooks.attend(q, k, v, places, torch.from_numpy(causal_mask(len(q[0]))))
    if hooks.bias is None:
        return scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    bias = hooks.bias(q.shape[-2], places, q.dtype)
    return scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=bias.expand(1, len(q), -1, -1))[
        0
    ]


_SOFTMAX = 6
"""Operations for each score besides the two products: scale, maximum, difference, exponential, sum, quotient."""


class _Count(TorchDispatchMode):
    """Operations, and the most bytes that lived at one time besides what was given."""

    def __init__(self, *given: Tensor) -> None:
        super().__init__()
        self.operations = self.most = 0
        self._given = {x.untyped_storage().data_ptr() for x in given}
        self._alive: list[tuple[StorageWeakRef, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.is_view:
            return result
        made = [
            x for x in (result if isinstance(result, tuple | list) else [result]) if isinstance(x, Tensor)
        ]
        name = func.overloadpacket.__name__
        each = 2 * args[-1].shape[-2] if name in ("mm", "bmm", "addmm") else 1
        self.operations += sum(each * x.numel() for x in made)
        self._alive = [(ref, size) for ref, size in self._alive if not ref.expired()]
        known = {ref.cdata for ref, _ in self._alive}
        for storage in (x.untyped_storage() for x in made):
            if storage._cdata not in known and storage.data_ptr() not in self._given:
                known.add(storage._cdata)
                self._alive.append((StorageWeakRef(storage), storage.nbytes()))
        self.most = max(self.most, sum(size for _, size in self._alive))
        return result


def _counted(scheme: Candidate, n: int) -> tuple[int, int, int]:
    """Of attention with a scheme over n tokens in float32: operations before all queries meet all keys, those of
    the meeting, and bytes, its parameters among them.

    What a window leaves out is counted here as if it were computed, and not in `_growth`.
    """
    sizes = Sizes(trained=n, length=n)
    hooks = scheme.make(sizes)
    x = torch.zeros(n, sizes.dim)
    q, k, v = torch.zeros(3, sizes.num_heads, n, sizes.head_dim)
    places = _places(scheme, n)
    meeting = sizes.num_heads * n * n * (2 * sizes.head_dim + _SOFTMAX)
    with _Count(x, q, k, v, places, *hooks.parameters) as count:
        if hooks.add is not None:
            x = hooks.add(x, places)
        if hooks.turn is not None:
            q, k = hooks.turn(q, k, places)
        if hooks.columns is not None:
            q, k = hooks.columns(q, k)
        elif hooks.attend is not None and hooks.keys_seen is None:
            hooks.attend(q, k, v, places, torch.from_numpy(causal_mask(n)))
        elif hooks.bias is not None and hooks.keys_seen is None:
            hooks.bias(n, places, q.dtype)
            meeting += sizes.num_heads * n * n
    own = hooks.attend is not None and hooks.columns is None and hooks.keys_seen is None
    meeting = 0 if own else meeting + sizes.num_heads * n * n * 2 * q.shape[-1]
    return count.operations, meeting, count.most + sum(p.nbytes for p in hooks.parameters)


def _growth(scheme: Candidate) -> tuple[float, float, bool]:
    """Memory and cost at `LONG` as in `Answers`, and whether memory grows with the square of the length.

    Counts are polynomials in n: the one through three lengths is followed, once it has met a fourth.
    """
    plain, ours = ([_counted(each, n) for n in _LENGTHS] for each in (_PLAIN, scheme))
    attention = _polynomial(_PLAIN, [meeting for _, meeting, _ in plain])
    before, meeting, size = (_polynomial(scheme, list(values)) for values in zip(*ours, strict=True))
    share = _share_seen(LONG, scheme.make(Sizes()).keys_seen)
    operations = before(LONG) + share * meeting(LONG)
    keys_and_values = 2 * 4 * Sizes().dim * LONG
    return size(LONG) / keys_and_values, operations / attention(LONG) - 1, size.grows


def _share_seen(n: int, keys: int | None) -> float:
    """Of the pairs of a query and a key that is not later: how many are left if each query sees so many keys."""
    if keys is None or keys >= n:
        return 1.0
    return (keys * (keys + 1) / 2 + (n - keys) * keys) / (n * (n + 1) / 2)


_LENGTHS = (192, 256, 320, 448)  # so long that what grows with the square is the most
_PLAIN = Candidate("none", "", lambda sizes: Hooks())


@dataclass(frozen=True)
class _Square:
    """a + b n + c n²."""

    a: Fraction
    b: Fraction
    c: Fraction

    def __call__(self, n: int) -> float:
        return float(self.a + self.b * n + self.c * n * n)

    @property
    def grows(self) -> bool:
        return self.c != 0


def _polynomial(scheme: Candidate, values: list[int]) -> _Square:
    (x, y, z), (f, g, h) = _LENGTHS[:3], values[:3]
    first, second = Fraction(g - f, y - x), Fraction(h - g, z - y)
    c = (second - first) / (z - x)
    b = first - c * (x + y)
    found = _Square(f - b * x - c * x * x, b, c)
    if found(_LENGTHS[3]) != values[3]:
        raise RuntimeError(f"what {scheme.name} takes is no polynomial of degree 2 in the length: {values}")
    return found
