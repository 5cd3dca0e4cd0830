"""The rotation that all rotary functions and layers share: codes of angles, pairs, complex products, checks."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from posenc._arrays import Array, DType, Namespace, is_array, is_traced, namespace
from posenc._checks import as_numbers, check_even_dim, check_values, check_word, floating, is_length
from posenc.sinusoidal import sinusoidal_frequencies

Layout = Literal["interleaved", "half"]
IN_CACHE = 2**20  # bytes of x that stay beside their result in the cache of one processor


def codes(angles: Array, dtype: DType, layout: Layout, scale: float | Array, xp: Namespace) -> Array:
    """scale · (cos, sin) of float64 angles (..., m), placed like pairs: (..., 2m) in `dtype`.

    This is the vector (1, 0), (1, 0), ... rotated by the angles, in the layout of x.
    """
    cos, sin = xp.cos(angles) * scale, xp.sin(angles) * scale
    return join(xp.astype(cos, dtype), xp.astype(sin, dtype), layout, xp)


def turn(x: Array, code: Array, layout: Layout, xp: Namespace) -> Array:
    """Each pair of x times its pair of the code, as complex numbers. Columns beyond the code stay unchanged."""
    if xp is not np and hasattr(xp, "view_as_complex") and not xp.compiler.is_compiling():
        return turn_complex(x, to_complex(code, layout, xp), layout, xp)
    return turn_real(x, code, layout, xp)


def turn_real(x: Array, code: Array, layout: Layout, xp: Namespace) -> Array:
    """`turn` in any array library, by four products. torch.compile fuses them."""
    n = code.shape[-1]
    wide = xp.astype(x[..., :n], code.dtype, copy=False)
    (a, b), (cos, sin) = split(wide, layout), split(code, layout)
    turned = xp.astype(join(a * cos - b * sin, a * sin + b * cos, layout, xp), x.dtype, copy=False)
    return turned if n == x.shape[-1] else _with_rest(turned, x, xp)


def turn_complex(x: Array, code: Array, layout: Layout, xp: Namespace) -> Array:
    """`turn` in torch, by one complex product, which torch.compile cannot do. The code is complex."""
    n = 2 * code.shape[-1]
    if n < x.shape[-1]:
        return _with_rest(turn_complex(x[..., :n], code, layout, xp), x, xp)
    narrow = x.dtype not in (xp.float32, xp.float64)
    wide = x.float() if narrow else x
    if layout == "half" and not (xp.is_grad_enabled() and (x.requires_grad or code.requires_grad)):
        turned = _turn_halves(wide, code, xp)
    else:
        turned = from_complex(to_complex(wide, layout, xp) * code, layout, xp)
    return turned.to(x.dtype) if narrow else turned


def _turn_halves(x: Array, code: Array, xp: Namespace) -> Array:
    """`turn_complex` in halves with fewer copies; derivatives would make it slow.

    What is larger than the processors' caches is turned a piece of the sequence at a time, with the same result.
    """
    cos, sin = code.real, code.imag.contiguous()  # steps of two would cost more than this copy
    both = xp.concat([cos, cos], axis=-1)
    piece = IN_CACHE * xp.get_num_threads()
    fits = x.ndim > 1 and xp.broadcast_shapes(x.shape, both.shape) == x.shape
    if fits and x.is_cpu and x.nbytes > 2 * piece:
        rows = max(1, x.shape[-2] * piece // x.nbytes)
        turned = xp.empty_like(x)
        # One code may be that of all tokens.
        wide = (a.expand(*a.shape[:-2], x.shape[-2], -1) for a in (both, sin))
        try:
            for given, out, cosines, sines in zip(
                *(a.split(rows, -2) for a in (x, turned, *wide)), strict=True
            ):
                _add_sines(xp.mul(given, cosines, out=out), given, sines)
            return turned
        except RuntimeError:  # vmap and forward derivatives write into no memory that is there
            pass
    return _add_sines(x * both, x, sin)


def _add_sines(turned: Array, x: Array, sin: Array) -> Array:
    """What the other half of x adds to x cos."""
    (first, second), (a, b) = split(turned, "half"), split(x, "half")
    first.addcmul_(b, sin, value=-1)
    second.addcmul_(a, sin)
    return turned


def split(x: Array, layout: Layout) -> tuple[Array, Array]:
    """The first and the second number of every pair, both (..., m)."""
    m = x.shape[-1] // 2
    return (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else (x[..., :m], x[..., m:])


def join(first: Array, second: Array, layout: Layout, xp: Namespace) -> Array:
    """The inverse of `split`."""
    if layout == "half":
        return xp.concat([first, second], axis=-1)
    return xp.reshape(xp.stack([first, second], axis=-1), (*first.shape[:-1], 2 * first.shape[-1]))


def to_complex(x: Array, layout: Layout, xp: Namespace) -> Array:
    """The pairs as complex numbers of torch, (..., m). For interleaved pairs a view if possible."""
    if layout == "half":
        return xp.complex(*split(x, layout))
    try:
        if xp.is_inference_mode_enabled():  # a shorter way, which derivatives would not pass
            return x.view(xp.complex64 if x.dtype == xp.float32 else xp.complex128)
        return xp.view_as_complex(x.unflatten(-1, (-1, 2)))
    except RuntimeError:  # an odd stride or start, or gaps between neighbours
        return xp.view_as_complex(x.unflatten(-1, (-1, 2)).clone(memory_format=xp.contiguous_format))


def from_complex(z: Array, layout: Layout, xp: Namespace) -> Array:
    """The inverse of `to_complex`."""
    if layout == "half":
        return xp.view_as_real(z).transpose(-1, -2).flatten(-2)
    if xp.is_inference_mode_enabled():
        return z.view(xp.float32 if z.dtype == xp.complex64 else xp.float64)
    return xp.view_as_real(z).flatten(-2)


def check_vectors(name: str, x: Array) -> Namespace:
    """The library of x. An error unless x is floating and has an axis."""
    xp = floating(**{name: x})
    if x.ndim == 0:
        raise ValueError(f"{name} must have shape (..., seq, dim) or (dim,), got a single number")
    return xp


def check_frequencies(frequencies: Any, base: float, rotary_dim: int, *, whole: bool = True) -> Array:
    """Frequencies in float64: those given, (m,) or (heads, m), or the standard ones if None.

    `whole` says whether positions are whole numbers. Then frequencies of 2π or more are refused.
    """
    if frequencies is None:
        return sinusoidal_frequencies(rotary_dim, base)
    if base != 10000.0:
        raise ValueError(f"base must be left out when frequencies are given, got {base!r}")
    xp, freqs = as_numbers("frequencies", frequencies)
    if freqs.ndim not in (1, 2) or 2 * freqs.shape[-1] != rotary_dim:
        raise ValueError(
            f"frequencies must have shape ({rotary_dim // 2},) or (heads, {rotary_dim // 2}), one for each "
            f"pair of the {rotary_dim} numbers that are turned, got {tuple(freqs.shape)}"
        )
    if whole:
        check_below_turn(freqs, xp)
    return freqs


def check_below_turn(freqs: Array, xp: Namespace) -> None:
    """ValueError if all frequencies are 2π or more, or 0: most likely they are wavelengths."""
    turning = xp.where(freqs == 0, math.inf * xp.ones_like(freqs), xp.abs(freqs))
    check_values(
        "frequencies",
        xp.min(turning),
        lambda slowest: (slowest < 2 * math.pi) | xp.isinf(slowest),
        "radians per position, 2π / wavelengths, and not all of a whole turn or more between neighbours",
        xp,
    )


def are_whole(positions: Any) -> bool:
    """Whether positions have an integer type."""
    if is_length(positions):
        return True
    if isinstance(positions, list | tuple):
        positions = np.asarray(positions)
    if not is_array(positions) or (isinstance(positions, np.ndarray) and is_traced()):
        return False
    return bool(namespace(positions).isdtype(positions.dtype, "integral"))


def check_layout(layout: Any) -> Layout:
    """`layout`, or ValueError."""
    found: Layout = check_word("layout", layout, Layout)
    return found


def check_rotary_dim(rotary_dim: Any, dim: int) -> int:
    """How many numbers of a vector of width dim are rotated."""
    if rotary_dim is None:
        return check_even_dim(dim, "the width of x")
    turned = check_even_dim(rotary_dim, "rotary_dim")
    if turned > dim:
        raise ValueError(f"rotary_dim must be at most the width of x, {dim}, got {turned}")
    return turned


def _with_rest(turned: Array, x: Array, xp: Namespace) -> Array:
    rest = x[..., turned.shape[-1] :]
    return xp.concat([turned, xp.broadcast_to(rest, (*turned.shape[:-1], rest.shape[-1]))], axis=-1)
