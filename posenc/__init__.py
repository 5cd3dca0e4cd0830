"""posenc: every positional encoding of the Transformer, as small functions.

Formulas live here and need an array library only. Layers are in `posenc.nn` (torch), pictures in
`posenc.plot` (matplotlib), the small trainings that the book quotes in `posenc.experiments`.
The function `attention` is in the module of its name: `from posenc.attention import attention`.
"""

from posenc import addition, attention, learned, masks, naive, offsets, order, sinusoidal
from posenc.addition import add_positions, concat_positions
from posenc.learned import interpolate_table, learned_encoding
from posenc.masks import causal_mask
from posenc.naive import argmax_positions, integer_encoding, one_hot_encoding
from posenc.offsets import (
    alias_offsets,
    cosine_only_encoding,
    min_code_distance,
    offset_head,
    offset_share,
    positional_scores,
    relative_kernel,
    shift_matrix,
    sine_only_encoding,
    split_block,
    toeplitz_spread,
)
from posenc.order import equivariance_error, invariance_error, same_bag
from posenc.sinusoidal import (
    code_distance,
    decode_position,
    frequencies,
    sinusoidal_encoding,
    wavelengths,
)

__all__ = [
    "add_positions",
    "addition",
    "alias_offsets",
    "argmax_positions",
    "attention",
    "causal_mask",
    "code_distance",
    "concat_positions",
    "cosine_only_encoding",
    "decode_position",
    "equivariance_error",
    "frequencies",
    "integer_encoding",
    "interpolate_table",
    "invariance_error",
    "learned",
    "learned_encoding",
    "masks",
    "min_code_distance",
    "naive",
    "offset_head",
    "offset_share",
    "offsets",
    "one_hot_encoding",
    "order",
    "positional_scores",
    "relative_kernel",
    "same_bag",
    "shift_matrix",
    "sine_only_encoding",
    "sinusoidal",
    "sinusoidal_encoding",
    "split_block",
    "toeplitz_spread",
    "wavelengths",
]
