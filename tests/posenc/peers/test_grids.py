"""Grids, held against released models of transformers and the files of timm (the extra `peers`)."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
import types
from pathlib import Path
from typing import Any

import missing
import numpy as np
import pytest
import torch

from posenc import grid_encoding
from posenc.grids import grid_coordinates, interpolate_grid, jitter_coordinates, reorder_grid
from posenc.nn import GridEncoding, GridRotary
from posenc.rotary import (
    apply_rotary_axes,
    axial_frequencies,
    mixed_frequencies,
    mrope_coordinates,
    mrope_frequencies,
)

try:
    transformers: Any = importlib.import_module("transformers")
except ModuleNotFoundError:
    missing.skip_or_fail("peers", "no transformers: pip install 'posenc[peers]'")


def modeling(name: str) -> Any:
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def timm(name: str) -> Any:
    """A file of timm.layers by itself: the package as a whole wants torchvision."""
    spec = importlib.util.find_spec("timm")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no timm: pip install --no-deps timm")
    package = types.ModuleType("timm_layers")
    package.__path__ = [str(Path(spec.submodule_search_locations[0]) / "layers")]
    sys.modules.setdefault("timm_layers", package)
    return importlib.import_module(f"timm_layers.{name}")


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def close(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(torch.as_tensor(ours), torch.as_tensor(theirs), rtol=0, atol=tolerance)


# --- Codes and tables


def test_table_of_mae_has_the_columns_first_and_a_class_token() -> None:
    config = transformers.ViTMAEConfig(
        hidden_size=32, num_attention_heads=2, num_hidden_layers=1, image_size=96
    )
    embeddings = modeling("vit_mae").ViTMAEEmbeddings(config)
    embeddings.initialize_weights()
    theirs = embeddings.position_embeddings.detach()[0]
    layer = GridEncoding(32, (6, 6), class_tokens=1, order="mae", dropout=0.0)
    close(layer(torch.zeros(37, 32)), theirs, 1e-6)
    close(
        reorder_grid(theirs[1:], 2, "mae", "interleaved"),
        grid_encoding((6, 6), 32, dtype=torch.float32),
        1e-6,
    )
    with pytest.raises(AssertionError):
        close(grid_encoding((6, 6), 32, order="timm", dtype=torch.float32), theirs[1:])


def test_table_of_timm_has_the_sines_of_all_axes_first() -> None:
    build = timm("pos_embed_sincos").build_sincos2d_pos_embed
    close(grid_encoding((5, 3), 16, order="timm", dtype=torch.float32), build([5, 3], dim=16), 1e-6)
    other = build([5, 3], dim=16, temperature=100.0)
    close(grid_encoding((5, 3), 16, order="timm", base=100.0, dtype=torch.float32), other, 1e-6)


@pytest.mark.parametrize("new", [(16, 16), (10, 14), (24, 30)])
def test_resized_as_in_transformers_and_timm(new: tuple[int, int]) -> None:
    table = random(1 + 14 * 14, 8)
    config = transformers.Dinov2Config(hidden_size=8, num_attention_heads=2, image_size=224, patch_size=16)
    embeddings = modeling("dinov2").Dinov2Embeddings(config)
    embeddings.position_embeddings.data = table[None]
    patches = torch.empty(1, 1 + new[0] * new[1], 8)
    theirs = embeddings.interpolate_pos_encoding(patches, new[0] * 16, new[1] * 16).detach()[0]
    close(interpolate_grid(table, (14, 14), new, class_tokens=1), theirs)
    theirs = timm("pos_embed").resample_abs_pos_embed(table[None], list(new), [14, 14])[0]
    close(interpolate_grid(table, (14, 14), new, class_tokens=1, antialias=True), theirs)


# --- Rotation


def test_qwen3_vl_deals_its_pairs_out_in_turn() -> None:
    qwen = modeling("qwen3_vl")
    config = transformers.Qwen3VLTextConfig(
        hidden_size=256, num_attention_heads=2, head_dim=128,
        rope_parameters={"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20]},
    )  # fmt: skip
    t = torch.randint(0, 60, (40, 3), generator=torch.Generator().manual_seed(0))
    q, k = random(2, 1, 2, 40, 128)
    cos, sin = qwen.Qwen3VLTextRotaryEmbedding(config)(q, t.T[:, None])
    theirs = qwen.apply_rotary_pos_emb(q, k, cos, sin)
    omega = mrope_frequencies(128, (24, 20, 20), base=5e6, interleaved=True)
    wrong = mrope_frequencies(128, (24, 20, 20), base=5e6)
    for x, turned in zip((q, k), theirs, strict=True):
        close(apply_rotary_axes(x, t, omega, layout="half"), turned, 2e-5)
        assert (apply_rotary_axes(x, t, wrong, layout="half") - turned).abs().max() > 0.5


def test_dinov3_is_axial_with_the_grid_from_minus_one_to_one() -> None:
    dino = modeling("dinov3_vit")
    config = transformers.DINOv3ViTConfig(hidden_size=64, num_attention_heads=2, image_size=96, patch_size=16)
    rope = dino.DINOv3ViTRopePositionEmbedding(config).eval()
    q, k = random(2, 1, 2, 6 * 5, 32)
    cos, sin = rope(torch.empty(1, 3, 6 * 16, 5 * 16))
    theirs = dino.apply_rotary_pos_emb(q, k, cos, sin)
    t = torch.from_numpy(grid_coordinates((6, 5), centered=True))
    omega = 2 * math.pi * axial_frequencies(32, 2, base=config.rope_theta)
    layer = GridRotary(32, (6, 5), frequencies=omega, layout="half")
    for ours, turned in zip(layer(q, k, coordinates=t), theirs, strict=True):
        close(ours, turned)


def test_jitter_of_dinov3() -> None:
    """Theirs is in the range of ours: draws that put each random number at its end."""
    t = torch.from_numpy(grid_coordinates((3, 4), centered=True))
    theirs = modeling("dinov3_vit").augment_patches_center_coordinates
    for seed in range(20):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            found = theirs(t, shift=0.2, jitter=1.5, rescale=2.0)
            torch.manual_seed(seed)
            draws = [torch.empty(1, n, dtype=t.dtype).uniform_(-1, 1)[0].numpy() for n in (2, 2)]
            last = float(torch.empty(1, dtype=t.dtype).uniform_(-1, 1))

        class Drawn(np.random.Generator):
            """The same numbers, by the way of ours."""

            def __init__(self, numbers: list[Any]) -> None:
                super().__init__(np.random.PCG64(0))
                self.numbers = numbers

            def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
                return high * self.numbers.pop(0)

        ours = jitter_coordinates(t, Drawn([*draws, last]), shift=0.2, jitter=1.5, rescale=2.0)
        close(ours, found, 1e-12)


def test_llama4_vision_counts_columns_first_and_from_one() -> None:
    llama4 = modeling("llama4")
    config = transformers.Llama4VisionConfig(
        hidden_size=64,
        num_attention_heads=2,
        image_size=56,
        patch_size=14,
        rope_parameters={"rope_theta": 1e4},
    )
    code = llama4.Llama4VisionRotaryEmbedding(config)(torch.empty(0))
    q, k = random(2, 1, 17, 2, 32)  # heads after the sequence, the class token last
    t = np.concatenate([grid_coordinates((4, 4))[:, ::-1] + 1, [[0, 0]]])
    for x, turned in zip((q, k), llama4.vision_apply_rotary_emb(q, k, code), strict=True):
        ours = apply_rotary_axes(x.transpose(1, 2), t, axial_frequencies(32, 2))
        close(ours.transpose(1, 2), turned)


def test_pixtral_has_the_frequencies_in_turn_and_the_pairs_in_a_row() -> None:
    pixtral = modeling("pixtral")
    config = transformers.PixtralVisionConfig(hidden_size=64, num_attention_heads=2)
    t = torch.from_numpy(grid_coordinates((3, 5)))
    q, k = random(2, 1, 2, 15, 32)
    cos, sin = pixtral.PixtralVisionRotaryEmbedding(config)(q, t)
    turned, _ = pixtral.apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=0)
    base = config.rope_parameters["rope_theta"]
    omega = mrope_frequencies(32, (8, 8), base=base, interleaved=True)
    close(apply_rotary_axes(q, t, np.hstack([omega[:, 0::2], omega[:, 1::2]]), layout="half"), turned)


def test_mixed_frequencies_of_timm() -> None:
    file = timm("pos_embed_sincos")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        omega = file.init_random_2d_freqs(32, depth=1, num_heads=3, temperature=10.0, rotate=True)[:, 0]
    rows, columns = file.get_mixed_grid([4, 6])
    q = random(1, 3, 24, 32)
    for head in range(3):
        angle = math.atan2(omega[1, head, 0], omega[0, head, 0])
        ours = mixed_frequencies(32, angle, base=10.0)
        close(ours.astype(np.float32), omega[:, head])
        theirs = file.get_mixed_freqs(omega[:, head], rows, columns)
        turned = file.apply_rot_embed_cat(q[:, head], theirs)
        close(apply_rotary_axes(q[:, head], grid_coordinates((4, 6)), ours), turned)


def rope_index(parts: list[int | tuple[int, int, int]]) -> torch.Tensor:
    """The coordinates (tokens, 3) that Qwen2-VL of transformers gives to text and videos."""
    model = modeling("qwen2_vl").Qwen2VLModel
    vision = types.SimpleNamespace(spatial_merge_size=1)
    it = types.SimpleNamespace(config=types.SimpleNamespace(vision_config=vision))
    it.get_vision_position_ids = types.MethodType(model.get_vision_position_ids, it)
    kinds = [
        kind for part in parts for kind in ([0] * part if isinstance(part, int) else [2] * math.prod(part))
    ]
    videos = torch.tensor([part for part in parts if not isinstance(part, int)])
    ids = torch.zeros(1, len(kinds), dtype=torch.int64)
    positions, _ = model.get_rope_index(it, ids, torch.tensor([kinds]), video_grid_thw=videos)
    return positions[:, 0].T


@pytest.mark.parametrize("part", [(1, 3, 5), (1, 5, 3), (3, 3, 2), (2, 1, 4)])
def test_mrope_counts_on_as_qwen2_vl(part: tuple[int, int, int]) -> None:
    parts: list[int | tuple[int, int, int]] = [2, part, 3, (1, 2, 2), 1]
    close(mrope_coordinates(parts), rope_index(parts), 0)


@pytest.mark.parametrize(("part", "earlier"), [((6, 3, 2), 3), ((5, 2, 4), 1)])
def test_after_a_long_video_qwen2_vl_of_transformers_counts_on_earlier(
    part: tuple[int, int, int], earlier: int
) -> None:
    """As the docstring and the chapter say: by frames less max(rows, columns)."""
    ours, theirs = torch.from_numpy(mrope_coordinates([2, part, 3])), rope_index([2, part, 3])
    close(ours[:-3], theirs[:-3], 0)
    close(ours[-3:], theirs[-3:] + earlier, 0)
