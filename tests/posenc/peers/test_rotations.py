"""Rotations, held against those of released models and of other libraries (the extra `peers`)."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from posenc import apply_rotary, sinusoidal_frequencies
from posenc.grids import grid_coordinates
from posenc.nn import GridRotary, RotaryEmbedding
from posenc.rotary import (
    apply_rotary_axes,
    apply_xpos,
    axial_frequencies,
    mixed_frequencies,
    mrope_coordinates,
    mrope_frequencies,
)
from tests.peers import close, modeling, peer, random, timm

transformers = peer("transformers")

Both = tuple[Any, Any]  # queries and keys as we turn them, and as they do


def llama_is_half() -> Both:
    llama, q, k = modeling("llama"), *random(2, 2, 3, 50, 32)
    config = transformers.LlamaConfig(hidden_size=64, num_attention_heads=2)
    code = llama.LlamaRotaryEmbedding(config)(q, torch.arange(50)[None].expand(2, -1))
    return RotaryEmbedding(32, layout="half")(q, k), llama.apply_rotary_pos_emb(q, k, *code)


def llama_4_is_interleaved() -> Both:
    q, k = random(2, 2, 50, 3, 32)  # heads after the sequence
    angles = torch.arange(50)[:, None] * torch.from_numpy(sinusoidal_frequencies(32)).float()
    code = torch.polar(torch.ones(50, 16), angles)[None].expand(2, -1, -1)
    ours = [apply_rotary(x, torch.arange(50)[None, :, None]) for x in (q, k)]
    return ours, modeling("llama4").apply_rotary_emb(q, k, code)


def gpt_neox_is_half_and_partial() -> Both:
    neox, q, k = modeling("gpt_neox"), *random(2, 1, 2, 50, 32)
    config = transformers.GPTNeoXConfig(hidden_size=64, num_attention_heads=2)
    assert config.rope_parameters["partial_rotary_factor"] == 0.25
    code = neox.GPTNeoXRotaryEmbedding(config)(q, torch.arange(50)[None])
    ours = [apply_rotary(x, 50, layout="half", rotary_dim=8) for x in (q, k)]
    return ours, neox.apply_rotary_pos_emb(q, k, *code)


def gpt_j_is_interleaved() -> Both:
    gptj, q, config = modeling("gptj"), random(2, 50, 3, 32), transformers.GPTJConfig()
    assert (config.rotary_dim, config.n_embd // config.n_head) == (64, 256)
    sin, cos = gptj.create_sinusoidal_positions(50, 32).chunk(2, dim=-1)
    ours = apply_rotary(q, torch.arange(50)[None, :, None])
    return [ours], [gptj.apply_rotary_pos_emb(q, sin[None], cos[None])]


def qwen2_vl_has_three_coordinates_and_is_half() -> Both:
    qwen, t = modeling("qwen2_vl"), torch.from_numpy(mrope_coordinates([5, (1, 4, 6), 3, (2, 3, 3), 4]))
    rope = {"rope_type": "default", "rope_theta": 1e4}
    config = transformers.Qwen2VLTextConfig(hidden_size=256, num_attention_heads=2, rope_parameters=rope)
    q, k = random(2, 1, 2, len(t), 128)
    code = qwen.Qwen2VLRotaryEmbedding(config)(q, t.T[:, None])
    omega = mrope_frequencies(128, (16, 24, 24))
    ours = [apply_rotary_axes(x, t, omega, layout="half") for x in (q, k)]
    return ours, qwen.apply_rotary_pos_emb(q, k, *code)


def qwen3_vl_deals_its_pairs_out_in_turn() -> Both:
    qwen, rope = (
        modeling("qwen3_vl"),
        {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]},
    )
    config = transformers.Qwen3VLTextConfig(
        hidden_size=256, num_attention_heads=2, head_dim=128, rope_parameters=rope
    )
    t = torch.randint(0, 60, (40, 3), generator=torch.Generator().manual_seed(0))
    q, k = random(2, 1, 2, 40, 128)
    code = qwen.Qwen3VLTextRotaryEmbedding(config)(q, t.T[:, None])
    omega = mrope_frequencies(128, (24, 20, 20), base=5e6, interleaved=True)
    ours = [apply_rotary_axes(x, t, omega, layout="half") for x in (q, k)]
    return ours, qwen.apply_rotary_pos_emb(q, k, *code)


def qwen2_vl_vision_is_axial_and_half() -> Both:
    qwen, config = modeling("qwen2_vl"), transformers.Qwen2VLConfig().vision_config
    grid, dim = torch.from_numpy(grid_coordinates((3, 4))), config.embed_dim // config.num_heads
    q, k = random(2, 12, 2, dim)  # heads after the sequence
    code = qwen.Qwen2VLVisionRotaryEmbedding(config)(q, grid)
    omega = axial_frequencies(dim, 2)
    ours = [apply_rotary_axes(x.transpose(0, 1), grid, omega, layout="half").transpose(0, 1) for x in (q, k)]
    return ours, qwen.apply_rotary_pos_emb_vision(q, k, *code)


def dinov3_is_axial_with_the_grid_from_minus_one_to_one() -> Both:
    dino = modeling("dinov3_vit")
    config = transformers.DINOv3ViTConfig(hidden_size=64, num_attention_heads=2, image_size=96, patch_size=16)
    q, k = random(2, 1, 2, 6 * 5, 32)
    code = dino.DINOv3ViTRopePositionEmbedding(config).eval()(torch.empty(1, 3, 6 * 16, 5 * 16))
    omega = 2 * math.pi * axial_frequencies(32, 2, base=config.rope_theta)
    layer = GridRotary(32, (6, 5), frequencies=omega, layout="half")
    t = torch.from_numpy(grid_coordinates((6, 5), centered=True))
    return layer(q, k, coordinates=t), dino.apply_rotary_pos_emb(q, k, *code)


def llama_4_vision_counts_columns_first_and_from_one() -> Both:
    llama4, sizes = modeling("llama4"), {"hidden_size": 64, "num_attention_heads": 2}
    config = transformers.Llama4VisionConfig(
        **sizes, image_size=56, patch_size=14, rope_parameters={"rope_theta": 1e4}
    )
    q, k = random(2, 1, 17, 2, 32)  # heads after the sequence, the class token last
    t = np.concatenate([grid_coordinates((4, 4))[:, ::-1] + 1, [[0, 0]]])
    omega = axial_frequencies(32, 2)
    ours = [apply_rotary_axes(x.transpose(1, 2), t, omega).transpose(1, 2) for x in (q, k)]
    code = llama4.Llama4VisionRotaryEmbedding(config)(torch.empty(0))
    return ours, llama4.vision_apply_rotary_emb(q, k, code)


def pixtral_has_the_frequencies_in_turn_and_the_pairs_in_a_row() -> Both:
    pixtral = modeling("pixtral")
    config = transformers.PixtralVisionConfig(hidden_size=64, num_attention_heads=2)
    t, (q, k) = torch.from_numpy(grid_coordinates((3, 5))), random(2, 1, 2, 15, 32)
    code = pixtral.PixtralVisionRotaryEmbedding(config)(q, t)
    dealt = mrope_frequencies(32, (8, 8), base=config.rope_parameters["rope_theta"], interleaved=True)
    omega = np.hstack([dealt[:, 0::2], dealt[:, 1::2]])
    ours = [apply_rotary_axes(x, t, omega, layout="half") for x in (q, k)]
    return ours, pixtral.apply_rotary_pos_emb(q, k, *code, unsqueeze_dim=0)


def timm_turns_by_mixed_frequencies() -> Both:
    file, q = timm("pos_embed_sincos"), random(1, 3, 24, 32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        omega = file.init_random_2d_freqs(32, depth=1, num_heads=3, temperature=10.0, rotate=True)[:, 0]
    ours, theirs = [], []
    for head in range(3):
        mixed = mixed_frequencies(32, math.atan2(omega[1, head, 0], omega[0, head, 0]), base=10.0)
        close(mixed.astype(np.float32), omega[:, head])
        ours.append(apply_rotary_axes(q[:, head], grid_coordinates((4, 6)), mixed))
        code = file.get_mixed_freqs(omega[:, head], *file.get_mixed_grid([4, 6]))
        theirs.append(file.apply_rot_embed_cat(q[:, head], code))
    return ours, theirs


def xpos_is_that_of_rotary_embedding_torch() -> Both:
    q, k = random(2, 1, 2, 50, 32)
    theirs = peer("rotary_embedding_torch").RotaryEmbedding(32, use_xpos=True).rotate_queries_and_keys(q, k)
    return apply_xpos(q, k, 50, center=25), [x.detach() for x in theirs]


def axial_frequencies_are_those_of_rotary_embedding_torch() -> Both:
    package, q = peer("rotary_embedding_torch"), random(2, 3, 5, 32)
    theirs = package.apply_rotary_emb(package.RotaryEmbedding(16).get_axial_freqs(3, 5), q).detach()
    ours = apply_rotary_axes(q.flatten(1, 2), grid_coordinates((3, 5)), axial_frequencies(32, 2))
    return [ours.unflatten(1, (3, 5))], [theirs]


ROTATIONS = [
    made for made in globals().values() if getattr(made, "__annotations__", {}).get("return") == Both
]


@pytest.mark.parametrize("turned", ROTATIONS, ids=lambda turned: turned.__name__)
def test_turned_as_there(turned: Callable[[], Both]) -> None:
    for ours, theirs in zip(*turned(), strict=True):
        close(ours, theirs, 2e-5)
        with pytest.raises(AssertionError):
            close(ours.flip(-2), theirs, 0.1)
