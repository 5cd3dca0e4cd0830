"""Shards hold every position once, and attention over a ring of them is that over the whole sequence."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.alibi import alibi_bias, alibi_slopes
from posenc.attention import dot_product_attention
from posenc.masks import causal_mask
from posenc.parallel import Scheme, ring_attention, ring_step, ring_work, shard_positions
from posenc.rotary import apply_rotary
from tests.posenc.calls import normal
from tests.posenc.refusals import refused

SCHEMES: tuple[Scheme, ...] = ("contiguous", "zigzag", "striped")
schemes = st.sampled_from(SCHEMES)


def shards(n: int, world: int, scheme: Scheme, like: Any = None) -> list[Any]:
    """The positions of every rank."""
    return [shard_positions(n, rank, world, scheme=scheme, like=like) for rank in range(world)]


# --- Who holds what, and who has how much to do


@given(scheme=schemes, world=st.integers(1, 8), chunk=st.integers(0, 5))
def test_every_position_has_one_rank(scheme: Scheme, world: int, chunk: int) -> None:
    n = 2 * world * chunk
    places = shards(n, world, scheme)
    assert {len(shard) for shard in places} == {n // world}
    assert sorted(np.concatenate(places)) == list(range(n))
    assert all((np.diff(shard) > 0).all() for shard in places)


def test_shards_by_hand() -> None:
    by_hand = {
        "contiguous": [[0, 1, 2, 3], [4, 5, 6, 7]],
        "zigzag": [[0, 1, 6, 7], [2, 3, 4, 5]],
        "striped": [[0, 2, 4, 6], [1, 3, 5, 7]],
    }
    assert {scheme: np.stack(shards(8, 2, scheme)).tolist() for scheme in SCHEMES} == by_hand
    like = shard_positions(8, 1, 2, like=torch.zeros(1))
    assert isinstance(like, torch.Tensor)
    assert like.dtype == torch.int64


@given(scheme=schemes, world=st.integers(1, 6), chunk=st.integers(1, 4))
def test_work_is_counted_by_pairs(scheme: Scheme, world: int, chunk: int) -> None:
    n = 2 * world * chunk
    work, places = ring_work(n, world, scheme=scheme), shards(n, world, scheme)
    for rank, step in np.ndindex(world, world):
        pairs = np.ix_(places[rank], places[(rank - step) % world])
        assert work[rank, step] == (~causal_mask(n))[pairs].sum()
    assert work.sum() == n * (n + 1) // 2


@given(world=st.integers(1, 8), chunk=st.integers(1, 5))
def test_zigzag_is_balanced_in_every_step(world: int, chunk: int) -> None:
    """And contiguous shards wait for full blocks: almost twice as long with many ranks."""
    n, c = 2 * world * chunk, 2 * chunk
    work = ring_work(n, world, scheme="zigzag")
    assert (work == work[0]).all()
    slowest, striped = (ring_work(n, world, scheme=s).max(axis=0).sum() for s in ("contiguous", "striped"))
    assert slowest == c * (c + 1) // 2 + (world - 1) * c**2
    assert work.max(axis=0).sum() <= striped <= slowest
    assert striped == world * c * (c + 1) // 2


# --- The ring


def sharded(x: Any, places: list[Any]) -> list[Any]:
    return [x[..., at, :] for at in places]


def joined(outputs: list[Any], places: list[Any]) -> Any:
    return np.concatenate(outputs, axis=-2)[..., np.argsort(np.concatenate(places)), :]


@given(scheme=schemes, world=st.integers(1, 5), causal=st.booleans(), rotated=st.booleans(), alibi=st.booleans(),
       start=st.sampled_from([0, 1000]), seed=st.integers(0, 99))  # fmt: skip
def test_ring_is_attention_over_the_whole_sequence(
    scheme: Scheme, world: int, causal: bool, rotated: bool, alibi: bool, start: int, seed: int
) -> None:
    """Wherever it starts: RoPE, ALiBi and the mask know offsets, and a rank where it stands among the others."""
    n = 4 * world
    q, k, v = normal(3, 2, 3, n, 8, seed=seed) * 3
    slopes = alibi_slopes(3) if alibi else None
    turned_q, turned_k = (apply_rotary(q, n), apply_rotary(k, n)) if rotated else (q, k)
    bias = None if slopes is None else alibi_bias(slopes, n, causal=causal)[None]
    mask = causal_mask(n) if causal else None
    expected, _ = dot_product_attention(turned_q, turned_k, v, bias=bias, mask=mask)
    places = shards(n, world, scheme)
    moved = [at + start for at in places]
    queries, keys = sharded(q, places), sharded(k, places)
    if rotated:  # on each rank, before the ring, by its own positions
        queries, keys = ([*map(apply_rotary, xs, moved)] for xs in (queries, keys))
    outputs = ring_attention(queries, keys, sharded(v, places), moved, causal=causal, slopes=slopes)
    np.testing.assert_allclose(joined(outputs, places), expected, rtol=0, atol=1e-13 if start == 0 else 1e-10)


def test_counting_from_zero_on_each_rank_is_refused() -> None:
    """Without a mask it does not matter."""
    n, world = 16, 4
    places, local = shards(n, world, "contiguous"), [np.arange(n // world)] * world
    parts = sharded(normal(n, 8), places)
    with pytest.raises(ValueError, match=r"positions must be those in .*sequence.* got 0 in 4 places"):
        ring_attention(parts, parts, parts, local)
    assert len(ring_attention(parts, parts, parts, local, causal=False)) == world


def test_blocks_may_come_in_any_order_and_a_query_without_keys_gives_zero() -> None:
    q, k, v = normal(3, 6, 4)
    t, u = np.arange(3), np.arange(6)
    expected, _ = dot_product_attention(q[:3], k, v, mask=u > t[:, None])
    for blocks in ([5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 4, 2]):
        state: Any = None
        for block in blocks:
            state = ring_step(state, q[:3], k[[block]], v[[block]], t, u[[block]])
            assert np.isfinite(state[0]).all()
        np.testing.assert_allclose(state[0], expected, atol=1e-15)
    never = ring_step(ring_step(None, q, k, v, u, u + 9), q, k, v, u, u + 9)
    assert (never[0] == 0).all()
    assert (never[1] == -np.inf).all()


def test_large_scores_neither_overflow_nor_vanish() -> None:
    x = np.eye(4) * 1e3
    halves = [x[:2], x[2:]]
    outputs = ring_attention(halves, halves, halves, [np.array([0, 1]), np.array([2, 3])], causal=False)
    np.testing.assert_array_equal(np.concatenate(outputs), x)


# --- Errors

X, AT = normal(3, 4, 2), np.arange(4)
ROWS, LATER = [X[0], X[1]], AT + 4


def step(**change: Any) -> Any:
    given = {"state": None, "query": X, "key": X, "value": X, "query_positions": AT, "key_positions": AT}
    return ring_step(**{**given, **change})


def test_positions_may_be_a_list() -> None:
    for got, wanted in zip(step(query_positions=[0, 1, 2, 3]), step(), strict=True):
        np.testing.assert_array_equal(got, wanted)


test_errors_name_the_argument = refused([
    (lambda: shard_positions(8, 2, 2), ValueError, "rank must be below world 2, got 2"),
    (lambda: shard_positions(7, 0, 2), ValueError, "n must be a multiple of 2 for contiguous shards of 2 ranks, got 7"),
    (lambda: shard_positions(6, 0, 2, scheme="zigzag"), ValueError, "multiple of 4 for zigzag shards of 2 .* got 6"),
    (lambda: step(key_positions=4), TypeError, "key_positions must be an array, positions in the whole .* got 4"),
    (lambda: step(query=X[0, 0]), ValueError, r"query must have shape \(\.\.\., length, width\), got \(2,\)"),
    (lambda: step(slopes=np.ones(2)), ValueError, r"slopes must be .* for each head of query \(3, 4, 2\), got 2"),
    (lambda: step(query=X[0], key=X[0], value=X[0], slopes=np.ones(3)), ValueError, "slopes must be a number"),
    (lambda: step(state=(X, X)), ValueError, r"state must have shapes \(3, 4, 2\) and \(3, 4, 1\), .* got"),
    (lambda: ring_attention([], [], [], []), ValueError, "queries must hold at least one shard, got an empty list"),
    (lambda: ring_attention(ROWS, ROWS[:1], ROWS, [AT, LATER]), ValueError, "keys must hold one .* 2 queries, got 1"),
    (lambda: ring_attention(ROWS, ROWS, ROWS, [AT]), ValueError, "positions must hold one shard .* 2 queries, got 1"),
    (lambda: ring_attention(ROWS, ROWS, ROWS, [AT[:3], LATER]), ValueError, r"query_positions .* \(4,\), got \(3,\)"),
])  # fmt: skip
