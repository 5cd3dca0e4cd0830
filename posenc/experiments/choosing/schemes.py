"""The schemes of the book, each as what it does at the places where a position can enter attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import torch
from array_api_compat import torch as xp
from torch import Tensor
from torch.nn.functional import logsigmoid, pad, scaled_dot_product_attention

from posenc.alibi import alibi_bias, alibi_slopes, widen
from posenc.attention import dot_product_attention
from posenc.contextual import contextual_bias, contextual_positions, forget_bias, forget_positions
from posenc.extrapolation import logn_scale
from posenc.graphs import anchor_distances, laplacian_eigenvectors, random_walk_probabilities
from posenc.grids import coordinate_encoding, interpolate_grid
from posenc.learned import interpolate_table, learned_encoding
from posenc.locality import rbf_encoding
from posenc.naive import integer_encoding, one_hot_encoding
from posenc.nn import AlibiAttention
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

__all__ = ["COLUMNS", "SCHEMES", "Scheme", "Setting", "Ways", "random"]

Lies = Literal["line", "grid", "time", "graph"]


@dataclass(frozen=True)
class Setting:
    """The layer of attention that a scheme is made for, and the texts that it reads."""

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
class Ways:
    """What a scheme does in one layer; None where it does nothing.

    Places are those of all tokens so far, as `Scheme.lies` says; the tokens in hand are the last m of them.
    """

    add: Callable[[Tensor, Tensor], Tensor] | None = None
    """(m, dim) embeddings and places to embeddings with codes."""

    turn: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]] | None = None
    """Queries and keys (heads, m, head_dim), and places, to queries and keys."""

    bias: Callable[[int, Tensor, torch.dtype], Tensor] | None = None
    """m and places to what is added to the scores, (heads, m, n) or (m, n); −inf where a key is not seen."""

    attend: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor | None], Tensor] | None = None
    """An attention of its own: queries (heads, m, head_dim), keys and values (heads, n, head_dim), places, mask."""

    fused: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    """Causal attention with `bias` at 0..n − 1 that makes no bias; None: there is no such thing."""

    parameters: tuple[Tensor, ...] = ()
    """What is trained."""


@dataclass(frozen=True)
class Scheme:
    """A scheme of the book."""

    name: str
    section: str
    """Where the book explains it: a page and a heading."""
    make: Callable[[Setting], Ways]
    lies: Lies = "line"
    """How its tokens lie: in a line, on a grid (a column for each coordinate), in time, or in a graph."""
    causal: bool = False
    """Whether it is made for the causal mask, which is in it."""


COLUMNS = 4
"""Of a grid, which has as many rows as it needs."""


@lru_cache(maxsize=8)
def random(*shape: int) -> Tensor:
    """The same numbers each time, whatever the state of torch's own generator. Not to be written to."""
    return torch.from_numpy(np.random.default_rng(0).normal(size=shape))


# --- Makers


def _codes(encode: Callable[[Tensor, int], Tensor]) -> Callable[[Setting], Ways]:
    """Of what is added: places and the width of the model to codes."""

    def make(setting: Setting) -> Ways:
        return Ways(add=lambda x, places: x + encode(places[-len(x) :], setting.dim).to(x.dtype))

    return make


def _rotary(
    frequencies: Callable[[Setting, int], np.ndarray | None],
    scale: Callable[[Setting], float] = lambda setting: 1.0,
    rotary_dim: Callable[[Setting], int | None] = lambda setting: None,
) -> Callable[[Setting], Ways]:
    """Of RoPE, with the frequencies that belong to a setting and to the number of positions so far."""

    def make(setting: Setting) -> Ways:
        def turn(q: Tensor, k: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
            omega = frequencies(setting, int(places[-1]) + 1)
            q, k = (
                apply_rotary(
                    x,
                    places[-x.shape[-2] :],
                    frequencies=omega,
                    scale=scale(setting),
                    rotary_dim=rotary_dim(setting),
                )
                for x in (q, k)
            )
            return q, k

        return Ways(turn=turn)

    return make


def _axes(frequencies: Callable[[int], np.ndarray]) -> Callable[[Setting], Ways]:
    """Of RoPE on a grid."""

    def make(setting: Setting) -> Ways:
        omega = frequencies(setting.head_dim)

        def turn(q: Tensor, k: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
            t = places[-q.shape[-2] :]
            t = pad(t, (len(omega) - t.shape[1], 0))  # an image stands at time 0
            return apply_rotary_axes(q, t, omega), apply_rotary_axes(k, t, omega)

        return Ways(turn=turn)

    return make


def _learned(kind: Literal["error", "clamp", "stretch", "grid"]) -> Callable[[Setting], Ways]:
    """Of a table with a row for each token of the training, and what is done beyond."""

    def make(setting: Setting) -> Ways:
        table = random(setting.trained, setting.dim).float()
        if setting.length > setting.trained and kind == "stretch":
            table = interpolate_table(table, setting.length)
        if setting.length > setting.trained and kind == "grid":
            old, new = ((n // COLUMNS, COLUMNS) for n in (setting.trained, setting.length))
            table = interpolate_grid(table, old, new)

        def add(x: Tensor, places: Tensor) -> Tensor:
            t = places[-len(x) :]
            t = t @ torch.tensor([COLUMNS, 1]) if kind == "grid" else t
            return x + learned_encoding(
                t, table.to(x.dtype), overflow="clamp" if kind == "clamp" else "error"
            )

        return Ways(add=add, parameters=(table,))

    return make


def _biased(
    bias: Callable[..., Tensor], *shapes: Callable[[Setting], tuple[int, ...]], **options: Any
) -> Callable[[Setting], Ways]:
    """Of a bias by parameters of these shapes, all of them above 0."""

    def make(setting: Setting) -> Ways:
        parameters = tuple(random(*shape(setting)).abs().float() for shape in shapes)

        def matrix(m: int, places: Tensor, dtype: torch.dtype) -> Tensor:
            return bias(*(p.to(dtype) for p in parameters), *_span(m, places), **options)

        return Ways(bias=matrix, parameters=parameters)

    return make


def _span(m: int, places: Tensor) -> tuple[Any, Any]:
    """The places of m queries and of all keys; counts where they are 0, 1, 2, ..., which is less work."""
    if torch.equal(places, torch.arange(len(places))):
        return m, len(places)
    return places[-m:], places


def _alibi(setting: Setting) -> Ways:
    attention, slopes = AlibiAttention(setting.num_heads), torch.from_numpy(alibi_slopes(setting.num_heads))
    return Ways(
        bias=lambda m, places, dtype: alibi_bias(slopes.to(dtype), *_span(m, places), causal=False),
        fused=lambda q, k, v: attention(q[None], k[None], v[None])[0],
    )


def _fire(setting: Setting) -> Ways:
    width, heads = 32, setting.num_heads
    network = [random(*shape).float() for shape in ((width,), (width,), (heads, width), (heads,))]
    c, threshold = torch.tensor(0.1), torch.tensor(float(setting.trained))

    def bias(m: int, places: Tensor, dtype: torch.dtype) -> Tensor:
        w, v, out, start = (x.to(dtype) for x in network)
        return fire_bias(w, v, out, start, *_span(m, places), c=c, threshold=threshold)

    return Ways(bias=bias, parameters=(*network, c, threshold))


def _shaw(setting: Setting) -> Ways:
    tables = tuple(random(2 * 16 + 1, setting.head_dim).float() for _ in range(2))

    def attend(q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        of_keys, of_values = (table.to(q.dtype) for table in tables)
        last = places[-q.shape[-2] :]
        return shaw_attention(
            q, k, v, of_keys, of_values, mask=mask, query_positions=last, key_positions=places
        )[0]

    return Ways(attend=attend, parameters=tables)


def _xpos(setting: Setting) -> Ways:
    return Ways(turn=lambda q, k, places: apply_xpos(q, k, places[-q.shape[-2] :]))


def _log_n(setting: Setting) -> Ways:
    def turn(q: Tensor, k: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        factor = logn_scale(places[-q.shape[-2] :], setting.trained, dtype=q.dtype)
        return q * factor[:, None], k

    return Ways(turn=turn)


def _forget_gate(setting: Setting) -> Ways:
    """Gates that are made of the keys of all heads."""
    matrix = random(setting.dim, setting.num_heads).float() / math.sqrt(setting.dim)
    start = torch.zeros(setting.num_heads)

    def log_gates(k: Tensor) -> Tensor:
        gates = k.transpose(0, 1).flatten(1) @ matrix.to(k.dtype) + start.to(k.dtype)
        return logsigmoid(gates).mT

    def attend(q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        return dot_product_attention(q, k, v, bias=forget_bias(log_gates(k), q.shape[-2]))[0]

    def fused(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """As `posenc.nn.AlibiAttention`, with the sums of gates as positions."""
        width = setting.head_dim + 8
        slopes = torch.full((len(q),), math.sqrt(setting.head_dim), dtype=torch.float64)
        q, k = widen(q, k, slopes, forget_positions(log_gates(k)), width, xp)
        v = pad(v, (0, 8))
        return scaled_dot_product_attention(
            q[None], k[None], v[None], is_causal=True, scale=1 / math.sqrt(setting.head_dim)
        )[0, ..., : setting.head_dim]

    return Ways(attend=attend, fused=fused, parameters=(matrix, start))


def _counting(setting: Setting) -> Ways:
    """CoPE, up to 64."""
    table = random(65, setting.head_dim).float()

    def attend(q: Tensor, k: Tensor, v: Tensor, places: Tensor, mask: Tensor | None) -> Tensor:
        gates = (q @ k.mT / math.sqrt(setting.head_dim)).sigmoid()
        positions = contextual_positions(gates, max_position=len(table) - 1)
        bias = contextual_bias(q, table.to(q.dtype), positions)
        return dot_product_attention(q, k, v, bias=bias, mask=mask)[0]

    return Ways(attend=attend, parameters=(table,))


def _window(setting: Setting) -> Ways:
    """RoPE whose queries see half of the trained length."""

    def bias(m: int, places: Tensor, dtype: torch.dtype) -> Tensor:
        outside = (places - places[-m:, None]).abs() >= setting.trained // 2
        return torch.zeros((), dtype=dtype).where(~outside, -math.inf)

    return replace(_rotary(lambda setting, n: None)(setting), bias=bias)


def _bumps(setting: Setting) -> Ways:
    """As many centres as the model is wide, past both ends; as wide as they lie apart, a position at least."""
    centers = np.linspace(-4, setting.length + 3, setting.dim)
    sigma = max(float(centers[1] - centers[0]), 1.0)
    return Ways(add=lambda x, places: x + rbf_encoding(places[-len(x) :], centers, sigma, dtype=x.dtype))


def _mixed(setting: Setting) -> Ways:
    """A direction for each pair and head, and these are trained."""
    angles = random(setting.num_heads)
    omega = torch.from_numpy(
        np.stack([mixed_frequencies(setting.head_dim, float(angle)) for angle in angles])
    ).float()

    def turned(x: Tensor, places: Tensor) -> Tensor:
        heads = zip(x, omega, strict=True)
        return torch.stack([apply_rotary_axes(head, places[-len(head) :], w) for head, w in heads])

    return Ways(turn=lambda q, k, places: (turned(q, places), turned(k, places)), parameters=(omega,))


_MARKS = 8  # columns of a code of nodes


def _nodes(codes: Callable[[np.ndarray], np.ndarray]) -> Callable[[Setting], Ways]:
    """Of a graph: the columns of its nodes, by a trained matrix as wide as the model."""

    def make(setting: Setting) -> Ways:
        matrix = random(_MARKS, setting.dim).float()

        def add(x: Tensor, graph: Tensor) -> Tensor:
            columns = torch.from_numpy(np.nan_to_num(codes(graph.numpy())))[-len(x) :]
            return x + columns.to(x.dtype) @ matrix[: columns.shape[1]].to(x.dtype)

        return Ways(add=add, parameters=(matrix,))

    return make


def _anchors(graph: np.ndarray) -> np.ndarray:
    """Two nodes: one may do for a path, but not for a ring."""
    return 1 / (1 + anchor_distances(graph, range(min(2, len(graph)))))


def _waves(graph: np.ndarray) -> np.ndarray:
    return laplacian_eigenvectors(graph, min(_MARKS, len(graph) - 1)).vectors if len(graph) > 1 else 0 * graph


def _distances(setting: Setting) -> Ways:
    slopes = torch.from_numpy(alibi_slopes(setting.num_heads))

    def bias(m: int, graph: Tensor, dtype: torch.dtype) -> Tensor:
        distance = torch.from_numpy(anchor_distances(graph.numpy(), range(len(graph))))
        return -(slopes[:, None, None] * distance[-m:]).to(dtype)

    return Ways(bias=bias)


def _heads(setting: Setting) -> tuple[int, ...]:
    return (setting.num_heads,)


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("none", "order.md#causal-mask", lambda setting: Ways()),
        Scheme("none_logn", "extrapolation.md#spread", _log_n),
        Scheme("integer", "naive.md#integer-code", _codes(integer_encoding)),
        Scheme("one_hot", "naive.md#one-hot", _codes(one_hot_encoding)),
        Scheme("sinusoidal", "sinusoidal.md", _codes(sinusoidal_encoding)),
        Scheme(
            "periodic",
            "times.md#circle",
            lambda setting: _codes(lambda t, dim: periodic_encoding(t, setting.trained, harmonics=dim // 2))(
                setting
            ),
        ),
        Scheme("rbf", "locality.md#bumps", _bumps),
        Scheme("learned", "learned.md", _learned("error")),
        Scheme("learned_clamped", "learned.md#beyond", _learned("clamp")),
        Scheme("learned_stretched", "learned.md#interpolation", _learned("stretch")),
        Scheme("rotary", "rotary.md", _rotary(lambda setting, n: None)),
        Scheme(
            "rotary_half",
            "rotary.md#longer",
            _rotary(lambda setting, n: None, rotary_dim=lambda setting: setting.head_dim // 2),
        ),
        Scheme(
            "rotary_proportional",
            "rotary.md#longer",
            _rotary(lambda setting, n: proportional_frequencies(setting.head_dim, 0.75)),
        ),
        Scheme(
            "rotary_large_base",
            "rotary.md#longer",
            _rotary(lambda setting, n: sinusoidal_frequencies(setting.head_dim, 500_000.0)),
        ),
        Scheme(
            "rotary_base",
            "rotary.md#longer",
            _rotary(
                lambda setting, n: sinusoidal_frequencies(
                    setting.head_dim, 500_000.0 if setting.factor > 1 else 10_000.0
                )
            ),
        ),
        Scheme(
            "rotary_linear",
            "rotary.md#longer",
            _rotary(lambda setting, n: linear_frequencies(setting.head_dim, setting.factor)),
        ),
        Scheme(
            "rotary_ntk",
            "rotary.md#longer",
            _rotary(lambda setting, n: ntk_frequencies(setting.head_dim, setting.factor)),
        ),
        Scheme(
            "rotary_dynamic",
            "rotary.md#longer",
            _rotary(
                lambda setting, n: dynamic_ntk_frequencies(
                    setting.head_dim, 1, n, original_length=setting.trained
                )
            ),
        ),
        Scheme(
            "rotary_yarn",
            "rotary.md#longer",
            _rotary(
                lambda setting, n: yarn_frequencies(
                    setting.head_dim, setting.factor, original_length=setting.trained
                ),
                lambda setting: yarn_attention_factor(setting.factor),
            ),
        ),
        Scheme(
            "rotary_llama3",
            "rotary.md#longer",
            _rotary(
                lambda setting, n: llama3_frequencies(
                    setting.head_dim, setting.factor, original_length=setting.trained
                )
            ),
        ),
        Scheme(
            "rotary_longrope",
            "rotary.md#longer",
            _rotary(
                lambda setting, n: longrope_frequencies(
                    setting.head_dim,
                    np.ones(setting.head_dim // 2),
                    np.geomspace(1, max(setting.factor, 2), setting.head_dim // 2),
                    n,
                    original_length=setting.trained,
                ),
                lambda setting: longrope_attention_factor(setting.factor, original_length=setting.trained),
            ),
        ),
        Scheme("xpos", "rotary.md#decay", _xpos),
        Scheme("alibi", "alibi.md", _alibi),
        Scheme(
            "table",
            "relative.md#term",
            _biased(relative_bias, lambda setting: (2 * 128 + 1, setting.num_heads)),
        ),
        Scheme("t5", "relative.md#t5", _biased(t5_bias, lambda setting: (32, setting.num_heads))),
        Scheme("kerple", "relative.md#kerple", _biased(kerple_bias, _heads, _heads)),
        Scheme("fire", "relative.md#fire", _fire),
        Scheme("shaw", "relative.md#shaw", _shaw),
        Scheme("forget_gate", "contextual.md#gate", _forget_gate, causal=True),
        Scheme("cope", "contextual.md#cope", _counting, causal=True),
        Scheme("window", "locality.md#soft-hard", _window),
        Scheme("grid_code", "grids.md#axes", _codes(coordinate_encoding), "grid"),
        Scheme("grid_table", "grids.md#resize", _learned("grid"), "grid"),
        Scheme("rotary_axial", "grids.md#rotary", _axes(lambda dim: axial_frequencies(dim, 2)), "grid"),
        Scheme("rotary_mixed", "grids.md#rotary", _mixed, "grid"),
        Scheme(
            "mrope",
            "grids.md#mrope",
            _axes(lambda dim: mrope_frequencies(dim, (dim // 8, 3 * dim // 16, 3 * dim // 16))),
            "grid",
        ),
        Scheme(
            "time_code",
            "times.md#axis",
            _codes(lambda t, dim: time_encoding(t, dim, shortest=0.5, longest=3600.0)),
            "time",
        ),
        Scheme(
            "rotary_time",
            "times.md#models",
            _rotary(lambda setting, n: time_frequencies(setting.head_dim, shortest=0.5, longest=3600.0)),
            "time",
        ),
        Scheme(
            "calendar",
            "times.md#periodic",
            _codes(lambda t, dim: periodic_encoding(t, 86400.0, harmonics=dim // 2)),
            "time",
        ),
        Scheme("anchors", "graphs.md#anchors", _nodes(_anchors), "graph"),
        Scheme("laplacian", "graphs.md#waves", _nodes(_waves), "graph"),
        Scheme(
            "walks",
            "graphs.md#walks",
            _nodes(lambda graph: random_walk_probabilities(graph, _MARKS)),
            "graph",
        ),
        Scheme("graph_distance", "graphs.md#transformer", _distances, "graph"),
    )
}
"""Every scheme of the book, by name."""
