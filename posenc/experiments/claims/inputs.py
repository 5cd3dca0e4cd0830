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
    laplacian_eigenvectors,
    one_hot_encoding,
    random_walk_probabilities,
    sinusoidal_encoding,
    sinusoidal_wavelengths,
    time_encoding,
)
from posenc.experiments.addition import probe_sum
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.experiments.times import train_gap_task
from posenc.grids import interpolate_grid
from posenc.naive import argmax_positions
from posenc.nn import LearnedEncoding, SinusoidalEncoding, TimeEncoding
from posenc.rotary import mrope_coordinates, mrope_frequencies
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


@claim("only if", "addition.md#false")
def addition_pollutes() -> Found:
    """200 tokens and 64 positions in eight numbers: how often a linear reader and the nearest pair name the token."""
    result = probe_sum(8, max_pairs=4000)
    linear, nearest = result.linear_token, result.nearest_token
    return found(linear < 0.5, nearest > 0.99, linear=linear, nearest=nearest)


@claim("false", "naive.md#false")
def bounded_never_drowns() -> Found:
    """The share of the code in the squared length of a sum, for embeddings that start small or not."""
    code = (np.asarray(sinusoidal_encoding([7], 512)) ** 2).sum()
    small, usual = (code / (code + 512 * std**2) for std in (0.02, 1.0))
    return found(small < 0.5, small=small, usual=usual)


@claim("only if", "learned.md#false")
def table_replaces_code() -> Found:
    """Both added to 100 tokens, and to one more."""
    code, table = SinusoidalEncoding(8, dropout=0.0), LearnedEncoding(8, max_len=100, dropout=0.0)
    x = torch.zeros(1, 100, 8)
    same = code(x).shape == table(x).shape
    try:
        table(torch.zeros(1, 101, 8))
    except ValueError:
        return found(same, code(torch.zeros(1, 101, 8)).isfinite().all(), last=99)
    return found(same, False, last=100)


@claim("false", "graphs.md#false")
def first_eigenvectors_are_the_code() -> Found:
    """A ring of eight nodes: its two smoothest waves, and both turned by 30 degrees."""
    step = np.roll(np.eye(8), 1, axis=0)
    ring = step + step.T
    waves = np.asarray(laplacian_eigenvectors(ring, 2).vectors)
    turn = np.pi / 6
    turned = waves @ np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    laplacian = np.eye(8) - ring / 2
    values = [np.linalg.norm(laplacian @ w, axis=0) / np.linalg.norm(w, axis=0) for w in (waves, turned)]
    apart = np.abs(waves - turned).max()
    return found(apart < 1e-9, np.allclose(values[0], values[1]) and apart > 0.1, apart=apart)


@claim("false", "graphs.md#false")
def rule_for_the_sign() -> Found:
    """The smoothest wave of a path, its first largest number made positive, in two numberings of the nodes."""
    path = np.eye(4, k=1) + np.eye(4, k=-1)

    def code(order: list[int]) -> np.ndarray:
        wave = np.asarray(laplacian_eigenvectors(path[np.ix_(order, order)], 1).vectors)[:, 0]
        largest = np.flatnonzero(np.abs(wave) > np.abs(wave).max() - 1e-9)[0]
        of_node = np.empty(4)
        of_node[order] = wave * np.sign(wave[largest])
        return of_node

    apart = np.abs(code([0, 1, 2, 3]) - code([3, 2, 1, 0])).max()
    return found(apart < 1e-9, apart=apart)


@claim("false", "graphs.md#alike")
def longer_code_tells_all() -> Found:
    """The rook's graph and one that is not the same: random walks of 20 steps, and all eigenvalues."""
    square = np.arange(16)
    down, right = (square // 4 - square[:, None] // 4) % 4, (square % 4 - square[:, None] % 4) % 4
    rook = ((down == 0) ^ (right == 0)).astype(float)
    near = [(0, 1), (1, 0), (1, 1), (0, 3), (3, 0), (3, 3)]
    other = sum(((down == i) & (right == j)).astype(float) for i, j in near)
    walks = [np.sort(random_walk_probabilities(graph, 20), axis=0) for graph in (rook, other)]
    values = [np.linalg.eigvalsh(graph) for graph in (rook, other)]
    cliques = [np.trace(np.linalg.matrix_power(g[np.ix_(g[0] > 0, g[0] > 0)], 3)) for g in (rook, other)]
    alike = np.allclose(walks[0], walks[1]) and np.allclose(values[0], values[1])
    return found(not alike, alike and cliques[0] != cliques[1], nodes=16, steps=20)


@claim("false", "grids.md#resize")
def antialias_when_smaller() -> Found:
    """A table of 14 × 14 places resampled to 24 × 24, with and without antialias."""
    table = grid_encoding((14, 14), 64, base=100)
    plain, smooth = (interpolate_grid(table, (14, 14), (24, 24), antialias=each) for each in (False, True))
    apart = np.linalg.norm(smooth - plain) / np.linalg.norm(plain)
    return found(apart < 1e-6, apart=apart)


@claim("false", "grids.md#mrope")
def every_pair_of_mrope() -> Found:
    """Two patches of one picture: how many of 64 pairs turn differently, in Qwen2-VL and in Qwen3-VL."""
    first, second = np.asarray(mrope_coordinates([(1, 2, 2)]))[[0, 3]]
    alike = {
        name: int(((second - first) @ mrope_frequencies(128, sections, interleaved=turns) == 0).sum())
        for name, sections, turns in (("qwen2", (16, 24, 24), False), ("qwen3", (24, 20, 20), True))
    }
    return found(max(alike.values()) == 0, **alike)


@claim("false", "times.md#learned-scale")
def scale_finds_the_unit() -> Found:
    """Periods from 2 to 32 seconds, times in minutes: the scale that training finds, where 60 would be right."""
    layer = TimeEncoding(16, shortest=2.0, longest=32.0, learned_scale=True)
    run = train_gap_task(layer, unit=60)
    scale = run.scale or 1.0
    return found(abs(scale / 60 - 1) < 0.1, scale=scale, right=run.by_seconds[10])


@claim("false", "times.md#periodic")
def sinusoids_suit_seasons() -> Found:
    """Hours at width 64: the wavelength nearest to a day, and how far it has fallen behind after twelve days."""
    waves = sinusoidal_wavelengths(64)
    nearest = waves[np.abs(waves - 24).argmin()]
    behind = abs(288 / nearest - 12)
    return found(behind < 0.05, nearest=nearest, behind=behind)


@claim("only if", "times.md#scale")
def shorter_periods_are_better() -> Found:
    """Two frames at 25 a second: codes whose shortest and longest period are 0.04 and 0.08, or 0.4 and 0.8 seconds."""
    frames = np.array([0.0, 0.04, 0.08])
    short, long = (time_encoding(frames, 4, shortest=s, longest=2 * s) for s in (0.04, 0.4))
    # after two frames both short periods have gone round a whole number of times
    again, apart = np.abs(short[2] - short[0]).max(), np.abs(long[2] - long[0]).max()
    return found(np.abs(short[1] - short[0]).max() > 1, again < 1e-9, apart=apart)
