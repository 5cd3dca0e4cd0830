"""All runs, over the cores of this machine or over machines: `python -m posenc.experiments extrapolation`."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from posenc._checks import integer
from posenc.experiments.extrapolation.results import NAME, code_digest, header
from posenc.experiments.extrapolation.runs import Settings, floor_scores, train_and_stretch
from posenc.experiments.extrapolation.schemes import SCHEMES
from posenc.experiments.extrapolation.tasks import TASKS

__all__ = ["sweep"]

Job = tuple[str, str, int]
"""Scheme, task, seed: what is trained from the start. All that begins with it comes along."""


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

    What is finished lies in a folder beside the file, a file a training, written whole or not at all. A sweep
    that was killed goes on from there. The folder's name holds the digest of the code, so that no result of
    other code is taken over.

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
    from joblib import Parallel, delayed
    from tqdm import tqdm

    settings = settings or Settings()
    trained = [name for name, scheme in SCHEMES.items() if scheme.begins is None]
    jobs = [
        (scheme, task, seed)
        for seed in range(integer("seeds", seeds, minimum=1))
        for task in _chosen("tasks", tasks, list(TASKS))
        for scheme in _chosen("schemes", schemes, trained)
    ]
    file = Path(out)
    parts = _parts(file, settings)
    parts.mkdir(parents=True, exist_ok=True)
    missing = [job for job in jobs if not _part(parts, job).exists()]
    with _machines(dask):
        pool = Parallel(n_jobs=workers, return_as="generator_unordered")
        finished = pool(delayed(_train)(job, settings) for job in missing)
        bar = tqdm(
            finished, total=len(jobs), initial=len(jobs) - len(missing), unit="run", disable=not progress
        )
        for job, runs in bar:
            _write(_part(parts, job), {"runs": runs})
    _write(file, _file(settings, [run for job in jobs for run in _read(_part(parts, job))]))
    return file


def _file(settings: Settings, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """What the file holds: the runs of one scheme and one task together, and each of the versions once."""
    versions: list[dict[str, str]] = []
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    for run in runs:
        scheme, task, made_with = run.pop("scheme"), run.pop("task"), run.pop("versions")
        if made_with not in versions:
            versions.append(made_with)
        place = (list(TASKS).index(task), list(SCHEMES).index(scheme))
        row = rows.setdefault(place, {"scheme": scheme, "task": task})
        for key, value in {**run, "versions": versions.index(made_with)}.items():
            row.setdefault(key, []).append(value)
    return {
        **header(settings, floor_scores()),
        "versions": versions,
        "runs": [rows[place] for place in sorted(rows)],
    }


def _train(job: Job, settings: Settings) -> tuple[Job, list[dict[str, Any]]]:
    versions = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "machine": platform.machine(),
    }
    return job, [
        {
            "scheme": run.scheme,
            "task": run.task,
            "seed": run.seed,
            "steps": run.steps,
            "seconds": round(run.seconds, 1),
            "scores": [round(score, 3) for score in run.scores],
            "by_position": [round(score, 3) for score in run.by_position],
            "versions": versions,
        }
        for run in train_and_stretch(*job, settings)
    ]


@contextmanager
def _machines(dask: str | None) -> Iterator[None]:
    """Where the runs of joblib go."""
    from joblib import parallel_config

    if dask is None:
        yield
        return
    from distributed import Client

    with Client(dask), parallel_config(backend="dask"):
        yield


def _chosen(name: str, values: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    for value in values or ():
        if value not in known:
            raise ValueError(f"{name} must be among {', '.join(known)}, got {value!r}")
    return known if values is None else [value for value in known if value in values]


def _parts(file: Path, settings: Settings) -> Path:
    """The folder of what is finished: one for each code and all settings, so that none is taken for another."""
    text = json.dumps(asdict(settings), sort_keys=True) + code_digest()
    return file.with_name(f"{file.stem}.parts") / hashlib.sha256(text.encode()).hexdigest()[:16]


def _part(parts: Path, job: Job) -> Path:
    return parts / "-".join(map(str, job))


def _read(part: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(part.read_text(encoding="utf-8"))["runs"]
    return runs


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
    parser.add_argument("--out", default=f"docs/{NAME}", help="the file to write (default: %(default)s)")
    parser.add_argument("--schemes", nargs="+", metavar="SCHEME", help="only these; needs another --out")
    parser.add_argument("--tasks", nargs="+", metavar="TASK", help="only these; needs another --out")
    parser.add_argument(
        "--seeds", type=int, default=5, help="how many trainings of each (default: %(default)s)"
    )
    parser.add_argument("--steps", type=int, help="at most so many steps of training; needs another --out")
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
