"""The ledger of claims: what is measured must still give the verdict that the page gives."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from posenc.experiments.claims import CLAIMS, claim_table, claim_words, code, formulas, longer
from tests.posenc.refusals import refused


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_has_its_verdict(name: str) -> None:
    assert CLAIMS[name].measure().verdict == CLAIMS[name].verdict


@pytest.mark.parametrize(
    ("module", "patched", "fault", "name"),
    [
        (
            formulas,
            "sinusoidal_wavelengths",
            lambda dim: np.geomspace(1, 1e4, dim) * 2 * np.pi,
            "longest-wavelength",
        ),
        (code, "sinusoidal_encoding", lambda n, dim: np.zeros((n, dim)), "from-zero-or-one"),
        (
            code,
            "alibi_slopes",
            lambda heads: 2.0 ** (-8 * np.arange(1, heads + 1) / heads),
            "slopes-by-formula",
        ),
        (longer, "_trained", lambda scheme, task: [1.0, 1.0, 1.0], "rotary-extrapolates"),
    ],
)
def test_a_fault_is_seen(
    monkeypatch: pytest.MonkeyPatch, module: Any, patched: str, fault: Callable[..., Any], name: str
) -> None:
    monkeypatch.setattr(module, patched, fault)
    assert CLAIMS[name].measure().verdict != CLAIMS[name].verdict


def test_each_claim_has_words_in_both_languages() -> None:
    assert list(claim_words()) == list(CLAIMS)
    assert {tuple(words) for words in claim_words().values()} == {("en", "zh")}


test_a_language_that_is_unknown_is_refused = refused(
    [(lambda: claim_table(lang="de"), ValueError, 'lang must be "en" or "zh", got')]  # type: ignore[arg-type]
)
