"""posenc: every positional encoding of the Transformer, as small functions.

Formulas live here and need an array library only. Layers are in `posenc.nn` (torch), pictures in
`posenc.plot` (matplotlib), the small trainings that the book quotes in `posenc.experiments`.
The function `attention` is in the module of its name: `from posenc.attention import attention`.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posenc._public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """A module of the package, or what `posenc._public` holds: imported at the first question for it."""
    if name == "__all__" or not name.startswith("_"):
        if find_spec(f"posenc.{name}") is not None:
            return import_module(f"posenc.{name}")
        public = import_module("posenc._public")
        if hasattr(public, name):
            return getattr(public, name)
    raise AttributeError(f"module 'posenc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__"), "experiments", "nn", "plot"})
