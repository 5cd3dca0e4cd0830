"""A call of every public formula and layer that is right: tests change one argument of it, or the library of all."""

import copy
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import posenc
from posenc import (
    addition,
    alibi,
    attention,
    contextual,
    extrapolation,
    graphs,
    grids,
    learned,
    locality,
    masks,
    naive,
    nn,
    parallel,
    shift,
    sinusoidal,
    times,
)
from posenc import relative as rel
from posenc import rotary as rope

RNG = np.random.default_rng(0)
T, GRID, PLACES = np.array([0, 7, 30]), np.array([[0, 1], [7, 30], [2, 2]]), np.arange(2000, 2300)
X, V, TABLE = RNG.normal(size=(4, 3, 4)), RNG.normal(size=(3, 4)), RNG.normal(size=(9, 4))
WIDE, W, NET = RNG.normal(size=(2, 300, 16)), RNG.uniform(0.1, 1, size=4), RNG.normal(size=(4, 5))
GATES, OMEGA = RNG.uniform(size=(4, 3, 3)), np.array([1.0, 0.01])
PADS = np.array([[False, False, True], [False] * 3])
LATER, TWO = np.triu(np.ones((3, 3), dtype=bool), 1), [V, V[::-1] / 3]
PATH = np.eye(4, k=1) + np.eye(4, k=-1)
PERIODS: dict[str, Any] = {"shortest": 0.2, "longest": 120.0}
YARN: dict[str, Any] = {"dim": 64, "factor": 8.0, "original_length": 4096}

# What takes whole positions only, and passes no gradient to them.
WHOLE = (
    "one_hot_encoding", "learned_encoding", "t5_bias", "t5_bucket", "relative_bias", "disentangled_scores",
)  # fmt: skip


class Call(NamedTuple):
    function: Callable[..., Any]
    arguments: dict[str, Any]

    def __call__(self, **change: Any) -> list[Any]:
        """The result, or several."""
        found = self.function(**copy.deepcopy(self.arguments) | change)  # a generator draws anew
        return list(found) if isinstance(found, tuple | list) else [found]

    def kinds(self) -> dict[str, str]:
        """The annotation of each argument."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: str(p.annotation) for p in parameters}


def call(function: Callable[..., Any], **arguments: Any) -> Call:
    return Call(function, arguments)


# Arrays of three positions, or of as many vectors, where nothing else is wanted.
FORMULAS = [
    call(addition.add_positions, x=X, pe=V, scale=True),
    call(addition.concat_positions, x=X, pe=V),
    call(alibi.alibi_slopes, num_heads=6, like=X),
    call(alibi.alibi_bias, slopes=W, query_positions=T, key_positions=T),
    call(alibi.add_alibi_columns, query=X, key=X / 3, slopes=W, positions=T, scale=0.5, center=1.5, width=12),
    call(attention.dot_product_attention, query=X, key=X / 3, value=X, bias=GATES, mask=LATER[None], scale=0.5),
    call(contextual.contextual_bias, query=V, table=TABLE, positions=3 * GATES[0]),
    call(contextual.contextual_positions, gates=GATES, max_position=2),
    call(contextual.forget_bias, log_gates=-W, n_query=2),
    call(contextual.forget_positions, log_gates=-W),
    call(extrapolation.attention_entropy, weights=GATES / GATES.sum(-1, keepdims=True)),
    call(extrapolation.first_negative, frequencies=OMEGA, limit=9),
    call(extrapolation.logn_scale, positions=T, trained_length=8),
    call(extrapolation.row_visits, num_rows=9, length=3, max_start=2),
    call(extrapolation.score_needed, biases=V, share=0.9),
    call(extrapolation.smallest_base, length=2, dim=8),
    call(extrapolation.turns, frequencies=OMEGA, length=32),
    call(extrapolation.unseen_angles, frequencies=OMEGA, trained_length=2, length=8, stretched=OMEGA / 2),
    call(graphs.anchor_distances, graph=PATH, anchors=[0]),
    call(graphs.laplacian_eigenvectors, graph=PATH, k=1),
    call(graphs.random_walk_probabilities, graph=PATH, steps=2, nodes=[0]),
    call(graphs.smallest_anchors, graph=PATH),
    call(grids.coordinate_encoding, coordinates=GRID, dim=8, order="mae"),
    call(grids.generated_rotation, generators=np.array([[[0.0, -1], [1, 0]]] * 2), coordinates=GRID),
    call(grids.grid_coordinates, shape=(2, 3)),
    call(grids.grid_encoding, shape=(2, 3), dim=8),
    call(grids.interpolate_grid, table=V, grid=(1, 2), new_grid=(3, 4), class_tokens=1),
    call(grids.interpolate_grid, table=V, grid=(1, 3), new_grid=(1, 3)),
    call(grids.jitter_coordinates, coordinates=V, rng=np.random.default_rng(0)),
    call(grids.reorder_grid, codes=V, axes=2, source="interleaved", target="timm"),
    call(learned.interpolate_table, table=V, length=8),
    call(learned.learned_encoding, positions=T, table=WIDE[0]),
    call(locality.gaussian_weights, n=3, std=1.0),
    call(locality.gram_condition, codes=V),
    call(locality.locality_profile, scores=W),
    call(locality.rbf_centers, n=3, sigma=1.0, spacing=0.5),
    call(locality.rbf_encoding, positions=T, centers=[0, 5.5], sigma=2.0),
    call(locality.rbf_kernel, offsets=T, sigma=2.0),
    call(locality.total_variation, first=W / W.sum(), second=W[::-1] / W.sum()),
    call(masks.apply_output_mask, x=X[:2], padding_mask=PADS),
    call(masks.causal_mask, n=3, like=X),
    call(masks.combine_masks, padding_mask=PADS, mask=LATER),
    call(masks.combine_masks, padding_mask=PADS),
    call(masks.document_ids, lengths=np.array([2, 1]), n=4),
    call(masks.document_mask, documents=np.array([0, 0, 1, -1])),
    call(masks.document_positions, documents=np.array([0, 0, 1, -1])),
    call(masks.empty_rows, mask=LATER),
    call(masks.key_padding_mask, lengths=np.array([2, 1]), n=4, side="left"),
    call(masks.leak_in, weights=GATES[:2], padding_mask=PADS),
    call(masks.leak_out, weights=GATES[:2], padding_mask=PADS),
    call(masks.masked_loss, losses=V[:2, :3], padding_mask=PADS),
    call(masks.masked_mean, x=X[:2], padding_mask=PADS),
    call(masks.multihead_mask, mask=LATER[None], num_heads=2),
    call(masks.multihead_mask, mask=LATER[None], num_heads=1),
    call(masks.pack_sequences, sequences=TWO, length=8),
    call(masks.pad_batch, sequences=TWO, length=4, side="left"),
    call(masks.positions_from_mask, padding_mask=PADS),
    call(masks.safe_mask, mask=LATER),
    call(masks.sdpa_mask, mask=LATER[None]),
    call(naive.argmax_positions, encoding=V, w_query=X.swapaxes(1, 2), w_key=X.swapaxes(1, 2) / 3),
    call(naive.integer_encoding, positions=T, dim=3, start=1),
    call(naive.one_hot_encoding, positions=T, size=31),
    call(parallel.ring_attention, queries=TWO, keys=TWO, values=TWO, positions=[T, T + 31], slopes=0.5),
    call(parallel.ring_step, state=None, query=V, key=V, value=V, query_positions=T, key_positions=T, slopes=0.5),
    call(parallel.ring_work, n=8, world=2),
    call(parallel.shard_positions, n=8, rank=0, world=2, like=X),
    call(rel.disentangled_scores, query=X, key=X / 3, key_table=TABLE, query_table=TABLE[:5] / 2, bias=TABLE[:3, 0],
         query_positions=T, key_positions=T),
    call(rel.four_terms, query=X, key=X / 3, query_codes=V, key_codes=V / 2),
    call(rel.relative_shift, products=TABLE[:2, :3]),
    call(rel.untie_first, bias=GATES, from_first=W, to_first=W / 2),
    call(rel.fire_bias, hidden_weight=NET[0], hidden_bias=NET[1], head_weight=NET, head_bias=W, query_positions=T,
         key_positions=T, threshold=4.0),
    call(rel.fire_distance, query_positions=T, key_positions=T),
    call(rel.kerple_bias, r1=W, r2=W / 2, query_positions=T, key_positions=T),
    call(rel.kerple_bias, r1=W, r2=W / 2, query_positions=T, key_positions=T, kind="power"),
    call(rel.relative_bias, table=TABLE, query_positions=T, key_positions=T),
    call(rel.relative_offsets, query_positions=T, key_positions=T),
    call(rel.shaw_attention, query=V, key=V, value=V, key_table=TABLE, value_table=TABLE, query_positions=T,
         key_positions=T, mask=LATER),
    call(rel.shaw_scores, query=V, table=TABLE, query_positions=T, key_positions=T),
    call(rel.shaw_values, weights=GATES[0], table=TABLE, query_positions=T, key_positions=T),
    call(rel.t5_bias, table=TABLE[:8], query_positions=T, key_positions=T, num_buckets=8, max_distance=6),
    call(rel.t5_bias, table=TABLE[:8], query_positions=T, num_buckets=8, bidirectional=False),
    call(rel.t5_bucket, offsets=T),
    call(rel.toeplitz_bias, values=TABLE[:5, 0], n_query=3),
    call(rope.apply_rotary, x=X, positions=T),
    call(rope.apply_rotary, x=WIDE, positions=PLACES, rotary_dim=12),
    call(rope.apply_rotary, x=WIDE[:, None], positions=PLACES, layout="half", scale=1.5),
    call(rope.apply_rotary_axes, x=X, coordinates=GRID, frequencies=[[1.0, 0.5], [0.0, 0.5]], rotary_dim=4, scale=2.0),
    call(rope.apply_xpos, query=WIDE[:, :3], key=WIDE[:, :3] / 3, positions=T, layout="half"),
    call(rope.axial_frequencies, dim=8, axes=2),
    call(rope.dynamic_ntk_frequencies, **YARN, length=9000),
    call(rope.find_period, series=np.arange(9.0) % 3, max_period=4),
    call(rope.half_to_interleaved, x=X),
    call(rope.interleaved_to_half, x=X, axis=1, rotary_dim=2, head_dim=3),
    call(rope.head_frequencies, wavelengths=T + 1),
    call(rope.linear_frequencies, dim=64, factor=2.0),
    call(rope.llama3_frequencies, **YARN),
    call(rope.longrope_attention_factor, factor=4.0, original_length=4096),
    call(rope.longrope_frequencies, dim=4, short_factors=[1, 1], long_factors=[1, 2], length=9, original_length=9),
    call(rope.mixed_frequencies, dim=8, angle=0.5),
    call(rope.mrope_coordinates, parts=[2, (1, 2, 2)]),
    call(rope.mrope_frequencies, dim=12, sections=(2, 2, 2)),
    call(rope.ntk_frequencies, dim=64, factor=2.0),
    call(rope.offset_query, key=V, offset=-2.0, layout="half"),
    call(rope.proportional_frequencies, dim=8, proportion=0.5),
    call(rope.rotary_matrix, position=T, dim=6),
    call(rope.yarn_attention_factor, factor=4.0, mscale=1.0, mscale_all_dim=1.0),
    call(rope.yarn_frequencies, **YARN),
    call(shift.alias_offsets, n=9, dim=4, tolerance=1.5),
    call(shift.offset_head, offset=T, dim=6, gain=2.0),
    call(shift.offset_share, scores=V),
    call(shift.positional_scores, encoding=V, w_query=X[0].T, w_key=X[0].T / 3),
    call(shift.relative_kernel, offsets=T, dim=6),
    call(shift.shift_matrix, offset=T, dim=6),
    call(shift.sine_only_encoding, positions=T, dim=5),
    call(shift.split_block, block=np.eye(2) / 3),
    call(shift.toeplitz_spread, scores=V),
    call(sinusoidal.code_distance, offsets=T, dim=6),
    call(sinusoidal.decode_position, codes=sinusoidal.sinusoidal_encoding(T, 16), n=40),
    call(sinusoidal.sinusoidal_encoding, positions=T, dim=6),
    call(sinusoidal.sinusoidal_frequencies, dim=6),
    call(sinusoidal.sinusoidal_wavelengths, dim=6),
    call(times.nearest_index, seconds=T, marks=np.arange(40.0), within=1.0),
    call(times.periodic_encoding, times=T, periods=[7.0, 30.0], harmonics=[1, 3]),
    call(times.periodic_frequencies, periods=[7.0, 30.0]),
    call(times.time_encoding, seconds=T, dim=6, **PERIODS),
    call(times.time_frequencies, dim=6, **PERIODS),
]  # fmt: skip
LAYERS = [
    call(nn.AlibiAttention, num_heads=4, slopes=W),
    call(nn.AlibiBias, num_heads=4, slopes=W),
    call(nn.ContextualPositions, dim=4, max_position=2),
    call(nn.FireBias, num_heads=2),
    call(nn.ForgetGate, dim=4, num_heads=4, slopes=W),
    call(nn.GridEncoding, dim=8, shape=(2, 2)),
    call(nn.GridRotary, dim=8, shape=(2, 2)),
    call(nn.KerpleBias, num_heads=2),
    call(nn.LearnedEncoding, dim=4, max_len=8),
    call(nn.RelativeBias, num_heads=2, max_offset=3),
    call(nn.RingAttention),
    call(nn.RotaryEmbedding, dim=4),
    call(nn.ShawAttention, dim=4, max_offset=2),
    call(nn.SinusoidalEncoding, dim=4, max_len=8),
    call(nn.T5Bias, num_heads=2),
    call(nn.TimeEncoding, dim=4, **PERIODS),
]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def public() -> Iterator[str]:
    """The name of every public function and layer of the formulas and layers that has arguments of its own."""
    for module in pkgutil.walk_packages([str(Path(posenc.__file__).parent)], "posenc."):
        if (
            module.name.startswith(("posenc.plot", "posenc.experiments", "posenc.check"))
            or "._" in module.name
        ):
            continue
        loaded = importlib.import_module(module.name)
        for name in getattr(loaded, "__all__", ()):
            made = getattr(loaded, name)
            if inspect.isfunction(made) or (inspect.isclass(made) and "__init__" in vars(made)):
                yield name
