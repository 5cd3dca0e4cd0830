"""Which of the four terms a trained model uses, and which it needs."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn

from posenc._checks import integer
from posenc.experiments.extrapolation.tasks import TASKS, Task
from posenc.experiments.results import TermsResult
from posenc.experiments.transformer import Transformer, hide, one_thread
from posenc.masks import causal_mask
from posenc.relative import disentangled_scores, relative_bias

__all__ = ["TERMS", "make_term_results", "train_terms"]

TERMS = ("word_word", "word_place", "place_word", "place_place")
"""The four terms by name: first what the query gives, then what the key gives."""

LENGTH, BATCH, ASKED, RATE = 16, 32, 512, 1e-2
DIM, HEADS, LAYERS, STEPS, SEEDS = 32, 2, 2, 400, 5
ASKED_TASKS = ("back", "copy", "sort", "recall")
FILE = Path(__file__).with_suffix(".json")


class TermPositions(nn.Module):
    """What a causal layer with all four terms does: word and word, and three tables of vectors by the offset."""

    def __init__(self, trained: tuple[str, ...]) -> None:
        super().__init__()
        rows, width = 2 * LENGTH - 1, DIM // HEADS
        # All are made, used or not: the other weights are the same with the same seed.
        tables = (nn.Parameter(0.02 * torch.randn(HEADS, rows, width)) for _ in range(3))
        self.key_table, self.query_table, self.place_table = tables
        # As wide as what the other terms meet: a table of bare numbers would be trained more slowly than theirs.
        self.place = nn.Parameter(torch.randn(HEADS, width, 1))
        self.trained, self.off = trained, frozenset[str]()
        self.sizes: dict[str, float] = {}

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, inputs: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        mask = torch.from_numpy(causal_mask(query.shape[2]))
        added = hide(mask) + sum(self._terms(query, key).values())
        return torch.zeros_like(query), key, value, added  # all four stand in what is added

    def _terms(self, query: Tensor, key: Tensor) -> dict[str, Tensor]:
        """Those that are there and not switched off, scaled."""
        n = query.shape[2]
        terms = {
            "word_word": lambda: disentangled_scores(query, key),
            "word_place": lambda: disentangled_scores(query, key, self.key_table, words=False),
            "place_word": lambda: disentangled_scores(query, key, None, self.query_table, words=False),
            "place_place": lambda: relative_bias((self.place_table @ self.place)[..., 0].T, n).expand(
                *query.shape[:2], n, n
            ),
        }
        found = {
            name: terms[name]() / math.sqrt(query.shape[3]) for name in self.trained if name not in self.off
        }
        if not self.training:
            seen = ~torch.from_numpy(causal_mask(n))[1:]  # the first query sees one key
            count = seen.sum(-1)
            for name, term in found.items():
                x = (term[..., 1:, :] * seen).detach()
                mean = x.sum(-1) / count
                self.sizes[name] = float(((x**2).sum(-1) / count - mean**2).clamp(min=0).sqrt().mean())
        return found


def train_terms(
    task: str = "back", *, without: str | None = None, seed: int = 0, steps: int = STEPS
) -> TermsResult:
    """A tiny causal Transformer with all four terms, and what is left of its answers when one is switched off.

    Two layers of two heads, 32 wide, on texts of 16 tokens; Adam with a rate that rises to 0.01 and falls. Each head
    has three tables of vectors by the offset: for the words of queries, for those of keys, and for one trained vector.

    Args:
        task: back, copy, sort or recall, of `posenc.experiments.extrapolation.TASKS`.
        without: a term that the model is trained without; None: with all.
        seed: of the weights and of the texts. torch's global generator is left untouched.
        steps: steps of training, at least 1.

    Returns:
        A `TermsResult`: loss, accuracy, loss_without, accuracy_without, size.

    Raises:
        ValueError: task or without is none of those above, or steps is below 1.

    >>> result = train_terms("back", steps=2)
    >>> list(result.accuracy_without)
    ['word_word', 'word_place', 'place_word', 'place_place', 'places']

    Source: an experiment of this book, described in disentangled.md#used.
    """
    for name, value, known in (("task", task, ASKED_TASKS), ("without", without, (*TERMS, None))):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(str, known))}, got {value!r}")
    seed, steps = integer("seed", seed, minimum=0), integer("steps", steps, minimum=1)
    trained, kind = tuple(term for term in TERMS if term != without), TASKS[task]
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.default_generator.manual_seed(seed)
        layers = [TermPositions(trained) for _ in range(LAYERS)]
        model = Transformer(kind.vocabulary, kind.answers, DIM, layers, heads=HEADS, padding=True, norm=True)
        generator = torch.Generator().manual_seed(seed)
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE, betas=(0.9, 0.98))
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1, 20 * (step + 1) / steps) * max(0.05, 1 - step / steps)
        )
        for _ in range(steps):
            loss, _ = _ask(model, kind, generator, BATCH)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            found = {}
            for off in (*trained, "places", ""):  # at last with all, whose sizes are kept
                for layer in layers:
                    layer.off = frozenset(TERMS[1:]) if off == "places" else frozenset({off})
                answers = _ask(model, kind, torch.Generator().manual_seed(10**6), ASKED)
                found[off] = [round(float(x), 4) for x in answers]
    full = found.pop("")
    return TermsResult(
        task=task,
        seed=seed,
        trained=trained,
        loss=full[0],
        accuracy=full[1],
        loss_without={off: pair[0] for off, pair in found.items()},
        accuracy_without={off: pair[1] for off, pair in found.items()},
        size={name: round(sum(layer.sizes[name] for layer in layers) / LAYERS, 3) for name in trained},
    )


def _ask(model: nn.Module, task: Task, generator: torch.Generator, texts: int) -> tuple[Tensor, Tensor]:
    """Loss and accuracy on fresh texts."""
    ids, targets = task.make(texts, LENGTH, generator)
    asked = targets >= 0
    logits, answers = model(ids)[asked], targets[asked]
    right = (logits.argmax(dim=-1) == answers).double().mean()
    return nn.functional.cross_entropy(logits, answers), right


def make_term_results() -> None:
    """Train them anew, some minutes of one core, and write the file beside this one."""
    runs = [
        train_terms(task, without=without, seed=seed)
        for task in ASKED_TASKS
        for without in (None, *TERMS)
        for seed in range(SEEDS)
    ]
    lines = ",\n".join(json.dumps(asdict(run)) for run in runs)
    FILE.write_text(
        f'{{"made_by": "python -m posenc.experiments disentangled", "runs": [\n{lines}\n]}}\n',
        encoding="utf-8",
    )
