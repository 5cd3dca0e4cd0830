"""The results file of the sweep: what is in it, and whether it belongs to the code that stands here."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import posenc
from posenc.experiments.extrapolation.runs import BIN, LENGTHS, Settings
from posenc.experiments.extrapolation.schemes import SCHEMES
from posenc.experiments.extrapolation.tasks import TASKS

__all__ = ["Results", "code_digest", "extrapolation_results"]

NAME = "extrapolation.json"


@dataclass(frozen=True)
class Results:
    """What the sweep has measured."""

    data: dict[str, Any]
    """The file's content: settings, code, versions, chance, floor, lengths, schemes, runs."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """The lengths that the trained models were asked at; the first is that of training."""
        return tuple(self.data["lengths"])

    @property
    def schemes(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run["scheme"] for run in self.data["runs"]))

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(run["task"] for run in self.data["runs"]))

    def scores(self, scheme: str, task: str) -> np.ndarray:
        """(seeds, lengths): accuracy, or perplexity for the language, in the last quarter of each length."""
        return np.array(self._row(scheme, task)["scores"])

    def by_position(self, scheme: str, task: str) -> np.ndarray:
        """(seeds, bins): the same by runs of 16 positions of the longest texts. For back and language."""
        found = np.array(self._row(scheme, task)["by_position"])
        if not found.size:
            raise ValueError(f"task must be one that answers everywhere, back or language, got {task!r}")
        return found

    def chance(self, task: str) -> float:
        """What guessing is worth."""
        return float(self.data["chance"][self._known("task", task, self.tasks)])

    def floor(self) -> np.ndarray:
        """(lengths,): the perplexity of the best possible reader of the language."""
        return np.array(self.data["floor"])

    def _row(self, scheme: str, task: str) -> dict[str, Any]:
        self._known("scheme", scheme, self.schemes)
        self._known("task", task, self.tasks)
        row: dict[str, Any] = next(r for r in self.data["runs"] if (r["scheme"], r["task"]) == (scheme, task))
        return row

    @staticmethod
    def _known(name: str, value: str, values: tuple[str, ...]) -> str:
        if value not in values:
            raise ValueError(f"{name} must be one of {', '.join(values)}, got {value!r}")
        return value


def extrapolation_results(path: str | Path | None = None) -> Results:
    """The results of the sweep that the book quotes.

    Args:
        path: a file made by `python -m posenc.experiments extrapolation`; None: that of the book, which is in
            docs of a checkout and in an installed package.

    Returns:
        `Results`: scores by scheme and task, seed by seed.

    >>> results = extrapolation_results()
    >>> results.lengths
    (32, 40, 64, 128, 256)
    >>> bool(results.scores("rotary", "back")[:, 0].min() > 0.99)
    True
    """
    if path is None:
        root = Path(posenc.__file__).parent
        places = (root.parent / "docs" / NAME, root / "experiments" / NAME)
        path = next((place for place in places if place.exists()), places[0])
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(
            f"no results at {file}: python -m posenc.experiments extrapolation makes them"
        )
    return Results(json.loads(file.read_text(encoding="utf-8")))


def header(settings: Settings, floor: Iterable[float]) -> dict[str, Any]:
    """What the file says beside the runs."""
    return {
        "made_by": "python -m posenc.experiments extrapolation",
        "code": code_digest(),
        "settings": asdict(settings),
        "lengths": list(LENGTHS),
        "positions_together": BIN,
        "chance": {name: task.chance for name, task in TASKS.items()},
        "floor": [round(value, 4) for value in floor],
        "schemes": {
            name: {key: value for key, value in asdict(scheme).items() if value not in (None, False, 0)}
            for name, scheme in SCHEMES.items()
        },
    }


def code_digest(root: Path = Path(posenc.__file__).parent.parent) -> str:
    """A digest of the settings and of all code that decides a number of the file, not of its comments."""
    digest = hashlib.sha256(json.dumps(asdict(Settings()), sort_keys=True).encode())
    for file in sorted(_reached(root, "posenc.experiments.extrapolation.runs")):
        digest.update(f"{file.relative_to(root).as_posix()}\n{_bare(file)}\n".encode())
    return digest.hexdigest()[:16]


def _reached(root: Path, module: str) -> set[Path]:
    """The files of posenc that a module imports, and those that these import."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        name = root.joinpath(*waiting.pop().split("."))
        for file in (name.with_suffix(".py"), name / "__init__.py"):
            if file.exists() and file not in found:
                found.add(file)
                waiting += _imported(file)
    return found


def _imported(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("posenc."):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _bare(file: Path) -> str:
    """The code without docstrings, lines of comment and empty ones. Not ast.dump: each Python has its own."""
    text = file.read_text(encoding="utf-8")
    lines: list[str] = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines[node.lineno - 1 : node.end_lineno] = [""] * (1 + (node.end_lineno or 0) - node.lineno)
    return "\n".join(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
