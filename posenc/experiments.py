"""The small trainings that the book quotes: seconds on a CPU, and the same result every time. Needs torch."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from posenc._checks import check_even_dim, integer, number
from posenc.attention import dot_product_attention
from posenc.masks import causal_mask
from posenc.sinusoidal import sinusoidal_encoding


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
    """
    n_tokens = integer("n_tokens", n_tokens, minimum=2)
    dim = check_even_dim(dim)
    steps = integer("steps", steps, minimum=1)
    seed = integer("seed", seed, minimum=0)
    _check_layers(encoding=encoding, rotary=rotary)
    _check_bias(bias, 2)
    pairs = torch.tensor([(a, b) for a in range(n_tokens) for b in range(n_tokens) if a != b])
    labels = (pairs[:, 0] < pairs[:, 1]).double()
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), _one_thread():
        # torch.manual_seed would reach the generators of other devices too, which nothing here restores.
        torch.default_generator.manual_seed(seed)
        layers = copy.deepcopy((encoding, rotary))
        model = _OrderModel(n_tokens, dim, *layers, bias, causal).double()
        losses = _train(model, pairs, labels, steps, nn.functional.binary_cross_entropy_with_logits)
    model.eval()
    with torch.no_grad():
        logits = model(pairs)
        swapped = model(pairs.flip(1))
    return OrderResult(
        losses=tuple(losses),
        accuracy=float(((logits > 0) == (labels > 0)).double().mean()),
        swap_difference=float((logits - swapped).abs().max()),
    )


def _check_layers(**layers: object) -> None:
    for name, layer in layers.items():
        if layer is not None and not isinstance(layer, nn.Module):
            raise TypeError(f"{name} must be a torch.nn.Module or None, got {type(layer).__name__}")


def _check_bias(bias: object, n: int) -> None:
    if bias is not None and not isinstance(bias, Tensor):
        raise TypeError(f"bias must be a torch.Tensor or None, got {type(bias).__name__}")
    if bias is not None and bias.shape != (n, n):
        raise ValueError(f"bias must have shape {n, n}, got {tuple(bias.shape)}")


class _Encoder(nn.Module):
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
        self.feed_forward = _feed_forward(dim)

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


def _feed_forward(dim: int) -> nn.Module:
    return nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))


class _OrderModel(_Encoder):
    """(batch, 2) token ids to (batch,) logits."""

    def __init__(self, n_tokens: int, dim: int, *layers: Any) -> None:
        super().__init__(n_tokens, dim, *layers)
        self.read = nn.Linear(dim, 1)

    def after_codes(self, x: Tensor) -> Tensor:
        return self.read(super().after_codes(x).mean(dim=-2)).squeeze(-1)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread for torch: faster for such small tensors, and sums do not depend on the number of cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _train(
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


# Who does it, and to whom: English has two forms for most. No third person singular, so verbs stay as they are.
_PRONOUNS = {"我": ("I", "me"), "你": ("you", "you"), "我们": ("we", "us"), "他们": ("they", "them")}
_VERBS = {"爱": "love", "帮": "help", "想": "miss", "见": "meet"}
_ENDS = {".": ".", "今天": "today", "现在": "now", "天天": "daily"}


def reordering_sentences() -> dict[str, str]:
    """All sentences of `train_reordering`, Chinese to English, tokens set apart by spaces.

    Subject, verb, object: 我 爱 你 . With a time, which Chinese puts before the verb and English last: 我 今天
    爱 你. Both have four tokens in both languages. Subject and object differ, so each sentence has a twin of the
    same tokens with the two exchanged.

    Returns:
        192 sentences: 12 pairs of pronouns, 4 verbs, 3 times or none.

    >>> sentences = reordering_sentences()
    >>> len(sentences), sentences["我 爱 你 ."], sentences["你 今天 想 我"]
    (192, 'I love you .', 'you miss me today')
    """
    pairs = {}
    for (subject, (i, _)), (other, (_, me)) in itertools.permutations(_PRONOUNS.items(), 2):
        for (verb, love), (time, today) in itertools.product(_VERBS.items(), _ENDS.items()):
            source = (subject, verb, other, time) if time == "." else (subject, time, verb, other)
            pairs[" ".join(source)] = f"{i} {love} {me} {today}"
    return pairs


@dataclass(frozen=True)
class ReorderingResult:
    """What `train_reordering` measured, all of it on the sentences that it kept back."""

    losses: tuple[float, ...]
    """Mean cross-entropy of a word over the sentences of training before each step, in nats."""

    translations: dict[str, str]
    """What the trained model makes of each sentence kept back."""

    attention: dict[str, Tensor]
    """For each of them the weights of the four words (rows) on its four tokens, shape (4, 4), float64."""

    accuracy: float
    """Share of these sentences with all four words right."""

    word_accuracy: tuple[float, ...]
    """Share with the right subject, verb, object and last word."""


def train_reordering(
    encoding: nn.Module | None = None,
    *,
    rotary: nn.Module | None = None,
    bias: Tensor | None = None,
    dim: int = 32,
    steps: int = 80,
    seed: int = 0,
) -> ReorderingResult:
    """Translation of four tokens whose order decides who does it to whom.

    The model: token embedding, `encoding`, one pre-norm Transformer encoder layer with one head; then four
    trained vectors, one a word of the translation, look at its outputs by one head of attention, go through a
    feed-forward network, and name the word. The four say which word they stand for, and nothing of the source.
    Trained on all sentences of training at once with Adam (rate 0.003) in float64.

    A quarter of `reordering_sentences` is kept back, always both of the same tokens, and 我 爱 你 . and its
    twin among them. Without positions the two have the same translation, so at most half of them are right.

    Args:
        encoding, rotary, bias: as in `train_order_task`, for 4 tokens; a bias (4, 4) with −inf is a mask too.
        dim: width of the model, even.
        steps: steps of training, at least 1.
        seed: of the weights, of which sentences are kept back, and of any dropout in `encoding`. torch's
            global generator is left untouched.

    Returns:
        A `ReorderingResult`: losses, translations, attention, accuracy, word_accuracy.

    Raises:
        TypeError, ValueError: an argument of the wrong kind or out of range.

    >>> from posenc.nn import SinusoidalEncoding
    >>> train_reordering(SinusoidalEncoding(32, dropout=0.0)).accuracy
    1.0
    >>> train_reordering().accuracy <= 0.5
    True
    """
    dim = check_even_dim(dim)
    steps = integer("steps", steps, minimum=1)
    seed = integer("seed", seed, minimum=0)
    _check_layers(encoding=encoding, rotary=rotary)
    _check_bias(bias, 4)
    sentences = reordering_sentences()
    sources = [source.split() for source in sentences]
    targets = [target.split() for target in sentences.values()]
    words = sorted({word for target in targets for word in target})
    inputs, labels = _ids(sources), _ids(targets)
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), _one_thread():
        torch.default_generator.manual_seed(seed)
        kept = _kept_back(inputs)
        layers = copy.deepcopy((encoding, rotary))
        model = _ReorderingModel(int(inputs.max()) + 1, len(words), dim, *layers, bias).double()
        losses = _train(model, inputs[~kept], labels[~kept], steps, nn.functional.cross_entropy)
    model.eval()
    with torch.no_grad():
        found, weights = model(inputs[kept]).argmax(dim=1), model.weights
    right = found == labels[kept]
    names = [" ".join(source) for source, keep in zip(sources, kept.tolist(), strict=True) if keep]
    return ReorderingResult(
        losses=tuple(losses),
        translations=dict(
            zip(names, (" ".join(words[w] for w in row) for row in found.tolist()), strict=True)
        ),
        attention=dict(zip(names, weights, strict=True)),
        accuracy=_share(right.all(dim=1)),
        word_accuracy=tuple(_share(column) for column in right.T),
    )


def _ids(sentences: list[list[str]]) -> Tensor:
    known = sorted({word for sentence in sentences for word in sentence})
    return torch.tensor([[known.index(word) for word in sentence] for sentence in sentences])


def _kept_back(inputs: Tensor) -> Tensor:
    """Which sentences are not trained on: those of a quarter of the bags of tokens, that of the first always."""
    bags, bag = inputs.sort(dim=1).values.unique(dim=0, return_inverse=True)
    chosen = torch.randperm(len(bags))
    chosen = torch.cat([bag[:1], chosen[chosen != bag[0]]])[: len(bags) // 4]
    return torch.isin(bag, chosen)


class _ReorderingModel(nn.Module):
    """(batch, 4) token ids to (batch, words, 4) logits; `weights` (batch, 4, 4) are those of the last call."""

    def __init__(self, n_tokens: int, n_words: int, dim: int, *layers: Any) -> None:
        super().__init__()
        self.encoder = _Encoder(n_tokens, dim, *layers)
        self.norm = nn.LayerNorm(dim)
        self.slots = nn.Parameter(torch.randn(4, dim))
        self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.feed_forward = _feed_forward(dim)
        self.read = nn.Linear(dim, n_words)
        self.weights = torch.empty(0)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.norm(self.encoder(ids))
        slots = self.slots.expand(len(ids), -1, -1)
        mixed, self.weights = dot_product_attention(slots, self.key(x), self.value(x))
        y = slots + mixed
        return self.read(y + self.feed_forward(y)).mT


@dataclass(frozen=True)
class GapResult:
    """What `train_gap_task` measured. Accuracies are by frame rate, shares of all pairs of frames."""

    losses: tuple[float, ...]
    """Mean binary cross-entropy before each step, in nats."""

    by_seconds: dict[float, float]
    """Accuracy when the encoding is given the time of each frame."""

    by_index: dict[float, float]
    """Accuracy of the same model when it is given index / trained rate, as if no rate ever changed."""

    scale: float | None
    """What the encoding has learned to multiply times by; None if it learns nothing of the kind."""


def train_gap_task(
    encoding: nn.Module,
    *,
    fps: float = 10.0,
    test_fps: Sequence[float] = (5.0, 10.0, 20.0, 30.0),
    clip: float = 4.0,
    unit: float = 1.0,
    dim: int = 16,
    steps: int = 200,
    seed: int = 0,
) -> GapResult:
    """What a small Transformer learns of the time between two events in a clip, and keeps at other frame rates.

    label(t, u) = 1 if u − t > 1 second else 0, for all pairs of frames t < u but those 1 second apart.

    The model is that of `train_order_task`; both tokens are the same flash of light, only their times differ.
    At the trained rate seconds and index say the same: index / fps is the time. So one training serves both,
    and the difference shows at another rate.

    Args:
        encoding: layer that adds codes to embeddings (batch, 2, dim) for given times (batch, 2), such as
            `posenc.nn.TimeEncoding`; a copy of it is trained along, at ten times the rate of the model.
        fps: frames a second in training, above 0.
        test_fps: the rates to test at.
        clip: length of a clip in seconds, above 1.
        unit: how many seconds are 1 in the times that the encoding gets: 60 for minutes.
        dim: width of the model, even.
        steps: steps of training with Adam (rate 0.003) on all pairs at once, in float64.
        seed: of the weights. torch's global generator is left untouched.

    Returns:
        A `GapResult`: losses, by_seconds, by_index, scale.

    >>> from posenc.nn import TimeEncoding
    >>> result = train_gap_task(TimeEncoding(16, shortest=2.0, longest=32.0))
    >>> result.by_seconds[30.0] > 0.99, result.by_index[30.0] < 0.7
    (True, True)
    """
    if not isinstance(encoding, nn.Module):
        raise TypeError(f"encoding must be a torch.nn.Module, got {type(encoding).__name__}")
    fps, unit = number("fps", fps, above=0), number("unit", unit, above=0)
    if not isinstance(test_fps, Iterable):
        raise TypeError(
            f"test_fps must be a list of rates, got {test_fps!r} of type {type(test_fps).__name__}"
        )
    rates = [number("each of test_fps", rate, above=0) for rate in test_fps]
    clip = number("clip", clip, above=1)
    for rate in rates:
        if not len(_flashes(rate, clip)[0]):
            raise ValueError(
                f"each of test_fps must leave pairs of frames in a clip of {clip:g} s, got {rate:g}"
            )
    dim = check_even_dim(dim)
    steps = integer("steps", steps, minimum=1)
    seed = integer("seed", seed, minimum=0)
    frames, labels = _flashes(fps, clip)
    if not 0 < float(labels.mean()) < 1:
        raise ValueError(
            f"fps must leave pairs on both sides of 1 second in a clip of {clip:g} s, got {fps:g}"
        )
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), _one_thread():
        torch.default_generator.manual_seed(seed)
        copied = copy.deepcopy(encoding).double()
        model = _OrderModel(1, dim, None, None, None, False).double()

        def logits(seconds: Tensor) -> Tensor:
            x = model.embedding(torch.zeros(seconds.shape, dtype=torch.int64))
            return model.after_codes(copied(x, seconds / unit))

        groups: list[dict[str, Any]] = [
            {"params": [*model.parameters()]},
            {"params": [*copied.parameters()], "lr": 3e-2},
        ]
        optimizer = torch.optim.Adam(groups, lr=3e-3)
        losses = []
        for _ in range(steps):
            loss = nn.functional.binary_cross_entropy_with_logits(logits(frames / fps), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        copied.eval()
        found: tuple[dict[float, float], dict[float, float]] = ({}, {})
        with torch.no_grad():
            for rate in rates:
                frames, labels = _flashes(rate, clip)
                for accuracies, seconds in zip(found, (frames / rate, frames / fps), strict=True):
                    accuracies[rate] = _share((logits(seconds) > 0) == (labels > 0))
    scale = getattr(copied, "scale", None)
    return GapResult(tuple(losses), *found, scale=None if scale is None else float(scale))


def _flashes(fps: float, clip: float) -> tuple[Tensor, Tensor]:
    """All pairs of frame numbers but those 1 second apart, float64 (pairs, 2), and whether they are further."""
    n = round(clip * fps)
    frames = torch.combinations(torch.arange(n), 2).double()
    gaps = frames[:, 1] - frames[:, 0]
    other = (gaps - fps).abs() > 1e-6
    return frames[other], (gaps[other] > fps).double()


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
    with _one_thread(), torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.default_generator.manual_seed(seed)
        embedding, copied = nn.Embedding(n_tokens, dim), copy.deepcopy(encoding)
        model = nn.Sequential(embedding, copied, nn.Linear(dim, n_tokens)).double()
        optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=weight_decay)
        tables, codes, losses = [embedding.weight.detach().clone()], [_codes(copied, n_positions, dim)], []
        for _ in range(steps):
            loss = nn.functional.cross_entropy(model(inputs)[0], labels[0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
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
    """
    dim = check_even_dim(dim)
    n_tokens = integer("n_tokens", n_tokens, minimum=2)
    length = integer("length", length, minimum=2)
    max_pairs = integer("max_pairs", max_pairs, minimum=4)
    seed = integer("seed", seed, minimum=0)
    noise = number("noise", noise, at_least=0)
    with _one_thread():
        return _probe_sum(dim, n_tokens, length, noise, max_pairs, torch.Generator().manual_seed(seed))


def _probe_sum(
    dim: int, n_tokens: int, length: int, noise: float, max_pairs: int, generator: torch.Generator
) -> ProbeResult:
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
        nearest_token=_share(found // length == tokens[half : half + 500]),
        nearest_position=_share(found % length == positions[half : half + 500]),
    )


def _linear_readers(x: Tensor, labels: Sequence[Tensor], half: int) -> list[float]:
    """For each kind of labels, how often the affine map that fits the first half is right on the second."""
    x = nn.functional.pad(x, (0, 1), value=1.0)
    wanted = [nn.functional.one_hot(kind).to(x.dtype) for kind in labels]
    gram = x[:half].T @ x[:half]
    gram.diagonal().add_(1e-9 * gram.diagonal().mean())
    weights = torch.linalg.solve(gram, x[:half].T @ torch.cat(wanted, dim=1)[:half])
    outputs = (x[half:] @ weights).split([kind.shape[1] for kind in wanted], dim=1)
    return [_share(output.argmax(dim=1) == kind[half:]) for output, kind in zip(outputs, labels, strict=True)]


def _nearest_pairs(x: Tensor, embeddings: Tensor, codes: Tensor) -> Tensor:
    """token · length + position of the sum nearest to each row of x."""
    sums = (embeddings[:, None] + codes).flatten(0, 1)
    half_squares = sums.square().sum(dim=1) / 2
    # Some rows at a time: with 64 000 pairs each takes half a megabyte of scores.
    return torch.cat([(some @ sums.T - half_squares).argmax(dim=1) for some in x.split(50)])


def _share(right: Tensor) -> float:
    return float(right.double().mean())
