"""The results file of the sweep, and what is in it. To read it takes no torch."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Results", "extrapolation_results"]

FILE = Path(__file__).with_name("results.json")
PARTS = {
    *("made_by", "code", "settings", "sizes", "lengths", "positions_together", "chance", "floor", "schemes"),
    *("losses_by_rate", "runs"),
}

_T_QUANTILE = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365, 9: 2.306, 10: 2.262}
"""The 97.5 % quantile of Student's distribution, by the number of seeds."""


@dataclass(frozen=True)
class Results:
    """What the sweep has measured."""

    data: dict[str, Any]
    """The file's content: settings, code, versions, chance, floor, lengths, schemes, rates, runs."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths at which the trained models were tested; the first is that of training."""
        return tuple(self.data["lengths"])

    @property
    def steps(self) -> int:
        """The steps of training that every scheme had."""
        return int(self.data["settings"]["steps"])

    @property
    def schemes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run["scheme"] for run in self.data["runs"]))

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run["task"] for run in self.data["runs"]))

    def scores(self, scheme: str, task: str, *, size: str = "usual", steps: int | None = None) -> np.ndarray:
        """(seeds, lengths): accuracy, or perplexity for the language, in the last quarter of each length.

        Args:
            scheme, task: of those in the file.
            size: usual, or deep or wide, which the file has for some schemes.
            steps: of the training; None: those that every scheme had. `longer` says which others there are.
        """
        return np.array(self._row(scheme, task, size, steps)["scores"])

    def by_position(self, scheme: str, task: str) -> np.ndarray:
        """(seeds, bins): the same by runs of 16 positions of the longest texts. For back and language."""
        found = np.array(self._row(scheme, task)["by_position"])
        if not found.size:
            raise ValueError(f"task must be one that answers everywhere, back or language, got {task!r}")
        return found

    def curve(self, scheme: str, task: str, *, steps: int | None = None) -> np.ndarray:
        """(seeds, looks): the score at the trained length during the training, measured at equal distances."""
        first = self.data["schemes"][self._known("scheme", scheme, self.schemes)].get("begins", scheme)
        return np.array(self._row(first, task, "usual", steps)["curve"])

    def interval(
        self, scheme: str, task: str, *, size: str = "usual", steps: int | None = None
    ) -> np.ndarray:
        """(2, lengths): the 95 % interval of the mean over seeds, by Student's distribution.

        It takes the seeds for a sample of a normal distribution, which they are only roughly: where some seeds
        solve a task and others do not, look at the seeds.
        """
        scores = self.scores(scheme, task, size=size, steps=steps)
        count = len(scores)
        if count not in _T_QUANTILE:
            raise ValueError(f"an interval takes 2 to 10 seeds, {scheme} on {task} has {count}")
        half = _T_QUANTILE[count] * scores.std(axis=0, ddof=1) / math.sqrt(count)
        return np.stack([scores.mean(axis=0) - half, scores.mean(axis=0) + half])

    def rate(self, scheme: str, task: str) -> float:
        """The highest learning rate of the training, the best of those that were tried."""
        return float(self._row(scheme, task)["rate"])

    def finished(self, scheme: str, task: str, *, steps: int | None = None) -> bool:
        """Whether the answers at the trained length are right, as far as `Settings.enough` asks."""
        return self._measured(scheme, task, steps) >= float(self.data["settings"]["enough"])

    def longer(self) -> dict[tuple[str, str], tuple[int, ...]]:
        """Scheme and task of what was not finished, and the steps of the trainings that it got beyond."""
        found: dict[tuple[str, str], tuple[int, ...]] = {}
        for row in self.data["runs"]:
            if row["size"] == "usual" and row["steps"] != self.steps:
                pair = (row["scheme"], row["task"])
                found[pair] = (*found.get(pair, ()), row["steps"])
        return found

    def chance(self, task: str) -> float:
        """What guessing is worth."""
        return float(self.data["chance"][self._known("task", task, self.tasks)])

    def floor(self) -> np.ndarray:
        """(lengths,): the perplexity of the best possible reader of the language."""
        return np.array(self.data["floor"])

    def _measured(self, scheme: str, task: str, steps: int | None) -> float:
        """The mean score at the length of the training, at its end."""
        length = self.data["schemes"][scheme].get("length", self.lengths[0])
        at = self.lengths.index(length)
        return float(self.scores(scheme, task, steps=steps)[:, at].mean())

    def _row(self, scheme: str, task: str, size: str = "usual", steps: int | None = None) -> dict[str, Any]:
        wanted = (scheme, task, size, self.steps if steps is None else steps)
        for row in self.data["runs"]:
            if (row["scheme"], row["task"], row["size"], row["steps"]) == wanted:
                found: dict[str, Any] = row
                return found
        self._known("scheme", scheme, self.schemes)
        self._known("task", task, self.tasks)
        raise ValueError(f"{scheme} was not trained on {task} at size {size!r} with {wanted[-1]} steps")

    @staticmethod
    def _known(name: str, value: str, values: tuple[str, ...]) -> str:
        if value not in values:
            raise ValueError(f"{name} must be one of {', '.join(values)}, got {value!r}")
        return value


def extrapolation_results(path: str | Path | None = None) -> Results:
    """The results of the sweep that the book quotes.

    Args:
        path: a file made by `python -m posenc.experiments extrapolation`; None: that of the book, which comes
            with the package.

    Returns:
        `Results`: scores by scheme and task, seed by seed.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file does not hold results.

    >>> results = extrapolation_results()
    >>> results.lengths
    (32, 40, 64, 128, 256)
    >>> bool(results.scores("rotary", "back")[:, 0].min() > 0.99)
    True

    Source: an experiment of this book, described in extrapolation.md#experiment.
    """
    file = FILE if path is None else Path(path)
    if not file.exists():
        raise FileNotFoundError(
            f"no results at {file}: python -m posenc.experiments extrapolation makes them"
        )
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"path must be a file of results, {file} is no JSON: {error}") from None
    if not isinstance(data, dict) or PARTS - data.keys():
        raise ValueError(f"path must be a file of results, {file} does not have all of their parts")
    return Results(data)
