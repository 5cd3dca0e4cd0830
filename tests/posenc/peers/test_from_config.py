"""posenc.rotary.from_config on every model type of transformers that turns: its frequencies and its turned queries."""

import importlib
import inspect
import json
import re
from typing import Any

import numpy as np
import pytest
import torch

import posenc
from posenc.rotary import config as reading
from posenc.rotary.config import from_config
from tests.peers import peer
from tests.posenc.peers.test_from_config_block import HUB, MAPPING

TYPES = sorted(reading._model_types())
# Their class defaults contradict themselves: an odd number of columns would be turned.
HALF = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}}
ADDED: dict[str, dict[str, Any]] = {
    "glm4_moe": {"head_dim": 128},
    "glm4v_text": HALF,
    "glm4v_moe_text": {"head_dim": 128},
    "glm_image_text": HALF,
    "glm_ocr_text": {"head_dim": 128} | HALF,
    "qwen3_omni_moe_text": {"head_dim": 128},
    "qwen4_exp_text": {"rope_parameters": HALF["rope_parameters"] | {"partial_rotary_factor": 0.25}},
    "qwen3_omni_moe_talker_text": {"head_dim": 128},
}
# Those that are not read, each with an error that says why; at most a tenth.
REFUSED = [
    "blt",
    "deepseek_v4",
    "dinov3_vit",
    "edgetam_video",
    "efficientloftr",
    "eomt_dinov3",
    "ernie4_5_vl_moe_text",
    "gemma4_vision",
    "hunyuan_vl_text",
    "llama4_vision_model",
    "minimax_m3_vl_text",
    "minimax_m3_vl_vision",
    "neomme",
    "sam2_video",
    "sam3_tracker_video",
    "sapiens2",
    "seamless_m4t",
    "vjepa2",
    "wav2vec2-bert",
    "wav2vec2-conformer",
]
OLDEST = ("codegen", "gptj", "roformer")  # their rotation stands in the attention itself
LENGTHS = ("phi3",)  # frequencies depend on the present length
OTHER = {"clvp", "musicflamingo"}  # files of several models


def modeling(config: Any) -> Any:
    name = type(config).__module__.replace("configuration_", "modeling_")
    return (
        importlib.import_module(name)
        if importlib.util.find_spec(name)
        else peer("transformers.models.llama.modeling_llama")
    )


def rotary_module(config: Any) -> Any:
    """transformers' own rotary embedding of a model, None if it has no such class."""
    stem = type(config).__name__.removesuffix("Config")
    vision = any(word in stem for word in ("Vision", "ViT"))
    found = []
    for name, made in vars(modeling(config)).items():
        if inspect.isclass(made) and name.endswith("RotaryEmbedding"):
            make: Any = made
            try:
                alike = next(
                    (n for n, pair in enumerate(zip(name, stem, strict=False)) if pair[0] != pair[1]),
                    len(stem),
                )
                found.append((("Vision" in name) == vision, alike, make(config)))
            except (AttributeError, KeyError, ValueError):  # that of another part of the model
                continue
    return max(found, key=lambda entry: entry[:2])[2] if found else None


def line(rotation: Any) -> np.ndarray:
    """The frequency of each pair, whichever coordinate it belongs to."""
    omega = rotation.frequencies
    return omega.sum(axis=0) if omega.ndim == 2 else omega


def default(name: str) -> Any:
    return MAPPING[name](**ADDED.get(name, {}))


def older(given: dict[str, Any]) -> dict[str, Any]:
    """The same in the older spelling, where it has one."""
    inner = given.get("rope_parameters") or {}
    if any(isinstance(value, dict) for value in inner.values()):
        return given
    outside = {key: inner[key] for key in ("rope_theta", "partial_rotary_factor") if key in inner}
    scaling = {key: value for key, value in inner.items() if key not in outside}
    scaling["type"] = scaling.pop("rope_type", "default")
    rest = {key: value for key, value in given.items() if key != "rope_parameters"}
    return rest | outside | {"rope_scaling": None if scaling == {"type": "default"} else scaling}


def compared(name: str, config: Any, given: dict[str, Any]) -> None:
    """Frequencies and factors of each kind of layer, then the scores of turned queries and keys."""
    found, theirs = from_config(given), rotary_module(config)
    buffers = {
        key: value
        for key, value in theirs.named_buffers()
        if key.endswith("inv_freq") and "original" not in key
    }
    assert buffers
    for key, inv_freq in buffers.items():
        kind = key.removesuffix("inv_freq").removesuffix("_")
        rotations = [found.kinds[kind]] if kind else [each for each in found.kinds.values() if each.turns]
        for rotation in rotations:
            omega = line(rotation)
            if rotation.method == "axial":
                omega = np.unique(omega)[::-1] if len(inv_freq) != len(omega) else omega
            wanted = inv_freq.double().numpy()
            np.testing.assert_allclose(omega, -wanted if name == "nanochat" else wanted, rtol=1e-5, atol=0)
            scale = getattr(theirs, f"{kind}_attention_scaling" if kind else "attention_scaling", 1.0)
            assert rotation.scale == pytest.approx(float(scale), rel=1e-6)
            turned_alike(rotation, config, theirs, kind)


def turned_alike(rotation: Any, config: Any, theirs: Any, kind: str) -> None:
    """Scores of turned queries and keys; those of MLA come back with their columns in another order."""
    module, count = modeling(config), 24
    q, k = torch.randn(2, 1, 2, count, rotation.dim, generator=torch.Generator().manual_seed(0))
    axes = rotation.frequencies.ndim == 2
    places = torch.arange(count)
    if rotation.method == "axial":
        places = torch.stack([places // 6, places % 6 + 7], dim=-1)
    elif axes:
        places = torch.stack([places, places // 6 + 3, places % 6 + 9][: len(rotation.frequencies)], dim=-1)
    turn: Any = posenc.rotary.apply_rotary_axes if axes else posenc.apply_rotary
    options = {"layout": rotation.layout, "scale": rotation.scale, "rotary_dim": rotation.rotary_dim}
    if rotation.rotary_dim == rotation.dim:
        del options["rotary_dim"]
    ours = [
        turn(x, places, rotation.frequencies, **options)
        if axes
        else turn(x, places, frequencies=rotation.frequencies, **options)
        for x in (q, k)
    ]
    code = called(theirs, q, places, kind)
    wanted = applied(module, rotation, q, k, code)
    torch.testing.assert_close(ours[0] @ ours[1].mT, wanted[0] @ wanted[1].mT, rtol=1e-3, atol=3e-3)


def called(theirs: Any, x: torch.Tensor, places: torch.Tensor, kind: str) -> Any:
    """Cosines and sines, or complex numbers, of the places."""
    takes = inspect.signature(theirs.forward).parameters
    if places.ndim == 2:
        return theirs(
            x, places.T[:, None] if len(takes) == 2 and hasattr(theirs, "mrope_section") else places
        )
    if "layer_type" in takes and kind:
        return theirs(x, places[None], kind)
    return theirs(x, places[None])


def applied(module: Any, rotation: Any, q: torch.Tensor, k: torch.Tensor, code: Any) -> Any:
    """What transformers' function makes of queries and keys."""
    turned = rotation.rotary_dim
    if not isinstance(code, tuple):  # complex numbers
        if "deepseek" in module.__name__:
            return module.apply_rotary_emb(q, k, code)
        return [
            x.transpose(1, 2) for x in module.apply_rotary_emb(q.transpose(1, 2), k.transpose(1, 2), code)
        ]
    cos, sin = code
    if rotation.method == "axial" and hasattr(module, "apply_rotary_pos_emb_vision"):
        heads_last = [x[0].transpose(0, 1) for x in (q, k)]
        return [x.transpose(0, 1)[None] for x in module.apply_rotary_pos_emb_vision(*heads_last, cos, sin)]
    if rotation.method == "axial" and cos.ndim == 2:
        cos, sin = cos[None], sin[None]
    turn: Any = getattr(module, "apply_rotary_pos_emb", getattr(module, "apply_rotary_pos_emb_2d", None))
    if rotation.layout == "interleaved":
        turn = getattr(module, "apply_rotary_pos_emb_interleave", turn)
    single = "q" not in inspect.signature(turn).parameters

    def both(*heads: torch.Tensor) -> Any:
        return [turn(x, cos, sin) for x in heads] if single else turn(*heads, cos, sin)[:2]

    try:
        return both(q, k)
    except RuntimeError:  # the model slices, not this function
        rest = q[..., turned:], k[..., turned:]
        return [
            torch.cat(parts, dim=-1)
            for parts in zip(both(q[..., :turned], k[..., :turned]), rest, strict=True)
        ]


@pytest.mark.parametrize("name", [name for name in TYPES if name not in {*REFUSED, *OTHER, *OLDEST}])
def test_every_model_type_at_its_defaults(name: str) -> None:
    config = default(name)
    if name in ("esm", "granitemoehybrid"):
        assert not from_config(config).kinds["all"].turns
        config = MAPPING[name](position_embedding_type="rope" if name == "granitemoehybrid" else "rotary")
    given = json.loads(json.dumps(config.to_dict(), default=str))
    compared(name, config, given)
    compared(name, config, older(given))


@pytest.mark.parametrize("name", OLDEST)
def test_the_oldest_turn_neighbours_within_their_attention(name: str) -> None:
    rotation = from_config(default(name)).kinds["all"]
    x = torch.randn(1, 9, 2, rotation.rotary_dim, generator=torch.Generator().manual_seed(0))
    ours = posenc.apply_rotary(x.transpose(1, 2), torch.arange(9), frequencies=rotation.frequencies)
    module = peer(f"transformers.models.{name}.modeling_{name}")
    if name == "roformer":
        table = module.RoFormerSinusoidalPositionalEmbedding(9, rotation.dim)
        table.weight.data = table.create_weight()
        turn = module.RoFormerSelfAttention.apply_rotary_position_embeddings
        theirs = turn(table((1, 9))[None], x.transpose(1, 2), x.transpose(1, 2))[0]
    else:
        sin, cos = module.create_sinusoidal_positions(9, rotation.rotary_dim)[None].chunk(2, dim=-1)
        theirs = module.apply_rotary_pos_emb(x, sin, cos).transpose(1, 2)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", HUB)
def test_files_as_they_are_released(name: str) -> None:
    """Each kind of layer, from config.json and from what transformers makes of it."""
    hub = json.loads(json.dumps(HUB[name][0] | {"model_type": name}))
    config = MAPPING[name].from_dict(json.loads(json.dumps(hub)))
    for given in (hub, config.to_dict()):
        if name in LENGTHS:
            with pytest.raises(ValueError, match="pass length"):
                from_config(given)
            continue
        compared(name, config, given)


def test_longrope_has_the_factors_of_the_present_length() -> None:
    name = "phi3"
    config = MAPPING[name].from_dict(json.loads(json.dumps(HUB[name][0])))
    theirs = rotary_module(config)
    for length in (4096, 4097):
        found = from_config(config, length=length).kinds["all"]
        theirs(torch.zeros(1, 1, 1, 1), torch.arange(length)[None])
        assert found.frequencies is not None
        np.testing.assert_allclose(found.frequencies, theirs.inv_freq.double().numpy(), rtol=1e-5)
        assert found.scale == pytest.approx(theirs.attention_scaling, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "column", "value"),
    [
        ("llama", "layout", "interleaved"),
        ("cohere", "base", "9"),
        ("glm", "share", "0.25"),
        ("qwen2_vl_text", "mrope", "24 24 16"),
    ],
)
def test_a_wrong_fact_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str, column: str, value: str) -> None:
    facts = reading._model_types()
    monkeypatch.setitem(facts, name, facts[name] | {column: value})
    config = default(name)
    given = config.to_dict()
    if column in ("base", "share"):  # the file leaves it out
        given["rope_parameters"] = None
    with pytest.raises((AssertionError, ValueError)):
        compared(name, config, given)


def test_what_is_refused_is_said_and_is_no_more_than_a_tenth() -> None:
    assert len(REFUSED) <= len(TYPES) / 10
    for name in REFUSED:
        with pytest.raises(ValueError, match=r"not read|pass part"):
            from_config(default(name).to_dict())


BY_WINDOW = [
    name for name, row in reading._model_types().items() if re.search("full|windowless", row["unturned"])
]


@pytest.mark.parametrize("name", BY_WINDOW)
@pytest.mark.parametrize("window", ["its class's", None, 8])
def test_which_layers_turn_is_what_the_model_does(
    name: str, window: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what each layer of a tiny model calls, with its class's window, none, and another."""
    given: dict[str, Any] = {
        "model_type": name, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 5, "head_dim": 16,
        "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 64, "pad_token_id": 0,
    }  # fmt: skip
    if window != "its class's":
        given["sliding_window"] = window
    few = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 8, "num_local_experts": 2}
    if window is None:  # then no layer has one
        given["layer_types"] = ["full_attention"] * 5
    try:
        config = MAPPING[name](**{key: value for key, value in given.items() if key != "model_type"} | few)
        model = peer("transformers").AutoModel.from_config(config, attn_implementation="eager").eval()
        model(torch.arange(6)[None])
    except (peer("huggingface_hub.errors").StrictDataclassError, ValueError):
        assert window is None, "it may want a window"
        assert name != "exaone4", "and at least one does not"
        return
    turned: list[int] = []
    at = [-1]
    for place, layer in enumerate(model.layers):
        layer.register_forward_pre_hook(
            lambda *_, place=place, **__: at.__setitem__(0, place), with_kwargs=True
        )
    code = modeling(config)
    theirs = code.apply_rotary_pos_emb

    def noted(*inputs: Any, **more: Any) -> Any:
        turned.append(at[0])
        return theirs(*inputs, **more)

    monkeypatch.setattr(code, "apply_rotary_pos_emb", noted)
    model(torch.arange(6)[None])
    found = from_config(given)
    kinds = list(found.layers or getattr(config, "layer_types", None) or ["all"] * 5)
    says = [found.kinds[kind if kind in found.kinds else "all"].turns for kind in kinds]
    assert [place in turned for place in range(5)] == says
