"""Pages run under pytest-codeblocks as it comes, without our plugin: whoever copies a page can test it."""

import os
import re
import shutil
from pathlib import Path

import pytest
from press import pages
from press.cache import ROOT

from tests.programs import python

# Each page in one language: the twin has the same code but for its strings.
ALL = [f"{('en', 'zh')[n % 2]}/{path.name}" for n, path in enumerate(sorted((ROOT / "docs/en").glob("*.md")))]
CHEAP = ["en/primer.md", "zh/shift.md", "en/layouts.md"]  # they train nothing, and need no torch.distributed


@pytest.mark.parametrize(
    "names", [CHEAP, pytest.param(ALL, marks=pytest.mark.slow)], ids=["cheap", "each page"]
)
def test_pages_run_without_our_plugin(names: list[str], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "docs" / name, tmp_path / name)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"}
    options = "--codeblocks", "-q", "-p", "no:cacheprovider", "."
    done = python("-m", "pytest", *options, cwd=tmp_path, env=environment)
    blocks = sum(len(pages.read(ROOT / "docs" / name).blocks) for name in names)
    assert re.findall(r"\n(.*) passed", done.stdout) == [str(blocks)], done.stdout[-5000:]
