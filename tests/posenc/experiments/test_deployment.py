"""What each layer did when it was compiled, exported and saved: the file says it, and a new try gives the same."""

import shutil
from typing import Any

import pytest

import posenc.nn
from posenc.experiments.deployment import WAYS, try_layer
from posenc.experiments.results import deployment_results, deployment_table
from tests.peers import peer
from tests.posenc.refusals import refused

RESULTS = deployment_results()
LIMITS = {"eager": 1e-5, "compiled": 1e-5, "exported": 1e-5, "onnx": 1e-5, "autocast": 0.1}
quiet = pytest.mark.filterwarnings("ignore")  # of torch's exporters


def test_the_file_has_every_layer_in_every_way_and_one_that_talks_to_others() -> None:
    assert {name.partition(",")[0] for name in RESULTS} == set(posenc.nn.__all__)
    for name, ways in RESULTS.items():
        assert tuple(ways) == WAYS
        failed = {way for way, result in ways.items() if isinstance(result, str)}
        assert failed == ({"graphs", "compiled", "exported", "onnx"} if name == "RingAttention" else set())
        right(ways)


def right(ways: dict[str, Any]) -> None:
    for way, result in ways.items():
        if way in LIMITS and not isinstance(result, str):
            assert result <= LIMITS[way], way
    assert ways["graphs"] == 1 or isinstance(ways["graphs"], str)


@quiet
def test_a_new_try_gives_the_same() -> None:
    again("RotaryEmbedding", ("eager", "graphs", "exported", "autocast", "saved"))


@quiet
@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_every_new_try_gives_the_same(name: str) -> None:
    peer("onnxscript"), peer("onnxruntime")
    again(name, tuple(way for way in WAYS if way != "compiled" or shutil.which("g++")))


def again(name: str, ways: tuple[str, ...]) -> None:
    for way in ways:
        if isinstance(RESULTS[name][way], str):
            with pytest.raises(Exception, match=r"\w"):  # of whatever kind
                try_layer(name, way)
        elif way in LIMITS:
            assert try_layer(name, way) <= LIMITS[way], way  # type: ignore[operator]
        else:
            assert try_layer(name, way) == RESULTS[name][way]


def test_the_languages_have_the_same_rows() -> None:
    english, chinese = (deployment_table(lang=lang).splitlines()[1:] for lang in ("en", "zh"))
    assert [row.replace("no", "否") for row in english] == [row.replace("no", "否") for row in chinese]


test_refusals = refused([
    (lambda: try_layer("Rotary", "eager"), ValueError, "name must be one of .*'Rotary'"),
    (lambda: try_layer("T5Bias", "traced"), ValueError, "way must be one of .*'traced'"),
    (lambda: deployment_table(lang="fr"), ValueError, 'lang must be "en" or "zh"'),  # type: ignore[arg-type]
])  # fmt: skip
