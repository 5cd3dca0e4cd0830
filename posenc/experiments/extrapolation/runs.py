"""One run: a tiny Transformer trained at one length, and what it can do at others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from posenc._checks import integer
from posenc.experiments._training import one_thread
from posenc.experiments.extrapolation.model import Model
from posenc.experiments.extrapolation.schemes import LONGEST, SCHEMES, TRAINED, Scheme
from posenc.experiments.extrapolation.tasks import TASKS, Task, language_floor

__all__ = ["LENGTHS", "Run", "Settings", "train_and_stretch", "train_extrapolation"]

LENGTHS = (TRAINED, 40, 64, 128, LONGEST)
"""The lengths that a trained model is asked at."""

BIN = 16
"""Positions that are counted together where a score is given by position."""


@dataclass(frozen=True)
class Settings:
    """What all runs have in common."""

    steps: int = 1000
    """At most so many steps of training, with Adam and a rate that falls to a twentieth."""

    rate: float = 3e-3

    tokens: int = 1024
    """Tokens in a batch of training, at full length."""

    enough: float = 0.999
    """Training ends when so many answers are right, asked every `look` steps."""

    look: int = 50

    tuning_steps: int = 100
    """Of the short training that some stretched models get, with twice the tokens in a batch."""

    tuning_rate: float = 1e-3

    asked_tokens: int = 16384
    """Tokens at each length that a trained model is asked at."""


@dataclass(frozen=True)
class Run:
    """What one trained model could do."""

    scheme: str
    task: str
    seed: int

    steps: int
    """Steps that it was trained for, the short training after it not counted."""

    seconds: float
    """Seconds of one core."""

    scores: tuple[float, ...]
    """For each of `LENGTHS`, of the answers in the last quarter: accuracy, or perplexity for the language."""

    by_position: tuple[float, ...]
    """The same for runs of 16 positions of the longest texts; empty for tasks that ask at their end only."""

    model: Model = field(repr=False, compare=False)


def train_extrapolation(
    scheme: str = "rotary", task: str = "back", *, seed: int = 0, settings: Settings | None = None
) -> Run:
    """A tiny causal Transformer trained on 32 tokens, and what it can do on up to 256.

    Args:
        scheme: one of `posenc.experiments.extrapolation.SCHEMES`. What it begins with is trained first.
        task: one of `posenc.experiments.extrapolation.TASKS`: back, copy, sort, recall, language.
        seed: of the weights and of the batches. torch's global generator is left untouched.
        settings: of the training; None: those of the book.

    Returns:
        A `Run`: scores by length, by_position, and the trained model.

    >>> run = train_extrapolation("rotary", "back")
    >>> run.scores[0] > 0.99, run.scores[-1] < 0.7
    (True, True)
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}, got {scheme!r}")
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, got {task!r}")
    seed = integer("seed", seed, minimum=0)
    settings = settings or Settings()
    first = SCHEMES[scheme].begins or scheme
    run = _from_the_start(SCHEMES[first], TASKS[task], seed, settings)
    return run if first == scheme else _stretched(SCHEMES[scheme], run, settings)


def train_and_stretch(scheme: str, task: str, seed: int, settings: Settings) -> Iterator[Run]:
    """The run of a scheme that begins with none, then those of all that begin with it."""
    first = _from_the_start(SCHEMES[scheme], TASKS[task], seed, settings)
    yield first
    for other in SCHEMES.values():
        if other.begins == scheme:
            yield _stretched(other, first, settings)


def _from_the_start(scheme: Scheme, task: Task, seed: int, settings: Settings) -> Run:
    return _run(scheme, task, seed, settings, None)


def _stretched(scheme: Scheme, first: Run, settings: Settings) -> Run:
    return _run(scheme, TASKS[first.task], first.seed, settings, first)


def _run(scheme: Scheme, task: Task, seed: int, settings: Settings, first: Run | None) -> Run:
    began = time.process_time()
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.default_generator.manual_seed(seed)
        model = Model(scheme, task.vocabulary, task.answers)
        batches = _Batches(task, scheme, seed, settings.tokens)
        steps = settings.steps
        if first is None:
            steps = _train(model, batches, settings.steps, settings.rate, settings)
        else:
            model.take_over(first.model)
            steps = first.steps
            if scheme.tuned is not None:
                batches = _Batches(task, scheme, seed + 1000, 2 * settings.tokens, scheme.tuned)
                _train(model, batches, settings.tuning_steps, settings.tuning_rate)
        model.eval()
        scores, by_position = _ask(model, task, settings.asked_tokens)
    return Run(scheme.name, task.name, seed, steps, time.process_time() - began, scores, by_position, model)


class _Batches:
    """Batches of training, without end."""

    def __init__(self, task: Task, scheme: Scheme, seed: int, tokens: int, length: int = TRAINED) -> None:
        self.task, self.scheme, self.tokens, self.length = task, scheme, tokens, length
        self.generator = torch.Generator().manual_seed(seed)

    def __next__(self) -> tuple[Tensor, Tensor, int]:
        """ids, targets, and where the first step stands."""
        n, start = self.length, 0
        if self.task.varied:
            n = 2 * self._draw(4, self.length // 2)
        if self.scheme.random_start:
            start = self._draw(0, LONGEST - n)
        return *self.task.make(self.tokens // self.length, n, self.generator), start

    def _draw(self, low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=self.generator))


def _train(model: Model, batches: _Batches, steps: int, rate: float, stop: Settings | None = None) -> int:
    """How many steps it took."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1, (step + 1) / 50) * max(0.05, 1 - step / steps)
    )
    for step in range(1, steps + 1):
        ids, targets, start = next(batches)
        loss = nn.functional.cross_entropy(
            model(ids, start).flatten(0, 1), targets.flatten(), ignore_index=-1
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if stop is not None and batches.task.measure == "accuracy" and step % stop.look == 0:
            ids, targets = _questions(batches.task, TRAINED, 2048, seed=step)
            if _right(model, ids, targets) >= stop.enough:
                return step
    return steps


def _questions(task: Task, n: int, tokens: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The same for every run."""
    return task.make(tokens // n, n, torch.Generator().manual_seed(10**6 + 1000 * seed + n))


@torch.no_grad()
def _right(model: Model, ids: Tensor, targets: Tensor) -> float:
    return float((model(ids).argmax(dim=-1) == targets)[targets >= 0].double().mean())


@torch.no_grad()
def _ask(model: Model, task: Task, tokens: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
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
    """The perplexities of the best reader, who counts, on the texts that the models are asked."""
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
