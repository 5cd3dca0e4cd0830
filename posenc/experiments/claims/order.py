"""Claims about order: who is blind to it, and what gives it back."""

from collections.abc import Callable
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import torch

from posenc import apply_rotary, causal_mask, dot_product_attention, integer_encoding, sinusoidal_encoding
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.experiments.extrapolation import extrapolation_results
from posenc.experiments.order import train_order_task
from posenc.experiments.reordering import ReorderingResult, reordering_sentences, train_reordering
from posenc.nn import RotaryEmbedding, SinusoidalEncoding
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


@claim("only if", "hybrids.md#false")
def bag_of_words() -> Found:
    """Six orders of three tokens: an encoder and a decoder, both without positions."""
    encoder, decoder = _distinct(), _distinct(mask=causal_mask(3))
    return found(encoder == 1, decoder == 6, encoder=encoder, decoder=decoder)


@claim("only if", "locality.md#false")
def locality_gives_order() -> Found:
    """A preference for near keys: the same on both sides, and on the left alone."""
    both = _distinct(bias=-1.0 * _DISTANCE)
    left = _distinct(bias=np.where(np.tri(3), -1.0, -9.0) * _DISTANCE)
    return found(left == 6, both < 6, left=left, both=both)


@claim("false", "naive.md#one-column")
def nothing_from_integers() -> Found:
    """The order task with an integer in one of 32 columns, and without positions."""

    class InOneColumn(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            code = integer_encoding(x.shape[-2], 1, start=1, dtype=x.dtype)
            return x + torch.nn.functional.pad(code, (0, x.shape[-1] - 1))

    integers, none = (train_order_task(code, steps=100).accuracy for code in (InOneColumn(), None))
    return found(integers < 0.6, integers=integers, none=none)


@cache
def _translated(scheme: str) -> ReorderingResult:
    codes = {"sinusoidal": SinusoidalEncoding(32, dropout=0.0)}
    return train_reordering(
        codes.get(scheme), rotary=RotaryEmbedding(32) if scheme == "rotary" else None, steps=80
    )


@claim("false", "order.md#false")
def loss_shows_order() -> Found:
    """Translations of the chapter `reordering` by a model without positions: its loss, and what is right."""
    run = _translated("none")
    fell = run.losses[-1] < run.losses[0] / 2
    return found(
        fell and run.accuracy > 0.9, fell, first=run.losses[0], last=run.losses[-1], right=run.accuracy
    )


@claim("false", "reordering.md#false")
def nothing_without_positions() -> Found:
    """Which of the four words of a translation such a model gets right."""
    subject, verb, _, last = _translated("none").word_accuracy
    return found(max(verb, last) < 0.5, subject=subject, verb=verb, last=last)


@claim("only if", "reordering.md#false")
def rotary_equals_sinusoidal() -> Found:
    """On the task of that page; and on two of the sweep, where the ranges of five seeds do not overlap."""
    here = [_translated(name).accuracy for name in ("rotary", "sinusoidal")]
    results, means, clear = extrapolation_results(), dict[str, float](), list[bool]()
    for task, length, better in (("back", 40, "rotary"), ("sort", 256, "sinusoidal")):
        at = results.lengths.index(length)
        seeds = {name: results.scores(name, task)[:, at] for name in ("rotary", "sinusoidal")}
        worst = max(scores.max() for name, scores in seeds.items() if name != better)
        clear.append(seeds[better].min() > worst)
        means |= {f"{task}_{name}": float(scores.mean()) for name, scores in seeds.items()}
    return found(min(here) == 1, all(clear), **means)


@claim("false", "reordering.md#false")
def attention_aligns() -> Found:
    """How often the largest weight of a word lies on the token that it translates, with RoPE and without positions."""

    def share(scheme: str) -> float:
        hits = []
        for source, weights in _translated(scheme).attention.items():
            order = [0, 1, 2, 3] if source.endswith(".") else [0, 2, 3, 1]
            hits += (weights.argmax(dim=1) == torch.tensor(order)).tolist()
        return float(np.mean(hits))

    rotary = share("rotary")
    return found(rotary > 0.95, share=rotary, none=share("none"), right=_translated("rotary").accuracy)


@claim("only if", "reordering.md#false")
def positions_raise_bleu() -> Found:
    """Whether the words of a sentence, without their order, decide its translation: always, or if 我 is the subject."""
    sentences = reordering_sentences()

    def decided(chosen: dict[str, str]) -> float:
        of_bag: dict[str, set[str]] = {}
        for source, target in chosen.items():
            of_bag.setdefault(" ".join(sorted(source.split())), set()).add(target)
        return float(np.mean([len(targets) == 1 for targets in of_bag.values()]))

    all_, mine = decided(sentences), decided({s: t for s, t in sentences.items() if s.startswith("我 ")})
    return found(all_ == 0, mine == 1, all=all_, mine=mine)
