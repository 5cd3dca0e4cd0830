"""Faults in what is computed from a configuration: frequencies, rotations, scales, slopes and buckets.

Each plant is one line of a table: the model, what is wrong in it, and words that the first line must have.
"""

import copy
import inspect
import math
import textwrap
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest
import torch

from tests.peers import modeling
from tests.posenc.peers.faulty import Faults, made, scaled
from tests.posenc.peers.small import LONG, SHARES, causal

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow

YARN = {
    "rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": 64,
    "beta_fast": 8.0, "beta_slow": 1.0,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}  # fmt: skip
LINEAR = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
DYNAMIC = {"rope_type": "dynamic", "rope_theta": 1e4, "factor": 4.0}
KINDS = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
    "full_attention": {"rope_type": "linear", "rope_theta": 1e6, "factor": 8.0},
}
# Models, by a short name: model_type and fields.
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama3": ("llama", {"rope_parameters": LLAMA3}),
    "yarn": ("qwen2", {"rope_parameters": YARN}),
    "linear": ("llama", {"rope_parameters": LINEAR}),
    "dynamic": ("llama", {"rope_parameters": DYNAMIC, "max_position_embeddings": 16}),
    "yarn512": ("qwen2",
        {"rope_parameters": YARN | {"original_max_position_embeddings": 512}, "max_position_embeddings": 4096}),
    "long": ("phi3", {"original_max_position_embeddings": 128, "rope_parameters": LONG}),
    "share": ("stablelm", {"rope_parameters": SHARES}),
    "neox": ("gpt_neox", {"rope_parameters": SHARES}),
    "qwen3": ("qwen3", {"head_dim": 16}),
    "olmo2": ("olmo2", {}),
    "cohere": ("cohere", {}),
    "mistral": ("mistral", {"sliding_window": None, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "gemma3": ("gemma3_text", {
        "num_hidden_layers": 4, "head_dim": 16, "sliding_window": 16, "rope_parameters": KINDS,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
    }),
    "gemma2": ("gemma2", {"head_dim": 16, "query_pre_attn_scalar": 24, "sliding_window": 16}),
    "phi": ("phi", {"rope_parameters": SHARES, "resid_pdrop": 0.0}),
    "gptj": ("gptj", {"rotary_dim": 8, "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 512, "n_inner": 96}),
    "codegen": ("codegen",
        {"rotary_dim": 8, "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 512, "n_ctx": 512}),
    "smollm3": ("smollm3", {"num_hidden_layers": 4, "no_rope_layers": [1, 0, 1, 1]}),
}  # fmt: skip


def model_of(short: str) -> Any:
    name, fields = MODELS[short]
    return causal(name, **fields)


def part(short: str, ending: str) -> tuple[Any, Any]:
    """The module of a model, and its class with this end of a name."""
    home = modeling(MODELS[short][0].removesuffix("_text"))
    return home, next(
        each for name, each in vars(home).items() if name.endswith(ending) and "Vision" not in name
    )


def configured(patch: Patch, short: str, change: Callable[[Any], Any]) -> Any:
    """Its rotary embedding reads another configuration."""
    _, owner = part(short, "RotaryEmbedding")
    begin = owner.__init__

    def faulty(self: Any, config: Any, *given: Any, **more: Any) -> None:
        config = copy.deepcopy(config)
        change(config)
        begin(self, config, *given, **more)

    patch.setattr(owner, "__init__", faulty)
    return model_of(short)


def rope(patch: Patch, short: str, kind: str = "", **fields: Any) -> Any:
    """Its rotary embedding reads other fields of rope_parameters."""

    def change(config: Any) -> None:
        held = config.rope_parameters
        (held[kind] if kind else held).update(fields)

    return configured(patch, short, change)


def frequencies(patch: Patch, short: str, change: Callable[[Any], Any]) -> Any:
    """The buffer is right, and forward takes something else in its place."""
    _, owner = part(short, "RotaryEmbedding")
    forward = owner.forward

    def faulty(self: Any, *given: Any, **more: Any) -> Any:
        held, self.inv_freq = self.inv_freq, change(self.inv_freq)
        try:
            return forward(self, *given, **more)
        finally:
            self.inv_freq = held

    patch.setattr(owner, "forward", faulty)
    return model_of(short)


def angles(patch: Patch, short: str, change: Callable[..., Any]) -> Any:
    """Cosines and sines are changed after they were made."""
    _, owner = part(short, "RotaryEmbedding")
    forward = owner.forward

    def faulty(self: Any, x: Any, position_ids: Any, *given: Any, **more: Any) -> Any:
        cos, sin = forward(self, x, position_ids, *given, **more)
        return change(self, cos, sin)

    patch.setattr(owner, "forward", faulty)
    return model_of(short)


def placed(patch: Patch, short: str, change: Callable[[Any], Any]) -> Any:
    """Positions are changed before angles are made of them."""
    _, owner = part(short, "RotaryEmbedding")
    forward = owner.forward
    patch.setattr(
        owner,
        "forward",
        lambda self, x, position_ids, *g, **m: forward(self, x, change(position_ids), *g, **m),
    )
    return model_of(short)


def turned(patch: Patch, short: str, change: Callable[..., Any]) -> Any:
    """Queries and keys are turned otherwise."""
    home, _ = part(short, "RotaryEmbedding")
    usual = home.apply_rotary_pos_emb
    patch.setattr(
        home,
        "apply_rotary_pos_emb",
        lambda q, k, cos, sin, *g, **m: change(partial(usual, *g, **m), q, k, cos, sin),
    )
    return model_of(short)


def in_layers(patch: Patch, short: str, layers: set[int], change: Callable[..., Any]) -> Any:
    """Some layers are given other cosines and sines: change(model, layer, cos, sin)."""
    _, owner = part(short, "Attention")
    forward = owner.forward

    def faulty(
        self: Any, hidden_states: Any, position_embeddings: Any = None, *given: Any, **more: Any
    ) -> Any:
        if self.layer_idx in layers:
            position_embeddings = change(*position_embeddings)
        return forward(self, hidden_states, position_embeddings, *given, **more)

    patch.setattr(owner, "forward", faulty)
    return model_of(short)


def both(change: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda _self, cos, sin: (change(cos), change(sin))


def by_kind(patch: Patch, short: str, change: Callable[[str], str]) -> Any:
    _, owner = part(short, "RotaryEmbedding")
    forward = owner.forward
    patch.setattr(owner, "forward", lambda self, x, at, kind: forward(self, x, at, change(kind)))
    return model_of(short)


def neighbours(x: Any) -> Any:
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def interleaved(x: Any, cos: Any, sin: Any, sign: int = 1) -> Any:
    cos, sin = (each[:, None, :, : each.shape[-1] // 2].repeat_interleave(2, -1) for each in (cos, sin))
    return x * cos + sign * neighbours(x) * sin


def halves(x: Any, cos: Any, sin: Any, back: Any = 1) -> Any:
    a, b = x.chunk(2, -1)
    return x * cos[:, None] + back * torch.cat((-b, a), -1) * sin[:, None]


def each_by(turn: Callable[..., Any], q: Any, k: Any, cos: Any, sin: Any) -> Any:
    return turn(q, cos, sin), turn(k, cos, sin)


def halves_of_neighbours(x: Any, cos: Any, sin: Any) -> Any:
    cos, sin = (torch.cat([each[..., ::2]] * 2, -1) for each in (cos, sin))
    return halves(x, cos, sin)


def without_sign(x: Any, cos: Any, sin: Any) -> Any:
    return x * cos[:, None] + torch.cat(x.chunk(2, -1)[::-1], -1) * sin[:, None]


def first_columns(x: Any, cos: Any, sin: Any) -> Any:
    cos, sin = (torch.cat([each[..., :4]] * 2, -1) for each in (cos, sin))
    return torch.cat((halves(x[..., :8], cos, sin), x[..., 8:]), -1)


def last_columns(_usual: Any, q: Any, k: Any, cos: Any, sin: Any) -> Any:
    m = cos.shape[-1]
    return tuple(torch.cat((x[..., :-m], halves(x[..., -m:], cos, sin)), -1) for x in (q, k))


def some_heads(usual: Any, q: Any, k: Any, cos: Any, sin: Any) -> Any:
    wrong = usual(q, k, cos, -sin)
    right = usual(q, k, cos, sin)
    return torch.cat((right[0][:, :2], wrong[0][:, 2:]), 1), torch.cat((right[1][:, :1], wrong[1][:, 1:]), 1)


def attended(patch: Patch, short: str, change: Callable[..., Any]) -> Any:
    """What is given to the function of attention is changed: change(module, q, k, more) gives q, k."""
    home, _ = part(short, "RotaryEmbedding")
    usual = home.eager_attention_forward

    def faulty(module: Any, q: Any, k: Any, v: Any, mask: Any, **more: Any) -> Any:
        q, k = change(module, q, k, more)
        return usual(module, q, k, v, mask, **more)

    patch.setattr(home, "eager_attention_forward", faulty)
    model = model_of(short)
    for each in model.modules():
        if hasattr(each, "config"):
            each.config._attn_implementation = "eager"
    return model


COUNT, I8 = count(), torch.arange(8) / 8
B = "the frequencies are those of base "
PLANTS: dict[str, tuple[str, Callable[[Patch], Any]]] = {
    # -- frequencies
    "base of the class": (B + "10000", lambda p: rope(p, "mistral", rope_theta=1e4)),
    "another base": (B + "500000", lambda p: rope(p, "llama", rope_theta=5e5)),
    "another base in forward": (B + "1e+06", lambda p: frequencies(p, "llama", lambda f: 1e6 ** -(I8))),
    "exponent i/d": ("half of −2i/16", lambda p: frequencies(p, "llama", lambda f: 1e4 ** -(I8 / 2))),
    "exponent 4i/d": ("twice −2i/16", lambda p: frequencies(p, "llama", lambda f: 1e4 ** -(2 * I8))),
    "divided by d - 2": ("divided by 16 − 2",
        lambda p: frequencies(p, "llama", lambda f: 1e4 ** -(torch.arange(8) / 7))),
    "counted from 1": ("counted from 1, not from 0",
        lambda p: frequencies(p, "llama", lambda f: 1e4 ** -((torch.arange(8) + 1) / 8))),
    "divided by the width of the model": ("divided by 64, as hidden_size, not by 16",
        lambda p: frequencies(p, "llama", lambda f: 1e4 ** -(torch.arange(0, 16, 2) / 64))),
    "spread over the head": ("spread over the whole head",
        lambda p: frequencies(p, "share", lambda f: 1e4 ** -(torch.arange(0, 8, 2) / 16))),
    "all equal": ("are all 1", lambda p: frequencies(p, "llama", torch.ones_like)),
    "opposite order": ("in the opposite order", lambda p: frequencies(p, "llama", lambda f: f.flip(0))),
    "times 2 pi": ("6.283", lambda p: frequencies(p, "llama", lambda f: 2 * math.pi * f)),
    "inverse": ("multiplied by the wavelength", lambda p: frequencies(p, "llama", lambda f: 1 / f)),
    # -- scaling
    "linear left out": ("without the scaling", lambda p: rope(p, "linear", rope_type="default")),
    "linear twice": ("scaling is applied twice", lambda p: frequencies(p, "linear", lambda f: f / 4)),
    "linear inverse": ("scaling of the frequencies is inverse", lambda p: frequencies(p, "linear", lambda f: f * 16)),
    "linear as a base": ("base 40000, and by the configuration of base 10000",
        lambda p: frequencies(p, "linear", lambda f: 4e4 ** -(I8))),
    "dynamic left out": ("without the scaling", lambda p: rope(p, "dynamic", rope_type="default")),
    "llama3 left out": ("without the scaling", lambda p: rope(p, "llama3", rope_type="default")),
    "llama3 as linear": ("linear", lambda p: rope(p, "llama3", rope_type="linear")),
    "llama3 swapped": ("low_freq_factor and high_freq_factor exchanged",
        lambda p: rope(p, "llama3", low_freq_factor=4.0, high_freq_factor=1.0)),
    "llama3 other length": ("original_max_position_embeddings",
        lambda p: rope(p, "llama3", original_max_position_embeddings=512)),
    "llama3 twice": ("scaling is applied twice", lambda p: frequencies(p, "llama3", lambda f: f * f * 1e4 ** (I8))),
    "llama3 not smooth": ("no smooth part",
        lambda p: frequencies(p, "llama3", lambda f: torch.where(f * 1e4 ** (I8) < 0.999, 1e4 ** -(I8) / 8, f))),
    "yarn left out": ("without the scaling", lambda p: rope(p, "yarn", rope_type="default")),
    "yarn frequencies as linear": ("linear", lambda p: rope(p, "yarn", rope_type="linear")),
    "yarn betas swapped": ("beta_fast and beta_slow exchanged",
        lambda p: rope(p, "yarn", beta_fast=1.0, beta_slow=8.0)),
    "yarn default betas": ("beta_fast 32, and the configuration has 8", lambda p: rope(p, "yarn512", beta_fast=32.0)),
    "yarn other length": ("original_max_position_embeddings",
        lambda p: rope(p, "yarn", original_max_position_embeddings=512)),
    "yarn ramp reversed": ("the ramp of the yarn scaling is reversed",
        lambda p: frequencies(p, "yarn", lambda f: 1e4 ** -(I8) * 1.125 - f)),
    "yarn not truncated": ("truncate", lambda p: rope(p, "yarn", truncate=False)),
    "longrope lists swapped": ("those of texts of more than 128 tokens",
        lambda p: rope(p, "long", short_factor=LONG["long_factor"], long_factor=LONG["short_factor"])),
    "longrope left out": ("without the scaling", lambda p: rope(p, "long", rope_type="default")),
    # -- the factor of cosines and sines
    "yarn factor left out": ("without the factor 1.208",
        lambda p: angles(p, "yarn", lambda s, c, n: (c / s.attention_scaling, n / s.attention_scaling))),
    "yarn factor twice": ("factor 1.208 of the configuration twice",
        lambda p: angles(p, "yarn", lambda s, c, n: (c * s.attention_scaling, n * s.attention_scaling))),
    "yarn factor on queries only": ("keys: cos and sin without the factor 1.208",
        lambda p: turned(p, "yarn", lambda u, q, k, c, s: (u(q, k, c, s)[0], u(q, k, c, s)[1] / 1.2079))),
    "yarn factor on cosines only": ("the sines lack the factor 1.208",
        lambda p: angles(p, "yarn", lambda s, c, n: (c, n / s.attention_scaling))),
    "a factor that nobody said": ("1.208", lambda p: angles(p, "llama", both(lambda x: 1.2079 * x))),
    "longrope factor left out": ("without the factor",
        lambda p: angles(p, "long", lambda s, c, n: (c / s.attention_scaling, n / s.attention_scaling))),
    "yarn factor on scores too": ("the factor 1.208 of cos and sin is there besides, squared",
        lambda p: attended(p, "yarn", lambda m, q, k, more: (more.update(scaling=m.scaling * 1.2079**2), (q, k))[1])),
    # -- kinds of layers
    "local base in full layers": ("sliding_attention layers",
        lambda p: by_kind(p, "gemma3", lambda _: "sliding_attention")),
    "global base in sliding layers": ("full_attention layers",
        lambda p: by_kind(p, "gemma3", lambda _: "full_attention")),
    "kinds exchanged": ("layers 1, 3: the frequencies are those of sliding_attention layers",
        lambda p: by_kind(p, "gemma3",
            lambda kind: {"sliding_attention": "full_attention", "full_attention": "sliding_attention"}[kind])),
    "scaling in sliding layers": ("the linear scaling by 8 of full_attention layers",
        lambda p: rope(p, "gemma3", "sliding_attention", rope_type="linear", factor=8.0)),
    "scaling not in full layers": ("without the scaling",
        lambda p: rope(p, "gemma3", "full_attention", rope_type="default")),
    "full layers have the local base with scaling": (B + "10000",
        lambda p: rope(p, "gemma3", "full_attention", rope_theta=1e4)),
    # -- the rotation
    "turned back": ("the other way", lambda p: angles(p, "llama", lambda _, c, s: (c, -s))),
    "cos and sin exchanged": ("cos and sin are exchanged", lambda p: angles(p, "llama", lambda _, c, s: (s, c))),
    "interleaved": ("pairs are interleaved",
        lambda p: turned(p, "llama", lambda _u, q, k, c, s: (interleaved(q, c, s), interleaved(k, c, s)))),
    "halves in cohere": ("pairs are half",
        lambda p: turned(p, "cohere",
            lambda _u, q, k, c, s: each_by(halves_of_neighbours, q, k, c, s))),
    "interleaved queries": ("queries: layout interleaved; keys: layout half",
        lambda p: turned(p, "llama", lambda u, q, k, c, s: (interleaved(q, c, s), u(q, k, c, s)[1]))),
    "keys back": ("turned the other way",
        lambda p: turned(p, "llama", lambda u, q, k, c, s: (u(q, k, c, s)[0], u(q, k, c, -s)[1]))),
    "keys not turned": ("keys: not turned", lambda p: turned(p, "llama", lambda u, q, k, c, s: (u(q, k, c, s)[0], k))),
    "queries turned twice": ("queries: layout half, 2 radians a position, so turned twice",
        lambda p: turned(p, "llama", lambda u, q, k, c, s: (u(*u(q, k, c, s), c, s)[0], u(q, k, c, s)[1]))),
    "both turned twice": ("turned twice", lambda p: turned(p, "llama", lambda u, q, k, c, s: u(*u(q, k, c, s), c, s))),
    "rotate_half without its sign": ("has lost its minus sign",
        lambda p: turned(p, "llama",
            lambda _u, q, k, c, s: each_by(without_sign, q, k, c, s))),
    "rotate_half has the sign at the other half": ("the other way",
        lambda p: turned(p, "llama", lambda u, q, k, c, s: tuple(halves(x, c, s, -1) for x in (q, k)))),
    "some heads back": ("heads 2, 3", lambda p: turned(p, "llama", some_heads)),
    "last columns": ("the last 8 columns are turned, not the first", lambda p: turned(p, "neox", last_columns)),
    "all columns of a share": ("16 columns are turned, not 8", lambda p: (rope(p, "neox", partial_rotary_factor=1.0))),
    "half of the columns": ("8 columns are turned, not 16",
        lambda p: turned(p, "qwen3",
            lambda _u, q, k, c, s: each_by(first_columns, q, k, c, s))),
    "a wrong layer": ("layer 1: ", lambda p: in_layers(p, "llama", {1}, lambda c, s: (c, -s))),
    "a layer is not turned": ("layer 0: nothing is turned",
        lambda p: in_layers(p, "llama", {0}, lambda c, s: (c * 0 + 1, s * 0))),
    "turned twice by two calls": ("turned twice, the second time", lambda p: twice_in_a_layer(p)),
    "a layer is left out": ("those of number 1 are not turned", lambda p: left_out(p)),
    "gptj by halves": ("pairs are half", lambda p: single(p, "gptj", lambda _u, x, s, c: halves_of(x, s, c))),
    "gptj back": ("turned the other way", lambda p: single(p, "gptj", lambda u, x, s, c: u(x, -s, c))),
    "codegen keys": ("keys are not turned",
        lambda p: single(p, "codegen", lambda u, x, s, c, n=COUNT: x if next(n) % 2 == 0 else u(x, s, c))),
    "phi has the last columns": ("the last 8 columns of each head", lambda p: sliced(p, "phi")),
    "stablelm has the last columns": ("the last 8 columns of each head", lambda p: sliced(p, "share")),
    # -- layers without positions
    "no_rope read the other way": ("the other way round",
        lambda p: without(p, lambda config, n: 1 - config.no_rope_layers[n])),
    "no_rope off by one": ("one layer", lambda p: without(p, lambda config, n: config.no_rope_layers[(n + 1) % 4])),
    # -- positions
    "positions divided": ("multiplied by 0.25", lambda p: placed(p, "llama", lambda at: at / 4)),
    "positions times 2": ("by two times the position", lambda p: placed(p, "llama", lambda at: at * 2)),
    "positions clamped": ("are clamped to 255", lambda p: placed(p, "llama", lambda at: at.clamp(max=255))),
    "positions backwards": ("the other way", lambda p: placed(p, "llama", lambda at: -at)),
    # -- scales
    "no scale": ("there is none", lambda p: scaled_(p, "qwen3", lambda a: 1.0)),
    "scale of the width": ("16, not by its root", lambda p: scaled_(p, "qwen3", lambda a: 1 / 16)),
    "scale of hidden": ("of the whole width 64", lambda p: scaled_(p, "qwen3", lambda a: 64**-0.5)),
    "scale of half the head": ("half of a head", lambda p: scaled_(p, "qwen3", lambda a: 8**-0.5)),
    "scale twice": ("16, not by its root", lambda p: attended(p, "llama", lambda m, q, k, _: (q * m.scaling, k))),
    "scale inverse": ("is inverse", lambda p: scaled_(p, "qwen3", lambda a: 4.0)),
    "fourth root": ("only its root is applied", lambda p: scaled_(p, "qwen3", lambda a: 16**-0.25)),
    "query_pre_attn_scalar": ("must be that of query_pre_attn_scalar",
        lambda p: scaled_(p, "gemma2", lambda a: 16**-0.5)),
    "query_pre_attn_scalar without root": ("that of query_pre_attn_scalar is applied twice, or without its root",
        lambda p: scaled_(p, "gemma2", lambda a: 1 / 24)),
    # -- slopes of ALiBi
    "slopes by powers of two": ("made by the formula for powers of two",
        lambda p: slopes(p, lambda n: 2.0 ** (-8 * torch.arange(1, n + 1) / n), 6)),
    "slopes reversed": ("in another order of the heads: reversed",
        lambda p: slopes(p, lambda n: 2.0 ** -torch.arange(n, 0, -1.0))),
    "slopes all equal": ("all heads have the same, 0.5", lambda p: slopes(p, lambda n: torch.full((n,), 0.5))),
    "slopes of the root": ("of which the root was taken",
        lambda p: slopes(p, lambda n: 2.0 ** (-torch.arange(1, n + 1) / 2))),
    "slopes squared": ("the published ones, squared", lambda p: slopes(p, lambda n: 4.0 ** -torch.arange(1, n + 1))),
    "slopes one over h": ("one over the number of the head", lambda p: slopes(p, lambda n: 1 / torch.arange(1, n + 1))),
    "slopes halved": ("multiplied by 0.5", lambda p: slopes(p, lambda n: 0.5 * 2.0 ** -torch.arange(1, n + 1))),
    "more heads in order": ("are the first of 8 heads, not every other one",
        lambda p: slopes(p, lambda n: 2.0 ** -torch.tensor([2.0, 4, 6, 8, 1, 2]), 6)),
    "sign of MPT": ("the sign of the bias", lambda p: mpt(p, lambda bias: -bias)),
    "MPT squares distances": ("does not grow evenly", lambda p: mpt(p, lambda bias: -(bias**2))),
    # -- buckets of T5
    "buckets of the other side": ("those of one side, and the model's are those of both sides",
        lambda p: t5(p, bucket=lambda u, at, both, *n: u(at, not both, *n))),
    "offsets backwards": ("queries and keys are exchanged", lambda p: t5(p, bucket=lambda u, at, *n: u(-at, *n))),
    "signs lost": ("signs are lost", lambda p: t5(p, bucket=lambda u, at, *n: u(-at.abs(), *n))),
    "a shorter distance": ("at a distance of 20, and by the configuration at 128",
        lambda p: t5(p, bucket=lambda u, at, both, n, _: u(at, both, n, 20))),
    "half of the buckets": ("16 are used, and the table has 32",
        lambda p: t5(p, bucket=lambda u, at, both, n, far: u(at, both, 16, far))),
    "bias divided by the root": ("divided by √8", lambda p: t5(p, bias=lambda x: x / 8**0.5)),
    "bias with the other sign": ("its sign is exchanged", lambda p: t5(p, bias=lambda x: -x)),
    "bias of the next head": ("that of the head 1 further", lambda p: t5(p, bias=lambda x: x.roll(1, 1))),
}  # fmt: skip


def slopes(patch: Patch, make: Callable[[int], Any], heads: int = 8) -> Any:
    patch.setattr(modeling("bloom"), "_get_alibi_slopes", lambda n, *_: make(n))
    return made("bloom", n_head=heads, hidden_size=8 * heads)


def mpt(patch: Patch, change: Callable[[Any], Any]) -> Any:
    usual = modeling("mpt").build_mpt_alibi_tensor
    patch.setattr(
        modeling("mpt"), "build_mpt_alibi_tensor", lambda *given, **more: change(usual(*given, **more))
    )
    return made("mpt")


def t5(patch: Patch, bucket: Any = None, bias: Any = None) -> Any:
    owner = modeling("t5").T5Attention
    which, compute = owner._relative_position_bucket, owner.compute_bias
    if bucket:

        def faulty(
            at: Any, bidirectional: bool = True, num_buckets: int = 32, max_distance: int = 128
        ) -> Any:
            return bucket(which, at, bidirectional, num_buckets, max_distance)

        patch.setattr(owner, "_relative_position_bucket", staticmethod(faulty))
    if bias:
        patch.setattr(owner, "compute_bias", lambda *given, **more: bias(compute(*given, **more)))
    model = made("t5")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "relative_attention_bias" in name:
                parameter.normal_(0, 1, generator=torch.Generator().manual_seed(1))
    return model


def scaled_(patch: Patch, short: str, factor: Any) -> Any:
    _, owner = part(short, "Attention")
    scaled(patch, MODELS[short][0], owner.__name__, factor)
    return model_of(short)


def without(patch: Patch, choose: Callable[[Any, int], int]) -> Any:
    owner = modeling("smollm3").SmolLM3Attention
    begin = owner.__init__

    def faulty(self: Any, config: Any, layer_idx: int) -> None:
        begin(self, config, layer_idx)
        self.use_rope = choose(config, layer_idx)

    patch.setattr(owner, "__init__", faulty)
    return model_of("smollm3")


def single(patch: Patch, short: str, change: Callable[..., Any]) -> Any:
    """A function that turns one tensor at a time is changed: change(usual, x, sin, cos)."""
    home = modeling(short)
    usual = home.apply_rotary_pos_emb
    patch.setattr(home, "apply_rotary_pos_emb", lambda x, sin, cos: change(usual, x, sin, cos))
    return model_of(short)


def halves_of(x: Any, sin: Any, cos: Any) -> Any:
    cos, sin = (torch.cat((each, each), -1)[:, :, None] for each in (cos, sin))
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat((-b, a), -1) * sin


def twice_in_a_layer(patch: Patch) -> Any:
    """The attention of Llama with its rotation called twice."""
    home = modeling("llama")
    source = inspect.getsource(home.LlamaAttention.forward)
    line = "query_states, key_states = apply_rotary_pos_emb(query_states, key_states, cos, sin)"
    return rewritten(patch, "llama", source, line, line + "; " + line)


def rewritten(patch: Patch, short: str, source: str, old: str, new: str) -> Any:
    home, owner = part(short, "Attention")
    assert old in source
    made_of: dict[str, Any] = {}
    exec(textwrap.dedent(source).replace(old, new), vars(home), made_of)
    patch.setattr(owner, "forward", made_of["forward"])
    return model_of(short)


def left_out(patch: Patch) -> Any:
    home = modeling("llama")
    source = inspect.getsource(home.LlamaAttention.forward)
    line = "query_states, key_states = apply_rotary_pos_emb(query_states, key_states, cos, sin)"
    return rewritten(patch, "llama", source, line, "if self.layer_idx != 1: " + line)


def sliced(patch: Patch, short: str) -> Any:
    source = inspect.getsource(part(short, "Attention")[1].forward)
    for name in ("query", "key"):
        source = source.replace(
            f"{name}_states[..., : self.rotary_ndims]", f"{name}_states[..., -self.rotary_ndims :]"
        )
        source = source.replace(
            f"{name}_states[..., self.rotary_ndims :]", f"{name}_states[..., : -self.rotary_ndims]"
        )
    return rewritten(patch, short, source, "-self.rotary_ndims", "-self.rotary_ndims")


FAULTS = Faults({name: (fault, words) for name, (words, fault) in PLANTS.items()})


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_a_peer_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)
