"""The schemes of the sweep: what is added to embeddings, done to queries and keys, added to scores, or masked.

A scheme is data. One that begins with another takes over its trained weights and changes only how they are
used at greater lengths; some of these are trained a little more there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor, nn

from posenc.nn.alibi import AlibiBias
from posenc.nn.learned import LearnedEncoding
from posenc.nn.relative import FireBias, KerpleBias, T5Bias
from posenc.nn.rotary import RotaryEmbedding
from posenc.nn.sinusoidal import SinusoidalEncoding
from posenc.rotary.scaling import (
    dynamic_ntk_frequencies,
    linear_frequencies,
    ntk_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)
from posenc.rotary.xpos import apply_xpos
from posenc.sinusoidal import sinusoidal_frequencies
from posenc.times import periodic_encoding

__all__ = ["SCHEMES", "Scheme"]

TRAINED, LONGEST = 32, 256
"""The length of training and the longest one that is asked for."""


@dataclass(frozen=True)
class Scheme:
    """What tells one scheme from another. The plainest has no position at all."""

    name: str

    begins: str | None = None
    """The scheme whose trained weights this one takes over; None: it is trained from the start."""

    tuned: int | None = None
    """The length of the short training after that; None: there is none."""

    added: str | None = None
    """sinusoidal, periodic, learned or clamped: what is added to the embeddings."""

    random_start: bool = False
    """Whether each batch of training starts at a random position, so that all up to the longest are seen."""

    rotary: str | None = None
    """all, half (of the width), every other (layer) or xpos: what is turned."""

    frequencies: str = "usual"
    """usual, linear, ntk, dynamic, yarn: how RoPE is stretched to the longest length."""

    base: float = 10000.0

    bias: str | None = None
    """alibi, t5, kerple or fire: what is added to the scores."""

    log_n: bool = False
    """Whether the scores of a query with n keys are multiplied by log n / log L, from n = L on."""

    window: int | None = None
    """How many keys a query sees, itself among them; None: all before it."""

    sinks: int = 0
    """How many of the first keys it sees beside these, as if they stood at the window's far end."""

    learned_sink: bool = False
    """Whether each head has a trained score for taking nothing."""

    def adder(self, dim: int) -> nn.Module | None:
        """The layer that adds codes to embeddings (batch, n, dim)."""
        if self.added is None:
            return None
        if self.added == "sinusoidal":
            return SinusoidalEncoding(dim, LONGEST, dropout=0.0)
        if self.added == "periodic":
            return PeriodicCodes(dim)
        rows = TRAINED if self.added == "clamped" else LONGEST
        return LearnedEncoding(dim, rows, dropout=0.0, overflow="clamp")


class PeriodicCodes(nn.Module):
    """Adds sinusoids that all repeat after exactly the length of training."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        # Harmonics above half the length give the same samples as lower ones, and so nothing new.
        codes = periodic_encoding(
            torch.arange(TRAINED), TRAINED, harmonics=range(1, TRAINED // 2 + 1), dtype=torch.float32
        )
        self.codes = nn.functional.pad(codes, (0, dim - codes.shape[1]))

    def forward(self, x: Tensor, *, offset: int = 0) -> Tensor:
        return x + self.codes[(torch.arange(x.shape[1]) + offset) % TRAINED]


class Positions(nn.Module):
    """What a scheme does in one layer: to queries and keys (batch, heads, n, width), and to their scores."""

    def __init__(self, scheme: Scheme, layer: int, width: int, num_heads: int) -> None:
        super().__init__()
        self.scheme, self.width = scheme, width
        self.turns = scheme.rotary is not None and not (scheme.rotary == "every other" and layer % 2)
        self.bias = _bias(scheme.bias, num_heads)
        self.sink = nn.Parameter(torch.zeros(num_heads)) if scheme.learned_sink else None
        self.rotary = lru_cache(self._rotary)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Query, key and value, and what is added to their scores, -inf where a key is not seen."""
        scheme, n = self.scheme, query.shape[2]
        added = self._mask(n)
        if self.bias is not None:
            added = added + self.bias(n)
        if self.turns and scheme.rotary == "xpos":
            query, key = apply_xpos(query, key, n, base=scheme.base, scale_base=TRAINED / 2, center=n / 2)
        elif self.turns and scheme.sinks:
            query, key = self._turn_with_sinks(query, key)
        elif self.turns:
            query, key = self.rotary(n)(query, key)
        if scheme.log_n:
            query = query * (torch.arange(1, n + 1).log() / math.log(TRAINED)).clamp(min=1)[:, None]
        if self.sink is not None:
            # One more key, of zeros: the trained score is all it has, and its value gives nothing.
            key, value = (nn.functional.pad(x, (0, 0, 0, 1)) for x in (key, value))
            sink = self.sink[:, None, None].expand(-1, n, 1)
            added = torch.cat([added.expand(len(sink), n, n), sink], dim=2)
        return query, key, value, added

    def _mask(self, n: int) -> Tensor:
        behind = torch.arange(n)[:, None] - torch.arange(n)
        seen = behind >= 0
        if self.scheme.window is not None:
            seen &= (behind < self.scheme.window) | (torch.arange(n) < self.scheme.sinks)
        return torch.zeros(n, n).masked_fill(~seen, -math.inf)

    def _turn_with_sinks(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Twice as wide, so that a score is one of two: with a sink, or with a key in the window."""
        rotary, n, window = self.rotary(query.shape[2]), query.shape[2], self.scheme.window
        assert window is not None
        near, key = rotary(query, key)
        # In the cache of a window the sinks are the first keys, and the query never stands behind its end.
        far, _ = rotary(query, query, positions=torch.arange(n).clamp(max=window - 1))
        sink = (torch.arange(n) < self.scheme.sinks)[:, None]
        # The scale of the scores is that of the width, which has doubled.
        both = torch.cat([near, far], dim=-1) * math.sqrt(2)
        return both, torch.cat([key.masked_fill(sink, 0), key.masked_fill(~sink, 0)], dim=-1)

    def _rotary(self, n: int) -> RotaryEmbedding:
        scheme, width = self.scheme, self.width // 2 if self.scheme.rotary == "half" else self.width
        frequencies, scale = stretched(scheme.frequencies, width, n, scheme.base)
        rotary_dim = width if scheme.rotary == "half" else None
        return RotaryEmbedding(
            self.width, LONGEST, rotary_dim=rotary_dim, frequencies=frequencies, scale=scale
        )


def _bias(kind: str | None, num_heads: int) -> nn.Module | None:
    if kind == "alibi":
        return AlibiBias(num_heads, causal=False)
    if kind == "t5":
        return T5Bias(num_heads, bidirectional=False)
    if kind == "kerple":
        return KerpleBias(num_heads)
    if kind == "fire":
        return FireBias(num_heads, threshold=float(TRAINED))
    return None


def stretched(how: str, dim: int, n: int, base: float = 10000.0) -> tuple[np.ndarray, float]:
    """The frequencies of RoPE at length n, made for the longest length, and the factor of queries and keys.

    >>> [round(float(stretched(how, 16, 256)[0][-1]) * 1e4, 3) for how in ("usual", "linear", "ntk")]
    [3.162, 0.395, 0.395]
    """
    factor = LONGEST / TRAINED
    if how == "linear":
        return linear_frequencies(dim, factor, base=base), 1.0
    if how == "ntk":
        return ntk_frequencies(dim, factor, base=base), 1.0
    if how == "dynamic":
        return dynamic_ntk_frequencies(dim, 1, n, original_length=TRAINED, base=base), 1.0
    if how == "yarn":
        frequencies = yarn_frequencies(dim, factor, original_length=TRAINED, base=base)
        return frequencies, yarn_attention_factor(factor)
    return sinusoidal_frequencies(dim, base), 1.0


_LARGE, _SMALL = 1e6, 6.0
"""Bases of RoPE at which next to no pair turns fully within the trained length, and at which every pair does."""

SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("none"),
        Scheme("none_logn", begins="none", log_n=True),
        Scheme("sinusoidal", added="sinusoidal"),
        Scheme("periodic", added="periodic"),
        Scheme("sinusoidal_offset", added="sinusoidal", random_start=True),
        Scheme("learned", added="learned"),
        Scheme("learned_clamped", begins="learned", added="clamped"),
        Scheme("learned_offset", added="learned", random_start=True),
        Scheme("rotary", rotary="all"),
        Scheme("rotary_tuned", rotary="all", begins="rotary", tuned=LONGEST),
        *(
            Scheme(f"rotary_{how}{tuned}", rotary="all", frequencies=how, begins="rotary", tuned=length)
            for how in ("linear", "ntk", "dynamic", "yarn")
            for tuned, length in (("", None), ("_tuned", LONGEST))
        ),
        Scheme("rotary_base", rotary="all", base=_LARGE, begins="rotary"),
        Scheme("rotary_base_tuned", rotary="all", base=_LARGE, begins="rotary", tuned=LONGEST),
        Scheme("rotary_large_base", rotary="all", base=_LARGE),
        Scheme("rotary_small_base", rotary="all", base=_SMALL),
        Scheme("rotary_half", rotary="half"),
        Scheme("rotary_alternating", rotary="every other"),
        Scheme("rotary_dropped", begins="rotary"),
        Scheme("rotary_dropped_tuned", begins="rotary", tuned=TRAINED),
        Scheme("rotary_logn", rotary="all", begins="rotary", log_n=True),
        Scheme("rotary_window", rotary="all", begins="rotary", window=TRAINED),
        Scheme("rotary_sinks", rotary="all", begins="rotary", window=TRAINED, sinks=4),
        Scheme("xpos", rotary="xpos"),
        Scheme("alibi", bias="alibi"),
        Scheme("t5", bias="t5"),
        Scheme("kerple", bias="kerple"),
        Scheme("fire", bias="fire"),
        Scheme("window", rotary="all", window=TRAINED // 2),
        Scheme("window_sink", rotary="all", window=TRAINED // 2, learned_sink=True),
    )
}
"""All schemes, those that others begin with before these."""
