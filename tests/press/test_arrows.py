"""Arrows run one way: hook.py -> the rest of press -> nothing of MkDocs; check and offline stand on the rest."""

import ast
import doctest
import importlib
import re

import pytest
from press.cache import PRESS, ROOT

MODULES = sorted(
    path.relative_to(PRESS.parent).with_suffix("").as_posix().replace("/", ".")
    for path in PRESS.rglob("[!_]*.py")
    if path.name not in ("hook.py", "books.py")  # what knows MkDocs
)
TOPS = ("press.check", "press.offline")  # nothing else imports them, and they do not import each other


def imported(source: str) -> set[str]:
    """What a module imports, at its head or anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module or '.'}.{alias.name}" for alias in node.names}
    return names


def against(module: str, source: str) -> set[str]:
    """What a module imports and must not."""
    tops = tuple(top for top in TOPS if not module.startswith(top))
    forbidden = ("mkdocs", "material", "mkdocs_jupyter", "press.hook", "posenc", "..", *tops)
    return {name for name in imported(source) if any(f"{name}.".startswith(f"{top}.") for top in forbidden)}


@pytest.mark.parametrize("module", MODULES)
def test_arrows_run_one_way(module: str) -> None:
    path = PRESS.parent.joinpath(*module.split(".")).with_suffix(".py")
    assert against(module, path.read_text(encoding="utf-8")) == set()


def test_an_arrow_the_other_way_is_seen() -> None:
    assert against("press.pages", "def f():\n    from mkdocs.utils import meta\n") == {"mkdocs.utils.meta"}
    assert against("press.pages", "import os\nfrom press import hook\n") == {"press.hook"}
    assert against("press.pages", "from press.check import cli") == {"press.check.cli"}
    assert against("press.check.cli", "from press.check import pages") == set()


@pytest.mark.parametrize("config", ["mkdocs.yml", "docs/sites/en/mkdocs.yml", "docs/sites/zh/mkdocs.yml"])
def test_hook_is_all_that_is_loaded(config: str) -> None:
    text = (ROOT / config).read_text(encoding="utf-8")
    assert re.findall(r"\nhooks:\n((?:  - .*\n)+)", text) in (
        ["  - docs/press/hook.py\n"],
        ["  - ../../press/hook.py\n"],
    )


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0
