"""Claims about padding and masks."""

import numpy as np
import torch

from posenc import (
    apply_rotary,
    causal_mask,
    combine_masks,
    dot_product_attention,
    key_padding_mask,
    sinusoidal_encoding,
)
from posenc.experiments.claims.ledger import Found, claim, found
from posenc.masks import leak_in, masked_loss, masked_mean, pad_batch, positions_from_mask

_RNG = np.random.default_rng(5)
_WORDS, _W = _RNG.normal(size=(5, 16)), 0.1 * _RNG.normal(size=(3, 16, 16))
_SENTENCE = _WORDS + np.asarray(sinusoidal_encoding(5, 16))


def _attend(x: np.ndarray, mask: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    return dot_product_attention(x @ _W[0], x @ _W[1], x @ _W[2], key_padding_mask=mask)


@claim("false", "masks.md#zeros")
def zero_pads_do_nothing() -> Found:
    batch, mask = pad_batch([_SENTENCE], length=9)
    output, weights = _attend(batch[0])
    change = np.abs(output[:5] - _attend(_SENTENCE)[0]).max()
    return found(change < 1e-9, leak=leak_in(weights, mask[0]), change=change)


@claim("true", "masks.md#non-zero")
def pads_have_codes() -> Found:
    length = np.linalg.norm(sinusoidal_encoding([5], 16))
    return found(length > 1, length=length)


@claim("true", "masks.md#leak-in")
def leak_grows() -> Found:
    leaks = {}
    for pads in (4, 20, 59):
        batch, mask = pad_batch([_WORDS], length=5 + pads)
        codes = batch + sinusoidal_encoding(5 + pads, 16)
        leaks[f"pads_{pads}"] = leak_in(_attend(codes)[1], mask)
    return found(leaks["pads_4"] < leaks["pads_20"] < leaks["pads_59"], **leaks)


@claim("false", "masks.md#false")
def mask_after_softmax() -> Found:
    x = np.random.default_rng(0).normal(size=(6, 8))
    mask = np.array([False, False, False, False, True, True])
    _, weights = dot_product_attention(x, x, x)
    _, right = dot_product_attention(x, x, x, key_padding_mask=mask)
    after = np.where(mask, 0.0, weights)
    return found(np.allclose(after, right), after=after[0].sum())


@claim("only if", "masks.md#no-key")
def minus_infinity_is_zero() -> Found:
    """A causal mask and pads on the left leave the first rows without a key."""
    left = key_padding_mask([5], 9, side="left")
    mask = torch.from_numpy(np.asarray(combine_masks(left, mask=causal_mask(9)))[0])
    weights = torch.zeros(9, 9).masked_fill(mask, -torch.inf).softmax(dim=-1)
    lost = weights.isnan().any(dim=-1).sum().item()
    kept = weights[4:].masked_select(mask[4:]).abs().max().item()
    return found(kept == 0, lost > 0, lost=lost)


@claim("only if", "masks.md#leak-out")
def pads_zeroed_everywhere() -> Found:
    """Two layers, pads set to zero between them or not; then a mean over all places."""
    batch, mask = pad_batch([_SENTENCE], length=9)
    first = _attend(batch[0], mask[0])[0] + batch[0]
    zeroed = np.where(mask[0][:, None], 0.0, first)
    masked = np.abs(_attend(first, mask[0])[0] - _attend(zeroed, mask[0])[0])[:5].max()
    open_ = np.abs(_attend(first)[0] - _attend(zeroed)[0])[:5].max()
    return found(open_ > 0.01, masked == 0, without=open_)


@claim("false", "masks.md#output-mask")
def mean_over_all_places() -> Found:
    batch, mask = pad_batch([_SENTENCE], length=9)
    alone, padded = _attend(_SENTENCE)[0], _attend(batch[0], mask[0])[0]
    apart = np.abs(padded.mean(axis=0) - alone.mean(axis=0)).max()
    masked = np.abs(masked_mean(padded[None], mask)[0] - alone.mean(axis=0)).max()
    return found(apart < 1e-9, masked < 1e-9 < apart, apart=apart)


@claim("false", "masks.md#loss")
def loss_over_all_places() -> Found:
    mask = key_padding_mask([5], 9)
    losses = np.where(mask, 0.0, 3.0)
    real, all_ = float(masked_loss(losses, mask)), losses.mean()
    return found(abs(all_ - real) < 1e-9, real=real, all=all_)


@claim("only if", "masks.md#left")
def left_pads_change_nothing() -> Found:
    """With the key mask everywhere: codes by place, codes counted from the mask, and RoPE by place."""
    batch, mask = pad_batch([_WORDS], side="left", length=9)
    alone = _attend(_SENTENCE)[0]
    place = _attend(batch[0] + sinusoidal_encoding(9, 16), mask[0])[0][4:]
    counted = _attend(batch[0] + sinusoidal_encoding(positions_from_mask(mask)[0], 16), mask[0])[0][4:]

    def turned(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
        q, k = (apply_rotary(x @ w, len(x)) for w in _W[:2])
        return dot_product_attention(q, k, x @ _W[2], key_padding_mask=mask)[0]

    rotary = np.abs(turned(batch[0], mask[0])[4:] - turned(_WORDS)).max()
    wrong, right = (np.abs(x - alone).max() for x in (place, counted))
    return found(max(right, rotary) < 1e-9, wrong > 0.1, place=wrong)


@claim("false", "masks.md#false")
def pads_are_ignored() -> Found:
    """Pads whose scores are lower by 6 than those of five words: the share of attention of 4 and of 500 pads."""
    share = {}
    for pads in (4, 500):
        scores = np.r_[np.zeros(5), np.full(pads, -6.0)]
        _, weights = dot_product_attention(np.ones((1, 1)), scores[:, None], scores[:, None], scale=1.0)
        share[f"pads_{pads}"] = weights[0, 5:].sum()
    return found(share["pads_500"] < 0.01, **share)
