"""One formula for every array library: its own kind comes out, rounded once, with gradients and in one graph."""

from collections.abc import Callable
from typing import Any, assert_type

import array_api_strict
import numpy as np
import pytest
import torch

from posenc import addition, alibi, learned, sinusoidal
from posenc import rotary as rope
from tests.posenc.calls import FORMULAS, WHOLE, Call

Convert = Callable[[Any], Any]
X = np.random.default_rng(0).normal(size=(3, 4))


def strict(array: np.ndarray) -> Any:
    """An array of the library that implements the array API standard and nothing beyond it."""
    return array_api_strict.asarray(array)


def tensor(array: np.ndarray) -> torch.Tensor:
    return torch.asarray(np.ascontiguousarray(array))


def low(dtype: torch.dtype) -> Convert:
    """A tensor, in the dtype if it is floating."""
    return lambda array: (x := tensor(array)).to(dtype if x.is_floating_point() else x.dtype)


def converted(given: Call, convert: Convert) -> dict[str, Any]:
    """The arguments that are or hold arrays, as those of a library."""
    changed: dict[str, Any] = {}
    for name, x in given.arguments.items():
        arrays = x if isinstance(x, list) else [x]
        if any(isinstance(array, np.ndarray) for array in arrays):
            changed[name] = [convert(a) for a in x] if isinstance(x, list) else convert(x)
    return changed


def results(given: Call, convert: Convert) -> list[Any]:
    """What is called with arrays of a library, those within lists among them."""
    return given(**converted(given, convert))


def named(*names: str) -> list[Call]:
    return [given for given in FORMULAS if given.function.__name__ in names]


def calls(kind: str, given: list[Call]) -> Any:
    return pytest.mark.parametrize(kind, given, ids=lambda given: given.function.__name__)


# What is not of the caller's library: NumPy for trees, graphs and constants, and numbers of Python.
IN_NUMPY = [
    "generated_rotation", "first_negative", "anchor_distances", "laplacian_eigenvectors", "random_walk_probabilities",
    "smallest_anchors", "gram_condition", "locality_profile", "find_period", "head_frequencies",
    "mixed_frequencies", "periodic_frequencies",
]  # fmt: skip
WITH_ARRAYS = [
    given
    for given in FORMULAS
    if given.function.__name__ not in IN_NUMPY
    and any("Array" in kind for name, kind in given.kinds().items() if name in given.arguments)
]


@pytest.mark.parametrize("library", [strict, tensor])
@calls("given", WITH_ARRAYS)
def test_the_result_is_of_the_callers_library_and_equals_that_of_numpy(given: Call, library: Convert) -> None:
    for ours, numpy in zip(results(given, library), results(given, np.asarray), strict=True):
        if hasattr(ours, "dtype"):
            assert type(ours) is type(library(X))
        np.testing.assert_allclose(
            np.asarray(ours), numpy, atol=1e-6 if "float32" in str(getattr(ours, "dtype", "")) else 1e-12
        )


# Those whose result is a sum or product of what is given: in a low precision they compute in float32, and round once.
ROUNDED = named(
    "add_positions", "concat_positions", "interpolate_grid", "reorder_grid", "interpolate_table", "learned_encoding",
    "offset_query", "apply_rotary", "apply_rotary_axes", "apply_xpos", "relative_bias", "t5_bias", "kerple_bias",
    "fire_bias", "shaw_attention", "ring_attention", "dot_product_attention",
)  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@calls("given", ROUNDED)
def test_a_low_precision_is_kept_and_rounded_once(given: Call, dtype: torch.dtype) -> None:
    def widened(array: Any) -> torch.Tensor:
        x = low(dtype)(array)
        return x.double() if x.is_floating_point() else x

    for ours, exact in zip(results(given, low(dtype)), results(given, widened), strict=True):
        assert ours.dtype == dtype
        unit = torch.finfo(dtype).eps * 2 ** exact.abs().clamp(min=2**-14).log2().floor()
        assert ((ours.double() - exact).abs() <= unit / 2 + 2e-6).all()


# --- Codes of places: dtype, rounding, shape

COUNTED = named(
    "sinusoidal_encoding", "sine_only_encoding", "integer_encoding", "one_hot_encoding", "rbf_encoding"
)
CODES = COUNTED + named("shift_matrix", "offset_head", "time_encoding", "periodic_encoding", "rotary_matrix")
each_code = calls("given", CODES)
T = np.array([[0, 1], [7, 30]])


def code(given: Call, t: Any, **options: Any) -> Any:
    return given(**{next(iter(given.arguments)): t}, **options)[0]


@each_code
def test_codes_are_float64_rounded_once_to_the_dtype_that_is_asked_for(given: Call) -> None:
    exact = code(given, T, dtype=np.float64)
    assert code(given, T).dtype == np.float64
    np.testing.assert_array_equal(code(given, T, dtype=np.float32), exact.astype(np.float32), strict=True)
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        rounded = torch.from_numpy(exact).to(dtype)
        torch.testing.assert_close(code(given, tensor(T), dtype=dtype), rounded, rtol=0, atol=1e-15)
    for t, bad in ((T, torch.float32), (tensor(T), torch.int64), (tensor(T), np.float32)):
        with pytest.raises(TypeError, match=r"dtype must be a real floating dtype of .*, got "):
            code(given, t, dtype=bad)


@each_code
def test_places_of_any_shape_have_each_its_own_code(given: Call) -> None:
    codes, empty = code(given, T), code(given, np.zeros((2, 0)))
    assert codes.shape[:2] == (2, 2)
    assert empty.shape == (2, 0, *codes.shape[2:])
    for place in np.ndindex(T.shape):
        np.testing.assert_array_equal(codes[place], code(given, [int(T[place])])[0])
    expected = codes[1, 1].copy()
    codes[0, 0] = 9  # an array of its own, which may be written to
    np.testing.assert_array_equal(codes[1, 1], expected)
    np.testing.assert_array_equal(code(given, T)[1, 1], expected)


@calls("given", COUNTED)
def test_an_integer_counts_in_the_library_of_the_dtype(given: Call) -> None:
    for n in (0, 5):
        counted = code(given, n)
        np.testing.assert_allclose(counted, code(given, np.arange(n)), atol=1e-15)
        in_torch = code(given, n, dtype=torch.float64)
        assert in_torch.dtype == torch.float64
        np.testing.assert_allclose(in_torch.numpy(), counted, atol=1e-15)


# --- What torch does with a formula

NO_GRADIENT = {
    "alibi_slopes", "argmax_positions", "causal_mask", "decode_position", "leak_in", "leak_out", "nearest_index",
    "shard_positions",
}  # fmt: skip


def floating(given: Call) -> list[np.ndarray]:
    """The arrays of real numbers among the arguments, in their order."""
    arguments = (x if isinstance(x, list) else [x] for x in given.arguments.values())
    arrays = (array for argument in arguments for array in argument)
    return [array for array in arrays if getattr(array, "dtype", None) == np.float64]


@pytest.mark.filterwarnings("ignore:`torch.jit.script`")  # forward derivatives use it
@calls(
    "given", [each for each in WITH_ARRAYS if floating(each) and each.function.__name__ not in NO_GRADIENT]
)
def test_gradients_are_those_of_small_steps(given: Call) -> None:
    """Backward and forward, beside what is -inf, for a rank without keys, and for an offset of 0."""

    def computed(*arrays: torch.Tensor) -> tuple[torch.Tensor, ...]:
        left = iter(arrays)
        found = results(given, lambda array: next(left) if array.dtype == np.float64 else tensor(array))
        return tuple(x[x.isfinite()] for x in found if isinstance(x, torch.Tensor) and x.is_floating_point())

    arrays = [tensor(array).clone().requires_grad_() for array in floating(given)]
    assert torch.autograd.gradcheck(computed, arrays, fast_mode=True, check_forward_ad=True)


@calls("given", [each for each in CODES if each.function.__name__ not in WHOLE])
def test_gradients_reach_positions(given: Call) -> None:
    t = torch.tensor([0.5, 7.25], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: code(given, t, dtype=torch.float64), (t,))


# Products that autocast makes as it likes, and columns for the dtype that attention runs in.
AUTOCAST = (
    "disentangled_scores", "fire_bias", "four_terms", "shaw_attention", "shaw_scores", "shaw_values",
    "positional_scores", "add_alibi_columns",
)  # fmt: skip


@calls("given", WITH_ARRAYS)
def test_inputs_stay_results_are_arrays_of_their_own_and_autocast_changes_nothing(given: Call) -> None:
    inputs = []

    def kept(array: Any) -> torch.Tensor:
        x = low(torch.float32)(array)
        inputs.append((x.clone(), x.clone()))
        return inputs[-1][0]

    with torch.autocast("cpu", torch.bfloat16, enabled=given.function.__name__ not in AUTOCAST):
        found = [x for x in results(given, kept) if isinstance(x, torch.Tensor)]
    for x, before in inputs:
        assert torch.equal(x, before)
        assert all(
            x.untyped_storage().data_ptr() != y.untyped_storage().data_ptr() for y in found if y.numel()
        )
    exact = [x for x in results(given, low(torch.float32)) if isinstance(x, torch.Tensor)]
    assert all(x.dtype == y.dtype and torch.equal(x, y) for x, y in zip(found, exact, strict=True))


@pytest.mark.filterwarnings("ignore:Dynamo detected a call to a `functools.lru_cache`")
@calls("given", named(
    "alibi_bias", "apply_rotary", "apply_rotary_axes", "combine_masks", "document_ids", "document_mask",
    "document_positions", "dot_product_attention", "interpolate_grid", "key_padding_mask", "multihead_mask",
    "pack_sequences", "pad_batch", "rbf_encoding", "sinusoidal_encoding", "interpolate_table", "apply_xpos",
    "total_variation",
))  # fmt: skip
def test_one_graph_gives_the_same_numbers(given: Call) -> None:
    """With constants of NumPy, which torch.compile knows by another dtype."""
    torch._dynamo.reset()
    arrays = converted(given, tensor)

    def computed(arrays: dict[str, Any]) -> Any:
        return given.function(**given.arguments | arrays)

    compiled = torch.compile(computed, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(arrays), computed(arrays), rtol=0, atol=1e-10)


def test_lengths_may_be_left_open_where_positions_are_given() -> None:
    torch._dynamo.reset()
    turn = torch.compile(lambda x, t: rope.apply_rotary(x, t), fullgraph=True, dynamic=True, backend="eager")
    for n in (9, 5):
        x, t = torch.ones(2, n, 4), torch.arange(n)
        torch.testing.assert_close(turn(x, t), rope.apply_rotary(x, t))


# --- Types, and libraries that lack something


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
