"""Ring attention over `torch.distributed`: each process holds a shard, keys and values go round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from posenc._arrays import Array
from posenc._checks import check_flag, number
from posenc.alibi import check_slopes
from posenc.nn._inputs import check_floating
from posenc.parallel import State, ring_step

__all__ = ["RingAttention"]


class RingAttention(nn.Module):
    """Attention over a sequence of which each process holds a shard.

    forward(query, key, value, positions) = this rank's rows of attention over the whole sequence, to a few
    roundings: `posenc.ring_attention` with a process for each rank. Every process of the group must call it, with
    shards of the same shape and dtype, and backward likewise: a gradient goes round the ring the other way.

    Shapes and dtypes are compared before anything is sent, so shards that differ raise ValueError in every
    process. Positions are not compared: if every rank counts from 0, the output is wrong.

    The blocks received are kept for backward. Published kernels compute them again instead.

    Args:
        causal: whether keys at later positions are forbidden.
        slopes: of ALiBi, as in `posenc.alibi_bias`, such as alibi_slopes(num_heads). None for no bias.
        scale: factor on the scores. 1/sqrt(d) if None.
        group: process group. That of all processes if None.

    Shapes: query, key, value (..., n / world, d) and positions (n / world,), such as
    `posenc.shard_positions(n, rank, world)`. Positions count in the whole sequence. Turn queries and keys by the
    same positions before the call. The output is (..., n / world, d_v).

    Raises:
        RuntimeError: torch.distributed is not initialized.
        ValueError: shards of different shapes or dtypes.

    Source: Liu et al. (2023), section 3. https://arxiv.org/abs/2310.01889
    """

    def __init__(
        self,
        *,
        causal: bool = True,
        slopes: float | Array | None = None,
        scale: float | None = None,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        super().__init__()
        check_flag("causal", causal)
        self.scale = None if scale is None else number("scale", scale)
        if slopes is not None:
            check_slopes(slopes)
        self.causal, self.slopes, self.group = causal, slopes, group

    def forward(self, query: Tensor, key: Tensor, value: Tensor, positions: Tensor) -> Tensor:
        if not (dist.is_available() and dist.is_initialized()):
            raise RuntimeError(
                "RingAttention needs torch.distributed.init_process_group in every process; in one process, "
                "posenc.ring_attention takes all shards at once"
            )
        for name, x in (("query", query), ("key", key), ("value", value)):
            check_floating(name, x)
        if not isinstance(positions, Tensor):
            raise TypeError(f"positions must be a tensor, got {type(positions).__name__}")
        world = dist.get_world_size(self.group)
        self._check_alike(query, key, value, positions)
        state: State | None = None
        key_positions = positions
        for step in range(world):
            state = ring_step(
                state, query, key, value, positions, key_positions,
                causal=self.causal, slopes=self.slopes, scale=self.scale,
            )  # fmt: skip
            if step < world - 1:
                key, value, key_positions = _PassOn.apply(self.group, 1, key, value, key_positions)
        assert state is not None
        output: Tensor = state[0].to(query.dtype)
        return output

    def _check_alike(self, *shards: Tensor) -> None:
        """The same error in every process, unless all hold shards alike: what went round would not fit its buffer."""
        mine = [(tuple(x.shape), str(x.dtype)) for x in shards]
        every: list[Any] = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(every, mine, group=self.group)
        for rank, theirs in enumerate(every):
            for name, first, other in zip(
                ("query", "key", "value", "positions"), every[0], theirs, strict=True
            ):
                if other != first:
                    raise ValueError(
                        f"{name} must have one shape and dtype in all processes, got {first[0]} {first[1]} on rank 0 "
                        f"and {other[0]} {other[1]} on rank {rank}: pad the sequence to equal shards"
                    )

    def extra_repr(self) -> str:
        return f"causal={self.causal}, slopes={self.slopes}, scale={self.scale}"


class _PassOn(torch.autograd.Function):
    """Tensors to the rank `by` further on, those of the rank as far back in return; gradients the other way."""

    @staticmethod
    def forward(ctx: Any, group: dist.ProcessGroup | None, by: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.group, ctx.by = group, by
        moved = _passed_on(group, by, tensors)
        ctx.mark_non_differentiable(*(x for x in moved if not x.is_floating_point()))
        return moved

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        moving = [g for g, needed in zip(gradients, ctx.needs_input_grad[2:], strict=True) if needed]
        back = iter(_passed_on(ctx.group, -ctx.by, moving))
        return None, None, *(next(back) if needed else None for needed in ctx.needs_input_grad[2:])


def _passed_on(group: dist.ProcessGroup | None, by: int, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    rank, world = dist.get_rank(group), dist.get_world_size(group)
    there, here = (
        peer if group is None else dist.get_global_rank(group, peer)
        for peer in ((rank + by) % world, (rank - by) % world)
    )
    got, moves = [], []
    for x in tensors:
        got.append(torch.empty_like(x, memory_format=torch.contiguous_format))
        moves.append(dist.P2POp(dist.isend, x.contiguous(), there, group))
        moves.append(dist.P2POp(dist.irecv, got[-1], here, group))
    for move in dist.batch_isend_irecv(moves) if moves else ():
        move.wait()
    return tuple(got)
