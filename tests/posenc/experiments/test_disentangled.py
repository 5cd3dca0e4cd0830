"""The trainings with all four terms: what the file must hold, that a run repeats, and what a switch switches."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from posenc.experiments import disentangled, results, term_results, train_terms
from posenc.experiments.disentangled import ASKED_TASKS, FILE, SEEDS, TERMS, TermPositions
from tests.posenc.refusals import refused

RUNS = term_results()


def test_the_file_has_every_task_and_seed_with_all_terms_and_without_each() -> None:
    found = [(run.task, run.trained, run.seed) for run in RUNS]
    kept = [TERMS, *(tuple(term for term in TERMS if term != without) for without in TERMS)]
    assert found == [(task, terms, seed) for task in ASKED_TASKS for terms in kept for seed in range(SEEDS)]
    for run in RUNS:
        assert set(run.loss_without) == set(run.accuracy_without) == {*run.trained, "places"}
        assert set(run.size) == set(run.trained)


@pytest.mark.slow
@pytest.mark.parametrize(("task", "without"), [("back", None), ("recall", "place_place")])
def test_a_run_trained_anew_is_the_one_in_the_file(task: str, without: str | None) -> None:
    """On other machines sums may end in other roundings, which training enlarges: within the spread of the seeds."""
    again = train_terms(task, without=without, seed=1)
    kept = [run for run in RUNS if run.task == task and run.trained == again.trained]
    near(again.accuracy, [run.accuracy for run in kept])
    for off in again.accuracy_without:
        near(again.accuracy_without[off], [run.accuracy_without[off] for run in kept])


def near(found: float, kept: list[float]) -> None:
    assert min(kept) - 0.1 <= found <= max(kept) + 0.1


def test_a_short_run_repeats_and_leaves_the_generator_alone() -> None:
    first = train_terms("sort", seed=3, steps=3)
    torch.manual_seed(99)
    state = torch.random.get_rng_state()
    assert train_terms("sort", seed=3, steps=3) == first
    assert train_terms("sort", seed=3, steps=3) != train_terms("sort", seed=4, steps=3)
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_switch_takes_its_own_term_away_and_no_other() -> None:
    torch.manual_seed(0)
    layer, x = TermPositions(TERMS).eval(), torch.randn(1, 2, 5, 16)
    *_, whole = layer(x, x / 3, x, x)
    lost = []
    for off in TERMS:
        layer.off = frozenset({off})
        *_, rest = layer(x, x / 3, x, x)
        lost.append((whole - rest).nan_to_num())
        assert lost[-1].abs().max() > 1e-4
    layer.off = frozenset(TERMS)
    *_, nothing = layer(x, x / 3, x, x)
    seen = nothing.isfinite()
    assert not nothing[seen].any()
    torch.testing.assert_close(sum(lost)[:, :, seen], whole[:, :, seen])


def test_the_command_writes_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In the form of the one that is kept, with trainings of a single step."""
    run = disentangled.train_terms
    monkeypatch.setattr(disentangled, "FILE", tmp_path / "runs.json")
    monkeypatch.setattr(disentangled, "SEEDS", 1)
    monkeypatch.setattr(disentangled, "ASKED_TASKS", ("back",))
    monkeypatch.setattr(disentangled, "train_terms", lambda task, **given: run(task, **given, steps=1))
    disentangled.make_term_results()
    made, kept = (json.loads(file.read_text("utf-8")) for file in (tmp_path / "runs.json", FILE))
    assert made.keys() == kept.keys()
    monkeypatch.setattr(results, "_kept", lambda name: made)
    assert term_results()[0].trained == TERMS
    assert len(term_results()) == 5
    assert made["runs"][0].keys() == kept["runs"][0].keys() == asdict(RUNS[0]).keys()


test_errors_name_the_argument = refused([
    (lambda: train_terms("order"), ValueError, "task must be one of back, copy, sort, recall, got 'order'"),
    (lambda: train_terms(without="words"), ValueError, "without must be one of word_word, .*, None, got 'words'"),
    (lambda: train_terms(seed=-1), ValueError, "seed must be at least 0"),
    (lambda: train_terms(steps=0), ValueError, "steps must be at least 1"),
])  # fmt: skip
