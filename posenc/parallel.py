"""Sequence parallelism: the positions of each rank's shard, and exact attention over shards in a ring.

Attention over all keys is a mean of attentions over blocks of keys, each weighted by its sum of e^score. So
keys can arrive block by block. A rotation, a bias or a mask needs only the positions of each block.

Sources: Liu, Zaharia, Abbeel: Ring Attention with Blockwise Transformers for Near-Infinite Context (2023),
section 3. https://arxiv.org/abs/2310.01889
Brandon et al.: Striped Attention: Faster Ring Attention for Causal Transformers (2023).
https://arxiv.org/abs/2311.09431
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from posenc._arrays import (
    Array,
    ArrayLike,
    ArrayT,
    Namespace,
    OneArray,
    is_array,
    is_concrete,
    namespace,
    to_device_of,
)
from posenc._checks import as_positions, check_flag, check_word, integer, is_length, of_library
from posenc.alibi import alibi_bias
from posenc.attention import attend, check_shapes

__all__ = ["ring_attention", "ring_step", "ring_work", "shard_positions"]

Scheme = Literal["contiguous", "zigzag", "striped"]
"""How positions are assigned to ranks."""

State = tuple[Array, Array]
"""The result for the keys so far: outputs (..., n_q, d_v) and log-sum-exp (..., n_q, 1), in float32 at least."""


def shard_positions(
    n: int, rank: int, world: int, *, scheme: Scheme = "contiguous", like: OneArray | None = None
) -> Array:
    """The positions of the tokens that one rank holds.

    contiguous: chunk `rank` of `world` equal chunks. zigzag: chunks rank and 2 · world − 1 − rank of 2 ·
    world chunks, an early and a late one. striped: rank, rank + world, rank + 2 · world, ...

    Args:
        n: tokens of the whole sequence, a multiple of world, or of 2 · world for zigzag. Pad other lengths.
        rank: index of the machine, from 0 to world − 1.
        world: number of machines, at least 1.
        scheme: "contiguous", "zigzag" or "striped". The last two balance the work under a causal mask, see
            `posenc.parallel.ring_work`.
        like: an array whose library and device the positions get. NumPy if None.

    Returns:
        int64 array (n / world,), ascending. tokens[shard_positions(...)] is the shard.

    Raises:
        ValueError: n is not a multiple as above, or rank is not below world.

    >>> shard_positions(16, 1, 4)
    array([4, 5, 6, 7])
    >>> shard_positions(16, 1, 4, scheme="zigzag")
    array([ 2,  3, 12, 13])
    >>> shard_positions(16, 1, 4, scheme="striped")
    array([ 1,  5,  9, 13])

    Sources: Liu et al. (2023); zigzag as in ring-flash-attention,
    https://github.com/zhuzilin/ring-flash-attention; striped as in Brandon et al. (2023), section 3.
    """
    world = integer("world", world, minimum=1)
    rank = integer("rank", rank, minimum=0)
    n = integer("n", n, minimum=0)
    if rank >= world:
        raise ValueError(f"rank must be below world {world}, got {rank}")
    check_word("scheme", scheme, Scheme)
    parts = 2 * world if scheme == "zigzag" else world
    if n % parts:
        raise ValueError(f"n must be a multiple of {parts} for {scheme} shards of {world} ranks, got {n}")
    chunks = np.arange(n).reshape(parts, n // parts)
    if scheme == "striped":
        positions = np.arange(rank, n, world)
    elif scheme == "zigzag":
        positions = np.concatenate([chunks[rank], chunks[parts - 1 - rank]])
    else:
        positions = chunks[rank]
    return positions if like is None else to_device_of(positions, like, namespace(like=like))


def ring_work(n: int, world: int, *, scheme: Scheme = "contiguous") -> np.ndarray:
    """The number of scores that each rank computes in each step of the ring, under a causal mask.

    W[r, z] = the number of pairs u ≤ t, with t among the positions of rank r and u among those of rank
    (r − z) mod world, whose keys rank r holds in step z.

    Every step waits for the slowest rank, so the total time is the sum over z of max over r of W[r, z].

    Args:
        n, world, scheme: as in `shard_positions`.

    Returns:
        int64 array (world, world): ranks, steps. Its sum is n (n + 1) / 2.

    >>> ring_work(16, 4)
    array([[10,  0,  0,  0],
           [10, 16,  0,  0],
           [10, 16, 16,  0],
           [10, 16, 16, 16]])
    >>> ring_work(16, 4, scheme="zigzag")
    array([[10,  8,  8,  8],
           [10,  8,  8,  8],
           [10,  8,  8,  8],
           [10,  8,  8,  8]])

    Source: counted in this book, parallel.md#balance.
    """
    shards = [
        shard_positions(n, rank, world, scheme=scheme) for rank in range(integer("world", world, minimum=1))
    ]
    # Sorted, so the keys up to t are counted without a table of n times n.
    pairs = [[np.searchsorted(u, t, side="right").sum() for u in shards] for t in shards]
    ranks = np.arange(world)
    work: np.ndarray = np.asarray(pairs)[ranks[:, None], (ranks[:, None] - ranks) % world]
    return work


def ring_step(
    state: State | None,
    query: OneArray,
    key: OneArray,
    value: OneArray,
    query_positions: ArrayLike,
    key_positions: ArrayLike,
    *,
    causal: bool = True,
    slopes: float | Array | None = None,
    scale: float | None = None,
) -> State:
    """The attention of a rank's queries after one more block of keys and values.

    With output o and log-sum-exp z of the keys so far, and o', z' of the block:
    z'' = log(e^z + e^z'), o'' = e^(z − z'') o + e^(z' − z'') o'.

    Args:
        state: the result of the last step, None in the first.
        query: shape (..., n_q, d), floating. With RoPE, already rotated by its positions.
        key, value: the block, shapes (..., n_k, d) and (..., n_k, d_v). With RoPE, keys already rotated.
        query_positions, key_positions: shapes (n_q,) and (n_k,), positions in the whole sequence, not in the
            shard.
        causal: whether keys at later positions are forbidden.
        slopes: of ALiBi, as in `posenc.alibi_bias`. No bias if None.
        scale: factor on the scores. 1/sqrt(d) if None.

    Returns:
        output and log-sum-exp, in float32 at least. They are 0 and −inf for a query without keys so far.

    Raises:
        TypeError, ValueError: as in `posenc.dot_product_attention`. Also if positions are not one for each
            row, slopes not one for each head, or state is of other queries.

    >>> x = np.array([[1.0], [2.0]])
    >>> output, total = ring_step(None, x, x, x, np.array([0, 1]), np.array([0, 1]))
    >>> output.round(2)
    array([[1.  ],
           [1.88]])

    Source: Liu et al. (2023), section 3; the running log-sum-exp: Milakov and Gimelshein, Online normalizer calculation
    for softmax (2018). https://arxiv.org/abs/1805.02867
    """
    xp = namespace(query=query, key=key, value=value)
    check_shapes(query, key, value)
    if state is not None and not (
        isinstance(state, tuple | list) and len(state) == 2 and all(map(is_array, state))
    ):
        raise TypeError(f"state must be None or what the last step gave, got {state!r:.50}")
    check_flag("causal", causal)
    t, u = (
        _places("query_positions", query_positions, query, xp),
        _places("key_positions", key_positions, key, xp),
    )
    bias = mask = None
    if slopes is not None:
        bias = alibi_bias(slopes, t, u, causal=causal)
        if bias.ndim > 2:
            if query.shape[-3:-2] != bias.shape[:1]:
                raise ValueError(
                    f"slopes must be a number, or one for each head of query {tuple(query.shape)}, got {bias.shape[0]}"
                )
            bias = xp.reshape(bias, (*(1,) * (query.ndim - bias.ndim), *bias.shape))
    elif causal:
        mask = u > t[:, None]
    output, _, total = attend(query, key, value, bias, mask, None, scale)
    if state is None:
        return output, total
    if [tuple(x.shape) for x in state] != [tuple(output.shape), tuple(total.shape)]:
        raise ValueError(
            f"state must have shapes {tuple(output.shape)} and {tuple(total.shape)}, as the last step gave for these "
            f"queries, got {[tuple(x.shape) for x in state]}"
        )
    return _merge(state, (output, total), xp)


def ring_attention(
    queries: Sequence[ArrayT],
    keys: Sequence[OneArray],
    values: Sequence[OneArray],
    positions: Sequence[ArrayLike],
    *,
    causal: bool = True,
    slopes: float | Array | None = None,
    scale: float | None = None,
) -> list[ArrayT]:
    """Ring attention, with all ranks simulated in one process.

    In step z, rank r computes `posenc.parallel.ring_step` with the keys of rank (r − z) mod world. The
    outputs equal attention over the whole sequence, to a few roundings. `posenc.nn.RingAttention` does the
    same with a process for each rank.

    Args:
        queries, keys, values: one shard for each rank, shapes as in `posenc.parallel.ring_step`.
        positions: positions of each shard in the whole sequence, such as shard_positions(n, rank, world).
        causal, slopes, scale: as in `posenc.parallel.ring_step`.

    Returns:
        A list with the output of each rank, in the dtype of the queries.

    Raises:
        ValueError: different numbers of shards, or positions that do not fit them. With a mask or bias also a
            position that comes twice, as when each rank counts from 0.

    >>> x = np.random.default_rng(0).normal(size=(8, 4))
    >>> places = [shard_positions(8, rank, 2, scheme="zigzag") for rank in range(2)]
    >>> shards = [x[at] for at in places]
    >>> outputs = ring_attention(shards, shards, shards, places)
    >>> from posenc import causal_mask, dot_product_attention
    >>> whole, _ = dot_product_attention(x, x, x, mask=causal_mask(8))
    >>> all(bool(abs(whole[at] - output).max() < 1e-14) for at, output in zip(places, outputs))
    True

    Source: Liu et al. (2023), section 3.
    """
    given = {"queries": queries, "keys": keys, "values": values, "positions": positions}
    for name, shards in given.items():
        if isinstance(shards, str) or not (isinstance(shards, Sequence) or is_array(shards)):
            raise TypeError(f"{name} must be a list with a shard for each rank, got {type(shards).__name__}")
    world = len(queries)
    if world == 0:
        raise ValueError("queries must hold at least one shard, got an empty list")
    for name, shards in given.items():
        if len(shards) != world:
            raise ValueError(f"{name} must hold one shard for each of the {world} queries, got {len(shards)}")
    if causal or slopes is not None:
        _check_counted_once(positions)
    outputs = []
    for rank, query in enumerate(queries):
        state: State | None = None
        for step in range(world):
            holder = (rank - step) % world
            state = ring_step(
                state, query, keys[holder], values[holder], positions[rank], positions[holder],
                causal=causal, slopes=slopes, scale=scale,
            )  # fmt: skip
        assert state is not None
        outputs.append(namespace(query=query).astype(state[0], query.dtype))
    return outputs


def _check_counted_once(positions: Sequence[Array]) -> None:
    """ValueError if a position comes twice, where values can be read. Most likely each shard counts from 0."""
    places = [as_positions(t, "each of positions")[1] for t in positions]
    if not all(is_concrete(t) for t in places):
        return
    held = np.concatenate([np.asarray(t.tolist(), dtype=np.float64).reshape(-1) for t in places])
    found, counts = np.unique(held, return_counts=True)
    if found.size < held.size:
        raise ValueError(
            "positions must be those in the whole sequence, each of them once, got "
            f"{found[counts > 1][0]:g} in {counts.max()} places: see shard_positions"
        )


def _merge(a: State, b: State, xp: Namespace) -> State:
    top = xp.maximum(a[1], b[1])
    empty = top == -float("inf")
    top = xp.where(empty, xp.zeros_like(top), top)
    of_a, of_b = xp.exp(a[1] - top), xp.exp(b[1] - top)
    total = xp.where(empty, xp.ones_like(top), of_a + of_b)
    merged = (of_a * a[0] + of_b * b[0]) / total
    return merged, xp.where(empty, xp.full_like(top, -float("inf")), top + xp.log(total))


def _places(name: str, positions: Array, x: Array, xp: Namespace) -> Array:
    """Positions (seq,) in float64, in the library and on the device of x (..., seq, d)."""
    if is_length(positions):
        raise TypeError(f"{name} must be an array, positions in the whole sequence, got {positions!r}")
    _, t = as_positions(positions, name)
    if tuple(t.shape) != (x.shape[-2],):
        raise ValueError(f"{name} must have shape ({x.shape[-2]},), got {tuple(t.shape)}")
    return of_library(name, t, x, xp)
