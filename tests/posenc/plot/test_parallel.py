"""The pictures of a sequence in shards show who holds what and who waits for whom."""

from __future__ import annotations

import numpy as np
import pytest
from drawings import table
from matplotlib.patches import Rectangle

from posenc import plot
from posenc.parallel import Scheme, ring_work, shard_positions

SCHEMES: list[Scheme] = ["contiguous", "zigzag", "striped"]


def test_each_cell_names_its_rank() -> None:
    ax = plot.shard_rows(16, 4)
    numbers = {text.get_position(): text.get_text() for text in ax.texts}
    ranks = table(ax)
    for row, scheme in enumerate(SCHEMES):
        for rank in range(4):
            places = shard_positions(16, rank, 4, scheme=scheme)
            assert (ranks[row, places] == rank).all()
            assert {numbers[t, row] for t in places.tolist()} == {str(rank)}
    assert [label.get_text() for label in ax.get_yticklabels()] == SCHEMES


def test_schedule_counts_pairs_and_frames_the_slowest() -> None:
    figure = plot.ring_schedule(16, 4)
    times = {"contiguous": 58, "zigzag": 34, "striped": 40}
    for ax, scheme in zip(figure.axes, SCHEMES, strict=False):
        work = ring_work(16, 4, scheme=scheme)
        np.testing.assert_array_equal(table(ax), work)
        assert [text.get_text() for text in ax.texts] == [str(pairs) for pairs in work.ravel()]
        frames = [
            (round(p.get_x() + 0.47), round(p.get_y() + 0.47)) for p in ax.patches if isinstance(p, Rectangle)
        ]
        assert [step for step, _ in frames] == [0, 1, 2, 3]
        assert [work[rank, step] for step, rank in frames] == work.max(axis=0).tolist()
        assert ax.get_title(loc="left") == f"{scheme}\ntime {times[scheme]}"


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="n must be at most 32 in a picture, got 64"):
        plot.shard_rows(64, 4)
    with pytest.raises(ValueError, match="world must be at most 8 in a picture, got 9"):
        plot.ring_schedule(18, 9)
