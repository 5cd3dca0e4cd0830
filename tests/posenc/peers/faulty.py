"""Faults planted in tiny models of transformers, and what posenc.check.all must say of each."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

import posenc.check
from posenc.check.tried import tiny_model
from tests.peers import modeling, peer

Fault = Callable[[pytest.MonkeyPatch], Any]
Model = str | Callable[..., Any]


def made(name: str, **fields: Any) -> Any:
    """A tiny model of transformers; skipped without them."""
    peer("transformers")
    return tiny_model(name, **fields)


def of(model: Model, make: Callable[..., Any], **fields: Any) -> Any:
    """A model that is made of a name, or by its own function."""
    return make(model, **fields) if isinstance(model, str) else model(**fields)


def replace(patch: pytest.MonkeyPatch, where: str, faulty: Callable[..., Any]) -> None:
    """`faulty` is called in place of what stands there, with that first.

    Args:
        where: "llama.LlamaModel.forward" of the model llama, or "cache_utils.DynamicLayer.update" of all.
    """
    home, *path, name = where.split(".")
    owner = peer(f"transformers.{home}") if home.endswith("_utils") else modeling(home)
    for each in path:
        owner = getattr(owner, each)
    usual = getattr(owner, name)

    @functools.wraps(usual)
    def called(*given: Any, **more: Any) -> Any:
        return faulty(usual, *given, **more)

    static = isinstance(inspect.getattr_static(owner, name), staticmethod) and inspect.isclass(owner)
    patch.setattr(owner, name, staticmethod(called) if static else called)


def watched(patch: pytest.MonkeyPatch, where: str) -> list[Any]:
    """What stands there gives as before, and the last of it is kept here."""
    last: list[Any] = []

    def kept(usual: Any, *given: Any, **more: Any) -> Any:
        last[:] = [usual(*given, **more)]
        return last[0]

    replace(patch, where, kept)
    return last


def told(patch: pytest.MonkeyPatch, where: str, name: str) -> list[bool]:
    """Whether the last call of what stands there was given an argument of this name."""
    given = [False]

    def kept(usual: Any, *rest: Any, **more: Any) -> Any:
        given[0] = more.get(name) is not None
        return usual(*rest, **more)

    replace(patch, where, kept)
    return given


def scaled(patch: pytest.MonkeyPatch, name: str, attention: str, factor: Any) -> None:
    """Attention of a model that multiplies its scores by this factor of the module."""

    def begin(usual: Any, self: Any, *given: Any, **more: Any) -> None:
        usual(self, *given, **more)
        self.scaling = factor(self)

    replace(patch, f"{name}.{attention}.__init__", begin)


class Faults(dict[str, tuple[Fault, str]]):
    """Faults by their names, each with words of its cause."""

    def planted(self, words: str) -> Callable[[Fault], Fault]:
        """What is decorated patches transformers and makes a model."""

        def kept(fault: Fault) -> Fault:
            assert fault.__name__ not in self
            self[fault.__name__] = fault, words
            return fault

        return kept

    def replaced(
        self, words: str, where: str, model: Model = "", *, make: Callable[..., Any] = made, **fields: Any
    ) -> Callable[[Callable[..., Any]], Fault]:
        """What is decorated is called in place of what stands there, as by `replace`."""

        def kept(faulty: Callable[..., Any]) -> Fault:
            @functools.wraps(faulty)
            def fault(patch: pytest.MonkeyPatch) -> Any:
                replace(patch, where, faulty)
                return of(model or where.partition(".")[0], make, **fields)

            return self.planted(words)(fault)

        return kept

    def changed(
        self, words: str, model: Model, *, make: Callable[..., Any] = made, **fields: Any
    ) -> Callable[[Callable[[Any], None]], Fault]:
        """What is decorated changes a model that is made."""

        def kept(change: Callable[[Any], None]) -> Fault:
            @functools.wraps(change)
            def fault(_: pytest.MonkeyPatch) -> Any:
                changed = of(model, make, **fields)
                change(changed)
                return changed

            return self.planted(words)(fault)

        return kept

    def must_be_named(self, name: str, patch: pytest.MonkeyPatch) -> None:
        """The first line of the report is a fault and names its cause."""
        fault, words = self[name]
        report = posenc.check.all(fault(patch))
        first = sorted(report.findings, key=lambda finding: finding.ok)[0]
        assert not first.ok, report
        assert words in first.look, report
