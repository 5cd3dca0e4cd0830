"""Padding and masks: which keys a query may see, and which outputs count.

In every mask True means "not allowed" or "padding", as in torch.nn.MultiheadAttention.

masks           who may see whom: padding, the future, other documents; masks for other libraries
batches         sequences of different lengths padded or packed, and their positions
outputs         pooling and losses without the pads, and how much leaks in and out of them
padding_check   whether a model changes its answer when nothing but pads is added
"""

from posenc.masks.batches import (
    document_ids,
    document_positions,
    pack_sequences,
    pad_batch,
    positions_from_mask,
)
from posenc.masks.masks import (
    causal_mask,
    combine_masks,
    document_mask,
    empty_rows,
    key_padding_mask,
    multihead_mask,
    safe_mask,
    sdpa_mask,
)
from posenc.masks.outputs import apply_output_mask, leak_in, leak_out, masked_loss, masked_mean
from posenc.masks.padding_check import check_padding

__all__ = [
    "apply_output_mask",
    "causal_mask",
    "check_padding",
    "combine_masks",
    "document_ids",
    "document_mask",
    "document_positions",
    "empty_rows",
    "key_padding_mask",
    "leak_in",
    "leak_out",
    "masked_loss",
    "masked_mean",
    "multihead_mask",
    "pack_sequences",
    "pad_batch",
    "positions_from_mask",
    "safe_mask",
    "sdpa_mask",
]
