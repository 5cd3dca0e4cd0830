"""What a configuration of Hugging Face's transformers says about rotary position embedding."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from posenc._checks import number
from posenc.rotary._turn import Layout, check_layout
from posenc.rotary.axes import axial_frequencies, mrope_frequencies
from posenc.rotary.scaling import (
    dynamic_ntk_frequencies,
    linear_frequencies,
    llama3_frequencies,
    longrope_attention_factor,
    longrope_frequencies,
    ntk_frequencies,
    proportional_frequencies,
    yarn_attention_factor,
    yarn_frequencies,
)
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = ["LayerRotation", "RotaryConfig", "from_config"]


@dataclass(frozen=True)
class LayerRotation:
    """How the layers of one kind turn queries and keys; arguments for `posenc.apply_rotary` and the layer.

    Attributes:
        frequencies: float64, shape (pairs,), or (axes, pairs) for `posenc.rotary.apply_rotary_axes`; None if these
            layers turn nothing.
        scale: factor of cosines and sines.
        layout: "half" or "interleaved".
        dim: width of a head, or with MLA of the slice of it that holds positions, turned columns and others.
        rotary_dim: number of columns that are turned; they are the first ones.
        softmax_factor: factor on the scores beside the usual 1/√width, for some scalings of longer texts. Else 1.
        log_scale: β, n and first, if the query at t is multiplied by 1 + β ln(1 + ⌊(t + first)/n⌋). None if not.
        base: b of the frequencies before they were scaled.
        method: the configuration's word for the scaling, "default" for none.
        head_dim: with MLA the width of the whole head, of which dim columns hold positions. Else None.

    Source: the fields as Hugging Face Transformers 5.23.0 reads them, in this book longer.md#take-config.
    """

    frequencies: np.ndarray | None
    scale: float
    layout: Layout
    dim: int
    rotary_dim: int
    softmax_factor: float
    log_scale: tuple[float, int, int] | None
    base: float
    method: str
    head_dim: int | None = None

    @property
    def turns(self) -> bool:
        """Whether positions turn anything here."""
        return self.frequencies is not None


@dataclass(frozen=True)
class RotaryConfig:
    """What a configuration says about RoPE.

    Attributes:
        model_type: its name for the model's code.
        kinds: what each kind of layer does, by the name of the kind; "all" where all layers do the same.
        layers: the kind of each layer, in order. None if it is not given.
        trained_length: length of the texts in training, before any scaling, in tokens. None if it is not given.
        limit: the largest length of a text, in tokens. None if it is not given.

    Source: the fields as Hugging Face Transformers 5.23.0 reads them, in this book longer.md#take-config.
    """

    model_type: str
    kinds: dict[str, LayerRotation]
    layers: tuple[str, ...] | None
    trained_length: int | None
    limit: int | None


def from_config(
    config: Any,
    *,
    part: str | None = None,
    layout: Layout | None = None,
    length: int | None = None,
    handled: tuple[str, ...] = (),
) -> RotaryConfig:
    """The rotations that a configuration of transformers describes, for each kind of layer.

    Both spellings are read, `rope_parameters` and the older `rope_theta` with `rope_scaling`. What the file leaves
    out has the default of the model's class in transformers, as when the model is loaded. A field whose name sounds
    like positions and that is not read raises an error, because without it scores could be wrong in silence. So does
    any field of the scaling that is not read, and a field that only other models have.

    Args:
        config: a dict, the path of a `config.json`, or an object with `to_dict()`.
        part: name of one configuration in a file that holds several, such as "vision_config". If None, that of the
            text model.
        layout: "half" or "interleaved", for a `model_type` that posenc does not know.
        length: tokens of the present text, where frequencies depend on it (dynamic NTK and LongRoPE).
        handled: names of fields that your own code takes care of. The error of a field that is not read names it.

    Returns:
        RotaryConfig. With MLA a head has a slice for positions, and what is said here is about this slice.

    Raises:
        TypeError: config is none of the three.
        ValueError: a field is missing, unknown, contradicts another or cannot be read. The message says what to do.

    >>> found = from_config({"model_type": "llama", "head_dim": 128, "rope_theta": 500000.0})
    >>> found.kinds["all"].layout, found.kinds["all"].frequencies[-1].round(9)
    ('half', np.float64(2.455e-06))
    >>> gemma = {"model_type": "gemma3_text", "head_dim": 256, "rope_theta": 1e6, "rope_local_base_freq": 1e4}
    >>> {kind: rotation.base for kind, rotation in from_config(gemma).kinds.items()}
    {'sliding_attention': 10000.0, 'full_attention': 1000000.0}

    Source: the code of transformers 5, `modeling_rope_utils` and its models.
    https://github.com/huggingface/transformers
    """
    whole = _loaded(config)
    if part is None and "text_config" not in whole:
        _check_readable(str(whole.get("model_type")))
    fields = _part(whole, part)
    model = str(fields.get("model_type"))
    if part is None and model in _ONE_FILE:
        model = fields["model_type"] = f"{model}_text"
    _check_readable(model)
    known = _model_types().get(_SAME_CODE.get(model, model))
    if known is None and f"{model}_text" in _model_types():
        raise ValueError(
            f"model_type {model!r} names a file that holds its text model in text_config, which is missing: if these "
            f"are the fields of the text model, change model_type to '{model}_text'"
        )
    if known is None and layout is None:
        raise ValueError(
            f"model_type {model!r} is not known: pass layout='half' or 'interleaved', as its code pairs columns; all "
            "layers are then taken to turn alike, and what the file leaves out must be added to config"
        )
    if known is not None and layout is not None and check_layout(layout) != known["layout"]:
        raise ValueError(f"layout of {model} is {known['layout']!r}, got {layout!r}")
    if known is not None:
        layout = check_layout(known["layout"])
    assert layout is not None
    return _Reader(_by_kind(fields), known or {}, layout, length, handled).read()


# --- The fields ---------------------------------------------------------------------------------------------


@cache
def _model_types() -> dict[str, dict[str, str]]:
    """The data file: what the code of each model type does that its configuration need not say."""
    import csv  # here, so that `import posenc` stays light
    from importlib.resources import files

    text = files("posenc.rotary").joinpath("model_types.csv").read_text(encoding="utf-8")
    return {row["model_type"]: row for row in csv.DictReader(text.splitlines())}


def _check_readable(model: str) -> None:
    for way, models in _WITHOUT_ROTATION.items():
        if model in models.split():
            raise ValueError(f"model_type {model!r} turns nothing, so it needs no layer of RoPE: {way}")
    if refused := _model_types().get(model, {}).get("refused"):
        raise ValueError(f"model_type {model!r} is not read: {refused}")


def _loaded(config: Any) -> dict[str, Any]:
    if isinstance(config, Mapping):
        return dict(config)
    if isinstance(config, str | os.PathLike):
        import json

        with open(config, encoding="utf-8") as file:
            found = json.load(file)
        if not isinstance(found, dict):
            raise ValueError(
                f"config must be a JSON object, got a {type(found).__name__} in {os.fspath(config)!r}"
            )
        return found
    if hasattr(config, "to_dict"):
        return dict(config.to_dict())
    raise TypeError(
        f"config must be a dict, the path of a config.json or an object with to_dict(), got {type(config).__name__}"
    )


def _part(fields: dict[str, Any], part: str | None) -> dict[str, Any]:
    """One model's fields out of a file that may hold several."""
    for name in part.split(".") if part else ():
        if not isinstance(fields.get(name), Mapping):
            raise ValueError(
                f"part must name a configuration within config, one of {_parts(fields)}, got {part!r}"
            )
        fields = dict(fields[name])
    parts = _parts(fields)
    if part is None and isinstance(fields.get("text_config"), Mapping):
        text = dict(fields["text_config"])
        if "model_type" not in text and (usual := f"{fields.get('model_type')}_text") in _model_types():
            text["model_type"] = usual
        return _part(text, None)
    if part or not parts:
        return fields
    if "hidden_size" in fields and "num_attention_heads" in fields:
        return fields
    raise ValueError(f"config holds several models: pass part, one of {parts}")


def _by_kind(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with a dict for each kind of layer, where a file of Step has lists of the layers' bases and shares."""
    bases, shares = fields.get("rope_theta"), fields.get("partial_rotary_factors")
    if fields.get("rope_parameters") or not (isinstance(bases, list) or shares):
        return fields
    kinds = fields.get("layer_types") or []
    scaling = fields.get("rope_scaling") or {}
    lists = [each for each in (bases, shares) if isinstance(each, list)]
    if not kinds or any(len(each) != len(kinds) for each in lists):
        raise ValueError(
            "lists of rope_theta and partial_rotary_factors must be as long as layer_types, one number for each layer"
        )
    if fields.get("yarn_only_types", ["full_attention"]) != ["full_attention"] or "type" in scaling:
        raise ValueError(
            "beside lists by layer, rope_scaling must have rope_type, and yarn_only_types must be ['full_attention'], "
            "because transformers stretches only full layers"
        )
    found: dict[str, dict[str, Any]] = {}
    for n, kind in enumerate(kinds):
        own = {"rope_theta": bases[n] if isinstance(bases, list) else bases}
        own |= {"partial_rotary_factor": shares[n]} if shares else {}
        own |= scaling if kind == "full_attention" else {}
        if found.setdefault(kind, own) != own:
            raise ValueError(f"layers of the kind {kind!r} must be alike, got {found[kind]} and {own}")
    read = ("rope_theta", "partial_rotary_factors", "rope_scaling", "yarn_only_types")
    return {name: value for name, value in fields.items() if name not in read} | {"rope_parameters": found}


def _parts(fields: Mapping[str, Any]) -> list[str]:
    return [
        name
        for name, value in fields.items()
        if name.endswith("_config") and name != "attn_config" and _is_model(value)
    ]


def _is_model(value: Any) -> bool:
    says = {*_HEADS, "rope_parameters", "rope_theta"}
    return isinstance(value, Mapping) and bool(says & value.keys() or _parts(value))


# Names that sound like positions, those that are read, and those that change nothing here.
_POSITION = re.compile(
    r"alibi|attn_temperature|base_freq|every_n|freq_base|inv_freq|layer_switch|logn|log_scaling|mrope|mscale|nope|"
    r"no_rope|ntk|pos_?emb|pos_?enc|position|rel_pos|relative|rope|rotary|rotate|scaling_beta|sinusoid|theta|"
    r"wavelength|window_pattern|xpos|yarn"
)
_READ = frozenset(
    [
        "attn_temperature_tuning",
        "global_attn_every_n_layers",
        "global_rope_theta",
        "layer_rope_theta",
        "layer_types",
        "local_rope_theta",
        "max_position_embeddings",
        "n_positions",
        "no_rope_layer_interval",
        "no_rope_layers",
        "original_max_position_embeddings",
        "partial_rotary_factor",
        "position_embedding_type",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "rope_interleave",
        "rope_local_base_freq",
        "rope_parameters",
        "rope_scaling",
        "rope_theta",
        "rotary_dim",
        "rotary_emb_base",
        "rotary_pct",
        "sliding_window_pattern",
        "swa_rope_theta",
        "_sliding_window_pattern",
    ]
)
_READ_IN_SCALING = frozenset(
    [
        "attention_factor",
        "beta_fast",
        "beta_slow",
        "factor",
        "finetuned",  # a flag of YaRN's first files, without effect on frequencies that are fixed
        "high_freq_factor",
        "llama_4_scaling_beta",
        "long_factor",
        "low_freq_factor",
        "max_position_embeddings",
        "mrope_interleaved",
        "mrope_section",
        "mscale",
        "mscale_all_dim",
        "original_max_position_embeddings",
        "partial_rotary_factor",
        "rope_theta",
        "rope_type",
        "short_factor",
        "truncate",
        "type",
    ]
)
_HARMLESS = frozenset(
    [
        "dropout_positions",
        "indexer_rope_interleave",  # of what chooses the keys, not of the attention
        "layer_switch",
        "memory_attention_rope_dropout",
        "num_position_embeddings",
        "pos_emb_height",
        "pos_emb_time",
        "pos_emb_width",
        "posemb_grid_size",
        "position_embedding_size",
        "position_id_per_seconds",
        "prefix_dense_sliding_window_pattern",
    ]
)
_CHATGLM = "in ChatGLM's code the base is 10000 times rope_ratio, and half of the columns turn: add rope_theta and 0.5"
_CURES = {
    "alibi": "if true, scores get the biases of ALiBi, posenc.alibi_bias, and nothing turns",
    "original_rope": f"{_CHATGLM} as partial_rotary_factor",
    "rope_ratio": f"{_CHATGLM} as partial_rotary_factor",
    "compress_rope_theta": "compressed keys have a base of their own",
    "rotary_dim": "transformers ignores it and turns all columns; if so many are turned: add partial_rotary_factor",
    "rope_scaling_layers": "only these layers are stretched: call again without rope_scaling for the others",
    "rotary_value": "values are turned, too",
    "use_mem_rope": "memory is turned by positions of its own",
    "short_mscale": "cosines and sines of texts up to the trained length are multiplied by it",
    "long_mscale": "cosines and sines of texts beyond the trained length are multiplied by it",
}


# Types whose code turns no query and no key, by what it does instead.
_WITHOUT_ROTATION = {
    "it adds a learned vector for each position, posenc.nn.LearnedEncoding": (
        "albert bart bert biogpt camembert clip_text_model distilbert electra gpt2 gpt_bigcode gpt_neo mbart "
        "openai-gpt opt roberta xlm-roberta"
    ),
    "it adds sines and cosines, posenc.nn.SinusoidalEncoding": "m2m_100 marian pegasus xglm",
    "it adds a trained number for each bucket of offsets, posenc.nn.T5Bias": (
        "longt5 mt5 switch_transformers t5 umt5"
    ),
    "it adds the slopes of ALiBi, posenc.alibi_bias": "bloom mpt",
    "its scores have terms of content with offset, posenc.relative.disentangled_scores": "deberta deberta-v2",
    "its attention has no positions": "jamba kimi_linear nemotron_h",
    "it has no attention": "falcon_mamba mamba mamba2 rwkv",
}
_SAME_CODE = {"kimi_k2": "deepseek_v3"}  # types that transformers does not have, and whose code they run
_READ_ROTARY_DIM = ("codegen", "gptj", "minimax_m2")
_READ_PCT = ("gpt_neox", "gpt_neox_japanese")
_READ_ALPHA = ("hunyuan_v1_dense", "hunyuan_v1_moe")  # a larger base under the name of another scaling
_ONE_FILE = ("qwen2_vl", "qwen2_5_vl")  # their files may have the text's fields beside those of the images


class _Reader:
    """Reads one model's fields."""

    def __init__(
        self,
        fields: dict[str, Any],
        known: dict[str, str],
        layout: Layout,
        length: int | None,
        handled: tuple[str, ...],
    ) -> None:
        self.fields = {name: value for name, value in fields.items() if value is not None}
        self.known, self.layout, self.length = known, layout, length
        self.model = str(fields.get("model_type"))
        self.handled = handled
        self.given_null = {name for name, value in fields.items() if value is None}
        self._check_ignored(handled)
        interleave = self.fields.get("rope_interleave")
        if interleave is not None and interleave != (layout == "interleaved"):
            self.layout = "interleaved" if interleave else "half"

    def _check_ignored(self, handled: tuple[str, ...]) -> None:
        ignored = {
            name: _CURES.get(name, "look it up in the model's code")
            for name, value in self.fields.items()
            if _POSITION.search(name) and name not in _READ | _HARMLESS and name not in handled
            if value not in (False, "rope", "rotary")
            if not (name == "rope_scaling_layers" and self._plain())
        }
        if "rotary_dim" in self.fields and not self._reads_rotary_dim() and "rotary_dim" not in handled:
            ignored["rotary_dim"] = _CURES["rotary_dim"]
        for name in sorted(self._in_scaling() - _READ_IN_SCALING - {*handled}):
            if name != "alpha" or self.model not in _READ_ALPHA:
                ignored[name] = _CURES.get(name, "it stands in the scaling; look it up in the model's code")
        ignored |= {name: cure for name, cure in self._of_other_models() if name not in handled}
        inside = [
            name
            for name, value in self.fields.get("attn_config", {}).items()
            if value and _POSITION.search(name)
        ]
        if inside and "attn_config" not in handled:
            ignored["attn_config"] = (
                f"transformers reads no {inside[0]} in it: add {inside[0]} beside it, if it holds"
            )
        for name in ("first_k_dense_replace", "mlp_layer_types"):
            dense = self.fields.get(name) or ()
            full = (
                self.model == "cohere2_moe" and self.fields.get("prefix_dense_sliding_window_pattern", 1) == 1
            )
            if full and name not in handled and (dense if isinstance(dense, int) else "dense" in dense):
                ignored[name] = "dense layers turn, though they are full"
        if ignored:
            said = "; ".join(f"{name}: {cure}" for name, cure in ignored.items())
            raise ValueError(
                f"config has fields that are not read: {said}; then pass handled={tuple(ignored)}"
            )

    def _reads_rotary_dim(self) -> bool:
        return not self.known or self.model in _READ_ROTARY_DIM

    def _of_other_models(self) -> Iterator[tuple[str, str]]:
        """Fields that some models read, though nothing says that this one does."""
        unturned = self.known.get("unturned", "")
        for name in ("no_rope_layers", "no_rope_layer_interval", "layer_rope_theta"):
            if name in self.fields and name.replace("layer_interval", "layers") not in unturned:
                yield name, "posenc knows no such layers of this model"
        kind = self.fields.get("position_embedding_type", "rope")
        rotations = ("rope", "rotary", "rope_gptj", *["absolute"] * bool(self.known))  # known ones ignore it
        if unturned != "position_embedding_type" and kind not in rotations:
            yield "position_embedding_type", f"{kind!r} is another encoding"
        if not self.known:
            if "mscale_all_dim" in self._in_scaling():
                yield "mscale_all_dim", "DeepSeek and its kin also multiply scores by its factor squared"
            return
        bases = self.known["base"].split()
        for name in ("rope_local_base_freq", "local_rope_theta", "global_rope_theta", "swa_rope_theta"):
            if name in self.fields and len(bases) < 2:
                yield name, "posenc knows no such layers of this model"
        for name, usual in (("rotary_emb_base", bases[-1:]), ("rotary_pct", [self.known["share"] or "1"])):
            if (
                name in self.fields
                and self.model not in _READ_PCT
                and [float(self.fields[name])] != [*map(float, usual)]
            ):
                yield name, f"transformers ignores it and takes {' '.join(usual)}"
        yield from self._unread()

    def _unread(self) -> Iterator[tuple[str, str]]:
        """Fields that the code of this model leaves unread, where they differ from what it takes instead."""
        unread = self.known["unread"].split()
        given = self.fields.get("rope_parameters") or self.fields.get("rope_scaling") or {}
        if any(isinstance(value, Mapping) for value in given.values()):
            return  # each kind of layer has fields of its own
        method = given.get("rope_type", given.get("type", "default"))
        share, base = self.known["share"] or "1", self.known["base"].split()[-1:]
        shares = [self.fields.get("partial_rotary_factor", share)]
        if "share" in unread:
            shares.append(given.get("partial_rotary_factor", share))
        if {"share", "flat_share"} & {*unread} and any(float(each) != float(share) for each in shares):
            yield "partial_rotary_factor", f"transformers ignores it and takes {share}"
        bases = [
            self.fields[name] for name in ("rotary_emb_base", "global_rope_theta") if name in self.fields
        ]
        for theta in bases or map(float, base):
            if "base" in unread and self.fields.get("rope_theta", theta) != theta:
                yield "rope_theta", f"transformers ignores it and takes {theta:g}"
        sliding = self.fields.get("swa_rope_theta")
        if "base" in unread and sliding is not None and sliding != float(self.known["base"].split()[0]):
            yield "swa_rope_theta", f"transformers ignores it and takes {self.known['base'].split()[0]}"
        if "scaling" in unread and (
            method != "default" or given.get("rope_theta", float(*base)) != float(*base)
        ):
            yield "rope_scaling", "transformers ignores it"
        if "type" in unread and method != "default" and "rope_type" not in given and "type" in given:
            yield "rope_scaling", "transformers reads its rope_type, and not type as in older files"

    def _in_scaling(self) -> set[str]:
        """The names of all fields in the scaling, or in those of all kinds of layers."""
        both = [self.fields[name] for name in ("rope_parameters", "rope_scaling") if self.fields.get(name)]
        if len(both) > 1 and both[0] != both[1]:
            raise ValueError(
                f"the scaling is given twice: rope_parameters={both[0]} and rope_scaling={both[1]}"
            )
        given = self.fields.get("rope_parameters") or self.fields.get("rope_scaling") or {}
        if not isinstance(given, Mapping):
            raise ValueError(f"rope_parameters must be a dict, got {given!r}")
        nested = [value for value in given.values() if isinstance(value, Mapping)]
        beside = {
            name: value
            for name, value in given.items()
            if not isinstance(value, Mapping) and name not in ("rope_theta", "partial_rotary_factor")
        }
        if nested and any(value is not None for value in beside.values()):
            raise ValueError(
                f"rope_parameters must hold a dict for each kind of layer, got {beside} beside them"
            )
        if self.fields.get("rope_parameters") and not nested and len(self.known.get("base", "").split()) > 1:
            raise ValueError(
                f"rope_parameters of {self.model} must hold a dict for each kind of layer, got {given}; a file in "
                "the older spelling has rope_scaling, which is that of the full layers"
            )
        return {
            name
            for fields in nested or [given]
            for name, value in fields.items()
            if value is not None and value is not False
        }

    def _plain(self) -> bool:
        given = self.fields.get("rope_parameters") or self.fields.get("rope_scaling") or {}
        return given.get("rope_type", given.get("type", "default")) == "default"

    def read(self) -> RotaryConfig:
        by_kind = self._parameters()
        layers = self._layers()
        kinds = {kind: self._rotation(kind, parameters) for kind, parameters in by_kind.items()}
        if layers is not None:
            unknown = [kind for kind in layers if kind not in kinds and kind not in _WITHOUT_ATTENTION]
            if unknown and set(kinds) != {"all"}:
                raise ValueError(
                    f"layer_types has {unknown[0]!r}, of which config says nothing; it knows {list(kinds)}"
                )
            if set(kinds) == {"all"}:
                layers = None
        trained = self.fields.get("original_max_position_embeddings")
        for parameters in by_kind.values():
            trained = trained or (parameters or {}).get("original_max_position_embeddings")
        limit = self._limit()
        return RotaryConfig(self.model, kinds, layers, trained or limit, limit)

    def _limit(self) -> int | None:
        return next((self.fields[name] for name in _LIMITS if name in self.fields), None)

    # --- Kinds of layers ---

    def _parameters(self) -> dict[str, dict[str, Any] | None]:
        """By kind of layer: the scaling's fields, with base and share; None where nothing is turned."""
        given = self.fields.get("rope_parameters") or self.fields.get("rope_scaling") or {}
        if "rope_parameters" in self.given_null and self.known.get("unturned") == "rope_parameters":
            return {"all": None}
        nested = {kind: value for kind, value in given.items() if isinstance(value, Mapping)}
        if nested:
            more = {
                kind: None for kind, value in given.items() if value is None and kind.endswith("attention")
            }
            self._check_nested(nested)
            return {kind: self._whole(kind, nested.get(kind)) for kind in given if kind in {**nested, **more}}
        if self.known.get("scaling") == "by layer":
            raise ValueError(
                f"the class of {self.model} has a rotation of its own for each kind of layer: add rope_parameters, "
                "with a dict for each kind, to config"
            )
        bases = self.known.get("base", "").split()
        names = ("rope_local_base_freq", "local_rope_theta", "swa_rope_theta")
        local = next((self.fields[name] for name in names if name in self.fields), None)
        if local is not None or len(bases) > 1:
            # Older files: the scaling is that of the full layers.
            sliding = {"rope_theta": local if local is not None else float(bases[0])}
            return {
                "sliding_attention": self._whole("sliding_attention", sliding),
                "full_attention": self._whole("full_attention", dict(given)),
            }
        whole = self._whole("all", dict(given))
        unturned = self.known.get("unturned")
        no_window = "sliding_window" in self.given_null  # left out, it is that of the model's class
        if unturned == "full_attention" or (unturned == "full_beside_windows" and not no_window):
            return {"sliding_attention": whole, "full_attention": None}
        if unturned == "windowless":
            return {"sliding_attention": None if no_window else whole, "full_attention": None}
        if unturned == "no_rope_layers":
            return {"turned": whole, "not_turned": None}
        if unturned == "cross_attention_layers":  # whose keys are those of images
            return {"self_attention": whole, "cross_attention": None}
        if unturned == "layer_rope_theta or every fourth" and "layer_rope_theta" not in self.fields:
            raise ValueError(
                f"the class of {self.model} leaves some layers unturned: add layer_rope_theta, 0 for these, to config"
            )
        if "layer_rope_theta" in self.fields:
            thetas = sorted({theta for theta in self.fields["layer_rope_theta"] if theta})
            if unturned != "layer_rope_theta" and whole and {*thetas} - {whole.get("rope_theta")}:
                raise ValueError(
                    f"layer_rope_theta of {self.model} must hold 0 and its rope_theta, because its code has one base, "
                    f"got {thetas} and {whole.get('rope_theta')}"
                )
            found: dict[str, dict[str, Any] | None] = {
                f"base {theta:g}": {**(whole or {}), "rope_theta": theta} for theta in thetas
            }
            return found | {"not_turned": None}
        if unturned == "position_embedding_type" and self.fields.get("position_embedding_type") not in (
            "rope",
            "rotary",
        ):
            return {"all": None}
        return {"all": whole}

    def _check_nested(self, nested: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuses what transformers reads in another way if each kind of layer has a dict."""
        if self.known and self.known["scaling"] != "by layer" and len(self.known["base"].split()) < 2:
            raise ValueError(
                f"the code of {self.model} has one rotation for all layers: rope_parameters must hold its fields and "
                f"no dict for each kind of layer, got {dict(nested)}"
            )
        for kind, fields in nested.items():
            if fields.get("truncate") is False and "truncate" not in self.handled:
                raise ValueError(
                    f"truncate stands in rope_parameters[{kind!r}], where transformers does not look for it: it rounds "
                    "the ramp; pass handled=('truncate',) for one that is not rounded"
                )
            if fields.get("partial_rotary_factor") is None and "partial_rotary_factor" in self.fields:
                raise ValueError(
                    f"partial_rotary_factor stands beside rope_parameters: add it to rope_parameters[{kind!r}], "
                    "because not all models read it elsewhere"
                )

    def _whole(self, kind: str, given: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """A scaling's fields with what stands beside them in the file, or is the default of the model's class."""
        if given is None:
            return None
        found = {name: value for name, value in given.items() if value is not None}
        bases = self.known.get("base", "").split()
        default = bases[-1 if kind != "sliding_attention" else 0] if bases else None
        base = [
            self.fields[name]
            for name in ("rope_theta", "rotary_emb_base", "global_rope_theta")
            if name in self.fields
        ]
        own = (
            bool(given) and "dict" in self.known.get("unread", "").split()
        )  # it replaces that of the class whole
        for name, values in (
            ("rope_theta", base + ([float(default)] if default and not own else [])),
            ("partial_rotary_factor", [] if own else self._shares()),
        ):
            if values:
                found.setdefault(name, values[0])
        outside = self.fields.get("original_max_position_embeddings")
        inside = found.get("original_max_position_embeddings")
        if (
            outside is not None
            and inside is not None
            and outside != inside
            and found.get("rope_type") != "longrope"
        ):
            raise ValueError(f"original_max_position_embeddings is given twice, as {outside} and as {inside}")
        if outside is not None:
            found["original_max_position_embeddings"] = outside
        return found

    def _shares(self) -> list[float]:
        given = [
            float(self.fields[name])
            for name in ("partial_rotary_factor", "rotary_pct")
            if name in self.fields
        ]
        if "rotary_dim" in self.fields and self._reads_rotary_dim():
            given.append(self.fields["rotary_dim"] / self._width("all"))
        if len(set(given)) > 1:
            raise ValueError(f"the share that is turned is given twice, as {given[0]:g} and as {given[1]:g}")
        if not given and self.known.get("share"):
            given = [float(self.known["share"])]
        return given

    def _layers(self) -> tuple[str, ...] | None:
        """The kind of each layer, where the file says so."""
        unturned = self.known.get("unturned")
        count = self.fields.get("num_hidden_layers")
        if unturned == "no_rope_layers":
            turned = list(self.fields.get("no_rope_layers") or ())
            every = self.fields.get("no_rope_layer_interval", 4)
            if not turned and count:
                turned = [int((layer + 1) % every != 0) for layer in range(count)]
            return tuple("turned" if each else "not_turned" for each in turned) or None
        if unturned == "cross_attention_layers" and unturned in self.fields and count:
            crossed = self.fields[unturned]
            return tuple("cross_attention" if n in crossed else "self_attention" for n in range(count))
        if "layer_rope_theta" in self.fields:
            return tuple(
                f"base {theta:g}" if theta else "not_turned" for theta in self.fields["layer_rope_theta"]
            )
        if "layer_types" in self.fields:
            return tuple(map(str, self.fields["layer_types"]))[:count]
        if isinstance(windows := self.fields.get("hybrid_layer_pattern"), list):
            return tuple("sliding_attention" if each else "full_attention" for each in windows)[:count]
        every = self.fields.get("sliding_window_pattern", self.fields.get("_sliding_window_pattern"))
        if isinstance(every, int) and count:
            return tuple("sliding_attention" if (n + 1) % every else "full_attention" for n in range(count))
        every = self.fields.get("global_attn_every_n_layers")
        if every and count:
            return tuple("sliding_attention" if n % every else "full_attention" for n in range(count))
        return None

    # --- One kind ---

    def _width(self, kind: str) -> int:
        """Of a head, or of its slice with positions."""
        if "qk_rope_head_dim" in self.fields:
            return int(self.fields["qk_rope_head_dim"])
        if kind == "full_attention" and "global_head_dim" in self.fields:
            return int(self.fields["global_head_dim"])
        types = self.fields.get("layer_types", ())
        for layer, own in self.fields.get("per_layer_config", {}).items():
            if "head_dim" in own and int(layer) < len(types) and types[int(layer)] == kind:
                return int(own["head_dim"])
        usual = self.known.get("head_dim", "").split()
        if kind == "full_attention" and len(usual) > 1:
            return int(usual[1])
        twice = usual == ["twice"]  # Zamba2, whose kv_channels are something else
        for name in ("head_dim", "attention_head_dim", *["kv_channels"] * (not twice)):
            if name in self.fields:
                return int(self.fields[name])
        if usual and not twice:
            return int(usual[0])
        sizes = [
            self.fields[name]
            for name in ("embed_dim", "hidden_size", "d_model", "n_embd")
            if name in self.fields
        ]
        heads = [self.fields[name] for name in _HEADS if name in self.fields]
        if not sizes and not heads and self.known.get("width"):
            return int(self.known["width"])
        if not sizes or not heads:
            raise ValueError("config does not say how wide a head is: add head_dim to it")
        return (1 + twice) * int(sizes[0]) // int(heads[0])

    def _rotation(self, kind: str, parameters: dict[str, Any] | None) -> LayerRotation:
        dim = self._width(kind)
        latent = {"qk_nope_head_dim", "qk_rope_head_dim"} <= self.fields.keys()
        head = int(self.fields["qk_nope_head_dim"]) + dim if latent else None
        softmax, log_scale = 1.0, self._log_scale(parameters)
        if parameters is None:
            return LayerRotation(None, 1.0, self.layout, dim, 0, softmax, log_scale, math.nan, "none", head)
        default = self.known.get("scaling", "") or "default"
        given = parameters.get("rope_type", parameters.get("type"))
        if given is None and default not in ("default", "by layer") and not default.startswith("axial"):
            raise ValueError(
                f"the class of {self.model} has scaling {default!r} of its own: add rope_parameters to config"
            )
        method = str(given or "default")
        if default.startswith("axial"):
            if method not in ("default", "axial"):
                raise ValueError(f"rope_type of {self.model} must be 'axial', got {method!r}")
            method = "axial"
        method = {"mrope": "default", "su": "longrope"}.get(method, method)
        base = parameters.get("rope_theta")
        if base is None:
            raise ValueError(
                f"config does not say the base of {self.model}: add rope_theta, as in the model's code"
            )
        base = number("rope_theta", base, above=0)
        share = number("partial_rotary_factor", parameters.get("partial_rotary_factor", 1.0))
        if method == "default" and "default" in self.known.get("unread", "").split():
            raise ValueError(
                f"rope_type of {self.model} must be another than 'default', for which its code makes frequencies for "
                f"more columns than the {dim} of qk_rope_head_dim: no model of transformers runs with it"
            )
        if "qk_rope_head_dim" in self.fields:  # all of these columns are turned
            of = int(int(self.fields.get("head_dim") or dim) * share)
            if method != "default" and "partial_rotary_factor" in parameters and of != dim:
                raise ValueError(
                    f"partial_rotary_factor must leave the {dim} columns of qk_rope_head_dim, got {share:g}, "
                    f"which makes frequencies for {of}: no model of transformers runs with it, remove it"
                )
            share = 1.0
        rotary_dim = dim if method in ("proportional", "axial") else int(dim * share)
        if rotary_dim % 2 or not 0 < rotary_dim <= dim:
            raise ValueError(f"the columns that are turned must be even and at most {dim}, got {rotary_dim}")
        if self.known.get("softmax") == "mscale" and parameters.get("mscale_all_dim"):
            growth = yarn_attention_factor(self._needed(method, parameters, "factor")) - 1
            softmax = (1 + growth * float(parameters["mscale_all_dim"])) ** 2
        frequencies, scale = self._frequencies(method, rotary_dim, share, base, parameters)
        if "mrope_section" in parameters or self.known.get("mrope"):
            frequencies = self._axes(frequencies, rotary_dim, parameters)
        if self.known.get("turns_back"):
            frequencies = -frequencies
        return LayerRotation(
            frequencies, scale, self.layout, dim, rotary_dim, softmax, log_scale, base, method, head
        )

    def _log_scale(self, parameters: dict[str, Any] | None) -> tuple[float, int, int] | None:
        tuned = self.fields.get("attn_temperature_tuning", self.known.get("softmax") == "temperature")
        if tuned and parameters is None:
            return float(self.fields.get("attn_scale", 0.1)), int(self.fields.get("floor_scale", 8192)), 1
        beta = (parameters or {}).get("llama_4_scaling_beta")
        if beta:
            return (
                float(beta),
                int(self._needed("llama_4_scaling_beta", parameters, "original_max_position_embeddings")),
                0,
            )
        return None

    def _needed(self, method: str, parameters: Mapping[str, Any] | None, name: str) -> Any:
        if not parameters or name not in parameters:
            raise ValueError(f"rope_type {method!r} needs {name}: add it to config")
        return parameters[name]

    def _frequencies(
        self, method: str, dim: int, share: float, base: float, parameters: dict[str, Any]
    ) -> tuple[np.ndarray, float]:
        """Frequencies of a line, and the factor of cosines and sines."""

        def needed(name: str) -> Any:
            return self._needed(method, parameters, name)

        def trained() -> int:
            if "original_max_position_embeddings" in parameters:
                return int(parameters["original_max_position_embeddings"])
            raise ValueError(
                f"rope_type {method!r} needs original_max_position_embeddings, the trained length: add it to config; "
                "transformers would take max_position_embeddings, which may have been made longer already"
            )

        if method == "default":
            return sinusoidal_frequencies(dim, base), 1.0
        if method == "axial":
            omega = axial_frequencies(dim, 2, base=base)
            order = self.known.get("scaling")
            if order == "axial_alternate":  # the axes take the frequencies of a line in turn
                line = sinusoidal_frequencies(dim, base)
                omega = np.where(omega != 0, np.concatenate([line[0::2], line[1::2]]), 0.0)
            elif order == "axial_columns_first":
                omega = omega[::-1].copy()
            elif order == "axial_interleaved":  # the column's pair, then the row's, of each frequency
                omega = omega[::-1].reshape(2, 2, -1).swapaxes(1, 2).reshape(2, -1)
            return omega, 1.0
        if method == "linear":
            return linear_frequencies(dim, needed("factor"), base=base), 1.0
        if method == "proportional":
            return proportional_frequencies(dim, share, factor=parameters.get("factor", 1.0), base=base), 1.0
        if method == "llama3":
            low, high = needed("low_freq_factor"), needed("high_freq_factor")
            return (
                llama3_frequencies(
                    dim,
                    needed("factor"),
                    original_length=trained(),
                    low_freq_factor=low,
                    high_freq_factor=high,
                    base=base,
                ),
                1.0,
            )
        if method == "yarn":
            factor = needed("factor")
            mscales = parameters.get("mscale"), parameters.get("mscale_all_dim")
            both = {"mscale": mscales[0], "mscale_all_dim": mscales[1]} if all(mscales) else {}
            return (
                yarn_frequencies(
                    dim, factor, original_length=trained(), base=base, truncate=parameters.get("truncate", True),
                    beta_fast=parameters.get("beta_fast") or 32.0, beta_slow=parameters.get("beta_slow") or 1.0,
                ),
                float(parameters.get("attention_factor", yarn_attention_factor(factor, **both))),
            )  # fmt: skip
        if method == "dynamic" and "alpha" in parameters:
            return ntk_frequencies(dim, parameters["alpha"], base=base), 1.0
        if method in ("dynamic", "longrope"):
            if self.length is None:
                raise ValueError(
                    f"rope_type {method!r} depends on the present length: pass length, in tokens"
                )
            limit = self._limit()
            if method == "dynamic":
                original = int(limit or trained())
                return dynamic_ntk_frequencies(
                    dim, needed("factor"), self.length, original_length=original, base=base
                ), 1.0
            original = trained()
            omega = longrope_frequencies(
                dim,
                needed("short_factor"),
                needed("long_factor"),
                self.length,
                original_length=original,
                base=base,
            )
            factor = parameters.get("factor") or (limit / original if limit else 1.0)
            usual = longrope_attention_factor(factor, original_length=original)
            return omega, float(parameters.get("attention_factor", usual))
        raise ValueError(f"rope_type {method!r} is not known to posenc; it knows {', '.join(_METHODS)}")

    def _axes(self, line: np.ndarray, dim: int, parameters: dict[str, Any]) -> np.ndarray:
        """The frequencies of a line, each given to its axis."""
        *sections, last = (self.known.get("mrope") or "0").split()
        interleaved = last == "interleaved" or bool(parameters.get("mrope_interleaved"))
        sections += [last] * (last != "interleaved")
        given = parameters.get("mrope_section", list(map(int, sections)))
        axes = mrope_frequencies(dim, given, interleaved=interleaved)
        return np.where(axes != 0, line, 0.0)


_HEADS = ("num_attention_heads", "num_heads", "n_heads", "n_head", "decoder_num_attention_heads")
_METHODS = ("default", "linear", "dynamic", "yarn", "llama3", "longrope", "proportional", "axial")
_LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len", "model_max_length")
_WITHOUT_ATTENTION = ("linear_attention", "conv", "mamba", "recurrent")


def described(found: RotaryConfig) -> Iterator[str]:
    """Lines that say what a configuration means."""
    kinds = "1 kind of layer" if len(found.kinds) == 1 else f"{len(found.kinds)} kinds of layers"
    yield f"{found.model_type}: {kinds}"
    for kind, rotation in found.kinds.items():
        yield (
            "all layers with softmax attention" if kind == "all" else f"{kind}{_places(kind, found.layers)}"
        )
        if rotation.frequencies is None:
            yield "    positions turn nothing"
        else:
            yield from _told(rotation, rotation.frequencies, found)
        if rotation.softmax_factor != 1:
            yield f"    scores are multiplied by {rotation.softmax_factor:.4g} besides 1/√width of the whole head"
        if rotation.log_scale:
            beta, n, first = rotation.log_scale
            yield f"    queries at position t are multiplied by 1 + {beta:g} ln(1 + ⌊(t + {first})/{n}⌋)"


_STRETCHED = {
    "default": "not stretched",
    "axial": "not stretched",
    "linear": "stretched by linear interpolation",
    "dynamic": "stretched by dynamic NTK",
    "yarn": "stretched by YaRN",
    "llama3": "stretched by Llama 3's formula",
    "longrope": "stretched by LongRoPE",
    "proportional": "proportional: slow pairs are not turned",
}


def _told(rotation: LayerRotation, frequencies: np.ndarray, found: RotaryConfig) -> Iterator[str]:
    """What turned layers do, in lines."""
    omega = np.abs(frequencies.max(axis=0) if frequencies.ndim == 2 else frequencies)
    waves = np.sort(2 * math.pi / omega[omega != 0])
    columns, half = 2 * len(waves), rotation.rotary_dim // 2
    whole = f"{rotation.dim} columns of a head"
    if rotation.head_dim is not None:
        whole = f"{rotation.dim} columns that hold positions in a head of {rotation.head_dim}"
    yield (
        f"    all {whole} are turned"
        if columns == rotation.dim
        else f"    {columns} of the {whole} are turned"
    )
    partner = f"i + {half}" if rotation.layout == "half" else "i + 1, for even i"
    yield f"    layout {rotation.layout}: column i is turned with column {partner}"
    yield f"    base {rotation.base:,.10g}, {_STRETCHED.get(rotation.method, rotation.method)}"
    if rotation.scale != 1:
        yield f"    cosines and sines are multiplied by {rotation.scale:.4g}"
    fastest, slowest = f"{waves[0]:,.1f}", f"{waves[-1]:,.0f}"
    yield f"    the fastest pair turns once in {fastest} positions, the slowest of {len(waves)} in {slowest}"
    if found.trained_length and rotation.method != "axial":
        plain = sinusoidal_frequencies(rotation.rotary_dim, rotation.base)[: len(waves)]
        full = int((2 * math.pi / plain <= found.trained_length).sum())
        length = f"the {found.trained_length:,} positions"
        if found.trained_length != found.limit:
            length += " of the model before it was stretched"
        else:
            stretched = rotation.method not in ("default", "proportional")
            length += " that the file allows" + ", counted before the stretching" * stretched
        yield f"    {full} of {len(waves)} pairs make a whole turn in {length}"
    if frequencies.ndim == 2:
        yield f"    each pair belongs to one of {len(frequencies)} coordinates"


def _places(kind: str, layers: tuple[str, ...] | None) -> str:
    """How many layers are of a kind, and the first of them, counted from 0."""
    places = [str(n) for n, each in enumerate(layers or ()) if each == kind]
    if not places:
        return ""
    some = ", ".join([*places[:7], *["…"] * (len(places) > 7)])
    return f": {len(places)} of {len(layers or ())} layers, {some}"
