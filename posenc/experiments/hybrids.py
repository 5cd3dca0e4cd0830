"""Layers without position: whether a model without any can count, and what mixes of layers do at eight times the
trained length. `python -m posenc.experiments hybrids` makes the file of results that the chapter quotes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from posenc._checks import integer, number
from posenc.experiments.extrapolation.runs import (
    LENGTHS,
    SIZES,
    Settings,
    Size,
    _ask,
    _Batches,
    _loss,
    _questions,
    _train,
    make_model,
    train_extrapolation,
)
from posenc.experiments.extrapolation.tasks import SYMBOLS, TASKS, Task
from posenc.experiments.schemes import LARGE_BASE, TRAINED, Positions, Scheme
from posenc.experiments.transformer import Transformer, one_thread

__all__ = ["MIXES", "probe_position", "train_counter", "train_mix"]

FILE = Path(__file__).with_name("hybrids.json")
RATES = (1e-3, 3e-3, 1e-2)
"""The highest learning rates that each mix is tried with on each task, with a seed that is not reported."""

TASKS_OF_MIXES = "back", "copy", "sort", "recall"
SEEDS = 5
RATE_SEED = 1000

_KINDS = {
    "f": Scheme("full, RoPE", rotary="all"),
    "b": Scheme("full, RoPE with a large base", rotary="all", base=LARGE_BASE),
    "w": Scheme("window, RoPE", rotary="all", window=TRAINED // 2),
    "n": Scheme("full, no position"),
    "l": Scheme("full, no position, scores times log n / log L", log_n=True),
}
"""What a layer can be, by its letter."""

MIXES = {
    "ffff": "RoPE in all layers",
    "nnnn": "no position in any",
    "wwww": "windows with RoPE only",
    "wwwf": "windows, then full with RoPE",
    "wwwb": "windows, then full with a large base",
    "wwwn": "windows, then full without",
    "nwww": "full without, then windows",
    "fffn": "full with RoPE, then without",
}
"""Four layers, a letter each. Those with an n are also asked with l in its place, which is not trained."""


def train_mix(
    mix: str = "wwwn",
    task: str = "back",
    *,
    seed: int = 0,
    rate: float = 3e-3,
    settings: Settings | None = None,
) -> tuple[dict[str, tuple[float, ...]], float]:
    """A causal Transformer of four layers trained on 32 tokens, and what it can do on up to 256.

    Sizes, tasks, steps, batches and questions are those of `train_extrapolation` at its size "deep".

    Args:
        mix: a letter for each layer: f full attention with RoPE, b the same with base 10⁶, w a window of 16 keys
            with RoPE, n full attention without position, l the same with scores times log n / log 32.
        task: one of `posenc.experiments.extrapolation.TASKS`.
        seed: of the weights and of the batches. torch's global generator is left untouched.
        rate: the highest rate of the training.
        settings: of the training; None: those of the book.

    Returns:
        For the mix, and where it has a layer n for the same weights with l in its place, the scores in the last
        quarter of each of `LENGTHS`; and the loss at the trained length in nats.

    Raises:
        ValueError: mix has another letter, or task is none of those above.

    >>> scores, _ = train_mix("wwwn", "back", settings=Settings(steps=2, asked_tokens=1024))
    >>> list(scores), len(scores["wwwn"])
    (['wwwn', 'wwwl'], 5)

    Source: an experiment of this book, described in hybrids.md#mixes.
    """
    if not isinstance(mix, str) or not mix or set(mix) - set(_KINDS):
        raise ValueError(f"mix must be letters among {', '.join(_KINDS)}, one a layer, got {mix!r}")
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}, got {task!r}")
    seed, rate = integer("seed", seed, minimum=0), number("rate", rate, above=0)
    settings, asked = settings or Settings(), TASKS[task]
    size = replace(SIZES["deep"], layers=len(mix))
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.default_generator.manual_seed(seed)
        model = make_model(Scheme("none"), asked, size)
        _place(model, mix, size)
        batches = _Batches(asked, Scheme("none"), seed, settings.tokens)
        _train(model, batches, settings.steps, rate)
        model.eval()
        found = {mix: _ask(model, asked, settings.asked_tokens)[0]}
        with torch.no_grad():
            loss = float(_loss(model, *_questions(asked, TRAINED, settings.asked_tokens, seed=2)))
        if "n" in mix:
            other = mix.replace("n", "l")
            _place(model, other, size)
            found[other] = _ask(model, asked, settings.asked_tokens)[0]
    return found, loss


def _place(model: Transformer, mix: str, size: Size) -> None:
    """Gives each layer its kind; none of these has weights."""
    for layer, kind in zip(model.layers, mix, strict=True):
        layer.positions = Positions(_KINDS[kind], 0, size.dim // size.heads, size.heads)


def train_counter(
    start: bool = True,
    words: Literal["random", "same"] = "random",
    *,
    seed: int = 0,
    rate: float = 3e-3,
    settings: Settings | None = None,
) -> tuple[float, float]:
    """Two causal layers without position learn to name the position, 0 to 31, at which they stand.

    Args:
        start: whether a token that stands nowhere else begins each text.
        words: random: 16 symbols, drawn at random; same: one symbol all through.
        seed: of the weights and texts. torch's global generator is left untouched.
        rate: the highest rate of the training.
        settings: of the training; None: those of the book.

    Returns:
        The share of positions named exactly, on fresh texts, and the mean distance from the right one.

    Raises:
        ValueError: words is neither "random" nor "same".

    >>> share, _ = train_counter(start=False, words="same", settings=Settings(steps=2))
    >>> share == 1 / 32
    True

    Source: an experiment of this book, described in hybrids.md#learned.
    """
    if words not in ("random", "same"):
        raise ValueError(f"words must be random or same, got {words!r}")
    seed, rate, settings = (
        integer("seed", seed, minimum=0),
        number("rate", rate, above=0),
        settings or Settings(),
    )

    def make(count: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        ids = torch.randint(1, SYMBOLS + 1, (count, n), generator=generator)
        ids = torch.ones_like(ids) if words == "same" else ids
        if start:
            ids[:, 0] = SYMBOLS + 1
        return torch.stack([ids, torch.zeros_like(ids)], dim=-1), torch.arange(n).repeat(count, 1)

    task = Task("count", make, varied=False, answers=TRAINED)
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.default_generator.manual_seed(seed)
        model = make_model(Scheme("none"), task, SIZES["usual"])
        _train(model, _Batches(task, Scheme("none"), seed, settings.tokens), settings.steps, rate)
        model.eval()
        ids, place = _questions(task, TRAINED, settings.asked_tokens)
        with torch.no_grad():
            away = (model(ids).argmax(dim=-1) - place).abs().double()
    return float((away == 0).double().mean()), float(away.mean())


def probe_position(task: str | None = "language", *, seed: int = 0, steps: int = 600) -> dict[str, float]:
    """How far from the right position a linear reading of the hidden state is, in a model without positions.

    A ridge regression reads the position from the hidden states of 512 texts of 32 random symbols; it is asked on
    512 others. A reading that always says 15.5 is 8 positions away on average.

    Args:
        task: what the model of two causal layers was trained on; None: it has the weights that it began with.
        seed: of the weights, the batches and the texts.
        steps: of its training.

    Returns:
        The mean distance from the right position by what is read: embedding, layer 1, layer 2.

    >>> found = probe_position(None)
    >>> found["embedding"] > 7.5, found["layer 1"] < 7.5
    (True, True)

    Source: an experiment of this book, described in hybrids.md#mixes.
    """
    name = "back" if task is None else task
    settings = Settings(steps=integer("steps", steps, minimum=1), asked_tokens=1024)
    if task is None:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(integer("seed", seed, minimum=0))
            model = make_model(Scheme("none"), TASKS[name], SIZES["usual"]).eval()
    else:
        model = train_extrapolation("none", task, seed=seed, settings=settings).model
    letters = 4 if name == "language" else SYMBOLS
    generator = torch.Generator().manual_seed(10**6 + seed)
    ids = torch.randint(1, letters + 1, (1024, TRAINED, 1), generator=generator)
    ids = torch.cat([ids, torch.zeros_like(ids)], dim=2)
    found = {}
    with torch.no_grad(), one_thread():
        x = model.embed(ids)
        states = {"embedding": x}
        for k, layer in enumerate(model.layers, start=1):
            x = layer(x)
            states[f"layer {k}"] = x
    for read, state in states.items():
        found[read] = _read(state.double().numpy())
    return found


def _read(states: np.ndarray) -> float:
    """states (texts, n, dim): the mean distance of a ridge regression's reading from the position."""
    half, n = len(states) // 2, states.shape[1]
    flat = states.reshape(2, half * n, -1)
    mean, spread = flat[0].mean(axis=0), flat[0].std(axis=0) + 1e-9
    known, asked = (flat - mean) / spread
    place = np.tile(np.arange(n), half)
    weights = np.linalg.solve(
        known.T @ known + 1e-3 * np.eye(known.shape[1]), known.T @ (place - place.mean())
    )
    return float(np.abs(asked @ weights + place.mean() - place).mean())


def _jobs() -> Iterator[tuple[str, ...]]:
    """What is trained in one go."""
    for words in ("random", "same"):
        yield from (("count", words, start) for start in ("with", "without"))
    yield from (("probe", task) for task in ("nothing", "back", "language"))
    for task in TASKS_OF_MIXES:
        yield from (("mix", mix, task) for mix in MIXES)


def _do(job: tuple[str, ...]) -> dict[str, Any]:
    match job:
        case "mix", mix, task:
            losses = [train_mix(mix, task, seed=RATE_SEED, rate=rate)[1] for rate in RATES]
            rate = RATES[int(np.argmin(losses))]
            runs = [train_mix(mix, task, seed=seed, rate=rate)[0] for seed in range(SEEDS)]
            scores = {name: [[round(v, 3) for v in run[name]] for run in runs] for name in runs[0]}
            return {"rate": rate, "losses": [round(loss, 4) for loss in losses], "scores": scores}
        case "count", words, start:
            kind: Any = words
            tried = [train_counter(start == "with", kind, seed=RATE_SEED, rate=rate)[1] for rate in RATES]
            rate = RATES[int(np.argmin(tried))]
            named = [train_counter(start == "with", kind, seed=seed, rate=rate) for seed in range(SEEDS)]
            return {"rate": rate, "seeds": [[round(v, 3) for v in run] for run in named]}
        case "probe", task:
            read = [probe_position(None if task == "nothing" else task, seed=seed) for seed in range(SEEDS)]
            return {"seeds": {name: [round(run[name], 2) for run in read] for name in read[0]}}
    raise AssertionError(job)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    from joblib import Parallel, delayed

    parser = argparse.ArgumentParser(
        prog="python -m posenc.experiments hybrids",
        description="Trains all mixes, and writes what came of it.",
    )
    parser.add_argument("--out", default=str(FILE), help="the file to write (default: that of the package)")
    parser.add_argument(
        "--parts", help="a folder for what is finished; a run that was stopped goes on from there"
    )
    parser.add_argument("--workers", type=int, default=-1, help="processes (default: one a core)")
    given = parser.parse_args(arguments)

    def one(job: tuple[str, ...]) -> dict[str, Any]:
        part = given.parts and Path(given.parts) / ("-".join(job) + ".json")
        if part and part.exists():
            kept: dict[str, Any] = json.loads(part.read_text(encoding="utf-8"))
            return kept
        found = _do(job)
        if part:
            part.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(json.dumps(found), encoding="utf-8")
        return found

    jobs = list(_jobs())
    done = dict(
        zip(
            jobs, Parallel(n_jobs=given.workers, batch_size=1)(delayed(one)(job) for job in jobs), strict=True
        )
    )
    Path(given.out).write_text(_text(done), encoding="utf-8")


def _text(done: dict[tuple[str, ...], dict[str, Any]]) -> str:
    """The file, a line for each thing trained."""
    settings = Settings()
    data: dict[str, Any] = {
        "made_by": "python -m posenc.experiments hybrids",
        "torch": torch.__version__,
        "steps": settings.steps,
        "tokens": settings.tokens,
        "rates": list(RATES),
        "lengths": list(LENGTHS),
        "rate": {},
        "losses_by_rate": {},
        "mixes": {},
        "count": {},
        "probe": {},
    }
    for job, found in done.items():
        match job:
            case "mix", mix, task:
                data["rate"][f"{mix} {task}"] = found["rate"]
                data["losses_by_rate"][f"{mix} {task}"] = found["losses"]
                data["mixes"] |= {f"{name} {task}": scores for name, scores in found["scores"].items()}
            case "count", words, start:
                data["rate"][f"count, {words}, {start}"] = found["rate"]
                data["count"][f"{words} words, {start} a start"] = found["seeds"]
            case "probe", task:
                data["probe"] |= {f"{task}, {name}": seeds for name, seeds in found["seeds"].items()}
    lines = []
    for key, value in data.items():
        if isinstance(value, dict):
            inner = ",\n".join(f"  {json.dumps(name)}: {json.dumps(v)}" for name, v in value.items())
            lines.append(f" {json.dumps(key)}: {{\n{inner}\n }}")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
