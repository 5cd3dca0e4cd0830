"""Arrays of any library: which library and device they belong to, and whether their values can be read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any, Protocol, TypeVar

import array_api_compat
import numpy as np

# A result. A protocol would have to list every method that formulas and callers use of their libraries.
Array = Any


class OneArray(Protocol):
    """An argument that must be an array, of NumPy, torch, JAX or CuPy: these share no base class."""

    @property
    def dtype(self) -> Any: ...
    @property
    def shape(self) -> Any: ...
    @property
    def ndim(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __neg__(self, /) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...


# Torch in, torch out. Only for results with as many axes as the argument, because NumPy's types may state how many.
ArrayT = TypeVar("ArrayT", bound=OneArray)

# An argument that may also be a list of numbers.
ArrayLike = OneArray | Sequence[Any]

# A library is a module. Dtypes of different libraries share no base class.
Namespace = ModuleType
DType = object


def is_array(value: object) -> bool:
    """Whether `value` is an array of any library."""
    # array_api_compat looks into a cache, of which torch.compile warns.
    known = isinstance(value, (np.ndarray, np.generic)) or is_tensor(value)
    return known or array_api_compat.is_array_api_obj(value)


def is_tensor(value: object) -> bool:
    """Whether `value` is a tensor of torch. Never imports torch by itself."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def namespace(*arrays: Array, **named: Array) -> Namespace:
    """The library of the arrays: NumPy itself, or array-api-compat's view of another.

    TypeError for a value that is not an array, or is of another library. Keyword arguments are named in the
    message.
    """
    arrays = (*arrays, *named.values())
    # NumPy 2 follows the standard by itself, and array_api_compat.numpy costs as much to import as NumPy.
    # A tuple of types, because torch.compile cannot trace a union of them.
    if all(isinstance(array, (np.ndarray, np.generic)) for array in arrays):
        return np
    if all(is_tensor(array) for array in arrays):
        from array_api_compat import torch as xp  # not before somebody else has imported torch

        return xp
    for name, array in named.items():
        if not is_array(array):
            raise TypeError(f"{name} must be an array, got {array!r:.50} of type {type(array).__name__}")
    try:
        return array_api_compat.array_namespace(*arrays)
    except TypeError:
        kinds = [type(array).__name__ for array in arrays]
        other = next((name for name in named if type(named[name]) is not type(arrays[0])), "")
        if len(named) == len(arrays) and other:
            wanted = f"the library of {next(iter(named))}, {kinds[0]}"
            raise TypeError(f"{other} must be of {wanted}, got {type(named[other]).__name__}") from None
        raise TypeError(
            f"arrays of one library are expected (all NumPy, or all torch, ...), got {', '.join(kinds)}"
        ) from None


def torch_namespace(dtype: DType) -> Namespace | None:
    """The namespace of torch when `dtype` is one of its dtypes, else None. Never imports torch by itself."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(dtype, torch.dtype):
        return array_api_compat.array_namespace(torch.empty(0))
    return None


def same_shape(first: Any, second: Any) -> bool:
    """Whether two shapes are equal. Shapes of different lengths are not compared axis by axis.

    torch.export would note that batch and seq must differ, where (batch, seq) is compared with (seq,).
    """
    return len(first) == len(second) and tuple(first) == tuple(second)


def is_traced() -> bool:
    """Whether torch is compiling or tracing."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_compiling() or torch.jit.is_tracing())


def is_concrete(array: Array) -> bool:
    """Whether the values of an array can be read: it is of NumPy, or of torch and not traced."""
    if isinstance(array, (np.ndarray, np.generic)):
        return not is_traced()
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return False
    captured = array.is_cuda and torch.cuda.is_current_stream_capturing()
    return not (is_traced() or captured or array.is_meta)


def autocast_is_on(array: Array) -> bool:
    """Whether torch.autocast is on for the device of an array. The device "meta" has no autocast."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(array, torch.Tensor):
        return False
    kind = array.device.type
    return bool(torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind))


def attention_dtype(array: Array) -> Any:
    """The dtype in which torch's attention computes with this array: its own, or that of torch.autocast."""
    torch = sys.modules.get("torch")
    if (
        torch is None or not autocast_is_on(array) or array.dtype == torch.float64
    ):  # which autocast leaves alone
        return array.dtype
    return torch.get_autocast_dtype(array.device.type)


def no_autocast(array: Array) -> AbstractContextManager[Any]:
    """A context in which products keep the dtype of their arrays, also under torch.autocast."""
    torch = sys.modules.get("torch")
    if torch is None or not autocast_is_on(array):
        return nullcontext()
    context: AbstractContextManager[Any] = torch.autocast(array.device.type, enabled=False)
    return context


def device_of(array: Array) -> Any:
    """The device of an array."""
    # Not array_api_compat's own answer for those that have one: see `is_array`.
    return (
        array.device if isinstance(array, np.ndarray) or is_tensor(array) else array_api_compat.device(array)
    )


def to_device_of(array: np.ndarray, like: Array, xp: Namespace) -> Array:
    """A NumPy constant, such as the frequencies, as an array of the library and on the device of `like`."""
    return xp.asarray(array, device=device_of(like))


def wide_dtype(xp: Namespace, *arrays: Array) -> Any:
    """The dtype to compute in: the widest of the arrays', float32 at least."""
    return xp.result_type(*(array.dtype for array in arrays), xp.float32)
