"""The picture of the primer names the shapes that the steps really have."""

from __future__ import annotations

import numpy as np
import pytest

from posenc import alibi_bias, apply_rotary, causal_mask, dot_product_attention, plot, sinusoidal_encoding
from posenc.plot._style import Lang

SIZES = {"batch": 2, "heads": 3, "seq": 5, "head_dim": 4, "dim": 12, "head_dim / 2": 2}


def shapes(lang: Lang = "en") -> list[tuple[int, ...]]:
    """The shapes in the picture from top to bottom, as numbers."""
    found = []
    for text in plot.position_entries(lang=lang).texts:
        for line in text.get_text().splitlines():
            if line.startswith("("):
                names = line.strip("()").split(", ")
                found.append((text.get_position()[1], tuple(SIZES[name] for name in names)))
    return [shape for _, shape in sorted(found)]


def test_shapes_are_those_of_a_run() -> None:
    batch, heads, seq, head_dim, dim = (SIZES[n] for n in ("batch", "heads", "seq", "head_dim", "dim"))
    rng = np.random.default_rng(0)
    ids, table = rng.integers(0, 9, (batch, seq)), rng.normal(size=(9, dim))
    x, code = table[ids], sinusoidal_encoding(seq, dim)
    total = x + code
    w = rng.normal(size=(3, dim, dim))
    q, k, v = ((total @ m).reshape(batch, seq, heads, head_dim).transpose(0, 2, 1, 3) for m in w)
    angles = np.arange(seq)[:, None] * np.ones(head_dim // 2)
    turned = apply_rotary(q, seq)
    scores = q @ k.transpose(0, 1, 3, 2)
    bias, mask = alibi_bias(np.ones(heads), seq), causal_mask(seq)
    output, weights = dot_product_attention(turned, apply_rotary(k, seq), v, bias=bias[None], mask=mask)
    joined = output.transpose(0, 2, 1, 3).reshape(batch, seq, dim)
    run = [ids, x, code, total, q, angles, turned, scores, bias, scores + bias, mask, weights, output, joined]
    assert shapes() == [a.shape for a in run]
    assert shapes("zh") == shapes()


def test_four_steps_are_there_for_the_position_alone() -> None:
    ax = plot.position_entries()
    dashed = [line for line in ax.get_lines() if line.get_linestyle() == "--"]
    heights = [np.asarray(line.get_ydata())[:4].mean() for line in dashed]
    said = [(text.get_position()[1], text.get_text()) for text in ax.texts if text.get_text()]
    within = [[words for height, words in said if height == pytest.approx(y)] for y in heights]
    assert [names[0] for names in within] == ["add a code", "turn q and k", "add a bias", "hide keys"]
    assert [names[1][0] for names in within] == list("1234")


def test_bad_language() -> None:
    with pytest.raises(ValueError, match='lang must be "en" or "zh"'):
        plot.position_entries(lang="fr")  # type: ignore[arg-type]
