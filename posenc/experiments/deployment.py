"""What works when a layer of `posenc.nn` goes into service: compiled, exported, as ONNX, under autocast, saved.

`python -m posenc.experiments deployment` asks every layer and writes deployment.json, the table that the page quotes.
It needs onnx, onnxscript and onnxruntime (the extra `peers`) and a C++ compiler.
"""

from __future__ import annotations

import copy
import io
import json
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

import posenc.nn as layers
from posenc.contextual import forget_bias

__all__ = ["try_layer"]

FILE = Path(__file__).with_name("deployment.json")
WAYS = "eager", "graphs", "compiled", "exported", "onnx", "autocast", "saved"
LENGTHS = (11, 5, 9, 13, 7, 10)
"""What is asked for, once a graph is made for the first of them."""


class _Case(NamedTuple):
    """A layer, how it is called with x of shape (batch, 2 heads, n, 24), and which of batch and n may vary."""

    make: Callable[[], nn.Module]
    use: Callable[[Any, Tensor], Tensor]
    axis: Literal["batch", "length"] = "length"


def _attention(x: Tensor, bias: Tensor | None = None) -> Tensor:
    q, k, v = x.chunk(3, dim=-1)
    return scaled_dot_product_attention(q, k, v, attn_mask=bias)


def _biased(layer: Any, x: Tensor) -> Tensor:
    return _attention(x, layer(x.shape[-2]).to(x.dtype))


def _turned(layer: Any, x: Tensor) -> Tensor:
    return torch.cat(layer(*x.chunk(3, dim=-1)[:2]), dim=-1)


def _added(layer: Any, x: Tensor) -> Tensor:
    result: Tensor = layer(x[:, 0])
    return result


def _with_places(layer: Any, x: Tensor) -> Tensor:
    result: Tensor = layer(*x.chunk(3, dim=-1), torch.arange(x.shape[-2]))
    return result


_CASES = {
    "AlibiAttention": _Case(lambda: layers.AlibiAttention(2), lambda layer, x: layer(*x.chunk(3, dim=-1))),
    "AlibiBias": _Case(lambda: layers.AlibiBias(2), _biased),
    "ContextualPositions": _Case(
        lambda: layers.ContextualPositions(8, 3),
        lambda layer, x: _attention(x, layer(*x.chunk(3, dim=-1)[:2])),
    ),
    "FireBias": _Case(lambda: layers.FireBias(2), _biased),
    "ForgetGate": _Case(
        lambda: layers.ForgetGate(24, 2),
        lambda layer, x: _attention(x, forget_bias(layer(x[:, 0])).to(x.dtype)),
    ),
    "GridEncoding": _Case(lambda: layers.GridEncoding(24, (3, 4)), _added, "batch"),
    "GridRotary": _Case(lambda: layers.GridRotary(8, (3, 4)), _turned, "batch"),
    "KerpleBias": _Case(lambda: layers.KerpleBias(2), _biased),
    "LearnedEncoding": _Case(lambda: layers.LearnedEncoding(24, 64), _added),
    "RandomSigns": _Case(layers.RandomSigns, _added),
    "RelativeBias": _Case(lambda: layers.RelativeBias(2, 4), _biased),
    "RingAttention": _Case(layers.RingAttention, _with_places),
    "RotaryEmbedding": _Case(lambda: layers.RotaryEmbedding(8, 64), _turned),
    "RotaryEmbedding, half": _Case(lambda: layers.RotaryEmbedding(8, 64, layout="half"), _turned),
    "ShawAttention": _Case(
        lambda: layers.ShawAttention(8, 4), lambda layer, x: layer(*x.chunk(3, dim=-1))[0]
    ),
    "SinusoidalEncoding": _Case(lambda: layers.SinusoidalEncoding(24, 64), _added),
    "T5Bias": _Case(lambda: layers.T5Bias(2, num_buckets=8, max_distance=10), _biased),
    "TimeEncoding": _Case(
        lambda: layers.TimeEncoding(24, shortest=0.2, longest=120.0),
        lambda layer, x: layer(x[:, 0], torch.arange(x.shape[-2]) * 0.4),
    ),
}


class _InUse(nn.Module):
    """A layer as a model holds it."""

    def __init__(self, case: _Case) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.layer = case.make()
            for parameter in self.layer.parameters():
                nn.init.normal_(parameter)  # several of them start from 0
        self.use = case.use
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.use(self.layer, x)


def try_layer(name: str, way: str, *, backend: str = "inductor") -> float | int | list[str]:
    """How far the outputs of a layer are off if it is run in this way, the largest over six lengths.

    "eager" is held against the same layer in float64, every other way against eager float32. "graphs" gives how many
    graphs torch.compile makes for the six lengths, "saved" the names in the layer's state_dict, once it is loaded into
    a new layer whose outputs are the same bit for bit. A layer of a grid has one length, so six sizes of the batch are
    asked for instead.

    Args:
        name: a layer of `deployment_results`.
        way: one of WAYS.
        backend: of torch.compile; "eager" takes no compiler.

    Raises:
        ValueError: an unknown name or way.
        Exception: whatever torch raises if the layer cannot be run in this way.
    """
    if name not in _CASES:
        raise ValueError(f"name must be one of {list(_CASES)}, got {name!r}")
    if way not in WAYS:
        raise ValueError(f"way must be one of {WAYS}, got {way!r}")
    case = _CASES[name]
    model = _InUse(case)
    generator = torch.Generator().manual_seed(0)
    shapes = [(n, 2, 12, 24) if case.axis == "batch" else (3, 2, n, 24) for n in LENGTHS]
    given = [torch.randn(*shape, generator=generator) for shape in shapes]
    with _one_process(name == "RingAttention"), torch.no_grad():
        wanted = [model(x) for x in given]
        if way == "eager":
            exact = copy.deepcopy(model).double()
            return _worst(wanted, [exact(x.double()) for x in given])
        if way == "graphs":
            return _graphs(model, given)
        if way == "saved":
            return _saved(case, model, given, wanted)
        run = {"compiled": _compiled, "exported": _exported, "onnx": _onnx, "autocast": _autocast}[way]
        changed = run(model, given[0], 0 if case.axis == "batch" else 2, backend)
        return _worst([changed(x) for x in given], wanted)


def _worst(found: list[Tensor], wanted: list[Tensor]) -> float:
    pairs = zip(found, wanted, strict=True)
    return max(float((first.double() - second.double()).abs().max()) for first, second in pairs)


Run = Callable[[Tensor], Tensor]


def _graphs(model: nn.Module, given: list[Tensor]) -> int:
    # takes a second and a half, and is not to take it of all who import this module
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=counter)
    for x in given:
        compiled(x)
    count: int = counter.frame_count
    return count


def _compiled(model: nn.Module, x: Tensor, axis: int, backend: str) -> Run:
    torch._dynamo.reset()
    run: Run = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
    return run


def _program(model: nn.Module, x: Tensor, axis: int) -> torch.export.ExportedProgram:
    return torch.export.export(model, (x,), dynamic_shapes=({axis: torch.export.Dim("n", min=2, max=64)},))


def _exported(model: nn.Module, x: Tensor, axis: int, backend: str) -> Run:
    """Through a file, as another process would load it."""
    file = io.BytesIO()
    torch.export.save(_program(model, x, axis), file)
    file.seek(0)
    run: Run = torch.export.load(file).module()
    return run


def _onnx(model: nn.Module, x: Tensor, axis: int, backend: str) -> Run:
    import onnxruntime

    made = torch.onnx.export(_program(model, x, axis), dynamo=True, verbose=False)
    assert made is not None
    file = io.BytesIO()
    made.save(file)  # type: ignore[arg-type]  # takes a file, too
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda x: torch.from_numpy(session.run(None, {name: x.numpy()})[0])


def _autocast(model: nn.Module, x: Tensor, axis: int, backend: str) -> Run:
    def run(x: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            result: Tensor = model(x)
        return result

    return run


def _saved(case: _Case, model: _InUse, given: list[Tensor], wanted: list[Tensor]) -> list[str]:
    file = io.BytesIO()
    torch.save(model.layer.state_dict(), file)
    file.seek(0)
    other = _InUse(case)
    for parameter in other.parameters():
        nn.init.zeros_(parameter)
    other.layer.load_state_dict(torch.load(file, weights_only=True))
    if not all(torch.equal(other(x), y) for x, y in zip(given, wanted, strict=True)):
        raise RuntimeError("other outputs")
    return list(model.layer.state_dict())


@contextmanager
def _one_process(needed: bool) -> Iterator[None]:
    """A process group of this process alone."""
    if not needed:
        yield
        return
    import torch.distributed as dist

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()


# --- The file, and the table made from it


def make_deployment_results(backend: str = "inductor") -> None:
    """Ask every layer in every way, and write the file. What fails is written with its reason."""
    found: dict[str, dict[str, Any]] = {}
    for name in _CASES:
        found[name] = {}
        for way in WAYS:
            try:
                found[name][way] = try_layer(name, way, backend=backend)
            except Exception as error:  # whatever torch raises
                found[name][way] = f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"[:200]
            print(name, way, found[name][way], flush=True)
    libraries = {name: version(name) for name in ("torch", "onnx", "onnxscript", "onnxruntime")}
    kept = {"versions": {"python": platform.python_version(), **libraries}, "layers": found}
    FILE.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
