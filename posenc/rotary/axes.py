"""Rotary position embedding in more than one dimension: images, video, text between them.

A position is now a point with several coordinates, such as (time, row, column). Each pair of a vector turns
by ω · (its coordinate), and which coordinate that is stands in a table of frequencies, one row a coordinate.

Sources: Su et al., Transformer Upgrade Path 4 (2021), for two dimensions, https://kexue.fm/archives/8397;
Wang et al., Qwen2-VL (2024), section 2.1, for M-RoPE, https://arxiv.org/abs/2409.12191
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posenc._arrays import Array, ArrayT, wide_dtype
from posenc._checks import as_numbers, as_places, check_even_dim, check_flag, integer, number, of_library
from posenc.rotary._turn import are_whole, check_below_turn, check_vectors, codes, turn
from posenc.rotary.layouts import Layout, check_layout, check_rotary_dim
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
    coordinates: Array,
    frequencies: Array,
    *,
    layout: Layout = "interleaved",
    rotary_dim: int | None = None,
    scale: float = 1.0,
) -> ArrayT:
    """Queries or keys, turned by positions of several coordinates.

    Pair i turns counter-clockwise by Σ_a ω_(a,i) t_a for the position t = (t_0, t_1, ...). Scores depend on
    the differences of the coordinates, axis by axis. With one axis this is `posenc.apply_rotary`.

    Args:
        x: floating, shape (..., seq, dim).
        coordinates: integer or real (float32, float64), shape (seq, axes), or one axis for each of x, of full
            length or 1 but the last, (batch, 1, seq, axes) say.
        frequencies: ω in radians per step, shape (axes, rotary_dim/2): `axial_frequencies`,
            `mrope_frequencies`, or any other. A pair that follows one axis has 0 in the other rows.
        layout, rotary_dim, scale: as in `posenc.apply_rotary`.

    Returns:
        Array of the shape and dtype of x.

    >>> grid = np.stack(np.meshgrid([0, 1], [0, 1, 2], indexing="ij"), axis=-1).reshape(6, 2)
    >>> grid.tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    >>> x = apply_rotary_axes(np.ones((6, 8)), grid, axial_frequencies(8, 2))
    >>> bool(np.isclose(x[0] @ x[4], x[1] @ x[5]))  # both one row down, one column on
    True
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
    """Frequencies that give each axis a share of the pairs of its own.

    Row a holds posenc.sinusoidal_frequencies(width of axis a, base) for the pairs of axis a and 0 elsewhere: a
    block diagonal.

    Args:
        dim: width that is turned, a multiple of 2 · axes.
        axes: number of coordinates, at least 1, with shares alike: 2 for an image. Or the width of each axis, even
            numbers that sum to dim: (16, 56, 56) in FLUX.1, where dim is 128.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 NumPy array of shape (axes, dim/2).

    >>> axial_frequencies(8, 2)
    array([[1.  , 0.01, 0.  , 0.  ],
           [0.  , 0.  , 1.  , 0.01]])
    >>> axial_frequencies(8, (2, 6)).round(4)
    array([[1.    , 0.    , 0.    , 0.    ],
           [0.    , 1.    , 0.0464, 0.0022]])

    Source: the common form for images; Heo et al., Rotary Position Embedding for Vision Transformer (2024),
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
    """Frequencies for two axes whose pairs look along any direction, where axial ones look along an axis.

    axial_frequencies(dim, 2), each frequency i of the rows and its twin of the columns turned together: they become
    ω_i (cos θ_i, sin θ_i) and ω_i (−sin θ_i, cos θ_i). θ = 0 is axial. RoPE-Mixed starts from them, with an angle of
    its own for each head, and trains them: `posenc.rotary.apply_rotary_axes` passes gradients to frequencies.

    Args:
        dim: width that is turned, a multiple of 4.
        angle: θ in radians, a number or one for each of the dim/4 frequencies.
        base: as in `posenc.sinusoidal_frequencies`; 10 in RoPE-Mixed.

    Returns:
        float64 NumPy array of shape (2, dim/2).

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
    """Frequencies of multi-axis RoPE (M-RoPE): the pairs of usual RoPE, dealt out to the axes.

    Row a holds ω_i = base^(−2i/dim) for the pairs i of axis a and 0 elsewhere. The columns sum to
    posenc.sinusoidal_frequencies(dim, base), so a token whose coordinates are all t is turned as by usual RoPE at t.

    Args:
        dim: width that is turned, even.
        sections: how many pairs each axis gets, in order; they sum to dim/2. (16, 24, 24) for time, height
            and width in Qwen2-VL, (24, 20, 20) interleaved in Qwen3-VL, where dim is 128.
        base: as in `posenc.sinusoidal_frequencies`.
        interleaved: False gives each axis its pairs in a row, so that the first axis gets the fast ones and the
            last the slow ones. True deals them out in turn, the first axis also what is left when the others have
            theirs.

    Returns:
        float64 NumPy array of shape (axes, dim/2).

    >>> mrope_frequencies(8, (2, 1, 1)).round(4)
    array([[1.   , 0.1  , 0.   , 0.   ],
           [0.   , 0.   , 0.01 , 0.   ],
           [0.   , 0.   , 0.   , 0.001]])
    >>> mrope_frequencies(8, (2, 1, 1), interleaved=True).round(4)
    array([[1.   , 0.   , 0.   , 0.001],
           [0.   , 0.1  , 0.   , 0.   ],
           [0.   , 0.   , 0.01 , 0.   ]])

    Source: Wang et al., Qwen2-VL (2024), section 2.1, https://arxiv.org/abs/2409.12191; interleaved: Bai et al.,
    Qwen3-VL Technical Report (2025), https://arxiv.org/abs/2511.21631
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
                f"sections must fit when dealt out in turn, the first axis getting what the others leave, got {sizes}"
            )
    return _of_axis(omega, axis, len(sizes))


def _of_axis(omega: np.ndarray, axis: np.ndarray, axes: int) -> np.ndarray:
    """Each frequency in the row of its axis, 0 in the others."""
    return np.where(axis == np.arange(axes)[:, None], omega, 0.0)


def mrope_coordinates(parts: Sequence[int | Sequence[int]]) -> np.ndarray:
    """Coordinates (time, row, column) of a sequence that mixes text with images and video, as in M-RoPE.

    A part starts one after the largest coordinate so far. Its text tokens count on, all three coordinates
    alike; a grid of (frames, rows, columns) counts along its axes, column fastest.

    So an image takes as many positions as its longer side has patches, however many tokens it has.

    This is the rule of the paper. transformers 5.23 goes on after max(rows, columns), whatever the number of frames:
    what follows a video with more frames than rows and columns starts earlier there. For such a video, and a
    checkpoint that was trained with transformers, take the positions of `get_rope_index` instead.

    Args:
        parts: in order, a number of text tokens, or (frames, rows, columns) of a grid; an image has 1 frame.

    Returns:
        Integer NumPy array of shape (tokens, 3), for `apply_rotary_axes`.

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
