"""Arrows run one way: hook.py -> book -> nothing of MkDocs; check and offline stand on book."""

import ast
import doctest
import importlib
import re

import pytest
from book.cache import HOOKS

MODULES = sorted(
    f"{folder}.{path.stem}"
    for folder in ("book", "check", "offline")
    for path in (HOOKS / folder).glob("[!_]*.py")
)
MAY = {"book": {"book"}, "check": {"book", "check"}, "offline": {"book", "offline"}}


def imported(source: str) -> set[str]:
    """The packages that a module imports, at its head or anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return names


@pytest.mark.parametrize("module", MODULES)
def test_arrows_run_one_way(module: str) -> None:
    folder = module.partition(".")[0]
    names = imported(HOOKS.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8"))
    forbidden = {"mkdocs", "material", "mkdocs_jupyter", "hook", "posenc", *MAY} - MAY[folder]
    assert names & forbidden == set()


def test_an_arrow_the_other_way_is_seen() -> None:
    assert imported("def f():\n    from mkdocs.utils import meta\n") == {"mkdocs"}
    assert imported("import mkdocs.plugins as p, os\nfrom . import hook\n") == {"mkdocs", "os"}


@pytest.mark.parametrize("config", ["mkdocs.yml", "docs/sites/en/mkdocs.yml", "docs/sites/zh/mkdocs.yml"])
def test_hook_is_all_that_is_loaded(config: str) -> None:
    text = (HOOKS.parents[1] / config).read_text(encoding="utf-8")
    assert re.findall(r"\nhooks:\n((?:  - .*\n)+)", text) in (
        ["  - docs/hooks/hook.py\n"],
        ["  - ../../hooks/hook.py\n"],
    )


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0
