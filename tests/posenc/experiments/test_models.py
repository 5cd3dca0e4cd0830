"""The table of released models: facts with a source each, words in two languages, and what is computed of them."""

import dataclasses
import functools
import hashlib
import json
import math
import re

import numpy as np
import pytest
import torch

from posenc.experiments import ReleasedModel, model_table, released_models, rotations
from posenc.rotary import from_config
from tests.posenc.refusals import refused

rows = functools.cache(lambda: model_table().splitlines())


def test_each_model_has_a_name_a_source_and_fields() -> None:
    models = released_models()
    assert len({model.name for model in models}) == len(models) >= 30
    assert [model.year for model in models] == sorted(model.year for model in models)
    for model in models:
        assert model.source.startswith("https://"), model
        assert model.evidence in ("class", "file", "paper"), model
        assert (model.config is None) == (model.evidence == "paper"), model


def test_no_fact_changes_by_mistake() -> None:
    """Some facts neither show in the table nor are defaults of a class, such as a window that a file names."""
    facts = json.dumps([dataclasses.asdict(model) for model in released_models()], sort_keys=True)
    digest = hashlib.sha256(facts.encode()).hexdigest()[:16]
    assert digest == "443e90a31c699e4d", (
        "a fact has changed: compare it with its source, then write its digest here"
    )


@pytest.mark.parametrize(
    "model", [each for each in released_models() if each.way == "rope"], ids=lambda each: each.name
)
def test_what_is_computed_follows_from_its_definition(model: ReleasedModel) -> None:
    cells = [line.split(" | ") for line in rows() if line.startswith(f"| [{model.name}](")]
    for cell, (kind, rotation) in zip(cells, rotations(model.name).items(), strict=True):
        if rotation.frequencies is None:
            assert (cell[2], set(cell[4:])) == ("no position", {"–", "– |"}), kind
            continue
        omega = np.atleast_2d(rotation.frequencies).max(axis=0)
        omega = omega[omega > 0]
        assert cell[8] == f"{2 * math.pi / omega.max():,.1f}–{2 * math.pi / omega.min():,.0f}"
        if cell[10] != "–":
            k = int(cell[10].replace(",", ""))
            assert (
                np.cos(k * omega).sum() < 0 <= min(np.cos(n * omega).sum() for n in range(max(k - 50, 1), k))
            )


@pytest.mark.parametrize(
    "model", [each for each in released_models() if each.way == "rope"], ids=lambda each: each.name
)
def test_the_error_in_bfloat16_is_that_of_the_worst_position(model: ReleasedModel) -> None:
    limit = from_config({"model_type": model.model_type, **(model.config or {})}).limit
    assert limit is not None
    positions = torch.arange(limit, dtype=torch.float64)
    error = (positions.bfloat16().double() - positions).abs().max().item()
    cells = [line.split(" | ")[-1] for line in rows() if line.startswith(f"| [{model.name}](")]
    assert {cell.strip("| ") for cell in cells} - {"–"} == {f"{error:,.0f}"}


def test_the_languages_have_the_same_rows() -> None:
    english, chinese = (
        [re.findall(r"#row-[\w-]+|\d[\d,.]*", line) for line in model_table(lang=lang).splitlines()[2:]]
        for lang in ("en", "zh")
    )
    assert english == chinese


test_refusals = refused([
    (lambda: rotations("GPT-2"), ValueError, "name must be a model with RoPE"),
    (lambda: rotations("nobody"), ValueError, "'nobody'"),
    (lambda: model_table(lang="fr"), ValueError, 'lang must be "en" or "zh"'),  # type: ignore[arg-type]
])  # fmt: skip
