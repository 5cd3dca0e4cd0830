"""What chapters give to take along, held against transformers (the extra `peers`)."""

from __future__ import annotations

import importlib
from typing import Any

import missing
import pytest
import taken
import torch

try:
    transformers: Any = importlib.import_module("transformers")
except ModuleNotFoundError:
    missing.skip_or_fail("peers", "no transformers: pip install 'posenc[peers]'")

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
SLACK = {torch.float32: 1e-5, torch.bfloat16: 3e-2}  # theirs rounds on the way, too


def block(name: str) -> Any:
    return taken.pasted(taken.codes()[name])


def modeling(name: str) -> Any:
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1))


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    slack = SLACK[ours.dtype]
    torch.testing.assert_close(ours, theirs, rtol=slack, atol=slack)


def llama() -> Any:
    """Its attention, four heads on two heads of keys, and what turns them."""
    config = transformers.LlamaConfig(
        hidden_size=64, num_attention_heads=4, num_key_value_heads=2, rope_parameters={"rope_theta": 5e5}
    )
    config._attn_implementation = "eager"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return modeling("llama").LlamaAttention(config, layer_idx=0).eval(), config


@DTYPES
def test_attention_is_that_of_llama_with_its_cache(dtype: torch.dtype) -> None:
    theirs, config = llama()
    theirs = theirs.to(dtype)
    ours = block("rope_attention").CausalAttention(64, 4, 2, layout="half", base=5e5).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    x = random(2, 20, 64).to(dtype)
    code = modeling("llama").LlamaRotaryEmbedding(config)(x, torch.arange(20)[None])
    hidden = torch.full((20, 20), -torch.inf, dtype=dtype).triu(1)[None, None]
    cache = transformers.DynamicCache()
    full, _ = theirs(x, position_embeddings=code, attention_mask=hidden)
    close(ours(x)[0], full)
    kept = None
    for t in range(20):
        here = tuple(part[:, t : t + 1] for part in code)
        step, _ = theirs(
            x[:, t : t + 1], position_embeddings=here, attention_mask=None, past_key_values=cache
        )
        mine, kept = ours(x[:, t : t + 1], cache=kept)
        close(mine, step)
    assert kept is not None
    close(kept[0], cache.layers[0].keys)


@DTYPES
def test_both_layouts(dtype: torch.dtype) -> None:
    rope = block("rope").rope
    q = random(2, 4, 50, 16).to(dtype)
    config = transformers.LlamaConfig(hidden_size=64, num_attention_heads=4)
    cos, sin = modeling("llama").LlamaRotaryEmbedding(config)(q.float(), torch.arange(7, 57)[None])
    theirs, _ = modeling("llama").apply_rotary_pos_emb(q, q, cos, sin)
    close(rope(q, "half", offset=7), theirs.to(dtype))
    angles = torch.arange(7, 57)[:, None] * 10000.0 ** (-torch.arange(0, 16, 2) / 16)
    code = torch.polar(torch.ones_like(angles), angles)[None]
    theirs, _ = modeling("llama4").apply_rotary_emb(q.transpose(1, 2), q.transpose(1, 2), code)
    close(rope(q, "interleaved", offset=7), theirs.transpose(1, 2))


@DTYPES
def test_alibi_is_that_of_bloom(dtype: torch.dtype) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = transformers.BloomConfig(hidden_size=48, n_head=6)
        layer = modeling("bloom").BloomAttention(config, layer_idx=0).eval().to(dtype)
    x = random(2, 40, 48).to(dtype)
    bias = modeling("bloom").build_alibi_tensor(torch.ones(2, 40), 6, dtype)
    hidden = torch.full((40, 40), -torch.inf, dtype=dtype).triu(1)
    theirs, _ = layer(x, torch.zeros_like(x), bias, hidden)
    ours = block("alibi").alibi_attention(*layer._reshape(layer.query_key_value(x)))
    close(layer.dense(ours.transpose(1, 2).flatten(-2)), theirs)


@DTYPES
def test_alibi_with_pads_and_a_cache_is_that_of_bloom(dtype: torch.dtype) -> None:
    """Pads on the left, and the last two queries alone: only what stands at real tokens counts."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = transformers.BloomConfig(hidden_size=48, n_head=6)
        layer = modeling("bloom").BloomAttention(config, layer_idx=0).eval().to(dtype)
    x = random(2, 30, 48).to(dtype)
    pads = torch.arange(30) < torch.tensor([[0], [11]])
    bias = modeling("bloom").build_alibi_tensor((~pads).long(), 6, dtype)
    hidden = torch.ones(30, 30).triu(1).bool() | pads[:, None, None]
    least = torch.finfo(dtype).min
    theirs, _ = layer(
        x, torch.zeros_like(x), bias, torch.zeros(2, 1, 30, 30, dtype=dtype).masked_fill(hidden, least)
    )
    q, k, v = layer._reshape(layer.query_key_value(x))
    ours = block("alibi").alibi_attention(q, k, v, pads)
    last = block("alibi").alibi_attention(q[:, :, 28:], k, v, pads)
    close(layer.dense(ours.transpose(1, 2).flatten(-2))[~pads], theirs[~pads])
    close(layer.dense(last.transpose(1, 2).flatten(-2)), theirs[:, 28:])


def test_padding_leaks_into_gpt2_as_positions_alone() -> None:
    """With its mask, wrapped as the block says; without, what pads hold gets in, too."""
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 50, "n_positions": 64}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = transformers.GPT2Model(transformers.GPT2Config(**sizes)).eval()
    check = block("padding_check").check_padding
    ids = [torch.tensor([3, 4, 5, 6]), torch.tensor([9, 8])]
    with torch.no_grad():
        report = check(lambda ids, pads: net(input_ids=ids, attention_mask=(~pads).long())[0], ids)
        bare = check(lambda ids, pads: net(input_ids=ids)[0], ids)
    assert max(report["right"]) < 1e-4
    assert report["left"][0] > 0.01 > 1e-4 > report["left"][1]
    assert min(bare["left"]) > 0.01


@DTYPES
@pytest.mark.parametrize("bidirectional", [True, False])
def test_bias_is_that_of_t5(bidirectional: bool, dtype: torch.dtype) -> None:
    config = transformers.T5Config(d_model=24, d_kv=8, num_heads=3)
    config.is_decoder = not bidirectional
    theirs = modeling("t5").T5Attention(config, has_relative_attention_bias=True, layer_idx=0).to(dtype)
    ours = block("t5_bias").T5Bias(3, bidirectional=bidirectional).to(dtype)
    state = theirs.state_dict()
    ours.load_state_dict({name: state[name] for name in ours.state_dict()})
    assert torch.equal(ours(200), theirs.compute_bias(200, 200)[0])
    assert torch.equal(ours(2, 150), theirs.compute_bias(2, 150, past_seen_tokens=148)[0])


@pytest.mark.parametrize(("rows", "columns"), [(24, 24), (10, 14), (30, 20)])
def test_image_table_is_that_of_vit(rows: int, columns: int) -> None:
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "image_size": 224, "patch_size": 16}
    theirs = modeling("vit").ViTEmbeddings(transformers.ViTConfig(**sizes))
    torch.nn.init.normal_(theirs.position_embeddings, generator=torch.Generator().manual_seed(0))
    table = theirs.position_embeddings.detach()
    patches = torch.empty(1, 1 + rows * columns, 8)
    wanted = theirs.interpolate_pos_encoding(patches, rows * 16, columns * 16).detach()[0]
    resize = block("image_table").resize_image_table
    close(resize(table[0], (14, 14), (rows, columns)), wanted)
    rounded = resize(table[0].bfloat16(), (14, 14), (rows, columns))
    close(rounded, wanted.bfloat16())


SCALED: list[dict[str, Any]] = [
    {"rope_type": "default"},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    {"rope_type": "yarn", "factor": 4.0},
    {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.3, "beta_fast": 16.0, "truncate": False},
    {"rope_type": "yarn", "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.7},
    {"rope_type": "linear", "factor": 8.0},
]


@DTYPES
@pytest.mark.parametrize("scaling", SCALED, ids=str)
@pytest.mark.parametrize("newer", [False, True])
def test_config_reaches_the_layer_as_in_llama(
    scaling: dict[str, Any], newer: bool, dtype: torch.dtype
) -> None:
    """The older form of config.json and the newer one, frequencies and attention factor."""
    if scaling["rope_type"] != "default":
        scaling = scaling | {"original_max_position_embeddings": 256}
    sizes = {"hidden_size": 128, "num_attention_heads": 4, "max_position_embeddings": 1024}
    theta = {"rope_theta": 5e5}
    config = sizes | ({"rope_parameters": scaling | theta} if newer else theta | {"rope_scaling": scaling})
    rope = block("from_config").Rope(config, "half", handled=["mscale_all_dim"])
    q = random(1, 2, 1000, 32).to(dtype)
    theirs = modeling("llama").LlamaRotaryEmbedding(
        transformers.LlamaConfig(**sizes, rope_parameters=scaling | theta)
    )
    cos, sin = theirs(q.float(), torch.arange(1000)[None])
    wanted, _ = modeling("llama").apply_rotary_pos_emb(q.float(), q.float(), cos, sin)
    slack = {torch.float32: 2e-3, torch.bfloat16: 3e-2}[dtype]  # their angles are float32
    torch.testing.assert_close(rope(q).float(), wanted, rtol=slack, atol=slack)
    assert rope.scale == pytest.approx(theirs.attention_scaling)


@pytest.mark.parametrize(("attribute", "value"), [("rope_theta", 1e4), ("factor", 4.0)])
def test_another_config_is_another_layer(attribute: str, value: float) -> None:
    """The slack above would not hide a wrong base or factor."""
    ours = block("from_config")
    sizes = {"hidden_size": 128, "num_attention_heads": 4, "max_position_embeddings": 1024}
    scaling = SCALED[1] | {"original_max_position_embeddings": 256, "rope_theta": 5e5}
    q = random(1, 2, 1000, 32)
    right, wrong = (
        ours.Rope(sizes | {"rope_parameters": scaling | other}, "half")(q)
        for other in ({}, {attribute: value})
    )
    assert (right - wrong).abs().max() > 0.5
