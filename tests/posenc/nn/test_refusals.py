"""What the layers refuse: the error names the argument, the value, and what would be right."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from posenc import alibi_slopes, sinusoidal_wavelengths
from posenc import nn as layers
from tests.posenc.calls import LAYERS, Call
from tests.posenc.refusals import refused

# Some arguments are of a wrong type, on purpose.
nn: Any = layers
A = nn.AlibiAttention(4)
CODES = nn.SinusoidalEncoding(8, max_len=5)
GRID = nn.GridEncoding(8, (2, 2))
GRID_ROTARY = nn.GridRotary(8, (2, 2))
HEADS = nn.RotaryEmbedding(8, frequencies=torch.ones(3, 4))
LEARNED = nn.LearnedEncoding(8, 5)
ROTARY = nn.RotaryEmbedding(8, max_len=5)
T5 = nn.T5Bias(2)
TIMES = nn.TimeEncoding(8, shortest=0.2, longest=120.0)
COPE = nn.ContextualPositions(8, 5)

Q, X, T, FAR = torch.zeros(1, 4, 5, 8), torch.zeros(1, 6, 8), torch.arange(3), torch.arange(6.0)
ROWS, TWO, META = X[0], torch.zeros(2, 2, 6, 8), torch.ones(2, device="meta")
FOUR, SECONDS = torch.zeros(4, 8), torch.tensor([0.0, 0.4, 1.3, 1.2, 59.9, 60.0])
EACH = torch.ones(3, 4, 2)


VALUE, TYPE = ValueError, TypeError
test_refused = refused([
    # What a layer is made with
    (lambda: nn.SinusoidalEncoding(8, dropout=1.5), VALUE, "dropout must be at most 1, got 1.5"),
    (lambda: nn.GridEncoding(8, (2, 0)), VALUE, "each length of shape must be at least 1"),
    (lambda: nn.GridRotary(8, (2, 2), frequencies=np.ones((2, 4)), base=5.0), VALUE, "base must be left out"),
    (lambda: nn.GridRotary(8, (2, 2), frequencies=np.full((2, 4), 7.0)), VALUE, "frequencies must be radians"),
    (lambda: nn.RotaryEmbedding(8, rotary_dim=10), VALUE, "rotary_dim must be at most the width of x, 8"),
    (lambda: nn.RotaryEmbedding(8, frequencies=torch.ones(4).half()), TYPE, "frequencies must be"),
    (lambda: nn.RotaryEmbedding(8, frequencies=sinusoidal_wavelengths(8)), VALUE, r"frequencies must .* 6\.2"),
    (lambda: nn.RotaryEmbedding(4, frequencies=META), VALUE, "frequencies must hold numbers, .* meta device"),
    (lambda: nn.AlibiBias(2, slopes=META), VALUE, "slopes must hold numbers"),
    (lambda: nn.AlibiBias(4, slopes=alibi_slopes(8)), VALUE, r"slopes must .* \(4,\), got \(8,\)"),
    (lambda: nn.T5Bias(2, num_buckets=5), VALUE, "num_buckets must be even if bidirectional"),
    (lambda: nn.ForgetGate(8, 2, slopes=np.ones(3)), VALUE, r"slopes must have shape \(2,\), got \(3,\)"),
    (lambda: nn.ForgetGate(8, 1, slopes=np.zeros(1)), VALUE, "each of slopes must be finite and above 0"),
    (lambda: nn.ForgetGate(4, 1, slopes=np.array([1e39])), VALUE, r"at most 3\.4.*e\+38, the largest"),
    # Lengths and positions of a bias
    (lambda: T5(5, 3), VALUE, "n_query must be at most n_key, .* got 5 and 3"),
    (lambda: T5(-1), VALUE, "n_query must be at least 0, got -1"),
    (lambda: T5(3.0), TYPE, r"n_query must be an integer, got 3\.0"),
    (lambda: T5(None), VALUE, "query_positions must be given where"),
    (lambda: T5(T), TYPE, r"n_query must be an int, got a tensor \(3,\): .* query_positions="),
    (lambda: T5(3, T), TYPE, "n_key must be an int, .* key_positions="),
    *((lambda make=make: make()(torch.rand(3)), TYPE, "n_query must be an int, .* query_positions=")
      for make in (lambda: nn.FireBias(2), lambda: nn.KerpleBias(2), lambda: nn.AlibiBias(4),
                   lambda: nn.RelativeBias(2, 3))),
    (lambda: T5(3, query_positions=T), VALUE, "n_query must be left out .* got 3"),
    (lambda: T5(3, key_positions=T), VALUE, "query_positions must be given where key_positions are"),
    (lambda: T5(None, 3, query_positions=T, key_positions=T), VALUE, "n_key must be left out"),
    (lambda: T5(query_positions=FAR), TYPE, "must be integers"),
    (lambda: T5(query_positions=np.arange(3)), TYPE, "query_positions must be a tensor, .* ndarray"),
    # Codes that are added
    (lambda: TIMES(X, 3), TYPE, "seconds must be a tensor, got int"),
    (lambda: TIMES(X[..., :6], SECONDS), VALUE, r"x must have shape \(batch, seq, 8\)"),
    (lambda: TIMES(X, SECONDS[:4]), VALUE, r"seconds must have shape \(6,\)"),
    (lambda: TIMES(X, SECONDS / 0), VALUE, "seconds must be finite, got nan"),
    (lambda: TIMES(X, SECONDS + 1.7e9), VALUE, "seconds must be within"),
    (lambda: TIMES(X, SECONDS.bfloat16()), TYPE, "seconds must be integers, float32 or float64, got dtype torch"),
    (lambda: LEARNED(X[:, :2], positions=torch.tensor([0, 5])), VALUE, r"positions must lie in 0\.\.4, .*got 5"),
    (lambda: LEARNED(X, positions=FAR), TYPE, r"positions must be integers, got dtype torch\.float32"),
    (lambda: GRID(X[:, :3]), VALUE, r"x must hold 4 tokens, .*grid \(2, 2\), got 3"),
    (lambda: GRID(X[:, :3], offset=2), VALUE, r"tokens 2\.\.4 must lie in 0\.\.3"),
    (lambda: GRID(X[:, :3], offset=-1), VALUE, "offset must be at least 0"),
    (lambda: GRID(torch.zeros(4, 6)), VALUE, r"x must have shape \(batch, seq, 8\)"),
    (lambda: GRID(FOUR, coordinates=[[0, 1]] * 4), TYPE, "coordinates must be a tensor"),
    (lambda: GRID(FOUR, coordinates=torch.ones(4, 2), offset=1), VALUE, "offset must be left out"),
    (lambda: GRID(FOUR, coordinates=torch.ones(4, 3)), VALUE, r"coordinates must have shape \(4, 2\)"),
    # Queries and keys that turn
    (lambda: ROTARY(Q, [0.0]), TYPE, "k must be a floating tensor, got list"),
    (lambda: ROTARY(Q.long(), Q), TYPE, r"q must be a floating tensor, got torch\.int64"),
    (lambda: ROTARY(Q[..., :6], Q), VALUE, r"q must have shape \(\.\.\., seq, 8\), got \(1,"),
    (lambda: ROTARY(Q, Q[..., :6]), VALUE, "k must have shape"),
    (lambda: ROTARY(Q, Q[:, :, :3]), VALUE, "k must have as many tokens as q, 5, got 3"),
    (lambda: ROTARY(Q, Q.double()), TYPE, r"k must be float64 if q is, .* torch\.float64"),
    (lambda: ROTARY(X, X, positions=torch.zeros(1, 6)), VALUE, r"shape \(6,\), got \(1, 6\)"),
    (lambda: ROTARY(Q, Q, positions=T), VALUE, r"shape \(5,\) or \(1, 5\), got \(3,\)"),
    (lambda: ROTARY(X, X, positions=FAR * math.nan), VALUE, "positions must be finite, got nan"),
    *((lambda dtype=dtype: ROTARY(X, X, positions=FAR.to(dtype)), TYPE, "positions must be integers")
      for dtype in (torch.bool, torch.bfloat16, torch.float8_e4m3fn, torch.complex64)),
    (lambda: ROTARY(TWO, TWO[:1], positions=FAR.expand(2, 6)), VALUE, "k must have the batch of q, 2"),
    (lambda: HEADS(Q, Q), VALUE, r"q must have shape \(\.\.\., 3, seq, 8\)"),
    (lambda: GRID_ROTARY(ROWS[:3], ROWS[:3]), VALUE, "x must hold 4 tokens"),
    (lambda: GRID_ROTARY(FOUR, ROWS[:3]), VALUE, "k must have as many tokens as q"),
    # heads or a batch: nothing tells, and codes for each sentence would spread over both
    (lambda: GRID_ROTARY(*[FOUR.expand(3, 4, 8)] * 2, coordinates=EACH), VALUE, r"\(4, 2\), got \(3, 4, 2\)"),
    (lambda: GRID_ROTARY(FOUR.expand(3, 2, 4, 8), FOUR.expand(1, 2, 4, 8), coordinates=EACH), VALUE,
     r"k must have the batch of q, 3, .* got \(1, 2, 4, 8\)"),
    # Attention
    (lambda: nn.AlibiAttention(8)(Q, Q, Q), VALUE, r"query must have shape \(batch, 8, n_q, d\)"),
    (lambda: A(Q[0], Q, Q), VALUE, r"query must have shape \(batch, heads, length"),
    (lambda: A(Q, Q[:, :3], Q[:, :3]), VALUE, "key must have shape .* dividing 4"),
    (lambda: A(Q, Q[..., :4], Q), VALUE, "key must have shape"),
    (lambda: A(Q, Q, Q[:, :, :3]), VALUE, r"value must have shape \(1, 4, 5, d_v\)"),
    (lambda: A(Q, Q[:, :, :3], Q[:, :, :3]), VALUE, "query must have at most"),
    (lambda: A(Q, Q.double(), Q), TYPE, "key must have the dtype of query"),
    (lambda: A(Q.long(), Q, Q), TYPE, "query must be a floating tensor, got"),
    (lambda: A(Q, Q, Q, mask=torch.zeros(5, 5)), TYPE, "mask must be a bool tensor"),
    (lambda: A(Q, Q, Q, mask=torch.zeros(1, 5) > 0), VALUE, r"\(5, 5\) or four axes .* got \(1, 5\)"),
    (lambda: nn.AlibiAttention(1, slopes=torch.tensor([1e5]))(*[Q[:, :1].half()] * 3), VALUE,
     "query and key must be float32 or bfloat16 for 5 keys and slopes up to 100000"),
    (lambda: nn.ShawAttention(4, 2)(None, T, T), TYPE, "query must be a floating tensor, got NoneType"),
    (lambda: nn.ForgetGate(8, 2)(torch.zeros(5, 7)), VALUE, r"x must have shape .*, 8\), got \(5, 7\)"),
    (lambda: nn.ForgetGate(8, 2)(ROWS.int()), TYPE, "x must be a floating tensor"),
    (lambda: COPE(ROWS[:, :7], ROWS), VALUE, r"query must have .*, 8\), got \(6, 7\)"),
    (lambda: COPE(ROWS, X), VALUE, "key must have shape"),
    (lambda: COPE(ROWS, ROWS.double()), TYPE, "key must have the dtype of query"),
    (lambda: COPE(ROWS, FOUR), VALUE, "n_q at most n_k"),
    (lambda: nn.RandomSigns()(T.float()), VALUE, r"vectors must have shape \(\.\.\., n, k\), got \(3,\)"),
    (lambda: nn.RandomSigns()(T[:, None]), TYPE, "vectors must be a floating tensor, got torch.int64"),
])  # fmt: skip


TAKES_OFFSET: dict[str, Callable[..., object]] = {
    "sinusoidal": lambda n, **options: CODES(X[:, :n], **options),
    "learned": lambda n, **options: LEARNED(X[:, :n], **options),
    "rotary": lambda n, **options: ROTARY(X[:, :n], X[:, :n], **options),
}


@pytest.mark.parametrize("name", TAKES_OFFSET)
def test_refused_offsets_and_positions(name: str) -> None:
    call = TAKES_OFFSET[name]
    with pytest.raises(ValueError, match=r"positions 0\.\.5 must lie in 0\.\.4: .* max_len=5"):
        call(6)
    with pytest.raises(ValueError, match=r"positions 3\.\.5 must lie"):
        call(3, offset=3)
    with pytest.raises(ValueError, match="offset must be at least 0, got -1"):
        call(3, offset=-1)
    for offset in (1.0, True, "1", None, torch.tensor(1)):
        with pytest.raises(TypeError, match="offset must be an int, got"):
            call(3, offset=offset)
    with pytest.raises(TypeError, match="positions must be a tensor, got list"):
        call(2, positions=[0, 1])
    with pytest.raises(ValueError, match=r"positions must have shape \(3,\).*, got \(2,\)"):
        call(3, positions=torch.arange(2))
    with pytest.raises(ValueError, match="offset must be 0 when positions are given, got 1"):
        call(3, positions=T, offset=1)


@pytest.mark.parametrize("layer", [CODES, LEARNED])
def test_refused_embeddings(layer: Any) -> None:
    for x, error, says in (
        (X[..., :6], ValueError, r"x must have shape .* got \(1, 6, 6\)"),
        (X[0, 0], ValueError, r"x must have shape .* got \(8,\)"),
        (X.long(), TypeError, r"x must be a floating tensor of embeddings, got torch\.int64"),
        ([[0.0]], TypeError, "x must be a floating tensor of embeddings, got list"),
    ):
        with pytest.raises(error, match=says):
            layer(x)


@pytest.mark.parametrize("given", LAYERS, ids=lambda given: given.function.__name__)
def test_a_layer_shows_how_it_was_made(given: Call) -> None:
    text = repr(given()[0])
    assert text.startswith(given.function.__name__ + "(")
    if given.function not in (nn.FireBias, nn.ForgetGate):  # which show the layers in them
        for name, value in given.arguments.items():
            shown = f"{value:g}" if isinstance(value, float) else value
            assert name == "slopes" or f"{name}={shown}" in text
