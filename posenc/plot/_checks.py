"""Arguments of pictures: all become NumPy arrays, lists or numbers, or an error that names them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from posenc._arrays import Array
from posenc._checks import check_even_dim, integer
from posenc.plot._style import COLORS

# The axes of an array: a number is a length, a name stands for any length from 1 on.
Shape = tuple[int | str, ...]


def as_numbers(
    name: str,
    array: Array,
    shape: Shape | None = None,
    *,
    most: float = math.inf,
    low: float = -math.inf,
    high: float = math.inf,
    above: float = -math.inf,
) -> np.ndarray:
    """What is to be drawn, as float64 in NumPy: lists, tensors with a gradient, in bfloat16, on a GPU.

    TypeError or ValueError, naming the argument, unless all are finite real numbers from `low` to `high` and
    above `above`, of this shape and with at most `most` rows.
    """
    given = _to_numpy(name, array)
    if given.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be real numbers, got {array!r}")
    if given.ndim:
        check_count(name, len(given), most)
    _check_shape(name, given, shape)
    numbers = given.astype(np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        raise ValueError(f"{name} must be finite, got {numbers[~finite][0]}")
    fits = (numbers >= low) & (numbers <= high) & (numbers > above)
    if not fits.all():
        limits = (("at least", low), ("at most", high), ("above", above))
        wanted = " and ".join(f"{text} {limit:g}" for text, limit in limits if math.isfinite(limit))
        raise ValueError(f"{name} must be {wanted}, got {numbers[~fits][0]:g}")
    return numbers


def as_number(name: str, value: float, **limits: float) -> float:
    """One finite real number, within the limits of `as_numbers`."""
    return float(as_numbers(name, value, (), **limits))


def as_mask(name: str, mask: Array, shape: Shape) -> np.ndarray:
    """A bool array of this shape in NumPy; TypeError or ValueError otherwise."""
    given = _to_numpy(name, mask)
    if given.dtype != bool:
        raise TypeError(f"{name} must be bool, got dtype {given.dtype}")
    _check_shape(name, given, shape)
    return given


def check_labelled(name: str, arrays: Mapping[str, Any], most: float = len(COLORS)) -> None:
    """TypeError or ValueError unless `arrays` maps one to `most` labels: each needs its own look."""
    if not isinstance(arrays, Mapping):
        raise TypeError(f"{name} must map labels to arrays, got {type(arrays).__name__}")
    check_count(name, len(arrays), most)


def as_labelled(
    name: str,
    arrays: Mapping[str, Array],
    shape: Shape,
    *,
    most: float = len(COLORS),
    same_length: bool = False,
    **limits: float,
) -> dict[str, np.ndarray]:
    """The arrays of a mapping by their labels, each as in `as_numbers`; all as long as the first if asked."""
    check_labelled(name, arrays, most)
    shown: dict[str, np.ndarray] = {}
    for label, array in arrays.items():
        shown[label] = as_numbers(f"{name}[{label!r}]", array, shape, **limits)
        if same_length:
            shape = (len(shown[label]), *shape[1:])
    return shown


def as_integers(name: str, values: Sequence[int], minimum: int, *, most: float = math.inf) -> list[int]:
    """One to `most` integers from `minimum` on."""
    if not isinstance(values, Iterable):
        raise TypeError(f"{name} must be a sequence of integers, got {values!r}")
    numbers = [integer(f"each of {name}", value, minimum=minimum) for value in values]
    check_count(name, len(numbers), most)
    return numbers


def as_lengths(lengths: Sequence[int]) -> np.ndarray:
    """Rising lengths, as numbers."""
    numbers = as_integers("lengths", lengths, 1)
    if (np.diff(numbers) <= 0).any():
        raise ValueError(f"lengths must ascend, got {numbers}")
    return np.array(numbers, dtype=float)


def as_widths(dims: Sequence[int], *, most: float = math.inf) -> list[int]:
    """Even widths, one to `most` of them."""
    return [check_even_dim(dim, "each of dims") for dim in as_integers("dims", dims, 2, most=most)]


def as_pairs(pairs: Sequence[int], dim: int, *, most: float = math.inf) -> list[int]:
    """Indices of frequency pairs that an encoding of this width has, one to `most` of them."""
    chosen = as_integers("pairs", pairs, 0, most=most)
    if max(chosen) >= dim // 2:
        raise ValueError(f"pairs must lie in 0..{dim // 2 - 1} for dim {dim}, got {max(chosen)}")
    return chosen


def as_names(argument: str, names: Sequence[str] | None, n: int) -> list[str]:
    """One name a row: those given, or the numbers of the rows."""
    if names is None:
        return [str(k) for k in range(n)]
    if len(names) != n:
        raise ValueError(f"{argument} must hold {n} names, got {len(names)}")
    return list(names)


def check_dial_dim(dim: int) -> int:
    """dim, even and at most 12."""
    if check_even_dim(dim) > 12:
        raise ValueError(f"dim must be at most 12 for dials that can be read, got {dim}")
    return dim


def check_index(name: str, value: int, n: int, what: str = "") -> int:
    """`value` as an int in 0..n−1."""
    index = integer(name, value, minimum=0)
    if index >= n:
        raise ValueError(f"{name} must lie in 0..{n - 1}{what}, got {index}")
    return index


def check_count(name: str, n: int, most: float) -> None:
    """ValueError unless an argument holds one to `most`."""
    if not 1 <= n <= most:
        raise ValueError(f"{name} must hold {'at least 1' if math.isinf(most) else f'1 to {most}'}, got {n}")


def _to_numpy(name: str, array: Array) -> np.ndarray:
    if hasattr(array, "detach"):  # torch: NumPy knows neither gradients nor bfloat16
        array = array.detach().cpu()
        array = array.double() if array.is_floating_point() else array
    try:
        return np.asarray(array)
    except ValueError:
        raise ValueError(f"{name} must be a rectangular array of numbers, got {array!r}") from None


def _check_shape(name: str, given: np.ndarray, shape: Shape | None) -> None:
    if shape is not None and not (
        given.ndim == len(shape)
        and all(
            n == wanted if isinstance(wanted, int) else n > 0
            for n, wanted in zip(given.shape, shape, strict=True)
        )
    ):
        wanted = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
        raise ValueError(f"{name} must have shape {wanted}, got {given.shape}")
