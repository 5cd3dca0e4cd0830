"""Learned positional embeddings as a layer: one trained row for each position, added to the token embeddings."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from posenc._checks import check_flag, integer, number
from posenc.learned import Overflow, check_overflow, interpolate_table, learned_encoding
from posenc.nn._inputs import add, check_dropout, check_embeddings, check_offset, check_positions, check_reach

__all__ = ["LearnedEncoding"]


class LearnedEncoding(nn.Module):
    """Adds a trained vector for each position to its input, then applies dropout.

    forward(x) = dropout(x + weight[offset], ..., weight[offset + seq − 1]).

    The table `weight`, (max_len, dim), is a parameter: it is trained, saved, and cast by `.to()` like any
    other. It has the name and shape of the weight of torch.nn.Embedding(max_len, dim), so checkpoints of that
    layer load. A table and an input of different dtypes are added in the wider one and rounded once to the
    dtype of x.

    Args:
        dim: width of the input, at least 1.
        max_len: number of positions, each with a row of its own.
        dropout: probability of zeroing an element of the sum while training.
        overflow: "error" raises an error for positions from max_len on, "clamp" gives them the last row.
        std: standard deviation of the normal distribution that the rows start from; 0.02 in BERT and ViT.
        resize_on_load: whether a checkpoint with another number of rows is interpolated to max_len while it
            loads (`posenc.learned.interpolate_table`, first row to first, last to last). If not, it is an error.

    Shapes:
        x: (batch, seq, dim) or (seq, dim). Result: the shape and dtype of x.

    An input (batch, dim) would be read as (seq, dim). For one token in each sentence pass (batch, 1, dim).

    Raises:
        TypeError: dim, max_len or offset is not an integer, resize_on_load not a bool, x is not a floating
            tensor.
        ValueError: dim, max_len, dropout or std out of range, x has another width or rank, or x reaches
            beyond max_len while overflow is "error".

    >>> layer = LearnedEncoding(768, 512)
    >>> sum(parameter.numel() for parameter in layer.parameters())
    393216

    Source: Devlin et al., BERT (2019), section 3; Dosovitskiy et al. (2021), section 3.1.
    """

    dim: int
    overflow: Overflow
    std: float
    resize_on_load: bool
    dropout: nn.Dropout
    weight: nn.Parameter

    def __init__(
        self,
        dim: int,
        max_len: int,
        *,
        dropout: float = 0.1,
        overflow: Overflow = "error",
        std: float = 0.02,
        resize_on_load: bool = False,
    ) -> None:
        super().__init__()
        self.dim = integer("dim", dim, minimum=1)
        self.overflow = check_overflow(overflow)
        self.std = number("std", std, at_least=0)
        check_flag("resize_on_load", resize_on_load)
        self.resize_on_load = resize_on_load
        self.dropout = check_dropout(dropout)
        self.weight = nn.Parameter(torch.empty(integer("max_len", max_len, minimum=1), self.dim))
        self.reset_parameters()
        self.register_load_state_dict_pre_hook(_resize_saved_table)

    @property
    def max_len(self) -> int:
        """Number of positions that have a row."""
        return self.weight.shape[0]

    def reset_parameters(self) -> None:
        """Fill the table with fresh random rows, as after `to_empty`."""
        nn.init.normal_(self.weight, std=self.std)

    def forward(self, x: Tensor, *, offset: int = 0, positions: Tensor | None = None) -> Tensor:
        """x plus its rows.

        Args:
            x: (batch, seq, dim) or (seq, dim), floating.
            offset: position of the first token. One token at a time with a growing offset gives, bit for
                bit, what one pass over the whole sequence gives.
            positions: explicit whole positions instead, shape (seq,) or (batch, seq). They are checked, for
                which a GPU has to be waited for; in a compiled graph torch checks them when it runs.
        """
        check_embeddings(x, self.dim)
        if positions is not None:
            check_positions(positions, x, offset)
            rows = learned_encoding(positions, self.weight, overflow=self.overflow)
            return self.dropout(add(x, rows))
        check_offset(offset)
        if self.overflow == "error":
            check_reach(offset, x.shape[-2], self.max_len)
        t = torch.arange(offset, offset + x.shape[-2], device=self.weight.device).clamp(max=self.max_len - 1)
        return self.dropout(add(x, self.weight[t]))

    def resize(self, length: int, *, align_corners: bool = True) -> LearnedEncoding:
        """Give the table another number of rows, interpolated from those it has; returns the layer.

        The parameter stays the same object with other numbers in it and without a gradient. An optimizer that
        has already made steps still holds averages of the old shape and will raise: make a new one.

        Args:
            length, align_corners: as in `posenc.learned.interpolate_table`.
        """
        with torch.no_grad():
            self.weight.data = interpolate_table(self.weight.detach(), length, align_corners=align_corners)
        self.weight.grad = None
        return self

    def extra_repr(self) -> str:
        return f"dim={self.dim}, max_len={self.max_len}, overflow={self.overflow!r}"


def _resize_saved_table(module: LearnedEncoding, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """On request only, fit the rows of a checkpoint; another width stays, and torch reports it."""
    saved = state.get(prefix + "weight")
    if not module.resize_on_load or not isinstance(saved, Tensor):
        return
    if saved.ndim == 2 and saved.shape[0] > 0 and saved.shape[1] == module.dim:
        state[prefix + "weight"] = interpolate_table(saved, module.max_len)
