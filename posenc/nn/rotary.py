"""Rotary position embedding as a layer that turns queries and keys."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import torch
from array_api_compat import torch as xp
from torch import Tensor

from posenc._arrays import Array, same_shape, wide_dtype
from posenc._checks import check_even_dim, check_finite, check_neighbours, integer, number
from posenc.nn._inputs import check_floating, check_offset, check_reach
from posenc.nn._table import FixedTable, check_has_numbers, trainable_with
from posenc.rotary._turn import (
    Layout,
    check_frequencies,
    check_layout,
    check_rotary_dim,
    codes,
    to_complex,
    turn_complex,
    turn_real,
)
from posenc.rotary.config import from_config

__all__ = ["RotaryEmbedding"]


class RotaryEmbedding(FixedTable):
    """Turns queries and keys by their positions, before their dot product.

    forward(q, k) = R(offset) q, R(offset + 1) q, ... and the same for k. This is `posenc.apply_rotary` with
    a table of cosines and sines made beforehand.

    The table is float32, made from float64 angles. It is not trained, not saved and not cast. After
    `.to(torch.bfloat16)` queries and keys are still turned in float32 and rounded once to their dtype.
    float64 input is turned in float64. `.to(device)` moves the table too. If the parameters reached a GPU in
    another way, each pass copies its rows there. The arguments of the layer cannot be changed afterwards.

    Args:
        dim: width of a query, even and at least 2.
        max_len: number of positions in the table. A longer input is an error, never a wrong rotation.
        base, layout, rotary_dim, frequencies, scale: as in `posenc.apply_rotary`. Frequencies may come from
            `posenc.rotary.yarn_frequencies` and the like, with its attention factor as scale.
            Frequencies must be radians per position. Wavelengths, all 2π or more, raise ValueError.

    Shapes:
        q: (batch, heads, seq, dim), or any (..., seq, dim). k: the same but for the number of heads, which
        may be smaller (grouped queries) unless each head has frequencies of its own. Both come back in their
        own dtypes; if one is float64, both must be.

    An input (batch, seq, heads, dim) looks like (batch, heads, seq, dim), so it would be turned by the number
    of its head. Transpose it first.

    Raises:
        TypeError, ValueError: as in `posenc.apply_rotary`; max_len below 1; frequencies that are wavelengths; q or
            k of another width, of different lengths, or reaching beyond max_len.

    >>> rotary = RotaryEmbedding(4, max_len=100)
    >>> q, k = rotary(torch.ones(1, 2, 8, 4), torch.ones(1, 1, 8, 4))
    >>> (q[0, 0] @ k[0, 0].T)[5, 2:6]
    tensor([0.0191, 1.1673, 3.0805, 4.0000])
    >>> q_next, _ = rotary(torch.ones(1, 2, 1, 4), torch.ones(1, 1, 1, 4), offset=7)
    >>> torch.equal(q_next, q[:, :, 7:])
    True

    Source: Su et al., RoFormer (2021), section 3. https://arxiv.org/abs/2104.09864
    """

    frequencies: Tensor
    _fixed: ClassVar[tuple[str, ...]] = (
        "dim",
        "max_len",
        "rotary_dim",
        "layout",
        "scale",
        "frequencies",
        "num_heads",
    )

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
        self.dim = integer("dim", dim, minimum=2)
        self.max_len = integer("max_len", max_len, minimum=1)
        self.rotary_dim = (
            check_even_dim(dim) if rotary_dim is None else check_rotary_dim(rotary_dim, self.dim)
        )
        self.layout = check_layout(layout)
        self.scale = number("scale", scale)
        check_has_numbers("frequencies", frequencies)
        omega = check_frequencies(frequencies, base, self.rotary_dim)
        omega = omega.detach().cpu().numpy() if isinstance(omega, Tensor) else omega
        # A hair less, for the first wavelength is 2π but for its rounding.
        if (abs(omega) >= 2 * math.pi * (1 - 1e-6)).all():
            raise ValueError(
                "frequencies must be in radians a position, some of them below 2π, got "
                f"{abs(omega).min():g} as the least: pass 2π / frequencies, if these are wavelengths"
            )
        # float64 whatever is done to the module, even for a device that has no float64.
        self.frequencies = trainable_with(omega)
        self.num_heads = len(omega) if omega.ndim == 2 else None
        angles = np.arange(self.max_len)[:, None] * (omega[:, None, :] if self.num_heads else omega)
        self._keep(codes(angles, np.float32, self.layout, self.scale, np))

    @classmethod
    def from_config(
        cls,
        config: Any,
        max_len: int = 8192,
        *,
        part: str | None = None,
        layout: Layout | None = None,
        length: int | None = None,
        handled: tuple[str, ...] = (),
    ) -> dict[str, RotaryEmbedding | None]:
        """The layers that a configuration of Hugging Face's transformers describes, by kind of layer.

        Args:
            config, part, layout, length: as in `posenc.rotary.from_config`.
            max_len: number of positions in the tables.
            handled: as there; also "softmax_factor" and "log_scale", if your own code multiplies scores and queries by
                what `posenc.rotary.LayerRotation` says.

        Returns:
            A layer for each kind of layer, "all" where all layers are alike; None for a kind that turns nothing.

        Raises:
            TypeError, ValueError: as in `posenc.rotary.from_config`; positions have several coordinates; the kind asks
                for another factor of the scores, which this layer does not see, and handled does not name it.

        >>> layers = RotaryEmbedding.from_config({"model_type": "qwen3", "head_dim": 128, "rope_theta": 1e6}, 100)
        >>> layers["all"]
        RotaryEmbedding(dim=128, max_len=100, layout='half')
        """
        layers: dict[str, RotaryEmbedding | None] = {}
        found = from_config(config, part=part, layout=layout, length=length, handled=handled)
        for kind, rotation in found.kinds.items():
            if rotation.softmax_factor != 1 and "softmax_factor" not in handled:
                raise ValueError(
                    f"config also changes the scores of {kind} layers, which this layer does not see: multiply them by "
                    f"{rotation.softmax_factor:.6g}, then pass handled=('softmax_factor',)"
                )
            if rotation.log_scale is not None and "log_scale" not in handled:
                beta, n, first = rotation.log_scale
                raise ValueError(
                    f"config also changes the queries of {kind} layers, which this layer does not see: multiply the "
                    f"one at t by 1 + {beta:g} ln(1 + floor((t + {first})/{n})), then pass handled=('log_scale',)"
                )
            if rotation.frequencies is None:
                layers[kind] = None
                continue
            if rotation.frequencies.ndim == 2:
                raise ValueError(
                    f"config gives {kind} layers positions of {len(rotation.frequencies)} coordinates: turn them with "
                    "posenc.rotary.apply_rotary_axes and the frequencies of posenc.rotary.from_config"
                )
            layers[kind] = cls(
                rotation.dim,
                max_len,
                layout=rotation.layout,
                rotary_dim=None if rotation.rotary_dim == rotation.dim else rotation.rotary_dim,
                frequencies=rotation.frequencies,
                scale=rotation.scale,
            )
        return layers

    def forward(
        self, q: Tensor, k: Tensor, *, offset: int = 0, positions: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """q and k, turned.

        Args:
            q: (batch, heads, seq, dim), floating.
            k: (batch, key heads, seq, dim): the keys of the same tokens. Keys in a cache are turned already.
            offset: position of the first token. One token at a time with a growing offset gives what one
                pass over the whole sequence gives, to one rounding: how torch rounds a product may depend on
                where in memory it falls.
            positions: explicit positions instead, integer or real, shape (seq,) or (batch, seq); computed by
                the formula, so not limited by max_len.
        """
        self._check(q, "q")
        self._check(k, "k")
        if k.shape[-2] != q.shape[-2]:
            raise ValueError(f"k must have as many tokens as q, {q.shape[-2]}, got {k.shape[-2]}")
        if k.dtype != q.dtype and torch.float64 in (k.dtype, q.dtype):
            raise TypeError(f"k must be float64 if q is, and only then, got {k.dtype} with q of {q.dtype}")
        code = self._codes(q, k, offset, positions)
        # A lone pair without rows has no view as a complex number.
        if torch.compiler.is_compiling() or not (q.numel() and k.numel()):
            return turn_real(q, code, self.layout, xp), turn_real(k, code, self.layout, xp)
        code = to_complex(code, self.layout, torch)
        return (
            turn_complex(q, code, self.layout, torch),
            turn_complex(k, code, self.layout, torch),
        )

    def extra_repr(self) -> str:
        turned = "" if self.rotary_dim == self.dim else f", rotary_dim={self.rotary_dim}"
        num_heads = f", num_heads={self.num_heads}" if self.num_heads is not None else ""
        return f"dim={self.dim}, max_len={self.max_len}, layout={self.layout!r}{turned}{num_heads}"

    def _check(self, x: Tensor, name: str) -> None:
        check_floating(name, x)
        if x.ndim < 2 or x.shape[-1] != self.dim:
            raise ValueError(f"{name} must have shape (..., seq, {self.dim}), got {tuple(x.shape)}")
        if self.num_heads is not None and (x.ndim < 3 or x.shape[-3] != self.num_heads):
            raise ValueError(
                f"{name} must have shape (..., {self.num_heads}, seq, {self.dim}), because there are frequencies for "
                f"{self.num_heads} heads, got {tuple(x.shape)}"
            )

    def _codes(self, q: Tensor, k: Tensor, offset: int, positions: Tensor | None) -> Tensor:
        """Cosines and sines of the tokens of q."""
        seq = q.shape[-2]
        if positions is not None:
            return self._compute(_check_positions(positions, q, k, offset), wide_dtype(xp, q))
        check_offset(offset)
        check_reach(offset, seq, self.max_len)
        if q.dtype == torch.float64:
            return self._compute(torch.arange(offset, offset + seq, device=q.device), q.dtype)
        rows = self.table.narrow(-2, offset, seq)
        return rows if rows.device == q.device else rows.to(q.device)

    def _compute(self, t: Tensor, dtype: torch.dtype) -> Tensor:
        """The formula: float64 angles, rounded once."""
        omega = self.frequencies.to(t.device)
        if self.num_heads is not None:
            omega = omega[:, None, :]
        return codes(t.double()[..., None] * omega, dtype, self.layout, self.scale, xp)


def _check_positions(positions: Tensor, q: Tensor, k: Tensor, offset: int) -> Tensor:
    """Positions with an axis for the heads when there is one for each sentence of the batch."""
    if offset != 0:
        raise ValueError(f"offset must be 0 when positions are given, got {offset}")
    if not isinstance(positions, Tensor):
        raise TypeError(f"positions must be a tensor, got {type(positions).__name__}")
    dtype = positions.dtype
    if dtype in (torch.float32, torch.float64):
        check_finite("positions", positions, xp)
        check_neighbours("positions", positions, positions.double(), xp)
    elif dtype.is_floating_point or dtype.is_complex or dtype == torch.bool:
        raise TypeError(f"positions must be integers, float32 or float64, got {dtype}")
    seq = q.shape[-2]
    if same_shape(positions.shape, (seq,)):
        return positions
    if q.ndim == 4 and same_shape(positions.shape, (q.shape[0], seq)):
        if k.shape[:-3] != q.shape[:-3]:
            raise ValueError(
                f"k must have the batch of q, {q.shape[0]}, where each sentence has its positions, "
                f"got {tuple(k.shape)}"
            )
        return positions[:, None, :]
    also = f" or ({q.shape[0]}, {seq})" if q.ndim == 4 else ""
    raise ValueError(f"positions must have shape ({seq},){also}, got {tuple(positions.shape)}")
