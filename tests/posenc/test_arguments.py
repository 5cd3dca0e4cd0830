"""Arguments that all functions share: flags are True or False, and positions are ones that can be told apart."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch

import posenc
from posenc import nn
from posenc import relative as rel
from posenc import rotary as rope

X = np.ones((3, 4))
PATH = np.eye(3, k=1) + np.eye(3, k=-1)

# --- Flags

# How each function is called that has one: everything but its flags.
WITH_FLAGS: dict[str, Callable[..., Any]] = {
    "add_positions": lambda **flags: posenc.addition.add_positions(X, X, **flags),
    "alibi_bias": lambda **flags: posenc.alibi.alibi_bias(0.5, 3, **flags),
    "anchor_distances": lambda **flags: posenc.graphs.anchor_distances(PATH, [0], **flags),
    "grid_coordinates": lambda **flags: posenc.grids.grid_coordinates((2, 3), **flags),
    "interpolate_grid": lambda **flags: posenc.grids.interpolate_grid(X, (1, 3), (1, 5), **flags),
    "interpolate_table": lambda **flags: posenc.learned.interpolate_table(X, 5, **flags),
    "laplacian_eigenvectors": lambda **flags: posenc.graphs.laplacian_eigenvectors(PATH, 1, **flags),
    "mrope_frequencies": lambda **flags: rope.mrope_frequencies(12, (2, 2, 2), **flags),
    "ring_attention": lambda **flags: posenc.parallel.ring_attention([X], [X], [X], [np.arange(3)], **flags),
    "ring_step": lambda **flags: posenc.parallel.ring_step(
        None, X, X, X, np.arange(3), np.arange(3), **flags
    ),
    "t5_bias": lambda **flags: rel.t5_bias(np.ones(32), 3, **flags),
    "t5_bucket": lambda **flags: rel.t5_bucket(3, **flags),
    "yarn_frequencies": lambda **flags: rope.yarn_frequencies(64, 8, original_length=4096, **flags),
    "AlibiBias": lambda **flags: nn.AlibiBias(2, **flags),
    "LearnedEncoding": lambda **flags: nn.LearnedEncoding(4, 8, **flags),
    "RingAttention": lambda **flags: nn.RingAttention(**flags),
    "ShawAttention": lambda **flags: nn.ShawAttention(4, 2, **flags),
    "T5Bias": lambda **flags: nn.T5Bias(2, **flags),
    "TimeEncoding": lambda **flags: nn.TimeEncoding(4, shortest=1.0, longest=9.0, **flags),
}


def flags() -> Iterator[tuple[str, str]]:
    """The name of every public function and layer of the formulas and layers, with each of its flags."""
    for module in pkgutil.walk_packages([str(Path(posenc.__file__).parent)], "posenc."):
        if module.name.startswith(("posenc.plot", "posenc.experiments")) or "._" in module.name:
            continue
        loaded = importlib.import_module(module.name)
        for name in getattr(loaded, "__all__", ()):
            try:
                parameters = inspect.signature(getattr(loaded, name)).parameters.values()
            except (TypeError, ValueError):  # what is called by nobody, such as a type
                continue
            yield from ((name, p.name) for p in parameters if isinstance(p.default, bool))


FLAGS = sorted({*flags()} - {("PaddingChange", "inverted")})


def test_every_flag_is_in_the_table() -> None:
    assert {name for name, _ in FLAGS} == set(WITH_FLAGS)


@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_a_flag_is_true_or_false(name: str, flag: str) -> None:
    for good in (True, False):
        WITH_FLAGS[name](**{flag: good})
    for bad in ("no", 0, 1, None, np.False_):
        with pytest.raises(TypeError, match=f"^{flag} must be True or False, got {bad!r}"):
            WITH_FLAGS[name](**{flag: bad})


# --- Positions that their dtype cannot tell apart

ROWS = torch.ones(3, 4)

# Functions of three positions, (3,), in torch.
OF_POSITIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "sinusoidal_encoding": lambda t: posenc.sinusoidal.sinusoidal_encoding(t, 4),
    "sine_only_encoding": lambda t: posenc.shift.sine_only_encoding(t, 4),
    "integer_encoding": lambda t: posenc.naive.integer_encoding(t, 4, dtype=torch.float64),
    "rbf_encoding": lambda t: posenc.locality.rbf_encoding(t, [0.0, 1.0], 1.0),
    "rbf_kernel": lambda t: posenc.locality.rbf_kernel(t, 1.0),
    "code_distance": lambda t: posenc.sinusoidal.code_distance(t, 4),
    "logn_scale": lambda t: posenc.extrapolation.logn_scale(t, 32),
    "coordinate_encoding": lambda t: posenc.grids.coordinate_encoding(t[:, None], 4),
    "shift_matrix": lambda t: posenc.shift.shift_matrix(t, 4),
    "rotary_matrix": lambda t: rope.rotary_matrix(t, 4),
    "apply_rotary": lambda t: rope.apply_rotary(ROWS, t),
    "apply_rotary_axes": lambda t: rope.apply_rotary_axes(ROWS, t[:, None], np.ones((1, 2))),
    "apply_xpos": lambda t: rope.apply_xpos(ROWS, ROWS, t, center=float(t[0].double())),
    "relative_offsets": rel.relative_offsets,
    "alibi_bias": lambda t: posenc.alibi.alibi_bias(torch.ones(2), t),
    "add_alibi_columns": lambda t: posenc.alibi.add_alibi_columns(ROWS, ROWS, 0.5, t),
    "kerple_bias": lambda t: rel.kerple_bias(torch.ones(2), torch.ones(2), t),
    "fire_distance": rel.fire_distance,
    "ring_step": lambda t: posenc.parallel.ring_step(None, ROWS, ROWS, ROWS, t, t),
    "SinusoidalEncoding": lambda t: nn.SinusoidalEncoding(4, dropout=0.0)(ROWS, positions=t),
    "GridEncoding": lambda t: nn.GridEncoding(4, (3,), dropout=0.0)(ROWS, coordinates=t[:, None]),
    "RotaryEmbedding": lambda t: nn.RotaryEmbedding(4)(ROWS[None, None], ROWS[None, None], positions=t),
    "GridRotary": lambda t: nn.GridRotary(4, (3,))(ROWS[None, None], ROWS[None, None], coordinates=t[:, None]),
    "AlibiBias": lambda t: nn.AlibiBias(2)(query_positions=t),
    "KerpleBias": lambda t: nn.KerpleBias(2)(query_positions=t),
    "FireBias": lambda t: nn.FireBias(2)(query_positions=t),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_POSITIONS)
def test_positions_that_no_number_tells_apart_are_refused(name: str) -> None:
    """2^24 + 1 in float32 is 2^24, and 257 in bfloat16 is 256."""
    function, near = OF_POSITIONS[name], torch.tensor([0.0, 1.0, 2.0])
    function(near)
    function(near.double() + 2.0**24 if name != "apply_xpos" else near.double())
    function(near + (2.0**24 - 3))
    for dtype in (torch.bfloat16, torch.float16):
        with pytest.raises(TypeError, match=r"must be integers, float32 or float64, got"):
            function(near.to(dtype))
    with pytest.raises(
        ValueError, match=r"must be below 2\^24 in size, for torch\.float32 tells no neighbours"
    ):
        function(near + 2.0**24)


# Those of them that take a length, and those that take integers alone.
LENGTHS: dict[str, Callable[[Any], Any]] = {
    name: OF_POSITIONS[name]
    for name in (
        "sinusoidal_encoding", "sine_only_encoding", "integer_encoding", "rbf_encoding", "rbf_kernel", "code_distance",
        "logn_scale", "apply_rotary", "relative_offsets", "fire_distance",
    )
} | {
    "one_hot_encoding": lambda p: posenc.naive.one_hot_encoding(p, 9),
    "learned_encoding": lambda p: posenc.learned.learned_encoding(p, np.ones((9, 4))),
    "relative_kernel": lambda p: posenc.shift.relative_kernel(p, 4),
    "t5_bucket": lambda p: rel.t5_bucket(p),
    "relative_bias": lambda p: rel.relative_bias(np.ones(5), p),
    "alibi_bias": lambda p: posenc.alibi.alibi_bias(0.5, p),
    "key positions": lambda p: posenc.alibi.alibi_bias(0.5, 1 if isinstance(p, int | np.integer) else [0], p),
    "apply_xpos": lambda p: rope.apply_xpos(np.ones((3, 4)), np.ones((3, 4)), p)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", LENGTHS)
def test_an_integer_is_a_length_and_an_array_without_axes_is_nothing(name: str) -> None:
    call = LENGTHS[name]
    for three in (np.int64(3), np.uint8(3)):
        assert 3 in call(three).shape
        np.testing.assert_array_equal(call(three), call(3))
    for what in (np.array(5), np.float64(5), torch.tensor(5), torch.tensor(5.0), array_api_strict.asarray(5)):
        with pytest.raises(TypeError, match=r"int\(\.\.\.\) for a length, or an array with one axis"):
            call(what)


@pytest.mark.parametrize(
    "positions",
    [[2**53 + 1, 1], np.array([-(2**60)]), np.array([2**63], np.uint64), torch.tensor([-(2**63)])],
)
def test_integers_beyond_float64_are_refused(positions: Any) -> None:
    """Such as nanoseconds since 1970."""
    with pytest.raises(
        ValueError, match=r"positions must be within ±2\^53, beyond which float64 .* later start"
    ):
        posenc.sinusoidal.sinusoidal_encoding(positions, 4)
    posenc.sinusoidal.sinusoidal_encoding([2**53, -(2**53)], 4)


def test_float64_beyond_its_integers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"positions must be below 2\^53 in size, .*later start"):
        posenc.sinusoidal.sinusoidal_encoding(np.array([2.0**53]), 4)


def test_positions_of_cope_are_not_rounded_before() -> None:
    query, table, low = (torch.ones(*shape).bfloat16() for shape in ((1, 4), (300, 4), (1, 1)))
    with pytest.raises(
        TypeError, match=r"positions must be integers, float32 or float64, got dtype torch.bfloat16"
    ):
        posenc.contextual.contextual_bias(query, table, low)
