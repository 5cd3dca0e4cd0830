"""One style, checked by the tools that know it."""

import subprocess
import sys

import pytest
from press.cache import ROOT


@pytest.mark.parametrize(
    "tool", [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]], ids=" ".join
)
def test_the_tool_is_content(tool: list[str]) -> None:
    command = [sys.executable, "-m", *tool]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
