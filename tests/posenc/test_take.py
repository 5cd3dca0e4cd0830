"""What chapters give to take along is equal to posenc in every precision, decodes as it computes, can be trained."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import posenc
from posenc import masks
from posenc.nn import (
    AlibiBias,
    ContextualPositions,
    ForgetGate,
    LearnedEncoding,
    RotaryEmbedding,
    SinusoidalEncoding,
    T5Bias,
)
from tests import taken
from tests.posenc.check.test_check import IDS, tiny
from tests.posenc.check.tiny import LIMIT
from tests.taken import LLAMA, block, random

DTYPES = [torch.float32, torch.bfloat16, torch.float64]
LAYOUTS: list[Any] = ["interleaved", "half"]


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """To one rounding of the dtype."""
    exact: dict[str, Any] = {"rtol": 0, "atol": 1e-12} if found.dtype == torch.float64 else {}
    torch.testing.assert_close(found, wanted, **exact)


def near(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """To several roundings in a row."""
    slack = {torch.float64: 1e-12, torch.float32: 2e-5, torch.bfloat16: 2e-2}[found.dtype]
    torch.testing.assert_close(found, wanted, rtol=slack, atol=slack)


def check_sinusoidal(block: SimpleNamespace, dtype: torch.dtype) -> None:
    theirs = block.SinusoidalEncoding(32).to(dtype).eval()
    ours = SinusoidalEncoding(32, dropout=0.0).to(dtype)
    x = random(2, 400, 32, dtype=dtype)
    for offset in (0, 2500, 4600):
        close(theirs(x, offset), ours(x, offset=offset))
    assert theirs.pe.dtype == torch.float32
    assert theirs.state_dict() == {}
    codes = posenc.sinusoidal_encoding(torch.arange(7, 407), 32, base=100.0, dtype=torch.float64)
    close(block.SinusoidalEncoding(32, 407, 0.0, base=100.0)(x, offset=7), (x.double() + codes).to(dtype))
    # Made on the meta device and filled later, as loaders do.
    with torch.device("meta"):
        empty = block.SinusoidalEncoding(32)
    assert torch.equal(empty.to_empty(device="cpu").to(dtype).eval()(x), theirs(x))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        dropped = theirs.train()(x)
    kept = dropped != 0
    assert 0.09 < 1 - kept.float().mean() < 0.11
    torch.testing.assert_close(dropped[kept], (theirs.eval()(x) / 0.9)[kept], rtol=1e-2, atol=1e-6)


def check_learned_table(block: SimpleNamespace, dtype: torch.dtype) -> None:
    theirs, ours = block.LearnedTable(20, 8).to(dtype), LearnedEncoding(8, 20, dropout=0.0).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    x = random(2, 12, 8, dtype=dtype)
    assert torch.equal(theirs(x, offset=8), ours(x, offset=8))
    mixed = block.LearnedTable(20, 8)  # a float32 table: one rounding, to the dtype of x
    close(mixed(x, offset=8).detach(), (x.double() + mixed.weight[8:].double()).to(dtype).detach())
    for length, trains in ((53, True), (7, False), (20, False)):
        theirs.requires_grad_(trains)
        wanted = posenc.learned.interpolate_table(theirs.weight.detach(), length)
        theirs.resize(length)
        close(theirs.weight.detach(), wanted)
        assert theirs.weight.requires_grad == trains


def check_image_table(block: SimpleNamespace, dtype: torch.dtype) -> None:
    table, old = random(2 + 8 * 6, 5, dtype=dtype), (8, 6)
    for new in ((13, 11), (5, 4), old):
        for antialias in (False, True):
            ours = posenc.grids.interpolate_grid(table, old, new, class_tokens=2, antialias=antialias)
            close(block.resize_image_table(table, old, new, class_tokens=2, antialias=antialias), ours)


def check_rope(block: SimpleNamespace, dtype: torch.dtype) -> None:
    x = random(2, 3, 40, 16, dtype=dtype)
    for layout in LAYOUTS:
        for offset in (0, 5, 10**6):
            ours = posenc.apply_rotary(x, torch.arange(offset, offset + 40), base=5e5, layout=layout)
            close(block.rope(x, layout, offset, base=5e5), ours)


def check_rope_attention(block: SimpleNamespace, dtype: torch.dtype) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layer = block.CausalAttention(32, num_heads=4, num_kv_heads=2, layout="half", base=5e5).to(dtype)
    x = random(2, 30, 32, dtype=dtype)
    heads = [w(x).unflatten(-1, (-1, 8)).transpose(1, 2) for w in (layer.q_proj, layer.k_proj, layer.v_proj)]
    q, k = RotaryEmbedding(8, base=5e5, layout="half")(*heads[:2])
    k, v = (y.repeat_interleave(2, dim=1) for y in (k, heads[2]))
    o, _ = posenc.dot_product_attention(q, k, v, mask=masks.causal_mask(30, like=q))
    full, _ = layer(x)
    near(full, layer.o_proj(o.transpose(1, 2).flatten(-2)))
    cache, parts = None, []
    for part in x.split([11, 1, 1, 7, 1, 9], dim=1):
        y, cache = layer(part, cache=cache)
        parts.append(y)
    near(torch.cat(parts, dim=1), full)


def check_rope_cache(block: SimpleNamespace, dtype: torch.dtype) -> None:
    """Prefill, chunks and single tokens, pads on either side, a window; what is kept and moved stands there."""
    q, k, v = random(3, 2, 4, 30, 16, dtype=dtype)
    k, v = k[:, :2], v[:, :2]
    many = [x.repeat_interleave(2, dim=1) for x in (k, v)]
    for layout in LAYOUTS:
        t = torch.arange(30)
        turned = [posenc.apply_rotary(x, t, base=5e5, layout=layout) for x in (q, many[0])]
        for window in (None, 5):
            hidden = masks.causal_mask(30, like=q) | (t[:, None] - t >= (window or 30))
            full, _ = posenc.dot_product_attention(turned[0], turned[1], many[1], mask=hidden)
            cache, done = block.RopeCache(k, 30, layout=layout, base=5e5), 0
            for n in (11, 1, 1, 7, 1, 9):
                here = slice(done, done + n)
                at = cache.add(k[:, :, here], v[:, :, here])
                near(cache.attend(q[:, :, here], at, window), full[:, :, here])
                done += n
        kept, places = [0, 1, 2, *range(26, 30)], torch.cat([torch.arange(3), torch.arange(1000, 1004)])
        cache.keep(kept)
        cache.move(places)
        alone = posenc.apply_rotary(k[:, :, kept], places, base=5e5, layout=layout)
        near(cache.k[:, :, :7], alone)
        assert torch.equal(cache.v[:, :, :7], v[:, :, kept])
        cache.keep(slice(-2, None))
        assert cache.t[:, :3].tolist() == [[1002, 1003, -1]] * 2
    for side in ("left", "right"):
        pads = masks.key_padding_mask([9, 4], 9, side=side, like=q)
        dirty = [x[:, :, :9].masked_fill(pads[:, None, :, None], torch.nan) for x in (k, v)]
        cache = block.RopeCache(k, 15, layout="half")
        at = cache.add(*dirty, (~pads).cumsum(1) - 1, pads)
        assert (cache.attend(q[:, :, :9], at).masked_select(pads[:, None, :, None]) == 0).all()
        y = cache.attend(q[:, :, 9:15], cache.add(k[:, :, 9:15], v[:, :, 9:15]))
        for row, n in enumerate((9, 4)):
            real = torch.cat([(~pads[row]).nonzero()[:, 0], torch.arange(9, 15)])
            short = block.RopeCache(k[row : row + 1], n + 6, layout="half")
            at = short.add(k[row : row + 1, :, real], v[row : row + 1, :, real])
            near(y[row], short.attend(q[row : row + 1, :, real], at)[0, :, -6:])


def check_alibi(block: SimpleNamespace, dtype: torch.dtype) -> None:
    for heads in range(1, 41):
        assert block.alibi_slopes(heads).tolist() == posenc.alibi_slopes(heads).tolist()
    q, k, v = random(3, 2, 12, 60, 16, dtype=dtype)
    bias = AlibiBias(12)(60)[None]
    ours, _ = posenc.dot_product_attention(q, k, v, bias=bias)
    several = (x[:, :4].repeat_interleave(3, dim=1) for x in (k, v))
    close(block.alibi_attention(q, k[:, :4], v[:, :4]), block.alibi_attention(q, *several))
    pads = masks.key_padding_mask([60, 37], 60, side="left", like=q)
    padded, _ = posenc.dot_product_attention(q, k, v, bias=bias, key_padding_mask=pads)
    dirty = [x.masked_fill(pads[:, None, :, None], torch.nan) for x in (k, v)]
    for first in (0, 50):  # with a cache, the last queries alone
        torch.testing.assert_close(block.alibi_attention(q[:, :, first:], k, v), ours[:, :, first:])
        torch.testing.assert_close(block.alibi_attention(q[:, :, first:], *dirty, pads), padded[:, :, first:])
    torch.testing.assert_close(block.alibi_attention(*(x[1:, :, 23:] for x in (q, k, v))), padded[1:, :, 23:])


def check_t5_bias(block: SimpleNamespace, dtype: torch.dtype) -> None:
    k = torch.arange(-10_000, 10_001)
    for n, far in ((32, 128), (64, 128), (16, 20), (128, 800), (18, 128)):
        for both in (True, False):
            sizes: dict[str, Any] = {"num_buckets": n, "max_distance": far, "bidirectional": both}
            assert torch.equal(block.t5_bucket(k, **sizes), posenc.relative.t5_bucket(k, **sizes))
            theirs, ours = block.T5Bias(3, **sizes).to(dtype), T5Bias(3, **sizes).to(dtype)
            ours.load_state_dict(theirs.relative_attention_bias.state_dict())
            assert torch.equal(theirs(90), ours(90))
            assert torch.equal(theirs(2, 90), ours(2, 90))


def check_padding(block: SimpleNamespace, dtype: torch.dtype) -> None:
    q, k, v = random(3, 3, 2, 7, 8, dtype=dtype)
    pads = masks.key_padding_mask([7, 4, 0], 7, side="left", like=q)
    for causal, mask in ((False, None), (True, masks.causal_mask(7, like=q))):
        ours, _ = posenc.dot_product_attention(q, k, v, mask=mask, key_padding_mask=pads)
        for first in (0, 6, 3):  # with a cache, the last queries alone
            close(block.padded_attention(q[:, :, first:], k, v, pads, causal), ours[:, :, first:])
        grouped = block.padded_attention(q.repeat_interleave(2, dim=1), k, v, pads, causal)
        close(grouped, ours.repeat_interleave(2, dim=1))
        at_pads = pads[:, None, :, None].expand_as(q)
        dirty = [x.masked_fill(at_pads, torch.nan).requires_grad_() for x in (k, v)]
        query = q.clone().requires_grad_()
        out = block.padded_attention(query, *dirty, pads, causal)
        close(out.detach(), ours)
        with torch.autograd.set_detect_anomaly(True):  # NaN on the way, even if none arrives
            out.sum().backward()
        assert all(x.grad is not None and x.grad.isfinite().all() for x in (query, *dirty))
    logits, targets = random(3, 7, 11, dtype=dtype), torch.arange(21).reshape(3, 7) % 11
    wide = logits.to(torch.promote_types(dtype, torch.float32))
    losses = masks.masked_loss(functional.cross_entropy(wide.mT, targets, reduction="none"), pads)
    close(block.padded_loss(logits, targets, pads), losses)
    close(block.padded_loss(logits.masked_fill(pads[..., None], torch.nan), targets, pads), losses)
    close(block.padded_loss(logits, targets.masked_fill(pads, -100), pads & False), losses)
    assert block.padded_loss(logits, targets, torch.ones_like(pads)) == 0


def check_padding_check(block: SimpleNamespace, dtype: torch.dtype) -> None:
    """As many numbers, and the same ones, as posenc's own check finds; NaN is not lost."""
    embed = torch.nn.Embedding.from_pretrained(random(9, 8, dtype=dtype))
    codes = SinusoidalEncoding(8, dropout=0.0)
    ids = [torch.tensor(row) for row in ([5, 1, 2], [7, 3, 8, 6, 4])]

    def attend(x: torch.Tensor, pads: torch.Tensor | None) -> torch.Tensor:
        return posenc.dot_product_attention(x, x, x, key_padding_mask=pads)[0]

    models: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
        lambda ids, pads: attend(embed(ids), pads),
        lambda ids, pads: attend(embed(ids), None),
        lambda ids, pads: attend(codes(embed(ids)), pads),
        lambda ids, pads: masks.masked_mean(attend(embed(ids), pads), pads),
    ]
    for model in models:
        found, wanted = block.check_padding(model, ids), masks.check_padding(model, ids)
        for side in ("right", "left"):
            ours = getattr(wanted, side)
            assert found[side] == (ours.change, ours.content)

    def broken(ids: torch.Tensor, pads: torch.Tensor) -> torch.Tensor:
        """NaN in the second sentence alone, which gets four pads."""
        return embed(ids) + torch.where(pads.sum(dim=1) == 4, torch.nan, 0.0)[:, None, None]

    assert np.isnan(block.check_padding(broken, ids)["left"][0])


def check_times(block: SimpleNamespace, dtype: torch.dtype) -> None:
    t = torch.tensor([[0.0, 0.4], [1e5 + 0.25, -3.0]], dtype=torch.float64)
    for times in (t, t.float(), t.long()):
        ours = posenc.time_encoding(times, 16, shortest=0.5, longest=60.0, dtype=dtype)
        torch.testing.assert_close(block.time_codes(times, 16, 0.5, 60.0, dtype), ours)
        closed = posenc.periodic_encoding(times, [24, 168.5], harmonics=3, dtype=dtype)
        torch.testing.assert_close(block.periodic_codes(times, [24, 168.5], 3, dtype), closed)
    bases = torch.arange(50) * 10**9
    start, later = (block.periodic_codes(b, [16569], 4, torch.float64) for b in (bases, bases + 16569))
    assert torch.equal(start, later)


def check_ring(block: SimpleNamespace, dtype: torch.dtype) -> None:
    n, world = 24, 3
    q, k, v = random(3, 2, 4, n, 8, dtype=dtype)
    whole, _ = posenc.dot_product_attention(q, k, v, mask=masks.causal_mask(n, like=q))
    places = [block.zigzag(n, rank, world) for rank in range(world)]
    for rank, t in enumerate(places):
        assert torch.equal(t, posenc.shard_positions(n, rank, world, scheme="zigzag", like=q))
        # The last of these blocks have no key for the early half of a rank's queries, or come first.
        for order in (places, places[::-1]):
            state = None
            for u in order:
                state = block.ring_step(state, q[..., t, :], k[..., u, :], v[..., u, :], t, u)
                wide = torch.promote_types(dtype, torch.float32)
                assert all(x.dtype == wide and not x.isnan().any() for x in state)
            assert state is not None
            close(state[0].to(dtype), whole[..., t, :])


def check_forget(block: SimpleNamespace, dtype: torch.dtype) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        theirs, ours = block.ForgetGate(16, 3).to(dtype), ForgetGate(16, 3).to(dtype)
    assert theirs.linear.bias.sigmoid().min() > 0.97
    ours.load_state_dict(theirs.state_dict())
    x = random(2, 300, 16, dtype=dtype)
    log_gates = theirs(x)
    assert log_gates.dtype == torch.promote_types(dtype, torch.float32)
    with torch.autocast("cpu", enabled=False):  # ours leaves its matrix to autocast
        assert torch.equal(log_gates, ours(x))
    q, k, v = random(3, 2, 3, 300, 8, dtype=dtype)
    for gates in (log_gates, 40 * log_gates):  # the sums of the second go beyond 200
        full, _ = posenc.dot_product_attention(q, k, v, bias=posenc.forget_bias(gates))
        near(block.forget_attention(q, k, v, gates), full)
        near(block.forget_attention(q[:, :, 290:], k, v, gates), full[:, :, 290:])
        several = q.repeat_interleave(2, dim=1)  # two heads of queries for one of keys, and of gates
        near(block.forget_attention(several, k, v, gates), full.repeat_interleave(2, dim=1))
    # Neighbours far out, where sums in float32 have few digits left.
    far = torch.full((1, 1, 400_000), -0.3)
    keys = torch.zeros(1, 1, 400_000, 1)
    values = keys.clone()
    values[..., -2:, 0] = torch.tensor([1.0, 0.0])
    share = block.forget_attention(keys[:, :, -1:], keys, values, far).item()
    assert abs(share - (1 - np.exp(-0.3)) * np.exp(-0.3)) < 1e-5


def check_cope(block: SimpleNamespace, dtype: torch.dtype) -> None:
    wide = torch.promote_types(dtype, torch.float32)
    theirs, ours = block.CoPE(8, 5).to(dtype), ContextualPositions(8, 5).to(wide)
    assert (theirs.weight == 0).all()
    q, k, v = random(3, 2, 3, 40, 8, dtype=dtype)
    for _ in range(2):
        ours.load_state_dict(theirs.state_dict())
        # Ours rounds the bias to the dtype of the queries.
        full, _ = posenc.dot_product_attention(q, k, v, bias=ours(q.to(wide), k.to(wide)))
        near(theirs(q, k, v), full)
        near(theirs(q[:, :, 37:], k, v), full[:, :, 37:])
        near(theirs(q.repeat_interleave(2, dim=1), k, v), full.repeat_interleave(2, dim=1))
        broken = k.index_fill(2, torch.tensor([30]), torch.nan)
        assert theirs(q, broken, v).isnan().any(dim=-1).equal(torch.arange(40).expand(2, 3, 40) >= 30)
        theirs.weight.data = random(6, 8, dtype=dtype)


QWEN = {"hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 512, "rope_theta": 1e6}


def check_from_config(block: SimpleNamespace, dtype: torch.dtype) -> None:
    x = random(1, 4, 300, 16, dtype=dtype)
    longer = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
    for config, frequencies, scale in (
        (LLAMA, posenc.rotary.llama3_frequencies(16, 8.0, original_length=512, base=5e5), 1.0),
        (QWEN | {"rope_scaling": longer}, posenc.rotary.yarn_frequencies(16, 4.0, original_length=512, base=1e6),
         posenc.rotary.yarn_attention_factor(4.0)),
        (QWEN | {"rope_scaling": None, "partial_rotary_factor": 0.5}, posenc.sinusoidal_frequencies(8, 1e6), 1.0),
        (QWEN | {"rope_scaling": {"type": "linear", "factor": 8.0}},
         posenc.rotary.linear_frequencies(16, 8.0, base=1e6), 1.0),
    ):  # fmt: skip
        for layout in LAYOUTS:
            rope = block.Rope(config, layout)
            assert rope.scale == scale
            torch.testing.assert_close(rope.omega, torch.from_numpy(frequencies), rtol=1e-14, atol=0)
            how: dict[str, Any] = {"scale": scale, "rotary_dim": 2 * len(frequencies), "layout": layout}
            for offset in (7, 1000):
                t = torch.arange(offset, offset + 300)
                close(rope(x, offset), posenc.apply_rotary(x, t, frequencies=frequencies, **how))


def check_layout_probe(block: SimpleNamespace, dtype: torch.dtype) -> None:
    for layout in LAYOUTS:
        for first in (0, 1):

            def mine(x: torch.Tensor, layout: Any = layout, first: int = first) -> torch.Tensor:
                return posenc.apply_rotary(x, torch.arange(first, len(x) + first), layout=layout)

            said = block.probe(mine)
            assert said.startswith(f"pairs {layout}, counter-clockwise, 16 of 16 columns")
            assert said.endswith(f"first position {first}, output in order")
    assert block.printed.startswith("pairs half, counter-clockwise, 16 of 16 columns, first position 0,")


def check_graph_codes(block: SimpleNamespace, dtype: torch.dtype) -> None:
    arrows = np.diag([2.0, 0, 1, 3], k=1) + np.diag([1.0, 0], k=-3)
    for graph in (arrows, arrows + 2 * arrows.T):  # one way, and there and back with other weights
        for name, argument in (("anchor_distances", [0, 3]), ("random_walk_probabilities", 6)):
            ours, theirs = (getattr(library, name)(graph, argument) for library in (posenc, block))
            np.testing.assert_allclose(theirs, ours)
    lonely = np.zeros((7, 7))
    lonely[:5, :5] = arrows + arrows.T
    lonely[5, 6] = lonely[6, 5] = 2
    looped = lonely + np.diag([0, 3.0, 0, 0, 1, 0, 2])
    for graph in (lonely, lonely[:6, :6], looped):  # a second part of two nodes, or of one without edges
        waves, values = block.laplacian_eigenvectors(graph, 3)
        found = posenc.laplacian_eigenvectors(graph, 3)
        np.testing.assert_allclose(values, found.values)
        alone = ~found.degenerate
        np.testing.assert_allclose(abs(waves[:, alone]), abs(found.vectors[:, alone]), atol=1e-9)


def check_grid(block: SimpleNamespace, dtype: torch.dtype) -> None:
    orders: list[tuple[str, Any]] = [("posenc", "interleaved"), ("mae", "mae"), ("timm", "timm")]
    for theirs, ours in orders:
        table = posenc.grid_encoding((5, 7), 24, base=100.0, order=ours, dtype=dtype)
        close(block.grid_code(5, 7, 24, base=100.0, order=theirs, dtype=dtype), table)
    places = block.grid_places(5, 7)
    assert places.tolist() == posenc.grids.grid_coordinates((5, 7)).tolist()
    x, omega = random(2, 3, 35, 16, dtype=dtype), posenc.rotary.axial_frequencies(16, 2, base=100.0)
    for layout in LAYOUTS:
        wanted = posenc.rotary.apply_rotary_axes(x, places, omega, layout=layout)
        close(block.axial_rope(x, places, layout, base=100.0), wanted)


class AsInTransformers(torch.nn.Module):
    """A tiny decoder whose outputs have names."""

    def __init__(self, fault: str = "", way: str = "rope") -> None:
        super().__init__()
        self.tiny = tiny(way, fault)
        self.eval()

    def forward(self, ids: torch.Tensor, **options: Any) -> SimpleNamespace:
        logits, cache = self.tiny(ids, **options)
        return SimpleNamespace(logits=logits, past_key_values=cache)


class KeepsByLength(torch.nn.Module):
    """A length is a constant of its graph."""

    def forward(self, ids: torch.Tensor, **options: Any) -> SimpleNamespace:
        self.kept = {**getattr(self, "kept", {}), ids.shape[1]: 0}
        return SimpleNamespace(logits=ids[..., None] / 60)


def check_position_checks(block: SimpleNamespace, dtype: torch.dtype) -> None:
    """Each number is 0 for a good model, and large for one with the fault that it is there to find."""
    some = IDS[:, :12]
    other = next(token for token in range(60) if token not in some)
    found: dict[str, Callable[[torch.nn.Module], float]] = {
        "newest at 0": lambda model: block.decoding(model, IDS),
        "pads are seen": lambda model: block.left_padding(model, IDS),
        "values turned": lambda model: block.shift(model, IDS),
        "sees one ahead": lambda model: float(block.sees(model, some, other).triu(1).any()),
        "positions in the model's format": lambda model: max(
            1 - 2 * np.divide(*block.lost(model, IDS, 480)), 0
        ),
    }
    for fault, number in found.items():
        assert number(AsInTransformers()) < 1e-5
        assert number(AsInTransformers(fault)) > 1e-2
    assert block.order(AsInTransformers(), IDS) > 1e-2
    blind = AsInTransformers(way="none")
    del blind.tiny.layers[1]  # without positions, one layer sees a set
    assert block.order(blind, IDS) < 1e-5
    assert block.ends(AsInTransformers(way="table"), IDS, LIMIT)
    assert not block.ends(AsInTransformers("clamped", "table"), IDS, LIMIT)
    layer = AsInTransformers()
    del layer.tiny.layers[1]  # compiled in half the time
    assert block.graphs(layer, IDS) <= 2
    assert block.graphs(KeepsByLength().eval(), IDS) >= 6
    assert block.sees(AsInTransformers(), some, other).equal(torch.ones(12, 12).tril().bool())


def check_score_mods(block: SimpleNamespace, dtype: torch.dtype) -> None:
    """On all pairs at once, as FlexAttention asks for them one by one."""
    h, t, u, zero = (
        torch.arange(8)[:, None, None],
        torch.arange(30)[:, None],
        torch.arange(30),
        torch.zeros(()),
    )
    wanted = posenc.alibi_bias(posenc.alibi_slopes(8, like=zero), 30, causal=False)
    assert torch.equal(block.alibi(8)(zero, 0, h, t, u).double(), wanted)
    assert torch.equal(block.alibi(8, behind=29)(zero, 0, h, t[:1], u).double(), wanted[:, 29:])
    weight, ids = random(16, 8, dtype=dtype), torch.tensor([[0] * 12 + [1] * 15 + [-1] * 3])
    for both in (True, False):
        wanted = posenc.t5_bias(weight, 30, num_buckets=16, max_distance=20, bidirectional=both)
        how: dict[str, Any] = {"max_distance": 20, "bidirectional": both}
        assert torch.equal(block.t5(weight, 30, **how)(zero.to(dtype), 0, h, t, u), wanted)
        assert torch.equal(block.t5(weight, 30, 29, **how)(zero.to(dtype), 0, h, t[:1], u), wanted[:, 29:])
    later = masks.causal_mask(30, like=zero)
    for mod, hidden in (
        (lambda behind: block.window(5, behind), later | (t - u >= 5)),
        (lambda behind: block.documents(ids, behind), later | masks.document_mask(ids)[0]),
    ):
        assert torch.equal(~mod(0)(torch.tensor(0), 0, t, u), hidden)
        assert torch.equal(~mod(20)(torch.tensor(0), 0, t[:10], u), hidden[20:])
    if dtype != torch.float32 or torch.is_autocast_enabled("cpu"):
        return
    q, k, v = random(3, 1, 8, 30, 8)  # and in torch's own attention, where a pad sees nothing and gets 0
    mask = block.blocks_of(block.documents(ids), 30, 30, batch=1)
    found = block.attend(q, k, v, score_mod=block.alibi(8), block_mask=mask)
    bias = posenc.alibi_bias(posenc.alibi_slopes(8, like=q), 30).float()
    full, _ = posenc.dot_product_attention(q, k, v, bias=bias[None], mask=masks.document_mask(ids)[:, None])
    torch.testing.assert_close(found, full)


Check = Callable[[SimpleNamespace, torch.dtype], None]
CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")
}


AUTOCAST = {"rope_attention", "position_checks"}  # whose projections, or models, are autocast's
# Whose checks choose their formats by themselves.
ONE_FORMAT = {"layout_probe", "graph_codes", "position_checks"}


def test_each_block_is_checked_and_runs_without_posenc() -> None:
    assert set(taken.codes()) == set(CHECKS)
    for line in ("import posenc", "from posenc.nn import RotaryEmbedding"):
        with pytest.raises(ModuleNotFoundError):
            taken.pasted(line)


def in_formats(names: Iterable[str]) -> list[tuple[str, torch.dtype]]:
    return [(name, dtype) for name in names for dtype in (DTYPES[:1] if name in ONE_FORMAT else DTYPES)]


@pytest.mark.parametrize(("name", "dtype"), in_formats(CHECKS), ids=str)
def test_equal_to_posenc(name: str, dtype: torch.dtype) -> None:
    CHECKS[name](block(name), dtype)


@pytest.mark.parametrize(("name", "dtype"), in_formats(sorted({*CHECKS} - AUTOCAST)), ids=str)
def test_autocast_changes_nothing(name: str, dtype: torch.dtype) -> None:
    right = block(name)
    with torch.autocast("cpu", torch.bfloat16):
        CHECKS[name](right, dtype)


def test_a_training_reaches_every_parameter_of_a_block() -> None:
    x, q = random(2, 16, 32), random(2, 4, 16, 8)
    layers: list[tuple[Any, tuple[Any, ...]]] = [
        (block("learned_table").LearnedTable(16, 32), (x,)),
        (block("t5_bias").T5Bias(4), (16,)),
        (block("rope_attention").CausalAttention(32, 4, 2, layout="half"), (x,)),
        (block("forget").ForgetGate(32, 4), (x,)),
        (block("cope").CoPE(8, 5), (q, q, q)),
    ]
    for layer, given in layers:
        found = layer(*given)
        found = found[0] if isinstance(found, tuple) else found
        (found * random(*found.shape)).sum().backward()
        assert all(parameter.grad is not None and parameter.grad.any() for parameter in layer.parameters())
