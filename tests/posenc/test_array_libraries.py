"""One formula for every array library: what the standard does not promise, no formula may use."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, assert_type

import array_api_strict
import numpy as np
import pytest
import torch

import posenc
from posenc import dot_product_attention


def strict(array: Any) -> Any:
    """An array of the library that implements the array API standard and nothing beyond it."""
    return array_api_strict.asarray(np.asarray(array))


X = np.random.default_rng(0).normal(size=(3, 4))
T = np.array([[0, 1], [7, 30]])
CAUSAL = posenc.causal_mask(3)

CALLS = {
    "add_positions": lambda a: posenc.add_positions(a(X), a(X[::-1] / 3), scale=True),
    "concat_positions": lambda a: posenc.concat_positions(a(X), a(X[::-1] / 3)),
    "coordinate_encoding": lambda a: posenc.grids.coordinate_encoding(a(T), 8, order="mae"),
    "interpolate_grid": lambda a: posenc.grids.interpolate_grid(a(X), (1, 2), (3, 4), class_tokens=1),
    "reorder_grid": lambda a: posenc.grids.reorder_grid(a(X), 2, "interleaved", "timm"),
    "interpolate_table": lambda a: posenc.learned.interpolate_table(a(X), 8),
    "learned_encoding": lambda a: posenc.learned_encoding(a(T), a(X), overflow="clamp"),
    "half_to_interleaved": lambda a: posenc.rotary.half_to_interleaved(a(X)),
    "offset_query": lambda a: posenc.rotary.offset_query(a(X), -2, layout="half"),
    "rotary_matrix": lambda a: posenc.rotary.rotary_matrix(a(T), 6),
    "apply_rotary": lambda a: posenc.apply_rotary(a(X), a(T[0, :1] + np.arange(3)), rotary_dim=2),
    "apply_rotary_axes": lambda a: posenc.rotary.apply_rotary_axes(a(X), a(X[:, :2]), np.eye(2)),
    "apply_xpos": lambda a: posenc.rotary.apply_xpos(a(X), a(X), 3, layout="half")[0],
    "sinusoidal_encoding": lambda a: posenc.sinusoidal_encoding(a(T), 6),
    "code_distance": lambda a: posenc.sinusoidal.code_distance(a(T), 6),
    "decode_position": lambda a: posenc.sinusoidal.decode_position(a(posenc.sinusoidal_encoding(T, 16)), 40),
    "integer_encoding": lambda a: posenc.integer_encoding(a(T), 3, start=1),
    "one_hot_encoding": lambda a: posenc.one_hot_encoding(a(T), 31),
    "turns": lambda a: posenc.extrapolation.turns(a(X[0] ** 2), 32),
    "unseen_angles": lambda a: posenc.extrapolation.unseen_angles(a(X[0] ** 2), 1, 8, stretched=a(X[0] ** 2 / 2)),
    "logn_scale": lambda a: posenc.logn_scale(a(T), 8),
    "attention_entropy": lambda a: posenc.extrapolation.attention_entropy(a(np.abs(X) / np.abs(X).sum(1)[:, None])),
    "score_needed": lambda a: posenc.extrapolation.score_needed(a(X), 0.9),
    "argmax_positions": lambda a: posenc.naive.argmax_positions(a(X), a(X[:, :2].repeat(2, 0)[:4]), a(X[:2].T)),
    "dot_product_attention": lambda a: dot_product_attention(a(X), a(X), a(X), bias=a(X @ X.T), mask=a(CAUSAL))[0],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_result_stays_in_the_library_and_equals_numpy(name: str) -> None:
    ours, theirs = CALLS[name](strict), CALLS[name](np.asarray)
    assert type(ours).__module__.startswith("array_api_strict")
    np.testing.assert_allclose(np.asarray(ours), theirs, atol=1e-12)


POSITIONS = {
    "sinusoidal_encoding": lambda p: posenc.sinusoidal_encoding(p, 4),
    "sine_only_encoding": lambda p: posenc.shift.sine_only_encoding(p, 4),
    "integer_encoding": lambda p: posenc.integer_encoding(p, 4),
    "one_hot_encoding": lambda p: posenc.one_hot_encoding(p, 9),
    "learned_encoding": lambda p: posenc.learned_encoding(p, np.ones((9, 4))),
    "rbf_encoding": lambda p: posenc.rbf_encoding(p, [0, 1], 1.0),
    "code_distance": lambda p: posenc.sinusoidal.code_distance(p, 4),
    "relative_kernel": lambda p: posenc.shift.relative_kernel(p, 4),
    "rbf_kernel": lambda p: posenc.locality.rbf_kernel(p, 1.0),
    "t5_bucket": lambda p: posenc.relative.t5_bucket(p),
    "logn_scale": lambda p: posenc.logn_scale(p, 8),
    "apply_rotary": lambda p: posenc.apply_rotary(np.ones((5, 4)), p),
    "apply_xpos": lambda p: posenc.rotary.apply_xpos(np.ones((5, 4)), np.ones((5, 4)), p)[0],
    "relative_offsets": lambda p: posenc.relative.relative_offsets(p),
    "relative_bias": lambda p: posenc.relative_bias(np.ones(5), p),
    "alibi_bias": lambda p: posenc.alibi_bias(0.5, p),
    "key positions": lambda p: posenc.alibi_bias(0.5, 1 if isinstance(p, int | np.integer) else [0], p)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", POSITIONS)
def test_an_integer_is_a_length_and_an_array_without_axes_is_nothing(name: str) -> None:
    call = POSITIONS[name]
    for five in (np.int64(5), np.uint8(5)):
        assert call(five).shape[0] == 5
        np.testing.assert_array_equal(call(five), call(5))
    for what in (np.array(5), np.float64(5), torch.tensor(5), torch.tensor(5.0), strict(5)):
        with pytest.raises(TypeError, match=r"int\(\.\.\.\) for a length, or an array with one axis"):
            call(what)


A: Any = np.ones((3, 4))
WITHOUT: list[tuple[str, Any]] = [
    ("x", lambda no: posenc.add_positions(no, A)),
    ("pe", lambda no: posenc.add_positions(A, no)),
    ("pe", lambda no: posenc.concat_positions(A, no)),
    ("query", lambda no: posenc.relative.shaw_scores(no, A)),
    ("table", lambda no: posenc.relative.shaw_scores(A, no)),
    ("table", lambda no: posenc.relative.shaw_values(A, no)),
    ("key_table", lambda no: posenc.shaw_attention(A, A, A, no)),
    ("scores", lambda no: posenc.shift.toeplitz_spread(no)),
    ("scores", lambda no: posenc.shift.offset_share(no)),
    ("block", lambda no: posenc.shift.split_block(no)),
    ("w_query", lambda no: posenc.shift.positional_scores(A, no, A)),
    ("x", lambda no: posenc.rotary.interleaved_to_half(no)),
    ("x", lambda no: posenc.apply_rotary(no, 3)),
    ("frequencies", lambda no: posenc.rotary.apply_rotary_axes(A, A[:, :2], no)),
    ("values", lambda no: posenc.relative.toeplitz_bias(no, 1)),
    ("head_weight", lambda no: posenc.fire_bias(A[0], A[0], no, A[0], 3)),
    ("table", lambda no: posenc.relative_bias(no, 3)),
    ("table", lambda no: posenc.learned_encoding(3, no)),
    ("table", lambda no: posenc.grids.interpolate_grid(no, (1, 3), (2, 2))),
    ("codes", lambda no: posenc.grids.reorder_grid(no, 2, "mae", "timm")),
    ("first", lambda no: posenc.locality.total_variation(no, A)),
    ("codes", lambda no: posenc.locality.gram_condition(no)),
    ("weights", lambda no: posenc.extrapolation.attention_entropy(no)),
    ("biases", lambda no: posenc.extrapolation.score_needed(no)),
    ("codes", lambda no: posenc.sinusoidal.decode_position(no, 3)),
    ("like", lambda no: posenc.alibi_slopes(3, like=no)),
]  # fmt: skip


@pytest.mark.parametrize(("argument", "call"), WITHOUT)
@pytest.mark.parametrize("no", [None, {"a": 1}, 7])
def test_what_is_no_array_is_called_by_its_name(argument: str, call: Any, no: Any) -> None:
    if (argument, no) != ("like", None):
        with pytest.raises(TypeError, match=f"^{argument} must be an? "):
            call(no)


def test_lists_where_arrays_are_wanted_are_called_by_their_name() -> None:
    rows: Any = A.tolist()
    with pytest.raises(TypeError, match=r"x must be an array, got .* of type list"):
        posenc.rotary.interleaved_to_half(rows)
    with pytest.raises(TypeError, match=r"scores must be an array, got .* of type list"):
        posenc.shift.toeplitz_spread(rows)
    with pytest.raises(TypeError, match=r"hidden_bias must be an array, got .* of type list"):
        posenc.fire_bias(A[0], rows[0], A, A[0, :3], 3)


NUMBERS = {
    "sinusoidal_encoding": lambda x: posenc.sinusoidal_encoding(3, 4, base=x),
    "shift_matrix": lambda x: posenc.shift_matrix(x, 4),
    "offset_head": lambda x: posenc.shift.offset_head(3, 4, x)[0],
    "alias_offsets": lambda x: posenc.shift.alias_offsets(9, dim=4, tolerance=x),
    "rotary_matrix": lambda x: posenc.rotary.rotary_matrix(x, 4),
    "apply_rotary": lambda x: posenc.apply_rotary(X, 3, scale=x),
    "offset_query": lambda x: posenc.rotary.offset_query(X, x),
    "apply_xpos": lambda x: posenc.rotary.apply_xpos(X, X, 3, gamma=x, center=x, scale_base=x)[0],
    "yarn_frequencies": lambda x: posenc.rotary.yarn_frequencies(64, x, original_length=4096, beta_fast=x),
    "alibi_bias": lambda x: posenc.alibi_bias(x, 3),
    "add_alibi_columns": lambda x: posenc.alibi.add_alibi_columns(X, X, x, scale=x, center=x)[1],
    "rbf_encoding": lambda x: posenc.rbf_encoding(3, [0, 1], x),
    "gaussian_weights": lambda x: posenc.locality.gaussian_weights(3, x),
    "kerple_bias": lambda x: posenc.kerple_bias(x, x, 3),
    "fire_distance": lambda x: posenc.relative.fire_distance(3, c=x, threshold=x),
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
    assert_type(posenc.apply_rotary(x, 3), torch.Tensor)
    assert_type(posenc.rotary.apply_xpos(x, x, 3), tuple[torch.Tensor, torch.Tensor])
    assert_type(posenc.add_positions(x, x), torch.Tensor)
    assert_type(posenc.dot_product_attention(x, x, x), tuple[torch.Tensor, torch.Tensor])
    assert_type(posenc.ring_attention([x], [x], [x], [[0, 1, 2]]), list[torch.Tensor])
    assert_type(posenc.learned.interpolate_table(x, 5), torch.Tensor)
    assert_type(posenc.sinusoidal_encoding(torch.arange(3), 4), torch.Tensor)
    assert_type(posenc.sinusoidal_encoding(3, 4), np.ndarray)
    assert_type(posenc.sinusoidal_encoding([0, 1], 4), np.ndarray)
    assert_type(posenc.alibi_slopes(3), np.ndarray)
    assert_type(posenc.alibi_slopes(3, like=x), torch.Tensor)
    assert isinstance(posenc.rotary.interleaved_to_half(rows), np.ndarray)
    wrong: str = posenc.apply_rotary(x, 3)  # type: ignore[assignment]  # not Any, which would be a str as well
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
        posenc.sinusoidal_encoding(Limited([1, 2]), 4)  # type: ignore[call-overload]
