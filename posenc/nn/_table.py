"""A fixed table in a layer: what all layers with one share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn


class FixedTable(nn.Module):
    """A layer with a table that is not trained, not saved and never cast, and that no loader can spoil.

    A program that makes a model on the meta device later fills its buffers with whatever is in memory, because
    it relies on a checkpoint or an initialisation to follow. So the table is not a buffer. It comes from NumPy,
    which no mode of torch reaches, and follows the layer to any device but meta; a buffer without elements tells
    where the layer is, however it got there. A forward pass takes what it reads to the device of its input: right
    wherever the table lies, and fast after `.to(device)`, which brings the table along.

    A subclass names in `_fixed` the attributes that its table is made from, and calls `_keep` at the end of
    its `__init__`.
    """

    table: Tensor
    _where: Tensor
    _fixed: ClassVar[tuple[str, ...]] = ()

    def _keep(self, table: np.ndarray) -> None:
        """Make it the table, in the precision that it has."""
        self.register_buffer("_where", torch.empty(0), persistent=False)
        self.__dict__["table"] = trainable_with(table)
        self._follow()

    def _follow(self) -> None:
        """Take the table to where the layer is by now."""
        if not self._where.is_meta:
            with torch.inference_mode(False):
                self.__dict__["table"] = self.table.to(self._where.device)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self._follow()
        return self

    def reset_parameters(self) -> None:
        """Nothing is lost in `to_empty`: for those who call this on every layer after it, as FSDP does."""

    def _load_from_state_dict(
        self, state: dict[str, Any], prefix: str, metadata: dict[str, Any], *rest: Any
    ) -> None:
        super()._load_from_state_dict(state, prefix, metadata, *rest)
        if self._where.is_meta and metadata.get("assign_to_params_buffers"):
            self._where = torch.empty(0)  # nothing in a checkpoint would bring it back from meta

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__ and (name in self._fixed or name == "table"):
            raise AttributeError(
                f"{name} belongs to the table that the layer was made with: make a new {type(self).__name__}"
            )
        super().__setattr__(name, value)


def trainable_with(array: np.ndarray) -> Tensor:
    """A CPU tensor that gradients may pass, also if the layer is made in inference mode."""
    with torch.inference_mode(False):
        return torch.from_numpy(array)


def check_has_numbers(name: str, given: Any) -> None:
    """ValueError for a meta tensor, such as one made where the model is made on meta."""
    if isinstance(given, Tensor) and given.is_meta:
        raise ValueError(f"{name} must hold numbers, got a tensor on the meta device: pass a NumPy array")
