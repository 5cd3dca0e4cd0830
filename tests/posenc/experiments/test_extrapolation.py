"""The sweep past the trained length: its tasks, its schemes, its one command, and the file it made."""

import copy
import json
import os
import pickle
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from posenc.experiments import extrapolation_results, train_extrapolation
from posenc.experiments.extrapolation import SCHEMES, SIZES, TASKS, Settings, Size, use_weights
from posenc.experiments.extrapolation.origin import FOLDER, code_digest, header
from posenc.experiments.extrapolation.results import PARTS, Results
from posenc.experiments.extrapolation.runs import LENGTHS, make_model
from posenc.experiments.extrapolation.sweep import main, sweep
from posenc.experiments.extrapolation.tasks import language_floor
from posenc.experiments.schemes import TRAINED, Positions, Scheme, stretched
from posenc.experiments.transformer import Transformer
from posenc.nn import AlibiBias
from posenc.rotary import rotary_matrix
from tests.posenc.refusals import refused

QUICK = Settings(
    steps=4, tokens=128, rates=(1e-3, 3e-3), looks=2, asked_tokens=512, longer=(), longer_seeds=(), sized=()
)
DIM, HEADS = Size().dim, Size().heads
ROOT = Path(__file__).parents[3]


def made(task: str, batch: int, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    return TASKS[task].make(batch, n, torch.Generator().manual_seed(0))


# --- The file


def test_the_file_is_that_of_this_code() -> None:
    """If this fails, the code that makes the numbers has changed: run python -m posenc.experiments extrapolation."""
    data = extrapolation_results().data
    assert data["code"] == code_digest()
    assert data["settings"] == json.loads(json.dumps(vars(Settings())))
    assert tuple(data["lengths"]) == LENGTHS


def test_the_file_has_every_scheme_task_and_seed_with_equal_budgets() -> None:
    """Only what had not finished has more steps, in a row of its own."""
    results, settings = extrapolation_results(), Settings()
    assert (set(results.schemes), results.tasks) == (set(SCHEMES), tuple(TASKS))
    sized = [(s, t, size) for s in settings.sized for t in settings.sized_tasks for size in ("deep", "wide")]
    for scheme, task, size in [*((s, t, "usual") for s in SCHEMES for t in TASKS), *sized]:
        seeds = 5 if size == "usual" else settings.sized_seeds
        assert results.scores(scheme, task, size=size).shape == (seeds, len(LENGTHS))
    for run in results.data["runs"]:
        assert len(run["seconds"]) == len(run["versions"]) == len(run["seed"])
        assert all(set(results.data["versions"][v]) >= {"python", "torch", "numpy"} for v in run["versions"])
        if run["size"] == "usual" and len(run["seed"]) == 5:
            assert run["steps"] == results.steps
            assert {len(curve) for curve in run["curve"]} <= {0, settings.looks}
    assert results.by_position("rotary", "language").shape == (5, 16)
    for (scheme, task), steps in results.longer().items():
        assert not results.finished(scheme, task)
        assert steps[0] == settings.longer[0] * results.steps


def test_the_rate_is_that_of_the_lowest_loss() -> None:
    results = extrapolation_results()
    for scheme, tasks in results.data["losses_by_rate"].items():
        for task, losses in tasks.items():
            assert results.rate(scheme, task) == Settings().rates[int(np.argmin(losses))]
    for name, scheme in SCHEMES.items():
        if scheme.begins:
            assert results.rate(name, "back") == results.rate(scheme.begins, "back")


def test_all_parts_of_the_file_are_asked_for() -> None:
    assert {"runs", *header(Settings(), {}, ())} == PARTS


@pytest.mark.parametrize(
    ("file", "before", "after", "same"),
    [
        ("tasks.py", "_BACK = 3", "_BACK = 4", False),
        ("runs.py", "10**6 + 1000 * seed", "10**6 + 999 * seed", False),
        ("runs.py", '"""', '"""Another word. ', True),
        ("runs.py", "BIN = 16", "# of positions\nBIN = 16", True),
        ("sweep.py", "import json", "import json as js", True),
    ],
)
def test_the_digest_is_that_of_the_code_that_decides(
    file: str, before: str, after: str, same: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "extrapolation"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = (folder / file).read_text(encoding="utf-8")
    assert before in text
    (folder / file).write_text(text.replace(before, after, 1), encoding="utf-8")
    assert (code_digest(folder) == code_digest()) is same


def test_the_digest_knows_settings_and_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_digest()
    with monkeypatch.context() as patch:
        patch.setitem(SCHEMES, "none", Scheme("none", window=3))
        assert code_digest() != before
    assert code_digest() == before


@pytest.mark.parametrize(
    ("scheme", "task"), [("rotary_window", "back"), pytest.param("alibi", "language", marks=pytest.mark.slow)]
)
def test_a_point_trained_anew_lies_within_the_spread(scheme: str, task: str) -> None:
    kept = extrapolation_results()
    found = np.array(train_extrapolation(scheme, task, seed=1, rate=kept.rate(scheme, task)).scores)
    near(found, kept.scores(scheme, task))
    # The spread tells schemes apart: that of no position is not met.
    with pytest.raises(AssertionError):
        near(found, kept.scores("none", task))


def near(found: np.ndarray, kept: np.ndarray) -> None:
    assert (found >= kept.min(axis=0) - 0.02).all()
    assert (found <= kept.max(axis=0) + 0.02).all()


@pytest.mark.slow
def test_a_changed_formula_is_seen_by_training_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: slopes of the wrong sign. No digest of this folder can know it; a training does."""
    kept, forward = extrapolation_results(), AlibiBias.forward
    monkeypatch.setattr(AlibiBias, "forward", lambda self, n: -forward(self, n))
    found = train_extrapolation("alibi", "language", seed=1, rate=kept.rate("alibi", "language"))
    with pytest.raises(AssertionError):
        near(np.array(found.scores), kept.scores("alibi", "language"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no JSON"),
        ("[" * 10**5, "is no JSON"),
        ("[]", "does not have all"),
        ('{"runs": []}', "does not have all"),
    ],
)
def test_a_broken_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        extrapolation_results(tmp_path / "x.json")


test_what_is_not_known_is_named = refused([
    (lambda: extrapolation_results().scores("rope", "back"), ValueError, r"scheme must be one of none, .*, got 'rope'"),
    (lambda: extrapolation_results().chance("forward"), ValueError, r"task must be one of back, .*, got 'forward'"),
    (lambda: extrapolation_results().by_position("rotary", "sort"), ValueError, "everywhere.*got 'sort'"),
    (lambda: extrapolation_results().scores("rotary", "back", steps=7), ValueError, "not trained on back"),
    (lambda: train_extrapolation(seed=-1), ValueError, "seed must be at least 0, got -1"),
    (lambda: train_extrapolation(size="huge"), ValueError, "size must be one of usual, deep, wide, got 'huge'"),
    (lambda: scheme(added="sinusoidl"), ValueError, "added must be one of sinusoidal, .*, None, got 'sinusoidl'"),
    (lambda: scheme(bias="aliby"), ValueError, "bias must be one of alibi, t5, kerple, fire, None, got 'aliby'"),
    (lambda: scheme(frequencies="yran"), ValueError, "frequencies must be one of usual, .*, got 'yran'"),
    (lambda: scheme(tuned=0.1), ValueError, "tuned must be above 0, in a scheme that begins with another"),
])  # fmt: skip


def test_a_file_that_is_not_there_says_what_makes_it() -> None:
    with pytest.raises(FileNotFoundError, match="python -m posenc"):
        extrapolation_results("nowhere.json")


def scheme(**options: Any) -> Scheme:
    return Scheme("mine", **options)


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


# --- Schemes


def made_model(name: str) -> Transformer:
    return make_model(SCHEMES[name], TASKS["back"], SIZES["usual"]).eval()


@pytest.mark.parametrize("name", SCHEMES)
def test_no_scheme_sees_what_comes_later(name: str) -> None:
    torch.manual_seed(0)
    model = made_model(name)
    ids = torch.randint(1, 250, (1, 48, 2))
    changed = ids.clone()
    changed[:, 40] = ids[:, 40].flip(-1) % 249 + 1
    before, after = model(ids), model(changed)
    assert torch.equal(before[:, :40], after[:, :40])
    assert not torch.allclose(before[:, 40:], after[:, 40:])


@pytest.mark.parametrize("name", [name for name, scheme in SCHEMES.items() if scheme.begins])
def test_what_begins_with_another_has_its_weights(name: str) -> None:
    scheme = SCHEMES[name]
    run = train_extrapolation(scheme.begins or "", "back", settings=replace(QUICK, steps=1))
    model = use_weights(run, name)
    ids = torch.randint(1, 250, (2, 20, 2))
    same = torch.allclose(model(ids), run.model(ids), rtol=1e-4, atol=1e-4)
    # Up to the trained length only these change nothing.
    assert same == (scheme.log_n or scheme.window is not None or name in ("learned_clamped", *UNCHANGED))


UNCHANGED = tuple(
    f"rotary{how}" for how in ("_tuned", "_tuned_1", "_dynamic", "_dynamic_tuned", "_dynamic_tuned_1")
)


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
    frequencies = stretched("usual", 16, n)
    for t in (0, 3, 31, 32, 50, 79):
        for u in range(n):
            if u > t or (t - u >= TRAINED and u >= 4):
                assert scores[t, u] == -np.inf
                continue
            # Offsets within the window, and for a sink never more than from the window's end.
            offset = u - (min(t, TRAINED - 1) if u < 4 else t)
            wanted = query[t] @ rotary_matrix(offset, 16, frequencies=frequencies) @ key[u] / 4
            assert scores[t, u] == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("name", ["rotary", "hybrid", "xpos", "fire", "window_sink"])
def test_a_model_can_be_copied_and_pickled(name: str) -> None:
    """A copy computes with its own weights, also what is kept by length."""
    ids = torch.randint(1, 250, (1, 9, 2))
    for how in (copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))):
        model = made_model(name)
        wanted, twin = model(ids), how(model)
        for weight in model.parameters():
            weight.data.add_(1.0)
        assert torch.equal(twin(ids), wanted)


def test_training_leaves_no_trace_and_repeats() -> None:
    torch.manual_seed(3)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    runs = [train_extrapolation("sinusoidal_offset", "sort", seed=2, settings=QUICK) for _ in range(2)]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert runs[0].scores == runs[1].scores
    assert train_extrapolation("sinusoidal_offset", "sort", seed=3, settings=QUICK).scores != runs[0].scores


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
    (row,) = [run for run in runs if (run["scheme"], run["task"]) == ("learned_clamped", "sort")]
    again = train_extrapolation("learned_clamped", "sort", seed=1, rate=row["rate"], settings=QUICK)
    assert row["scores"][1] == [round(score, 3) for score in again.scores]


@pytest.mark.slow
def test_two_dask_workers_give_the_same(alone: Path, tmp_path: Path) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        file = sweep(tmp_path / "dask.json", **JOBS, dask=address, progress=False)
    assert content(file) == content(alone)


@pytest.mark.slow
def test_a_killed_sweep_goes_on_where_it_was(tmp_path: Path) -> None:
    """kill -9 in the middle loses what was under way, and nothing of what was finished."""
    out = tmp_path / "killed.json"
    arguments = shlex.split("--schemes alibi --tasks language --seeds 3 --steps 2 --workers 1 --out")
    command = [sys.executable, "-m", "posenc.experiments", "extrapolation", *arguments, str(out)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True, cwd=ROOT)
    end = time.monotonic() + 100
    while len([*tmp_path.glob("killed.parts/*/*-1")]) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    finished = [*tmp_path.glob("killed.parts/*/*-1")]
    assert 2 <= len(finished) < 4
    assert not out.exists()
    # What a broken disk has cut off is done again; nothing else is touched.
    finished[0].write_text(finished[0].read_text(encoding="utf-8")[:-40], encoding="utf-8")
    before = {part: part.stat().st_mtime_ns for part in finished}
    main([*arguments, str(out)])
    assert [part for part in finished if part.stat().st_mtime_ns != before[part]] == finished[:1]
    main([*arguments, str(tmp_path / "whole.json")])
    assert content(out) == content(tmp_path / "whole.json")


def swept(file: Path, settings: Settings, *tasks: str) -> Results:
    """ALiBi with two seeds."""
    made = sweep(file, schemes=["alibi"], tasks=tasks, seeds=2, workers=1, progress=False, settings=settings)
    return Results(json.loads(made.read_text(encoding="utf-8")))


def test_results_of_other_settings_are_not_taken_over(tmp_path: Path) -> None:
    for steps in (4, 5):
        found = swept(tmp_path / "x.json", replace(QUICK, steps=steps), "back")
        assert {run["steps"] for run in found.data["runs"]} == {steps}


def test_what_has_not_finished_gets_more_steps_and_the_rest_does_not(tmp_path: Path) -> None:
    longer = replace(
        QUICK, enough=0.0, longer=(2, 3), longer_seeds=(2, 1), rise=-1.0, rates=(1e-3,), sized=("alibi",)
    )
    done = swept(tmp_path / "done.json", longer, "back")
    assert done.longer() == {}
    assert done.scores("alibi", "back", size="deep").shape == (2, len(LENGTHS))
    more = replace(longer, enough=1.1, sized=())
    results = swept(tmp_path / "more.json", more, "back", "language")
    assert results.longer() == {("alibi", "back"): (8, 12)}
    assert [len(results.scores("alibi", "back", steps=steps)) for steps in (4, 8, 12)] == [2, 2, 1]
    assert swept(tmp_path / "stop.json", replace(more, rise=2.0), "back").longer() == {
        ("alibi", "back"): (8,)
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--schemes", "alibi"], "--out must name another file"),
        (["--out", "x.json", "--schemes", "rotary_yarn"], "schemes must be among .*got 'rotary_yarn'"),
        (["--out", "x.json", "--seeds", "0"], "seeds must be at least 1"),
    ],
)
def test_the_command_says_what_is_wrong(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    error = capsys.readouterr().err
    assert re.search(message, error), error
