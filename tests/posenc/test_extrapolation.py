"""What of a long text was never met in training: angles, rows, numbers of keys, distances."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import dot_product_attention, logn_scale, sinusoidal_frequencies
from posenc.extrapolation import (
    attention_entropy,
    first_negative,
    row_visits,
    score_needed,
    smallest_base,
    turns,
    unseen_angles,
)
from posenc.rotary import linear_frequencies, ntk_frequencies, proportional_frequencies
from posenc.shift import relative_kernel
from tests.posenc.refusals import refused

LENGTHS = st.integers(2, 400)

# --- Angles


@given(LENGTHS, st.integers(1, 8), st.sampled_from([4, 8, 32]))
def test_unseen_angles_are_those_that_no_shorter_offset_has(trained: int, factor: int, dim: int) -> None:
    """Counted on a fine circle instead of solved for."""
    frequencies = sinusoidal_frequencies(dim)
    n = trained * factor
    cells = 4096
    for omega, share in zip(frequencies, unseen_angles(frequencies, trained, n), strict=True):
        reached = [
            np.unique(np.floor(np.linspace(0, omega * reach, 10**4) % (2 * math.pi) / (2 * math.pi) * cells))
            for reach in (trained, n)
        ]
        new = np.setdiff1d(reached[1], reached[0]).size / cells
        assert share == pytest.approx(new, abs=3 / cells if omega * n < 12 else 1)
        assert share == 0 or omega * trained < 2 * math.pi


@given(LENGTHS, st.integers(1, 16))
def test_interpolation_reaches_nothing_new(trained: int, factor: int) -> None:
    usual = sinusoidal_frequencies(16)
    assert unseen_angles(usual, trained, trained).tolist() == [0] * 8
    linear = linear_frequencies(16, factor)
    np.testing.assert_allclose(
        unseen_angles(usual, trained, trained * factor, stretched=linear), 0, atol=1e-12
    )
    ntk = unseen_angles(usual, trained, trained * factor, stretched=ntk_frequencies(16, factor))
    assert ntk[-1] == pytest.approx(0, abs=1e-12)  # made for the slowest pair; those before it go too far
    assert (ntk <= unseen_angles(usual, trained, trained * factor) + 1e-12).all()


# --- The sum of cosines


@pytest.mark.parametrize(("dim", "base"), [(64, 1e4), (128, 1e4), (128, 5e5), (256, 1e4)])
def test_the_first_negative_sum_is_that_of_the_kernel(dim: int, base: float) -> None:
    found = first_negative(sinusoidal_frequencies(dim, base))
    assert found is not None
    kernel = relative_kernel(found + 1, dim, base=base)
    assert kernel[found] < 0 <= kernel[:found].min()


def test_no_sum_is_negative_where_enough_pairs_stand_still() -> None:
    assert first_negative(proportional_frequencies(16, 0.5), limit=10**5) is None
    assert first_negative(sinusoidal_frequencies(128), limit=1706) is None
    assert first_negative(sinusoidal_frequencies(128), limit=1707) == 1707


# --- Attention that spreads


@given(st.integers(1, 500), st.floats(0, 8))
def test_entropy_of_one_key_ahead_of_the_others(n: int, lead: float) -> None:
    weights = np.exp(np.array([lead] + [0.0] * (n - 1)))
    weights /= weights.sum()
    w, rest = weights[0], 1 - weights[0]
    expected = -w * math.log(w) - (rest * math.log(rest / (n - 1)) if n > 1 else 0)
    assert float(attention_entropy(weights)) == pytest.approx(expected, abs=1e-9)


def test_entropy_is_that_of_torch_and_takes_empty_rows() -> None:
    torch.manual_seed(0)
    weights = torch.softmax(4 * torch.randn(3, 5, 40), dim=-1)
    theirs = torch.distributions.Categorical(probs=weights).entropy()
    torch.testing.assert_close(attention_entropy(weights), theirs)
    weights[0, 0] = 0
    assert float(attention_entropy(weights)[0, 0]) == 0
    low = attention_entropy(weights.bfloat16())
    assert low.dtype == torch.float32
    torch.testing.assert_close(low, attention_entropy(weights), atol=0.05, rtol=0.01)


@given(st.integers(2, 10**5), st.floats(1, 1000), st.floats(1, 3))
def test_with_log_n_a_large_lead_keeps_half_of_the_weight(trained: int, times: float, size: float) -> None:
    n = int(trained * times)
    lead = size * math.log(trained)
    scaled = lead * logn_scale(np.array([n - 1]), trained)[0]
    plain, kept = (1 / (1 + (n - 1) * math.exp(-s)) for s in (lead, scaled))
    assert plain <= kept + 1e-12
    assert kept >= 0.5
    # A smaller lead only falls more slowly.
    lead, scaled = lead / size / 2, scaled / size / 2
    plain, kept = (1 / (1 + (n - 1) * math.exp(-s)) for s in (lead, scaled))
    assert plain <= kept + 1e-12 <= 1 / (1 + (trained - 1) / trained**0.5) + 1e-9


def test_log_n_is_one_within_training_and_goes_on_queries() -> None:
    np.testing.assert_array_equal(logn_scale(32, 32), np.ones(32))
    assert logn_scale(np.array([1023]), 32)[0] == 2
    assert logn_scale(40, 32, dtype=torch.bfloat16).dtype == torch.bfloat16
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 50, 8)
    factor = logn_scale(torch.arange(50), 8)[:, None]
    scores = (q * factor) @ k.transpose(-1, -2) / 8**0.5
    later = torch.ones(50, 50, dtype=torch.bool).triu(1)
    expected = torch.softmax(scores.masked_fill(later, -math.inf), dim=-1)
    torch.testing.assert_close(dot_product_attention(q * factor, k, v, mask=later)[1], expected)
    # One token with a cache has the factor that it had in the full pass.
    torch.testing.assert_close(logn_scale(torch.tensor([49]), 8)[:, None], factor[49:])


# --- What a key needs


@given(st.lists(st.floats(-60, 60), min_size=2, max_size=30), st.floats(0.01, 0.99), st.integers(0, 29))
def test_a_key_that_scores_what_it_needs_gets_its_share(bias: list[float], share: float, at: int) -> None:
    at %= len(bias)
    b = np.array(bias)
    scores = b.copy()
    scores[at] += score_needed(b, share)[at]
    weights = np.exp(scores - scores.max())
    assert weights[at] / weights.sum() == pytest.approx(share, rel=1e-9)


# --- Rows


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 40))
def test_visits_are_what_counting_finds(rows: int, length: int, last: int) -> None:
    if last + length > rows:
        with pytest.raises(ValueError, match="max_start must be at most num_rows - length"):
            row_visits(rows, length, max_start=last)
        return
    counted = np.zeros(rows)
    for start in range(last + 1):
        counted[start : start + length] += 1
    np.testing.assert_allclose(row_visits(rows, length, max_start=last), counted / (last + 1))


# --- What is refused


test_what_has_no_answer_is_refused = refused([
    (lambda: turns([[1.0]], 5), ValueError, r"frequencies must have shape \(pairs,\), got \(1, 1\)"),
    (lambda: turns([-1.0], 5), ValueError, "frequencies must be at least 0, got -1"),
    (lambda: unseen_angles([1.0], 4, 8, stretched=[1.0, 2.0]), ValueError, "stretched must be of the library"),
    (lambda: smallest_base(99, 7), ValueError, "dim must be even"),
    (lambda: attention_entropy(np.array([0.5, 0.1])), ValueError, "sum of each row of weights must be 1, or 0"),
    (lambda: attention_entropy(np.array([1.5, -0.5])), ValueError, "weights must be at least 0"),
    (lambda: attention_entropy(np.array(1.0)), ValueError, r"weights must have shape \(\.\.\., n\)"),
    (lambda: score_needed(np.zeros(1)), ValueError, r"biases must have shape \(\.\.\., n\) with n >= 2"),
    (lambda: score_needed(np.zeros(3), 1.0), ValueError, "share must be below 1"),
    (lambda: score_needed(np.array([0, -np.inf])), ValueError, "biases must be finite"),
])  # fmt: skip
