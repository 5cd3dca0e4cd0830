"""Positions on a grid: codes, their orders, coordinates, tables resampled, and generators."""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import grids
from posenc.grids import Order, grid_coordinates, grid_encoding, interpolate_grid, reorder_grid
from posenc.learned import interpolate_table
from posenc.rotary import apply_rotary_axes, mixed_frequencies
from posenc.shift import relative_kernel
from posenc.sinusoidal import sinusoidal_encoding
from tests.posenc.calls import normal
from tests.posenc.refusals import refused

ORDERS: list[Order] = ["interleaved", "mae", "timm"]
orders = st.sampled_from(ORDERS)
shapes = st.lists(st.integers(1, 6), min_size=1, max_size=3)
seeds = st.integers(0, 2**32 - 1)


# --- Codes


@given(shape=shapes, pairs=st.integers(1, 4), order=orders, base=st.sampled_from([100.0, 10000.0]))
def test_table_and_formula_agree_and_a_dot_product_is_a_kernel_for_each_axis(
    shape: list[int], pairs: int, order: Order, base: float
) -> None:
    dim, t = 2 * pairs * len(shape), grid_coordinates(shape)
    how: Any = {"base": base, "order": order}
    codes = grid_encoding(shape, dim, **how)
    np.testing.assert_allclose(codes, grids.coordinate_encoding(t, dim, **how), atol=1e-14)
    kernel = relative_kernel(t[None] - t[:, None], 2 * pairs, base=base).sum(-1)
    np.testing.assert_allclose(codes @ codes.T, kernel, atol=1e-12)
    for dtype in (torch.float32, torch.bfloat16):
        theirs = grids.coordinate_encoding(torch.from_numpy(t), dim, **how, dtype=dtype)
        ours = grid_encoding(shape, dim, **how, dtype=dtype)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=torch.finfo(dtype).eps)


def test_one_axis_is_the_code_of_a_line() -> None:
    np.testing.assert_array_equal(grid_encoding([9], 8), sinusoidal_encoding(9, 8))


def test_columns_of_each_order() -> None:
    """By numbers, at row 1 and column 2 of width 8."""
    row, column = ([wave(n * speed) for speed in (1.0, 0.01) for wave in (np.sin, np.cos)] for n in (1, 2))
    expected = {
        "interleaved": row + column,
        "mae": [column[0], column[2], column[1], column[3], row[0], row[2], row[1], row[3]],
        "timm": [row[0], row[2], column[0], column[2], row[1], row[3], column[1], column[3]],
    }
    for order in ORDERS:
        np.testing.assert_allclose(grid_encoding((2, 3), 8, order=order)[5], expected[order], atol=1e-15)


@given(shape=shapes, pairs=st.integers(1, 4), source=orders, target=orders)
def test_orders_into_each_other(shape: list[int], pairs: int, source: Order, target: Order) -> None:
    axes, dim = len(shape), 2 * pairs * len(shape)
    there = reorder_grid(grid_encoding(shape, dim, order=source), axes, source, target)
    np.testing.assert_array_equal(there, grid_encoding(shape, dim, order=target))
    back = reorder_grid(there, axes, target, source)
    np.testing.assert_array_equal(back, grid_encoding(shape, dim, order=source))


@pytest.mark.parametrize("dim", [64, 4])
def test_every_place_of_a_grid_has_a_code_of_its_own(dim: int) -> None:
    assert len(np.unique(grid_encoding((14, 14), dim).round(9), axis=0)) == 196


def test_coordinates() -> None:
    by_hand = [[a, b, c] for a in range(2) for b in range(3) for c in range(4)]
    assert grid_coordinates((2, 3, 4)).tolist() == by_hand
    middle = grid_coordinates((5, 1), centered=True)
    np.testing.assert_allclose(middle.T, [[-0.8, -0.4, 0.0, 0.4, 0.8], [0.0] * 5], atol=1e-15)


@given(seed=seeds, shift=st.floats(0, 1), jitter=st.floats(1, 3), rescale=st.floats(1, 3))
def test_jitter_moves_all_places_alike(seed: int, shift: float, jitter: float, rescale: float) -> None:
    t = grid_coordinates((4, 5), centered=True)
    moved = grids.jitter_coordinates(
        t, np.random.default_rng(seed), shift=shift, jitter=jitter, rescale=rescale
    )
    scale = np.ptp(moved, axis=0) / np.ptp(t, axis=0)
    np.testing.assert_allclose(moved, scale * t + moved.mean(0), atol=1e-12)  # affine, axis by axis
    assert (np.abs(np.log(scale)) <= np.log(jitter * rescale) + 1e-9).all()
    assert (np.abs(moved.mean(0)) <= shift * scale + 1e-12).all()
    assert abs(np.log(scale[0] / scale[1])) <= 2 * np.log(jitter) + 1e-9
    np.testing.assert_array_equal(grids.jitter_coordinates(t, np.random.default_rng(seed)), t)


# --- Tables


def how(kernel: str, antialias: bool, align_corners: bool = False) -> dict[str, Any]:
    return {"kernel": kernel, "antialias": antialias, "align_corners": align_corners}


MODES = [
    how(kernel, *flags) for kernel in ("cubic", "linear") for flags in ((False,), (True,), (False, True))
]


def of_torch(table: np.ndarray, grid: Any, size: Any, how: dict[str, Any], **more: Any) -> np.ndarray:
    """torch's own resampling, on the rows of a table."""
    x = torch.from_numpy(table).unflatten(0, grid).permute(2, 0, 1)[None].contiguous()
    mode = {"cubic": "bicubic", "linear": "bilinear"}[how["kernel"]]
    options = {"antialias": how["antialias"], "align_corners": how["align_corners"]}
    y = torch.nn.functional.interpolate(x, size, mode=mode, **options, **more)
    return y[0].permute(1, 2, 0).flatten(0, 1).numpy()


sizes = st.tuples(*[st.integers(2, 20)] * 4)


@given(sizes=sizes, how=st.sampled_from(MODES), seed=seeds, classes=st.integers(0, 3))
def test_equals_torch(sizes: tuple[int, int, int, int], how: dict[str, Any], seed: int, classes: int) -> None:
    grid, new = sizes[:2], sizes[2:]
    table = normal(classes + grid[0] * grid[1], 3, seed=seed)
    found = interpolate_grid(table, grid, new, class_tokens=classes, **how)
    np.testing.assert_array_equal(found[:classes], table[:classes])
    np.testing.assert_allclose(found[classes:], of_torch(table[classes:], grid, new, how), atol=1e-9)


OFFSETS = [(new, how("cubic", flag)) for new in ((10, 10), (16, 16), (24, 24)) for flag in (False, True)]
OFFSETS += [
    (new, mode) for new in ((14, 20), (20, 14), (14, 9)) for mode in MODES if not mode["align_corners"]
]


@pytest.mark.parametrize(("new", "how"), OFFSETS)
def test_offset_of_dino_is_a_scale_factor(new: tuple[int, int], how: dict[str, Any]) -> None:
    """Also on an axis that stays, where it shifts rows in torch, too."""
    table, factors = normal(196, 3), tuple((n + 0.1) / 14 for n in new)
    ours = interpolate_grid(table, (14, 14), new, **how, scale_offset=0.1)
    np.testing.assert_allclose(ours, of_torch(table, (14, 14), None, how, scale_factor=factors), atol=1e-12)


@given(shape=shapes, seed=seeds, how=st.sampled_from(MODES))
def test_its_own_grid_changes_nothing(shape: list[int], seed: int, how: dict[str, Any]) -> None:
    """As in DINO's code, with an offset, too."""
    table = normal(int(np.prod(shape)) + 1, 2, seed=seed)
    offset = 0.0 if how["align_corners"] else 0.1
    ours = interpolate_grid(table, shape, shape, class_tokens=1, **how, scale_offset=offset)
    np.testing.assert_array_equal(ours, table)


@pytest.mark.parametrize("how", [mode for mode in MODES if not mode["align_corners"]])
def test_a_long_axis_takes_no_matrix_of_its_square(how: dict[str, Any]) -> None:
    """6000 rows to 6001 took 864 MB."""
    table = normal(1500, 2)
    tracemalloc.start()
    found = interpolate_grid(table, (1500,), (1001,), **how)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**21
    columns = np.repeat(table, 3, axis=0)
    whole = interpolate_grid(columns, (1500, 3), (1001, 3), **how)
    np.testing.assert_allclose(whole.reshape(1001, 3, 2)[:, 1], found, atol=1e-12)
    np.testing.assert_allclose(whole, of_torch(columns, (1500, 3), (1001, 3), how), atol=1e-9)


@pytest.mark.parametrize("corners", [True, False])
def test_one_axis_is_the_table_of_a_line(corners: bool) -> None:
    table = normal(7, 4)
    ours = interpolate_grid(table, [7], [12], kernel="linear", align_corners=corners)
    np.testing.assert_allclose(ours, interpolate_table(table, 12, align_corners=corners), atol=1e-15)


def test_three_axes_are_one_after_the_other() -> None:
    video = normal(2 * 3 * 4, 5)
    frames = interpolate_grid(interpolate_grid(video, (2, 12), (6, 12)), (6, 3, 4), (6, 5, 4))
    np.testing.assert_allclose(interpolate_grid(video, (2, 3, 4), (6, 5, 4)), frames, atol=1e-14)


def test_a_grid_of_one() -> None:
    table = normal(1, 4)
    np.testing.assert_allclose(
        interpolate_grid(table, (1, 1), (3, 2)), np.repeat(table, 6, axis=0), atol=1e-15
    )
    np.testing.assert_array_equal(grid_encoding((1, 1), 4), [[0, 1, 0, 1]])
    assert interpolate_grid(normal(12, 4), (3, 4), (1, 1)).shape == (1, 4)


# --- Generators

X_AXIS = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
Y_AXIS = np.array([[0.0, 0, 1], [0, 0, 0], [-1, 0, 0]])
QUARTER = np.array([[0.0, -1], [1, 0]])


def test_generators_that_commute_see_offsets_and_others_do_not() -> None:
    t = normal(2, 2)

    def change(generators: np.ndarray) -> float:
        here, there = (grids.generated_rotation(generators, x) for x in (t, t + np.array([3.0, -1.0])))
        return float(np.abs(here[0].T @ here[1] - there[0].T @ there[1]).max())

    basis = np.linalg.qr(normal(4, 4))[0]
    commuting = np.stack([basis @ np.kron(np.diag(w), QUARTER) @ basis.T for w in ((1.0, 0.3), (0.2, 2.0))])
    assert change((commuting - commuting.swapaxes(1, 2)) / 2) < 1e-12
    assert change(np.stack([X_AXIS, 2 * X_AXIS])) < 1e-12
    assert change(np.stack([X_AXIS, Y_AXIS])) > 0.1


def test_commuting_generators_are_rope_in_another_basis() -> None:
    omega = mixed_frequencies(8, 0.7)
    generators = np.stack([np.kron(np.diag(row), QUARTER) for row in omega])
    t, x = grid_coordinates((3, 4)), normal(12, 8)
    turned = (grids.generated_rotation(generators, t) @ x[..., None])[..., 0]
    np.testing.assert_allclose(turned, apply_rotary_axes(x, t, omega), atol=1e-12)


# --- Errors

TABLE: Any = np.ones((12, 4))
RNG = np.random.default_rng(0)
BROKEN = [np.where(np.eye(12, 4), bad, 1.0) for bad in (math.inf, math.nan)]


def resized(grid: Any, new: Any, table: Any = TABLE, **how: Any) -> Any:
    return interpolate_grid(table, grid, new, **how)


test_errors_name_the_argument = refused([
    (lambda: grid_encoding((0, 3), 8), ValueError, "each length of shape must be at least 1, got 0"),
    (lambda: grid_encoding((), 8), TypeError, "shape must be the lengths of one axis or more"),
    (lambda: grid_encoding((2, 3), 6), ValueError, "dim must be a multiple of 4 .* got 6"),
    (lambda: reorder_grid(TABLE, 3, "mae", "timm"), ValueError, "the width of codes must be a multiple of 6"),
    (lambda: reorder_grid(TABLE[0, 0], 2, "mae", "timm"), ValueError, r"codes must have shape \(\.\.\., dim\)"),
    (lambda: grids.coordinate_encoding([1.0, 2.0], 8), ValueError, r"coordinates must have shape \(\.\.\., axes\)"),
    (lambda: grids.coordinate_encoding([[np.nan, 2.0]], 8), ValueError, "coordinates must be finite"),
    (lambda: resized((3, 5), (2, 2)), ValueError, r"table must have shape \(15, dim\)"),
    (lambda: resized((3, 4), (2, 2), class_tokens=1), ValueError, r"\(13, dim\), 1 class tokens"),
    (lambda: resized((3, 4), (2,)), ValueError, "new_grid must have 2 axes"),
    (lambda: resized((3, 4), (2, 2), antialias=True, align_corners=True), ValueError, "align_corners must be False"),
    (lambda: resized((3, 4), (2, 2), BROKEN[0]), ValueError, "table must be finite, got inf"),
    (lambda: resized((3, 4), (3, 4), BROKEN[1]), ValueError, "table must be finite, got nan"),
    (lambda: grids.jitter_coordinates(np.ones(()), RNG), ValueError, "coordinates must have shape"),
    (lambda: grids.generated_rotation(np.ones((2, 3, 3)), [[1, 2]]), ValueError, "generators must be skew-symmetric"),
    (lambda: grids.generated_rotation(X_AXIS[None], [[1, 2]]), ValueError, r"coordinates must .* \(\.\.\., 1\)"),
])  # fmt: skip
