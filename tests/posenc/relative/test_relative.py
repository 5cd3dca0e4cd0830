"""Relative biases: offsets, buckets, tables, KERPLE, FIRE and Shaw's vectors, against their definitions."""

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import alibi_bias, relative
from posenc.attention import dot_product_attention
from posenc.relative import fire_bias, kerple_bias, relative_bias, relative_offsets, t5_bias, t5_bucket
from posenc.shift import toeplitz_spread
from tests.posenc.refusals import refused

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(9, 3))
FIRE = RNG.normal(size=5), RNG.normal(size=5), RNG.normal(size=(3, 5)), RNG.normal(size=3)
R1, R2 = np.array([0.5, 1.0, 2.0]), np.array([0.1, 1.0, 1.9])
SMALL: Any = {"num_buckets": 8, "max_distance": 6}

# Each gives (heads, n_q, n_k) for lengths or positions.
BIASES: dict[str, Any] = {
    "table": lambda q, k=None: relative_bias(TABLE, q, k),
    "T5": lambda q, k=None: t5_bias(TABLE[:8], q, k, **SMALL),
    "T5 causal": lambda q, k=None: t5_bias(TABLE[:8], q, k, **SMALL, bidirectional=False),
    "KERPLE log": lambda q, k=None: kerple_bias(R1, R2, q, k),
    "KERPLE power": lambda q, k=None: kerple_bias(R1, R2, q, k, kind="power"),
    "FIRE": lambda q, k=None: fire_bias(*FIRE, q, k, threshold=4.0),
    "ALiBi": lambda q, k=None: alibi_bias(R1, q, k, causal=False),
}
every_bias = pytest.mark.parametrize("name", BIASES)
lengths = st.integers(0, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def assert_same(name: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Bit for bit; for the product of FIRE, whose sums depend on the shape, to a few roundings."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13 if name == "FIRE" else 0)


# --- What holds for all


@every_bias
@given(lengths)
def test_a_length_means_the_last_of_the_keys(name: str, n: tuple[int, int]) -> None:
    t, u = np.arange(n[1] - n[0], n[1]), np.arange(n[1])
    for where in (n, (t, u)):
        np.testing.assert_array_equal(relative_offsets(*where), u - t[:, None])
    by_length = BIASES[name](*n)
    assert by_length.shape == (3, *n)
    assert_same(name, by_length, BIASES[name](t, u))


@every_bias
@given(st.integers(1, 30))
def test_decoding_gives_the_rows_of_the_full_pass(name: str, n: int) -> None:
    full = BIASES[name](30)
    assert_same(name, BIASES[name](1, n)[:, 0], full[:, n - 1, :n])
    assert_same(name, BIASES[name](min(n, 4), n), full[:, :n, :n][:, -4:])


@every_bias
def test_only_the_offset_counts_but_for_fire_and_its_sign_but_for_kernels(name: str) -> None:
    spread = toeplitz_spread(BIASES[name](40))
    assert (spread > 0.01).all() if name == "FIRE" else (spread < 1e-12).all()
    bias = BIASES[name](4)  # up to the threshold of FIRE
    symmetric = np.allclose(bias, np.swapaxes(bias, -1, -2))
    assert symmetric == name.startswith(("KERPLE", "FIRE", "ALiBi"))


@every_bias
def test_a_batch_of_positions(name: str) -> None:
    t, u = np.array([[3, 5], [0, 9]]), np.array([[0, 1, 7], [4, 4, 2]])
    bias = BIASES[name](t, u)
    assert bias.shape == (2, 3, 2, 3)
    for b in range(2):
        assert_same(name, bias[b], BIASES[name](t[b], u[b]))


@given(lengths)
def test_toeplitz_reads_the_offset(n: tuple[int, int]) -> None:
    n_query, n_key = n
    values = np.arange(-(n_key - 1), n_query)
    if n_query:
        np.testing.assert_array_equal(
            relative.toeplitz_bias(values, n_query), relative_offsets(n_query, n_key)
        )


def test_a_matrix_owns_its_numbers_and_no_more() -> None:
    for values in (np.arange(5.0), torch.arange(5.0)):
        matrix = relative.toeplitz_bias(values, 3)
        matrix[0, 0] = 99
        assert values[2] == matrix[1, 1] == 2
    for n_query, n_key in [(100, 100), (3, 100), (1, 100), (100, 101)]:
        bias = t5_bias(torch.randn(32, 4), n_query, n_key)
        assert bias.is_contiguous()
        assert bias.untyped_storage().nbytes() == bias.nbytes


# --- T5


def test_buckets_worked_by_hand() -> None:
    # 16 buckets a side: 0..7 exact, then from 8, 8·√2, 16, 16·√2, 32, 32·√2, 64, 64·√2.
    starts = [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    left = t5_bucket(-np.arange(200))
    assert [int((left < bucket).sum()) for bucket in range(16)] == starts
    np.testing.assert_array_equal(t5_bucket(np.arange(1, 200)), left[1:] + 16)
    assert t5_bucket(np.array([-128, -(2**40), 2**40])).tolist() == [15, 15, 31]


offsets = st.lists(st.integers(-10_000, 10_000), min_size=1, max_size=20)


@given(half=st.integers(2, 64), more=st.integers(1, 300), both=st.booleans(), offsets=offsets)
def test_buckets_are_those_of_the_real_logarithm(
    half: int, more: int, both: bool, offsets: list[int]
) -> None:
    buckets = half if both else half + more % 2
    exact = buckets // 2
    limit = exact + more
    rows = 2 * buckets if both else buckets
    found = t5_bucket(np.array(sorted(offsets)), num_buckets=rows, max_distance=limit, bidirectional=both)
    for k, bucket in zip(sorted(offsets), found.tolist(), strict=True):
        distance = abs(k) if both else max(-k, 0)
        share = math.log(max(distance, 1) / exact) / math.log(limit / exact) * (buckets - exact)
        wanted = distance if distance < exact else min(exact + math.floor(share), buckets - 1)
        if abs(share - round(share)) > 1e-9 or distance < exact:  # where float64 can tell
            assert bucket == wanted + (buckets if both and k > 0 else 0)
        assert 0 <= bucket < rows
    on_the_left = found[np.sort(offsets) <= 0]
    assert (np.diff(on_the_left) <= 0).all()  # they rise with the distance


def test_t5_looks_its_buckets_up() -> None:
    expected = TABLE[t5_bucket(relative_offsets(30), num_buckets=8), 0]
    np.testing.assert_array_equal(t5_bias(TABLE[:8, 0], 30, num_buckets=8), expected)


def test_t5_memory_does_not_know_the_largest_distance() -> None:
    tracemalloc.start()
    far = t5_bias(TABLE[:8], 10, num_buckets=8, max_distance=10**9)
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()
    np.testing.assert_array_equal(far[0, 0], TABLE[[0, 5, *[6] * 8], 0])
    assert t5_bucket(np.array([-(2**53)]), max_distance=2**53).tolist() == [15]


# --- Tables, KERPLE, FIRE


def test_a_table_is_clipped() -> None:
    bias = relative_bias(np.arange(-2.0, 3), 6)
    np.testing.assert_array_equal(bias, np.clip(relative_offsets(6), -2, 2))


def test_kerple_is_its_formula() -> None:
    k = np.abs(relative_offsets(7))
    np.testing.assert_allclose(kerple_bias(0.7, 0.3, 7), -0.7 * np.log(1 + 0.3 * k))
    np.testing.assert_allclose(kerple_bias(0.7, 1.0, 7, kind="power"), -0.7 * k)
    halves = kerple_bias(0.7, 1.5, [0.5], [0.0, 2.5], kind="power")
    np.testing.assert_allclose(halves, [[-0.7 * 0.5**1.5, -0.7 * 2**1.5]])


def test_kerple_is_computed_in_float64() -> None:
    r = torch.tensor([1e-4], dtype=torch.float32)
    bias = kerple_bias(r, r, torch.tensor([0]), torch.tensor([1_000_000]))
    assert bias.dtype == torch.float32
    assert float(bias) == np.float32(-float(r) * math.log1p(float(r) * 1e6))


def test_fire_is_its_formula() -> None:
    t, u = np.arange(4, 9), np.arange(9)
    x = np.log1p(0.2 * np.abs(u - t[:, None])) / np.log1p(0.2 * np.maximum(t, 6.0))[:, None]
    np.testing.assert_allclose(relative.fire_distance(5, 9, c=0.2, threshold=6.0), x)
    w1, b1, w2, b2 = FIRE
    expected = np.maximum(x[..., None] * w1 + b1, 0) @ w2.T + b2
    bias = fire_bias(*FIRE, 5, 9, c=0.2, threshold=6.0)
    np.testing.assert_allclose(bias, np.moveaxis(expected, -1, 0))


@given(st.integers(1, 5000), st.floats(0.01, 10), st.floats(1, 1000))
def test_what_fire_sees_of_keys_so_far_lies_in_0_to_1(n: int, c: float, threshold: float) -> None:
    x = relative.fire_distance(1, n, c=c, threshold=threshold)
    assert x.min() == 0
    assert x.max() <= 1
    assert (np.diff(x) < 0).all()


def test_fire_depends_on_the_offset_alone_up_to_its_threshold() -> None:
    assert toeplitz_spread(relative.fire_distance(41, threshold=40.0)) < 1e-12
    assert toeplitz_spread(relative.fire_distance(42, threshold=40.0)) > 1e-3


# --- Shaw


def test_shaw_is_its_definition() -> None:
    q, k, v = RNG.normal(size=(3, 2, 6, 4))
    a, b = RNG.normal(size=(2, 5, 4))
    index = np.clip(relative_offsets(6), -2, 2) + 2
    scores = np.einsum("btd,btud->btu", q, k[:, None] + a[index]) / 2
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    output = np.einsum("btu,btud->btd", weights, v[:, None] + b[index])
    for found, expected in zip(relative.shaw_attention(q, k, v, a, b), (output, weights), strict=True):
        np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(relative.shaw_attention(q, k, v, a)[0], weights @ v)


def test_shaw_with_a_table_of_zeros_is_attention() -> None:
    q, k, v = RNG.normal(size=(3, 5, 4))
    ours = relative.shaw_attention(q, k, v, np.zeros((3, 4)), np.zeros((3, 4)))
    for found, expected in zip(ours, dot_product_attention(q, k, v), strict=True):
        np.testing.assert_allclose(found, expected)


# --- Errors

THREE, ROWS = np.zeros((2, 3)), np.zeros((5, 3))
test_errors_name_the_argument = refused([
    (lambda: relative_offsets(3, 2), ValueError, "query_positions must be at most key_positions.*3 and 2"),
    (lambda: relative_offsets(np.zeros((2, 3)), np.zeros(3)), ValueError, "same leading axes"),
    (lambda: relative.toeplitz_bias(np.zeros(4), 3), ValueError, r"values must have shape .* got \(4,\)"),
    (lambda: relative_bias(np.zeros(4), 3), ValueError, r"2K \+ 1 rows.* got 4"),
    (lambda: relative_bias(np.zeros(3), [0.5]), TypeError, "must be integers"),
    (lambda: relative_bias(torch.zeros(3), [1]), TypeError, "same library as the parameters, got list"),
    (lambda: t5_bias(np.zeros(33), 3), ValueError, r"table must have num_buckets = 32 rows .*\(33,\)"),
    (lambda: t5_bucket([0.5]), TypeError, "offsets must be integers, got dtype float64"),
    (lambda: t5_bucket(3, max_distance=2**60), ValueError, "max_distance must be at most 2"),
    (lambda: t5_bucket(3, num_buckets=7), ValueError, "num_buckets must be even if bidirectional"),
    (lambda: kerple_bias(0.0, 1.0, 3), ValueError, "r1 must be above 0, got 0.0"),
    (lambda: kerple_bias(1.0, 2.5, 3, kind="power"), ValueError, "r2 must be above 0 and at most 2, got 2.5"),
    (lambda: kerple_bias(R1, R2[:2], 3), ValueError, r"r1 and r2 must .* \(3,\) and \(2,\)"),
    (lambda: kerple_bias(R1, R2.astype("f"), 3), TypeError, "r2 must have the dtype of r1"),
    (lambda: relative.fire_distance(3, threshold=np.ones(2)), ValueError, r"threshold must be one number"),
    (lambda: fire_bias(*FIRE[:2], FIRE[2].T, FIRE[3], 3), ValueError, r"head_weight must have shape|head_bias must"),
    (lambda: relative.shaw_scores(THREE, np.zeros((5, 4))), ValueError, "table"),
    (lambda: relative.shaw_scores(THREE, np.zeros((4, 3))), ValueError, r"2K \+ 1 rows"),
    (lambda: relative.shaw_scores(THREE, np.zeros((5, 3), "f")), TypeError, "table must have the dtype"),
    (lambda: relative.shaw_scores(THREE, ROWS, [1, 2, 3]), ValueError, "one position for each of 2 queries"),
    (lambda: relative.shaw_values(THREE, ROWS, [0, 1], [0, 1]), ValueError, r"weights must .* \(\.\.\., 2, 2\)"),
])  # fmt: skip


@given(st.integers(1, 80), st.integers(0, 80), st.integers(0, 2**32 - 1))
def test_a_derivative_sums_over_each_offset(n_query: int, more: int, seed: int) -> None:
    """Over more rows than are summed at a time, in float64 and, to its own rounding, in bfloat16."""
    generator = torch.Generator().manual_seed(seed)
    upstream = torch.randn(2, n_query, n_query + more, generator=generator, dtype=torch.float64)
    rows = [np.trace(upstream, k, 1, 2) for k in range(1 - n_query, n_query + more)]
    for dtype, error in ((torch.float64, 1e-12), (torch.bfloat16, 0.1)):
        values = torch.zeros(2, len(rows), dtype=dtype, requires_grad=True)
        biases = relative.toeplitz_bias(values, n_query)
        (found,) = torch.autograd.grad(biases, values, upstream.to(dtype))
        np.testing.assert_allclose(found.double(), np.stack(rows, -1), atol=error, rtol=error / 10)
