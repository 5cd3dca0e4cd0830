"""Positions that the content decides: what a forget gate and contextual gates are, and what they equal."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from posenc import (
    alibi_bias,
    alibi_slopes,
    causal_mask,
    contextual_bias,
    contextual_positions,
    dot_product_attention,
    forget_bias,
)
from posenc.alibi import add_alibi_columns
from posenc.contextual import forget_positions
from tests.posenc.refusals import refused

SEEDS = st.integers(0, 10**6)


def logs(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Logarithms of gates, most of them near 0 and some far below."""
    return -scale * np.random.default_rng(seed).exponential(size=shape)


def inputs(n: int, d: int, heads: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(3, heads, n, d))


# --- A constant gate is ALiBi


@given(heads=st.sampled_from([1, 2, 4, 8]), n=st.integers(0, 60), dtype=st.sampled_from(["f4", "f8"]))
def test_a_constant_gate_is_alibi_bit_for_bit(heads: int, n: int, dtype: Any) -> None:
    slopes = alibi_slopes(heads)
    bias = forget_bias(np.tile(-slopes[:, None], n), dtype=np.dtype(dtype))
    np.testing.assert_array_equal(bias, alibi_bias(slopes, n, dtype=np.dtype(dtype)), strict=True)


@given(m=st.floats(1e-4, 3), n=st.integers(1, 40))
def test_a_constant_gate_of_any_slope_is_alibi_but_for_rounding(m: float, n: int) -> None:
    np.testing.assert_allclose(forget_bias(np.full(n, -m)), alibi_bias(m, n), rtol=1e-12)
    np.testing.assert_allclose(forget_positions(np.full(n, -m)), m * np.arange(1, n + 1), rtol=1e-12)


# --- The bias


@given(n=st.integers(1, 20), queries=st.integers(0, 20), seed=SEEDS)
def test_bias_by_its_definition(n: int, queries: int, seed: int) -> None:
    log_gates, queries = logs(2, n, seed=seed), min(n, queries)
    bias = forget_bias(log_gates, queries)
    assert bias.shape == (2, queries, n)
    for head, row in np.ndindex(2, queries):
        t = n - queries + row
        for u in range(n):
            expected = math.fsum(log_gates[head, u + 1 : t + 1]) if u <= t else -math.inf
            assert bias[head, row, u] == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(n=st.integers(1, 30), seed=SEEDS)
def test_the_row_of_a_decoding_step_is_that_of_the_full_pass_bit_for_bit(n: int, seed: int) -> None:
    log_gates = logs(3, n, seed=seed)
    full = forget_bias(log_gates)
    for t in range(n):
        np.testing.assert_array_equal(forget_bias(log_gates[:, : t + 1], 1), full[:, t : t + 1, : t + 1])
    tensor = torch.from_numpy(log_gates)
    assert torch.equal(forget_bias(tensor, 1), forget_bias(tensor)[:, -1:])


# --- Columns


@given(n=st.integers(1, 30), d=st.integers(1, 9), seed=SEEDS, center=st.floats(-5, 50))
def test_the_columns_of_alibi_make_it(n: int, d: int, seed: int, center: float) -> None:
    q, k, v = inputs(n, d, seed=seed)
    log_gates = logs(2, n, seed=seed)
    wide = add_alibi_columns(q, k, 1.0, forget_positions(log_gates), center=center)
    assert wide[0].shape[-1] == d + 1
    ours, _ = dot_product_attention(*wide, v, mask=causal_mask(n)[None], scale=1 / math.sqrt(d))
    expected, _ = dot_product_attention(q, k, v, bias=forget_bias(log_gates))
    np.testing.assert_allclose(ours, expected, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_columns_in_a_fused_kernel_and_gradients_of_the_gates(dtype: torch.dtype) -> None:
    q, k, v = torch.from_numpy(inputs(50, 8)).to(dtype)
    log_gates = torch.from_numpy(logs(2, 50, scale=0.2)).requires_grad_()

    def output(columns: bool) -> torch.Tensor:
        if columns:
            wide = add_alibi_columns(q, k, 1.0, forget_positions(log_gates), center=5.0, width=16)
            q_wide, k_wide = (x[None] for x in wide)
            attention = torch.nn.functional.scaled_dot_product_attention
            return attention(q_wide, k_wide, v[None], is_causal=True, scale=8**-0.5)[0]
        exact = [x.double() for x in (q, k, v)]
        return dot_product_attention(exact[0], exact[1], exact[2], bias=forget_bias(log_gates))[0]

    slack = {torch.float32: 1e-5, torch.bfloat16: 2e-2}[dtype]
    torch.testing.assert_close(output(True).double(), output(False), atol=slack, rtol=slack)
    gradients = [
        torch.autograd.grad(output(columns).double()[:, -1].sum(), log_gates)[0] for columns in (True, False)
    ]
    assert gradients[1].abs().max() > 0.1
    torch.testing.assert_close(*gradients, atol=30 * slack, rtol=30 * slack)


# --- Precision


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_sums_are_float64_and_rounded_once(dtype: torch.dtype) -> None:
    given_logs = torch.from_numpy(logs(2, 700)).to(dtype)
    p = forget_positions(given_logs)
    assert p.dtype == torch.float64
    bias = forget_bias(given_logs)
    assert bias.dtype == dtype
    assert torch.equal(bias, forget_bias(given_logs.double()).to(dtype))


def test_a_step_far_out_costs_what_it_should() -> None:
    """Cumulated in float32, a sum of 100,000 logarithms has no digits left for the last of them."""
    n = 100_000
    log_gates = logs(n).astype(np.float32)
    last = forget_bias(log_gates, 1)[0]
    np.testing.assert_allclose(last[-2], log_gates[-1], rtol=1e-6)
    in_float32 = np.cumsum(log_gates)
    assert abs(in_float32[-1] - in_float32[-2] - log_gates[-1]) > 1e-4


# --- Contextual positions


@given(n_query=st.integers(1, 9), more=st.integers(0, 9), most=st.integers(1, 6), seed=SEEDS)
def test_contextual_positions_by_their_definition(n_query: int, more: int, most: int, seed: int) -> None:
    n_key = n_query + more
    gates = np.random.default_rng(seed).uniform(size=(n_query, n_key))
    positions = contextual_positions(gates, max_position=most)
    for row, u in np.ndindex(n_query, n_key):
        t = more + row
        expected = min(gates[row, u : t + 1].sum(), most) if u <= t else 0.0
        assert positions[row, u] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(contextual_positions(gates[-1:], max_position=most), positions[-1:])


@given(rows=st.integers(1, 5), seed=SEEDS)
def test_contextual_bias_interpolates_vectors(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    query, table = rng.normal(size=(2, 4, 3)), rng.normal(size=(rows, 3))
    positions = rng.uniform(0, rows - 1, size=(2, 4, 6))
    positions[0, 0, :2] = 0, rows - 1
    bias = contextual_bias(query, table, positions)
    for place in np.ndindex(2, 4, 6):
        p = positions[place]
        vector = [np.interp(p, np.arange(rows), column) for column in table.T]
        assert bias[place] == pytest.approx(float(query[place[:2]] @ np.array(vector)), abs=1e-12)
    by_head = np.stack([table, 2 * table])
    np.testing.assert_allclose(contextual_bias(query, by_head, positions)[1], 2 * bias[1], atol=1e-12)


def test_a_position_between_rows_moves_its_gate() -> None:
    """Also where it is a whole number: gates of exactly 0 or 1 would else never be trained."""
    table = torch.tensor([[0.0], [1.0], [5.0]])
    for p, slope in ((0.5, 1.0), (1.0, 4.0), (0.0, 1.0)):
        position = torch.tensor([[p]], dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(contextual_bias(torch.ones(1, 1), table, position).sum(), position)
        assert gradient.item() == slope


# --- Errors

ONES, TABLE, QUERY = np.ones((2, 3)), np.ones((4, 5)), np.ones((2, 3, 4))
ROWS = torch.ones(2, 4).bfloat16()
FITTING = r"table must have shape \(rows, d\), or leading axes .* query \(2, 3, 4\), got"


test_errors_name_the_argument = refused([
    (lambda: forget_positions(np.array([0.1])), ValueError, "log_gates must be finite and at most 0.* got 0.1"),
    (lambda: forget_positions(np.array([-np.inf])), ValueError, "log_gates must be finite .* got -inf"),
    (lambda: forget_positions(np.array(-1.0)), ValueError, r"log_gates must have shape \(..., n\)"),
    (lambda: forget_bias(-np.ones(3), 4), ValueError, "n_query must be at most .* 3, got 4"),
    (lambda: contextual_positions(2 * ONES, max_position=3), ValueError, "gates must be from 0 to 1, got 2.0"),
    (lambda: contextual_positions(ONES.T, max_position=3), ValueError, r"gates must have .* got \(3, 2\)"),
    (lambda: contextual_bias(np.ones((2, 5)), TABLE, 4 * ONES), ValueError, "positions must be from 0 to 3"),
    (lambda: contextual_bias(np.ones((3, 5)), TABLE, ONES), ValueError, r"positions must have .* got \(2, 3\)"),
    (lambda: contextual_bias(np.ones((2, 4)), TABLE, ONES), ValueError, "query and table must have shapes"),
    (lambda: contextual_bias(np.ones((2, 5)), TABLE[:0], ONES), ValueError, "query and table must have shapes"),
    (lambda: contextual_bias(np.ones((2, 5)), TABLE.astype("f"), ONES), TypeError, "table must have the dtype"),
    (lambda: contextual_bias(np.ones((2, 5)), TABLE, torch.ones(2, 3)), TypeError, "positions must be of the libr"),
    (lambda: contextual_bias(ROWS, ROWS, ROWS[:, :1]), TypeError, "positions must be integers, float32 or float64"),
    (lambda: contextual_bias(QUERY, np.ones((5, 6, 4)), QUERY[..., :3]), ValueError, FITTING),
    (lambda: contextual_bias(QUERY[0], np.ones((1, 6, 4)), QUERY[0, :, :3]), ValueError, r"table must have shape"),
])  # fmt: skip


def test_a_table_for_each_head_or_for_all() -> None:
    for shape in ((6, 4), (1, 6, 4), (2, 6, 4)):
        assert contextual_bias(QUERY, np.ones(shape), QUERY[..., :3]).shape == (2, 3, 3)
