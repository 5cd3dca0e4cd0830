"""A ring of processes gives each its rows of attention over the whole sequence, and of the gradients."""

import multiprocessing
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from posenc import alibi_bias, alibi_slopes, apply_rotary, causal_mask, dot_product_attention
from posenc.nn import RingAttention
from posenc.parallel import Scheme, shard_positions
from tests.taken import block

N, HEADS, WIDTH = 16, 3, 8
SCHEMES: tuple[Scheme, ...] = ("contiguous", "zigzag", "striped")
needs_gloo = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="this torch has no gloo"
)


@contextmanager
def group(folder: Path, rank: int = 0, world: int = 1) -> Iterator[None]:
    """A process group that meets in a file of this folder."""
    if sys.platform.startswith("linux"):
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # the name of this machine may lead nowhere
    store, patience = (folder / "store").as_uri(), timedelta(seconds=30)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world, timeout=patience)
    try:
        yield
    finally:
        dist.destroy_process_group()


def check(scheme: Scheme, dtype: torch.dtype, alibi: bool, causal: bool, local: bool = False) -> None:
    """Outputs and gradients of this rank are rows of those of the whole sequence."""
    generator = torch.Generator().manual_seed(0)
    whole = torch.randn(4, 2, HEADS, N, WIDTH, generator=generator, dtype=torch.float64).to(dtype)
    at = shard_positions(N, dist.get_rank(), dist.get_world_size(), scheme=scheme, like=whole)
    slopes = alibi_slopes(HEADS) if alibi else None

    def turned(q: Tensor, k: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        return (q, k) if alibi else (apply_rotary(q, positions), apply_rotary(k, positions))

    q, k, v = (x.clone().requires_grad_() for x in whole[:3])
    bias = None if slopes is None else alibi_bias(slopes, torch.arange(N), causal=causal)[None]
    mask = causal_mask(N, like=whole) if causal else None
    queries, keys = turned(q, k, torch.arange(N))
    expected, _ = dot_product_attention(queries, keys, v, bias=bias, mask=mask)
    wanted = torch.autograd.grad((expected * whole[3]).sum(), (q, k, v))

    shards = [x[..., at, :].clone().requires_grad_() for x in whole[:3]]
    positions = torch.arange(len(at)) if local else at
    ring = RingAttention(causal=causal, slopes=slopes)
    output = ring(*turned(shards[0], shards[1], positions), shards[2], positions)
    got = torch.autograd.grad((output * whole[3][..., at, :]).sum(), shards)
    slack = 32 * torch.finfo(dtype).eps
    for ours, theirs in zip((output, *got), (expected, *wanted), strict=True):
        torch.testing.assert_close(ours, theirs[..., at, :], rtol=slack, atol=slack)


def check_uneven() -> None:
    """The same error in every process, before anything goes round."""
    n = 4 + dist.get_rank()
    x = torch.zeros(n, WIDTH)
    wanted = (
        "query must have one shape and dtype in all processes, got (4, 8) torch.float32 on rank 0 and (5, 8)"
    )
    with pytest.raises(ValueError, match=re.escape(wanted)):
        RingAttention()(x, x, x, torch.arange(n))


def check_taken(ring: SimpleNamespace) -> None:
    """The block of the chapter."""
    q, k, v = torch.randn(3, HEADS, N, WIDTH, generator=torch.Generator().manual_seed(0))
    at = ring.zigzag(N, dist.get_rank(), dist.get_world_size())
    expected, _ = dot_product_attention(q, k, v, mask=causal_mask(N, like=q))
    output = ring.ring_attention(*(x[:, at] for x in (q, k, v)), at)
    torch.testing.assert_close(output, expected[:, at])


def in_a_ring(rank: int, world: int, folder: Path) -> None:
    """What one process of the ring does."""
    torch.set_num_threads(1)
    with group(folder, rank, world):
        for scheme in SCHEMES:
            for dtype in (torch.float64, torch.float32):
                for alibi in (False, True):
                    check(scheme, dtype, alibi=alibi, causal=scheme != "striped")
        check_uneven()
        check_taken(block("ring"))
        with pytest.raises(AssertionError):  # counting from 0 on each rank is wrong, and nothing says so
            check("contiguous", torch.float64, alibi=False, causal=True, local=True)


@needs_gloo
def test_a_ring_of_processes_equals_the_whole_sequence(tmp_path: Path) -> None:
    """That of the layer, with its gradients, and that of the chapter's block; not with positions from 0."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:  # and this process
        other = pool.apply_async(in_a_ring, (1, 2, tmp_path))
        in_a_ring(0, 2, tmp_path)
        other.get(timeout=90)


def test_without_a_process_group_it_says_what_to_do() -> None:
    x, positions = torch.ones(2, 4), torch.arange(2)
    says = r"RingAttention needs torch\.distributed\.init_process_group in every"
    with pytest.raises(RuntimeError, match=says):
        RingAttention()(x, x, x, positions)


@needs_gloo
def test_a_ring_of_one_and_bad_input(tmp_path: Path) -> None:
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    positions, ring = torch.arange(3), RingAttention(slopes=alibi_slopes(2))
    expected, _ = dot_product_attention(x, x, x, bias=torch.from_numpy(alibi_bias(alibi_slopes(2), 3)))
    with group(tmp_path):
        torch.testing.assert_close(ring(x, x, x, positions), expected)
        with pytest.raises(ValueError, match=r"query_positions must have shape \(3,\), got \(2,\)"):
            ring(x, x, x, positions[:2])
        with pytest.raises(TypeError, match="positions must be a tensor, got list"):
            ring(x, x, x, [0, 1, 2])
        with pytest.raises(TypeError, match=r"value must be a floating tensor, got torch\.int64"):
            ring(x, x, x.long(), positions)
    assert repr(RingAttention()) == "RingAttention(causal=True, slopes=None, scale=None)"
