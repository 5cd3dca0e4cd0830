"""Claims about what goes into a model: integers, one-hot codes, a code added or put beside, other shapes."""

import numpy as np
import torch
from torch.nn.functional import layer_norm

from posenc import (
    add_positions,
    anchor_distances,
    concat_positions,
    grid_encoding,
    integer_encoding,
    one_hot_encoding,
    sinusoidal_encoding,
)
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.naive import argmax_positions
from posenc.nn import LearnedEncoding, SinusoidalEncoding
from posenc.sinusoidal import code_distance


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(((a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)).mean())


@claim("only if", "naive.md#steps")
def integers_are_unstable() -> Found:
    """The largest stable step of gradient descent on a weight of the position."""
    t = np.asarray(integer_encoding(10_000, 1))[:, 0]
    limits = {name: 1 / np.mean(x**2) for name, x in (("short", t[:10]), ("long", t), ("scaled", t / 9999))}
    return found(limits["long"] < 1e-6, limits["scaled"] > 1, **limits)


@claim("false", "naive.md#precision")
def far_integers_differ_more() -> Found:
    near, far = (float(np.diff(np.asarray(integer_encoding([t, t + 1], 1))[:, 0])[0]) for t in (50, 5000))
    low = torch.tensor([5000, 5001]).bfloat16()
    return found(far > near, near=near / 50, far=far / 5000, low=(low[1] - low[0]).item())


@claim("true", "naive.md#ends")
def integers_point_at_an_end() -> Found:
    w = np.random.default_rng(0).normal(size=(2, 200, 8, 8))
    best = argmax_positions(integer_encoding(20, 8, start=1), w[0], w[1])
    ends = np.isin(best, [0, 19]).mean()
    middle = 1 - np.isin(argmax_positions(sinusoidal_encoding(20, 8), w[0], w[1]), [0, 19]).mean()
    return found(ends == 1 and middle > 0.5, ends=ends, middle=middle)


@claim("only if", "naive.md#layernorm")
def integer_is_seen() -> Found:
    word = torch.tensor([0.62, -0.51, 0.09, 0.85], dtype=torch.float64)
    rows = word + integer_encoding(torch.tensor([1, 5000]), 4, dtype=torch.float64)
    before, after = ((x[1] - x[0]).abs().max().item() for x in (rows, layer_norm(rows, (4,))))
    return found(before > 1, after < 1e-9, before=before)


@claim("false", "naive.md#growth")
def one_hot_curse() -> Found:
    """A volume that grows exponentially is Bellman's curse; here are the widths."""
    widths = [one_hot_encoding(n).shape[1] for n in (100, 200, 400)]
    return found(widths[2] > 3 * widths[1], widths[2] == 2 * widths[1] == 4 * widths[0], n=widths[2])


@claim("only if", "addition.md#fixed-and-trained")
def code_is_trained() -> Found:
    layers = SinusoidalEncoding(512), LearnedEncoding(512, 100)
    fixed, trained = (sum(p.numel() for p in layer.parameters()) for layer in layers)
    return found(trained > 0, fixed == 0, fixed=fixed, trained=trained)


@claim("false", "addition.md#orthogonal")
def orthogonal_in_high_dimensions() -> Found:
    p, made = sinusoidal_encoding(128, 512), {}
    for n_tokens in (50, 600):
        e = np.random.default_rng(0).normal(size=(n_tokens, 512))
        factors = np.linalg.lstsq(e.T, p.T, rcond=None)[0].T
        made[f"n_{n_tokens}"] = ((factors @ e) ** 2).sum() / (p**2).sum()
    usual = np.sqrt(((p @ e.T) ** 2 / np.outer((p**2).sum(1), (e**2).sum(1))).mean())
    return found(made["n_600"] < 0.01, usual=usual, **made)


@claim("true", "addition.md#concatenation")
def sum_is_tied_concatenation() -> Found:
    rng = np.random.default_rng(0)
    e, p, w = rng.normal(size=(10, 512)), sinusoidal_encoding(10, 512), rng.normal(size=(512, 512))
    beside = concat_positions(e, p) @ np.vstack([w, w])
    return found(np.abs(beside - add_positions(e, p) @ w).max() < 1e-9)


@claim("only if", "addition.md#concatenation")
def concatenation_doubles() -> Found:
    e, p = np.zeros((1, 512)), sinusoidal_encoding(1, 512)
    wide, narrow = (concat_positions(e, p[:, :d]).shape[1] / 512 for d in (512, 32))
    return found(wide == 2, narrow < 1.1, wide=wide, narrow=narrow, all=wide**2)


@claim("true", "addition.md#concatenation")
def concatenation_keeps_both() -> Found:
    """A matrix that is the same for all words reads the code: exactly beside the word, roughly from the sum."""
    rng = np.random.default_rng(0)
    e, p = rng.normal(size=(2000, 64)), sinusoidal_encoding(rng.integers(0, 512, 2000), 64)
    reader = np.vstack([np.zeros((64, 64)), np.eye(64)])
    beside = np.abs(concat_positions(e, p) @ reader - p).max()
    x = add_positions(e, p)
    lost = ((x @ np.linalg.lstsq(x, p, rcond=None)[0] - p) ** 2).mean() / (p**2).mean()
    return found(beside == 0, beside=beside, lost=100 * lost)


@claim("only if", "addition.md#same-word")
def another_vector_elsewhere() -> Found:
    """Embeddings of standard deviation 1 and 0.02."""
    rng, (p, q) = np.random.default_rng(0), sinusoidal_encoding([0, 100], 512)
    numbers: dict[str, float] = {}
    for name, std in (("", 1.0), ("_small", 0.02)):
        words, others = std * rng.normal(size=(2, 1000, 512))
        numbers["moved" + name] = _cosine(words + p, words + q)
        numbers["other" + name] = _cosine(words + p, others + p)
    right = numbers["moved_small"] < numbers["other_small"]
    return found(right, numbers["moved"] > numbers["other"], **numbers)


@claim("only if", "addition.md#shapes")
def code_as_wide_as_the_word() -> Found:
    x, narrow = np.zeros((3, 8)), sinusoidal_encoding(3, 4)
    beside = concat_positions(x, narrow).shape[1]
    try:
        add_positions(x, narrow)
    except ValueError:
        return found(True, beside == 12, beside=beside)
    return found(False, beside == 12, beside=beside)


@claim("only if", "addition.md#scale")
def multiply_by_the_root() -> Found:
    code = float(np.linalg.norm(sinusoidal_encoding(1, 512)))
    usual, small = (float(std * 512**0.5) for std in (1.0, 0.02))
    return found(small < code / 10, usual > code, code=code, usual=usual, small=small)


@claim("true", "shift.md#dot-product")
def nearer_word_nearer_code() -> Found:
    pairs = {f"d_{dim}": code_distance([1, 2], dim) for dim in (4, 64, 512)}
    holds = all(one < two for one, two in pairs.values())
    return found(holds, one=pairs["d_512"][0], two=pairs["d_512"][1])


@claim("false", "times.md#axis")
def frame_index_is_a_time() -> Found:
    slow, fast = 100 / 25, 100 / 30
    same, index = code_distance([0.0], 64)[0], code_distance([100 / 25 - 100 / 30], 64)[0]
    return found(index <= same, slow=slow, fast=fast, apart=index)


@claim("false", "grids.md#raster")
def a_list_knows_rows() -> Found:
    codes = np.asarray(sinusoidal_encoding(196, 64)) / 32**0.5
    right, below, edge = (codes[t] @ codes[u] for t, u in ((105, 106), (105, 119), (111, 112)))
    return found(below > edge, right=right, below=below, edge=edge)


@claim("false", "grids.md#vit")
def vit_knows_the_plane() -> Found:
    """Its table against one that has a row of half the width for each row and each column of patches."""
    listed, plane = LearnedEncoding(768, 14 * 14 + 1), LearnedEncoding(384, 14 + 14)
    numbers, wanted = (sum(p.numel() for p in layer.parameters()) for layer in (listed, plane))
    return found(numbers == wanted, rows=listed.weight.shape[0], numbers=numbers, wanted=wanted)


@claim("false", "grids.md#false")
def half_is_too_coarse() -> Found:
    codes = np.asarray(grid_encoding((14, 14), 4)).reshape(196, 4)
    apart = np.linalg.norm(codes[:, None] - codes, axis=-1)[~np.eye(196, dtype=bool)].min()
    return found(apart < 1e-6, apart=apart)


@claim("only if", "graphs.md#anchors")
def anchors_know_the_centre() -> Found:
    star = np.zeros((7, 7))
    star[0, 1:] = star[1:, 0] = 1
    path = np.eye(7, k=1) + np.eye(7, k=-1)
    leaves, line = anchor_distances(star, [0])[1:, 0], anchor_distances(path, [0])[:, 0]
    middle = anchor_distances(path, [3])[:, 0]
    return found(
        np.ptp(leaves) == 0,
        line[0] != line[-1],
        leaves=leaves[0],
        far=line[-1],
        distinct=len(np.unique(middle)),
    )
