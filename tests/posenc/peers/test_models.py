"""The facts of released models are those of transformers: class defaults, and frequencies from the same fields."""

import json
from dataclasses import replace
from typing import Any

import pytest

from posenc.experiments import ReleasedModel, released_models
from tests.peers import peer

peer("transformers")  # before what cannot be imported without it

from tests.posenc.peers.test_from_config import OLDEST, compared  # noqa: E402
from tests.posenc.peers.theirs import MAPPING  # noqa: E402

MODELS = [model for model in released_models() if model.model_type]


def held(model: ReleasedModel) -> None:
    """Facts of the class are its defaults, and what turns is what transformers turns."""
    given: dict[str, Any] = json.loads(json.dumps(model.config))
    default = MAPPING[model.model_type]()
    for name, value in given.items():
        if model.evidence == "class" and name not in (
            "head_dim",
            "rope_parameters",
            "rotary_dim",
            "rope_theta",
        ):
            assert getattr(default, name) == value, (model.name, name)
        if model.evidence == "class" and name == "rope_parameters":
            usual = default.rope_parameters
            assert {key: usual[key] for key in value if key in usual} == {
                k: v for k, v in value.items() if k in usual
            }
    if model.way == "rope" and model.model_type not in OLDEST:
        config = MAPPING[model.model_type].from_dict(given)
        compared(str(model.model_type), config, {"model_type": model.model_type, **given})


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_facts_are_those_of_transformers(model: ReleasedModel) -> None:
    held(model)


CHANGED = [("GPT-2", "n_positions", 1025), ("gpt-oss", "sliding_window", 129)]


@pytest.mark.parametrize(("name", "field", "value"), CHANGED)
def test_a_changed_fact_falls(name: str, field: str, value: int) -> None:
    (model,) = [each for each in MODELS if each.name == name]
    with pytest.raises(AssertionError):
        held(replace(model, config={**(model.config or {}), field: value}))
