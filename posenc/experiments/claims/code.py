"""Claims about code: slips after which every shape fits and no error appears."""

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from posenc import (
    add_positions,
    alibi_bias,
    alibi_slopes,
    apply_rotary,
    causal_mask,
    dot_product_attention,
    ring_attention,
    shard_positions,
    sinusoidal_encoding,
    t5_bias,
)
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.nn import SinusoidalEncoding
from posenc.rotary import interleaved_to_half


@claim("false", "sinusoidal.md#code")
def odd_width() -> Found:
    """What the code that is copied everywhere does at odd widths, and what posenc does."""
    silent, refused = 0, 0
    for dim in (1, 3, 5, 7):
        angles = np.arange(4)[:, None] * 10000.0 ** (-np.arange(0, dim, 2) / dim)
        code = np.zeros((4, dim))
        try:
            code[:, 0::2], code[:, 1::2] = np.sin(angles), np.cos(angles)
            silent += 1
        except ValueError:
            pass
        try:
            sinusoidal_encoding(4, dim)
        except ValueError:
            refused += 1
    return found(silent == 4, silent=silent, refused=refused)


@claim("false", "sinusoidal.md#false")
def wrong_axis() -> Found:
    layer, sequence_first = SinusoidalEncoding(4, dropout=0.0), torch.zeros(5, 2, 4)
    try:
        distinct = len(torch.unique(layer(sequence_first)[:, 1], dim=0))
    except ValueError:
        return found(True, distinct=5)
    return found(distinct == 5, distinct=distinct)


@claim("false", "addition.md#false")
def one_row_for_all() -> Found:
    x, row = np.zeros((5, 4)), sinusoidal_encoding(1, 4)
    distinct = len(np.unique(x + row, axis=0))
    try:
        add_positions(x, row)
    except ValueError:
        return found(distinct == 5, distinct=distinct)
    return found(True, distinct=distinct)


@claim("false", "precision.md#rotary")
def cache_by_length() -> Found:
    """A table of cosines and sines that is looked up by its length alone, asked for two bases."""
    kept: dict[int, np.ndarray] = {}

    def turned(base: float) -> np.ndarray:
        return kept.setdefault(100, apply_rotary(np.ones((100, 64)), 100, base=base))

    turned(10_000.0)
    apart = np.abs(turned(500_000.0) - apply_rotary(np.ones((100, 64)), 100, base=500_000.0)).max()
    return found(apart < 1e-9, apart=apart)


@claim("false", "alibi.md#slopes")
def slopes_by_formula() -> Found:
    formula = 2.0 ** (-8 * np.arange(1, 13) / 12)
    published = np.asarray(alibi_slopes(12))
    same = np.isclose(formula[:, None], published).any(axis=1).sum()
    last = formula[-1] / published.min()
    return found(np.allclose(np.sort(formula), np.sort(published)), same=same, last=last)


@claim("only if", "alibi.md#columns")
def bias_of_the_key() -> Found:
    """+m·j beside −m|i − j|: softmax does not see a number that is the same for a whole row."""
    n, scores = 50, np.random.default_rng(0).normal(size=(50, 50))
    keys, both = 0.5 * np.arange(n), -0.5 * np.abs(np.arange(n) - np.arange(n)[:, None])
    apart = []
    for mask in (causal_mask(n), np.zeros((n, n), dtype=bool)):
        weights = [np.where(mask, -np.inf, scores + bias) for bias in (keys, both)]
        first, second = (np.exp(w - w.max(axis=1, keepdims=True)) for w in weights)
        first, second = (w / w.sum(axis=1, keepdims=True) for w in (first, second))
        apart.append(np.abs(first - second).max())
    return found(apart[0] < 1e-9, apart[1] > 0.1, both_ways=apart[1])


@claim("false", "alibi.md#false")
def bias_before_the_root() -> Found:
    q, k, v = np.random.default_rng(0).normal(size=(3, 20, 64))
    bias = np.asarray(alibi_bias(0.5, 20))
    _, after = dot_product_attention(q, k, v, bias=bias)
    _, before = dot_product_attention(q, k, v, bias=bias / 8)
    slope = np.asarray(alibi_bias(0.5, 2))[1, 0] / 8
    return found(np.abs(after - before).max() < 1e-9, slope=-1 / slope, apart=np.abs(after - before).max())


@claim("false", "alibi.md#false")
def causal_with_a_cache() -> Found:
    q, k, v = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 1, 1, 10, 8)))
    output = scaled_dot_product_attention(q[..., -1:, :], k, v, is_causal=True)
    right = scaled_dot_product_attention(q, k, v, is_causal=True)[..., -1:, :]
    apart = (output - right).abs().max().item()
    seen = (output - v[..., :1, :]).abs().max().item() < 1e-9  # its output is the value of the first key
    return found(apart < 1e-9, apart > 0.1 and seen, apart=apart)


@claim("only if", "naive.md#false")
def from_zero_or_one() -> Found:
    codes = np.asarray(sinusoidal_encoding(101, 16))
    same = np.abs(codes[1:] @ codes[1:].T - codes[:-1] @ codes[:-1].T).max()
    moved = np.linalg.norm(codes[1] - codes[0])
    return found(same < 1e-9, moved > 0.5, moved=moved)


@claim("only if", "layouts.md#mixed")
def any_layout() -> Found:
    q, k = np.random.default_rng(0).normal(size=(2, 32, 64))

    def scores(q: np.ndarray, k: np.ndarray, layout: str) -> np.ndarray:
        q, k = (apply_rotary(x, 32, layout=layout) for x in (q, k))  # type: ignore[arg-type]
        return q @ k.T / 8

    right = scores(q, k, "interleaved")
    mixed = np.abs(scores(q, k, "half") - right).max()
    converted = np.abs(scores(interleaved_to_half(q), interleaved_to_half(k), "half") - right).max()
    return found(converted < 1e-9, mixed > 1, mixed=mixed, most=np.abs(right).max())


@claim("only if", "rotary.md#weights")
def turned_before_the_weights() -> Found:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 64))
    w, t = rng.normal(size=(64, 64)), np.arange(0, 5000, 50)
    right = (apply_rotary(w @ x, t) * apply_rotary(w @ y, t + 9)).sum(axis=1)
    wrong = ((apply_rotary(x, t) @ w.T) * (apply_rotary(y, t + 9) @ w.T)).sum(axis=1)
    return found(np.ptp(right) < 1e-9, np.ptp(wrong) > 100, spread=np.ptp(wrong))


@claim("false", "rotary.md#false")
def shape_is_checked() -> Found:
    x = np.random.default_rng(0).normal(
        size=(2, 10, 10, 64)
    )  # batch, seq, heads, dim: as many heads as tokens
    right = apply_rotary(x.swapaxes(1, 2), 10).swapaxes(1, 2)
    try:
        apart = np.abs(apply_rotary(x, 10) - right).max()
    except ValueError:
        return found(True, apart=0)
    return found(apart < 1e-9, apart=apart)


@claim("false", "relative.md#false")
def right_shape_right_bias() -> Found:
    table = np.arange(32.0)
    right, wrong = (t5_bias(table, query, 6, bidirectional=False) for query in (1, [0]))
    same = np.shape(right) == np.shape(wrong) and np.allclose(right, wrong)
    return found(same, np.shape(right) == np.shape(wrong), right=right.max(), wrong=wrong.max())


@claim("false", "parallel.md#ring")
def ring_approximates() -> Found:
    q, k, v = np.random.default_rng(0).normal(size=(3, 2, 64, 8))
    slopes = alibi_slopes(2)
    whole, _ = dot_product_attention(q, k, v, bias=alibi_bias(slopes, 64))
    at = [shard_positions(64, rank, 8) for rank in range(8)]
    qs, ks, vs = ([x[:, positions] for positions in at] for x in (q, k, v))
    outputs = ring_attention(qs, ks, vs, at, slopes=slopes)
    apart = max(np.abs(output - whole[:, t]).max() for output, t in zip(outputs, at, strict=True))
    return found(apart > 1e-9, ranks=8)
