"""Whether a small Transformer keeps what it learned of seconds at other frame rates."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from posenc._checks import check_even_dim, integer, number
from posenc.experiments._training import OrderModel, adam, share, train
from posenc.experiments.transformer import one_thread


@dataclass(frozen=True)
class GapResult:
    """What `train_gap_task` measured. Accuracies are by frame rate, shares of all pairs of frames."""

    losses: tuple[float, ...]
    """Mean binary cross-entropy before each step, in nats."""

    by_seconds: dict[float, float]
    """Accuracy when the encoding is given the time of each frame."""

    by_index: dict[float, float]
    """Accuracy of the same model when it is given index / trained rate, as if no rate ever changed."""

    scale: float | None
    """What the encoding has learned to multiply times by; None if it learns nothing of the kind."""


def train_gap_task(
    encoding: nn.Module,
    *,
    fps: float = 10.0,
    test_fps: Sequence[float] = (5.0, 10.0, 20.0, 30.0),
    clip: float = 4.0,
    unit: float = 1.0,
    dim: int = 16,
    steps: int = 200,
    seed: int = 0,
) -> GapResult:
    """What a small Transformer learns of the time between two events in a clip, and keeps at other frame rates.

    label(t, u) = 1 if u − t > 1 second else 0, for all pairs of frames t < u but those 1 second apart.

    The model is that of `train_order_task`; both tokens are the same flash of light, only their times differ.
    At the trained rate seconds and index say the same: index / fps is the time. So one training serves both,
    and the difference shows at another rate.

    Args:
        encoding: layer that adds codes to embeddings (batch, 2, dim) for given times (batch, 2), such as
            `posenc.nn.TimeEncoding`; a copy of it is trained along, at ten times the rate of the model.
        fps: frames a second in training, above 0.
        test_fps: the rates to test at.
        clip: length of a clip in seconds, above 1.
        unit: how many seconds are 1 in the times that the encoding gets: 60 for minutes.
        dim: width of the model, even.
        steps: steps of training with Adam (rate 0.003) on all pairs at once, in float64.
        seed: of the weights. torch's global generator is left untouched.

    Returns:
        A `GapResult`: losses, by_seconds, by_index, scale.

    Raises:
        TypeError: encoding is not a torch.nn.Module.
        ValueError: clip is at most 1, or a rate leaves no pair of frames to compare in a clip.

    >>> from posenc.nn import TimeEncoding
    >>> result = train_gap_task(TimeEncoding(16, shortest=2.0, longest=32.0))
    >>> result.by_seconds[30.0] > 0.99, result.by_index[30.0] < 0.7
    (True, True)

    Source: an experiment of this book, described in times.md#frame-rate.
    """
    if not isinstance(encoding, nn.Module):
        raise TypeError(f"encoding must be a torch.nn.Module, got {type(encoding).__name__}")
    fps, unit = number("fps", fps, above=0), number("unit", unit, above=0)
    if not isinstance(test_fps, Iterable):
        raise TypeError(
            f"test_fps must be a list of rates, got {test_fps!r} of type {type(test_fps).__name__}"
        )
    rates = [number("each of test_fps", rate, above=0) for rate in test_fps]
    clip = number("clip", clip, above=1)
    for rate in rates:
        if not len(_flashes(rate, clip)[0]):
            raise ValueError(
                f"each of test_fps must leave pairs of frames in a clip of {clip:g} s, got {rate:g}"
            )
    dim = check_even_dim(dim)
    steps = integer("steps", steps, minimum=1)
    seed = integer("seed", seed, minimum=0)
    frames, labels = _flashes(fps, clip)
    if not 0 < float(labels.mean()) < 1:
        raise ValueError(
            f"fps must leave pairs on both sides of 1 second in a clip of {clip:g} s, got {fps:g}"
        )
    with torch.random.fork_rng(devices=[]), torch.enable_grad(), one_thread():
        torch.default_generator.manual_seed(seed)
        copied = copy.deepcopy(encoding).double()
        model = OrderModel(1, dim).double()

        def logits(seconds: Tensor) -> Tensor:
            x = model.outputs.embedding(torch.zeros(seconds.shape, dtype=torch.int64))
            return model.after_codes(copied(x, seconds / unit))

        optimizer = adam(model, 3e-3)
        optimizer.add_param_group({"params": [*copied.parameters()], "lr": 3e-2})
        loss, trained, answers = nn.functional.binary_cross_entropy_with_logits, frames / fps, labels
        losses = train(optimizer, steps, lambda: loss(logits(trained), answers))
        copied.eval()
        found: tuple[dict[float, float], dict[float, float]] = ({}, {})
        with torch.no_grad():
            for rate in rates:
                frames, labels = _flashes(rate, clip)
                for accuracies, seconds in zip(found, (frames / rate, frames / fps), strict=True):
                    accuracies[rate] = share((logits(seconds) > 0) == (labels > 0))
    scale = getattr(copied, "scale", None)
    return GapResult(tuple(losses), *found, scale=None if scale is None else float(scale))


def _flashes(fps: float, clip: float) -> tuple[Tensor, Tensor]:
    """All pairs of frame numbers but those 1 second apart, float64 (pairs, 2), and whether they are further."""
    n = round(clip * fps)
    frames = torch.combinations(torch.arange(n), 2).double()
    gaps = frames[:, 1] - frames[:, 0]
    other = (gaps - fps).abs() > 1e-6
    return frames[other], (gaps[other] > fps).double()
