"""The one tiny Transformer of all experiments: pre-norm layers of causal or full attention, on a CPU in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from posenc.attention import dot_product_attention

__all__ = ["Layer", "Single", "Transformer", "feed_forward", "hide", "one_thread"]


class Transformer(nn.Module):
    """Token ids (batch, n) or (batch, n, slots) to logits (batch, n, answers).

    Args:
        vocabulary: number of token ids. The embeddings of the slots of a step are added.
        answers: number of logits; None: the outputs are vectors of the model's width.
        dim: width of the model.
        positions: for each layer, how its attention knows positions, as in `Layer`.
        heads: number of heads.
        added: layer that adds codes to embeddings (batch, n, dim); None: no codes.
        padding: whether id 0 is an empty slot, whose embedding is zero and stays so.
        norm: whether a LayerNorm stands before the logits.
    """

    def __init__(
        self,
        vocabulary: int,
        answers: int | None,
        dim: int,
        positions: Iterable[nn.Module],
        *,
        heads: int = 1,
        added: nn.Module | None = None,
        padding: bool = False,
        norm: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, dim, padding_idx=0 if padding else None)
        self.added = added
        self.layers = nn.ModuleList(Layer(dim, each, heads=heads) for each in positions)
        self.read: nn.Module = nn.Identity() if answers is None else nn.Linear(dim, answers)
        if norm:
            self.read = nn.Sequential(nn.LayerNorm(dim), self.read)

    def forward(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """`positions`: those of the tokens, for what is added to embeddings; None: from 0 on."""
        return self.after_codes(self.embed(ids, positions))

    def embed(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        """The embeddings (batch, n, dim) with their codes."""
        x: Tensor = self.embedding(ids)
        if ids.ndim == 3:
            x = x.sum(dim=2)
        if self.added is not None:
            x = self.added(x) if positions is None else self.added(x, positions=positions)
        return x

    def after_codes(self, x: Tensor) -> Tensor:
        """What becomes of embeddings (batch, n, dim) that have their codes."""
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.read(x)
        return logits

    @torch.no_grad()
    def attention(self, ids: Tensor) -> list[Tensor]:
        """For each layer the weights of its heads, (batch, heads, n, n)."""
        found, x = [], self.embed(ids)
        for layer in self.layers:
            assert isinstance(layer, Layer)
            found.append(layer.weights(x))
            x = layer(x)
        return found


class Layer(nn.Module):
    """One pre-norm layer: attention and a feed-forward network, (batch, n, dim) to the same.

    Args:
        dim: width of the model.
        positions: layer that gets queries, keys and values (batch, heads, n, dim / heads) and the inputs
            (batch, n, dim), and gives queries, keys, values, and what is added to their scores or None.
        heads: number of heads. With more than one their outputs go through a matrix.
    """

    def __init__(self, dim: int, positions: nn.Module, *, heads: int = 1) -> None:
        super().__init__()
        self.heads, self.positions = heads, positions
        self.norm = nn.LayerNorm(dim)
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.output: nn.Module = nn.Identity() if heads == 1 else nn.Linear(dim, dim)
        self.feed_forward = feed_forward(dim)

    def forward(self, x: Tensor) -> Tensor:
        query, key, value, added = self._prepared(x)
        mixed = scaled_dot_product_attention(query, key, value, attn_mask=added)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        outputs: Tensor = x + self.feed_forward(x)
        return outputs

    def weights(self, x: Tensor) -> Tensor:
        """(batch, heads, n, n): of attention for inputs x."""
        query, key, value, added = self._prepared(x)
        if added is not None:
            added = added.expand(*query.shape[:-1], key.shape[-2])
        return dot_product_attention(query, key, value, bias=added)[1]

    def _prepared(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        y = self.norm(x)
        query, key, value = (
            project(y).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        prepared: tuple[Tensor, Tensor, Tensor, Tensor | None] = self.positions(query, key, value, y)
        return prepared


class Single(nn.Module):
    """The `positions` of a layer that turns queries and keys, or adds one bias, or neither.

    Args:
        rotary: layer that turns queries and keys, such as `posenc.nn.RotaryEmbedding`; None: they stay.
        bias: (n, n), added to the scores of every head; −inf where a key is not seen; None: no bias.
    """

    def __init__(self, rotary: nn.Module | None = None, bias: Tensor | None = None) -> None:
        super().__init__()
        self.rotary, self.bias = rotary, bias

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, inputs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        if self.rotary is not None:
            query, key = self.rotary(query, key)
        return query, key, value, None if self.bias is None else self.bias.to(query.dtype)


def feed_forward(dim: int) -> nn.Module:
    """A pre-norm network of one hidden layer, twice as wide, (..., dim) to the same."""
    return nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))


def hide(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """What is added to scores: −inf where the mask is True, and 0 elsewhere."""
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(mask, -math.inf)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch: faster for such small tensors, and sums do not depend on the number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
