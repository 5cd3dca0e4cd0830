"""Checks of arguments. Each returns the checked value or raises an error that names the argument."""

from __future__ import annotations

import functools
import math
import operator
import sys
import warnings
from collections.abc import Callable
from numbers import Real
from typing import Any, TypeVar, get_args

import numpy as np

from posenc._arrays import (
    Array,
    DType,
    Namespace,
    is_array,
    is_concrete,
    is_tensor,
    is_traced,
    namespace,
    same_shape,
    to_device_of,
    torch_namespace,
)

Word = TypeVar("Word")
Called = TypeVar("Called", bound=Callable[..., Any])


def deprecated(instead: str) -> Callable[[Called], Called]:
    """Above a function that the next release takes away: each caller is told what to write instead.

    >>> @deprecated("write posenc.apply_rotary")
    ... def rotate(): ...
    >>> with warnings.catch_warnings(record=True, action="always") as said:
    ...     rotate()
    >>> print(said[0].message)
    rotate goes with the next release: write posenc.apply_rotary
    """

    def mark(function: Called) -> Called:
        @functools.wraps(function)
        def warned(*args: Any, **kwargs: Any) -> Any:
            said = f"{function.__name__} goes with the next release: {instead}"
            warnings.warn(said, DeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        return warned  # type: ignore[return-value]

    return mark


# --- Numbers and words


def integer(name: str, value: Any, *, minimum: int) -> int:
    """`value` as an int of at least `minimum`."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        # Asking an int for its index would pin it: torch.compile would build a graph for every length.
        result = value if type(value) is int or _is_symbol(value) else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}") from None
    if result < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {result}")
    return result


def length(name: str, value: Any) -> int:
    """`value` as an int of at least 0. TypeError if torch.jit.trace would record it as a constant."""
    if is_tensor(value) and is_traced():
        raise TypeError(
            f"{name} must be an int, got a length that torch.jit.trace follows, and would keep as that of its "
            "example: pass int(...) if that is meant, or use torch.export"
        )
    return integer(name, value, minimum=0)


def number(name: str, value: Any, *, above: float | None = None, at_least: float | None = None) -> float:
    """`value`, any real number, as a finite float, above `above` and at least `at_least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {value!r} of type {type(value).__name__}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    enough = (above is None or result > above) and (at_least is None or result >= at_least)
    if not (abs(result) < math.inf and enough):  # not isfinite: torch.compile may leave a number open
        bound = f" and above {above:g}" if above is not None else ""
        bound += f" and at least {at_least:g}" if at_least is not None else ""
        raise ValueError(f"{name} must be finite{bound}, got {value!r}")
    return result


def check_flag(name: str, value: Any) -> bool:
    """`value` if it is True or False. Anything else raises TypeError: to Python the string "no" is true."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, got {value!r} of type {type(value).__name__}")
    return value


def check_word(name: str, value: Word, words: Any) -> Word:
    """`value` if it is one of the words of a Literal type."""
    if value not in get_args(words):
        *most, last = [f'"{word}"' for word in get_args(words)]
        raise ValueError(f"{name} must be {', '.join(most)} or {last}, got {value!r}")
    return value


def check_even_dim(dim: Any, name: str = "dim") -> int:
    """`dim` as an even int of at least 2: sines and cosines come in pairs."""
    width = integer(name, dim, minimum=2)
    if width % 2:
        raise ValueError(f"{name} must be even (each frequency takes a sine and a cosine), got {width}")
    return width


def check_base(base: Any) -> float:
    """`base` as a float above 1, so that wavelengths grow from pair to pair."""
    return number("base", base, above=1)


# --- Arrays


def floating(**arrays: Array) -> Namespace:
    """The library of the arrays. TypeError unless all are floating and have the dtype of the first."""
    xp = namespace(**arrays)
    first, dtype = next((name, array.dtype) for name, array in arrays.items())
    for name, array in arrays.items():
        if not xp.isdtype(array.dtype, "real floating"):
            raise TypeError(f"{name} must be floating, got dtype {array.dtype}")
        if array.dtype != dtype:
            raise TypeError(f"{name} must have the dtype of {first}, {dtype}, got {array.dtype}")
    return xp


def check_values(name: str, array: Array, good: Callable[[Array], Array], wanted: str, xp: Namespace) -> None:
    """ValueError naming the first value that is not `good`, where values can be read (`is_concrete`)."""
    if not is_concrete(array):
        return
    right = good(array)
    try:
        if bool(xp.all(right)):
            return
    except RuntimeError:  # torch.vmap and fake tensors let nobody look
        return
    raise ValueError(f"{name} must be {wanted}, got {array[xp.logical_not(right)].tolist()[0]}")


def check_finite(name: str, array: Array, xp: Namespace) -> None:
    """ValueError naming the first NaN or infinity, where values can be read (`is_concrete`)."""
    check_values(name, array, xp.isfinite, "finite", xp)


def check_float_dtype(dtype: DType, xp: Namespace) -> DType:
    """`dtype`, or the library's default if None. TypeError unless it is a real floating dtype."""
    if dtype is None:
        return xp.empty(0).dtype
    try:
        real = bool(xp.isdtype(xp.empty(0, dtype=dtype).dtype, "real floating"))
    except TypeError:
        real = False
    if not real:
        raise TypeError(f"dtype must be a real floating dtype of {xp.__name__}, got {dtype!r}")
    return dtype


# --- Positions


def _is_symbol(value: Any) -> bool:
    """Whether `value` stands for an int while torch traces a graph for any length."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.SymInt)


def is_length(positions: Any) -> bool:
    """Whether `positions` is a plain integer n, which stands for 0, 1, ..., n - 1."""
    counts = isinstance(positions, (int, np.integer)) or _is_symbol(positions)
    return counts and not isinstance(positions, bool)


def as_positions(positions: Any, name: str = "positions") -> tuple[Namespace, Array]:
    """The library of `positions` and the positions in float64, the precision that angles need.

    Accepts an int n (meaning 0..n-1, NumPy) or numbers as in `as_numbers`, with at least one axis.
    """
    if is_length(positions):
        return np, np.arange(integer(name, positions, minimum=0), dtype=np.float64)
    listed = isinstance(positions, (list, tuple))
    if not listed and not is_array(positions):
        raise TypeError(
            f"{name} must be an integer n (for 0..n-1) or an array of positions, "
            f"got {positions!r} of type {type(positions).__name__}"
        )
    if not listed:
        check_has_axis(name, positions)
    return as_places(name, positions)


def positions_in(positions: Any, dtype: DType) -> tuple[Namespace, Array]:
    """`as_positions`, but in torch for an integer n with a torch dtype."""
    xp = torch_namespace(dtype) if is_length(positions) else None
    if xp is not None:
        positions = xp.arange(integer("positions", positions, minimum=0))
    return as_positions(positions)


def check_has_axis(name: str, positions: Array) -> None:
    """TypeError for an array without axes, which could mean a length or a position."""
    if positions.shape == ():
        raise TypeError(
            f"{name} without axes could be a length or a position: pass int(...) for a length, or an array "
            f"with one axis for a position, got {positions!r}"
        )


def as_numbers(name: str, values: Any) -> tuple[Namespace, Array]:
    """The library of an array or a list of numbers, and the numbers in float64.

    TypeError unless they are integers, float32 or float64: float16 cannot hold 2049, bfloat16 cannot hold 257.
    ValueError for NaN and infinity, where values can be read (`is_concrete`).
    """
    if isinstance(values, (list, tuple)):
        try:
            values = np.asarray(values)
        except ValueError:
            raise ValueError(f"{name} must be a rectangular array of numbers, got {values!r}") from None
    xp = namespace(**{name: values})
    if xp is np and is_traced():  # torch.compile knows NumPy's arrays, but not their dtypes
        return xp, values.astype(np.float64)
    real = check_wide(name, xp, values.dtype)
    result = xp.astype(values, xp.float64)
    if result.dtype != xp.float64:
        raise TypeError(
            "angles need float64, which this array library has switched off "
            "(in JAX: jax.config.update('jax_enable_x64', True))"
        )
    if real:
        check_finite(name, result, xp)
    return xp, result


def check_wide(name: str, xp: Namespace, dtype: DType) -> bool:
    """Whether a dtype is float32 or float64, or else integral; TypeError for any other."""
    real = bool(xp.isdtype(dtype, "real floating"))
    if not (real or xp.isdtype(dtype, "integral")) or (real and xp.finfo(dtype).bits not in (32, 64)):
        raise TypeError(f"{name} must be integers, float32 or float64, got dtype {dtype}")
    return real


def as_places(name: str, values: Any) -> tuple[Namespace, Array]:
    """`as_numbers` for values counted in steps of 1, such as positions and coordinates.

    ValueError where the dtype cannot tell neighbours apart: from 2^24 on in float32, from 2^53 on in float64.
    The second limit holds for integers too, because they are computed with in float64.
    """
    xp, places = as_numbers(name, values)
    check_neighbours(name, values, places, xp)
    return xp, places


def check_neighbours(name: str, given: Any, places: Array, xp: Namespace) -> None:
    """The check of `as_places`. `given` are the values as passed, `places` the same in float64."""
    if not is_concrete(places):
        return
    values = given if is_array(given) else np.asarray(given)
    if not xp.isdtype(values.dtype, "real floating"):
        # Small integers cannot be that far out, and a GPU need not be waited for.
        if xp.iinfo(values.dtype).bits == 64 and _is_on_cpu(values):
            wanted = "within ±2^53, beyond which float64 tells no neighbours apart (count from a later start)"
            check_values(name, values, lambda t: (t <= 2**53) & (t >= -(2**53)), wanted, xp)
        return
    most = 2 / float(xp.finfo(values.dtype).eps)
    narrow = values.dtype != xp.float64
    named, cure = (
        (values.dtype, "use integers or float64") if narrow else ("float64", "count from a later start")
    )
    wanted = f"below 2^{math.log2(most):g} in size, because {named} tells no neighbours apart from there on ({cure})"
    check_values(name, places, lambda t: xp.abs(t) < most, wanted, xp)


def _is_on_cpu(array: Array) -> bool:
    return not is_tensor(array) or array.device.type == "cpu"


def of_library(name: str, array: Array, x: Array, xp: Namespace) -> Array:
    """`array` in the library of x. TypeError unless it is of NumPy or of that library."""
    if isinstance(array, np.ndarray):
        return to_device_of(array, x, xp)
    if namespace(array) is not xp:
        raise TypeError(f"{name} must be of NumPy or of the library of x, got {type(array).__name__}")
    return array


def positions_of(positions: Any, x: Array, xp: Namespace) -> Array:
    """Positions in float64 for the rows of x, or for one vector x, in its library and on its device."""
    if not x.shape[:-1] and is_length(positions):
        raise TypeError(
            f"positions must be an array for a single vector x: [{positions}] turns it to one position, "
            f"np.arange({positions}) to the first {positions}; got the integer {positions!r}"
        )
    _, t = as_positions(positions)
    shape, rows = tuple(t.shape), tuple(x.shape[:-1])
    # One axis is seq and nothing else: a lone position must not spread over all rows.
    fits = (
        len(rows) == 0  # `not rows` would break the graph where a length is left open
        or same_shape(shape, rows[-1:])
        or (len(shape) == len(rows) > 1 and all(a in (1, b) for a, b in zip(shape, rows, strict=True)))
    )
    if not fits:
        many = f" or {len(rows)} axes that are 1 or those of {rows}" if len(rows) > 1 else ""
        raise ValueError(f"positions must have shape {rows[-1:]}{many} for x {tuple(x.shape)}, got {shape}")
    return of_library("positions", t, x, xp)
