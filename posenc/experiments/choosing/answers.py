"""What `measure` found of every scheme, as it stands in answers.json, and how far the small trainings held.

Without torch: the page of the table reads it where a browser runs Python. That the file says what is measured is
tested for each scheme.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Literal

import numpy as np

from posenc.experiments.extrapolation.results import Results, extrapolation_results

__all__ = ["FAR", "LONG", "TASKS", "Answers", "compare_schemes", "held_lengths", "trained_longer"]

Tokens = Literal["line", "grid", "time", "graph"]
Entrance = Literal["code", "turn", "score", "mask"]
Pairs = Literal["no", "offsets", "yes"]

LONG = 131_072
"""The length at which memory and cost are compared: 128k tokens."""

FAR = 2**20
"""The number of positions that are tried; what works at the last of them is taken to work at any."""


@dataclass(frozen=True)
class Answers:
    """What `measure_scheme` found. None: the question has no meaning for the scheme."""

    name: str
    section: str
    """Where the book explains it: a page and a heading."""
    tokens: Tokens
    """How its tokens lie: in a line, on a grid, in time, or in a graph."""
    enters: Entrance
    """Where the position comes in: in a code that is added, a turn of queries and keys, a score or a mask."""
    shift: bool
    """Whether outputs stay when all places move alike; in a graph, when its nodes are numbered otherwise."""
    norm: bool
    """Whether embeddings, queries, keys and values keep their length."""
    direction: bool | None
    """Whether, without a mask, a text is told from its reversal."""
    parameters: int
    """How many numbers are trained, before anything is stretched: 12 heads of width 64, 2048 tokens."""
    memory: float | None
    """Bytes that live at one time because of it, by those of all keys and values, at 128k tokens in float32.

    A bias that is a product of columns takes these columns; any other takes a number for each pair of tokens.
    """
    cost: float | None
    """Its operations by those of attention, at 128k tokens; below 0 what it saves, as scores not computed."""
    defined: int | None
    """Number of positions at which it gives finite numbers in float32, stretched likewise; `FAR`: no end."""
    held: tuple[int, ...] | None
    """For each of `TASKS` the longest text at which small models did it, 0 if not even at the trained length."""
    longer: tuple[bool, ...] | None
    """For each of them, whether it took more steps of training than the others had."""
    tuned: tuple[int, ...] | None
    """The same after a short training at the longest length."""
    cached: bool
    """Whether one token at a time, with a cache of keys and values, gives what the full pass gives."""
    pairs: Pairs
    """What its scores are made of besides a vector for each query and one for each key: nothing (no), a number
    for each offset, or a number for each pair of tokens (yes). A mask is not counted."""
    fused: bool
    """Whether posenc does it by `scaled_dot_product_attention` without a number for each pair of tokens."""
    change: bool | None
    """Whether a text beyond the training is refused, or changes the numbers of tokens that were there before."""


def compare_schemes(results: Results | None = None) -> list[Answers]:
    """The answers of all schemes, in the order of the book.

    `python -m posenc.experiments choosing` measures them, in a quarter of a minute; what the small models did comes
    from the results of the chapter `extrapolation`.

    Args:
        results: of the sweep; None: those of the book.

    Returns:
        An `Answers` for each scheme.

    >>> rotary = next(found for found in compare_schemes() if found.name == "rotary")
    >>> rotary.shift, rotary.norm, rotary.parameters, rotary.fused
    (True, True, 0, True)

    Source: an experiment of this book, described in choosing.md#families.
    """
    results = extrapolation_results() if results is None else results
    held, longer = held_lengths(results), trained_longer(results)
    text = files("posenc.experiments.choosing").joinpath("answers.json").read_text(encoding="utf-8")
    found = []
    for row in json.loads(text):
        name = row.pop("result")
        row |= {"held": held.get(name), "longer": longer.get(name), "tuned": held.get(f"{name}_tuned")}
        found.append(Answers(**row))
    return found


TASKS = ("back", "copy", "sort")
"""The tasks of the chapter `extrapolation` that need positions."""


def held_lengths(results: Results, least: float = 0.9) -> dict[str, tuple[int, ...]]:
    """The longest text, of those asked, up to which small models did each of `TASKS`.

    What had not learned its task in the steps that all had counts with those that it got beyond (`trained_longer`).

    Args:
        results: of the chapter `extrapolation`.
        least: accuracy, that of the middle seed, that counts as done. One seed of five that fails, as some do
            where the best learning rate is a high one, decides nothing.

    Returns:
        By the name of the scheme, a length for each task; 0 for what is not done at the trained length. Those
        that were not put to all tasks at all lengths are left out.
    """
    found = {}
    for scheme, steps in _tried(results).items():
        scores = [results.scores(scheme, task, steps=last) for task, last in zip(TASKS, steps, strict=True)]
        done = [np.median(each, axis=0) >= least for each in scores]
        if all(row.shape == (len(results.lengths),) for row in done):
            found[scheme] = tuple((0, *results.lengths)[int(row.cumprod().sum())] for row in done)
    return found


def trained_longer(results: Results) -> dict[str, tuple[bool, ...]]:
    """By the name of the scheme, for each of `TASKS` whether it had not learned it in the steps that all had."""
    return {
        scheme: tuple(last != results.steps for last in steps) for scheme, steps in _tried(results).items()
    }


def _tried(results: Results) -> dict[str, list[int]]:
    """The schemes that were put to all of `TASKS`, and for each task the steps of the longest training."""
    pairs = {(run["scheme"], run["task"]) for run in results.data["runs"]}
    longer = results.longer()
    return {
        scheme: [max(longer.get((scheme, task), (results.steps,))) for task in TASKS]
        for scheme in results.schemes
        if pairs >= {(scheme, task) for task in TASKS}
    }
