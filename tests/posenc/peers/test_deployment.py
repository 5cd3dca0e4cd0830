"""The page on compiling and exporting: what it writes for ONNX runs, and gives what the layer gives."""

from pathlib import Path

import pytest
import torch
from press.cache import ROOT
from press.pages import read

from tests.peers import close, peer

peer("onnxscript")
peer("onnxruntime")


@pytest.mark.filterwarnings("ignore")  # of torch's exporter
def test_the_program_of_the_page_runs_in_onnx(tmp_path: Path) -> None:
    (code,) = [
        unit.code for unit in read(ROOT / "docs/en/deployment.md").blocks if "def to_onnx" in unit.code
    ]
    (made,) = [
        unit.code for unit in read(ROOT / "docs/en/deployment.md").blocks if "class Attention" in unit.code
    ]
    page: dict[str, object] = {"__name__": "page"}
    with torch.random.fork_rng(devices=[]):
        exec(made + code, page)
    run = page["to_onnx"](page["program"], str(tmp_path / "attention.onnx"))  # type: ignore[operator]
    for shape in ((2, 12, 64), (3, 40, 64), (1, 5, 64)):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
        close(run(x), page["model"](x).detach())  # type: ignore[operator]
