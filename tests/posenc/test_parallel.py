"""Shards hold every position once, and attention over a ring of them is that over the whole sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import alibi_bias, alibi_slopes, apply_rotary, causal_mask, dot_product_attention
from posenc.parallel import Scheme, ring_attention, ring_step, ring_work, shard_positions

SCHEMES: tuple[Scheme, ...] = ("contiguous", "zigzag", "striped")
schemes = st.sampled_from(SCHEMES)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


# --- who holds what


@given(scheme=schemes, world=st.integers(1, 8), chunk=st.integers(0, 5))
def test_every_position_has_one_rank(scheme: Scheme, world: int, chunk: int) -> None:
    n = 2 * world * chunk
    shards = [shard_positions(n, rank, world, scheme=scheme) for rank in range(world)]
    assert {len(shard) for shard in shards} == {n // world}
    assert sorted(np.concatenate(shards)) == list(range(n))
    assert all((np.diff(shard) > 0).all() for shard in shards)


def test_shards_by_hand() -> None:
    shards = {
        scheme: [shard_positions(8, r, 2, scheme=scheme).tolist() for r in (0, 1)] for scheme in SCHEMES
    }
    assert shards == {
        "contiguous": [[0, 1, 2, 3], [4, 5, 6, 7]],
        "zigzag": [[0, 1, 6, 7], [2, 3, 4, 5]],
        "striped": [[0, 2, 4, 6], [1, 3, 5, 7]],
    }
    like = shard_positions(8, 1, 2, like=torch.zeros(1))
    assert isinstance(like, torch.Tensor)
    assert like.dtype == torch.int64


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((8, 2, 2), ValueError, "rank must be below world 2, got 2"),
        ((8, -1, 2), ValueError, "rank must be at least 0, got -1"),
        ((8, 0, 0), ValueError, "world must be at least 1, got 0"),
        ((7, 0, 2), ValueError, "n must be a multiple of 2 for contiguous shards of 2 ranks, got 7"),
        ((6, 0, 2, "zigzag"), ValueError, "n must be a multiple of 4 for zigzag shards of 2 ranks, got 6"),
        ((8, 0, 2, "ring"), ValueError, 'scheme must be "contiguous", "zigzag" or "striped", got \'ring\''),
        ((8.0, 0, 2), TypeError, r"n must be an integer, got 8\.0"),
    ],
)
def test_bad_shards_are_named(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    *numbers, scheme = arguments if isinstance(arguments[-1], str) else (*arguments, "contiguous")
    with pytest.raises(error, match=message):
        shard_positions(*numbers, scheme=scheme)


# --- who has how much to do


@given(scheme=schemes, world=st.integers(1, 6), chunk=st.integers(1, 4))
def test_work_is_counted_by_pairs(scheme: Scheme, world: int, chunk: int) -> None:
    n = 2 * world * chunk
    work = ring_work(n, world, scheme=scheme)
    allowed = ~causal_mask(n)
    shards = [shard_positions(n, rank, world, scheme=scheme) for rank in range(world)]
    for rank in range(world):
        for step in range(world):
            block = allowed[np.ix_(shards[rank], shards[(rank - step) % world])]
            assert work[rank, step] == block.sum()
    assert work.sum() == n * (n + 1) // 2


@given(world=st.integers(1, 8), chunk=st.integers(1, 5))
def test_zigzag_is_balanced_in_every_step(world: int, chunk: int) -> None:
    """And contiguous shards wait for full blocks: almost twice as long with many ranks."""
    n, c = 2 * world * chunk, 2 * chunk
    work = ring_work(n, world, scheme="zigzag")
    assert (work == work[0]).all()
    slowest = ring_work(n, world).max(axis=0).sum()
    assert slowest == c * (c + 1) // 2 + (world - 1) * c**2
    striped = ring_work(n, world, scheme="striped").max(axis=0).sum()
    assert work.max(axis=0).sum() <= striped <= slowest
    assert striped == world * c * (c + 1) // 2


# --- the ring


def sharded(x: Any, places: list[Any]) -> list[Any]:
    return [x[..., at, :] for at in places]


def joined(outputs: list[Any], places: list[Any]) -> Any:
    whole = np.empty((*outputs[0].shape[:-2], sum(len(at) for at in places), outputs[0].shape[-1]))
    for output, at in zip(outputs, places, strict=True):
        whole[..., at, :] = output
    return whole


@given(scheme=schemes, world=st.integers(1, 5), causal=st.booleans(), rotated=st.booleans(), alibi=st.booleans(),
       seed=st.integers(0, 99))  # fmt: skip
def test_ring_is_attention_over_the_whole_sequence(
    scheme: Scheme, world: int, causal: bool, rotated: bool, alibi: bool, seed: int
) -> None:
    n = 4 * world
    q, k, v = random(3, 2, 3, n, 8, seed=seed) * 3
    slopes = alibi_slopes(3) if alibi else None
    turned_q, turned_k = (apply_rotary(q, n), apply_rotary(k, n)) if rotated else (q, k)
    bias = None if slopes is None else alibi_bias(slopes, n, causal=causal)[None]
    mask = causal_mask(n) if causal else None
    expected, _ = dot_product_attention(turned_q, turned_k, v, bias=bias, mask=mask)
    places = [shard_positions(n, rank, world, scheme=scheme) for rank in range(world)]
    queries, keys = sharded(q, places), sharded(k, places)
    if rotated:  # on each rank, before the ring, by its own positions
        queries, keys = (
            [apply_rotary(x, at) for x, at in zip(xs, places, strict=True)] for xs in (queries, keys)
        )
    outputs = ring_attention(queries, keys, sharded(v, places), places, causal=causal, slopes=slopes)
    np.testing.assert_allclose(joined(outputs, places), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_few_roundings_in_torch(dtype: torch.dtype) -> None:
    n, world = 64, 8
    q, k, v = (torch.from_numpy(x).to(dtype) for x in random(3, 2, n, 16))
    places = [shard_positions(n, rank, world, scheme="zigzag", like=q) for rank in range(world)]
    queries, keys, values = (sharded(x, places) for x in (q, k, v))
    outputs = ring_attention(queries, keys, values, places)
    assert {x.dtype for x in outputs} == {dtype}
    whole, _ = dot_product_attention(*(x.double() for x in (q, k, v)), mask=causal_mask(n, like=q))
    got = torch.cat(outputs, dim=-2)[..., torch.cat(places).argsort(), :]
    # bfloat16 is computed in float32, and rounded once.
    eps = torch.finfo(dtype).eps
    slack = 8 * eps if dtype != torch.bfloat16 else eps / 2 + 1e-5
    assert ((got.double() - whole).abs() <= slack * whole.abs().clamp(min=1)).all()


def test_what_a_rank_has_stays_in_float32_under_autocast() -> None:
    x, at = torch.from_numpy(random(4, 8)).float(), np.arange(4)
    expected = ring_step(ring_step(None, x, x, x, at, at), x, x, x, at, at - 4)
    with torch.autocast("cpu", torch.bfloat16):
        got = ring_step(ring_step(None, x, x, x, at, at), x, x, x, at, at - 4)
    for ours, wanted in zip(got, expected, strict=True):
        assert torch.equal(ours, wanted)


def test_counting_from_zero_on_each_rank_is_wrong() -> None:
    n, world = 16, 4
    q, k, v = random(3, n, 8)
    places = [shard_positions(n, rank, world) for rank in range(world)]
    local = [np.arange(n // world)] * world
    expected, _ = dot_product_attention(apply_rotary(q, n), apply_rotary(k, n), v, mask=causal_mask(n))
    errors = {}
    for turns, masks in ((places, places), (local, places), (places, local)):
        queries, keys = (
            [apply_rotary(x, at) for x, at in zip(sharded(y, places), turns, strict=True)] for y in (q, k)
        )
        if masks is local:  # one process sees that a position comes twice; without a mask it does not matter
            with pytest.raises(
                ValueError, match=r"positions must be those in the whole sequence.* got 0 in 4 places"
            ):
                ring_attention(queries, keys, sharded(v, places), masks)
            assert len(ring_attention(queries, keys, sharded(v, places), masks, causal=False)) == world
            alone = np.tile(causal_mask(n // world), (world, world))
            wrong, _ = dot_product_attention(apply_rotary(q, n), apply_rotary(k, n), v, mask=alone)
            errors[False, True] = abs(wrong - expected).max()
            continue
        outputs = ring_attention(queries, keys, sharded(v, places), masks)
        errors[turns is local, masks is local] = abs(joined(outputs, places) - expected).max()
    assert errors[False, False] < 1e-14
    assert errors[True, False] > 0.1
    assert errors[False, True] > 0.1


@pytest.mark.parametrize(
    ("shards", "error", "message"),
    [
        ([], ValueError, "queries must hold at least one shard, got an empty list"),
        (None, TypeError, "queries must be a list with a shard for each rank, got NoneType"),
    ],
)
def test_a_ring_of_nobody_is_refused(shards: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ring_attention(shards, [], [], [])


def test_one_shift_of_all_positions_changes_nothing() -> None:
    """RoPE, ALiBi and the mask know offsets: what a rank must know is where it stands among the others."""
    n = 8
    q, k, v = random(3, 2, n, 4)
    places = [shard_positions(n, rank, 2) for rank in range(2)]
    results = []
    for start in (0, 1000):
        queries, keys = ([apply_rotary(x[:, at], at + start) for at in places] for x in (q, k))
        moved = [at + start for at in places]
        outputs = ring_attention(queries, keys, [v[:, at] for at in places], moved, slopes=alibi_slopes(2))
        results.append(np.concatenate(outputs, axis=1))
    np.testing.assert_allclose(results[1], results[0], atol=1e-11)


def test_blocks_may_come_in_any_order_and_a_query_without_keys_gives_zero() -> None:
    q, k, v = random(3, 6, 4)
    t, u = np.arange(3), np.arange(6)
    expected, _ = dot_product_attention(q[:3], k, v, mask=u > t[:, None])
    for blocks in ([5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5], [3, 0, 5, 1, 4, 2]):
        state = None
        for block in blocks:
            at = slice(block, block + 1)
            state = ring_step(state, q[:3], k[at], v[at], t, u[at])
            assert np.isfinite(state[0]).all()
        assert state is not None
        np.testing.assert_allclose(state[0], expected, atol=1e-15)
    never = ring_step(ring_step(None, q, k, v, u, u + 9), q, k, v, u, u + 9)
    assert (never[0] == 0).all()
    assert (never[1] == -np.inf).all()


def test_large_scores_neither_overflow_nor_vanish() -> None:
    x = np.eye(4) * 1e3
    shards, places = [x[:2], x[2:]], [np.array([0, 1]), np.array([2, 3])]
    outputs = ring_attention(shards, shards, shards, places, causal=False)
    np.testing.assert_array_equal(np.concatenate(outputs), x)


X, AT = random(3, 4, 2), np.arange(4)


def test_gradients_are_those_of_the_whole_sequence() -> None:
    q, k, v = (torch.from_numpy(x).requires_grad_() for x in random(3, 8, 4))
    places = [shard_positions(8, rank, 4, scheme="zigzag", like=q) for rank in range(4)]
    queries, keys, values = (sharded(x, places) for x in (q, k, v))
    outputs = ring_attention(queries, keys, values, places)
    weights = torch.from_numpy(random(8, 4, seed=1))
    with torch.autograd.set_detect_anomaly(True):
        loss = sum((output * weights[at]).sum() for output, at in zip(outputs, places, strict=True))
        got = torch.autograd.grad(loss, (q, k, v))
    whole, _ = dot_product_attention(q, k, v, mask=causal_mask(8, like=q))
    for ours, theirs in zip(got, torch.autograd.grad((whole * weights).sum(), (q, k, v)), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"key_positions": range(4)}, TypeError, r"key_positions must be .* got range\(0, 4\)"),
        ({"key_positions": 4}, TypeError, "key_positions must be an array, positions in the whole sequence, got 4"),
        ({"key_positions": AT > 0}, TypeError, "key_positions must be integers, float32 or float64, got dtype bool"),
        ({"query_positions": [0.0, 1.0, 2.0, np.nan]}, ValueError, "query_positions must be finite, got nan"),
        ({"query": X[0, 0]}, ValueError, r"query must have shape \(\.\.\., length, width\), got \(2,\)"),
        ({"slopes": np.ones(2)}, ValueError, r"slopes must be .* for each head of query \(3, 4, 2\), got 2"),
        ({"query": X[0], "key": X[0], "value": X[0], "slopes": np.ones(3)}, ValueError, "slopes must be a number"),
        ({"state": (X, X)}, ValueError, r"state must have shapes \(3, 4, 2\) and \(3, 4, 1\), .* got"),
        ({"state": 5}, TypeError, "state must be None or what the last step gave, got 5"),
        ({"state": (X, 5)}, TypeError, "state must be None or what the last step gave"),
        ({"state": (X[:1], X[:1, :, :1])}, ValueError, "state must have shapes"),
        ({"causal": None}, TypeError, "causal must be True or False, got None"),
    ],
)  # fmt: skip
def test_bad_steps_are_named(change: dict[str, Any], error: type[Exception], message: str) -> None:
    given = {"state": None, "query": X, "key": X, "value": X, "query_positions": AT, "key_positions": AT}
    with pytest.raises(error, match=message):
        ring_step(**{**given, **change})


def test_positions_may_be_a_list() -> None:
    for got, wanted in zip(
        ring_step(None, X, X, X, [0, 1, 2, 3], AT), ring_step(None, X, X, X, AT, AT), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keys": 1}, "keys must hold one shard for each of the 2 queries, got 1"),
        ({"positions": 1}, "positions must hold one shard for each of the 2 queries, got 1"),
        ({"places": np.arange(3)}, r"query_positions must have shape \(4,\), got \(3,\)"),
    ],
)
def test_bad_rings_are_named(change: dict[str, Any], message: str) -> None:
    x = [random(4, 2)] * 2
    places = [change.get("places", np.arange(4)), np.arange(4, 8)]
    with pytest.raises(ValueError, match=message):
        ring_attention(x, x[: change.get("keys", 2)], x, places[: change.get("positions", 2)])
