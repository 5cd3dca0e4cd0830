"""The rotary layer beyond what all layers promise: empty input, dtypes, its table, compiled code."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from posenc import apply_rotary
from posenc.nn import RotaryEmbedding
from posenc.rotary import _turn, head_frequencies, offset_query
from tests.taken import random


@pytest.mark.parametrize("inference", [False, True])
def test_a_lone_pair_without_rows_stays_empty(inference: bool) -> None:
    for shape in ((0, 2, 3, 2), (2, 2, 0, 2)):
        x = torch.empty(shape)
        with torch.inference_mode(inference):
            assert [turned.shape for turned in RotaryEmbedding(2)(x, x)] == [x.shape] * 2


@pytest.mark.parametrize("compiled", [False, True])
def test_each_keeps_its_dtype(compiled: bool) -> None:
    rotary = RotaryEmbedding(8)
    if compiled:
        torch._dynamo.reset()
        rotary.compile(backend="eager", fullgraph=True)
    q, k = random(2, 1, 2, 5, 8)
    k = k[:, :1]  # one head of keys for two of queries
    for low, high in ((q.bfloat16(), k), (q, k.half())):
        assert [x.dtype for x in rotary(low, high)] == [low.dtype, high.dtype]


def test_frequencies_may_be_a_tensor() -> None:
    omega = head_frequencies([4, 32, 512])
    ours, same = (
        RotaryEmbedding(2, frequencies=torch.from_numpy(omega)),
        RotaryEmbedding(2, frequencies=omega),
    )
    assert torch.equal(ours.table, same.table)


def test_table_is_right_far_out() -> None:
    rotary = RotaryEmbedding(4, max_len=1_000_001)
    exact = apply_rotary(torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(2), torch.tensor([1_000_000]))
    assert (rotary.table[-1:].double() - exact).abs().max() < 1e-6


def tangent(turned: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with forward_ad.dual_level():
        found: Tensor = forward_ad.unpack_dual(turned(forward_ad.make_dual(x, x))).tangent
        return found


WAYS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "a layer": lambda turned, x: turned(x),
    "not contiguous": lambda turned, x: turned(x.transpose(1, 2).contiguous().transpose(1, 2)),
    "the same for all heads": lambda turned, x: turned(x[:, :1].expand(x.shape)),
    "bfloat16": lambda turned, x: turned(x.bfloat16()),
    "positions of each sentence": lambda turned, x: turned(x, positions=torch.arange(100).view(2, 50) * 3),
    "one position for all tokens": lambda turned, x: apply_rotary(x, torch.tensor([[[7]]]), layout="half"),
    "one position for each head": lambda turned, x: apply_rotary(x, torch.arange(3)[:, None][None], layout="half"),
    "queries that look back": lambda turned, x: offset_query(x, 5, layout="half"),
    "vmap": lambda turned, x: torch.vmap(turned)(x),
    "vmap over positions": lambda turned, x: torch.vmap(
        lambda t: apply_rotary(x, t, layout="half")
    )(torch.arange(100).view(2, 50)),
    "a derivative forwards": lambda turned, x: tangent(turned, x),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")  # of vmap
@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # which torch's own derivatives use
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("frequencies", [None, head_frequencies([4, 32, 512]).repeat(8, axis=1)])
def test_halves_are_turned_alike_piece_by_piece(
    way: str, frequencies: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rotary, x = RotaryEmbedding(16, layout="half", frequencies=frequencies), random(2, 3, 50, 16)
    with torch.no_grad():
        whole = WAYS[way](lambda x, **where: rotary(x, x, **where)[0], x)
        monkeypatch.setattr(_turn, "IN_CACHE", 1000)  # bytes: pieces of a few rows, and a shorter last one
        pieces = WAYS[way](lambda x, **where: rotary(x, x, **where)[0], x)
    assert torch.equal(pieces, whole)
    assert pieces.stride() == whole.stride()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # torch's own compiler uses it
def test_compiled_code_gives_the_same_numbers() -> None:
    torch._dynamo.reset()
    rotary, (q, k) = RotaryEmbedding(16), random(2, 1, 2, 50, 16)
    compiled = torch.compile(rotary, fullgraph=True)
    torch.testing.assert_close(compiled(q, k)[0], rotary(q, k)[0], rtol=0, atol=1e-6)
