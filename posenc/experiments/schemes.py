"""How a tiny Transformer knows positions: what is added to embeddings, done to queries and keys, added to scores,
or masked. The one registry of the experiments.

A scheme is data. One that begins with another takes over its trained weights and changes only how they are
used at greater lengths; some of these are trained a little more there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import torch
from torch import Tensor, nn

from posenc.alibi import alibi_slopes
from posenc.experiments.transformer import hide
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

__all__ = ["LONGEST", "SCHEMES", "TRAINED", "Positions", "Scheme", "stretched"]

TRAINED, LONGEST = 32, 256
"""The length of training and the longest one that is asked for."""

Added = Literal["sinusoidal", "periodic", "learned", "clamped"]
Rotary = Literal["all", "half", "every other", "xpos"]
Frequencies = Literal["usual", "linear", "ntk", "dynamic", "yarn"]
Bias = Literal["alibi", "t5", "kerple", "fire"]


@dataclass(frozen=True)
class Scheme:
    """What tells one scheme from another. The plainest has no position at all. A kind that is not known is refused."""

    name: str

    begins: str | None = None
    """The scheme whose trained weights this one takes over; None: it is trained from the start."""

    tuned: float | None = None
    """The tokens of a short training after that, as a share of those of the first; None: there is none."""

    length: int = TRAINED
    """The length of the training, or of the short one."""

    added: Added | None = None
    """What is added to the embeddings; clamped: a learned table whose last row stands for all later ones."""

    random_start: bool = False
    """Whether each text of training starts at a random position, so that all up to the longest are seen."""

    rotary: Rotary | None = None
    """What is turned: all of the width, half of it, all in every other layer, or all with the decay of xPos."""

    frequencies: Frequencies = "usual"
    """How RoPE is stretched to the longest length."""

    yarn_factor: bool = False
    """Whether queries and keys are multiplied by YaRN's factor for the longest length."""

    base: float = 10000.0
    """Of RoPE."""

    scale_base: float = 512.0
    """Of xPos."""

    bias: Bias | None = None
    """What is added to the scores."""

    slope_factor: float = 1.0
    """By how much ALiBi's published slopes are multiplied."""

    log_n: bool = False
    """Whether the scores of a query with n keys are multiplied by log n / log L, from n = L on."""

    window: int | None = None
    """How many keys a query sees, itself among them; None: all before it. Only in layers that turn, if any do."""

    sinks: int = 0
    """How many of the first keys it sees beside these, as if they stood at the window's far end."""

    learned_sink: bool = False
    """Whether each head has a trained score for taking nothing."""

    def __post_init__(self) -> None:
        hints = get_type_hints(Scheme)
        for field in fields(self):
            value, known = getattr(self, field.name), _kinds(hints[field.name])
            if known and value not in known:
                raise ValueError(f"{field.name} must be one of {', '.join(map(str, known))}, got {value!r}")
        if self.tuned is not None and (self.begins is None or not self.tuned > 0):
            raise ValueError(f"tuned must be above 0, in a scheme that begins with another, got {self.tuned}")

    def adder(self, dim: int) -> nn.Module | None:
        """The layer that adds codes to embeddings (batch, n, dim)."""
        match self.added:
            case None:
                return None
            case "sinusoidal":
                return SinusoidalEncoding(dim, LONGEST, dropout=0.0)
            case "periodic":
                return PeriodicCodes(dim)
            case "learned" | "clamped":
                rows = TRAINED if self.added == "clamped" else LONGEST
                return LearnedEncoding(dim, rows, dropout=0.0, overflow="clamp")


def _kinds(hint: object) -> tuple[object, ...]:
    """The values that a type allows, if it lists them."""
    parts = [hint, *get_args(hint)]
    found = [value for part in parts if get_origin(part) is Literal for value in get_args(part)]
    return (*found, None) if found and NoneType in parts else tuple(found)


class PeriodicCodes(nn.Module):
    """Adds sinusoids that all repeat after exactly the length of training."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        # Harmonics above half the length give the same samples as lower ones, and so nothing new.
        codes = periodic_encoding(
            torch.arange(TRAINED), TRAINED, harmonics=range(1, TRAINED // 2 + 1), dtype=torch.float32
        )
        self.codes = nn.functional.pad(codes, (0, dim - codes.shape[1]))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.codes[torch.arange(x.shape[1]) % TRAINED]


class Positions(nn.Module):
    """What a scheme does in one layer: to queries and keys (batch, heads, n, width), and to their scores."""

    def __init__(self, scheme: Scheme, layer: int, width: int, num_heads: int) -> None:
        super().__init__()
        self.scheme, self.width = scheme, width
        self.turns = scheme.rotary is not None and not (scheme.rotary == "every other" and layer % 2)
        self.window = scheme.window if self.turns or scheme.rotary is None else None
        self.bias = _bias(scheme, num_heads)
        self.sink = nn.Parameter(torch.zeros(num_heads)) if scheme.learned_sink else None
        self._masks: dict[int, Tensor] = {}
        self._rotaries: dict[int, RotaryEmbedding] = {}

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, inputs: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Query, key and value, and what is added to their scores, −inf where a key is not seen."""
        scheme, n = self.scheme, query.shape[2]
        added = self._mask(n)
        if self.bias is not None:
            added = added + self.bias(n)
        if self.turns and scheme.rotary == "xpos":
            query, key = apply_xpos(
                query, key, n, base=scheme.base, scale_base=scheme.scale_base, center=n / 2
            )
        elif self.turns and scheme.sinks:
            query, key = self._turn_with_sinks(query, key)
        elif self.turns:
            query, key = self._rotary(n)(query, key)
        if scheme.log_n:
            query = query * (torch.arange(1, n + 1).log() / math.log(TRAINED)).clamp(min=1)[:, None]
        if self.sink is not None:
            # One more key, of zeros: the trained score is all it has, and its value gives nothing.
            key, value = (nn.functional.pad(x, (0, 0, 0, 1)) for x in (key, value))
            sink = self.sink[:, None, None].expand(-1, n, 1)
            added = torch.cat([added.expand(len(sink), n, n), sink], dim=2)
        return query, key, value, added

    def _mask(self, n: int) -> Tensor:
        if n not in self._masks:
            behind = torch.arange(n)[:, None] - torch.arange(n)
            seen = behind >= 0
            if self.window is not None:
                seen &= (behind < self.window) | (torch.arange(n) < self.scheme.sinks)
            self._masks[n] = hide(~seen)
        return self._masks[n]

    def _turn_with_sinks(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Twice as wide, so that a score is one of two: with a sink, or with a key in the window."""
        n, window = query.shape[2], self.window
        assert window is not None
        rotary = self._rotary(n)
        near, key = rotary(query, key)
        # In the cache of a window the sinks are the first keys, and the query never stands behind its end.
        far, _ = rotary(query, query, positions=torch.arange(n).clamp(max=window - 1))
        sink = (torch.arange(n) < self.scheme.sinks)[:, None]
        # The scale of the scores is that of the width, which has doubled.
        both = torch.cat([near, far], dim=-1) * math.sqrt(2)
        return both, torch.cat([key.masked_fill(sink, 0), key.masked_fill(~sink, 0)], dim=-1)

    def _rotary(self, n: int) -> RotaryEmbedding:
        if n not in self._rotaries:
            scheme, half = self.scheme, self.scheme.rotary == "half"
            width = self.width // 2 if half else self.width
            self._rotaries[n] = RotaryEmbedding(
                self.width,
                LONGEST,
                rotary_dim=width if half else None,
                frequencies=stretched(scheme.frequencies, width, n, scheme.base),
                scale=yarn_attention_factor(LONGEST / TRAINED) if scheme.yarn_factor else 1.0,
            )
        return self._rotaries[n]


def _bias(scheme: Scheme, num_heads: int) -> nn.Module | None:
    match scheme.bias:
        case None:
            return None
        case "alibi":
            slopes = scheme.slope_factor * alibi_slopes(num_heads)
            return AlibiBias(num_heads, causal=False, slopes=slopes)
        case "t5":
            return T5Bias(num_heads, bidirectional=False)
        case "kerple":
            return KerpleBias(num_heads)
        case "fire":
            return FireBias(num_heads, threshold=float(TRAINED))


def stretched(how: Frequencies, dim: int, n: int, base: float = 10000.0) -> np.ndarray:
    """The frequencies of RoPE at length n, made for the longest length.

    >>> [round(float(stretched(how, 16, 256)[-1]) * 1e4, 3) for how in ("usual", "linear", "ntk")]
    [3.162, 0.395, 0.395]
    """
    factor = LONGEST / TRAINED
    match how:
        case "usual":
            return sinusoidal_frequencies(dim, base)
        case "linear":
            return linear_frequencies(dim, factor, base=base)
        case "ntk":
            return ntk_frequencies(dim, factor, base=base)
        case "dynamic":
            return dynamic_ntk_frequencies(dim, 1, n, original_length=TRAINED, base=base)
        case "yarn":
            return yarn_frequencies(dim, factor, original_length=TRAINED, base=base)


LARGE_BASE, SMALL_BASE = 1e6, 6.0
"""Bases of RoPE at which next to no pair turns fully within the trained length, and at which every pair does."""

SLOWEST_BASE, SHARE_BASE = 123.0, 13.0
"""Bases matched to 32 tokens and 8 pairs as 10000 is to the 4096 tokens and 64 pairs of Llama 2: with the first the
slowest pair turns as far, a 13th of a turn; with the second as large a share of the pairs goes round, 6 of 8."""

_STRETCHED: dict[str, dict[str, Any]] = {
    "": {},
    "_linear": {"frequencies": "linear"},
    "_ntk": {"frequencies": "ntk"},
    "_dynamic": {"frequencies": "dynamic"},
    "_yarn": {"frequencies": "yarn", "yarn_factor": True},
    "_base": {"base": LARGE_BASE},
}
_SHARES = {"": None, "_tuned_1": 0.01, "_tuned": 0.1}

SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("none"),
        Scheme("none_logn", begins="none", log_n=True),
        Scheme("none_256", length=LONGEST),
        Scheme("sinusoidal", added="sinusoidal"),
        Scheme("periodic", added="periodic"),
        Scheme("sinusoidal_offset", added="sinusoidal", random_start=True),
        Scheme("learned", added="learned"),
        Scheme("learned_clamped", begins="learned", added="clamped"),
        Scheme("learned_offset", added="learned", random_start=True),
        Scheme("rotary", rotary="all"),
        *(
            Scheme(
                f"rotary{how}{after}",
                begins="rotary",
                rotary="all",
                tuned=share,
                length=LONGEST if share else TRAINED,
                **options,
            )
            for how, options in _STRETCHED.items()
            for after, share in _SHARES.items()
            if how or share
        ),
        Scheme("rotary_yarn_frequencies", begins="rotary", rotary="all", frequencies="yarn"),
        Scheme("rotary_yarn_factor", begins="rotary", rotary="all", yarn_factor=True),
        Scheme("rotary_dropped", begins="rotary"),
        Scheme("rotary_dropped_tuned", begins="rotary", tuned=0.1),
        Scheme("rotary_logn", begins="rotary", rotary="all", log_n=True),
        Scheme("rotary_window", begins="rotary", rotary="all", window=TRAINED),
        Scheme("rotary_sinks", begins="rotary", rotary="all", window=TRAINED, sinks=4),
        Scheme("rotary_256", rotary="all", length=LONGEST),
        Scheme("rotary_large_base", rotary="all", base=LARGE_BASE),
        Scheme("rotary_slowest_base", rotary="all", base=SLOWEST_BASE),
        Scheme("rotary_share_base", rotary="all", base=SHARE_BASE),
        Scheme("rotary_small_base", rotary="all", base=SMALL_BASE),
        Scheme("rotary_half", rotary="half"),
        Scheme("rotary_alternating", rotary="every other"),
        Scheme("hybrid", rotary="every other", window=TRAINED // 2),
        Scheme("xpos", rotary="xpos", scale_base=TRAINED / 2),
        Scheme("xpos_512", rotary="xpos"),
        Scheme("alibi", bias="alibi"),
        Scheme("alibi_short", bias="alibi", slope_factor=1024 / TRAINED),
        Scheme("alibi_256", bias="alibi", length=LONGEST),
        Scheme("t5", bias="t5"),
        Scheme("kerple", bias="kerple"),
        Scheme("fire", bias="fire"),
        Scheme("window", rotary="all", window=TRAINED // 2),
        Scheme("window_sink", rotary="all", window=TRAINED // 2, learned_sink=True),
    )
}
"""All schemes, those that others begin with before these."""
