"""Layers for tokens that lie on a grid: codes that are added, and queries and keys that turn."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from array_api_compat import torch as xp
from torch import Tensor, nn

from posenc._arrays import Array, same_shape, wide_dtype
from posenc._checks import as_numbers, as_places, check_base, integer
from posenc.grids import Order, check_order, coordinate_encoding, grid_coordinates, grid_encoding
from posenc.nn._inputs import add, check_dropout, check_embeddings, check_offset
from posenc.nn._table import FixedTable, check_has_numbers, trainable_with
from posenc.nn.rotary import RotaryEmbedding
from posenc.rotary._turn import Layout, check_below_turn, check_layout, codes
from posenc.rotary.axes import axial_frequencies

__all__ = ["GridEncoding", "GridRotary"]


class GridEncoding(FixedTable):
    """Adds the sinusoidal encoding of a grid to its input, then applies dropout.

    forward(x) = dropout(x + codes of the grid), the tokens in the order of `posenc.grid_encoding`. Class tokens
    come first and stay as they are.

    The table is float32, not trained, not saved and not cast, as that of `SinusoidalEncoding`.

    Args:
        dim: width of the input, a multiple of 2 · axes.
        shape: length of each axis, (14, 14) for an image of 14 times 14 patches.
        class_tokens: how many tokens come before those of the grid.
        base, order: as in `posenc.grid_encoding`.
        dropout: probability of zeroing an element of the sum while training.

    Shapes:
        x: (batch, seq, dim) or (seq, dim). Result: the shape and dtype of x.

    Raises:
        ValueError: x does not hold all tokens of the grid and no offset is given, x has another width, or x
            reaches beyond the grid. Without an offset, tokens of another grid would get codes of wrong rows.

    >>> layer = GridEncoding(8, (2, 3), class_tokens=1, dropout=0.0)
    >>> layer(torch.zeros(7, 8))[:2]
    tensor([[0., 0., 0., 0., 0., 0., 0., 0.],
            [0., 1., 0., 1., 0., 1., 0., 1.]])

    Source: He et al., Masked Autoencoders Are Scalable Vision Learners (2022), appendix A.1.
    """

    _fixed = ("dim", "shape", "class_tokens", "base", "order")

    def __init__(
        self,
        dim: int,
        shape: Sequence[int],
        *,
        class_tokens: int = 0,
        base: float = 10000.0,
        order: Order = "interleaved",
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        table = grid_encoding(shape, dim, base=base, order=order, dtype=np.float32)
        self.dim = int(table.shape[1])
        self.shape = tuple(int(n) for n in shape)
        self.class_tokens = integer("class_tokens", class_tokens, minimum=0)
        self.base = check_base(base)
        self.order = check_order(order)
        self.dropout = check_dropout(dropout)
        self._keep(np.concatenate([np.zeros((self.class_tokens, self.dim), np.float32), table]))

    def forward(self, x: Tensor, *, offset: int | None = None, coordinates: Tensor | None = None) -> Tensor:
        """x plus its codes.

        Args:
            x: (batch, seq, dim) or (seq, dim), floating: the class tokens and the whole grid, unless one of the
                others is given.
            offset: number of the first token, class tokens included, if x is a part of the grid. One token at a
                time gives the same as one pass, bit for bit.
            coordinates: a place for each token instead, integer or real, shape (seq, axes) or (batch, seq, axes), by
                the formula: another grid, or jittered ones. No class tokens then.
        """
        check_embeddings(x, self.dim)
        if coordinates is not None:
            _check_coordinates(coordinates, x, len(self.shape), offset, batched=x.ndim == 3)
            return self._add(x, self._compute(coordinates, x))
        first, seq = _part(offset, x.shape[-2], self.shape, self.class_tokens)
        if x.dtype == torch.float64:
            t = torch.from_numpy(grid_coordinates(self.shape)).to(x.device)
            zeros = x.new_zeros(self.class_tokens, self.dim)
            return self._add(x, torch.cat([zeros, self._compute(t, x)])[first : first + seq])
        return self._add(x, self.table[first : first + seq].to(x.device))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, shape={self.shape}, class_tokens={self.class_tokens}, order={self.order!r}"

    def _compute(self, t: Tensor, x: Tensor) -> Tensor:
        result: Tensor = coordinate_encoding(
            t, self.dim, base=self.base, order=self.order, dtype=wide_dtype(xp, x)
        )
        return result

    def _add(self, x: Tensor, rows: Tensor) -> Tensor:
        return self.dropout(add(x, rows))


class GridRotary(RotaryEmbedding):
    """Turns queries and keys by their places on a grid: `posenc.rotary.apply_rotary_axes` with a table made beforehand.

    Pair i turns by Σ_a ω_(a,i) t_a. Class tokens come first and stay as they are. The table is float32, as that
    of `RotaryEmbedding`.

    Args:
        dim: width of a query.
        shape: length of each axis.
        frequencies: in radians per step, shape (axes, dim/2): `posenc.rotary.mixed_frequencies`, say; axial ones
            with `base` if None. Not trained: for that, pass a parameter to `posenc.rotary.apply_rotary_axes`.
        base, layout: as in `posenc.rotary.apply_rotary_axes`.
        class_tokens: how many tokens come before those of the grid.

    Shapes:
        q: (batch, heads, seq, dim), or any (..., seq, dim). k: the same, but its number of heads may be smaller.

    Raises:
        ValueError: q and k hold not all tokens of the grid, and no offset says which; or as in `RotaryEmbedding`.

    >>> rotary = GridRotary(8, (3, 4))
    >>> q, k = rotary(torch.ones(1, 1, 12, 8), torch.ones(1, 1, 12, 8))
    >>> scores = q @ k.mT
    >>> torch.allclose(scores[0, 0, 0, 5], scores[0, 0, 6, 11])  # both one row down, one column on
    True

    Source: Heo et al., Rotary Position Embedding for Vision Transformer (2024). https://arxiv.org/abs/2403.13298
    """

    _fixed = ("dim", "shape", "class_tokens", "max_len", "rotary_dim", "layout", "scale", "frequencies")

    def __init__(
        self,
        dim: int,
        shape: Sequence[int],
        *,
        frequencies: Array | None = None,
        base: float = 10000.0,
        layout: Layout = "interleaved",
        class_tokens: int = 0,
    ) -> None:
        nn.Module.__init__(self)
        t = grid_coordinates(shape)
        check_has_numbers("frequencies", frequencies)
        if frequencies is None:
            omega = axial_frequencies(dim, t.shape[1], base=base)
        elif base != 10000.0:
            raise ValueError(f"base must be left out when frequencies are given, got {base!r}")
        else:
            _, omega = as_numbers("frequencies", frequencies)
            omega = omega.detach().cpu().numpy() if isinstance(omega, Tensor) else omega
        self.dim = self.rotary_dim = integer("dim", dim, minimum=2)
        if omega.shape != (t.shape[1], dim / 2):
            raise ValueError(f"frequencies must have shape ({t.shape[1]}, {dim}/2), got {omega.shape}")
        check_below_turn(omega, np)
        self.shape = tuple(int(n) for n in shape)
        self.class_tokens = integer("class_tokens", class_tokens, minimum=0)
        self.max_len = self.class_tokens + len(t)
        self.layout, self.scale, self.num_heads = check_layout(layout), 1.0, None
        self.frequencies = trainable_with(omega)
        angles = np.concatenate([np.zeros((self.class_tokens, dim // 2)), t @ omega])
        self._keep(codes(angles, np.float32, self.layout, 1.0, np))

    def forward(  # type: ignore[override]  # places on a grid instead of positions
        self,
        q: Tensor,
        k: Tensor,
        *,
        offset: int | None = None,
        coordinates: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """q and k, turned.

        Args:
            q, k: as in `RotaryEmbedding`: the class tokens and the whole grid, unless one of the others is given.
            offset: number of the first token, class tokens included, if q and k are a part of the grid.
            coordinates: a place for each token instead, integer or real, shape (seq, axes), or (batch, seq, axes) for
                q of four axes.
        """
        if coordinates is not None:
            self._check(q, "q")
            _check_coordinates(coordinates, q, len(self.shape), offset, batched=q.ndim == 4)
            if coordinates.ndim == 3 and k.shape[:-3] != q.shape[:-3]:
                raise ValueError(
                    f"k must have the batch of q, {q.shape[0]}, where each has its coordinates, got {tuple(k.shape)}"
                )
            return super().forward(q, k, positions=coordinates)
        self._check(q, "q")
        first, _ = _part(offset, q.shape[-2], self.shape, self.class_tokens)
        return super().forward(q, k, offset=first)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, shape={self.shape}, class_tokens={self.class_tokens}, layout={self.layout!r}"

    def _codes(self, q: Tensor, k: Tensor, offset: int, positions: Tensor | None) -> Tensor:
        omega = self.frequencies.to(q.device)
        if positions is not None:
            t = as_places("coordinates", positions)[1]
            t = t[:, None] if t.ndim == 3 else t
            return codes(t @ omega, wide_dtype(xp, q), self.layout, self.scale, xp)
        if q.dtype != torch.float64:
            return super()._codes(q, k, offset, None)
        angles = torch.from_numpy(grid_coordinates(self.shape)).to(q.device).double() @ omega
        angles = torch.cat([angles.new_zeros(self.class_tokens, angles.shape[1]), angles])
        return codes(angles[offset : offset + q.shape[-2]], q.dtype, self.layout, self.scale, xp)


def _part(offset: int | None, seq: int, shape: tuple[int, ...], class_tokens: int) -> tuple[int, int]:
    """Number of the first token, and how many there are, once they are known to be on the grid."""
    whole = class_tokens + math.prod(shape)
    if offset is None:
        if seq != whole:
            raise ValueError(
                f"x must hold {whole} tokens, {class_tokens} class tokens and a grid {shape}, got {seq}: pass "
                "offset for a part of them, coordinates for another grid"
            )
        return 0, seq
    check_offset(offset)
    if offset + seq > whole:
        raise ValueError(
            f"tokens {offset}..{offset + seq - 1} must lie in 0..{whole - 1}, those of grid {shape}"
        )
    return offset, seq


def _check_coordinates(
    coordinates: Tensor, x: Tensor, axes: int, offset: int | None, *, batched: bool
) -> None:
    if offset is not None:
        raise ValueError(f"offset must be left out when coordinates are given, got {offset}")
    if not isinstance(coordinates, Tensor):
        raise TypeError(f"coordinates must be a tensor, got {type(coordinates).__name__}")
    one, many = (x.shape[-2], axes), (x.shape[0], x.shape[-2], axes)
    if not same_shape(coordinates.shape, one) and not (batched and same_shape(coordinates.shape, many)):
        also = f" or {many}" if batched else ""
        raise ValueError(f"coordinates must have shape {one}{also}, got {tuple(coordinates.shape)}")
