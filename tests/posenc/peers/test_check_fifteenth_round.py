"""The fifteenth round: two good models that raised an alarm, and positions that are not read."""

from typing import Any

import pytest
import torch

import posenc.check
from tests.peers import modeling, peer

pytestmark = pytest.mark.slow
SMALL: dict[str, Any] = {
    "vocab_size": 128, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
TOWER: dict[str, Any] = {
    "depth": 2, "hidden_size": 32, "intermediate_size": 48, "num_heads": 2, "out_hidden_size": 64, "patch_size": 4,
    "num_position_embeddings": 64, "deepstack_visual_indexes": [0],
}  # fmt: skip


def model(kind: str, **fields: Any) -> Any:
    library = peer("transformers")
    torch.manual_seed(7)
    made = getattr(library, kind)
    return made(made.config_class(**fields)).eval()


def reads_pictures() -> Any:
    rope = {
        "rope_theta": 10000.0,
        "rope_type": "default",
        "mrope_section": [4, 2, 2],
        "mrope_interleaved": True,
    }
    return model(
        "Qwen3VLForConditionalGeneration",
        text_config=SMALL | {"max_position_embeddings": 256, "rope_parameters": rope},
        vision_config=TOWER,
        image_token_id=100, video_token_id=101, vision_start_token_id=102, vision_end_token_id=103,
    )  # fmt: skip


def grows() -> Any:
    rope = {
        "rope_theta": 1e6, "rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 32, "mscale": 1.0,
        "mscale_all_dim": 1.0, "beta_fast": 32.0, "beta_slow": 1.0, "llama_4_scaling_beta": 0.1,
    }  # fmt: skip
    return model(
        "Ministral3ForCausalLM",
        sliding_window=None,
        max_position_embeddings=512,
        rope_parameters=rope,
        **SMALL,
    )


def faults(model: Any) -> list[tuple[str, str]]:
    return [(found.what, found.look) for found in posenc.check.all(model).faults]


def test_a_tower_for_pictures_has_frequencies_of_its_own() -> None:
    assert faults(reads_pictures()) == []
    wrong = reads_pictures()
    rotary = wrong.model.language_model.rotary_emb
    rotary.inv_freq = rotary.original_inv_freq = 5000.0 ** -(torch.arange(8) / 8)
    what, look = faults(wrong)[0]
    assert what == "frequencies"
    assert "language_model.rotary_emb.inv_freq: the frequencies are those of base 5000" in look


def test_positions_that_are_not_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = modeling("qwen3_vl").Qwen3VLTextModel
    usual = text.forward
    monkeypatch.setattr(
        text, "forward", lambda self, *a, **more: usual(self, *a, **more | {"position_ids": None})
    )
    what, look = faults(reads_pictures())[0]
    assert (what, look.partition(",")[0]) == ("shift", "position_ids: they are not read")


def test_positions_that_are_read_with_a_mask_alone_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    text = modeling("smollm3").SmolLM3Model
    usual = text.forward

    def forward(
        self: Any, *given: Any, attention_mask: Any = None, position_ids: Any = None, **more: Any
    ) -> Any:
        places = position_ids if attention_mask is not None else None
        return usual(self, *given, attention_mask=attention_mask, position_ids=places, **more)

    monkeypatch.setattr(text, "forward", forward)
    what, look = faults(model("SmolLM3ForCausalLM", **SMALL))[0]
    assert (what, look.partition(",")[0]) == ("shift", "position_ids: they are not read")


def test_queries_that_grow_with_positions_are_no_fault() -> None:
    assert faults(grows()) == []
    wrong = grows()
    wrong.model.rotary_emb.attention_scaling = 1.277
    assert "a factor 1.277, of which the configuration says nothing" in faults(wrong)[0][1]
