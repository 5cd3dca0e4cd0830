"""From 32 tokens to 256, the whole way of a long context: trained short, stretched, trained further on long and packed
texts. `python -m posenc.experiments recipe` makes the file of results that the chapter quotes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from posenc._checks import integer, number
from posenc.experiments.extrapolation.runs import SIZES, _Batches, _loss, _mean, _train, _values
from posenc.experiments.extrapolation.tasks import SYMBOLS, TASKS, Task
from posenc.experiments.schemes import LARGE_BASE, LONGEST, TRAINED, Frequencies, Positions, Scheme
from posenc.experiments.transformer import Transformer, hide, one_thread
from posenc.masks import document_mask

__all__ = ["WAYS", "Way", "make_recipe_results", "train_recipe"]

FILE = Path(__file__).with_suffix(".json")
SEEDS, RATE_SEED = 3, 1000
FIRST_RATES, LONG_RATES = (1e-3, 3e-3, 1e-2), (3e-4, 1e-3, 3e-3)
"""The highest rates that are tried in each stage, with a seed that is not reported."""

DEPTHS = 4
"""Parts of a long text in which a needle is looked for, and of the positions that the perplexity is given for."""


@dataclass(frozen=True)
class Steps:
    """How long the two stages are."""

    first: int = 1600
    """Steps of 512 tokens, on texts of up to 32."""

    further: int = 160
    """Steps of 1,024 tokens, in rows of 256."""

    asked_tokens: int = 8192


@dataclass(frozen=True)
class Way:
    """What is done after the first stage."""

    frequencies: Frequencies = "yarn"
    """How RoPE is stretched."""

    base: float = 10000.0

    data: Literal["long", "joined"] | None = "long"
    """Rows of the second stage: half of them one long text and half of them packed short ones; or short ones of 32
    tokens, joined; None: there is no second stage."""

    masks: bool = True
    """Whether texts of one row are hidden from each other."""

    rate: float | None = None
    """The highest rate of the second stage; None: the best of `LONG_RATES`."""


WAYS = {
    "the whole recipe": Way(),
    "a larger base in place of YaRN": Way(frequencies="usual", base=LARGE_BASE),
    "frequencies as they were": Way(frequencies="usual"),
    "no further training": Way(data=None),
    "short texts joined": Way(data="joined", masks=False),
    "no document masks": Way(masks=False),
    "a rate of 0.03": Way(rate=0.03),
    "neither": Way(frequencies="usual", data=None),
}
"""The recipe, and what becomes of it when one step is left out or done otherwise."""


def _needle(batch: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Symbols that say nothing, one key with its symbol among them, and at the end the key alone."""
    recall, _ = TASKS["recall"].make(batch, 4, generator)  # three pairs, of which one is hidden
    ids = torch.zeros(batch, n, 2, dtype=torch.int64)
    ids[..., 0] = torch.randint(1, SYMBOLS + 1, (batch, n), generator=generator)
    place = torch.randint(n - 1, (batch,), generator=generator)
    ids[torch.arange(batch), place] = recall[:, 0]
    ids[:, -1, 0], ids[:, -1, 1] = recall[:, 0, 0], 0
    targets = torch.full((batch, n), -1)
    targets[:, -1] = recall[:, 0, 1] - 1
    return ids, targets


ASKED = {"needle": Task("needle", _needle), **{name: TASKS[name] for name in ("recall", "sort", "language")}}
"""What a model learns: one key in a text that says nothing, many keys, an order, and which letter follows."""


MEASURES = "loss", "short", "long", "depth", "by_position"
"""What the file keeps of an `Extended`."""


class _Reader(nn.Module):
    """A Transformer of two layers with RoPE, told which tokens of a row are one text."""

    def __init__(self) -> None:
        super().__init__()
        size = SIZES["usual"]
        vocabulary = max(task.vocabulary for task in ASKED.values())
        layers = [
            _Packed(Scheme("first", rotary="all"), size.dim // size.heads, size.heads)
            for _ in range(size.layers)
        ]
        self.net = Transformer(
            vocabulary, SYMBOLS, size.dim, layers, heads=size.heads, padding=True, norm=True
        )

    def forward(self, ids: Tensor, documents: Tensor | None = None) -> Tensor:
        """documents (batch, n): the number of the text that a token belongs to; None: a row is one text."""
        for layer in self.net.layers:
            packed: Any = layer.positions
            packed.documents = documents
        logits: Tensor = self.net(ids)
        return logits

    def stretch(self, way: Way) -> None:
        """Other frequencies, and YaRN's factor with its own."""
        scheme = Scheme(
            "further",
            rotary="all",
            frequencies=way.frequencies,
            yarn_factor=way.frequencies == "yarn",
            base=way.base,
        )
        size = SIZES["usual"]
        for layer in self.net.layers:
            layer.positions = _Packed(scheme, size.dim // size.heads, size.heads)


class _Packed(Positions):
    """RoPE, and a mask between the texts of a row."""

    def __init__(self, scheme: Scheme, width: int, num_heads: int) -> None:
        super().__init__(scheme, 0, width, num_heads)
        self.documents: Tensor | None = None

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, inputs: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        query, key, value, added = super().forward(query, key, value, inputs)
        if self.documents is not None:
            added = added + hide(document_mask(self.documents))[:, None]
        return query, key, value, added


class _Short(_Batches):
    """Batches of the first stage: each of one task, in turn, on texts of up to 32 tokens."""

    def __init__(self, seed: int) -> None:
        super().__init__(TASKS["recall"], Scheme("first"), seed, 512)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        while True:
            for task in ASKED.values():
                n = 2 * int(self._draw(4, TRAINED // 2)) if task.varied else TRAINED
                yield *task.make(self.tokens // TRAINED, n, self.generator), None


class _Rows(_Batches):
    """Batches of rows of 256 tokens: each of one task, in turn."""

    def __init__(self, seed: int, way: Way, tokens: int) -> None:
        super().__init__(TASKS["recall"], Scheme("further"), seed, tokens)
        self.way = way

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor | None]]:
        rows = self.tokens // LONGEST
        long = rows // 2 if self.way.data == "long" else 0
        while True:
            for task in ASKED.values():
                parts = [self._joined(task) for _ in range(rows - long)]
                if long:
                    ids, targets = task.make(long, LONGEST, self.generator)
                    parts += [
                        (x, y, torch.zeros(LONGEST, dtype=torch.int64))
                        for x, y in zip(ids, targets, strict=True)
                    ]
                ids, targets, documents = (torch.stack(part) for part in zip(*parts, strict=True))
                yield ids, targets, documents if self.way.masks else None

    def _joined(self, task: Task) -> tuple[Tensor, Tensor, Tensor]:
        """A row of short texts: ids (256, 2), targets (256,), and the number of each token's text."""
        lengths: list[int] = []
        while (left := LONGEST - sum(lengths)) > 0:
            n = TRAINED if self.way.data == "joined" else 2 * int(self._draw(4, TRAINED // 2))
            lengths.append(n if left - n >= 8 or left == n else left if left <= TRAINED else TRAINED // 2)
        made = [task.make(1, n, self.generator) for n in lengths]
        numbers = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))
        return torch.cat([x[0] for x, _ in made]), torch.cat([y[0] for _, y in made]), numbers


@dataclass(frozen=True)
class Extended:
    """What a model could do."""

    way: str
    seed: int
    rate: float
    loss: float
    """Mean cross-entropy at 256 tokens over the tasks, in nats."""

    short: dict[str, float]
    """By task, at 32 tokens: the share of right answers in the last quarter, or the perplexity for the language."""

    long: dict[str, float]
    """The same at 256."""

    depth: dict[str, tuple[float, ...]]
    """needle and recall at 256: the share of right answers, by the quarter of the text in which the answer stands."""

    by_position: tuple[float, ...]
    """Perplexity of the language at 256, by quarters of the text."""

    model: nn.Module = field(repr=False, compare=False)


def train_recipe(
    way: str = "the whole recipe",
    *,
    seed: int = 0,
    first_rate: float = 3e-3,
    rate: float = 1e-3,
    steps: Steps | None = None,
) -> Extended:
    """A tiny causal Transformer with RoPE trained on up to 32 tokens, brought to 256, and what it can do there.

    It learns four tasks at once: to find one key in a text that says nothing (needle), many keys (recall), to name
    four symbols in their order (sort), and which letter follows which (language).

    Args:
        way: one of `WAYS`.
        seed: of the weights and of the batches. torch's global generator is left untouched.
        first_rate, rate: the highest rates of the two stages; `Way.rate` stands above `rate`.
        steps: of the training; None: those of the book.

    Returns:
        An `Extended`: scores at both lengths, by the depth of the answer and by position.

    Raises:
        ValueError: way is none of those.

    >>> found = train_recipe("no document masks", steps=Steps(first=2, further=2, asked_tokens=1024))
    >>> list(found.long), len(found.depth["needle"]), len(found.by_position)
    (['needle', 'recall', 'sort', 'language'], 4, 4)

    Source: an experiment of this book, described in recipe.md#experiment.
    """
    if way not in WAYS:
        raise ValueError(f"way must be one of {', '.join(WAYS)}, got {way!r}")
    steps = steps or Steps()
    first_rate, rate = number("first_rate", first_rate, above=0), number("rate", rate, above=0)
    first = _first(integer("seed", seed, minimum=0), first_rate, steps)
    return _extended(way, first, seed, rate, steps)


def _first(seed: int, rate: float, steps: Steps) -> _Reader:
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.default_generator.manual_seed(seed)
        model = _Reader()
        _train(model, _Short(seed), steps.first, rate)  # type: ignore[arg-type]
    return model


def _extended(way: str, first: _Reader, seed: int, rate: float, steps: Steps) -> Extended:
    how = WAYS[way]
    rate = how.rate or rate
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.default_generator.manual_seed(seed)
        model = _Reader()
        model.load_state_dict(first.state_dict())
        model.stretch(how)
        if how.data is not None:
            _train(model, _Rows(seed + 10**6, how, 1024), steps.further, rate)  # type: ignore[arg-type]
        model.eval()
        with torch.no_grad():
            return Extended(way, seed, rate, **_asked(model, steps.asked_tokens), model=model)


def _asked(model: _Reader, tokens: int) -> dict[str, Any]:
    """The `MEASURES` of a model."""
    scores: dict[int, dict[str, float]] = {TRAINED: {}, LONGEST: {}}
    depth, losses = {}, []
    by_position: tuple[float, ...] = ()
    for n, found in scores.items():
        for name, task in ASKED.items():
            # A needle is one answer a text, which the other tasks have many of.
            rows = max(tokens // n, 1) * (4 if name == "needle" else 1)
            ids, targets = task.make(rows, n, torch.Generator().manual_seed(10**6 + n))
            logits = model(ids)
            values, last = _values(logits, targets, task), slice(n - n // 4, n)
            found[name] = _mean(values[:, last], targets[:, last], task)
            if n == TRAINED:
                continue
            losses.append(
                float(nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1))
            )
            if name in ("needle", "recall"):
                depth[name] = _by_depth(ids, targets, values)
            if name == "language":
                parts = zip(values.chunk(DEPTHS, dim=1), targets.chunk(DEPTHS, dim=1), strict=True)
                by_position = tuple(_mean(*part, task) for part in parts)
    found_at = float(np.mean(losses)), scores[TRAINED], scores[LONGEST], depth, by_position
    return dict(zip(MEASURES, found_at, strict=True))


def _by_depth(ids: Tensor, targets: Tensor, values: Tensor) -> tuple[float, ...]:
    """The share of right answers by the part of the text, before the questions, in which the answer stands."""
    shown = ids.shape[1] - (targets >= 0).sum(dim=1)[0]
    rows, asked = (targets >= 0).nonzero(as_tuple=True)
    place = (ids[rows, :shown, 0] == ids[rows, asked, 0][:, None]).double().argmax(dim=1)
    part = place * DEPTHS // shown
    return tuple(float(values[rows, asked][part == k].mean()) for k in range(DEPTHS))


def make_recipe_results() -> None:
    """Train all ways, four minutes of one core, and write the file of results."""
    steps = Steps()
    tried = {rate: _first(RATE_SEED, rate, steps) for rate in FIRST_RATES}
    losses = {rate: _short_loss(model, steps) for rate, model in tried.items()}
    first_rate = min(losses, key=losses.__getitem__)
    rows: dict[str, dict[str, Any]] = {way: {"rate": how.rate, "seeds": []} for way, how in WAYS.items()}
    for way, how in WAYS.items():
        if how.data is None or how.rate is not None:
            continue
        found = [_extended(way, tried[first_rate], RATE_SEED, rate, steps).loss for rate in LONG_RATES]
        rows[way] |= {"rate": LONG_RATES[int(np.argmin(found))], "losses_by_rate": _rounded(found)}
    for seed in range(SEEDS):
        first = _first(seed, first_rate, steps)
        for way, row in rows.items():
            done = _extended(way, first, seed, row["rate"] or LONG_RATES[0], steps)
            row["seeds"].append({name: _rounded(getattr(done, name)) for name in MEASURES})
    head = {
        "made_by": "python -m posenc.experiments recipe",
        "torch": torch.__version__,
        "steps": asdict(steps),
        "first_rate": first_rate,
        "first_losses_by_rate": {str(rate): round(loss, 4) for rate, loss in losses.items()},
        "long_rates": list(LONG_RATES),
    }
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    inner = ",\n".join(f"  {json.dumps(way)}: {json.dumps(row)}" for way, row in rows.items())
    FILE.write_text("{\n" + ",\n".join([*lines, f' "ways": {{\n{inner}\n }}']) + "\n}\n", encoding="utf-8")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    return round(value, 3) if isinstance(value, float) else [round(each, 3) for each in value]


@torch.no_grad()
def _short_loss(model: _Reader, steps: Steps) -> float:
    """The mean loss over the tasks at 32 tokens."""
    generator = torch.Generator().manual_seed(10**6)
    asked = (task.make(steps.asked_tokens // TRAINED, TRAINED, generator) for task in ASKED.values())
    return float(np.mean([float(_loss(model, *questions)) for questions in asked]))  # type: ignore[arg-type]
