"""The pictures of the chapter on time show what the formulas say, in both languages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawings import legend, points, texts
from matplotlib.collections import PolyCollection

from posenc import periodic_encoding, plot, sinusoidal_encoding

FRAMES = np.arange(12) / 2
TIMES = np.array([0.3, 2.1, 4.2])


def test_each_word_goes_to_its_nearest_frame_and_to_that_of_its_index() -> None:
    audio = np.sin(np.arange(900) / 5) * np.linspace(0, 2, 900)
    ax = plot.clip_axis(audio, 150, list("abc"), TIMES, FRAMES)
    ends = {line: [points(x)[-1, 0] for x in ax.lines if x.get_linestyle() == line] for line in ("-", "--")}
    starts = {line: [points(x)[0, 0] for x in ax.lines if x.get_linestyle() == line] for line in ("-", "--")}
    assert starts["-"] == starts["--"] == TIMES.tolist()
    assert ends["-"] == [0.5, 2.0, 4.0]
    assert ends["--"] == [0.0, 0.5, 1.0]
    ticks, marks = [points(x)[:, 0].tolist() for x in ax.lines if x.get_linestyle() == "None"]
    assert (ticks, marks) == (FRAMES.tolist(), TIMES.tolist())
    assert texts(ax) == list("abc")
    assert [text.get_position()[0] for text in ax.texts] == TIMES.tolist()
    assert legend(ax) == ["nearest frame", "frame of the same index"]
    (sound,) = [c for c in ax.collections if isinstance(c, PolyCollection)]
    outline = np.array(sound.get_paths()[0].vertices, dtype=float)
    assert outline[:, 0].max() == pytest.approx(6, abs=0.05)
    assert np.abs(outline[:, 1] - 2).max() == pytest.approx(0.35)


def test_kernels_are_shares_of_their_largest() -> None:
    t = np.arange(-30.0, 31)
    codes = {"circle": periodic_encoding(t, 20, harmonics=3), "usual": sinusoidal_encoding(t, 8)}
    ax = plot.time_kernels(codes, t, 30, unit="bases")
    for line, rows in zip(ax.lines, codes.values(), strict=False):
        np.testing.assert_allclose(
            points(line), np.column_stack([t, rows @ rows[30] / (rows[30] @ rows[30])])
        )
    circle = points(ax.lines[0])[:, 1]
    np.testing.assert_allclose(circle[[10, 30, 50]], 1)
    assert ax.get_xlabel() == "bases"
    assert plot.time_kernels(codes, t, 30, lang="zh").get_xlabel() == "时间 t（秒）"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"words": ["a"]}, "words must hold 3 names, got 1"),
        ({"frames": FRAMES[:2]}, "frames must be at least as many as words, 3, got 2"),
        ({"frames": FRAMES[::-1]}, "marks must not go back"),
        ({"times": TIMES * 1000}, "in another unit"),
        ({"rate": 0}, "rate must be above 0"),
    ],
)
def test_a_clip_that_does_not_fit_together_is_refused(options: dict[str, Any], message: str) -> None:
    clip: dict[str, Any] = {
        "audio": np.ones(9),
        "rate": 2.0,
        "words": list("abc"),
        "times": TIMES,
        "frames": FRAMES,
    }
    with pytest.raises(ValueError, match=message):
        plot.clip_axis(**{**clip, **options})


def test_the_time_compared_is_one_of_them() -> None:
    with pytest.raises(ValueError, match=r"index must lie in 0\.\.2, got 3"):
        plot.time_kernels({"a": np.ones((3, 2))}, np.arange(3.0), 3)
