"""The pictures of the book, one function each. Needs matplotlib (`posenc[plot]`).

All share these arguments, which their docstrings leave out:

- `lang`: the language of the labels, "en" or "zh". Names that the caller gives are shown as they are. Chinese words
  get an installed font; `rcParams` stay as they are.
- `ax`: the axes to draw into; a new figure in the current style if None.

Each returns its axes, or its figure where it has several panels, so that a caller can go on from there. What cannot
be drawn raises TypeError or ValueError with the argument, its value and what would be right, and draws nothing.
"""

from posenc.plot.addition import table_sum, training_panels, vector_sum
from posenc.plot.alibi import alibi_maps, alibi_rows, alibi_weights
from posenc.plot.attention import attention_map
from posenc.plot.chart import curves
from posenc.plot.extrapolation import (
    accuracy_by_length,
    cosine_sums,
    distance_weights,
    score_by_position,
    seen_angles,
)
from posenc.plot.graphs import graph_codes
from posenc.plot.grids import axis_pairs, grid_maps
from posenc.plot.learned import table_lengths
from posenc.plot.locality import attention_blurs, locality_curves, rbf_bumps
from posenc.plot.masks import attention_pair, leak_paths, mask_maps, output_mask_bars, padding_sides
from posenc.plot.naive import distance_profiles, score_curves, sum_bars
from posenc.plot.order import order_blindness
from posenc.plot.parallel import ring_schedule, shard_rows
from posenc.plot.primer import position_entries
from posenc.plot.references import timeline
from posenc.plot.relative import bias_curves
from posenc.plot.rotary import head_scores, period_comb, rotating_pairs, score_decay
from posenc.plot.serving import cache_slots
from posenc.plot.shift import kernel_curves, offset_stripes, shift_arrows, shift_errors, toeplitz_maps
from posenc.plot.sinusoidal import (
    clock_hands,
    code_distances,
    heat_map,
    nearest_codes,
    waveforms,
    wavelength_ladder,
)
from posenc.plot.times import clip_axis

__all__ = [
    "accuracy_by_length", "alibi_maps", "alibi_rows", "alibi_weights", "attention_blurs", "attention_map",
    "attention_pair", "axis_pairs", "bias_curves", "cache_slots", "clip_axis", "clock_hands", "code_distances",
    "cosine_sums", "curves", "distance_profiles", "distance_weights", "graph_codes", "grid_maps",
    "head_scores", "heat_map", "kernel_curves", "leak_paths", "locality_curves", "mask_maps", "nearest_codes",
    "offset_stripes", "order_blindness", "output_mask_bars", "padding_sides", "period_comb",
    "position_entries", "rbf_bumps", "ring_schedule", "rotating_pairs", "score_by_position", "score_curves",
    "score_decay", "seen_angles", "shard_rows", "shift_arrows", "shift_errors", "sum_bars", "table_lengths",
    "table_sum", "timeline", "toeplitz_maps", "training_panels", "vector_sum", "waveforms", "wavelength_ladder",
]  # fmt: skip
