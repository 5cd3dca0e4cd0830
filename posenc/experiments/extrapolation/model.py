"""The tiny causal Transformer of the sweep: two pre-norm layers, four heads, and what a scheme does to them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from posenc.attention import dot_product_attention
from posenc.experiments.extrapolation.schemes import Positions, Scheme

__all__ = ["Model"]

DIM, HEADS, LAYERS = 64, 4, 2


class Model(nn.Module):
    """(batch, n, slots) ids to (batch, n, answers) logits."""

    def __init__(self, scheme: Scheme, vocabulary: int, answers: int) -> None:
        super().__init__()
        self.scheme = scheme
        self.embedding = nn.Embedding(vocabulary, DIM, padding_idx=0)
        self.added = scheme.adder(DIM)
        self.layers = nn.ModuleList(Layer(scheme, index) for index in range(LAYERS))
        self.read = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, answers))

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """`start`: the position of the first step, which only what is added to embeddings can tell."""
        x = self.embedding(ids).sum(dim=2)
        if self.added is not None:
            x = self.added(x, offset=start)
        for layer in self.layers:
            x = layer(x)
        logits: Tensor = self.read(x)
        return logits

    @torch.no_grad()
    def take_over(self, other: Model) -> None:
        """The weights of another, as far as they are used here: of a longer table the first rows."""
        trained = dict(other.named_parameters())
        for name, weight in self.named_parameters():
            weight.copy_(trained[name][: len(weight)])

    @torch.no_grad()
    def attention(self, ids: Tensor) -> list[Tensor]:
        """For each layer the weights of its heads, (batch, heads, n, n)."""
        found = []
        hooks = [
            layer.register_forward_pre_hook(lambda layer, inputs: found.append(layer.weights(*inputs)))
            for layer in self.layers
        ]
        self(ids)
        for hook in hooks:
            hook.remove()
        return found


class Layer(nn.Module):
    """One pre-norm layer of causal attention and a feed-forward network."""

    def __init__(self, scheme: Scheme, index: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(DIM)
        self.project, self.output = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.positions = Positions(scheme, index, DIM // HEADS, HEADS)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(DIM), nn.Linear(DIM, 2 * DIM), nn.ReLU(), nn.Linear(2 * DIM, DIM)
        )

    def forward(self, x: Tensor) -> Tensor:
        query, key, value, added = self._prepared(x)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=added)
        x = x + self.output(mixed.transpose(1, 2).flatten(2))
        outputs: Tensor = x + self.feed_forward(x)
        return outputs

    def weights(self, x: Tensor) -> Tensor:
        query, key, value, added = self._prepared(x)
        added = added.expand(*query.shape[:-1], key.shape[-2])
        return dot_product_attention(query, key, value, bias=added)[1]

    def _prepared(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        query, key, value = self.project(self.norm(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        prepared: tuple[Tensor, Tensor, Tensor, Tensor] = self.positions(query, key, value)
        return prepared
