"""What wrong frequencies are: usual mistakes, each with the sentence that names it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from posenc.rotary import LayerRotation, from_config
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = ["frequency_cause", "sizes"]

_THE = "the frequencies are those of"
# Pairs of fields that are exchanged easily.
_EXCHANGED = (
    ("low_freq_factor", "high_freq_factor"),
    ("beta_fast", "beta_slow"),
    ("short_factor", "long_factor"),
)
_BASES = (1e4, 1e5, 1.6e5, 2.5e5, 5e5, 1e6, 5e6, 8e6, 1e7)
_LENGTHS = ("original_max_position_embeddings", "max_position_embeddings", "sliding_window")


def frequency_cause(
    text: Any, length: int, kind: str, found: np.ndarray, fits: Callable[[np.ndarray], bool]
) -> str:
    """The first of the usual mistakes whose frequencies fit; "" if none does.

    Args:
        text: the configuration.
        length: tokens of the present text.
        kind: which kind of layer it is, as `posenc.rotary.from_config` calls it.
        found: frequencies as they were measured, shape (pairs,); whole turns may be lost.
        fits: whether frequencies are the ones that were found.
    """
    right = from_config(text, length=length).kinds[kind]
    base, method, meant = right.base, right.method, sizes(right)
    with np.errstate(all="ignore"):
        for says, omega in _guesses(text, length, kind):
            if omega.shape == found.shape and bool(np.isfinite(omega).all()) and fits(omega):
                return says
    if meant.shape != found.shape or not (found > 0).all():
        return ""
    m, with_scaling = len(found), f" with {method} scaling" * (method != "default")
    of = f", and by the configuration of base {base:g}{with_scaling}"
    ratios = found / meant
    for times in (float(np.median(ratios)), float(ratios[-1])):
        if fits(times * meant):
            return f"all frequencies, or positions, are multiplied by {times:.4g}"
    if m > 1:
        steps = (found[0] / found[1:]) ** (m / np.arange(1, m))
        for other in (float(f"{step:.{digits}g}") for step in steps[steps > 1] for digits in (2, 4, 8)):
            if fits(sinusoidal_frequencies(2 * m, other)):
                return f"{_THE} base {other:g}{of}"
            if fits(found[0] * sinusoidal_frequencies(2 * m, other)):
                return f"{_THE} base {other:g}, multiplied by {found[0]:.4g}{of}"
    return ""


def sizes(how: LayerRotation) -> np.ndarray:
    """Frequencies without their sign, which belongs to the function that turns; by axes, that of each pair's own."""
    return np.atleast_2d(np.abs(np.asarray(how.frequencies))).max(axis=0)


def _guesses(text: Any, length: int, kind: str) -> Iterator[tuple[str, np.ndarray]]:
    """Each mistake with the frequencies that it gives, the more exact ones first."""
    fields: dict[str, Any] = text.to_dict()
    config = from_config(fields, length=length)
    right = config.kinds[kind]
    meant, base, m = sizes(right), right.base, right.rotary_dim
    plain, pairs = sinusoidal_frequencies(m, base), np.arange(m // 2)
    for name, other in config.kinds.items():
        if name != kind and other.frequencies is not None:
            yield f"{_THE} {name} layers", sizes(other)
    for some, says in ((1, "texts of up to"), (2**20, "texts of more than")):
        other = from_config(fields, length=some).kinds[kind]
        if other.method == "longrope" and not np.array_equal(sizes(other), meant):
            yield f"{_THE} {says} {config.trained_length} tokens", sizes(other)
    scaled = right.method != "default"
    if scaled:
        yield f"{_THE} base {base:g} without the scaling", plain
    for other_base in _BASES:
        if other_base != base:
            without = ", without the scaling" * scaled
            yield f"{_THE} base {other_base:g}, not {base:g}{without}", sinusoidal_frequencies(m, other_base)
    if scaled:
        share = meant / plain
        yield f"the {right.method} scaling is applied twice to the frequencies", share * meant
        yield (
            f"the {right.method} scaling of the frequencies is inverse: multiplied by what they must be divided by",
            (plain / share),
        )
        low = float(share.min())
        yield (
            f"the ramp of the {right.method} scaling is reversed: what must stay is scaled, and the other way round",
            plain * (1 + low - share),
        )
        for stays, says in ((share > low * 1.001, "not at all"), (share > 0.999, "whole")):
            exchanged = ", as with low_freq_factor and high_freq_factor exchanged" * (
                right.method == "llama3" and says == "whole"
            )
            between = f"frequencies between its bounds are scaled {says}{exchanged}"
            yield (
                f"the {right.method} scaling has no smooth part: {between}",
                np.where(stays, plain, low * plain),
            )
    yield from _read_otherwise(fields, length, kind)
    yield "the frequencies stand in the opposite order", meant[::-1]
    if m < right.dim:
        says = "the frequencies are spread over the whole head, not over the columns that are turned"
        yield says, sinusoidal_frequencies(right.dim, base)[: m // 2]
    for says, exponents in (
        (f"−i/{m}, half of −2i/{m}", pairs / m),
        (f"−4i/{m}, twice −2i/{m}", 4 * pairs / m),
        (f"divided by {m} − 2, not by {m}", 2 * pairs / max(m - 2, 1)),
        ("counted from 1, not from 0", 2 * (pairs + 1) / m),
    ):
        yield f"the exponents of the frequencies are {says}", base**-exponents
    for name, width in fields.items():
        if isinstance(width, int) and width > 1 and width != m and width % 2 == 0:
            yield (
                f"the exponents of the frequencies are divided by {width}, as {name}, not by {m}",
                base ** (-2 * pairs / width),
            )
    yield (
        "the frequencies have the wrong sign in their exponents: positions are multiplied by the wavelength",
        1 / meant,
    )
    yield "the frequencies are all 1", np.ones_like(meant)
    for times, says in (
        (2.0, "turned twice, or by two times the position: the frequencies are multiplied by 2"),
        (0.5, "turned by half the position: the frequencies are multiplied by 0.5"),
        (2 * math.pi, "the frequencies are multiplied by 2π, 6.283"),
        (1 / (2 * math.pi), "the frequencies are divided by 2π, 6.283"),
        (180 / math.pi, "angles are in degrees: the frequencies are multiplied by 57.3"),
        (math.pi / 180, "angles are taken for degrees: the frequencies are multiplied by 0.01745"),
    ):
        yield says, times * meant


def _read_otherwise(fields: dict[str, Any], length: int, kind: str) -> Iterator[tuple[str, np.ndarray]]:
    """What follows from a configuration of which something is read otherwise."""
    whole = fields.get("rope_parameters") or {}
    own: dict[str, Any] = whole.get(kind, whole)

    def read(**changes: Any) -> Iterator[np.ndarray]:
        changed = copy.deepcopy(fields)
        held = changed.get("rope_parameters") or {}
        held = held.get(kind, held)
        outside = changed.get("original_max_position_embeddings")
        held.update(changes)
        if outside is not None and "original_max_position_embeddings" in changes:
            changed["original_max_position_embeddings"] = changes["original_max_position_embeddings"]
        with suppress(TypeError, ValueError, KeyError, ZeroDivisionError, OverflowError, FloatingPointError):
            omega = from_config(changed, length=length).kinds[kind].frequencies
            if omega is not None:
                yield np.abs(omega)

    method, factor = str(own.get("rope_type", "default")), own.get("factor")
    if method == "yarn":
        with suppress(TypeError, ValueError, KeyError):
            yield f"{_THE} beta_fast and beta_slow exchanged", _ramp_of_exchanged(fields, length, kind, own)
    for first, second in _EXCHANGED:
        if first in own and second in own:
            for omega in read(**{first: own[second], second: own[first]}):
                yield f"{_THE} {first} and {second} exchanged", omega
    if factor:
        if method != "linear":
            for omega in read(rope_type="linear"):
                yield f"{_THE} linear scaling by {factor:g}, and the configuration has {method}", omega
        for omega in read(rope_type="dynamic", alpha=factor):
            yield f"{_THE} NTK scaling by {factor:g}, and the configuration has {method}", omega
    else:
        for name, others in whole.items():  # the scaling of another kind of layer
            if isinstance(others, dict) and others is not own and others.get("factor"):
                changes = {key: each for key, each in others.items() if key != "rope_theta"}
                for omega in read(**changes):
                    scaling = f"the {others.get('rope_type')} scaling by {others['factor']:g}"
                    yield (
                        f"{_THE} {scaling} of {name} layers, which {kind} layers have not",
                        omega,
                    )
    lengths = {float(fields[name]): name for name in _LENGTHS if isinstance(fields.get(name), int)}
    usual: dict[str, dict[float, str]] = {
        "rope_theta": dict.fromkeys(_BASES, ""),
        "original_max_position_embeddings": lengths | dict.fromkeys((2048.0, 4096.0, 8192.0), ""),
        "factor": {},
        "low_freq_factor": {1.0: ""}, "high_freq_factor": {4.0: ""},
        "beta_fast": {32.0: ""}, "beta_slow": {1.0: ""},
    }  # fmt: skip
    for name, values in usual.items():
        if not isinstance(has := own.get(name), int | float) or isinstance(has, bool):
            continue
        times = () if name == "rope_theta" else (2, 0.5, 4, 0.25)
        for value in (*values, *(has * each for each in times)):
            value = int(value) if name.startswith("original") else float(value)
            for omega in read(**{name: value}) if value != has and value > 0 else ():
                source = f", as {values[value]}" if values.get(value) else ""
                base = f"base {value:g}" if name == "rope_theta" else f"{name} {value:g}{source}"
                yield f"{_THE} {base}, and the configuration has {has:g}", omega
    if method == "yarn":
        follows = bool(own.get("truncate", True))
        for omega in read(truncate=not follows):
            yield f"the bounds of the ramp of YaRN are {'not ' * follows}rounded (truncate)", omega
        for name, value in (("beta_fast", 32.0), ("beta_slow", 1.0)):
            if not own.get(name):
                continue
            for omega in read(**{name: value}):
                yield f"{_THE} {name} {value:g}, and the configuration has {own[name]:g}", omega


def _ramp_of_exchanged(fields: dict[str, Any], length: int, kind: str, own: dict[str, Any]) -> np.ndarray:
    """YaRN whose ramp begins where it must end, which `posenc.rotary.yarn_frequencies` refuses."""
    how = from_config(fields, length=length).kinds[kind]
    m, trained = how.rotary_dim, own["original_max_position_embeddings"]
    ends = [
        m * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(how.base))
        for turns in (own.get("beta_slow") or 1.0, own.get("beta_fast") or 32.0)
    ]
    if own.get("truncate", True):
        ends = [math.floor(ends[0]), math.ceil(ends[1])]
    low, high = max(ends[0], 0), min(ends[1], m - 1)
    ramp = np.clip((np.arange(m // 2) - low) / (high - low or 0.001), 0, 1)
    plain = sinusoidal_frequencies(m, how.base)
    return np.asarray(plain * (1 - ramp) + plain / own["factor"] * ramp)
