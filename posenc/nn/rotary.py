"""Rotary position embedding as a layer that turns queries and keys."""

from __future__ import annotations

import torch
from array_api_compat import torch as xp
from torch import Tensor

from posenc import _rotation
from posenc._arrays import Array, check_integer
from posenc._rotation import Layout
from posenc.nn._inputs import check_floating, check_offset
from posenc.nn._table import FixedTable, wide

__all__ = ["Rotary"]


class Rotary(FixedTable):
    """Turns queries and keys by their positions, before their dot product.

    forward(q, k) = R(offset) q, R(offset + 1) q, ... and the same for k: `posenc.rotate` with a table of
    cosines and sines made beforehand.

    The table is float32, made from float64 angles; it is not trained, not saved and not cast. After
    `.to(torch.bfloat16)` queries and keys are still turned in float32 and rounded once to their dtype.
    float64 input is turned in float64.

    Args:
        dim: width of a query, even and at least 2.
        max_len: number of positions in the table. A longer input is an error, never a wrong rotation.
        base, layout, rotary_dim, frequencies, scale: as in `posenc.rotate`. Frequencies may come from
            `posenc.yarn_frequencies` and the like, with its attention factor as scale.

    Shapes:
        q: (batch, heads, seq, dim), or any (..., seq, dim). k: the same but for the number of heads, which
        may be smaller (grouped queries) unless each head has frequencies of its own.

    A (batch, seq, heads, dim) input cannot be told from (batch, heads, seq, dim) by its shape: it would be
    turned by the number of its head. Transpose it first.

    Raises:
        TypeError, ValueError: as in `posenc.rotate`; max_len below 1; q or k of another width, of different
            lengths, or reaching beyond max_len.

    >>> rotary = Rotary(4, max_len=100)
    >>> q, k = rotary(torch.ones(1, 2, 8, 4), torch.ones(1, 1, 8, 4))
    >>> (q[0, 0] @ k[0, 0].T)[5, 2:6]
    tensor([0.0191, 1.1673, 3.0805, 4.0000])
    >>> q_next, _ = rotary(torch.ones(1, 2, 1, 4), torch.ones(1, 1, 1, 4), offset=7)
    >>> torch.equal(q_next, q[:, :, 7:])
    True

    Source: Su et al., RoFormer (2021), section 3. https://arxiv.org/abs/2104.09864
    """

    table: Tensor
    frequencies: Tensor

    def __init__(
        self,
        dim: int,
        max_len: int = 8192,
        *,
        base: float = 10000.0,
        layout: Layout = "interleaved",
        rotary_dim: int | None = None,
        frequencies: Array | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.dim = check_integer("dim", dim, minimum=2)
        self.max_len = check_integer("max_len", max_len, minimum=1)
        self.rotary_dim = _rotation.check_rotary_dim(rotary_dim, self.dim)
        self.layout = _rotation.check_layout(layout)
        self.scale = _rotation.check_real("scale", scale)
        freqs = _rotation.check_frequencies(frequencies, base, self.rotary_dim)
        # Not a buffer: float64 whatever is done to the module, even for a device that has no float64.
        self.frequencies = freqs.detach().cpu() if isinstance(freqs, Tensor) else torch.from_numpy(freqs)
        self.heads = len(self.frequencies) if self.frequencies.ndim == 2 else None
        self._register_table()

    def forward(
        self, q: Tensor, k: Tensor, *, offset: int = 0, positions: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """q and k, turned.

        Args:
            q: (batch, heads, seq, dim), floating.
            k: (batch, key heads, seq, dim): the keys of the same tokens. Keys in a cache are turned already.
            offset: position of the first token. One token at a time with a growing offset gives, bit for bit,
                what one pass over the whole sequence gives.
            positions: explicit positions instead, integer or real, shape (seq,) or (batch, seq); computed by
                the formula, so not limited by max_len.
        """
        self._check(q, "q")
        self._check(k, "k")
        if k.shape[-2] != q.shape[-2]:
            raise ValueError(f"k must have as many tokens as q, {q.shape[-2]}, got {k.shape[-2]}")
        code = self._codes(q, offset, positions)
        if torch.compiler.is_compiling():
            return _rotation.turn_real(q, code, self.layout, xp), _rotation.turn_real(
                k, code, self.layout, xp
            )
        code = _rotation.to_complex(code, self.layout, torch)
        return (
            _rotation.turn_complex(q, code, self.layout, torch),
            _rotation.turn_complex(k, code, self.layout, torch),
        )

    def extra_repr(self) -> str:
        turned = "" if self.rotary_dim == self.dim else f", rotary_dim={self.rotary_dim}"
        heads = f", heads={self.heads}" if self.heads is not None else ""
        return f"dim={self.dim}, max_len={self.max_len}, layout={self.layout!r}{turned}{heads}"

    def _check(self, x: Tensor, name: str) -> None:
        check_floating(name, x)
        if x.ndim < 2 or x.shape[-1] != self.dim:
            raise ValueError(f"{name} must have shape (..., seq, {self.dim}), got {tuple(x.shape)}")
        if self.heads is not None and (x.ndim < 3 or x.shape[-3] != self.heads):
            raise ValueError(
                f"{name} must have shape (..., {self.heads}, seq, {self.dim}), for there are frequencies for "
                f"{self.heads} heads, got {tuple(x.shape)}"
            )

    def _codes(self, q: Tensor, offset: int, positions: Tensor | None) -> Tensor:
        """Cosines and sines of the tokens of q."""
        seq = q.shape[-2]
        if positions is not None:
            return self._compute(_check_positions(positions, q, offset), wide(q))
        check_offset(offset)
        if offset < 0 or offset + seq > self.max_len:
            raise ValueError(
                f"positions {offset}..{offset + seq - 1} must lie in 0..{self.max_len - 1}: "
                f"make the layer with a larger max_len, got max_len={self.max_len}"
            )
        if q.dtype == torch.float64:
            return self._compute(torch.arange(offset, offset + seq, device=q.device), q.dtype)
        return self.table.narrow(-2, offset, seq)

    def _compute(self, t: Tensor, dtype: torch.dtype) -> Tensor:
        """The formula: float64 angles, rounded once."""
        omega = self.frequencies.to(t.device)
        if self.heads is not None:
            omega = omega[:, None, :]
        return _rotation.codes(t.double()[..., None] * omega, dtype, self.layout, self.scale, xp)

    def _make_table(self) -> Tensor:
        return self._compute(torch.arange(self.max_len), torch.float32)


def _check_positions(positions: Tensor, q: Tensor, offset: int) -> Tensor:
    """Positions with an axis for the heads, when there is one for each sentence of the batch."""
    if offset != 0:
        raise ValueError(f"offset must be 0 when positions are given, got {offset}")
    if not isinstance(positions, Tensor):
        raise TypeError(f"positions must be a tensor, got {type(positions).__name__}")
    if positions.dtype in (torch.float16, torch.bfloat16, torch.bool) or positions.is_complex():
        raise TypeError(f"positions must be integers, float32 or float64, got {positions.dtype}")
    seq = q.shape[-2]
    if positions.shape == (seq,):
        return positions
    if q.ndim == 4 and positions.shape == (q.shape[0], seq):
        return positions[:, None, :]
    also = f" or ({q.shape[0]}, {seq})" if q.ndim == 4 else ""
    raise ValueError(f"positions must have shape ({seq},){also}, got {tuple(positions.shape)}")
