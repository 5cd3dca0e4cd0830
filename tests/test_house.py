"""The house as a whole: what lies at the top, and which way imports run."""

import re
import subprocess
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[1]
TOP = {
    *("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "README.md", "mkdocs.yml", "pyproject.toml"),
    *("docs", "posenc", "tests", ".ci", ".github", ".gitignore"),
}  # fmt: skip
# What every project may have beside: words to whoever comes, in both languages, a lock file, configurations of tools.
USUAL = re.compile(
    r"(CODE_OF_CONDUCT|SECURITY|CONTRIBUTING\.zh)\.md|[\w-]+\.(lock|toml)|\.(editorconfig|gitattributes|devcontainer|pre-commit-config\.yaml)"
)


def test_nothing_else_lies_at_the_top() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode:
        pytest.skip("no git checkout")
    top = {name.partition("/")[0] for name in tracked.stdout.split()}
    assert top >= TOP
    assert [name for name in top - TOP if not USUAL.fullmatch(name)] == []


def test_each_package_of_the_machinery_says_what_is_in_each_of_its_modules() -> None:
    missing = []
    for package in (ROOT / "docs" / "press").rglob("__init__.py"):
        said = package.read_text(encoding="utf-8").split('"""')[1]
        modules = {path.stem for path in package.parent.glob("[!_]*.py")}
        modules |= {path.parent.name for path in package.parent.glob("*/__init__.py")}
        missing += [
            f"{package.parent.name}.{name}" for name in modules if not re.search(rf"\b{name}\b", said)
        ]
    assert missing == []


def test_imports_run_one_way() -> None:
    """As pyproject.toml says, in both packages; what is wrong is named by file and line."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


@pytest.mark.parametrize("file", ["CONTRIBUTING.md", "CONTRIBUTING.zh.md"])
def test_the_drawing_of_imports_is_that_of_the_code(file: str) -> None:
    drawn = {
        (start, end)
        for start, ends in re.findall(r"(?m)^  ([\w.]+) --> (.+)$", (ROOT / file).read_text("utf-8"))
        for end in ends.split(" & ")
    }
    boxes = sorted({box for arrow in drawn for box in arrow}, key=len, reverse=True)
    graph = grimp.build_graph("posenc", "press", cache_dir=None)
    room = {name: next(box for box in boxes if f"{name}.".startswith(f"{box}.")) for name in graph.modules}
    imports = {
        (room[name], room[other]) for name in room for other in graph.find_modules_directly_imported_by(name)
    }
    assert drawn == {(start, end) for start, end in imports if start != end}
