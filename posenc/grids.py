"""Positions on a grid, such as the patches of an image or a video. A position has a coordinate on each axis.

Sources: Dosovitskiy et al., An Image is Worth 16x16 Words (2021), appendix D.4,
https://arxiv.org/abs/2010.11929; He et al., Masked Autoencoders Are Scalable Vision Learners (2022), appendix
A.1, https://arxiv.org/abs/2111.06377
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from posenc._arrays import (
    Array,
    ArrayLike,
    ArrayT,
    DType,
    Namespace,
    no_autocast,
    to_device_of,
    torch_namespace,
)
from posenc._checks import (
    as_numbers,
    as_places,
    check_finite,
    check_flag,
    check_float_dtype,
    check_word,
    floating,
    integer,
    number,
    of_library,
)
from posenc.learned import Kernel, taps
from posenc.sinusoidal import sinusoidal_encoding

__all__ = [
    "coordinate_encoding",
    "generated_rotation",
    "grid_coordinates",
    "grid_encoding",
    "interpolate_grid",
    "jitter_coordinates",
    "reorder_grid",
]

Order = Literal["interleaved", "mae", "timm"]


# --- Codes


@overload
def grid_encoding(
    shape: Sequence[int], dim: int, *, base: float = ..., order: Order = ..., dtype: None = ...
) -> np.ndarray: ...
@overload
def grid_encoding(
    shape: Sequence[int], dim: int, *, base: float = ..., order: Order = ..., dtype: DType = ...
) -> Any: ...
def grid_encoding(
    shape: Sequence[int],
    dim: int,
    *,
    base: float = 10000.0,
    order: Order = "interleaved",
    dtype: DType | None = None,
) -> Array:
    """The sinusoidal encoding of all positions of a grid.

    p(t_0, t_1, ...) = PE(t_0) ⊕ PE(t_1) ⊕ ..., with a sinusoidal code of width dim/axes for each axis. The
    dot product of two codes is Σ_a K(u_a − t_a), which depends on the offsets alone.

    Args:
        shape: length of each axis, at least 1, such as (rows, columns) of an image.
        dim: width of the encoding, a multiple of 2 · axes.
        base: as in `posenc.sinusoidal_frequencies`, of each axis.
        order: order of the columns. "interleaved", the default: the first axis first, sines and cosines
            alternate. "mae": the last axis first, all sines of an axis before its cosines, as in the models
            of He et al. (2022). "timm": the sines of all axes, then all cosines.
        dtype: as in `posenc.sinusoidal_encoding`. A torch dtype gives a torch tensor.

    Returns:
        Array of shape (positions, dim). The last axis counts fastest, as models flatten their patches, so
        `.reshape(*shape, dim)` restores the grid. Every row has norm sqrt(dim/2).

    >>> grid_encoding((2, 2), 4).round(2)
    array([[0.  , 1.  , 0.  , 1.  ],
           [0.  , 1.  , 0.84, 0.54],
           [0.84, 0.54, 0.  , 1.  ],
           [0.84, 0.54, 0.84, 0.54]])

    Source: He et al. (2022), appendix A.1, for images.
    """
    sizes = _sizes("shape", shape)
    width = _width(dim, len(sizes))
    check_order(order)
    xp = torch_namespace(dtype) or np
    table = xp.empty((*sizes, dim), dtype=check_float_dtype(dtype, xp))
    for a, (n, part) in enumerate(zip(sizes, _split(table, len(sizes), order, xp), strict=True)):
        code = _pairs(sinusoidal_encoding(n, width, base=base, dtype=table.dtype), xp)
        code = xp.reshape(code, (*[1] * a, n, *[1] * (len(sizes) - a - 1), width // 2, 2))
        if order == "interleaved":
            part[...] = code
        else:  # sines apart from cosines, laid out as they will lie: then runs of memory are copied
            for k in (0, 1):
                part[..., k] = xp.asarray(code[..., k], copy=True)
    return xp.reshape(table, (-1, dim))


def coordinate_encoding(
    coordinates: ArrayLike,
    dim: int,
    *,
    base: float = 10000.0,
    order: Order = "interleaved",
    dtype: DType | None = None,
) -> Array:
    """The encoding of `posenc.grid_encoding` at any points, also between or beyond those of a grid.

    Args:
        coordinates: integer or real (float32, float64), shape (..., axes).
        dim, base, order: as in `posenc.grid_encoding`.
        dtype: floating dtype of the result. The library's default if None.

    Returns:
        Array of shape (..., dim), of the library and on the device of coordinates.

    Raises:
        ValueError: coordinates have no row for each position, or dim is no multiple of 2 · axes.

    >>> codes = coordinate_encoding(grid_coordinates((2, 3)), 8)
    >>> bool(np.allclose(codes, grid_encoding((2, 3), 8)))
    True

    Source: as `posenc.grid_encoding`; any points: in this book, grids.md#axes.
    """
    xp, t = as_places("coordinates", coordinates)
    if t.ndim < 2 or t.shape[-1] < 1:
        raise ValueError(
            f"coordinates must have shape (..., axes) with a row for each position, got {tuple(t.shape)}"
        )
    width = _width(dim, t.shape[-1])
    check_order(order)
    codes = [
        sinusoidal_encoding(t[..., a], width, base=base, dtype=check_float_dtype(dtype, xp))
        for a in range(t.shape[-1])
    ]
    return _join([_pairs(code, xp) for code in codes], order, xp)


def reorder_grid(codes: ArrayT, axes: int, source: Order, target: Order) -> ArrayT:
    """Reorder the columns of a grid code, to convert tables between this package, MAE and timm.

    Args:
        codes: floating, shape (..., dim), dim a multiple of 2 · axes: a table, or a weight matrix whose columns
            multiply codes.
        axes: number of axes of the grid, 2 for an image.
        source, target: orders as in `posenc.grid_encoding`.

    Returns:
        Array of the shape, dtype and library of codes.

    Raises:
        ValueError: the width of codes is no multiple of 2 · axes, or an order is unknown.

    >>> ours, mae = (grid_encoding((3, 5), 16, order=order) for order in ("interleaved", "mae"))
    >>> bool((reorder_grid(mae, 2, "mae", "interleaved") == ours).all())
    True

    Source: the orders of MAE in Hugging Face Transformers and of timm, compared in this book, grids.md#orders.
    """
    xp = floating(codes=codes)
    axes = integer("axes", axes, minimum=1)
    if codes.ndim < 1:
        raise ValueError("codes must have shape (..., dim), got a single number")
    _width(codes.shape[-1], axes, "the width of codes")
    parts = _split(codes, axes, check_order(source, "source"), xp)
    result: ArrayT = _join(parts, check_order(target, "target"), xp)
    return result


def check_order(order: Any, name: str = "order") -> Order:
    """`order`, or ValueError unless it is one of the three."""
    return check_word(name, order, Order)


def _split(codes: Array, axes: int, order: Order, xp: Namespace) -> list[Array]:
    """The columns of each axis as pairs of sine and cosine, (..., dim/(2·axes), 2): views, in NumPy and torch."""
    width = codes.shape[-1] // axes
    if order == "timm":
        parts = xp.reshape(codes, (*codes.shape[:-1], 2, axes, width // 2))
        return [xp.moveaxis(parts[..., a, :], -2, -1) for a in range(axes)]
    blocks = [codes[..., a * width : (a + 1) * width] for a in range(axes)]
    if order == "interleaved":
        return [_pairs(block, xp) for block in blocks]
    halves = [xp.reshape(block, (*block.shape[:-1], 2, width // 2)) for block in reversed(blocks)]
    return [xp.moveaxis(half, -2, -1) for half in halves]


def _join(parts: list[Array], order: Order, xp: Namespace) -> Array:
    """The inverse of `_split`."""
    if order == "timm":
        return xp.concat([part[..., k] for k in (0, 1) for part in parts], axis=-1)
    if order == "mae":
        return xp.concat([part[..., k] for part in reversed(parts) for k in (0, 1)], axis=-1)
    return xp.concat([xp.reshape(part, (*part.shape[:-2], 2 * part.shape[-2])) for part in parts], axis=-1)


def _pairs(code: Array, xp: Namespace) -> Array:
    return xp.reshape(code, (*code.shape[:-1], code.shape[-1] // 2, 2))


# --- Coordinates


def grid_coordinates(shape: Sequence[int], *, centered: bool = False) -> np.ndarray:
    """The coordinates of all positions of a grid, one row each. The last axis counts fastest.

    Args:
        shape: length of each axis, at least 1.
        centered: False counts cells: 0, 1, ..., n − 1. True scales the grid to −1..1 on each axis and takes
            the middles of cells, (2j + 1)/n − 1, as DINOv3 does.

    Returns:
        Array of shape (positions, axes), int64, or float64 if centered.

    >>> grid_coordinates((2, 3)).tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    >>> grid_coordinates((1, 4), centered=True).tolist()
    [[0.0, -0.75], [0.0, -0.25], [0.0, 0.25], [0.0, 0.75]]

    Source: Siméoni et al., DINOv3 (2025), section 3.2. https://arxiv.org/abs/2508.10104
    """
    sizes = _sizes("shape", shape)
    check_flag("centered", centered)
    cells = np.indices(sizes).reshape(len(sizes), -1).T
    return (2 * cells + 1) / np.array(sizes) - 1 if centered else np.ascontiguousarray(cells)


def jitter_coordinates(
    coordinates: ArrayT,
    rng: np.random.Generator,
    *,
    shift: float = 0.0,
    jitter: float = 1.0,
    rescale: float = 1.0,
) -> ArrayT:
    """Centred coordinates, shifted and scaled at random, so that training sees grids of many sizes.

    t_a → r · (j_a · (t_a + s_a)). s_a is uniform in ±shift and ln j_a uniform in ± ln jitter, one draw for
    each axis. ln r is uniform in ± ln rescale, one draw for all axes. All positions share the draws.

    Args:
        coordinates: floating, shape (..., axes), such as `posenc.grids.grid_coordinates(shape, centered=True)`.
        rng: source of the random numbers.
        shift: at least 0. The default changes nothing.
        jitter, rescale: at least 1. The defaults change nothing.

    Returns:
        Array of the shape, dtype and library of coordinates.

    Raises:
        TypeError: rng is not a numpy.random.Generator, or coordinates are not floating.
        ValueError: shift is below 0, or jitter or rescale is below 1.

    >>> t = grid_coordinates((1, 2), centered=True)
    >>> jitter_coordinates(t, np.random.default_rng(0), rescale=2.0).round(3).tolist()
    [[0.0, -0.772], [0.0, 0.772]]

    Source: Siméoni et al., DINOv3 (2025), section 3.2, with r alone. Its code has all three.
    """
    xp = floating(coordinates=coordinates)
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {type(rng).__name__}")
    if coordinates.ndim < 1:
        raise ValueError("coordinates must have shape (..., axes), got a single number")
    shift = number("shift", shift, at_least=0)
    logs = [math.log(number(name, x, at_least=1)) for name, x in (("jitter", jitter), ("rescale", rescale))]
    axes = coordinates.shape[-1]
    moved = rng.uniform(-shift, shift, axes)
    scale = np.exp(rng.uniform(-logs[0], logs[0], axes) + rng.uniform(-logs[1], logs[1]))
    moved, scale = (xp.astype(of_library("", x, coordinates, xp), coordinates.dtype) for x in (moved, scale))
    result: ArrayT = (coordinates + moved) * scale
    return result


# --- Tables


def interpolate_grid(
    table: ArrayT,
    grid: Sequence[int],
    new_grid: Sequence[int],
    *,
    class_tokens: int = 0,
    kernel: Kernel = "cubic",
    antialias: bool = False,
    align_corners: bool = False,
    scale_offset: float = 0.0,
) -> ArrayT:
    """A table of learned positional embeddings, resampled to a grid of another size.

    On each axis, row j of n' new ones lies at (j + ½) · n / (n' + scale_offset) − ½ among the n old ones. With
    align_corners it lies at j · (n − 1) / (n' − 1). Beyond the border the last row is repeated.

    Args:
        table: floating, shape (class_tokens + positions of grid, dim), the last axis counting fastest.
        grid, new_grid: length of each axis, at least 1, any number of axes.
        class_tokens: number of rows at the start of the table that have no position. They are not changed.
        kernel: "linear", or "cubic" (Keys) with the parameter −0.75 as in torch, or −0.5 with antialias.
        antialias: True widens the kernel where the grid shrinks, so that every old row contributes. It is
            False in transformers and True in timm. With "cubic" it changes the result also where the grid
            grows.
        align_corners: True maps corners to corners. False treats rows as cells of equal size, as transformers
            and timm do. Not together with antialias.
        scale_offset: 0.1 gives the numbers of DINO and DINOv2, whose code adds it to the new length. A grid
            that keeps its size is not changed, as in their code. If only one axis keeps its size, its rows
            are shifted with kernel "cubic", and not changed with "linear" or antialias, as in
            torch.nn.functional.interpolate(scale_factor=...) on the CPU.

    Returns:
        Array (class_tokens + positions of new_grid, dim) of the dtype and library and on the device of table,
        computed in float32 at least and rounded once.

    Raises:
        ValueError: a NaN or an infinity in table, which would spread to other rows.

    >>> rows = np.array([[9.0], [0.0], [1.0], [2.0], [3.0]])  # a class token and a grid of 2 times 2
    >>> interpolate_grid(rows, (2, 2), (1, 3), class_tokens=1, kernel="linear", align_corners=True)[:, 0]
    array([9. , 0. , 0.5, 1. ])

    Source: Dosovitskiy et al. (2021), section 3.2; Keys, Cubic Convolution Interpolation (1981).
    """
    xp = floating(table=table)
    old, new = _sizes("grid", grid), _sizes("new_grid", new_grid)
    first = integer("class_tokens", class_tokens, minimum=0)
    if len(old) != len(new):
        raise ValueError(f"new_grid must have {len(old)} axes, as grid has, got {new}")
    if table.ndim != 2 or table.shape[0] != first + math.prod(old):
        raise ValueError(
            f"table must have shape ({first + math.prod(old)}, dim), {first} class tokens and a grid {old}, "
            f"got {tuple(table.shape)}"
        )
    check_word("kernel", kernel, Kernel)
    for name, flag in (("antialias", antialias), ("align_corners", align_corners)):
        check_flag(name, flag)
    extra = number("scale_offset", scale_offset, at_least=0)
    if align_corners and (antialias or extra):
        raise ValueError(
            "align_corners must be False with antialias or scale_offset, because these treat rows as cells"
        )
    check_finite("table", table, xp)
    if old == new:
        return xp.concat([table], axis=0)  # a copy that passes gradients, which torch.asarray may not
    dtype, dim = table.dtype, table.shape[1]
    rows = xp.astype(table[first:, :], xp.result_type(dtype, xp.float32))
    for a, (n, length) in enumerate(zip(old, new, strict=True)):
        if n == length and (antialias or kernel == "linear"):
            continue
        old_rows, weights = taps(n, length, align_corners, kernel, antialias=antialias, extra=extra)
        blocks = xp.reshape(rows, (math.prod(new[:a]), n, -1))
        with no_autocast(rows):
            rows = _mixed(blocks, old_rows, weights, xp)
    rows = xp.astype(xp.reshape(rows, (math.prod(new), dim)), dtype)
    result: ArrayT = xp.concat([table[:first, :], rows], axis=0)
    return result


def _mixed(blocks: Array, old_rows: np.ndarray, weights: np.ndarray, xp: Namespace) -> Array:
    """Rows Σ_k weights[j, k] · blocks[:, old_rows[j, k], :]."""
    n = blocks.shape[1]
    if old_rows.size * n <= 2**20:  # a product with a small matrix is faster than taps
        mix = ((old_rows[..., None] == np.arange(n)) * weights[..., None]).sum(axis=1)
        return xp.astype(to_device_of(mix, blocks, xp), blocks.dtype) @ blocks
    result = None
    for tap, weight in zip(old_rows.T, weights.T, strict=True):
        share = xp.astype(to_device_of(weight[:, None], blocks, xp), blocks.dtype)
        part = share * xp.take(blocks, to_device_of(tap, blocks, xp), axis=1)
        result = part if result is None else result + part
    return result


# --- Generators


def generated_rotation(generators: ArrayLike, coordinates: ArrayLike) -> np.ndarray:
    """The rotation of a point, from a skew-symmetric generator for each axis.

    R(t) = exp(Σ_a t_a G_a).

    R(t)ᵀ R(u) depends on u − t alone if and only if the generators commute, G_a G_b = G_b G_a. Then in one
    basis all of them are blocks of 2 by 2, and R is RoPE with frequencies (axes, dim/2),
    `posenc.rotary.apply_rotary_axes`, in that basis.

    Args:
        generators: skew-symmetric, shape (axes, dim, dim).
        coordinates: real, shape (..., axes).

    Returns:
        float64 NumPy array of shape (..., dim, dim).

    Raises:
        ValueError: a generator is not skew-symmetric, or coordinates have not one number for each of them.

    >>> turn = np.array([[[0.0, -1.0], [1.0, 0.0]]])
    >>> generated_rotation(turn, [[np.pi / 2]])[0].round(6) + 0.0
    array([[ 0., -1.],
           [ 1.,  0.]])

    Source: Ostmeier et al., LieRE (2025), section 3. https://arxiv.org/abs/2406.10322
    """
    g, t = (
        np.asarray(read(name, x)[1])
        for name, x, read in (
            ("generators", generators, as_numbers),
            ("coordinates", coordinates, as_places),
        )
    )
    if g.ndim != 3 or g.shape[1] != g.shape[2] or not np.array_equal(g, -np.swapaxes(g, 1, 2)):
        raise ValueError(f"generators must be skew-symmetric, shape (axes, dim, dim), got shape {g.shape}")
    if t.ndim < 1 or t.shape[-1] != len(g):
        raise ValueError(
            f"coordinates must have shape (..., {len(g)}), one for each generator, got {t.shape}"
        )
    # i times a skew-symmetric matrix is Hermitian: its eigenvalues are the angles.
    angles, basis = np.linalg.eigh(1j * np.tensordot(t, g, axes=1))
    turned = basis * np.exp(-1j * angles)[..., None, :]
    return np.asarray((turned @ np.conj(np.swapaxes(basis, -1, -2))).real)


# --- Checks


def _sizes(name: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, Sequence | np.ndarray) or isinstance(shape, str) or len(shape) == 0:
        raise TypeError(f"{name} must be the lengths of one axis or more, such as (14, 14), got {shape!r}")
    return tuple(integer(f"each length of {name}", n, minimum=1) for n in shape)


def _width(dim: Any, axes: int, name: str = "dim") -> int:
    """The width of each axis."""
    dim = integer(name, dim, minimum=2)
    if dim % (2 * axes):
        raise ValueError(
            f"{name} must be a multiple of {2 * axes} (a sine and a cosine for each of {axes} axes), got {dim}"
        )
    return int(dim) // axes
