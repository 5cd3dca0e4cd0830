"""What the smaller trainings gave, as it stands in their files. To read it takes no torch.

The file of each lies beside the module that makes it: `python -m posenc.experiments hybrids`, recipe, disentangled,
deployment.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

__all__ = [
    "TermsResult",
    "deployment_results",
    "deployment_table",
    "hybrid_results",
    "recipe_results",
    "term_results",
]


def _kept(name: str) -> dict[str, Any]:
    """The content of a file."""
    text = files("posenc.experiments").joinpath(f"{name}.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def hybrid_results() -> dict[str, Any]:
    """What `python -m posenc.experiments hybrids` measured, as it stands in the file.

    Returns:
        mixes: by mix and task, the rate and the scores (seeds, lengths). count: by text, (seeds, 2), the share named
        exactly and the mean distance. probe: by training and what is read, the mean distance of each seed.

    >>> results = hybrid_results()
    >>> results["lengths"]
    [32, 40, 64, 128, 256]

    Source: an experiment of this book, described in hybrids.md#learned.
    """
    return _kept("hybrids")


@cache
def recipe_results() -> dict[str, Any]:
    """What `python -m posenc.experiments recipe` measured, as it stands in the file.

    Returns:
        ways: by way, its rate and for each seed the loss at 256 tokens, the scores short and long by task, those by
        depth, and the perplexity by position.

    >>> results = recipe_results()
    >>> len(results["ways"]), len(results["ways"]["neither"]["seeds"])
    (8, 3)

    Source: an experiment of this book, described in recipe.md#experiment.
    """
    return _kept("recipe")


@dataclass(frozen=True)
class TermsResult:
    """What `train_terms` measured, on texts that were not in the training."""

    task: str
    seed: int

    trained: tuple[str, ...]
    """The terms that it was trained with."""

    loss: float
    """Mean cross-entropy of an answer with all of them, in nats."""

    accuracy: float
    """Share of the answers that are right."""

    loss_without: dict[str, float]
    """The same when one of them is switched off, or under "places" all but word_word. Nothing is trained anew."""

    accuracy_without: dict[str, float]

    size: dict[str, float]
    """Standard deviation of each term over the keys that a query sees, in nats of the scaled score: a mean."""


def term_results() -> list[TermsResult]:
    """The trainings that the book quotes: each task with all terms and without each, five seeds.

    Returns:
        A `TermsResult` for each training.

    >>> len(term_results())
    100

    Source: an experiment of this book, described in disentangled.md#used.
    """
    runs = _kept("disentangled")["runs"]
    return [TermsResult(**{**row, "trained": tuple(row["trained"])}) for row in runs]


def deployment_results() -> dict[str, dict[str, float | list[str] | str]]:
    """What every layer did in every way, as `try_layer` gives it; a string is the reason why it cannot.

    >>> deployment_results()["KerpleBias"]["saved"]
    ['raw_r1', 'raw_r2']
    """
    results: dict[str, dict[str, float | list[str] | str]] = _kept("deployment")["layers"]
    return results


_HEADS = {
    "en": ("Layer", "eager", "graphs", "compiled", "exported", "ONNX", "autocast", "saved"),
    "zh": ("层", "eager", "图", "编译", "导出", "ONNX", "autocast", "存下"),
}


def deployment_table(*, lang: Literal["en", "zh"] = "en") -> str:
    """The results as a Markdown table: how far outputs are off, and how many tensors are saved.

    Args:
        lang: "en" or "zh", the language of its words.

    Returns:
        Markdown.

    Raises:
        ValueError: lang is neither "en" nor "zh".

    >>> deployment_table().splitlines()[0]
    '| Layer | eager | graphs | compiled | exported | ONNX | autocast | saved |'

    Source: measured in this book, deployment.md#what-works.
    """
    if lang not in _HEADS:
        raise ValueError(f'lang must be "en" or "zh", got {lang!r}')
    rows = [_HEADS[lang], ("---",) * len(_HEADS[lang])]
    for name, ways in deployment_results().items():
        rows.append((f"`{name}`", *(_cell(ways[way], lang) for way in ways)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cell(result: float | list[str] | str, lang: str) -> str:
    if isinstance(result, str):
        return {"en": "no", "zh": "否"}[lang]
    if isinstance(result, list):
        return str(len(result))
    return f"{result:.0f}" if isinstance(result, int) or result == 0 else f"{result:.0e}"
