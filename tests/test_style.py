"""One style, checked by the tools that know it."""

import pytest
from press.cache import ROOT

from tests.programs import python


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(["ruff", "check", "."], id="ruff check"),
        pytest.param(["ruff", "format", "--check", "."], id="ruff format"),
        pytest.param(["mypy"], id="mypy", marks=pytest.mark.slow),
    ],
)
def test_the_tool_is_content(tool: list[str]) -> None:
    result = python("-m", *tool, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr
