"""Claims about number formats: positions, angles and masks in 16 bits, and codes that no reader can tell apart."""

import numpy as np
import torch

from posenc import integer_encoding, rbf_centers, rbf_encoding, sinusoidal_encoding, sinusoidal_frequencies
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.locality import gram_condition
from posenc.nn import RotaryEmbedding


@claim("only if", "precision.md#positions")
def positions_in_16_bits() -> Found:
    lost = {}
    for dtype in (torch.float16, torch.bfloat16):
        code = integer_encoding(6000, 1, dtype=dtype)[:, 0].double()
        lost[str(dtype).removeprefix("torch.")] = int((code != torch.arange(6000)).nonzero()[0])
    return found(min(lost.values()) > 200, max(lost.values()) < 6000, **lost)


@claim("false", "precision.md#positions")
def codes_from_16_bits() -> Found:
    t = torch.arange(2000).to(torch.bfloat16)
    angles = t[:, None] * torch.from_numpy(sinusoidal_frequencies(64)).to(torch.bfloat16)
    distinct = len(torch.unique(torch.cat([angles.sin(), angles.cos()], dim=1), dim=0))
    right = len(torch.unique(sinusoidal_encoding(2000, 64, dtype=torch.float32).bfloat16(), dim=0))
    return found(distinct == 2000, distinct=distinct, once=right)


@claim("only if", "precision.md#rotary")
def rotary_in_bfloat16() -> Found:
    omega = torch.from_numpy(sinusoidal_frequencies(128))
    exact = (10_000 * omega).cos()
    low = (torch.tensor(10_000.0).bfloat16() * omega.bfloat16()).cos().double()
    once = exact.bfloat16().double()
    layer = RotaryEmbedding(128, max_len=10_001).to(torch.bfloat16)
    ones = torch.zeros(1, 1, 1, 128, dtype=torch.bfloat16)
    ones[..., 0::2] = 1  # turned, its first columns are the cosines
    kept = layer(ones, ones, positions=torch.tensor([10_000]))[0][0, 0, 0, 0::2].double()
    errors = [(x - exact).abs().max().item() for x in (low, once, kept)]
    return found(max(errors[1:]) < 0.01, errors[0] > 1, low=errors[0], once=errors[1])


@claim("only if", "precision.md#decimals")
def float32_angles() -> Found:
    omega = torch.from_numpy(sinusoidal_frequencies(128))
    errors = []
    for position in (5000.0, 1e8):
        exact = (position * omega).cos()
        errors.append(((torch.tensor(position) * omega.float()).cos() - exact).abs().max().item())
    return found(errors[0] < 0.001, errors[1] > 1, near=errors[0], far=errors[1])


@claim("only if", "precision.md#masks")
def large_negative_number() -> Found:
    scores = torch.tensor([1.0, 2.0, 0.5, 0.5])
    hidden = torch.softmax(scores + torch.tensor([0, 0, -1e9, -1e9]), dim=0)[2:].sum().item()
    empty = torch.softmax(scores - 1e9, dim=0)[2:].sum().item()
    small = torch.softmax(scores + torch.tensor([0, 0, -10.0, -10.0]), dim=0)[2:].sum().item()
    return found(hidden == 0, empty > 0.1, empty=empty, small=small)


@claim("only if", "locality.md#condition")
def wide_bumps() -> Found:
    condition = {}
    for name, sigma in (("narrow", 0.5), ("usual", 1.5)):
        codes = rbf_encoding(101, rbf_centers(101, sigma, spacing=0.5), sigma)
        condition[name] = np.log10(gram_condition(codes))
    wide = rbf_encoding(101, rbf_centers(101, 4.0, spacing=0.5), 4.0)
    strengths = np.linalg.svd(wide, compute_uv=False)
    usable = (strengths > 1e-6 * strengths[0]).sum()
    return found(condition["narrow"] < 3, usable < 101, usable=usable, **condition)
