"""One formula for every array library: what the standard does not promise, no formula may use."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, assert_type

import array_api_strict
import numpy as np
import pytest
import torch

import posenc
from posenc import (
    addition,
    alibi,
    extrapolation,
    grids,
    learned,
    locality,
    naive,
    parallel,
    shift,
    sinusoidal,
)
from posenc import relative as rel
from posenc import rotary as rope

Convert = Callable[[Any], Any]

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4))
WIDE = RNG.normal(size=(2, 300, 16))
PLACES = np.arange(2000, 2300)
T = np.array([[0, 1], [7, 30]])
Q, K = np.array([[2, 7]]), np.array([[0, 1, 9]])
TABLE, W = RNG.normal(size=(9, 3)), RNG.normal(size=5)
HALVES = [np.arange(3), np.arange(3, 6)]
MASK = posenc.causal_mask(3)


def strict(array: Any) -> Any:
    """An array of the library that implements the array API standard and nothing beyond it."""
    return array_api_strict.asarray(np.asarray(array))


def tensor(array: Any) -> torch.Tensor:
    return torch.asarray(np.ascontiguousarray(array))


def ring(shards: list[Any], positions: list[Any]) -> list[Any]:
    return parallel.ring_attention(shards, shards, shards, positions, slopes=0.5)


# Every function that takes arrays; `a` makes NumPy's into those of a library.
CALLS: dict[str, Callable[[Convert], Any]] = {
    "add_positions": lambda a: addition.add_positions(a(X), a(X[::-1] / 3), scale=True),
    "concat_positions": lambda a: addition.concat_positions(a(X), a(X[::-1] / 3)),
    "coordinate_encoding": lambda a: grids.coordinate_encoding(a(T), 8, order="mae"),
    "interpolate_grid": lambda a: grids.interpolate_grid(a(X), (1, 2), (3, 4), class_tokens=1),
    "jitter_coordinates": lambda a: grids.jitter_coordinates(a(X), np.random.default_rng(0), shift=0.5, jitter=2.0),
    "reorder_grid": lambda a: grids.reorder_grid(a(X), 2, "interleaved", "timm"),
    "interpolate_table": lambda a: learned.interpolate_table(a(X), 8),
    "learned_encoding": lambda a: learned.learned_encoding(a(T), a(X), overflow="clamp"),
    "half_to_interleaved": lambda a: rope.half_to_interleaved(a(X)),
    "interleaved_to_half": lambda a: rope.interleaved_to_half(a(X), axis=0, rotary_dim=2, head_dim=3),
    "offset_query": lambda a: rope.offset_query(a(X), -2, layout="half"),
    "rotary_matrix": lambda a: rope.rotary_matrix(a(T), 6),
    "apply_rotary": lambda a: rope.apply_rotary(a(WIDE), a(PLACES), rotary_dim=12),
    "apply_rotary half": lambda a: rope.apply_rotary(a(WIDE[:, None]), a(PLACES), layout="half", scale=1.5),
    "apply_rotary_axes": lambda a: rope.apply_rotary_axes(
        a(np.stack([WIDE[:, :2]] * 3, 1)), a(np.stack([T, T + 5])[:, None]), rope.axial_frequencies(8, 2),
        rotary_dim=8, scale=2.0),
    "apply_xpos": lambda a: rope.apply_xpos(a(WIDE), a(WIDE[::-1]), 300, layout="half"),
    "relative_offsets": lambda a: rel.relative_offsets(a(Q), a(K)),
    "toeplitz_bias": lambda a: [rel.toeplitz_bias(a(TABLE.T), n) for n in (0, 1, 3, 5)],
    "relative_bias": lambda a: [rel.relative_bias(a(TABLE), *n) for n in ((4, 7), (a(Q), a(K)))],
    "t5_bucket": lambda a: rel.t5_bucket(a(T)),
    "t5_bias": lambda a: [rel.t5_bias(a(TABLE[:8]), *n, num_buckets=8, max_distance=6) for n in ((4, 7), (a(Q), a(K)))],
    "t5_bias causal": lambda a: rel.t5_bias(a(TABLE[:8]), a(Q), a(K), num_buckets=8, bidirectional=False),
    "kerple_bias": lambda a: [rel.kerple_bias(a(W**2), a(W**2 / 4), *n) for n in ((4, 7), (a(Q), a(K)))],
    "kerple_bias power": lambda a: rel.kerple_bias(a(W**2), a(W**2 / 4), a(Q), a(K), kind="power"),
    "fire_distance": lambda a: rel.fire_distance(a(Q), a(K)),
    "fire_bias": lambda a: [rel.fire_bias(a(W), a(-W), a(X[:, [0] * 5]), a(X[:, 1]), *n, threshold=4.0)
                            for n in ((4, 7), (a(Q), a(K)))],
    "shaw_attention": lambda a: rel.shaw_attention(a(X), a(X), a(X[::-1]), a(TABLE[:3, [0, 1, 2, 1]]), a(X)),
    "shaw_scores": lambda a: rel.shaw_scores(a(WIDE[:, :9]), a(WIDE[0, :5])),
    "sinusoidal_encoding": lambda a: sinusoidal.sinusoidal_encoding(a(T), 6),
    "code_distance": lambda a: sinusoidal.code_distance(a(T), 6),
    "decode_position": lambda a: sinusoidal.decode_position(a(sinusoidal.sinusoidal_encoding(T, 16)), 40),
    "integer_encoding": lambda a: naive.integer_encoding(a(T), 3, start=1),
    "one_hot_encoding": lambda a: naive.one_hot_encoding(a(T), 31),
    "turns": lambda a: extrapolation.turns(a(X[0] ** 2), 32),
    "unseen_angles": lambda a: extrapolation.unseen_angles(a(X[0] ** 2), 1, 8, stretched=a(X[0] ** 2 / 2)),
    "logn_scale": lambda a: extrapolation.logn_scale(a(T), 8),
    "attention_entropy": lambda a: extrapolation.attention_entropy(a(np.abs(X) / np.abs(X).sum(1)[:, None])),
    "score_needed": lambda a: extrapolation.score_needed(a(X), 0.9),
    "argmax_positions": lambda a: naive.argmax_positions(a(X), a(X[:, :2].repeat(2, 0)[:4]), a(X[:2].T)),
    "dot_product_attention": lambda a: posenc.dot_product_attention(a(X), a(X), a(X), bias=a(X @ X.T), mask=a(MASK))[0],
    "ring_attention": lambda a: ring([a(X), a(X[::-1])], [*map(a, HALVES)]),
}  # fmt: skip

# Those whose result is a sum or product of what is given: in a low precision they compute in float32, and round once.
ROUNDED = [
    "add_positions", "concat_positions", "interpolate_grid", "reorder_grid", "interpolate_table", "learned_encoding",
    "offset_query", "apply_rotary", "apply_rotary half", "apply_rotary_axes", "apply_xpos", "relative_bias", "t5_bias",
    "kerple_bias", "kerple_bias power", "fire_bias", "shaw_attention", "ring_attention",
]  # fmt: skip


def results(name: str, convert: Convert) -> list[Any]:
    found = CALLS[name](convert)
    return list(found) if isinstance(found, tuple | list) else [found]


@pytest.mark.parametrize("library", [strict, tensor])
@pytest.mark.parametrize("name", CALLS)
def test_result_stays_in_the_library_and_equals_numpy(name: str, library: Convert) -> None:
    for ours, numpy in zip(results(name, library), results(name, np.asarray), strict=True):
        assert type(ours) is type(library(X))
        atol = 1e-6 if "float32" in str(ours.dtype) else 1e-12
        np.testing.assert_allclose(np.asarray(ours), numpy, atol=atol)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ROUNDED)
def test_a_low_precision_is_kept_and_rounded_once(name: str, dtype: torch.dtype) -> None:
    def low(array: Any) -> torch.Tensor:
        given = tensor(array)
        return given.to(dtype) if given.is_floating_point() else given

    def widened(array: Any) -> torch.Tensor:
        given = low(array)
        return given.double() if given.is_floating_point() else given

    for ours, exact in zip(results(name, low), results(name, widened), strict=True):
        assert ours.dtype == dtype
        unit = torch.finfo(dtype).eps * 2 ** exact.abs().clamp(min=2**-14).log2().floor()
        assert ((ours.double() - exact).abs() <= unit / 2 + 2e-6).all()


# With constants of NumPy, which torch.compile knows by another dtype.
GRAPHS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "frequencies": (lambda x: rope.apply_rotary(x, 3, frequencies=np.array([2.0, 0.02])), (X,)),
    "axes": (lambda x, t: rope.apply_rotary_axes(x, t, rope.axial_frequencies(4, 2)), (X, np.arange(6).reshape(3, 2))),
    "grids": (lambda x: grids.interpolate_grid(x, (1, 3), (3, 4)), (X,)),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_tables_of_numpy_in_one_graph(name: str) -> None:
    function, arrays = GRAPHS[name]
    given = [tensor(array) for array in arrays]
    compiled = torch.compile(function, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(*given), function(*given))


A: Any = np.ones((3, 4))
WITHOUT: list[tuple[str, Any]] = [
    ("x", lambda no: addition.add_positions(no, A)),
    ("pe", lambda no: addition.add_positions(A, no)),
    ("pe", lambda no: addition.concat_positions(A, no)),
    ("query", lambda no: rel.shaw_scores(no, A)),
    ("table", lambda no: rel.shaw_scores(A, no)),
    ("table", lambda no: rel.shaw_values(A, no)),
    ("key_table", lambda no: rel.shaw_attention(A, A, A, no)),
    ("scores", lambda no: shift.toeplitz_spread(no)),
    ("scores", lambda no: shift.offset_share(no)),
    ("block", lambda no: shift.split_block(no)),
    ("w_query", lambda no: shift.positional_scores(A, no, A)),
    ("x", lambda no: rope.interleaved_to_half(no)),
    ("x", lambda no: rope.apply_rotary(no, 3)),
    ("frequencies", lambda no: rope.apply_rotary_axes(A, A[:, :2], no)),
    ("values", lambda no: rel.toeplitz_bias(no, 1)),
    ("head_weight", lambda no: rel.fire_bias(A[0], A[0], no, A[0], 3)),
    ("table", lambda no: rel.relative_bias(no, 3)),
    ("table", lambda no: learned.learned_encoding(3, no)),
    ("table", lambda no: grids.interpolate_grid(no, (1, 3), (2, 2))),
    ("codes", lambda no: grids.reorder_grid(no, 2, "mae", "timm")),
    ("first", lambda no: locality.total_variation(no, A)),
    ("codes", lambda no: locality.gram_condition(no)),
    ("weights", lambda no: extrapolation.attention_entropy(no)),
    ("biases", lambda no: extrapolation.score_needed(no)),
    ("codes", lambda no: sinusoidal.decode_position(no, 3)),
    ("like", lambda no: alibi.alibi_slopes(3, like=no)),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "call"), WITHOUT)
@pytest.mark.parametrize("no", [None, {"a": 1}, 7])
def test_what_is_no_array_is_called_by_its_name(argument: str, call: Any, no: Any) -> None:
    if (argument, no) != ("like", None):
        with pytest.raises(TypeError, match=f"^{argument} must be an? "):
            call(no)


@pytest.mark.parametrize(("argument", "call"), WITHOUT)
def test_a_list_where_an_array_is_wanted_is_called_by_its_name(argument: str, call: Any) -> None:
    if argument != "frequencies":  # which may be a list of numbers
        with pytest.raises(TypeError, match=f"^{argument} must be an array, got .* of type list"):
            call(A.tolist())


NUMBERS = {
    "sinusoidal_encoding": lambda x: sinusoidal.sinusoidal_encoding(3, 4, base=x),
    "shift_matrix": lambda x: shift.shift_matrix(x, 4),
    "offset_head": lambda x: shift.offset_head(3, 4, x)[0],
    "alias_offsets": lambda x: shift.alias_offsets(9, dim=4, tolerance=x),
    "rotary_matrix": lambda x: rope.rotary_matrix(x, 4),
    "apply_rotary": lambda x: rope.apply_rotary(X, 3, scale=x),
    "offset_query": lambda x: rope.offset_query(X, x),
    "apply_xpos": lambda x: rope.apply_xpos(X, X, 3, gamma=x, center=x, scale_base=x)[0],
    "linear_frequencies": lambda x: rope.linear_frequencies(64, x),
    "yarn_frequencies": lambda x: rope.yarn_frequencies(64, x, original_length=4096, beta_fast=x),
    "alibi_bias": lambda x: alibi.alibi_bias(x, 3),
    "add_alibi_columns": lambda x: alibi.add_alibi_columns(X, X, x, scale=x, center=x)[1],
    "rbf_encoding": lambda x: locality.rbf_encoding(3, [0, 1], x),
    "gaussian_weights": lambda x: locality.gaussian_weights(3, x),
    "kerple_bias": lambda x: rel.kerple_bias(x, x, 3),
    "fire_distance": lambda x: rel.fire_distance(3, c=x, threshold=x),
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_may_be_of_any_real_kind_and_nothing_else(name: str) -> None:
    call = NUMBERS[name]
    for same in (Fraction(3, 2), np.float32(1.5), np.float64(1.5)):
        np.testing.assert_allclose(call(same), call(1.5), rtol=1e-6)
    for what in ("1.5", None if name != "alias_offsets" else "", True, np.True_, 1.5j):
        with pytest.raises(TypeError, match=r"must be (a real|a number|a float|floating|integers, float)"):
            call(what)
    for far in (math.nan, 10**400 if name != "alibi_bias" else math.inf):
        with pytest.raises(ValueError, match=r"must be (finite|above)"):
            call(far)


def test_a_type_checker_sees_which_library_comes_out() -> None:
    """What `assert_type` says holds when mypy says nothing of this file."""
    x, rows = torch.ones(3, 4), np.ones((3, 4))
    assert_type(rope.apply_rotary(x, 3), torch.Tensor)
    assert_type(rope.apply_xpos(x, x, 3), tuple[torch.Tensor, torch.Tensor])
    assert_type(addition.add_positions(x, x), torch.Tensor)
    assert_type(learned.interpolate_table(x, 5), torch.Tensor)
    assert_type(sinusoidal.sinusoidal_encoding(torch.arange(3), 4), torch.Tensor)
    assert_type(sinusoidal.sinusoidal_encoding(3, 4), np.ndarray)
    assert_type(sinusoidal.sinusoidal_encoding([0, 1], 4), np.ndarray)
    assert_type(alibi.alibi_slopes(3), np.ndarray)
    assert_type(alibi.alibi_slopes(3, like=x), torch.Tensor)
    assert isinstance(rope.interleaved_to_half(rows), np.ndarray)
    wrong: str = rope.apply_rotary(x, 3)  # type: ignore[assignment]  # not Any, which would be a str as well
    assert isinstance(wrong, torch.Tensor)


def test_a_library_without_float64_is_told_so() -> None:
    """JAX gives float32 when asked for float64, until it is configured otherwise: then no angle is right."""

    class Namespace:
        __name__ = "limited"
        float64 = np.float64

        def __getattr__(self, name: str) -> Any:
            return getattr(np, name)

        def astype(self, x: Any, dtype: Any) -> Any:
            return x.base_array.astype(np.float32)

    class Limited:
        def __init__(self, array: Any) -> None:
            self.base_array = np.asarray(array)
            self.dtype, self.shape = self.base_array.dtype, self.base_array.shape

        def __array_namespace__(self, api_version: str | None = None) -> Any:
            return Namespace()

    with pytest.raises(TypeError, match="float64, which this array library has switched off"):
        sinusoidal.sinusoidal_encoding(Limited([1, 2]), 4)  # type: ignore[call-overload]
