"""How long builds of the book take: `pytest tests/benchmarks/bench_site.py -s`."""

import re
import shutil
from pathlib import Path

import pytest
from book.cache import ROOT
from sitebuild import build, different

pytestmark = pytest.mark.benchmarks


def test_cost_of_a_build(tmp_path: Path) -> None:
    """A second build runs nothing and costs little; from an empty cache the bytes are the same again."""
    empty = {"POSENC_CACHE": str(tmp_path / "cache")}
    sites = [tmp_path / str(number) for number in range(3)]
    first = build(ROOT, sites[0], **empty)
    second = build(ROOT, sites[1], **empty)
    without = build(ROOT, sites[2], POSENC_EXECUTE="0")
    assert [status for status, _, _ in (first, second, without)] == [0, 0, 0], first[1]
    assert re.search(r"\bRan ", first[1])
    assert not re.search(r"\bRan ", second[1])
    shutil.rmtree(tmp_path / "cache")
    again = build(ROOT, sites[2], **empty)
    assert again[0] == 0
    assert different(sites[0], sites[2]) == []
    print(f"\nbuild: first {first[2]:.1f} s, second {second[2]:.1f} s, without execution {without[2]:.1f} s")
    print(f"second / without execution = {second[2] / without[2]:.2f}")
