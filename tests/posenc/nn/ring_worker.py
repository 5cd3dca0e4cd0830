"""One process of a ring: `python ring_worker.py RANK WORLD FOLDER`, started by test_parallel.py."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from posenc import alibi_bias, alibi_slopes, apply_rotary, causal_mask, dot_product_attention
from posenc.nn import RingAttention
from posenc.parallel import Scheme, shard_positions

N, HEADS, WIDTH = 16, 3, 8
SCHEMES: tuple[Scheme, ...] = ("contiguous", "zigzag", "striped")


def check(scheme: Scheme, dtype: torch.dtype, alibi: bool, causal: bool, local: bool) -> None:
    """Outputs and gradients of this rank are rows of those of the whole sequence."""
    generator = torch.Generator().manual_seed(0)
    whole = torch.randn(4, 2, HEADS, N, WIDTH, generator=generator, dtype=torch.float64).to(dtype)
    rank, world = dist.get_rank(), dist.get_world_size()
    at = shard_positions(N, rank, world, scheme=scheme, like=whole)
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


def check_taken() -> None:
    """The block of the chapter, in the folder as ring.py."""
    import ring  # type: ignore[import-not-found, unused-ignore]

    q, k, v = torch.randn(3, HEADS, N, WIDTH, generator=torch.Generator().manual_seed(0))
    at = ring.zigzag(N, dist.get_rank(), dist.get_world_size())
    expected, _ = dot_product_attention(q, k, v, mask=causal_mask(N, like=q))
    output = ring.ring_attention(*(x[:, at] for x in (q, k, v)), at)
    torch.testing.assert_close(output, expected[:, at])


def main(rank: str, world: str, folder: str) -> None:
    torch.set_num_threads(1)
    sys.path.append(folder)
    dist.init_process_group(
        "gloo", init_method=(Path(folder) / "store").as_uri(), rank=int(rank), world_size=int(world),
        timeout=timedelta(seconds=30),
    )  # fmt: skip
    try:
        for scheme in SCHEMES:
            for dtype in (torch.float64, torch.float32):
                for alibi in (False, True):
                    check(scheme, dtype, alibi=alibi, causal=scheme != "striped", local=False)
        print("RingAttention: equal")
        check_uneven()
        print("uneven shards: refused")
        check_taken()
        print("ring.py: equal")
        try:
            check("contiguous", torch.float64, alibi=False, causal=True, local=True)
        except AssertionError:
            print("counting from 0: different")
    finally:
        dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
