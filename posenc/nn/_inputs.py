"""What the layers ask of their input."""

from __future__ import annotations

import torch
from torch import Tensor


def check_floating(name: str, x: Tensor, wanted: str = "a floating tensor") -> None:
    """TypeError unless x is a floating tensor."""
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise TypeError(f"{name} must be {wanted}, got {kind}")


def check_embeddings(x: Tensor, dim: int) -> None:
    """TypeError or ValueError unless x is floating, of shape (batch, seq, dim) or (seq, dim)."""
    check_floating("x", x, "a floating tensor of embeddings")
    if x.ndim not in (2, 3) or x.shape[-1] != dim:
        raise ValueError(f"x must have shape (batch, seq, {dim}) or (seq, {dim}), got {tuple(x.shape)}")


def check_offset(offset: int) -> None:
    """TypeError unless offset is a Python integer, or what stands for one while a graph is traced."""
    if isinstance(offset, bool) or not isinstance(offset, (int, torch.SymInt)):
        raise TypeError(f"offset must be an int, got {offset!r} of type {type(offset).__name__}")


def check_positions(positions: Tensor, x: Tensor, offset: int) -> None:
    """TypeError or ValueError unless positions hold a number for each token of x, and no offset is given."""
    if offset != 0:
        raise ValueError(f"offset must be 0 when positions are given, got {offset}")
    if not isinstance(positions, Tensor):
        raise TypeError(f"positions must be a tensor, got {type(positions).__name__}")
    # Not `in`: torch.compile cannot look for lengths that it leaves open.
    if positions.shape != x.shape[-2:-1] and positions.shape != x.shape[:-1]:
        raise ValueError(
            f"positions must have shape {tuple(x.shape[-2:-1])} or {tuple(x.shape[:-1])}, "
            f"got {tuple(positions.shape)}"
        )


def add(x: Tensor, codes: Tensor) -> Tensor:
    """x + codes in the wider of their dtypes, rounded once to the dtype of x."""
    return (x + codes).to(x.dtype)
