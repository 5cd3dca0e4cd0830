"""Claims about the sinusoidal code itself, and slips that are copied from text to text."""

import numpy as np

from posenc import shift_matrix, sinusoidal_encoding, sinusoidal_frequencies, sinusoidal_wavelengths
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.shift import sine_only_encoding, toeplitz_spread
from posenc.sinusoidal import code_distance, decode_position


@claim("false", "sinusoidal.md#formula")
def pair_index() -> Found:
    angles = np.arange(2000)[:, None] * 10000.0 ** (-np.arange(8) / 8)
    codes = np.where(np.arange(8) % 2, np.cos(angles), np.sin(angles))
    lengths = np.linalg.norm(codes, axis=1)
    usual = np.linalg.norm(sinusoidal_encoding(2000, 8), axis=1).mean()
    return found(np.ptp(lengths) < 1e-9, low=lengths.min(), high=lengths.max(), usual=usual)


@claim("false", "sinusoidal.md#wavelengths")
def longest_wavelength() -> Found:
    longest, said = sinusoidal_wavelengths(512)[-1], 10000 * 2 * np.pi
    return found(abs(longest / said - 1) < 0.01, longest=longest, said=said)


@claim("false", "sinusoidal.md#formula")
def multiplied() -> Found:
    omega = sinusoidal_frequencies(512)
    divided, wrong = np.cos(omega).mean(), np.cos(1 / omega).mean()
    return found(wrong > 0.9, divided=divided, multiplied=wrong, turns=1 / omega[-1] / (2 * np.pi))


@claim("only if", "shift.md#false")
def reversed_pairs() -> Found:
    codes = sinusoidal_encoding(100, 64)
    turned = codes.reshape(100, 32, 2)[:, ::-1].reshape(100, 64)
    products = codes @ codes.T
    both, one = (np.abs(x @ turned.T - products).max() for x in (turned, codes))
    return found(both < 1e-9, one > 1, apart=one, most=products.max())


@claim("false", "sinusoidal.md#which-width")
def other_width() -> Found:
    apart = np.abs(sinusoidal_encoding(6, 64)[:, :4] - sinusoidal_encoding(6, 4)).max()
    return found(apart < 0.005, apart=apart)


@claim("false", "sinusoidal.md#unique")
def unique_for_63000() -> Found:
    nearest, neighbours = code_distance(np.arange(1, 200_000), 64).min(), code_distance([1], 64)[0]
    narrow = code_distance(np.arange(1, 5000), 4).min()
    return found(nearest < 0.9 * neighbours, nearest=nearest, narrow=narrow)


@claim("only if", "shift.md#aliasing")
def repeats_after_longest() -> Found:
    wave = round(float(sinusoidal_wavelengths(512)[-1]))
    pair = 2 * abs(np.sin(sinusoidal_frequencies(512)[-1] * wave / 2))
    apart, narrow = code_distance([wave], 512)[0], code_distance([44], 2)[0]
    two = code_distance([1885], 4)[0]  # three times the longest wavelength of two pairs
    right = narrow < 0.02 and two < 0.05
    return found(right, apart > 10, back=wave, pair=pair, apart=apart, narrow=narrow, two=two)


@claim("false", "sinusoidal.md#period")
def code_is_periodic() -> Found:
    far = code_distance(np.arange(100, 100_001), 64).min()
    return found(far < 0.1, far=far)


@claim("only if", "sinusoidal.md#unique")
def found_by_its_code() -> Found:
    rng, right = np.random.default_rng(0), {}
    for dim in (2, 4, 16):
        codes = sinusoidal_encoding(2000, dim)
        noisy = codes + rng.normal(0, 0.1, codes.shape)
        right[f"dim_{dim}"] = np.mean(decode_position(noisy, 2000) == np.arange(2000))
    return found(right["dim_16"] == 1, right["dim_4"] < 0.5, **right)


@claim("true", "sinusoidal.md#bounded")
def bounded() -> Found:
    codes = sinusoidal_encoding(10_000, 512)
    top, lengths = np.abs(codes).max(), np.linalg.norm(codes, axis=1)
    return found(top <= 1 and np.ptp(lengths) < 1e-9, length=lengths[0])


@claim("only if", "sinusoidal.md#constant-step")
def neighbours_change_little() -> Found:
    narrow, wide = (code_distance([1], dim)[0] / (dim / 2) ** 0.5 for dim in (4, 512))
    return found(wide < 0.25, narrow > 0.5, narrow=narrow, wide=wide)


@claim("true", "sinusoidal.md#clocks")
def fast_is_fine() -> Found:
    omega = sinusoidal_frequencies(512)
    fast, slow = omega[0], omega[-1]
    return found(fast > 1000 * slow, fast=fast, slow=slow)


@claim("false", "sinusoidal.md#false")
def cosines_alone() -> Found:
    codes = sinusoidal_encoding(100, 64)
    alone, both = (float(toeplitz_spread(c @ c.T)) for c in (codes[:, 1::2], codes))
    return found(alone < 1e-9, both < 1e-9 < alone, alone=alone)


@claim("false", "shift.md#sine-only")
def sines_alone() -> Found:
    missed = []
    for encoding in (sine_only_encoding, sinusoidal_encoding):
        start, end = encoding(np.arange(1000), 64), encoding(np.arange(5, 1005), 64)
        best = np.linalg.lstsq(start, end, rcond=1e-10)[0]
        missed.append(float(np.sqrt(((start @ best - end) ** 2).mean())))
    return found(missed[0] < 1e-6, missed[0] > 0.1 > missed[1], alone=missed[0], both=missed[1])


@claim("true", "shift.md#same-turn")
def one_rotation() -> Found:
    codes = sinusoidal_encoding(5000, 512)
    return found(np.abs(codes[:-3] @ shift_matrix(3, 512).T - codes[3:]).max() < 1e-9)


@claim("only if", "shift.md#longer")
def fitted_shift_holds() -> Found:
    codes = sinusoidal_encoding(300, 64)
    fitted = np.linalg.lstsq(codes[:61], codes[3:64], rcond=1e-6)[0]
    near, far = (np.linalg.norm(codes[t] @ fitted - codes[t + 3]) for t in (30, 128))
    exact = np.linalg.norm(codes[128] @ shift_matrix(3, 64).T - codes[131])
    return found(exact < 1e-9, far > 1, near=near, far=far)
