"""The blocks that chapters give to take along, pasted into an empty namespace where posenc is refused."""

import builtins
import contextlib
import io
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from press import snippets
from press.cache import ROOT
from press.pages import read

# A configuration of transformers.
LLAMA = {
    "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 4096, "rope_theta": 5e5,
    "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 512,
    },
}  # fmt: skip


@cache
def codes(language: str = "en") -> dict[str, str]:
    """The code of each block by name, those of all chapters."""
    return {
        name: unit.code
        for path in sorted((ROOT / "docs" / language).glob("*.md"))
        for name, unit in snippets.snippets(read(path)).items()
    }


def pasted(code: str, **names: Any) -> SimpleNamespace:
    """What a file with this code holds when it has run, and `printed`."""

    def only_others(name: str, *args: Any, **more: Any) -> Any:
        if name.partition(".")[0] == "posenc":
            raise ModuleNotFoundError("a block to be taken along runs where posenc is not installed")
        return __import__(name, *args, **more)

    if "torch.compile" in code:
        torch.compiler.reset()  # else torch gives up on what many tests have compiled
    holds = {"__builtins__": vars(builtins) | {"__import__": only_others}, "__name__": "taken", **names}
    with torch.random.fork_rng(devices=[]), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "taken.py", "exec"), holds)
    return SimpleNamespace(**holds, printed=printed.getvalue())


@cache
def block(name: str) -> SimpleNamespace:
    """What the block of this name holds, run once: some compile what they show."""
    return pasted(codes()[name])


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(dtype)
