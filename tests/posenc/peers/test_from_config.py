"""posenc.rotary.from_config on every model type of transformers that turns: its frequencies and its turned queries."""

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
from tests.posenc.peers.test_from_config_block import HUB
from tests.posenc.peers.theirs import MAPPING, applied, called, modeling, rotary_module, scaling

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
    "blt", "deepseek_v4", "dinov3_vit", "edgetam_video", "efficientloftr", "eomt_dinov3", "ernie4_5_vl_moe_text",
    "gemma4_vision", "hunyuan_vl_text", "llama4_vision_model", "minimax_m3_vl_text", "minimax_m3_vl_vision",
    "neomme", "sam2_video", "sam3_tracker_video", "sapiens2", "seamless_m4t", "vjepa2", "wav2vec2-bert",
    "wav2vec2-conformer",
]  # fmt: skip
OLDEST = ("codegen", "gptj", "roformer")  # their rotation stands in the attention itself
LENGTHS = ("phi3",)  # frequencies depend on the present length
OTHER = {"clvp", "musicflamingo"}  # files of several models


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
            assert rotation.scale == pytest.approx(scaling(theirs, kind), rel=1e-6)
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
