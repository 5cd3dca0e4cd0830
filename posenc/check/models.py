"""How the checks call a model: token ids in, an output for each token out."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

POSITIONS = ("position_ids", "positions")
MASK = ("attention_mask",)
CACHE = ("past_key_values", "cache")
# What configurations call the number of positions.
LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len")


class Called:
    """A model with the names of what it takes besides the ids.

    It is called as model(ids), and where its signature has them with position_ids or positions, attention_mask (1 at
    real tokens, as Hugging Face has it), past_key_values or cache, and use_cache. It gives a tensor (batch, length,
    ...), or an object with logits or last_hidden_state, or a tuple that begins with the tensor; the cache is
    past_key_values of the object, or the second of the tuple.
    """

    def __init__(self, model: Any) -> None:
        if not callable(model):
            raise TypeError(f"model must be a module or a function of token ids, got {type(model).__name__}")
        if isinstance(model, nn.Module) and model.training:
            raise ValueError("model must be in evaluation mode, against dropout: call its eval() first")
        self.model = model
        names = list(inspect.signature(model.forward if isinstance(model, nn.Module) else model).parameters)
        self.positions, self.mask, self.cache = (
            next((name for name in kind if name in names), None) for kind in (POSITIONS, MASK, CACHE)
        )
        self._use_cache = "use_cache" in names
        self.step_of_format = 0.0

    def __call__(self, ids: Tensor, *, positions: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        """The outputs (batch, length, ...), without a cache."""
        return self.step(ids, None, positions=positions, mask=mask, keep=False)[0]

    def at(self, ids: Tensor, positions: Tensor) -> Tensor:
        """The outputs of one text at positions that may jump.

        The mask of ones says that it is one text: transformers takes a jump for the next of several packed documents.
        """
        ones = torch.ones(ids.shape[:2], dtype=torch.long, device=ids.device)
        return self(ids, positions=positions, mask=ones)

    def step(
        self,
        ids: Tensor,
        cache: Any,
        *,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        keep: bool = True,
    ) -> tuple[Tensor, Any]:
        """The outputs of these tokens after those in the cache, and the cache with them."""
        options: dict[str, Any] = {}
        for name, value in ((self.positions, positions), (self.mask, mask), (self.cache, cache)):
            if name and value is not None:
                options[name] = value
        if self._use_cache:
            options["use_cache"] = keep
        with torch.no_grad():
            found = self.model(ids, **options)
        cache = getattr(found, "past_key_values", None)
        if isinstance(found, tuple):
            cache = found[1] if len(found) > 1 else None
            found = found[0]
        for name in ("logits", "last_hidden_state"):
            found = getattr(found, name, found)
        if not isinstance(found, Tensor) or not found.is_floating_point():
            raise TypeError(
                f"model must give floating outputs, got {type(found).__name__}: wrap it in a function"
            )
        if found.ndim < 2 or found.shape[:2] != ids.shape[:2]:
            raise ValueError(
                f"model must give an output for each token, (batch, length, ...), got {tuple(found.shape)} for ids of "
                f"{tuple(ids.shape)}"
            )
        self.step_of_format = torch.finfo(found.dtype).eps
        return found.double(), cache


def text_config(model: Any) -> Any:
    """The configuration of a model of Hugging Face, of its text where it has several parts; None without one."""
    config: Any = getattr(model, "config", None)
    return config.get_text_config() if hasattr(config, "get_text_config") else config


def has_own_masks(model: Any) -> bool:
    """Whether who sees whom is told with each call, as in XLNet, where without a perm_mask all see all."""
    return isinstance(model, nn.Module) and "perm_mask" in inspect.signature(model.forward).parameters


def some_tokens(model: Any, ids: Tensor | None, least: int = 12) -> Tensor:
    """`ids`, or two texts of random tokens that a model with a configuration or an embedding knows."""
    if ids is not None:
        if not isinstance(ids, Tensor) or ids.ndim < 2 or ids.shape[1] < least:
            shape = tuple(ids.shape) if isinstance(ids, Tensor) else type(ids).__name__
            raise ValueError(f"ids must be a tensor (batch, length) of at least {least} tokens, got {shape}")
        return ids
    size = getattr(text_config(model), "vocab_size", None)
    if size is None and isinstance(model, nn.Module):
        size = next((part.num_embeddings for part in model.modules() if isinstance(part, nn.Embedding)), None)
    if size is None:
        raise ValueError(
            "ids must be given, token ids (batch, length): the model says nothing of its vocabulary"
        )
    device = next((p.device for p in model.parameters()), None) if isinstance(model, nn.Module) else None
    # Not the first few, which are often special.
    drawn = torch.randint(min(10, size - 2), size, (2, 2 * least), generator=torch.Generator().manual_seed(0))
    drawn[:, 1] = torch.where(drawn[:, 1] == drawn[:, 0], (drawn[:, 0] + 1) % size, drawn[:, 1])
    return drawn.to(device)


def change(first: Tensor, second: Tensor) -> float:
    """The largest difference; nan if there is a NaN."""
    return float((first - second).abs().max())


def tolerance(called: Called, ids: Tensor) -> float:
    """The largest difference that counts as rounding: 3e-5 of the largest output, or eight steps of a short format."""
    outputs = called(ids)
    if not bool(outputs.isfinite().all()):
        raise ValueError("model must give finite outputs, got NaN or infinity")
    scale = float(outputs.abs().max())
    if change(called(ids), outputs) > 1e-3 * scale:
        raise ValueError("model must give the same outputs twice: call its eval() first, against dropout")
    return max(3e-5, 8 * called.step_of_format) * scale


def counted(ids: Tensor, start: int = 0) -> Tensor:
    """Positions start, start + 1, ... for each row."""
    return torch.arange(start, start + ids.shape[1], device=ids.device).expand(ids.shape[:2])


def first_position(called: Called, ids: Tensor, outputs: Tensor, limit: float) -> int:
    """What a model calls its first position if none are given, 0, 1 or 2; 0 if it is none of these."""
    starts = (0, 1, 2) if called.positions else ()
    return next((n for n in starts if change(called(ids, positions=counted(ids, n)), outputs) <= limit), 0)


BY_ROW = "positions are the number of the row in the batch, the same for all tokens of a row"


def of_rows(called: Called, ids: Tensor, limit: float) -> str:
    """How the number of a row gets into its outputs, seen in equal rows of one batch; "" if it does not."""
    turned = torch.cat([ids[:1, :-1].flip(1), ids[:1, -1:]], dim=1)
    lost = change(called(turned)[:, -1], called(ids[:1])[:, -1]) <= limit
    for row in (ids[:1], ids[:1, :1]):  # a token alone has no order, and no other keys
        alone, rows = called(row), called(torch.cat([row] * 3))
        if (
            change(rows[:1], alone)
            <= limit
            < min(change(rows[a], rows[b]) for a, b in ((0, 1), (0, 2), (1, 2)))
        ):
            if lost:
                return BY_ROW
            if row.shape[1] == 1:
                return "what is added to a token depends on the number of its row, as positions along the batch do"
    return ""
