"""The sweep past the trained length: its tasks, its schemes, its one command, and the file it made."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from posenc.experiments import extrapolation_results, train_extrapolation
from posenc.experiments.extrapolation import SCHEMES, TASKS, Settings
from posenc.experiments.extrapolation.model import DIM, HEADS, Model
from posenc.experiments.extrapolation.results import Results, code_digest
from posenc.experiments.extrapolation.runs import LENGTHS
from posenc.experiments.extrapolation.schemes import TRAINED, Positions, Scheme, stretched
from posenc.experiments.extrapolation.sweep import main, sweep
from posenc.experiments.extrapolation.tasks import language_floor
from posenc.rotary import rotary_matrix

QUICK = Settings(steps=4, tokens=128, look=2, tuning_steps=2, asked_tokens=512)
ROOT = Path(__file__).parents[3]


def made(task: str, batch: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    return TASKS[task].make(batch, n, torch.Generator().manual_seed(0))


# --- The file


def test_the_file_is_that_of_this_code() -> None:
    """If this fails, the code that makes the numbers has changed: run python -m posenc.experiments extrapolation."""
    data = extrapolation_results().data
    assert data["code"] == code_digest()
    assert data["settings"] == vars(Settings())
    assert tuple(data["lengths"]) == LENGTHS


def test_the_file_has_every_scheme_task_and_seed() -> None:
    results = extrapolation_results()
    assert results.schemes == tuple(SCHEMES)
    assert results.tasks == tuple(TASKS)
    seeds = {tuple(run["seed"]) for run in results.data["runs"]}
    assert len(seeds) == 1
    assert len(*seeds) >= 3
    for run in results.data["runs"]:
        assert np.shape(run["scores"]) == (len(run["seed"]), len(LENGTHS))
        assert len(run["steps"]) == len(run["seconds"]) == len(run["versions"]) == len(run["seed"])
        assert all(set(results.data["versions"][v]) >= {"python", "torch", "numpy"} for v in run["versions"])
    assert results.by_position("rotary", "language").shape == (len(*seeds), 16)


@pytest.mark.parametrize(
    ("file", "before", "after", "same"),
    [
        ("posenc/experiments/extrapolation/tasks.py", "_BACK = 3", "_BACK = 4", False),
        ("posenc/experiments/extrapolation/runs.py", "steps: int = 1000", "steps: int = 999", False),
        ("posenc/experiments/extrapolation/schemes.py", "num_buckets=32", "num_buckets=32", True),
        ("posenc/rotary/scaling.py", "factor * max(", "factor * min(", False),
        ("posenc/alibi.py", '"""', '"""Another word. ', True),
        ("posenc/experiments/extrapolation/model.py", "DIM, HEADS", "# DIM and heads\nDIM, HEADS", True),
        ("posenc/experiments/extrapolation/sweep.py", "import json", "import json as js", True),
        ("posenc/grids.py", "import", "import math\nimport", True),
    ],
)
def test_the_digest_is_that_of_the_code_that_decides(
    file: str, before: str, after: str, same: bool, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "posenc", tmp_path / "posenc", ignore=shutil.ignore_patterns("__pycache__"))
    text = (tmp_path / file).read_text(encoding="utf-8")
    (tmp_path / file).write_text(text.replace(before, after, 1), encoding="utf-8")
    assert (code_digest(tmp_path) == code_digest()) is same


@pytest.mark.parametrize(("scheme", "task"), [("rotary", "back"), ("rotary_window", "back")])
def test_a_point_trained_anew_lies_within_the_spread(scheme: str, task: str) -> None:
    found = np.array(train_extrapolation(scheme, task, seed=1).scores)
    kept = extrapolation_results().scores(scheme, task)
    assert (found >= kept.min(axis=0) - 0.02).all()
    assert (found <= kept.max(axis=0) + 0.02).all()
    # The spread tells schemes apart: that of no position is not met.
    other = extrapolation_results().scores("none", task)
    assert (found > other.max(axis=0) + 0.02).any()


def test_what_is_not_in_the_file_is_named() -> None:
    results = extrapolation_results()
    with pytest.raises(ValueError, match=r"scheme must be one of none, .*, got 'rope'"):
        results.scores("rope", "back")
    with pytest.raises(ValueError, match=r"task must be one of back, .*, got 'forward'"):
        results.chance("forward")
    with pytest.raises(ValueError, match=r"task must be one that answers everywhere.*got 'sort'"):
        results.by_position("rotary", "sort")
    with pytest.raises(FileNotFoundError, match="python -m posenc"):
        extrapolation_results("nowhere.json")


# --- Tasks


@pytest.mark.parametrize("n", [8, 32, 40, 256])
def test_every_answer_is_right(n: int) -> None:
    ids, targets = made("back", 4, n)
    assert (targets[:, :3] == -1).all()
    assert (targets[:, 3:] == ids[:, :-3, 0] - 1).all()
    ids, targets = made("copy", 4, n)
    assert (targets[:, n // 2 :] == ids[:, : n // 2, 0] - 1).all()
    assert (ids[:, n // 2 + 1 :] == ids[:, : n // 2 - 1]).all()
    ids, targets = made("sort", 4, n)
    for row, wanted in zip(ids, targets, strict=True):
        assert wanted[-4:].tolist() == (row[row[:, 1] > 0, 0] - 1).tolist()
        assert (wanted[:-4] == -1).all()
    ids, targets = made("recall", 4, n)
    for row, wanted in zip(ids, targets, strict=True):
        shown = n - n // 4
        values = dict(row[:shown].tolist())
        assert len(values) == shown
        assert [values[key] - 1 for key in row[shown:, 0].tolist()] == wanted[shown:].tolist()
    ids, targets = made("language", 4, n)
    assert (ids[:, 1:, 0] - 1 == targets[:, :-1]).all()


def test_the_floor_is_what_counting_gives() -> None:
    ids, targets = made("language", 3, 20)
    floor = language_floor(ids, targets)
    for row, wanted, costs in zip((ids[..., 0] - 1).tolist(), targets.tolist(), floor.tolist(), strict=True):
        for t, cost in enumerate(costs):
            after = [wanted[u] for u in range(t) if row[u] == row[t]]
            assert cost == pytest.approx(-np.log((after.count(wanted[t]) + 1) / (len(after) + 4)))


def test_no_reader_of_the_file_beats_the_floor_by_more_than_chance() -> None:
    results = extrapolation_results()
    best = min(results.scores(scheme, "language").mean(axis=0).min() for scheme in results.schemes)
    assert best > results.floor().min() * 0.99


# --- Schemes


@pytest.mark.parametrize("name", SCHEMES)
def test_no_scheme_sees_what_comes_later(name: str) -> None:
    torch.manual_seed(0)
    model = Model(SCHEMES[name], 300, 16).eval()
    ids = torch.randint(1, 300, (1, 48, 2))
    changed = ids.clone()
    changed[:, 40] = ids[:, 40].flip(-1) % 299 + 1
    before, after = model(ids), model(changed)
    assert torch.equal(before[:, :40], after[:, :40])
    assert not torch.allclose(before[:, 40:], after[:, 40:])


@pytest.mark.parametrize("name", [name for name, scheme in SCHEMES.items() if scheme.begins])
def test_what_begins_with_another_has_its_weights(name: str) -> None:
    scheme = SCHEMES[name]
    first = Model(SCHEMES[scheme.begins or ""], 300, 16)
    model = Model(scheme, 300, 16)
    model.take_over(first)
    ids = torch.randint(1, 300, (2, 20, 2))
    same = torch.allclose(model(ids), first(ids), rtol=1e-4, atol=1e-4)
    # Up to the trained length only these change nothing.
    assert same == (scheme.log_n or scheme.window is not None or name in ("learned_clamped", *UNCHANGED))


UNCHANGED = ("rotary_tuned", "rotary_dynamic", "rotary_dynamic_tuned")


def attention(scheme: Scheme, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random queries and keys (n, width), and the scores that the scheme makes of them, before the softmax."""
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 1, HEADS, n, DIM // HEADS, generator=generator)
    positions = Positions(scheme, 0, DIM // HEADS, HEADS)
    with torch.no_grad():
        q, k, _, added = positions(query, key, key)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + added
    return query[0, 0].double().numpy(), key[0, 0].double().numpy(), scores[0, 0].double().numpy()


def test_sinks_stand_at_the_end_of_the_window() -> None:
    n, scheme = 80, SCHEMES["rotary_sinks"]
    query, key, scores = attention(scheme, n)
    frequencies, _ = stretched("usual", 16, n)
    for t in (0, 3, 31, 32, 50, 79):
        for u in range(n):
            if u > t or (t - u >= TRAINED and u >= 4):
                assert scores[t, u] == -np.inf
                continue
            # Offsets within the window, and for a sink never more than from the window's end.
            offset = u - (min(t, TRAINED - 1) if u < 4 else t)
            wanted = query[t] @ rotary_matrix(offset, 16, frequencies=frequencies) @ key[u] / 4
            assert scores[t, u] == pytest.approx(wanted, abs=1e-4)


def test_log_n_multiplies_scores_from_the_trained_length_on() -> None:
    _, _, plain = attention(SCHEMES["none"], 64)
    _, _, scaled = attention(SCHEMES["none_logn"], 64)
    seen = np.isfinite(plain)
    factors = np.where(seen, scaled, 1) / np.where(seen, plain, 1)
    np.testing.assert_allclose(factors[:32], 1, rtol=1e-5)
    np.testing.assert_allclose(factors[63][seen[63]], 6 / 5, rtol=1e-5)


def test_a_learned_sink_takes_weight_and_gives_nothing() -> None:
    positions = Positions(SCHEMES["window_sink"], 0, 16, HEADS)
    query, key, value = torch.randn(3, 1, HEADS, 8, 16)
    with torch.no_grad():
        positions.sink.fill_(30.0)  # type: ignore[union-attr]
        q, k, v, added = positions(query, key, value)
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=added)
    assert mixed.abs().max() < 1e-6


def test_every_other_layer_is_turned() -> None:
    scheme = SCHEMES["rotary_alternating"]
    assert [Positions(scheme, layer, 16, HEADS).turns for layer in range(3)] == [True, False, True]


def test_a_model_shows_its_attention() -> None:
    run = train_extrapolation("alibi", "back", settings=QUICK)
    ids, _ = made("back", 2, 12)
    weights = run.model.attention(ids)
    assert [tuple(layer.shape) for layer in weights] == [(2, HEADS, 12, 12)] * 2
    for layer in weights:
        torch.testing.assert_close(layer.sum(dim=-1), torch.ones(2, HEADS, 12))
        assert (layer.triu(1) == 0).all()


def test_training_leaves_no_trace_and_repeats() -> None:
    torch.manual_seed(3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    runs = [train_extrapolation("sinusoidal_offset", "sort", seed=2, settings=QUICK) for _ in range(2)]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert runs[0].scores == runs[1].scores
    assert train_extrapolation("sinusoidal_offset", "sort", seed=3, settings=QUICK).scores != runs[0].scores


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scheme": "rope"}, r"scheme must be one of none, .*, got 'rope'"),
        ({"task": "forward"}, r"task must be one of back, .*, got 'forward'"),
        ({"seed": -1}, r"seed must be at least 0, got -1"),
    ],
)
def test_errors_name_the_argument(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train_extrapolation(**arguments)


# --- The command


def content(file: Path) -> list[dict[str, Any]]:
    """The runs of a file, without how long they took."""
    runs = Results(json.loads(file.read_text(encoding="utf-8"))).data["runs"]
    return [{key: value for key, value in run.items() if key != "seconds"} for run in runs]


JOBS: dict[str, Any] = {
    "schemes": ["learned", "alibi"],
    "tasks": ["back", "sort"],
    "seeds": 2,
    "settings": QUICK,
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sweep(tmp_path_factory.mktemp("sweep") / "alone.json", **JOBS, workers=1, progress=False)


def test_a_sweep_has_all_that_begins_with_its_schemes(alone: Path) -> None:
    runs = content(alone)
    assert [(run["scheme"], run["task"], run["seed"]) for run in runs] == [
        (scheme, task, [0, 1])
        for task in ("back", "sort")
        for scheme in ("learned", "learned_clamped", "alibi")
    ]
    again = train_extrapolation("learned_clamped", "sort", seed=1, settings=QUICK)
    (row,) = [run for run in runs if (run["scheme"], run["task"]) == ("learned_clamped", "sort")]
    assert row["scores"][1] == [round(score, 3) for score in again.scores]


def test_two_dask_workers_give_the_same(alone: Path, tmp_path: Path) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        file = sweep(tmp_path / "dask.json", **JOBS, dask=address, progress=False)
    assert content(file) == content(alone)


def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    """kill -9 in the middle loses what was under way, and nothing of what was finished."""
    out = tmp_path / "killed.json"
    arguments = ["--schemes", "none", "alibi", "--tasks", "back", "--seeds", "3", "--steps", "25"]
    command = [
        sys.executable,
        "-m",
        "posenc.experiments",
        "extrapolation",
        "--out",
        str(out),
        "--workers",
        "1",
    ]
    process = subprocess.Popen(
        [*command, *arguments], stderr=subprocess.DEVNULL, start_new_session=True, cwd=ROOT
    )
    end = time.monotonic() + 100
    while len(finished := [*tmp_path.glob("killed.parts/*/*-*")]) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert finished
    assert not out.exists()
    finished = [*tmp_path.glob("killed.parts/*/*-[0-9]")]
    before = {part: part.stat().st_mtime_ns for part in finished}
    main(["--out", str(out), "--workers", "1", *arguments])
    assert {part: part.stat().st_mtime_ns for part in finished} == before
    assert len(finished) < 6
    whole = sweep(
        tmp_path / "whole.json",
        schemes=["none", "alibi"],
        tasks=["back"],
        seeds=3,
        settings=Settings(steps=25),
        workers=1,
        progress=False,
    )
    assert content(out) == content(whole)


def test_results_of_other_settings_are_not_taken_over(tmp_path: Path) -> None:
    few: dict[str, Any] = {
        "schemes": ["alibi"],
        "tasks": ["back"],
        "seeds": 1,
        "workers": 1,
        "progress": False,
    }
    first = content(sweep(tmp_path / "x.json", **few, settings=QUICK))
    second = content(sweep(tmp_path / "x.json", **few, settings=Settings(**{**vars(QUICK), "steps": 5})))
    assert first[0]["steps"] == [4]
    assert second[0]["steps"] == [5]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--schemes", "alibi"], "--out must name another file"),
        (["--steps", "5"], "--out must name another file"),
        (["--out", "x.json", "--schemes", "rope"], "schemes must be among none, .*got 'rope'"),
        (["--out", "x.json", "--schemes", "rotary_yarn"], "schemes must be among .*got 'rotary_yarn'"),
        (["--out", "x.json", "--seeds", "0"], "seeds must be at least 1"),
        (["--out", "x.json", "--steps", "0"], "--steps must be at least 1"),
    ],
)
def test_the_command_says_what_is_wrong(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    error = capsys.readouterr().err
    assert re.search(message, error), error
