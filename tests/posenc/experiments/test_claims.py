"""The ledger of claims: what is measured must still give the verdict that the page gives."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from posenc.experiments.claims import CLAIMS, claim_table, claim_words, code, formulas, ledger, longer

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_has_its_verdict(name: str) -> None:
    assert ledger._measured(name).verdict == CLAIMS[name].verdict


def test_a_row_has_what_was_measured() -> None:
    row = claim_table().splitlines()[3]
    assert (
        "| false | [formula](#formulas) | at width 512 the longest is 60,611, and 10000·2π is 62,832<" in row
    )


@pytest.mark.parametrize(
    ("module", "patched", "fault", "name"),
    [
        (formulas, "sinusoidal_wavelengths", lambda dim: np.geomspace(1, 1e4, dim) * 2 * np.pi, "longest-wavelength"),
        (code, "sinusoidal_encoding", lambda n, dim: np.zeros((n, dim)), "from-zero-or-one"),
        (code, "alibi_slopes", lambda heads: 2.0 ** (-8 * np.arange(1, heads + 1) / heads), "slopes-by-formula"),
        (longer, "_trained", lambda scheme, task: [1.0, 1.0, 1.0], "rotary-extrapolates"),
    ],
)  # fmt: skip
def test_a_fault_is_seen(
    monkeypatch: pytest.MonkeyPatch, module: Any, patched: str, fault: Callable[..., Any], name: str
) -> None:
    monkeypatch.setattr(module, patched, fault)
    assert CLAIMS[name].measure().verdict != CLAIMS[name].verdict


def test_each_claim_has_words_in_both_languages() -> None:
    assert list(claim_words()) == list(CLAIMS)
    assert {tuple(words) for words in claim_words().values()} == {("en", "zh")}


def lacking(words: dict[str, dict[str, dict[str, str]]]) -> list[str]:
    """The claims that do not say in both languages what would change their verdict, or say what another one says.

    Two claims may need the same condition ("under a causal mask"), but no two the same case.
    """
    said = {
        (name, language): text.get("changes", "")
        for name, each in words.items()
        for language, text in each.items()
    }
    times = Counter(said.values())
    return [
        f"{name} ({language})"
        for (name, language), text in said.items()
        if not text
        or (times[text] > 1 and not text.startswith(("True if it adds ", "补上")))
        or bool(re.search(r"[\u4e00-\u9fff]", text)) != (language == "zh")
    ]


def test_each_claim_says_what_would_change_its_verdict() -> None:
    words = claim_words()
    assert lacking(words) == []
    english, chinese = words["bounded"]["en"], words["bounded"]["zh"]
    assert lacking(words | {"bounded": {"en": english | {"changes": ""}, "zh": chinese}}) == ["bounded (en)"]
    assert lacking(words | {"bounded": {"en": english, "zh": english}})[-1] == "bounded (zh)"
    twice = lacking(words | {"bounded": words["leak-grows"]})
    assert twice == [
        f"{name} ({language})" for name in ("bounded", "leak-grows") for language in ("en", "zh")
    ]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_row_of_the_page_ends_with_what_would_change_its_verdict(language: str) -> None:
    page = (ROOT / "docs" / language / "claims.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[.*\{#row-([\w-]+)\} \|.*[^ ]<br>→ .{6,} \|$", page, re.MULTILINE)
    assert rows == list(CLAIMS)
