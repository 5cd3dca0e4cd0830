"""What the small trainings share: checks of arguments, the model of pairs, the loop."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from posenc.experiments.transformer import Single, Transformer, hide
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
    if bias is not None and not bias.is_floating_point():
        raise TypeError(f"bias must be real floating, got dtype {bias.dtype}")


class OrderModel(nn.Module):
    """(batch, 2) token ids to (batch,) logits: one layer with one head, and the mean over the two tokens."""

    def __init__(
        self,
        n_tokens: int,
        dim: int,
        encoding: nn.Module | None = None,
        rotary: nn.Module | None = None,
        bias: Tensor | None = None,
        causal: bool = False,
    ) -> None:
        super().__init__()
        if causal:
            later = hide(torch.from_numpy(causal_mask(2)))
            bias = later if bias is None else bias + later
        self.outputs = Transformer(n_tokens, None, dim, [Single(rotary, bias)], added=encoding)
        self.read = nn.Linear(dim, 1)

    def forward(self, ids: Tensor) -> Tensor:
        return self.after_codes(self.outputs.embed(ids))

    def after_codes(self, x: Tensor) -> Tensor:
        """What becomes of embeddings (batch, 2, dim) that have their codes."""
        logits: Tensor = self.read(self.outputs.after_codes(x).mean(dim=-2)).squeeze(-1)
        return logits


def adam(model: nn.Module, rate: float) -> torch.optim.Adam:
    """Adam that moves all parameters of a model together: the same numbers as one by one, in fewer calls."""
    return torch.optim.Adam(model.parameters(), lr=rate, foreach=True)


def train(optimizer: torch.optim.Optimizer, steps: int, compute_loss: Callable[[], Tensor]) -> list[float]:
    """The loss before each step."""
    losses = []
    for _ in range(steps):
        loss = compute_loss()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def share(right: Tensor) -> float:
    """How much of it is True."""
    return float(right.double().mean())
