"""posenc.rotary.from_config on configurations that nobody released: any scaling in any model type that takes it."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from posenc.rotary.config import from_config
from tests.peers import peer

peer("transformers")  # before what cannot be imported without it

from tests.posenc.peers.test_from_config import (  # noqa: E402
    ADDED,
    OLDEST,
    OTHER,
    REFUSED,
    TYPES,
    compared,
    default,
    line,
    older,
    reading,
)
from tests.posenc.peers.theirs import MAPPING, rotary_module  # noqa: E402

UNREAD = {name: row["unread"].split() for name, row in reading._model_types().items()}
NAMES = [
    name
    for name in TYPES
    if name not in {*REFUSED, *OTHER, *OLDEST, "molmo2_text"}  # it stretches some layers
    and "scaling" not in UNREAD[name]
]
# They say which columns turn, and for what.
KEPT = ("partial_rotary_factor", "mrope_section", "mrope_interleaved")
original = {"original_max_position_embeddings": st.sampled_from([2048, 4096, 32768])}
mscales = st.sampled_from(
    [{}, {"mscale": 1.0, "mscale_all_dim": 1.0}, {"mscale": 0.5, "mscale_all_dim": 0.707}]
)
SCALINGS: dict[str, Any] = {
    "default": st.just({}),
    "linear": st.just({}),
    "dynamic": st.just({}),
    "llama3": st.fixed_dictionaries(
        {**original, "low_freq_factor": st.just(1.0), "high_freq_factor": st.sampled_from([4.0, 8.0])}
    ),
    "longrope": st.fixed_dictionaries(original),
    "yarn": st.builds(
        lambda fixed, more: fixed | more,
        st.fixed_dictionaries(
            original,
            optional={
                "beta_fast": st.sampled_from([1, 16, 64]), "attention_factor": st.sampled_from([1.0, 1.3]),
                "truncate": st.booleans(),
            },
        ),
        mscales,
    ),
}  # fmt: skip


@pytest.mark.filterwarnings(
    "ignore"
)  # transformers warns of texts shorter than trained, and of a factor below 1
@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data(), st.sampled_from(NAMES), st.sampled_from(sorted(SCALINGS)), st.integers(100, 40_000))
def test_any_scaling_in_any_model_type(data: st.DataObject, name: str, method: str, length: int) -> None:
    usual: Any = getattr(default(name), "rope_parameters", None)
    assume(isinstance(usual, dict) and not any(isinstance(value, dict) for value in usual.values()))
    assume(usual.get("rope_type") in ("default", "yarn", "llama3"))
    assume(method != "default" or usual["rope_type"] == "default")  # a class that has a scaling of its own
    base, factor = st.sampled_from([1e4, 5e5, 123456.0]), st.sampled_from([1.5, 4.0, 32.0])
    drawn = {"rope_type": method, "rope_theta": data.draw(base)} | data.draw(SCALINGS[method])
    if method != "default":
        drawn["factor"] = data.draw(factor)
    if method == "longrope":
        pairs = next(iter(from_config(default(name)).kinds.values())).rotary_dim // 2
        drawn |= {
            "short_factor": [1 + 0.01 * n for n in range(pairs)],
            "long_factor": [1.0 + n for n in range(pairs)],
        }
    drawn |= {key: usual[key] for key in KEPT if key in usual}
    try:
        config = MAPPING[name](**ADDED.get(name, {}) | {"rope_parameters": drawn})
        theirs = rotary_module(config)
        assume(theirs is not None)
    except Exception:  # a scaling that this model does not take, however its class says so
        assume(False)
    assume(
        method != "dynamic" or hasattr(config, "max_position_embeddings")
    )  # the length that it is trained for
    whole = json.loads(json.dumps(config.to_dict(), default=str))
    for spelling in (whole, older(whole)) if "base" not in UNREAD[name] else (whole,):
        if method not in ("dynamic", "longrope"):
            compared(name, config, spelling)
            continue
        found = next(iter(from_config(spelling, length=length).kinds.values()))
        theirs(torch.zeros(1, 1, 1, 1), torch.arange(length)[None])
        np.testing.assert_allclose(abs(line(found)), theirs.inv_freq.double().numpy(), rtol=1e-5)
        assert found.scale == pytest.approx(float(theirs.attention_scaling), rel=1e-6)
