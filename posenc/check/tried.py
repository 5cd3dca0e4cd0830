"""What the checks find in models and layers of other libraries, as they come: `python -m posenc.check.tried` makes the
file of results that the page quotes. Needs transformers, x-transformers and rotary-embedding-torch.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module, metadata
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from posenc.check.every import check_all
from posenc.check.report import Report

__all__ = ["TINY", "tiny_model", "tried_models", "tried_results", "tried_row", "tried_table"]

FILE = Path(__file__).with_name("tried.json")
LIBRARIES = "transformers", "x-transformers", "rotary-embedding-torch"

# Fields of configurations. Everything else is the default of the model's class in transformers.
SIZES = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
ENDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
USUAL = SIZES | ENDS | {"intermediate_size": 48, "num_key_value_heads": 2, "max_position_embeddings": 512}
ENCODER = SIZES | {"intermediate_size": 48, "max_position_embeddings": 512}
WINDOW = USUAL | {"head_dim": 8, "sliding_window": 8}
MLA = {
    "kv_lora_rank": 8, "q_lora_rank": 8, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
    "num_key_value_heads": 4, "moe_intermediate_size": 16, "n_routed_experts": 4, "n_group": 1, "topk_group": 1,
    "num_experts_per_tok": 2, "first_k_dense_replace": 1,
}  # fmt: skip
TINY: dict[str, dict[str, Any]] = {
    "gpt2": {"vocab_size": 97, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 512},
    "opt": ENCODER | {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "bert": ENCODER,
    "roberta": ENCODER | {"max_position_embeddings": 514, "pad_token_id": 1},
    "modernbert": USUAL | {"local_attention": 8},
    "llama": USUAL,
    "gemma3_text": WINDOW,
    "mistral": WINDOW,
    "cohere2": WINDOW,
    "gpt_oss": WINDOW | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3": USUAL | {"head_dim": 8},
    "glm4": USUAL | {"head_dim": 8},
    "phi3": USUAL | {"head_dim": 8},
    "olmo2": USUAL,
    "smollm3": USUAL,
    "gpt_neox": ENCODER,
    "deepseek_v3": USUAL | MLA,
    "bloom": {"vocab_size": 97, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "mpt": {"vocab_size": 97, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 512},
    "falcon": ENCODER,
    "llama4_text": USUAL
    | {"head_dim": 8, "num_local_experts": 2, "intermediate_size_mlp": 48, "attention_chunk_size": 8}
    | {"num_hidden_layers": 4},
    "t5": ENDS | {"vocab_size": 97, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4},
    "bart": ENDS
    | {
        "vocab_size": 97,
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "max_position_embeddings": 512,
    }
    | {
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
    }
    | {"decoder_start_token_id": 2},
}
"""Sizes of tiny models of transformers, by model_type."""

# What x-transformers calls its ways; each with `dim_head` so wide that RoPE turns every column.
WAYS: dict[str, dict[str, Any]] = {
    "learned table": {},
    "rotary_pos_emb": {"rotary_pos_emb": True},
    "rotary_xpos": {"rotary_xpos": True},
    "rel_pos_bias": {"rel_pos_bias": True},
    "alibi_pos_bias": {"alibi_pos_bias": True},
}


def tiny_model(name: str, **fields: Any) -> Any:
    """A model of transformers with random weights, in evaluation mode.

    Args:
        name: its model_type, one of TINY.
        fields: of its configuration, in place of those of TINY.

    Raises:
        ValueError: no such name.
    """
    if name not in TINY:
        raise ValueError(f"name must be one of {list(TINY)}, got {name!r}")

    def make() -> Any:
        transformers = import_module("transformers")
        use = "MaskedLM" if "bert" in name else "Seq2SeqLM" if name in ("t5", "bart") else "CausalLM"
        kind = getattr(transformers, f"AutoModelFor{use}")
        config = transformers.AutoConfig.for_model(name, **TINY[name] | fields)
        return kind.from_config(config, attn_implementation="eager")

    return _seeded(make)


class _Wrapped(nn.Module):
    """A decoder of x-transformers, called as the checks call models."""

    def __init__(self, way: dict[str, Any]) -> None:
        super().__init__()
        library = import_module("x_transformers")
        layers = library.Decoder(dim=32, depth=2, heads=2, attn_dim_head=32, rotary_emb_dim=32, **way)
        self.net = library.TransformerWrapper(
            num_tokens=97, max_seq_len=512, attn_layers=layers, use_abs_pos_emb=not way
        )

    def forward(
        self, ids: Tensor, attention_mask: Tensor | None = None, cache: Any = None, **more: Any
    ) -> tuple[Tensor, Any]:
        mask = None if attention_mask is None else attention_mask.bool()
        more |= {"input_not_include_cache": True, "cache_age": ids.shape[1]}
        logits, found = self.net(ids, mask=mask, cache=cache, return_intermediates=True, **more)
        return logits, found


class _WithTable(_Wrapped):
    """The same with a learned table, whose rows can be asked for."""

    def forward(
        self,
        ids: Tensor,
        attention_mask: Tensor | None = None,
        cache: Any = None,
        positions: Tensor | None = None,
        **more: Any,
    ) -> tuple[Tensor, Any]:
        return super().forward(ids, attention_mask, cache, pos=positions)


class _Around(nn.Module):
    """A decoder of one layer around a rotary embedding of a library; turn(layer, x, positions) gives x turned."""

    def __init__(self, layer: nn.Module, turn: Callable[[nn.Module, Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.embedding, self.in_proj, self.out = nn.Embedding(97, 32), nn.Linear(32, 96), nn.Linear(32, 97)
        self.layer, self._turn = layer, turn

    def forward(self, ids: Tensor, positions: Tensor | None = None) -> Tensor:
        n = ids.shape[1]
        places = torch.arange(n, device=ids.device) if positions is None else positions[0]
        q, k, v = self.in_proj(self.embedding(ids))[:, None].chunk(3, dim=-1)
        q, k = (self._turn(self.layer, x, places) for x in (q, k))
        x = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(torch.tanh(x[:, 0]))


def _turned_by_lucidrains(layer: Any, x: Tensor, places: Tensor) -> Tensor:
    return import_module("rotary_embedding_torch").apply_rotary_emb(layer(places), x)


def _turned_by_x(layer: Any, x: Tensor, places: Tensor) -> Tensor:
    freqs, scale = layer(places)
    return import_module("x_transformers.x_transformers").apply_rotary_pos_emb(x, freqs, scale)


def tried_models(*, but: str = "") -> Iterator[tuple[str, str, Any]]:
    """Library, name, and the model; those of one library can be left out."""
    for name in TINY if but != "transformers" else ():
        yield "transformers", name, tiny_model(name)
    for name, way in WAYS.items():
        yield "x-transformers", name, _seeded(partial(_Wrapped if way else _WithTable, way))
    x = import_module("x_transformers.x_transformers").RotaryEmbedding
    yield "x-transformers", "RotaryEmbedding", _seeded(lambda: _Around(x(32), _turned_by_x))
    rotary = import_module("rotary_embedding_torch").RotaryEmbedding
    yield (
        "rotary-embedding-torch",
        "RotaryEmbedding",
        _seeded(lambda: _Around(rotary(32), _turned_by_lucidrains)),
    )


def _seeded(make: Callable[[], Any]) -> Any:
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return make().eval()


def tried_row(report: Report) -> dict[str, Any]:
    """What of a report goes into the file: counts, and what is not as one pass has it."""
    odd = [each for each in report.findings if each.verdict in ("FAULT", "note")]
    return {
        "ok": sum(each.verdict == "ok" for each in report.findings),
        "left out": sum(each.verdict == "left out" for each in report.findings),
        "found": [[each.verdict, each.what] for each in odd],
    }


def _made() -> dict[str, Any]:
    """Run all checks on all models; versions, and a row for each."""
    versions = {name: metadata.version(name).partition("+")[0] for name in ("torch", *LIBRARIES)}
    rows = [
        {"library": of, "model": name, **tried_row(check_all(model))} for of, name, model in tried_models()
    ]
    return {"versions": versions, "rows": rows}


@cache
def tried_results() -> dict[str, Any]:
    """The file: versions of the libraries, and a row for each model."""
    found: dict[str, Any] = json.loads(
        files("posenc.check").joinpath("tried.json").read_text(encoding="utf-8")
    )
    return found


_WORDS = {
    "en": {"": "Model | Library | Equal | Left out | Notes | Faults", ",": ", "},
    "zh": {
        "": "模型 | 库 | 相同 | 没有做 | 提示 | 错误",
        ",": "、",
        "pads on the left": "左边的填充",
        "encoder: pads on the left": "编码器：左边的填充",
        "decoder: pads on the left": "解码器：左边的填充",
        "first position": "第一个位置",
        "who sees whom": "谁看见谁",
        "shift": "平移",
        "in bfloat16": "bfloat16 下",
        "in float16": "float16 下",
        "meta device and to_empty": "meta 设备和 to_empty",
    },
}


def tried_table(*, lang: Literal["en", "zh"] = "en") -> str:
    """The results as a Markdown table: how many comparisons were equal or left out, and which gave a note or a fault.

    Args:
        lang: "en" or "zh", the language of its words.

    >>> tried_table().splitlines()[2]
    '| `gpt2` | transformers 5.23.0 | 21 | 2 | pads on the left | – |'
    """
    if lang not in _WORDS:
        raise ValueError(f'lang must be "en" or "zh", got {lang!r}')
    words, results = _WORDS[lang], tried_results()
    rows = [words[""], " | ".join(["---"] * 6)]
    for row in results["rows"]:
        cells = [f"`{row['model']}`", f"{row['library']} {results['versions'][row['library']]}"]
        cells += [str(row["ok"]), str(row["left out"])]
        for verdict in ("note", "FAULT"):
            found = [words.get(what, what) for kind, what in row["found"] if kind == verdict]
            cells.append(words[","].join(found) or "–")
        rows.append(" | ".join(cells))
    return "\n".join(f"| {row} |" for row in rows)


def _text(results: dict[str, Any]) -> str:
    """JSON with one row on each line."""
    rows = ",\n".join(f"  {json.dumps(row)}" for row in results["rows"])
    return f'{{"versions": {json.dumps(results["versions"])}, "rows": [\n{rows}\n]}}'


if __name__ == "__main__":
    FILE.write_text(_text(_made()) + "\n", encoding="utf-8")
