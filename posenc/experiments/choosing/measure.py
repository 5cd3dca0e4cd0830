"""The questions that every scheme is asked, and how its answers are found: by running it, and by counting."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode

from posenc.attention import dot_product_attention
from posenc.experiments.choosing.schemes import COLUMNS, SCHEMES, Scheme, Setting, Ways, random
from posenc.experiments.extrapolation import Results, extrapolation_results
from posenc.experiments.transformer import one_thread
from posenc.masks import causal_mask

__all__ = ["FAR", "LONG", "TASKS", "Answers", "compare_schemes", "held_lengths", "measure_scheme"]

LONG = 131_072
"""The length at which memory and cost are compared: 128k tokens."""

FAR = 2**20
"""The number of positions that are tried; what works at the last of them is taken to work at any."""

SMALL = Setting(num_heads=2, head_dim=16, trained=32, length=128)
"""What can be seen at any size is looked at in this one, stretched to four times its training."""


@dataclass(frozen=True)
class Answers:
    """What `measure_scheme` found. None: the question has no meaning for the scheme."""

    scheme: Scheme
    enters: str
    """Where the position comes in: in a code that is added, a turn of queries and keys, a score or a mask."""
    shift: bool
    """Whether outputs stay when all places move alike; in a graph, when its nodes are numbered otherwise."""
    norm: bool
    """Whether embeddings, queries, keys and values keep their length."""
    direction: bool | None
    """Whether, without a mask, a text is told from its reversal."""
    parameters: int
    """How many numbers are trained: 12 heads of width 64, 2048 tokens in training, stretched to 16,384."""
    memory: float | None
    """Bytes that live at one time because of it, by those of all keys and values, at 128k tokens in float32."""
    cost: float | None
    """Its operations by those of attention, at 128k tokens."""
    defined: int | None
    """Number of positions at which it gives finite numbers in float32, stretched likewise; `FAR`: no end."""
    held: tuple[int, ...] | None
    """For each of `TASKS` the longest text at which small models did it, 0 if not even at the trained length."""
    tuned: tuple[int, ...] | None
    """The same after a short training at the longest length."""
    cached: bool
    """Whether one token at a time, with a cache of keys and values, gives what the full pass gives."""
    fused: bool
    """Whether `scaled_dot_product_attention` can do it without a number for each pair of tokens."""
    change: bool | None
    """Whether a text beyond the training is refused, or changes the numbers of tokens that were there before."""


def compare_schemes(
    schemes: Mapping[str, Scheme] | None = None, held: Mapping[str, tuple[int, ...]] | None = None
) -> list[Answers]:
    """The answers of all schemes, in the order of the book.

    Args:
        schemes: by name; `SCHEMES` if None.
        held: as of `held_lengths`; if None, of the results of the chapter `extrapolation`.

    >>> rotary = compare_schemes({"rotary": SCHEMES["rotary"]})[0]
    >>> rotary.shift, rotary.norm, rotary.parameters, rotary.fused
    (True, True, 0, True)
    """
    held = held_lengths(extrapolation_results()) if held is None else held
    return [
        measure_scheme(scheme, held=held) for scheme in (SCHEMES if schemes is None else schemes).values()
    ]


def measure_scheme(scheme: Scheme, held: Mapping[str, tuple[int, ...]] | None = None) -> Answers:
    """The answers of one scheme.

    Args:
        scheme: one of `SCHEMES`, or another.
        held: as of `held_lengths`; nothing is known if None.

    >>> measure_scheme(SCHEMES["learned"]).defined
    2048
    """
    held = {} if held is None else held
    return replace(_measured(scheme), held=held.get(scheme.name), tuned=held.get(f"{scheme.name}_tuned"))


@lru_cache(maxsize=2 * len(SCHEMES))
def _measured(scheme: Scheme) -> Answers:
    graph = scheme.lies == "graph"
    with torch.no_grad(), one_thread():
        ways, real = scheme.make(SMALL), scheme.make(Setting())
        memory, cost, pairs = _growth(scheme)
        narrow = Setting(num_heads=1, head_dim=16, trained=LONG, length=LONG)
        counted = not graph and _works(scheme, scheme.make(narrow), narrow, LONG - 1)
        return Answers(
            scheme,
            enters=_enters(scheme, ways),
            shift=_keeps_shift(scheme, ways),
            norm=_keeps_norm(scheme, ways),
            direction=None if graph or scheme.causal else _sees_direction(scheme, ways),
            parameters=sum(p.numel() for p in real.parameters),
            memory=memory if counted else None,
            cost=cost if counted else None,
            defined=None if graph else _defined(scheme, real),
            held=None,
            tuned=None,
            cached=_decodes(scheme, ways),
            fused=not pairs and _is_the_same_fused(scheme, ways),
            change=None if graph else _changes(scheme, ways),
        )


TASKS = ("back", "copy", "sort")
"""The tasks of the chapter `extrapolation` that need positions."""


def held_lengths(results: Results, least: float = 0.9) -> dict[str, tuple[int, ...]]:
    """The longest text, of those asked, up to which small models did each of `TASKS`.

    Args:
        results: of the chapter `extrapolation`.
        least: accuracy, the mean of all seeds, that counts as done.

    Returns:
        By the name of the scheme, a length for each task; 0 for what is not done at the trained length.
    """
    found = {}
    for scheme in results.schemes:
        done = [results.scores(scheme, task).mean(axis=0) >= least for task in TASKS]
        found[scheme] = tuple((0, *results.lengths)[int(row.cumprod().sum())] for row in done)
    return found


# --- One layer of attention, with a scheme in it

_N = 12  # tokens of the small texts


class _Layer:
    """Attention with random weights and whatever a scheme does."""

    def __init__(self, ways: Ways, setting: Setting, dtype: torch.dtype = torch.float64) -> None:
        self.ways = ways
        shape = (3, setting.num_heads, setting.dim, setting.head_dim)
        self.weights = random(*shape).to(dtype) / math.sqrt(setting.dim)

    def prepared(self, x: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (heads, m, head_dim) of the last m tokens."""
        x = x if self.ways.add is None else self.ways.add(x, places)
        q, k, v = x @ self.weights
        return (q, k, v) if self.ways.turn is None else (*self.ways.turn(q, k, places), v)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, places: Tensor, *, causal: bool = True) -> Tensor:
        """The outputs (heads, m, head_dim) of the last m tokens."""
        m = q.shape[-2]
        mask = torch.from_numpy(causal_mask(len(places)))[-m:] if causal else None
        if self.ways.attend is not None:
            return self.ways.attend(q, k, v, places, mask)
        bias = None if self.ways.bias is None else self.ways.bias(m, places, q.dtype)
        return dot_product_attention(q, k, v, bias=bias, mask=mask)[0]

    def __call__(self, x: Tensor, places: Tensor, *, causal: bool = True) -> Tensor:
        return self.attend(*self.prepared(x, places), places, causal=causal)


def _places(scheme: Scheme, n: int, start: int = 0) -> Tensor:
    """The places of n tokens, the first of them number `start`."""
    index = torch.arange(start, start + n)
    if scheme.lies == "grid":
        return torch.stack([index // COLUMNS, index % COLUMNS], dim=-1)
    if scheme.lies == "time":
        return index.double() / 4
    if scheme.lies == "graph":  # a ring, which its last node closes
        step = torch.eye(n).roll(1, dims=0)
        return step + step.T
    return index


def _so_far(scheme: Scheme, places: Tensor, n: int) -> Tensor:
    return places[:n, :n] if scheme.lies == "graph" else places[:n]


def _works(scheme: Scheme, ways: Ways, setting: Setting, position: int) -> bool:
    """Whether a token at that position can be computed, in float32, together with one at 0.

    A code of zeros is none.
    """
    places = torch.cat([_places(scheme, 1), _places(scheme, 1, position)])
    x = random(2, setting.dim).float()
    try:
        outputs = _Layer(ways, setting, torch.float32)(x, places)
        coded = ways.add is None or not torch.equal(ways.add(x, places)[1], x[1])
    except ValueError:
        return False
    return bool(outputs.isfinite().all()) and coded


# --- The questions


def _enters(scheme: Scheme, ways: Ways) -> str:
    if ways.add is not None:
        return "code"
    if ways.turn is not None:
        return "turn"
    if ways.attend is not None:
        return "score"
    bias = torch.zeros(1) if ways.bias is None else ways.bias(_N, _places(scheme, _N), torch.float64)
    return "mask" if bool(((bias == 0) | (bias == -math.inf)).all()) else "score"


def _same(first: Tensor, second: Tensor) -> bool:
    return torch.allclose(first, second, rtol=1e-9, atol=1e-9)


def _far_places(scheme: Scheme, ways: Ways, moved: bool = False) -> Tensor:
    """Places that reach beyond the trained length, or, where that cannot be, up to it.

    With `moved` they are those at the start, moved.
    """
    for start in (SMALL.trained - _N // 2, SMALL.trained - _N - COLUMNS):
        places = _places(scheme, _N, start)
        if moved:
            places = _places(scheme, _N) + (places[0] - _places(scheme, 1)[0])
        with suppress(ValueError):
            _Layer(ways, SMALL)(random(_N, SMALL.dim), places)
            return places
    raise RuntimeError(f"{scheme.name} works neither beyond {SMALL.trained} positions nor up to them")


def _keeps_shift(scheme: Scheme, ways: Ways) -> bool:
    layer, x, places = _Layer(ways, SMALL), random(_N, SMALL.dim), _places(scheme, _N)
    if scheme.lies == "graph":
        order = np.random.default_rng(1).permutation(_N)
        here = layer(x, places, causal=False)[:, order]
        return _same(here, layer(x[order], places[order][:, order], causal=False))
    return _same(layer(x, places), layer(x, _far_places(scheme, ways, moved=True)))


def _keeps_norm(scheme: Scheme, ways: Ways) -> bool:
    places, plain, x = _far_places(scheme, ways), _Layer(Ways(), SMALL), random(_N, SMALL.dim)
    kept = [(x, x if ways.add is None else ways.add(x, places))]
    q, k, v = plain.prepared(x, places)
    if ways.turn is not None:
        kept += zip((q, k), ways.turn(q, k, places), strict=True)
    # A mean of equal values is that value, unless something is done to them.
    equal = torch.ones_like(v)
    kept.append((equal, _Layer(ways, SMALL).attend(q, k, equal, places)))
    return all(_same(before.norm(dim=-1), after.norm(dim=-1)) for before, after in kept)


def _sees_direction(scheme: Scheme, ways: Ways) -> bool:
    layer, x, places = _Layer(ways, SMALL), random(_N, SMALL.dim), _places(scheme, _N)
    return not _same(layer(x.flip(0), places, causal=False), layer(x, places, causal=False).flip(1))


def _defined(scheme: Scheme, ways: Ways) -> int:
    """By bisection: what ends, ends once and for all."""
    if _works(scheme, ways, Setting(), FAR - 1):
        return FAR
    works, fails = 0, FAR - 1
    while fails - works > 1:
        middle = (works + fails) // 2
        works, fails = (middle, fails) if _works(scheme, ways, Setting(), middle) else (works, middle)
    return works + 1


def _decodes(scheme: Scheme, ways: Ways) -> bool:
    layer, x, places = _Layer(ways, SMALL), random(_N, SMALL.dim), _far_places(scheme, ways)
    cache = torch.empty(2, SMALL.num_heads, 0, SMALL.head_dim, dtype=x.dtype)
    steps = []
    for t in range(_N):
        so_far = _so_far(scheme, places, t + 1)
        q, *new = layer.prepared(x[t : t + 1], so_far)
        cache = torch.cat([cache, torch.stack(new)], dim=2)
        steps.append(layer.attend(q, cache[0], cache[1], so_far))
    return _same(torch.cat(steps, dim=1), layer(x, places))


def _is_the_same_fused(scheme: Scheme, ways: Ways) -> bool:
    layer, places = _Layer(ways, SMALL), _places(scheme, _N)
    q, k, v = layer.prepared(random(_N, SMALL.dim), places)
    return _same(_fused(ways, q, k, v, places), layer.attend(q, k, v, places))


def _changes(scheme: Scheme, ways: Ways) -> bool:
    x, places = random(SMALL.length, SMALL.dim), _places(scheme, SMALL.length)
    short = replace(SMALL, length=SMALL.trained)
    plain = _Layer(scheme.make(short), short)
    before = plain(x[:_N], places[:_N])
    try:
        longer = plain(x, places)[:, :_N]
    except ValueError:
        return True
    return not (_same(before, longer) and _same(before, _Layer(ways, SMALL)(x[:_N], places[:_N])))


# --- Memory and cost


def _fused(ways: Ways, q: Tensor, k: Tensor, v: Tensor, places: Tensor) -> Tensor:
    """Causal attention by torch's kernels, as far as they can do it."""
    if ways.fused is not None:
        return ways.fused(q, k, v)
    if ways.attend is not None:
        return ways.attend(q, k, v, places, torch.from_numpy(causal_mask(len(q[0]))))
    if ways.bias is None:
        return scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    bias = ways.bias(q.shape[-2], places, q.dtype)
    return scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=bias.expand(1, len(q), -1, -1))[
        0
    ]


_SOFTMAX = 6
"""Operations for each score besides the two products: scale, maximum, difference, exponential, sum, quotient."""


class _Count(TorchDispatchMode):
    """Operations, and the most bytes that lived at one time besides what was given and what attention gives."""

    def __init__(self, *given: Tensor) -> None:
        super().__init__()
        self.operations = self.most = 0
        self._given = {x.untyped_storage().data_ptr() for x in given}
        self._alive: list[tuple[StorageWeakRef, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        made = [
            x for x in (result if isinstance(result, tuple | list) else [result]) if isinstance(x, Tensor)
        ]
        name = func.overloadpacket.__name__
        if "scaled_dot_product" in name:
            q, k, v = args[:3]
            each = (
                2 * q.shape[-1] + 2 * v.shape[-1] + _SOFTMAX + ((kwargs or {}).get("attn_mask") is not None)
            )
            self.operations += q[..., 0].numel() * k.shape[-2] * each
            return result  # what any attention makes
        if func.is_view:
            return result
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


def _counted(scheme: Scheme, n: int) -> tuple[int, int]:
    """Operations and bytes of attention with a scheme over n tokens in float32, its parameters among the bytes."""
    setting = Setting(trained=n, length=n)
    ways = scheme.make(setting)
    x = torch.zeros(n, setting.dim)
    q, k, v = torch.zeros(3, setting.num_heads, n, setting.head_dim)
    places = _places(scheme, n)
    with _Count(x, q, k, v, places, *ways.parameters) as count:
        if ways.add is not None:
            ways.add(x, places)
        if ways.turn is not None:
            q, k = ways.turn(q, k, places)
        _fused(ways, q, k, v, places)
    return count.operations, count.most + sum(p.nbytes for p in ways.parameters)


def _growth(scheme: Scheme) -> tuple[float, float, bool]:
    """Memory and cost at `LONG` as in `Answers`, and whether memory grows with the square of the length.

    Counts are polynomials in n: the one through three lengths is followed, once it has met a fourth.
    """
    plain, ours = ([_counted(each, n) for n in _LENGTHS] for each in (_PLAIN, scheme))
    attention = _polynomial(_PLAIN, [operations for operations, _ in plain])
    operations = _polynomial(scheme, [operations for operations, _ in ours])
    size = _polynomial(scheme, [size for _, size in ours])
    keys_and_values = 2 * 4 * Setting().dim * LONG
    return size(LONG) / keys_and_values, operations(LONG) / attention(LONG) - 1, size.grows


_LENGTHS = (192, 256, 320, 448)  # so long that what grows with the square is the most
_PLAIN = Scheme("none", "", lambda setting: Ways())


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


def _polynomial(scheme: Scheme, values: list[int]) -> _Square:
    (x, y, z), (f, g, h) = _LENGTHS[:3], values[:3]
    first, second = Fraction(g - f, y - x), Fraction(h - g, z - y)
    c = (second - first) / (z - x)
    b = first - c * (x + y)
    found = _Square(f - b * x - c * x * x, b, c)
    if found(_LENGTHS[3]) != values[3]:
        raise RuntimeError(f"what {scheme.name} takes is no polynomial of degree 2 in the length: {values}")
    return found
