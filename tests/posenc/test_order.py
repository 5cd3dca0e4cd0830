"""Order: what the measures measure, and what attention and encoders can and cannot know of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import dot_product_attention
from posenc.order import equivariance_error, invariance_error, same_bag

seeds = st.integers(0, 2**32 - 1)
# At least two tokens, and not all of them in place.
real_orders = st.integers(2, 8).flatmap(lambda n: st.permutations(range(n))).filter(lambda p: p != sorted(p))


def random_attention(seed: int, width: int = 8, **options: Any) -> Callable[[np.ndarray], np.ndarray]:
    w_q, w_k, w_v = np.random.default_rng(seed).normal(size=(3, width, width)) / width**0.5

    def f(x: np.ndarray) -> np.ndarray:
        return dot_product_attention(x @ w_q, x @ w_k, x @ w_v, **options)[0]

    return f


def tokens(seed: int, n: int, width: int = 8) -> np.ndarray:
    return np.random.default_rng([seed, 1]).normal(size=(n, width))


# --- Bags


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)), st.randoms(use_true_random=False))
def test_same_bag_is_sorted_equality(first: list[int], second: list[int], random: Any) -> None:
    shuffled = list(first)
    random.shuffle(shuffled)
    assert same_bag(first, shuffled)
    assert not same_bag(first, [*shuffled, 0])
    equal = sorted(first) == sorted(second)
    assert same_bag(first, second) == same_bag(torch.tensor(first), np.array(second)) == equal
    assert same_bag(dict.fromkeys(first), set(first))  # its keys: a mapping is no count of them


# --- The measures


@given(order=real_orders)
def test_the_measures_tell_equivariant_invariant_and_neither_apart(order: list[int]) -> None:
    x = np.arange(1.0, len(order) + 1)[:, None] ** 2

    def centred(x: np.ndarray) -> np.ndarray:
        return x - x.mean(axis=0)

    def numbered(x: np.ndarray) -> np.ndarray:
        return x + np.arange(len(x))[:, None]

    assert equivariance_error(centred, x, order) < 1e-12
    assert invariance_error(centred, x, order) > 0.1
    assert invariance_error(lambda x: x.max(axis=0), x, order) == 0
    # t is added at the new place, and carried along from the old one.
    moved = max(abs(t - u) for t, u in enumerate(order))
    assert equivariance_error(numbered, x, order) == pytest.approx(moved)
    error = equivariance_error(lambda y: y.cumsum(0), torch.from_numpy(x), order)
    assert type(error) is float
    assert error > 0.1


def test_permutation_means_row_j_is_row_pi_j() -> None:
    # A cycle of three is not its own inverse, so a mix-up of the two directions shows.
    seen: list[list[float]] = []

    def f(y: np.ndarray) -> np.ndarray:
        seen.append(y.ravel().tolist())
        return y.sum(axis=0)

    invariance_error(f, np.array([[1.0], [2.0], [3.0]]), [1, 2, 0])
    assert seen == [[2.0, 3.0, 1.0], [1.0, 2.0, 3.0]]


@pytest.mark.parametrize("measure", [equivariance_error, invariance_error])
def test_measures_take_empty_input_gradients_integers_and_bools(measure: Callable[..., float]) -> None:
    assert measure(lambda x: x, np.empty((0, 2)), []) == 0.0
    assert measure(lambda x: x * 0, torch.eye(2, requires_grad=True), [1, 0]) == 0.0
    for dtype in (np.uint8, bool):  # whose differences wrap around, or do not exist
        assert measure(lambda x, dtype=dtype: np.eye(2, dtype=dtype) * (x[0, 0] == 1), np.eye(2), [1, 0]) == 1


def test_functions_may_write_to_what_they_get() -> None:
    assert equivariance_error(lambda x: np.multiply(x, 2, out=x), np.eye(2), [1, 0]) == 0.0


def same(x: Any) -> Any:
    return x


EYE, CYCLE = np.eye(3), [2, 0, 1]
PERMUTATION = r"permutation must hold each of 0\.\.2 once, got"


@pytest.mark.parametrize(
    ("measures", "f", "x", "permutation", "error", "message"),
    [
        (2, same, EYE, [2.9, 0.2, 1.5], TypeError, "each of permutation must be an integer, got 2.9"),
        (2, same, EYE, "201", TypeError, "each of permutation must be an integer, got '2'"),
        (2, same, EYE, [0, 1], ValueError, PERMUTATION),
        (2, same, EYE, [0, 1, 1], ValueError, PERMUTATION),
        (2, same, EYE, [1, 2, 3], ValueError, PERMUTATION),
        (2, same, EYE, [0, 1, 2, 3], ValueError, PERMUTATION),
        (2, same, EYE, [-1, 0, 1], ValueError, PERMUTATION),
        (2, same, [[1.0]], [0], TypeError, "x must be an array, got list"),
        (2, same, np.array(1.0), [0], ValueError, r"x must have shape \(n, d\), got \(\)"),
        (2, lambda x: None, EYE, CYCLE, TypeError, "f must give an array, got NoneType"),
        (2, lambda x: x[:, : 1 + int(x[0, 0])], EYE, CYCLE, ValueError, "results of one shape"),
        (1, lambda x: x.mean(axis=0)[:2], EYE, CYCLE, ValueError, r"f must give one row per row .*3, got shape \(2,\)"),
        (1, lambda x: x.sum(), EYE, CYCLE, ValueError, r"f must give one row per row of x, 3, got shape \(\)"),
    ],
)  # fmt: skip
def test_measures_name_bad_input(
    measures: int, f: Any, x: Any, permutation: Any, error: type[Exception], message: str
) -> None:
    for measure in (equivariance_error, invariance_error)[:measures]:
        with pytest.raises(error, match=message):
            measure(f, x, permutation)


@pytest.mark.parametrize("bad", [None, 3, [[1]], np.eye(2)])
def test_same_bag_names_what_cannot_be_counted(bad: Any) -> None:
    with pytest.raises(TypeError, match="second must be a sequence of items that can be hashed, got"):
        same_bag([1], bad)


# --- Attention


@given(seed=seeds, n=st.integers(2, 8), slope=st.floats(0.1, 2))
def test_a_symmetric_penalty_sees_distance_but_not_reversal(seed: int, n: int, slope: float) -> None:
    t = np.arange(n)
    f = random_attention(seed, bias=-slope * np.abs(t[:, None] - t).astype(float))
    x, backwards = tokens(seed, n), list(range(n))[::-1]
    assert equivariance_error(f, x, backwards) < 1e-12
    if n > 2:
        rotated = [*range(1, n), 0]
        assert equivariance_error(f, x, rotated) > 1e-6
