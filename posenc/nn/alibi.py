"""Attention with linear biases (ALiBi) as layers: the bias, and causal attention that does without it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from array_api_compat import torch as xp
from torch import Tensor
from torch.nn import functional

from posenc._arrays import Array, attention_dtype, is_array, same_shape
from posenc._checks import check_flag, integer
from posenc.alibi import alibi_slopes, check_slopes, column_count, make_bias, widen
from posenc.nn._inputs import check_floating, check_places
from posenc.nn._table import FixedTable, check_has_numbers

__all__ = ["AlibiAttention", "AlibiBias"]


class _Slopes(FixedTable):
    """A layer whose table holds the slope of each head, in float64: a bias is rounded only once."""

    _fixed = ("num_heads",)

    def __init__(self, num_heads: int, slopes: Array | None) -> None:
        super().__init__()
        self.num_heads = integer("num_heads", num_heads, minimum=1)
        if slopes is not None and not is_array(slopes):
            raise TypeError(f"slopes must be an array of shape ({self.num_heads},), got {slopes!r}")
        check_has_numbers("slopes", slopes)
        given = alibi_slopes(self.num_heads) if slopes is None else check_slopes(slopes)[1]
        if given.shape != (self.num_heads,):
            raise ValueError(f"slopes must have shape ({self.num_heads},), got {tuple(given.shape)}")
        # As numbers: a check of them must not make a GPU wait.
        self._numbers = [float(m) for m in given]
        self._keep(np.asarray(self._numbers))

    @property
    def slopes(self) -> Tensor:
        """The slope of each head, float64, shape (heads,): a copy."""
        return self.table.clone()


class AlibiBias(_Slopes):
    """The bias of ALiBi: minus the slope of the head times the distance, and −inf for later keys.

    forward(n) = −m_h · (t − u), `posenc.alibi_bias` with `posenc.alibi_slopes(num_heads)`.

    Nothing in it is trained, saved or cast. The bias has heads · n_q · n_k numbers. `AlibiAttention` computes
    the same attention without them.

    Args:
        num_heads: number of heads.
        causal: whether later keys are forbidden. If not, the bias is −m_h · |t − u|, which does not
            depend on the direction: a sentence and its reversal get the same scores, reversed.
        slopes: m_h, at least 0, shape (heads,), instead of the published ones, such as the part of
            alibi_slopes(32) that belongs to the 8 heads of one device.

    Shapes:
        Result: (heads, n_q, n_k), for scores (batch, heads, n_q, n_k).

    Raises:
        TypeError, ValueError: heads or slopes as in `posenc.alibi_bias`, lengths and positions likewise.

    >>> bias = AlibiBias(num_heads=8)
    >>> bias(3)[0]
    tensor([[ 0.0000,    -inf,    -inf],
            [-0.5000,  0.0000,    -inf],
            [-1.0000, -0.5000,  0.0000]])
    >>> torch.equal(bias(1, 100), bias(100)[:, -1:])
    True

    Source: Press, Smith, Lewis (2022), section 3. https://arxiv.org/abs/2108.12409
    """

    def __init__(self, num_heads: int, *, causal: bool = True, slopes: Array | None = None) -> None:
        super().__init__(num_heads, slopes)
        self.causal = check_flag("causal", causal)

    def forward(
        self,
        n_query: int | None = None,
        n_key: int | None = None,
        *,
        query_positions: Tensor | None = None,
        key_positions: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        """The bias.

        Args:
            n_query: how many queries; they are the last of the keys, so `layer(1, t + 1)` is the row of the
                token at t, bit for bit.
            n_key: how many keys. If None, as many as queries.
            query_positions: positions instead of n_query, (n_q,) or (batch, n_q). By name only: token ids in
                their place could not be told from them.
            key_positions: positions instead of n_key, (n_k,) or (batch, n_k). If there is neither, those of
                the queries.
            dtype: of the result, which is computed in float64 and rounded once. bfloat16 will do: it is
                inexact only where the bias is large.
        """
        places = check_places(n_query, n_key, query_positions, key_positions, self._where)
        like = next((x for x in places if isinstance(x, Tensor)), self._where)
        return make_bias(self.table.to(like.device), *places, self.causal, dtype, xp)

    def extra_repr(self) -> str:
        return f"num_heads={self.num_heads}, causal={self.causal}"


class AlibiAttention(_Slopes):
    """Causal attention with linear biases, by torch's fast kernels and without a bias.

    forward(q, k, v) = softmax(q kᵀ / sqrt(d) − m_h · (t − u)) v over the keys u ≤ t.

    The bias goes into a few more columns of queries and keys (`posenc.alibi.add_alibi_columns`), so that memory
    grows with the length and not with its square. One query alone, as in decoding, gets its row of the bias.
    In float16 and bfloat16 the columns are split so that positions keep the precision of float32.

    Nothing in it is trained, saved or cast, and it holds no projections: it takes the place of
    torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).

    Args:
        num_heads: number of heads of the queries.
        slopes: as in `AlibiBias`.

    Shapes:
        query: (batch, heads, n_q, d); the queries are the last of the keys.
        key: (batch, key heads, n_k, d). key heads divides heads (grouped queries).
        value: (batch, key heads, n_k, d_v).
        Result: (batch, heads, n_q, d_v), in the dtype of query; under torch.autocast in that of autocast.

    Raises:
        TypeError: query, key or value is not a floating tensor, they differ in dtype, or mask is not bool.
        ValueError: shapes that do not fit, or more queries than keys.

    >>> attention = AlibiAttention(num_heads=8)
    >>> q, k, v = torch.randn(3, 2, 8, 100, 64)
    >>> full = attention(q, k, v)
    >>> step = attention(q[:, :, -1:], k, v)
    >>> torch.allclose(step, full[:, :, -1:], atol=1e-5)
    True

    Source: Press, Smith, Lewis (2022), section 3. https://arxiv.org/abs/2108.12409
    """

    def __init__(self, num_heads: int, *, slopes: Array | None = None) -> None:
        super().__init__(num_heads, slopes)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Attention.

        Args:
            query, key, value: as above. In decoding key and value are the whole cache.
            mask: bool, True where a query must not see a key, besides the later keys: (n_q, n_k), or four
                axes (batch, heads, n_q, n_k), each of full length or 1. A key-padding mask (batch, n_k) is
                passed as mask[:, None, None, :]: with n_q sentences in the batch it would be taken for
                (n_q, n_k) without that. A query without any key gets 0.
        """
        query, key, value = (_as_autocast(x) for x in (query, key, value))
        self._check(query, key, value)
        self._check_range(query, key)
        n_query, n_key = query.shape[-2], key.shape[-2]
        options: dict[str, Any] = {"scale": 1 / math.sqrt(query.shape[-1])}
        if key.shape[1] != self.num_heads:
            options["enable_gqa"] = True
        if mask is not None:
            _check_mask(mask, (*query.shape[:-1], n_key))
        slopes, places = self.table.to(query.device), torch.arange(n_key, device=query.device)
        traced = torch.jit.is_tracing()  # which would keep whatever is decided by a length
        if n_query == 1 and not traced:
            # Widening the whole cache for one query would cost more than the row.
            row = make_bias(slopes, places[-1:], places, True, query.dtype, xp)[None]
            options["attn_mask"] = row if mask is None else row.masked_fill(mask, -math.inf)
            return functional.scaled_dot_product_attention(query, key, value, **options)
        if mask is None and n_query == n_key and not traced:
            options["is_causal"] = True
        else:
            later = places > places[n_key - n_query :, None]
            options["attn_mask"] = ~(later if mask is None else later | mask)
        wide_query, wide_key, wide_value = self._widen(query, key, value, slopes / options["scale"], places)
        output = functional.scaled_dot_product_attention(wide_query, wide_key, wide_value, **options)
        return output[..., : value.shape[-1]]

    def extra_repr(self) -> str:
        return f"num_heads={self.num_heads}"

    def _widen(
        self, query: Tensor, key: Tensor, value: Tensor, slopes: Tensor, places: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """All three of one width, a multiple of 8: torch has no fast kernel for anything else."""
        needed = max(query.shape[-1] + column_count(query.dtype, xp), value.shape[-1])
        width = -(-needed // 8) * 8
        u = (places - places.shape[0] // 2).double()
        wide_query, wide_key = widen(query, key, slopes, u, width, xp)
        return wide_query, wide_key, functional.pad(value, (0, width - value.shape[-1]))

    def _check(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        for name, x in (("query", query), ("key", key), ("value", value)):
            check_floating(name, x)
            if x.dtype != query.dtype:
                raise TypeError(f"{name} must have the dtype of query, {query.dtype}, got {x.dtype}")
            if x.ndim != 4:
                raise ValueError(
                    f"{name} must have shape (batch, heads, length, width), got {tuple(x.shape)}"
                )
        batch, num_heads, n_query, dim = query.shape
        if num_heads != self.num_heads:
            raise ValueError(
                f"query must have shape (batch, {self.num_heads}, n_q, d), got {tuple(query.shape)}; "
                "transpose (batch, n_q, heads, d)"
            )
        key_heads, n_key = key.shape[1:3]
        if key.shape != (batch, key_heads, n_key, dim) or key_heads == 0 or num_heads % key_heads:
            raise ValueError(
                f"key must have shape ({batch}, key heads, n_k, {dim}), key heads dividing {num_heads}, "
                f"got {tuple(key.shape)}"
            )
        if value.shape[:-1] != key.shape[:-1]:
            raise ValueError(
                f"value must have shape ({batch}, {key_heads}, {n_key}, d_v), got {tuple(value.shape)}"
            )
        if n_query > n_key:
            raise ValueError(f"query must have at most as many tokens as key, {n_key}, got {n_query}")

    def _check_range(self, query: Tensor, key: Tensor) -> None:
        """What goes into the columns must not be too large for the dtype, which float16 soon is."""
        most = torch.finfo(query.dtype).max
        largest = max(key.shape[-2] / 2, max(self._numbers) * math.sqrt(query.shape[-1]))
        if largest > most:
            raise ValueError(
                f"query and key must be float32 or bfloat16 for {key.shape[-2]} keys and slopes up to "
                f"{max(self._numbers):g}, got {query.dtype}, which ends at {most:g}"
            )


def _as_autocast(x: Tensor) -> Tensor:
    """x as autocast would hand it to attention: all three must be of one dtype for what is joined to them."""
    return x.to(attention_dtype(x)) if isinstance(x, Tensor) and x.is_floating_point() else x


def _check_mask(mask: Tensor, scores: tuple[int, ...]) -> None:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        kind = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise TypeError(f"mask must be a bool tensor, got {kind}")
    shape = tuple(mask.shape)
    # Two axes are (n_q, n_k) and nothing else: a key-padding mask (batch, n_k) must not slip through.
    if not same_shape(shape, scores[-2:]) and not (
        len(shape) == 4 and all(a in (1, b) for a, b in zip(shape, scores, strict=True))
    ):
        raise ValueError(
            f"mask must have shape {scores[-2:]} or four axes that are 1 or those of {scores}, got {shape}"
        )
