"""The sinusoidal encoding as a layer that is added to the token embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from array_api_compat import torch as xp
from torch import Tensor

from posenc._arrays import wide_dtype
from posenc._checks import check_base, check_even_dim, integer
from posenc.nn._inputs import add, check_dropout, check_embeddings, check_offset, check_positions, check_reach
from posenc.nn._table import FixedTable
from posenc.sinusoidal import sinusoidal_encoding, sinusoidal_frequencies

__all__ = ["SinusoidalEncoding"]


class SinusoidalEncoding(FixedTable):
    """Adds the sinusoidal encoding to its input, then applies dropout.

    forward(x) = dropout(x + PE(offset), ..., PE(offset + seq − 1)).

    The codes are a float32 table that is not trained, not saved and not cast: a checkpoint made with another
    max_len loads, and after `.to(torch.bfloat16)` the sum is still made in float32 and rounded once to the
    dtype of x. A float64 input gets codes in float64. The table comes along with `.to(device)`, as that of
    `RotaryEmbedding` does. dim, max_len and base cannot be set afterwards.

    Args:
        dim: width of the input, even and at least 2.
        max_len: number of positions in the table. A longer input is an error, never a wrong code.
        dropout: probability of zeroing an element of the sum while training.
        base: as in `posenc.sinusoidal_frequencies`.

    Shapes:
        x: (batch, seq, dim) or (seq, dim). Result: the shape and dtype of x.

    A (seq, batch, dim) input cannot be told from (batch, seq, dim) by its shape: it would get positions along
    its batch axis. Transpose it first. Nor can one token a sentence, (batch, dim), be told from (seq, dim):
    write (batch, 1, dim).

    Raises:
        TypeError: dim, max_len or offset is not an integer, x is not a floating tensor.
        ValueError: dim is odd, max_len or base out of range, dropout outside [0, 1], x has another width or
            rank, or x reaches beyond max_len.

    >>> layer = SinusoidalEncoding(4, dropout=0.0)
    >>> layer(torch.zeros(1, 2, 4))
    tensor([[[0.0000, 1.0000, 0.0000, 1.0000],
             [0.8415, 0.5403, 0.0100, 0.9999]]])

    Source: Vaswani et al. (2017), sections 3.5 and 5.4.
    """

    _fixed = ("dim", "max_len", "base")

    def __init__(self, dim: int, max_len: int = 5000, *, dropout: float = 0.1, base: float = 10000.0) -> None:
        super().__init__()
        self.dim = check_even_dim(dim)
        self.max_len = integer("max_len", max_len, minimum=1)
        self.base = check_base(base)
        self.dropout = check_dropout(dropout)
        self._keep(sinusoidal_encoding(self.max_len, self.dim, base=self.base, dtype=np.float32))
        self.register_load_state_dict_pre_hook(_drop_saved_table)

    def forward(self, x: Tensor, *, offset: int = 0, positions: Tensor | None = None) -> Tensor:
        """x plus its codes.

        Args:
            x: (batch, seq, dim) or (seq, dim), floating.
            offset: position of the first token. One token at a time with a growing offset gives, bit for
                bit, what one pass over the whole sequence gives.
            positions: explicit positions instead, integer or real, shape (seq,) or (batch, seq); computed
                by the formula, so not limited by max_len.
        """
        check_embeddings(x, self.dim)
        seq = x.shape[-2]
        if positions is not None:
            check_positions(positions, x, offset)
            return self._add(
                x, sinusoidal_encoding(positions, self.dim, base=self.base, dtype=wide_dtype(xp, x))
            )
        check_offset(offset)
        check_reach(offset, seq, self.max_len)
        if x.dtype == torch.float64:
            t = torch.arange(offset, offset + seq, device=x.device)
            return self._add(x, sinusoidal_encoding(t, self.dim, base=self.base, dtype=x.dtype))
        return self._add(x, self.table[offset : offset + seq].to(x.device))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, max_len={self.max_len}, base={self.base}"

    def _add(self, x: Tensor, codes: Tensor) -> Tensor:
        return self.dropout(add(x, codes))


def _drop_saved_table(module: SinusoidalEncoding, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """Let checkpoints of the common recipe load: it saves its table under the name "pe".

    Dropped only if it holds these very codes, as float32 arithmetic and its own dtype can say them; any other
    "pe", of another base or trained, stays, and torch reports it.
    """
    saved = state.get(prefix + "pe")
    if not isinstance(saved, Tensor) or saved.is_meta or not saved.is_floating_point():
        return
    if saved.shape[-1:] != (module.dim,) or saved.numel() == 0:
        return
    rows = saved.detach().cpu().double().reshape(-1, module.dim)
    exact = sinusoidal_encoding(rows.shape[0], module.dim, base=module.base, dtype=torch.float64)
    # The recipe makes angles t · exp(ln ω) in float32: a few units off, and |ln ω| times what ln ω is off.
    omega = torch.from_numpy(sinusoidal_frequencies(module.dim, module.base)).repeat_interleave(2)
    angles = torch.arange(rows.shape[0], dtype=torch.float64)[:, None] * omega
    unit = torch.finfo(torch.float32).eps
    allowed = unit * (1 + angles * (2 - omega.log())) + torch.finfo(saved.dtype).eps / 2 * exact.abs()
    if ((rows - exact).abs() <= allowed).all():
        del state[prefix + "pe"]
