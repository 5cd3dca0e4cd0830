"""Rotary position embedding (RoPE): rotate queries and keys by position, so that scores depend on offsets.

A vector of width dim is read as dim/2 points of a plane. Position t rotates point i counter-clockwise by the
angle ω_i t. The dot product of two rotated vectors depends on the difference of their positions, not on the
positions.

The layout says which two numbers of the vector form a point. "interleaved" pairs neighbours (0, 1), (2, 3),
...; "half" pairs (0, dim/2), (1, dim/2 + 1), ... Both are in use. They are the same operation on reordered
columns. A model that was trained with one layout gives wrong results with the other until its columns are
reordered.

rotation   rotates queries and keys; the rotation as a matrix
layouts    converts activations and weights from one layout to the other
scaling    frequencies for texts longer than in training: linear, NTK, YaRN, Llama 3, LongRoPE
axes       several axes: images, video, and text between them
heads      frequencies for each head; the period of a series
config     what a configuration of transformers says
xpos       a rotation with a decay

Source: Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding (2021), section 3.
https://arxiv.org/abs/2104.09864
"""

from posenc.rotary.axes import (
    apply_rotary_axes,
    axial_frequencies,
    mixed_frequencies,
    mrope_coordinates,
    mrope_frequencies,
)
from posenc.rotary.config import LayerRotation, RotaryConfig, from_config
from posenc.rotary.heads import find_period, head_frequencies
from posenc.rotary.layouts import half_to_interleaved, interleaved_to_half
from posenc.rotary.rotation import apply_rotary, offset_query, rotary_matrix
from posenc.rotary.scaling import (
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
from posenc.rotary.xpos import apply_xpos

__all__ = [
    "LayerRotation",
    "RotaryConfig",
    "apply_rotary",
    "apply_rotary_axes",
    "apply_xpos",
    "axial_frequencies",
    "dynamic_ntk_frequencies",
    "find_period",
    "from_config",
    "half_to_interleaved",
    "head_frequencies",
    "interleaved_to_half",
    "linear_frequencies",
    "llama3_frequencies",
    "longrope_attention_factor",
    "longrope_frequencies",
    "mixed_frequencies",
    "mrope_coordinates",
    "mrope_frequencies",
    "ntk_frequencies",
    "offset_query",
    "proportional_frequencies",
    "rotary_matrix",
    "yarn_attention_factor",
    "yarn_frequencies",
]
