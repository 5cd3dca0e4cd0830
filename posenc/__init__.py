"""posenc: every positional encoding of the Transformer, as small functions.

Formulas need an array library only, and work on arrays of NumPy, torch and others. Here are by name the main
function of each method, with what makes its arguments, attention, and the masks of a decoder and an encoder.
Everything else is in the module of its chapter, such as `posenc.rotary.yarn_frequencies` or
`posenc.masks.pad_batch`, and needs no further import. Layers are in `posenc.nn` (torch), pictures in `posenc.plot`
(matplotlib), checks of any model in `posenc.check` (torch), the small trainings that the book quotes in
`posenc.experiments`: import those four where you need them.
"""

from typing import TYPE_CHECKING

from posenc import order as order
from posenc.addition import add_positions, concat_positions
from posenc.alibi import alibi_bias, alibi_slopes
from posenc.attention import dot_product_attention
from posenc.contextual import contextual_bias, contextual_positions, forget_bias
from posenc.extrapolation import logn_scale
from posenc.graphs import anchor_distances, laplacian_eigenvectors, random_walk_probabilities
from posenc.grids import grid_encoding
from posenc.learned import learned_encoding
from posenc.locality import rbf_centers, rbf_encoding
from posenc.masks import causal_mask, combine_masks, key_padding_mask
from posenc.naive import integer_encoding, one_hot_encoding
from posenc.parallel import ring_attention, shard_positions
from posenc.relative import fire_bias, kerple_bias, relative_bias, shaw_attention, t5_bias
from posenc.rotary import apply_rotary
from posenc.shift import shift_matrix
from posenc.sinusoidal import sinusoidal_encoding, sinusoidal_frequencies, sinusoidal_wavelengths
from posenc.times import periodic_encoding, time_encoding

__all__ = [
    "add_positions",
    "alibi_bias",
    "alibi_slopes",
    "anchor_distances",
    "apply_rotary",
    "causal_mask",
    "combine_masks",
    "concat_positions",
    "contextual_bias",
    "contextual_positions",
    "dot_product_attention",
    "fire_bias",
    "forget_bias",
    "grid_encoding",
    "integer_encoding",
    "kerple_bias",
    "key_padding_mask",
    "laplacian_eigenvectors",
    "learned_encoding",
    "logn_scale",
    "one_hot_encoding",
    "periodic_encoding",
    "random_walk_probabilities",
    "rbf_centers",
    "rbf_encoding",
    "relative_bias",
    "ring_attention",
    "shard_positions",
    "shaw_attention",
    "shift_matrix",
    "sinusoidal_encoding",
    "sinusoidal_frequencies",
    "sinusoidal_wavelengths",
    "t5_bias",
    "time_encoding",
]

__version__ = "0.1.0"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Where a name is that is not here."""
        hint = (
            f": import posenc.{name}" if name in ("check", "exercises", "experiments", "nn", "plot") else ""
        )
        if hint or name.startswith("_"):
            raise AttributeError(f"module 'posenc' has no attribute {name!r}{hint}")
        from posenc import _missing

        raise _missing.error(name, __all__)
