"""From 32 tokens to 256: a training of a few steps, the rows that it reads, and the kept file."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from posenc.experiments import recipe_results, train_recipe
from posenc.experiments.recipe import ASKED, LONG_RATES, SEEDS, WAYS, Steps, Way, _first, _Reader, _Rows
from tests.posenc.refusals import refused

FEW = Steps(first=3, further=2, asked_tokens=1024)
RESULTS = recipe_results()


def seeds(way: str, measure: str, task: str) -> np.ndarray:
    return np.array([seed[measure][task] for seed in RESULTS["ways"][way]["seeds"]])


def test_a_training_repeats_and_leaves_no_trace() -> None:
    state = torch.random.get_rng_state()
    first, again, other = (train_recipe(seed=seed, steps=FEW) for seed in (3, 3, 4))
    assert first == again != other
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("masks", [True, False])
def test_a_row_is_one_long_text_or_short_ones_that_do_not_see_each_other(masks: bool) -> None:
    batches = iter(_Rows(0, Way(masks=masks), 1024))
    model = _first(0, 1e-3, Steps(first=1, asked_tokens=512)).eval()
    for _ in ASKED:
        ids, targets, documents = next(batches)
        assert ids.shape == (4, 256, 2)
        assert targets.shape == (4, 256)
        if documents is None:
            assert not masks
            continue
        assert masks
        assert (documents[2:] == 0).all()
        assert (torch.bincount(documents[0]) >= 8).all()
        second = documents[0] == 1
        with torch.no_grad():
            packed, alone = model(ids[:1], documents[:1])[0, second], model(ids[:1, second])[0]
        torch.testing.assert_close(packed, alone, atol=1e-4, rtol=0)


def test_joined_texts_have_32_tokens_each() -> None:
    ids, _, documents = next(iter(_Rows(0, WAYS["short texts joined"], 1024)))
    assert documents is None
    keys = ids[..., 0].unflatten(1, (8, 32))  # a needle ends each text
    assert (keys[..., -1] > 16).all()


def test_stretching_changes_frequencies_and_no_weight() -> None:
    model, way = _Reader(), WAYS["the whole recipe"]
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    model.stretch(way)
    assert all(torch.equal(weight, before[name]) for name, weight in model.state_dict().items())
    ids = torch.randint(1, 17, (1, 40, 2))
    with torch.no_grad():
        assert not torch.allclose(model(ids), _same(before)(ids), atol=1e-4)


def _same(weights: dict[str, torch.Tensor]) -> _Reader:
    model = _Reader()
    model.load_state_dict(weights)
    return model


def test_the_file_has_every_way_with_its_best_rate() -> None:
    assert list(RESULTS["ways"]) == list(WAYS)
    for way, row in RESULTS["ways"].items():
        assert len(row["seeds"]) == SEEDS
        if "losses_by_rate" in row:
            assert row["rate"] == LONG_RATES[int(np.argmin(row["losses_by_rate"]))]
        else:
            assert row["rate"] == WAYS[way].rate
        for seed in row["seeds"]:
            assert list(seed["long"]) == list(seed["short"]) == list(ASKED)
            assert [len(seed["depth"][task]) for task in ("needle", "recall")] == [4, 4]


def test_the_file_says_what_the_page_says() -> None:
    whole = "the whole recipe"
    assert seeds(whole, "long", "recall").min() > seeds("frequencies as they were", "long", "recall").max()
    assert seeds(whole, "long", "recall").min() > seeds("no further training", "long", "recall").max()
    for way in ("no further training", "short texts joined", "no document masks"):
        assert seeds(whole, "short", "sort").min() > 0.1 + seeds(way, "short", "sort").max()
        assert seeds(way, "long", "needle").min() > 0.95  # the needle does not tell these from the whole
    for way in ("short texts joined", "no document masks"):  # nor does recall, over three seeds
        assert seeds(whole, "long", "recall").min() < seeds(way, "long", "recall").max()
    usual = seeds("frequencies as they were", "long", "language")
    assert abs(usual.mean() - seeds(whole, "long", "language").mean()) < 0.03
    assert seeds("a rate of 0.03", "short", "recall").max() < 0.5


@pytest.mark.slow
def test_the_file_holds_what_a_training_gives() -> None:
    way, row = "no further training", RESULTS["ways"]["no further training"]
    found = train_recipe(way, seed=1, first_rate=RESULTS["first_rate"])
    for task, score in row["seeds"][1]["long"].items():
        assert found.long[task] == pytest.approx(score, abs=0.05)


test_bad_arguments_are_named = refused([
    (lambda: train_recipe("all"), ValueError, "way must be one of the whole recipe, .*got 'all'"),
    (lambda: train_recipe(rate=0.0), ValueError, "rate must be .*above 0"),
])  # fmt: skip
