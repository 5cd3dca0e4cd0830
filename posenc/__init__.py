"""posenc: every positional encoding of the Transformer, as small functions.

Formulas need an array library only, and work on arrays of NumPy, torch and others. What most callers want is
here by name; the rest is in the module of its chapter, such as `posenc.shift` or `posenc.rotary`. Layers are
in `posenc.nn` (torch), pictures in `posenc.plot` (matplotlib), the small trainings that the book quotes in
`posenc.experiments`: those three are imported by whoever needs them.
"""

from typing import TYPE_CHECKING

from posenc.addition import add_positions, concat_positions
from posenc.alibi import alibi_bias, alibi_slopes
from posenc.attention import dot_product_attention
from posenc.contextual import contextual_bias, contextual_positions, forget_bias, forget_positions
from posenc.extrapolation import logn_scale
from posenc.graphs import anchor_distances, laplacian_eigenvectors, random_walk_probabilities
from posenc.grids import grid_coordinates, grid_encoding, interpolate_grid, reorder_grid
from posenc.learned import interpolate_table, learned_encoding
from posenc.locality import rbf_encoding
from posenc.masks import (
    apply_output_mask,
    causal_mask,
    check_padding,
    combine_masks,
    document_mask,
    document_positions,
    key_padding_mask,
    masked_loss,
    masked_mean,
    multihead_mask,
    pack_sequences,
    pad_batch,
    positions_from_mask,
    safe_mask,
    sdpa_mask,
)
from posenc.naive import integer_encoding, one_hot_encoding
from posenc.parallel import ring_attention, shard_positions
from posenc.relative import fire_bias, kerple_bias, relative_bias, shaw_attention, t5_bias, t5_bucket
from posenc.rotary import (
    apply_rotary,
    apply_rotary_axes,
    half_to_interleaved,
    interleaved_to_half,
    linear_frequencies,
    llama3_frequencies,
    mrope_coordinates,
    ntk_frequencies,
    rotary_matrix,
    yarn_attention_factor,
    yarn_frequencies,
)
from posenc.shift import shift_matrix
from posenc.sinusoidal import sinusoidal_encoding, sinusoidal_frequencies, sinusoidal_wavelengths
from posenc.times import periodic_encoding, time_encoding

__all__ = [
    "add_positions",
    "alibi_bias",
    "alibi_slopes",
    "anchor_distances",
    "apply_output_mask",
    "apply_rotary",
    "apply_rotary_axes",
    "causal_mask",
    "check_padding",
    "combine_masks",
    "concat_positions",
    "contextual_bias",
    "contextual_positions",
    "document_mask",
    "document_positions",
    "dot_product_attention",
    "fire_bias",
    "forget_bias",
    "forget_positions",
    "grid_coordinates",
    "grid_encoding",
    "half_to_interleaved",
    "integer_encoding",
    "interleaved_to_half",
    "interpolate_grid",
    "interpolate_table",
    "kerple_bias",
    "key_padding_mask",
    "laplacian_eigenvectors",
    "learned_encoding",
    "linear_frequencies",
    "llama3_frequencies",
    "logn_scale",
    "masked_loss",
    "masked_mean",
    "mrope_coordinates",
    "multihead_mask",
    "ntk_frequencies",
    "one_hot_encoding",
    "pack_sequences",
    "pad_batch",
    "periodic_encoding",
    "positions_from_mask",
    "random_walk_probabilities",
    "rbf_encoding",
    "relative_bias",
    "reorder_grid",
    "ring_attention",
    "rotary_matrix",
    "safe_mask",
    "sdpa_mask",
    "shard_positions",
    "shaw_attention",
    "shift_matrix",
    "sinusoidal_encoding",
    "sinusoidal_frequencies",
    "sinusoidal_wavelengths",
    "t5_bias",
    "t5_bucket",
    "time_encoding",
    "yarn_attention_factor",
    "yarn_frequencies",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Where a name is that is not here."""
        if name in ("experiments", "nn", "plot"):
            hint = f"it is a module of its own: import posenc.{name}"
        else:
            hint = "layers are in posenc.nn, pictures in posenc.plot, measures in the module of their chapter"
        raise AttributeError(f"module 'posenc' has no attribute {name!r}: {hint}")
