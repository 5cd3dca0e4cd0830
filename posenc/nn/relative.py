"""Relative position biases as layers: trained numbers that give a term of the attention scores."""

from __future__ import annotations

import math
from typing import get_args

import torch
from array_api_compat import torch as xp
from torch import Tensor, nn

from posenc._arrays import no_autocast
from posenc._checks import check_flag, integer, number
from posenc.nn._inputs import check_floating, check_places
from posenc.relative import relative_bias, t5_bias, t5_bucket
from posenc.relative.kernels import FIRE_WEIGHTS, KerpleKind, kerple, log_distance, two_layers
from posenc.relative.vectors import shaw_attention

__all__ = ["FireBias", "KerpleBias", "RelativeBias", "ShawAttention", "T5Bias"]


class _TrainedBias(nn.Module):
    """A layer of trained numbers that gives a term of the attention scores."""

    def _bias(self, queries: int | Tensor, keys: int | Tensor | None) -> Tensor:
        """The bias for lengths or positions, as the formulas take them."""
        raise NotImplementedError

    def forward(
        self,
        n_query: int | None = None,
        n_key: int | None = None,
        *,
        query_positions: Tensor | None = None,
        key_positions: Tensor | None = None,
    ) -> Tensor:
        """The bias.

        Args:
            n_query: how many queries; they are the last of the keys, so `layer(1, t + 1)` is the row of the
                token at t, bit for bit. The sums of `FireBias` differ by a few roundings: their order depends
                on the shape.
            n_key: how many keys. If None, as many as queries.
            query_positions: positions instead of n_query, (n_q,) or (batch, n_q); whole ones for a table,
                otherwise they may be real. By name only: token ids in their place could not be told from them.
            key_positions: positions instead of n_key, (n_k,) or (batch, n_k). If there is neither, those of
                the queries.
        """
        like = next(self.parameters())
        return self._bias(*check_places(n_query, n_key, query_positions, key_positions, like))


class _TableBias(_TrainedBias):
    """A trained number for each head and each row, `weight` (rows, heads)."""

    weight: nn.Parameter

    def __init__(self, rows: int, num_heads: int, std: float) -> None:
        super().__init__()
        self.std = number("std", std, at_least=0)
        self.weight = nn.Parameter(torch.empty(rows, integer("num_heads", num_heads, minimum=1)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the table with fresh random numbers, as after `to_empty`."""
        nn.init.normal_(self.weight, std=self.std)


class RelativeBias(_TableBias):
    """A trained number for each head and each offset from −K to K; offsets beyond count as ±K.

    forward(n) = weight[clip(u − t, −K, K) + K], which attention adds to its scores.

    Args:
        num_heads: number of heads.
        max_offset: K, at least 0.
        std: standard deviation of the normal distribution that the numbers start from.

    Shapes:
        Result: (heads, n_q, n_k), in the dtype of weight, which is (2K + 1, heads).

    Raises:
        TypeError, ValueError: as in `posenc.relative_bias`; heads, max_offset or std out of range.

    >>> bias = RelativeBias(num_heads=2, max_offset=8)
    >>> bias(20).shape
    torch.Size([2, 20, 20])
    >>> torch.equal(bias(1, 20), bias(20)[:, -1:])
    True

    Source: Shaw et al. (2018), section 3.2, for the clipping; a number for each offset as in Raffel et al.
    (2020), section 2.1.
    """

    def __init__(self, num_heads: int, max_offset: int, *, std: float = 0.02) -> None:
        super().__init__(2 * integer("max_offset", max_offset, minimum=0) + 1, num_heads, std)

    def _bias(self, queries: int | Tensor, keys: int | Tensor | None) -> Tensor:
        return relative_bias(self.weight, queries, keys)

    def extra_repr(self) -> str:
        return f"num_heads={self.weight.shape[1]}, max_offset={self.weight.shape[0] // 2}"


class T5Bias(_TableBias):
    """The position bias of T5: a trained number for each head and each bucket of offsets.

    forward(n) = weight[bucket(u − t)], with `posenc.relative.t5_bucket`.

    `weight` has the name and shape of the weight of torch.nn.Embedding(num_buckets, heads), so what
    transformers saves as relative_attention_bias.weight loads. T5 does not divide its scores by sqrt(d).

    Args:
        num_heads: number of heads.
        num_buckets, max_distance, bidirectional: as in `posenc.relative.t5_bucket`. An encoder is bidirectional, a
            decoder is not. A table loads in both, but its rows mean something else.
        std: as in `RelativeBias`.

    Shapes:
        Result: (heads, n_q, n_k), in the dtype of weight, which is (num_buckets, heads).

    Raises:
        TypeError, ValueError: as in `posenc.t5_bias`; heads or std out of range.

    >>> bias = T5Bias(num_heads=12)
    >>> bias.weight.numel(), bias(1000).shape
    (384, torch.Size([12, 1000, 1000]))

    Source: Raffel et al. (2020), section 2.1.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        num_buckets: int = 32,
        max_distance: int = 128,
        bidirectional: bool = True,
        std: float = 0.02,
    ) -> None:
        # What is wrong with them is said here and not at the first sentence.
        t5_bucket(1, num_buckets=num_buckets, max_distance=max_distance, bidirectional=bidirectional)
        super().__init__(num_buckets, num_heads, std)
        self.max_distance = max_distance
        self.bidirectional = bidirectional

    def _bias(self, queries: int | Tensor, keys: int | Tensor | None) -> Tensor:
        return t5_bias(
            self.weight,
            queries,
            keys,
            num_buckets=self.weight.shape[0],
            max_distance=self.max_distance,
            bidirectional=self.bidirectional,
        )

    def extra_repr(self) -> str:
        buckets, num_heads = self.weight.shape
        return (
            f"num_heads={num_heads}, num_buckets={buckets}, max_distance={self.max_distance}, "
            f"bidirectional={self.bidirectional}"
        )


class KerpleBias(_TrainedBias):
    """The bias of KERPLE: minus a kernel of the distance, with two trained numbers a head.

    forward(n) = −r1 · ln(1 + r2 · |u − t|), or −r1 · |u − t|^r2; `posenc.kerple_bias`.

    r1 and r2 stay in their ranges whatever the optimizer does: trained are logarithms, and for the r2 of
    "power" the logit of r2/2. They start from uniform numbers, r1 below 2 and r2 below 1.

    Args:
        num_heads: number of heads.
        kind: "log" or "power".

    Shapes:
        Result: (heads, n_q, n_k), in the dtype of the parameters, computed in float64.

    Raises:
        TypeError, ValueError: heads or kind is not what it should be; positions as in `posenc.kerple_bias`.

    >>> bias = KerpleBias(num_heads=12)
    >>> bias(100).shape, bool((bias.r1 > 0).all())
    (torch.Size([12, 100, 100]), True)

    Source: Chi et al. (2022), section 4.
    """

    raw_r1: nn.Parameter
    raw_r2: nn.Parameter

    def __init__(self, num_heads: int, *, kind: KerpleKind = "log") -> None:
        super().__init__()
        if kind not in get_args(KerpleKind):
            raise ValueError(f'kind must be "log" or "power", got {kind!r}')
        self.kind = kind
        num_heads = integer("num_heads", num_heads, minimum=1)
        self.raw_r1 = nn.Parameter(torch.empty(num_heads))
        self.raw_r2 = nn.Parameter(torch.empty(num_heads))
        self.reset_parameters()

    @property
    def r1(self) -> Tensor:
        """The factor of each head, above 0, in float64."""
        return self.raw_r1.double().exp()

    @property
    def r2(self) -> Tensor:
        """The rate or exponent of each head, above 0, and below 2 for "power", in float64."""
        raw = self.raw_r2.double()
        return raw.exp() if self.kind == "log" else 2 * raw.sigmoid()

    def reset_parameters(self) -> None:
        """Fresh random numbers, as after `to_empty`."""
        with torch.no_grad():
            # Not from 0: its logarithm is not a number that could be trained.
            self.raw_r1.uniform_(0.01, 2.0).log_()
            self.raw_r2.uniform_(0.01, 1.0)
            self.raw_r2.copy_(self.raw_r2.log() if self.kind == "log" else (self.raw_r2 / 2).logit())

    def _bias(self, queries: int | Tensor, keys: int | Tensor | None) -> Tensor:
        return kerple(self.r1, self.r2, self.kind, self.raw_r1.dtype, queries, keys, xp)

    def extra_repr(self) -> str:
        return f"num_heads={len(self.raw_r1)}, kind={self.kind!r}"


class FireBias(_TrainedBias):
    """The bias of FIRE: a small trained network that looks at a distance scaled to 0..1.

    forward(n) = MLP(ln(1 + c · |u − t|) / ln(1 + c · max(t, threshold))); `posenc.fire_bias`.

    c and threshold are trained too, by their logarithms, so that they stay above 0.

    Args:
        num_heads: number of heads.
        width: neurons of the network's one hidden layer.
        c: what c starts from, above 0.
        threshold: what the threshold starts from, above 0, in positions.

    Shapes:
        Result: (heads, n_q, n_k), in the dtype of the parameters.

    Raises:
        TypeError, ValueError: heads, width, c or threshold out of range; positions as in `posenc.fire_bias`.

    >>> bias = FireBias(num_heads=12)
    >>> sum(parameter.numel() for parameter in bias.parameters()), bias(100).shape
    (462, torch.Size([12, 100, 100]))

    Source: Li et al. (2024), section 3.1 and appendix E.
    """

    def __init__(self, num_heads: int, *, width: int = 32, c: float = 0.1, threshold: float = 512.0) -> None:
        super().__init__()
        width = integer("width", width, minimum=1)
        self.hidden = nn.Linear(1, width)
        self.head = nn.Linear(width, integer("num_heads", num_heads, minimum=1))
        self._start = number("c", c, above=0), number("threshold", threshold, above=0)
        # Of one element rather than none: not everything that shards parameters takes scalars.
        self.log_c = nn.Parameter(torch.empty(1))
        self.log_threshold = nn.Parameter(torch.empty(1))
        self.reset_parameters()

    @property
    def c(self) -> Tensor:
        """How soon the logarithm bends, in float64, without axes."""
        return self.log_c.double().exp()[0]

    @property
    def threshold(self) -> Tensor:
        """Queries before this position divide by the distance of this position, in float64."""
        return self.log_threshold.double().exp()[0]

    def reset_parameters(self) -> None:
        """A new random network, with c and threshold as given, for instance after `to_empty`."""
        self.hidden.reset_parameters()
        self.head.reset_parameters()
        for parameter, start in zip((self.log_c, self.log_threshold), self._start, strict=True):
            nn.init.constant_(parameter, math.log(start))

    def _bias(self, queries: int | Tensor, keys: int | Tensor | None) -> Tensor:
        x = log_distance(self.c, self.threshold, queries, keys, xp)
        given = (self.hidden.weight[:, 0], self.hidden.bias, self.head.weight, self.head.bias)
        weights = dict(zip(FIRE_WEIGHTS, given, strict=True))
        # autocast would make the product in a precision that cannot tell far positions apart.
        with no_autocast(x):
            return two_layers(x, weights, xp)


class ShawAttention(nn.Module):
    """Attention with a trained vector for each clipped offset, on the keys and, if wanted, on the values.

    forward(q, k, v) = softmax(q · (k + a^K) / sqrt(dim)) (v + a^V); `posenc.shaw_attention`.

    Args:
        dim: width of a head, at least 1.
        max_offset: K: offsets beyond −K..K count as ±K.
        values: whether values get vectors as well as keys.
        std: standard deviation of the normal distribution that the vectors start from.

    Shapes:
        query: (..., n_q, dim), key and value: (..., n_k, dim). Heads share the tables, (2K + 1, dim).
        Result: output (..., n_q, dim) and weights (..., n_q, n_k), in the dtype of query.

    Raises:
        TypeError, ValueError: as in `posenc.shaw_attention`; dim, max_offset or std out of range.

    >>> layer = ShawAttention(64, max_offset=16)
    >>> x = torch.randn(1, 8, 100, 64)
    >>> output, weights = layer(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([1, 8, 100, 64]), torch.Size([1, 8, 100, 100]))

    Source: Shaw et al. (2018), section 3.
    """

    key_table: nn.Parameter
    value_table: nn.Parameter | None

    def __init__(self, dim: int, max_offset: int, *, values: bool = True, std: float = 0.02) -> None:
        super().__init__()
        check_flag("values", values)
        dim = integer("dim", dim, minimum=1)
        self.std = number("std", std, at_least=0)
        rows = 2 * integer("max_offset", max_offset, minimum=0) + 1
        self.key_table = nn.Parameter(torch.empty(rows, dim))
        self.value_table = nn.Parameter(torch.empty(rows, dim)) if values else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the tables with fresh random vectors, as after `to_empty`."""
        for table in self.parameters():
            nn.init.normal_(table, std=self.std)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        mask: Tensor | None = None,
        query_positions: int | Tensor | None = None,
        key_positions: int | Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Output and weights.

        Args:
            query, key, value: vectors of a head, already projected.
            mask: bool, True where a query must not see a key, as in `posenc.dot_product_attention`.
            query_positions, key_positions: tensors (n_q,) and (n_k,); if None, the queries are the last of
                the keys, so that one query and the keys so far give one row of the full pass.
        """
        for name, x in (("query", query), ("key", key), ("value", value)):
            check_floating(name, x)
        if torch.jit.is_tracing() and query_positions is None and key_positions is None:
            # As lengths they would stay those of the example.
            query_positions, key_positions = check_places(query.shape[-2], key.shape[-2], None, None, query)
        tables = [None if x is None else x.to(query.dtype) for x in (self.key_table, self.value_table)]
        return shaw_attention(
            query,
            key,
            value,
            tables[0],
            tables[1],
            mask=mask,
            query_positions=query_positions,
            key_positions=key_positions,
        )

    def extra_repr(self) -> str:
        return (
            f"dim={self.key_table.shape[1]}, max_offset={self.key_table.shape[0] // 2}, "
            f"values={self.value_table is not None}"
        )
