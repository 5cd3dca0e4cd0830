"""Words and places apart, held against the models of transformers that have them (the extra `peers`)."""

import math
from typing import Any

import pytest
import torch

from posenc import sinusoidal_encoding
from posenc.relative import disentangled_scores, relative_shift, shaw_scores
from tests.peers import close, modeling, peer, random, seeded

transformers = peer("transformers")

N, HEADS, DIM = 9, 2, 16
WIDTH = DIM // HEADS
BOTH = ["c2p", "p2c"]


def split(x: torch.Tensor) -> torch.Tensor:
    """(..., n, dim) as (..., heads, n, width)."""
    return x.unflatten(-1, (HEADS, WIDTH)).transpose(-2, -3)


# --- DeBERTa


def deberta_weights(types: list[str], shared: bool, buckets: int, span: int) -> tuple[Any, Any, Any, Any]:
    """Its layer, inputs, table of offsets, and its weights of attention."""
    theirs = modeling("deberta_v2")
    config = transformers.DebertaV2Config(
        hidden_size=DIM, num_attention_heads=HEADS, relative_attention=True, pos_att_type=types, share_att_key=shared,
        position_buckets=buckets, max_relative_positions=span, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    layer = seeded(theirs.DisentangledSelfAttention, config)
    x, rows = random(2, N, DIM), random(2 * layer.pos_ebd_size, DIM)
    seen = torch.ones(2, 1, N, N, dtype=torch.bool)
    return layer, x, rows, layer(x, seen, output_attentions=True, rel_embeddings=rows)[1]


def by_our_offsets(rows: torch.Tensor, layer: Any, buckets: int, span: int) -> torch.Tensor:
    """The row of each offset u − t from −(N − 1) to N − 1. Theirs is of t − u, and one is missing at the far end."""
    back = torch.arange(N - 1, -N, -1)
    if buckets > 0:
        back = modeling("deberta_v2").make_log_bucket_position(back, buckets, span).long()
    return rows[(back + layer.pos_ebd_size).clamp(0, 2 * layer.pos_ebd_size - 1)]


@pytest.mark.parametrize("types", [[], ["c2p"], ["p2c"], BOTH], ids=str)
@pytest.mark.parametrize(("buckets", "span"), [(-1, 4), (-1, 32), (4, 6)])
@pytest.mark.parametrize("shared", [True, False])
@torch.no_grad()
def test_deberta(types: list[str], buckets: int, span: int, shared: bool) -> None:
    layer, x, rows, weights = deberta_weights(types, shared, buckets, span)
    table = by_our_offsets(rows, layer, buckets, span)
    to_key: Any = layer.key_proj if shared else getattr(layer, "pos_key_proj", None)
    to_query: Any = layer.query_proj if shared else getattr(layer, "pos_query_proj", None)
    scores = disentangled_scores(
        split(layer.query_proj(x)),
        split(layer.key_proj(x)),
        split(to_key(table)) if "c2p" in types else None,
        split(to_query(table)) if "p2c" in types else None,
    )
    close((scores / math.sqrt((1 + len(types)) * WIDTH)).softmax(-1), weights)


@torch.no_grad()
def test_deberta_reads_one_row_of_its_table_for_both_terms_where_the_paper_reads_two() -> None:
    """Paper, section 3.1: the second is that of the offset seen from the key. The book says that the code differs."""
    layer, x, rows, weights = deberta_weights(BOTH, True, -1, 32)
    table = by_our_offsets(rows, layer, -1, 32)
    q, k = split(layer.query_proj(x)), split(layer.key_proj(x))
    to_key, to_query = split(layer.key_proj(table)), split(layer.query_proj(table))
    scale = math.sqrt(3 * WIDTH)
    close((disentangled_scores(q, k, to_key, to_query) / scale).softmax(-1), weights)
    paper = (disentangled_scores(q, k, to_key, to_query.flip(-2)) / scale).softmax(-1)
    assert (paper - weights).abs().max() > 0.01


def test_deberta_v3_has_the_switches_that_the_book_names() -> None:
    """The class has none of them on: they are in the configuration of a checkpoint."""
    config = transformers.DebertaV2Config()
    assert config.relative_attention is False
    assert not config.pos_att_type


# --- Transformer-XL, as in wav2vec 2.0's Conformer


@torch.no_grad()
def test_transformer_xl() -> None:
    theirs = modeling("wav2vec2_conformer")
    config = transformers.Wav2Vec2ConformerConfig(
        hidden_size=DIM, num_attention_heads=HEADS, position_embeddings_type="relative", attention_dropout=0.0,
        attn_implementation="eager",
    )  # fmt: skip
    layer, codes = (
        seeded(theirs.Wav2Vec2ConformerSelfAttention, config),
        theirs.Wav2Vec2ConformerRelPositionalEmbedding(config),
    )
    u, v = random(2, HEADS, WIDTH)
    layer.pos_bias_u.copy_(u)
    layer.pos_bias_v.copy_(v)
    x = random(2, N, DIM)
    code = codes(x)
    weights = layer(x, relative_position_embeddings=code)[1]

    # Its sinusoids are of t − u, from N − 1 down: in the order of our offsets u − t.
    ours = sinusoidal_encoding(torch.arange(N - 1, -N, -1), DIM, dtype=torch.float32)
    close(ours, code[0], 1e-5)
    q, k, r = split(layer.linear_q(x)), split(layer.linear_k(x)), split(layer.linear_pos(ours))
    four = disentangled_scores(q, k, r, u[:, None].expand(r.shape), (r @ v[..., None])[..., 0].T)
    close((four / math.sqrt(WIDTH)).softmax(-1), weights)
    # The same as one product of words, and the products with the rows shifted.
    moved = relative_shift((q + v[:, None]) @ r.mT)
    close(((q + u[:, None]) @ k.mT + moved).div(math.sqrt(WIDTH)).softmax(-1), weights)
    # And one head as Shaw's scores on the factored table.
    shaw = shaw_scores(q[:, 0] + v[0], ours @ layer.linear_pos.weight[:WIDTH].T)
    close(shaw, moved[:, 0], 1e-5)
