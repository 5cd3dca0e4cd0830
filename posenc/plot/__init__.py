"""The pictures of the book, one function each. Needs matplotlib (`posenc[plot]`).

Every function draws on the current figure style, takes `lang="en"` or `"zh"` for its labels and returns the
axes or the figure, so that a caller can go on from there. The first Chinese picture adds an installed Chinese
font to `rcParams["font.family"]`.
"""

from posenc.plot.addition import read_back_curves, table_sum, training_panels, vector_sum
from posenc.plot.alibi import alibi_maps, alibi_rows, alibi_weights, weight_curves
from posenc.plot.attention import attention_map
from posenc.plot.contextual import distance_steps
from posenc.plot.extrapolation import (
    accuracy_by_length,
    cosine_sums,
    distance_weights,
    entropy_curves,
    needed_scores,
    score_by_position,
    seen_angles,
    visit_shares,
)
from posenc.plot.graphs import graph_codes
from posenc.plot.grids import axis_pairs, grid_maps
from posenc.plot.learned import table_columns, table_lengths
from posenc.plot.locality import attention_blurs, locality_curves, rbf_bumps
from posenc.plot.masks import (
    attention_pair,
    leak_curves,
    leak_paths,
    loss_denominators,
    mask_maps,
    output_mask_bars,
    padding_sides,
)
from posenc.plot.naive import distance_profiles, energy_shares, score_curves, sum_bars
from posenc.plot.order import loss_curves, order_blindness
from posenc.plot.parallel import ring_schedule, shard_rows
from posenc.plot.primer import position_entries
from posenc.plot.relative import bias_curves, bucket_staircase
from posenc.plot.rotary import frequency_ratios, head_scores, period_comb, rotating_pairs, score_decay
from posenc.plot.shift import kernel_curves, offset_stripes, shift_arrows, shift_errors, toeplitz_maps
from posenc.plot.sinusoidal import (
    clock_hands,
    code_distances,
    heat_map,
    nearest_codes,
    waveforms,
    wavelength_ladder,
)
from posenc.plot.times import clip_axis, time_kernels

__all__ = [
    "accuracy_by_length",
    "alibi_maps",
    "alibi_rows",
    "alibi_weights",
    "attention_blurs",
    "attention_map",
    "attention_pair",
    "axis_pairs",
    "bias_curves",
    "bucket_staircase",
    "clip_axis",
    "clock_hands",
    "code_distances",
    "cosine_sums",
    "distance_profiles",
    "distance_steps",
    "distance_weights",
    "energy_shares",
    "entropy_curves",
    "frequency_ratios",
    "graph_codes",
    "grid_maps",
    "head_scores",
    "heat_map",
    "kernel_curves",
    "leak_curves",
    "leak_paths",
    "locality_curves",
    "loss_curves",
    "loss_denominators",
    "mask_maps",
    "nearest_codes",
    "needed_scores",
    "offset_stripes",
    "order_blindness",
    "output_mask_bars",
    "padding_sides",
    "period_comb",
    "position_entries",
    "rbf_bumps",
    "read_back_curves",
    "ring_schedule",
    "rotating_pairs",
    "score_by_position",
    "score_curves",
    "score_decay",
    "seen_angles",
    "shard_rows",
    "shift_arrows",
    "shift_errors",
    "sum_bars",
    "table_columns",
    "table_lengths",
    "table_sum",
    "time_kernels",
    "toeplitz_maps",
    "training_panels",
    "vector_sum",
    "visit_shares",
    "waveforms",
    "wavelength_ladder",
    "weight_curves",
]
