"""The rotary layer beyond what all layers promise: empty input, dtypes, its table, compiled code."""

import shutil

import pytest
import torch

from posenc import apply_rotary
from posenc.nn import RotaryEmbedding
from posenc.rotary import head_frequencies
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


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore:`torch.jit.script")  # torch's own compiler uses it
def test_compiled_code_gives_the_same_numbers() -> None:
    torch._dynamo.reset()
    rotary, (q, k) = RotaryEmbedding(16), random(2, 1, 2, 50, 16)
    compiled = torch.compile(rotary, fullgraph=True)
    torch.testing.assert_close(compiled(q, k)[0], rotary(q, k)[0], rtol=0, atol=1e-6)
