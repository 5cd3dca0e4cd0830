"""Whether one head can count sentences, also longer ones than it was trained on."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from posenc._checks import check_even_dim, integer
from posenc.contextual import forget_bias
from posenc.experiments._training import adam, check_layers, share, train
from posenc.experiments.transformer import Transformer, hide, one_thread
from posenc.masks import causal_mask
from posenc.nn.contextual import ContextualPositions

_TOKENS = (".", "?", "!", "a", "b", "c", "d", "e")  # three marks that end a sentence, five words
_MARKS = 3
_TEXTS = 512, 32  # to train on, to test on


@dataclass(frozen=True)
class SentenceResult:
    """What `train_sentence_task` measured. A text is named by its tokens and the most words of a sentence."""

    losses: tuple[float, ...]
    """Mean cross-entropy of a mark before each step, in nats; ln 3 = 1.0986 is guessing."""

    accuracy: dict[tuple[int, int], float]
    """Share of the places of fresh texts at which the right mark is named; 1/3 is guessing."""

    tokens: tuple[str, ...]
    """One of the texts of the first kind."""

    positions: Tensor | None
    """What its last token took for the positions of all, float64 (tokens,); None without contextual positions."""


def train_sentence_task(
    contextual: ContextualPositions | None = None,
    *,
    rotary: nn.Module | None = None,
    gate: nn.Module | None = None,
    back: int = 3,
    n: int = 48,
    longest: int = 8,
    tests: Sequence[tuple[int, int]] = ((48, 8), (192, 8), (96, 16), (192, 32)),
    layers: int = 1,
    dim: int = 32,
    steps: int = 120,
    seed: int = 0,
) -> SentenceResult:
    """What one head learns of counting sentences, and keeps on longer texts and in longer sentences.

    label(t) = the last mark but back − 1 up to t, for every t that has as many behind it: with back = 3, after
    a b ! c . d a ? e it is "!".

    A sentence is 1 to `longest` words and a mark, . or ? or !, all drawn at random. How many tokens back the mark
    stands says little; that it is the third one back says all.

    The model: token embedding, `layers` causal pre-norm Transformer layers with one head, three logits. Trained with
    Adam (rate 0.01) in float64 on 512 texts, 16 at a time; tested on 32 fresh ones of each kind.

    Args:
        contextual: `posenc.nn.ContextualPositions` of width dim; each layer trains a copy of it. None: no bias.
        rotary: layer that turns queries and keys (batch, 1, n, dim), such as `posenc.nn.RotaryEmbedding`.
        gate: `posenc.nn.ForgetGate` of width dim and one head; each layer trains a copy of it.
        back: which mark is asked for, 1 for the last one.
        n: tokens of a text in training.
        longest: the most words of a sentence in training.
        tests: n and longest of the texts to test on.
        layers: number of layers.
        dim: width of the model, even.
        steps: steps of training, at least 1.
        seed: of the weights and texts. torch's global generator is left untouched.

    Returns:
        A `SentenceResult`: losses, accuracy, tokens, positions.

    Raises:
        TypeError, ValueError: an argument of the wrong kind or out of range, or texts too short for an answer.

    >>> from posenc.nn import ContextualPositions
    >>> result = train_sentence_task(ContextualPositions(32, max_position=8))
    >>> result.accuracy[48, 8] > 0.99, result.accuracy[192, 8] > 0.99
    (True, True)

    Source: an experiment of this book, described in contextual.md#task.
    """
    check_layers(contextual=contextual, rotary=rotary, gate=gate)
    if contextual is not None and not hasattr(contextual, "positions"):
        raise TypeError(
            f"contextual must tell its positions, as ContextualPositions, got {type(contextual).__name__}"
        )
    back = integer("back", back, minimum=1)
    if not isinstance(tests, Iterable):
        raise TypeError(f"tests must be a list of pairs (n, longest), got {tests!r}")
    kinds = [_kind("n and longest", n, longest, back)]
    kinds += [_kind("each of tests", *pair, back) for pair in tests]
    layers, dim = integer("layers", layers, minimum=1), check_even_dim(dim)
    steps, seed = integer("steps", steps, minimum=1), integer("seed", seed, minimum=0)
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.default_generator.manual_seed(seed)
        heads = [_SentencePositions(*copy.deepcopy((contextual, rotary, gate))) for _ in range(layers)]
        model = Transformer(len(_TOKENS), _MARKS, dim, heads).double()
        texts = _texts(_TEXTS[0], *kinds[0])
        labels = _labels(texts, back)
        optimizer = adam(model, 1e-2)

        def loss_of_a_batch() -> Tensor:
            batch = torch.randint(len(texts), (16,))
            logits = model(texts[batch]).flatten(0, 1)
            return nn.functional.cross_entropy(logits, labels[batch].flatten(), ignore_index=-1)

        losses = train(optimizer, steps, loss_of_a_batch)
        model.eval()
        accuracy = {}
        fresh = {pair: _texts(_TEXTS[1], *pair) for pair in kinds}
        with torch.no_grad():
            for pair in kinds[1:]:
                wanted = _labels(fresh[pair], back)
                asked = wanted >= 0
                accuracy[pair] = share(model(fresh[pair])[asked].argmax(dim=-1) == wanted[asked])
            sample = fresh[kinds[0]][:1]
            model(sample)
    positions = heads[0].positions()
    return SentenceResult(
        losses=tuple(losses),
        accuracy=accuracy,
        tokens=tuple(_TOKENS[i] for i in sample[0].tolist()),
        positions=None if positions is None else positions[0, -1],
    )


def _kind(name: str, n: int, longest: int, back: int) -> tuple[int, int]:
    n, longest = integer(name, n, minimum=1), integer(name, longest, minimum=1)
    if n < back * (longest + 1):
        raise ValueError(
            f"{name} must leave room for {back} sentences of {longest} words and a mark, got {n} tokens"
        )
    return n, longest


def _texts(count: int, n: int, longest: int) -> Tensor:
    """(count, n) ids: sentences of 1 to `longest` words, each ended by a mark; the last one is cut off."""
    ids = torch.randint(_MARKS, len(_TOKENS), (count, n))
    ends = (torch.randint(1, longest + 1, (count, n)) + 1).cumsum(dim=1) - 1
    marks = torch.randint(_MARKS, (count, n))
    row, column = (ends < n).nonzero(as_tuple=True)
    ids[row, ends[row, column]] = marks[row, column]
    return ids


def _labels(ids: Tensor, back: int) -> Tensor:
    """(count, n): the mark that is `back` marks back at each place, −1 where there are not so many."""
    is_mark = ids < _MARKS
    seen = is_mark.cumsum(dim=1)
    # The marks in order, the first in column 1; what is no mark goes to column 0.
    in_order = ids.new_full((len(ids), ids.shape[1] + 1), -1).scatter(1, seen * is_mark, ids)
    wanted = (seen - back + 1).clamp(min=0)
    return torch.where(wanted > 0, in_order.gather(1, wanted), -1)


class _SentencePositions(nn.Module):
    """What one causal head with contextual positions does; `last` are its queries and keys of the last call."""

    def __init__(
        self, contextual: ContextualPositions | None, rotary: nn.Module | None, gate: nn.Module | None
    ) -> None:
        super().__init__()
        self.contextual, self.rotary, self.gate = contextual, rotary, gate
        self.last: tuple[Tensor, Tensor] | None = None

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, inputs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """(batch, 1, n, dim) queries, keys and values, and inputs (batch, n, dim)."""
        if self.rotary is not None:
            query, key = self.rotary(query, key)
        self.last = query.squeeze(1).detach(), key.squeeze(1).detach()
        mask = torch.from_numpy(causal_mask(query.shape[2]))
        added = hide(mask, query.dtype)
        if self.contextual is not None:
            added = added + self.contextual(query.squeeze(1), key.squeeze(1)).unsqueeze(1)
        if self.gate is not None:
            added = added + forget_bias(self.gate(inputs))
        return query, key, value, added

    def positions(self) -> Tensor | None:
        """(batch, n, n): the contextual ones that this layer had in the last call."""
        assert self.last is not None
        return None if self.contextual is None else self.contextual.positions(*self.last)
