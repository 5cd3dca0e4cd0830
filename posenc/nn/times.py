"""The encoding of times as a layer, with a time scale that may be learned."""

from __future__ import annotations

import torch
from array_api_compat import torch as xp
from torch import Tensor, nn

from posenc._arrays import to_device_of, wide_dtype
from posenc._checks import check_flag
from posenc.nn._inputs import add, check_embeddings, check_positions
from posenc.sinusoidal import codes_at
from posenc.times import as_times, time_frequencies

__all__ = ["TimeEncoding"]


class TimeEncoding(nn.Module):
    """Adds the code of its time to each token.

    forward(x, t) = x + PE(t), or x + PE(t · e^log_scale) with a learned scale.

    There is no table: a code is made from its time alone, in float64, rounded to float32 (float64 for float64
    input) and added. So one token at a time gives, bit for bit, what a whole clip gives, times may come in any
    order, and `.to(torch.bfloat16)` spoils nothing but the learned scale itself, whose 8 bits are then those of
    a parameter.

    Args:
        dim: width of the input, even and at least 4.
        shortest, longest: as in `posenc.times.time_frequencies`, in the unit of the times.
        learned_scale: whether times are multiplied by e^log_scale, one parameter that starts at 0. It moves all
            periods together. It can correct times that are ten or a hundred times too small. If they are a thousand
            times too small, no wave moves, and often there is nothing to learn from.

    Shapes:
        x: (batch, seq, dim) or (seq, dim). t: (seq,) or (batch, seq). Result: the shape and dtype of x.

    Raises:
        TypeError, ValueError: as in `posenc.time_encoding`; x has another width or rank, or t another shape.

    >>> layer = TimeEncoding(4, shortest=1.0, longest=10.0)
    >>> layer(torch.zeros(2, 4), torch.tensor([0.0, 0.25])).round(decimals=4) + 0.0
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [1.0000, 0.0000, 0.1564, 0.9877]])

    Source: as `posenc.time_encoding`.
    """

    log_scale: nn.Parameter | None

    def __init__(self, dim: int, *, shortest: float, longest: float, learned_scale: bool = False) -> None:
        super().__init__()
        self._frequencies = time_frequencies(dim, shortest=shortest, longest=longest)
        self.dim = 2 * len(self._frequencies)
        self.shortest, self.longest = float(shortest), float(longest)
        check_flag("learned_scale", learned_scale)
        self.log_scale = nn.Parameter(torch.zeros(())) if learned_scale else None

    def reset_parameters(self) -> None:
        """Set the scale to 1 again, for instance after `to_empty`."""
        if self.log_scale is not None:
            nn.init.zeros_(self.log_scale)

    @property
    def scale(self) -> float | None:
        """The factor on the times. None if it is not learned."""
        return None if self.log_scale is None else float(self.log_scale.detach().double().exp())

    def forward(self, x: Tensor, seconds: Tensor) -> Tensor:
        """x plus the codes of its times.

        Args:
            x: (batch, seq, dim) or (seq, dim), floating.
            seconds: the time of each token in seconds, integer or float32 or float64, shape (seq,) or (batch, seq).
        """
        check_embeddings(x, self.dim)
        check_positions(seconds, x, name="seconds")
        _, t = as_times("seconds", seconds, self.shortest)
        if self.log_scale is not None:
            _, t = as_times("seconds", t * self.log_scale.double().exp(), self.shortest)
        return add(x, codes_at(t, to_device_of(self._frequencies, t, xp), wide_dtype(xp, x), xp))

    def extra_repr(self) -> str:
        learned = ", learned_scale=True" if self.log_scale is not None else ""
        return f"dim={self.dim}, shortest={self.shortest:g}, longest={self.longest:g}{learned}"
