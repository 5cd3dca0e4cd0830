"""The attention and the probe of the chapter on rotation get right what would be wrong in silence."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import posenc
from tests.taken import block, random

close = torch.testing.assert_close


def layer(block: SimpleNamespace, layout: str = "half", dtype: torch.dtype = torch.float64) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return block.CausalAttention(32, num_heads=4, num_kv_heads=2, layout=layout).to(dtype)


def alone(layer: Any, x: torch.Tensor, window: int | None = None) -> torch.Tensor:
    """One text (n, 32), all of it at once, with posenc's rotation; its last `window` keys alone, or all."""
    heads = [w(x).unflatten(-1, (-1, 8)).transpose(0, 1) for w in (layer.q_proj, layer.k_proj, layer.v_proj)]
    q, k = (posenc.apply_rotary(y, len(x), layout=layer.layout) for y in heads[:2])
    k, v = (y.repeat_interleave(2, dim=0) for y in (k, heads[2]))
    back = torch.arange(len(x))[:, None] - torch.arange(len(x))
    hidden = (back < 0) | (back >= (window or len(x)))
    weights = (q @ k.mT / 8**0.5).masked_fill(hidden, -torch.inf).softmax(-1)
    return layer.o_proj((weights @ v).transpose(0, 1).flatten(-2))


def ragged(block: SimpleNamespace, layout: str = "half") -> None:
    """Three texts of 9, 4 and 1 tokens: pads left or right, then five tokens each, or two and three."""
    ours, lengths = layer(block, layout), (9, 4, 1)
    texts = [random(n + 5, 32, dtype=torch.float64) * (n + 1) for n in lengths]
    whole = [alone(ours, text) for text in texts]
    for left in (True, False):
        for steps in ([1] * 5, [2, 3], [5]):
            prompt = torch.full((3, 9, 32), torch.nan, dtype=torch.float64)
            pads = torch.ones(3, 9, dtype=torch.bool)
            for row, n in enumerate(lengths):
                here = slice(9 - n, 9) if left else slice(0, n)
                prompt[row, here], pads[row, here] = texts[row][:n], False
            y, cache = ours(prompt, pads=pads)
            assert (y[pads] == 0).all()
            for row, n in enumerate(lengths):
                close(y[row][~pads[row]], whole[row][:n])
            done = 0
            for step in steps:
                token = torch.stack(
                    [text[n + done : n + done + step] for n, text in zip(lengths, texts, strict=True)]
                )
                y, cache = ours(token, cache=cache)
                for row, n in enumerate(lengths):
                    close(y[row], whole[row][n + done : n + done + step])
                done += step


def cut(block: SimpleNamespace, layout: str = "half") -> None:
    """Each step keeps four keys: as a window of five over the whole text."""
    ours, text = layer(block, layout), random(20, 32, dtype=torch.float64)
    wanted = alone(ours, text, window=5)
    cache = None
    for t in range(20):
        y, cache = ours(text[None, t : t + 1], cache=cache)
        close(y[0, 0], wanted[t])
        cache = [part[:, :, -4:] for part in cache]


def placed(block: SimpleNamespace, layout: str = "half") -> None:
    """Positions of one's own: gaps count, a common start does not."""
    ours, x = layer(block, layout), random(2, 6, 32, dtype=torch.float64)
    close(ours(x, positions=torch.arange(1000, 1006))[0], ours(x)[0], rtol=0, atol=1e-9)
    gaps = torch.tensor([[0, 1, 5, 6, 7, 90], [3, 4, 5, 6, 7, 8]])
    full, _ = ours(x, positions=gaps)
    start, cache = ours(x[:, :4], positions=gaps[:, :4])
    end, _ = ours(x[:, 4:], positions=gaps[:, 4:], cache=cache)
    close(torch.cat([start, end], dim=1), full)
    assert (full[0] - ours(x)[0][0]).abs().max() > 1e-3


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("check", [ragged, cut, placed])
def test_attention_is_that_of_each_text_alone(check: Callable[..., None], layout: str) -> None:
    check(block("rope_attention"), layout)


def test_a_cached_token_is_not_is_causal() -> None:
    """What the chapter on rotation says of it: key 0 alone, and no error."""
    q, k, v = random(3, 1, 2, 10, 8)
    o = torch.nn.functional.scaled_dot_product_attention(q[:, :, 9:], k, v, is_causal=True)
    close(o, v[:, :, :1])


def test_attention_under_autocast_is_that_of_bfloat16() -> None:
    ours = layer(block("rope_attention"), dtype=torch.float32)
    x = random(2, 40, 32)
    full, _ = ours(x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded, cache = ours(x[:, :39])
        last, _ = ours(x[:, 39:], cache=cache)
    close(torch.cat([rounded, last], dim=1).float(), full, rtol=3e-2, atol=3e-2)


def angles(x: torch.Tensor, table: str) -> torch.Tensor:
    n, dim = x.shape
    half = torch.arange(n)[:, None] * 10000.0 ** (-torch.arange(0, dim, 2) / dim)
    return half.repeat_interleave(2, dim=-1) if table == "interleaved" else torch.cat([half, half], dim=-1)


def quarter(x: torch.Tensor, layout: str) -> torch.Tensor:
    """Each pair by a right angle, as rotate_half and its interleaved twin."""
    if layout == "half":
        a, b = x.chunk(2, dim=-1)
        return torch.cat([-b, a], dim=-1)
    return torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)


def tabled(layout: str, table: str, out: list[int] | slice = slice(None)) -> Callable[..., torch.Tensor]:
    return lambda x: (x * angles(x, table).cos() + quarter(x, layout) * angles(x, table).sin())[:, out]


EVENS_ODDS = [*range(0, 16, 2), *range(1, 16, 2)]


def at(start: int, step: int = 1, **more: Any) -> Callable[..., torch.Tensor]:
    return lambda x: posenc.apply_rotary(x, start + step * torch.arange(len(x)), **more)


@pytest.mark.parametrize(
    ("turn", "said"),
    [
        (at(0, layout="half"), "pairs half, counter-clockwise, 16 of 16 columns, first position 0, output in order"),
        (at(1), "pairs interleaved, counter-clockwise, 16 of 16 columns, first position 1, output in order"),
        (at(0, -1), "pairs interleaved, clockwise, 16 of 16 columns, first position 0, output in order"),
        (at(-1, -1, layout="half"), "pairs half, clockwise, 16 of 16 columns, first position 1, output in order"),
        (at(0, rotary_dim=8), "pairs interleaved, counter-clockwise, 8 of 16 columns, first position 0"),
        (at(0, layout="half", rotary_dim=4), "pairs half, counter-clockwise, 4 of 16 columns"),
        (at(0, rotary_dim=2), "pairs interleaved or half"),
        (at(0, scale=1.2), "pairs interleaved, counter-clockwise"),
        (at(0, base=5e6, layout="half"), "pairs half, counter-clockwise, 16 of 16"),
        (at(7), "first position neither 0 nor 1"),
        (tabled("half", "half"), "pairs half, counter-clockwise, 16 of 16 columns, first position 0, output in order"),
        (tabled("interleaved", "interleaved"), "pairs interleaved, counter-clockwise, 16 of 16"),
        (tabled("half", "interleaved"), "no rotation, norms change: pairs half, cos and sin interleaved"),
        (tabled("interleaved", "half"), "no rotation, norms change: pairs interleaved, cos and sin half"),
        (
            tabled("interleaved", "interleaved", EVENS_ODDS),
            "pairs interleaved, counter-clockwise, 16 of 16 columns, first position 0, "
            "output as of apply_rotary_pos_emb_interleave",
        ),
        (tabled("half", "half", EVENS_ODDS), "pairs half, counter-clockwise"),
        (tabled("half", "half", list(range(15, -1, -1))), "output as [15, 14, 13,"),
        (lambda x: x + torch.arange(len(x))[:, None], "no rotation: not linear"),
        (lambda x: x * (1 + torch.arange(len(x))[:, None]), "no rotation, norms change"),
        (lambda x: posenc.apply_rotary(x, torch.arange(len(x)) ** 2), "scores depend on more than the offset"),
        (lambda x: x, "pairs of no layout"),
    ],
)  # fmt: skip
def test_probe_proves(turn: Callable[..., torch.Tensor], said: str) -> None:
    assert said in block("layout_probe").probe(turn)


@pytest.mark.parametrize("base", [1e4, 1e8, 1e11])
def test_slow_pairs_are_not_taken_for_columns_left_alone(base: float) -> None:
    """Falcon-H1 has a base of 1e11: the slowest pairs hardly turn within the positions that are probed."""
    turn = block("rope").rope
    said = block("layout_probe").probe(lambda x: turn(x.float(), "half", offset=1, base=base))
    assert said == "pairs half, counter-clockwise, 16 of 16 columns, first position 1, output in order"
