"""Which tokens reach which outputs, found by changing one token at a time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from posenc._checks import integer
from posenc.check.models import Called, change, has_own_masks, some_tokens, text_config, tolerance
from posenc.check.report import Finding, Report
from posenc.check.weights import blank_weights
from posenc.masks import causal_mask, document_ids, document_mask, document_positions

__all__ = ["check_mask", "reach"]


def reach(
    called: Called, ids: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None
) -> Tensor:
    """Bool (length, length), True where changing the token of the column changes the output of the row.

    positions and mask are those of one row.
    """
    rows, limit = replaced(ids), tolerance(called, ids)
    held, hidden = (None if each is None else each.expand(rows.shape[:2]) for each in (positions, mask))
    outputs = called(rows, positions=held, mask=hidden)
    equal = called(rows[:1].expand_as(rows), positions=held, mask=hidden)
    if (
        change(equal, equal[:1]) > limit
    ):  # a row's outputs depend on its number, which shows nothing of the mask
        first = [None if each is None else each[:1] for each in (held, hidden)]
        outputs = torch.cat([called(row[None], positions=first[0], mask=first[1]) for row in rows])
    differs = (outputs[1:] - outputs[:1]).flatten(2).abs().amax(-1)  # (changed token, output)
    return (differs > limit).T


def replaced(ids: Tensor) -> Tensor:
    """The first row, and under it the same with one token changed, each in turn: (length + 1, length)."""
    row, n = ids[:1], ids.shape[1]
    rows = row.expand(n + 1, *row.shape[1:]).clone()
    for u in range(n):
        rows[u + 1, u] = next(
            (token for token in ids.flatten(0, 1) if not torch.equal(token, row[0, u])), row[0, u]
        )
    return rows


def check_mask(
    model: Any,
    ids: Tensor | None = None,
    *,
    meant: str | Tensor | None = None,
    documents: Sequence[int] | None = None,
) -> Report:
    """Whether each output sees the tokens that it is meant to see, and no others.

    Args:
        model, ids: as in `posenc.check.check_order`. The first row is used.
        meant: "causal", "full", or a bool tensor (length, length), True where a token must NOT reach an output, as
            in `posenc.causal_mask`; through several layers a token reaches further than in one. If None, "causal"
            for a class whose name says so (ForCausalLM), or if most outputs do not see the tokens after them; "full"
            for a model that takes a perm_mask, as XLNet.
        documents: lengths of texts that are packed into one row, at least two. The model is then called without a
            mask, with positions that begin at 0 in each document if it takes any, and each document must give what
            it gives alone. Wrap a model that is told of documents otherwise in a function of ids.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`; meant is none of these; documents are fewer than two,
            or longer than ids.

    >>> bag = torch.nn.Embedding(50, 8).eval()  # each token by itself
    >>> check_mask(bag, meant="full").faults[0].says
    'output 0 does not see token 1, 46 such pairs of neighbours (meant: full)'

    Source: a check of this book, explained in check.md#comparisons.
    """
    called, ids = Called(model), some_tokens(model, ids)
    if documents is not None:
        return _packed(called, ids, documents)
    n, sees = ids.shape[1], reach(called, ids)
    if meant is None and has_own_masks(model):
        meant = "full"
    if meant is None and any(word in type(model).__name__ for word in ("CausalLM", "LMHead")):
        meant = "causal"
    if meant is None and "MaskedLM" in type(model).__name__:
        meant = "full"
    if meant is None:
        later = torch.ones(n, n, dtype=torch.bool, device=sees.device).triu(1)
        meant = "full" if float(sees[later].double().mean()) > 0.5 else "causal"
    if isinstance(meant, str):
        if meant not in ("causal", "full"):
            raise ValueError(f"meant must be 'causal', 'full' or a bool tensor, got {meant!r}")
        forbidden = (
            torch.ones(n, n, dtype=torch.bool).triu(1) if meant == "causal" else torch.zeros(n, n).bool()
        )
    elif isinstance(meant, Tensor) and meant.dtype == torch.bool and meant.shape == (n, n):
        forbidden, meant = meant.cpu(), "the given mask"
    else:
        raise ValueError(f"meant must be 'causal', 'full' or a bool tensor {(n, n)}, got {meant!r}")
    sees = sees.cpu()
    leaks, blind = (sees & forbidden).nonzero(), (~sees & ~forbidden).nonzero()
    section = "masks#take-check" if meant != "causal" else "order#causal-mask"
    if len(leaks):
        t, u = map(int, leaks[0])
        says = f"output {t} sees token {u}, {len(leaks)} such pairs (meant: {meant})"
        look = _leak(leaks, n)
        if meant == "causal" and _opposite(model, ids[:1], sees):
            look = "the mask: it is the wrong way round, outputs see what comes after them and not what comes before"
        return Report((Finding("who sees whom", "FAULT", says, len(leaks), look, section),))
    chunk = getattr(text_config(model), "attention_chunk_size", None) or n  # as in Llama 4
    near = [(int(t), int(u)) for t, u in blind if abs(t - u) <= 1 and (t % chunk or u >= t)]
    # Weights can be so small that nothing of a token gets through, where the mask shows it.
    shown = (
        [weights[0] if weights.ndim == 4 else weights for _, weights in blank_weights(model, ids[:1])]
        if near
        else []
    )
    near = [(t, u) for t, u in near if not shown or not any(bool(each[:, t, u].any()) for each in shown)]
    if near:
        t, u = near[0]
        says = f"output {t} does not see token {u}, {len(near)} such pairs of neighbours (meant: {meant})"
        look = "the diagonal of the mask: it is one off, or read the wrong way round"
        if all(u > t for t, u in near):
            look = "the mask: no output sees a later token, as under a causal mask"
        blocks = (
            {b - a for (_, a), (_, b) in itertools.pairwise(near)} if all(u < t for t, u in near) else set()
        )
        if len(blocks) == 1 and (size := blocks.pop()) > 1 and near[0][0] % size == 0:
            look = (
                f"blocks of {size} tokens in place of a window: no output sees into the block before its own"
            )
        return Report((Finding("who sees whom", "FAULT", says, len(near), look, section),))
    furthest = max((int(t - u) for t, u in sees.nonzero()), default=0)
    if meant == "causal" and (window := _window(model)):
        layers, width = window
        if (wanted := min(layers * (width - 1), n - 1)) != furthest:
            says = f"tokens up to {furthest} back reach an output, {layers} windows of {width} make {wanted}"
            look = f"the window: each query sees {'more' if furthest > wanted else 'fewer'} keys than the {width} meant"
            return Report((Finding("who sees whom", "FAULT", says, furthest, look, "longer#others"),))
    if layered := _layers(model, ids[:1]):
        return Report((layered,))
    if len(blind):
        says = f"tokens more than {furthest} back reach no output (meant: {meant})"
        look = "a window or chunks, if you have not meant one"
        return Report((Finding("who sees whom", "note", says, len(blind), look, section),))
    return Report((Finding("who sees whom", "ok", f"as meant: {meant}", 0.0, "", section),))


def _packed(called: Called, ids: Tensor, documents: Sequence[int]) -> Report:
    lengths = [integer("each of documents", length, minimum=2) for length in documents]
    if len(lengths) < 2 or sum(lengths) > ids.shape[1]:
        raise ValueError(
            f"documents must be at least two lengths of {ids.shape[1]} tokens together or fewer, got {lengths}"
        )
    what, section = "packed documents", "masks#packing"
    row, numbers = ids[:1, : sum(lengths)], document_ids(torch.tensor(lengths))
    places = document_positions(numbers)[None].to(ids.device) if called.positions else None
    sees, inside = reach(called, row, positions=places).cpu(), ~document_mask(numbers)
    if len(across := (sees & ~inside).nonzero()):
        t, u = map(int, across[0])
        says = f"output {t} of document {int(numbers[t])} sees token {u} of document {int(numbers[u])}"
        look = f"the mask: it does not separate documents ({len(across)} pairs see across)"
        if not bool((sees & causal_mask(len(numbers), like=sees)).any()):
            look = f"the mask: it is causal alone and does not separate documents ({len(across)} pairs see across)"
        return Report((Finding(what, "FAULT", says, len(across), look, section),))
    packed = called(row, positions=places)
    alone = torch.cat([called(part) for part in row.split(lengths, dim=1)], dim=1)
    if (size := change(packed, alone)) <= tolerance(called, ids):
        return Report(
            (Finding(what, "ok", f"each gives what it gives alone, to {size:.1g}", size, "", section),)
        )
    says = f"documents see themselves alone, and their outputs differ by {size:.2g} from those without the others"
    look = "positions: they must begin at 0 again in each document, or the model must see offsets only"
    return Report((Finding(what, "FAULT", says, size, look, section),))


def _window(model: Any) -> tuple[int, int] | None:
    """How many layers a model of Hugging Face has and how many keys a query sees, if all layers have a window."""
    text = text_config(model)
    width, layers = getattr(text, "sliding_window", None), getattr(text, "num_hidden_layers", None)
    kinds = set(getattr(text, "layer_types", None) or ["sliding_attention"])
    if not isinstance(width, int) or not isinstance(layers, int) or kinds != {"sliding_attention"}:
        return None
    return layers, width


def _layers(model: Any, row: Tensor) -> Finding | None:
    """The first layer that does not see what the configuration gives its kind; None without one."""
    text, n = text_config(model), row.shape[1]
    width, kinds = getattr(text, "sliding_window", None), getattr(text, "layer_types", None) or ()
    if not isinstance(width, int) or "sliding_attention" not in kinds:
        return None
    found = blank_weights(model, row)
    for number, (kind, (_, weights)) in enumerate(zip(kinds, found, strict=False)):
        pairs = (weights > 0).any(0).nonzero()
        both = bool((pairs[:, 1] > pairs[:, 0]).any())
        back = int((pairs[:, 0] - pairs[:, 1]).max())
        # A window on both sides counts its width with the query itself or without, from model to model.
        meant = {"sliding_attention": {width - 1, width} if both else {width - 1}, "full_attention": {n}}.get(
            kind
        )
        ahead = int((pairs[:, 1] - pairs[:, 0]).max())
        if both and ahead != back:
            says = f"its queries see {back} keys back and {ahead} ahead, as {kind}"
            look = f"layer {number}: one side of its window is shorter than the other"
            return Finding("windows of layers", "FAULT", says, float(ahead), look, "longer#others")
        if len(found) != len(kinds) or meant is None or back in {min(each, n - 1) for each in meant}:
            continue
        wanted = min(n - 1, max(meant))
        says = f"its queries see {back} keys back, as {kind} {wanted}"
        look = f"layer {number}: its window is {'wider' if back > wanted else 'narrower'} than the configuration says"
        if back == n - 1:
            look = f"layer {number}: it has no window, and by the configuration one of {width}"
        elif kind == "full_attention":
            look = f"layer {number}: it has a window, and by the configuration none"
        return Finding("windows of layers", "FAULT", says, float(back), look, "longer#others")
    return None


def _opposite(model: Any, row: Tensor, sees: Tensor) -> bool:
    """Whether tokens see what comes after them and nothing before them, in one layer if that can be read."""
    found = blank_weights(model, row)
    seen = (found[0][1] > 0).any(0) if found else sees
    # The last one has no key then, and may see all of them.
    return bool(seen.triu(1).any()) and not bool(seen[:-1].tril(-1).any())


def _leak(leaks: Tensor, n: int) -> str:
    ahead = {int(u - t) for t, u in leaks}
    if {int(t) for t, _ in leaks} == {0}:
        return "the first query, which has no key at all: its softmax is over all keys"
    if max(ahead) <= n // 4:
        return "the diagonal of the mask: each query sees one key too many"
    return f"the mask: what lies up to {max(ahead)} ahead gets in"
