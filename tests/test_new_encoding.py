"""CONTRIBUTING.md says which places a new encoding touches: those of the encodings that are there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECTION = (
    (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## A new encoding\n")[2].partition("\n## ")[0]
)
PLACES = re.findall(r"`((?:posenc|tests|docs)/[\w./]+|CHANGELOG\.md)`", SECTION)
# Encodings: some of what is public there, and what they do not have.
ENCODINGS = {
    "alibi": ("alibi_bias|AlibiBias|alibi_maps", ""),
    "contextual": ("contextual_bias", "/plot/|array_libraries"),
    "locality": ("rbf_encoding|rbf_bumps", "/nn/|CHANGELOG"),
}
KNOWN_ELSEWHERE = ("alibi",)  # an example in tests, and part of other encodings


@pytest.mark.parametrize("name", ENCODINGS)
def test_each_place_of_the_list_has_the_encoding(name: str) -> None:
    public, lacks = ENCODINGS[name]
    without = []
    for place in (
        ROOT / place.replace("NAME", name) for place in PLACES if not re.search(lacks or "$.", place)
    ):
        text = place.read_text("utf-8") if place.is_file() else ""
        if not re.search(f"{name}|{public}", text, re.IGNORECASE):
            without.append(place.relative_to(ROOT).as_posix())
    assert without == []


@pytest.mark.parametrize("name", sorted(ENCODINGS.keys() - set(KNOWN_ELSEWHERE)))
def test_no_other_place_knows_it(name: str) -> None:
    of_any = "tests/test_new_encoding.py", "posenc/experiments/claims", "*exercises/*", "docs/solutions"
    others = [f":!{place}" for place in of_any]
    words = ["git", "grep", "-lwE", ENCODINGS[name][0], "--", ".", *others]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip("no git checkout")
    assert set(found.stdout.split()) <= {place.replace("NAME", name) for place in PLACES}
