"""Models with an encoder and a decoder, such as T5 and BART: each part by itself, and how the one sees the other."""

from __future__ import annotations

import copy
import inspect
import math
from typing import Any

import torch
from torch import Tensor, nn

from posenc.check.crossed import added_to_scores
from posenc.check.generating import calls_of_generate
from posenc.check.models import Called, change
from posenc.check.report import Finding
from posenc.check.seen import attended
from posenc.check.weights import ERRORS, blank_weights

__all__ = ["check_source", "encoder_and_decoder"]


def encoder_and_decoder(model: Any, ids: Tensor) -> tuple[nn.Module, nn.Module] | None:
    """Both parts of a model of transformers, each called with its own token ids; None for a model without them.

    The decoder stands over a fixed source, which is shorter than the ids, so that their lengths can be told apart.
    """
    taken = inspect.signature(model.forward).parameters if isinstance(model, nn.Module) else {}
    if not {"input_ids", "decoder_input_ids", "encoder_outputs"} <= set(taken) or ids.ndim != 2:
        return None
    whole: Any = type(model)
    names = {"ids": "decoder_input_ids", "attention_mask": "decoder_attention_mask"}
    names |= {name: name for name in ("past_key_values", "use_cache") if name in taken}
    names |= {"position_ids": "decoder_position_ids"} if "decoder_position_ids" in taken else {}

    def forward(self: Any, *given: Any, **more: Any) -> Any:
        told = dict(zip(names, given, strict=False)) | more
        source = self.source.to(told["ids"].device).expand(len(told["ids"]), -1)
        return whole.forward(self, source, **{names[name]: value for name, value in told.items()})

    def generate(self: Any, ids: Tensor, **more: Any) -> Any:
        more["decoder_attention_mask"] = more.pop("attention_mask", None)
        return model.generate(self.source.expand(len(ids), -1).to(ids.device), decoder_input_ids=ids, **more)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signed: Any = forward
    signed.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in ("self", *names)])
    # A class of its own, so that copies, and what is saved and loaded, are called like this, too.
    own = {"forward": forward, "generate": generate, "source": _source(ids), "__module__": whole.__module__}
    decoder = copy.copy(model)
    decoder.__class__ = type(whole.__name__, (whole,), own)
    return model.get_encoder(), decoder


def _source(ids: Tensor) -> Tensor:
    return ids[:1, : 2 * ids.shape[1] // 3].flip(1)


def check_source(model: Any, decoder: nn.Module, ids: Tensor) -> list[Finding]:
    """Whether the decoder sees what the encoder gives it as a set, without pads: cross-attention has no positions."""
    source, row, section = _source(ids), ids[:1], "order#attention"
    with torch.no_grad():
        made = model.get_encoder()(source)
        hidden = made.last_hidden_state

        def outputs(hidden: Tensor, mask: Tensor | None = None) -> Tensor:
            encoded = type(made)(last_hidden_state=hidden)
            found = model(encoder_outputs=encoded, attention_mask=mask, decoder_input_ids=row)
            for name in ("logits", "last_hidden_state"):
                found = getattr(found, name, found)
            return found.double()

        wanted = outputs(hidden)
        limit = max(3e-5, 8 * torch.finfo(hidden.dtype).eps) * float(wanted.abs().max())
        turned = change(outputs(hidden.flip(1)), wanted)
        ones = torch.ones_like(source)
        padded = torch.cat([hidden, hidden[:, :3].flip(1)], dim=1)
        pads = change(outputs(padded, torch.cat([ones, 0 * ones[:, :3]], dim=1)), wanted)
    says = "the outputs do not depend on the order of what the encoder gives"
    findings = [Finding("cross-attention", "ok", says, turned, "", section)]
    if not turned <= limit:
        says = f"outputs differ by {turned:.2g} when what the encoder gives comes in reverse order"
        findings = [Finding("cross-attention", "FAULT", says, turned, _seen(decoder, row, source), section)]
    elif look := added_to_scores(decoder, row, source.shape[1]):
        says = "the weights of a layer are not all equal where its products are 0"
        findings = [Finding("cross-attention", "FAULT", says, math.nan, look, section)]
    says = f"the same outputs, to {pads:.1g}"
    findings.append(Finding("pads of the source", "ok", says, pads, "", "masks#key-mask"))
    if not pads <= limit:
        says = f"outputs differ by {pads:.2g} from those without pads"
        look = "the mask of the source: cross-attention must have it, pads get in"
        findings[-1] = Finding("pads of the source", "FAULT", says, pads, look, "masks#key-mask")
    return findings + _kept(decoder, row, source.shape[1]) + _written(model, source)


def _kept(decoder: nn.Module, row: Tensor, length: int) -> list[Finding]:
    """A fault if cross-attention has not all keys of the source, and no others, in each step; nothing otherwise."""
    called, what = Called(decoder), "the source while decoding"
    if called.cache is None:
        return []
    try:
        _, cache = called.step(row[:, :-2], None)
        _, cache = called.step(row[:, -2:-1], cache)
        step = attended(called, lambda: called.step(row[:, -1:], cache))
    except ERRORS:  # it is said of the decoder
        return []
    whole = [each for each in attended(called, lambda: called(row)) if each.queries.shape[-2] == row.shape[1]]
    step = [each for each in step if each.queries.shape[-2] == 1]
    for wanted, found in zip(whole, step, strict=False) if len(whole) == len(step) else ():
        if wanted.keys.shape[-2] != length:
            continue
        look = "the cache of cross-attention: "
        if (held := found.keys.shape[-2]) != length:
            look += "it is cut, and must keep all keys" if held < length else "it grows from step to step"
            says = f"a step after two calls sees {held} keys of a source of {length} tokens"
        elif change(found.values, wanted.values) > 1e-4 * float(wanted.values.abs().max()):
            look += "it does not hold the values of the source"
            says = f"they differ by {change(found.values, wanted.values):.2g} from those without a cache"
        else:
            continue
        return [Finding(what, "FAULT", says, float(held), look, "rotary#cache")]
    return []


def _written(model: Any, source: Tensor) -> list[Finding]:
    """Whether generate() writes the same over a source with pads behind it, which the mask hides."""
    what, section, pads = "generate over a padded source", "masks#key-mask", 3
    if not getattr(model, "can_generate", lambda: False)():
        return []
    called, ones = Called(model), torch.ones_like(source)
    padded, mask = torch.cat([source, source[:, :pads]], 1), torch.cat([ones, 0 * ones[:, :pads]], 1)
    try:
        (alone, _), (made, told) = (
            calls_of_generate(called, *given, num_beams=1) for given in ((source, ones), (padded, mask))
        )
        with torch.no_grad():
            once = model(
                input_ids=source, attention_mask=ones, decoder_input_ids=alone.sequences[:, :-1]
            ).logits
    except ERRORS as error:
        says = f"it cannot be tried: {type(error).__name__}: {str(error).splitlines()[0][:80]}"
        return [Finding(what, "left out", says, math.nan, "", section)]
    wanted, found = (torch.stack(each.logits, dim=1).double() for each in (alone, made))
    limit = 1e-4 * float(wanted.abs().max())
    if change(once[:, -wanted.shape[1] :].double(), wanted) > limit:
        return []  # what goes wrong without pads, too, is said of the decoder
    if (size := change(found, wanted)) <= limit:
        return [Finding(what, "ok", f"the same outputs, to {size:.1g}", size, "", section)]
    masks = (each.mask for each in told)
    lost = next((n for n, each in enumerate(masks) if not isinstance(each, Tensor) or bool(each.all())), None)
    look = "the mask of the source: generate() must hand it to the decoder in each call, "
    look += "or pads get in" if lost is None else f"and in call {lost} there is none, so pads are seen"
    says = f"outputs differ by {size:.2g} from those over the source without pads"
    return [Finding(what, "FAULT", says, size, look, section)]


def _seen(decoder: nn.Module, row: Tensor, source: Tensor) -> str:
    """What cross-attention does with the places of the source, by its weights if all products are 0."""
    for _, weights in blank_weights(decoder, row, source.shape[1]):
        if bool((weights == 0).any()):
            return "a mask by position, such as the causal one, hides tokens of the source"
        if change(weights, weights.mean(-1, keepdim=True)) > 1e-5:
            return "a bias of positions is added to its scores, and the source has none in the decoder"
    return "its queries or keys are turned, or get a code of positions"
