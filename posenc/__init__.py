"""posenc: every positional encoding of the Transformer, as small functions.

Formulas live here and need an array library only. Layers are in `posenc.nn` (torch), pictures in
`posenc.plot` (matplotlib), the small trainings that the book quotes in `posenc.experiments`.
The function `attention` is in the module of its name: `from posenc.attention import attention`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from posenc._public import *  # noqa: F403

# These need torch or matplotlib, so nothing imports them but who asks for them.
_ON_REQUEST = ("experiments", "nn", "plot")


def __getattr__(name: str) -> Any:
    """What `posenc._public` holds, imported at the first question: `import posenc` costs little."""
    if name in _ON_REQUEST:
        return import_module(f"posenc.{name}")
    if not name.startswith("_") or name == "__all__":
        public = import_module("posenc._public")
        if hasattr(public, name):
            return getattr(public, name)
    raise AttributeError(f"module 'posenc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__getattr__("__all__"), *_ON_REQUEST])
