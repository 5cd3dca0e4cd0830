"""Rotary position embedding with several axes: images, video, and text between them.

A position is a point with several coordinates, such as (time, row, column). The frequencies are a table with
one row per coordinate. Each pair of a vector is rotated by the sum of ω · coordinate over the rows of its
column.

Sources: Su et al., Transformer Upgrade Path 4 (2021), for two dimensions, https://kexue.fm/archives/8397;
Wang et al., Qwen2-VL (2024), section 2.1, for M-RoPE, https://arxiv.org/abs/2409.12191
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posenc._arrays import Array, ArrayLike, ArrayT, wide_dtype
from posenc._checks import as_numbers, as_places, check_even_dim, check_flag, integer, number, of_library
from posenc.rotary._turn import (
    Layout,
    are_whole,
    check_below_turn,
    check_layout,
    check_rotary_dim,
    check_vectors,
    codes,
    turn,
)
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = [
    "apply_rotary_axes",
    "axial_frequencies",
    "mixed_frequencies",
    "mrope_coordinates",
    "mrope_frequencies",
]


def apply_rotary_axes(
    x: ArrayT,
    coordinates: ArrayLike,
    frequencies: ArrayLike,
    *,
    layout: Layout = "interleaved",
    rotary_dim: int | None = None,
    scale: float = 1.0,
) -> ArrayT:
    """Queries or keys, rotated by positions with several coordinates.

    Pair i is rotated counter-clockwise by Σ_a ω_(a,i) t_a for the position t = (t_0, t_1, ...). Scores depend
    on the differences of the coordinates on each axis. With one axis this is `posenc.apply_rotary`.

    Args:
        x: floating, shape (..., seq, dim).
        coordinates: integer or real (float32, float64), shape (seq, axes). Or with as many axes as x, such as
            (batch, 1, seq, axes): each but the last has the length of that of x, or 1.
        frequencies: ω in radians per step, shape (axes, rotary_dim/2), such as `axial_frequencies` or
            `mrope_frequencies` give. A pair that follows one axis has 0 in the other rows.
        layout, rotary_dim, scale: as in `posenc.apply_rotary`.

    Returns:
        Array of the shape and dtype of x.

    Raises:
        TypeError: x is not floating, or is of another library than coordinates or frequencies.
        ValueError: coordinates do not fit the tokens of x or the rows of frequencies. Or frequencies do not fit
            rotary_dim, or are wavelengths.

    >>> grid = np.stack(np.meshgrid([0, 1], [0, 1, 2], indexing="ij"), axis=-1).reshape(6, 2)
    >>> grid.tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    >>> x = apply_rotary_axes(np.ones((6, 8)), grid, axial_frequencies(8, 2))
    >>> bool(np.isclose(x[0] @ x[4], x[1] @ x[5]))  # both one row down, one column on
    True

    Source: Su et al., Transformer Upgrade Path 4 (2021), for two dimensions. https://kexue.fm/archives/8397
    """
    xp = check_vectors("x", x)
    turned = check_rotary_dim(rotary_dim, x.shape[-1])
    check_layout(layout)
    scale = number("scale", scale)
    omega_xp, omega = as_numbers("frequencies", frequencies)
    if omega.ndim != 2 or omega.shape[1] != turned // 2:
        raise ValueError(f"frequencies must have shape (axes, {turned // 2}), got {tuple(omega.shape)}")
    if are_whole(coordinates):
        check_below_turn(omega, omega_xp)
    _, t = as_places("coordinates", coordinates)
    rows, shape, axes = tuple(x.shape[:-1]), tuple(t.shape), omega.shape[0]
    fits = shape[:-1] == rows[-1:] or (
        len(shape) == x.ndim > 2 and all(a in (1, b) for a, b in zip(shape[:-1], rows, strict=True))
    )
    if x.ndim < 2 or not fits or shape[-1] != axes:
        raise ValueError(
            f"coordinates must have shape {(*rows[-1:], axes)}, or axes that are 1 or those of x "
            f"{tuple(x.shape)} and {axes} coordinates in the last, got {shape}"
        )
    t, omega = of_library("coordinates", t, x, xp), of_library("frequencies", omega, x, xp)
    return turn(x, codes(t @ omega, wide_dtype(xp, x), layout, scale, xp), layout, xp)


def axial_frequencies(dim: int, axes: int | Sequence[int], *, base: float = 10000.0) -> np.ndarray:
    """Frequencies that give each axis its own share of the pairs.

    Row a holds posenc.sinusoidal_frequencies(width of axis a, base) for the pairs of axis a, and 0 elsewhere.
    The table is block diagonal.

    Args:
        dim: rotated width, a multiple of 2 · axes.
        axes: number of coordinates, at least 1, such as 2 for an image: all get the same width. Or the width
            of each axis, even numbers that sum to dim, such as (16, 56, 56) in FLUX.1, where dim is 128.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 NumPy array of shape (axes, dim/2), in radians per step of the coordinate.

    Raises:
        ValueError: dim is no multiple of 2 · axes, or the widths do not sum to dim.

    >>> axial_frequencies(8, 2)
    array([[1.  , 0.01, 0.  , 0.  ],
           [0.  , 0.  , 1.  , 0.01]])
    >>> axial_frequencies(8, (2, 6)).round(4)
    array([[1.    , 0.    , 0.    , 0.    ],
           [0.    , 1.    , 0.0464, 0.0022]])

    Source: common for images; Heo et al., Rotary Position Embedding for Vision Transformer (2024),
    section 3.2. https://arxiv.org/abs/2403.13298
    """
    dim = check_even_dim(dim)
    if isinstance(axes, Sequence) or (isinstance(axes, np.ndarray) and axes.ndim):
        widths = [check_even_dim(width, "each width of axes") for width in axes]
        if sum(widths) != dim:
            raise ValueError(f"axes must be widths that sum to dim = {dim}, got {widths}")
    else:
        axes = integer("axes", axes, minimum=1)
        if dim % (2 * axes):
            raise ValueError(f"dim must be a multiple of 2 · axes = {2 * axes}, got {dim}")
        widths = [dim // axes] * axes
    omega = np.concatenate([sinusoidal_frequencies(width, base) for width in widths])
    axis = np.repeat(np.arange(len(widths)), [width // 2 for width in widths])
    return _of_axis(omega, axis, len(widths))


def mixed_frequencies(dim: int, angle: float | Array, *, base: float = 10000.0) -> np.ndarray:
    """Frequencies for two axes, in which each pair may follow any direction of the plane, not only an axis.

    Starts from axial_frequencies(dim, 2), where pair i of the rows has the frequencies (ω_i, 0) along the two
    axes, and pair i of the columns (0, ω_i). Both are turned by θ_i, and become ω_i (cos θ_i, sin θ_i) and
    ω_i (−sin θ_i, cos θ_i). With θ = 0 they stay axial.

    RoPE-Mixed initialises each head with its own angle and then trains the frequencies.
    `posenc.rotary.apply_rotary_axes` passes gradients to frequencies.

    Args:
        dim: rotated width, a multiple of 4.
        angle: θ in radians, one number or an array (dim/4,).
        base: as in `posenc.sinusoidal_frequencies`; 10 in RoPE-Mixed.

    Returns:
        float64 NumPy array of shape (2, dim/2), in radians per step of the coordinate.

    Raises:
        ValueError: dim is no multiple of 4, or angle has another shape.

    >>> mixed_frequencies(4, np.pi / 4).round(3)
    array([[ 0.707, -0.707],
           [ 0.707,  0.707]])

    Source: Heo et al. (2024), section 3.2.
    """
    omega = axial_frequencies(dim, 2, base=base)
    theta = np.asarray(as_numbers("angle", np.atleast_1d(angle))[1])
    if theta.shape not in ((1,), (omega.shape[1] // 2,)):
        raise ValueError(
            f"angle must be a number or have shape ({omega.shape[1] // 2},), one for each frequency of an axis, got "
            f"{theta.shape}"
        )
    rows, columns = np.split(omega.sum(axis=0), 2)
    cos, sin = np.cos(theta), np.sin(theta)
    return np.stack(
        [
            np.concatenate([rows * cos, -columns * sin]),
            np.concatenate([rows * sin, columns * cos]),
        ]
    )


def mrope_frequencies(
    dim: int, sections: Sequence[int], *, base: float = 10000.0, interleaved: bool = False
) -> np.ndarray:
    """Frequencies of multi-axis RoPE (M-RoPE): the pairs of usual RoPE, distributed over the axes.

    Row a holds ω_i = base^(−2i/dim) for the pairs i of axis a, and 0 elsewhere. The columns sum to
    posenc.sinusoidal_frequencies(dim, base), so a token whose coordinates are all t is rotated as by usual
    RoPE at t.

    Args:
        dim: rotated width, even.
        sections: the number of pairs of each axis, in order, with sum dim/2. For time, height and width with
            dim 128: (16, 24, 24) in Qwen2-VL, (24, 20, 20) interleaved in Qwen3-VL.
        base: as in `posenc.sinusoidal_frequencies`.
        interleaved: False gives each axis consecutive pairs: the first axis gets the fast ones, the last the
            slow ones. True gives pairs to the axes in turn. Pairs that remain when the other axes have theirs
            go to the first.

    Returns:
        float64 NumPy array of shape (axes, dim/2), in radians per step of the coordinate.

    Raises:
        TypeError: sections is not a list of integers.
        ValueError: sections do not sum to dim/2, or cannot take pairs in turn.

    >>> mrope_frequencies(8, (2, 1, 1)).round(4)
    array([[1.   , 0.1  , 0.   , 0.   ],
           [0.   , 0.   , 0.01 , 0.   ],
           [0.   , 0.   , 0.   , 0.001]])
    >>> mrope_frequencies(8, (2, 1, 1), interleaved=True).round(4)
    array([[1.   , 0.   , 0.   , 0.001],
           [0.   , 0.1  , 0.   , 0.   ],
           [0.   , 0.   , 0.01 , 0.   ]])

    Source: Wang et al., Qwen2-VL (2024), section 2.1, https://arxiv.org/abs/2409.12191; interleaved: Bai et
    al., Qwen3-VL Technical Report (2025), https://arxiv.org/abs/2511.21631
    """
    omega = sinusoidal_frequencies(dim, base)
    if not isinstance(sections, Sequence | np.ndarray) or isinstance(sections, str):
        raise TypeError(f"sections must be a list of integers, such as (16, 24, 24), got {sections!r}")
    sizes = [integer("each of sections", size, minimum=0) for size in sections]
    if sum(sizes) != len(omega):
        raise ValueError(f"sections must sum to dim/2 = {len(omega)}, got {sizes}")
    check_flag("interleaved", interleaved)
    axis = np.repeat(np.arange(len(sizes)), sizes)
    if interleaved:
        axis = np.zeros(len(omega), dtype=np.int64)
        for a, size in enumerate(sizes[1:], start=1):
            axis[a : size * len(sizes) : len(sizes)] = a
        if np.bincount(axis, minlength=len(sizes)).tolist() != sizes:
            raise ValueError(
                f"sections must fit when the axes take pairs in turn and the first axis also takes what is left, "
                f"got {sizes}"
            )
    return _of_axis(omega, axis, len(sizes))


def mrope_coordinates(parts: Sequence[int | Sequence[int]]) -> np.ndarray:
    """Coordinates (time, row, column) of a sequence that mixes text with images and video, as in M-RoPE.

    Each part starts one after the largest coordinate so far. In text all three coordinates are equal and
    increase by 1 per token. A grid (frames, rows, columns) counts along its axes, the column fastest. An
    image therefore advances the position by the number of patches on its longer side, not by its number of
    tokens.

    This is the rule of the paper. transformers 5.23 continues after max(rows, columns) and ignores the number
    of frames, so the text after a video with more frames than rows and columns starts earlier there. For such
    a video and a checkpoint that was trained with transformers, use the positions of its `get_rope_index`.

    Args:
        parts: in order, a number of text tokens, or (frames, rows, columns) of a grid. An image has 1 frame.

    Returns:
        Integer NumPy array (tokens, 3), for `posenc.rotary.apply_rotary_axes`.

    Raises:
        TypeError: parts is not a list of sizes.
        ValueError: a grid has not three sizes.

    >>> mrope_coordinates([2, (1, 2, 2), 1]).tolist()
    [[0, 0, 0], [1, 1, 1], [2, 2, 2], [2, 2, 3], [2, 3, 2], [2, 3, 3], [4, 4, 4]]

    Source: Wang et al., Qwen2-VL (2024), section 2.1 and figure 3. https://arxiv.org/abs/2409.12191
    """
    if not isinstance(parts, Sequence | np.ndarray) or isinstance(parts, str):
        raise TypeError(f"parts must be a list of sizes, such as [5, (1, 2, 2)], got {parts!r}")
    start, found = 0, [np.empty((0, 3), dtype=np.int64)]
    for part in parts:
        if isinstance(part, Sequence | np.ndarray):
            sizes = [integer("each size of a grid", size, minimum=1) for size in part]
            if len(sizes) != 3:
                raise ValueError(f"a grid must be (frames, rows, columns), got {part!r}")
            some = np.indices(sizes).reshape(3, -1).T
        else:
            length = integer("a number of text tokens", part, minimum=0)
            some = np.repeat(np.arange(length)[:, None], 3, axis=1)
        found.append(start + some)
        start += int(some.max(initial=-1)) + 1
    return np.concatenate(found)


def _of_axis(omega: np.ndarray, axis: np.ndarray, axes: int) -> np.ndarray:
    """Each frequency in the row of its axis, 0 in the others."""
    return np.where(axis == np.arange(axes)[:, None], omega, 0.0)
