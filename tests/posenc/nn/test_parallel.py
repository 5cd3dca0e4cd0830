"""A ring of processes gives each its rows of attention over the whole sequence, and of the gradients."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

import posenc
from posenc.nn import RingAttention
from tests import taken

WORKER = Path(__file__).with_name("ring_worker.py")
needs_gloo = pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()), reason="this torch has no gloo"
)


def run_ring(folder: Path, world: int = 2) -> list[tuple[int, str, str]]:
    """The exit status, output and errors of each process; none of them outlives the call."""
    environment = os.environ | {"PYTHONPATH": str(Path(posenc.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    if sys.platform.startswith("linux"):
        environment["GLOO_SOCKET_IFNAME"] = "lo"  # the name of this machine may lead nowhere
    processes: list[subprocess.Popen[str]] = []
    try:
        for rank in range(world):
            command = [sys.executable, str(WORKER), str(rank), str(world), str(folder)]
            processes.append(
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
                )
            )
        texts = [process.communicate(timeout=90) for process in processes]
        return [(p.returncode, *text) for p, text in zip(processes, texts, strict=True)]
    finally:
        for process in processes:
            process.kill()
            process.wait()


@needs_gloo
def test_a_ring_of_processes_equals_the_whole_sequence(tmp_path: Path) -> None:
    """That of the layer, with its gradients, and that of the chapter's block; not with positions from 0."""
    (tmp_path / "ring.py").write_text(taken.codes()["ring"], encoding="utf-8")
    for status, out, errors in run_ring(tmp_path):
        assert status == 0, errors
        said = [line for line in out.splitlines() if ": " in line]
        assert said == [
            "RingAttention: equal",
            "uneven shards: refused",
            "ring.py: equal",
            "counting from 0: different",
        ]


def test_without_a_process_group_it_says_what_to_do() -> None:
    x, positions = torch.ones(2, 4), torch.arange(2)
    with pytest.raises(
        RuntimeError, match=r"RingAttention needs torch\.distributed\.init_process_group in every"
    ):
        RingAttention()(x, x, x, positions)


@pytest.fixture
def alone(tmp_path: Path) -> Any:
    """A group of this process alone: the ring has one step."""
    dist.init_process_group("gloo", init_method=(tmp_path / "store").as_uri(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@needs_gloo
@pytest.mark.usefixtures("alone")
def test_a_ring_of_one_and_bad_input(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    positions = torch.arange(3)
    ring = RingAttention(slopes=posenc.alibi_slopes(2))
    bias = posenc.alibi_bias(posenc.alibi_slopes(2), 3)
    expected, _ = posenc.dot_product_attention(x, x, x, bias=torch.from_numpy(bias))
    torch.testing.assert_close(ring(x, x, x, positions), expected)
    with pytest.raises(ValueError, match=r"query_positions must have shape \(3,\), got \(2,\)"):
        ring(x, x, x, positions[:2])
    with pytest.raises(TypeError, match="positions must be a tensor, got list"):
        ring(x, x, x, [0, 1, 2])
    with pytest.raises(TypeError, match=r"value must be a floating tensor, got torch\.int64"):
        ring(x, x, x.long(), positions)
    with pytest.raises(TypeError, match="causal must be True or False, got None"):
        RingAttention(causal=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="scale must be finite, got inf"):
        RingAttention(scale=float("inf"))
    assert repr(RingAttention()) == "RingAttention(causal=True, slopes=None, scale=None)"
