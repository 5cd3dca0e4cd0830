"""Claims about attention itself: its weights, its heads, its scale, and the terms of a score."""

import numpy as np
import torch

from posenc import causal_mask, dot_product_attention, t5_bias
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.experiments.models import released_models, rotations
from posenc.relative import disentangled_scores, relative_shift
from posenc.shift import toeplitz_spread

_RNG = np.random.default_rng(0)
_WORDS, _QUERY, _KEY = _RNG.normal(size=(12, 16)), *_RNG.normal(size=(2, 12, 16))
_TABLES = _RNG.normal(size=(2, 23, 16))


@claim("false", "primer.md#false")
def embedding_is_meaning() -> Found:
    """One word in two sentences: its embedding, and what a layer of attention makes of it."""
    first, second = _WORDS[[0, 1, 2]], _WORDS[[0, 3, 4]]
    outputs = [dot_product_attention(x, x, x)[0][0] for x in (first, second)]
    apart = np.abs(outputs[0] - outputs[1]).max()
    return found(apart < 1e-9, apart=apart, size=np.abs(outputs).max())


@claim("false", "primer.md#false")
def more_heads_more_parameters() -> Found:
    counts = [
        sum(p.numel() for p in torch.nn.MultiheadAttention(64, heads).parameters()) for heads in (1, 4, 16)
    ]
    return found(counts[2] > counts[0], heads=16, count=counts[0])


@claim("false", "primer.md#false")
def weight_is_importance() -> Found:
    """The key with the largest weight has the value zero."""
    scores, values = np.array([[3.0, 1.0, 0.0]]), np.array([[0.0], [1.0], [1.0]])
    output, weights = dot_product_attention(np.ones((1, 1)), scores.T, values, scale=1.0)
    share = (weights * values.T)[0, 0] / output[0, 0]
    return found(share > 0.5, weight=weights[0, 0], share=share)


@claim("false", "primer.md#false")
def reads_one_at_a_time() -> Found:
    """One pass over ten tokens beside ten steps, each with one more token."""
    x = _WORDS[:10]
    whole, _ = dot_product_attention(x, x, x, mask=causal_mask(10))
    steps = [dot_product_attention(x[[n]], x[: n + 1], x[: n + 1])[0][0] for n in range(10)]
    apart = np.abs(whole - np.array(steps)).max()
    return found(apart > 1e-9, tokens=len(whole))


@claim("only if", "relative.md#false")
def attention_sees_the_offset_only() -> Found:
    """The spread of scores at one offset: a bias alone, with one word repeated, and with different words."""
    bias = np.asarray(t5_bias(np.arange(32.0), 12))
    same = toeplitz_spread(np.ones((12, 12)) + bias)
    words = toeplitz_spread(_QUERY @ _KEY.T / 4 + bias)
    return found(same < 1e-9, words > 1, words=words)


@claim("false", "relative.md#false")
def always_divided() -> Found:
    """Queries and keys of a model that does not divide, as T5, in attention that does."""
    q, k = np.random.default_rng(0).normal(size=(2, 10, 64)) / 64**0.25
    right, wrong = (dot_product_attention(q, k, k, scale=scale)[1] for scale in (1.0, None))
    return found(np.allclose(right, wrong), apart=np.abs(right - wrong).max())


@claim("false", "disentangled.md#false")
def words_never_meet_places() -> Found:
    """Two words exchanged at two places: what the two mixed terms of DeBERTa alone give."""
    before = disentangled_scores(_QUERY, _KEY, *_TABLES, words=False)
    swapped = np.array([1, 0, *range(2, 12)])
    after = disentangled_scores(_QUERY[swapped], _KEY[swapped], *_TABLES, words=False)
    apart, size = np.abs(before - after).max(), np.abs(before).max()
    return found(np.allclose(before, after), apart=apart, size=size)


@claim("false", "disentangled.md#false")
def biases_depend_on_position() -> Found:
    """The vectors of Transformer-XL in place of the query's position: scores at a later place of the text."""
    vectors = np.tile(_TABLES[1, :1], (23, 1))  # the same in every row
    here = disentangled_scores(_QUERY, _KEY, query_table=vectors, words=False)
    later = disentangled_scores(
        _QUERY,
        _KEY,
        query_table=vectors,
        words=False,
        query_positions=np.arange(500, 512),
        key_positions=np.arange(500, 512),
    )
    return found(not np.array_equal(here, later), spread=np.ptp(here, axis=0).max())


@claim("false", "disentangled.md#relative-shift")
def shift_approximates() -> Found:
    """The products of queries and offsets, shifted, beside each score computed by itself."""
    offsets = np.arange(12) - np.arange(12)[:, None]
    wanted = np.einsum("td,tud->tu", _QUERY, _TABLES[0][offsets + 11])
    apart = np.abs(relative_shift(_QUERY @ _TABLES[0].T) - wanted).max()
    return found(apart > 1e-9, tokens=12)


@claim("false", "disentangled.md#false")
def one_root() -> Found:
    """All three terms of DeBERTa divided by √d in place of √(3d)."""
    scores = disentangled_scores(_QUERY, _KEY, *_TABLES)
    right, wrong = (np.exp(scores / np.sqrt(n * 16)) for n in (3, 1))
    right, wrong = (weights / weights.sum(axis=1, keepdims=True) for weights in (right, wrong))
    return found(np.allclose(right, wrong), apart=np.abs(right - wrong).max())


@claim("only if", "models.md#false")
def neighbours_are_paired() -> Found:
    """Which columns the models of the table pair, of those that turn any."""
    layouts = {
        model.name: {kind.layout for kind in rotations(model.name).values()}
        for model in released_models()
        if model.way == "rope" and model.config
    }
    side, half = (sum(kinds == {name} for kinds in layouts.values()) for name in ("interleaved", "half"))
    return found(side > 0, half > 0, side=side, half=half)


@claim("only if", "models.md#false")
def defaults_describe() -> Found:
    """How many of the models with RoPE keep the usual base of 10,000."""
    bases = [
        {kind.base for kind in rotations(model.name).values() if kind.frequencies is not None}
        for model in released_models()
        if model.way == "rope" and model.config
    ]
    kept = sum(found == {10_000.0} for found in bases)
    return found(kept > 0, kept < len(bases), kept=kept, all=len(bases))
