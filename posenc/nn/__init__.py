"""The encodings as torch layers: thin over the formulas of `posenc`. Needs torch (`posenc[torch]`)."""

from posenc.nn.learned import LearnedEncoding
from posenc.nn.rotary import Rotary
from posenc.nn.sinusoidal import SinusoidalEncoding

__all__ = ["LearnedEncoding", "Rotary", "SinusoidalEncoding"]
