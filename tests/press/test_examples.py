"""The examples in the docstrings of the machinery."""

import doctest
import importlib
from pkgutil import walk_packages

import press
import pytest

MODULES = [
    module.name for module in walk_packages(press.__path__, "press.") if module.name != "press.__main__"
]


@pytest.mark.parametrize("module", MODULES)
def test_examples(module: str) -> None:
    assert doctest.testmod(importlib.import_module(module)).failed == 0
