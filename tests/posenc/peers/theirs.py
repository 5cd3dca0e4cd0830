"""What transformers makes of a configuration: its rotary embedding, and queries and keys that it has turned."""

import importlib
import inspect
from typing import Any

import torch

from tests.peers import peer

peer("transformers")
MAPPING = peer("transformers.models.auto.configuration_auto").CONFIG_MAPPING


def modeling(config: Any) -> Any:
    name = type(config).__module__.replace("configuration_", "modeling_")
    return (
        importlib.import_module(name)
        if importlib.util.find_spec(name)
        else peer("transformers.models.llama.modeling_llama")
    )


def rotary_module(config: Any) -> Any:
    """transformers' own rotary embedding of a model, None if it has no such class."""
    stem = type(config).__name__.removesuffix("Config")
    vision = any(word in stem for word in ("Vision", "ViT"))
    found = []
    for name, made in vars(modeling(config)).items():
        if inspect.isclass(made) and name.endswith("RotaryEmbedding"):
            make: Any = made
            try:
                alike = next(
                    (n for n, pair in enumerate(zip(name, stem, strict=False)) if pair[0] != pair[1]),
                    len(stem),
                )
                found.append((("Vision" in name) == vision, alike, make(config)))
            except (AttributeError, KeyError, ValueError):  # that of another part of the model
                continue
    return max(found, key=lambda entry: entry[:2])[2] if found else None


def scaling(theirs: Any, kind: str) -> float:
    """The attention factor of a kind of layer, or of all."""
    return float(getattr(theirs, f"{kind}_attention_scaling" if kind else "attention_scaling", 1.0))


def called(theirs: Any, x: torch.Tensor, places: torch.Tensor, kind: str) -> Any:
    """Cosines and sines, or complex numbers, of the places."""
    takes = inspect.signature(theirs.forward).parameters
    if places.ndim == 2:
        return theirs(
            x, places.T[:, None] if len(takes) == 2 and hasattr(theirs, "mrope_section") else places
        )
    if "layer_type" in takes and kind:
        return theirs(x, places[None], kind)
    return theirs(x, places[None])


def applied(module: Any, rotation: Any, q: torch.Tensor, k: torch.Tensor, code: Any) -> Any:
    """What transformers' function makes of queries and keys."""
    turned = rotation.rotary_dim
    if not isinstance(code, tuple):  # complex numbers
        if "deepseek" in module.__name__:
            return module.apply_rotary_emb(q, k, code)
        return [
            x.transpose(1, 2) for x in module.apply_rotary_emb(q.transpose(1, 2), k.transpose(1, 2), code)
        ]
    cos, sin = code
    if rotation.method == "axial" and hasattr(module, "apply_rotary_pos_emb_vision"):
        heads_last = [x[0].transpose(0, 1) for x in (q, k)]
        return [x.transpose(0, 1)[None] for x in module.apply_rotary_pos_emb_vision(*heads_last, cos, sin)]
    if rotation.method == "axial" and cos.ndim == 2:
        cos, sin = cos[None], sin[None]
    turn: Any = getattr(module, "apply_rotary_pos_emb", getattr(module, "apply_rotary_pos_emb_2d", None))
    if rotation.layout == "interleaved":
        turn = getattr(module, "apply_rotary_pos_emb_interleave", turn)
    single = "q" not in inspect.signature(turn).parameters

    def both(*heads: torch.Tensor) -> Any:
        return [turn(x, cos, sin) for x in heads] if single else turn(*heads, cos, sin)[:2]

    try:
        return both(q, k)
    except RuntimeError:  # the model slices, not this function
        rest = q[..., turned:], k[..., turned:]
        return [
            torch.cat(parts, dim=-1)
            for parts in zip(both(q[..., :turned], k[..., :turned]), rest, strict=True)
        ]
