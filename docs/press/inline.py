"""What stands at the head of a script for `uv run` (PEP 723): what it imports, and of posenc the extras."""

import ast
import functools
import json
import re
import sys
import tomllib

from press import page_facts
from press.cache import ROOT
from press.runtime import pyodide

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# What brings a library with posenc, as pyproject.toml says.
EXTRAS = {
    library: extra
    for extra in ("torch", "plot", "graphs", "experiments")
    for library in (re.split(r"[\[><=]", needed)[0] for needed in PROJECT["optional-dependencies"][extra])
    if library != PROJECT["name"]
}


@functools.cache
def libraries(code: str) -> frozenset[str]:
    """The libraries that a piece of code imports, by the names of their packages.

    >>> sorted(libraries("import math\\nimport torch.nn as nn\\nfrom posenc import plot"))
    ['posenc', 'torch']
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(str(node.module).partition(".")[0])
    return frozenset(names - sys.stdlib_module_names - {"__future__"})


def needed(code: str) -> list[str]:
    """What is to be installed for a script.

    >>> needed("import numpy\\nfrom posenc import plot\\nplot.heat_map"), needed("import torch\\nimport numpy")
    (['posenc[plot]POSENC-SOURCE'], ['numpy', 'torch'])
    """
    own = libraries(code)
    if "posenc" not in own:
        return sorted(own)
    extras = sorted({EXTRAS[name] for name in pyodide.imported(code) if name in EXTRAS})
    brought = {*EXTRAS, "numpy", "posenc"}
    return [f"posenc{f'[{chr(44).join(extras)}]' * bool(extras)}{page_facts.SOURCE}", *sorted(own - brought)]


def head(code: str) -> str:
    """The comment itself, for what is to run by `uv run FILE`."""
    said = [f'requires-python = "{PROJECT["requires-python"]}"', f"dependencies = {json.dumps(needed(code))}"]
    return "".join(f"# {line}\n" for line in ["/// script", *said, "///"])
