"""The small trainings: what they must show, that they repeat, and that they leave no trace."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from posenc.experiments import (
    probe_sum,
    reordering_sentences,
    train_gap_task,
    train_order_task,
    train_reordering,
    train_sentence_task,
    train_steps,
)
from posenc.nn import ContextualPositions, LearnedEncoding, SinusoidalEncoding, TimeEncoding
from tests.posenc.refusals import refused

LN2 = math.log(2)


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


def test_without_positions_twins_have_one_translation() -> None:
    """What other schemes make of them, and of order, the chapters print."""
    sentences, result = reordering_sentences(), train_reordering()
    assert len(result.translations) == len(sentences) // 4
    assert "我 爱 你 ." in result.translations
    assert {twin(source) for source in result.translations} == set(result.translations)
    right = [sentences[source] == target for source, target in result.translations.items()]
    assert result.accuracy == sum(right) / len(right)
    assert result.word_accuracy == (0.5, 1.0, 0.5, 1.0)
    assert result.accuracy <= 0.5
    # Two words of four are a fair coin.
    assert all(loss >= LN2 / 2 - 1e-12 for loss in result.losses)
    assert result.losses[-1] == pytest.approx(LN2 / 2, abs=0.01)
    for source, target in result.translations.items():
        assert result.translations[twin(source)] == target
        weights = result.attention[source]
        torch.testing.assert_close(weights.sum(dim=1), torch.ones(4, dtype=torch.float64))
        order = [twin(source).split().index(token) for token in source.split()]
        torch.testing.assert_close(result.attention[twin(source)][:, order], weights)


# --- three steps of training


def test_weight_decay_moves_all_rows() -> None:
    """What moves without it is on the pages."""
    layer = LearnedEncoding(4, 6, dropout=0.0, std=1.0)
    run = train_steps(layer, [3, 1, 3], n_tokens=5, n_positions=6, dim=4, weight_decay=1.0)
    for table in (run.embedding, run.codes):
        untouched = table[:, -1]
        torch.testing.assert_close(untouched[3], untouched[0] * 0.95**3)


# --- all of them

Training = Callable[[nn.Module, int], Any]
TRAININGS: dict[str, Training] = {
    "order": lambda layer, seed: train_order_task(layer, dim=16, steps=5, seed=seed),
    "reordering": lambda layer, seed: train_reordering(layer, dim=16, steps=3, seed=seed).losses,
    "sentences kept back": lambda layer, seed: {*train_reordering(dim=16, steps=1, seed=seed).translations},
    "steps": lambda layer, seed: (
        train_steps(layer, [3, 1], n_tokens=5, n_positions=6, dim=16, seed=seed).losses
    ),
    "gaps": lambda layer, seed: (
        train_gap_task(TimeEncoding(16, shortest=2.0, longest=32.0), steps=3, seed=seed).losses
    ),
    "sentences": lambda layer, seed: (
        train_sentence_task(ContextualPositions(8, 4), dim=8, steps=3, tests=[(48, 8)], seed=seed).losses
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


STEPS: dict[str, Any] = {"n_tokens": 5, "n_positions": 6, "dim": 4}
FOUR, GAPS = SinusoidalEncoding(4), TimeEncoding(16, shortest=2.0, longest=32.0)
WORD: Any = torch.zeros(2)
IDENTITY: Any = nn.Identity()

test_bad_arguments_are_named = refused([
    (lambda: train_order_task(n_tokens=1), ValueError, "n_tokens must be at least 2, got 1"),
    (lambda: train_order_task(seed=-1), ValueError, "seed must be at least 0, got -1"),
    (lambda: train_order_task(WORD), TypeError, r"encoding must be a torch\.nn\.Module or None"),
    (lambda: train_order_task(SinusoidalEncoding(16)), ValueError, r"x must have shape \(batch, seq, 16\)"),
    (lambda: train_order_task(bias=torch.zeros(3, 3)), ValueError, r"bias must have shape \(2, 2\), got \(3, 3\)"),
    (lambda: train_reordering(bias=torch.zeros(2, 2)), ValueError, r"bias must have shape \(4, 4\), got \(2, 2\)"),
    (lambda: train_steps(FOUR, [], **STEPS), ValueError, "ids must hold at least one id"),
    (lambda: train_steps(FOUR, [5], **STEPS), ValueError, r"ids must hold .* all below n_tokens 5, got \[5\]"),
    (lambda: probe_sum(8, max_pairs=2), ValueError, "max_pairs must be at least 4, got 2"),
    (lambda: probe_sum(8, noise=math.nan), ValueError, "noise must be finite and at least 0, got nan"),
    (lambda: train_gap_task(GAPS, fps=0.5), ValueError, "fps must leave pairs on both sides of 1 second"),
    (lambda: train_gap_task(GAPS, test_fps=[5, 0.25]), ValueError, "each of test_fps must leave pairs .* got 0.25"),
    (lambda: train_gap_task(GAPS, dim=8), ValueError, r"x must have shape \(batch, seq, 16\)"),
    (lambda: train_sentence_task(IDENTITY), TypeError, "contextual must tell its positions, .* got Identity"),
    (lambda: train_sentence_task(n=26), ValueError, "n and longest must leave room for 3 sentences of 8 words"),
    (lambda: train_sentence_task(tests=[(20, 8)]), ValueError, "each of tests must leave room for 3 sentences"),
])  # fmt: skip
