"""Pictures of position in time."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc._arrays import Array
from posenc.plot._checks import as_names, as_number, as_numbers
from posenc.plot._figures import given_or_new, quiet
from posenc.plot._labels import legend_above
from posenc.plot._style import BLUE, GREY, ORANGE, Lang, picture, word
from posenc.times import nearest_index


@picture
def clip_axis(
    audio: Array,
    rate: float,
    words: Sequence[str],
    times: Array,
    frames: Array,
    *,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """A clip on one axis of seconds: its sound, its words, its frames, and which frame belongs to which word.

    A solid line goes from each word to the nearest frame, a dashed one to the frame of the same index.

    Args:
        audio: samples, shape (n,), the first at 0 s.
        rate: samples a second, above 0.
        words: the words, in order.
        times: when each is spoken, in seconds, shape (words,).
        frames: the time of each frame, ascending, at least as many as words.

    Source: a picture of this book, drawn in times.md#axis.
    """
    sound, rate = as_numbers("audio", audio, ("n",)), as_number("rate", rate, above=0)
    said = as_numbers("times", times, ("words",))
    names = as_names("words", words, said.size)
    shots = as_numbers("frames", frames, ("frames",))
    if shots.size < said.size:
        raise ValueError(f"frames must be at least as many as words, {said.size}, got {shots.size}")
    nearest = shots[nearest_index(said, shots)]
    ax = given_or_new(ax, 3.4)
    # Of so many samples only the height of each piece can be seen.
    pieces = np.array_split(sound, min(sound.size, 240))
    most = max(float(np.abs(sound).max()), 1e-12)
    low, high = (np.array([f(piece) for piece in pieces]) / most for f in (np.min, np.max))
    middle = (np.arange(len(pieces)) + 0.5) * sound.size / rate / len(pieces)
    ax.fill_between(middle, 2 + 0.35 * low, 2 + 0.35 * high, color=GREY, linewidth=0.8)
    ax.plot(shots, np.zeros_like(shots), linestyle="none", marker="|", markersize=9, color=GREY)
    for k, t in enumerate(said):
        labels = ("nearest frame", "same index") if k == 0 else ("", "")
        for end, color, line, label in zip(
            (nearest[k], shots[k]), (BLUE, ORANGE), ("-", "--"), labels, strict=True
        ):
            text = word(label, lang) if label else "_"
            ax.plot([t, end], [0.85, 0.08], color=color, linestyle=line, linewidth=1.4, label=text)
        ax.text(t, 1.03 if k % 2 == 0 else 1.28, names[k], ha="center", va="bottom", fontsize=10)
    ax.plot(said, np.full_like(said, 0.92), linestyle="none", marker="v", markersize=5, color=BLUE)
    rows = ("frames", "words", "audio")
    ax.set(xlabel=word("seconds", lang), ylim=(-0.25, 2.5), yticks=[0, 0.95, 2])
    ax.set_yticklabels([word(row, lang) for row in rows])
    ax.tick_params(axis="y", length=0)
    legend_above(quiet(ax))
    return ax
