"""The schemes of the book, each as what it does at the places where a position can enter attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import torch
from array_api_compat import torch as xp
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from posenc.alibi import alibi_bias, alibi_slopes, column_count, widen
from posenc.attention import dot_product_attention
from posenc.contextual import contextual_bias, contextual_positions, forget_bias, forget_positions
from posenc.experiments.choosing.answers import Tokens
from posenc.experiments.transformer import hide
from posenc.extrapolation import logn_scale
from posenc.graphs import anchor_distances, laplacian_eigenvectors, random_walk_probabilities
from posenc.grids import coordinate_encoding, interpolate_grid
from posenc.learned import interpolate_table, learned_encoding
from posenc.locality import rbf_encoding
from posenc.naive import integer_encoding, one_hot_encoding
from posenc.relative import fire_bias, kerple_bias, relative_bias, shaw_attention, t5_bias
from posenc.rotary import (
    apply_rotary,
    apply_rotary_axes,
    apply_xpos,
    axial_frequencies,
    dynamic_ntk_frequencies,
    linear_frequencies,
    llama3_frequencies,
    longrope_attention_factor,
    longrope_frequencies,
    mixed_frequencies,
    mrope_frequencies,
    ntk_frequencies,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)
from posenc.sinusoidal import sinusoidal_encoding, sinusoidal_frequencies
from posenc.times import periodic_encoding, time_encoding, time_frequencies

__all__ = ["CANDIDATES", "COLUMNS", "Candidate", "Hooks", "Sizes", "random"]

Maker = Callable[["Sizes"], "Hooks"]


@dataclass(frozen=True)
class Sizes:
    """The sizes of the layer of attention that a scheme is made for, and of the texts that it reads."""

    num_heads: int = 12
    head_dim: int = 64
    trained: int = 2048
    """Number of tokens in training."""
    length: int = 16_384
    """Number of tokens that the trained model is to read: what can be stretched is stretched to it."""

    @property
    def dim(self) -> int:
        """Width of the model."""
        return self.num_heads * self.head_dim

    @property
    def factor(self) -> float:
        """How many times as long as in training."""
        return max(self.length / self.trained, 1.0)


@dataclass(frozen=True)
class Hooks:
    """What a scheme does in one layer; None where it does nothing.

    Places are those of all tokens so far, as `Candidate.tokens` says; the tokens in hand are the last m of them.
    """

    add: Callable[[Tensor, Tensor], Tensor] | None = None
    """(m, dim) embeddings and places to embeddings with codes."""

    turn: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] | None = None
    """Queries and keys (heads, m, head_dim), and places, to queries and keys."""

    bias: Callable[[int, Tensor, torch.dtype], Tensor] | None = None
    """m and places to what is added to the scores, (heads, m, n) or (m, n); −inf where a key is not seen."""

    attend: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor | None], Tensor] | None = None
    """An attention of its own: queries (heads, m, head_dim), keys and values (heads, n, head_dim), places, mask."""

    columns: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] | None = None
    """Queries and keys (heads, n, head_dim) at 0..n − 1 to wider ones whose causal attention is that of `bias`
    or `attend`; None: there are none."""

    keys_seen: int | None = None
    """How many keys a query sees at most; None: all up to itself. What it does not see need not be computed."""

    parameters: tuple[Tensor, ...] = ()
    """What is trained, as it is in training."""


@dataclass(frozen=True)
class Candidate:
    """A scheme of the book, to be put to the questions."""

    name: str
    section: str
    """Where the book explains it: a page and a heading."""
    make: Maker
    tokens: Tokens = "line"
    """How its tokens lie: in a line, on a grid (a column for each coordinate), in time, or in a graph."""
    causal: bool = False
    """Whether it is made for the causal mask, which is in it."""
    other_layers: Maker | None = None
    """What every other layer of the model does; None: all layers do the same."""
    result: str | None = None
    """Its name in the results of the chapter `extrapolation`; None: the same name."""
    planned: bool = False
    """Whether its training already provides for the length that is to be read."""

    def __post_init__(self) -> None:
        if self.tokens not in get_args(Tokens):
            raise ValueError(f"tokens must be one of {', '.join(get_args(Tokens))}, got {self.tokens!r}")


COLUMNS = 4
"""Of a grid, which has as many rows as it needs."""


@lru_cache(maxsize=8)
def random(*shape: int) -> Tensor:
    """The same numbers each time, whatever the state of torch's own generator. Not to be written to."""
    return torch.from_numpy(np.random.default_rng(0).normal(size=shape))


# --- Makers


def _codes(encode: Callable[[Tensor, int], Tensor]) -> Maker:
    """Of what is added: places and the width of the model to codes."""

    def make(sizes: Sizes) -> Hooks:
        return Hooks(add=lambda x, places: x + encode(places[-len(x) :], sizes.dim).to(x.dtype))

    return make


def _rotary(
    frequencies: Callable[[Sizes, int], np.ndarray | None],
    scale: Callable[[Sizes], float] = lambda sizes: 1.0,
    rotary_dim: Callable[[Sizes], int | None] = lambda sizes: None,
) -> Maker:
    """Of RoPE, with the frequencies that belong to a sizes and to the number of positions so far."""

    def make(sizes: Sizes) -> Hooks:
        def turn(q: Tensor, k: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
            omega = frequencies(sizes, int(places[-1]) + 1)
            q, k = (
                apply_rotary(
                    x,
                    places[-x.shape[-2] :],
                    frequencies=omega,
                    scale=scale(sizes),
                    rotary_dim=rotary_dim(sizes),
                )
                for x in (q, k)
            )
            return q, k

        return Hooks(turn=turn)

    return make


_ROPE = _rotary(lambda sizes, n: None)


def _axes(frequencies: Callable[[int], np.ndarray]) -> Maker:
    """Of RoPE on a grid."""

    def make(sizes: Sizes) -> Hooks:
        omega = frequencies(sizes.head_dim)

        def turn(q: Tensor, k: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
            t = places[-q.shape[-2] :]
            t = pad(t, (len(omega) - t.shape[1], 0))  # an image stands at time 0
            return apply_rotary_axes(q, t, omega), apply_rotary_axes(k, t, omega)

        return Hooks(turn=turn)

    return make


def _learned(kind: Literal["error", "clamp", "stretch", "grid", "starts"]) -> Maker:
    """Of a table with a row for each token of the training, and what is done beyond; or, for training at random
    starts, with a row for each that is to be read."""

    def make(sizes: Sizes) -> Hooks:
        trained = table = random(sizes.trained, sizes.dim).float()
        if kind == "starts":
            trained = table = table.repeat(-(-sizes.length // sizes.trained), 1)
        if sizes.length > sizes.trained and kind == "stretch":
            table = interpolate_table(table, sizes.length)
        if sizes.length > sizes.trained and kind == "grid":
            old, new = ((n // COLUMNS, COLUMNS) for n in (sizes.trained, sizes.length))
            table = interpolate_grid(table, old, new)

        def add(x: Tensor, places: Tensor) -> Tensor:
            t = places[-len(x) :]
            t = t @ torch.tensor([COLUMNS, 1]) if kind == "grid" else t
            return x + learned_encoding(
                t, table.to(x.dtype), overflow="clamp" if kind == "clamp" else "error"
            )

        return Hooks(add=add, parameters=(trained,))

    return make


def _biased(bias: Callable[..., Tensor], *shapes: Callable[[Sizes], tuple[int, ...]]) -> Maker:
    """Of a bias by parameters of these shapes, all of them above 0."""

    def make(sizes: Sizes) -> Hooks:
        parameters = tuple(random(*shape(sizes)).abs().float() for shape in shapes)

        def matrix(m: int, places: Tensor, dtype: torch.dtype) -> Tensor:
            return bias(*(p.to(dtype) for p in parameters), *_span(m, places))

        return Hooks(bias=matrix, parameters=parameters)

    return make


def _span(m: int, places: Tensor) -> tuple[int | Tensor, int | Tensor]:
    """The places of m queries and of all keys; counts where they are 0, 1, 2, ..., which is less work."""
    if torch.equal(places, torch.arange(len(places))):
        return m, len(places)
    return places[-m:], places


def _alibi(scale: Callable[[Sizes], float] = lambda sizes: 1.0) -> Maker:
    """Of ALiBi, with a factor for its published slopes."""

    def make(sizes: Sizes) -> Hooks:
        slopes = scale(sizes) * torch.from_numpy(alibi_slopes(sizes.num_heads))

        def columns(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            places = torch.arange(k.shape[-2], dtype=torch.float64) - k.shape[-2] // 2
            return _wider(q, k, slopes, places)

        return Hooks(
            bias=lambda m, places, dtype: alibi_bias(slopes.to(dtype), *_span(m, places), causal=False),
            columns=columns,
        )

    return make


def _wider(q: Tensor, k: Tensor, slopes: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
    """Queries and keys with the columns that ALiBi with these slopes takes at these places, and no padding."""
    width = q.shape[-1] + column_count(q.dtype, xp)
    return widen(q, k, slopes * math.sqrt(q.shape[-1]), places, width, xp, q.dtype)


def _fire(sizes: Sizes) -> Hooks:
    width, heads = 32, sizes.num_heads
    network = [random(*shape).float() for shape in ((width,), (width,), (heads, width), (heads,))]
    c, threshold = torch.tensor(0.1), torch.tensor(float(sizes.trained))

    def bias(m: int, places: Tensor, dtype: torch.dtype) -> Tensor:
        w, v, out, start = (x.to(dtype) for x in network)
        return fire_bias(w, v, out, start, *_span(m, places), c=c, threshold=threshold)

    return Hooks(bias=bias, parameters=(*network, c, threshold))


def _shaw(sizes: Sizes) -> Hooks:
    tables = tuple(random(2 * 16 + 1, sizes.head_dim).float() for _ in range(2))

    def attend(q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        of_keys, of_values = (table.to(q.dtype) for table in tables)
        last = places[-q.shape[-2] :]
        return shaw_attention(
            q, k, v, of_keys, of_values, mask=mask, query_positions=last, key_positions=places
        )[0]

    return Hooks(attend=attend, parameters=tables)


def _xpos(scale_base: Callable[[Sizes], float]) -> Maker:
    return lambda sizes: Hooks(
        turn=lambda q, k, places: apply_xpos(q, k, places[-q.shape[-2] :], scale_base=scale_base(sizes))
    )


def _log_n(first: Maker) -> Maker:
    """Of what is turned as by `first`, and then the queries multiplied."""

    def make(sizes: Sizes) -> Hooks:
        before = first(sizes).turn

        def turn(q: Tensor, k: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
            if before is not None:
                q, k = before(q, k, places)
            factor = logn_scale(places[-q.shape[-2] :], sizes.trained, dtype=q.dtype)
            return q * factor[:, None], k

        return Hooks(turn=turn)

    return make


def _forget_gate(sizes: Sizes) -> Hooks:
    """Gates that are made of the keys of all heads."""
    matrix = random(sizes.dim, sizes.num_heads).float() / math.sqrt(sizes.dim)
    start = torch.zeros(sizes.num_heads)

    def log_gates(k: Tensor) -> Tensor:
        gates = k.transpose(0, 1).flatten(1) @ matrix.to(k.dtype) + start.to(k.dtype)
        return logsigmoid(gates).mT

    def attend(q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        return dot_product_attention(q, k, v, bias=forget_bias(log_gates(k), q.shape[-2]))[0]

    def columns(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        """As ALiBi with slopes of 1, with the sums of gates as positions."""
        return _wider(q, k, torch.ones(len(q), dtype=torch.float64), forget_positions(log_gates(k)))

    return Hooks(attend=attend, columns=columns, parameters=(matrix, start))


def _counting(sizes: Sizes) -> Hooks:
    """CoPE, up to 64."""
    table = random(65, sizes.head_dim).float()

    def attend(q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        gates = (q @ k.mT / math.sqrt(sizes.head_dim)).sigmoid()
        positions = contextual_positions(gates, max_position=len(table) - 1)
        bias = contextual_bias(q, table.to(q.dtype), positions)
        return dot_product_attention(q, k, v, bias=bias, mask=mask)[0]

    return Hooks(attend=attend, parameters=(table,))


def _window(keys: Callable[[Sizes], int]) -> Maker:
    """Of RoPE whose queries see so many keys, themselves among them."""

    def make(sizes: Sizes) -> Hooks:
        def bias(m: int, places: Tensor, dtype: torch.dtype) -> Tensor:
            outside = (places - places[-m:, None]).abs() >= keys(sizes)
            return hide(outside, dtype)

        return replace(_ROPE(sizes), bias=bias, keys_seen=keys(sizes))

    return make


_SINKS = 4


def _sinks(sizes: Sizes) -> Hooks:
    """RoPE in a window as long as the training, and the first keys, as if they stood at the window's far end."""
    keys = sizes.trained

    def attend(q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        t, u = places[-q.shape[-2] :], places
        near = apply_rotary(q, t) @ apply_rotary(k, u).mT
        # In a cache of the sinks and the window the query never stands behind its end.
        first, last = k[:, :_SINKS], (t - places[0]).clamp(max=keys - 1)
        far = apply_rotary(q, last) @ apply_rotary(first, first.shape[1]).mT
        scores = torch.cat([far, near[..., _SINKS:]], dim=-1) / math.sqrt(q.shape[-1])
        outside = (u - t[:, None]).abs() >= keys
        outside[:, :_SINKS] = False
        outside = outside if mask is None else outside | mask
        return dot_product_attention(torch.zeros_like(q), k, v, bias=scores, mask=outside)[0]

    return replace(_ROPE(sizes), attend=attend, keys_seen=keys + _SINKS)


def _dropped(sizes: Sizes) -> Hooks:
    """RoPE in training, and none for longer texts."""
    return Hooks() if sizes.factor > 1 else _ROPE(sizes)


def _scaled(sizes: Sizes) -> Hooks:
    """Positions from 0 to 1, in every column."""

    def add(x: Tensor, places: Tensor) -> Tensor:
        share = places[-len(x) :].double() / places[-1].clamp(min=1)
        return x + share[:, None].to(x.dtype)

    return Hooks(add=add)


def _bumps(sizes: Sizes) -> Hooks:
    """As many centres as the model is wide, past both ends; as wide as they lie apart, a position at least."""
    centers = np.linspace(-4, sizes.length + 3, sizes.dim)
    sigma = max(float(centers[1] - centers[0]), 1.0)
    return Hooks(add=lambda x, places: x + rbf_encoding(places[-len(x) :], centers, sigma, dtype=x.dtype))


def _mixed(sizes: Sizes) -> Hooks:
    """A direction for each pair and head, and these are trained."""
    angles = random(sizes.num_heads)
    omega = torch.from_numpy(
        np.stack([mixed_frequencies(sizes.head_dim, float(angle)) for angle in angles])
    ).float()

    def turned(x: Tensor, places: Tensor) -> Tensor:
        heads = zip(x, omega, strict=True)
        return torch.stack([apply_rotary_axes(head, places[-len(head) :], w) for head, w in heads])

    return Hooks(turn=lambda q, k, places: (turned(q, places), turned(k, places)), parameters=(omega,))


_MARKS = 8  # columns of a code of nodes


def _nodes(codes: Callable[[np.ndarray], np.ndarray]) -> Maker:
    """Of a graph: the columns of its nodes, by a trained matrix as wide as the model."""

    def make(sizes: Sizes) -> Hooks:
        matrix = random(_MARKS, sizes.dim).float()

        def add(x: Tensor, graph: Tensor) -> Tensor:
            columns = torch.from_numpy(np.nan_to_num(codes(graph.numpy())))[-len(x) :]
            return x + columns.to(x.dtype) @ matrix[: columns.shape[1]].to(x.dtype)

        return Hooks(add=add, parameters=(matrix,))

    return make


def _anchors(graph: np.ndarray) -> np.ndarray:
    """Two nodes: one may do for a path, but not for a ring."""
    return 1 / (1 + anchor_distances(graph, range(min(2, len(graph)))))


def _waves(graph: np.ndarray) -> np.ndarray:
    return laplacian_eigenvectors(graph, min(_MARKS, len(graph) - 1)).vectors if len(graph) > 1 else 0 * graph


def _distances(sizes: Sizes) -> Hooks:
    """A number for each distance and head, the last of them for nodes without a path."""
    table = random(_PATHS, sizes.num_heads).float()

    def bias(m: int, graph: Tensor, dtype: torch.dtype) -> Tensor:
        distance = anchor_distances(graph.numpy(), range(len(graph)))[-m:]
        apart = torch.from_numpy(np.minimum(distance, _PATHS - 1)).long()
        return table.to(dtype)[apart].movedim(-1, 0)

    return Hooks(bias=bias, parameters=(table,))


_PATHS = 512
"""Distances that Graphormer's released code tells apart, those without a path among them."""


def _heads(sizes: Sizes) -> tuple[int, ...]:
    return (sizes.num_heads,)


_LLAMA_TOKENS, _ALIBI_TOKENS = 4096, 1024
"""The trained length of Llama 2, whose base is 10,000, and one for which ALiBi's slopes were published."""

CANDIDATES = {
    each.name: each
    for each in (
        Candidate("none", "order.md#causal-mask", lambda sizes: Hooks()),
        Candidate("none_logn", "extrapolation.md#spread", _log_n(lambda sizes: Hooks())),
        Candidate("integer", "naive.md#integer-code", _codes(integer_encoding)),
        Candidate("scaled", "naive.md#scaled", _scaled),
        Candidate("one_hot", "naive.md#one-hot", _codes(one_hot_encoding)),
        Candidate("sinusoidal", "sinusoidal.md", _codes(sinusoidal_encoding)),
        Candidate("sinusoidal_offset", "extrapolation.md#rows", _codes(sinusoidal_encoding)),
        Candidate(
            "periodic",
            "times.md#circle",
            lambda sizes: _codes(lambda t, dim: periodic_encoding(t, sizes.trained, harmonics=dim // 2))(
                sizes
            ),
        ),
        Candidate("rbf", "locality.md#bumps", _bumps),
        Candidate("learned", "learned.md", _learned("error")),
        Candidate("learned_clamped", "learned.md#beyond", _learned("clamp")),
        Candidate("learned_stretched", "learned.md#interpolation", _learned("stretch")),
        Candidate("learned_offset", "extrapolation.md#rows", _learned("starts"), planned=True),
        Candidate("rotary", "rotary.md", _ROPE),
        Candidate(
            "rotary_half",
            "layouts.md#conventions",
            _rotary(lambda sizes, n: None, rotary_dim=lambda sizes: sizes.head_dim // 2),
        ),
        Candidate(
            "rotary_proportional",
            "longer.md#others",
            _rotary(lambda sizes, n: proportional_frequencies(sizes.head_dim, 0.75)),
        ),
        Candidate(
            "rotary_large_base",
            "longer.md#ntk",
            _rotary(lambda sizes, n: sinusoidal_frequencies(sizes.head_dim, 500_000.0)),
        ),
        Candidate(
            "rotary_matched",
            "longer.md#ntk",
            _rotary(
                lambda sizes, n: sinusoidal_frequencies(
                    sizes.head_dim, 10_000.0 * sizes.trained / _LLAMA_TOKENS
                )
            ),
            result="rotary_slowest_base",
        ),
        Candidate(
            "rotary_base",
            "longer.md#ntk",
            _rotary(
                lambda sizes, n: sinusoidal_frequencies(
                    sizes.head_dim, 500_000.0 if sizes.factor > 1 else 10_000.0
                )
            ),
        ),
        Candidate(
            "rotary_linear",
            "longer.md#linear",
            _rotary(lambda sizes, n: linear_frequencies(sizes.head_dim, sizes.factor)),
        ),
        Candidate(
            "rotary_ntk",
            "longer.md#ntk",
            _rotary(lambda sizes, n: ntk_frequencies(sizes.head_dim, sizes.factor)),
        ),
        Candidate(
            "rotary_dynamic",
            "longer.md#ntk",
            _rotary(
                lambda sizes, n: dynamic_ntk_frequencies(sizes.head_dim, 1, n, original_length=sizes.trained)
            ),
        ),
        Candidate(
            "rotary_yarn",
            "longer.md#yarn",
            _rotary(
                lambda sizes, n: yarn_frequencies(
                    sizes.head_dim, sizes.factor, original_length=sizes.trained
                ),
                lambda sizes: yarn_attention_factor(sizes.factor),
            ),
        ),
        Candidate(
            "rotary_llama3",
            "longer.md#others",
            _rotary(
                lambda sizes, n: llama3_frequencies(
                    sizes.head_dim, sizes.factor, original_length=sizes.trained
                )
            ),
        ),
        Candidate(
            "rotary_longrope",
            "longer.md#others",
            _rotary(
                lambda sizes, n: longrope_frequencies(
                    sizes.head_dim,
                    np.ones(sizes.head_dim // 2),
                    np.geomspace(1, max(sizes.factor, 2), sizes.head_dim // 2),
                    n,
                    original_length=sizes.trained,
                ),
                lambda sizes: longrope_attention_factor(sizes.factor, original_length=sizes.trained),
            ),
        ),
        Candidate("rotary_logn", "extrapolation.md#spread", _log_n(_ROPE)),
        Candidate("rotary_dropped", "extrapolation.md#experiment", _dropped),
        Candidate(
            "rotary_alternating",
            "extrapolation.md#experiment",
            _ROPE,
            other_layers=lambda sizes: Hooks(),
        ),
        Candidate("xpos", "rotary.md#decay", _xpos(lambda sizes: 512.0), result="xpos_512"),
        Candidate("xpos_near", "rotary.md#decay", _xpos(lambda sizes: sizes.trained / 2), result="xpos"),
        Candidate("alibi", "alibi.md", _alibi()),
        Candidate("alibi_short", "alibi.md#slopes", _alibi(lambda sizes: _ALIBI_TOKENS / sizes.trained)),
        Candidate(
            "table",
            "relative.md#term",
            _biased(relative_bias, lambda sizes: (2 * 128 + 1, sizes.num_heads)),
        ),
        Candidate("t5", "relative.md#t5", _biased(t5_bias, lambda sizes: (32, sizes.num_heads))),
        Candidate("kerple", "relative.md#kerple", _biased(kerple_bias, _heads, _heads)),
        Candidate("fire", "relative.md#fire", _fire),
        Candidate("shaw", "relative.md#shaw", _shaw),
        Candidate("forget_gate", "contextual.md#gate", _forget_gate, causal=True),
        Candidate("cope", "contextual.md#cope", _counting, causal=True),
        Candidate("window", "locality.md#soft-hard", _window(lambda sizes: sizes.trained // 2)),
        Candidate("rotary_window", "extrapolation.md#experiment", _window(lambda sizes: sizes.trained)),
        Candidate("rotary_sinks", "extrapolation.md#experiment", _sinks),
        Candidate(
            "hybrid",
            "extrapolation.md#experiment",
            _window(lambda sizes: sizes.trained // 2),
            other_layers=lambda sizes: Hooks(),
        ),
        Candidate("grid_code", "grids.md#axes", _codes(coordinate_encoding), "grid"),
        Candidate("grid_table", "grids.md#resize", _learned("grid"), "grid"),
        Candidate("rotary_axial", "grids.md#rotary", _axes(lambda dim: axial_frequencies(dim, 2)), "grid"),
        Candidate("rotary_mixed", "grids.md#rotary", _mixed, "grid"),
        Candidate(
            "mrope",
            "grids.md#mrope",
            _axes(lambda dim: mrope_frequencies(dim, (dim // 8, 3 * dim // 16, 3 * dim // 16))),
            "grid",
        ),
        Candidate(
            "time_code",
            "times.md#axis",
            _codes(lambda t, dim: time_encoding(t, dim, shortest=0.5, longest=3600.0)),
            "time",
        ),
        Candidate(
            "rotary_time",
            "times.md#models",
            _rotary(lambda sizes, n: time_frequencies(sizes.head_dim, shortest=0.5, longest=3600.0)),
            "time",
        ),
        Candidate(
            "calendar",
            "times.md#periodic",
            _codes(lambda t, dim: periodic_encoding(t, 86400.0, harmonics=dim // 2)),
            "time",
        ),
        Candidate("anchors", "graphs.md#anchors", _nodes(_anchors), "graph"),
        Candidate("laplacian", "graphs.md#waves", _nodes(_waves), "graph"),
        Candidate(
            "walks",
            "graphs.md#walks",
            _nodes(lambda graph: random_walk_probabilities(graph, _MARKS)),
            "graph",
        ),
        Candidate("graph_distance", "graphs.md#transformer", _distances, "graph"),
    )
}
"""Every scheme of the book, by name."""
