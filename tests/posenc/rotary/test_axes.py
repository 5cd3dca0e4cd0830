"""Rotation by positions of several coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import apply_rotary, sinusoidal_frequencies, sinusoidal_wavelengths
from posenc.rotary import apply_rotary_axes, axial_frequencies, mrope_coordinates, mrope_frequencies
from posenc.rotary._turn import Layout

layouts = st.sampled_from(["interleaved", "half"])


def vectors(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@given(layout=layouts, seed=st.integers(0, 2**32 - 1), shift=st.tuples(*[st.integers(-99, 99)] * 3))
def test_scores_see_differences_of_coordinates_only(
    layout: Layout, seed: int, shift: tuple[int, ...]
) -> None:
    omega = np.random.default_rng(seed).normal(size=(3, 8))  # every pair follows every axis
    q, k = vectors(seed, 2, 1, 16)
    places = np.random.default_rng(seed).integers(-99, 99, size=(2, 1, 3))

    def score(t: np.ndarray, u: np.ndarray) -> float:
        turned_q, turned_k = (apply_rotary_axes(x, p, omega, layout=layout) for x, p in ((q, t), (k, u)))
        return float((turned_q @ turned_k.T)[0, 0])

    assert score(*places) == pytest.approx(score(*(places + shift)), abs=1e-9)


def test_tables_of_numpy_in_one_graph() -> None:
    x, places = torch.ones(5, 8), torch.arange(10).reshape(5, 2)
    compiled = torch.compile(
        lambda x, t: apply_rotary_axes(x, t, axial_frequencies(8, 2)), fullgraph=True, backend="eager"
    )
    torch.testing.assert_close(compiled(x, places), apply_rotary_axes(x, places, axial_frequencies(8, 2)))


def test_wavelengths_are_no_frequencies() -> None:
    waves = np.kron(np.eye(2), sinusoidal_wavelengths(4))
    with pytest.raises(ValueError, match="frequencies must be radians per position"):
        apply_rotary_axes(np.ones((5, 8)), np.arange(10).reshape(5, 2), waves)
    assert apply_rotary_axes(np.ones((5, 8)), np.arange(10).reshape(5, 2) / 10, waves).shape == (5, 8)


@given(layout=layouts, seed=st.integers(0, 2**32 - 1))
def test_one_axis_is_plain_rotation(layout: Layout, seed: int) -> None:
    x = vectors(seed, 2, 5, 8)
    t = np.arange(5)[:, None]
    plain = apply_rotary(x, 5, layout=layout)
    np.testing.assert_array_equal(apply_rotary_axes(x, t, axial_frequencies(8, 1), layout=layout), plain)
    np.testing.assert_array_equal(apply_rotary_axes(x, t, mrope_frequencies(8, [4]), layout=layout), plain)


def test_axial_turns_each_half_by_its_coordinate() -> None:
    x, grid = vectors(0, 6, 16), np.argwhere(np.ones((2, 3)))
    turned = apply_rotary_axes(x, grid, axial_frequencies(16, 2))
    np.testing.assert_allclose(turned[:, :8], apply_rotary(x[:, :8], grid[:, 0]), atol=1e-15)
    np.testing.assert_allclose(turned[:, 8:], apply_rotary(x[:, 8:], grid[:, 1]), atol=1e-15)


def test_text_under_mrope_is_plain_rotation() -> None:
    x = vectors(0, 7, 128)
    turned = apply_rotary_axes(x, mrope_coordinates([7]), mrope_frequencies(128, (16, 24, 24)))
    np.testing.assert_allclose(turned, apply_rotary(x, 7), atol=1e-15)
    np.testing.assert_array_equal(mrope_frequencies(128, (16, 24, 24)).sum(0), sinusoidal_frequencies(128))


def test_coordinates_of_a_mixed_sequence() -> None:
    found = mrope_coordinates([3, (1, 2, 4), 2, (3, 1, 1), 1])
    assert found.shape == (3 + 8 + 2 + 3 + 1, 3)
    assert found[3:11].tolist() == [[3, 3 + r, 3 + c] for r in range(2) for c in range(4)]
    assert found[11:13].tolist() == [[7] * 3, [8] * 3]
    assert found[13:16].tolist() == [[9, 9, 9], [10, 9, 9], [11, 9, 9]]
    assert found[16].tolist() == [12] * 3
    assert mrope_coordinates([]).shape == (0, 3)


def test_batches_partial_scale_and_torch() -> None:
    x = torch.from_numpy(vectors(0, 2, 3, 6, 10))
    grid = torch.from_numpy(np.stack([np.argwhere(np.ones((2, 3))), np.argwhere(np.ones((3, 2)))]))
    turned = apply_rotary_axes(x, grid[:, None], axial_frequencies(8, 2), rotary_dim=8, scale=2.0)
    assert isinstance(turned, torch.Tensor)
    assert torch.equal(turned[..., 8:], x[..., 8:])
    one = apply_rotary_axes(x[1, 2].numpy(), grid[1].numpy(), axial_frequencies(8, 2), rotary_dim=8)
    np.testing.assert_allclose(turned[1, 2, :, :8], 2 * one[:, :8], atol=1e-14)


X, GRID = np.ones((6, 8)), np.zeros((6, 2))
PARTS: Any = [1.5]
FIVE: Any = 5


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: apply_rotary_axes(X, GRID, np.ones((2, 3))), ValueError, r"must have shape \(axes, 4\)"),
        (lambda: apply_rotary_axes(X, GRID, np.ones(4)), ValueError, r"frequencies must have shape \(axes, 4\)"),
        (lambda: apply_rotary_axes(X, GRID[:5], np.ones((2, 4))), ValueError, r"coordinates must have shape \(6"),
        (lambda: apply_rotary_axes(X, GRID, np.ones((3, 4))), ValueError, r"coordinates must have shape \(6"),
        (lambda: apply_rotary_axes(X, GRID[:1], np.ones((2, 4))), ValueError, r"coordinates must have shape \(6"),
        (lambda: apply_rotary_axes(X[0], GRID[0], np.ones((2, 4))), ValueError, "coordinates must have shape"),
        (lambda: axial_frequencies(6, 2), ValueError, "dim must be a multiple of 2 · axes = 4, got 6"),
        (lambda: axial_frequencies(8, 0), ValueError, "axes must be at least 1"),
        (lambda: mrope_frequencies(8, (2, 1)), ValueError, r"sections must sum to dim/2 = 4, got \[2, 1\]"),
        (lambda: mrope_frequencies(8, (5, -1)), ValueError, "each of sections must be at least 0"),
        (lambda: mrope_coordinates([(2, 2)]), ValueError, r"a grid must be \(frames, rows, columns\)"),
        (lambda: mrope_coordinates([(1, 0, 2)]), ValueError, "each size of a grid must be at least 1"),
        (lambda: mrope_coordinates(FIVE), TypeError, "parts must be a list of sizes, .* got 5"),
        (lambda: mrope_coordinates(PARTS), TypeError, "a number of text tokens must be an integer"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
