"""Trainings of posenc.experiments, done once for blocks that share a process: those of both languages.

They are functions of their arguments: they bring their own seed, and leave the generators as they were.
"""

import contextlib
import functools
import importlib
import io
import pickle
import pkgutil
import sys
from collections.abc import Callable
from typing import Any

# A function without a name, or what holds itself.
_NOT_WRITTEN = (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError)


def share() -> None:
    """From here on a training of this process is done once, and whoever asks again gets a copy."""
    with contextlib.suppress(ImportError):  # the block that needs torch says so
        experiments = importlib.import_module("posenc.experiments")
        for found in pkgutil.walk_packages(experiments.__path__, "posenc.experiments."):
            if not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    modules = [module for name, module in sys.modules.items() if name.startswith("posenc.experiments")]
    shared: dict[Callable[..., Any], Callable[..., Any]] = {}
    for module in modules:
        for name, function in list(vars(module).items()):
            if name.startswith("train_") and callable(function):
                vars(module)[name] = shared.setdefault(function, once(function))


class _Writer(pickle.Pickler):
    """Writes equal values equally: tensors without the place where they lie, and what is the same object twice.

    Of the hooks of a layer, which may hold the layer itself, it writes what they call; their numbers are new each time.
    """

    def reducer_override(self, obj: Any) -> Any:
        import torch

        if isinstance(obj, torch.nn.Module):
            state = {name: _called(x) if name.endswith("_hooks") else x for name, x in vars(obj).items()}
            return tuple, ((type(obj), state),)
        if not isinstance(obj, torch.Tensor):
            return NotImplemented
        data = obj.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return tuple, ((type(obj), str(obj.dtype), tuple(obj.shape), obj.requires_grad, data),)


def _called(hooks: dict[int, Any]) -> list[Any]:
    return [(getattr(x, "hook", x), getattr(x, "with_module", None)) for x in hooks.values()]


def written(value: Any) -> bytes:
    buffer = io.BytesIO()
    writer = _Writer(buffer)
    writer.fast = True
    writer.dump(value)
    return buffer.getvalue()


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which keeps what it gives where that and its arguments can be copied, and stay as they are."""
    kept: dict[bytes, bytes] = {}

    @functools.wraps(function)
    def asked(*args: Any, **kwargs: Any) -> Any:
        try:
            asked_for = written((args, kwargs))
        except _NOT_WRITTEN:
            return function(*args, **kwargs)
        if asked_for in kept:
            return pickle.loads(kept[asked_for])
        result = function(*args, **kwargs)
        with contextlib.suppress(*_NOT_WRITTEN):
            if written((args, kwargs)) == asked_for:
                kept[asked_for] = pickle.dumps(result)
        return result

    return asked
