"""Pictures of position in time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from posenc._arrays import Array
from posenc.plot._checks import as_labelled, as_names, as_number, as_numbers, check_index
from posenc.plot._style import (
    BLUE,
    COLORS,
    GREY,
    LINES,
    ORANGE,
    Lang,
    check_lang,
    given_or_new,
    legend_above,
    quiet,
    word,
)
from posenc.times import nearest_index

__all__ = ["clip_axis", "time_kernels"]


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
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: arrays of another kind or shape, fewer frames than words, frames that go back,
            or a word outside the clip.
    """
    check_lang(lang, ax)
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


def time_kernels(
    codes: Mapping[str, Array],
    times: Array,
    index: int,
    *,
    unit: str | None = None,
    ax: Axes | None = None,
    lang: Lang = "en",
) -> Axes:
    """How like one time all others are: the dot product of their codes, as a share of the largest.

    Args:
        codes: label to codes (n, dim) of the times; one to six, which may differ in dim.
        times: the times, shape (n,), ascending.
        index: of the time to which all are compared.
        unit: label of the axis of times; seconds if None.
        ax: axes to draw into; a new figure if None.
        lang: language of the labels, "en" or "zh".

    Returns:
        The axes.

    Raises:
        TypeError, ValueError: arrays of another kind or shape, or an index that is not one of the times.
    """
    check_lang(lang, ax)
    t = as_numbers("times", times, ("n",))
    index = check_index("index", index, t.size)
    shown = as_labelled("codes", codes, (t.size, "dim"))
    ax = given_or_new(ax, 2.8)
    for (label, rows), color, line in zip(shown.items(), COLORS, LINES, strict=False):
        kernel = rows @ rows[index]
        ax.plot(t, kernel / (float(np.abs(kernel).max()) or 1.0), color=color, linestyle=line, label=label)
    ax.axvline(t[index], color=GREY, linewidth=0.8)
    ax.set(xlabel=word("seconds", lang) if unit is None else unit, ylabel=word("similarity", lang))
    ax.locator_params(axis="x", nbins=6)
    legend_above(quiet(ax))
    return ax
