"""from_config without transformers: what it reads, and what it refuses with a cure."""

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch

import posenc
from posenc import rotary
from posenc.nn import RotaryEmbedding
from posenc.rotary.__main__ import main
from posenc.rotary.config import from_config

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "max_position_embeddings": 131072,
}
LLAMA3 = {
    "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192,
}  # fmt: skip
OLD = LLAMA | {"rope_theta": 500000.0, "rope_scaling": LLAMA3 | {"rope_type": "llama3"}}
NEW = LLAMA | {"rope_parameters": LLAMA3 | {"rope_type": "llama3", "rope_theta": 500000.0}}
DEEPSEEK = {
    "model_type": "deepseek_v3", "hidden_size": 7168, "num_attention_heads": 128, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "rope_theta": 10000, "max_position_embeddings": 163840, "rope_scaling": {
        "type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
    },
}  # fmt: skip

GEMMA4 = LLAMA | {
    "model_type": "gemma4_text", "rope_parameters": {
        "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
    },
}  # fmt: skip


class Made:
    def to_dict(self) -> dict[str, Any]:
        return OLD


def test_all_forms_of_one_configuration_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(OLD), encoding="utf-8")
    wanted = rotary.llama3_frequencies(128, 8, original_length=8192, base=500000.0)
    whole = {
        "model_type": "some_vlm",
        "vision_config": {"num_heads": 16, "hidden_size": 64},
        "text_config": NEW,
    }
    for form in (OLD, NEW, path, str(path), Made(), whole):
        found = from_config(form)
        np.testing.assert_array_equal(found.kinds["all"].frequencies, wanted)
        assert (found.kinds["all"].dim, found.kinds["all"].rotary_dim, found.kinds["all"].layout) == (
            128,
            128,
            "half",
        )
        assert (found.trained_length, found.limit, found.layers) == (8192, 131072, None)


def test_kinds_of_layers() -> None:
    gemma = {
        "model_type": "gemma3_text", "head_dim": 256, "rope_theta": 1e6, "rope_local_base_freq": 1e4,
        "rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window_pattern": 6, "num_hidden_layers": 7,
    }  # fmt: skip
    found = from_config(gemma)
    assert found.layers == ("sliding_attention",) * 5 + ("full_attention", "sliding_attention")
    local, full = found.kinds["sliding_attention"], found.kinds["full_attention"]
    np.testing.assert_array_equal(local.frequencies, posenc.sinusoidal_frequencies(256, 1e4))
    np.testing.assert_array_equal(full.frequencies, posenc.sinusoidal_frequencies(256, 1e6) / 8)
    llama4 = LLAMA | {
        "model_type": "llama4_text",
        "rope_theta": 5e5,
        "num_hidden_layers": 4,
        "attn_temperature_tuning": True,
    }
    found = from_config(llama4)
    assert found.layers == ("turned", "turned", "turned", "not_turned")
    assert not found.kinds["not_turned"].turns
    assert found.kinds["not_turned"].log_scale == (0.1, 8192, 1)
    assert found.kinds["turned"].log_scale is None
    pictures = LLAMA | {
        "model_type": "mllama_text_model",
        "num_hidden_layers": 5,
        "cross_attention_layers": [3],
    }
    found = from_config(pictures)
    assert [found.kinds[kind].turns for kind in found.layers or ()] == [True, True, True, False, True]
    beam = {"sliding_attention": {"rope_type": "default", "rope_theta": 1e4}, "full_attention": None}
    kinds = {"rope_parameters": beam, "layer_types": ["sliding_attention", "full_attention"]}
    found = from_config(LLAMA | kinds | {"model_type": "beam"})
    assert [found.kinds[kind].turns for kind in found.layers or ()] == [True, False]


def test_a_slice_with_positions() -> None:
    found = from_config(DEEPSEEK).kinds["all"]
    assert (found.dim, found.rotary_dim, found.layout, found.scale) == (64, 64, "interleaved", 1.0)
    assert found.softmax_factor == pytest.approx(1.8738, abs=1e-4)  # 1.3689²
    with pytest.raises(ValueError, match=r"multiply them by 1\.87385, then pass handled=..softmax_factor.,"):
        RotaryEmbedding.from_config(DEEPSEEK)
    layer = RotaryEmbedding.from_config(DEEPSEEK, 10, handled=("softmax_factor",))["all"]
    assert repr(layer) == "RotaryEmbedding(dim=64, max_len=10, layout='interleaved')"
    tuned = LLAMA | {"model_type": "llama4_text", "num_hidden_layers": 4}
    with pytest.raises(
        ValueError, match=r"queries of not_turned.* 0\.1 ln\(1 \+ floor\(\(t \+ 1\)/8192\)\), then pass"
    ):
        RotaryEmbedding.from_config(tuned)
    assert RotaryEmbedding.from_config(tuned, 10, handled=("log_scale",))["not_turned"] is None
    own = {"model_type": "unheard", "head_dim": 8, "rope_theta": 100.0, "my_rope": 1}
    layer = RotaryEmbedding.from_config(own, 10, layout="half", handled=("my_rope",))["all"]
    assert repr(layer) == "RotaryEmbedding(dim=8, max_len=10, layout='half')"


def test_a_type_of_its_own_that_runs_the_code_of_another() -> None:
    kimi, deepseek = (
        from_config(DEEPSEEK | {"model_type": name}).kinds["all"] for name in ("kimi_k2", "deepseek_v3")
    )
    assert (kimi.layout, kimi.softmax_factor) == (deepseek.layout, deepseek.softmax_factor)
    assert kimi.softmax_factor > 1.8
    with pytest.raises(ValueError, match="mscale_all_dim: DeepSeek and its kin also multiply scores"):
        from_config(DEEPSEEK | {"model_type": "unheard"}, layout="interleaved")


def test_layers_turn_as_the_frequencies_say() -> None:
    given = {"model_type": "glm4", "head_dim": 16, "partial_rotary_factor": 0.5, "rope_theta": 100.0}
    layer = RotaryEmbedding.from_config(given, max_len=10)["all"]
    assert layer is not None
    q = torch.randn(2, 4, 5, 16, generator=torch.Generator().manual_seed(0))
    wanted = posenc.apply_rotary(q, torch.arange(5), base=100.0, rotary_dim=8, layout="interleaved")
    torch.testing.assert_close(layer(q, q)[0], wanted)
    with pytest.raises(ValueError, match="positions of 3 coordinates: turn them with"):
        RotaryEmbedding.from_config(LLAMA | {"model_type": "qwen2_vl_text"})
    cohere = LLAMA | {"model_type": "cohere2", "sliding_window": 4096, "rope_theta": 50000.0}
    layers = RotaryEmbedding.from_config(cohere, max_len=4)
    assert layers["full_attention"] is None
    assert layers["sliding_attention"] is not None


def test_full_layers_turn_or_not_as_the_window_says() -> None:
    exaone = LLAMA | {"model_type": "exaone4", "layer_types": ["full_attention"] * 2}
    assert from_config(exaone | {"sliding_window": None}).kinds["all"].turns
    assert not from_config(exaone | {"sliding_window": 4096}).kinds["full_attention"].turns
    assert not from_config(LLAMA | {"model_type": "cohere2"}).kinds["full_attention"].turns
    with pytest.raises(ValueError, match="first_k_dense_replace: dense layers turn, though they are full"):
        from_config(LLAMA | {"model_type": "cohere2_moe", "first_k_dense_replace": 1})


def test_what_a_file_leaves_out_is_the_default_of_its_class() -> None:
    llama4 = from_config(LLAMA | {"model_type": "llama4_text"}).kinds["not_turned"]
    assert llama4.log_scale == (0.1, 8192, 1)
    kinds = {
        name: from_config(LLAMA | {"model_type": name}).kinds["all"] for name in ("llama", "helium", "glm")
    }
    assert {name: (kind.base, kind.rotary_dim) for name, kind in kinds.items()} == {
        "llama": (10000.0, 128), "helium": (100000.0, 128), "glm": (10000.0, 64),
    }  # fmt: skip


YARN = {"rope_type": "yarn", "factor": 4.0}
MUSE = {"model_type": "muse_spark_text", "head_dim": 64}
NEOX, GEMMA = LLAMA | {"model_type": "gpt_neox"}, LLAMA | {"model_type": "gemma3_text"}


@pytest.mark.parametrize(
    "planted",
    [
        {"rope_warp": 2.0},
        {"use_relative_bias": True},
        {"pos_encoding": "learned"},
        {"max_wavelength": 100000},
        {"xpos_base": 512},
        {"inv_freq_gain": 1.5},
        {"position_embedding_type": "alibi"},
        {"llama_4_scaling_beta": 0.1},
        {"rope_scaling": {"rope_type": "linear", "factor": 2.0, "alpha": 1000.0}},
        {"rope_scaling": {"rope_type": "default", "ramp": 3}},
        {"rope_parameters": {"full_attention": {"rope_theta": 1e6, "warp": 2.0}, "sliding_attention": None}},
    ],
)
def test_unknown_fields_that_sound_like_positions_are_refused(planted: dict[str, Any]) -> None:
    (name,) = planted
    inside = planted[name] if isinstance(planted[name], dict) else {}
    name = next(
        (
            inner
            for inner in (*inside, *inside.get("full_attention", ()))
            if inner in ("alpha", "ramp", "warp")
        ),
        name,
    )
    known = GEMMA if "full_attention" in inside else LLAMA
    for config in (known | planted, {"model_type": "unheard", "head_dim": 8, "rope_theta": 1e4} | planted):
        layout: Literal["half"] | None = "half" if config["model_type"] == "unheard" else None
        with pytest.raises(ValueError, match=f"not read: {name}: "):
            from_config(config, layout=layout)
        assert from_config(config, layout=layout, handled=(name,)).kinds


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model_type": "unheard"}, "model_type 'unheard' is not known: pass layout"),
        (LLAMA | {"model_type": "vjepa2"}, "'vjepa2' is not read: its angles make no rotation"),
        (LLAMA | {"use_alibi_positions": True}, r"not read: use_alibi_positions: look it up.*handled=\('use_alibi"),
        (LLAMA | {"rope_scaling": YARN}, "needs original_max_position_embeddings, the trained length"),
        (LLAMA | {"rope_scaling": {"rope_type": "linear"}}, "'linear' needs factor"),
        (LLAMA | {"rope_scaling": {"rope_type": "spiral"}}, "'spiral' is not known to posenc; it knows default"),
        (LLAMA | {"rope_scaling": {"rope_type": "dynamic", "factor": 2.0}}, "depends on the present length"),
        (LLAMA | {"rope_scaling": [1]}, "rope_parameters must be a dict, got"),
        ({"model_type": "llama", "hidden_size": 5120}, "how wide a head is: add head_dim"),
        ({"model_type": "bert", "hidden_size": 768}, "'bert' turns nothing, .*a learned vector for each position"),
        ({"model_type": "kimi_linear", "qk_rope_head_dim": 64}, "turns nothing, .*its attention has no positions"),
        ({"model_type": "qwen3_5", "head_dim": 256}, "which is missing: .* change model_type to 'qwen3_5_text'"),
        (
            {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "attn_config": {"rope_theta": 5e5}},
            "attn_config: transformers reads no rope_theta in it: add rope_theta beside it",
        ),
        (LLAMA | {"rope_theta": [1e4, 5e5]}, "must be as long as layer_types, one number for each layer"),
        (LLAMA | {"rope_parameters": {"full_attention": {"rope_theta": 1e6}}}, "llama has one rotation for all layers"),
        (NEOX | {"partial_rotary_factor": 0.5, "rotary_pct": 0.25}, "given twice, as 0.5 and as 0.25"),
        (LLAMA | {"rotary_pct": 0.25}, "rotary_pct: transformers ignores it and takes 1;"),
        (LLAMA | {"no_rope_layers": [1, 0]}, "no_rope_layers: posenc knows no such layers"),
        (LLAMA | {"rope_scaling": YARN, "rope_parameters": LLAMA3}, "the scaling is given twice"),
        (GEMMA | {"rope_parameters": YARN}, "of gemma3_text must hold a dict for each kind of layer"),
        (GEMMA | {"rope_parameters": {"full_attention": YARN, "factor": 2.0}}, "each kind of layer, got.*beside them"),
        (GEMMA | {"rope_parameters": {"full_attention": YARN | {"truncate": False}}}, "truncate stands in"),
        (GEMMA | {"partial_rotary_factor": 0.5, "rope_parameters": {"full_attention": YARN}}, "factor stands beside"),
        (MUSE, "of muse_spark_text leaves some layers unturned: add layer_rope_theta"),
        (MUSE | {"rope_theta": 1e4, "layer_rope_theta": [0, 5e5]}, "its code has one base, got .500000.0. and 10000"),
        ({"model_type": "zaya", "rope_theta": 5e6}, "a rotation of its own for each kind of layer: add"),
        (LLAMA | {"model_type": "glm", "head_dim": 42, "partial_rotary_factor": 0.5}, "even and at most 42, got 21"),
        (LLAMA | {"rotary_dim": 64}, "rotary_dim: transformers ignores it"),
        (LLAMA | {"model_type": "gpt_oss", "head_dim": 64}, "class of gpt_oss has scaling 'yarn' of its own"),
        ({"model_type": "x", "a_config": LLAMA, "b_config": LLAMA}, r"pass part, one of \['a_config', 'b"),
        (NEW | {"original_max_position_embeddings": 4096}, "given twice, as 4096 and as 8192"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_a_cure(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        from_config(config)


def test_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="rope_theta must be a real number, got '1e6'"):  # as YAML reads it
        from_config(LLAMA | {"rope_theta": "1e6"})
    with pytest.raises(TypeError, match="config must be a dict, the path of a"):
        from_config(3)
    with pytest.raises(ValueError, match="layout of llama is 'half', got 'interleaved'"):
        from_config(LLAMA, layout="interleaved")
    with pytest.raises(ValueError, match="part must name a configuration"):
        from_config(LLAMA, part="vision_config")
    known = {"head_dim": 8, "rope_theta": 100.0, "my_rope": 1}
    found = from_config(known, layout="half", handled=("my_rope",)).kinds["all"]
    np.testing.assert_array_equal(found.frequencies, posenc.sinusoidal_frequencies(8, 100.0))


def test_a_file_is_told_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(DEEPSEEK), encoding="utf-8")
    assert main([str(path)]) == 0
    said = capsys.readouterr().out
    assert "all 64 columns that hold positions in a head of 192 are turned" in said
    assert "layout interleaved: column i is turned with column i + 1, for even i" in said
    assert "base 10,000, stretched by YaRN" in said
    assert "cosines" not in said  # they are multiplied by 1
    assert "turns once in 6.3 positions, the slowest of 32 in 1,884,690" in said
    assert (
        "23 of 32 pairs make a whole turn in the 4,096 positions of the model before it was stretched" in said
    )
    assert "scores are multiplied by 1.874 besides 1/√width of the whole head" in said
    path.write_text(json.dumps(LLAMA | {"model_type": "smollm3", "num_hidden_layers": 12}), encoding="utf-8")
    assert main([str(path)]) == 0
    said = capsys.readouterr().out
    assert "turned: 9 of 12 layers, 0, 1, 2, 4, 5, 6, 8, …" in said
    assert "not_turned: 3 of 12 layers, 3, 7, 11\n    positions turn nothing" in said
    assert (
        "in the 131,072 positions that the file allows\n" in said
    )  # which may be more than it was trained on
    path.write_text(json.dumps(GEMMA4), encoding="utf-8")
    assert main([str(path)]) == 0
    said = capsys.readouterr().out
    assert (
        "128 of the 512 columns of a head are turned\n    layout half: column i is turned with column i + 256"
        in said
    )
    assert "64 of 64 pairs make a whole turn" in said
    path.write_text(
        '{"model_type": "unheard", "head_dim": 8, "rope_theta": 100, "use_rel_pos": true}', encoding="utf-8"
    )
    assert main([str(path)]) == 2
    assert "on the command line: --layout half, or --layout interleaved\n" in capsys.readouterr().err
    assert main([str(path), "--layout", "half"]) == 2
    assert "not read: use_rel_pos" in capsys.readouterr().err
    assert main([str(path), "--layout", "half", "--handled", "use_rel_pos"]) == 0
    assert (
        "unheard: 1 kind of layer\nall layers with softmax attention\n    all 8 columns of a head are"
        in capsys.readouterr().out
    )
    path.write_text(json.dumps(LLAMA | {"rope_theta": "1e6"}), encoding="utf-8")
    assert main([str(path)]) == 2
    assert "rope_theta must be a real number" in capsys.readouterr().err
    path.write_text("[]", encoding="utf-8")
    assert main([str(path)]) == 2
    assert "config must be a JSON object, got a list" in capsys.readouterr().err
