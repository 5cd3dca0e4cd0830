"""Relative positions: the score of a query and a key gets a term that depends on their offset.

The offset is k = u − t, the key position u minus the query position t. A key to the left has k < 0.

offsets   the offset of every key from every query, and matrices that depend on the offset alone
tables    a trained number for each offset
t5        a trained number for each bucket of offsets
kernels   a function of the offset with few trained numbers: KERPLE, FIRE
vectors   a trained vector for each offset, in the scores and in the output: Shaw
disentangled  words and places apart: the four terms of a score, Transformer-XL, DeBERTa, TUPE
"""

from posenc.relative.disentangled import disentangled_scores, four_terms, relative_shift, untie_first
from posenc.relative.kernels import fire_bias, fire_distance, kerple_bias
from posenc.relative.offsets import relative_offsets, toeplitz_bias
from posenc.relative.t5 import t5_bias, t5_bucket
from posenc.relative.tables import relative_bias
from posenc.relative.vectors import shaw_attention, shaw_scores, shaw_values

__all__ = [
    "disentangled_scores",
    "fire_bias",
    "fire_distance",
    "four_terms",
    "kerple_bias",
    "relative_bias",
    "relative_offsets",
    "relative_shift",
    "shaw_attention",
    "shaw_scores",
    "shaw_values",
    "t5_bias",
    "t5_bucket",
    "toeplitz_bias",
    "untie_first",
]
