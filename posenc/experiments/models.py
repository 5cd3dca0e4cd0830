"""Released models: what each does about position, from facts with a source, and what follows from them, computed.

The facts lie in models.json: name, year, source, the way in, the section of the book that explains it, and the fields
of the configuration that matter, as Hugging Face's transformers has them. `evidence` says where the fields were seen:
"class", the defaults of the model's class in transformers; "file", a released configuration; "paper".
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import numpy as np

from posenc.extrapolation import first_negative
from posenc.rotary import from_config
from posenc.rotary.config import LayerRotation
from posenc.sinusoidal import sinusoidal_frequencies

__all__ = ["ReleasedModel", "model_table", "released_models", "rotations"]


@dataclass(frozen=True)
class ReleasedModel:
    """The facts of one model. `config` has no model_type if the model's class is not in transformers.

    Source: the files that the models were released with, in this book models.md#table.
    """

    name: str
    year: int
    source: str
    evidence: Literal["class", "file", "paper"]
    way: Literal["rope", "sinusoidal", "learned", "buckets", "alibi"]
    section: str
    model_type: str | None = None
    config: dict[str, Any] | None = None


@cache
def released_models() -> tuple[ReleasedModel, ...]:
    """All models of the data file, by year.

    Returns:
        A `ReleasedModel` for each.

    >>> [model.name for model in released_models()[:3]]
    ['Transformer', 'BERT', 'GPT-2']

    Source: the files that the models were released with, in this book models.md#table.
    """
    text = files("posenc.experiments").joinpath("models.json").read_text(encoding="utf-8")
    return tuple(ReleasedModel(**row) for row in json.loads(text))


def rotations(name: str) -> dict[str, LayerRotation]:
    """What a model with RoPE turns, for each kind of layer, from its facts by `posenc.rotary.from_config`.

    Args:
        name: a name of `released_models`.

    Returns:
        A `posenc.rotary.LayerRotation` for each kind of layer.

    Raises:
        ValueError: no model has this name, or the model has no RoPE.

    >>> {kind: rotation.base for kind, rotation in rotations("Gemma 3").items()}
    {'sliding_attention': 10000.0, 'full_attention': 1000000.0}

    Source: the files that the models were released with, in this book models.md#patterns.
    """
    model = next((model for model in released_models() if model.name == name), None)
    if model is None or model.way != "rope":
        known = [model.name for model in released_models() if model.way == "rope"]
        raise ValueError(f"name must be a model with RoPE, one of {known}, got {name!r}")
    return from_config({"model_type": model.model_type, **(model.config or {})}).kinds


_HEAD = (
    "model",
    "year",
    "way",
    "layers",
    "layout",
    "turned",
    "base",
    "scaling",
    "waves",
    "round",
    "negative",
    "error",
)
_WORDS = {
    "en": {
        "model": "Model", "year": "Year", "way": "Way", "layers": "Layers", "layout": "Layout", "turned": "Turned",
        "base": "Base", "scaling": "Stretched", "waves": "Wavelengths", "round": "Round", "negative": "Below 0",
        "error": "bf16", "sinusoidal": "sinusoidal", "learned": "learned table", "buckets": "T5's buckets",
        "alibi": "ALiBi", "rope": "RoPE", "all": "all", "sliding_attention": "window", "full_attention": "full",
        "turned layers": "3 / 4", "not_turned": "1 / 4", "none": "no position", "default": "no",
        "interleaved": "interleaved", "half": "half",
    },
    "zh": {
        "model": "模型", "year": "年份", "way": "方法", "layers": "哪些层", "layout": "配对", "turned": "转动的列",
        "base": "底数", "scaling": "拉长", "waves": "波长", "round": "转满", "negative": "低于 0",
        "error": "bf16", "sinusoidal": "正弦", "learned": "可学习的表", "buckets": "T5 的桶",
        "alibi": "ALiBi", "rope": "RoPE", "all": "全部", "sliding_attention": "窗口", "full_attention": "全局",
        "turned layers": "3 / 4", "not_turned": "1 / 4", "none": "无位置", "default": "否",
        "interleaved": "交错", "half": "对半",
    },
}  # fmt: skip


def model_table(*, lang: Literal["en", "zh"] = "en") -> str:
    """A Markdown table with a row for each model, and for each kind of its layers; `#row-gemma-3-full`.

    Args:
        lang: "en" or "zh", the language of its words.

    Returns:
        Markdown.

    Raises:
        ValueError: lang is neither "en" nor "zh".

    >>> model_table().splitlines()[2].split(" | ")[0]
    '| [Transformer](sinusoidal.md){#row-transformer}'

    Source: the files that the models were released with, in this book models.md#table.
    """
    if lang not in _WORDS:
        raise ValueError(f'lang must be "en" or "zh", got {lang!r}')
    words = _WORDS[lang]
    head = [f"[{words[name]}](#asks-{name}){{#column-{name}}}" for name in _HEAD[1:]]
    rows = [[words["model"], *head], ["---"] * len(_HEAD)]
    for model in released_models():
        rows += _rows(model, words)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _rows(model: ReleasedModel, words: dict[str, str]) -> list[list[str]]:
    anchor = "row-" + model.name.lower().replace(" ", "-").replace(".", "-")
    dash = "–"
    if model.way != "rope":
        named = f"[{model.name}]({model.section}){{#{anchor}}}"
        return [[named, f"[{model.year}]({model.source})", words[model.way], words["all"], *[dash] * 8]]
    found = from_config({"model_type": model.model_type, **(model.config or {})})
    rows = []
    for kind, rotation in found.kinds.items():
        own = anchor + ("" if kind == "all" else f"-{kind.split('_')[0]}")
        row = [f"[{model.name}]({model.section}){{#{own}}}", f"[{model.year}]({model.source})"]
        layers = words["turned layers" if kind == "turned" else kind]
        if rotation.frequencies is None:
            rows.append([*row, words["none"], layers, *[dash] * 8])
            continue
        rows.append(
            [*row, words["rope"], layers, *_measured(rotation, found.trained_length, found.limit, words)]
        )
    return rows


def _measured(
    rotation: LayerRotation, trained: int | None, limit: int | None, words: dict[str, str]
) -> list[str]:
    assert rotation.frequencies is not None
    omega = rotation.frequencies.max(axis=0) if rotation.frequencies.ndim == 2 else rotation.frequencies
    turning = omega[omega != 0]
    waves = 2 * math.pi / turning
    usual = 2 * math.pi / sinusoidal_frequencies(rotation.rotary_dim, rotation.base)
    round_ = np.mean(usual[: len(turning)] <= trained) if trained else math.nan
    negative = first_negative(turning)
    error = math.nan
    if limit:
        below = 2 ** math.floor(math.log2(limit - 1))
        # From below on, half a step of 8 binary digits is below / 256, but the last position may not be so far.
        error = max(below / 512, min(below / 256, limit - 1 - below))
    return [
        words[rotation.layout],
        f"{2 * len(turning)} / {rotation.dim}",
        f"{rotation.base:,.0f}",
        words["default"] if rotation.method == "default" else rotation.method,
        f"{waves.min():,.1f}–{waves.max():,.0f}",
        f"{round_:.0%}",
        "–" if negative is None else f"{negative:,}",
        f"{error:,.0f}",
    ]
