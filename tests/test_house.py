"""The house as a whole: what lies at the top, and that no modules import each other in a circle."""

from __future__ import annotations

import ast
import re
import subprocess
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOP = {".ci", "docs", "mkdocs.yml", "posenc", "pyproject.toml", "tests"}
# What every project may have: words to whoever comes, lock files, and the configurations of tools.
USUAL = re.compile(
    r"(CHANGELOG|CITATION|CODE_OF_CONDUCT|CONTRIBUTING|LICENSE|README|SECURITY)(\.\w+)?"
    r"|[\w.-]+\.(lock|toml|cfg|ini)|requirements[\w-]*\.txt|\.[\w.-]+"
)


def modules(folder: Path, base: Path) -> dict[str, str]:
    """The sources of a folder by their names below `base`; a package is its __init__."""
    return {
        ".".join(path.relative_to(base).with_suffix("").parts).removesuffix(".__init__"): path.read_text(
            "utf-8"
        )
        for path in sorted(folder.rglob("*.py"))
    }


def circle(sources: dict[str, str]) -> list[str]:
    """The modules of one circle of imports, at their heads or inside functions; [] where there is none."""
    graph = {}
    for name, source in sources.items():
        package = name if any(other.startswith(f"{name}.") for other in sources) else name.rpartition(".")[0]
        graph[name] = {
            found if found in sources else found.rpartition(".")[0]
            for node in ast.walk(ast.parse(source))
            for found in imported(node, package)
        } & sources.keys() - {name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def imported(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        origin = ".".join([*above, *filter(None, [node.module])])
        return [f"{origin}.{alias.name}" for alias in node.names]
    return []


def test_nothing_else_lies_at_the_top() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("no git checkout")
    top = {name.partition("/")[0] for name in tracked.stdout.split()}
    assert top >= TOP
    assert [name for name in top - TOP if not USUAL.fullmatch(name)] == []


@pytest.mark.parametrize(("folder", "base"), [("posenc", "."), ("docs/press", "docs")])
def test_no_modules_import_each_other_in_a_circle(folder: str, base: str) -> None:
    assert circle(modules(ROOT / folder, ROOT / base)) == []


def test_a_circle_is_found() -> None:
    assert (
        circle(
            {"p": "from p.a import x", "p.a": "def f():\n    from . import b", "p.b": "import p.c", "p.c": ""}
        )
        == []
    )
    assert set(circle({"p.a": "from p.b import x", "p.b": "def f():\n    from .a import y"})) == {
        "p.a",
        "p.b",
    }
