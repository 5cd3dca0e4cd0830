"""Documents that are packed into one row of a causal model of transformers: does its mask keep them apart?"""

from __future__ import annotations

import sys
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from posenc.check.masks import check_mask
from posenc.check.models import Called, text_config
from posenc.check.report import Finding
from posenc.check.weights import ERRORS
from posenc.masks import document_ids, document_mask, document_positions

__all__ = ["packed_apart"]


def packed_apart(model: Any, ids: Tensor) -> list[Finding]:
    """A fault if documents see each other where the model's program says that they must not; nothing otherwise.

    The functions of transformers that make causal masks cut them where position_ids begin anew, if they are handed
    them. A model that hands them none, as GPT-OSS, is not meant to take documents. Nor does a mask hold for layers
    without attention, such as convolutions, so a fault is raised only if the masks themselves show another document.
    """
    called, lengths = Called(model), [ids.shape[1] // 3, ids.shape[1] // 4]
    if called.positions is None or not _is_read_by_masks(model):
        return []
    lengths.append(ids.shape[1] - sum(lengths))
    numbers = document_ids(torch.tensor(lengths))
    try:
        masks = _masks(called, ids[:1], document_positions(numbers)[None].to(ids.device))
    except ERRORS:
        return []
    apart = document_mask(numbers)
    if not any(mask is None or bool(mask.cpu()[..., apart].any()) for mask in masks):
        return []
    return [each for each in check_mask(model, ids, documents=lengths).findings if not each.ok]


def _is_read_by_masks(model: Any) -> bool:
    """Whether masks are made by this version of transformers, for a program of attention that reads them."""
    functions: Any = sys.modules.get("transformers.masking_utils")
    shown = getattr(text_config(model), "_attn_implementation", None) in ("eager", "sdpa")
    return shown and hasattr(functions, "find_packed_sequence_indices")


def _masks(called: Called, row: Tensor, places: Tensor) -> list[Tensor | None]:
    """True where a query sees a key, as the causal masks say that are made with these positions; None shows all."""
    home: Any = sys.modules.get(type(called.model).__module__)
    made = list[Tensor | None]()
    own = any(
        "attention_mask" in name and getattr(each, "__module__", "") == home.__name__
        for name, each in vars(home).items()
    )

    def recorder(usual: Any) -> Any:
        def recorded(*given: Any, **more: Any) -> Any:
            mask, held = usual(*given, **more), more.get("position_ids")
            # With a cache, or a mask of its own as T5Gemma makes one, positions do not cut it.
            alone = more.get("past_key_values") is None and not (
                own and more.get("attention_mask") is not None
            )
            if alone and isinstance(held, Tensor) and torch.equal(held[:1].cpu(), places.cpu()):
                seen = isinstance(mask, Tensor) and mask.ndim == 4
                made.extend([(mask if mask.dtype == torch.bool else mask == 0)[0, 0]] if seen else [])
                made.extend([None] if mask is None else [])
            return mask

        return recorded

    names = [name for name in vars(home) if name.startswith("create_") and name.endswith("causal_mask")]
    with mock.patch.dict(vars(home), {name: recorder(getattr(home, name)) for name in names}):
        called(row, positions=places)
    return made
