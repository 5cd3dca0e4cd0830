"""Code that belongs to one instance of a model, and so to no copy that is loaded."""

from __future__ import annotations

from torch import nn

__all__ = ["own_code"]


def own_code(model: nn.Module) -> str:
    """The first method of a module or a part of it that an attribute of the instance hides; "" if there is none."""
    for name, part in model.named_modules():
        for method, code in vars(part).items():
            if (
                callable(code)
                and not isinstance(code, nn.Module)
                and callable(getattr(type(part), method, None))
            ):
                return f"{name}.{method}".lstrip(".")
    return ""
