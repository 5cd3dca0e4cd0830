"""Layers whose positions the content decides: a forget gate, and contextual position encoding (CoPE)."""

from __future__ import annotations

import math

import torch
from array_api_compat import torch as xp
from torch import Tensor, nn
from torch.nn import functional

from posenc._arrays import Array, no_autocast, wide_dtype
from posenc._checks import integer, number
from posenc.alibi import alibi_slopes, check_slopes
from posenc.contextual import contextual_bias, contextual_positions, hide_later
from posenc.nn._inputs import check_floating
from posenc.nn._table import check_has_numbers

__all__ = ["ContextualPositions", "ForgetGate"]


class ForgetGate(nn.Module):
    """The logarithms of a forget gate for each head and token, which start as ALiBi and are trained from there.

    forward(x) = log sigmoid(x wᵀ + b).

    The weights start from 0, and the bias starts so that log f = −m_h. Until the layer is trained,
    `posenc.forget_bias` of its gates is `posenc.alibi_bias`. The gate of a token depends on this token alone, so
    decoding computes one gate for each new token.

    Args:
        dim: width of the input.
        num_heads: number of heads. If there are fewer key heads than query heads, the number of key heads.
        slopes: m_h, above 0, shape (heads,); alibi_slopes(num_heads) if None.

    Shapes:
        x: (..., seq, dim), floating. Result: (..., heads, seq), float32 or wider.

    Raises:
        TypeError, ValueError: dim, heads or slopes out of range, or x of another kind or width.

    >>> from posenc import alibi_bias, alibi_slopes, forget_bias
    >>> gate = ForgetGate(16, num_heads=8)
    >>> log_gates = gate(torch.randn(2, 50, 16))
    >>> log_gates.shape
    torch.Size([2, 8, 50])
    >>> alibi = torch.from_numpy(alibi_bias(alibi_slopes(8), 50)).float()
    >>> torch.allclose(forget_bias(log_gates)[0], alibi, atol=1e-5)
    True

    Source: Lin et al. (2025), section 3; the start is ours. https://arxiv.org/abs/2503.02130
    """

    def __init__(self, dim: int, num_heads: int, *, slopes: Array | None = None) -> None:
        super().__init__()
        dim = integer("dim", dim, minimum=1)
        num_heads = integer("num_heads", num_heads, minimum=1)
        check_has_numbers("slopes", slopes)
        given = alibi_slopes(num_heads) if slopes is None else check_slopes(slopes)[1]
        if tuple(given.shape) != (num_heads,):
            raise ValueError(f"slopes must have shape ({num_heads},), got {tuple(given.shape)}")
        self._slopes = [number("each of slopes", float(m), above=0) for m in given]
        self.linear = nn.Linear(dim, num_heads)
        most = torch.finfo(self.linear.bias.dtype).max
        if max(self._slopes) > most:
            raise ValueError(
                f"each of slopes must be at most {most:g}, the largest number of the bias, got {given!r}"
            )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """ALiBi again, as after `to_empty`."""
        nn.init.zeros_(self.linear.weight)
        with torch.no_grad():
            for head, m in enumerate(self._slopes):
                self.linear.bias[head] = -m - math.log(-math.expm1(-m))  # log sigmoid of it is −m

    def forward(self, x: Tensor) -> Tensor:
        check_floating("x", x, "a floating tensor of embeddings")
        if x.ndim < 2 or x.shape[-1] != self.linear.in_features:
            raise ValueError(f"x must have shape (..., seq, {self.linear.in_features}), got {tuple(x.shape)}")
        # In bfloat16 the slope that a logit near 5.5 stands for would be off by 1 percent.
        with no_autocast(x):
            logits = self.linear(x.to(self.linear.weight.dtype))
        return functional.logsigmoid(logits.to(wide_dtype(xp, logits))).mT


class ContextualPositions(nn.Module):
    """The bias of contextual position encoding (CoPE): each query counts the tokens that match it.

    forward(q, k)[t, u] = q_t · e(p_tu), with p_tu the sum of the gates sigmoid(q_t · k_j / sqrt(d)) for j = u..t.

    The layer keeps nothing between calls. One query and all keys so far give the row of this query in the full
    pass.

    Args:
        dim: width of a head.
        max_position: the largest position. Larger counts use its row. The table has max_position + 1 rows.

    Shapes:
        query: (..., n_q, dim), the last of the keys. key: (..., n_k, dim).
        Result: (..., n_q, n_k) to be added to the scores. It is −inf for later keys, so it includes the causal mask.
        Heads share the table, `weight` (max_position + 1, dim), which starts from 0.

    Raises:
        TypeError, ValueError: dim or max_position out of range, query or key of another kind or shape.

    >>> from torch.nn.functional import scaled_dot_product_attention
    >>> layer = ContextualPositions(16, max_position=8)
    >>> q, k, v = torch.randn(3, 2, 4, 50, 16)
    >>> scaled_dot_product_attention(q, k, v, attn_mask=layer(q, k)).shape
    torch.Size([2, 4, 50, 16])

    Source: Golovneva et al. (2024), section 4 and appendix. https://arxiv.org/abs/2405.18719
    """

    weight: nn.Parameter

    def __init__(self, dim: int, max_position: int) -> None:
        super().__init__()
        rows = integer("max_position", max_position, minimum=1) + 1
        self.weight = nn.Parameter(torch.empty(rows, integer("dim", dim, minimum=1)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """No bias, as after `to_empty`."""
        nn.init.zeros_(self.weight)

    def forward(self, query: Tensor, key: Tensor) -> Tensor:
        positions = self.positions(query, key)
        bias = contextual_bias(query, self.weight.to(query.dtype), positions)
        return hide_later(bias, query.dtype, xp)

    def positions(self, query: Tensor, key: Tensor) -> Tensor:
        """How far each query finds each key, float64 (..., n_q, n_k); 0 for later keys.

        Args:
            query, key: as above.
        """
        for name, x in (("query", query), ("key", key)):
            check_floating(name, x)
        dim = self.weight.shape[-1]
        if query.ndim < 2 or query.shape[-1] != dim:
            raise ValueError(f"query must have shape (..., n_q, {dim}), got {tuple(query.shape)}")
        if key.shape[:-2] != query.shape[:-2] or key.shape[-1] != dim:
            raise ValueError(f"key must have shape {(*query.shape[:-2], 'n_k', dim)}, got {tuple(key.shape)}")
        if key.dtype != query.dtype:
            raise TypeError(f"key must have the dtype of query, {query.dtype}, got {key.dtype}")
        wide = wide_dtype(xp, query)
        with no_autocast(query):
            scores = query.to(wide) @ key.to(wide).mT / math.sqrt(dim)
        return contextual_positions(scores.sigmoid(), max_position=len(self.weight) - 1)

    def extra_repr(self) -> str:
        return f"dim={self.weight.shape[1]}, max_position={len(self.weight) - 1}"
