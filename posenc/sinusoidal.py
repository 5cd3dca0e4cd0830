"""Sinusoidal positional encoding: a position as the sines and cosines of dim/2 frequencies.

Source: Vaswani et al., Attention Is All You Need (2017), section 3.5. https://arxiv.org/abs/1706.03762
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from posenc._arrays import Array, ArrayLike, ArrayT, DType, Namespace, OneArray, to_device_of, torch_namespace
from posenc._checks import (
    as_positions,
    check_base,
    check_even_dim,
    check_finite,
    check_float_dtype,
    floating,
    integer,
    is_length,
)

__all__ = [
    "code_distance",
    "decode_position",
    "sinusoidal_encoding",
    "sinusoidal_frequencies",
    "sinusoidal_wavelengths",
]


def sinusoidal_frequencies(dim: int, base: float = 10000.0) -> np.ndarray:
    """Angular frequency of each sine-cosine pair, in radians per position.

    ω_i = base^(−2i/dim) for i = 0, ..., dim/2 − 1.

    Args:
        dim: width of the encoding, even and at least 2.
        base: above 1. The frequencies fall from 1 towards 1/base.

    Returns:
        float64 NumPy array of shape (dim/2,), in radians per position, falling geometrically from 1.

    >>> sinusoidal_frequencies(4)
    array([1.  , 0.01])

    Source: Vaswani et al. (2017), section 3.5.
    """
    dim = check_even_dim(dim)
    # float64 from the start: torch.compile would divide integers into float32.
    return check_base(base) ** (-np.arange(0, dim, 2, dtype=np.float64) / dim)


def sinusoidal_wavelengths(dim: int, base: float = 10000.0) -> np.ndarray:
    """Wavelength of each sine-cosine pair: the number of positions after which it repeats.

    λ_i = 2π / ω_i = 2π · base^(2i/dim). The first is 2π, the last below 2π · base.

    Args:
        dim: width of the encoding, even and at least 2.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 NumPy array of shape (dim/2,), in positions, rising geometrically.

    >>> sinusoidal_wavelengths(8).round(3).tolist()
    [6.283, 62.832, 628.319, 6283.185]

    Source: Vaswani et al. (2017), section 3.5.
    """
    return 2 * math.pi / sinusoidal_frequencies(dim, base)


@overload
def sinusoidal_encoding(
    positions: int | Sequence[Any] | np.ndarray, dim: int, *, base: float = ..., dtype: None = ...
) -> np.ndarray: ...


@overload
def sinusoidal_encoding(positions: ArrayT, dim: int, *, base: float = ..., dtype: DType = ...) -> ArrayT: ...


@overload
def sinusoidal_encoding(
    positions: int | ArrayLike, dim: int, *, base: float = ..., dtype: DType = ...
) -> Any: ...


def sinusoidal_encoding(
    positions: int | ArrayLike, dim: int, *, base: float = 10000.0, dtype: DType | None = None
) -> Array:
    """The sinusoidal encoding of `positions`.

    PE(t, 2i) = sin(ω_i t), PE(t, 2i + 1) = cos(ω_i t), with ω_i from `posenc.sinusoidal_frequencies`.

    Computed in float64 and rounded once to `dtype`. The error is half a unit in the last place of `dtype`,
    plus at most 2⁻⁵¹ · t from the float64 angle.

    Args:
        positions: an integer n for 0, 1, ..., n − 1, or an array of integer or real (float32, float64)
            positions of any shape, negative ones included.
        dim: width of the encoding, even and at least 2.
        base: as in `posenc.sinusoidal_frequencies`.
        dtype: floating dtype of the result, the library's default if None. With an integer n, a torch dtype
            gives a torch tensor on the CPU, anything else a NumPy array.

    Returns:
        Array of shape (n, dim), or positions.shape + (dim,), of the library and on the device of
        `positions`. Every row has norm sqrt(dim/2).

    Raises:
        TypeError: positions in float16 or bfloat16, which cannot hold 2049 or 257. An array without axes, which
            could mean a length or a position.

    >>> sinusoidal_encoding(3, 4).round(4)
    array([[ 0.    ,  1.    ,  0.    ,  1.    ],
           [ 0.8415,  0.5403,  0.01  ,  1.    ],
           [ 0.9093, -0.4161,  0.02  ,  0.9998]])

    Source: Vaswani et al. (2017), section 3.5.
    """
    freqs = sinusoidal_frequencies(dim, base)
    if is_length(positions):
        xp = torch_namespace(dtype) or np
        return _table(integer("positions", positions, minimum=0), freqs, check_float_dtype(dtype, xp), xp)
    xp, t = as_positions(positions)
    dtype = check_float_dtype(dtype, xp)
    return codes_at(t, to_device_of(freqs, t, xp), dtype, xp)


def code_distance(offsets: int | ArrayLike, dim: int, *, base: float = 10000.0) -> Array:
    """Distance between the codes of two positions. It depends on their offset alone.

    ‖PE(t + k) − PE(t)‖ = 2 · sqrt(Σ_i sin²(ω_i k / 2)).

    Args:
        offsets: k, an integer n for 0, 1, ..., n − 1, or an array of offsets of any shape, in positions.
        dim: width of the encoding, even and at least 2.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        float64 array, (n,) or offsets.shape, between 0 and 2 · sqrt(dim/2).

    >>> code_distance([0, 1, 2], 64).round(4)
    array([0.    , 1.4718, 2.7189])

    Source: derived from the code of Vaswani et al. (2017) in this book, sinusoidal.md#unique.
    """
    freqs = sinusoidal_frequencies(dim, base)
    xp, k = as_positions(offsets, "offsets")
    total = xp.zeros_like(k)
    # Pair by pair: a million offsets need a million numbers, not a million times dim/2.
    for omega in freqs.tolist():
        total = total + xp.sin(k * (omega / 2)) ** 2
    return 2 * xp.sqrt(total)


def decode_position(codes: OneArray, n: int, *, base: float = 10000.0) -> Array:
    """The position among 0..n−1 whose code is nearest to each of `codes`.

    argmax over t of codes · PE(t): all PE(t) have the same norm, so the nearest has the largest dot product.

    Args:
        codes: exact or noisy codes, floating, shape (..., dim), dim even.
        n: number of positions to choose from, at least 1.
        base: as in `posenc.sinusoidal_frequencies`.

    Returns:
        Integer array (...) of the library of `codes`. Of equally near positions the first.

    Raises:
        ValueError: codes are a single number, of odd width, or not finite.

    >>> decode_position(sinusoidal_encoding([7, 4999], 64), 5000)
    array([   7, 4999])

    Source: a nearest neighbour among the codes of Vaswani et al. (2017), in this book sinusoidal.md#unique.
    """
    n = integer("n", n, minimum=1)
    xp = floating(codes=codes)
    if codes.ndim < 1:
        raise ValueError("codes must have shape (..., dim), got a single number")
    dim = check_even_dim(codes.shape[-1], "the width of codes")
    check_finite("codes", codes, xp)
    table = to_device_of(sinusoidal_encoding(n, dim, base=base), codes, xp)
    rows = xp.reshape(xp.astype(codes, xp.float64), (-1, dim))
    # In slices of queries, so that memory stays at about 2**22 scores however many codes there are.
    step, count = max(1, 2**22 // n), rows.shape[0]
    starts = range(0, max(count, 1), step)
    found = [xp.argmax(rows[k : min(k + step, count), :] @ table.T, axis=-1) for k in starts]
    return xp.reshape(xp.concat(found), tuple(codes.shape[:-1]))


def codes_at(t: Array, freqs: Array, dtype: DType, xp: Namespace) -> Array:
    """The formula, for positions in float64 and any frequencies."""
    angles = t[..., None] * freqs
    pairs = xp.stack([xp.astype(xp.sin(angles), dtype), xp.astype(xp.cos(angles), dtype)], axis=-1)
    return xp.reshape(pairs, (*t.shape, 2 * freqs.shape[0]))


def _table(n: int, freqs: np.ndarray, dtype: DType, xp: Namespace) -> Array:
    """The codes of 0..n-1 from about 2 · sqrt(n) sines per frequency instead of n.

    sin x + i cos x = i e^(−ix), so the code of s + j is the code of s times e^(−i ω j). Both factors and
    their product are float64 (complex128). Only the result is rounded.
    """
    block = 2 ** round(math.log2(max(n, 1)) / 2)
    starts, steps = xp.arange(0, n, block, dtype=xp.float64), xp.arange(block, dtype=xp.float64)
    code, step = (_as_complex(codes_at(t, xp.asarray(freqs), xp.float64, xp), xp) for t in (starts, steps))
    turn = -1j * step
    table = xp.empty((n, 2 * len(freqs)), dtype=dtype)
    # Some blocks at a time in one buffer, so that the float64 values stay in the processor's cache.
    many = max(1, 2**17 // (block * len(freqs)))
    buffer = xp.empty((many, *turn.shape), dtype=turn.dtype)
    for k in range(0, code.shape[0], many):
        some = code[k : k + many, None, :]
        turned = xp.multiply(some, turn, out=buffer[: some.shape[0], ...])
        rows = table[k * block : (k + many) * block, :]
        rows[...] = xp.reshape(_interleaved(turned, xp), (-1, 2 * len(freqs)))[: rows.shape[0], :]
    return table


def _as_complex(x: Array, xp: Namespace) -> Array:
    """Real (..., 2m) as complex (..., m), without a copy."""
    if xp is np:
        return x.view(np.complex128)
    return xp.view_as_complex(xp.reshape(x, (*x.shape[:-1], x.shape[-1] // 2, 2)))


def _interleaved(z: Array, xp: Namespace) -> Array:
    """Complex (..., m) as real (..., 2m): re, im, re, im, ... without a copy."""
    if xp is np:
        return z.view(np.float64)
    return xp.reshape(xp.view_as_real(z), (*z.shape[:-1], 2 * z.shape[-1]))
