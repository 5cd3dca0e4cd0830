"""Claims about likeness, decay and reach: what falls with distance, and what a head can look at."""

import numpy as np

from posenc import (
    alibi_bias,
    alibi_slopes,
    apply_rotary,
    contextual_positions,
    dot_product_attention,
    forget_bias,
    rbf_centers,
    rbf_encoding,
    sinusoidal_encoding,
    sinusoidal_frequencies,
)
from posenc.contextual import forget_positions
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.locality import gaussian_weights, locality_profile, rbf_kernel, total_variation
from posenc.rotary import head_frequencies, offset_query, rotary_matrix
from posenc.shift import (
    offset_head,
    offset_share,
    positional_scores,
    relative_kernel,
    split_block,
    toeplitz_spread,
)


@claim("false", "shift.md#monotone")
def likeness_falls() -> Found:
    rises = {
        f"d_{dim}": locality_profile(relative_kernel(np.arange(1, 201), dim)).first_rise
        for dim in (4, 64, 512)
    }
    numbers = {name: float(at) for name, at in rises.items() if at is not None}
    return found(not numbers, **numbers)


@claim("false", "locality.md#two-things")
def nearer_is_larger() -> Found:
    share = {
        f"d_{dim}": locality_profile(relative_kernel(np.arange(1, 201), dim)).nearer_wins
        for dim in (4, 64, 512)
    }
    return found(max(share.values()) == 1, **share)


@claim("false", "locality.md#frequencies")
def slow_pairs_are_local() -> Found:
    omega = sinusoidal_frequencies(512)
    fast, slow = (1 - np.cos(10 * half).mean() for half in np.split(omega, 2))
    return found(slow > fast, fast=fast, slow=slow)


@claim("only if", "rotary.md#decay")
def rotary_decays() -> Found:
    """Scores of equal queries and keys, and of independent ones, 0 and 100 positions apart."""
    alike = [64 * np.cos(offset * sinusoidal_frequencies(64)).mean() for offset in (0, 100)]
    q, k = np.random.default_rng(0).normal(size=(2, 20_000, 64))
    spread = [(apply_rotary(q, np.full(len(q), t)) * k).sum(axis=1).std() for t in (0, 100)]
    return found(
        alike[1] < 0.7 * alike[0],
        abs(spread[1] / spread[0] - 1) < 0.05,
        alike=alike[0],
        alike_100=alike[1],
        spread=spread[0],
        spread_100=spread[1],
    )


@claim("true", "rotary.md#formula")
def turns_subtract() -> Found:
    both = rotary_matrix(1000, 64).T @ rotary_matrix(1007, 64)
    return found(np.abs(both - rotary_matrix(7, 64)).max() < 1e-9)


@claim("false", "rotary.md#look-back")
def scores_proved_to_decay() -> Found:
    key, back = np.random.default_rng(0).normal(size=64), np.array([0, 12, 100])
    query = offset_query(key, -12)
    scores = apply_rotary(np.tile(query, (3, 1)), back) @ key
    return found(scores[0] > scores[1], here=scores[0], twelve=scores[1])


@claim("only if", "shift.md#projections")
def scores_see_the_offset_only() -> Found:
    codes, one = sinusoidal_encoding(100, 64), np.eye(64)
    w = np.random.default_rng(0).normal(0, 1 / 8, (2, 200, 64, 64))
    alone = toeplitz_spread(positional_scores(codes, one, one))
    share = offset_share(positional_scores(codes, w[0], w[1])).mean()
    return found(alone < 1e-9, share < 0.5, share=share)


@claim("true", "shift.md#split")
def weights_mix_offset_and_sum() -> Found:
    """A block of a random W_Q W_Kᵀ, split; each part alone puts together a score of the whole."""
    block = np.random.default_rng(0).normal(size=(2, 2))
    of_offset, of_sum = split_block(block)
    first, moved = (sinusoidal_encoding([t, u], 2) for t, u in ((3, 5), (13, 15)))
    offset_moved, sum_moved = (
        abs(moved[0] @ b @ moved[1] - first[0] @ b @ first[1]) for b in (of_offset, of_sum)
    )
    return found(np.allclose(of_offset + of_sum, block) and offset_moved < 1e-9 < sum_moved, moved=sum_moved)


@claim("false", "shift.md#direction")
def likeness_tells_direction() -> Found:
    before, after = relative_kernel([-7, 7], 64)
    return found(abs(before - after) > 1e-9, before=before, after=after)


@claim("only if", "shift.md#dot-product")
def weights_see_the_offset_only() -> Found:
    """Softmax divides by a sum that is another one near the ends."""
    codes = sinusoidal_encoding(200, 64)
    _, weights = dot_product_attention(codes, codes, codes)
    scores = codes @ codes.T
    edge, middle = weights[0, 1], weights[100, 101]
    return found(toeplitz_spread(scores) < 1e-9, edge > 1.1 * middle, edge=edge, middle=middle)


@claim("only if", "shift.md#offset-head")
def looks_three_ahead() -> Found:
    codes, weight = sinusoidal_encoding(200, 64), {}
    for gain in (1, 64):
        w_query, w_key = offset_head(3, 64, gain)
        _, weights = dot_product_attention(codes @ w_query, codes @ w_key, codes)
        weight[f"gain_{gain}"] = weights[100, 103]
    return found(weight["gain_64"] > 0.99, weight["gain_1"] < 0.1, **weight)


@claim("false", "rotary.md#false")
def one_frequency_finds_a_period() -> Found:
    one = np.tile([1.0, 0.0], (51, 1))
    scores = (
        apply_rotary(one, 51, frequencies=[np.pi / 6])
        @ apply_rotary(one[:1], [50], frequencies=[np.pi / 6])[0]
    )
    ties = (scores > scores.max() - 1e-9).sum()
    return found(ties == 1, ties=ties)


@claim("only if", "rotary.md#heads")
def heads_differ_in_frequency() -> Found:
    x, usual = np.ones((2, 5, 2)), apply_rotary(np.ones((2, 5, 2)), 5)
    own = apply_rotary(x, 5, frequencies=head_frequencies([[4.0], [512.0]]))
    return found(np.abs(own[0] - own[1]).max() > 0.1, np.array_equal(usual[0], usual[1]))


@claim("true", "alibi.md#formula")
def alibi_sees_distance_only() -> Found:
    slopes = alibi_slopes(8)
    long, short = alibi_bias(slopes, 300), alibi_bias(slopes, 100)
    ratio = np.exp(short[0, 1, 0] - short[0, 1, 1])
    return found(np.array_equal(long[:, 200:, 200:], short), ratio=ratio)


@claim("false", "contextual.md#gate")
def gate_is_no_code() -> Found:
    """A forget gate that is the same for all tokens, beside ALiBi."""
    past = np.tri(20, dtype=bool)
    gate, alibi = forget_bias(np.full((1, 20), -0.5))[0][past], alibi_bias(0.5, 20)[past]
    return found(np.abs(gate - alibi).max() > 1e-9)


@claim("false", "alibi.md#never-hard")
def alibi_is_a_window() -> Found:
    slopes = np.asarray(alibi_slopes(8))
    bias = np.asarray(alibi_bias(slopes, [1000], 1001))[:, 0]
    weights = np.exp(bias) / np.exp(bias).sum(axis=1, keepdims=True)
    far = weights[:, 900]
    return found(far.min() == 0, far.min() > 0, steep=far[0], flat=far[-1], lead=99 * slopes[-1])


@claim("only if", "locality.md#blur")
def gaussian_attention() -> Found:
    offsets, apart = np.arange(101) - np.arange(101)[:, None], []
    for peak in (0.38, 26.6):
        weights = np.exp(peak * rbf_kernel(offsets, 3.0) / rbf_kernel(1, 3.0))
        weights /= weights.sum(axis=1, keepdims=True)
        apart.append(total_variation(weights, gaussian_weights(101, 3 * np.sqrt(2 / peak)))[50])
    return found(apart[1] < 0.02, apart[0] > 0.5, low=apart[0], high=apart[1])


@claim("only if", "locality.md#conditions")
def bumps_fall_smoothly() -> Found:
    own = []
    for centers in (rbf_centers(101, 3.0), np.arange(101), np.arange(-18, 120, 6)):
        codes = rbf_encoding(101, centers, 3.0)
        own.append(((codes @ codes.T).argmax(axis=1) == np.arange(101)).mean())
    return found(own[0] == 1, own[2] < 0.5, ends=own[1], wide=own[2])


@claim("false", "locality.md#false")
def local_or_not() -> Found:
    within = []
    for scale in (1 / 8, 1.0):
        weights = np.exp(scale * relative_kernel(np.arange(-100, 101), 64))
        within.append(weights[95:106].sum() / weights.sum())
    return found(within[1] < 1.1 * within[0], low=within[0], high=within[1])


@claim("only if", "shift.md#projections")
def sinusoids_show_offsets() -> Found:
    """The share of the offset in the scores of a head that looks three back, and of random heads."""
    codes = sinusoidal_encoding(100, 64)
    w_query, w_key = offset_head(-3, 64, 1)
    made = offset_share(positional_scores(codes, w_query, w_key))
    random = np.random.default_rng(0).normal(0, 1 / 8, (2, 200, 64, 64))
    share = offset_share(positional_scores(codes, *random)).mean()
    return found(made > 0.999, share < 0.5, share=share)


@claim("only if", "locality.md#frequencies")
def fast_is_for_the_near() -> Found:
    """How far apart two positions are by the fastest pair, by the slowest, and by each half of the pairs."""
    omega = sinusoidal_frequencies(512)

    def apart(pairs: slice, steps: int) -> float:
        return float(np.sqrt((2 - 2 * np.cos(steps * omega[pairs])).mean()))

    fastest, slowest = slice(0, 1), slice(255, 256)
    next_, again = apart(fastest, 1), apart(fastest, 44)
    far = apart(slowest, 20_000)
    fast, slow = apart(slice(0, 128), 1), apart(slice(128, 256), 1)
    return found(
        again < 0.1 * next_ and far > 0.9,
        fast > 10 * slow,
        next=next_, again=again, far=far, fast=fast, slow=slow,
    )  # fmt: skip


@claim("false", "locality.md#soft-hard")
def soft_bias_cuts() -> Found:
    """ALiBi with slope 1/2, a key 40 back: its weight among equal scores, and if its score is higher by 30."""
    bias = np.asarray(alibi_bias(0.5, [40], 41))[0]
    weights = []
    for lead in (0.0, 30.0):
        scores = np.exp(bias + lead * (np.arange(41) == 0))
        weights.append(scores[0] / scores.sum())
    return found(weights[0] == 0, weights[1] > 0.9, equal=weights[0], higher=weights[1])


@claim("false", "contextual.md#false")
def forgotten_is_gone() -> Found:
    """A forget gate of 0.9, a key 50 tokens back: its weight if its score is higher by 12."""
    bias = np.asarray(forget_bias(np.log(np.full((1, 51), 0.9)), 1))[0, 0]
    scores = np.exp(bias + 12.0 * (np.arange(51) == 0))
    weight = scores[0] / scores.sum()
    return found(weight < 0.01, left=0.9**50, weight=weight)


@claim("false", "contextual.md#false")
def cope_is_one_method() -> Found:
    """Two of the methods of this name, in two texts: gates count, clipped RoPE sees the offset alone."""
    gates = np.array([[0.0, 1.0, 0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]])
    counted = [float(contextual_positions(row[None], max_position=8)[0, 0]) for row in gates]
    clipped = np.where(np.arange(4) < 3, sinusoidal_frequencies(8), 0)
    scores = apply_rotary(np.ones((6, 8)), 6, frequencies=clipped) @ np.ones(8)
    return found(counted[0] == counted[1], first=counted[0], second=counted[1], clipped=scores[5] / 8)


@claim("false", "contextual.md#false")
def only_cope_counts() -> Found:
    """A forget gate that is 1/e at the end of a sentence and nearly 1 elsewhere, over sentences of nine words."""
    ends = np.arange(1, 61) % 10 == 0
    counted = forget_positions(np.where(ends, -1.0, -1e-4)[None])[0]
    error = np.abs(counted - ends.cumsum()).max()
    return found(error > 0.1, sentences=ends.sum(), error=error)


@claim("only if", "contextual.md#task")
def counts_at_any_length() -> Found:
    """Gates of 1 at ends of sentences: with 0 at words, with 0.03 at 200 words, and over more than max_position."""

    def counted(word: float, words: int, sentences: int) -> float:
        gates = np.tile(np.r_[np.full(words, word), 1.0], sentences)
        return float(contextual_positions(gates[None], max_position=8)[0, 0])

    exact, many, more = counted(0.0, 9, 5), counted(0.03, 200, 1), counted(0.0, 9, 20)
    return found(exact == 5, many > 2 and more == 8, many=many, more=more)
