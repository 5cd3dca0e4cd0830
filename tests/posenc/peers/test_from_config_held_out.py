"""posenc.rotary.from_config on configurations that it was not written for: variants of fields, and fields left out."""

import inspect
import json
import re
from typing import Any

import numpy as np
import pytest
import torch

from posenc.rotary.config import from_config
from tests.peers import peer

peer("transformers")  # before what cannot be imported without it

from tests.posenc.peers.test_from_config import (  # noqa: E402
    ADDED,
    OLDEST,
    OTHER,
    REFUSED,
    TYPES,
    compared,
    default,
    line,
    reading,
)
from tests.posenc.peers.test_from_config_block import LLAMA3, YARN, sizes  # noqa: E402
from tests.posenc.peers.theirs import MAPPING, modeling, rotary_module  # noqa: E402

M_YARN = {
    "type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 32768,
    "mrope_section": [16, 24, 24],
}
BY_KIND = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 20000.0, "partial_rotary_factor": 1.0},
    "full_attention": {
        "rope_type": "yarn", "rope_theta": 5e5, "factor": 16.0, "original_max_position_embeddings": 8192,
        "partial_rotary_factor": 0.5,
    },
}  # fmt: skip
GEMMA_4 = {
    "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
    "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.5, "rope_theta": 2e6},
}
ALPHA = {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "type": "dynamic"}

STEP = {
    "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"],
    "rope_theta": [5e6, 1e4, 5e6, 1e4], "partial_rotary_factors": [0.5, 1.0, 0.5, 1.0], "head_dim": 128,
    "rope_scaling": {"rope_type": "llama3"} | LLAMA3, "yarn_only_types": ["full_attention"],
}  # fmt: skip
WINDOWS = {"hybrid_layer_pattern": [0, 1, 1, 1, 1, 0], "rope_theta": 5000000, "swa_rope_theta": 10000}
GEMMA_12B = sizes(
    3840, 16, 131072, rope_scaling={"factor": 8.0, "rope_type": "linear"}, sliding_window_pattern=6
)

HELD_OUT: dict[str, tuple[str, dict[str, Any]]] = {
    "Falcon-180B": ("falcon", {"hidden_size": 14848, "num_attention_heads": 232, "new_decoder_architecture": True}),
    "Phi-2": ("phi", sizes(2560, 32, 2048, partial_rotary_factor=0.4, rope_theta=10000.0)),
    "DeepSeek-Coder": ("llama", sizes(4096, 32, 16384, rope_scaling={"type": "linear", "factor": 4.0})),
    "Llama 3.2": ("llama", sizes(2048, 32, 131072, head_dim=64, rope_scaling=LLAMA3 | {"factor": 32.0})),
    "a ramp that is a step": ("llama", sizes(5120, 40, 9999999, rope_scaling=LLAMA3 | {"high_freq_factor": 1.0})),
    "Qwen3, no head_dim": ("qwen3", sizes(2048, 32, 40960, rope_theta=1e6)),
    "GLM, no head_dim": ("glm4", sizes(6144, 48, 32768)),
    "Gemma 3 12B": ("gemma3_text", sizes(3840, 16, 131072, rope_scaling={"factor": 8.0, "rope_type": "linear"})),
    "Gemma 4, other sizes": ("gemma4_text", sizes(2304, 8, 65536, global_head_dim=128, rope_parameters=GEMMA_4)),
    "Hunyuan": ("hunyuan_v1_dense", sizes(4096, 32, 32768, head_dim=128, rope_scaling=ALPHA)),
    "ESM without positions": ("esm", sizes(320, 20, 1026)),
    "Granite without positions": ("granitemoehybrid", sizes(2048, 32, 131072, position_embedding_type="nope")),
    "Command A": ("cohere2", sizes(12288, 96, 131072, head_dim=128, rope_theta=50000, sliding_window_pattern=4)),
    "SmolLM3, another interval": ("smollm3", sizes(2048, 16, 65536, rope_theta=1.5e6, no_rope_layer_interval=3)),
    "Kimi, other pairs": ("deepseek_v3", sizes(7168, 64, 131072, rope_interleave=False, rope_scaling=YARN)),
    "share and stretching": ("glm4_moe", sizes(4096, 32, 131072, head_dim=128, rope_scaling=YARN)),
    "one mscale": ("qwen2", sizes(3584, 28, 131072, rope_scaling={**YARN, "mscale": 0.7, "mscale_all_dim": None})),
    "no ramp given": ("qwen3", sizes(4096, 32, 40960, head_dim=128, rope_scaling={**YARN, "beta_fast": None})),
    "a class with kinds": ("laguna", sizes(2048, 32, 131072, head_dim=128, rope_parameters=BY_KIND)),
    "Qwen2-VL, flat": ("qwen2_vl", sizes(1536, 12, 32768, rope_scaling=M_YARN, vision_config={"depth": 2})),
    "Qwen2.5-VL, flat": ("qwen2_5_vl", sizes(3584, 28, 128000, rope_scaling=M_YARN, vision_config={"depth": 2})),
    "part of a file, no width": ("gemma3", {"text_config": {"model_type": "gemma3_text", "hidden_size": 2560}}),
    "Yarn-Llama-2": ("llama", sizes(4096, 32, 65536, rope_scaling={"type": "yarn", "factor": 16.0, "finetuned": True,
        "original_max_position_embeddings": 4096})),
    "LLaVA-1.5, no sizes": ("llava", {"text_config": {"model_type": "llama", "vocab_size": 32064}}),
    "text_config without model_type": ("gemma3", {"text_config": GEMMA_12B, "mm_tokens_per_image": 256}),
    "MiMo-V2-Flash": ("mimo_v2_flash", sizes(4096, 64, 262144, head_dim=192, partial_rotary_factor=0.334, **WINDOWS)),
    "Step-3.5-Flash, lists by layer": ("step3p5", sizes(4096, 64, 262144, **STEP)),
    "GLM-5.2": ("glm_moe_dsa", sizes(6144, 64, 1048576, rope_theta=8e6, indexer_rope_interleave=True)),
    "Zamba2": ("zamba2", {"hidden_size": 2560, "num_attention_heads": 32, "attention_head_dim": 80}),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # transformers warns of factors that do not fit the lengths
@pytest.mark.parametrize("label", HELD_OUT)
def test_configurations_that_nobody_named(label: str) -> None:
    name, fields = HELD_OUT[label]
    given = json.loads(json.dumps(fields | {"model_type": name}))
    config = MAPPING[name].from_dict(json.loads(json.dumps(given))).get_text_config()
    if "without positions" in label:
        assert not from_config(given).kinds["all"].turns
    else:
        compared(config.model_type, config, given)


def test_what_no_model_does_is_refused() -> None:
    """Mistral 4 makes frequencies for whole heads if nothing is stretched; Llama ignores what stands by kind."""
    mistral = MAPPING["mistral4"](rope_parameters={"rope_type": "default", "rope_theta": 1e4})
    assert len(rotary_module(mistral).inv_freq) == mistral.qk_rope_head_dim  # twice its pairs
    with pytest.raises(ValueError, match=r"another than 'default'.*no model of transformers runs with it"):
        from_config(mistral)
    by_kind = sizes(
        4096, 32, 8192, layer_types=["full_attention"] * 4, rope_theta=5e5, rope_parameters=BY_KIND
    )
    config = MAPPING["llama"].from_dict(json.loads(json.dumps(by_kind)))
    ignored = float(rotary_module(config).inv_freq[-1])  # it takes the base beside them
    assert ignored == pytest.approx(5e5 ** (-126 / 128), rel=1e-5)
    with pytest.raises(ValueError, match="llama has one rotation for all layers"):
        from_config(by_kind | {"model_type": "llama"})


@pytest.mark.parametrize("name", " ".join(reading._WITHOUT_ROTATION.values()).split())
def test_types_that_turn_nothing_do_not_turn(name: str) -> None:
    code = inspect.getsource(modeling(MAPPING[name]()))
    assert "RotaryEmbedding(" not in code
    assert len(re.findall(r"apply_rotary\w*\(", code)) <= 1  # it may be defined, and is not called
    with pytest.raises(ValueError, match="turns nothing"):
        from_config({"model_type": name})


def test_a_type_that_turns_would_be_noticed() -> None:
    assert "RotaryEmbedding(" in inspect.getsource(modeling(MAPPING["llama"]()))


@pytest.mark.parametrize("given", [{}, {"original_max_position_embeddings": 4096}])
def test_dynamic_scaling_begins_where_transformers_begins(given: dict[str, int]) -> None:
    scaling = given | {"type": "dynamic", "factor": 2.0}
    config = MAPPING["llama"].from_dict(sizes(4096, 32, 16384, rope_scaling=dict(scaling)))
    for length in (9000, 40000):
        theirs = rotary_module(config)
        theirs(torch.zeros(1, 1, 1, 1), torch.arange(length)[None])
        hub = sizes(4096, 32, 16384, model_type="llama", rope_scaling=scaling)
        omega = line(from_config(hub, length=length).kinds["all"])
        np.testing.assert_allclose(omega, theirs.inv_freq.double().numpy(), rtol=1e-5)


NOT_LOADED = peer("huggingface_hub.errors").StrictDataclassError
LEFT_OUT = (
    "head_dim", "kv_channels", "attention_head_dim", "per_layer_config", "qk_rope_head_dim", "rope_parameters",
)  # fmt: skip
FEWEST = {"head_dim": 90, "rope_parameters": 100, "qk_rope_head_dim": 10}  # that are read all the same


@pytest.mark.parametrize("field", LEFT_OUT)
def test_what_a_file_leaves_out_is_that_of_the_class_or_asked_for(field: str) -> None:
    """In every model type; with a hidden_size that makes the quotient another width than that of the class."""
    read = 0
    for name in TYPES:
        if name in {*REFUSED, *OTHER, *OLDEST}:
            continue
        given = json.loads(json.dumps(default(name).to_dict(), default=str))
        if given.pop(field, None) is None:
            continue
        if field == "head_dim" and isinstance(given.get("num_attention_heads"), int):
            given["hidden_size"] *= 2
        try:
            config = MAPPING[name].from_dict(json.loads(json.dumps(given)))
            rotary_module(config)
            from_config(given)
        except (ValueError, NOT_LOADED):  # asked for, or transformers does not load it
            continue
        compared(name, config, given)
        read += 1
    assert read >= FEWEST.get(field, 1)


def test_a_share_of_columns_that_are_all_turned_is_refused_where_transformers_does_not_run() -> None:
    refused: list[str] = []
    for name in {*TYPES} - {*REFUSED, *OTHER, *OLDEST}:
        config = default(name).get_text_config()
        given = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0, "partial_rotary_factor": 0.5}
        if getattr(config, "qk_rope_head_dim", None):
            config = type(config)(**ADDED.get(name, {}), rope_parameters=given)
            try:
                compared(name, config, config.to_dict() | {"model_type": config.model_type})
            except ValueError as error:
                refused.append(str(error))
    assert all("partial_rotary_factor" in each for each in refused)
    assert len(refused) > 9


LINEAR = {"type": "linear", "factor": 3.0}
SHARE = {"partial_rotary_factor": 0.25}
BASE = {"rope_theta": 4321.0}
FIELDS: dict[str, tuple[dict[str, Any], int]] = {  # and how many model types read them at least
    "share": (SHARE, 50),
    "share in the dict": ({"rope_parameters": {"rope_type": "default", **BASE, **SHARE}}, 50),
    "base": (BASE, 170),
    "base in the dict": ({"rope_parameters": {"rope_type": "default", **BASE}}, 170),
    "scaling": ({"rope_scaling": LINEAR}, 140),
}
SIZES = (
    "hidden_size", "num_attention_heads", "max_position_embeddings", "embed_dim", "num_heads", "qk_nope_head_dim",
    "qk_rope_head_dim", "d_model", "encoder_attention_heads", "num_hidden_layers", "head_dim",
)  # fmt: skip


@pytest.mark.parametrize("label", FIELDS)
def test_a_field_is_read_as_transformers_reads_it_or_refused(label: str) -> None:
    """In every model type, also in those whose code leaves the field unread."""
    (fields, fewest), read = FIELDS[label], 0
    for name in TYPES:
        if name in {*REFUSED, *OTHER, *OLDEST, "esm", "granitemoehybrid"}:
            continue
        given = {"model_type": name, **ADDED.get(name, {}), **fields}
        try:
            config = MAPPING[name].from_dict(json.loads(json.dumps(given)))
        except Exception:  # transformers does not load it
            continue
        whole = json.loads(json.dumps(config.to_dict(), default=str))
        given |= {size: whole[size] for size in SIZES if whole.get(size) is not None}
        try:
            from_config(given)
        except ValueError:
            continue
        compared(name, config, given)
        read += 1
    assert read >= fewest
