"""The error for a name that `posenc` does not have: it says where the name is, or which one is near.

Names are read from `__all__` in the source of each module, so that no layer or picture is imported for them.
"""

import ast
import difflib
import pkgutil
import re
import sys
from functools import cache
from importlib.abc import InspectLoader
from importlib.util import find_spec
from pathlib import Path


def error(name: str, door: list[str]) -> AttributeError | ImportError:
    """What `posenc.__getattr__` raises: an ImportError for `from posenc import name`, else an AttributeError.

    In such an import Python would replace an AttributeError by an ImportError without the hint. `door` are the
    names that posenc does have.
    """
    hint = _hint(name, door)
    if sys._getframe(2).f_code.co_name == "_handle_fromlist":
        return ImportError(f"cannot import name {name!r} from 'posenc': {hint}", name="posenc")
    # With an obj that is not posenc, Python does not add the nearest of posenc's own names.
    return AttributeError(f"module 'posenc' has no attribute {name!r}: {hint}", name=name, obj=None)


def _hint(name: str, door: list[str]) -> str:
    places = _places()
    near = [name] if name in places else difflib.get_close_matches(name, [*door, *places], n=1)
    if not near:
        return "layers are in posenc.nn, pictures in posenc.plot, all else in the module of its chapter"
    right = f"posenc.{near[0]}" if near[0] in door else f"posenc.{places[near[0]]}.{near[0]}"
    return f"it is {right}" if name in places else f"did you mean {right}?"


@cache
def _places() -> dict[str, str]:
    """The module of each public name."""
    modules = [module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)])]
    return {name: module for module in modules for name in _public(module)}


def _public(module: str) -> list[str]:
    """The names that a module of posenc lists in `__all__`; a private module lists none."""
    spec = find_spec(f"posenc.{module}")
    source = spec.loader.get_source(spec.name) if spec and isinstance(spec.loader, InspectLoader) else None
    listed = re.search(r"^__all__ = (\[.*?\])", source or "", re.MULTILINE | re.DOTALL)
    return list(ast.literal_eval(listed[1])) if listed else []
