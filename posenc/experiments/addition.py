"""What training does to embeddings and codes, and what can be read back from their sum."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from posenc._checks import check_even_dim, integer, number
from posenc.experiments._training import share, train
from posenc.experiments.transformer import one_thread
from posenc.sinusoidal import sinusoidal_encoding


@dataclass(frozen=True)
class TrainingSteps:
    """What `train_steps` has seen: every number before the first step and after each."""

    embedding: Tensor
    """The token embeddings, shape (steps + 1, n_tokens, dim)."""

    codes: Tensor
    """The codes of positions 0, 1, ..., shape (steps + 1, n_positions, dim)."""

    losses: tuple[float, ...]
    """Mean cross-entropy before each step, in nats."""


def train_steps(
    encoding: nn.Module,
    ids: Sequence[int],
    *,
    n_tokens: int,
    n_positions: int,
    dim: int,
    steps: int = 3,
    rate: float = 0.05,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> TrainingSteps:
    """A few training steps on one sentence, and what they do to token embeddings and position codes.

    The model: token embedding, `encoding`, one linear layer that guesses the next token (after the last one,
    the first). Trained in float64 with AdamW.

    Args:
        encoding: layer that adds codes to embeddings (1, seq, dim), such as `posenc.nn.LearnedEncoding`; a
            copy of it is trained along, so yours stays as it is.
        ids: the sentence, token ids in 0..n_tokens−1.
        n_tokens: size of the vocabulary.
        n_positions: how many positions to watch, at least as many as the sentence has.
        dim: width of the embeddings.
        steps: how many steps, at least 1.
        rate: learning rate. With Adam it is about what a number moves in one step.
        weight_decay: of AdamW, which shrinks every parameter, visited or not, by rate · weight_decay a step.
        seed: of the weights. torch's global generator is left untouched.

    Returns:
        A `TrainingSteps`: embedding, codes, losses.

    Raises:
        TypeError, ValueError: an argument of the wrong kind or out of range.

    >>> from posenc.nn import SinusoidalEncoding
    >>> run = train_steps(SinusoidalEncoding(4, dropout=0.0), [0, 1], n_tokens=3, n_positions=2, dim=4)
    >>> (run.embedding[3] - run.embedding[0]).abs().amax(dim=1).round(decimals=2).tolist()
    [0.15, 0.15, 0.0]
    >>> bool((run.codes[3] == run.codes[0]).all())
    True

    Source: an experiment of this book, described in addition.md#fixed-and-trained.
    """
    if not isinstance(encoding, nn.Module):
        raise TypeError(f"encoding must be a torch.nn.Module, got {type(encoding).__name__}")
    n_tokens = integer("n_tokens", n_tokens, minimum=1)
    sentence = [integer("each of ids", token, minimum=0) for token in ids]
    if not sentence or max(sentence) >= n_tokens:
        raise ValueError(f"ids must hold at least one id, all below n_tokens {n_tokens}, got {sentence}")
    n_positions = integer("n_positions", n_positions, minimum=len(sentence))
    dim = integer("dim", dim, minimum=1)
    steps = integer("steps", steps, minimum=1)
    seed = integer("seed", seed, minimum=0)
    inputs = torch.tensor([sentence])
    labels = inputs.roll(-1)
    with one_thread(), torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.default_generator.manual_seed(seed)
        embedding, copied = nn.Embedding(n_tokens, dim), copy.deepcopy(encoding)
        model = nn.Sequential(embedding, copied, nn.Linear(dim, n_tokens)).double()
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=weight_decay)
        tables, codes = [embedding.weight.detach().clone()], [_codes(copied, n_positions, dim)]
        loss, losses = nn.functional.cross_entropy, []
        for _ in range(steps):
            losses += train(optimizer, 1, lambda: loss(model(inputs)[0], labels[0]))
            tables.append(embedding.weight.detach().clone())
            codes.append(_codes(copied, n_positions, dim))
    return TrainingSteps(torch.stack(tables), torch.stack(codes), tuple(losses))


def _codes(encoding: nn.Module, n: int, dim: int) -> Tensor:
    """What the layer adds at positions 0..n-1, dropout aside."""
    training = encoding.training
    encoding.eval()
    with torch.no_grad():
        codes = encoding(torch.zeros(1, n, dim, dtype=torch.float64))[0].clone()
    encoding.train(training)
    return codes


@dataclass(frozen=True)
class ProbeResult:
    """What `probe_sum` could read from sums of a token embedding and a position code, as shares of 1."""

    linear_token: float
    """A linear reader names the token."""

    linear_position: float
    """A linear reader names the position."""

    linear_position_alone: float
    """The same for a reader that was given the code without the token: what the addition cost it."""

    nearest_token: float
    """The pair of token and position whose sum lies nearest has this token."""

    nearest_position: float
    """The pair of token and position whose sum lies nearest has this position."""


def probe_sum(
    dim: int,
    *,
    n_tokens: int = 200,
    length: int = 64,
    noise: float = 0.1,
    max_pairs: int = 20_000,
    seed: int = 0,
) -> ProbeResult:
    """How much of token and position can be read back from their sum.

    x = e_v + p_t + noise, with embeddings e_v from N(0, 1) that are not trained, and sinusoidal codes p_t.

    Two readers. The linear one is fitted by least squares to one-hot labels, on half of all (token, position)
    pairs, and tested on the other half; the largest output is its answer. The nearest one is told all e_v and
    p_t and looks for the pair whose sum lies nearest to x; it is tested on up to 500 of the same pairs.

    Args:
        dim: width, even.
        n_tokens: size of the vocabulary, at least 2.
        length: number of positions, at least 2.
        noise: standard deviation of what is added to each number of a sum, at least 0. With 0 the linear
            reader would make use of differences in the last decimals; a penalty of 1e-9 of the mean energy
            on its weights ends that.
        max_pairs: if there are more pairs, so many are drawn for the linear reader, half to learn from.
        seed: of embeddings, pairs and noise. torch's global generator is left untouched.

    Returns:
        A `ProbeResult`: linear_token, linear_position, linear_position_alone, nearest_token,
        nearest_position.

    Raises:
        TypeError, ValueError: an argument of the wrong kind or out of range.

    >>> result = probe_sum(16, n_tokens=20, length=10)
    >>> result.nearest_token, result.nearest_position
    (1.0, 1.0)

    Source: an experiment of this book, described in addition.md#pollution.
    """
    dim = check_even_dim(dim)
    n_tokens = integer("n_tokens", n_tokens, minimum=2)
    length = integer("length", length, minimum=2)
    max_pairs = integer("max_pairs", max_pairs, minimum=4)
    seed = integer("seed", seed, minimum=0)
    noise = number("noise", noise, at_least=0)
    with one_thread():
        return _probe_sum(dim, n_tokens, length, noise, max_pairs, seed)


@lru_cache(maxsize=16)  # a page in each language asks for the same
def _probe_sum(dim: int, n_tokens: int, length: int, noise: float, max_pairs: int, seed: int) -> ProbeResult:
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randn(n_tokens, dim, generator=generator, dtype=torch.float64)
    codes = sinusoidal_encoding(length, dim, dtype=torch.float64)
    pairs = torch.randperm(n_tokens * length, generator=generator)[:max_pairs]
    tokens, positions = pairs // length, pairs % length
    alone = codes[positions] + noise * torch.randn(len(pairs), dim, generator=generator, dtype=codes.dtype)
    sums = alone + embeddings[tokens]
    half = len(pairs) // 2
    token, position = _linear_readers(sums, (tokens, positions), half)
    (position_alone,) = _linear_readers(alone, (positions,), half)
    found = _nearest_pairs(sums[half : half + 500], embeddings, codes)
    return ProbeResult(
        linear_token=token,
        linear_position=position,
        linear_position_alone=position_alone,
        nearest_token=share(found // length == tokens[half : half + 500]),
        nearest_position=share(found % length == positions[half : half + 500]),
    )


def _linear_readers(x: Tensor, labels: Sequence[Tensor], half: int) -> list[float]:
    """For each kind of labels, how often the affine map that fits the first half is right on the second."""
    x = nn.functional.pad(x, (0, 1), value=1.0)
    wanted = [nn.functional.one_hot(kind).to(x.dtype) for kind in labels]
    gram = x[:half].T @ x[:half]
    gram.diagonal().add_(1e-9 * gram.diagonal().mean())
    weights = torch.linalg.solve(gram, x[:half].T @ torch.cat(wanted, dim=1)[:half])
    outputs = (x[half:] @ weights).split([kind.shape[1] for kind in wanted], dim=1)
    return [share(output.argmax(dim=1) == kind[half:]) for output, kind in zip(outputs, labels, strict=True)]


def _nearest_pairs(x: Tensor, embeddings: Tensor, codes: Tensor) -> Tensor:
    """token · length + position of the sum nearest to each row of x."""
    sums = (embeddings[:, None] + codes).flatten(0, 1)
    half_squares = sums.square().sum(dim=1) / 2
    # Some rows at a time: with 64 000 pairs each takes half a megabyte of scores.
    return torch.cat([(some @ sums.T - half_squares).argmax(dim=1) for some in x.split(50)])
