"""Translation in which the order of the words decides who does it to whom."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from posenc._checks import check_even_dim, integer
from posenc.attention import dot_product_attention
from posenc.experiments._training import adam, check_bias, check_layers, share, train
from posenc.experiments.transformer import Single, Transformer, feed_forward, one_thread

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

    Source: written for this book, reordering.md#language.
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

    Source: an experiment of this book, described in reordering.md#models.
    """
    dim = check_even_dim(dim)
    steps = integer("steps", steps, minimum=1)
    seed = integer("seed", seed, minimum=0)
    check_layers(encoding=encoding, rotary=rotary)
    check_bias(bias, 4)
    sentences = reordering_sentences()
    sources = [source.split() for source in sentences]
    targets = [target.split() for target in sentences.values()]
    words = sorted({word for target in targets for word in target})
    inputs, labels = _ids(sources), _ids(targets)
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.default_generator.manual_seed(seed)
        kept = _kept_back(inputs)
        layers = copy.deepcopy((encoding, rotary))
        model = _ReorderingModel(int(inputs.max()) + 1, len(words), dim, *layers, bias).double()
        loss = nn.functional.cross_entropy
        optimizer = adam(model, 3e-3)
        losses = train(optimizer, steps, lambda: loss(model(inputs[~kept]), labels[~kept]))
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
        accuracy=share(right.all(dim=1)),
        word_accuracy=tuple(share(column) for column in right.T),
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

    def __init__(
        self,
        n_tokens: int,
        n_words: int,
        dim: int,
        encoding: nn.Module | None,
        rotary: nn.Module | None,
        bias: Tensor | None,
    ) -> None:
        super().__init__()
        self.encoder = Transformer(n_tokens, None, dim, [Single(rotary, bias)], added=encoding)
        self.norm = nn.LayerNorm(dim)
        self.slots = nn.Parameter(torch.randn(4, dim))
        self.key, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.feed_forward = feed_forward(dim)
        self.read = nn.Linear(dim, n_words)
        self.weights = torch.empty(0)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.norm(self.encoder(ids))
        slots = self.slots.expand(len(ids), -1, -1)
        mixed, self.weights = dot_product_attention(slots, self.key(x), self.value(x))
        y = slots + mixed
        return self.read(y + self.feed_forward(y)).mT
