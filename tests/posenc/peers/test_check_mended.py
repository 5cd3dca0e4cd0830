"""Faults that were really reported to transformers, and that the checks missed."""

from typing import Any

import pytest
import torch

from tests.peers import modeling
from tests.posenc.peers.faulty import Faults, made

Patch = pytest.MonkeyPatch
pytestmark = pytest.mark.slow

FAULTS = Faults()
planted = FAULTS.planted


@planted("one side of its window is shorter than the other")
def modernbert_loses_the_last_key_on_the_right(patch: Patch) -> Any:
    """Pull request 47010."""
    bert = modeling("modernbert")
    usual = bert.create_bidirectional_sliding_window_mask

    def faulty(config: Any, **more: Any) -> Any:
        mask = usual(config=config, **more)
        if mask is None:
            return None
        n, width = mask.shape[-1], config.sliding_window
        offsets = torch.arange(n)[None] - torch.arange(n)[:, None]
        shut = False if mask.dtype == torch.bool else torch.finfo(mask.dtype).min
        return mask.masked_fill(offsets == width, shut)

    patch.setattr(bert, "create_bidirectional_sliding_window_mask", faulty)
    return made("modernbert", num_hidden_layers=3)


@pytest.mark.parametrize("name", FAULTS)
def test_a_reported_fault_is_named_in_the_first_line(name: str, monkeypatch: Patch) -> None:
    FAULTS.must_be_named(name, monkeypatch)
