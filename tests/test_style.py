"""One style, checked by the tools that know it."""

import subprocess
import sys

import pytest
from press.cache import ROOT


@pytest.mark.parametrize("tool", [["ruff", "check", "."], ["ruff", "format", "--check", "."]], ids=" ".join)
def test_the_tool_is_content(tool: list[str]) -> None:
    result = subprocess.run(
        [sys.executable, "-m", *tool], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_mypy_is_content(mypy: subprocess.CompletedProcess[str]) -> None:
    assert mypy.returncode == 0, mypy.stdout + mypy.stderr
