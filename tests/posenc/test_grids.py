"""Positions on a grid: codes, their orders, coordinates, tables resampled, and generators."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import posenc
from posenc import grid_encoding, sinusoidal_encoding
from posenc.grids import (
    Order,
    coordinate_encoding,
    generated_rotation,
    grid_coordinates,
    interpolate_grid,
    jitter_coordinates,
    reorder_grid,
)
from posenc.learned import interpolate_table
from posenc.rotary import apply_rotary_axes, axial_frequencies, mixed_frequencies, mrope_frequencies
from posenc.shift import relative_kernel

orders = st.sampled_from(["interleaved", "mae", "timm"])
shapes = st.lists(st.integers(1, 6), min_size=1, max_size=3)
seeds = st.integers(0, 2**32 - 1)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


# --- Codes


@given(shape=shapes, pairs=st.integers(1, 4), order=orders)
def test_dot_product_is_a_kernel_for_each_axis(shape: list[int], pairs: int, order: Order) -> None:
    codes = grid_encoding(shape, 2 * pairs * len(shape), order=order)
    t = grid_coordinates(shape)
    offsets = t[None] - t[:, None]
    np.testing.assert_allclose(codes @ codes.T, relative_kernel(offsets, 2 * pairs).sum(-1), atol=1e-12)


@given(shape=shapes, pairs=st.integers(1, 4), order=orders, base=st.sampled_from([100.0, 10000.0]))
def test_table_and_formula_agree(shape: list[int], pairs: int, order: Order, base: float) -> None:
    dim, t = 2 * pairs * len(shape), grid_coordinates(shape)
    found = grid_encoding(shape, dim, base=base, order=order)
    np.testing.assert_allclose(found, coordinate_encoding(t, dim, base=base, order=order), atol=1e-14)
    for dtype in (torch.float32, torch.bfloat16):
        theirs = coordinate_encoding(torch.from_numpy(t), dim, base=base, order=order, dtype=dtype)
        ours = grid_encoding(shape, dim, base=base, order=order, dtype=dtype)
        assert isinstance(ours, torch.Tensor)
        torch.testing.assert_close(ours, theirs, rtol=0, atol=torch.finfo(dtype).eps)


def test_one_axis_is_the_code_of_a_line() -> None:
    np.testing.assert_array_equal(grid_encoding([9], 8), sinusoidal_encoding(9, 8))


def test_columns_of_each_order() -> None:
    """By numbers, at row 1 and column 2 of width 8."""
    a, b = 1.0, 0.01
    sin, cos = np.sin, np.cos
    row, column = [sin(a), cos(a), sin(b), cos(b)], [sin(2 * a), cos(2 * a), sin(2 * b), cos(2 * b)]
    expected = {
        "interleaved": row + column,
        "mae": [column[0], column[2], column[1], column[3], row[0], row[2], row[1], row[3]],
        "timm": [row[0], row[2], column[0], column[2], row[1], row[3], column[1], column[3]],
    }
    names: list[Order] = ["interleaved", "mae", "timm"]
    for order in names:
        np.testing.assert_allclose(grid_encoding((2, 3), 8, order=order)[5], expected[order], atol=1e-15)


@given(shape=shapes, pairs=st.integers(1, 4), source=orders, target=orders)
def test_orders_into_each_other(shape: list[int], pairs: int, source: Order, target: Order) -> None:
    axes, dim = len(shape), 2 * pairs * len(shape)
    codes = grid_encoding(shape, dim, order=source)
    np.testing.assert_array_equal(
        reorder_grid(codes, axes, source, target), grid_encoding(shape, dim, order=target)
    )
    x = torch.from_numpy(normal(3, 2, dim))
    back = reorder_grid(reorder_grid(x, axes, source, target), axes, target, source)
    assert torch.equal(back, x)


def test_a_raster_loses_its_vertical_neighbours() -> None:
    """196 places of width 64: the next column, the next row, the end of a row and the start of the next."""
    raster, grid = sinusoidal_encoding(196, 64), grid_encoding((14, 14), 64)
    for codes, wanted in ((raster, (0.966, 0.631, 0.966)), (grid, (0.979, 0.979, 0.825))):
        found = [cosine(codes[t], codes[u]) for t, u in ((105, 106), (105, 119), (111, 112))]
        assert found == pytest.approx(wanted, abs=5e-4)
    for dim in (64, 4):
        assert len(np.unique(grid_encoding((14, 14), dim).round(9), axis=0)) == 196


def test_coordinates() -> None:
    by_hand = [[a, b, c] for a in range(2) for b in range(3) for c in range(4)]
    assert grid_coordinates((2, 3, 4)).tolist() == by_hand
    middle = grid_coordinates((5, 1), centered=True)
    np.testing.assert_allclose(
        middle, [[-0.8, 0.0], [-0.4, 0.0], [0.0, 0.0], [0.4, 0.0], [0.8, 0.0]], atol=1e-15
    )


@given(seed=seeds, shift=st.floats(0, 1), jitter=st.floats(1, 3), rescale=st.floats(1, 3))
def test_jitter_moves_all_places_alike(seed: int, shift: float, jitter: float, rescale: float) -> None:
    t = grid_coordinates((4, 5), centered=True)
    moved = jitter_coordinates(t, np.random.default_rng(seed), shift=shift, jitter=jitter, rescale=rescale)
    scale = np.ptp(moved, axis=0) / np.ptp(t, axis=0)
    np.testing.assert_allclose(moved, scale * t + moved.mean(0), atol=1e-12)  # affine, axis by axis
    assert (np.abs(np.log(scale)) <= np.log(jitter * rescale) + 1e-9).all()
    assert (np.abs(moved.mean(0)) <= shift * scale + 1e-12).all()
    assert abs(np.log(scale[0] / scale[1])) <= 2 * np.log(jitter) + 1e-9
    same = jitter_coordinates(
        torch.from_numpy(t), np.random.default_rng(seed), shift=shift, jitter=jitter, rescale=rescale
    )
    np.testing.assert_array_equal(same.numpy(), moved)
    np.testing.assert_array_equal(jitter_coordinates(t, np.random.default_rng(seed)), t)


# --- Tables


MODES: list[dict[str, Any]] = [
    {"kernel": kernel, "antialias": antialias, "align_corners": corners}
    for kernel in ("cubic", "linear")
    for antialias, corners in ((False, False), (True, False), (False, True))
]


def of_torch(table: np.ndarray, grid: Any, size: Any, how: dict[str, Any], **more: Any) -> np.ndarray:
    """torch's own resampling, on the rows of a table."""
    x = torch.from_numpy(table).unflatten(0, grid).permute(2, 0, 1)[None].contiguous()
    mode = {"cubic": "bicubic", "linear": "bilinear"}[how["kernel"]]
    options = {"antialias": how["antialias"], "align_corners": how["align_corners"]}
    y = torch.nn.functional.interpolate(x, size, mode=mode, **options, **more)
    return y[0].permute(1, 2, 0).flatten(0, 1).numpy()


@given(
    sizes=st.tuples(*[st.integers(2, 20)] * 4),
    how=st.sampled_from(MODES),
    seed=seeds,
    classes=st.integers(0, 3),
)
def test_equals_torch(sizes: tuple[int, int, int, int], how: dict[str, Any], seed: int, classes: int) -> None:
    grid, new = sizes[:2], sizes[2:]
    table = normal(classes + grid[0] * grid[1], 3, seed=seed)
    found = interpolate_grid(table, grid, new, class_tokens=classes, **how)
    np.testing.assert_array_equal(found[:classes], table[:classes])
    np.testing.assert_allclose(found[classes:], of_torch(table[classes:], grid, new, how), atol=1e-9)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("new", [10, 16, 24])
def test_offset_of_dino_is_a_scale_factor(new: int, antialias: bool) -> None:
    table, how = normal(196, 3), {"kernel": "cubic", "antialias": antialias, "align_corners": False}
    factors = ((new + 0.1) / 14,) * 2
    theirs = of_torch(table, (14, 14), None, how, scale_factor=factors)
    ours = interpolate_grid(table, (14, 14), (new, new), antialias=antialias, scale_offset=0.1)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    assert np.abs(ours - interpolate_grid(table, (14, 14), (new, new), antialias=antialias)).max() > 0.01


@pytest.mark.parametrize("kernel", ["cubic", "linear"])
@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("new", [(14, 20), (20, 14), (14, 9)])
def test_the_offset_on_an_axis_that_stays_is_that_of_torch(
    new: tuple[int, int], antialias: bool, kernel: Literal["cubic", "linear"]
) -> None:
    table, how = normal(196, 3), {"kernel": kernel, "antialias": antialias, "align_corners": False}
    factors = tuple((n + 0.1) / 14 for n in new)
    theirs = of_torch(table, (14, 14), None, how, scale_factor=factors)
    ours = interpolate_grid(table, (14, 14), new, kernel=kernel, antialias=antialias, scale_offset=0.1)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("antialias", [False, True])
def test_the_offset_leaves_the_native_grid_alone_as_dino_does(antialias: bool) -> None:
    table = normal(197, 3)
    ours = interpolate_grid(table, (14, 14), (14, 14), class_tokens=1, antialias=antialias, scale_offset=0.1)
    np.testing.assert_array_equal(ours, table)
    ours[0] = 9.0  # a table of its own
    assert table[0, 0] != 9.0


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_what_is_not_finite_does_not_spread(bad: float) -> None:
    table = normal(16, 3)
    table[5, 1] = bad
    with pytest.raises(ValueError, match=f"table must be finite, got {bad}"):
        interpolate_grid(table, (4, 4), (8, 8))


@pytest.mark.parametrize("kernel", ["cubic", "linear"])
@pytest.mark.parametrize("antialias", [False, True])
def test_a_long_axis_takes_no_matrix_of_its_square(
    antialias: bool, kernel: Literal["cubic", "linear"]
) -> None:
    """6000 rows to 6001 took 864 MB."""
    table = normal(1500, 2)
    tracemalloc.start()
    found = interpolate_grid(table, (1500,), (1001,), kernel=kernel, antialias=antialias)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**21
    columns = np.concatenate([table] * 3, axis=1).reshape(1500, 3, 2).reshape(-1, 2)
    whole = interpolate_grid(columns, (1500, 3), (1001, 3), kernel=kernel, antialias=antialias)
    np.testing.assert_allclose(whole.reshape(1001, 3, 2)[:, 1], found, atol=1e-12)
    how = {"kernel": kernel, "antialias": antialias, "align_corners": False}
    np.testing.assert_allclose(whole, of_torch(columns, (1500, 3), (1001, 3), how), atol=1e-9)


def test_a_rounded_factor_loses_a_row() -> None:
    x = torch.zeros(1, 1, 37, 37)
    assert torch.nn.functional.interpolate(x, scale_factor=39 / 37).shape[-1] == 38
    assert torch.nn.functional.interpolate(x, scale_factor=39.1 / 37).shape[-1] == 39


@given(shape=shapes, seed=seeds, how=st.sampled_from(MODES))
def test_its_own_grid_changes_nothing(shape: list[int], seed: int, how: dict[str, Any]) -> None:
    table = normal(int(np.prod(shape)) + 1, 2, seed=seed)
    np.testing.assert_allclose(
        interpolate_grid(table, shape, shape, class_tokens=1, **how), table, atol=1e-14
    )


def test_one_axis_is_the_table_of_a_line_and_three_are_one_after_the_other() -> None:
    table = normal(7, 4)
    for corners in (True, False):
        np.testing.assert_allclose(
            interpolate_grid(table, [7], [12], kernel="linear", align_corners=corners),
            interpolate_table(table, 12, align_corners=corners),
            atol=1e-15,
        )
    video = normal(2 * 3 * 4, 5)
    frames = interpolate_grid(video, (2, 12), (6, 12))
    np.testing.assert_allclose(
        interpolate_grid(video, (2, 3, 4), (6, 5, 4)),
        interpolate_grid(frames, (6, 3, 4), (6, 5, 4)),
        atol=1e-14,
    )


def test_antialias_counts_every_row_and_is_another_cubic_where_the_grid_grows() -> None:
    table = np.zeros((256, 1))
    table[0] = 1.0
    how: Any = {"grid": (16, 16), "new_grid": (2, 2)}
    assert interpolate_grid(table, **how).sum() == 0
    assert interpolate_grid(table, **how, antialias=True).sum() > 0.001
    grown = [interpolate_grid(normal(64, 2), (8, 8), (11, 11), antialias=flag) for flag in (False, True)]
    assert np.abs(grown[0] - grown[1]).max() > 0.1


def test_low_precision_is_rounded_once_and_gradients_pass() -> None:
    table = torch.from_numpy(normal(1 + 12, 3)).bfloat16()
    found = interpolate_grid(table, (3, 4), (5, 9), class_tokens=1)
    exact = interpolate_grid(table.double(), (3, 4), (5, 9), class_tokens=1)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), exact, rtol=2**-8, atol=1e-6)
    leaf = table.double().requires_grad_()
    interpolate_grid(leaf, (3, 4), (5, 9), class_tokens=1).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.sum() == pytest.approx(3 * (1 + 45))


def test_a_table_is_resampled_alike_under_autocast_and_in_one_graph() -> None:
    table = torch.from_numpy(normal(12, 3)).float()
    expected = interpolate_grid(table, (3, 4), (5, 9))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(interpolate_grid(table, (3, 4), (5, 9)), expected)
    compiled = torch.compile(interpolate_grid, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(table, (3, 4), (5, 9)), expected)


def test_a_grid_of_one() -> None:
    table = normal(1, 4)
    np.testing.assert_allclose(
        interpolate_grid(table, (1, 1), (3, 2)), np.repeat(table, 6, axis=0), atol=1e-15
    )
    np.testing.assert_array_equal(grid_encoding((1, 1), 4), [[0, 1, 0, 1]])
    assert interpolate_grid(normal(12, 4), (3, 4), (1, 1)).shape == (1, 4)


# --- Rotation


@given(seed=seeds, shift=st.tuples(*[st.integers(-50, 50)] * 2), angle=st.floats(-4, 4))
def test_mixed_frequencies_see_offsets_alone(seed: int, shift: tuple[int, int], angle: float) -> None:
    omega = mixed_frequencies(16, angle, base=10.0)
    x, places = normal(2, 16, seed=seed), np.random.default_rng(seed).integers(-50, 50, (2, 2))
    scores = [float(np.prod(apply_rotary_axes(x, p, omega), axis=0).sum()) for p in (places, places + shift)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-9)


def test_mixed_frequencies() -> None:
    np.testing.assert_array_equal(mixed_frequencies(16, 0.0), axial_frequencies(16, 2))
    angles = np.linspace(0, 3, 4)
    omega = mixed_frequencies(16, angles, base=10.0)
    np.testing.assert_allclose(np.hypot(*omega), np.tile(axial_frequencies(16, 2, base=10)[0, :4], 2))
    np.testing.assert_allclose(np.tan(np.arctan2(omega[1, :4], omega[0, :4])), np.tan(angles), atol=1e-12)
    np.testing.assert_allclose((omega[:, :4] * omega[:, 4:]).sum(0), 0, atol=1e-15)


def test_frequencies_of_several_axes_can_be_trained() -> None:
    omega = torch.from_numpy(mixed_frequencies(8, 0.3)).requires_grad_()
    apply_rotary_axes(torch.ones(6, 8), grid_coordinates((2, 3)), omega)[:, 0].sum().backward()
    assert omega.grad is not None
    assert (omega.grad[:, 0] != 0).all()


def test_axes_of_different_widths() -> None:
    np.testing.assert_array_equal(axial_frequencies(8, np.array(2)), axial_frequencies(8, 2))  # type: ignore[arg-type]
    omega = axial_frequencies(128, (16, 56, 56))
    assert [(row != 0).sum() for row in omega] == [8, 28, 28]
    np.testing.assert_array_equal(omega[1, 8:36], posenc.sinusoidal_frequencies(56))
    np.testing.assert_array_equal(axial_frequencies(12, (6, 6)), axial_frequencies(12, 2))


def test_pairs_dealt_out_in_turn() -> None:
    omega = mrope_frequencies(128, (24, 20, 20), interleaved=True)
    np.testing.assert_array_equal(omega.sum(0), posenc.sinusoidal_frequencies(128))
    assert [(row != 0).sum() for row in omega] == [24, 20, 20]
    assert np.flatnonzero(omega[0])[-5:].tolist() == [57, 60, 61, 62, 63]
    assert np.flatnonzero(omega[2])[:3].tolist() == [2, 5, 8]


X_AXIS = np.array([[0.0, 0, 0], [0, 0, -1], [0, 1, 0]])
Y_AXIS = np.array([[0.0, 0, 1], [0, 0, 0], [-1, 0, 0]])


def test_generators_that_commute_see_offsets_and_others_do_not() -> None:
    t = normal(2, 2)
    moved = t + np.array([3.0, -1.0])

    def change(generators: np.ndarray) -> float:
        here, there = (generated_rotation(generators, x) for x in (t, moved))
        return float(np.abs(here[0].T @ here[1] - there[0].T @ there[1]).max())

    block, basis = np.array([[0.0, -1], [1, 0]]), np.linalg.qr(normal(4, 4))[0]
    commuting = np.stack([basis @ np.kron(np.diag(w), block) @ basis.T for w in ((1.0, 0.3), (0.2, 2.0))])
    commuting = (commuting - commuting.swapaxes(1, 2)) / 2
    assert change(commuting) < 1e-12
    assert change(np.stack([X_AXIS, Y_AXIS])) > 0.1
    assert change(np.stack([X_AXIS, 2 * X_AXIS])) < 1e-12


def test_commuting_generators_are_rope_in_another_basis() -> None:
    block, omega = np.array([[0.0, -1], [1, 0]]), mixed_frequencies(8, 0.7)
    generators = np.stack([np.kron(np.diag(row), block) for row in omega])
    t, x = grid_coordinates((3, 4)), normal(12, 8)
    turned = (generated_rotation(generators, t) @ x[..., None])[..., 0]
    np.testing.assert_allclose(turned, apply_rotary_axes(x, t, omega), atol=1e-12)


# --- Errors


TABLE: Any = np.ones((12, 4))
BAD: Any = None


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: grid_encoding((0, 3), 8), ValueError, "each length of shape must be at least 1, got 0"),
        (lambda: grid_encoding((), 8), TypeError, "shape must be the lengths of one axis or more"),
        (lambda: grid_encoding(BAD, 8), TypeError, r"shape must be the lengths .* got None"),
        (lambda: grid_encoding([BAD], 8), TypeError, "each length of shape must be an integer"),
        (lambda: grid_encoding((2, 3), 6), ValueError, "dim must be a multiple of 4 .* got 6"),
        (lambda: grid_encoding((2, 3, 4), 8), ValueError, "dim must be a multiple of 6 .* got 8"),
        (lambda: grid_encoding((2, 3), 8, order="hf"), ValueError, 'order must be "interleaved", "mae" or "timm"'),  # type: ignore[call-overload]
        (lambda: reorder_grid(TABLE, 2, "mae", "ours"), ValueError, "target must be"),  # type: ignore[arg-type]
        (lambda: reorder_grid(TABLE, 3, "mae", "timm"), ValueError, "the width of codes must be a multiple of 6"),
        (lambda: reorder_grid(TABLE[0, 0], 2, "mae", "timm"), ValueError, r"codes must have shape \(\.\.\., dim\)"),
        (lambda: coordinate_encoding([1.0, 2.0], 8), ValueError, r"coordinates must have shape \(\.\.\., axes\)"),
        (lambda: coordinate_encoding([[np.nan, 2.0]], 8), ValueError, "coordinates must be finite"),
        (lambda: coordinate_encoding(torch.ones(2, 2).half(), 8), TypeError, "coordinates must be integers, float32"),
        (lambda: interpolate_grid(TABLE, (3, 5), (2, 2)), ValueError, r"table must have shape \(15, dim\)"),
        (lambda: interpolate_grid(TABLE, (3, 4), (2, 2), class_tokens=1), ValueError, r"\(13, dim\), 1 class tokens"),
        (lambda: interpolate_grid(TABLE, (3, 4), (0, 2)), ValueError, "each length of new_grid must be at least 1"),
        (lambda: interpolate_grid(TABLE, (3, 4), (2,)), ValueError, "new_grid must have 2 axes"),
        (lambda: interpolate_grid(TABLE, (3, 4), (2, 2), kernel="bicubic"), ValueError, 'kernel must be "cubic"'),  # type: ignore[arg-type]
        (lambda: interpolate_grid(TABLE, (3, 4), (2, 2), antialias=BAD), TypeError, "antialias must be True or False"),
        (
            lambda: interpolate_grid(TABLE, (3, 4), (2, 2), antialias=True, align_corners=True),
            ValueError, "align_corners must be False with antialias",
        ),
        (lambda: interpolate_grid(TABLE, (3, 4), (2, 2), scale_offset=-1), ValueError, "scale_offset must be"),
        (lambda: interpolate_grid(TABLE.astype(int), (3, 4), (2, 2)), TypeError, "table must be floating"),
        (lambda: jitter_coordinates(np.ones(()), np.random.default_rng(0)), ValueError, "coordinates must have shape"),
        (lambda: mrope_frequencies(8, BAD), TypeError, "sections must be a list of integers, .* got None"),
        (lambda: mrope_frequencies(8, "4"), TypeError, "sections must be a list of integers, .* got '4'"),  # type: ignore[arg-type]
        (lambda: jitter_coordinates(TABLE, BAD), TypeError, "rng must be a numpy.random.Generator, got NoneType"),
        (lambda: jitter_coordinates(TABLE, np.random.default_rng(0), jitter=0.5), ValueError, "jitter must be"),
        (lambda: generated_rotation(np.ones((2, 3, 3)), [[1, 2]]), ValueError, "generators must be skew-symmetric"),
        (lambda: generated_rotation(X_AXIS[None], [[1, 2]]), ValueError, r"coordinates must have shape \(\.\.\., 1\)"),
        (lambda: mixed_frequencies(6, 0.0), ValueError, "dim must be a multiple of 2 · axes = 4"),
        (lambda: mixed_frequencies(8, [0.0, 1.0, 2.0]), ValueError, r"angle must be a number or have shape \(2,\)"),
        (lambda: axial_frequencies(8, (2, 4)), ValueError, r"axes must be widths that sum to dim = 8, got \[2, 4\]"),
        (lambda: axial_frequencies(8, (3, 5)), ValueError, "each width of axes must be even"),
        (lambda: mrope_frequencies(8, (1, 3), interleaved=True), ValueError, "sections must fit when dealt"),
        (lambda: mrope_frequencies(8, (2, 2, 0), interleaved=True), ValueError, "sections must fit"),
        (lambda: mrope_frequencies(8, (2, 2), interleaved=BAD), TypeError, "interleaved must be True or False"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()
