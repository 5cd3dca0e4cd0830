"""What every formula needs: the caller's array library, and arguments that are what they claim to be."""

from __future__ import annotations

import math
import operator
import sys
from numbers import Real
from typing import Any

import array_api_compat
import numpy as np

# An array of NumPy, torch, JAX or CuPy. The array API standard has no common base class to name here.
Array = Any
# A dtype, a namespace or a device of any of them.
DType = Any
Namespace = Any


def namespace(*arrays: Array) -> Namespace:
    """The one array library that `arrays` come from: NumPy itself, or array-api-compat's view of another."""
    # NumPy 2 follows the standard by itself, and array_api_compat.numpy costs as much to import as NumPy.
    # A tuple of types, because torch.compile cannot trace a union of them.
    if all(isinstance(array, (np.ndarray, np.generic)) for array in arrays):
        return np
    try:
        return array_api_compat.array_namespace(*arrays)
    except TypeError:
        kinds = ", ".join(type(array).__name__ for array in arrays)
        raise TypeError(
            f"arrays of one library are expected (all NumPy, or all torch, ...), got {kinds}"
        ) from None


def torch_namespace(dtype: DType) -> Namespace | None:
    """The namespace of torch when `dtype` is one of its dtypes, else None. Never imports torch by itself."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return array_api_compat.array_namespace(torch.empty(0))
    return None


def check_integer(name: str, value: Any, *, minimum: int) -> int:
    """`value` as an int of at least `minimum`; TypeError or ValueError names the argument."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        # Asking an int for its index would pin it: torch.compile would build a graph for every length.
        number = value if type(value) is int or _is_symbol(value) else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}") from None
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {number}")
    return number


def check_even_dim(dim: Any, name: str = "dim") -> int:
    """`dim` as an even int of at least 2: sines and cosines come in pairs."""
    number = check_integer(name, dim, minimum=2)
    if number % 2:
        raise ValueError(f"{name} must be even (each frequency takes a sine and a cosine), got {number}")
    return number


def check_base(base: Any) -> float:
    """`base` as a finite float above 1: with it the wavelengths grow from pair to pair."""
    if isinstance(base, bool) or not isinstance(base, Real):
        raise TypeError(f"base must be a real number, got {base!r} of type {type(base).__name__}")
    try:
        number = float(base)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and number > 1):
        raise ValueError(f"base must be finite and greater than 1, got {base!r}")
    return number


def is_length(positions: Any) -> bool:
    """Whether `positions` is a plain integer n, which stands for 0, 1, ..., n - 1."""
    plain = isinstance(positions, (int, np.integer)) and not isinstance(positions, bool)
    return plain or _is_symbol(positions)


def _is_symbol(value: Any) -> bool:
    """Whether `value` stands for an integer that torch leaves open, as torch.export does with a length."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.SymInt)


def as_positions(positions: Any, name: str = "positions") -> tuple[Namespace, Array]:
    """The library of `positions` and the positions in float64, the precision that angles need.

    Accepts an int n (meaning 0..n-1, NumPy) or an array of integers, float32 or float64 of any shape.
    Raises TypeError for anything else, float16 and bfloat16 included: they cannot hold 2049 and 257.
    Raises ValueError for NaN and infinity, where values can be looked at (`_is_concrete`).
    """
    if is_length(positions):
        return np, np.arange(check_integer(name, positions, minimum=0), dtype=np.float64)
    if isinstance(positions, (list, tuple)):
        try:
            positions = np.asarray(positions)
        except ValueError:
            raise ValueError(f"{name} must be a rectangular array of numbers, got {positions!r}") from None
    elif not array_api_compat.is_array_api_obj(positions):
        raise TypeError(
            f"{name} must be an integer n (for 0..n-1) or an array of positions, "
            f"got {positions!r} of type {type(positions).__name__}"
        )
    xp = namespace(positions)
    dtype = positions.dtype
    real = xp.isdtype(dtype, "real floating")
    if not (real or xp.isdtype(dtype, "integral")) or (real and xp.finfo(dtype).bits not in (32, 64)):
        raise TypeError(f"{name} must be integers, float32 or float64, got dtype {dtype}")
    result = xp.astype(positions, xp.float64)
    if result.dtype != xp.float64:
        raise TypeError(
            "angles need float64, which this array library has switched off "
            "(in JAX: jax.config.update('jax_enable_x64', True))"
        )
    if real:
        check_finite(name, result, xp)
    return xp, result


def _is_concrete(array: Array) -> bool:
    """Whether the values of an array may be looked at: one of NumPy, or of torch that nothing traces."""
    if isinstance(array, (np.ndarray, np.generic)):
        return True
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return False
    traced = torch.compiler.is_compiling() or torch.jit.is_tracing()
    captured = array.is_cuda and torch.cuda.is_current_stream_capturing()
    return not (traced or captured or array.is_meta)


def check_finite(name: str, array: Array, xp: Namespace) -> None:
    """ValueError naming the first NaN or infinity in a floating array whose values may be looked at."""
    if not _is_concrete(array):
        return
    finite = xp.isfinite(array)
    try:
        if bool(xp.all(finite)):
            return
    except RuntimeError:  # torch.vmap and fake tensors let nobody look
        return
    first = array[xp.logical_not(finite)].tolist()[0]
    raise ValueError(f"{name} must be finite, got {first}")


def check_float_dtype(dtype: DType, xp: Namespace) -> DType:
    """`dtype`, or for None the default of the library; TypeError unless it is a real floating dtype."""
    if dtype is None:
        return xp.empty(0).dtype
    try:
        real = bool(xp.isdtype(xp.empty(0, dtype=dtype).dtype, "real floating"))
    except TypeError:
        real = False
    if not real:
        raise TypeError(f"dtype must be a real floating dtype of {xp.__name__}, got {dtype!r}")
    return dtype


def to_device_of(array: np.ndarray, like: Array, xp: Namespace) -> Array:
    """A NumPy constant, such as the frequencies, as an array of the library and on the device of `like`."""
    return xp.asarray(array, device=array_api_compat.device(like))
