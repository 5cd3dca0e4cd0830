"""Whether a small Transformer learns the order of two tokens."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from posenc._checks import check_even_dim, integer
from posenc.experiments._training import OrderModel, adam, check_bias, check_layers, share, train
from posenc.experiments.transformer import one_thread


@dataclass(frozen=True)
class OrderResult:
    """What `train_order_task` measured."""

    losses: tuple[float, ...]
    """Mean binary cross-entropy over all pairs before each step, in nats; ln 2 = 0.6931 is a coin toss."""

    accuracy: float
    """Share of the pairs that the trained model labels rightly."""

    swap_difference: float
    """Largest |logit(a, b) − logit(b, a)| of the trained model."""


def train_order_task(
    encoding: nn.Module | None = None,
    *,
    rotary: nn.Module | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    n_tokens: int = 12,
    dim: int = 32,
    steps: int = 200,
    seed: int = 0,
) -> OrderResult:
    """What a small Transformer learns of the order of two tokens.

    label(a, b) = 1 if a < b else 0, for all n_tokens · (n_tokens − 1) ordered pairs of distinct tokens.

    The model: token embedding, `encoding`, one pre-norm Transformer layer with one head, mean over the two
    positions, one logit. Trained on all pairs at once with Adam (rate 0.003) in float64. The pairs are also
    what it is tested on: the question is what the model can express, not how well it generalises.

    Args:
        encoding: layer that adds codes to embeddings (batch, 2, dim), such as `posenc.nn.SinusoidalEncoding`;
            a copy of it is trained along, so yours stays as it is. None: no code.
        rotary: layer that turns queries and keys (batch, 1, 2, dim), such as `posenc.nn.RotaryEmbedding`; a
            copy of it is used. None: they stay as they are.
        bias: added to the attention scores, shape (2, 2), rows are queries; None: no bias.
        causal: whether a position is kept from seeing later ones.
        n_tokens: size of the vocabulary, at least 2.
        dim: width of the model, even.
        steps: steps of training, at least 1.
        seed: of the weights and of any dropout in `encoding`. torch's global generator is left untouched.

    Returns:
        An `OrderResult`: losses, accuracy, swap_difference.

    Raises:
        TypeError, ValueError: an argument of the wrong kind or out of range.

    >>> from posenc.nn import SinusoidalEncoding
    >>> train_order_task().accuracy, train_order_task(SinusoidalEncoding(32, dropout=0.0)).accuracy
    (0.5, 1.0)

    Source: an experiment of this book, described in order.md#order-task.
    """
    n_tokens = integer("n_tokens", n_tokens, minimum=2)
    dim = check_even_dim(dim)
    steps = integer("steps", steps, minimum=1)
    seed = integer("seed", seed, minimum=0)
    check_layers(encoding=encoding, rotary=rotary)
    check_bias(bias, 2)
    pairs = torch.tensor([(a, b) for a in range(n_tokens) for b in range(n_tokens) if a != b])
    labels = (pairs[:, 0] < pairs[:, 1]).double()
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        # torch.manual_seed would reach the generators of other devices too, which nothing here restores.
        torch.default_generator.manual_seed(seed)
        layers = copy.deepcopy((encoding, rotary))
        model = OrderModel(n_tokens, dim, *layers, bias, causal).double()
        loss = nn.functional.binary_cross_entropy_with_logits
        optimizer = adam(model, 3e-3)
        losses = train(optimizer, steps, lambda: loss(model(pairs), labels))
    model.eval()
    with torch.no_grad():
        logits = model(pairs)
        swapped = model(pairs.flip(1))
    return OrderResult(
        losses=tuple(losses),
        accuracy=share((logits > 0) == (labels > 0)),
        swap_difference=float((logits - swapped).abs().max()),
    )
