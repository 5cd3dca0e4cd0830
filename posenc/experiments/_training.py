"""What the small trainings share: a Transformer of one layer, the loop, checks of arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from posenc.attention import dot_product_attention
from posenc.masks import causal_mask


def check_layers(**layers: object) -> None:
    for name, layer in layers.items():
        if layer is not None and not isinstance(layer, nn.Module):
            raise TypeError(f"{name} must be a torch.nn.Module or None, got {type(layer).__name__}")


def check_bias(bias: object, n: int) -> None:
    if bias is not None and not isinstance(bias, Tensor):
        raise TypeError(f"bias must be a torch.Tensor or None, got {type(bias).__name__}")
    if bias is not None and bias.shape != (n, n):
        raise ValueError(f"bias must have shape {n, n}, got {tuple(bias.shape)}")


class Encoder(nn.Module):
    """(batch, seq) token ids to (batch, seq, dim) by one pre-norm layer with one head; causal for seq = 2."""

    def __init__(
        self,
        n_tokens: int,
        dim: int,
        encoding: nn.Module | None,
        rotary: nn.Module | None,
        bias: Tensor | None = None,
        causal: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, dim)
        self.encoding, self.rotary = encoding, rotary
        self.bias = bias
        self.mask = torch.from_numpy(causal_mask(2)) if causal else None
        self.norm = nn.LayerNorm(dim)
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))
        self.feed_forward = feed_forward(dim)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        if self.encoding is not None:
            x = self.encoding(x)
        return self.after_codes(x)

    def after_codes(self, x: Tensor) -> Tensor:
        """What becomes of embeddings (batch, seq, dim) that have their codes."""
        y = self.norm(x)
        query, key = self.query(y), self.key(y)
        if self.rotary is not None:
            query, key = (turned.squeeze(1) for turned in self.rotary(query.unsqueeze(1), key.unsqueeze(1)))
        mixed, _ = dot_product_attention(query, key, self.value(y), bias=self.bias, mask=self.mask)
        x = x + mixed
        outputs: Tensor = x + self.feed_forward(x)
        return outputs


def feed_forward(dim: int) -> nn.Module:
    return nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))


class OrderModel(Encoder):
    """(batch, 2) token ids to (batch,) logits."""

    def __init__(self, n_tokens: int, dim: int, *layers: Any) -> None:
        super().__init__(n_tokens, dim, *layers)
        self.read = nn.Linear(dim, 1)

    def after_codes(self, x: Tensor) -> Tensor:
        return self.read(super().after_codes(x).mean(dim=-2)).squeeze(-1)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch: faster for such small tensors, and sums do not depend on the number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def train(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    steps: int,
    cross_entropy: Callable[[Tensor, Tensor], Tensor],
) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(steps):
        loss = cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def share(right: Tensor) -> float:
    return float(right.double().mean())
