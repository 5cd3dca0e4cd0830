"""What chapters give to take along is equal to posenc, decodes as it computes, trains, and can fail."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import taken
import torch
from torch.nn import functional

import posenc
from posenc import masks
from posenc.nn import (
    AlibiAttention,
    AlibiBias,
    ContextualPositions,
    ForgetGate,
    LearnedEncoding,
    RotaryEmbedding,
    SinusoidalEncoding,
    T5Bias,
)

DTYPES = [torch.float32, torch.bfloat16]
close = torch.testing.assert_close  # to some roundings of the dtype


def random(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1)).to(dtype)


def check_sinusoidal(block: SimpleNamespace, dtype: torch.dtype) -> None:
    theirs = block.SinusoidalEncoding(32).to(dtype).eval()
    ours = SinusoidalEncoding(32, dropout=0.0).to(dtype)
    x = random(2, 400, 32, dtype=dtype)
    assert torch.equal(theirs(x), ours(x))
    assert torch.equal(theirs(x, offset=2500), ours(x, offset=2500))
    assert torch.equal(theirs(x, offset=4600), ours(x, offset=4600))
    assert theirs.pe.dtype == torch.float32
    assert theirs.state_dict() == {}
    wide, base = x.double(), {"base": 100.0}
    codes = posenc.sinusoidal_encoding(torch.arange(7, 407), 32, **base, dtype=torch.float64)
    exact = block.SinusoidalEncoding(32, 407, 0.0, **base)(wide, offset=7)
    close(exact, wide + codes, rtol=0, atol=1e-13)
    # Made on the meta device and filled later, as loaders do.
    with torch.device("meta"):
        empty = block.SinusoidalEncoding(32)
    assert torch.equal(empty.to_empty(device="cpu").to(dtype).eval()(x), theirs(x))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        dropped = theirs.train()(x)
    kept = dropped != 0
    assert 0.09 < 1 - kept.float().mean() < 0.11
    close(dropped[kept], (theirs.eval()(x) / 0.9)[kept], rtol=1e-2, atol=1e-6)


def check_learned_table(block: SimpleNamespace, dtype: torch.dtype) -> None:
    theirs, ours = block.LearnedTable(20, 8).to(dtype), LearnedEncoding(8, 20, dropout=0.0).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    x = random(2, 12, 8, dtype=dtype)
    assert torch.equal(theirs(x, offset=8), ours(x, offset=8))
    whole = block.LearnedTable(20, 8)  # a float32 table: one rounding, to the dtype of x
    codes = whole.weight.detach()[8:]
    assert torch.equal(whole(x, offset=8).detach(), (x.float() + codes).to(dtype))
    close(whole(x.double(), offset=8).detach(), x.double() + codes, rtol=0, atol=1e-13)
    for length in (53, 7, 20):
        wanted = posenc.learned.interpolate_table(theirs.weight.detach(), length)
        theirs.resize(length)
        close(theirs.weight.detach(), wanted)
    assert theirs.weight.dtype == dtype
    assert theirs.weight.requires_grad
    fine = block.LearnedTable(20, 8).double().requires_grad_(False)
    wanted = posenc.learned.interpolate_table(fine.weight, 53)
    fine.resize(53)
    close(fine.weight.data, wanted, rtol=0, atol=1e-15)
    assert not fine.weight.requires_grad


def cubic(old: int, new: int) -> torch.Tensor:
    """What each new cell takes of each old one (new, old): Keys' cubic with a = −3/4, as torch has it."""
    at = (torch.arange(new, dtype=torch.float64) + 0.5) * old / new - 0.5
    shares = torch.zeros(new, old, dtype=torch.float64)
    for step in (-1, 0, 1, 2):
        cell = at.floor() + step
        x = (at - cell).abs()
        near, far = 1.25 * x**3 - 2.25 * x**2 + 1, -0.75 * (x**3 - 5 * x**2 + 8 * x - 4)
        index = cell.clamp(0, old - 1).long()[:, None]
        shares.scatter_add_(1, index, torch.where(x <= 1, near, far)[:, None])
    return shares


def check_image_table(block: SimpleNamespace, dtype: torch.dtype) -> None:
    table = random(2 + 8 * 6, 5, dtype=dtype)
    new = block.resize_image_table(table, (8, 6), (13, 11), class_tokens=2)
    assert torch.equal(new[:2], table[:2])
    grid = table[2:].double().unflatten(0, (8, 6))
    ours = torch.einsum("Rr,Cc,rcd->RCd", cubic(8, 13), cubic(6, 11), grid).flatten(0, 1)
    close(new[2:], ours.to(dtype))
    fine = block.resize_image_table(table.double(), (8, 6), (13, 11), class_tokens=2)
    close(fine[2:], ours, rtol=0, atol=1e-13)
    for antialias in (False, True):
        same = block.resize_image_table(table, (8, 6), (8, 6), 2, antialias=antialias)
        close(same, table)


def check_rope(block: SimpleNamespace, dtype: torch.dtype) -> None:
    x = random(2, 3, 40, 16, dtype=dtype)
    layouts: list[Any] = ["interleaved", "half"]
    for layout in layouts:
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
    slack = {torch.float32: 1e-5, torch.bfloat16: 2e-2}[dtype]  # several roundings in a row
    close(full, layer.o_proj(o.transpose(1, 2).flatten(-2)), rtol=slack, atol=slack)
    cache, parts = None, []
    for part in x.split([11, 1, 1, 7, 1, 9], dim=1):
        y, cache = layer(part, cache=cache)
        parts.append(y)
    close(torch.cat(parts, dim=1), full, rtol=slack, atol=slack)


def check_alibi(block: SimpleNamespace, dtype: torch.dtype) -> None:
    for heads in range(1, 41):
        assert block.alibi_slopes(heads).tolist() == posenc.alibi_slopes(heads).tolist()
    q, k, v = random(3, 2, 12, 60, 16, dtype=dtype)
    bias = AlibiBias(12)(60)[None]
    ours, _ = posenc.dot_product_attention(q, k, v, bias=bias)
    close(block.alibi_attention(q, k, v), ours)
    if dtype == torch.float32:  # elsewhere the columns are rounded
        close(block.alibi_attention(q, k, v), AlibiAttention(12)(q, k, v))
    close(block.alibi_attention(q[:, :, 50:], k, v), ours[:, :, 50:])
    several = (x[:, :4].repeat_interleave(3, dim=1) for x in (k, v))
    close(block.alibi_attention(q, k[:, :4], v[:, :4]), block.alibi_attention(q, *several))
    pads = masks.key_padding_mask([60, 37], 60, side="left", like=q)
    padded, _ = posenc.dot_product_attention(q, k, v, bias=bias, key_padding_mask=pads)
    at_pads = pads[:, None, :, None].expand_as(k)
    dirty = [x.masked_fill(at_pads, torch.nan) for x in (k, v)]
    close(block.alibi_attention(q, *dirty, pads), padded)
    close(block.alibi_attention(q[:, :, 50:], *dirty, pads), padded[:, :, 50:])
    close(block.alibi_attention(*(x[1:, :, 23:] for x in (q, k, v))), padded[1:, :, 23:])


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
        close(block.padded_attention(q, k, v, pads, causal), ours)
        for first in (6, 3):  # a cache: the last queries, and all keys
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
    losses = functional.cross_entropy(logits.float().mT, targets, reduction="none")
    close(block.padded_loss(logits, targets, pads), masks.masked_loss(losses, pads))
    dirty_logits = logits.masked_fill(pads[..., None], torch.nan)
    close(block.padded_loss(dirty_logits, targets, pads), masks.masked_loss(losses, pads))
    assert block.padded_loss(logits, targets, torch.ones_like(pads)) == 0
    ignored = targets.masked_fill(pads, -100)
    close(block.padded_loss(logits, ignored, pads & False), masks.masked_loss(losses, pads))


def check_padding_check(block: SimpleNamespace, dtype: torch.dtype) -> None:
    """As many numbers, and the same ones, as posenc's own check finds; NaN is not lost."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        embed = torch.nn.Embedding(9, 8).to(dtype).requires_grad_(False)
    codes = SinusoidalEncoding(8, dropout=0.0)
    ids = [torch.tensor(row) for row in ([5, 1, 2], [7, 3, 8, 6, 4])]

    def attend(x: torch.Tensor, pads: torch.Tensor | None) -> torch.Tensor:
        return posenc.dot_product_attention(x, x, x, key_padding_mask=pads)[0]

    def pooled(ids: torch.Tensor, pads: torch.Tensor) -> torch.Tensor:
        return masks.masked_mean(attend(embed(ids), pads), pads)

    models: list[Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = [
        lambda ids, pads: attend(embed(ids), pads),
        lambda ids, pads: attend(embed(ids), None),
        lambda ids, pads: attend(codes(embed(ids)), pads),
        pooled,
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
        close(block.time_codes(times, 16, 0.5, 60.0, dtype), ours)
        closed = block.periodic_codes(times, [24, 168.5], 3, dtype)
        close(closed, posenc.periodic_encoding(times, [24, 168.5], harmonics=3, dtype=dtype))
    bases = torch.arange(50) * 10**9
    assert torch.equal(
        block.periodic_codes(bases, [16569], 4, torch.float64),
        block.periodic_codes(bases + 16569, [16569], 4, torch.float64),
    )
    fine = block.time_codes(t, 16, 0.5, 60.0, torch.float64)
    ours = posenc.time_encoding(t, 16, shortest=0.5, longest=60.0, dtype=torch.float64)
    close(fine, ours, rtol=0, atol=1e-9)


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
                assert all(x.dtype == torch.float32 and not x.isnan().any() for x in state)
            assert state is not None
            close(state[0].to(dtype), whole[..., t, :])
    q, k, v = (x.double() for x in (q, k, v))
    exact, _ = posenc.dot_product_attention(q, k, v, mask=masks.causal_mask(n, like=q))
    everywhere = torch.arange(n)
    close(block.ring_step(None, q, k, v, everywhere, everywhere)[0], exact, rtol=0, atol=1e-13)


def check_forget(block: SimpleNamespace, dtype: torch.dtype) -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        theirs, ours = block.ForgetGate(16, 3).to(dtype), ForgetGate(16, 3).to(dtype)
    assert theirs.linear.bias.sigmoid().min() > 0.97
    ours.load_state_dict(theirs.state_dict())
    x = random(2, 300, 16, dtype=dtype)
    log_gates = theirs(x)
    assert log_gates.dtype == torch.float32
    assert torch.equal(log_gates, ours(x))
    q, k, v = random(3, 2, 3, 300, 8, dtype=dtype)
    for gates in (log_gates, 40 * log_gates):  # the sums of the second go beyond 200
        bias = posenc.forget_bias(gates)
        full, _ = posenc.dot_product_attention(q, k, v, bias=bias)
        slack = {torch.float32: 2e-5, torch.bfloat16: 2e-2}[dtype]
        close(block.forget_attention(q, k, v, gates), full, rtol=slack, atol=slack)
        late = block.forget_attention(q[:, :, 290:], k, v, gates)
        close(late, full[:, :, 290:], rtol=slack, atol=slack)
        several = q.repeat_interleave(2, dim=1)  # two heads of queries for one of keys, and of gates
        grouped = block.forget_attention(several, k, v, gates)
        close(grouped, full.repeat_interleave(2, dim=1), rtol=slack, atol=slack)
    # Neighbours far out, where sums in float32 have few digits left.
    far = torch.full((1, 1, 400_000), -0.3)
    keys = torch.zeros(1, 1, 400_000, 1)
    values = keys.clone()
    values[..., -2:, 0] = torch.tensor([1.0, 0.0])
    share = block.forget_attention(keys[:, :, -1:], keys, values, far).item()
    assert abs(share - (1 - np.exp(-0.3)) * np.exp(-0.3)) < 1e-5


def check_cope(block: SimpleNamespace, dtype: torch.dtype) -> None:
    theirs, ours = block.CoPE(8, 5).to(dtype), ContextualPositions(8, 5).to(dtype)
    assert (theirs.weight == 0).all()
    q, k, v = random(3, 2, 3, 40, 8, dtype=dtype)
    for _ in range(2):
        ours.load_state_dict(theirs.state_dict())
        # Ours rounds the bias to the dtype of the queries.
        bias = ours.float()(q.float(), k.float())
        full, _ = posenc.dot_product_attention(q, k, v, bias=bias)
        ours.to(dtype)
        slack = {torch.float32: 1e-5, torch.bfloat16: 1e-2}[dtype]
        close(theirs(q, k, v), full, rtol=slack, atol=slack)
        close(theirs(q[:, :, 37:], k, v), full[:, :, 37:], rtol=slack, atol=slack)
        grouped = theirs(q.repeat_interleave(2, dim=1), k, v)
        close(grouped, full.repeat_interleave(2, dim=1), rtol=slack, atol=slack)
        broken = k.index_fill(2, torch.tensor([30]), torch.nan)
        assert theirs(q, broken, v).isnan().any(dim=-1).equal(torch.arange(40).expand(2, 3, 40) >= 30)
        theirs.weight.data = random(6, 8, dtype=dtype)


LLAMA = {
    "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 4096, "rope_theta": 5e5,
    "rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 512,
    },
}  # fmt: skip
QWEN = {"hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 512, "rope_theta": 1e6}


def check_from_config(block: SimpleNamespace, dtype: torch.dtype) -> None:
    x = random(1, 4, 300, 16, dtype=dtype)
    llama3 = posenc.rotary.llama3_frequencies(16, 8.0, original_length=512, base=5e5)
    yarn = posenc.rotary.yarn_frequencies(16, 4.0, original_length=512, base=1e6)
    scale, partial = posenc.rotary.yarn_attention_factor(4.0), posenc.sinusoidal_frequencies(8, 1e6)
    longer = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
    layouts: list[Any] = ["half", "interleaved"]
    for config, frequencies, wanted in (
        (LLAMA, llama3, 1.0),
        (QWEN | {"rope_scaling": longer}, yarn, scale),
        (QWEN | {"rope_scaling": None, "partial_rotary_factor": 0.5}, partial, 1.0),
        (QWEN | {"rope_scaling": {"rope_type": "linear", "factor": 8.0}},
         posenc.rotary.linear_frequencies(16, 8.0, base=1e6), 1.0),
    ):  # fmt: skip
        for layout in layouts:
            rope = block.Rope(config, layout)
            assert rope.scale == wanted
            torch.testing.assert_close(rope.omega, torch.from_numpy(frequencies), rtol=1e-14, atol=0)
            how: dict[str, Any] = {"scale": rope.scale, "rotary_dim": 2 * len(rope.omega), "layout": layout}
            ours = posenc.apply_rotary(x, torch.arange(7, 307), frequencies=frequencies, **how)
            close(rope(x, offset=7), ours)
    with pytest.raises(ValueError, match="longrope_attention_factor"):
        block.Rope(QWEN | {"rope_scaling": {"type": "longrope"}}, "half")
    with pytest.raises(ValueError, match="rope_theta"):
        block.Rope({name: value for name, value in QWEN.items() if name != "rope_theta"}, "half")


def check_layout_probe(block: SimpleNamespace, dtype: torch.dtype) -> None:
    layouts: list[Any] = ["half", "interleaved"]
    for layout in layouts:
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
        np.testing.assert_array_equal(
            block.anchor_distances(graph, [0, 3]), posenc.anchor_distances(graph, [0, 3])
        )
        np.testing.assert_allclose(
            block.random_walk_probabilities(graph, 6), posenc.random_walk_probabilities(graph, 6)
        )
    lonely = np.zeros((7, 7))
    lonely[:5, :5] = arrows + arrows.T
    lonely[5, 6] = lonely[6, 5] = 2
    looped = lonely + np.diag([0, 3.0, 0, 0, 1, 0, 2])
    for graph in (lonely, lonely[:6, :6], looped):  # a second part of two nodes, or of one without edges
        (waves, values), ours = (
            block.laplacian_eigenvectors(graph, 3),
            posenc.laplacian_eigenvectors(graph, 3),
        )
        np.testing.assert_allclose(values, ours.values)
        np.testing.assert_allclose(
            abs(waves[:, ~ours.degenerate]), abs(ours.vectors[:, ~ours.degenerate]), atol=1e-9
        )


def check_grid(block: SimpleNamespace, dtype: torch.dtype) -> None:
    orders: list[tuple[str, Any]] = [("posenc", "interleaved"), ("mae", "mae"), ("timm", "timm")]
    for theirs, ours in orders:
        table = posenc.grid_encoding((5, 7), 24, base=100.0, order=ours, dtype=torch.float64)
        close(block.grid_code(5, 7, 24, base=100.0, order=theirs), table.float())
        fine = block.grid_code(5, 7, 24, base=100.0, order=theirs, dtype=torch.float64)
        close(fine, table, rtol=0, atol=1e-13)
    places = block.grid_places(5, 7)
    assert places.tolist() == posenc.grids.grid_coordinates((5, 7)).tolist()
    x, omega = random(2, 3, 35, 16, dtype=dtype), posenc.rotary.axial_frequencies(16, 2, base=100.0)
    layouts: list[Any] = ["interleaved", "half"]
    for layout in layouts:
        wanted = posenc.rotary.apply_rotary_axes(x, places, omega, layout=layout)
        close(block.axial_rope(x, places, layout, base=100.0), wanted)
        wanted = posenc.rotary.apply_rotary_axes(x.double(), places, omega, layout=layout)
        close(block.axial_rope(x.double(), places, layout, base=100.0), wanted, rtol=0, atol=1e-13)


Check = Callable[[SimpleNamespace, torch.dtype], None]
CHECKS: dict[str, Check] = {
    name.removeprefix("check_"): check for name, check in globals().items() if name.startswith("check_")
}
# A fault for each, or several: what stands in the block, what might stand there.
FAULTS = [
    ("sinusoidal", "end, dtype=torch.float64", "end, dtype=torch.bfloat16"),
    ("sinusoidal", "self.pe[offset:end]", "self.pe[: end - offset]"),
    ("sinusoidal", "if exact else", "if False else"),
    ("sinusoidal", "self.pe = table.to(self.pe.device)", ""),
    ("sinusoidal", ", persistent=False", ""),
    ("sinusoidal", "return self.dropout((x", "return ((x"),
    ("sinusoidal", "[angles.sin(), angles.cos()]", "[angles.cos(), angles.sin()]"),
    ("learned_table", "align_corners=True", "align_corners=False"),
    ("learned_table", "self.weight[offset:end]).to(x.dtype)", "self.weight[offset:end])"),
    ("learned_table", "old.to(wide).T", "old.float().T"),
    ("learned_table", "requires_grad_(old.requires_grad)", "requires_grad_()"),
    ("image_table", "table[class_tokens:].to(wide)", "table[class_tokens:].float()"),
    ("image_table", ".permute(2, 0, 1)", ".permute(2, 1, 0)"),
    ("image_table", '"align_corners": False', '"align_corners": True'),
    ("grid", "torch.arange(rows), torch.arange(columns)", "torch.arange(columns), torch.arange(rows)"),
    ("grid", "omega = base **", "omega = 10000.0 **"),
    ("grid", "[c_sin, c_cos, r_sin, r_cos]", "[r_sin, r_cos, c_sin, c_cos]"),
    ("grid", "torch.stack([sin, cos], dim=-1)", "torch.cat([sin, cos], dim=-1)"),
    ("grid", "((2, -1), -2)", "((-1, 2), -1)"),
    ("grid", "a * sin + b * cos", "b * cos - a * sin"),
    ("rope", "omega = base **", "omega = 10000.0 **"),
    ("rope", 'if layout == "half" else', 'if layout == "interleaved" else'),
    ("rope", "torch.arange(0, dim, 2, dtype=torch.float64)", "torch.arange(0, dim, 2)"),
    ("rope", "a * sin + b * cos", "b * cos - a * sin"),
    ("rope_attention", "n_k - n_q", "0"),
    ("rope_attention", "t = t + last + 1", "t = t + 0 * last"),
    ("rope_attention", "attn_mask=seen", "is_causal=True"),
    ("alibi", "4 * h / below", "8 * h / below"),
    ("alibi", "arange(n_k - n_q, n_k)", "arange(n_q)"),
    ("alibi", "hidden | pads[:, None, None]", "hidden"),
    ("alibi", "hidden & ~empty", "hidden & empty"),
    ("alibi", "x.masked_fill(pads[:, None, :, None], 0.0)", "x"),
    ("alibi", "o.masked_fill(empty, 0.0)", "o"),
    ("alibi", ".repeat_interleave(heads // few, dim=1)", ".repeat(1, heads // few, 1, 1)"),
    ("t5_bias", "(offsets > 0)", "(offsets >= 0)"),
    ("t5_bias", " + 1e-9", ""),
    ("t5_bias", "u[n_key - n_query :, None]", "u[:n_query, None]"),
    ("graph_codes", "graph.T != 0", "graph != 0"),
    ("graph_codes", "parts : parts + k", "1 : 1 + k"),
    ("graph_codes", "np.diag(1.0 * (degrees > 0))", "np.eye(len(graph))"),
    ("graph_codes", "graph.sum(axis=1, keepdims=True)", "graph.sum(axis=0, keepdims=True)"),
    ("padding", "hidden & ~empty", "hidden"),
    ("padding_check", "start = 0 if", "start = n - len(s) if"),
    ("padding_check", "[out if each else out[~p]", "[out if each else out[: (~p).sum()]"),
    ("padding_check", "change(first, second)", "change(first, alone)"),
    ("padding_check", "padded(side, token)", "padded(side, pad)"),
    (
        "padding_check",
        "torch.stack(changes).max().item()",
        "max(change.item() for change in changes)",
    ),
    ("padding", ".masked_fill(pads[:, None, :, None], 0.0)", ""),
    ("padding", "real.sum().clamp(min=1)", "pads.numel()"),
    ("padding", "real.sum().clamp(min=1)", "(~pads).sum().clamp(min=1)"),
    ("padding", ".triu(n_k - n_q + 1)", ".triu(1)"),
    ("padding", ".repeat_interleave(heads // few, dim=1)", ".repeat(1, heads // few, 1, 1)"),
    ("times", "(dim // 2 - 1)", "(dim // 2)"),
    ("times", "times.double()[..., None]", "times.float()[..., None]"),
    ("times", "torch.remainder(exact(times, min(periods) / harmonics), period)", "times.double()[..., None]"),
    ("ring", "2 * world - 1 - rank", "world + rank"),
    ("ring", "u > t[:, None]", "u >= t[:, None]"),
    ("ring", "torch.logaddexp(state[1], z)", "torch.maximum(state[1], z)"),
    ("ring", "x - new.clamp(min=-1e30)", "x - new"),
    ("forget", "log_gates.double()", "log_gates"),
    ("forget", "value=d**0.5", "value=1.0"),
    ("forget", ".tril(n_k - n_q)", ".tril()"),
    ("forget", "p = -log_gates", "p = log_gates"),
    ("cope", ".masked_fill(later, 0.0)", ""),
    ("cope", ".flip(-1).cumsum(-1).flip(-1)", ".cumsum(-1)"),
    ("cope", "n_k - n_q + 1", "1"),
    ("cope", " + part * above", ""),
    ("cope", "p.nan_to_num()", "p"),
    ("cope", ".repeat_interleave(heads // few, dim=1)", ".repeat(1, heads // few, 1, 1)"),
    ("forget", "x.repeat_interleave(group, 1)", "x.repeat(1, group, 1, 1)"),
    ("ring", "torch.promote_types(q.dtype, torch.float32)", "torch.float32"),
    ("grid", "wide = torch.promote_types(x.dtype, torch.float32)", "wide = torch.float32"),
    ("grid", "c_cos, r_sin, r_cos], dim=1).to(dtype)", "c_cos, r_sin, r_cos], dim=1).float()"),
    ("graph_codes", "graph = graph - np.diag(graph.diagonal())", "graph = graph * 1"),
    ("from_config", 'rope.get("rotary_emb_base")', "10000.0"),
    ("from_config", "a * cos - b * sin", "a * cos + b * sin"),
    ("from_config", "math.ceil(high)", "math.floor(high)"),
    ("from_config", "self.scale * angles.sin()", "angles.sin()"),
    ("layout_probe", "maps[0] @ step.mT", "maps[0] @ step"),
]


def block(name: str, old: str = "", new: str = "") -> SimpleNamespace:
    code = taken.codes()[name]
    if old:
        assert old in code
        code = code.replace(old, new)
    pasted = taken.pasted(code)
    pasted.code = code
    return pasted


def test_each_block_is_checked() -> None:
    assert set(taken.codes()) == set(CHECKS) == {name for name, *_ in FAULTS}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CHECKS)
def test_equal_to_posenc(name: str, dtype: torch.dtype) -> None:
    CHECKS[name](block(name), dtype)


@pytest.mark.parametrize(("name", "old", "new"), FAULTS)
def test_a_fault_is_caught(name: str, old: str, new: str) -> None:
    wrong = block(name, old, new)

    def check() -> None:
        for dtype in DTYPES:
            CHECKS[name](wrong, dtype)

    with pytest.raises((AssertionError, RuntimeError, pytest.fail.Exception)):
        check()


# A block that refuses what it would get wrong in silence is longer; a config and the turn are all the way.
LINES = {
    "from_config": 170,
    "rope_attention": 90,
    "layout_probe": 60,
    "graph_codes": 50,
    "forget": 48,
    "ring": 50,
    "grid": 45,
}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", CHECKS)
def test_method_is_short_and_prints_one_line(name: str, language: str) -> None:
    """What is taken is above the lines that try it out."""
    code = taken.codes(language)[name]
    tree = ast.parse(code)
    end = max(node.end_lineno or 0 for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    assert sum(bool(line.strip()) for line in code.splitlines()[:end]) <= LINES.get(name, 42)
    printed = block(name).printed
    assert printed.count("\n") == (4 if name == "from_config" else 1)


def attended(name: str, taken_block: SimpleNamespace, dtype: torch.dtype) -> list[torch.Tensor]:
    """What a block makes of random vectors, far enough for a rounded bias to be seen."""
    q, k, v = random(3, 2, 4, 600, 8, dtype=dtype)
    x = q.transpose(1, 2).flatten(-2)
    places = torch.arange(600)
    pads = masks.key_padding_mask([600, 371], 600, side="left", like=q)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if name == "alibi":
            return [taken_block.alibi_attention(q, k, v), taken_block.alibi_attention(q, k, v, pads)]
        if name == "padding":
            outputs = [taken_block.padded_attention(q, k, v, pads, causal) for causal in (False, True)]
            return [*outputs, taken_block.padded_loss(x, places[None] % 32 * ~pads, pads)]
        if name == "forget":
            log_gates = taken_block.ForgetGate(32, 4).to(dtype)(x)
            far = -random(2, 4, 600).abs()
            return [log_gates, taken_block.forget_attention(q, k, v, far)]
        if name == "cope":
            layer = taken_block.CoPE(8, 30).to(dtype)
            torch.nn.init.normal_(layer.weight)
            return [layer(q, k, v)]
        if name == "ring":
            return list(taken_block.ring_step(None, q, k, v, places, places))
        if name == "t5_bias":
            return [taken_block.T5Bias(4).to(dtype)(600)]
        if name == "image_table":
            return [taken_block.resize_image_table(x[0], (20, 30), (24, 24), 0)]
        if name == "grid":
            return [taken_block.axial_rope(q, taken_block.grid_places(20, 30), "half")]
        if name == "times":
            return [taken_block.time_codes(places / 30, 32, 0.5, 60.0, dtype)]
        layer = taken_block.LearnedTable(600, 32) if name == "learned_table" else None
        return [(layer or taken_block.SinusoidalEncoding(32, dropout=0.0))(x)]


UNDER_AUTOCAST = [
    "sinusoidal", "learned_table", "image_table", "alibi", "t5_bias", "padding", "grid", "times", "ring", "forget",
    "cope",
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", UNDER_AUTOCAST)
def test_autocast_changes_nothing(name: str, dtype: torch.dtype) -> None:
    """Not a bit; and where a block turns it off, leaving it on is seen."""
    right = block(name)
    with torch.no_grad():
        wanted = attended(name, right, dtype)
        with torch.autocast("cpu", torch.bfloat16):
            found = attended(name, right, dtype)
        assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(found, wanted, strict=True))
        if "enabled=False" in right.code and dtype == torch.float32:
            wrong = block(name, "enabled=False", "enabled=torch.is_autocast_enabled('cpu')")
            with torch.autocast("cpu", torch.bfloat16):
                rounded = attended(name, wrong, dtype)
            assert all((a - b).abs().max() > 1e-4 for a, b in zip(rounded[:2], wanted, strict=False))


def test_posenc_is_refused() -> None:
    for line in ("import posenc", "from posenc.nn import RotaryEmbedding"):
        with pytest.raises(ModuleNotFoundError):
            taken.pasted(line)


# --- In a model ---------------------------------------------------------------------------------------------


def stepped(model: torch.nn.Module, loss: Callable[[], torch.Tensor]) -> tuple[float, float]:
    """The loss before and after one step; every parameter has moved."""
    before = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    first = loss()
    first.backward()
    optimizer.step()
    assert all(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    return first.item(), loss().item()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_attention_trains(dtype: torch.dtype) -> None:
    """A small language model of what was taken: the attention, and the loss that leaves out pads."""
    attention, padding = block("rope_attention"), block("padding")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = torch.nn.ModuleList(
            [
                torch.nn.Embedding(20, 32),
                attention.CausalAttention(32, 4, 2, layout="half"),
                torch.nn.Linear(32, 20),
            ]
        ).to(dtype)
    embed, attend, head = model
    ids = torch.arange(34).reshape(2, 17) * 7 % 20
    pads = masks.key_padding_mask([16, 9], 16, like=torch.empty(0))

    def loss() -> Any:
        x = embed(ids[:, :-1])
        return padding.padded_loss(head(x + attend(x)[0]), ids[:, 1:], pads)

    first, second = stepped(model, loss)
    assert second < first


def test_tables_and_biases_train() -> None:
    table, bias, alibi = (
        block("learned_table").LearnedTable(9, 16),
        block("t5_bias").T5Bias(4),
        block("alibi"),
    )
    x = random(2, 9, 16)

    def loss() -> torch.Tensor:
        y = (
            table(block("sinusoidal").SinusoidalEncoding(16, dropout=0.0)(x))
            .unflatten(-1, (4, 4))
            .transpose(1, 2)
        )
        o = functional.scaled_dot_product_attention(y, y, y, attn_mask=bias(9)[None], scale=1.0)
        return (o + alibi.alibi_attention(y, y, y)).square().mean()

    # Nine positions reach few of the 32 buckets: the table of biases as a whole has moved.
    first, second = stepped(torch.nn.ModuleList([table, bias]), loss)
    assert second < first


def test_a_cached_token_is_not_is_causal() -> None:
    """What the chapter on rotation says of it: key 0 alone, and no error."""
    q, k, v = random(3, 1, 2, 10, 8)
    o = functional.scaled_dot_product_attention(q[:, :, 9:], k, v, is_causal=True)
    close(o, v[:, :, :1])
