"""The small trainings: what they must show, that they repeat, and that they leave no trace."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from posenc import sinusoidal_encoding
from posenc.experiments import (
    probe_sum,
    reordering_sentences,
    train_order_task,
    train_reordering,
    train_steps,
)
from posenc.experiments.addition import TrainingSteps
from posenc.experiments.reordering import ReorderingResult
from posenc.nn import LearnedEncoding, RotaryEmbedding, SinusoidalEncoding

LN2 = math.log(2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bias", [None, [[0.0, -1.0], [-1.0, 0.0]]], ids=["plain", "symmetric bias"])
def test_a_blind_model_stays_at_ln_2(seed: int, bias: list[list[float]] | None) -> None:
    result = train_order_task(bias=None if bias is None else torch.tensor(bias), seed=seed)
    assert all(loss >= LN2 - 1e-12 for loss in result.losses)
    assert result.losses[-1] == pytest.approx(LN2, abs=1e-4)
    assert result.accuracy == 0.5
    assert result.swap_difference < 1e-9


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {"encoding": SinusoidalEncoding(32, dropout=0.0)},
        {"encoding": LearnedEncoding(32, 2, dropout=0.0)},
        {"rotary": RotaryEmbedding(32, 2)},
        {"causal": True},
        {"bias": torch.tensor([[0.0, 1.0], [-1.0, 0.0]])},
    ],
    ids=["sinusoidal", "learned", "rotary", "causal", "bias with a direction"],
)
def test_a_model_that_sees_order_learns_the_task(options: dict[str, Any], seed: int) -> None:
    result = train_order_task(**options, seed=seed)
    assert len(result.losses) == 200
    assert result.losses[0] > 0.5
    assert result.losses[-1] < 0.01
    assert result.accuracy == 1.0
    assert result.swap_difference > 1


# --- reordering


def twin(source: str) -> str:
    """The same sentence with its two pronouns exchanged."""
    tokens = source.split()
    first, second = (at for at, token in enumerate(tokens) if token in ("我", "你", "我们", "他们"))
    tokens[first], tokens[second] = tokens[second], tokens[first]
    return " ".join(tokens)


def test_sentences_come_in_twins_that_differ_in_subject_and_object_only() -> None:
    sentences = reordering_sentences()
    assert len(sentences) == 12 * 4 * 4
    for source, target in sentences.items():
        assert twin(source) != source
        differ = [a != b for a, b in zip(target.split(), sentences[twin(source)].split(), strict=True)]
        assert differ == [True, False, True, False]


def check_kept_back(result: ReorderingResult) -> None:
    sentences = reordering_sentences()
    assert len(result.translations) == len(sentences) // 4
    assert "我 爱 你 ." in result.translations
    assert {twin(source) for source in result.translations} == set(result.translations)
    right = [sentences[source] == target for source, target in result.translations.items()]
    assert result.accuracy == sum(right) / len(right)
    for source in result.translations:
        weights = result.attention[source]
        assert weights.shape == (4, 4)
        torch.testing.assert_close(weights.sum(dim=1), torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("seed", range(3))
def test_without_positions_twins_have_one_translation(seed: int) -> None:
    result = train_reordering(seed=seed)
    check_kept_back(result)
    assert result.word_accuracy == (0.5, 1.0, 0.5, 1.0)
    assert result.accuracy <= 0.5
    # Two words of four are a fair coin.
    assert all(loss >= LN2 / 2 - 1e-12 for loss in result.losses)
    assert result.losses[-1] == pytest.approx(LN2 / 2, abs=0.01)
    for source, target in result.translations.items():
        assert result.translations[twin(source)] == target
        order = [twin(source).split().index(token) for token in source.split()]
        torch.testing.assert_close(result.attention[twin(source)][:, order], result.attention[source])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {"encoding": SinusoidalEncoding(32, dropout=0.0)},
        {"rotary": RotaryEmbedding(32)},
        {"bias": torch.full((4, 4), -math.inf).triu(1)},
        {"bias": -(torch.arange(4.0) - torch.arange(4.0)[:, None]).abs(), "steps": 160},
    ],
    ids=["sinusoidal", "rotary", "causal mask", "distance"],
)
def test_with_positions_unseen_sentences_are_reordered(options: dict[str, Any], seed: int) -> None:
    result = train_reordering(**options, seed=seed)
    check_kept_back(result)
    assert result.losses[-1] < 0.02
    assert result.accuracy == 1.0


# --- three steps of training


def moved(table: Tensor) -> list[float]:
    """The largest change of a number in each row since the start."""
    return [round(x, 3) for x in (table[-1] - table[0]).abs().amax(dim=1).tolist()]


def three_steps(encoding: nn.Module, **options: Any) -> TrainingSteps:
    return train_steps(encoding, [3, 1, 3], n_tokens=5, n_positions=6, dim=4, **options)


def test_embedding_moves_and_a_fixed_code_does_not() -> None:
    run = three_steps(SinusoidalEncoding(4, dropout=0.0))
    assert run.embedding.shape == (4, 5, 4)
    assert run.codes.shape == (4, 6, 4)
    steps = [float((table - run.embedding[0]).abs().max()) for table in run.embedding]
    assert steps == pytest.approx([0, 0.05, 0.10, 0.15], abs=0.005)
    assert (run.codes == run.codes[0]).all()
    torch.testing.assert_close(run.codes[0], sinusoidal_encoding(6, 4, dtype=torch.float64))
    assert list(run.losses) == sorted(run.losses, reverse=True)


def test_only_visited_rows_move() -> None:
    run = three_steps(LearnedEncoding(4, 6, dropout=0.0))
    assert [row > 0.01 for row in moved(run.embedding)] == [False, True, False, True, False]
    assert [row > 0.01 for row in moved(run.codes)] == [True, True, True, False, False, False]
    assert moved(run.codes)[3:] == [0, 0, 0]


def test_weight_decay_moves_all_rows() -> None:
    run = three_steps(LearnedEncoding(4, 6, dropout=0.0, std=1.0), weight_decay=1.0)
    for table in (run.embedding, run.codes):
        untouched = table[:, -1]
        torch.testing.assert_close(untouched[3], untouched[0] * 0.95**3)


# --- what can be read back from a sum


def test_a_wider_sum_is_easier_to_read() -> None:
    narrow, wide = probe_sum(4, n_tokens=60, length=32), probe_sum(128, n_tokens=60, length=32)
    assert narrow.linear_token < 0.5 < 0.99 < wide.linear_token
    assert narrow.linear_position < 0.1 < 0.4 < wide.linear_position
    # What a linear reader makes of the code alone bounds what it makes of the sum.
    assert narrow.linear_position < narrow.linear_position_alone
    assert (wide.nearest_token, wide.nearest_position) == (1, 1)


def test_without_noise_the_nearest_pair_is_the_right_one() -> None:
    result = probe_sum(2, n_tokens=30, length=10, noise=0.0)
    assert (result.nearest_token, result.nearest_position) == (1, 1)


# --- all of them

Training = Callable[[nn.Module, int], Any]
TRAININGS: dict[str, Training] = {
    "order": lambda layer, seed: train_order_task(layer, dim=16, steps=5, seed=seed),
    "reordering": lambda layer, seed: train_reordering(layer, dim=16, steps=3, seed=seed).losses,
    "sentences kept back": lambda layer, seed: {*train_reordering(dim=16, steps=1, seed=seed).translations},
    "steps": lambda layer, seed: (
        train_steps(layer, [3, 1], n_tokens=5, n_positions=6, dim=16, seed=seed).losses
    ),
    "probe": lambda layer, seed: probe_sum(8, n_tokens=30, length=12, max_pairs=200, seed=seed),
}


@pytest.mark.parametrize("train", TRAININGS.values(), ids=TRAININGS)
def test_a_training_repeats_and_leaves_no_trace(train: Training) -> None:
    layer = LearnedEncoding(16, 8)  # a copy of it is trained, and its dropout draws in every step
    weight, first, threads = layer.weight.detach().clone(), train(layer, 3), torch.get_num_threads()
    torch.manual_seed(123)
    torch.set_num_threads(2)
    state = torch.random.get_rng_state()
    try:
        with torch.no_grad():
            assert train(layer, 3) == first != train(layer, 4)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_default_dtype() == torch.float32
    assert (layer.weight.dtype, layer.weight.grad) == (torch.float32, None)
    assert torch.equal(layer.weight, weight)


def steps_of(**options: Any) -> Any:
    layer = SinusoidalEncoding(4)
    return train_steps(
        **{"encoding": layer, "ids": [0, 1], "n_tokens": 5, "n_positions": 6, "dim": 4, **options}
    )


def probe_of(**options: Any) -> Any:
    return probe_sum(**{"dim": 8, **options})


@pytest.mark.parametrize(
    ("train", "options", "error", "message"),
    [
        (train_order_task, {"n_tokens": 1}, ValueError, "n_tokens must be at least 2, got 1"),
        (train_order_task, {"n_tokens": 4.0}, TypeError, "n_tokens must be an integer, got 4.0"),
        (train_order_task, {"dim": 5}, ValueError, "dim must be even"),
        (train_order_task, {"steps": 0}, ValueError, "steps must be at least 1, got 0"),
        (train_order_task, {"seed": -1}, ValueError, "seed must be at least 0, got -1"),
        (
            train_order_task,
            {"encoding": torch.zeros(2, 32)},
            TypeError,
            r"encoding must be a torch\.nn\.Module or None",
        ),
        (train_order_task, {"rotary": torch.zeros(2, 32)}, TypeError, r"rotary must be a torch\.nn\.Module or None"),
        (train_order_task, {"encoding": SinusoidalEncoding(16)}, ValueError, r"x must have shape \(batch, seq, 16\)"),
        (train_order_task, {"bias": [[0.0]]}, TypeError, r"bias must be a torch\.Tensor or None, got list"),
        (train_order_task, {"bias": torch.zeros(3, 3)}, ValueError, r"bias must have shape \(2, 2\), got \(3, 3\)"),
        (train_order_task, {"bias": torch.zeros(2, 2).long()}, TypeError, "bias must be real floating"),
        (train_reordering, {"dim": 7}, ValueError, "dim must be even"),
        (train_reordering, {"steps": 0}, ValueError, "steps must be at least 1, got 0"),
        (train_reordering, {"encoding": "sinusoidal"}, TypeError, r"encoding must be a torch.* or None, got str"),
        (train_reordering, {"rotary": 1}, TypeError, r"rotary must be a torch\.nn\.Module or None, got int"),
        (train_reordering, {"bias": torch.zeros(2, 2)}, ValueError, r"bias must have shape \(4, 4\), got \(2, 2\)"),
        (steps_of, {"encoding": None}, TypeError, r"encoding must be a torch\.nn\.Module, got NoneType"),
        (steps_of, {"ids": []}, ValueError, "ids must hold at least one id"),
        (steps_of, {"ids": [5]}, ValueError, r"ids must hold .* all below n_tokens 5, got \[5\]"),
        (steps_of, {"ids": [-1]}, ValueError, "each of ids must be at least 0, got -1"),
        (steps_of, {"n_positions": 1}, ValueError, "n_positions must be at least 2, got 1"),
        (steps_of, {"steps": 0}, ValueError, "steps must be at least 1, got 0"),
        (steps_of, {"dim": 6}, ValueError, r"x must have shape \(batch, seq, 4\)"),
        (steps_of, {"rate": -1.0}, ValueError, "Invalid learning rate"),
        (steps_of, {"weight_decay": -1.0}, ValueError, "Invalid weight_decay"),
        (probe_of, {"dim": 5}, ValueError, "dim must be even"),
        (probe_of, {"n_tokens": 1}, ValueError, "n_tokens must be at least 2, got 1"),
        (probe_of, {"length": 1}, ValueError, "length must be at least 2, got 1"),
        (probe_of, {"max_pairs": 2}, ValueError, "max_pairs must be at least 4, got 2"),
        (probe_of, {"noise": -0.1}, ValueError, r"noise must be finite and at least 0, got -0\.1"),
        (probe_of, {"noise": math.nan}, ValueError, "noise must be finite and at least 0, got nan"),
        (probe_of, {"seed": -1}, ValueError, "seed must be at least 0, got -1"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(
    train: Callable[..., Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        train(**options)
