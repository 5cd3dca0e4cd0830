"""All runs, over the cores of this machine or over machines: `python -m posenc.experiments extrapolation`.

First every scheme is trained on every task with each learning rate, then with the best of them and every seed.
What has not learned its task by then gets more steps, and some schemes are trained at other sizes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from posenc._checks import integer
from posenc.experiments.extrapolation.origin import code_digest, header
from posenc.experiments.extrapolation.results import FILE, Results
from posenc.experiments.extrapolation.runs import (
    Run,
    Settings,
    floor_scores,
    train_and_stretch,
    train_extrapolation,
)
from posenc.experiments.extrapolation.tasks import TASKS
from posenc.experiments.schemes import LONGEST, SCHEMES

if TYPE_CHECKING:
    from joblib import Parallel
    from tqdm import tqdm

__all__ = ["sweep"]


@dataclass(frozen=True)
class Job:
    """What is done in one go: trainings from the start, and all that begins with them."""

    kind: Literal["rates", "run", "longer"]
    scheme: str
    task: str
    seed: int
    rate: float = 0.0
    size: str = "usual"
    times: int = 1
    """How many times the usual steps."""

    @property
    def name(self) -> str:
        return "-".join(map(str, (self.kind, self.scheme, self.task, self.seed, self.size, self.times)))

    def cost(self, settings: Settings) -> float:
        """Seconds of a core, roughly."""
        slow = {"usual": 1, "deep": 2, "wide": 3}[self.size] * (
            2 if SCHEMES[self.scheme].length == LONGEST else 1
        )
        trainings = len(settings.rates) if self.kind == "rates" else self.times
        return trainings * slow * settings.steps / 250


def sweep(
    out: str | Path,
    *,
    schemes: Sequence[str] | None = None,
    tasks: Sequence[str] | None = None,
    seeds: int = 5,
    settings: Settings | None = None,
    workers: int = -1,
    dask: str | None = None,
    progress: bool = True,
) -> Path:
    """Trains all that is not trained yet, and writes the results file.

    What is finished lies in a folder beside the file, a file a job, with a digest of its content: one that is cut
    off is done again. A sweep that was killed goes on from there. The folder's name holds the digest of the
    code, so that no result of other code is taken over.

    Args:
        out: the file to write. It is replaced when everything is there.
        schemes: those trained from the start, and with each all that begin with it; None: all.
        tasks: None: all.
        seeds: 0..seeds−1 each.
        settings: None: those of the book.
        workers: processes on this machine; −1: one a core. Each uses one thread.
        dask: the address of a Dask scheduler, whose workers are used instead.
        progress: whether a bar with the time left is shown.

    Returns:
        The path of the file.
    """
    from tqdm import tqdm

    settings = settings or Settings()
    trained = [name for name, scheme in SCHEMES.items() if scheme.begins is None]
    seeds = integer("seeds", seeds, minimum=1)
    pairs = [
        (scheme, task)
        for task in _chosen("tasks", tasks, list(TASKS))
        for scheme in _chosen("schemes", schemes, trained)
    ]
    file = Path(out)
    parts = _parts(file, settings)
    parts.mkdir(parents=True, exist_ok=True)
    rates = [Job("rates", *pair, settings.rate_seed) for pair in pairs]
    runs = [Job("run", *pair, seed) for seed in range(seeds) for pair in pairs]
    runs += [
        Job("run", scheme, task, seed, size=size)
        for size in ("deep", "wide")
        for seed in range(min(seeds, settings.sized_seeds))
        for scheme, task in pairs
        if scheme in settings.sized and task in settings.sized_tasks
    ]
    left = sum(job.cost(settings) for job in rates + runs if _read(parts / job.name) is None)
    bar = tqdm(
        total=left, disable=not progress, bar_format="{percentage:3.0f}% [{elapsed}<{remaining}] {desc}"
    )
    with bar, _machines(dask, workers) as pool:

        def done(jobs: list[Job]) -> list[dict[str, Any]]:
            return _done(jobs, parts, settings, pool, bar)

        losses = {(row["scheme"], row["task"]): row["losses"] for row in done(rates)}
        best = {pair: settings.rates[int(np.argmin(found))] for pair, found in losses.items()}
        shares = {"usual": 1.0, "deep": settings.sized_rate, "wide": settings.sized_rate}
        rows = done([replace(job, rate=shares[job.size] * best[job.scheme, job.task]) for job in runs])
        for times, count in zip(settings.longer, settings.longer_seeds, strict=True):
            unfinished = _unfinished(Results(_file(settings, losses, rows)), settings, pairs)
            longer = [
                Job("longer", *pair, seed, rate=best[pair], times=times)
                for seed in range(min(seeds, count))
                for pair in unfinished
            ]
            bar.total += sum(job.cost(settings) for job in longer if _read(parts / job.name) is None)
            rows += done(longer)
    _write(file, _file(settings, losses, rows))
    return file


def _unfinished(results: Results, settings: Settings, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What has not learned its task at the trained length, and has learned more with the last steps it got."""
    found = []
    for scheme, task in pairs:
        budgets = (settings.steps, *results.longer().get((scheme, task), ()))
        if TASKS[task].measure != "accuracy" or results.finished(scheme, task, steps=budgets[-1]):
            continue
        if len(budgets) == 1 or _gain(results, scheme, task, budgets) >= settings.rise:
            found.append((scheme, task))
    return found


def _gain(results: Results, scheme: str, task: str, budgets: Sequence[int]) -> float:
    """By how much more is right at the trained length with the last budget than with that before."""
    before, after = (results.curve(scheme, task, steps=steps)[:, -1].mean() for steps in budgets[-2:])
    return float(after - before)


def _done(
    jobs: list[Job], parts: Path, settings: Settings, pool: Parallel, bar: tqdm
) -> list[dict[str, Any]]:
    """The rows of all jobs, of which those that are missing are done."""
    from joblib import delayed

    kept = {job: _read(parts / job.name) for job in jobs}
    missing = [job for job, rows in kept.items() if rows is None]
    for job, rows in pool(delayed(_train)(job, settings) for job in missing):
        _write(parts / job.name, {"digest": _digest(rows), "runs": rows})
        kept[job] = rows
        bar.set_description_str(f"{job.scheme} {job.task}", refresh=False)
        bar.update(job.cost(settings))
    return [row for job in jobs for row in kept[job] or ()]


def _train(job: Job, settings: Settings) -> tuple[Job, list[dict[str, Any]]]:
    """The job and its rows, as they stand in the file."""
    if job.kind == "rates":
        found = [
            train_extrapolation(job.scheme, job.task, seed=job.seed, rate=rate, settings=settings)
            for rate in settings.rates
        ]
        losses = [round(run.loss, 4) for run in found]
        return job, [{"scheme": job.scheme, "task": job.task, "losses": losses}]
    settings = replace(settings, steps=job.times * settings.steps)
    if job.kind == "longer":
        run = train_extrapolation(job.scheme, job.task, seed=job.seed, rate=job.rate, settings=settings)
        return job, [_row(run)]
    return job, [
        _row(run) for run in train_and_stretch(job.scheme, job.task, job.seed, job.rate, settings, job.size)
    ]


def _row(run: Run) -> dict[str, Any]:
    row = {key: value for key, value in vars(run).items() if key != "model"}
    rounded = {key: [round(value, 3) for value in row[key]] for key in ("scores", "by_position", "curve")}
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
    }
    return {
        **row,
        **rounded,
        "seconds": round(run.seconds, 1),
        "loss": round(run.loss, 4),
        "versions": versions,
    }


def _file(
    settings: Settings, losses: dict[tuple[str, str], list[float]], runs: Iterable[dict[str, Any]]
) -> dict[str, Any]:
    """What the file holds: the runs of one scheme and one task together, and each of the versions once."""
    by_scheme: dict[str, dict[str, list[float]]] = {}
    for (scheme, task), found in losses.items():
        by_scheme.setdefault(scheme, {})[task] = found
    versions: list[dict[str, str]] = []
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in runs:
        same = {key: run[key] for key in ("scheme", "task", "size", "steps", "rate")}
        place = (
            list(TASKS).index(run["task"]),
            list(SCHEMES).index(run["scheme"]),
            run["size"] != "usual",
            run["size"],
            run["steps"],
        )
        row = rows.setdefault(place, same)
        for key in ("seed", "seconds", "loss", "scores", "by_position", "curve"):
            row.setdefault(key, []).append(run[key])
        if run["versions"] not in versions:
            versions.append(run["versions"])
        row.setdefault("versions", []).append(versions.index(run["versions"]))
    return {
        **header(settings, by_scheme, floor_scores(tokens=settings.asked_tokens)),
        "versions": versions,
        "runs": [rows[place] for place in sorted(rows)],
    }


@contextmanager
def _machines(dask: str | None, workers: int) -> Iterator[Parallel]:
    """What does the jobs, as they come."""
    from joblib import Parallel, parallel_config

    if dask is None:
        yield Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
        return
    from distributed import Client

    with Client(dask), parallel_config(backend="dask"):
        yield Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)


def _chosen(name: str, values: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    for value in values or ():
        if value not in known:
            raise ValueError(f"{name} must be among {', '.join(known)}, got {value!r}")
    return known if values is None else [value for value in known if value in values]


def _parts(file: Path, settings: Settings) -> Path:
    """The folder of what is finished: one for each code and all settings, so that none is taken for another."""
    text = json.dumps(asdict(settings), sort_keys=True) + code_digest()
    return file.with_name(f"{file.stem}.parts") / hashlib.sha256(text.encode()).hexdigest()[:16]


def _digest(rows: list[dict[str, Any]]) -> str:
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def _read(part: Path) -> list[dict[str, Any]] | None:
    """The rows of a finished job; None if there is none, or not all of it."""
    try:
        data = json.loads(part.read_text(encoding="utf-8"))
        return data["runs"] if data["digest"] == _digest(data["runs"]) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(file: Path, data: dict[str, Any]) -> None:
    """Whole or not at all, a run a line."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in data.items() if key != "runs"]
    runs = ",\n".join(f"  {json.dumps(run)}" for run in data["runs"])
    half = file.with_name(f"{file.name}.{os.getpid()}")
    half.write_text("{\n" + ",\n".join([*lines, f' "runs": [\n{runs}\n ]']) + "\n}\n", encoding="utf-8")
    half.replace(file)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m posenc.experiments extrapolation",
        description="Trains every scheme on every task, and writes what came of it. Goes on where it was stopped.",
    )
    parser.add_argument("--out", default=str(FILE), help="the file to write (default: that of the package)")
    parser.add_argument("--schemes", nargs="+", metavar="SCHEME", help="only these; needs another --out")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="only these; needs another --out")
    parser.add_argument(
        "--seeds", type=int, default=5, help="how many trainings of each (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, help="so many steps of training; needs another --out")
    parser.add_argument("--workers", type=int, default=-1, help="processes (default: one a core)")
    parser.add_argument("--dask", metavar="ADDRESS", help="a Dask scheduler, whose workers do the runs")
    given = vars(parser.parse_args(arguments))
    steps = given.pop("steps")
    partly = given["schemes"] or given["tasks"] or steps
    if partly and given["out"] == parser.get_default("out"):
        parser.error("--out must name another file unless all is trained, with the steps of the book")
    try:
        settings = Settings() if steps is None else Settings(steps=integer("--steps", steps, minimum=1))
        sweep(**given, settings=settings)
    except ValueError as error:
        parser.error(str(error))
