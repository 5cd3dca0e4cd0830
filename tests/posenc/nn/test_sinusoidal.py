"""The sinusoidal layer: checkpoints of the common recipe, and which of them are known."""

import math

import pytest
import torch

from posenc.nn import SinusoidalEncoding


def recipe_table(max_len: int, dim: int, base: float = 10000.0) -> torch.Tensor:
    """The table of the common float32 recipe, which saves it as a persistent buffer "pe"."""
    t = torch.arange(max_len).unsqueeze(1)
    factor = torch.exp(torch.arange(0, dim, 2) * (-math.log(base) / dim))
    pe = torch.zeros(max_len, dim)
    pe[:, 0::2], pe[:, 1::2] = torch.sin(t * factor), torch.cos(t * factor)
    return pe.unsqueeze(0)


def test_a_checkpoint_of_the_common_recipe_loads() -> None:
    model = torch.nn.Sequential(SinusoidalEncoding(8, max_len=50))
    model.load_state_dict({"0.pe": recipe_table(5000, 8)})
    model.load_state_dict({"0.pe": recipe_table(20, 8).transpose(0, 1)})
    recipe = recipe_table(5, 8)
    for odd in (torch.randn(1, 50, 8), recipe.to("meta"), recipe.numpy(), recipe[..., :6], recipe[:, :0], 3):
        with pytest.raises(RuntimeError, match=r"Unexpected key.*0\.pe"):
            model.load_state_dict({"0.pe": odd})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("dim", "length"), [(2, 20_000), (8, 20_000), (512, 3), (512, 2_000)])
@pytest.mark.parametrize("base", [10000.0, 500.0])
def test_a_table_of_the_recipe_is_known(dtype: torch.dtype, dim: int, length: int, base: float) -> None:
    layer = SinusoidalEncoding(dim, max_len=5, base=base)
    layer.load_state_dict({"pe": recipe_table(length, dim, base).to(dtype)})


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.int64])
def test_a_table_of_another_base_or_trained_is_reported(dtype: torch.dtype) -> None:
    trained = recipe_table(5000, 64)
    trained[0, 7, 5] += 0.005
    for other in (recipe_table(5000, 64, base=10_050.0), trained):
        with pytest.raises(RuntimeError, match=r"Unexpected key.*pe"):
            SinusoidalEncoding(64).load_state_dict({"pe": other.to(dtype)})
