"""Order: what the measures measure, and what attention and encoders can and cannot know of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from posenc import causal_mask, dot_product_attention, sinusoidal_encoding
from posenc.nn import SinusoidalEncoding
from posenc.order import equivariance_error, invariance_error, same_bag

seeds = st.integers(0, 2**32 - 1)
orders = st.integers(1, 8).flatmap(lambda n: st.permutations(range(n)))
# At least two tokens, and not all of them in place.
real_orders = st.integers(2, 8).flatmap(lambda n: st.permutations(range(n))).filter(lambda p: p != sorted(p))


def random_attention(seed: int, width: int = 8, **options: Any) -> Callable[[np.ndarray], np.ndarray]:
    w_q, w_k, w_v = np.random.default_rng(seed).normal(size=(3, width, width)) / width**0.5

    def f(x: np.ndarray) -> np.ndarray:
        return dot_product_attention(x @ w_q, x @ w_k, x @ w_v, **options)[0]

    return f


def tokens(seed: int, n: int, width: int = 8) -> np.ndarray:
    return np.random.default_rng([seed, 1]).normal(size=(n, width))


def torch_encoder(layers: int = 2, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = nn.TransformerEncoderLayer(8, 2, 32, dropout=0.1, batch_first=True, dtype=torch.float64)
        # The copies that TransformerEncoder makes of a layer are equal; give each its own weights.
        encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        for weight in encoder.parameters():
            weight.data += 0.1 * torch.randn_like(weight)
    return encoder.eval().requires_grad_(False)


ENCODER = torch_encoder()


# --- same_bag


def test_same_bag_of_token_ids_in_arrays() -> None:
    assert same_bag(np.array([1, 2]), np.array([2, 1]))
    assert same_bag(torch.tensor([1, 2, 2]), torch.tensor([2, 1, 2]))
    assert not same_bag(torch.tensor([1, 2, 2]), torch.tensor([1, 1, 2]))
    assert same_bag({"a": 3}, {"a": 5})  # its keys: a mapping is no count of them


@pytest.mark.parametrize("bad", [None, 3, [[1]], np.eye(2)])
def test_same_bag_names_what_cannot_be_counted(bad: Any) -> None:
    with pytest.raises(TypeError, match="second must be a sequence of items that can be hashed, got"):
        same_bag([1], bad)


# --- what the measures refuse, and what they must not get wrong


@pytest.mark.parametrize("measure", [equivariance_error, invariance_error])
@pytest.mark.parametrize(
    ("f", "x", "permutation", "error", "message"),
    [
        (
            lambda x: x,
            np.eye(3),
            [2.9, 0.2, 1.5],
            TypeError,
            "each of permutation must be an integer, got 2.9",
        ),
        (lambda x: x, np.eye(3), "201", TypeError, "each of permutation must be an integer, got '2'"),
        (lambda x: x, [[1.0]], [0], TypeError, "x must be an array, got list"),
        (lambda x: x, np.array(1.0), [0], ValueError, r"x must have shape \(n, d\), got \(\)"),
        (lambda x: None, np.eye(3), [2, 0, 1], TypeError, "f must give an array, got NoneType"),
        (lambda x: x[:, : 1 + int(x[0, 0])], np.eye(3), [2, 0, 1], ValueError, "results of one shape"),
    ],
)
def test_measures_name_bad_input(
    measure: Callable[..., float], f: Any, x: Any, permutation: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        measure(f, x, permutation)


def test_differences_of_unsigned_integers_and_bools_do_not_wrap() -> None:
    swap = [1, 0]
    assert invariance_error(lambda x: x.astype(np.uint8), np.eye(2), swap) == 1
    assert invariance_error(lambda x: x > 0, np.eye(2), swap) == 1


def test_measures_take_empty_input_gradients_and_functions_that_write() -> None:
    for measure in (equivariance_error, invariance_error):
        assert measure(lambda x: x, np.empty((0, 2)), []) == 0.0
        assert measure(lambda x: x * 0, torch.eye(2, requires_grad=True), [1, 0]) == 0.0
    assert equivariance_error(lambda x: np.multiply(x, 2, out=x), np.eye(2), [1, 0]) == 0.0


@given(st.lists(st.integers(0, 3)), st.randoms())
def test_a_shuffled_list_is_the_same_bag(items: list[int], random: object) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert same_bag(items, shuffled)
    assert not same_bag(items, [*shuffled, 0])


@given(st.lists(st.integers(0, 2)), st.lists(st.integers(0, 2)))
def test_same_bag_is_sorted_equality(first: list[int], second: list[int]) -> None:
    assert same_bag(first, second) == (sorted(first) == sorted(second))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("我爱你", "你爱我"),
        ("猫追狗", "狗追猫"),
        ("狗咬人", "人咬狗"),
        ("机器人不能伤害人类", "人类不能伤害机器人"),
        (["dog", "bites", "man"], ["man", "bites", "dog"]),
    ],
)
def test_sentences_of_the_same_words(first: Sequence[str], second: Sequence[str]) -> None:
    assert first != second
    assert same_bag(first, second)


def test_english_inflects() -> None:
    assert not same_bag(["I", "love", "you"], ["you", "love", "me"])


# --- The measures


@given(order=real_orders)
def test_the_measures_tell_equivariant_invariant_and_neither_apart(order: list[int]) -> None:
    x = np.arange(1.0, len(order) + 1)[:, None] ** 2

    def equivariant(x: np.ndarray) -> np.ndarray:
        return x - x.mean(axis=0)

    def invariant(x: np.ndarray) -> np.ndarray:
        return x.max(axis=0)

    def neither(x: np.ndarray) -> np.ndarray:
        return x + np.arange(len(x))[:, None]

    assert equivariance_error(equivariant, x, order) < 1e-12
    assert invariance_error(equivariant, x, order) > 0.1
    assert invariance_error(invariant, x, order) == 0
    # t is added at the new place, and carried along from the old one.
    moved = max(abs(t - u) for t, u in enumerate(order))
    assert equivariance_error(neither, x, order) == pytest.approx(moved)


def test_permutation_means_row_j_is_row_pi_j() -> None:
    # A cycle of three is not its own inverse, so a mix-up of the two directions shows.
    x = np.array([[1.0], [2.0], [3.0]])
    seen: list[list[float]] = []

    def f(y: np.ndarray) -> np.ndarray:
        seen.append(y.ravel().tolist())
        return y.sum(axis=0)

    invariance_error(f, x, [1, 2, 0])
    assert seen == [[2.0, 3.0, 1.0], [1.0, 2.0, 3.0]]


def test_measures_take_torch_and_give_a_float() -> None:
    x = torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    error = equivariance_error(lambda y: y.cumsum(0), x, [3, 2, 1, 0])
    assert type(error) is float
    assert error > 0.1


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1], [1, 2, 3], [0, 1, 2, 3], [-1, 0, 1]])
def test_not_a_permutation(order: list[int]) -> None:
    x = np.zeros((3, 2))
    for measure in (equivariance_error, invariance_error):
        with pytest.raises(ValueError, match=r"permutation must hold each of 0\.\.2 once, got"):
            measure(lambda y: y, x, order)


def test_equivariance_needs_a_row_per_token() -> None:
    with pytest.raises(ValueError, match=r"f must give one row per row of x, 3, got shape \(2,\)"):
        equivariance_error(lambda y: y.mean(axis=0), np.zeros((3, 2)), [2, 1, 0])


# --- Attention


@given(seed=seeds, order=orders)
def test_attention_is_equivariant_and_invariant_after_pooling(seed: int, order: list[int]) -> None:
    x, f = tokens(seed, len(order)), random_attention(seed)
    assert equivariance_error(f, x, order) < 1e-12
    assert invariance_error(lambda y: f(y).mean(axis=0), x, order) < 1e-12
    assert invariance_error(lambda y: f(y).max(axis=0), x, order) < 1e-12


@given(seed=seeds, order=real_orders)
def test_attention_itself_is_not_invariant(seed: int, order: list[int]) -> None:
    assert invariance_error(random_attention(seed), tokens(seed, len(order)), order) > 1e-3


@given(seed=seeds, order=real_orders)
def test_a_causal_mask_breaks_equivariance(seed: int, order: list[int]) -> None:
    n = len(order)
    assert equivariance_error(random_attention(seed, mask=causal_mask(n)), tokens(seed, n), order) > 1e-3


@given(seed=seeds, order=real_orders)
def test_a_code_breaks_equivariance(seed: int, order: list[int]) -> None:
    f, code = random_attention(seed), sinusoidal_encoding(len(order), 8)
    assert equivariance_error(lambda y: f(y + code), tokens(seed, len(order)), order) > 1e-3


@given(seed=seeds, n=st.integers(2, 8), slope=st.floats(0.1, 2))
def test_a_symmetric_penalty_sees_distance_but_not_reversal(seed: int, n: int, slope: float) -> None:
    t = np.arange(n)
    f = random_attention(seed, bias=-slope * np.abs(t[:, None] - t).astype(float))
    x, backwards = tokens(seed, n), list(range(n))[::-1]
    assert equivariance_error(f, x, backwards) < 1e-12
    if n > 2:
        rotated = [*range(1, n), 0]
        assert equivariance_error(f, x, rotated) > 1e-6


@given(seed=seeds, near=st.integers(1, 50), far=st.integers(51, 101))
def test_equal_tokens_get_equal_weights_at_any_distance(seed: int, near: int, far: int) -> None:
    x = tokens(seed, 102)
    x[far] = x[near]
    _, weights = dot_product_attention(x, x, x)
    np.testing.assert_allclose(weights[:, near], weights[:, far], rtol=1e-12)


@given(seed=seeds, n=st.integers(1, 8))
def test_a_causal_mask_cannot_count_equal_tokens(seed: int, n: int) -> None:
    x = np.tile(tokens(seed, 1), (n, 1))
    output = random_attention(seed, mask=causal_mask(n))(x)
    np.testing.assert_allclose(output, np.broadcast_to(output[0], output.shape), atol=1e-12)


@pytest.mark.parametrize(
    ("n", "counts"),
    [
        (3, {"none": 1, "symmetric": 3, "sinusoidal": 6, "causal": 6}),
        (4, {"none": 1, "symmetric": 12, "sinusoidal": 24, "causal": 24}),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_how_many_orders_a_pooled_layer_tells_apart(seed: int, n: int, counts: dict[str, int]) -> None:
    t, x = np.arange(n), tokens(seed, n)
    models = {
        "none": random_attention(seed),
        "symmetric": random_attention(seed, bias=-1.0 * np.abs(t[:, None] - t)),
        "sinusoidal": lambda y: random_attention(seed)(y + sinusoidal_encoding(n, 8)),
        "causal": random_attention(seed, mask=causal_mask(n)),
    }
    for name, f in models.items():
        means = [f(x[list(order)]).mean(axis=0) for order in permutations(range(n))]
        assert len(np.unique(np.round(means, 8), axis=0)) == counts[name], name


# --- PyTorch's encoder


def pooled(f: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: f(x).mean(0)


def torch_tokens(seed: int, n: int) -> Tensor:
    return torch.from_numpy(tokens(seed, n))


@given(seed=seeds, order=real_orders)
@settings(max_examples=40)
def test_an_encoder_is_equivariant_and_invariant_after_pooling(seed: int, order: list[int]) -> None:
    x = torch_tokens(seed, len(order))
    assert equivariance_error(ENCODER, x, order) < 1e-12
    assert invariance_error(ENCODER, x, order) > 1e-3
    assert invariance_error(pooled(ENCODER), x, order) < 1e-12
    assert invariance_error(lambda y: ENCODER(y).amax(0), x, order) < 1e-12


@given(seed=seeds, order=real_orders)
@settings(max_examples=40)
def test_the_first_vector_knows_who_is_first_and_nothing_else(seed: int, order: list[int]) -> None:
    error = invariance_error(lambda y: ENCODER(y)[0], torch_tokens(seed, len(order)), order)
    assert (error < 1e-12) == (order[0] == 0)


@given(seed=seeds, order=real_orders)
@settings(max_examples=40)
def test_a_causal_mask_or_a_code_breaks_it(seed: int, order: list[int]) -> None:
    x, mask = torch_tokens(seed, len(order)), torch.from_numpy(causal_mask(len(order)))
    code = SinusoidalEncoding(8, dropout=0.0)
    breakers: list[Callable[[Tensor], Tensor]] = [lambda y: ENCODER(y, mask=mask), lambda y: ENCODER(code(y))]
    for f in breakers:
        assert equivariance_error(f, x, order) > 1e-3
        assert invariance_error(pooled(f), x, order) > 1e-6


@pytest.mark.parametrize(("layers", "blind"), [(1, True), (2, False), (3, False)])
def test_under_a_causal_mask_depth_lets_the_last_token_see_order(layers: int, blind: bool) -> None:
    encoder, mask = torch_encoder(layers), torch.from_numpy(causal_mask(4))
    x = torch_tokens(0, 4)
    error = invariance_error(lambda y: encoder(y, mask=mask)[-1], x, [1, 2, 0, 3])
    assert error < 1e-12 if blind else error > 1e-3
    # Blind to the order before it, not to who stands last.
    assert invariance_error(lambda y: encoder(y, mask=mask)[-1], x, [0, 1, 3, 2]) > 1e-3


def test_dropout_is_noise_not_order() -> None:
    encoder = torch_encoder().train()
    x, same = torch_tokens(0, 5), [0, 1, 2, 3, 4]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        assert equivariance_error(encoder, x, same) > 0.1
    assert equivariance_error(encoder.eval(), x, [3, 0, 4, 2, 1]) < 1e-12


def test_a_recurrent_network_reads_in_order() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        gru = nn.GRU(8, 8).double().requires_grad_(False)
    x = torch_tokens(0, 2)
    assert invariance_error(lambda y: gru(y)[1], x, [1, 0]) > 0.1
