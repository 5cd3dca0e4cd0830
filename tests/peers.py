"""Other people's libraries, which the book's claims are held against (the extra `peers`)."""

import importlib
import importlib.util
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import missing


def peer(name: str) -> Any:
    """A peer's module; without it tests are skipped, except where a skipped test would go unnoticed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what it imports
            return importlib.import_module(name)
    except ModuleNotFoundError:
        missing.skip_or_fail("peers", f"no {name}: pip install 'posenc[peers]'")


def modeling(name: str) -> Any:
    """The module of a model of transformers."""
    return peer(f"transformers.models.{name}.modeling_{name}")


def timm(name: str) -> Any:
    """A file of timm.layers by itself: the package as a whole wants torchvision."""
    spec = importlib.util.find_spec("timm")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("no timm: pip install --no-deps timm")
    package = types.ModuleType("timm_layers")
    package.__path__ = [str(Path(spec.submodule_search_locations[0]) / "layers")]
    sys.modules.setdefault("timm_layers", package)
    return importlib.import_module(f"timm_layers.{name}")


def seeded(make: Any, *arguments: Any, **options: Any) -> Any:
    """A small model with random weights, in evaluation mode."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return make(*arguments, **options).eval()


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def close(ours: Any, theirs: Any, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(torch.as_tensor(ours), torch.as_tensor(theirs), rtol=0, atol=tolerance)
