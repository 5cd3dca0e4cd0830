"""What becomes of buffers when a model is cast, made on the meta device, or saved and loaded."""

from __future__ import annotations

import contextlib
import copy
import io
import math
import tempfile
import warnings
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from posenc.check.guesses import frequency_cause, sizes
from posenc.check.instances import own_code
from posenc.check.models import Called, change, some_tokens, text_config, tolerance
from posenc.check.report import Finding, Report
from posenc.rotary import from_config

__all__ = ["check_loading"]

OTHERS = "other frequencies than the configuration's, by another base, width or scaling"
LARGEST = 100_000_000
"""Parameters of a model that is still copied and saved."""


def check_loading(model: Any, ids: Tensor | None = None) -> Report:
    """Whether frequencies are those of the configuration, and whether a model that is loaded gives the same outputs.

    A module of Hugging Face is saved and loaded by its from_pretrained. Any other is moved to the meta device, given
    empty memory by to_empty, and filled from its state dict: a buffer that is not in the state dict is then garbage,
    unless the model makes it anew.

    Args:
        model: a torch module, otherwise as in `posenc.check.check_order`.
        ids: as in `posenc.check.check_order`.

    Raises:
        TypeError, ValueError: as in `posenc.check.check_order`; model is not a module.

    >>> print(check_loading(nn.Embedding(50, 8).eval()))
    ok        meta device and to_empty: the same outputs, to 0
    left out  frequencies: no buffer is called inv_freq

    Source: a check of this book, explained in check.md#comparisons.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch module, of which copies are made, got {type(model).__name__}")
    called, ids = Called(model), some_tokens(model, ids)
    findings = [_frequencies(model)]
    if (size := sum(parameter.numel() for parameter in model.parameters())) > LARGEST:
        says = f"it has {size:,} parameters: check a small model of the same code"
        return Report((*findings, Finding("loading", "left out", says, math.nan, "", "precision#rotary")))
    wanted, limit = called(ids), tolerance(called, ids)
    if hasattr(model, "save_pretrained") and hasattr(type(model), "from_pretrained"):
        return Report((*findings, _saved(model, ids, wanted, limit)))
    return Report((*findings, _emptied(model, ids, wanted, limit)))


def _frequencies(model: nn.Module) -> Finding:
    """Buffers called inv_freq against the configuration, by formulas in float64."""
    what, section = "frequencies", "longer#take-config"
    text = text_config(model)
    # those of the text alone: a tower for pictures has frequencies, and a configuration, of its own
    parts = [(name, part) for name, part in model.named_modules() if getattr(part, "config", None) is text]
    held = {
        f"{part}.{name}".lstrip("."): buffer.detach().double().cpu().numpy()
        for part, module in parts or [("", model)]
        for name, buffer in module.named_buffers()
        if name.endswith("inv_freq") and "original" not in name
    }
    if not held or not hasattr(text, "to_dict"):
        says = "no buffer is called inv_freq" if not held else "the model has no configuration"
        return Finding(what, "left out", says, math.nan, "", section)
    try:
        read = list(from_config(text, length=1).kinds.items())
        if any(each.method == "longrope" for _, each in read):  # those of a short text, or of a long one
            read += from_config(text, length=2**20).kinds.items()
    except (TypeError, ValueError) as error:
        says = f"the configuration is not read: {str(error).splitlines()[0][:80]}"
        return Finding(what, "left out", says, math.nan, "", section)
    if any(each.method == "dynamic" for _, each in read):
        says = "they change with the length of the text, and a buffer holds those of the last one"
        return Finding(what, "left out", says, math.nan, "", section)
    # A model that turns the other way has its sign in the function that turns, which check_rotation judges.
    wanted = [(kind, sizes(each)) for kind, each in read if each.frequencies is not None]
    worst = 0.0
    for name, found in held.items():
        own = [(kind, each) for kind, each in wanted if kind in name] or wanted
        errors = [_error(found, each) for _, each in own]
        if not min(errors, default=math.inf) <= 1e-5:
            says, size, look = _deviation(
                name, found, [each for _, each in own], min(errors, default=math.nan)
            )
            if look.endswith(OTHERS) and own:
                cause = frequency_cause(text, 1, own[0][0], found, partial(_equal, found))
                look = f"{name}: {cause}" if cause else look
            return Finding(what, "FAULT", says, size, look, section)
        worst = max(worst, min(errors))
    says = f"{len(held)} buffers are what the configuration says, to {worst:.1g}"
    return Finding(what, "ok", says, worst, "", section)


def _error(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest relative error."""
    if found.shape != wanted.shape:
        return math.inf
    return float(np.abs(found / np.where(wanted == 0, 1, wanted) - (wanted != 0)).max())


def _equal(found: np.ndarray, guess: np.ndarray) -> bool:
    return _error(found, guess) <= 1e-5


def _deviation(
    name: str, found: np.ndarray, wanted: list[np.ndarray], error: float
) -> tuple[str, float, str]:
    """What is wrong with a buffer, how much, and where to look."""
    for dtype in (torch.bfloat16, torch.float16):
        for each in wanted:
            if np.array_equal(torch.from_numpy(each).to(dtype).double().numpy(), found):
                says = f"they differ by up to {error:.1g} of themselves from those of the configuration"
                short = str(dtype).removeprefix("torch.")
                return (
                    says,
                    error,
                    f"{name}: it is rounded to {short}; load the model in this format, do not cast it",
                )
    if not np.isfinite(found).all() or (found <= 0).all():
        says = "frequencies must be finite and positive"
        return says, error, f"{name} holds garbage: it is not in the state dict, and nothing has made it anew"
    if found.ndim == 1 and wanted and all(each.shape != found.shape for each in wanted):
        says = f"it holds {found.size} frequencies, and the configuration says {wanted[0].shape[-1]}"
        return says, error, f"{name}: {2 * found.size} columns are turned, not {2 * wanted[0].shape[-1]}"
    says = f"it begins with {_listed(found)}, and the configuration says {' or '.join(map(_listed, wanted)) or 'none'}"
    return says, error, f"{name}: {OTHERS}"


def _listed(frequencies: np.ndarray) -> str:
    return ", ".join(f"{each:.3g}" for each in np.ravel(frequencies)[:2])


def _saved(model: Any, ids: Tensor, wanted: Tensor, limit: float) -> Finding:
    what, look = (
        "saved and loaded",
        "buffers that are not in the state dict and are not made anew by _init_weights",
    )
    quiet = contextlib.redirect_stderr(io.StringIO())  # bars of progress
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(), quiet:
        warnings.simplefilter("ignore")
        try:
            model.save_pretrained(folder)
            same = {"dtype": model.dtype, "attn_implementation": model.config._attn_implementation}
            loaded = type(model).from_pretrained(folder, **same).to(ids.device).eval()
        except (RuntimeError, ValueError, OSError, NotImplementedError) as error:
            says = f"it cannot be tried: {str(error).splitlines()[0][:80]}"
            return Finding(what, "left out", says, math.nan, "", "precision#rotary")
        return _same(what, model, loaded, ids, wanted, limit, look)


def _emptied(model: nn.Module, ids: Tensor, wanted: Tensor, limit: float) -> Finding:
    what = "meta device and to_empty"
    try:
        empty = copy.deepcopy(model).to("meta").to_empty(device=ids.device)
    except (RuntimeError, NotImplementedError) as error:
        says = f"it cannot be tried: {str(error).splitlines()[0][:80]}"
        return Finding(what, "left out", says, math.nan, "", "precision#rotary")
    for tensor in (*empty.parameters(), *empty.buffers()):  # memory that nobody has written holds anything
        tensor.data.fill_(math.nan if tensor.is_floating_point() else 0)
    empty.load_state_dict(model.state_dict())
    return _same(
        what, model, empty, ids, wanted, limit, "buffers that are not in the state dict: make them anew"
    )


def _same(
    what: str, model: nn.Module, loaded: nn.Module, ids: Tensor, wanted: Tensor, limit: float, look: str
) -> Finding:
    size, section = change(Called(loaded)(ids), wanted), "precision#rotary"
    if size <= limit:
        return Finding(what, "ok", f"the same outputs, to {size:.1g}", size, "", section)
    others = dict(loaded.named_buffers())
    odd = [
        name
        for name, each in model.named_buffers()
        if name in others and not torch.equal(each.to(others[name]), others[name])
    ]
    says = "outputs become NaN" if math.isnan(size) else f"outputs differ by {size:.2g}"
    if odd:
        look = f"{odd[0]}: the buffer is not what it was, because it is not in the state dict; make it anew"
    if hidden := own_code(model):
        look = f"{hidden}: code of this instance that is not in its class, so nothing that is loaded has it"
    # to_empty is somebody's choice, and from_pretrained is the way in.
    return Finding(what, "FAULT" if what == "saved and loaded" else "note", says, size, look, section)
