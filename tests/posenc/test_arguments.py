"""Every argument of every public formula and layer, by its signature: another kind is refused by its name."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch

import posenc
from posenc import nn
from tests.posenc.calls import FORMULAS, LAYERS, WHOLE, Call, public

NO_ARRAY = [{"a": 1}, "a"]
HALF = np.arange(3, dtype=np.float16)
FAR: list[Any] = [[2**53 + 1, 1], np.array([-(2**60)]), np.array([2**63], np.uint64), np.array([2.0**53])]
NO_PLACES = [
    *NO_ARRAY, True, [[1, 2], [3]], ["a"], [1j], [True, False], HALF, HALF.astype(np.longdouble),
    [0.0, math.nan, math.inf], np.array([-math.inf]), *FAR,
]  # fmt: skip
WITHOUT_AXES = [np.array(5), np.float64(5), torch.tensor(5), torch.tensor(5.0), array_api_strict.asarray(5)]
# By its annotation, what an argument must not be; None besides, unless the annotation has it.
WRONG: dict[str, list[Any]] = {
    "int": [2.5, 3.0, "3", True, np.True_, {"a": 1}],
    "float": ["1.5", True, np.True_, 1.5j, {"a": 1}, np.ones(2), math.nan, math.inf, 10**400],
    "float | Array": ["1.5", True, np.True_, 1.5j, {"a": 1}, math.nan],
    "bool": ["no", 0, 1, None, np.False_],
    "DType": [int, bool, complex, "float33"],
    "int | ArrayLike": [*NO_PLACES, *WITHOUT_AXES, -1, 3.0],
    "ArrayLike": NO_ARRAY,
    "dist.ProcessGroup": [],
    **{kind: [*NO_ARRAY, 7, [[1.0]]] for kind in ("OneArray", "ArrayT", "Array")},
    **{kind: ["up", None, True] for kind in (
        "Order", "Kernel", "Layout", "Side", "Sign", "Overflow", "KerpleKind", "Scheme")},
}  # fmt: skip
# The limit of each number, by its name, or by that of its function, too.
LIMITS = {name: limit for limit, names in {
    "": "angle axis center offset position r1 r2 scale slopes start t5_bias.num_buckets t5_bias.max_distance",
    "at least 0": """add_alibi_columns.slopes alibi_bias.slopes class_tokens dropout max_offset max_start n n_query rank
        ring_attention.slopes ring_step.slopes RingAttention.slopes scale_offset shift size std within""",
    "at least 1": """axes beta_fast ContextualPositions.dim decode_position.n factor FireBias.width ForgetGate.dim
        high_freq_factor gaussian_weights.n integer_encoding.dim jitter k LearnedEncoding.dim length limit max_len
        max_position num_heads num_rows original_length rbf_centers.n rescale ShawAttention.dim sine_only_encoding.dim
        steps unseen_angles.trained_length world""",
    "at least 2": """alias_offsets.n dim head_dim longrope_attention_factor.original_length max_period min_period
        rotary_dim smallest_base.length trained_length""",
    "at least 3": "pad_batch.length", "at least 4": "num_buckets", "at least 5": "width",
    "at least 6": "pack_sequences.length", "at least 9": "max_distance",
    "above 0": """add_alibi_columns.scale beta_slow c gain gamma gaussian_weights.std low_freq_factor mscale
        mscale_all_dim periods proportion scale_base share shortest sigma spacing threshold tolerance""",
    "above 0.2": "longest", "above 1": "base",
}.items() for name in names.split()}  # fmt: skip
# What only moves numbers, or asks another array for its library alone, takes those of any dtype.
ANY_DTYPE = {
    "alibi_slopes", "apply_output_mask", "causal_mask", "relative_shift", "shard_positions", "toeplitz_bias",
    "half_to_interleaved", "interleaved_to_half",
}  # fmt: skip
every_call = pytest.mark.parametrize("given", [*FORMULAS, *LAYERS], ids=lambda given: given.function.__name__)


def test_no_function_and_no_layer_is_left_out() -> None:
    """But for those that take functions, dates or files, which have tests of their own."""
    others = {"check", "check_padding", "PaddingChange", "PaddingReport", "same_bag", "to_seconds"}
    others |= {"equivariance_error", "invariance_error", "from_config", "RotaryConfig", "LayerRotation"}
    assert set(public()) - others == {given.function.__name__ for given in (*FORMULAS, *LAYERS)}


@every_call
def test_what_is_of_another_kind_is_refused_by_the_name_of_its_argument(given: Call) -> None:
    for name, kind in given.kinds().items():
        plain, right = kind.removesuffix(" | None"), given.arguments.get(name, 0.0)
        wrong = [*WRONG.get(plain, [{"a": 1}]), *([None] if plain == kind else [])]
        if plain in ("OneArray", "ArrayT", "Array") and getattr(right, "dtype", None) == np.float64:
            wrong += [
                right.astype(dtype) for dtype in (complex, int) if given.function.__name__ not in ANY_DTYPE
            ]
        for bad in wrong:
            with pytest.raises((TypeError, ValueError), match=rf"^{name} (must|without axes)"):
                print(name, repr(bad), given(**{name: bad}))  # shown where it was taken
        if plain == "int" or plain.startswith("float"):
            own = f"{given.function.__name__}.{name}"
            word, _, edge = LIMITS[own if own in LIMITS else name].rpartition(" ")
            if edge:  # what lies just beyond it is refused by it
                step = 0 if word == "above" else 1 if plain == "int" else 1e-6
                beyond = (int if plain == "int" else float)(float(edge) - step)
                with pytest.raises(ValueError, match=rf"^{name} must .*{word} [a-z =,]*{edge}\b"):
                    print(name, beyond, given(**{name: beyond}))


@every_call
def test_flags_and_numbers_of_every_kind_are_taken(given: Call) -> None:
    for name, kind in given.kinds().items():
        if kind == "bool":
            for flag in (True, False):
                given(**{name: flag})
        if kind in ("float", "float | None"):
            value = given.arguments.get(name) or {"dropout": 0.5, "base": 500.0}.get(name, 1.5)
            for same in (Fraction(value), np.float32(value), np.float64(value)):
                for ours, usual in zip(given(**{name: same}), given(**{name: value}), strict=True):
                    if not isinstance(ours, torch.nn.Module):
                        np.testing.assert_allclose(ours, usual, rtol=1e-6, atol=1e-4)


@every_call
def test_a_width_is_even(given: Call) -> None:
    if {"dim", "base"} <= given.kinds().keys() and "sine_only" not in given.function.__name__:
        with pytest.raises(ValueError, match=r"^dim must be (even|a multiple of)"):
            given(dim=5)


# --- Positions

LENGTHS = [
    (given, name)
    for given in {given.function: given for given in reversed(FORMULAS)}.values()
    for name, kind in given.kinds().items()
    if kind.startswith("int | ArrayLike")
]


@pytest.mark.parametrize(("given", "name"), LENGTHS)
def test_an_integer_of_any_kind_is_a_length(given: Call, name: str) -> None:
    both = [name, *({"query_positions", "key_positions"} - {name} if name.endswith("y_positions") else ())]
    both = [name for name in both if name in given.kinds()]
    for three in (np.int64(3), np.uint8(3)):
        for ours, usual in zip(
            given(**dict.fromkeys(both, three)), given(**dict.fromkeys(both, 3)), strict=True
        ):
            assert 3 in ours.shape
            np.testing.assert_array_equal(ours, usual)


def in_torch(x: Any) -> Any:
    return torch.from_numpy(np.ascontiguousarray(x)) if isinstance(x, np.ndarray) else x


ROWS = torch.ones(3, 4)
HEADS = ROWS[None, None]
NAMES = {"positions", "query_positions", "offsets", "offset", "position", "coordinates"}
# Three positions at which each computes, in torch.
AT: list[tuple[str, Callable[[torch.Tensor], Any]]] = [
    *(
        (
            given.function.__name__,
            lambda t, given=given, name=name: given.function(
                **{key: in_torch(x) for key, x in given.arguments.items()}
                | {name: t[:, None].expand(3, given.arguments[name].shape[-1]) if name == "coordinates" else t}
            ),
        )
        for given in {given.function: given for given in reversed(FORMULAS)}.values()
        for name, kind in given.kinds().items()
        if name in NAMES and kind.startswith(("int | ArrayLike", "ArrayLike", "float | Array"))
    ),
    ("SinusoidalEncoding", lambda t: nn.SinusoidalEncoding(4, dropout=0.0)(ROWS, positions=t)),
    ("GridEncoding", lambda t: nn.GridEncoding(4, (3,), dropout=0.0)(ROWS, coordinates=t[:, None])),
    ("RotaryEmbedding", lambda t: nn.RotaryEmbedding(4)(HEADS, HEADS, positions=t)),
    ("GridRotary", lambda t: nn.GridRotary(4, (3,))(HEADS, HEADS, coordinates=t[:, None])),
    *((layer.__name__, lambda t, layer=layer: layer(2)(query_positions=t))
      for layer in (nn.AlibiBias, nn.KerpleBias, nn.FireBias)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function"), AT, ids=lambda x: x if isinstance(x, str) else "")
def test_positions_that_no_number_tells_apart_are_refused(name: str, function: Callable[..., Any]) -> None:
    """2^24 + 1 in float32 is 2^24, and 257 in bfloat16 is 256."""
    near = torch.tensor([0.0, 1.0, 2.0])
    whole = "must be integers, got"  # a table has no row 0.5
    for dtype in (torch.bfloat16, torch.float16):
        with pytest.raises(TypeError, match=f"must be integers, float32 or float64, got|{whole}"):
            function(near.to(dtype))
    tells = r"must be below 2\^24 in size, because torch\.float32 tells no neighbours"
    with pytest.raises((ValueError, TypeError), match=f"{tells}|{whole}"):
        function(near + 2.0**24)
    if name not in WHOLE and "shaw" not in name:
        function(near)
        function(near + (2.0**24 - 3) if name != "apply_xpos" else near.double())


def test_integers_are_told_apart_up_to_2_to_the_53() -> None:
    """Nanoseconds since 1970 are not: FAR, above."""
    posenc.sinusoidal_encoding([2**53, -(2**53)], 4)
    for far in FAR:
        with pytest.raises(ValueError, match=r"positions must be .* later start"):
            posenc.sinusoidal_encoding(far, 4)
