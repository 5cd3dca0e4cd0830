"""posenc: every positional encoding of the Transformer, as small functions.

Formulas live here and need an array library only. Layers are in `posenc.nn` (torch), pictures in
`posenc.plot` (matplotlib), the small trainings that the book quotes in `posenc.experiments`.
The function `attention` is in the module of its name: `from posenc.attention import attention`.
"""

from posenc import (
    addition,
    attention,
    learned,
    masks,
    naive,
    offsets,
    order,
    rotary,
    rotary_axes,
    rotary_scaling,
    sinusoidal,
)
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
from posenc.rotary import (
    find_period,
    half_to_interleaved,
    head_frequencies,
    interleaved_to_half,
    offset_query,
    rotary_matrix,
    rotate,
    rotate_xpos,
)
from posenc.rotary_axes import axial_frequencies, mrope_coordinates, mrope_frequencies, rotate_axes
from posenc.rotary_scaling import (
    dynamic_ntk_frequencies,
    linear_frequencies,
    llama3_frequencies,
    longrope_attention_factor,
    longrope_frequencies,
    ntk_frequencies,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)
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
    "axial_frequencies",
    "causal_mask",
    "code_distance",
    "concat_positions",
    "cosine_only_encoding",
    "decode_position",
    "dynamic_ntk_frequencies",
    "equivariance_error",
    "find_period",
    "frequencies",
    "half_to_interleaved",
    "head_frequencies",
    "integer_encoding",
    "interleaved_to_half",
    "interpolate_table",
    "invariance_error",
    "learned",
    "learned_encoding",
    "linear_frequencies",
    "llama3_frequencies",
    "longrope_attention_factor",
    "longrope_frequencies",
    "masks",
    "min_code_distance",
    "mrope_coordinates",
    "mrope_frequencies",
    "naive",
    "ntk_frequencies",
    "offset_head",
    "offset_query",
    "offset_share",
    "offsets",
    "one_hot_encoding",
    "order",
    "positional_scores",
    "proportional_frequencies",
    "relative_kernel",
    "rotary",
    "rotary_axes",
    "rotary_matrix",
    "rotary_scaling",
    "rotate",
    "rotate_axes",
    "rotate_xpos",
    "same_bag",
    "shift_matrix",
    "sine_only_encoding",
    "sinusoidal",
    "sinusoidal_encoding",
    "split_block",
    "toeplitz_spread",
    "wavelengths",
    "yarn_attention_factor",
    "yarn_frequencies",
]
