"""posenc.check leaves models of others in peace, and says of them what the page's table says."""

import pytest

import posenc.check
from posenc.check.tried import TINY, tiny_model, tried_models, tried_results, tried_row
from tests.peers import peer

peer("transformers")
ROWS = {(row.pop("library"), row.pop("model")): row for row in map(dict, tried_results()["rows"])}


@pytest.mark.parametrize("name", TINY)
def test_a_model_of_transformers_is_left_in_peace(name: str) -> None:
    report = posenc.check.all(tiny_model(name))
    assert report.ok, report
    assert tried_row(report) == ROWS["transformers", name], report


def test_layers_of_other_libraries_are_left_in_peace() -> None:
    for name in ("x_transformers", "rotary_embedding_torch"):
        peer(name)
    for library, name, model in tried_models(but="transformers"):
        report = posenc.check.all(model)
        assert report.ok, report
        assert tried_row(report) == ROWS[library, name], report
