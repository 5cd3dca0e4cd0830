"""The encodings as torch layers: thin over the formulas of `posenc`. Needs torch (`posenc[torch]`)."""

from posenc.nn.alibi import AlibiAttention, AlibiBias
from posenc.nn.contextual import ContextualPositions, ForgetGate
from posenc.nn.graphs import RandomSigns
from posenc.nn.grids import GridEncoding, GridRotary
from posenc.nn.learned import LearnedEncoding
from posenc.nn.parallel import RingAttention
from posenc.nn.relative import FireBias, KerpleBias, RelativeBias, ShawAttention, T5Bias
from posenc.nn.rotary import RotaryEmbedding
from posenc.nn.sinusoidal import SinusoidalEncoding
from posenc.nn.times import TimeEncoding

__all__ = [
    "AlibiAttention",
    "AlibiBias",
    "ContextualPositions",
    "FireBias",
    "ForgetGate",
    "GridEncoding",
    "GridRotary",
    "KerpleBias",
    "LearnedEncoding",
    "RandomSigns",
    "RelativeBias",
    "RingAttention",
    "RotaryEmbedding",
    "ShawAttention",
    "SinusoidalEncoding",
    "T5Bias",
    "TimeEncoding",
]
