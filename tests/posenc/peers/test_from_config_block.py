"""from_config.py on configurations of transformers: its numbers, or an error that says what to do instead.

Each configuration comes in two forms: config.json as on the hub, and what to_dict() of transformers makes of it.
"""

import json
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from posenc.rotary import config
from tests.posenc.peers.theirs import MAPPING, applied, called, modeling, rotary_module, scaling
from tests.taken import block


def sizes(hidden: int, heads: int, limit: int, **more: Any) -> dict[str, Any]:
    return {
        "hidden_size": hidden, "num_attention_heads": heads, "max_position_embeddings": limit,
        "num_hidden_layers": 4, "vocab_size": 100,
    } | more  # fmt: skip


YARN = {
    "type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1,
    "mscale": 1.0, "mscale_all_dim": 1.0,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
INTERLEAVED, HALF = "interleaved", "half"

# As on the hub, positions whole, other sizes small: the layout, the fields that the caller sees to, and what an
# error says without them (None: there is none).
HUB: dict[str, tuple[dict[str, Any], str, list[str], str | None]] = {
    "deepseek_v3": (
        sizes(
            7168, 128, 163840, qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, kv_lora_rank=512,
            q_lora_rank=1536, rope_theta=10000, rope_scaling=YARN, moe_layer_freq=1,
        ), INTERLEAVED, ["mscale_all_dim"], "softmax scale",
    ),
    "deepseek_v2": (
        sizes(
            5120, 128, 163840, qk_nope_head_dim=128, qk_rope_head_dim=64, rope_theta=10000,
            rope_scaling=YARN | {"mscale": 0.707, "mscale_all_dim": 0.707},
        ), INTERLEAVED, ["mscale_all_dim"], "softmax scale",
    ),
    "glm4": (
        sizes(4096, 32, 32768, head_dim=128, partial_rotary_factor=0.5, rope_theta=10000.0),
        INTERLEAVED, [], None,
    ),
    "glm4_moe": (
        sizes(4096, 96, 131072, head_dim=128, partial_rotary_factor=0.5, rope_theta=1000000, rope_scaling=None),
        HALF, [], None,
    ),
    "cohere": (sizes(8192, 64, 8192, rope_theta=8000000.0, model_max_length=131072), INTERLEAVED, [], None),
    "cohere2": (
        sizes(
            4096, 32, 8192, rope_theta=50000, rotary_pct=1.0, sliding_window=4096, sliding_window_pattern=4,
            layer_switch=4, position_embedding_type="rope_gptj", rope_scaling=None,
        ),
        INTERLEAVED,
        [
            "sliding_window_pattern", "_sliding_window_pattern", "layer_switch", "position_embedding_type",
            "layer_types",
        ],
        "handled",
    ),
    "llama4_text": (
        sizes(
            5120, 40, 10485760, head_dim=128, rope_theta=500000.0, no_rope_layers=[], attention_chunk_size=8192,
            attn_temperature_tuning=True, rope_scaling=LLAMA3,
        ),
        INTERLEAVED,
        ["no_rope_layers", "no_rope_layer_interval", "attn_temperature_tuning", "layer_types"],
        "every fourth",
    ),
    "gemma3_text": (
        sizes(
            2560, 8, 131072, head_dim=256, rope_theta=1000000.0, rope_local_base_freq=10000.0,
            rope_scaling={"factor": 8.0, "rope_type": "linear"}, sliding_window=1024, sliding_window_pattern=6,
            num_hidden_layers=6,
        ), HALF, ["rope_local_base_freq", "sliding_window_pattern"], "local layers: config",
    ),
    "modernbert": (
        sizes(768, 12, 8192, global_rope_theta=160000.0, local_rope_theta=10000.0, global_attn_every_n_layers=3),
        HALF, [], "global_rope_theta",
    ),
    "gpt_neox": (sizes(6144, 64, 2048, rotary_pct=0.25, rotary_emb_base=10000), HALF, [], None),
    "qwen3_vl_text": (
        sizes(
            4096, 32, 262144, head_dim=128, rope_theta=5000000,
            rope_scaling={"mrope_interleaved": True, "mrope_section": [24, 20, 20], "rope_type": "default"},
        ), HALF, ["mrope_section", "mrope_interleaved"], "mrope_frequencies",
    ),
    "qwen2_vl_text": (
        sizes(3584, 28, 32768, rope_theta=1000000.0, rope_scaling={"type": "mrope", "mrope_section": [16, 24, 24]}),
        HALF, ["mrope_section"], "mrope_frequencies",
    ),
    "smollm3": (
        sizes(2048, 16, 65536, rope_theta=5000000.0, no_rope_layers=[1, 1, 1, 0], no_rope_layer_interval=4),
        HALF, ["no_rope_layers", "no_rope_layer_interval"], "layers with 0",
    ),
    "llama": (sizes(4096, 32, 131072, rope_theta=500000.0, rope_scaling=LLAMA3), HALF, [], None),
    "qwen2": (
        sizes(3584, 28, 32768, rope_theta=1000000.0, use_sliding_window=False, max_window_layers=28),
        HALF, [], None,
    ),
    "gpt_oss": (
        sizes(
            2880, 64, 131072, head_dim=64, rope_theta=150000, sliding_window=128, rope_scaling={
                "beta_fast": 32.0, "beta_slow": 1.0, "factor": 32.0, "original_max_position_embeddings": 4096,
                "rope_type": "yarn", "truncate": False,
            },
            layer_types=["sliding_attention", "full_attention"] * 2,
        ), HALF, ["layer_types"], "layers differ",
    ),
    "phi3": (
        sizes(
            3072, 32, 131072, rope_theta=10000.0, original_max_position_embeddings=4096, rope_scaling={
                "type": "longrope", "short_factor": [1.0] * 48, "long_factor": [2.0] * 48
            },
        ), HALF, [], "longrope_frequencies",
    ),
    "qwen3_next": (
        sizes(
            2048, 16, 262144, head_dim=256, partial_rotary_factor=0.25, rope_theta=10000000,
            full_attention_interval=4,
        ), HALF, ["layer_types"], None,
    ),
    "stablelm": (sizes(2560, 32, 4096, partial_rotary_factor=0.25, rope_theta=10000), HALF, [], None),
}  # fmt: skip

# More of transformers' own types, each at the defaults of its class; those that begin with ! have an error.
_TYPES = """
apertus arcee aria_text bamba bitnet blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher
cohere cwm! dbrx! deepseek_v2 deepseek_v3 diffllama doge dots1 ernie4_5
ernie4_5_moe exaone4! falcon falcon_h1 gemma gemma2! gemma3_text! gemma3n_text! gemma4_text! glm glm4 glm_moe_dsa
gpt_neox gpt_oss! granite granitemoe helium hunyuan_v1_dense jetmoe! llama llama4_text! longcat_flash minicpm3
minimax! minimax_m2 minimax_m3_vl_text! ministral3! mistral mistral4! mixtral modernbert! nanochat! nemotron olmo2
olmo3! openai_privacy_filter persimmon phi phi3 pixtral! qwen2 qwen2_moe qwen2_vl_text! qwen3 qwen3_moe
qwen3_next! qwen3_vl_text! seed_oss smollm3! stablelm starcoder2 youtu zamba2! zaya!
"""
# What transformers turns with neighbouring columns in pairs (seen on its functions).
_ADJACENT = """blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher
cohere cohere2 deepseek_v2 deepseek_v3 ernie4_5 ernie4_5_moe glm glm4 glm_moe_dsa helium llama4_text
longcat_flash mistral4 openai_privacy_filter youtu"""
TYPES, ADJACENT = _TYPES.split(), _ADJACENT.split()


def rope_of() -> Any:
    return block("from_config").Rope


def same(rope: Any, config: Any, kind: str = "") -> None:
    theirs = rotary_module(config)
    omega = getattr(theirs, f"{kind}_inv_freq" if kind else "inv_freq").double()
    assert rope.omega.shape == omega.shape
    torch.testing.assert_close(rope.omega, omega, rtol=1e-5, atol=0)
    assert rope.scale == pytest.approx(scaling(theirs, kind), rel=1e-6)


def same_scores(rope: Any, config: Any) -> None:
    """Queries and keys turned by transformers' own function; scores, for some change the order of columns."""
    q, k = torch.randn(2, 1, 2, 30, rope.width, generator=torch.Generator().manual_seed(0))
    code = called(rotary_module(config), q, torch.arange(30), "")
    rotation = SimpleNamespace(layout=rope.layout, method="", rotary_dim=2 * len(rope.omega))
    wanted = applied(modeling(config), rotation, q, k, code)
    torch.testing.assert_close(rope(q) @ rope(k).mT, wanted[0] @ wanted[1].mT, rtol=1e-3, atol=2e-3)


def forms(name: str) -> tuple[Any, dict[str, dict[str, Any]]]:
    """transformers' configuration, and both forms of it."""
    hub = json.loads(json.dumps(HUB[name][0] | {"model_type": name}))
    config = MAPPING[name].from_dict(json.loads(json.dumps(hub)))
    return config, {"hub": hub, "to_dict": config.to_dict()}


@pytest.mark.parametrize("form", ["hub", "to_dict"])
@pytest.mark.parametrize("name", HUB)
def test_released_configurations(name: str, form: str) -> None:
    _, layout, handled, said = HUB[name]
    config, both = forms(name)
    given, make = both[form], rope_of()
    if form == "hub" and said is not None:
        with pytest.raises(ValueError, match=said):
            make(given, layout)
    if (
        form == "hub" and not handled and said is not None
    ):  # longrope, bases by layer: nothing makes it read them
        return
    if form == "to_dict" and name in ("gemma3_text", "modernbert", "phi3"):
        with pytest.raises(ValueError, match=r"rope_parameters|longrope_frequencies"):
            make(given, layout, handled)
        return
    rope = make(given, layout, handled)
    if name == "gemma3_text":
        same(rope, config, "full_attention")
    else:
        same(rope, config)
        if not name.endswith("_vl_text"):  # these take three coordinates
            same_scores(rope, config)


def test_the_way_that_errors_name_leads_to_each_layer() -> None:
    """Gemma 3 and ModernBERT: full and sliding layers, from both forms."""
    make = rope_of()
    config, both = forms("gemma3_text")
    hub, new = both["hub"], both["to_dict"]
    handled = ["rope_local_base_freq", "sliding_window_pattern", "layer_types", "_sliding_window_pattern"]
    same(make(hub, "half", handled), config, "full_attention")
    local = hub | {"rope_theta": hub["rope_local_base_freq"], "rope_scaling": None}
    same(make(local, "half", handled), config, "sliding_attention")
    bert = MAPPING["modernbert"]()
    for theirs, given in ((config, new), (bert, bert.to_dict())):
        for kind in ("full_attention", "sliding_attention"):
            one = given | {"rope_parameters": given["rope_parameters"][kind]}
            same(make(one, "half", [*handled, "global_attn_every_n_layers"]), theirs, kind)


@pytest.mark.parametrize("name", TYPES)
def test_types_at_their_defaults(name: str) -> None:
    name, refused = name.rstrip("!"), name.endswith("!")
    config, make = MAPPING[name](), rope_of()
    layout = INTERLEAVED if name in ADJACENT else HALF
    given = config.to_dict()
    older = {key: value for key, value in given.items() if key not in ("rope_parameters", "layer_types")}
    inner = given.get("rope_parameters") or {}
    nested = any(isinstance(value, dict) for value in inner.values())
    if not nested:
        flat = ("rope_theta", "partial_rotary_factor")
        older |= {key: inner[key] for key in flat if key in inner}
        older |= {"rope_scaling": {key: value for key, value in inner.items() if key not in flat}}
    if refused:
        with pytest.raises(ValueError, match=r"pass |posenc|needs|must"):
            make(given, layout)
        return
    for form in (given, older):
        rope = make(form, layout)
        same(rope, config)
        same_scores(rope, config)
    if layout == INTERLEAVED:
        with pytest.raises(ValueError, match="other layout"):
            make(given, HALF)


def test_its_list_of_layouts_is_that_of_the_package() -> None:
    """Beside names that files of other code have."""
    rows = config._model_types().values()
    known = {row["model_type"] for row in rows if row["layout"] == INTERLEAVED and not row["refused"]}
    listed = set(block("from_config").INTERLEAVED)
    assert known <= listed
    assert not any(row["model_type"] in listed for row in rows if row["layout"] == HALF)


def test_its_shares_are_those_of_the_package() -> None:
    rows = config._model_types().items()
    known = {name: float(row["share"]) for name, row in rows if row["share"] and not row["refused"]}
    latent = {name for name in known if MAPPING[name]().to_dict().get("qk_rope_head_dim")}
    assert {name: share for name, share in known.items() if name not in latent} == block("from_config").SHARES


@pytest.mark.parametrize("name", ["llama", "qwen3", "a type of a file's own code"])
def test_a_share_that_most_types_ignore_is_refused_until_the_caller_has_looked(name: str) -> None:
    given = sizes(4096, 32, 8192, model_type=name, head_dim=128, rope_theta=1e4, partial_rotary_factor=0.5)
    make = rope_of()
    with pytest.raises(ValueError, match="partial_rotary_factor: most types ignore it"):
        make(given, HALF)
    assert len(make(given, HALF, ["partial_rotary_factor"]).omega) == 32
    assert len(make(given | {"partial_rotary_factor": 1.0}, HALF).omega) == 64
    del given["model_type"]  # then it is what the caller says
    assert len(make(given, HALF).omega) == 32


def test_a_share_that_the_file_leaves_out_is_that_of_the_class() -> None:
    given = sizes(4096, 32, 8192, model_type="glm4", head_dim=128, rope_theta=1e4)
    same(rope_of()(given, INTERLEAVED), MAPPING["glm4"].from_dict(dict(given)))


@pytest.mark.parametrize("name", ["qwen3_vl", "gemma3", "llama4", "qwen2_vl"])
def test_composite_files_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="text_config"):
        rope_of()(MAPPING[name]().to_dict(), HALF)
