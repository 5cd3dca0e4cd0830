"""Claims about models that run: caches, chunks, pads, trees, ranks, graphs, and what a scheme costs."""

from functools import cache

import numpy as np

from posenc import causal_mask, contextual_positions, dot_product_attention, ring_attention, shard_positions
from posenc.experiments import choosing
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.experiments.results import deployment_results
from posenc.experiments.serving import KeyValueCache, cached_pass, largest_error
from posenc.parallel import ring_work
from posenc.rotary import from_config

_TEXT = np.random.default_rng(0).normal(size=(40, 16))
_AT = np.arange(40)


@cache
def _whole() -> tuple[np.ndarray, KeyValueCache]:
    """Outputs and cache of one pass, which other ways are compared with."""
    return cached_pass(_TEXT, _AT)


@claim("false", "serving.md#move")
def moved_keys_are_computed_again() -> Found:
    """A text that is moved as a whole, by 100 positions."""
    turned = _whole()[1].moved(_AT + 100)
    return found(largest_error(turned.keys, cached_pass(_TEXT, _AT + 100)[1].keys) > 0)


@claim("only if", "serving.md#move")
def chunk_goes_anywhere() -> Found:
    """The last ten tokens, read alone and turned to their place; the keys of both layers."""
    turned = cached_pass(_TEXT[30:], _AT[:10])[1].moved(_AT[30:])
    wanted = _whole()[1].keys[:, 30:]
    first, second = (largest_error(turned.keys[layer], wanted[layer]) for layer in (0, 1))
    return found(first == 0, second > 0.1, second=second, size=np.abs(wanted[1]).max())


def _last_of_stream(text: np.ndarray, renumber: bool) -> np.ndarray:
    """The last output with four sinks and eleven other keys in the cache."""
    cache = None
    for n in range(40):
        if n >= 16:
            cache = cache.at([0, 1, 2, 3, *range(5, 16)]) if cache else None
            cache = cache.moved(np.arange(15)) if cache and renumber else cache
        t = min(n, 15) if renumber else n
        y, cache = cached_pass(text[..., [n], :], np.array([t]), cache)
    return y[..., 0, :]


@claim("false", "serving.md#reach")
def sinks_read_further() -> Found:
    """Of 39 tokens each is changed once: how many of them change the last output."""
    changed = np.concatenate([_TEXT[None], _TEXT + np.eye(39, 40)[:, :, None]])
    last = _last_of_stream(changed, renumber=False)
    seen = np.abs(last[1:] - last[0]).max(axis=1) > 1e-12
    return found(seen.all(), seen=seen.sum(), unseen=(~seen).sum())


@claim("only if", "serving.md#evict")
def anew_is_the_shortened_text() -> Found:
    """The first layer's keys, and the last output, beside those of the tokens that are left, read alone."""
    left = np.concatenate([_TEXT[:4], _TEXT[-12:]])
    alone, cache = cached_pass(left, np.arange(16))
    kept = _whole()[1].at([0, 1, 2, 3, *range(28, 40)]).moved(np.arange(16))
    error = largest_error(_last_of_stream(_TEXT, renumber=True), alone[-1])
    same, size = largest_error(kept.keys[0], cache.keys[0]) == 0, np.abs(alone[-1]).max()
    return found(same, error > 0.1, error=error, size=size)


@claim("only if", "serving.md#left")
def left_pads_with_rotary() -> Found:
    """Four hidden pads on the left: positions by column, and a next token that is counted without the pads."""
    seen = np.where(_AT[:14] < 4, -1, _AT[:14])
    padded = np.concatenate([np.zeros((4, 16)), _TEXT[:10]])
    alone, cache = _whole()[0][10], cached_pass(padded, seen)[1]
    one, two = (cached_pass(_TEXT[[10]], np.array([t]), cache)[0][0] for t in (14, 10))
    error, size = largest_error(two, alone), np.abs(alone).max()
    return found(largest_error(one, alone) == 0, error > 0.1, two=error, size=size)


@claim("false", "serving.md#window")
def order_of_slots_matters() -> Found:
    cache = cached_pass(_TEXT[:39], _AT[:39])[1]
    mixed = cache.at(np.random.default_rng(1).permutation(39))
    in_order, out_of_order = (cached_pass(_TEXT[39:], _AT[39:], each)[0] for each in (cache, mixed))
    return found(largest_error(in_order, out_of_order) > 0)


@claim("false", "serving.md#tree")
def tree_is_computed_again() -> Found:
    """Two guesses for one place, each seen by itself alone; the second is accepted."""
    cache = cached_pass(_TEXT[:10], _AT[:10])[1]
    hidden = np.concatenate([np.zeros((2, 10), dtype=bool), ~np.eye(2, dtype=bool)], axis=1)
    longer = cached_pass(_TEXT[[20, 10]], np.array([10, 10]), cache, hidden=hidden)[1]
    kept, wanted = longer.at([*range(10), 11]), cached_pass(_TEXT[:11], _AT[:11])[1]
    return found(max(map(largest_error, kept[:2], wanted[:2])) > 0)


@claim("false", "rotary.md#false")
def prompt_proves_the_cache() -> Found:
    """A program that forgets where a new token stands: its prompt, and the token after it."""
    whole, (prompt, cache) = _whole()[0], cached_pass(_TEXT[:30], _AT[:30])
    # its keys are all seen, as in a program without positions in its mask
    hidden = np.zeros((1, 31), dtype=bool)
    wrong = cached_pass(_TEXT[[30]], np.array([0]), cache, hidden=hidden)[0][0]
    error, size = largest_error(wrong, whole[30]), np.abs(whole[30]).max()
    shown = largest_error(prompt, whole[:30]) == 0
    return found(error == 0, shown and error > 0.1, error=error, size=size)


@claim("only if", "parallel.md#false")
def rank_counts_from_anywhere() -> Found:
    """RoPE over four ranks: all count from 100, and one of them from its own first token."""
    whole, moved = _whole()[0], cached_pass(_TEXT, _AT + 100)[0]
    own = _AT.copy()
    own[10:20] = np.arange(10)
    error = largest_error(cached_pass(_TEXT, own, hidden=causal_mask(40))[0], whole)
    return found(largest_error(whole, moved) == 0, error > 0.1, error=error, size=np.abs(whole).max())


@claim("only if", "parallel.md#balance")
def causal_ring_is_twice_as_fast() -> Found:
    """The time of a ring of 8 ranks by that of one without a mask: each step waits for the slowest rank."""
    n, world = 1024, 8
    whole = n * n / world
    time = {
        scheme: ring_work(n, world, scheme=scheme).max(axis=0).sum() / whole
        for scheme in ("contiguous", "zigzag")
    }
    return found(time["zigzag"] < 0.55, time["contiguous"] > 0.9, **time)


@claim("false", "parallel.md#false")
def shards_read_further() -> Found:
    """The output of eight ranks beside that of one device: the same model, which fails where it failed."""
    q, k, v = np.random.default_rng(0).normal(size=(3, 64, 8))
    whole, _ = dot_product_attention(q, k, v, mask=causal_mask(64))
    at = [shard_positions(64, rank, 8) for rank in range(8)]
    outputs = ring_attention([q[t] for t in at], [k[t] for t in at], [v[t] for t in at], at)
    apart = max(np.abs(output - whole[t]).max() for output, t in zip(outputs, at, strict=True))
    return found(apart > 1e-9, ranks=8, length=64)


@claim("only if", "deployment.md#false")
def compiled_is_the_same() -> Found:
    """All layers of posenc.nn compiled; and a NaN among the positions, which only the eager layer refuses."""
    import torch

    from posenc.nn import SinusoidalEncoding

    results = [row["compiled"] for row in deployment_results().values()]
    error = max(result for result in results if isinstance(result, float))
    torch._dynamo.reset()
    layer, positions = SinusoidalEncoding(8, dropout=0.0), torch.tensor([0.0, torch.nan])
    lost = torch.compile(layer, backend="eager")(torch.zeros(2, 8), positions=positions).isnan().sum().item()
    return found(error < 1e-5, lost > 0, error=error, lost=lost)


@claim("only if", "deployment.md#lengths")
def exported_for_any_length() -> Found:
    """A layer exported with a length that may vary up to 16, asked for 16 and for 17."""
    import torch

    from posenc.nn import SinusoidalEncoding

    length = {0: torch.export.Dim("length", min=2, max=16)}
    layer = SinusoidalEncoding(8, dropout=0.0).eval()
    run = torch.export.export(layer, (torch.zeros(9, 8),), dynamic_shapes=(length,)).module()
    try:
        run(torch.zeros(17, 8))
    except Exception:
        return found(torch.equal(run(torch.zeros(16, 8)), layer(torch.zeros(16, 8))), True, most=16)
    return found(True, False, most=17)


@claim("false", "deployment.md#false")
def rotary_is_not_exported() -> Found:
    row = deployment_results()["RotaryEmbedding"]
    errors = [row[way] for way in ("exported", "onnx")]
    there = all(isinstance(error, float) for error in errors)
    return found(not there, error=max(error for error in errors if isinstance(error, float)))


def _latent(heads: int = 4, width: int = 16, rank: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Keys (heads, 64, width) of MLA, made from short vectors, and of usual attention, made from the inputs."""
    rng = np.random.default_rng(0)
    x, down = rng.normal(size=(64, 64)), rng.normal(size=(64, rank))
    return x @ down @ rng.normal(size=(heads, rank, width)), x @ rng.normal(size=(heads, 64, width))


@claim("only if", "latent.md#false")
def mla_compresses() -> Found:
    """What is left of keys if vectors of 8 numbers are kept for each token: the best such vectors."""
    lost = []
    for keys in _latent():
        values = np.linalg.svd(np.concatenate(list(keys), axis=1), compute_uv=False)
        lost.append((values[8:] ** 2).sum() / (values**2).sum())
    return found(lost[0] < 1e-12, lost[1] > 0.1, usual=lost[1])


@claim("false", "latent.md#false")
def mla_is_multi_query() -> Found:
    """Whether two heads have one key for a token, as in multi-query attention."""
    keys = _latent()[0]
    cosine = (keys[0] * keys[1]).sum() / np.linalg.norm(keys[0]) / np.linalg.norm(keys[1])
    return found(abs(cosine) > 0.99, cosine=abs(cosine))


@claim("false", "latent.md#false")
def latent_is_turned() -> Found:
    """What DeepSeek-V3's file says: how many columns of a head turn, and how wide the latent vector is."""
    config = {"model_type": "deepseek_v3", "qk_nope_head_dim": 128, "qk_rope_head_dim": 64}
    config |= {"kv_lora_rank": 512, "max_position_embeddings": 4096, "rope_theta": 10000.0}
    (kind,) = from_config(config).kinds.values()
    return found(kind.rotary_dim == config["kv_lora_rank"], turned=kind.rotary_dim, latent=512)


@claim("false", "hybrids.md#sinks")
def sink_stores() -> Found:
    """A learned sink in a row of scores: the outputs with it beside those without."""
    q, k, v = np.random.default_rng(0).normal(size=(3, 6, 8))
    plain, _ = dot_product_attention(q, k, v)
    scores = q @ k.T / np.sqrt(8)
    weights = np.exp(scores) / (np.exp(scores).sum(axis=1, keepdims=True) + np.exp(1.0))
    kept = weights.sum(axis=1, keepdims=True)
    apart = np.abs(weights @ v - kept * plain).max()
    return found(apart > 1e-9, low=kept.min(), high=kept.max())


@cache
def _measured(name: str) -> choosing.Answers:
    return choosing.measure_scheme(choosing.CANDIDATES[name])


@claim("false", "tables.md#table")
def alibi_is_cheaper() -> Found:
    """At 128k tokens; and the length at which both take as many operations, as those of RoPE grow more slowly."""
    alibi, rotary = (_measured(name).cost or 0 for name in ("alibi", "rotary"))
    return found(alibi < rotary, alibi=alibi, rotary=rotary, equal=choosing.LONG * rotary / alibi)


@claim("false", "tables.md#table")
def window_saves_nothing() -> Found:
    cost = _measured("window").cost or 0
    return found(cost >= 0, saved=-cost)


@claim("only if", "tables.md#table")
def bias_is_free() -> Found:
    t5, fire = (_measured(name) for name in ("t5", "fire"))
    cheap, dear = t5.cost or 0, fire.cost or 0
    return found(cheap < 0.01, dear > 0.2, t5=cheap, fire=dear, memory=t5.memory)


@claim("false", "tables.md#table")
def cope_is_as_cheap() -> Found:
    """Numbers that differ from query to query, and operations beside those of attention."""
    gates = np.random.default_rng(0).uniform(size=(8, 8))
    same = np.ptp(contextual_positions(gates, max_position=8).diagonal(-1)) < 1e-9
    cope, rotary = (_measured(name).cost or 0 for name in ("cope", "rotary"))
    return found(same and cope < 2 * rotary, cope=cope, rotary=rotary)
