"""Grids, held against released models of transformers and the files of timm (the extra `peers`)."""

import math
import types
from typing import Any

import numpy as np
import pytest
import torch

from posenc import grid_encoding
from posenc.grids import grid_coordinates, interpolate_grid, jitter_coordinates, reorder_grid
from posenc.nn import GridEncoding
from posenc.rotary import mrope_coordinates
from tests.peers import close, modeling, peer, random, timm

transformers = peer("transformers")


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


@pytest.mark.parametrize("base", [10000.0, 100.0])
def test_table_of_timm_has_the_sines_of_all_axes_first(base: float) -> None:
    theirs = timm("pos_embed_sincos").build_sincos2d_pos_embed([5, 3], dim=16, temperature=base)
    close(grid_encoding((5, 3), 16, order="timm", base=base, dtype=torch.float32), theirs, 1e-6)


def test_resized_as_in_timm() -> None:
    table, new = random(1 + 14 * 14, 8), (24, 10)
    theirs = timm("pos_embed").resample_abs_pos_embed(table[None], list(new), [14, 14])[0]
    close(interpolate_grid(table, (14, 14), new, class_tokens=1, antialias=True), theirs)


@pytest.mark.parametrize("new", [(16, 16), (10, 14), (24, 30)])
def test_resized_as_in_transformers(new: tuple[int, int]) -> None:
    table = random(1 + 14 * 14, 8)
    config = transformers.Dinov2Config(hidden_size=8, num_attention_heads=2, image_size=224, patch_size=16)
    embeddings = modeling("dinov2").Dinov2Embeddings(config)
    embeddings.position_embeddings.data = table[None]
    patches = torch.empty(1, 1 + new[0] * new[1], 8)
    theirs = embeddings.interpolate_pos_encoding(patches, new[0] * 16, new[1] * 16).detach()[0]
    close(interpolate_grid(table, (14, 14), new, class_tokens=1), theirs)


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


def rope_index(parts: list[int | tuple[int, int, int]]) -> torch.Tensor:
    """The coordinates (tokens, 3) that Qwen2-VL of transformers gives to text, images and videos."""
    model = modeling("qwen2_vl").Qwen2VLModel
    it = types.SimpleNamespace(
        config=types.SimpleNamespace(vision_config=types.SimpleNamespace(spatial_merge_size=1))
    )
    it.get_vision_position_ids = types.MethodType(model.get_vision_position_ids, it)
    kinds: list[int] = []
    grids: dict[int, list[Any]] = {1: [], 2: []}
    for part in parts:
        kind = 0 if isinstance(part, int) else 1 if part[0] == 1 else 2
        kinds += [kind] * (part if isinstance(part, int) else math.prod(part))
        if kind:
            grids[kind].append(part)
    ids = torch.zeros(1, len(kinds), dtype=torch.int64)
    images, videos = (torch.tensor(grid) if grid else None for grid in grids.values())
    return model.get_rope_index(it, ids, torch.tensor([kinds]), images, videos)[0][:, 0].T


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
