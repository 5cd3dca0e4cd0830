"""What README.md and CITATION.cff say is small is as small as they say."""

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CORE = [
    path
    for path in (ROOT / "posenc").rglob("*.py")
    if not {"plot", "experiments", "check", "exercises"} & set(path.parts)
]
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def lines_of_code(source: str) -> int:
    """Lines that are neither empty nor a comment nor part of a docstring."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    lines = {n for t in tokens if t.type not in NO_CODE for n in range(t.start[0], t.end[0] + 1)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def test_lines_of_code() -> None:
    source = '"""A\n\nb."""\n\n# c\nx = (\n    1,\n)\n\n\ndef f():\n    """D."""\n    return x  # e\n'
    assert lines_of_code(source) == 5


@pytest.mark.parametrize("name", ["README.md", "CITATION.cff"])
def test_what_is_said_to_be_small_is_small(name: str) -> None:
    sources = [path.read_text("utf-8") for path in CORE]
    measured = {"files": len(CORE), "lines": sum(source.count("\n") for source in sources)}
    measured["code"] = sum(map(lines_of_code, sources))
    said = (ROOT / name).read_text("utf-8").partition("formulas, masks and layers are ")[2]
    numbers = {
        "files": re.search(r"^(\d+) files", said),
        "lines": re.search(r"with ([\d,]+) lines, of", said),
        "code": re.search(r"([\d,]+)(?: are| lines of) code", said),
    }
    given = {what: int(found[1].replace(",", "")) for what, found in numbers.items() if found}
    assert {"files", "code"} <= given.keys()
    assert given == {what: pytest.approx(measured[what], rel=0.05) for what in given}
