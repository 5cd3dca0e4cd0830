"""Mixes of layers with and without position, and models that count: trainings of a few steps, and the kept file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from posenc.experiments import hybrid_results, hybrids, probe_position, train_counter, train_mix
from posenc.experiments.extrapolation import SIZES, TASKS, Settings
from posenc.experiments.extrapolation.runs import make_model
from posenc.experiments.hybrids import MIXES, RATES, TASKS_OF_MIXES, _place, _read, main
from posenc.experiments.schemes import Scheme
from tests.posenc.refusals import refused

FEW = Settings(steps=3, asked_tokens=512)
RESULTS = hybrid_results()

TRAININGS: dict[str, Callable[[int], Any]] = {
    "mix": lambda seed: train_mix("wn", seed=seed, settings=FEW),
    "count": lambda seed: train_counter(seed=seed, settings=FEW),
    "probe": lambda seed: probe_position("back", seed=seed, steps=3),
    "probe of nothing": lambda seed: probe_position(None, seed=seed),
}


@pytest.mark.parametrize("train", TRAININGS.values(), ids=TRAININGS)
def test_a_training_repeats_and_leaves_no_trace(train: Callable[[int], Any]) -> None:
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    first = train(3)
    torch.manual_seed(5)
    drawn = torch.random.get_rng_state()
    with torch.no_grad():
        assert train(3) == first != train(4)
    assert torch.equal(torch.random.get_rng_state(), drawn)
    assert torch.get_num_threads() == threads
    torch.random.set_rng_state(state)


def kinds(model: Any, *vectors: torch.Tensor) -> list[Any]:
    return [layer.positions(*vectors) for layer in model.layers]


def test_each_letter_is_its_kind_of_layer() -> None:
    model = make_model(Scheme("none"), TASKS["back"], SIZES["usual"])
    _place(model, "wn", SIZES["usual"])
    query, key, value = torch.randn(3, 1, 4, 40, 16)
    turned, still = kinds(model, query, key, value)
    assert not torch.allclose(turned[0][:, :, 1:], query[:, :, 1:])
    assert torch.equal(still[0], query)
    assert torch.equal(still[1], key)
    behind = torch.arange(40)[:, None] - torch.arange(40)
    assert torch.equal(turned[3].isneginf(), (behind < 0) | (behind >= 16))
    assert torch.equal(still[3].isneginf(), behind < 0)
    _place(model, "lb", SIZES["usual"])
    scaled, slow = kinds(model, query, key, value)
    assert torch.equal(scaled[0][:, :, :32], query[:, :, :32])
    torch.testing.assert_close(scaled[0][:, :, 39], query[:, :, 39] * np.log(40) / np.log(32))
    turns = slow[0].unflatten(-1, (8, 2))[0, 0, 1, -1], query.unflatten(-1, (8, 2))[0, 0, 1, -1]
    torch.testing.assert_close(*turns, atol=1e-4, rtol=0)  # the slowest pair of base 10⁶ hardly turns


def test_equal_words_without_a_start_cannot_be_counted() -> None:
    for seed in range(3):
        assert train_counter(False, "same", seed=seed, settings=FEW)[0] == 1 / 32
    for share, _ in RESULTS["count"]["same words, without a start"]:
        assert share == pytest.approx(1 / 32, abs=5e-4)


def test_a_position_that_stands_there_is_read() -> None:
    rng = np.random.default_rng(0)
    states = rng.normal(size=(40, 32, 5))
    assert 7 < _read(states) < 9
    states[..., 2] += 10 * np.arange(32)
    assert _read(states) < 0.2


def test_the_probe_trains_with_its_own_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds, train = [], hybrids.train_extrapolation

    def watched(*given: Any, **options: Any) -> Any:
        seeds.append(options["seed"])
        return train(*given, **options)

    monkeypatch.setattr(hybrids, "train_extrapolation", watched)
    probe_position("back", seed=4, steps=1)
    assert seeds == [4]


def test_the_file_has_every_mix_with_its_best_rate() -> None:
    names = {*MIXES, *(mix.replace("n", "l") for mix in MIXES)}
    pairs = [f"{mix} {task}" for task in TASKS_OF_MIXES for mix in names]
    assert sorted(RESULTS["mixes"]) == sorted(pairs)
    for pair in pairs:
        scores = np.array(RESULTS["mixes"][pair])
        assert scores.shape == (5, 5)
        assert ((scores >= 0) & (scores <= 1)).all()
    for pair, losses in RESULTS["losses_by_rate"].items():
        assert RESULTS["rate"][pair] == RATES[int(np.argmin(losses))]
    for task in TASKS_OF_MIXES:  # the same weights, and log n begins where the training ends
        for mix in MIXES:
            other = mix.replace("n", "l")
            plain, scaled = (np.array(RESULTS["mixes"][f"{name} {task}"]) for name in (mix, other))
            np.testing.assert_array_equal(plain[:, 0], scaled[:, 0])


@pytest.mark.slow
@pytest.mark.parametrize(("mix", "task"), [("wwwn", "recall"), ("fffn", "back")])
def test_the_file_holds_what_a_training_gives(mix: str, task: str) -> None:
    found, _ = train_mix(mix, task, seed=1, rate=RESULTS["rate"][f"{mix} {task}"])
    kept = RESULTS["mixes"][f"{mix} {task}"][1]
    np.testing.assert_allclose(found[mix], kept, atol=0.05)


def test_the_command_says_what_it_takes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "--parts" in capsys.readouterr().out


test_bad_arguments_are_named = refused([
    (lambda: train_mix("wxn"), ValueError, "mix must be letters among f, b, w, n, l, one a layer, got 'wxn'"),
    (lambda: train_mix(""), ValueError, "mix must be letters among"),
    (lambda: train_mix("wn", "sum"), ValueError, "task must be one of back, copy"),
    (lambda: train_mix(rate=0.0), ValueError, "rate must be .*above 0"),
    (lambda: train_counter(words="some"), ValueError, "words must be random or same, got 'some'"),  # type: ignore[arg-type]
    (lambda: probe_position("sum"), ValueError, "task must be one of"),
    (lambda: probe_position(steps=0), ValueError, "steps must be at least 1, got 0"),
])  # fmt: skip
