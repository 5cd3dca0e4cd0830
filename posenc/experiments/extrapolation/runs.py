"""One run: a tiny Transformer trained at one length, and what it can do at others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from posenc._checks import integer, number
from posenc.experiments.extrapolation.tasks import TASKS, Task, language_floor
from posenc.experiments.schemes import LONGEST, SCHEMES, TRAINED, Positions, Scheme
from posenc.experiments.transformer import Transformer, one_thread

__all__ = [
    "LENGTHS",
    "SIZES",
    "Run",
    "Settings",
    "Size",
    "train_and_stretch",
    "train_extrapolation",
    "use_weights",
]

LENGTHS = (TRAINED, 40, 64, 128, LONGEST)
"""The lengths that a trained model is asked at."""

BIN = 16
"""Positions that are counted together where a score is given by position."""


@dataclass(frozen=True)
class Size:
    """Of a Transformer."""

    dim: int = 64
    heads: int = 4
    layers: int = 2


SIZES = {"usual": Size(), "deep": Size(layers=4), "wide": Size(dim=128)}
"""That of the sweep, and those that some schemes are trained at once more: twice the depth, twice the width."""


@dataclass(frozen=True)
class Settings:
    """What all runs have in common."""

    steps: int = 600
    """Steps of training, with Adam and a rate that rises over the first twentieth and then falls to a twentieth.
    Every run has as many; there is no early stop."""

    tokens: int = 512
    """Tokens in a batch of training, at full length."""

    rates: tuple[float, ...] = (1e-3, 3e-3, 1e-2, 3e-2)
    """The highest rates that each scheme is trained with on each task; that of the lowest loss is its rate."""

    rate_seed: int = 1000
    """The seed of these trainings, which are not reported."""

    tuning_rate: float = 1 / 3
    """The highest rate of the short training that some stretched models get, as a share of the first one."""

    looks: int = 20
    """How often a model is asked at its trained length while it is trained, over equal numbers of steps."""

    asked_tokens: int = 16384
    """Tokens at each length that a trained model is asked at."""

    enough: float = 0.95
    """Who names fewer of the answers right at the trained length has not finished in its steps."""

    longer: tuple[int, ...] = (4, 16)
    """Who has not is trained anew with so many times the steps; with the later ones only if the step before them
    brought `rise` more."""

    rise: float = 0.05

    longer_seeds: tuple[int, ...] = (2, 1)
    """Seeds of each of these."""

    sized: tuple[str, ...] = ("none", "sinusoidal", "rotary", "rotary_small_base", "alibi", "t5")
    """The schemes that are trained at the other sizes, too."""

    sized_stretched: tuple[str, ...] = ("none_logn", "rotary_window", "rotary_yarn")
    """And those that begin with them."""

    sized_tasks: tuple[str, ...] = ("back", "copy", "sort", "recall")

    sized_seeds: int = 2

    sized_rate: float = 1 / 2
    """Their highest rate, as a share of that at the usual size."""


@dataclass(frozen=True)
class Run:
    """What one trained model could do."""

    scheme: str
    task: str
    seed: int
    size: str

    steps: int
    """Steps that it was trained for, the short training after it not counted."""

    rate: float
    """The highest rate of that training."""

    seconds: float
    """Seconds of one core."""

    loss: float
    """Mean cross-entropy of the answers at the trained length, on questions of their own, in nats."""

    scores: tuple[float, ...]
    """For each of `LENGTHS`, of the answers in the last quarter: accuracy, or perplexity for the language."""

    by_position: tuple[float, ...]
    """The same for runs of 16 positions of the longest texts; empty for tasks that ask at their end only."""

    curve: tuple[float, ...]
    """The score at the trained length while it was trained, `Settings.looks` times; empty if it begins with another."""

    model: Transformer = field(repr=False, compare=False)


def train_extrapolation(
    scheme: str = "rotary",
    task: str = "back",
    *,
    seed: int = 0,
    rate: float = 3e-3,
    size: str = "usual",
    settings: Settings | None = None,
) -> Run:
    """A tiny causal Transformer trained on 32 tokens, and what it can do on up to 256.

    Args:
        scheme: one of `posenc.experiments.SCHEMES`. What it begins with is trained first.
        task: one of `posenc.experiments.extrapolation.TASKS`: back, copy, sort, recall, language.
        seed: of the weights and of the batches. torch's global generator is left untouched.
        rate: the highest rate of the training; `Results.rate` has that of the book for each scheme and task.
        size: one of `posenc.experiments.extrapolation.SIZES`: usual, deep, wide.
        settings: of the training; None: those of the book.

    Returns:
        A `Run`: scores by length, by_position, curve, and the trained model.

    Raises:
        ValueError: scheme, task or size is none of those above.

    >>> run = train_extrapolation("rotary", "back", settings=Settings(steps=2))
    >>> len(run.scores) == len(LENGTHS), run.scores[0] < 0.5
    (True, True)

    Source: an experiment of this book, described in extrapolation.md#live.
    """
    for name, value, known in (("scheme", scheme, SCHEMES), ("task", task, TASKS), ("size", size, SIZES)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
    seed, rate = integer("seed", seed, minimum=0), number("rate", rate, above=0)
    first = SCHEMES[scheme].begins or scheme
    run = _run(SCHEMES[first], TASKS[task], seed, rate, size, settings or Settings())
    return run if first == scheme else _stretched(SCHEMES[scheme], run, settings or Settings())


def train_and_stretch(
    scheme: str, task: str, seed: int, rate: float, settings: Settings, size: str = "usual"
) -> Iterator[Run]:
    """The run of a scheme that begins with none, then those of all that begin with it; of some at other sizes."""
    first = _run(SCHEMES[scheme], TASKS[task], seed, rate, size, settings)
    yield first
    for other in SCHEMES.values():
        if other.begins == scheme and (size == "usual" or other.name in settings.sized_stretched):
            yield _stretched(other, first, settings)


def _stretched(scheme: Scheme, first: Run, settings: Settings) -> Run:
    return _run(scheme, TASKS[first.task], first.seed, first.rate, first.size, settings, first)


def make_model(scheme: Scheme, task: Task, size: Size) -> Transformer:
    """With the weights that torch's generator gives it."""
    width = size.dim // size.heads
    return Transformer(
        task.vocabulary,
        task.answers,
        size.dim,
        [Positions(scheme, layer, width, size.heads) for layer in range(size.layers)],
        heads=size.heads,
        added=scheme.adder(size.dim),
        padding=True,
        norm=True,
    )


@torch.no_grad()
def use_weights(trained: Run, scheme: str) -> Transformer:
    """The weights of a trained model, used by another scheme; of a longer table the first rows.

    >>> run = train_extrapolation("rotary", "back", settings=Settings(steps=2))
    >>> use_weights(run, "rotary_window").layers[0].positions.window
    32
    """
    with torch.random.fork_rng(devices=[]):
        model = make_model(SCHEMES[scheme], TASKS[trained.task], SIZES[trained.size])
    weights = dict(trained.model.named_parameters())
    for name, weight in model.named_parameters():
        weight.copy_(weights[name][: len(weight)])
    return model.eval()


def _run(
    scheme: Scheme,
    task: Task,
    seed: int,
    rate: float,
    size: str,
    settings: Settings,
    first: Run | None = None,
) -> Run:
    began, curve = time.process_time(), []
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.default_generator.manual_seed(seed)
        if first is None:
            model = make_model(scheme, task, SIZES[size])
            batches = _Batches(task, scheme, seed, settings.tokens)
            curve = _train(model, batches, settings.steps, rate, settings.looks)
        else:
            model = use_weights(first, scheme.name)
            if scheme.tuned is not None:
                batches = _Batches(task, scheme, seed + 10**6, settings.tokens)
                steps = max(round(scheme.tuned * settings.steps), 1)
                _train(model, batches, steps, settings.tuning_rate * rate)
        model.eval()
        scores, by_position = _ask(model, task, settings.asked_tokens)
        with torch.no_grad():
            loss = _loss(model, *_questions(task, scheme.length, settings.asked_tokens, seed=2))
    return Run(
        scheme=scheme.name,
        task=task.name,
        seed=seed,
        size=size,
        steps=settings.steps,
        rate=rate,
        seconds=time.process_time() - began,
        loss=float(loss),
        scores=scores,
        by_position=by_position,
        curve=tuple(curve),
        model=model,
    )


class _Batches:
    """Batches of training, without end."""

    def __init__(self, task: Task, scheme: Scheme, seed: int, tokens: int) -> None:
        self.task, self.scheme, self.tokens = task, scheme, tokens
        self.generator = torch.Generator().manual_seed(seed)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        """ids, targets, and the positions (batch, n) where texts do not start at 0."""
        length = self.scheme.length
        batch = max(self.tokens // length, 1)
        while True:
            n, positions = length, None
            if self.task.varied:
                n = 2 * int(self._draw(4, length // 2))
            if self.scheme.random_start:
                positions = self._draw(0, LONGEST - n, batch)[:, None] + torch.arange(n)
            yield *self.task.make(batch, n, self.generator), positions

    def _draw(self, low: int, high: int, *shape: int) -> Tensor:
        return torch.randint(low, high + 1, shape, generator=self.generator)


def _train(model: Transformer, batches: _Batches, steps: int, rate: float, looks: int = 0) -> list[float]:
    """The scores at the trained length, asked `looks` times on the way."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98), fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, 20 * (step + 1) / steps) * max(0.05, 1 - step / steps)
    )
    curve: list[float] = []
    for step, (ids, targets, positions) in enumerate(batches, start=1):
        loss = _loss(model, ids, targets, positions)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step * looks // steps > len(curve):
            curve.append(_score(model, batches.task, batches.scheme.length, 2048))
        if step == steps:
            return curve
    raise AssertionError("batches never end")


def _loss(model: Transformer, ids: Tensor, targets: Tensor, positions: Tensor | None = None) -> Tensor:
    logits = model(ids, positions).flatten(0, 1)
    return nn.functional.cross_entropy(logits, targets.flatten(), ignore_index=-1)


def _questions(task: Task, n: int, tokens: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The same for every run."""
    return task.make(max(tokens // n, 1), n, torch.Generator().manual_seed(10**6 + 1000 * seed + n))


@torch.no_grad()
def _score(model: Transformer, task: Task, n: int, tokens: int) -> float:
    """While it is trained, on questions of their own."""
    ids, targets = _questions(task, n, tokens, seed=1)
    last = slice(n - n // 4, n)
    return _mean(_values(model(ids), targets, task)[:, last], targets[:, last], task)


@torch.no_grad()
def _ask(model: Transformer, task: Task, tokens: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    scores, by_position = [], []
    for n in LENGTHS:
        ids, targets = _questions(task, n, tokens)
        values = _values(model(ids), targets, task)
        last = slice(n - n // 4, n)
        scores.append(_mean(values[:, last], targets[:, last], task))
        if n == LONGEST and not task.varied:
            bins = zip(values.split(BIN, dim=1), targets.split(BIN, dim=1), strict=True)
            by_position = [_mean(*pair, task) for pair in bins]
    return tuple(scores), tuple(by_position)


def floor_scores(task: Task = TASKS["language"], tokens: int = Settings.asked_tokens) -> tuple[float, ...]:
    """The perplexities of the best reader, who counts, on the texts on which the models are tested."""
    found = []
    for n in LENGTHS:
        ids, targets = _questions(task, n, tokens)
        last = slice(n - n // 4, n)
        found.append(_mean(language_floor(ids, targets)[:, last], targets[:, last], task))
    return tuple(found)


def _values(logits: Tensor, targets: Tensor, task: Task) -> Tensor:
    """For each answer 1 if it is right, or what it costs in nats."""
    if task.measure == "accuracy":
        return (logits.argmax(dim=-1) == targets).double()
    return nn.functional.cross_entropy(logits.mT, targets, reduction="none").double()


def _mean(values: Tensor, targets: Tensor, task: Task) -> float:
    mean = values[targets >= 0].mean()
    return float(mean if task.measure == "accuracy" else mean.exp())
