"""The small model with a cache: equal to layers of posenc, whoever lies in which slot."""

import numpy as np
import pytest

from posenc import apply_rotary, causal_mask, dot_product_attention
from posenc.experiments import KeyValueCache, cached_pass, largest_error
from posenc.experiments.serving import WEIGHTS

TEXT, AT = np.random.default_rng(0).normal(size=(2, 12, 16)), np.arange(12)


def test_one_pass_is_two_layers_of_attention() -> None:
    x = TEXT
    for w_q, w_k, w_v, w_o in WEIGHTS:
        q, k = (apply_rotary(x @ w, 12) for w in (w_q, w_k))
        x = x + dot_product_attention(q, k, x @ w_v, mask=causal_mask(12))[0] @ w_o
    assert largest_error(cached_pass(TEXT, AT)[0], x) == 0


def test_slots_may_stand_in_any_order_and_empty_ones_are_not_seen() -> None:
    full, whole = cached_pass(TEXT, AT)
    cache = KeyValueCache.empty(20, 2)
    cache.keys[:] = cache.values[:] = 7.0
    slots = np.random.default_rng(1).permutation(20)[:8]
    cache.put(slots, whole.at(slice(0, 8)))
    y, longer = cached_pass(TEXT[:, 8:], AT[8:], cache)
    assert largest_error(y, full[:, 8:]) == 0
    assert longer.positions.shape == (2, 24)
    cache.positions[cache.positions < 0] = 0  # now they are
    assert largest_error(cached_pass(TEXT[:, 8:], AT[8:], cache)[0], full[:, 8:]) > 0.1


def test_a_window_is_a_mask() -> None:
    back = AT[:, None] - AT
    masked, _ = cached_pass(TEXT, AT, hidden=(back < 0) | (back >= 4))
    assert np.array_equal(cached_pass(TEXT, AT, window=4)[0], masked)
    with pytest.raises(ValueError, match="either hidden or window, got both"):
        cached_pass(TEXT, AT, hidden=back < 0, window=4)
