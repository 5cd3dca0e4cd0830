"""What blocks to take along refuse, each in a line: what would otherwise be wrong in silence, or end obscurely."""

import ast
import inspect
import traceback
from collections.abc import Callable
from functools import cache, partial
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest
import torch
import torch.distributed as dist

from tests import taken
from tests.taken import LLAMA, random

IDS = torch.tensor([[5, 7]])


def silent(ids: torch.Tensor, **options: Any) -> SimpleNamespace:
    return SimpleNamespace(logits=ids, past_key_values=None)


class Case(NamedTuple):
    block: str
    call: Callable[[SimpleNamespace], Any]
    message: str


def add(block: SimpleNamespace, x: torch.Tensor, offset: int = 0, max_len: int = 5000) -> Any:
    return block.SinusoidalEncoding(8, max_len, dropout=0.0)(x, offset)


def stretch(block: SimpleNamespace, table: torch.Tensor, old: tuple[int, int] = (4, 4)) -> Any:
    return block.resize_image_table(table, old, (6, 6))


def qkv(
    *, n_q: int = 6, keys: int = 2, few: int = 4, values: int = 0, dtype: torch.dtype = torch.float32
) -> list[torch.Tensor]:
    """Queries of 2 texts and 4 heads; keys and values of 6 tokens."""
    shapes = (2, 4, n_q, 8), (keys, few, 6, 8), (keys, values or few, 6, 8)
    return [random(*shape, dtype=dtype) for shape in shapes]


def pads(n: int) -> torch.Tensor:
    return torch.zeros(2, n, dtype=torch.bool)


def pad(block: SimpleNamespace, **options: Any) -> Any:
    return block.padded_attention(*qkv(**options), pads(6), True)


def alibi(block: SimpleNamespace, **options: Any) -> Any:
    return block.alibi_attention(*qkv(**options))


WAY = np.eye(4, k=1) + np.eye(4, k=-1)
GATES = torch.ones(2, 4, 6)
SECONDS = torch.tensor([0.25, 1.5, 7.0])


def grid(block: SimpleNamespace) -> Any:
    return block.grid_places(2, 3)


def turn(
    block: SimpleNamespace, places: torch.Tensor, *, dim: int = 8, dtype: torch.dtype = torch.float32
) -> Any:
    return block.axial_rope(random(6, dim, dtype=dtype), places, "half")


def step(block: SimpleNamespace, t: Any, u: Any, dtype: torch.dtype = torch.float32) -> Any:
    q, k, v = random(3, 2, 6, 8, dtype=dtype)
    return block.ring_step(None, q, k, v, torch.tensor(t), torch.tensor(u))


def ring(block: SimpleNamespace, sizes: list[int], *, trained: bool = False) -> Any:
    """Rank 0 of two; the other has the same keys at the same positions."""
    sent: list[torch.Tensor] = []

    def gather(into: list[Any], shape: tuple[int, ...]) -> None:
        into[:] = [(*shape[:-2], size, shape[-1]) for size in sizes]

    def move(operation: Any, x: torch.Tensor, rank: int) -> None:
        if operation is dist.isend:
            sent.append(x)
        else:
            x.copy_(sent.pop(0))

    fakes: dict[str, Any] = {
        "get_rank": lambda: 0,
        "get_world_size": lambda: 2,
        "all_gather_object": gather,
        "P2POp": move,
        "batch_isend_irecv": lambda moves: [],
    }
    with mock.patch.multiple(dist, **fakes):
        return block.ring_attention(*random(3, 2, 6, 8).requires_grad_(trained), torch.arange(6))


def leak(block: SimpleNamespace, *, noisy: float = 0.0, **options: int) -> Any:
    noise = iter(range(99))

    def model(ids: torch.Tensor, pads: torch.Tensor) -> torch.Tensor:
        return ids[..., None] + noisy * next(noise)

    return block.check_padding(model, [torch.tensor([1, 2, 3])], **options)


def forget(block: SimpleNamespace, *, gates: torch.Tensor | None = None, **options: Any) -> Any:
    q, k, v = qkv(**options)
    return block.forget_attention(q, k, v, -torch.ones(k.shape[:3]) if gates is None else gates)


def cope(block: SimpleNamespace, **options: Any) -> Any:
    return block.CoPE(8, 4)(*qkv(**options))


ATTENTIONS: dict[str, Callable[..., Any]] = {"alibi": alibi, "padding": pad, "forget": forget, "cope": cope}


def config(block: SimpleNamespace, **change: Any) -> Any:
    return block.Rope(LLAMA | change, "half")


def scaled(block: SimpleNamespace, kind: str, **options: float) -> Any:
    return config(block, rope_scaling={"type": kind, **options})


def attend(
    block: SimpleNamespace,
    x: torch.Tensor | None = None,
    *,
    again: torch.Tensor | None = None,
    **options: Any,
) -> Any:
    """A layer called once, or `again` at these positions with what it has cached."""
    layer, x = block.CausalAttention(32, 4, 2, layout="half"), torch.ones(2, 3, 32) if x is None else x
    found = layer(x, **options)
    return found if again is None else layer(x, positions=again, cache=found[1])


def cached(block: SimpleNamespace, **options: Any) -> Any:
    """Three more keys for a cache of eight slots that holds four."""
    k = random(2, 2, 7, 8)
    cache = block.RopeCache(k, 8, layout="half")
    cache.add(k[:, :, :4], k[:, :, :4])
    n, dtype = options.pop("n", 3), options.pop("dtype", torch.float32)
    new = random(2, 2, n, 8, dtype=dtype)
    cache.add(new, new, **options)
    return cache


CASES = [
    Case("sinusoidal", lambda b: b.SinusoidalEncoding(5), "even.* 5,"),
    Case("sinusoidal", lambda b: b.SinusoidalEncoding(8, base=-2.0), "above 0.* -2"),
    Case("sinusoidal", lambda b: add(b, random(1, 6, 1)), r"\(1, 6, 1\) is not"),
    Case("sinusoidal", lambda b: add(b, random(8, 8)), r"\(8, 8\) is not \(batch, seq, 8"),
    Case("sinusoidal", lambda b: add(b, torch.ones(1, 6, 8).long()), "int64: embed"),
    Case("sinusoidal", lambda b: add(b, random(1, 6, 8), max_len=5), r"0\.\.5.* 5"),
    Case("sinusoidal", lambda b: add(b, random(1, 6, 8), 4999), "5004.* 5000"),
    Case("sinusoidal", lambda b: add(b, random(1, 6, 8), -6), "-6"),
    Case("learned_table", lambda b: b.LearnedTable(9, 8)(random(1, 6, 1)), r"1, 6, 1\) is not"),
    Case("learned_table", lambda b: b.LearnedTable(9, 8)(torch.ones(1, 6, 8).int()), "int32"),
    Case("learned_table", lambda b: b.LearnedTable(9, 8)(random(1, 6, 8), 8), "8..13, 9 rows"),
    Case("learned_table", lambda b: b.LearnedTable(9, 8)(random(1, 1, 8), -2), "positions -2"),
    Case("image_table", lambda b: stretch(b, torch.ones(17, 4).long()), "int64"),
    Case("image_table", lambda b: stretch(b, random(16, 4)), "16 rows"),
    Case("alibi", lambda b: b.alibi_slopes(0), "at least 1, got 0"),
    Case("alibi", lambda b: b.alibi_attention(*qkv(values=1)), "fit.*2, 1, 6"),
    Case("alibi", lambda b: b.alibi_attention(*qkv(), pads(1)), r"\(2, 1\) must be \(2, 6"),
    Case("padding", lambda b: pad(b, values=1), "fit.*2, 1, 6"),
    Case("padding", lambda b: b.padded_attention(*qkv(), pads(1)), r"\(2, 1\) must be"),
    Case("padding", lambda b: pad(b, dtype=torch.bool), "bool"),
    Case("t5_bias", lambda b: b.t5_bucket(torch.arange(-9, 9), 32, 8), "above 8, itself"),
    Case("t5_bias", lambda b: b.t5_bucket(torch.arange(3), 3), "above 0, .* 1 or"),
    Case("t5_bias", lambda b: b.T5Bias(2)(7, 5), "7 queries .* 5 keys"),
    Case("grid", lambda b: turn(b, grid(b).bfloat16()), "bfloat16: keep integers"),
    Case("grid", lambda b: b.grid_code(2, 3, 6), "of 4, got 6"),
    Case("grid", lambda b: b.grid_code(2, 3, 8, order="MAE"), '"timm", got .MAE'),
    Case("grid", lambda b: b.grid_code(2, 3, 8, dtype=torch.int64), "floating, got .*int64"),
    Case("grid", lambda b: turn(b, grid(b), dim=2), r"dim 2 .* places \(6, 2\)"),
    Case("grid", lambda b: turn(b, grid(b), dim=5), r"dim 5 must"),
    Case("grid", lambda b: turn(b, grid(b)[:1]), r"places \(6, 2\)"),
    Case("grid", lambda b: turn(b, grid(b), dtype=torch.int64), "x must be floating, got .*int64"),
    Case("graph_codes", lambda b: b.anchor_distances(WAY[:3], [0]), r"\(3, 4\)"),
    Case("graph_codes", lambda b: b.random_walk_probabilities(WAY - np.eye(4) / 9, 2), "0 or more"),
    Case("graph_codes", lambda b: b.anchor_distances(WAY * np.nan, [0]), "0 or more"),
    Case("graph_codes", lambda b: b.anchor_distances(WAY, [-1]), r"list of nodes, 0\.\.3"),
    Case("graph_codes", lambda b: b.anchor_distances(WAY, {0, 2}), "a list"),
    Case("graph_codes", lambda b: b.laplacian_eigenvectors(np.triu(WAY), 2), r"graph \+ graph.T"),
    Case("graph_codes", lambda b: b.laplacian_eigenvectors(WAY, 4), r"1\.\.3, got 4"),
    Case("graph_codes", lambda b: b.random_walk_probabilities(WAY, 0), "at least 1, got 0"),
    Case("times", lambda b: b.time_codes(SECONDS, 2, 1.0, 60.0), "from 4 on: 2;"),
    Case("times", lambda b: b.time_codes(SECONDS, 5, 1.0, 60.0), "even, .*: 5;"),
    Case("times", lambda b: b.time_codes(SECONDS, 8, 60.0, 1.0), "0 < 60.0 < 1.0"),
    Case("times", lambda b: b.time_codes(SECONDS + 1.7e9, 8, 1.0, 60.0), "float32: use float64"),
    Case("times", lambda b: b.periodic_codes(SECONDS + 1.7e9, [60], 2), "float32: use"),
    Case("times", lambda b: b.time_codes(SECONDS.bfloat16() + 300, 8, 1.0, 60.0), "bfloat16: use"),
    Case("times", lambda b: b.time_codes(SECONDS * torch.nan, 8, 1.0, 60.0), "later start"),
    Case("times", lambda b: b.periodic_codes(SECONDS, [60], 2, torch.int32), "floating, got"),
    Case("times", lambda b: b.periodic_codes(SECONDS, [0], 2), r"periods=\[0\]"),
    Case("times", lambda b: b.periodic_codes(SECONDS, [60], 0), "harmonics=0"),
    Case("ring", lambda b: b.zigzag(16, 4, 4), "no rank 4 of 4"),
    Case("ring", lambda b: b.zigzag(17, 0, 4), "17 tokens"),
    Case("ring", lambda b: step(b, [5], range(6)), r"\(1, 6\): one a query"),
    Case("ring", lambda b: step(b, range(6), range(6), torch.int64), "int64"),
    Case("ring", lambda b: ring(b, [6, 5]), r"equally long.*5"),
    Case("ring", lambda b: ring(b, [6, 6]), "share positions"),
    Case("ring", lambda b: ring(b, [6, 6], trained=True), "no gradient flows"),
    Case("score_mods", lambda b: b.window(0), "window of 0 keys"),
    Case("score_mods", lambda b: b.t5(torch.ones(8, 2), 9, max_distance=2), "max_distance must be above 2"),
    Case("forget", lambda b: forget(b, n_q=0), "0 queries .* 6 keys"),
    Case("forget", lambda b: forget(b, few=2, gates=-GATES), "heads of k"),
    Case("forget", lambda b: forget(b, gates=-GATES / 0), "finite logarithms"),
    Case("forget", lambda b: forget(b, gates=GATES / 2), "logarithms, at most 0"),
    Case("cope", lambda b: cope(b, values=1), "fit.*2, 1, 6"),
    Case("grid", lambda b: b.axial_rope(random(6, 8), grid(b), "halves"), "'half', got 'halves'"),
    Case("padding_check", lambda b: leak(b, noisy=1.0), r"two runs differ.*eval\(\)"),
    Case("padding_check", lambda b: leak(b, extra=0), "extra must be above 0: 0"),
    Case("padding_check", lambda b: leak(b, pad=1), "first token not 1"),
    Case("position_checks", lambda b: b.sees(silent, IDS, 7), "must not be a token of .* got 7"),
    Case("position_checks", lambda b: b.shift(torch.nn.Linear(1, 1), IDS), r"call its eval\(\)"),
    Case("position_checks", lambda b: b.decoding(silent, IDS), "gave no past_key_values"),
    Case("rope", lambda b: b.rope(torch.ones(3, 4).long(), "half"), "got torch.int64"),
    Case("rope", lambda b: b.rope(torch.ones(3, 5), "half"), "width 5"),
    Case("rope", lambda b: b.rope(torch.ones(3, 4), "halves"), "layout must be .*'halves'"),
    Case("rope_attention", lambda b: b.CausalAttention(32, 4, layout="llama"), "layout must be .*'llama'"),
    Case("rope_attention", lambda b: b.CausalAttention(30, 4, layout="half"), "dim 30 must be"),
    Case("rope_attention", lambda b: b.CausalAttention(36, 4, layout="half"), "dim 36 must be"),
    Case("rope_attention", lambda b: b.CausalAttention(32, 4, 3, layout="half"), "of num_kv_heads 3"),
    Case("rope_attention", lambda b: attend(b, torch.ones(2, 3, 32).long()), "got torch.int64"),
    Case("rope_attention", lambda b: attend(b, pads=torch.zeros(2, 3)), "pads must be bool"),
    Case("rope_attention", lambda b: attend(b, positions=torch.ones(3)), "integers, got torch.float32"),
    Case("rope_attention", lambda b: attend(b, positions=torch.tensor([0, 1, 1])), "must rise"),
    Case("rope_attention", lambda b: attend(b, again=torch.tensor([0, 1, 2])), r"above \[2, 2\]"),
    Case("rope_cache", lambda b: b.RopeCache(random(1, 1, 1, 8), 9, layout="llama"), "layout must be .*'llama'"),
    Case("rope_cache", lambda b: cached(b, dtype=torch.bfloat16), r"\(2, 2, 3, 8\), torch.bfloat16 is unlike"),
    Case("rope_cache", lambda b: cached(b, n=5), r"4 \+ 5 keys for 8 slots: keep\(\)"),
    Case("rope_cache", lambda b: cached(b, pads=pads(3)), r"pads need positions: \(~pads\).cumsum"),
    Case("rope_cache", lambda b: cached(b, positions=torch.ones(3)), "integers, got torch.float32"),
    Case("rope_cache", lambda b: cached(b, positions=torch.arange(-1, 2)), "0 or more, got -1"),
    Case("rope_cache", lambda b: cached(b, positions=torch.arange(3)), "two keys of a row at position 0"),
    Case("rope_cache", lambda b: cached(b).move(torch.ones(7).long()), "two keys of a row at position 1"),
    Case("rope_cache", lambda b: cached(b).attend(random(2, 2, 1, 8), torch.full((2, 1), 40)), "position 40"),
    Case("from_config", lambda b: b.Rope(LLAMA, "llama"), "layout must be .*'llama'"),
    Case("from_config", lambda b: config(b, text_config={"hidden_size": 8}), "config.*text_config"),
    Case("from_config", lambda b: config(b, rope_parameters={"full": {}}), "each kind of"),
    Case("from_config", lambda b: config(b, rope_theta=None), "the base in the model's code"),
    Case("from_config", lambda b: config(b, rope_scaling={"rope_theta": 1e4}), "rope_theta is given twice"),
    Case("from_config", lambda b: scaled(b, "dynamic", factor=2.0), "dynamic_ntk_frequencies"),
    Case("from_config", lambda b: scaled(b, "ntk", factor=2.0), "posenc does not have it"),
    Case("from_config", lambda b: scaled(b, "yarn", factor=4.0), "original_max_position"),
    Case("from_config", lambda b: scaled(b, "linear"), "needs .*factor"),
    Case("from_config", lambda b: config(b, rope_ratio=50), "rope_ratio: look it up"),
    Case("from_config", lambda b: config(b, max_wavelength=50), "max_wavelength: look it up"),
    Case("from_config", lambda b: scaled(b, "linear", factor=2.0, ramp=3), "ramp: look it up"),
    Case("from_config", lambda b: config(b, position_embedding_type="absolute"), "position_embedding_type"),
    Case("from_config", lambda b: config(b, model_type="qwen2_vl"), "mrope_frequencies"),
    Case("from_config", lambda b: config(b, model_type="nanochat"), "negate rope.omega"),
    Case("from_config", lambda b: config(b, model_type="glm4"), "glm4 has the other layout"),
    Case("from_config", lambda b: config(b, partial_rotary_factor=0.5, rotary_pct=0.25), "turned columns must be"),
    Case("from_config", lambda b: config(b, hidden_size=None), "the width of a head"),
    Case("from_config", lambda b: b.Rope(LLAMA, "half")(torch.ones(3, 16).long()), "width 16"),
    Case("from_config", lambda b: b.Rope(LLAMA, "half")(torch.ones(3, 8)), "floats of width 16"),
    *(
        Case(name, partial(ATTENTIONS[name], **options), message)
        for name in ("alibi", "padding", "forget", "cope")
        for options, message in (
            ({"keys": 1}, r"fit.*\(2, .*\(1, "),
            ({"few": 3}, "fit.*2, 3, 6"),
            ({"n_q": 8}, r"fit.* 8, .* 6,|8 queries .* 6 keys"),
            ({"dtype": torch.int64}, "int64"),
        )
    ),
]  # fmt: skip
OWN = sorted({case.block for case in CASES})


def refusals(tree: ast.AST) -> list[ast.If]:
    """The conditions under which a block does nothing but raise."""
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Raise)
    ]


@cache
def block(name: str) -> SimpleNamespace:
    return taken.block(name)


@pytest.mark.parametrize("name", OWN)
def test_everything_that_a_block_refuses_is_refused_with_its_reason(name: str) -> None:
    wanted = {node.body[-1].lineno for node in refusals(ast.parse(taken.codes()[name]))}
    met = set()
    for case in CASES:
        if case.block == name:
            with pytest.raises((ValueError, TypeError), match=case.message) as caught:
                case.call(block(name))
            met.add(traceback.extract_tb(caught.tb)[-1].lineno)
    assert met == wanted


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("rope", "rope"),
        ("rope_attention", "CausalAttention"),
        ("rope_cache", "RopeCache"),
        ("from_config", "Rope"),
    ],
)
def test_the_layout_has_no_default(name: str, made: str) -> None:
    assert (
        inspect.signature(getattr(block(name), made)).parameters["layout"].default is inspect.Parameter.empty
    )
