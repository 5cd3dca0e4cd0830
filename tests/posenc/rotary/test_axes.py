"""Rotation by positions of several coordinates, and the frequencies of their axes."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc.rotary import apply_rotary, apply_rotary_axes, axes, axial_frequencies, mrope_frequencies
from posenc.rotary._turn import Layout
from posenc.sinusoidal import sinusoidal_frequencies, sinusoidal_wavelengths
from tests.posenc.calls import normal
from tests.posenc.refusals import refused

layouts = st.sampled_from(["interleaved", "half"])
seeds = st.integers(0, 2**32 - 1)
GRID = np.argwhere(np.ones((2, 3)))


@given(layout=layouts, seed=seeds, shift=st.tuples(*[st.integers(-99, 99)] * 2), angle=st.floats(-4, 4))
def test_scores_see_differences_of_coordinates_only(
    layout: Layout, seed: int, shift: tuple[int, ...], angle: float
) -> None:
    q, k = normal(2, 1, 16, seed=seed)
    places = np.random.default_rng(seed).integers(-99, 99, size=(2, 1, 2))
    # Every pair follows every axis, as chance or RoPE-Mixed has it.
    for omega in (normal(2, 8, seed=seed), axes.mixed_frequencies(16, angle, base=10.0)):
        turned = [
            [apply_rotary_axes(x, p, omega, layout=layout)[0] for x, p in zip((q, k), moved, strict=True)]
            for moved in (places, places + shift)
        ]
        here, there = (a @ b for a, b in turned)
        assert here == pytest.approx(there, abs=1e-9)


@given(layout=layouts, seed=seeds)
def test_one_axis_is_plain_rotation(layout: Layout, seed: int) -> None:
    x, t = normal(2, 5, 8, seed=seed), np.arange(5)[:, None]
    for omega in (axial_frequencies(8, 1), mrope_frequencies(8, [4])):
        turned = apply_rotary_axes(x, t, omega, layout=layout)
        np.testing.assert_array_equal(turned, apply_rotary(x, 5, layout=layout))


def test_axial_turns_each_half_by_its_coordinate() -> None:
    x = normal(6, 16)
    turned = apply_rotary_axes(x, GRID, axial_frequencies(16, 2))
    np.testing.assert_allclose(turned[:, :8], apply_rotary(x[:, :8], GRID[:, 0]), atol=1e-15)
    np.testing.assert_allclose(turned[:, 8:], apply_rotary(x[:, 8:], GRID[:, 1]), atol=1e-15)


def test_text_under_mrope_is_plain_rotation() -> None:
    x = normal(7, 128)
    turned = apply_rotary_axes(x, axes.mrope_coordinates([7]), mrope_frequencies(128, (16, 24, 24)))
    np.testing.assert_allclose(turned, apply_rotary(x, 7), atol=1e-15)


def test_coordinates_of_a_mixed_sequence() -> None:
    found = axes.mrope_coordinates([3, (1, 2, 4), 2, (3, 1, 1), 1])
    assert found.shape == (3 + 8 + 2 + 3 + 1, 3)
    assert found[3:11].tolist() == [[3, 3 + r, 3 + c] for r in range(2) for c in range(4)]
    assert found[11:13].tolist() == [[7] * 3, [8] * 3]
    assert found[13:16].tolist() == [[9, 9, 9], [10, 9, 9], [11, 9, 9]]
    assert found[16].tolist() == [12] * 3
    assert axes.mrope_coordinates([]).shape == (0, 3)


def test_batches_partial_and_scale() -> None:
    x, grids = normal(2, 3, 6, 10), np.stack([GRID, np.argwhere(np.ones((3, 2)))])
    turned = apply_rotary_axes(x, grids[:, None], axial_frequencies(8, 2), rotary_dim=8, scale=2.0)
    np.testing.assert_array_equal(turned[..., 8:], x[..., 8:])
    one = apply_rotary_axes(x[1, 2], grids[1], axial_frequencies(8, 2), rotary_dim=8)
    np.testing.assert_allclose(turned[1, 2, :, :8], 2 * one[:, :8], atol=1e-14)


# --- Frequencies


def test_axes_of_different_widths() -> None:
    np.testing.assert_array_equal(axial_frequencies(8, np.array(2)), axial_frequencies(8, 2))  # type: ignore[arg-type]
    omega = axial_frequencies(128, (16, 56, 56))
    assert [(row != 0).sum() for row in omega] == [8, 28, 28]
    np.testing.assert_array_equal(omega[1, 8:36], sinusoidal_frequencies(56))
    np.testing.assert_array_equal(axial_frequencies(12, (6, 6)), axial_frequencies(12, 2))


def test_mixed_frequencies() -> None:
    np.testing.assert_array_equal(axes.mixed_frequencies(16, 0.0), axial_frequencies(16, 2))
    angles = np.linspace(0, 3, 4)
    omega = axes.mixed_frequencies(16, angles, base=10.0)
    np.testing.assert_allclose(np.hypot(*omega), np.tile(axial_frequencies(16, 2, base=10)[0, :4], 2))
    np.testing.assert_allclose(np.tan(np.arctan2(omega[1, :4], omega[0, :4])), np.tan(angles), atol=1e-12)
    np.testing.assert_allclose((omega[:, :4] * omega[:, 4:]).sum(0), 0, atol=1e-15)


def test_frequencies_of_several_axes_can_be_trained() -> None:
    omega = torch.from_numpy(axes.mixed_frequencies(8, 0.3)).requires_grad_()
    apply_rotary_axes(torch.ones(6, 8), GRID, omega)[:, 0].sum().backward()
    assert omega.grad is not None
    assert (omega.grad[:, 0] != 0).all()


def test_pairs_dealt_out_in_turn() -> None:
    omega = mrope_frequencies(128, (24, 20, 20), interleaved=True)
    np.testing.assert_array_equal(omega.sum(0), sinusoidal_frequencies(128))
    assert [(row != 0).sum() for row in omega] == [24, 20, 20]
    assert np.flatnonzero(omega[0])[-5:].tolist() == [57, 60, 61, 62, 63]
    assert np.flatnonzero(omega[2])[:3].tolist() == [2, 5, 8]


# --- Errors


def test_wavelengths_are_no_frequencies() -> None:
    x, waves = np.ones((6, 8)), np.kron(np.eye(2), sinusoidal_wavelengths(4))
    with pytest.raises(ValueError, match="frequencies must be radians per position"):
        apply_rotary_axes(x, GRID, waves)
    assert apply_rotary_axes(x, GRID / 10, waves).shape == (6, 8)


X, TWO = np.ones((6, 8)), np.ones((2, 4))
PARTS: Any = [1.5]
test_errors_name_the_argument = refused([
    (lambda: apply_rotary_axes(X, GRID, np.ones((2, 3))), ValueError, r"must have shape \(axes, 4\)"),
    (lambda: apply_rotary_axes(X, GRID, np.ones(4)), ValueError, r"frequencies must have shape \(axes, 4\)"),
    (lambda: apply_rotary_axes(X, GRID[:5], TWO), ValueError, r"coordinates must have shape \(6"),
    (lambda: apply_rotary_axes(X, GRID[:1], TWO), ValueError, r"coordinates must have shape \(6"),
    (lambda: apply_rotary_axes(X[0], GRID[0], TWO), ValueError, "coordinates must have shape"),
    (lambda: axial_frequencies(6, 2), ValueError, "dim must be a multiple of 2 · axes = 4, got 6"),
    (lambda: axial_frequencies(8, (2, 4)), ValueError, r"axes must be widths that sum to dim = 8, got \[2, 4\]"),
    (lambda: axial_frequencies(8, (3, 5)), ValueError, "each width of axes must be even"),
    (lambda: axes.mixed_frequencies(6, 0.0), ValueError, "dim must be a multiple of 2 · axes = 4"),
    (lambda: axes.mixed_frequencies(8, [0.0, 1.0, 2.0]), ValueError, r"angle must be a number or have shape \(2,\)"),
    (lambda: mrope_frequencies(8, (2, 1)), ValueError, r"sections must sum to dim/2 = 4, got \[2, 1\]"),
    (lambda: mrope_frequencies(8, (5, -1)), ValueError, "each of sections must be at least 0"),
    (lambda: mrope_frequencies(8, (1, 3), interleaved=True), ValueError, "sections must fit when the axes"),
    (lambda: axes.mrope_coordinates([(2, 2)]), ValueError, r"a grid must be \(frames, rows, columns\)"),
    (lambda: axes.mrope_coordinates([(1, 0, 2)]), ValueError, "each size of a grid must be at least 1"),
    (lambda: axes.mrope_coordinates(PARTS), TypeError, "a number of text tokens must be an integer"),
])  # fmt: skip
