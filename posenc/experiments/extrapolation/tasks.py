"""What the tiny Transformers have to do: four tasks and a language, at any length.

Every task makes sequences of steps; a step has two slots, for symbols that are embedded and added, and 0 leaves
a slot empty. A target of −1 is not asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

__all__ = ["SYMBOLS", "TASKS", "Task", "language_floor"]

SYMBOLS = 16
"""How many different answers a task has; by chance one in 16 is right."""

_SEPARATOR = SYMBOLS + 1
_MARK = SYMBOLS + 2
_KEYS = range(SYMBOLS + 3, SYMBOLS + 3 + 256)
_BACK = 3
_ASKED = 4
_LETTERS = 4


@dataclass(frozen=True)
class Task:
    """One task."""

    name: str

    make: Callable[[int, int, torch.Generator], tuple[Tensor, Tensor]]
    """(sequences, length, generator) to ids (sequences, length, 2) and targets (sequences, length)."""

    varied: bool = True
    """Whether the batches of training have all even lengths up to the longest, since a task ends with its text."""

    answers: int = SYMBOLS
    """How many answers there are to choose from, from 0 on."""

    measure: Literal["accuracy", "perplexity"] = "accuracy"
    """accuracy or perplexity."""

    vocabulary: int = _KEYS.stop

    @property
    def chance(self) -> float:
        """What a guess is worth, in the task's measure."""
        return 1 / self.answers if self.measure == "accuracy" else float(self.answers)


def _look_back(batch: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Name the symbol three steps back."""
    symbols = torch.randint(SYMBOLS, (batch, n), generator=generator)
    targets = torch.full((batch, n), -1)
    targets[:, _BACK:] = symbols[:, :-_BACK]
    return _steps(symbols + 1), targets


def _copy(batch: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """n/2 symbols, a separator, and the same symbols once more: each is to be named before it stands there."""
    half = n // 2
    symbols = torch.randint(SYMBOLS, (batch, half), generator=generator)
    separator = torch.full((batch, 1), _SEPARATOR)
    ids = torch.cat([symbols + 1, separator, symbols[:, :-1] + 1], dim=1)
    targets = torch.cat([torch.full((batch, half), -1), symbols], dim=1)
    return _steps(ids), targets


def _sort(batch: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Four of the symbols are marked; after the separator they are to be named in the order they stand in."""
    shown = n - _ASKED
    symbols = torch.randint(SYMBOLS, (batch, shown), generator=generator)
    places = torch.rand(batch, shown, generator=generator).topk(_ASKED).indices.sort(dim=1).values
    # The marked ones differ, so that each says where the list goes on.
    marked = torch.rand(batch, SYMBOLS, generator=generator).topk(_ASKED).indices
    symbols.scatter_(1, places, marked)
    marks = torch.zeros(batch, n, dtype=torch.int64).scatter_(1, places, _MARK)
    separator = torch.full((batch, 1), _SEPARATOR)
    ids = torch.cat([symbols + 1, separator, marked[:, :-1] + 1], dim=1)
    targets = torch.cat([torch.full((batch, shown), -1), marked], dim=1)
    return _steps(ids, marks), targets


def _recall(batch: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Steps that pair a key with a symbol, then keys alone: name the symbol that went with each."""
    asked = n // 4
    shown = n - asked
    keys = torch.rand(batch, len(_KEYS), generator=generator).topk(shown).indices + _KEYS.start
    symbols = torch.randint(SYMBOLS, (batch, shown), generator=generator)
    places = torch.rand(batch, shown, generator=generator).topk(asked).indices
    ids = torch.cat([keys, keys.gather(1, places)], dim=1)
    values = torch.cat([symbols + 1, torch.zeros(batch, asked, dtype=torch.int64)], dim=1)
    targets = torch.cat([torch.full((batch, shown), -1), symbols.gather(1, places)], dim=1)
    return _steps(ids, values), targets


def _language(batch: int, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Four letters; which follows which, and how often, is drawn anew for each text, and has to be learned in it."""
    rows = torch.rand(batch, _LETTERS, _LETTERS, generator=generator).log().neg()
    rows /= rows.sum(dim=-1, keepdim=True)  # uniform over all probabilities: Dirichlet(1, 1, 1, 1)
    letters = torch.randint(_LETTERS, (batch, 1), generator=generator)
    text = [letters]
    for _ in range(n):
        following = rows[torch.arange(batch), text[-1][:, 0]]
        text.append(torch.multinomial(following, 1, generator=generator))
    letters = torch.cat(text, dim=1)
    return _steps(letters[:, :-1] + 1), letters[:, 1:]


def language_floor(ids: Tensor, targets: Tensor) -> Tensor:
    """What the best reader of `language` pays at each step, in nats: (c + 1)/(N + 4) of the counts so far."""
    pairs = torch.nn.functional.one_hot((ids[..., 0] - 1) * _LETTERS + targets, _LETTERS**2).double()
    before = pairs.cumsum(dim=1) - pairs
    rows = before.unflatten(-1, (_LETTERS, _LETTERS))
    at = (ids[..., 0] - 1)[..., None, None].expand(*targets.shape, 1, _LETTERS)
    counts = rows.gather(2, at).squeeze(2)
    probability = (counts + 1) / (counts.sum(dim=-1, keepdim=True) + _LETTERS)
    return -probability.gather(2, targets[..., None]).squeeze(-1).log()


def _steps(first: Tensor, second: Tensor | None = None) -> Tensor:
    return torch.stack([first, torch.zeros_like(first) if second is None else second], dim=-1)


TASKS = {
    task.name: task
    for task in (
        Task("back", _look_back, varied=False),
        Task("copy", _copy),
        Task("sort", _sort),
        Task("recall", _recall),
        Task("language", _language, varied=False, answers=_LETTERS, measure="perplexity"),
    )
}
