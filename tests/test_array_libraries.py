"""One formula for every array library: what the standard does not promise, no formula may use."""

from __future__ import annotations

from typing import Any

import array_api_strict
import numpy as np
import pytest

import posenc
from posenc.attention import attention


def strict(array: Any) -> Any:
    """An array of the library that implements the array API standard and nothing beyond it."""
    return array_api_strict.asarray(np.asarray(array))


X = np.random.default_rng(0).normal(size=(3, 4))
T = np.array([[0, 1], [7, 30]])
CAUSAL = posenc.causal_mask(3)

CALLS = {
    "add_positions": lambda a: posenc.add_positions(a(X), a(X[::-1] / 3), scale=True),
    "concat_positions": lambda a: posenc.concat_positions(a(X), a(X[::-1] / 3)),
    "interpolate_table": lambda a: posenc.interpolate_table(a(X), 8),
    "learned_encoding": lambda a: posenc.learned_encoding(a(T), a(X), overflow="clamp"),
    "half_to_interleaved": lambda a: posenc.half_to_interleaved(a(X)),
    "offset_query": lambda a: posenc.offset_query(a(X), -2, layout="half"),
    "rotary_matrix": lambda a: posenc.rotary_matrix(a(T), 6),
    "rotate": lambda a: posenc.rotate(a(X), a(T[0, :1] + np.arange(3)), rotary_dim=2),
    "rotate_axes": lambda a: posenc.rotate_axes(a(X), a(X[:, :2]), posenc.axial_frequencies(4, 2)),
    "rotate_xpos": lambda a: posenc.rotate_xpos(a(X), a(X), 3, layout="half")[0],
    "sinusoidal_encoding": lambda a: posenc.sinusoidal_encoding(a(T), 6),
    "code_distance": lambda a: posenc.code_distance(a(T), 6),
    "decode_position": lambda a: posenc.decode_position(a(posenc.sinusoidal_encoding(T, 16)), 40),
    "integer_encoding": lambda a: posenc.integer_encoding(a(T), 3, start=1),
    "one_hot_encoding": lambda a: posenc.one_hot_encoding(a(T), 31),
    "argmax_positions": lambda a: posenc.argmax_positions(a(X), a(X[:, :2].repeat(2, 0)[:4]), a(X[:2].T)),
    "attention": lambda a: attention(a(X), a(X), a(X), bias=a(X @ X.T), mask=a(CAUSAL))[0],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_result_stays_in_the_library_and_equals_numpy(name: str) -> None:
    ours, theirs = CALLS[name](strict), CALLS[name](np.asarray)
    assert type(ours).__module__.startswith("array_api_strict")
    np.testing.assert_allclose(np.asarray(ours), theirs, atol=1e-12)


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
            self.dtype = self.base_array.dtype

        def __array_namespace__(self, api_version: str | None = None) -> Any:
            return Namespace()

    with pytest.raises(TypeError, match="float64, which this array library has switched off"):
        posenc.sinusoidal_encoding(Limited([1, 2]), 4)
