"""Claims about order: who is blind to it, and what gives it back."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import torch

from posenc import apply_rotary, causal_mask, dot_product_attention, sinusoidal_encoding
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.order import equivariance_error, invariance_error

_RNG = np.random.default_rng(0)
_X, _W = _RNG.normal(size=(3, 8)), _RNG.normal(size=(3, 8, 8))
_DISTANCE = np.abs(np.arange(3)[:, None] - np.arange(3))


def _distinct(code: Any = 0.0, turn: Callable[[Any], Any] = lambda x: x, **options: Any) -> int:
    """How many different pooled outputs attention gives for the six orders of three tokens."""
    results = []
    for order in permutations(range(3)):
        y = _X[list(order)] + code
        output, _ = dot_product_attention(turn(y @ _W[0]), turn(y @ _W[1]), y @ _W[2], **options)
        results.append(output.mean(axis=0))
    return len(np.unique(np.round(results, 8), axis=0))


@claim("only if", "order.md#causal-mask")
def blind_without_code() -> Found:
    blind, masked = _distinct(), _distinct(mask=causal_mask(3))
    return found(blind == 1, masked == 6, blind=blind, masked=masked)


@claim("only if", "order.md#pooling")
def attention_is_invariant() -> Found:
    def attend(x: np.ndarray) -> np.ndarray:
        return dot_product_attention(x @ _W[0], x @ _W[1], x @ _W[2])[0]

    tokens = invariance_error(attend, _X, [2, 0, 1])
    pooled = invariance_error(lambda x: attend(x).mean(axis=0), _X, [2, 0, 1])
    return found(pooled < 1e-9, tokens > 0.1, tokens=tokens)


@claim("only if", "order.md#proof")
def encoder_is_equivariant() -> Found:
    """A layer with its MLP, layer norm and dropout."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dtype=torch.float64)
        x, turn = torch.randn(1, 5, 16, dtype=torch.float64)[0], [4, 2, 0, 1, 3]
        mask = causal_mask(5, like=x)
        with torch.no_grad():
            training = equivariance_error(lambda y: layer(y[None])[0], x, turn)
            layer.eval()
            plain = equivariance_error(lambda y: layer(y[None])[0], x, turn)
            masked = equivariance_error(lambda y: layer(y[None], src_mask=mask)[0], x, turn)
    return found(plain < 1e-9, min(training, masked) > 0.1, training=training, masked=masked)


@claim("only if", "order.md#false")
def relative_restores_order() -> Found:
    penalty, rotary = _distinct(bias=-1.0 * _DISTANCE), _distinct(turn=lambda x: apply_rotary(x, 3))
    code = _distinct(code=sinusoidal_encoding(3, 8))
    return found(rotary == code == 6, penalty < 6, penalty=penalty, rotary=rotary)


@claim("only if", "order.md#same-words")
def answers_get_better() -> Found:
    """Where the answer is another one for each order of the words, and where all orders have the same."""
    blind, coded = _distinct(), _distinct(code=sinusoidal_encoding(3, 8))
    return found(coded > blind, blind == 1, blind=blind, coded=coded)


@claim("only if", "alibi.md#direction")
def alibi_restores_order() -> Found:
    both = _distinct(bias=-0.5 * _DISTANCE)
    masked = _distinct(bias=-0.5 * _DISTANCE, mask=causal_mask(3))
    return found(masked == 6, both < 6, both=both, masked=masked)


@claim("false", "primer.md#shapes")
def one_vector_a_sentence() -> Found:
    x = np.random.default_rng(0).normal(size=(5, 7, 8))
    shape = dot_product_attention(x, x, x)[0].shape
    return found(shape == (5, 8), shape == (5, 7, 8), sentences=shape[0], tokens=shape[1], dim=shape[2])
